//! Protection of messages and payloads of this participant (DDS-SEC 1.1 §8.5.1.9).
//!
//! The first submessage that names an endpoint determines the class of its message. Endpoints of
//! another class in the same message are an error, so that nothing is sent in plain by mistake:
//!
//! - participant discovery and the stateless endpoints: the message stays plain;
//! - the volatile endpoints: submessages are sealed with the key that is shared with the
//!   participant of the INFO_DST;
//! - all others: submessages of protected endpoints are sealed with their keys, then the whole
//!   message, if messages are protected.
//!
//! A submessage for one remote endpoint carries only the code of that receiver, others carry those
//! of all receivers.

use std::collections::BTreeMap;
use std::ops::Range;

use takt_wire::message::{Envelope, HEADER_LEN, MessageView, SUBMESSAGE_HEADER_LEN, Submessage};
use takt_wire::{EntityId, Guid, GuidPrefix, Malformed};

use super::endpoints::LocalEndpoint;
use super::remotes::Remote;
use super::{Plugin, participant_guid};
use crate::keys::TransformKind;
use crate::transform::{Form, Receivers, Sealer, TransformError};

const ACKNACK: u8 = 0x06;
const HEARTBEAT: u8 = 0x07;
const GAP: u8 = 0x08;
const INFO_DST: u8 = 0x0e;
const NACK_FRAG: u8 = 0x12;
const HEARTBEAT_FRAG: u8 = 0x13;
const DATA: u8 = 0x15;
const DATA_FRAG: u8 = 0x16;
/// Submessages that may be empty: PAD and INFO_TS.
const EMPTY: [u8; 2] = [0x01, 0x09];

/// Octets that precede the entity ids in DATA and DATA_FRAG.
const FLAGS_LEN: usize = 4;

/// Reason for which content was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealError {
    NoKey,
    Malformed,
    Transform(TransformError),
}

impl From<TransformError> for SealError {
    fn from(error: TransformError) -> Self {
        Self::Transform(error)
    }
}

impl From<Malformed> for SealError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// Source and destination of a submessage.
#[derive(Clone, Copy)]
struct Ends {
    local: EntityId,
    /// Unknown if the submessage is for all matched endpoints.
    remote: EntityId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Messages that participants need before they have keys.
    Clear,
    Volatile,
    Other,
}

impl Ends {
    /// Returns the endpoints of a submessage; `None` if it names none.
    fn of(submessage: &[u8]) -> Result<Option<Self>, SealError> {
        let Some(id) = submessage.first() else { return Err(SealError::Malformed) };
        let (at, is_of_writer) = match *id {
            DATA | DATA_FRAG => (SUBMESSAGE_HEADER_LEN + FLAGS_LEN, true),
            HEARTBEAT | HEARTBEAT_FRAG | GAP => (SUBMESSAGE_HEADER_LEN, true),
            ACKNACK | NACK_FRAG => (SUBMESSAGE_HEADER_LEN, false),
            _ => return Ok(None),
        };
        let entity = |at: usize| submessage.get(at..).and_then(|rest| rest.first_chunk()).map(|id| EntityId(*id));
        let reader = entity(at).ok_or(SealError::Malformed)?;
        let writer = entity(at + 4).ok_or(SealError::Malformed)?;
        Ok(Some(if is_of_writer {
            Self { local: writer, remote: reader }
        } else {
            Self { local: reader, remote: writer }
        }))
    }

    const fn class(&self) -> Class {
        match self.local {
            EntityId::SPDP_WRITER
            | EntityId::SPDP_READER
            | EntityId::STATELESS_MESSAGE_WRITER
            | EntityId::STATELESS_MESSAGE_READER => Class::Clear,
            EntityId::VOLATILE_MESSAGE_WRITER | EntityId::VOLATILE_MESSAGE_READER => Class::Volatile,
            _ => Class::Other,
        }
    }
}

/// Participant to which the submessages of a message are addressed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Destination {
    Undecided,
    One(GuidPrefix),
    All,
}

impl Destination {
    fn with(self, prefix: GuidPrefix) -> Self {
        match self {
            _ if prefix == GuidPrefix::UNKNOWN => Self::All,
            Self::Undecided => Self::One(prefix),
            Self::One(before) if before == prefix => self,
            _ => Self::All,
        }
    }
}

/// Protected message under construction in a frame.
struct Layout<'a> {
    frame: &'a mut [u8],
    /// Offset of the next submessage.
    at: usize,
    is_rollover_due: bool,
}

