//! Tests of certificates of several authorities at different times.

use takt_wire::GuidPrefix;

use super::*;
use crate::tools::{Issuer, Validity};

const NOW: UnixSeconds = 1_800_000_000;
const YEAR: UnixSeconds = 365 * 86_400;
const VALID: Validity = Validity { not_before: NOW - YEAR, not_after: NOW + YEAR };

fn issuer(name: &str) -> Issuer {
    Issuer::create(name, KeyAlgorithm::EcP256, VALID).expect("an authority")
}

fn authority(issuer: &Issuer) -> Authority {
    Authority::from_pem(&issuer.certificate_pem().expect("PEM")).expect("an authority")
}

fn certificate(issuer: &Issuer, validity: Validity) -> Certificate {
    let (pem, _) = issuer.issue("Alice", KeyAlgorithm::EcP256, validity).expect("an identity");
    Certificate::from_pem(&pem).expect("a certificate")
}

fn refusal(authority: &Authority, certificate: &Certificate, now: UnixSeconds) -> String {
    authority.check(certificate, now).expect_err("refused").to_string()
}

#[test]
fn certificate_is_accepted_from_its_first_to_its_last_valid_second() {
    let ca = issuer("CA");
    let validity = Validity { not_before: NOW, not_after: NOW + 10 };
    let (authority, alice) = (authority(&ca), certificate(&ca, validity));
    for now in [NOW, NOW + 9] {
        assert_eq!(authority.check(&alice, now), Ok(()), "{now}");
    }
    assert!(refusal(&authority, &alice, NOW - 1).contains("not yet valid"));
    assert!(refusal(&authority, &alice, NOW + 10).contains("expired"));
    assert_eq!((alice.not_before(), alice.not_after()), (NOW, NOW + 10));
}

#[test]
fn certificate_is_refused_when_its_authority_has_expired() {
    let ca = Issuer::create("CA", KeyAlgorithm::EcP256, Validity { not_before: NOW - 10, not_after: NOW + 1 })
        .expect("a CA");
    let (authority, alice) = (authority(&ca), certificate(&ca, VALID));
    assert_eq!(authority.check(&alice, NOW), Ok(()));
    let text = refusal(&authority, &alice, NOW + 1);
    assert!(text.contains("expired at depth 1"), "{text}");
}

#[test]
fn certificate_of_another_authority_with_the_same_name_is_refused() {
    let (ca, foreign) = (issuer("CA"), issuer("CA"));
    let text = refusal(&authority(&ca), &certificate(&foreign, VALID), NOW);
    assert!(text.starts_with("certificate of \"CN=Alice\": "), "{text}");
    let other = issuer("Other");
    assert!(refusal(&authority(&ca), &certificate(&other, VALID), NOW).contains("issuer certificate"));
}

#[test]
fn certificate_issued_by_an_identity_is_refused() {
    let ca = issuer("CA");
    let (pem, key) = ca.issue("Alice", KeyAlgorithm::EcP256, VALID).expect("an identity");
    let rogue = Issuer::from_pem(&pem, &key, None).expect("certificate and key belong together");
    let (mallory, _) = rogue.issue("Mallory", KeyAlgorithm::EcP256, VALID).expect("an identity");
    let chain = Certificate::from_pem(&[mallory, pem].concat()).expect("a chain");
    let text = refusal(&authority(&ca), &chain, NOW);
    assert!(text.contains("CN=Mallory"), "{text}");
}

#[test]
fn revoked_certificate_is_refused_and_expired_list_refuses_every_certificate() {
    let ca = issuer("CA");
    let (bob, alice) = (certificate(&ca, VALID), certificate(&ca, VALID));
    let list = ca.revoke(&[alice.pem()], Validity { not_before: NOW, not_after: NOW + 100 }).expect("a list");
    let mut authority = authority(&ca);
    assert_eq!(authority.revocation_expiry(), None);
    authority.add_revocation_list(&list).expect("its own list");
    assert_eq!(authority.revocation_expiry(), Some(NOW + 100));
    assert_eq!(authority.check(&bob, NOW + 1), Ok(()));
    assert!(refusal(&authority, &alice, NOW + 1).ends_with("revoked"));
    assert!(refusal(&authority, &bob, NOW + 101).contains("revocation list"));
}

#[test]
fn revocation_list_of_another_authority_is_refused() {
    let (ca, foreign) = (issuer("CA"), issuer("CA"));
    let alice = certificate(&foreign, VALID);
    let list = foreign.revoke(&[alice.pem()], VALID).expect("a list");
    assert_eq!(authority(&ca).add_revocation_list(&list).expect_err("foreign").kind(), ErrorKind::Signature);
    assert_eq!(authority(&ca).add_revocation_list(b"no list").expect_err("none").kind(), ErrorKind::Certificate);
}

