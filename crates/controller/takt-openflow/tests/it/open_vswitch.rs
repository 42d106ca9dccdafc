//! Tests against a real switch in every version: Open vSwitch in a network namespace of the test,
//! over its management socket.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant as Clock};

use takt_openflow::action::Action;
use takt_openflow::bundle::bundle_flags::{ATOMIC, ORDERED};
use takt_openflow::cause::{Cause, RoleRequestFailed};
use takt_openflow::channel::{Controller, ControllerConfig, Event, Instant, Outcome};
use takt_openflow::flow::{FlowCommand, FlowMod};
use takt_openflow::group::{Bucket, GroupMod, GroupType};
use takt_openflow::instruction::Instruction;
use takt_openflow::meter::{Band, MeterCommand, MeterMod, meter_flags};
use takt_openflow::multipart::{FlowRequest, MultipartRequest, ReplyBody, RequestBody};
use takt_openflow::oxm::Oxm;
use takt_openflow::packet::PacketOut;
use takt_openflow::switch::{AsyncKind, ControllerRole, RoleMessage};
use takt_openflow::value::{GROUP_ALL, METER_ALL, PortNo, TABLE_ALL};
use takt_openflow::{Message, Version, Versions};
use takt_testkit::network::veth_pair;
use takt_testkit::open_vswitch::OpenVSwitch;
use takt_testkit::{not_run, require};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Starts a switch in this thread's namespace with the bridge `s1`, whose port is `eth0`.
fn start() -> OpenVSwitch {
    let switch = OpenVSwitch::start();
    switch.vsctl(&["--no-wait", "init"]);
    let versions = "protocols=OpenFlow10,OpenFlow13,OpenFlow14,OpenFlow15";
    let bridge =
        ["--", "add-br", "s1", "--", "set", "bridge", "s1", "datapath_type=netdev", "fail_mode=secure", versions];
    switch.vsctl(&[&bridge[..], &["--", "add-port", "s1", "eth0"]].concat());
    switch
}

/// Controller channel over a socket.
struct Session {
    controller: Controller,
    socket: UnixStream,
    start: Clock,
    version: Version,
}

impl Session {
    fn connect(path: &Path, version: Version) -> Self {
        let socket = UnixStream::connect(path).expect("the bridge has its socket");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        let config = ControllerConfig { versions: Versions::of(&[version]), ..ControllerConfig::default() };
        let controller = Controller::new(Instant(0), config);
        let mut session = Self { controller, socket, start: Clock::now(), version };
        let up = session.until(|event| matches!(event, Event::Up { .. }));
        let Event::Up { version: chosen, features } = up else { panic!("{up:?}") };
        assert_eq!(chosen, version);
        assert_ne!(features.datapath, 0);
        session
    }

    fn now(&self) -> Instant {
        Instant(u64::try_from(self.start.elapsed().as_nanos()).expect("the test time is in range"))
    }

