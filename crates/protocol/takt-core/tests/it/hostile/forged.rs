//! Well-formed forgeries of a matched peer: numbers at the end of their range, ranges without an
//! end, messages of other participants. Only the forger may lose service.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::message::{Gap, Payload, Submessage};
use takt_wire::{EntityId, SequenceNumber, SequenceNumberSet};

/// Returns a participant with one reader of the topic `T`.
fn listener(qos: takt_wire::qos::DataReaderQos) -> (Participant, ReaderHandle, Instant) {
    let now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
    let reader = node.create_reader(now, reader_spec("T", false, qos)).expect("the reader is valid");
    outgoing(&mut node, now);
    (node, reader, now)
}

fn take_all(node: &mut Participant, now: Instant, reader: ReaderHandle) -> Vec<i64> {
    let mut taken = Vec::new();
    let mut cursor = ReadCursor::default();
    while let Some(sample) = node.read_next(now, reader, Selector::TAKE, &mut cursor).expect("the reader exists") {
        taken.push(sample.info.sequence_number.0);
    }
    taken
}

#[test]
fn history_at_the_end_of_the_number_range_is_served() {
    let (mut node, reader, mut now) = listener(keep_all_reader());
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    puppet.publish(&mut node, now, &puppet.publication(1, true));
    let writer = EntityId::user_writer(1, false);
    let bytes = payload(1, 20);
    let heartbeat = puppet.heartbeat(writer, i64::MAX - 3, i64::MAX);
    puppet.say(&mut node, now, |message| {
        message.heartbeat(&heartbeat).expect("it fits");
        for sn in [i64::MAX, i64::MAX - 1, i64::MAX - 3, i64::MAX - 2, i64::MAX, i64::MAX - 1] {
            message.data(&data(writer, sn, Payload::Data(&bytes))).expect("it fits");
        }
    });
    assert_eq!(take_all(&mut node, now, reader), [i64::MAX - 3, i64::MAX - 2, i64::MAX - 1]);
    assert_eq!((node.counters().out_of_window, node.counters().duplicate_samples), (2, 1));
    let sent = run_alone(&mut node, &mut now, 1_000);
    assert!(count(&sent, |submessage| matches!(submessage, Submessage::AckNack(_))) > 0);
}

#[test]
fn samples_at_the_end_of_the_number_range_are_removed_with_their_writer() {
    let mut qos = keep_all_reader();
    qos.resource_limits.max_samples = Some(4);
    let (mut node, reader, now) = listener(qos);
    let bytes = payload(1, 20);
    let writer = EntityId::user_writer(1, false);
    for _ in 0..3_000 {
        let mut puppet = Puppet::new(9);
        puppet.join(&mut node, now);
        puppet.publish(&mut node, now, &puppet.publication(1, true));
        let heartbeat = puppet.heartbeat(writer, i64::MAX - 2, i64::MAX);
        puppet.say(&mut node, now, |message| {
            message.heartbeat(&heartbeat).expect("it fits");
            message.data(&data(writer, i64::MAX - 1, Payload::Data(&bytes))).expect("it fits");
        });
        puppet.leave(&mut node, now);
        outgoing(&mut node, now);
        while node.poll_event().is_some() {}
    }
    assert_eq!(node.counters().rejected_samples, 0);
    let mut honest = Puppet::new(10);
    honest.join(&mut node, now);
    honest.publish(&mut node, now, &honest.publication(1, true));
    let heartbeat = honest.heartbeat(writer, 1, 1);
    honest.say(&mut node, now, |message| {
        message.heartbeat(&heartbeat).expect("it fits");
        message.data(&data(writer, 1, Payload::Data(&bytes))).expect("it fits");
    });
    assert_eq!(take_all(&mut node, now, reader), [1]);
}

