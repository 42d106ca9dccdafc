//! Key-only payloads of discovery, which dispose and unregister participants and endpoints
//! (RTPS 2.5 §8.5.3, §8.5.4).

use alloc::vec::Vec;

use super::{CDR_BE, CDR_LE, PL_CDR_BE, PL_CDR_LE, begin_list, decapsulate};
use crate::cursor::Endianness;
use crate::error::Malformed;
use crate::guid::{EntityId, Guid};
use crate::parameter::{PID_ENDPOINT_GUID, PID_KEY_HASH, PID_PARTICIPANT_GUID, ParameterList};

/// Returns the GUID in a key-only payload of discovery.
///
/// The key of a participant or endpoint is its GUID. The payload holds it as the GUID parameter of
/// the data, as a key hash (which equals the GUID), or, in plain CDR, as 16 octets.
pub fn parse_key(payload: &[u8]) -> Result<Guid, Malformed> {
    let (identifier, mut cursor) = decapsulate(payload)?;
    match identifier {
        CDR_BE | CDR_LE => cursor.array().map(Guid::from_bytes),
        PL_CDR_BE | PL_CDR_LE => key_of_list(&ParameterList::parse_from(&mut cursor)?),
        _ => Err(Malformed { offset: 0, what: "key of discovery data has an unknown encoding" }),
    }
}

fn key_of_list(list: &ParameterList<'_>) -> Result<Guid, Malformed> {
    let found = [PID_ENDPOINT_GUID, PID_PARTICIPANT_GUID, PID_KEY_HASH].into_iter().find_map(|pid| list.find(pid));
    match found {
        Some(parameter) => parameter.cursor().array().map(Guid::from_bytes),
        None => Err(Malformed { offset: 0, what: "discovery data has no entity key" }),
    }
}

/// Returns the key-only payload of the participant or endpoint `guid`.
pub fn key_payload(guid: Guid) -> Vec<u8> {
    let pid = if guid.entity_id == EntityId::PARTICIPANT { PID_PARTICIPANT_GUID } else { PID_ENDPOINT_GUID };
    let mut list = begin_list(Endianness::Little);
    list.put(pid, |value| value.guid(guid));
    list.finish()
}
