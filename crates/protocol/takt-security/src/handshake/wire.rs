//! Handshake tokens, hashes of their credentials, and the octets that signatures cover.

use openssl::sha::sha256;
use takt_wire::parameter::{PID_PARTICIPANT_GUID, ParameterList};
use takt_wire::{Endianness, Guid};

use super::agreement::KeyPair;
use super::{AgreementAlgorithm, Credentials, signature};
use crate::cdr::CdrWriter;
use crate::error::{ErrorKind, Result, SecurityError};
use crate::identity::{CERTIFICATE_PEM_LEN_MAX, Certificate, UnixSeconds, check_guid_prefix};
use crate::message::{CLASS_AUTH, CLASS_AUTH_REQUEST, GenericMessage};
use crate::token::{Token, write_binary_properties};

/// Maximum length in octets of a signed permissions document in a handshake.
pub const PERMISSIONS_LEN_MAX: usize = 40_960;
/// Maximum length in octets of the announcement in a handshake.
pub const PARTICIPANT_DATA_LEN_MAX: usize = 8_192;
/// Maximum length in octets of a signature.
pub const SIGNATURE_LEN_MAX: usize = 512;
/// Maximum length in octets of a public key for key agreement.
const PUBLIC_KEY_LEN_MAX: usize = 512;

pub(super) const AUTH_REQUEST: &str = "DDS:Auth:PKI-DH:1.0+AuthReq";
pub(super) const REQUEST: &str = "DDS:Auth:PKI-DH:1.0+Req";
pub(super) const REPLY: &str = "DDS:Auth:PKI-DH:1.0+Reply";
pub(super) const FINAL: &str = "DDS:Auth:PKI-DH:1.0+Final";

pub(crate) type Challenge = [u8; 32];
pub(super) type Hash = [u8; 32];

/// Names of the properties that a credentials hash covers, in hash order.
const CREDENTIALS: [&str; 5] = ["c.id", "c.perm", "c.pdata", "c.dsign_algo", "c.kagree_algo"];

pub(super) fn malformed(reason: impl Into<String>) -> SecurityError {
    SecurityError::new(ErrorKind::Handshake, reason)
}

/// Returns a mandatory property of at most `limit` octets.
pub(super) fn required<'a>(token: &'a Token<'_>, name: &str, limit: usize) -> Result<&'a [u8]> {
    let octets = token.octets(name).ok_or_else(|| malformed(format!("{} without {name}", token.class_id)))?;
    if octets.len() > limit {
        let reason = format!("{name} of {} octets in {}, at most {limit}", octets.len(), token.class_id);
        return Err(SecurityError::new(ErrorKind::Limit, reason));
    }
    Ok(octets)
}

pub(super) fn challenge(token: &Token<'_>, name: &str) -> Result<Challenge> {
    let octets = required(token, name, 32)?;
    octets.try_into().map_err(|_| malformed(format!("{name} of {} octets, expected 32", octets.len())))
}

/// Returns the challenge of a message that begins a handshake: AuthRequest or Request.
pub(crate) fn opening_challenge(message: &GenericMessage<'_>) -> Option<Challenge> {
    let [token] = message.tokens.as_slice() else { return None };
    match (message.class_id, token.class_id.as_ref()) {
        (CLASS_AUTH_REQUEST, AUTH_REQUEST) => challenge(token, "future_challenge").ok(),
        (CLASS_AUTH, REQUEST) => challenge(token, "challenge1").ok(),
        _ => None,
    }
}

/// Returns the challenge of the sender of a message that ends a handshake: Reply or Final.
pub(crate) fn closing_challenge(message: &GenericMessage<'_>) -> Option<Challenge> {
    let [token] = message.tokens.as_slice() else { return None };
    match token.class_id.as_ref() {
        REPLY => challenge(token, "challenge2").ok(),
        FINAL => challenge(token, "challenge1").ok(),
        _ => None,
    }
}

pub(super) fn public_key<'a>(token: &'a Token<'_>, name: &str) -> Result<&'a [u8]> {
    required(token, name, PUBLIC_KEY_LEN_MAX)
}

pub(super) fn signature_of<'a>(token: &'a Token<'_>) -> Result<&'a [u8]> {
    required(token, "signature", SIGNATURE_LEN_MAX)
}