#[test]
fn lost_samples_are_summed_without_overflow() {
    for reliable in [true, false] {
        let mut qos = keep_all_reader();
        qos.reliability = if reliable { crate::network::reliable() } else { best_effort() };
        let (mut node, reader, now) = listener(qos);
        let bytes = payload(1, 20);
        let writer = EntityId::user_writer(1, false);
        for round in 0..5 {
            let mut puppet = Puppet::new(9 + round);
            puppet.join(&mut node, now);
            puppet.publish(&mut node, now, &puppet.publication(1, reliable));
            let heartbeats = [puppet.heartbeat(writer, 1, 1), puppet.heartbeat(writer, i64::MAX - 1, i64::MAX)];
            puppet.say(&mut node, now, |message| {
                message.heartbeat(&heartbeats[0]).expect("it fits");
                message.data(&data(writer, 1, Payload::Data(&bytes))).expect("it fits");
                message.heartbeat(&heartbeats[1]).expect("it fits");
                message.data(&data(writer, i64::MAX - 1, Payload::Data(&bytes))).expect("it fits");
            });
        }
        let lost = node.sample_lost_status(reader).expect("the reader exists");
        assert_eq!(lost.total_count, u64::MAX, "reliable: {reliable}");
    }
}

#[test]
fn queued_messages_for_a_departed_writer_are_not_sent_to_its_successor() {
    let (mut node, _, now) = listener(keep_all_reader());
    for number in 9..20 {
        let mut puppet = Puppet::new(number);
        puppet.join(&mut node, now);
        puppet.publish(&mut node, now, &puppet.publication(1, true));
        puppet.leave(&mut node, now);
    }
    let mut last = Puppet::new(20);
    last.announce_itself(&mut node, now);
    let mut sent = outgoing(&mut node, now);
    assert_eq!(count(&sent, |submessage| matches!(submessage, Submessage::Data(_))), 1, "one greeting");
    let challenge: Vec<_> = sent.iter().flat_map(|(_, datagram)| challenge_in(datagram)).collect();
    assert_eq!(challenge.len(), 2, "it is challenged");
    last.answer_challenge(&mut node, now, &challenge);
    last.publish(&mut node, now, &last.publication(1, false));
    sent.extend(outgoing(&mut node, now));
    let to_last = sent.iter().filter(|(to, _)| *to == [last.address]).count();
    let requests_from_user_writer = |submessage: &Submessage<'_>| matches!(submessage, Submessage::AckNack(acknack) if acknack.writer == EntityId::user_writer(1, false));
    assert_eq!(count(&sent, requests_from_user_writer), 0, "a best-effort writer is never probed");
    assert_eq!(to_last, sent.len(), "only the last one remains: {sent:?}");
}

#[test]
fn gap_without_an_end_takes_one_step() {
    let (mut node, reader, now) = listener(keep_all_reader());
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    puppet.publish(&mut node, now, &puppet.publication(1, true));
    let writer = EntityId::user_writer(1, false);
    let heartbeat = puppet.heartbeat(writer, 1, 10);
    let bytes = payload(1, 20);
    puppet.say(&mut node, now, |message| {
        message.heartbeat(&heartbeat).expect("it fits");
        message
            .gap(&Gap {
                reader: EntityId::UNKNOWN,
                writer,
                gap_start: SequenceNumber(1),
                gap_list: SequenceNumberSet::new(SequenceNumber(i64::MAX)),
            })
            .expect("it fits");
        for sn in [10, i64::MAX - 1, i64::MAX] {
            message.data(&data(writer, sn, Payload::Data(&bytes))).expect("it fits");
        }
    });
    assert_eq!(take_all(&mut node, now, reader), []);
    assert_eq!((node.counters().duplicate_samples, node.counters().out_of_window), (2, 1));
}

