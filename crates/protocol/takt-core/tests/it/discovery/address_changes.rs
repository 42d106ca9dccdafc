//! Participants whose addresses change: traffic is redirected, and reliability is preserved.

use crate::network::*;
use crate::puppet::*;
use std::net::Ipv4Addr;
use takt_core::*;
use takt_wire::Locator;

/// Two announcement periods of the default configuration.
const TWO_PERIODS_MS: u64 = 6_000;

fn elsewhere(node: usize) -> Locator {
    Locator::udp_v4(Ipv4Addr::new(10, 0, 0, node as u8 + 101), 7411)
}

struct Pair {
    network: Network,
    writer: WriterHandle,
    reader: ReaderHandle,
    written: u32,
    taken: Vec<Vec<u8>>,
}

/// Creates a writer at node 0 and a reader at node 1.
fn pair(seed: u64, own_ports: bool) -> Pair {
    let mut network = Network::new(2, seed);
    let own = |node, port| if own_ports { vec![Locator { port, ..address(node) }] } else { vec![] };
    // This network does not distinguish ports, so endpoints with locators of their own share the
    // participant's.
    let writer = WriterSpec { unicast: own(0, 7411), ..writer_spec("T", false, keep_all_writer()) };
    let reader = ReaderSpec { unicast: own(1, 7411), ..reader_spec("T", false, keep_all_reader()) };
    let (writer, reader) = (network.writer(0, writer), network.reader(1, reader));
    network.await_match((0, writer), (1, reader));
    Pair { network, writer, reader, written: 0, taken: Vec::new() }
}

impl Pair {
    fn write(&mut self, count: u32) {
        for _ in 0..count {
            let bytes = payload(self.written, 100);
            self.network.write(0, self.writer, &bytes).expect("write accepted");
            self.written += 1;
        }
    }

    /// Checks that all samples arrive, once and in order, within the time.
    fn assert_delivered(&mut self, limit_ms: u64) {
        let (reader, written) = (self.reader, self.written as usize);
        let taken = &mut self.taken;
        let all = self.network.run_until(limit_ms, |network| {
            taken.extend(network.take_all(1, reader).into_iter().map(|(_, bytes)| bytes));
            taken.len() >= written
        });
        assert!(all, "{} of {written}", self.taken.len());
        let expected: Vec<_> = (0..self.written).map(|number| payload(number, 100)).collect();
        assert_eq!(self.taken, expected);
    }

    /// Checks that no participant was lost meanwhile: the match is the first one.
    fn assert_never_unmatched(&mut self) {
        for node in 0..2 {
            let events = self.network.events(node);
            assert!(!events.iter().any(|event| matches!(event, Event::ParticipantLost(_))), "{node}: {events:?}");
        }
    }
}

#[test]
fn volatile_reader_loses_nothing_when_a_host_changes_its_address() {
    for mover in [0, 1] {
        for own_ports in [false, true] {
            let mut pair = pair(7, own_ports);
            pair.write(20);
            pair.assert_delivered(1_000);
            pair.network.readdress(mover, elsewhere(mover));
            pair.write(20);
            pair.assert_delivered(TWO_PERIODS_MS);
            pair.assert_never_unmatched();
            let follows = |network: &mut Network| network.nodes[1 - mover].counters().participants_moved == 1;
            assert!(pair.network.run_until(TWO_PERIODS_MS, follows), "node {mover}, own ports {own_ports}");
            pair.write(1);
            pair.assert_delivered(TWO_PERIODS_MS);
        }
    }
}

#[test]
fn delivery_continues_when_both_hosts_change_their_addresses_at_once() {
    let mut pair = pair(8, false);
    for node in 0..2 {
        pair.network.readdress(node, elsewhere(node));
    }
    pair.write(20);
    pair.assert_delivered(TWO_PERIODS_MS);
    pair.assert_never_unmatched();
}