impl Layout<'_> {
    fn put(&mut self, octets: &[u8]) -> Result<Range<usize>, SealError> {
        self.put_at(self.at, octets)
    }

    fn put_at(&mut self, start: usize, octets: &[u8]) -> Result<Range<usize>, SealError> {
        let end = start + octets.len();
        self.frame.get_mut(start..end).ok_or(TransformError::BufferTooSmall)?.copy_from_slice(octets);
        self.at = end;
        Ok(start..end)
    }

    fn put_sealed(&mut self, octets: &[u8], sealer: &mut Sealer, receivers: Receivers) -> Result<(), SealError> {
        check_length(octets)?;
        let start = self.at + Form::Submessage.headroom(sealer.material().kind());
        let plain = self.put_at(start, octets)?;
        self.seal_at(plain, sealer, receivers)
    }

    /// Seals the submessage in `plain`.
    fn seal_at(&mut self, plain: Range<usize>, sealer: &mut Sealer, receivers: Receivers) -> Result<(), SealError> {
        self.at = sealer.seal_submessage(self.frame, plain, receivers)?.end;
        self.is_rollover_due |= sealer.is_rollover_due();
        Ok(())
    }

    /// Writes to `start` a submessage whose last `payload_len` octets are a payload, with the
    /// payload protected.
    fn put_with_payload(
        &mut self,
        start: usize,
        octets: &[u8],
        payload_len: usize,
        sealer: &mut Sealer,
    ) -> Result<Range<usize>, SealError> {
        check_length(octets)?;
        let (front, payload) = octets.split_at(octets.len() - payload_len);
        self.put_at(start, front)?;
        let plain = self.put_at(self.at + Form::Payload.headroom(sealer.material().kind()), payload)?;
        let end = sealer.seal_payload(self.frame, plain)?.end;
        self.is_rollover_due |= sealer.is_rollover_due();
        let len = u16::try_from(end - start - SUBMESSAGE_HEADER_LEN).map_err(|_| TransformError::TooLong)?;
        let is_little_endian = octets[1] & 1 != 0;
        let len = if is_little_endian { len.to_le_bytes() } else { len.to_be_bytes() };
        self.frame[start + 2..start + 4].copy_from_slice(&len);
        self.at = end;
        Ok(start..end)
    }

    /// Writes a submessage of an endpoint with the protection of that endpoint.
    fn put_of(
        &mut self,
        endpoint: &mut LocalEndpoint,
        envelope: &Envelope<'_>,
        octets: &[u8],
        receivers: Receivers,
    ) -> Result<(), SealError> {
        let payload = match &mut endpoint.payload {
            Some(sealer) => Some((sealer, payload_len(envelope)?)).filter(|(_, len)| *len > 0),
            None => None,
        };
        match (payload, &mut endpoint.submessage) {
            (None, None) => self.put(octets).map(drop),
            (None, Some(key)) => self.put_sealed(octets, &mut key.sealer, receivers),
            (Some((sealer, len)), None) => self.put_with_payload(self.at, octets, len, sealer).map(drop),
            (Some((sealer, len)), Some(key)) => {
                let start = self.at + Form::Submessage.headroom(key.sealer.material().kind());
                let plain = self.put_with_payload(start, octets, len, sealer)?;
                self.seal_at(plain, &mut key.sealer, receivers)
            }
        }
    }
}

/// Returns the length of the payload at the end of a submessage, 0 if it has none.
fn payload_len(envelope: &Envelope<'_>) -> Result<usize, SealError> {
    if let Some(data) = envelope.data() {
        return Ok(data?.payload.bytes().map_or(0, <[u8]>::len));
    }
    Ok(match envelope.open()? {
        Submessage::DataFrag(data) => data.rest.len(),
        _ => 0,
    })
}

/// Checks the length of a submessage. A length of "up to the end of the message" permits no
/// following submessage.
fn check_length(octets: &[u8]) -> Result<(), SealError> {
    match octets {
        [id, _, 0, 0, _, ..] if !EMPTY.contains(id) => Err(TransformError::TooLong.into()),
        _ => Ok(()),
    }
}

impl Plugin {
    fn count_sealed<T>(&mut self, sealed: Result<T, SealError>) -> Option<T> {
        match sealed {
            Ok(sealed) => {
                self.counters.sealed += 1;
                Some(sealed)
            }
            Err(error) => {
                self.counters.count_seal(error);
                None
            }
        }
    }

    /// Writes a message into `frame` with the required protection.
    pub(super) fn seal(&mut self, message: &[u8], frame: &mut [u8]) -> Option<usize> {
        let sealed = self.try_seal(message, frame);
        self.count_sealed(sealed)
    }

    fn try_seal(&mut self, message: &[u8], frame: &mut [u8]) -> Result<usize, SealError> {
        let view = MessageView::parse(message)?;
        let class = class_of(message)?;
        if class == Class::Clear {
            frame.get_mut(..message.len()).ok_or(TransformError::BufferTooSmall)?.copy_from_slice(message);
            return Ok(message.len());
        }
        let protects_whole = class == Class::Other && self.message.is_some();
        let kind = self.message.as_ref().map_or(TransformKind::None, |sealer| sealer.sealer.material().kind());
        let start = if protects_whole { Form::Message.headroom(kind) } else { 0 };
        let mut layout = Layout { frame, at: start, is_rollover_due: false };
        layout.put(message.get(..HEADER_LEN).ok_or(SealError::Malformed)?)?;
        let of_message = self.seal_submessages(class, &view, message, &mut layout, protects_whole)?;
        let Layout { frame, at, is_rollover_due } = layout;
        self.is_rollover_due |= is_rollover_due;
        let Some(whole) = self.message.as_mut().filter(|_| protects_whole) else { return Ok(at) };
        let receivers = match of_message {
            Destination::One(prefix) => whole.receivers_for(participant_guid(prefix), self.prefix),
            _ => Receivers::All,
        };
        let sealed = whole.sealer.seal_message(frame, start..at, receivers)?;
        self.is_rollover_due |= whole.sealer.is_rollover_due();
        Ok(sealed.end)
    }