#[test]
fn participant_cannot_announce_endpoints_of_others() {
    let (mut node, reader, now) = listener(keep_all_reader());
    let own_writer = node.create_writer(now, writer_spec("T", false, keep_all_writer())).expect("the writer is valid");
    let own_guid = node.writer_guid(own_writer).expect("the writer exists");
    let mut honest = Puppet::new(9);
    honest.join(&mut node, now);
    honest.publish(&mut node, now, &honest.publication(1, true));
    let mut liar = Puppet::new(10);
    liar.join(&mut node, now);
    // The source is the forger and the payload names another participant; and the same without a
    // key hash of its own.
    for (sn, victim) in (1..).zip([honest.publication(1, true).guid, own_guid]) {
        let mut inline = takt_wire::inline_qos::InlineQosBuilder::<64>::new();
        inline.key_hash(liar.guid(EntityId::user_writer(sn as u32, false)).to_bytes()).expect("it fits");
        inline.status_info(3).expect("it fits");
        let inline_qos = inline.finish().expect("it fits").to_vec();
        let key = takt_wire::discovery::key_payload(victim);
        let heartbeat = liar.heartbeat(EntityId::SEDP_PUB_WRITER, 1, sn);
        liar.say(&mut node, now, |message| {
            message.heartbeat(&heartbeat).expect("it fits");
            let data = data(EntityId::SEDP_PUB_WRITER, sn, Payload::Key(&key));
            message.data(&takt_wire::DataEmit { inline_qos: Some(&inline_qos), ..data }).expect("it fits");
        });
    }
    let mut foreign = honest.publication(1, true);
    foreign.type_name = "Other".into();
    let heartbeat = liar.heartbeat(EntityId::SEDP_PUB_WRITER, 1, 3);
    liar.say(&mut node, now, |message| {
        message.heartbeat(&heartbeat).expect("it fits");
        let bytes = foreign.to_bytes();
        message.data(&data(EntityId::SEDP_PUB_WRITER, 3, Payload::Data(&bytes))).expect("it fits");
    });
    assert_eq!(node.counters().malformed_discovery, 3);
    let matched = node.matched_publications(reader).expect("the reader exists");
    assert_eq!(matched, [own_guid, honest.publication(1, true).guid]);
}

#[test]
fn endpoints_of_the_wrong_kind_are_ignored() {
    let (mut node, reader, now) = listener(keep_all_reader());
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    for id in [EntityId::SEDP_PUB_WRITER, EntityId::user_reader(1, false), EntityId::PARTICIPANT, EntityId::UNKNOWN] {
        let mut publication = puppet.publication(1, true);
        publication.guid = puppet.guid(id);
        puppet.publish(&mut node, now, &publication);
    }
    for id in [EntityId::SEDP_SUB_READER, EntityId::user_writer(1, false)] {
        let mut subscription = puppet.subscription(1, true);
        subscription.guid = puppet.guid(id);
        puppet.subscribe(&mut node, now, &subscription);
    }
    assert_eq!(node.counters().malformed_discovery, 6);
    assert_eq!(node.matched_publications(reader).expect("the reader exists"), []);
    puppet.publish(&mut node, now, &puppet.publication(1, true));
    assert_eq!(node.matched_publications(reader).expect("the reader exists").len(), 1);
}

#[test]
fn last_event_of_a_participant_reflects_its_state() {
    let (mut node, _, now) = listener(keep_all_reader());
    let mut puppet = Puppet::new(9);
    for _ in 0..3 {
        puppet.join(&mut node, now);
        puppet.leave(&mut node, now);
    }
    puppet.join(&mut node, now);
    let events: Vec<_> = std::iter::from_fn(|| node.poll_event()).collect();
    let guid = puppet.guid(EntityId::PARTICIPANT);
    assert_eq!(events, [Event::ParticipantLost(guid), Event::ParticipantDiscovered(guid)]);
}

