//! Key agreement: ECDH on P-256, and Diffie-Hellman in the MODP-2048-256 group of RFC 5114 §2.3.
//!
//! The shared secret is SHA-256 of the value that OpenSSL derives.

use openssl::bn::{BigNum, BigNumContext};
use openssl::derive::Deriver;
use openssl::dh::Dh;
use openssl::ec::{EcGroup, EcKey, EcPoint, PointConversionForm};
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private, Public};
use openssl::sha::sha256;

use crate::error::{ErrorKind, Result, SecurityError, failed};

/// Length in octets of a public key of the MODP group.
const MODP_LEN: usize = 256;
/// Length in octets of an uncompressed point.
const POINT_LEN: usize = 65;
/// First octet of an uncompressed point.
const POINT_UNCOMPRESSED: u8 = 4;

/// Key agreement algorithm of two participants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgreementAlgorithm {
    /// ECDH on P-256, the default proposal of an initiator, also with RSA identities.
    #[default]
    EcdhP256,
    /// Diffie-Hellman with 2,048 bits.
    ///
    /// INTEROP(CycloneDDS 0.10): a replier parses the ASN.1 form only, so an initiator that
    /// proposes this algorithm does not authenticate with it.
    /// INTEROP(Fast DDS 2.9): an initiator proposes this algorithm.
    Modp2048,
}

impl AgreementAlgorithm {
    /// Both algorithms.
    pub const ALL: [Self; 2] = [Self::EcdhP256, Self::Modp2048];

    /// Returns the value of `c.kagree_algo`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EcdhP256 => "ECDH+prime256v1-CEUM",
            Self::Modp2048 => "DH+MODP-2048-256",
        }
    }
}

/// Encoding of a public key of the MODP group.
///
/// INTEROP(CycloneDDS 0.10): writes an ASN.1 INTEGER, Fast DDS and OpenDDS raw octets. A replier
/// answers in the encoding of the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModpForm {
    Raw,
    Der,
}

impl ModpForm {
    pub(super) fn of(octets: &[u8]) -> Self {
        if octets.len() != MODP_LEN && der_content(octets).is_some() { Self::Der } else { Self::Raw }
    }
}

/// Ephemeral key pair.
pub(super) enum KeyPair {
    Ec(PKey<Private>),
    Modp(PKey<Private>),
}

impl KeyPair {
    pub(super) fn generate(algorithm: AgreementAlgorithm) -> Result<Self> {
        Ok(match algorithm {
            AgreementAlgorithm::EcdhP256 => Self::Ec(PKey::from_ec_key(EcKey::generate(&*p256()?)?)?),
            AgreementAlgorithm::Modp2048 => Self::Modp(PKey::from_dhx(Dh::get_2048_256()?.generate_key()?)?),
        })
    }

    pub(super) const fn algorithm(&self) -> AgreementAlgorithm {
        match self {
            Self::Ec(_) => AgreementAlgorithm::EcdhP256,
            Self::Modp(_) => AgreementAlgorithm::Modp2048,
        }
    }

    /// Returns the public key in its wire form.
    pub(super) fn public(&self, form: ModpForm) -> Result<Vec<u8>> {
        match self {
            Self::Ec(key) => {
                let key = key.ec_key()?;
                let mut context = BigNumContext::new()?;
                Ok(key.public_key().to_bytes(key.group(), PointConversionForm::UNCOMPRESSED, &mut context)?)
            }
            Self::Modp(key) => {
                let key = key.dh()?;
                let padded = key.public_key().to_vec_padded(i32::try_from(MODP_LEN).expect("a small number"))?;
                Ok(if form == ModpForm::Raw { padded } else { der(&key.public_key().to_vec()) })
            }
        }
    }

    /// Derives SHA-256 of the secret shared with the owner of a public key.
    pub(super) fn agree(&self, remote: &[u8]) -> Result<[u8; 32]> {
        let refused = failed(ErrorKind::Handshake, "public key for key agreement");
        let (own, remote) = match self {
            Self::Ec(key) => (key, point(remote)?),
            Self::Modp(key) => (key, modp(remote)?),
        };
        let mut deriver = Deriver::new(own).map_err(&refused)?;
        deriver.set_peer(&remote).map_err(&refused)?;
        // INTEROP(CycloneDDS 0.10, Fast DDS 2.9): a secret of the MODP group has no leading zeros.
        Ok(sha256(&deriver.derive_to_vec().map_err(&refused)?))
    }
}

fn p256() -> Result<EcGroup> {
    Ok(EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?)
}

fn point(octets: &[u8]) -> Result<PKey<Public>> {
    if octets.len() != POINT_LEN || octets[0] != POINT_UNCOMPRESSED {
        let reason = format!("public key of {} octets, expected an uncompressed point of {POINT_LEN}", octets.len());
        return Err(SecurityError::new(ErrorKind::Handshake, reason));
    }
    let refused = failed(ErrorKind::Handshake, "public key for key agreement");
    let group = p256()?;
    let mut context = BigNumContext::new()?;
    let point = EcPoint::from_bytes(&group, octets, &mut context).map_err(&refused)?;
    let key = EcKey::from_public_key(&group, &point).map_err(&refused)?;
    key.check_key().map_err(&refused)?;
    Ok(PKey::from_ec_key(key)?)
}

