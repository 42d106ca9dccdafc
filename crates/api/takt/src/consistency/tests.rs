//! Type lookups between two cores in memory: with a complete, an incomplete and an unresponsive
//! server.

use std::net::Ipv4Addr;

use takt_core::{Config, Interface, ReaderSpec, Received, WriterFlows, WriterSpec};
use takt_derive::DdsType;
use takt_wire::Locator;
use takt_wire::qos::{
    DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos, TopicData, TypeConsistency, TypeConsistencyKind,
};
use takt_xtypes::TypeSupport;
use takt_xtypes::type_object::TypeRegistry;

use super::*;
use crate::dynamic::announce;

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "T")]
struct Old {
    a: i32,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "T")]
struct New {
    a: i32,
    b: Inner,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "Inner")]
struct Inner {
    c: String,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "T")]
struct Other {
    a: String,
}

/// Behavior of the writer's participant as a type server.
#[derive(Clone, Copy, PartialEq)]
enum Server {
    Whole,
    /// It announces a type whose definitions it does not serve.
    Lacking,
    /// None of its datagrams arrive once its writer is discovered.
    Mute,
}

/// Participant 0 has a reader and checks types; participant 1 has a writer.
struct World {
    now: Instant,
    nodes: [Participant; 2],
    checks: TypeChecks,
    reader: takt_core::ReaderHandle,
    mute: bool,
}

fn address(node: usize) -> Locator {
    Locator::udp_v4(Ipv4Addr::new(10, 0, 0, node as u8 + 1), 7411)
}

fn config(node: usize) -> Config {
    let mut config = Config::new(0, GuidPrefix([1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 1, node as u8 + 1]));
    let ip = address(node).ip().expect("the address is IPv4");
    config.interfaces = vec![Interface { name: "mem".into(), addresses: vec![(ip, 24)], mtu: 1500, loopback: false }];
    config.locators.metatraffic_unicast = vec![address(node)];
    config.locators.default_unicast = vec![address(node)];
    config.initial_peers = vec![address(1 - node)];
    config
}

impl World {
    fn new<R: TypeSupport, W: TypeSupport>(server: Server, type_consistency: TypeConsistency) -> Self {
        let now = Instant(1_000_000_000);
        let mut nodes = [0, 1].map(|node| Participant::new(config(node), now).expect("a good configuration"));
        nodes[0].check_types();
        let of_reader = announce::<R>(&mut nodes[0]);
        let of_writer = match server {
            Server::Lacking => Some(W::type_information(&mut TypeRegistry::new()).to_bytes()),
            Server::Whole | Server::Mute => announce::<W>(&mut nodes[1]),
        };
        let spec = ReaderSpec {
            topic_name: "Topic".into(),
            type_name: "T".into(),
            key: None,
            qos: DataReaderQos { type_consistency, ..DataReaderQos::default() },
            subscriber: SubscriberQos::default(),
            group: None,
            topic_data: TopicData::default(),
            type_information: of_reader,
            max_serialized_len: None,
            unicast: Vec::new(),
            content_filter: None,
        };
        let reader = nodes[0].create_reader(now, spec).expect("reader");
        let spec = WriterSpec {
            topic_name: "Topic".into(),
            type_name: "T".into(),
            keyed: false,
            qos: DataWriterQos::default(),
            publisher: PublisherQos::default(),
            group: None,
            topic_data: TopicData::default(),
            type_information: of_writer,
            max_serialized_len: None,
            flows: WriterFlows::default(),
            unicast: Vec::new(),
            filters: None,
        };
        nodes[1].create_writer(now, spec).expect("writer");
        Self { now, nodes, checks: TypeChecks::default(), reader, mute: server == Server::Mute }
    }

    /// Runs until the pair is matched or refused. Returns the time since the check began, and
    /// whether the pair matched.
    fn outcome(&mut self) -> (Duration, bool) {
        let mut requested_at = None;
        for _ in 0..100_000 {
            let [first, second] = &mut self.nodes;
            if requested_at.is_none() && !self.checks.lookups.is_empty() {
                requested_at = Some(self.now);
            }
            let mut frame = vec![0; 65_507];
            let mut sent = false;
            while let Some(transmit) = first.poll_transmit(self.now, &mut frame) {
                sent = true;
                second.handle_datagram(
                    self.now,
                    Received { source: address(0), multicast: false },
                    &frame[..transmit.len],
                );
            }
            while let Some(transmit) = second.poll_transmit(self.now, &mut frame) {
                sent = true;
                let received = Received { source: address(1), multicast: false };
                if !(self.mute && requested_at.is_some()) {
                    first.handle_datagram(self.now, received, &frame[..transmit.len]);
                }
            }
            while let Some(event) = first.poll_event() {
                self.checks.handle_event(first, self.now, event);
            }
            let matched = first.subscription_matched_status(self.reader).expect("open").current_count == 1;
            if matched || first.refusals().count() > 0 {
                return (requested_at.map_or(Duration::ZERO, |requested_at| self.now.since(requested_at)), matched);
            }
            if !sent {
                let due = [first.poll_timeout(), second.poll_timeout(), self.checks.poll_timeout()];
                self.now = due.into_iter().flatten().min().expect("heartbeats go on").max(self.now);
                first.handle_timeout(self.now);
                second.handle_timeout(self.now);
                if self.checks.poll_timeout().is_some_and(|due| due <= self.now) {
                    self.checks.handle_timeout(first, self.now);
                }
            }
        }
        panic!("neither matched nor refused at {:?}", self.now);
    }

    fn refusal_reason(&self) -> String {
        self.nodes[0].refusals().next().expect("a refusal").to_string()
    }
}

fn forced() -> TypeConsistency {
    TypeConsistency { force_type_validation: true, ..TypeConsistency::default() }
}

#[test]
fn served_types_are_compared() {
    let mut world = World::new::<Old, New>(Server::Whole, forced());
    assert!(world.outcome().1);
    let mut world = World::new::<Old, Other>(Server::Whole, TypeConsistency::default());
    assert!(!world.outcome().1);
    assert!(
        world.refusal_reason().ends_with("member 'a': int32 for the reader, a string from the writer"),
        "{}",
        world.refusal_reason()
    );
    assert!(world.checks.lookups.is_empty() && world.checks.silent.is_empty());
    let same = TypeConsistency::of(TypeConsistencyKind::DisallowTypeCoercion);
    let mut world = World::new::<Old, New>(Server::Whole, same);
    assert!(!world.outcome().1);
}

#[test]
fn missing_definitions_match_by_name_unless_validation_is_forced() {
    let mut world = World::new::<Old, Other>(Server::Lacking, TypeConsistency::default());
    assert!(world.outcome().1);
    let mut world = World::new::<Old, Other>(Server::Lacking, forced());
    assert!(!world.outcome().1);
    assert!(
        world.refusal_reason().ends_with("its participant does not return all type definitions"),
        "{}",
        world.refusal_reason()
    );
}

#[test]
fn unanswered_lookup_ends_after_its_time_limit() {
    let mut world = World::new::<Old, Other>(Server::Mute, TypeConsistency::default());
    assert_eq!(world.outcome(), (LOOKUP_TIME, true), "by name");
    assert_eq!(world.checks.silent.len(), 1);
    let mut world = World::new::<Old, Other>(Server::Mute, forced());
    assert_eq!(world.outcome(), (LOOKUP_TIME, false));
    assert!(
        world.refusal_reason().ends_with("its participant does not answer type lookups"),
        "{}",
        world.refusal_reason()
    );
    assert_eq!(world.checks.poll_timeout(), None, "nothing is left to wait for");
}
