//! Group presentation with writers of other vendors, which omit group information
//! (DDS 1.4 §2.2.3.6, RTPS 2.5 §8.7.5).

use crate::network::*;
use crate::puppet::*;
use crate::qos::groups::{BOTH, COHERENT, ORDERED, group};
use takt_core::*;
use takt_wire::builder::DataEmit;
use takt_wire::inline_qos::InlineQosBuilder;
use takt_wire::message::{Payload, Submessage};
use takt_wire::qos::*;
use takt_wire::{EntityId, Locator, SequenceNumber};

/// Sends a change of a set by a writer of another vendor. It omits the group information, or sends
/// `gsn` with the changes of the set.
fn send_member(
    puppet: &Puppet,
    node: &mut Participant,
    writer: EntityId,
    sn: i64,
    set: Option<i64>,
    gsn: Option<(i64, i64)>,
) {
    let now = Instant(1_000_000_000);
    let mut inline = InlineQosBuilder::<64>::new();
    inline.coherent_set(SequenceNumber(set.unwrap_or(-1 << 32))).expect("it fits");
    if let Some((gsn, group_set)) = gsn.filter(|_| set.is_some()) {
        inline.group_seq_num(SequenceNumber(gsn)).expect("it fits");
        inline.group_coherent_set(SequenceNumber(group_set)).expect("it fits");
    }
    let inline_qos = inline.finish().expect("it fits").to_vec();
    let bytes = payload(sn as u32, 12);
    let content = if set.is_some() { Payload::Data(&bytes) } else { Payload::None };
    puppet.say(node, now, |message| {
        let data = data(writer, sn, content);
        message.data(&DataEmit { inline_qos: Some(&inline_qos), ..data }).expect("it fits");
    });
}

#[test]
fn sets_without_group_information_are_presented_per_writer_with_a_caution() {
    // Group information of the changes of a set: none, the group sequence number, or also the group
    // set. The ends of the sets have none.
    let worlds = [(COHERENT, 0), (BOTH, 0), (COHERENT, 1), (BOTH, 1), (COHERENT, 2)];
    for ((coherent, ordered), gsn_info) in worlds {
        let now = Instant(1_000_000_000);
        let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
        let presentation = group(coherent, ordered);
        let subscriber = node.create_subscriber(presentation).expect("write accepted");
        let reader_of = |node: &mut Participant, topic: &str| {
            let mut spec = reader_spec(topic, false, keep_all_reader());
            (spec.group, spec.subscriber.presentation) = (Some(subscriber), presentation);
            node.create_reader(now, spec).expect("the reader is valid")
        };
        let readers = [reader_of(&mut node, "T"), reader_of(&mut node, "U")];
        let mut puppet = Puppet::new(9);
        puppet.join(&mut node, now);
        let writers = [EntityId::user_writer(1, false), EntityId::user_writer(2, false)];
        for (key, topic) in [(1, "T"), (2, "U")] {
            let mut publication = puppet.publication(key, true);
            publication.topic_name = topic.into();
            (publication.presentation, publication.group_entity_id) = (presentation, EntityId::user_publisher(7));
            puppet.publish(&mut node, now, &publication);
        }
        for writer in writers {
            let heartbeat = puppet.heartbeat(writer, 1, 0);
            puppet.say(&mut node, now, |message| message.heartbeat(&heartbeat).expect("it fits"));
        }
        let shown = |node: &mut Participant| {
            node.begin_access(subscriber).expect("it exists");
            let taken = readers.map(|reader| {
                let (mut taken, mut cursor) = (Vec::new(), ReadCursor::default());
                while let Some(sample) = node.read_next(now, reader, Selector::TAKE, &mut cursor).expect("it exists") {
                    taken.push(sample.info.sequence_number.0);
                }
                taken
            });
            node.end_access(now, subscriber).expect("it has begun");
            taken
        };
        let texts: Vec<_> = node.cautions().map(|caution| caution.what).collect();
        assert!(texts.iter().all(|text| text.contains("HEARTBEATs")) && texts.len() == 2, "{texts:?}");
        for set in [1, 4, 7] {
            for (at, writer) in (0..).zip(writers) {
                for member in 0..2 {
                    let group_set = if gsn_info == 2 { 2 * set } else { 0 };
                    let gsn = (gsn_info > 0).then_some((2 * set + 2 * at + member, group_set));
                    send_member(&puppet, &mut node, writer, set + member, Some(set), gsn);
                }
            }
            assert_eq!(shown(&mut node), [vec![], vec![]], "set {set} has not ended");
            send_member(&puppet, &mut node, writers[0], set + 2, None, None);
            assert_eq!(shown(&mut node), [vec![set, set + 1], vec![]], "set {set} of the second writer has not ended");
            send_member(&puppet, &mut node, writers[1], set + 2, None, None);
            assert_eq!(shown(&mut node), [vec![], vec![set, set + 1]]);
        }
        let cautions: Vec<_> = node.cautions().collect();
        let pairs: Vec<_> = cautions.iter().map(|caution| (caution.writer(), caution.reader())).collect();
        let expected = [0, 1].map(|at| (puppet.guid(writers[at]), node.reader_guid(readers[at]).expect("it exists")));
        assert_eq!(pairs, expected);
        let text = cautions[0].to_string();
        assert!(text.contains("PID_GROUP_SEQ_NUM") && text.contains("topic 'T'"), "{text}");
        assert!(std::iter::from_fn(|| node.poll_event()).any(|event| event == Event::PairsCautioned));
    }
}

