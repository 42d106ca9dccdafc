//! Memory that one hostile participant can occupy: at most a stated bound. Other participants match
//! and exchange samples meanwhile.
//!
//! The hostile participant has a validated address. It announces endpoints, begins samples and
//! sends requests, as many as it can. This is a separate test binary, because the allocator counts
//! for the whole process.
#![allow(missing_docs)]

mod counting;

#[allow(dead_code)]
#[path = "it/network.rs"]
mod network;
#[allow(dead_code)]
#[path = "it/puppet.rs"]
mod puppet;

use counting::{LIVE, PEAK};
use network::*;
use puppet::*;
use std::sync::atomic::Ordering;
use takt_core::*;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::message::{AckNack, Payload};
use takt_wire::qos::*;
use takt_wire::type_lookup::{Addressee, EquivalenceId, Operation, RequestId, TypeRequest, UnionForm};
use takt_wire::{EntityId, SequenceNumber, SequenceNumberSet};

/// Number of readers, and of writers, of the topic `T` of the participant under test.
const LOCAL: usize = 4;
/// Assumed bound for each matching pair of an endpoint of the peer and a local one.
const PAIR_BYTES: usize = 4 << 10;
/// Assumed bound for everything else that the peer can cause: discovery samples that wait for a
/// missing one, refused matches, tables.
const REST_BYTES: usize = 4 << 20;
/// Assumed bound for what remains after the peer has left: capacity of tables and lists.
const REMAINING_BYTES: usize = 2 << 20;
/// Number by which the address and the GUID prefix of the hostile participant are chosen.
const HOSTILE: usize = 9;

/// Attack of the hostile participant.
type Attack = fn(&mut Stage, &mut Puppet);

/// Participant under test, with its clock and its endpoints of the topic `T`.
struct Stage {
    node: Participant,
    now: Instant,
    readers: Vec<ReaderHandle>,
    writers: Vec<WriterHandle>,
    frame: Vec<u8>,
}

impl Stage {
    fn new() -> Self {
        let now = Instant(1_000_000_000);
        let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
        let readers = (0..LOCAL)
            .map(|_| node.create_reader(now, reader_spec("T", false, keep_all_reader())).expect("the reader is valid"));
        let readers = readers.collect();
        let writers = (0..LOCAL)
            .map(|_| node.create_writer(now, writer_spec("T", false, keep_all_writer())).expect("the writer is valid"));
        let writers = writers.collect();
        Self { node, now, readers, writers, frame: vec![0; 65_507] }
    }

    /// Drives the participant for this time. Its datagrams are discarded.
    fn run(&mut self, ms: u64) {
        let end = Instant(self.now.0 + ms * 1_000_000);
        loop {
            while self.node.poll_transmit(self.now, &mut self.frame).is_some() {}
            while self.node.poll_event().is_some() {}
            let Some(due) = self.node.poll_timeout().filter(|due| *due <= end) else { break };
            self.now = due.max(self.now);
            self.node.handle_timeout(self.now);
        }
        self.now = end;
    }

    fn send(&mut self, puppet: &Puppet, writer: EntityId, sn: i64, payload: Payload<'_>) {
        puppet.say(&mut self.node, self.now, |message| {
            message.data(&data(writer, sn, payload)).expect("it fits");
        });
    }
}

fn long_partition() -> Partition {
    Partition { names: (0..64).map(|number| format!("{number:0>250}")).collect() }
}

/// Returns a writer whose announcement is nearly as long as the limits allow.
fn long_publication(puppet: &Puppet, key: u32) -> PublicationData {
    let mut data = puppet.publication(key, true);
    data.topic_name = format!("{key:0>255}");
    data.type_name = "t".repeat(255);
    data.partition = long_partition();
    data.qos.user_data.0 = vec![1; 20_000];
    data.topic_data.0 = vec![2; 10_000];
    data.group_data.0 = vec![3; 10_000];
    data
}

/// Returns a reader whose announcement is nearly as long as the limits allow.
fn long_subscription(puppet: &Puppet, key: u32) -> SubscriptionData {
    let mut data = puppet.subscription(key, true);
    data.topic_name = format!("{key:0>255}");
    data.type_name = "t".repeat(255);
    data.partition = long_partition();
    data.qos.user_data.0 = vec![1; 40_000];
    data
}

