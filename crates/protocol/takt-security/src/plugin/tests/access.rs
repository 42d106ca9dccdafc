//! Tests of access control of endpoints by governance and permissions.

use super::*;
use crate::documents::{Criteria, Rule};
use takt_wire::qos::Tag;

fn topic_rule(expression: &str, metadata: ProtectionKind, is_controlled: bool) -> TopicRule {
    TopicRule {
        topic_expression: expression.to_owned(),
        enable_discovery_protection: false,
        enable_liveliness_protection: false,
        enable_read_access_control: is_controlled,
        enable_write_access_control: is_controlled,
        metadata_protection_kind: metadata,
        data_protection_kind: BasicProtectionKind::None,
    }
}

/// Returns a grant to write the topic in one partition with one tag, and nothing else.
fn narrow_grant(name: &str) -> Grant {
    let criteria = Criteria {
        topics: vec![TOPIC.to_owned()],
        partitions: vec!["lab".to_owned()],
        data_tags: vec![("level".to_owned(), "2".to_owned())],
    };
    let rule = Rule {
        line: 0,
        effect: Effect::Allow,
        domains: DomainSet(vec![(0, 0)]),
        publish: vec![criteria],
        subscribe: Vec::new(),
        relay: Vec::new(),
    };
    Grant { rules: vec![rule], default: Effect::Deny, ..grant(name) }
}

fn narrow(name: &str) -> Settings {
    Settings { permissions: signed_permissions(narrow_grant(name)), ..settings(name, &encrypting()) }
}

/// Returns announcements of writers, with the expected refusal text; `None` if the writer is
/// allowed.
fn writers(node: &Node) -> Vec<(PublicationData, Option<&'static str>)> {
    let mut good = node.writer_data(TOPIC);
    good.partition.names = vec!["lab".to_owned()];
    good.qos.data_tag.tags = vec![Tag::new("level", "2")];
    let (mut partition, mut tag, mut topic) = (good.clone(), good.clone(), good.clone());
    partition.partition.names.clear();
    tag.qos.data_tag.tags[0].value = "3".to_owned();
    topic.topic_name = "rt/other".to_owned();
    vec![(good, None), (partition, Some("denies publish")), (tag, Some("denies publish")), (topic, Some("rt/other"))]
}

#[test]
fn local_writer_requires_a_grant_for_topic_partition_and_data_tag() {
    let mut node = Node::new(narrow("Alice"));
    for (data, refusal) in writers(&node) {
        let admitted = node.plugin.admit_writer(clocks(1), &data);
        match refusal {
            None => assert!(admitted.expect("admitted").submessage),
            Some(text) => {
                let reason = admitted.expect_err("refused");
                assert!(reason.starts_with("local writer") && reason.contains(text), "{reason}");
            }
        }
    }
    let reason = node.plugin.admit_reader(clocks(1), &node.data_of_reader()).expect_err("it may write only");
    assert!(reason.starts_with("local reader") && reason.contains("denies subscribe"), "{reason}");
    assert_eq!(take_log(&mut node.plugin).len(), 4);
}

impl Node {
    fn data_of_reader(&self) -> SubscriptionData {
        let mut data = self.reader_data(TOPIC);
        data.partition.names = vec!["lab".to_owned()];
        data
    }
}