#[test]
fn delivery_continues_when_an_address_changes_under_loss() {
    for seed in 1..20 {
        let mut pair = pair(seed, false);
        pair.network.faults = Faults { loss: 20, duplication: 10, reordering: 10 };
        for round in 0..6 {
            pair.network.readdress(round % 2, Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 50 + round as u8), 7411));
            pair.write(5);
            pair.network.run(700);
        }
        pair.assert_delivered(60_000);
    }
}

/// The interface vanishes, and returns with another address before the lease ends.
#[test]
fn delivery_continues_when_an_interface_vanishes_and_returns() {
    let mut pair = pair(9, false);
    pair.write(5);
    pair.assert_delivered(1_000);
    pair.network.cut.push(1);
    assert!(pair.network.nodes[1].handle_interfaces(pair.network.now, Vec::new(), Locators::default()));
    pair.write(5);
    pair.network.run(5_000);
    pair.network.cut.clear();
    pair.network.readdress(1, elsewhere(1));
    pair.assert_delivered(TWO_PERIODS_MS);
    pair.assert_never_unmatched();
}

/// A participant that is unreachable for longer than the lease is rediscovered within two
/// announcement periods.
#[test]
fn participants_are_rediscovered_when_a_link_fails_for_longer_than_the_lease() {
    let mut network = Network::new(2, 3);
    let qos =
        takt_wire::qos::DataWriterQos { durability: takt_wire::qos::Durability::TransientLocal, ..keep_all_writer() };
    let writer = network.writer(0, writer_spec("T", false, qos));
    let qos =
        takt_wire::qos::DataReaderQos { durability: takt_wire::qos::Durability::TransientLocal, ..keep_all_reader() };
    let reader = network.reader(1, reader_spec("T", false, qos));
    network.await_match((0, writer), (1, reader));
    network.cut = vec![0, 1];
    for number in 0..10 {
        network.write(0, writer, &payload(number, 100)).expect("write accepted");
    }
    network.run(30_000);
    assert!(network.nodes[0].matched_subscriptions(writer).expect("the writer exists").is_empty());
    network.cut.clear();
    let mut numbers = Vec::new();
    let all = network.run_until(TWO_PERIODS_MS, |network| {
        numbers.extend(network.take_all(1, reader).into_iter().map(|(_, bytes)| bytes));
        numbers.len() >= 10
    });
    assert!(all, "{}", numbers.len());
    assert_eq!(numbers, (0..10).map(|number| payload(number, 100)).collect::<Vec<_>>());
}

/// Returns the last challenge that was sent to an address.
fn challenge_to(node: &mut Participant, now: Instant, address: Locator) -> Vec<takt_wire::message::Heartbeat> {
    let sent = outgoing(node, now);
    let mut challenges = sent.iter().filter(|(to, _)| to.contains(&address)).map(|(_, bytes)| challenge_in(bytes));
    challenges.rfind(|challenge| !challenge.is_empty()).expect("the address is challenged")
}

/// Its answers to the challenge at its former address were in transit when it moved, and some
/// arrived twice.
#[test]
fn late_answers_from_a_former_address_are_not_counted_as_wrong() {
    let now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
    let mut mover = Puppet::of_ours(5);
    mover.announce_itself(&mut node, now);
    let first = challenge_to(&mut node, now, mover.address);
    mover.address = elsewhere(5);
    mover.announce_itself(&mut node, now);
    let second = challenge_to(&mut node, now, mover.address);
    (0..5).for_each(|_| mover.answer_challenge(&mut node, now, &first));
    assert_eq!(node.counters().participants_validated, 0);
    mover.answer_challenge(&mut node, now, &second);
    assert_eq!((node.counters().participants_validated, node.counters().wrong_answers), (1, 0));

    // The participant is validated now, and moves twice before it answers.
    mover.address = elsewhere(6);
    mover.announce_itself(&mut node, now);
    let third = challenge_to(&mut node, now, mover.address);
    mover.address = elsewhere(7);
    mover.announce_itself(&mut node, now);
    let fourth = challenge_to(&mut node, now, mover.address);
    [&second, &third, &second, &third].iter().for_each(|late| mover.answer_challenge(&mut node, now, late));
    assert_eq!(node.counters().participants_moved, 0);
    mover.answer_challenge(&mut node, now, &fourth);
    assert_eq!((node.counters().participants_moved, node.counters().wrong_answers), (1, 0));
}