/// Announces itself and 600 endpoints of each kind, all with long announcements.
fn announce_long_data(stage: &mut Stage, puppet: &mut Puppet) {
    for len in [10_000, 30_000, 60_000] {
        let announcement = ParticipantData { user_data: UserData(vec![4; len]), ..puppet.announcement() };
        stage.send(puppet, EntityId::SPDP_WRITER, 1, Payload::Data(&announcement.to_bytes()));
    }
    for key in 1..=600 {
        puppet.publish(&mut stage.node, stage.now, &long_publication(puppet, key));
        puppet.subscribe(&mut stage.node, stage.now, &long_subscription(puppet, key));
    }
    // The same writers once more, with other content.
    for key in 1..=600 {
        puppet.publish(&mut stage.node, stage.now, &long_publication(puppet, 601 - key));
    }
}

/// Announces many more endpoints than the limits allow, with short announcements.
fn announce_many_endpoints(stage: &mut Stage, puppet: &mut Puppet) {
    for key in 1..=70_000 {
        let mut publication = puppet.publication(key, true);
        publication.topic_name = "other".into();
        puppet.publish(&mut stage.node, stage.now, &publication);
        let mut subscription = puppet.subscription(key, true);
        subscription.topic_name = "other".into();
        puppet.subscribe(&mut stage.node, stage.now, &subscription);
        if key % 1_000 == 0 {
            stage.run(1);
        }
    }
}

/// Matches 300 endpoints of each kind. Each writer begins samples that it never completes, and
/// sends samples that wait for a missing one.
fn match_endpoints(stage: &mut Stage, puppet: &mut Puppet) {
    for key in 1..=300 {
        puppet.publish(&mut stage.node, stage.now, &puppet.publication(key, true));
        puppet.subscribe(&mut stage.node, stage.now, &puppet.subscription(key, true));
        // This writer has another type and partition: each local reader refuses the match.
        let mut publication = long_publication(puppet, 10_000 + key);
        publication.topic_name = "T".into();
        puppet.publish(&mut stage.node, stage.now, &publication);
    }
    let (part, complete) = (payload(1, 1_000), payload(2, 100));
    for key in 1..=300 {
        let writer = EntityId::user_writer(key, false);
        let heartbeat = puppet.heartbeat(writer, 1, 500);
        puppet.say(&mut stage.node, stage.now, |message| {
            message.heartbeat(&heartbeat).expect("it fits");
            (2..40).for_each(|sn| message.data_frag(&fragment(writer, sn, 1, 1 << 20, &part)).expect("it fits"));
            (40..400).for_each(|sn| {
                let _ = message.data(&data(writer, sn, Payload::Data(&complete)));
            });
        });
    }
    stage.run(20);
}

/// Sends discovery samples that wait for missing ones, type requests, and acknowledgments of
/// unknown readers.
fn send_requests(stage: &mut Stage, puppet: &mut Puppet) {
    let long = long_publication(puppet, 1).to_bytes();
    for writer in [EntityId::SEDP_PUB_WRITER, EntityId::SEDP_SUB_WRITER, EntityId::P2P_MESSAGE_WRITER] {
        (200_000..200_600).for_each(|sn| stage.send(puppet, writer, sn, Payload::Data(&long)));
        let heartbeat = puppet.heartbeat(writer, 200_000, 200_500);
        puppet.say(&mut stage.node, stage.now, |message| message.heartbeat(&heartbeat).expect("it fits"));
        (200_001..200_600).for_each(|sn| stage.send(puppet, writer, sn, Payload::Data(&long)));
    }
    let writer = EntityId::TYPE_LOOKUP_REQUEST_WRITER;
    let request = TypeRequest {
        id: RequestId { writer: puppet.guid(writer), number: 1 },
        addressee: Addressee::Participant(stage.node.guid()),
        operation: Operation::Types((0..100).map(|n| EquivalenceId::new(EquivalenceId::COMPLETE, [n; 14])).collect()),
        form: UnionForm::Final,
    };
    let request = request.to_bytes();
    for sn in 1..1_000 {
        let heartbeat = puppet.heartbeat(writer, 1, sn);
        puppet.say(&mut stage.node, stage.now, |message| message.heartbeat(&heartbeat).expect("it fits"));
        stage.send(puppet, writer, sn, Payload::Data(&request));
    }
    for count in 1..1_000 {
        let mut reader_sn_state = SequenceNumberSet::new(SequenceNumber(1));
        (1..256).for_each(|sn| {
            reader_sn_state.insert(SequenceNumber(sn));
        });
        puppet.say(&mut stage.node, stage.now, |message| {
            for key in 1..100 {
                let (reader, writer) = (EntityId::user_reader(key, false), EntityId::user_writer(5, false));
                message.acknack(&AckNack { reader, writer, reader_sn_state, count, is_final: false }).expect("it fits");
            }
        });
        stage.run(0);
    }
}

