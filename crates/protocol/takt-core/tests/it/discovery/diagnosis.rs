//! Diagnosis: pairs that do not match, pairs that others may refuse, and participants that do not
//! answer.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::qos::*;

#[test]
fn keyed_writer_and_unkeyed_reader_do_not_match() {
    for writer_has_key in [true, false] {
        let mut network = Network::new(2, 1);
        let writer = network.writer(0, writer_spec("T", writer_has_key, keep_all_writer()));
        let reader = network.reader(1, reader_spec("T", !writer_has_key, keep_all_reader()));
        network.run(5_000);
        assert_eq!(network.nodes[0].matched_subscriptions(writer).expect("it exists"), []);
        assert_eq!(network.nodes[1].matched_publications(reader).expect("it exists"), []);
        for node in 0..2 {
            let reasons: Vec<_> = network.nodes[node].refusals().map(|refusal| refusal.reason.clone()).collect();
            assert_eq!(reasons, [RefusalReason::Keys { writer_has_key }]);
            assert!(network.events(node).contains(&Event::PairsRefused));
        }
    }
}

#[test]
fn refusal_identifies_the_writer_and_the_remote_participant() {
    let mut network = Network::new(1, 2);
    let mut named = config(1, 1500);
    named.qos.entity_name = EntityName("display".into());
    named.qos.property.set("__Hostname", "robot1", true);
    named.qos.property.set("__Pid", "4711", true);
    network.join_with(named);
    let offer = DataWriterQos { reliability: best_effort(), ..DataWriterQos::default() };
    let writer = network.writer(0, writer_spec("T", false, offer));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.run(5_000);
    let [writer, reader] = [network.nodes[0].writer_guid(writer), network.nodes[1].reader_guid(reader)]
        .map(|guid| guid.expect("it exists"));
    let refusal = network.nodes[0].refusals().next().expect("a refusal");
    assert_eq!((refusal.writer(), refusal.reader()), (writer, reader));
    let text = refusal.to_string();
    assert_eq!(
        text,
        format!(
            "topic 'T': writer {writer} of this participant and reader {reader} of \"display\" (host robot1, process 4711) \
             do not match: RELIABILITY: the writer offers BEST_EFFORT, the reader requests RELIABLE"
        )
    );
    let other = network.nodes[1].refusals().next().expect("a refusal").clone();
    assert_eq!((other.writer(), other.reader()), (writer, reader));
    assert!(
        other.to_string().contains(&format!("reader {reader} of this participant and writer {writer} of")),
        "{other}"
    );
}

#[test]
fn pair_with_a_caution_is_listed_while_it_matches() {
    let mut network = Network::new(2, 3);
    network.nodes.iter_mut().for_each(Participant::check_types);
    let writer = WriterSpec { type_information: Some(vec![1]), ..writer_spec("T", false, keep_all_writer()) };
    let reader = ReaderSpec { type_information: Some(vec![2]), ..reader_spec("T", false, keep_all_reader()) };
    let (writer, reader) = (network.writer(0, writer), network.reader(1, reader));
    network.run(3_000);
    for node in 0..2 {
        let check = network.nodes[node].poll_type_check().expect("the pair waits");
        let now = network.now;
        network.nodes[node].set_type_verdict(
            now,
            check,
            TypeVerdict::CompatibleWithCaution { what: "member 'x'".into() },
        );
    }
    network.await_match((0, writer), (1, reader));
    for node in 0..2 {
        assert!(network.events(node).contains(&Event::PairsCautioned));
        let cautions: Vec<_> = network.nodes[node].cautions().map(|caution| caution.to_string()).collect();
        assert_eq!(cautions.len(), 1);
        assert!(cautions[0].ends_with("match, but others may refuse the pair: member 'x'"), "{}", cautions[0]);
    }
    let now = network.now;
    network.nodes[1].delete_reader(now, reader).expect("it exists");
    network.run(1_000);
    assert_eq!(network.nodes[0].cautions().count(), 0);
    assert_eq!(network.nodes[1].cautions().count(), 0);
}

#[test]
fn participant_that_never_answers_is_reported_once() {
    let mut network = Network::new(1, 4);
    let puppet = Puppet::new(1);
    for _ in 0..10 {
        let now = network.now;
        puppet.announce_itself(&mut network.nodes[0], now);
        network.run(1_000);
    }
    let guid = puppet.announcement().guid;
    let reports = network.events(0).into_iter().filter(|event| *event == Event::ParticipantSilent(guid)).count();
    assert_eq!(reports, 1);
    let silent: Vec<_> = network.nodes[0].silent_participants().collect();
    assert_eq!(silent.len(), 1);
    assert_eq!((silent[0].guid, silent[0].locator), (guid, puppet.address));
    assert!(silent[0].challenges >= 4 && silent[0].to_string().contains("firewall"), "{}", silent[0]);
}

#[test]
fn participant_that_answers_is_not_silent() {
    let mut network = Network::new(2, 5);
    network.run(10_000);
    for node in 0..2 {
        assert_eq!(network.nodes[node].silent_participants().count(), 0);
        assert!(!network.events(node).iter().any(|event| matches!(event, Event::ParticipantSilent(_))));
    }
}

/// Any sender of announcements can forge one.
#[test]
fn forged_network_reason_changes_a_text_and_unmatches_nothing() {
    let mut network = Network::new(1, 9);
    let reader = network.reader(0, reader_spec("T", false, keep_all_reader()));
    let mut puppet = Puppet::new(9);
    let now = network.now;
    puppet.join(&mut network.nodes[0], now);
    let mut announce = |network: &mut Network, key: u32, reason: Option<&str>, change: fn(&mut DataWriterQos)| {
        let mut data = puppet.publication(key, true);
        data.refusal = reason.map(str::to_owned);
        change(&mut data.qos);
        puppet.publish(&mut network.nodes[0], now, &data);
        let refusal = network.nodes[0].refusals().last().map(|refusal| refusal.reason.to_string());
        let status = network.nodes[0].requested_incompatible_qos_status(reader).expect("it exists");
        (network.nodes[0].matched_publications(reader).expect("it exists").len(), refusal, status.last_network_reason)
    };
    let forged = Some("the network is full");
    assert_eq!(announce(&mut network, 1, forged, |_| ()), (1, None, None), "compatible all the same");
    let (matched, text, reason) = announce(&mut network, 2, forged, |qos| qos.ownership = Ownership::Exclusive);
    let expected = "the network controller refuses the pair: the network is full";
    assert_eq!((matched, text.as_deref(), reason.as_deref()), (1, Some(expected), forged));
    // A later reason replaces the earlier one.
    announce(&mut network, 2, Some("still full"), |qos| qos.ownership = Ownership::Exclusive);
    assert_eq!(network.nodes[0].refusals().count(), 1);
    let (matched, text, reason) = announce(&mut network, 2, None, |qos| qos.ownership = Ownership::Exclusive);
    assert_eq!((matched, reason), (1, None));
    assert!(text.is_some_and(|text| text.starts_with("OWNERSHIP: ")), "the reason went, the policy stayed");
    // A cause other than the controller is not hidden.
    let (matched, text, reason) = announce(&mut network, 3, forged, |qos| qos.reliability = best_effort());
    assert_eq!((matched, reason), (1, None));
    assert!(text.is_some_and(|text| text.starts_with("RELIABILITY: ")));
}
