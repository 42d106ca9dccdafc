//! Two participants that authenticate and exchange messages through an attacker that controls the
//! network.

use std::sync::OnceLock;

use takt_core::security::{Security, SecurityEvent, SecurityMessage};
use takt_core::{Clocks, Instant};
use takt_security::documents::{
    BasicProtectionKind, DomainRule, DomainSet, Effect, Governance, Grant, Permissions, ProtectionKind, TopicRule,
};
use takt_security::identity::{Certificate, KeyAlgorithm, SubjectName, secure_guid_prefix};
use takt_security::tools::{Issuer, Validity, governance_xml, permissions_xml, sign_document};
use takt_security::{Plugin, Settings};
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::message::{Header, MessageView, Submessage, Submessages, id};
use takt_wire::{
    DataEmit, Endianness, EntityId, Guid, GuidPrefix, MessageBuilder, Payload, ProtocolVersion, SequenceNumber,
    Timestamp, VendorId,
};

const NOW: u32 = 1_800_000_000;
const VALID: Validity = Validity { not_before: 0, not_after: 4_000_000_000 };
const WRITER: EntityId = EntityId([0, 0, 1, 0x03]);
const READER: EntityId = EntityId([0, 0, 1, 0x04]);
const TOPIC: &str = "topic";
/// Number of application messages in one script.
pub const MESSAGES: u8 = 8;
/// Maximum number of messages of one handshake step.
const STEPS_MAX: usize = 200;

/// Protection of the application payloads.
#[derive(Clone, Copy)]
struct Protection {
    rtps: ProtectionKind,
    metadata: ProtectionKind,
    data: BasicProtectionKind,
}

const PROTECTIONS: [Protection; 4] = [
    Protection {
        rtps: ProtectionKind::EncryptWithOriginAuthentication,
        metadata: ProtectionKind::None,
        data: BasicProtectionKind::None,
    },
    Protection { rtps: ProtectionKind::None, metadata: ProtectionKind::Sign, data: BasicProtectionKind::None },
    Protection { rtps: ProtectionKind::None, metadata: ProtectionKind::None, data: BasicProtectionKind::Encrypt },
    Protection { rtps: ProtectionKind::Sign, metadata: ProtectionKind::Encrypt, data: BasicProtectionKind::Encrypt },
];

/// Actions of the attacker, one octet each; without further octets messages pass unchanged.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn next(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first)
    }

    /// Returns the messages that arrive in place of a sent one.
    fn deliver(&mut self, message: &[u8]) -> Vec<Vec<u8>> {
        let same = || message.to_vec();
        match self.next() % 8 {
            4 => Vec::new(),
            5 => vec![same(), same()],
            6 => vec![self.changed(same())],
            7 => vec![self.changed(same()), same()],
            _ => vec![same()],
        }
    }

    fn changed(&mut self, mut octets: Vec<u8>) -> Vec<u8> {
        for _ in 0..=self.next() % 4 {
            let at = (self.next() << 8 | self.next()) % (octets.len() + 1);
            let end = (at + self.next() % 16).min(octets.len());
            match self.next() % 3 {
                0 => drop(octets.drain(at..end)),
                1 => {
                    let part = octets[at..end].to_vec();
                    octets.splice(at..at, part);
                }
                _ => octets[at..end].iter_mut().for_each(|octet| *octet ^= self.next() as u8),
            }
        }
        octets
    }
}

struct Node {
    plugin: Plugin,
    data: ParticipantData,
    /// Settings with another certificate.
    renewed: Settings,
}

impl Node {
    fn new([settings, renewed]: [Settings; 2]) -> Self {
        let mut plugin = Plugin::new(settings.clone(), i64::from(NOW)).expect("it may exist");
        let announced = plugin.announced();
        let data = ParticipantData {
            guid: Guid::new(settings.prefix, EntityId::PARTICIPANT),
            vendor_id: VendorId::TAKT,
            identity_token: Some(announced.identity_token),
            security_info: Some(announced.security_info),
            ..ParticipantData::default()
        };
        plugin.set_participant_data(data.to_bytes_with(Endianness::Big)[4..].to_vec());
        Self { plugin, data, renewed }
    }

    /// Renews the participant with the other certificate.
    fn renew(&mut self, seconds: u64) {
        self.plugin.renewer().offer(&self.renewed, i64::from(NOW)).expect("it may");
        self.plugin.handle_timeout(clocks(seconds));
    }

    fn prefix(&self) -> GuidPrefix {
        self.data.guid.prefix
    }
}

fn clocks(seconds: u64) -> Clocks {
    Clocks { at: Instant(seconds * 1_000_000_000), wall: Timestamp { seconds: NOW, fraction: 0 } }
}

