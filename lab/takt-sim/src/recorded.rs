//! Replay of a recorded participant of another vendor in a simulated world.
//!
//! The datagrams leave at the recorded times. The recorded session is replayed to each participant
//! that announces itself, starting when the peer receives the announcement. The octets are
//! unchanged, except for
//!
//! - the GUID prefix of the addressed participant, the entity ids of its endpoints, and the
//!   locators of the peer;
//! - the counts of HEARTBEAT, ACKNACK, HEARTBEAT_FRAG and NACK_FRAG, each of which must exceed the
//!   previous one;
//! - the answers to the challenge of the recording, which would be wrong in this world: they
//!   acknowledge nothing.
//!
//! A recording does not contain reactions to the losses of a world. The peer therefore follows the
//! reliable protocol (RTPS 2.5 §8.4):
//!
//! - it resends the recorded datagram with a change that an ACKNACK or a NACK_FRAG requests;
//! - it sends a HEARTBEAT each [`HEARTBEAT_PERIOD`] while a sent change is not acknowledged;
//! - it acknowledges the changes that a HEARTBEAT announces, including a challenge for its address.
//!
//! The peer replays the recorded end of its participant when the faults of the world are over.

use std::collections::BTreeMap;
use std::rc::Rc;

use takt_wire::builder::MessageBuilder;
use takt_wire::discovery::ParticipantData;
use takt_wire::message::{AckNack, Heartbeat, MessageView, Submessage};
use takt_wire::{Endianness, EntityId, Full, GuidPrefix, Locator, SequenceNumber, SequenceNumberSet};

use crate::check::progress::HEARTBEAT_PERIOD;
use crate::clock::{Nanos, SECOND};
use crate::counts::{self, ACKNACK, HEARTBEAT, HEARTBEAT_FRAG, NACK_FRAG};
use crate::hostile::OutgoingDatagram;
use crate::network::Frame;
use crate::process::{ANNOUNCEMENT_PERIOD, ANNOUNCEMENT_PORT, GROUP, address};
use crate::recording::{Datagram, PEER_ADDRESS, Product, Recording, is_of_application};

/// Entity id of the reader of each simulated participant for the samples of the peer.
pub const PARTNER_READER: EntityId = EntityId::user_reader(1, true);
/// Entity id of the writer of each simulated participant for the reader of the peer.
pub const PARTNER_WRITER: EntityId = EntityId::user_writer(2, true);

/// Range of the sequence numbers of challenges.
const CHALLENGES: std::ops::Range<u32> = 1 << 15..1 << 16;

/// Time from the end of the faults to the end of the peer. It suffices for the session with the
/// participant that started last.
const SESSION_TIME: Nanos = 4 * SECOND;

/// Plan of a recorded participant.
#[derive(Clone, Copy, Debug)]
pub struct RecordedPlan {
    /// Recorded product.
    pub product: Product,
    /// Index of its host.
    pub host: usize,
    /// Start time.
    pub start: Nanos,
    /// Number of processes with endpoints that match those of the peer; these are the first ones.
    pub matching_processes: usize,
}

/// Replay state for one participant.
#[derive(Debug)]
struct Session {
    prefix: GuidPrefix,
    at: Locator,
    begun: Nanos,
    /// Index of the next datagram of the session; `next_of_end` is that of the recorded end.
    next: usize,
    next_of_end: usize,
    /// By writer: the last sent change. The next field holds the last acknowledged one.
    sent: BTreeMap<EntityId, i64>,
    acknowledged: BTreeMap<EntityId, i64>,
}

/// Running replay of a recorded participant.
pub struct RecordedPeer {
    /// Plan of the peer.
    pub plan: RecordedPlan,
    /// Time of the next call by the world; `Nanos::MAX` for never.
    pub timer: Nanos,
    recording: &'static Recording,
    at: Locator,
    sessions: Vec<Session>,
    next_announcement: Nanos,
    next_heartbeat: Nanos,
    end_at: Nanos,
    count: i32,
    outgoing: Vec<OutgoingDatagram>,
}