    /// Transfers octets until a wanted event occurs. Other events are discarded.
    fn until(&mut self, is_wanted: impl Fn(&Event) -> bool) -> Event {
        let begin = Clock::now();
        let mut buffer = [0; 4096];
        while begin.elapsed() < TIMEOUT * 2 {
            while let Some(event) = self.controller.poll_event() {
                if is_wanted(&event) {
                    return event;
                }
                assert!(!matches!(event, Event::Down(_) | Event::Malformed { .. }), "{}: {event:?}", self.version);
            }
            let out = self.controller.poll_transmit().to_vec();
            self.socket.write_all(&out).expect("the switch accepts the message");
            self.controller.transmitted(out.len());
            match self.socket.read(&mut buffer) {
                Ok(0) => self.controller.handle_disconnect(),
                Ok(len) => {
                    let now = self.now();
                    assert_eq!(self.controller.handle_bytes(now, &buffer[..len]), len);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => panic!("{error}"),
            }
            self.controller.handle_timeout(self.now());
        }
        panic!("{}: the event does not arrive", self.version);
    }

    fn outcome(&mut self) -> Outcome {
        match self.until(|event| matches!(event, Event::Completed { .. })) {
            Event::Completed { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn transaction(&mut self, messages: &[Message]) -> Outcome {
        self.controller.transaction(self.now(), TIMEOUT, messages).expect("the send buffer has space");
        self.outcome()
    }

    fn bundle(&mut self, messages: Vec<Message>) -> Outcome {
        self.controller.bundle(self.now(), TIMEOUT, ATOMIC | ORDERED, messages).expect("the send buffer has space");
        self.outcome()
    }

    fn request(&mut self, request: &Message) -> Outcome {
        self.controller.request(self.now(), TIMEOUT, request).expect("the send buffer has space");
        self.outcome()
    }

    fn read(&mut self, body: RequestBody) -> ReplyBody {
        match self.request(&Message::MultipartRequest(MultipartRequest::new(body))) {
            Outcome::Multipart(body) => body,
            other => panic!("{}: {other:?}", self.version),
        }
    }

    /// Returns priorities and cookies of the switch's flows.
    fn flows(&mut self) -> BTreeSet<(u16, u64)> {
        let ReplyBody::Flow(flows) = self.read(RequestBody::Flow(FlowRequest::default())) else { panic!("flows") };
        flows.iter().map(|flow| (flow.priority, flow.cookie)).collect()
    }
}

fn flow(priority: u16, action: Action) -> FlowMod {
    let matching = vec![Oxm::EthType(0x0800), Oxm::IpProto(17), Oxm::UdpDst(7400 + priority)].into();
    let instructions = vec![Instruction::ApplyActions(vec![action])];
    FlowMod { cookie: 0x100 + u64::from(priority), priority, matching, instructions, ..FlowMod::default() }
}

fn added(priority: u16) -> Message {
    Message::FlowMod(flow(priority, Action::output(PortNo(1))))
}

/// Returns a message that deletes all flows.
fn deleted(version: Version) -> Message {
    let table = if version == Version::V1_0 { 0 } else { TABLE_ALL };
    Message::FlowMod(FlowMod { command: FlowCommand::Delete, table, ..FlowMod::default() })
}

fn flows_are_as_written(session: &mut Session) {
    let version = session.version;
    assert_eq!(session.transaction(&[deleted(version), added(1), added(2)]), Outcome::Done);
    assert_eq!(session.flows(), BTreeSet::from([(1, 0x101), (2, 0x102)]), "{version}");
    let ReplyBody::Flow(flows) = session.read(RequestBody::Flow(FlowRequest::default())) else { panic!("flows") };
    for found in flows {
        let written = flow(found.priority, Action::output(PortNo(1)));
        assert_eq!(found.instructions, written.instructions, "{version}");
        if version != Version::V1_0 {
            assert_eq!(found.matching, written.matching, "{version}");
        }
    }
}

fn a_failed_message_of_a_transaction_is_named(session: &mut Session) {
    let version = session.version;
    let bad = match version {
        Version::V1_0 => Action::V1_0(takt_openflow::action::LegacyAction::SetVlanPcp(99)),
        _ => Action::Group(99),
    };
    let Outcome::Failed(failures) = session.transaction(&[added(3), Message::FlowMod(flow(4, bad)), added(5)]) else {
        panic!("{version}: it failed")
    };
    assert_eq!(failures.iter().map(|failure| failure.message).collect::<Vec<_>>(), [Some(1)], "{version}");
    assert!(session.flows().contains(&(5, 0x105)), "the others were executed");
}

fn bundles_are_atomic(session: &mut Session) {
    let version = session.version;
    assert_eq!(session.transaction(&[deleted(version)]), Outcome::Done);
    let bad = Message::FlowMod(flow(12, Action::Group(99)));
    let Outcome::Failed(failures) = session.bundle(vec![added(10), added(11), bad]) else { panic!("no failure") };
    assert!(failures.iter().any(|failure| failure.message == Some(2)), "{version}: {failures:?}");
    assert_eq!(session.flows(), BTreeSet::new(), "{version}: nothing was applied");
    assert_eq!(session.bundle(vec![added(10), added(11)]), Outcome::Done, "{version}");
    assert_eq!(session.flows(), BTreeSet::from([(10, 0x10a), (11, 0x10b)]), "{version}");
}

fn groups_and_meters_are_as_written(session: &mut Session) {
    let version = session.version;
    // Bucket identifiers exist since 1.5 and are unique.
    let bucket = |port| Bucket {
        id: if version == Version::V1_5 { port } else { 0 },
        ..Bucket::new(vec![Action::output(PortNo(port))])
    };
    let group = |command_of: GroupMod| Message::GroupMod(command_of);
    let delete_groups = GroupMod {
        command: takt_openflow::group::GroupCommand::Delete,
        ..GroupMod::add(GROUP_ALL, GroupType::All, vec![])
    };
    let add = GroupMod::add(7, GroupType::All, vec![bucket(1), bucket(2)]);
    assert_eq!(session.transaction(&[group(delete_groups), group(add)]), Outcome::Done, "{version}");
    let ReplyBody::GroupDesc(groups) = session.read(RequestBody::GroupDesc(GROUP_ALL)) else { panic!("groups") };
    assert_eq!((groups.len(), groups[0].group, groups[0].kind), (1, 7, GroupType::All), "{version}");
    let actions: Vec<_> = groups[0].buckets.iter().map(|bucket| bucket.actions.clone()).collect();
    assert_eq!(actions, [bucket(1).actions, bucket(2).actions], "{version}");
    let flags = meter_flags::KBPS | meter_flags::BURST;
    let bands = vec![Band::Drop { rate: 1000, burst: 64 }];
    let meter = MeterMod { command: MeterCommand::Add, flags, meter: 3, bands: bands.clone() };
    let clear = MeterMod { command: MeterCommand::Delete, flags: 0, meter: METER_ALL, bands: vec![] };
    let written = [Message::MeterMod(clear), Message::MeterMod(meter)];
    assert_eq!(session.transaction(&written), Outcome::Done, "{version}");
    let ReplyBody::MeterConfig(meters) = session.read(RequestBody::MeterConfig(METER_ALL)) else { panic!("meters") };
    assert_eq!((meters.len(), meters[0].meter, meters[0].flags), (1, 3, flags), "{version}");
    assert_eq!(meters[0].bands, bands, "{version}");
}

fn a_packet_out_to_the_controller_comes_in(session: &mut Session) {
    let version = session.version;
    let frame: Vec<u8> = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 9, 0x88, 0xb5], &[version.octet(); 50]].concat();
    let actions = vec![Action::output(PortNo::CONTROLLER)];
    let packet = PacketOut::new(PortNo(1), actions, frame.clone());
    session.controller.send(&Message::PacketOut(packet)).expect("the send buffer has space");
    let is_packet =
        |event: &Event| matches!(event, Event::Message { message, .. } if matches!(**message, Message::PacketIn(_)));
    let Event::Message { message, .. } = session.until(is_packet) else { panic!("a packet-in") };
    let Message::PacketIn(packet) = *message else { panic!("a packet-in") };
    assert_eq!((packet.in_port(), usize::from(packet.total_len)), (Some(PortNo(1)), frame.len()), "{version}");
    assert_eq!(packet.data, frame, "{version}");
}

fn roles_have_generations(session: &mut Session, generation: u64) {
    let role = |role, generation| Message::RoleRequest(RoleMessage { role, short_id: 0, generation });
    let Outcome::Reply(Message::RoleReply(reply)) = session.request(&role(ControllerRole::Master, generation)) else {
        panic!("a reply")
    };
    assert_eq!((reply.role, reply.generation), (ControllerRole::Master, generation));
    let Outcome::Failed(failures) = session.request(&role(ControllerRole::Slave, generation - 1)) else {
        panic!("the generation is stale")
    };
    assert_eq!(failures[0].error.cause, Cause::RoleRequestFailed(RoleRequestFailed::Stale));
    let Outcome::Reply(Message::GetAsyncReply(config)) = session.request(&Message::GetAsyncRequest) else {
        panic!("a reply")
    };
    assert!(config.mask(AsyncKind::PACKET_IN_MASTER).is_some());
}

fn the_switch_describes_itself(session: &mut Session) {
    let version = session.version;
    let ReplyBody::Desc(desc) = session.read(RequestBody::Desc) else { panic!("a description") };
    assert_eq!(desc.hardware.to_text(), "Open vSwitch", "{version}");
    let ReplyBody::Port(ports) = session.read(RequestBody::Port(PortNo::ANY)) else { panic!("ports") };
    assert!(ports.iter().any(|port| port.port == PortNo(1)), "{version}: {ports:?}");
    let ReplyBody::Table(tables) = session.read(RequestBody::Table) else { panic!("tables") };
    assert!(!tables.is_empty(), "{version}");
    if version != Version::V1_0 {
        let ReplyBody::PortDesc(ports) = session.read(RequestBody::PortDesc(PortNo::ANY)) else { panic!("ports") };
        assert!(ports.iter().any(|port| port.name.to_text() == "eth0"), "{version}");
        let features = session.read(RequestBody::TableFeatures(vec![]));
        assert!(matches!(&features, ReplyBody::TableFeatures(tables) if tables.len() == 254), "in several parts");
        assert!(matches!(session.read(RequestBody::GroupFeatures), ReplyBody::GroupFeatures(_)));
    }
}

#[test]
fn open_vswitch_executes_messages_of_every_version() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let Some([host, _peer]) = veth_pair(1) else { return };
    let _inside = host.enter();
    let switch = start();
    for (version, generation) in Version::ALL.into_iter().zip(10..) {
        let mut session = Session::connect(&switch.path("s1.mgmt"), version);
        the_switch_describes_itself(&mut session);
        flows_are_as_written(&mut session);
        a_failed_message_of_a_transaction_is_named(&mut session);
        a_packet_out_to_the_controller_comes_in(&mut session);
        if version == Version::V1_0 {
            continue;
        }
        groups_and_meters_are_as_written(&mut session);
        bundles_are_atomic(&mut session);
        roles_have_generations(&mut session, generation);
    }
}