/// Returns two identities for each protection, with two certificates each.
fn settings() -> &'static [[[Settings; 2]; 2]; 4] {
    static SETTINGS: OnceLock<[[[Settings; 2]; 2]; 4]> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let issuer = Issuer::create("CA", KeyAlgorithm::EcP256, VALID).expect("an authority");
        let certificates = |name, protection| [(); 2].map(|()| settings_of(&issuer, name, protection));
        PROTECTIONS.map(|protection| ["Alice", "Bob"].map(|name| certificates(name, protection)))
    })
}

fn settings_of(issuer: &Issuer, name: &str, protection: Protection) -> Settings {
    let topic = TopicRule {
        topic_expression: "*".to_owned(),
        enable_discovery_protection: true,
        enable_liveliness_protection: true,
        enable_read_access_control: true,
        enable_write_access_control: true,
        metadata_protection_kind: protection.metadata,
        data_protection_kind: protection.data,
    };
    let rule = DomainRule {
        domains: DomainSet(vec![(0, 0)]),
        allow_unauthenticated_participants: false,
        enable_join_access_control: true,
        discovery_protection_kind: ProtectionKind::Encrypt,
        liveliness_protection_kind: ProtectionKind::Encrypt,
        rtps_protection_kind: protection.rtps,
        topic_rules: vec![topic],
    };
    let grant = Grant {
        name: name.to_owned(),
        subject: SubjectName::parse(&format!("CN={name}")).expect("a name"),
        not_before: 0,
        not_after: VALID.not_after,
        rules: Vec::new(),
        default: Effect::Allow,
    };
    let governance = governance_xml(&Governance { domain_rules: vec![rule] });
    let permissions = permissions_xml(&Permissions { grants: vec![grant] });
    let (identity_certificate, private_key) = issuer.issue(name, KeyAlgorithm::EcP256, VALID).expect("an identity");
    let certificate = Certificate::from_pem(&identity_certificate).expect("a certificate");
    let authority = issuer.certificate_pem().expect("PEM");
    Settings {
        prefix: secure_guid_prefix(&certificate, GuidPrefix([1; 12])).expect("a prefix"),
        identity_certificate,
        private_key,
        identity_authority: authority.clone(),
        permissions_authority: authority,
        governance: sign_document(issuer, &governance).expect("a signature"),
        permissions: sign_document(issuer, &permissions).expect("a signature"),
        blocks_per_session: 64,
        ..Settings::default()
    }
}

/// Runs a script. The first octet selects the protection. The rest determines the treatment of each
/// message.
///
/// Either participant may renew its certificate in between. Asserts that only these two
/// participants are authenticated, that each delivered payload was written, and that none is
/// delivered twice. Returns the number of delivered messages, of [`MESSAGES`].
pub fn run(script: &[u8]) -> usize {
    let mut script = Script(script);
    let which = script.next() % PROTECTIONS.len();
    let mut nodes = settings()[which].each_ref().map(|settings| Node::new(settings.clone()));
    let data = nodes.each_ref().map(|node| node.data.clone());
    for (node, other) in nodes.iter_mut().zip(data.iter().rev()) {
        let _ = node.plugin.participant_discovered(clocks(1), other);
    }
    let mut seconds = 1;
    carry(&mut nodes, &mut script, &mut seconds);
    make_pair(&mut nodes, seconds);
    carry(&mut nodes, &mut script, &mut seconds);
    let renewing = script.next();
    for (index, node) in nodes.iter_mut().enumerate().filter(|(index, _)| renewing & 1 << index != 0) {
        node.renew(seconds + index as u64);
    }
    if renewing & 3 != 0 {
        carry(&mut nodes, &mut script, &mut seconds);
    }
    exchange(&mut nodes, &mut script, PROTECTIONS[which])
}

fn carry(nodes: &mut [Node; 2], script: &mut Script<'_>, seconds: &mut u64) {
    let prefixes = [nodes[0].prefix(), nodes[1].prefix()];
    for _ in 0..STEPS_MAX {
        let mut moved: Vec<(usize, SecurityMessage)> = Vec::new();
        for (index, node) in nodes.iter_mut().enumerate() {
            moved.extend(std::iter::from_fn(|| node.plugin.poll_message(clocks(*seconds))).map(|it| (index, it)));
            while let Some(event) = node.plugin.poll_event() {
                if let SecurityEvent::Authenticated(prefix) = event {
                    assert_eq!(prefix, prefixes[1 - index], "nobody else is there");
                }
            }
            let _ = std::iter::from_fn(|| node.plugin.poll_log()).count();
        }
        let is_idle = moved.is_empty();
        for (from, message) in moved {
            for payload in script.deliver(&message.payload) {
                nodes[1 - from].plugin.handle_message(clocks(*seconds), message.channel, prefixes[from], &payload);
            }
        }
        if is_idle {
            if script.next().is_multiple_of(2) {
                return;
            }
            *seconds += 1 + script.next() as u64 % 64;
            nodes.iter_mut().for_each(|node| node.plugin.handle_timeout(clocks(*seconds)));
        }
    }
}

