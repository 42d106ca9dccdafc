//! Tests of plugins in memory: a test driver replaces `takt-core`.

mod access;
mod authentication;
mod exchange;
mod keyring;
mod protection;
mod renewal;
mod returning;

use std::sync::OnceLock;

use takt_core::security::{AdmissionState, Protection, Security, SecurityChannel, SecurityEvent, SecurityMessage};
use takt_core::{Clocks, Instant};
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::message::{Header, MessageView, Submessage};
use takt_wire::{Endianness, EntityId, Guid, GuidPrefix, MessageBuilder, ProtocolVersion, Timestamp, VendorId};

use super::*;
use crate::documents::{
    BasicProtectionKind, DomainRule, DomainSet, Effect, Governance, Grant, Permissions, ProtectionKind, TopicRule,
};
use crate::identity::{Certificate, KeyAlgorithm, secure_guid_prefix};
use crate::tools::{Issuer, Validity as IssuedValidity, governance_xml, permissions_xml, sign_document};

const NOW: UnixSeconds = 1_800_000_000;
const DAY: UnixSeconds = 86_400;
const VALID: IssuedValidity = IssuedValidity { not_before: NOW - DAY, not_after: NOW + 400 * DAY };
const TOPIC: &str = "rt/chatter";
const WRITER: EntityId = EntityId([0, 0, 1, 0x03]);
const READER: EntityId = EntityId([0, 0, 1, 0x04]);
const SEC_PREFIX: u8 = 0x31;
const SEC_POSTFIX: u8 = 0x32;
const SRTPS_PREFIX: u8 = 0x33;

/// Returns the identity CA, the permissions CA, and an unrelated CA.
fn issuers() -> &'static [Issuer; 3] {
    static ISSUERS: OnceLock<[Issuer; 3]> = OnceLock::new();
    ISSUERS.get_or_init(|| {
        ["Identity CA", "Permissions CA", "Rogue CA"]
            .map(|name| Issuer::create(name, KeyAlgorithm::EcP256, VALID).expect("an authority"))
    })
}

/// Returns a domain rule with one topic rule for all topics.
fn rule(rtps: ProtectionKind, metadata: ProtectionKind, data: BasicProtectionKind) -> DomainRule {
    DomainRule {
        domains: DomainSet(vec![(0, 0)]),
        allow_unauthenticated_participants: false,
        enable_join_access_control: true,
        discovery_protection_kind: ProtectionKind::Encrypt,
        liveliness_protection_kind: ProtectionKind::Sign,
        rtps_protection_kind: rtps,
        topic_rules: vec![TopicRule {
            topic_expression: "*".to_owned(),
            enable_discovery_protection: true,
            enable_liveliness_protection: true,
            enable_read_access_control: true,
            enable_write_access_control: true,
            metadata_protection_kind: metadata,
            data_protection_kind: data,
        }],
    }
}

fn encrypting() -> DomainRule {
    rule(ProtectionKind::None, ProtectionKind::Encrypt, BasicProtectionKind::Encrypt)
}

/// Returns a grant that allows everything in the domain.
fn grant(name: &str) -> Grant {
    Grant {
        name: name.to_owned(),
        subject: SubjectName::parse(&format!("CN={name}")).expect("a name"),
        not_before: NOW - DAY,
        not_after: NOW + 300 * DAY,
        rules: Vec::new(),
        default: Effect::Allow,
    }
}

fn signed_governance(rule: &DomainRule) -> Vec<u8> {
    let governance = Governance { domain_rules: vec![rule.clone()] };
    sign_document(&issuers()[1], &governance_xml(&governance)).expect("a signature")
}

fn signed_permissions(grant: Grant) -> Vec<u8> {
    sign_document(&issuers()[1], &permissions_xml(&Permissions { grants: vec![grant] })).expect("a signature")
}