    /// Writes the submessages of a message of one class, sealed where required.
    fn seal_submessages(
        &mut self,
        class: Class,
        view: &MessageView<'_>,
        message: &[u8],
        layout: &mut Layout<'_>,
        protects_whole: bool,
    ) -> Result<Destination, SealError> {
        let (mut destination, mut of_message) = (GuidPrefix::UNKNOWN, Destination::Undecided);
        let mut submessages = view.submessages();
        while let Some(envelope) = submessages.next_envelope() {
            let envelope = envelope?;
            let octets = message.get(envelope.range()).ok_or(SealError::Malformed)?;
            if envelope.id() == INFO_DST {
                let prefix = octets.get(SUBMESSAGE_HEADER_LEN..).and_then(|rest| rest.first_chunk());
                destination = GuidPrefix(*prefix.ok_or(SealError::Malformed)?);
            }
            let ends = Ends::of(octets)?;
            of_message = ends.map_or(of_message, |_| of_message.with(destination));
            match ends {
                Some(ends) if ends.class() != class => return Err(SealError::Malformed),
                Some(_) if class == Class::Volatile => {
                    let sealer = volatile_sealer(&mut self.remotes, destination)?;
                    layout.put_sealed(octets, sealer, Receivers::All)?;
                    continue;
                }
                Some(ends) => {
                    if let Some(endpoint) = local_endpoint(&mut self.endpoints, ends.local)? {
                        let is_for_one = destination != GuidPrefix::UNKNOWN && ends.remote != EntityId::UNKNOWN;
                        let receivers = match &endpoint.submessage {
                            Some(key) if is_for_one => {
                                key.receivers_for(Guid::new(destination, ends.remote), self.prefix)
                            }
                            _ => Receivers::All,
                        };
                        if protects_whole {
                            check_length(octets)?;
                        }
                        layout.put_of(endpoint, &envelope, octets, receivers)?;
                        continue;
                    }
                }
                None => {}
            }
            if protects_whole {
                check_length(octets)?;
            }
            layout.put(octets)?;
        }
        Ok(of_message)
    }

    /// Derives the next session keys of sealers whose session is nearly exhausted.
    pub(super) fn prepare_rollovers(&mut self) {
        if !std::mem::take(&mut self.is_rollover_due) {
            return;
        }
        let volatile = self.remotes.values_mut().filter_map(|remote| Some(&mut remote.session_mut()?.volatile));
        let endpoints = self.endpoints.values_mut().flat_map(LocalEndpoint::sealers);
        let whole = self.message.as_mut().map(|message| &mut message.sealer);
        for sealer in volatile.chain(endpoints).chain(whole).filter(|sealer| sealer.is_rollover_due()) {
            if sealer.prepare_rollover().is_err() {
                self.counters.library_failures += 1;
            }
        }
    }
}

/// Returns the class of the first submessage that names an endpoint. Reads only the headers of the
/// submessages before it.
fn class_of(message: &[u8]) -> Result<Class, SealError> {
    let mut rest = message.get(HEADER_LEN..).ok_or(SealError::Malformed)?;
    while let Some(&[id, flags, low, high]) = rest.first_chunk::<SUBMESSAGE_HEADER_LEN>() {
        let octets = [low, high];
        let len = if flags & 1 == 0 { u16::from_be_bytes(octets) } else { u16::from_le_bytes(octets) };
        let end = match len {
            0 if !EMPTY.contains(&id) => rest.len(),
            _ => SUBMESSAGE_HEADER_LEN + usize::from(len),
        };
        let (submessage, next) = rest.split_at_checked(end).ok_or(SealError::Malformed)?;
        if let Some(ends) = Ends::of(submessage)? {
            return Ok(ends.class());
        }
        rest = next;
    }
    Ok(Class::Other)
}

fn volatile_sealer(
    remotes: &mut BTreeMap<GuidPrefix, Remote>,
    destination: GuidPrefix,
) -> Result<&mut Sealer, SealError> {
    let session = remotes.get_mut(&destination).and_then(Remote::session_mut);
    session.map(|session| &mut session.volatile).ok_or(SealError::NoKey)
}

/// Returns a local endpoint; `None` for an unprotected builtin endpoint. An unknown application
/// endpoint is an error.
fn local_endpoint(
    endpoints: &mut BTreeMap<EntityId, LocalEndpoint>,
    id: EntityId,
) -> Result<Option<&mut LocalEndpoint>, SealError> {
    /// Bits of the entity kind that distinguish builtin, vendor-specific and user-defined entities.
    const ORIGIN: u8 = 0xc0;
    match endpoints.get_mut(&id) {
        Some(endpoint) => Ok(Some(endpoint)),
        None if id.kind() & ORIGIN == 0 => Err(SealError::NoKey),
        None => Ok(None),
    }
}