fn make_pair(nodes: &mut [Node; 2], seconds: u64) {
    let (writer, reader) = (Guid::new(nodes[0].prefix(), WRITER), Guid::new(nodes[1].prefix(), READER));
    let topic_name = TOPIC.to_owned();
    let data = PublicationData { guid: writer, topic_name: topic_name.clone(), ..PublicationData::default() };
    nodes[0].plugin.admit_writer(clocks(seconds), &data).expect("permissions allow it");
    let data = SubscriptionData { guid: reader, topic_name, ..SubscriptionData::default() };
    nodes[1].plugin.admit_reader(clocks(seconds), &data).expect("permissions allow it");
    nodes[0].plugin.pair_matched(WRITER, reader);
    nodes[1].plugin.pair_matched(READER, writer);
}

fn exchange(nodes: &mut [Node; 2], script: &mut Script<'_>, protection: Protection) -> usize {
    let prefix = nodes[0].prefix();
    let mut delivered = [0; MESSAGES as usize];
    for number in 0..MESSAGES {
        let Some(sealed) = seal(&mut nodes[0], &payload(number)) else { continue };
        for octets in script.deliver(&sealed) {
            for opened in open(&mut nodes[1].plugin, prefix, &octets, protection) {
                let sent = (0..MESSAGES).find(|sent| opened == payload(*sent));
                delivered[usize::from(sent.expect("only what was written is delivered"))] += 1;
            }
        }
    }
    assert!(delivered.iter().all(|count| *count <= 1), "{delivered:?}");
    delivered.iter().sum()
}

fn payload(number: u8) -> [u8; 24] {
    let mut payload = [number; 24];
    payload[..4].copy_from_slice(&[0, 1, 0, 0]);
    payload
}

fn seal(node: &mut Node, payload: &[u8]) -> Option<Vec<u8>> {
    let (mut plain, mut frame) = ([0; 256], [0; 2_048]);
    let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: node.prefix() };
    let mut builder = MessageBuilder::new(&mut plain, &header).expect("room");
    let data = DataEmit {
        reader: EntityId::UNKNOWN,
        writer: WRITER,
        sn: SequenceNumber(1),
        inline_qos: None,
        payload: Payload::Data(payload),
    };
    builder.data(&data).expect("room");
    let len = node.plugin.protect(builder.bytes(), &mut frame)?;
    Some(frame[..len].to_vec())
}

/// Returns the payloads of a message that reach a reader, opened as a participant does.
fn open(plugin: &mut Plugin, sender: GuidPrefix, octets: &[u8], protection: Protection) -> Vec<Vec<u8>> {
    let Ok(mut view) = MessageView::parse(octets) else { return Vec::new() };
    let mut memory = vec![0; octets.len()];
    if matches!(view.submessages().next_envelope(), Some(Ok(envelope)) if envelope.id() == id::SRTPS_PREFIX) {
        let Some(plain) = plugin.open_message(octets, &mut memory) else { return Vec::new() };
        view = view.with_submessages(plain);
    } else if protection.rtps.is_protected() {
        return Vec::new();
    }
    let mut payloads = Vec::new();
    if view.header().prefix != sender {
        return payloads;
    }
    let (mut submessages, mut start) = (view.submessages(), None);
    while let Some(Ok(envelope)) = submessages.next_envelope() {
        match (envelope.id(), start) {
            (id::SEC_PREFIX, None) => start = Some(envelope.range().start),
            (id::SEC_POSTFIX, Some(from)) => {
                let sealed = view.octets(from..envelope.range().end).expect("part of the message");
                let mut memory = vec![0; sealed.len()];
                start = None;
                if let Some(opened) = plugin.open_submessages(sender, sealed, &mut memory)
                    && opened.sender == WRITER
                {
                    let mut inner = Submessages::of(opened.plain);
                    while let Some(Ok(envelope)) = inner.next_envelope() {
                        payloads.extend(payload_of(plugin, sender, envelope.open().ok(), protection));
                    }
                }
            }
            (_, None) if !protection.metadata.is_protected() => {
                payloads.extend(payload_of(plugin, sender, envelope.open().ok(), protection));
            }
            _ => {}
        }
    }
    payloads
}

fn payload_of(
    plugin: &mut Plugin,
    sender: GuidPrefix,
    submessage: Option<Submessage<'_>>,
    protection: Protection,
) -> Option<Vec<u8>> {
    let Some(Submessage::Data(data)) = submessage else { return None };
    if data.writer != WRITER {
        return None;
    }
    let payload = data.payload.bytes()?;
    if protection.data == BasicProtectionKind::None {
        return Some(payload.to_vec());
    }
    plugin.open_payload(Guid::new(sender, WRITER), payload, &mut vec![0; payload.len()]).map(<[u8]>::to_vec)
}