fn settings_by(issuer: &Issuer, name: &str, rule: &DomainRule, validity: IssuedValidity) -> Settings {
    let (certificate, key) = issuer.issue(name, KeyAlgorithm::EcP256, validity).expect("an identity");
    let parsed = Certificate::from_pem(&certificate).expect("a certificate");
    Settings {
        prefix: secure_guid_prefix(&parsed, GuidPrefix([1; 12])).expect("a prefix"),
        identity_certificate: certificate,
        private_key: key,
        identity_authority: issuers()[0].certificate_pem().expect("PEM"),
        permissions_authority: issuers()[1].certificate_pem().expect("PEM"),
        governance: signed_governance(rule),
        permissions: signed_permissions(grant(name)),
        ..Settings::default()
    }
}

fn settings(name: &str, rule: &DomainRule) -> Settings {
    settings_by(&issuers()[0], name, rule, VALID)
}

/// Takes the entries of the log, oldest first.
fn take_log(plugin: &mut Plugin) -> Vec<takt_core::security::SecurityLogEntry> {
    std::iter::from_fn(|| plugin.poll_log()).collect()
}

/// Participant under test with its announcement.
struct Node {
    plugin: Plugin,
    data: ParticipantData,
}

impl Node {
    fn new(settings: Settings) -> Self {
        Self::of_vendor(settings, VendorId::TAKT)
    }

    fn of_vendor(settings: Settings, vendor_id: VendorId) -> Self {
        let guid = Guid::new(settings.prefix, EntityId::PARTICIPANT);
        let mut plugin = Plugin::new(settings, NOW).expect("it may exist");
        let announced = plugin.announced();
        let data = ParticipantData {
            guid,
            vendor_id,
            identity_token: Some(announced.identity_token),
            permissions_token: Some(announced.permissions_token),
            security_info: Some(announced.security_info),
            ..ParticipantData::default()
        };
        plugin.set_participant_data(data.to_bytes_with(Endianness::Big)[4..].to_vec());
        Self { plugin, data }
    }

    fn prefix(&self) -> GuidPrefix {
        self.data.guid.prefix
    }

    fn writer_data(&self, topic: &str) -> PublicationData {
        let guid = Guid::new(self.prefix(), WRITER);
        PublicationData { guid, topic_name: topic.to_owned(), ..PublicationData::default() }
    }

    fn reader_data(&self, topic: &str) -> SubscriptionData {
        let guid = Guid::new(self.prefix(), READER);
        SubscriptionData { guid, topic_name: topic.to_owned(), ..SubscriptionData::default() }
    }

    /// Builds a message of this participant.
    fn message(&self, build: impl FnOnce(&mut MessageBuilder<'_>)) -> Vec<u8> {
        let mut frame = vec![0; 4_096];
        let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: self.prefix() };
        let mut builder = MessageBuilder::new(&mut frame, &header).expect("room");
        build(&mut builder);
        builder.bytes().to_vec()
    }

    /// Returns the message as it is sent.
    fn seal(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let mut frame = vec![0xee; message.len() + 2_000];
        let len = self.plugin.protect(message, &mut frame)?;
        frame.truncate(len);
        Some(frame)
    }

    /// Opens a message as a participant does. Returns the plain message, and the endpoints whose
    /// keys opened parts of it.
    fn open(&mut self, message: &[u8]) -> Option<(Vec<u8>, Vec<EntityId>)> {
        let mut memory = vec![0; message.len()];
        let mut message = message.to_vec();
        if message.get(20) == Some(&SRTPS_PREFIX) {
            let plain = self.plugin.open_message(&message, &mut memory)?;
            message = [&message[..20], plain].concat();
        }
        let view = MessageView::parse(&message).ok()?;
        let sender = view.header().prefix;
        let (mut plain, mut senders, mut prefix) = (message[..20].to_vec(), Vec::new(), None);
        let mut submessages = view.submessages();
        while let Some(envelope) = submessages.next_envelope() {
            let envelope = envelope.ok()?;
            let range = envelope.range();
            match (envelope.id(), prefix) {
                (SEC_PREFIX, None) => prefix = Some(range.start),
                (SEC_POSTFIX, Some(start)) => {
                    let opened = self.plugin.open_submessages(sender, &message[start..range.end], &mut memory)?;
                    plain.extend_from_slice(opened.plain);
                    senders.push(opened.sender);
                    prefix = None;
                }
                (_, None) => plain.extend_from_slice(&message[range]),
                (_, Some(_)) => {}
            }
        }
        Some((self.with_plain_payloads(&plain)?, senders))
    }

