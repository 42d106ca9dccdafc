//! `ParticipantGenericMessage`: samples of the builtin stateless and volatile endpoints
//! (DDS-SEC 1.1 §7.4.3, §7.4.4).
//!
//! A message is one serialized payload with its encapsulation header, at most [`MESSAGE_LEN_MAX`]
//! octets. Parsing borrows from the payload and allocates only the list of tokens.

use takt_wire::{Cursor, Endianness, Guid};

use crate::cdr::CdrWriter;
use crate::error::{ErrorKind, Result, SecurityError};
use crate::token::{Token, text, token_count};

/// Maximum length of a message in octets, encapsulation header included.
pub const MESSAGE_LEN_MAX: usize = 65_536;

/// Class of the message that requests authentication.
pub const CLASS_AUTH_REQUEST: &str = "dds.sec.auth_request";
/// Class of the three handshake messages.
pub const CLASS_AUTH: &str = "dds.sec.auth";
/// Class of the key tokens of a participant.
pub const CLASS_PARTICIPANT_CRYPTO_TOKENS: &str = "dds.sec.participant_crypto_tokens";
/// Class of the key tokens of a writer.
pub const CLASS_WRITER_CRYPTO_TOKENS: &str = "dds.sec.datawriter_crypto_tokens";
/// Class of the key tokens of a reader.
pub const CLASS_READER_CRYPTO_TOKENS: &str = "dds.sec.datareader_crypto_tokens";
/// Class of the Takt-specific message with which a participant presents a new certificate over the
/// volatile endpoints.
pub const CLASS_RENEWAL: &str = "takt.sec.renewal";
/// Class of the message, without tokens, with which the peer accepts the new certificate.
pub const CLASS_RENEWAL_ACCEPTED: &str = "takt.sec.renewal_accepted";

const ENCAPSULATION_CDR_BE: [u8; 4] = [0, 0, 0, 0];
const ENCAPSULATION_CDR_LE: [u8; 4] = [0, 1, 0, 0];

/// Identity of a message: its writer and an increasing sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageIdentity {
    /// GUID of the writer, or all zero.
    pub source: Guid,
    /// Sequence number, starting at 1; 0 if the writer is unknown.
    pub sequence_number: i64,
}

/// Message of the builtin stateless or volatile endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenericMessage<'a> {
    /// Identity of this message.
    pub identity: MessageIdentity,
    /// Identity of the message that this one answers, or all zero.
    pub related: MessageIdentity,
    /// Participant to which the message is addressed; all zero for every participant.
    pub destination_participant: Guid,
    /// Endpoint to which key tokens are addressed.
    pub destination_endpoint: Guid,
    /// Endpoint to which key tokens belong.
    pub source_endpoint: Guid,
    /// Message class: one of the `CLASS_` constants.
    pub class_id: &'a str,
    /// Tokens of the message.
    pub tokens: Vec<Token<'a>>,
}

impl<'a> GenericMessage<'a> {
    /// Reads a serialized payload.
    ///
    /// # Errors
    /// The payload is too long, is not CDR of either byte order, ends early, or has too many
    /// tokens.
    pub fn parse(payload: &'a [u8]) -> Result<Self> {
        if payload.len() > MESSAGE_LEN_MAX {
            let reason = format!("message of {} octets, at most {MESSAGE_LEN_MAX}", payload.len());
            return Err(SecurityError::new(ErrorKind::Limit, reason));
        }
        let Some((header, body)) = payload.split_first_chunk::<4>() else {
            return Err(SecurityError::new(ErrorKind::Malformed, "message without encapsulation header"));
        };
        let endianness = match [header[0], header[1]] {
            [0, 0] => Endianness::Big,
            [0, 1] => Endianness::Little,
            other => {
                let reason = format!("message with encapsulation {other:02x?}, expected CDR");
                return Err(SecurityError::new(ErrorKind::Malformed, reason));
            }
        };
        let mut cursor = Cursor::with_base(body, endianness, header.len());
        let identity = MessageIdentity::parse(&mut cursor)?;
        let related = MessageIdentity::parse(&mut cursor)?;
        let mut guid = || cursor.array().map(Guid::from_bytes);
        let (destination_participant, destination_endpoint, source_endpoint) = (guid()?, guid()?, guid()?);
        let class_id = text(&mut cursor)?;
        let count = token_count(&mut cursor)?;
        let tokens = (0..count).map(|_| Token::parse(&mut cursor)).collect::<Result<_>>()?;
        Ok(Self { identity, related, destination_participant, destination_endpoint, source_endpoint, class_id, tokens })
    }

