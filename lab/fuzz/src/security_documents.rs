//! Parsing of DDS Security documents and messages from files and from the network.

use std::sync::OnceLock;

use takt_security::documents::{Governance, Permissions, parse_date_time, verify};
use takt_security::identity::{Authority, Certificate, PrivateKey, SubjectName};
use takt_security::keys::{KeyMaterial, key_materials};
use takt_security::message::GenericMessage;
use takt_security::token::Token;
use takt_security::tools::{governance_xml, permissions_xml};
use takt_wire::{Cursor, Endianness};

/// Authority of the signed documents in the corpus, and a time within its validity.
const AUTHORITY: &[u8] = include_bytes!("../../../crates/protocol/takt-security/tests/data/authority.pem");
const NOW: i64 = 1_800_000_000;

/// Parses an input. The first octet selects a parser for the rest. A parsed value that is written
/// and parsed again must be equal.
pub fn run(input: &[u8]) {
    let Some((which, rest)) = input.split_first() else { return };
    match which % 8 {
        0 => governance(&String::from_utf8_lossy(rest)),
        1 => permissions(&String::from_utf8_lossy(rest)),
        2 => signed(rest),
        3 => message(rest),
        4 => tokens(rest),
        5 => material(rest),
        6 => {
            let text = String::from_utf8_lossy(rest);
            let _ = (SubjectName::parse(&text), parse_date_time(&text));
        }
        _ => {
            let _ = (Certificate::from_pem(rest), PrivateKey::from_pem(rest, None), Authority::from_pem(rest));
        }
    }
}

fn governance(text: &str) {
    if let Ok(read) = Governance::parse(text) {
        let again = Governance::parse(&governance_xml(&read)).expect("what was read can be written");
        assert_eq!(again, read);
    }
}

/// Line numbers of rules change when the document is written again.
fn permissions(text: &str) {
    if let Ok(read) = Permissions::parse(text) {
        let written = permissions_xml(&read);
        let again = Permissions::parse(&written).expect("what was read can be written");
        assert_eq!(permissions_xml(&again), written);
    }
}

fn signed(document: &[u8]) {
    static ISSUER: OnceLock<Authority> = OnceLock::new();
    let issuer = ISSUER.get_or_init(|| Authority::from_pem(AUTHORITY).expect("a certificate"));
    if let Ok(text) = verify(document, issuer, NOW) {
        assert!(Governance::parse(&text).is_ok() || Permissions::parse(&text).is_ok(), "nothing else was signed");
    }
}

fn message(payload: &[u8]) {
    if let Ok(read) = GenericMessage::parse(payload) {
        for endianness in [Endianness::Little, Endianness::Big] {
            let written = read.to_payload_in(endianness);
            let again = GenericMessage::parse(&written).expect("what was read can be written");
            assert_eq!(again.to_payload(), read.to_payload());
        }
        let _ = key_materials(&read.tokens);
    }
}

fn tokens(octets: &[u8]) {
    for endianness in [Endianness::Little, Endianness::Big] {
        if let Ok(read) = Token::parse(&mut Cursor::new(octets, endianness)) {
            let written = read.to_octets(endianness);
            let again = Token::parse(&mut Cursor::new(&written, endianness)).expect("what was read can be written");
            assert_eq!(again.to_octets(endianness), written);
        }
    }
}

fn material(octets: &[u8]) {
    if let Ok(read) = KeyMaterial::parse(octets) {
        assert!(KeyMaterial::parse(&read.to_octets()).expect("what was read can be written") == read);
    }
}