#[test]
fn best_effort_reader_continues_after_lost_fragments() {
    let mut qos = keep_all_reader();
    qos.reliability = best_effort();
    let (mut node, reader, now) = listener(qos);
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    puppet.publish(&mut node, now, &puppet.publication(1, false));
    let writer = EntityId::user_writer(1, false);
    let sample = payload(1, 2_000);
    for sn in 1..=21 {
        let parts: &[u32] = if sn == 21 { &[1, 2] } else { &[1] };
        for &number in parts {
            let bytes = &sample[(number as usize - 1) * 1_000..number as usize * 1_000];
            puppet.say(&mut node, now, |message| {
                message.data_frag(&fragment(writer, sn, number, 2_000, bytes)).expect("it fits");
            });
        }
    }
    assert_eq!(take_all(&mut node, now, reader), [21]);
}

#[test]
fn best_effort_reader_counts_no_loss_before_a_fragmented_first_sample() {
    let mut qos = keep_all_reader();
    qos.reliability = best_effort();
    let (mut node, reader, now) = listener(qos);
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    puppet.publish(&mut node, now, &puppet.publication(1, false));
    let writer = EntityId::user_writer(1, false);
    let sample = payload(1, 2_000);
    for (sn, lost) in [(21, 0), (23, 1)] {
        for number in 1..=2 {
            let bytes = &sample[(number as usize - 1) * 1_000..number as usize * 1_000];
            puppet.say(&mut node, now, |message| {
                message.data_frag(&fragment(writer, sn, number, 2_000, bytes)).expect("it fits");
            });
        }
        let status = node.sample_lost_status(reader).expect("the reader exists");
        assert_eq!(status.total_count, lost, "after sample {sn}");
    }
    assert_eq!(take_all(&mut node, now, reader), [21, 23]);
}

/// Returns a participant with a reader whose memory is small.
fn small_listener(memory: usize, reassembly: usize) -> (Participant, ReaderHandle, Instant) {
    let now = Instant(1_000_000_000);
    let mut config = config(0, 1500);
    config.limits.endpoint_memory_bytes = memory;
    config.limits.reassembly_bytes = reassembly;
    let mut node = Participant::new(config, now).expect("the configuration is valid");
    let reader = node.create_reader(now, reader_spec("T", false, keep_all_reader())).expect("the reader is valid");
    (node, reader, now)
}

#[test]
fn incomplete_samples_of_many_writers_share_one_budget_and_are_dropped_when_idle() {
    let (mut node, reader, now) = small_listener(64 << 20, 4 << 20);
    let writer = EntityId::user_writer(1, false);
    let bytes = payload(1, 1_000);
    for number in 9..49 {
        let mut puppet = Puppet::new(number);
        puppet.join(&mut node, now);
        puppet.publish(&mut node, now, &puppet.publication(1, true));
        let heartbeat = puppet.heartbeat(writer, 1, 1);
        puppet.say(&mut node, now, |message| {
            message.heartbeat(&heartbeat).expect("it fits");
            message.data_frag(&fragment(writer, 1, 1, 1_000_000, &bytes)).expect("it fits");
        });
    }
    assert_eq!(node.counters().rejected_fragments, 36);
    let mut honest = Puppet::new(50);
    honest.join(&mut node, now);
    honest.publish(&mut node, now, &honest.publication(1, true));
    let heartbeat = honest.heartbeat(writer, 1, 1);
    let later = Instant(now.0 + 1_000_000_000);
    honest.say(&mut node, later, |message| {
        message.heartbeat(&heartbeat).expect("it fits");
        for number in [1, 2] {
            message.data_frag(&fragment(writer, 1, number, 2_000, &bytes)).expect("it fits");
        }
    });
    assert_eq!(take_all(&mut node, later, reader), [1]);
}