/// Parses a public key of the group, with 1 < y < p - 1.
fn modp(octets: &[u8]) -> Result<PKey<Public>> {
    let group = Dh::get_2048_256()?;
    let content = match ModpForm::of(octets) {
        ModpForm::Der => der_content(octets).unwrap_or_default(),
        ModpForm::Raw => octets,
    };
    // An ASN.1 INTEGER starts with a zero octet if the first bit of the number is set.
    let is_short = content.len() <= MODP_LEN || (content.len() == MODP_LEN + 1 && content[0] == 0);
    let key = if is_short { BigNum::from_slice(content)? } else { BigNum::new()? };
    let mut last = group.prime_p().to_owned()?;
    last.sub_word(1)?;
    if key <= BigNum::from_u32(1)? || key >= last {
        let reason = format!("public key of {} octets is not a member of MODP-2048-256", octets.len());
        return Err(SecurityError::new(ErrorKind::Handshake, reason));
    }
    Ok(PKey::from_dhx(group.set_public_key(key)?)?)
}

/// Returns the content of an ASN.1 INTEGER whose length takes two octets.
fn der_content(octets: &[u8]) -> Option<&[u8]> {
    let (head, content) = octets.split_first_chunk::<4>()?;
    let is_integer = head[..2] == [0x02, 0x82] && usize::from(u16::from_be_bytes([head[2], head[3]])) == content.len();
    is_integer.then_some(content)
}

fn der(number: &[u8]) -> Vec<u8> {
    let sign = usize::from(number.first().is_some_and(|first| *first >= 0x80));
    let len = u16::try_from(number.len() + sign).expect("at most 257 octets").to_be_bytes();
    [&[0x02, 0x82, len[0], len[1]], &vec![0; sign][..], number].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_derive_the_same_secret_with_each_algorithm_and_encoding() {
        for algorithm in AgreementAlgorithm::ALL {
            for form in [ModpForm::Raw, ModpForm::Der] {
                let [one, two] = [0, 1].map(|_| KeyPair::generate(algorithm).expect("a key pair"));
                let [first, second] = [&one, &two].map(|pair| pair.public(form).expect("a key"));
                assert_eq!(one.agree(&second).expect("a secret"), two.agree(&first).expect("a secret"));
                assert_eq!(one.algorithm(), algorithm);
            }
        }
    }

    #[test]
    fn public_key_encodings_are_distinguished() {
        let pair = KeyPair::generate(AgreementAlgorithm::Modp2048).expect("a key pair");
        let (raw, integer) = (pair.public(ModpForm::Raw).expect("a key"), pair.public(ModpForm::Der).expect("a key"));
        assert_eq!(raw.len(), 256);
        assert_eq!(integer[..2], [0x02, 0x82]);
        assert_eq!((ModpForm::of(&raw), ModpForm::of(&integer)), (ModpForm::Raw, ModpForm::Der));
        let other = KeyPair::generate(AgreementAlgorithm::Modp2048).expect("a key pair");
        assert_eq!(other.agree(&raw), other.agree(&integer));
        assert_eq!(der(&[0x80]), [2, 0x82, 0, 2, 0, 0x80]);
    }

    #[test]
    fn modp_secret_is_hashed_without_leading_zeros() {
        let group = Dh::get_2048_256().expect("the group");
        let mut context = BigNumContext::new().expect("a context");
        let one = KeyPair::generate(AgreementAlgorithm::Modp2048).expect("a key pair");
        let public = BigNum::from_slice(&one.public(ModpForm::Raw).expect("a key")).expect("a number");
        // One of 256 secrets begins with a zero octet.
        let found = (0..20_000).find_map(|_| {
            let other = Dh::get_2048_256().expect("the group").generate_key().expect("a key pair");
            let mut secret = BigNum::new().expect("a number");
            secret.mod_exp(&public, other.private_key(), group.prime_p(), &mut context).expect("a secret");
            (secret.num_bytes() < 256).then_some((other, secret))
        });
        let (other, secret) = found.expect("a secret that begins with a zero");
        let remote = other.public_key().to_vec_padded(256).expect("a key");
        assert_eq!(one.agree(&remote), Ok(sha256(&secret.to_vec())));
    }

    #[test]
    fn invalid_points_are_refused() {
        let pair = KeyPair::generate(AgreementAlgorithm::EcdhP256).expect("a key pair");
        let public = pair.public(ModpForm::Raw).expect("a key");
        assert_eq!((public.len(), public[0]), (65, 4));
        let mut other = public.clone();
        other[64] ^= 1;
        let mut compressed = public.clone();
        compressed[0] = 2;
        for bad in [&other[..], &compressed, &public[..64], &[], &[0], &[4; 65], &[&public[..], &[0]].concat()] {
            assert_eq!(pair.agree(bad).expect_err("refused").kind(), ErrorKind::Handshake);
        }
    }

    #[test]
    fn numbers_outside_the_group_are_refused() {
        let pair = KeyPair::generate(AgreementAlgorithm::Modp2048).expect("a key pair");
        let prime = Dh::get_2048_256().expect("the group").prime_p().to_vec();
        let mut last = prime.clone();
        *last.last_mut().expect("octets") -= 1;
        // Two is an element of the field, but not of the subgroup.
        for bad in
            [&[][..], &[0], &[1], &[2], &prime, &last, &[0xff; 256], &[0xff; 300], &der(&prime), &[2, 0x82, 0, 0]]
        {
            assert_eq!(pair.agree(bad).expect_err("refused").kind(), ErrorKind::Handshake, "{bad:02x?}");
        }
    }
}
