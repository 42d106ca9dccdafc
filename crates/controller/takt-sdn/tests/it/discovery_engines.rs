//! Tests of engines of Takt behind the interceptor: effects of verdicts on their matches, with and
//! without loss.

use takt_sdn::discovery::{Config, Enforcement, Event, Limits, Pair, RefusalForm};

use crate::discovery_network::{Network, OFFER, REQUEST};

const FORMS: [RefusalForm; 2] = [RefusalForm::Incompatible, RefusalForm::Withheld];

/// Returns a configuration with a long verdict timeout, so that tests decide.
fn config(refusal: RefusalForm) -> Config {
    let limits = Limits { verdict_timeout: std::time::Duration::from_secs(3600), ..Limits::default() };
    Config { limits, refusal, ..Config::default() }
}

fn found(network: &Network) -> Vec<Pair> {
    let pairs = network.events.iter().filter_map(|event| match event {
        Event::PairFound { pair, contract: Ok(_) } => Some(*pair),
        _ => None,
    });
    pairs.collect()
}

#[test]
fn pairs_without_contract_match_as_without_interceptor() {
    let mut network = Network::new(2, 1, config(RefusalForm::Incompatible));
    let writer = (0, network.writer(0, "Topic", ""));
    let reader = (1, network.reader(1, "Topic", ""));
    assert!(network.run_until(10_000, |network| network.matched(writer, reader) == (1, 1)));
    assert_eq!(network.interceptor.counters().held, 0);
    assert!(network.events.iter().any(|event| matches!(event, Event::PairFound { contract: Err(_), .. })));
}

#[test]
fn pair_with_contract_matches_when_released_and_not_before() {
    let mut network = Network::new(2, 1, config(RefusalForm::Incompatible));
    let writer = (0, network.writer(0, "Topic", OFFER));
    let other = (0, network.writer(0, "Other", ""));
    let (reader, third) = ((1, network.reader(1, "Topic", REQUEST)), (1, network.reader(1, "Other", "")));
    network.run(2_000);
    assert_ne!(network.matched(writer, reader), (1, 1));
    let pair = network.pair(writer, reader);
    assert_eq!(found(&network), [pair]);
    let view = network.interceptor.pair(pair).expect("the pair is known");
    assert_eq!((view.writer.topic_name.as_str(), view.destinations.len()), ("Topic", 1));
    network.interceptor.release(network.at(), pair).expect("the pair is known");
    assert!(network.run_until(10_000, |network| network.matched(writer, reader) == (1, 1)));
    assert!(network.run_until(10_000, |network| network.matched(other, third) == (1, 1)));
    assert_eq!(network.interceptor.counters().inserted, 0, "a release in time changes no sequence number");
}

#[test]
fn refused_pair_does_not_match_and_other_topics_do() {
    for (form, order) in FORMS.into_iter().flat_map(|form| (0..3).map(move |order| (form, order))) {
        let mut network = Network::new(2, 3, config(form));
        // The order of the endpoints determines which announcement passes before the pair is known.
        let (writer, reader);
        match order {
            0 => {
                writer = (0, network.writer(0, "Blocked", OFFER));
                network.run(3_000);
                reader = (1, network.reader(1, "Blocked", REQUEST));
            }
            1 => {
                reader = (1, network.reader(1, "Blocked", REQUEST));
                network.run(3_000);
                writer = (0, network.writer(0, "Blocked", OFFER));
            }
            _ => {
                writer = (0, network.writer(0, "Blocked", OFFER));
                reader = (1, network.reader(1, "Blocked", REQUEST));
            }
        }
        let pair = network.pair(writer, reader);
        assert!(network.run_until(10_000, |network| found(network) == [pair]), "{form:?} {order}");
        let enforced = network.interceptor.refuse(network.at(), pair, "link s1:2 is full").expect("the pair is known");
        assert_eq!(enforced, Enforcement { known_to_reader: true, known_to_writer: true });
        let other = (0, network.writer(0, "Other", ""));
        let third = (1, network.reader(1, "Other", ""));
        assert!(network.run_until(10_000, |network| network.matched(other, third) == (1, 1)), "{form:?} {order}");
        network.run(5_000);
        assert_eq!(network.matched(writer, reader), (0, 0), "{form:?} {order}");
        if form == RefusalForm::Incompatible {
            let of_writer = network.nodes[0].offered_incompatible_qos_status(writer.1).expect("the writer exists");
            let of_reader = network.nodes[1].requested_incompatible_qos_status(reader.1).expect("the reader exists");
            assert!(of_writer.total_count > 0 && of_reader.total_count > 0, "{order}");
            for status in [of_writer, of_reader] {
                assert_eq!(status.last_network_reason.as_deref(), Some("link s1:2 is full"), "{order}");
                assert_eq!((status.last_policy, status.counts), (None, [0; 32]), "no policy is blamed: {order}");
            }
            for node in &network.nodes {
                let texts: Vec<String> = node.refusals().map(|refusal| refusal.reason.to_string()).collect();
                assert_eq!(texts, ["the network controller refuses the pair: link s1:2 is full"], "{order}");
            }
        }
    }
}