#[test]
fn waiting_samples_are_dropped_for_the_next_one() {
    let (mut node, reader, now) = small_listener(1 << 20, 1 << 20);
    let writer = EntityId::user_writer(1, false);
    let bytes = payload(1, 20_000);
    let mut puppets: Vec<_> = (9..12).map(Puppet::new).collect();
    puppets.iter_mut().for_each(|puppet| puppet.join(&mut node, now));
    for puppet in &mut puppets {
        puppet.publish(&mut node, now, &puppet.publication(1, true));
        let heartbeat = puppet.heartbeat(writer, 1, 100);
        puppet.say(&mut node, now, |message| message.heartbeat(&heartbeat).expect("it fits"));
        for sn in 2..=100 {
            puppet.say(&mut node, now, |message| {
                message.data(&data(writer, sn, Payload::Data(&bytes))).expect("it fits");
            });
        }
    }
    assert_eq!(node.counters().rejected_samples, 0, "they will be requested again");
    let sent = outgoing(&mut node, now);
    let requests_first = |submessage: &Submessage<'_>| {
        matches!(submessage, Submessage::AckNack(nack)
            if nack.writer == writer && nack.reader_sn_state.contains(SequenceNumber(1)))
    };
    assert_eq!(count(&sent, requests_first), 3);
    for puppet in &puppets {
        puppet.say(&mut node, now, |message| {
            message.data(&data(writer, 1, Payload::Data(&bytes))).expect("it fits");
        });
    }
    let taken = take_all(&mut node, now, reader);
    assert_eq!(taken.iter().filter(|sn| **sn == 1).count(), 3, "{taken:?}");
    for puppet in &puppets {
        for sn in 2..=100 {
            puppet.say(&mut node, now, |message| {
                message.data(&data(writer, sn, Payload::Data(&bytes))).expect("it fits");
            });
            take_all(&mut node, now, reader);
        }
    }
    assert_eq!(node.counters().rejected_samples, 0);
}

#[test]
fn discovery_continues_after_thousands_of_endpoints_left_at_once() {
    let (mut node, reader, now) = listener(keep_all_reader());
    let mut puppets: Vec<_> = (9..21).map(Puppet::new).collect();
    for puppet in &mut puppets {
        puppet.join(&mut node, now);
        for key in 1..=500 {
            let mut publication = puppet.publication(key, true);
            publication.topic_name = "elsewhere".into();
            puppet.publish(&mut node, now, &publication);
        }
    }
    assert_eq!(node.discovered_publications().count(), 6_000);
    let stays = puppets.pop().expect("there are twelve");
    for puppet in &puppets {
        puppet.leave(&mut node, now);
    }
    assert_eq!(node.discovered_publications().count(), 500);
    // Data only: nothing has made the participant process its builtin readers since.
    for key in [501, 502] {
        let bytes = stays.publication(key, true).to_bytes();
        stays.say(&mut node, now, |message| {
            let data = data(EntityId::SEDP_PUB_WRITER, i64::from(key), Payload::Data(&bytes));
            message.data(&data).expect("it fits");
        });
    }
    assert_eq!(node.matched_publications(reader).expect("the reader exists").len(), 2);
}

#[test]
fn forged_sample_does_not_cause_an_endless_exchange() {
    for ahead in [100, 1_000_000] {
        let mut network = Network::new(2, 110);
        let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
        let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
        network.await_match((0, writer), (1, reader));
        network.write(0, writer, &payload(1, 20)).expect("write accepted");
        network.run(1_000);
        let guid = network.nodes[0].writer_guid(writer).expect("the writer exists");
        let mut forger = Puppet::new(9);
        forger.prefix = guid.prefix;
        let bytes = payload(1, 20);
        let now = network.now;
        forger.say(&mut network.nodes[1], now, |message| {
            message.data(&data(guid.entity_id, 1 + ahead, Payload::Data(&bytes))).expect("it fits");
        });
        let before = network.delivered;
        network.run(2_000);
        assert!(network.delivered - before < 20, "{} datagrams", network.delivered - before);
        for number in 2..200 {
            network.write(0, writer, &payload(number, 20)).expect("write accepted");
            network.run(10);
        }
        let honest = network.take_all(1, reader).iter().filter(|(_, bytes)| *bytes != payload(1, 20)).count();
        assert!(honest >= 197, "{honest} samples arrived");
    }
}