    /// Returns the message with its payloads opened, if payloads of the endpoints are protected.
    fn with_plain_payloads(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        if !self.plugin.endpoints.values().any(|endpoint| endpoint.attributes.payload.is_protected()) {
            return Some(message.to_vec());
        }
        let view = MessageView::parse(message).ok()?;
        let sender = view.header().prefix;
        let mut plain = message[..20].to_vec();
        let mut submessages = view.submessages();
        while let Some(envelope) = submessages.next_envelope() {
            let envelope = envelope.ok()?;
            let octets = &message[envelope.range()];
            let Ok(Submessage::Data(data)) = envelope.open() else {
                plain.extend_from_slice(octets);
                continue;
            };
            let payload = data.payload.bytes()?;
            let front = octets.len() - payload.len();
            let mut memory = vec![0; payload.len()];
            let opened = self.plugin.open_payload(Guid::new(sender, data.writer), payload, &mut memory)?;
            let len = u16::try_from(front + opened.len() - 4).expect("short");
            plain.extend_from_slice(&octets[..2]);
            plain.extend_from_slice(&len.to_le_bytes());
            plain.extend_from_slice(&octets[4..front]);
            plain.extend_from_slice(opened);
        }
        Some(plain)
    }
}

/// Selects messages to be lost, by sending participant.
type Loss = Box<dyn FnMut(usize, &SecurityMessage) -> bool>;

/// Participants and the network between them. All messages arrive, except those that `loses`
/// selects.
struct World {
    nodes: Vec<Node>,
    now: Clocks,
    events: Vec<(usize, SecurityEvent)>,
    /// Announcements that handshakes have proved, by receiving participant.
    announced: Vec<(usize, ParticipantData)>,
    loses: Loss,
    /// Messages of the volatile endpoints whose receiver does not have the key yet.
    held: Vec<(usize, SecurityMessage)>,
    sent_count: usize,
}

fn clocks(seconds: u64) -> Clocks {
    let wall = u32::try_from(NOW).expect("a time") + u32::try_from(seconds).expect("a time");
    Clocks { at: Instant(seconds * 1_000_000_000), wall: Timestamp { seconds: wall, fraction: 0 } }
}

impl World {
    fn new(nodes: Vec<Node>) -> Self {
        let loses = Box::new(|_: usize, _: &SecurityMessage| false);
        Self {
            nodes,
            now: clocks(1),
            events: Vec::new(),
            announced: Vec::new(),
            loses,
            held: Vec::new(),
            sent_count: 0,
        }
    }

    /// Returns two authenticated participants, the initiator of the handshake first.
    fn pair(rule: &DomainRule) -> Self {
        Self::pair_of(["Alice", "Bob"].map(|name| Node::new(settings(name, rule))))
    }

    fn pair_of(nodes: [Node; 2]) -> Self {
        let mut nodes = Vec::from(nodes);
        nodes.sort_by_key(Node::prefix);
        let mut world = Self::new(nodes);
        world.discover_all();
        world.run();
        let authenticated = [1, 0].map(|other| SecurityEvent::Authenticated(world.nodes[other].prefix()));
        assert_eq!(world.events.len(), 2, "{:?}", world.events);
        for (index, event) in authenticated.into_iter().enumerate() {
            assert!(world.events.contains(&(index, event)), "{index}: {:?}", world.events);
            let data = world.nodes[1 - index].data.clone();
            let data = ParticipantData { identity_token: None, permissions_token: None, ..data };
            assert!(world.announced.contains(&(index, data)), "{index}: {:?}", world.announced);
        }
        world.events.clear();
        world
    }