#[test]
fn refused_pair_matches_when_it_is_released_later() {
    for (form, order) in FORMS.into_iter().flat_map(|form| (0..2).map(move |order| (form, order))) {
        let mut network = Network::new(2, 5, config(form));
        let writer = (0, network.writer(0, "Late", OFFER));
        if order == 1 {
            network.run(3_000);
        }
        let reader = (1, network.reader(1, "Late", REQUEST));
        let pair = network.pair(writer, reader);
        assert!(network.run_until(10_000, |network| !found(network).is_empty()));
        for round in 0..4 {
            network.interceptor.refuse(network.at(), pair, "no room").expect("the pair is known");
            let is_unmatched = network.run_until(10_000, |network| network.matched(writer, reader) == (0, 0));
            assert!(is_unmatched, "{form:?} {order} {round}");
            network.interceptor.release(network.at(), pair).expect("the pair is known");
            let is_matched = network.run_until(10_000, |network| network.matched(writer, reader) == (1, 1));
            assert!(is_matched, "{form:?} {order} {round}");
            let refusals: Vec<usize> = network.nodes.iter().map(|node| node.refusals().count()).collect();
            assert_eq!(refusals, [0, 0], "refusals end with the match: {form:?} {order} {round}");
        }
        // Later endpoints have sequence numbers after the inserted ones.
        let (other, third) = ((0, network.writer(0, "New", "")), (1, network.reader(1, "New", "")));
        assert!(network.run_until(10_000, |network| network.matched(other, third) == (1, 1)), "{form:?} {order}");
        network.nodes[0].delete_writer(takt_core::Instant(network.now), writer.1).expect("the writer exists");
        let is_disposed = |network: &mut Network| {
            network.nodes[1].matched_publications(reader.1).expect("the reader exists").is_empty()
        };
        assert!(network.run_until(10_000, is_disposed), "{form:?} {order}: the disposal arrives");
        assert!(network.run_until(10_000, |network| network.interceptor.poll_timeout().is_some()));
    }
}

