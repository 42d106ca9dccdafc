//! Replay of the committed corpora of the fuzz targets `security_documents` and `security_session`.
//! `TAKT_WRITE_CORPUS=1` adds messages with new keys.

use std::fs;
use std::path::PathBuf;

use takt_security::keys::{KeyMaterial, TransformKind, key_tokens};
use takt_security::message::{CLASS_PARTICIPANT_CRYPTO_TOKENS, GenericMessage};
use takt_wire::Endianness;

#[path = "../../../../../lab/fuzz/src/security_documents.rs"]
mod security_documents;
#[path = "../../../../../lab/fuzz/src/security_session.rs"]
mod security_session;

/// Number of parsers, one of which the first octet of an input selects.
const PARSERS: usize = 8;

fn directory(target: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "lab", "fuzz", "corpus", target].iter().collect()
}

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(directory(target)).expect("the corpus is in the repository");
    entries.map(|entry| fs::read(entry.expect("it can be read").path()).expect("it can be read")).collect()
}

fn write_messages() {
    let material = KeyMaterial::generate(TransformKind::Aes256Gcm).expect("random numbers");
    let material = material.for_receiver().expect("random numbers");
    let tokens = key_tokens(&[&material, &material]);
    let token = tokens[0].to_octets(Endianness::Little);
    let message = GenericMessage { class_id: CLASS_PARTICIPANT_CRYPTO_TOKENS, tokens, ..GenericMessage::default() };
    for (name, parser, octets) in [
        ("message", 3, message.to_payload_in(Endianness::Little)),
        ("message-big-endian", 3, message.to_payload_in(Endianness::Big)),
        ("token", 4, token),
        ("material", 5, material.to_octets()),
    ] {
        fs::write(directory("security_documents").join(name), [&[parser], &octets[..]].concat())
            .expect("it is written");
    }
}

#[test]
fn committed_documents_do_not_panic() {
    if std::env::var_os("TAKT_WRITE_CORPUS").is_some() {
        write_messages();
    }
    let inputs = inputs("security_documents");
    let mut parsers: Vec<_> =
        inputs.iter().filter_map(|input| input.first().map(|first| first % PARSERS as u8)).collect();
    parsers.sort_unstable();
    parsers.dedup();
    assert_eq!(parsers.len(), PARSERS, "every parser has an input");
    inputs.iter().for_each(|input| security_documents::run(input));
}

#[test]
fn committed_scripts_deliver_written_messages_at_most_once() {
    let inputs = inputs("security_session");
    assert!(inputs.len() >= 16, "{}", inputs.len());
    for input in &inputs {
        let delivered = security_session::run(input);
        // An input of one octet selects only the protection: no message is disturbed.
        assert!(input.len() > 1 || delivered == usize::from(security_session::MESSAGES), "{input:?}: {delivered}");
    }
}