/// Checks that a well-behaved participant matches, and that its sample arrives.
fn assert_served(stage: &mut Stage, number: usize) {
    let mut honest = Puppet::new(number);
    honest.join(&mut stage.node, stage.now);
    honest.publish(&mut stage.node, stage.now, &honest.publication(1, true));
    honest.subscribe(&mut stage.node, stage.now, &honest.subscription(1, true));
    // A writer counts a match once the reader's participant has acknowledged the writer.
    honest.acknowledge_writers(&mut stage.node, stage.now, LOCAL as i64);
    let guid = honest.publication(1, true).guid;
    for reader in &stage.readers {
        let matched = stage.node.matched_publications(*reader).expect("the reader exists");
        assert!(matched.contains(&guid), "participant {number}: {matched:?}");
    }
    let guid = honest.subscription(1, true).guid;
    for writer in &stage.writers {
        let matched = stage.node.matched_subscriptions(*writer).expect("the writer exists");
        assert!(matched.contains(&guid), "participant {number}: {matched:?}");
    }
    let writer = EntityId::user_writer(1, false);
    let heartbeat = honest.heartbeat(writer, 1, 1);
    let bytes = payload(number as u32, 30_000);
    honest.say(&mut stage.node, stage.now, |message| {
        message.heartbeat(&heartbeat).expect("it fits");
        for (index, part) in (1..).zip(bytes.chunks(1_000)) {
            message.data_frag(&fragment(writer, 1, index, 30_000, part)).expect("it fits");
        }
    });
    for reader in &stage.readers {
        let mut arrived = false;
        let mut cursor = ReadCursor::default();
        while let Some(sample) =
            stage.node.read_next(stage.now, *reader, Selector::TAKE, &mut cursor).expect("the reader exists")
        {
            arrived |= sample.payload == bytes;
        }
        assert!(arrived, "the sample of participant {number} is missing");
    }
    honest.leave(&mut stage.node, stage.now);
}

#[test]
fn hostile_participant_takes_at_most_its_share_and_others_are_served() {
    let mut stage = Stage::new();
    assert_served(&mut stage, 20);
    stage.run(1_000);
    let limits = Limits::default();
    let pairs = limits.max_endpoints_per_participant * LOCAL;
    let bound = limits.max_discovery_bytes_per_participant + pairs * PAIR_BYTES + REST_BYTES;
    let before = LIVE.load(Ordering::Relaxed);
    let attacks: [(&str, Attack); 4] = [
        ("long announcements", announce_long_data),
        ("many endpoints", announce_many_endpoints),
        ("matches", match_endpoints),
        ("requests", send_requests),
    ];
    let mut hostile = Puppet::new(HOSTILE);
    for (number, (name, attack)) in (21..).zip(attacks) {
        hostile.leave(&mut stage.node, stage.now);
        let sn = hostile.spdp_sn.get();
        hostile = Puppet::new(HOSTILE);
        hostile.spdp_sn.set(sn);
        hostile.join(&mut stage.node, stage.now);
        assert_eq!(stage.node.discovered_participants().len(), 1, "{name}");
        PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
        attack(&mut stage, &mut hostile);
        let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
        println!("{name}: at most {peak} of {bound} octets");
        assert!(peak <= bound, "{name}: {peak} octets, {bound} allowed");
        assert_served(&mut stage, number);
    }
    hostile.leave(&mut stage.node, stage.now);
    stage.run(60_000);
    let rest = LIVE.load(Ordering::Relaxed).saturating_sub(before);
    println!("{rest} octets remain");
    assert!(rest <= REMAINING_BYTES, "{rest} octets remain, {REMAINING_BYTES} allowed");
    assert!(stage.node.counters().refused_remote_entities > 1_000);
}