#[test]
fn verdicts_arrive_through_loss() {
    for seed in 0..60 {
        let form = FORMS[seed as usize % 2];
        let mut network = Network::new(3, seed * 7 + 1, config(form));
        network.loss = 5 + 5 * (seed % 5);
        let blocked = (0, network.writer(0, "Blocked", OFFER));
        let readers = [1, 2].map(|node| (node, network.reader(node, "Blocked", REQUEST)));
        let (other, third) = ((0, network.writer(0, "Other", "")), (1, network.reader(1, "Other", "")));
        assert!(network.run_until(120_000, |network| found(network).len() == 2), "seed {seed}");
        let pairs = readers.map(|reader| network.pair(blocked, reader));
        network.interceptor.refuse(network.at(), pairs[0], "no room").expect("the pair is known");
        network.interceptor.release(network.at(), pairs[1]).expect("the pair is known");
        let is_so = |network: &mut Network| {
            let readers_of = network.nodes[0].matched_subscriptions(blocked.1).expect("the writer exists");
            readers_of == [pairs[1].reader]
                && network.matched(blocked, readers[0]).1 == 0
                && network.matched(blocked, readers[1]).1 == 1
                && network.matched(other, third) == (1, 1)
        };
        assert!(network.run_until(120_000, is_so), "seed {seed}");
        network.interceptor.release(network.at(), pairs[0]).expect("the pair is known");
        network.interceptor.refuse(network.at(), pairs[1], "no room").expect("the pair is known");
        let (new, newer) = ((1, network.writer(1, "New", "")), (0, network.reader(0, "New", "")));
        let is_turned = |network: &mut Network| {
            let readers_of = network.nodes[0].matched_subscriptions(blocked.1).expect("the writer exists");
            readers_of == [pairs[0].reader]
                && network.matched(blocked, readers[0]).1 == 1
                && network.matched(blocked, readers[1]).1 == 0
                && network.matched(new, newer) == (1, 1)
        };
        assert!(network.run_until(120_000, is_turned), "seed {seed}");
        network.loss = 0;
        network.run(20_000);
        assert!(is_turned(&mut network), "seed {seed}: it stays");
    }
}

#[test]
fn missing_verdict_refuses_the_pair() {
    let mut network = Network::new(2, 1, Config::default());
    let writer = (0, network.writer(0, "Topic", OFFER));
    let reader = (1, network.reader(1, "Topic", REQUEST));
    network.run(10_000);
    let pair = network.pair(writer, reader);
    assert!(network.events.contains(&Event::VerdictMissed { pair }));
    assert_eq!(network.matched(writer, reader), (0, 0));
    let reason = network.interceptor.pair(pair).and_then(|view| view.refused.map(str::to_owned));
    assert_eq!(reason.as_deref(), Some("the controller gave no verdict within 2s"));
    network.interceptor.release(network.at(), pair).expect("the pair is known");
    assert!(network.run_until(10_000, |network| network.matched(writer, reader) == (1, 1)));
}

#[test]
fn fragmented_announcements_are_reassembled_before_the_verdict() {
    for form in FORMS {
        let mut network = Network::new(2, 9, config(form));
        let long = format!("{OFFER};{}", "x".repeat(9_000));
        let (writer, free) =
            ((0, network.writer(0, "Long", &long)), (0, network.writer(0, "Free", &"y".repeat(20_000))));
        let (reader, third) = ((1, network.reader(1, "Long", REQUEST)), (1, network.reader(1, "Free", "")));
        assert!(network.run_until(20_000, |network| !found(network).is_empty()), "{form:?}");
        let pair = network.pair(writer, reader);
        network.interceptor.refuse(network.at(), pair, "no room").expect("the pair is known");
        assert!(network.run_until(20_000, |network| network.matched(free, third) == (1, 1)), "{form:?}");
        network.run(5_000);
        assert_eq!(network.matched(writer, reader), (0, 0), "{form:?}");
        network.interceptor.release(network.at(), pair).expect("the pair is known");
        assert!(network.run_until(20_000, |network| network.matched(writer, reader) == (1, 1)), "{form:?}");
    }
}

#[test]
fn thirty_endpoints_match_through_an_interceptor_that_releases() {
    let mut network = Network::new(3, 11, config(RefusalForm::Incompatible));
    network.releases_all = true;
    let mut pairs = Vec::new();
    for index in 0..30 {
        let topic = format!("Topic{index}");
        let (from, to) = (index % 3, (index + 1) % 3);
        pairs.push(((from, network.writer(from, &topic, OFFER)), (to, network.reader(to, &topic, REQUEST))));
    }
    let all = |network: &mut Network| pairs.iter().all(|(writer, reader)| network.matched(*writer, *reader) == (1, 1));
    assert!(network.run_until(20_000, all));
    assert_eq!(found(&network).len(), 30);
}