#[test]
fn remote_writer_requires_a_grant_and_equal_masks() {
    let mut world = World::pair_of([Node::new(settings("Alice", &encrypting())), Node::new(narrow("Bob"))]);
    let limited = usize::from(world.nodes[1].plugin.own_subject().to_string() == "CN=Bob");
    let (now, all) = (world.now, writers(&world.nodes[limited]));
    let checker = &mut world.nodes[1 - limited];
    let protection = checker.plugin.admit_reader(now, &checker.reader_data(TOPIC)).expect("admitted");
    for (mut data, refusal) in all {
        data.security_info = Some(protection.info);
        let checked = checker.plugin.check_remote_writer(now, READER, &data);
        match refusal {
            None => assert_eq!(checked, Ok(())),
            Some(text) => {
                let reason = checked.expect_err("refused");
                assert!(
                    reason.starts_with("remote writer") && reason.contains("\"CN=Bob\"") && reason.contains(text),
                    "{reason}"
                );
            }
        }
        if refusal.is_none() {
            let masks = takt_wire::discovery::SecurityInfo { attributes: 1 << 31, plugin_attributes: 1 << 31 };
            data.security_info = Some(masks);
            let reason = checker.plugin.check_remote_writer(now, READER, &data).expect_err("masks differ");
            assert!(reason.contains("is_submessage_protected on the local side only"), "{reason}");
        }
    }
    let mut reader = world.nodes[limited].reader_data(TOPIC);
    reader.security_info = Some(protection.info);
    let checker = &mut world.nodes[1 - limited].plugin;
    let reason = checker.check_remote_reader(now, WRITER, &reader).expect_err("no such writer here");
    assert!(reason.contains("was not admitted"), "{reason}");
    let writer =
        PublicationData { guid: Guid::new(checker.prefix, WRITER), topic_name: TOPIC.to_owned(), ..Default::default() };
    checker.admit_writer(now, &writer).expect("admitted");
    let reason = checker.check_remote_reader(now, WRITER, &reader).expect_err("it may write only");
    assert!(reason.starts_with("remote reader") && reason.contains("denies subscribe"), "{reason}");
}

#[test]
fn unauthenticated_participant_matches_open_topics_only() {
    for is_open in [false, true] {
        let mut rule = encrypting();
        rule.allow_unauthenticated_participants = is_open;
        rule.topic_rules = vec![
            topic_rule("open", ProtectionKind::None, false),
            topic_rule("controlled", ProtectionKind::None, true),
            topic_rule("signed", ProtectionKind::Sign, false),
        ];
        let mut node = Node::new(settings("Alice", &rule));
        let mut unauthenticated = Node::new(settings("Bob", &rule));
        unauthenticated.data.identity_token = None;
        let now = clocks(1);
        node.plugin.participant_discovered(now, &unauthenticated.data);
        for (key, (topic, expected)) in (1..).zip([("open", is_open), ("controlled", false), ("signed", false)]) {
            let mut own = node.reader_data(topic);
            own.guid.entity_id = EntityId::user_reader(key, false);
            node.plugin.admit_reader(now, &own).expect("admitted");
            let data = unauthenticated.writer_data(topic);
            let checked = node.plugin.check_remote_writer(now, own.guid.entity_id, &data);
            assert_eq!(checked.is_ok(), expected, "{topic}: {checked:?}");
            if let Err(reason) = checked {
                assert!(reason.contains("is not authenticated"), "{reason}");
            }
        }
    }
}

#[test]
fn endpoint_of_topic_without_a_rule_is_refused() {
    let mut rule = encrypting();
    rule.topic_rules[0].topic_expression = "rt/*".to_owned();
    let mut node = Node::new(settings("Alice", &rule));
    let reason = node.plugin.admit_writer(clocks(1), &node.writer_data("diagnostics")).expect_err("no rule");
    assert!(reason.contains("no topic_rule for topic \"diagnostics\""), "{reason}");
    assert!(node.plugin.protects_discovery("rt/x") && !node.plugin.protects_discovery("diagnostics"));
}

#[test]
fn endpoint_protection_follows_the_governance() {
    let mut node =
        Node::new(settings("Alice", &rule(ProtectionKind::None, ProtectionKind::Sign, BasicProtectionKind::Sign)));
    let found = node.plugin.admit_writer(clocks(1), &node.writer_data(TOPIC)).expect("admitted");
    assert!(found.submessage && found.payload && !found.key && found.discovery && found.liveliness);
    let again = node.plugin.admit_writer(clocks(2), &node.writer_data(TOPIC));
    assert_eq!(again, Ok(found), "a partition may have changed");
    let builtin = |id| node.plugin.builtin_protection(id).submessage;
    assert!(builtin(EntityId::SEDP_PUB_SECURE_WRITER) && builtin(EntityId::VOLATILE_MESSAGE_READER));
    assert!(!builtin(EntityId::SEDP_PUB_WRITER) && !builtin(EntityId::STATELESS_MESSAGE_WRITER));
    assert!(!node.plugin.protects_messages());
}
