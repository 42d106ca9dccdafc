//! Certificate authority with its private key, for issuing identities and signing documents.

use openssl::asn1::{Asn1Integer, Asn1Object, Asn1OctetString, Asn1Time};
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::{AuthorityKeyIdentifier, BasicConstraints, KeyUsage, SubjectKeyIdentifier};
use openssl::x509::{X509, X509Builder, X509CrlBuilder, X509Extension, X509Name, X509RevokedBuilder};

use crate::error::{ErrorKind, Result, SecurityError, failed};
use crate::identity::{Certificate, Identity, KeyAlgorithm, PrivateKey, UnixSeconds};

/// Maximum number of characters of a common name (RFC 5280, `ub-common-name`).
const COMMON_NAME_LEN_MAX: usize = 64;
const RSA_BITS: u32 = 2_048;

/// Validity period of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// First valid second.
    pub not_before: UnixSeconds,
    /// Second at which the certificate expires.
    pub not_after: UnixSeconds,
}

/// Authority that issues identities and signs documents.
pub struct Issuer {
    certificate: X509,
    key: PKey<Private>,
}

impl Issuer {
    /// Creates an authority with a self-signed certificate.
    ///
    /// # Errors
    /// The name is empty or too long, or OpenSSL fails.
    pub fn create(common_name: &str, algorithm: KeyAlgorithm, validity: Validity) -> Result<Self> {
        let key = generate(algorithm)?;
        let name = subject(common_name)?;
        let mut builder = certificate(&name, &name, &key, validity)?;
        builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
        // An authority signs documents itself, so it needs digitalSignature.
        builder.append_extension(KeyUsage::new().critical().key_cert_sign().crl_sign().digital_signature().build()?)?;
        let identifier = SubjectKeyIdentifier::new().build(&builder.x509v3_context(None, None))?;
        builder.append_extension(identifier)?;
        builder.sign(&key, MessageDigest::sha256())?;
        Ok(Self { certificate: builder.build(), key })
    }

    /// Reads an authority from its PEM texts.
    ///
    /// # Errors
    /// One of the texts is not accepted, or the key does not belong to the certificate.
    pub fn from_pem(certificate: &[u8], key: &[u8], password: Option<&str>) -> Result<Self> {
        let key = PrivateKey::from_pem(key, password)?;
        let identity = Identity::new(Certificate::from_pem(certificate)?, key)?;
        let in_token = || SecurityError::new(ErrorKind::Certificate, "the key of an authority is in a token");
        let key = identity.key().in_memory().ok_or_else(in_token)?.to_owned();
        Ok(Self { certificate: identity.certificate().leaf().to_owned(), key })
    }

    /// Returns the certificate in PEM.
    ///
    /// # Errors
    /// OpenSSL fails.
    pub fn certificate_pem(&self) -> Result<Vec<u8>> {
        Ok(self.certificate.to_pem()?)
    }

    /// Returns the private key in PEM (PKCS#8, not encrypted).
    ///
    /// # Errors
    /// OpenSSL fails.
    pub fn key_pem(&self) -> Result<Vec<u8>> {
        Ok(self.key.private_key_to_pem_pkcs8()?)
    }

    pub(super) const fn parts(&self) -> (&X509, &PKey<Private>) {
        (&self.certificate, &self.key)
    }

    /// Issues an identity: certificate and private key, both in PEM.
    ///
    /// # Errors
    /// As [`Issuer::create`].
    pub fn issue(&self, common_name: &str, algorithm: KeyAlgorithm, validity: Validity) -> Result<(Vec<u8>, Vec<u8>)> {
        let key = generate(algorithm)?;
        let name = subject(common_name)?;
        let issuer = self.certificate.subject_name().to_owned()?;
        let mut builder = certificate(&name, &issuer, &key, validity)?;
        builder.append_extension(BasicConstraints::new().critical().build()?)?;
        builder.append_extension(KeyUsage::new().critical().digital_signature().key_agreement().build()?)?;
        let identifier = SubjectKeyIdentifier::new().build(&builder.x509v3_context(Some(&self.certificate), None))?;
        builder.append_extension(identifier)?;
        let identifier =
            AuthorityKeyIdentifier::new().keyid(false).build(&builder.x509v3_context(Some(&self.certificate), None))?;
        builder.append_extension(identifier)?;
        builder.sign(&self.key, MessageDigest::sha256())?;
        Ok((builder.build().to_pem()?, key.private_key_to_pem_pkcs8()?))
    }