/// Creates readers of two topics, and writers of both by another vendor, of one publisher unless
/// `publisher` is unknown. Their HEARTBEATs have no group information.
fn world_of_vague_heartbeats(
    presentation: Presentation,
    publisher: EntityId,
) -> (Participant, SubscriberHandle, [ReaderHandle; 2], Puppet, [EntityId; 2]) {
    let now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
    let subscriber = node.create_subscriber(presentation).expect("write accepted");
    let readers = ["T", "U"].map(|topic| {
        let mut spec = reader_spec(topic, false, keep_all_reader());
        (spec.group, spec.subscriber.presentation) = (Some(subscriber), presentation);
        node.create_reader(now, spec).expect("the reader is valid")
    });
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    let writers = [EntityId::user_writer(1, false), EntityId::user_writer(2, false)];
    for (key, topic) in [(1, "T"), (2, "U")] {
        let mut publication = puppet.publication(key, true);
        publication.topic_name = topic.into();
        (publication.presentation, publication.group_entity_id) = (presentation, publisher);
        puppet.publish(&mut node, now, &publication);
    }
    for writer in writers {
        let heartbeat = puppet.heartbeat(writer, 1, 0);
        puppet.say(&mut node, now, |message| message.heartbeat(&heartbeat).expect("it fits"));
    }
    (node, subscriber, readers, puppet, writers)
}

/// Sends a change with the number `sn` at its writer and in its group. `set`: the change belongs to
/// the set that begins with the first change, or ends that set.
fn send_group_heartbeat(
    puppet: &Puppet,
    node: &mut Participant,
    now: Instant,
    writer: EntityId,
    sn: i64,
    set: Option<Part>,
) {
    let mut inline = InlineQosBuilder::<64>::new();
    inline.group_seq_num(SequenceNumber(sn)).expect("it fits");
    if let Some(part) = set {
        inline.coherent_set(SequenceNumber(if part == Part::Member { 1 } else { -1 << 32 })).expect("it fits");
        inline.group_coherent_set(SequenceNumber(1)).expect("it fits");
    }
    let inline_qos = inline.finish().expect("it fits").to_vec();
    let bytes = payload(sn as u32, 12);
    let content = if set == Some(Part::End) { Payload::None } else { Payload::Data(&bytes) };
    puppet.say(node, now, |message| {
        message.data(&DataEmit { inline_qos: Some(&inline_qos), ..data(writer, sn, content) }).expect("it fits");
    });
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Member,
    End,
}

fn taken_of(node: &mut Participant, now: Instant, subscriber: SubscriberHandle, readers: &[ReaderHandle]) -> Vec<i64> {
    node.begin_access(subscriber).expect("it exists");
    let mut taken = Vec::new();
    for &reader in readers {
        let mut cursor = ReadCursor::default();
        while let Some(sample) = node.read_next(now, reader, Selector::TAKE, &mut cursor).expect("it exists") {
            taken.push(sample.info.sequence_number.0);
        }
    }
    node.end_access(now, subscriber).expect("it has begun");
    taken
}