impl RecordedPeer {
    /// Creates the peer. `index` follows those of all processes and determines its address;
    /// `active` is the end of the faults.
    #[must_use]
    pub fn new(plan: RecordedPlan, index: usize, active: Nanos) -> Self {
        Self {
            plan,
            timer: Nanos::MAX,
            recording: plan.product.recording(),
            at: address(plan.host, index),
            sessions: Vec::new(),
            next_announcement: plan.start,
            next_heartbeat: plan.start,
            end_at: end_time(active),
            count: 0,
            outgoing: Vec::new(),
        }
    }

    /// Returns the recording.
    #[must_use]
    pub fn recording(&self) -> &'static Recording {
        self.recording
    }

    /// Returns the datagrams to send now.
    pub fn take_datagrams(&mut self) -> Vec<OutgoingDatagram> {
        std::mem::take(&mut self.outgoing)
    }

    /// Returns the time of the next action; `None` if there is none.
    #[must_use]
    pub fn due(&self) -> Option<Nanos> {
        let next = |session: &Session| {
            let datagram = self.recording.session.get(session.next).map(|datagram| session.begun + datagram.at);
            let end = self.recording.end.get(session.next_of_end);
            [datagram, end.map(|datagram| self.end_at + datagram.at)].into_iter().flatten().min()
        };
        let sessions = self.sessions.iter().filter_map(next).min();
        let period = Some(self.next_announcement.min(self.next_heartbeat)).filter(|at| *at < self.end_at);
        [sessions, period].into_iter().flatten().min()
    }

    /// Sends the datagrams that are due.
    pub fn send_due(&mut self, now: Nanos) {
        let recording = self.recording;
        if now >= self.next_announcement && now < self.end_at {
            self.next_announcement = now + ANNOUNCEMENT_PERIOD;
            let bytes = self.localized(&recording.announcement.bytes);
            let source = self.source(&recording.announcement);
            self.outgoing.push((source, Locator::udp_v4(GROUP, ANNOUNCEMENT_PORT), bytes.into()));
        }
        let mut sessions = std::mem::take(&mut self.sessions);
        for session in &mut sessions {
            while let Some(datagram) = recording.session.get(session.next).filter(|it| session.begun + it.at <= now) {
                session.next += 1;
                for (writer, sn) in &datagram.changes {
                    let last = session.sent.entry(*writer).or_default();
                    *last = (*last).max(*sn);
                }
                self.replay(session, datagram);
            }
            let end = &recording.end;
            while let Some(datagram) = end.get(session.next_of_end).filter(|datagram| self.end_at + datagram.at <= now)
            {
                session.next_of_end += 1;
                self.replay(session, datagram);
            }
        }
        if now >= self.next_heartbeat && now < self.end_at {
            self.next_heartbeat = now + HEARTBEAT_PERIOD;
            sessions.iter().for_each(|session| self.send_heartbeats(session));
        }
        self.sessions = sessions;
    }

    /// Handles a datagram. Immediate answers are in [`Self::take_datagrams`].
    pub fn receive(&mut self, now: Nanos, frame: &Frame) {
        let Ok(message) = MessageView::parse(&frame.bytes) else { return };
        let from = message.header().prefix;
        if from == self.recording.header.prefix || now < self.plan.start || now >= self.end_at {
            return;
        }
        let mut to = GuidPrefix::UNKNOWN;
        for submessage in message.submessages().flatten() {
            match submessage {
                Submessage::InfoDestination(prefix) => to = prefix,
                _ if to != GuidPrefix::UNKNOWN && to != self.recording.header.prefix => {}
                Submessage::Data(data) if data.writer == EntityId::SPDP_WRITER => {
                    let announced = data.payload.bytes().and_then(|payload| ParticipantData::parse(payload).ok());
                    if let Some(at) = announced.and_then(|announced| announced.metatraffic_unicast.first().copied()) {
                        self.handle_announcement(now, from, at);
                    }
                }
                Submessage::Heartbeat(heartbeat) => self.acknowledge(from, &heartbeat),
                Submessage::AckNack(acknack) => {
                    let missing: Vec<i64> = acknack.reader_sn_state.iter().map(|sn| sn.0).collect();
                    self.repair(from, acknack.writer, &missing, Some(acknack.reader_sn_state.base().0 - 1));
                }
                Submessage::NackFrag(nack) => self.repair(from, nack.writer, &[nack.sn.0], None),
                _ => {}
            }
        }
    }

    /// Handles the announcement of a participant with its address.
    fn handle_announcement(&mut self, now: Nanos, prefix: GuidPrefix, at: Locator) {
        if let Some(session) = self.sessions.iter_mut().find(|session| session.prefix == prefix) {
            session.at = at;
            return;
        }
        self.sessions.push(Session {
            prefix,
            at,
            begun: now,
            next: 0,
            next_of_end: 0,
            sent: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
        });
    }

    /// Acknowledges all changes that a HEARTBEAT announces.
    fn acknowledge(&mut self, from: GuidPrefix, heartbeat: &Heartbeat) {
        let is_challenge = heartbeat.last_sn < heartbeat.first_sn;
        let Some(reader) = self.reader_of(heartbeat.writer).filter(|_| is_challenge || !heartbeat.is_final) else {
            return;
        };
        let Some(at) = self.sessions.iter().find(|session| session.prefix == from).map(|session| session.at) else {
            return;
        };
        let answer = AckNack {
            reader,
            writer: heartbeat.writer,
            reader_sn_state: SequenceNumberSet::new(heartbeat.last_sn.next()),
            count: self.next_count(),
            is_final: true,
        };
        self.send(from, at, |message| message.acknack(&answer));
    }

    /// Returns the peer's reader for a writer of a participant.
    fn reader_of(&self, writer: EntityId) -> Option<EntityId> {
        match writer {
            EntityId::SEDP_PUB_WRITER => Some(EntityId::SEDP_PUB_READER),
            EntityId::SEDP_SUB_WRITER => Some(EntityId::SEDP_SUB_READER),
            EntityId::P2P_MESSAGE_WRITER => Some(EntityId::P2P_MESSAGE_READER),
            PARTNER_WRITER => Some(self.recording.reader.entity_id),
            _ => None,
        }
    }

    /// Resends missing changes to a participant, which has all up to `acknowledged` if that is
    /// given.
    fn repair(&mut self, from: GuidPrefix, writer: EntityId, missing: &[i64], acknowledged: Option<i64>) {
        let recording = self.recording;
        let mut sessions = std::mem::take(&mut self.sessions);
        if let Some(session) = sessions.iter_mut().find(|session| session.prefix == from) {
            session.acknowledged.extend(acknowledged.map(|acknowledged| (writer, acknowledged)));
            let wanted = |datagram: &&Datagram| missing.iter().any(|sn| datagram.changes.contains(&(writer, *sn)));
            for datagram in recording.session[..session.next].iter().filter(wanted) {
                self.replay(session, datagram);
            }
        }
        self.sessions = sessions;
    }

    /// Sends heartbeats for the changes that a participant has not acknowledged.
    fn send_heartbeats(&mut self, session: &Session) {
        for (writer, sent) in &session.sent {
            let acknowledged = session.acknowledged.get(writer).copied().unwrap_or(0);
            if *writer == EntityId::SPDP_WRITER || acknowledged >= *sent {
                continue;
            }
            let heartbeat = Heartbeat {
                reader: EntityId::UNKNOWN,
                writer: *writer,
                first_sn: SequenceNumber::FIRST,
                last_sn: SequenceNumber(*sent),
                count: self.next_count(),
                is_final: false,
                liveliness: false,
                group: None,
            };
            self.send(session.prefix, session.at, |message| message.heartbeat(&heartbeat));
        }
    }

    fn next_count(&mut self) -> i32 {
        self.count += 1;
        self.count
    }

    /// Sends a message that is not in the recording.
    fn send(&mut self, to: GuidPrefix, at: Locator, write: impl FnOnce(&mut MessageBuilder<'_>) -> Result<(), Full>) {
        let mut frame = [0; 200];
        let mut message = MessageBuilder::new(&mut frame, &self.recording.header).expect("a header fits");
        message.info_destination(to).and_then(|()| write(&mut message)).expect("a short submessage fits");
        self.outgoing.push((self.at, at, message.bytes().into()));
    }

    /// Sends a recorded datagram to a participant.
    fn replay(&mut self, session: &Session, datagram: &Datagram) {
        let mut bytes = self.localized(&datagram.bytes);
        for at in 0..bytes.len().saturating_sub(session.prefix.0.len() - 1) {
            let octets = &mut bytes[at..at + session.prefix.0.len()];
            if *octets == self.recording.partner.0 {
                octets.copy_from_slice(&session.prefix.0);
            }
        }
        self.rewrite_submessages(&mut bytes);
        let source = self.source(datagram);
        self.outgoing.push((source, session.at, bytes.into()));
    }

    /// Replaces the ids of the partner's endpoints and the counts in the submessages.
    fn rewrite_submessages(&mut self, bytes: &mut [u8]) {
        let recorded: Rc<[u8]> = (&*bytes).into();
        let Ok(message) = MessageView::parse(&recorded) else { return };
        let mut submessages = message.submessages();
        while let Some(Ok(envelope)) = submessages.next_envelope() {
            let (range, endianness) = (envelope.range(), envelope.endianness());
            let body = &mut bytes[range][4..];
            // Offset of the reader and writer ids.
            let ids = match envelope.id() {
                ACKNACK | HEARTBEAT | NACK_FRAG | HEARTBEAT_FRAG | GAP => 0,
                DATA | DATA_FRAG => 4,
                _ => continue,
            };
            let own = [self.recording.reader.entity_id, self.recording.writer.entity_id];
            for (at, partners) in [(ids, PARTNER_READER), (ids + 4, PARTNER_WRITER)] {
                let id = EntityId([body[at], body[at + 1], body[at + 2], body[at + 3]]);
                if is_of_application(id) && !own.contains(&id) {
                    body[at..at + 4].copy_from_slice(&partners.0);
                }
            }
            let is_of_sedp = [EntityId::SEDP_PUB_WRITER, EntityId::SEDP_SUB_WRITER]
                .map(|id| id.0)
                .contains(&[body[4], body[5], body[6], body[7]]);
            if envelope.id() == ACKNACK && is_of_sedp {
                clear_challenge(body, endianness);
            }
            if let Some(at) = counts::place(envelope.id(), body, endianness) {
                counts::write(body, at, endianness, self.next_count());
            }
        }
    }

    /// Returns the octets with the peer's address in this world in place of the recorded one, in
    /// either byte order.
    fn localized(&self, recorded: &[u8]) -> Vec<u8> {
        let mut bytes = recorded.to_vec();
        for endianness in [Endianness::Little, Endianness::Big] {
            let here = self.at.to_bytes(endianness);
            let recorded = Locator::udp_v4(PEER_ADDRESS.into(), 0).to_bytes(endianness);
            for at in 0..bytes.len().saturating_sub(Locator::LEN - 1) {
                let octets = &mut bytes[at..at + Locator::LEN];
                // Kind and address; the port lies between them.
                if octets[..4] == recorded[..4] && octets[8..] == recorded[8..] {
                    octets.copy_from_slice(&here);
                }
            }
        }
        bytes
    }

    /// Returns the source of a recorded datagram: the peer's address in this world, and the
    /// recorded port.
    fn source(&self, datagram: &Datagram) -> Locator {
        Locator { port: datagram.port.into(), ..self.at }
    }
}

/// Changes an ACKNACK that answers a challenge, so that it acknowledges nothing. Its number follows
/// the ids of reader and writer, the high half first.
fn clear_challenge(acknack: &mut [u8], endianness: Endianness) {
    let low = [acknack[12], acknack[13], acknack[14], acknack[15]];
    let (number, nothing) = match endianness {
        Endianness::Little => (u32::from_le_bytes(low), 1_u32.to_le_bytes()),
        Endianness::Big => (u32::from_be_bytes(low), 1_u32.to_be_bytes()),
    };
    if acknack[8..12] == [0; 4] && CHALLENGES.contains(&number) {
        acknack[12..16].copy_from_slice(&nothing);
    }
}

/// Returns the time at which a recorded participant ends in a world whose faults end at `active`.
#[must_use]
pub fn end_time(active: Nanos) -> Nanos {
    active + SESSION_TIME
}

/// Submessage ids (RTPS 2.5 §9.4.5.1.1).
const GAP: u8 = 0x08;
const DATA: u8 = 0x15;
const DATA_FRAG: u8 = 0x16;
