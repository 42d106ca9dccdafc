//! Tests against the program `openssl`: it accepts the output of the tools, and the crate accepts
//! its output.

use std::path::Path;
use std::process::Command;

use takt_security::documents::{AccessControl, Action, Permissions, Query, verify};
use takt_security::identity::{Authority, Certificate, Identity, KeyAlgorithm, PrivateKey, SubjectName};
use takt_security::tools::{Issuer, Validity, sign_document};
use takt_testkit::directory::Directory;
use takt_testkit::waiting::output;
use takt_testkit::{not_run, require};

const NOW: i64 = 1_800_000_000;
const VALID: Validity = Validity { not_before: 0, not_after: 4_000_000_000 };

const GOVERNANCE: &str = include_str!("../data/governance.xml");
const PERMISSIONS: &str = include_str!("../data/permissions.xml");

/// Runs `openssl` in a directory and returns its output.
fn openssl(directory: &Path, arguments: &str) -> String {
    let made = output(Command::new("openssl").args(arguments.split(' ')).current_dir(directory));
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&made.stderr));
    text
}

fn is_missing() -> bool {
    let found = require::program("openssl");
    if let Err(reason) = &found {
        not_run(reason);
    }
    found.is_err()
}

#[test]
fn documents_signed_by_the_tools_are_verified_by_openssl() {
    if is_missing() {
        return;
    }
    for algorithm in [KeyAlgorithm::EcP256, KeyAlgorithm::Rsa2048] {
        let directory = Directory::new("signed-by-tools");
        let issuer = Issuer::create("Permissions CA", algorithm, VALID).expect("an authority");
        std::fs::write(directory.path().join("ca.pem"), issuer.certificate_pem().expect("PEM")).expect("a file");
        let signed = sign_document(&issuer, GOVERNANCE).expect("a signature");
        std::fs::write(directory.path().join("governance.p7s"), &signed).expect("a file");
        assert!(signed.starts_with(b"MIME-Version: 1.0\nContent-Type: multipart/signed; protocol="));
        for program in ["smime", "cms"] {
            let text = openssl(
                directory.path(),
                &format!("{program} -verify -text -in governance.p7s -CAfile ca.pem -purpose any -attime {NOW}"),
            );
            assert_eq!(text.replace("\r\n", "\n"), GOVERNANCE, "{program}");
        }
    }
}

#[test]
fn documents_signed_by_openssl_are_verified() {
    if is_missing() {
        return;
    }
    for key in ["ec -pkeyopt ec_paramgen_curve:prime256v1", "rsa:2048"] {
        let directory = Directory::new("signed-by-openssl");
        let path = directory.path();
        std::fs::write(path.join("permissions.xml"), PERMISSIONS).expect("a file");
        openssl(path, &format!("req -x509 -newkey {key} -nodes -keyout ca.key -out ca.pem -days 36500 -subj /CN=CA"));
        let authority = Authority::from_pem(&std::fs::read(path.join("ca.pem")).expect("PEM")).expect("an authority");
        for form in [
            "smime -sign -text",
            "smime -sign",
            "cms -sign -text",
            "smime -sign -nodetach",
            "smime -sign -text -md sha512",
        ] {
            openssl(path, &format!("{form} -in permissions.xml -out signed.p7s -signer ca.pem -inkey ca.key"));
            let signed = std::fs::read(path.join("signed.p7s")).expect("a document");
            // The program issues certificates that are valid from now on.
            let now = authority.certificates()[0].not_before() + 1;
            let text = verify(&signed, &authority, now).unwrap_or_else(|error| panic!("{form}: {error}"));
            let permissions = Permissions::parse(&text).unwrap_or_else(|error| panic!("{form}: {error}"));
            assert_eq!(permissions, Permissions::parse(PERMISSIONS).expect("permissions"), "{form}");
        }
    }
}

