//! Static endpoints: no endpoint discovery protocol, and a list shared by all participants.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::EntityId;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::message::Submessage;
use takt_wire::qos::*;

/// Returns a list with a participant `writer` with a writer and one `reader` with a reader, of
/// topic `T`.
fn list() -> Vec<StaticParticipant> {
    let mut publication = PublicationData {
        topic_name: "T".into(),
        type_name: "Test".into(),
        qos: keep_all_writer(),
        ..Default::default()
    };
    publication.guid.entity_id = EntityId::user_writer(7, false);
    let mut subscription = SubscriptionData {
        topic_name: "T".into(),
        type_name: "Test".into(),
        qos: keep_all_reader(),
        ..Default::default()
    };
    subscription.guid.entity_id = EntityId::user_reader(9, false);
    vec![
        StaticParticipant { name: "writer".into(), publications: vec![publication], ..Default::default() },
        StaticParticipant { name: "reader".into(), subscriptions: vec![subscription], ..Default::default() },
    ]
}

fn named(node: usize, name: &str, list: Vec<StaticParticipant>) -> Config {
    let mut config = Config { static_endpoints: Some(list), ..config(node, 1500) };
    config.qos.entity_name = EntityName(name.into());
    config
}

#[test]
fn endpoints_of_the_list_match_without_endpoint_discovery() {
    let mut network = Network::new(0, 1);
    network.join_with(named(0, "writer", list()));
    network.join_with(named(1, "reader", list()));
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let matched = network.nodes[0].matched_subscriptions(writer).expect("the writer exists");
    assert_eq!(matched[0].entity_id, EntityId::user_reader(9, false));
    for number in 0..50 {
        network.write(0, writer, &payload(number, 100)).expect("write accepted");
    }
    let mut taken = Vec::new();
    assert!(network.run_until(5_000, |network| {
        taken.extend(network.take_all(1, reader).into_iter().map(|(_, bytes)| bytes));
        taken.len() == 50
    }));
    let sedp = set_of(&network.nodes[0].discovered_participants()[0]);
    assert_eq!(sedp, 0, "no participant offers endpoint discovery");
}

fn set_of(data: &takt_wire::discovery::ParticipantData) -> u32 {
    use takt_wire::discovery::builtin_endpoints as set;
    data.available_builtin_endpoints
        & (set::PUBLICATIONS_ANNOUNCER
            | set::PUBLICATIONS_DETECTOR
            | set::SUBSCRIPTIONS_ANNOUNCER
            | set::SUBSCRIPTIONS_DETECTOR)
}

/// The list does not state which writers share a publisher.
#[test]
fn coherent_group_of_listed_writers_causes_a_caution() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent_access: true, ordered_access: false };
    let mut list = list();
    list[0].publications[0].presentation = presentation;
    list[1].subscriptions[0].presentation = presentation;
    let mut network = Network::new(0, 1);
    network.join_with(named(0, "writer", list.clone()));
    network.join_with(named(1, "reader", list));
    let publisher = PublisherQos { presentation, ..Default::default() };
    let writer = network.writer(0, WriterSpec { publisher, ..writer_spec("T", false, keep_all_writer()) });
    let subscriber = SubscriberQos { presentation, ..Default::default() };
    let reader = network.reader(1, ReaderSpec { subscriber, ..reader_spec("T", false, keep_all_reader()) });
    network.await_match((0, writer), (1, reader));
    let cautions: Vec<Caution> = network.nodes[1].cautions().collect();
    let [caution] = &cautions[..] else { panic!("{cautions:?}") };
    assert_eq!((caution.kind, caution.remote.entity_id), (CautionKind::Presentation, EntityId::user_writer(7, false)));
    let text = caution.to_string();
    assert!(text.contains("'T'") && text.contains("writer by writer"), "{text}");
}

#[test]
fn static_endpoints_are_not_announced() {
    let mut now = Instant(1_000_000_000);
    let mut node = Participant::new(named(0, "writer", list()), now).expect("the configuration is valid");
    node.create_writer(now, writer_spec("T", false, keep_all_writer())).expect("it is in the list");
    let mut puppet = Puppet::new(5);
    puppet.join(&mut node, now);
    let sent = run_alone(&mut node, &mut now, 5_000);
    let is_sedp = |id: EntityId| [EntityId::SEDP_PUB_WRITER, EntityId::SEDP_SUB_WRITER].contains(&id);
    assert_eq!(count(&sent, |submessage| matches!(submessage, Submessage::Data(data) if is_sedp(data.writer))), 0);
    assert_eq!(node.counters().unlisted_participants, 1, "the other one has no name");
}

#[test]
fn endpoint_that_is_not_listed_or_contradicts_the_list_is_refused() {
    let now = Instant(1);
    let mut node = Participant::new(named(0, "writer", list()), now).expect("the configuration is valid");
    let other = node.create_writer(now, writer_spec("U", false, keep_all_writer())).expect_err("another topic");
    assert!(matches!(&other, Error::PreconditionNotMet { what } if what.contains("'U'")), "{other}");
    let qos = DataWriterQos { durability: Durability::TransientLocal, ..keep_all_writer() };
    let other = node.create_writer(now, writer_spec("T", false, qos)).expect_err("another durability");
    assert!(matches!(&other, Error::InconsistentPolicy { what } if what.contains("DURABILITY")), "{other}");
    let writer = node.create_writer(now, writer_spec("T", false, keep_all_writer())).expect("it is in the list");
    assert!(node.create_writer(now, writer_spec("T", false, keep_all_writer())).is_err(), "there is only one");
    node.delete_writer(now, writer).expect("it exists");
    node.create_writer(now, writer_spec("T", false, keep_all_writer())).expect("it may come back");
}

#[test]
fn contradicting_list_is_refused() {
    let refusal = |own: &str, list| match Participant::new(named(0, own, list), Instant(1)) {
        Err(Error::BadParameter { what }) => what,
        other => panic!("{other:?}"),
    };
    assert!(refusal("nobody", list()).contains("'nobody'"));
    let twice = [list(), list()].concat();
    assert!(refusal("writer", twice).contains("is used twice"));
    let mut doubled = list();
    let again = doubled[0].publications[0].clone();
    doubled[0].publications.push(again);
    assert!(refusal("writer", doubled).contains("two endpoints"));
    let mut swapped = list();
    swapped[0].publications[0].guid.entity_id = EntityId::user_reader(1, false);
    assert!(refusal("writer", swapped).contains("wrong entity kind"));
}