/// A forged move has no effect on the traffic.
#[test]
fn forged_move_does_not_interrupt_delivery() {
    let mut pair = pair(10, false);
    let mut forger = Puppet::of_ours(1);
    forger.address = elsewhere(77);
    for _ in 0..50 {
        forger.announce_itself(&mut pair.network.nodes[0], pair.network.now);
        pair.write(2);
        pair.network.run(50);
    }
    pair.assert_delivered(TWO_PERIODS_MS);
    pair.assert_never_unmatched();
    assert_eq!(pair.network.nodes[0].counters().participants_moved, 0);
}

/// A participant of another vendor cannot be challenged twice, so it is sent a farewell and
/// rediscovered.
#[test]
fn moved_participant_of_another_vendor_is_rediscovered() {
    let now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
    let mut foreigner = Puppet::new(5);
    foreigner.vendor = takt_wire::VendorId([1, 0x10]);
    foreigner.join(&mut node, now);
    outgoing(&mut node, now);
    foreigner.address = elsewhere(5);
    foreigner.announce_itself(&mut node, now);
    let sent = outgoing(&mut node, now);
    let to_it: Vec<_> = sent.iter().filter(|(to, _)| to.contains(&foreigner.address)).map(|(_, bytes)| bytes).collect();
    let numbers: Vec<_> = to_it.iter().filter_map(|bytes| spdp_number(bytes)).collect();
    assert_eq!(numbers, [(2, true), (3, false)], "a farewell, then a new announcement");
    assert!(!challenge_in(to_it[2]).is_empty());
}

/// Its farewell goes to the address that it claims.
#[test]
fn participant_that_claims_the_address_of_another_does_not_unmatch_it() {
    let mut pair = pair(11, false);
    let mut foreigner = Puppet::new(5);
    foreigner.vendor = takt_wire::VendorId([1, 0x10]);
    let now = pair.network.now;
    foreigner.join(&mut pair.network.nodes[0], now);
    outgoing(&mut pair.network.nodes[0], now);
    foreigner.address = address(1);
    foreigner.announce_itself(&mut pair.network.nodes[0], now);
    pair.write(10);
    pair.assert_delivered(TWO_PERIODS_MS);
    pair.network.run(TWO_PERIODS_MS);
    let lost =
        |event: &Event| matches!(event, Event::ParticipantLost(guid) if [prefix(0), prefix(1)].contains(&guid.prefix));
    assert!([0, 1].iter().all(|node| !pair.network.events(*node).iter().any(lost)));
}

#[test]
fn challenges_of_a_silent_moved_participant_are_spaced() {
    let mut now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
    let mut mover = Puppet::of_ours(5);
    mover.join(&mut node, now);
    outgoing(&mut node, now);
    mover.address = elsewhere(5);
    let is_challenge =
        |(to, bytes): &(Vec<Locator>, Vec<u8>)| to.contains(&elsewhere(5)) && !challenge_in(bytes).is_empty();
    let mut challenges = 0;
    // Each announcement credits three times its octets.
    for _ in 0..20 {
        mover.announce_itself(&mut node, now);
        let sent = run_alone(&mut node, &mut now, 90);
        challenges += sent.iter().filter(|sent| is_challenge(sent)).count();
    }
    assert!(challenges >= 4, "the new address is challenged {challenges} times");
    let end = Instant(now.0 + 5_000_000_000);
    let mut last = None;
    while let Some(due) = node.poll_timeout().filter(|due| *due <= end) {
        now = now.max(due);
        node.handle_timeout(now);
        for _ in outgoing(&mut node, now).iter().filter(|sent| is_challenge(sent)) {
            assert_ne!(last.replace(now), Some(now), "two challenges at one moment");
        }
    }
    assert!(node.silent_participants().next().is_none(), "its former address is validated");
}