#[test]
fn certificates_issued_by_the_tools_are_verified_by_openssl() {
    if is_missing() {
        return;
    }
    let directory = Directory::new("issued-by-tools");
    let path = directory.path();
    let issuer = Issuer::create("Identity CA", KeyAlgorithm::EcP256, VALID).expect("an authority");
    let (alice, key) = issuer.issue("Alice, of \"Wonderland\"", KeyAlgorithm::Rsa2048, VALID).expect("an identity");
    let (bob, _) = issuer.issue("Bob", KeyAlgorithm::EcP256, VALID).expect("an identity");
    let list = issuer.revoke(&[&bob], VALID).expect("a list");
    let ca = issuer.certificate_pem().expect("PEM");
    for (name, octets) in
        [("ca.pem", &ca), ("alice.pem", &alice), ("alice.key", &key), ("bob.pem", &bob), ("list.pem", &list)]
    {
        std::fs::write(path.join(name), octets).expect("a file");
    }
    let verified = openssl(path, &format!("verify -x509_strict -attime {NOW} -CAfile ca.pem alice.pem"));
    assert_eq!(verified, "alice.pem: OK\n");
    let subject = openssl(path, "x509 -in alice.pem -noout -subject -nameopt RFC2253");
    let own = Certificate::from_pem(&alice).expect("a certificate");
    assert_eq!(subject.trim_end(), format!("subject={}", own.subject()));
    for form in ["oneline", "RFC2253", "compat"] {
        let text = openssl(path, &format!("x509 -in bob.pem -noout -subject -nameopt {form}"));
        let name = SubjectName::parse(text.trim_start_matches("subject=")).expect("a name");
        assert_eq!(name, *Certificate::from_pem(&bob).expect("a certificate").subject(), "{form}");
    }
    let revoked = Command::new("openssl")
        .args(["verify", "-attime", "1800000000", "-crl_check", "-CRLfile", "list.pem", "-CAfile", "ca.pem", "bob.pem"])
        .current_dir(path)
        .output()
        .expect("it runs");
    assert!(String::from_utf8_lossy(&revoked.stderr).contains("certificate revoked"), "{revoked:?}");
}

#[test]
fn identities_issued_by_openssl_are_accepted() {
    if is_missing() {
        return;
    }
    let directory = Directory::new("issued-by-openssl");
    let path = directory.path();
    openssl(path, "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 100 -subj /C=DE/O=Org/CN=CA");
    let subject = "/C=DE/O=Org/CN=Alice/emailAddress=a@b.c";
    openssl(
        path,
        &format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout alice.key -out alice.csr -subj {subject}"
        ),
    );
    openssl(path, "x509 -req -in alice.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out alice.pem -days 10");
    let read = |name: &str| std::fs::read(path.join(name)).expect("a file");
    let authority = Authority::from_pem(&read("ca.pem")).expect("an authority");
    let certificate = Certificate::from_pem(&read("alice.pem")).expect("a certificate");
    let now = certificate.not_before();
    assert_eq!(authority.check(&certificate, now), Ok(()));
    assert_eq!(certificate.not_after() - certificate.not_before(), 10 * 86_400);
    assert!(authority.check(&certificate, now + 10 * 86_400).is_err());
    assert_eq!(certificate.subject(), &SubjectName::parse(subject).expect("a name"));
    let key = PrivateKey::from_pem(&read("alice.key"), None).expect("a key");
    assert!(Identity::new(certificate, key).is_ok());
}

#[test]
fn example_documents_decide_as_documented() {
    let issuer = Issuer::create("Permissions CA", KeyAlgorithm::EcP256, VALID).expect("an authority");
    let authority = Authority::from_pem(&issuer.certificate_pem().expect("PEM")).expect("an authority");
    let [governance, permissions] =
        [GOVERNANCE, PERMISSIONS].map(|text| sign_document(&issuer, text).expect("a signature"));
    let access = AccessControl::new(authority, &governance, 0, NOW).expect("governance");
    let permissions = access.permissions(&permissions, NOW).expect("permissions");
    let alice = SubjectName::parse("CN=Alice,O=Org,C=DE").expect("a name");
    assert_eq!(access.check_participant(&permissions, &alice, NOW), Ok(()));
    for (action, topic_name, expected) in [
        (Action::Publish, "rt/chatter", true),
        (Action::Subscribe, "rt/chatter", true),
        (Action::Publish, "rt/secret", false),
        (Action::Subscribe, "rt/other", false),
        (Action::Publish, "open", true),
    ] {
        let query = Query { action, domain_id: 0, topic_name, partitions: &[], data_tags: &[] };
        let decision = access.decide(&permissions, &alice, query, NOW).expect("a decision");
        assert_eq!(decision.is_allowed, expected, "{}", decision.reason);
    }
}
