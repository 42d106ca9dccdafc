//! Discovery data of participants and endpoints: SPDP, SEDP and liveliness messages
//! (RTPS 2.5 §8.5, §8.4.13, §9.6.3).
//!
//! The data is a parameter list after a four-octet encapsulation header (PL_CDR, in either byte
//! order). An absent parameter has the default of its policy. An unknown parameter is skipped,
//! unless its id has the must-understand flag: then the data is malformed.
//!
//! Parsing allocates within [`limits`].

pub mod limits;

mod content_filter;
mod endpoint;
mod host_stages;
mod key;
mod latency_report;
mod liveliness;
mod participant;
mod refusal;
mod security;

pub use content_filter::ContentFilterProperty;
pub use endpoint::{PublicationData, SubscriptionData};
pub use host_stages::{HOST_STAGES_MAX, HostStage, HostStages, PID_TAKT_HOST_STAGES, STAGE_NAME_LEN_MAX};
pub use key::{key_payload, parse_key};
pub use latency_report::{LATENCIES_MAX, LATENCY_PROPERTY, ObservedLatency};
pub use liveliness::ParticipantMessageData;
pub use participant::{HOST_PROPERTY, PROCESS_PROPERTY, ParticipantData, builtin_endpoints};
pub use refusal::{
    PID_TAKT_REFUSAL, REFUSAL_LEN_MAX, REFUSAL_MAGIC, REFUSALS_PROPERTY, REPORTED_REFUSALS_MAX, ReportedRefusal,
    put_refusal,
};
pub use security::{EncodedToken, SecurityInfo};

use alloc::vec::Vec;

use crate::cursor::{Cursor, Endianness};
use crate::error::Malformed;
use crate::parameter::{Parameter, ParameterList, ParameterListBuilder};

/// Length of the encapsulation header of every serialized payload, in octets (RTPS 2.5 §10.2).
pub const ENCAPSULATION_LEN: usize = 4;

/// Representation identifiers of discovery: plain CDR and parameter lists.
const CDR_BE: u16 = 0x0000;
const CDR_LE: u16 = 0x0001;
const PL_CDR_BE: u16 = 0x0002;
const PL_CDR_LE: u16 = 0x0003;

/// Reads the encapsulation header. Returns the representation identifier and a cursor after the
/// header. CDR alignment counts from the end of the header.
fn decapsulate(payload: &[u8]) -> Result<(u16, Cursor<'_>), Malformed> {
    let mut header = Cursor::new(payload, Endianness::Big);
    let identifier = header.u16()?;
    header.skip(2)?;
    let endianness = if identifier & 1 == 0 { Endianness::Big } else { Endianness::Little };
    Ok((identifier, Cursor::with_base(header.rest(), endianness, ENCAPSULATION_LEN)))
}

/// Returns the encapsulation header for an identifier in its big endian form.
fn encapsulate(identifier_be: u16, endianness: Endianness) -> Vec<u8> {
    let identifier = identifier_be | u16::from(endianness.flag());
    let mut payload = Vec::with_capacity(512);
    payload.extend_from_slice(&identifier.to_be_bytes());
    payload.extend_from_slice(&[0, 0]);
    payload
}

/// Parses a payload that is a parameter list. Octets after the sentinel are ignored.
fn parse_list(payload: &[u8]) -> Result<ParameterList<'_>, Malformed> {
    let (identifier, mut cursor) = decapsulate(payload)?;
    if !matches!(identifier, PL_CDR_BE | PL_CDR_LE) {
        return Err(Malformed { offset: 0, what: "discovery data is not a parameter list" });
    }
    ParameterList::parse_from(&mut cursor)
}

/// Begins a payload that is a parameter list.
fn begin_list(endianness: Endianness) -> ParameterListBuilder {
    ParameterListBuilder::after(encapsulate(PL_CDR_BE, endianness), endianness)
}

/// Handles an unknown parameter: skips it, or fails if it must be understood.
fn skip_unknown(parameter: &Parameter<'_>) -> Result<(), Malformed> {
    if parameter.must_understand { Err(parameter.malformed("unknown must-understand parameter")) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