/// Returns whether an acknowledgment to the writer requests a heartbeat.
fn requests_heartbeat(sent: &[(Vec<Locator>, Vec<u8>)], writer: EntityId) -> bool {
    let requests = |submessage: &Submessage<'_>| matches!(submessage, Submessage::AckNack(it) if it.writer == writer && !it.is_final);
    count(sent, requests) > 0
}

#[test]
fn writer_without_group_heartbeats_delays_others_until_it_answers() {
    for (access, set) in [(ORDERED, [None; 3]), (COHERENT, [Part::Member, Part::Member, Part::End].map(Some))] {
        let presentation = group(access.0, access.1);
        let world = world_of_vague_heartbeats(presentation, EntityId::user_publisher(7));
        let (mut node, subscriber, readers, mut puppet, writers) = world;
        let mut now = Instant(1_000_000_000);
        run_alone(&mut node, &mut now, 50);
        for (sn, part) in (1..).zip(set) {
            send_group_heartbeat(&puppet, &mut node, now, writers[0], sn, part);
        }
        let is_ordered = access == ORDERED;
        let early: &[i64] = if is_ordered { &[1] } else { &[] };
        assert_eq!(taken_of(&mut node, now, subscriber, &readers), early, "the other writer may have written before");
        let heartbeat = puppet.heartbeat(writers[1], 1, 0);
        puppet.say(&mut node, now, |message| message.heartbeat(&heartbeat).expect("it fits"));
        assert_eq!(taken_of(&mut node, now, subscriber, &readers), [], "that heartbeat may have been sent before");
        assert!(requests_heartbeat(&run_alone(&mut node, &mut now, 20), writers[1]));
        let heartbeat = puppet.heartbeat(writers[1], 1, 0);
        puppet.say(&mut node, now, |message| message.heartbeat(&heartbeat).expect("it fits"));
        let rest: &[i64] = if is_ordered { &[2, 3] } else { &[1, 2] };
        assert_eq!(taken_of(&mut node, now, subscriber, &readers), rest);
        let texts: Vec<_> = node.cautions().map(|caution| caution.to_string()).collect();
        assert!(texts.len() == 2 && texts[1].contains("HEARTBEATs") && texts[1].contains("topic 'U'"), "{texts:?}");
    }
}

#[test]
fn group_writer_without_announced_publisher_is_reported_by_a_caution() {
    let (mut node, _, readers, puppet, writers) = world_of_vague_heartbeats(group(true, false), EntityId::UNKNOWN);
    let cautions: Vec<_> = node.cautions().collect();
    let pairs: Vec<_> = cautions.iter().map(|caution| (caution.writer(), caution.reader())).collect();
    let expected = [0, 1].map(|at| (puppet.guid(writers[at]), node.reader_guid(readers[at]).expect("it exists")));
    assert_eq!(pairs, expected);
    assert!(cautions.iter().all(|caution| caution.kind == CautionKind::Presentation));
    let text = cautions[0].to_string();
    assert!(text.contains("PID_GROUP_ENTITYID") && text.contains("topic 'T'"), "{text}");

    let (node, ..) = world_of_vague_heartbeats(group(false, false), EntityId::UNKNOWN);
    assert_eq!(node.cautions().count(), 0, "without coherent or ordered access nothing is missing");
}

/// As tools use it, which have only the announcements.
#[test]
fn caution_about_presentation_follows_from_the_announcements() {
    let puppet = Puppet::new(9);
    let (mut writer, mut reader) = (puppet.publication(1, true), puppet.subscription(2, true));
    let publisher = EntityId::user_publisher(7);
    // Wanted PRESENTATION of the reader; scope and publisher of the writer.
    for (wanted, scope, publisher, is_lacking) in [
        (group(true, false), AccessScope::Group, EntityId::UNKNOWN, true),
        (group(false, true), AccessScope::Group, EntityId::UNKNOWN, true),
        (group(false, false), AccessScope::Group, EntityId::UNKNOWN, false),
        (group(true, false), AccessScope::Group, publisher, false),
        (group(true, false), AccessScope::Topic, EntityId::UNKNOWN, false),
    ] {
        (reader.presentation, writer.group_entity_id) = (wanted, publisher);
        writer.presentation = Presentation { access_scope: scope, ..wanted };
        let caution = presentation_caution(&writer, &reader);
        assert_eq!(caution.is_some_and(|text| text.contains("PID_GROUP_ENTITYID")), is_lacking, "{wanted:?} {scope:?}");
    }
}