    /// Issues a revocation list in PEM that contains all given certificates, at least one. Its
    /// number is its time of issue.
    ///
    /// # Errors
    /// There is no certificate, one is malformed, or OpenSSL fails.
    pub fn revoke(&self, certificates: &[&[u8]], validity: Validity) -> Result<Vec<u8>> {
        let mut builder = X509CrlBuilder::new()?;
        builder.set_issuer_name(self.certificate.subject_name())?;
        let since = Asn1Time::from_unix(validity.not_before)?;
        builder.set_last_update(&since)?;
        builder.set_next_update(&*Asn1Time::from_unix(validity.not_after)?)?;
        let context_builder = X509::builder()?;
        let context = context_builder.x509v3_context(Some(&self.certificate), None);
        builder.append_extension(AuthorityKeyIdentifier::new().keyid(false).build(&context)?)?;
        let number = der_integer(validity.not_before.unsigned_abs());
        let number = Asn1OctetString::new_from_bytes(&number)?;
        let kind = Asn1Object::from_str("2.5.29.20")?;
        builder.append_extension(X509Extension::new_from_der(&kind, false, &number)?)?;
        for pem in certificates {
            let certificate = X509::from_pem(pem).map_err(failed(ErrorKind::Certificate, "certificate to revoke"))?;
            let mut revoked = X509RevokedBuilder::new()?;
            revoked.set_serial_number(certificate.serial_number())?;
            revoked.set_revocation_date(&since)?;
            builder.add_revoked(revoked.build())?;
        }
        builder.sort()?;
        builder.sign(&self.key, MessageDigest::sha256())?;
        Ok(builder.build()?.to_pem()?)
    }
}

/// Encodes a nonnegative ASN.1 INTEGER.
fn der_integer(value: u64) -> Vec<u8> {
    let octets = value.to_be_bytes();
    let first = octets.iter().position(|octet| *octet != 0).unwrap_or(octets.len() - 1);
    // The top bit is the sign.
    let sign = usize::from(octets[first] >= 0x80);
    let mut der = vec![0; 2 + sign];
    (der[0], der[1]) = (0x02, u8::try_from(octets.len() - first + sign).expect("at most nine octets"));
    der.extend_from_slice(&octets[first..]);
    der
}

fn generate(algorithm: KeyAlgorithm) -> Result<PKey<Private>> {
    Ok(match algorithm {
        KeyAlgorithm::Rsa2048 => PKey::from_rsa(Rsa::generate(RSA_BITS)?)?,
        KeyAlgorithm::EcP256 => {
            PKey::from_ec_key(EcKey::generate(&*EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?)?)?
        }
    })
}

fn subject(common_name: &str) -> Result<X509Name> {
    let len = common_name.chars().count();
    if len == 0 || len > COMMON_NAME_LEN_MAX || common_name.chars().any(char::is_control) {
        let reason = format!("common name {common_name:?}, expected 1 to {COMMON_NAME_LEN_MAX} printable characters");
        return Err(SecurityError::new(ErrorKind::Limit, reason));
    }
    let mut name = X509Name::builder()?;
    name.append_entry_by_nid(Nid::COMMONNAME, common_name)?;
    Ok(name.build())
}

fn certificate(
    name: &openssl::x509::X509NameRef,
    issuer: &openssl::x509::X509NameRef,
    key: &PKey<Private>,
    validity: Validity,
) -> Result<X509Builder> {
    const X509_V3: i32 = 2;
    const SERIAL_BITS: i32 = 127;
    let mut serial = BigNum::new()?;
    serial.rand(SERIAL_BITS, MsbOption::ONE, false)?;
    let mut builder = X509::builder()?;
    builder.set_version(X509_V3)?;
    builder.set_serial_number(&*Asn1Integer::from_bn(&serial)?)?;
    builder.set_subject_name(name)?;
    builder.set_issuer_name(issuer)?;
    builder.set_not_before(&*Asn1Time::from_unix(validity.not_before)?)?;
    builder.set_not_after(&*Asn1Time::from_unix(validity.not_after)?)?;
    builder.set_pubkey(key)?;
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_shortest_nonnegative_encoding() {
        assert_eq!(der_integer(0), [2, 1, 0]);
        assert_eq!(der_integer(127), [2, 1, 127]);
        assert_eq!(der_integer(128), [2, 2, 0, 128]);
        assert_eq!(der_integer(u64::MAX), [&[2, 9, 0][..], &[255; 8]].concat());
    }

    #[test]
    fn invalid_certificate_names_are_refused() {
        let validity = Validity { not_before: 0, not_after: 1 };
        for name in ["", "a\nb", &"x".repeat(65)] {
            assert!(Issuer::create(name, KeyAlgorithm::EcP256, validity).is_err(), "{name:?}");
        }
        assert!(Issuer::create(&"\u{e9}".repeat(64), KeyAlgorithm::EcP256, validity).is_ok());
    }
}
