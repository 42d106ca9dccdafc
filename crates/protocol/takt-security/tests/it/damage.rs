//! Tests that damaged inputs end in an error or in a value, never in a panic.

use takt_security::documents::{Governance, Permissions, parse_date_time, verify};
use takt_security::identity::{Authority, Certificate, KeyAlgorithm, PrivateKey, SubjectName};
use takt_security::keys::{KeyMaterial, TransformKind, key_materials, key_tokens};
use takt_security::message::GenericMessage;
use takt_security::tools::{Issuer, Validity, sign_document};
use takt_testkit::Random;

const GOVERNANCE: &str = include_str!("../data/governance.xml");
const PERMISSIONS: &str = include_str!("../data/permissions.xml");
const ROUNDS: usize = 1_000;

/// Returns a copy with some octets changed, removed, or duplicated.
fn damaged(octets: &[u8], random: &mut Random) -> Vec<u8> {
    let mut damaged = octets.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(damaged.len().max(1)).min(damaged.len());
        let end = (at + random.below(20)).min(damaged.len());
        match random.below(4) {
            0 => drop(damaged.drain(at..end)),
            1 => {
                let part = damaged[at..end].to_vec();
                damaged.splice(at..at, part);
            }
            _ => damaged[at..end].iter_mut().for_each(|octet| *octet = random.next() as u8),
        }
    }
    damaged
}

/// Calls `read` with damaged copies; returns how often it accepts one.
fn accepted(seed: u64, octets: &[u8], read: impl Fn(&[u8]) -> bool) -> usize {
    let mut random = Random(seed);
    assert!(read(octets), "the original");
    (0..ROUNDS).filter(|_| read(&damaged(octets, &mut random))).count()
}

#[test]
fn damaged_signed_documents_yield_the_original_or_are_refused() {
    let validity = Validity { not_before: 0, not_after: 4_000_000_000 };
    let issuer = Issuer::create("CA", KeyAlgorithm::EcP256, validity).expect("an authority");
    let authority = Authority::from_pem(&issuer.certificate_pem().expect("PEM")).expect("an authority");
    let signed = sign_document(&issuer, GOVERNANCE).expect("a signature");
    let original = verify(&signed, &authority, 1_800_000_000).expect("its own");
    let count = accepted(1, &signed, |octets| {
        let verified = verify(octets, &authority, 1_800_000_000);
        if let Ok(text) = &verified {
            // Headers, and white space at the end of lines, are not signed.
            assert_eq!(text.split_whitespace().collect::<String>(), original.split_whitespace().collect::<String>());
        }
        verified.is_ok()
    });
    assert!(count < ROUNDS / 2, "{count}");
}

#[test]
fn damaged_certificates_keys_and_names_do_not_panic() {
    let validity = Validity { not_before: 0, not_after: 4_000_000_000 };
    let issuer = Issuer::create("CA", KeyAlgorithm::EcP256, validity).expect("an authority");
    let authority = Authority::from_pem(&issuer.certificate_pem().expect("PEM")).expect("an authority");
    let (pem, key) = issuer.issue("Alice", KeyAlgorithm::EcP256, validity).expect("an identity");
    let original = Certificate::from_pem(&pem).expect("a certificate").fingerprint().expect("a hash");
    let count = accepted(2, &pem, |octets| {
        Certificate::from_pem(octets).is_ok_and(|certificate| {
            let is_original = certificate.fingerprint().is_ok_and(|found| found == original);
            let is_checked = authority.check(&certificate, 1_800_000_000).is_ok();
            assert_eq!(is_checked, is_original);
            certificate.not_before() < certificate.not_after() && is_checked
        })
    });
    assert!(count < ROUNDS, "{count}");
    assert!(accepted(3, &key, |octets| PrivateKey::from_pem(octets, None).is_ok()) < ROUNDS);
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    assert!(accepted(4, b"CN=Alice\\, A,O=Org", |octets| SubjectName::parse(&text(octets)).is_ok()) < ROUNDS);
    assert!(accepted(5, b"2026-01-31T12:00:00.5+01:00", |octets| parse_date_time(&text(octets)).is_some()) < ROUNDS);
}

#[test]
fn damaged_documents_and_messages_do_not_panic() {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    assert!(accepted(6, GOVERNANCE.as_bytes(), |octets| Governance::parse(&text(octets)).is_ok()) < ROUNDS / 2);
    assert!(accepted(7, PERMISSIONS.as_bytes(), |octets| Permissions::parse(&text(octets)).is_ok()) < ROUNDS / 2);
    let material = KeyMaterial::generate(TransformKind::Aes256Gcm).expect("random numbers");
    let message = GenericMessage { class_id: "c", tokens: key_tokens(&[&material]), ..GenericMessage::default() };
    let count = accepted(8, &message.to_payload(), |octets| {
        GenericMessage::parse(octets).is_ok_and(|message| key_materials(&message.tokens).is_ok())
    });
    assert!(count < ROUNDS, "{count}");
}