/// Checks that a property which repeats a value known to the receiver equals that value.
pub(super) fn check_repeated(token: &Token<'_>, name: &str, known: &[u8]) -> Result<()> {
    match token.octets(name) {
        Some(octets) if octets != known => {
            Err(malformed(format!("{name} of {} differs from that sent", token.class_id)))
        }
        _ => Ok(()),
    }
}

/// INTEROP(CycloneDDS 0.10, Fast DDS 2.9): CycloneDDS terminates algorithm names with NUL, Fast DDS
/// terminates some of them. Names compare up to the NUL; hashes cover the octets as received.
fn up_to_nul(octets: &[u8]) -> &[u8] {
    octets.split(|octet| *octet == 0).next().unwrap_or_default()
}

/// Returns the key agreement algorithm that a token names.
pub(super) fn agreement(token: &Token<'_>) -> Result<AgreementAlgorithm> {
    let name = up_to_nul(required(token, "c.kagree_algo", 64)?);
    let found = AgreementAlgorithm::ALL.into_iter().find(|algorithm| algorithm.name().as_bytes() == name);
    found.ok_or_else(|| malformed(format!("c.kagree_algo is \"{}\"", String::from_utf8_lossy(name))))
}

/// Adds the credentials of the local participant to a token.
pub(super) fn with_credentials<'a>(
    token: Token<'a>,
    local: &'a Credentials,
    agreement: AgreementAlgorithm,
) -> Token<'a> {
    token
        .with_octets("c.id", local.identity.certificate().pem())
        .with_octets("c.perm", &local.permissions[..])
        .with_octets("c.pdata", &local.participant_data[..])
        .with_octets("c.dsign_algo", signature::name(local.identity.key().algorithm()).as_bytes())
        .with_octets("c.kagree_algo", agreement.name().as_bytes())
}

/// Computes SHA-256 of the credentials in a token.
pub(super) fn credentials_hash(token: &Token<'_>) -> Result<Hash> {
    let mut properties = Vec::with_capacity(CREDENTIALS.len());
    for name in CREDENTIALS {
        properties.push((name, required(token, name, usize::MAX)?));
    }
    Ok(sha256(&big_endian(&properties)))
}

/// Serializes a `BinaryPropertySeq` in the form that hashes and signatures cover.
pub(super) fn big_endian(properties: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = CdrWriter::new(Endianness::Big);
    write_binary_properties(&mut writer, properties.iter().copied());
    writer.into_octets()
}

/// Checks and returns the credentials in a token of the participant `guid`.
///
/// INTEROP(Fast DDS 2.9): names the algorithm of its CA instead of that of its certificate. The key
/// of the certificate determines how its signatures are verified.
pub(super) fn check_credentials(
    token: &Token<'_>,
    guid: Guid,
    local: &Credentials,
    now: UnixSeconds,
) -> Result<Certificate> {
    let certificate = Certificate::from_pem(required(token, "c.id", CERTIFICATE_PEM_LEN_MAX)?)?;
    required(token, "c.perm", PERMISSIONS_LEN_MAX)?;
    let algorithm = up_to_nul(required(token, "c.dsign_algo", 64)?);
    if !signature::NAMES.iter().any(|name| name.as_bytes() == algorithm) {
        let (found, [one, other]) = (String::from_utf8_lossy(algorithm), signature::NAMES);
        return Err(malformed(format!("c.dsign_algo is \"{found}\", expected \"{one}\" or \"{other}\"")));
    }
    local.authority.check(&certificate, now)?;
    check_guid_prefix(&certificate, guid.prefix)?;
    check_participant_data(required(token, "c.pdata", PARTICIPANT_DATA_LEN_MAX)?, guid)?;
    Ok(certificate)
}

/// Checks that the announcement in a token is that of the participant.
fn check_participant_data(octets: &[u8], guid: Guid) -> Result<()> {
    let (list, _) = ParameterList::parse(octets, Endianness::Big)?;
    let found = list.find(PID_PARTICIPANT_GUID).and_then(|parameter| parameter.value.first_chunk().copied());
    let found = found.map(Guid::from_bytes).ok_or_else(|| malformed("c.pdata without a participant GUID"))?;
    if found != guid {
        return Err(malformed(format!("c.pdata has the GUID {found}, the participant is {guid}")));
    }
    Ok(())
}

/// Values that both participants sign.
pub(super) struct Transcript<'a> {
    pub(super) hash1: &'a Hash,
    pub(super) hash2: &'a Hash,
    pub(super) challenge1: &'a Challenge,
    pub(super) challenge2: &'a Challenge,
    pub(super) dh1: &'a [u8],
    pub(super) dh2: &'a [u8],
}