#[test]
fn key_of_another_certificate_is_refused() {
    let ca = issuer("CA");
    let (pem, _) = ca.issue("Alice", KeyAlgorithm::EcP256, VALID).expect("an identity");
    let (_, key) = ca.issue("Bob", KeyAlgorithm::EcP256, VALID).expect("an identity");
    let (alice, key) = (Certificate::from_pem(&pem).expect("PEM"), PrivateKey::from_pem(&key, None).expect("PEM"));
    assert_eq!(Identity::new(alice, key).expect_err("refused").kind(), ErrorKind::Certificate);
}

#[test]
fn weak_keys_and_unsupported_curves_are_refused() {
    let rsa = openssl::pkey::PKey::from_rsa(openssl::rsa::Rsa::generate(1_024).expect("a key")).expect("a key");
    let read = |key: openssl::pkey::PKey<openssl::pkey::Private>| {
        PrivateKey::read(&key.private_key_to_pem_pkcs8().expect("PEM"), None)
    };
    let error = read(rsa).expect_err("refused");
    assert!(error.reason().starts_with("RSA key of 1024 bits"), "{error}");
    let group = openssl::ec::EcGroup::from_curve_name(openssl::nid::Nid::SECP384R1).expect("a curve");
    let ec = openssl::pkey::PKey::from_ec_key(openssl::ec::EcKey::generate(&group).expect("a key")).expect("a key");
    assert!(read(ec).is_err());
}

#[test]
fn encrypted_key_needs_its_password() {
    let ca = issuer("CA");
    let key = PrivateKey::from_pem(&ca.key_pem().expect("PEM"), None).expect("a key");
    let cipher = openssl::symm::Cipher::aes_256_cbc();
    let pem = key.in_memory().expect("PEM").private_key_to_pem_pkcs8_passphrase(cipher, b"secret").expect("PEM");
    assert!(PrivateKey::from_pem(&pem, Some("secret")).is_ok());
    for password in [None, Some("wrong")] {
        assert!(PrivateKey::from_pem(&pem, password).is_err(), "{password:?}");
    }
    assert_eq!(format!("{key:?}"), "PrivateKey(EC-prime256v1)");
}

#[test]
fn guid_prefix_begins_with_the_hash_of_the_subject_name() {
    let ca = issuer("CA");
    let alice = certificate(&ca, VALID);
    let candidate = GuidPrefix([7; 12]);
    let prefix = secure_guid_prefix(&alice, candidate).expect("a prefix");
    let name = openssl::sha::sha256(&alice.leaf().subject_name().to_der().expect("DER"));
    let first = u64::from_be_bytes(name[..8].try_into().expect("eight octets"));
    let expected = (1 << 63) | (first >> 1);
    assert_eq!(prefix.0[..6], expected.to_be_bytes()[..6]);
    assert_eq!(prefix.0[6..], openssl::sha::sha256(&candidate.0)[..6]);
    assert_eq!(check_guid_prefix(&alice, prefix), Ok(()));
    for bit in 0..48 {
        let mut other = prefix;
        other.0[bit / 8] ^= 1 << (bit % 8);
        assert!(check_guid_prefix(&alice, other).is_err(), "{bit}");
    }
}

/// Regression found by fuzzing: the name would be written as `C=DE,,O=Org`, which is a different
/// name.
#[test]
fn separator_in_an_attribute_name_is_refused() {
    for text in ["/C=DE/,O=Org/CN=Alice", "/C=DE/O+OU=Org", "C=DE,\"O=Org", "C=DE,O\\=Org"] {
        let error = SubjectName::parse(text).expect_err(text).to_string();
        assert!(error.contains("subject name"), "{text}: {error}");
    }
    for text in ["/C=DE/O=Org/CN=Alice", "OID.2.5.4.3=Alice", "id-at_x.1=a"] {
        let name = SubjectName::parse(text).expect(text);
        assert_eq!(SubjectName::parse(&name.to_string()), Ok(name));
    }
}

#[test]
fn identity_token_names_subject_and_algorithms() {
    let ca = Issuer::create("CA", KeyAlgorithm::Rsa2048, VALID).expect("a CA");
    let (pem, key) = ca.issue("Alice", KeyAlgorithm::EcP256, VALID).expect("an identity");
    let key = PrivateKey::from_pem(&key, None).expect("a key");
    let identity = Identity::new(Certificate::from_pem(&pem).expect("PEM"), key).expect("an identity");
    let token = identity.token(&authority(&ca));
    let values = ["dds.cert.sn", "dds.cert.algo", "dds.ca.sn", "dds.ca.algo"].map(|name| token.property(name));
    assert_eq!(values, [Some("CN=Alice"), Some("EC-prime256v1"), Some("CN=CA"), Some("RSA-2048")]);
}

#[test]
fn sizes_and_counts_of_certificates_are_bounded() {
    let ca = issuer("CA");
    let pem = ca.certificate_pem().expect("PEM");
    assert_eq!(Certificate::from_pem(&pem.repeat(9)).expect_err("nine").kind(), ErrorKind::Limit);
    assert_eq!(
        Certificate::from_pem(&vec![b' '; CERTIFICATE_PEM_LEN_MAX + 1]).expect_err("long").kind(),
        ErrorKind::Limit
    );
    assert!(Certificate::from_pem(b"").is_err() && Authority::from_pem(b"").is_err());
}