    /// Writes the message as a little-endian serialized payload.
    pub fn to_payload(&self) -> Vec<u8> {
        self.to_payload_in(Endianness::Little)
    }

    /// Writes the message as a serialized payload.
    pub fn to_payload_in(&self, endianness: Endianness) -> Vec<u8> {
        let mut writer = CdrWriter::new(endianness);
        for identity in [self.identity, self.related] {
            writer.raw(&identity.source.to_bytes());
            writer.i64(identity.sequence_number);
        }
        for guid in [self.destination_participant, self.destination_endpoint, self.source_endpoint] {
            writer.raw(&guid.to_bytes());
        }
        writer.string(self.class_id);
        writer.count(self.tokens.len());
        for token in &self.tokens {
            token.write(&mut writer);
        }
        writer.align(4);
        let header = match endianness {
            Endianness::Big => ENCAPSULATION_CDR_BE,
            Endianness::Little => ENCAPSULATION_CDR_LE,
        };
        let mut payload = header.to_vec();
        payload.extend_from_slice(&writer.into_octets());
        payload
    }
}

impl MessageIdentity {
    fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let source = Guid::from_bytes(cursor.array()?);
        Ok(Self { source, sequence_number: cursor.i64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> GenericMessage<'static> {
        GenericMessage {
            identity: MessageIdentity { source: Guid::from_bytes([1; 16]), sequence_number: 7 },
            related: MessageIdentity { source: Guid::from_bytes([2; 16]), sequence_number: -1 },
            destination_participant: Guid::from_bytes([3; 16]),
            destination_endpoint: Guid::UNKNOWN,
            source_endpoint: Guid::from_bytes([5; 16]),
            class_id: CLASS_AUTH,
            tokens: vec![Token::new("a").with("n", "v"), Token::new("b").with_octets("o", &b"12345"[..])],
        }
    }

    #[test]
    fn message_round_trips_in_both_byte_orders_and_every_prefix_fails() {
        for endianness in [Endianness::Big, Endianness::Little] {
            let payload = example().to_payload_in(endianness);
            assert_eq!(GenericMessage::parse(&payload), Ok(example()));
            // The last octets may be padding.
            for len in 0..payload.len() - 3 {
                assert!(GenericMessage::parse(&payload[..len]).is_err(), "{len}");
            }
        }
    }

    #[test]
    fn fields_have_the_offsets_of_the_specification() {
        let payload = example().to_payload_in(Endianness::Big);
        assert_eq!(payload[..4], [0, 0, 0, 0]);
        assert_eq!(payload[20..28], 7_i64.to_be_bytes());
        assert_eq!(payload[28..44], [2; 16]);
        assert_eq!(payload[52..68], [3; 16]);
        assert_eq!(payload[100..104], 13_u32.to_be_bytes());
        assert_eq!(&payload[104..117], b"dds.sec.auth\0");
    }

    #[test]
    fn wrong_encapsulation_and_excessive_size_are_refused() {
        let mut payload = example().to_payload();
        payload[1] = 3;
        assert_eq!(GenericMessage::parse(&payload).expect_err("parameter list").kind(), ErrorKind::Malformed);
        let long = vec![0; MESSAGE_LEN_MAX + 1];
        assert_eq!(GenericMessage::parse(&long).expect_err("long").kind(), ErrorKind::Limit);
    }
}