impl Transcript<'_> {
    /// Returns the octets that the signature of the Reply covers.
    pub(super) fn of_reply(&self) -> Vec<u8> {
        big_endian(&[
            ("hash_c2", self.hash2),
            ("challenge2", self.challenge2),
            ("dh2", self.dh2),
            ("challenge1", self.challenge1),
            ("dh1", self.dh1),
            ("hash_c1", self.hash1),
        ])
    }

    /// Returns the octets that the signature of the Final covers.
    pub(super) fn of_final(&self) -> Vec<u8> {
        big_endian(&[
            ("hash_c1", self.hash1),
            ("challenge1", self.challenge1),
            ("dh1", self.dh1),
            ("challenge2", self.challenge2),
            ("dh2", self.dh2),
            ("hash_c2", self.hash2),
        ])
    }
}

pub(super) fn auth_request(challenge: &Challenge) -> Token<'_> {
    Token::new(AUTH_REQUEST).with_octets("future_challenge", &challenge[..])
}

pub(super) fn request<'a>(
    local: &'a Credentials,
    pair: &KeyPair,
    dh1: &'a [u8],
    challenge1: &'a Challenge,
) -> Result<(Token<'a>, Hash)> {
    let token = with_credentials(Token::new(REQUEST), local, pair.algorithm());
    let hash = credentials_hash(&token)?;
    let token =
        if local.options.sends_optional_properties { token.with_octets("hash_c1", hash.to_vec()) } else { token };
    Ok((token.with_octets("dh1", dh1).with_octets("challenge1", &challenge1[..]), hash))
}

pub(super) fn reply<'a>(
    local: &'a Credentials,
    token: Token<'a>,
    transcript: &Transcript<'a>,
    signature: Vec<u8>,
) -> Token<'a> {
    let mut token = token;
    if local.options.sends_optional_properties {
        token = token
            .with_octets("hash_c2", &transcript.hash2[..])
            .with_octets("hash_c1", &transcript.hash1[..])
            .with_octets("dh1", transcript.dh1);
    }
    token
        .with_octets("dh2", transcript.dh2)
        .with_octets("challenge1", &transcript.challenge1[..])
        .with_octets("challenge2", &transcript.challenge2[..])
        .with_octets("signature", signature)
}

pub(super) fn last<'a>(local: &Credentials, transcript: &Transcript<'a>, signature: Vec<u8>) -> Token<'a> {
    let mut token = Token::new(FINAL);
    if local.options.sends_optional_properties {
        token = token
            .with_octets("hash_c1", &transcript.hash1[..])
            .with_octets("hash_c2", &transcript.hash2[..])
            .with_octets("dh1", transcript.dh1)
            .with_octets("dh2", transcript.dh2);
    }
    token
        .with_octets("challenge1", &transcript.challenge1[..])
        .with_octets("challenge2", &transcript.challenge2[..])
        .with_octets("signature", signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_covers_big_endian_properties_without_padding_at_the_end() {
        let token = CREDENTIALS
            .iter()
            .zip(["i", "per", "", "x\0", "kagre"])
            .fold(Token::new(REQUEST), |token, (name, value)| token.with_octets(name, value.as_bytes()));
        let expected = b"\0\0\0\x05\
            \0\0\0\x05c.id\0\0\0\0\0\0\0\x01i\0\0\0\
            \0\0\0\x07c.perm\0\0\0\0\0\x03per\0\
            \0\0\0\x08c.pdata\0\0\0\0\0\
            \0\0\0\x0dc.dsign_algo\0\0\0\0\0\0\0\x02x\0\0\0\
            \0\0\0\x0ec.kagree_algo\0\0\0\0\0\0\x05kagre";
        assert_eq!(credentials_hash(&token), Ok(sha256(expected)));
    }

    #[test]
    fn algorithm_names_compare_up_to_their_nul() {
        let named = |name: &'static [u8]| agreement(&Token::new(REQUEST).with_octets("c.kagree_algo", name));
        assert_eq!(named(b"DH+MODP-2048-256"), Ok(AgreementAlgorithm::Modp2048));
        assert_eq!(named(b"ECDH+prime256v1-CEUM\0"), Ok(AgreementAlgorithm::EcdhP256));
        assert!(named(b"ECDH+prime256v1").is_err() && named(b"").is_err() && named(&[b'x'; 65]).is_err());
    }
}