    fn discover(&mut self, local: usize, remote: usize) -> AdmissionState {
        let data = self.nodes[remote].data.clone();
        self.nodes[local].plugin.participant_discovered(self.now, &data)
    }

    fn discover_all(&mut self) {
        for local in 0..self.nodes.len() {
            for remote in (0..self.nodes.len()).filter(|remote| *remote != local) {
                assert_eq!(self.discover(local, remote), AdmissionState::Authenticating);
            }
        }
    }

    /// Delivers messages until none remain.
    fn run(&mut self) {
        for _ in 0..1_000 {
            let mut sent = std::mem::take(&mut self.held);
            for (index, node) in self.nodes.iter_mut().enumerate() {
                let messages = std::iter::from_fn(|| node.plugin.poll_message(self.now));
                sent.extend(messages.map(|message| (index, message)));
            }
            let mut has_moved = false;
            for (from, message) in sent {
                self.sent_count += 1;
                has_moved |= self.deliver(from, message);
            }
            self.take_events();
            if !has_moved {
                return;
            }
        }
        panic!("messages without end");
    }

    fn deliver(&mut self, from: usize, message: SecurityMessage) -> bool {
        if (self.loses)(from, &message) {
            return true;
        }
        let sender = self.nodes[from].prefix();
        let Some(receiver) = self.nodes.iter_mut().find(|node| node.prefix() == message.to) else { return true };
        let has_key = receiver.plugin.remotes.get(&sender).is_some_and(|remote| remote.session().is_some());
        if message.channel == SecurityChannel::Volatile && !has_key {
            self.held.push((from, message));
            return false;
        }
        receiver.plugin.handle_message(self.now, message.channel, sender, &message.payload);
        true
    }

    fn take_events(&mut self) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            for event in std::iter::from_fn(|| node.plugin.poll_event()) {
                match event {
                    SecurityEvent::AnnouncementAuthenticated(data) => self.announced.push((index, *data)),
                    event => self.events.push((index, event)),
                }
            }
        }
    }

    /// Advances the time second by second.
    fn advance(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.skip(1);
        }
    }

    /// Advances the time in one step.
    fn skip(&mut self, seconds: u64) {
        let total = self.now.at.0 / 1_000_000_000 + seconds;
        self.now = clocks(total);
        for node in &mut self.nodes {
            while node.plugin.poll_timeout().is_some_and(|due| due <= self.now.at) {
                node.plugin.handle_timeout(self.now);
                if node.plugin.handshake_due.is_some_and(|due| due <= self.now.at) {
                    break;
                }
            }
        }
        self.run();
    }

    /// Creates a writer of the first participant and a reader of the second one.
    fn make_endpoints(&mut self) -> [Protection; 2] {
        let now = self.now;
        let writer = self.nodes[0].writer_data(TOPIC);
        let reader = self.nodes[1].reader_data(TOPIC);
        [
            self.nodes[0].plugin.admit_writer(now, &writer).expect("admitted"),
            self.nodes[1].plugin.admit_reader(now, &reader).expect("admitted"),
        ]
    }

    /// Matches the writer with the reader.
    fn match_endpoints(&mut self) {
        let [writer, reader] = [(0, WRITER), (1, READER)].map(|(index, id)| Guid::new(self.nodes[index].prefix(), id));
        self.nodes[0].plugin.pair_matched(WRITER, reader);
        self.nodes[1].plugin.pair_matched(READER, writer);
        self.run();
    }

    /// Returns the texts in the log of a participant.
    fn log_of(&mut self, index: usize) -> String {
        take_log(&mut self.nodes[index].plugin).into_iter().map(|entry| entry.text + "\n").collect()
    }

    /// Returns the reason for which a participant refused the other one.
    fn refusal_by(&self, index: usize) -> &str {
        let found = self.events.iter().find_map(|(by, event)| match event {
            SecurityEvent::Refused { reason, .. } if *by == index => Some(reason.as_str()),
            _ => None,
        });
        found.unwrap_or("it was not refused")
    }
}
