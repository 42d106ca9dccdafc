//! Multicast of user data: used where it is cheaper and the datagrams arrive.

use crate::network::*;
use std::net::Ipv4Addr;
use takt_core::*;
use takt_wire::Locator;
use takt_wire::qos::*;

const SECOND: u64 = 1_000;

fn group() -> Locator {
    Locator::udp_v4(GROUP, USER_PORT as u16)
}

/// Returns the group, as the node with the writer addresses it.
fn multicast_locator() -> Locator {
    group().by_interface(Ipv4Addr::new(10, 0, 0, 1))
}

fn listening(node: usize) -> Config {
    let mut config = config(node, 1500);
    config.locators.default_multicast = vec![group()];
    config
}

/// Returns a network that drops multicast to these nodes.
fn without_multicast_at(nodes: &[usize]) -> Network {
    let mut network = Network::new(0, 3);
    network.deaf = nodes.to_vec();
    network
}

fn best_effort_writer() -> DataWriterQos {
    DataWriterQos { reliability: best_effort(), ..keep_all_writer() }
}

fn best_effort_reader() -> DataReaderQos {
    DataReaderQos { reliability: best_effort(), ..keep_all_reader() }
}

struct Fan {
    network: Network,
    writer: WriterHandle,
    /// One reader at each node from the second on.
    readers: Vec<ReaderHandle>,
    written: u32,
}

impl Fan {
    /// Creates a writer at the first node, `readers` readers at the following ones, and `idle`
    /// listeners without a reader.
    fn new(readers: usize, idle: usize, reliability: Reliability) -> Self {
        Self::with(Network::new(0, 3), readers, idle, reliability, listening)
    }

    fn with(
        mut network: Network,
        readers: usize,
        idle: usize,
        reliability: Reliability,
        config: impl Fn(usize) -> Config,
    ) -> Self {
        (0..=readers + idle).for_each(|node| _ = network.join_with(config(node)));
        let writer = DataWriterQos { reliability, ..keep_all_writer() };
        let reader = DataReaderQos { reliability, ..keep_all_reader() };
        let writer = network.writer(0, writer_spec("T", false, writer));
        let readers = (1..=readers).map(|node| network.reader(node, reader_spec("T", false, reader.clone())));
        let readers: Vec<_> = readers.collect();
        let mut fan = Self { network, writer, readers, written: 0 };
        for (at, reader) in fan.readers.iter().enumerate() {
            fan.network.await_match((0, writer), (at + 1, *reader));
        }
        let all = fan.readers.len();
        let are_matched = fan.network.run_until(SECOND, |network| {
            network.nodes[0].matched_subscriptions(writer).expect("the writer exists").len() == all
        });
        assert!(are_matched, "all find each other");
        assert_eq!(fan.write(), 0, "nothing waits for undiscovered readers");
        fan.network.run(4 * SECOND);
        fan.clear_counts();
        fan
    }

    fn clear_counts(&mut self) {
        self.network.sent_to.clear();
    }

    /// Writes a sample and returns after how many milliseconds every reader has it. Checks that
    /// each has it once and in order.
    fn write(&mut self) -> u64 {
        let payload = payload(self.written, 100);
        self.written += 1;
        self.network.write(0, self.writer, &payload).expect("write accepted");
        let (mut missing, begin) = (vec![true; self.readers.len()], self.network.now);
        let arrived = self.network.run_until(20 * SECOND, |network| {
            for (at, reader) in self.readers.iter().enumerate() {
                let taken: Vec<_> = network.take_all(at + 1, *reader).into_iter().map(|(_, bytes)| bytes).collect();
                if !taken.is_empty() {
                    assert_eq!(taken, std::slice::from_ref(&payload));
                    missing[at] = false;
                }
            }
            !missing.contains(&true)
        });
        assert!(arrived, "sample {} reaches all", self.written);
        (self.network.now.0 - begin.0) / 1_000_000
    }

    /// Writes ten samples a second.
    fn run(&mut self, ms: u64) {
        let end = self.network.now.0 + ms * 1_000_000;
        while self.network.now.0 < end {
            self.write();
            self.network.run(100);
        }
    }

    /// Writes samples, one every 2 ms, without checking their arrival.
    fn write_and_run(&mut self, samples: u32) {
        for number in self.written..self.written + samples {
            self.network.write(0, self.writer, &payload(number, 100)).expect("write accepted");
            self.network.run(2);
        }
        self.written += samples;
    }

    fn sent_to(&self, to: Locator) -> usize {
        self.network.sent_to.get(&to).copied().unwrap_or(0)
    }

    fn probes_sent(&self) -> u64 {
        self.network.nodes[0].counters().multicast_probes_sent
    }

    /// Returns whether new samples go once to the group; otherwise to each reader by unicast.
    fn is_multicast(&mut self) -> bool {
        let probes = self.probes_sent();
        self.clear_counts();
        (0..10).for_each(|_| _ = self.write());
        let probes = (self.probes_sent() - probes) as usize;
        let each: Vec<usize> = (1..=self.readers.len()).map(|node| self.sent_to(address(node))).collect();
        match self.sent_to(multicast_locator()) - probes {
            0 => {
                assert!(each.iter().all(|count| *count >= 10), "each gets each: {each:?}");
                false
            }
            _ => true,
        }
    }

    fn duplicates(&self) -> u64 {
        self.network.nodes.iter().map(|node| node.counters().duplicate_samples).sum()
    }
}

#[test]
fn three_readers_are_served_by_one_multicast_datagram() {
    for reliability in [reliable(), best_effort()] {
        let mut fan = Fan::new(3, 0, reliability);
        assert!(fan.is_multicast());
        (1..=3).for_each(|node| assert_eq!(fan.sent_to(address(node)), 0, "nothing is sent by unicast"));
        assert_eq!(fan.duplicates(), 0);
    }
}

#[test]
fn two_readers_are_served_by_unicast() {
    let mut fan = Fan::new(2, 0, reliable());
    assert!(!fan.is_multicast());
    assert_eq!((fan.probes_sent(), fan.sent_to(multicast_locator())), (0, 0), "and no probe is sent");
}

/// Multicast would cost more idle receptions than it saves datagrams.
#[test]
fn multicast_is_not_used_when_most_listeners_are_idle() {
    for (readers, idle, multicast) in [(3, 1, false), (4, 1, true), (4, 2, false), (5, 2, true)] {
        let mut fan = Fan::new(readers, idle, reliable());
        assert_eq!(fan.is_multicast(), multicast, "{readers} readers, {idle} others");
    }
}

#[test]
fn multicast_is_used_only_from_the_configured_number_of_readers() {
    for (min, multicast) in [(0, false), (4, false), (3, true), (1, true)] {
        let config = |node| Config { multicast_readers_min: min, ..listening(node) };
        assert_eq!(
            Fan::with(Network::new(0, 3), 3, 0, reliable(), config).is_multicast(),
            multicast,
            "from {min} readers"
        );
    }
    // A participant that announces no group listens to none.
    let config = |node| if node == 2 { config(node, 1500) } else { listening(node) };
    let network = || without_multicast_at(&[2]);
    assert!(!Fan::with(network(), 3, 0, reliable(), config).is_multicast());
    let mut fan = Fan::with(network(), 4, 0, reliable(), config);
    assert!(fan.is_multicast());
    let each: Vec<bool> = (1..=4).map(|node| fan.sent_to(address(node)) >= 10).collect();
    assert_eq!(each, [false, true, false, false], "it is served by unicast in addition to the group");
    assert_eq!(fan.duplicates(), 0);
}

/// A network without multicast is detected by probes; no sample waits for the result.
#[test]
fn unicast_is_used_when_the_network_drops_multicast() {
    for reliability in [reliable(), best_effort()] {
        let network = without_multicast_at(&[1, 2, 3]);
        let mut fan = Fan::with(network, 3, 0, reliability, listening);
        assert!(!fan.is_multicast());
        assert_eq!(fan.network.nodes[0].counters().participants_unreachable_by_multicast, 3);
        let probes = fan.probes_sent();
        fan.run(20 * SECOND);
        assert_eq!(fan.probes_sent() - probes, 10, "readers unreachable by multicast are probed every two seconds");
    }
}

/// A switch may lose memberships. Reliable readers lose nothing, and all are served by unicast
/// until the group works again.
#[test]
fn reliable_reader_is_served_by_unicast_when_multicast_stops_arriving() {
    let mut fan = Fan::new(4, 0, reliable());
    assert!(fan.is_multicast());
    fan.network.deaf = vec![2];
    let waited: u64 = (0..10).map(|_| fan.write()).max().expect("there were some");
    assert!((1..=25).contains(&waited), "a unicast heartbeat reveals what it misses: {waited} ms");
    fan.network.run(2 * SECOND);
    fan.clear_counts();
    assert_eq!((0..10).map(|_| fan.write()).max(), Some(0), "sent to it by unicast at once");
    let each: Vec<bool> = (1..=4).map(|node| fan.sent_to(address(node)) >= 10).collect();
    assert_eq!(each, [false, true, false, false], "the others receive from the group");
    fan.network.deaf.clear();
    fan.network.run(4 * SECOND);
    assert!(fan.is_multicast());
    assert_eq!(fan.sent_to(address(2)), 0);
}

/// Best-effort readers do not report missing samples. Probes detect the failure, and the first
/// sample starts one.
#[test]
fn best_effort_readers_are_served_by_unicast_when_multicast_stops_arriving() {
    let mut fan = Fan::new(3, 0, best_effort());
    fan.network.run(10 * SECOND);
    fan.network.deaf = vec![1, 2, 3];
    fan.network.write(0, fan.writer, &payload(99, 100)).expect("write accepted");
    fan.network.run(750);
    assert!(fan.readers.iter().enumerate().all(|(at, reader)| fan.network.take(at + 1, *reader).is_none()), "lost");
    assert!(!fan.is_multicast());
}

/// Without traffic a probe is sent from time to time, so even then the reader loses nothing.
#[test]
fn multicast_failure_is_detected_while_nothing_is_sent() {
    let mut fan = Fan::new(3, 0, best_effort());
    fan.network.deaf = vec![1, 2, 3];
    fan.network.run(65 * SECOND);
    assert!(!fan.is_multicast());
}

/// A probe costs an answer of each listener, so N writers would cost N squared answers forever.
#[test]
fn listeners_are_rarely_probed_while_nothing_is_sent() {
    for reliability in [reliable(), best_effort()] {
        let mut fan = Fan::new(3, 0, reliability);
        let probes = fan.probes_sent();
        fan.network.run(50 * SECOND);
        assert_eq!((fan.probes_sent() - probes, fan.sent_to(address(0))), (0, 0), "and no reply is sent");
        fan.write();
        assert_eq!((1..=3).map(|node| fan.sent_to(address(node))).sum::<usize>(), 0, "what was known is used");
        fan.network.run(10 * SECOND);
        assert_eq!(fan.probes_sent() - probes, 1, "one sample causes one probe");
        fan.run(10 * SECOND);
        assert_eq!(fan.probes_sent() - probes, 6, "then one every two seconds");
    }
}

/// A participant that joins while nothing is sent is probed with the first sample, which is sent by
/// unicast.
#[test]
fn new_listener_is_probed_when_a_sample_is_sent() {
    let mut fan = Fan::new(3, 0, reliable());
    fan.network.run(10 * SECOND);
    let probes = fan.probes_sent();
    let new_node = fan.network.join_with(listening(4));
    let reader = fan.network.reader(new_node, reader_spec("T", false, keep_all_reader()));
    fan.network.await_match((0, fan.writer), (new_node, reader));
    fan.readers.push(reader);
    fan.network.run(5 * SECOND);
    assert_eq!(fan.probes_sent(), probes);
    fan.clear_counts();
    assert_eq!(fan.write(), 0);
    assert!((1..=4).all(|node| fan.sent_to(address(node)) > 0));
    fan.network.run(SECOND);
    assert!(fan.is_multicast());
    assert_eq!(((1..=4).map(|node| fan.sent_to(address(node))).sum::<usize>(), fan.duplicates()), (0, 0));
}

/// A reliable reader that requests multicast samples long after they were sent may not receive
/// multicast any more.
#[test]
fn late_repair_request_triggers_a_probe() {
    let mut fan = Fan::new(3, 0, reliable());
    fan.network.cut = vec![2];
    fan.network.write(0, fan.writer, &payload(99, 100)).expect("write accepted");
    let probes = fan.probes_sent();
    assert!(fan.network.run_until(SECOND, |network| network.nodes[0].counters().multicast_probes_sent == probes + 2));
    fan.network.cut.clear();
    fan.network.run(0);
    fan.network.cut = vec![2];
    fan.network.run(5 * SECOND);
    let probes = fan.probes_sent();
    fan.network.cut.clear();
    fan.network.run(SECOND);
    assert!(fan.network.take(2, fan.readers[1]).is_some(), "it missed the sample and received the second probe");
    assert_eq!(fan.probes_sent() - probes, 1);
}

/// Multicast is looped back to the sender, whose own reader gets the samples by unicast.
#[test]
fn local_reader_gets_each_sample_once_when_multicast_is_looped_back() {
    let mut fan = Fan::new(3, 0, reliable());
    let own = fan.network.reader(0, reader_spec("T", false, keep_all_reader()));
    fan.network.await_match((0, fan.writer), (0, own));
    assert!(fan.is_multicast());
    assert!(fan.sent_to(address(1)) < 10, "the others receive from the group");
    fan.network.run(SECOND);
    assert_eq!((fan.network.take_all(0, own).len(), fan.duplicates()), (10, 0));
}

/// Such a reader would receive every sample twice.
#[test]
fn listening_reader_with_another_path_keeps_all_readers_on_unicast() {
    let mut fan = Fan::new(4, 0, reliable());
    let own_port = ReaderSpec { unicast: vec![address(1)], ..reader_spec("T", false, keep_all_reader()) };
    let other = fan.network.reader(1, own_port);
    fan.network.await_match((0, fan.writer), (1, other));
    fan.network.run(SECOND);
    assert!(!fan.is_multicast());
    fan.network.nodes[1].delete_reader(fan.network.now, other).expect("it is there");
    fan.network.run(4 * SECOND);
    assert!(fan.is_multicast());
}

/// Probes consume sequence numbers of the assertion writer, whose assertions continue to arrive.
#[test]
fn liveliness_assertions_arrive_between_probes() {
    let mut fan = Fan::new(3, 0, reliable());
    let lease_duration = takt_wire::Duration::from_millis(300);
    let liveliness = Liveliness { kind: LivelinessKind::Automatic, lease_duration };
    let qos = DataWriterQos { liveliness, ..keep_all_writer() };
    let writer = fan.network.writer(0, writer_spec("L", false, qos));
    let qos = DataReaderQos { liveliness, ..keep_all_reader() };
    let reader = fan.network.reader(1, reader_spec("L", false, qos));
    fan.network.await_match((0, writer), (1, reader));
    let stale = fan.network.nodes[0].counters().stale_acknowledgments;
    let (probes, changed) = (fan.probes_sent(), |fan: &mut Fan| {
        let status = fan.network.nodes[1].liveliness_changed_status(reader).expect("the reader exists");
        (status.alive_count, status.not_alive_count)
    });
    fan.run(10 * SECOND);
    assert!(fan.probes_sent() - probes >= 4);
    assert_eq!(changed(&mut fan), (1, 0));
    assert!(fan.is_multicast(), "and the answers are still understood");
    assert_eq!(fan.network.nodes[0].counters().stale_acknowledgments, stale);
}

/// Waits until three participants have acknowledged that they receive the group.
fn await_answers(network: &mut Network) {
    let answers = network.nodes[0].counters().acknacks_received;
    let answered = network.run_until(SECOND, |network| {
        let counters = network.nodes[0].counters();
        counters.multicast_probes_sent == 1 && counters.acknacks_received >= answers + 3
    });
    assert!(answered, "all have answered the probe");
}

/// A participant reads its sockets one after the other, so multicast datagrams overtake those of
/// its own port. RTPS has a best-effort reader drop samples older than the last delivered one.
#[test]
fn best_effort_readers_lose_nothing_when_the_route_changes_to_multicast() {
    let mut network = Network::new(0, 3);
    (0..=3).for_each(|node| _ = network.join_with(listening(node)));
    let writer = network.writer(0, writer_spec("T", false, best_effort_writer()));
    let readers: Vec<_> =
        (1..=3).map(|node| network.reader(node, reader_spec("T", false, best_effort_reader()))).collect();
    for (at, reader) in readers.iter().enumerate() {
        network.await_match((0, writer), (at + 1, *reader));
    }
    await_answers(&mut network);
    let mut numbers = 0..;
    let mut write = |network: &mut Network, count: usize| {
        for number in numbers.by_ref().take(count) {
            network.write(0, writer, &payload(number, 100)).expect("write accepted");
            network.run(2);
        }
    };
    (1..=3).for_each(|node| network.hold_up(node));
    write(&mut network, 200);
    (1..=3).for_each(|node| network.resume(node, true));
    write(&mut network, 200);
    network.sent_to.clear();
    write(&mut network, 10);
    assert_eq!(network.sent_to.get(&multicast_locator()), Some(&10), "samples go to the group");
    let expected: Vec<_> = (0..410).map(|number| payload(number, 100)).collect();
    for (at, reader) in readers.iter().enumerate() {
        let taken: Vec<_> = network.take_all(at + 1, *reader).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(taken.len(), expected.len(), "reader {at}");
        assert_eq!(taken, expected);
    }
}

/// The history that was sent to the first reader by unicast waits in its sockets while the next
/// samples arrive by multicast.
#[test]
fn best_effort_late_joiners_lose_no_history_when_the_route_changes_to_multicast() {
    let mut network = Network::new(0, 3);
    (0..=3).for_each(|node| _ = network.join_with(listening(node)));
    let probing_writer = network.writer(0, writer_spec("T", false, best_effort_writer()));
    for node in 1..=3 {
        let reader = network.reader(node, reader_spec("T", false, best_effort_reader()));
        network.await_match((0, probing_writer), (node, reader));
    }
    await_answers(&mut network);
    let durability = Durability::TransientLocal;
    let writer = network.writer(0, writer_spec("H", false, DataWriterQos { durability, ..best_effort_writer() }));
    let mut numbers = 0..;
    let mut write = |network: &mut Network| {
        for number in numbers.by_ref().take(50) {
            network.write(0, writer, &payload(number, 100)).expect("write accepted");
            network.run(2);
        }
    };
    write(&mut network);
    network.run(1_000);
    (1..=3).for_each(|node| network.hold_up(node));
    let join = |node| {
        let spec = reader_spec("H", false, DataReaderQos { durability, ..best_effort_reader() });
        let reader = network.reader(node, spec);
        network.run(20);
        reader
    };
    let readers: Vec<_> = (1..=3).map(join).collect();
    write(&mut network);
    (1..=3).for_each(|node| network.resume(node, true));
    network.run(3_000);
    for (at, reader) in readers.iter().enumerate() {
        let taken: Vec<_> = network.take_all(at + 1, *reader).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(taken, (0..100).map(|number| payload(number, 100)).collect::<Vec<_>>(), "reader {at}");
    }
}

/// Each reader that is matched or unmatched meanwhile causes another probe.
#[test]
fn route_changes_after_two_seconds_when_a_reader_does_not_answer() {
    let mut network = Network::new(0, 3);
    (0..=3).for_each(|node| _ = network.join_with(listening(node)));
    let writer = network.writer(0, writer_spec("T", false, best_effort_writer()));
    for node in 1..=3 {
        let reader = network.reader(node, reader_spec("T", false, best_effort_reader()));
        network.await_match((0, writer), (node, reader));
    }
    await_answers(&mut network);
    network.hold_up(1);
    for number in 0..150 {
        let reader = network.reader(2, reader_spec("T", false, best_effort_reader()));
        network.write(0, writer, &payload(number, 100)).expect("write accepted");
        network.run(10);
        network.nodes[2].delete_reader(network.now, reader).expect("it is there");
        network.run(10);
    }
    assert_eq!(network.nodes[0].counters().unconfirmed_route_changes, 1);
}

/// The same when the route returns to unicast.
#[test]
fn best_effort_readers_lose_nothing_when_the_route_returns_to_unicast() {
    let mut fan = Fan::new(3, 0, best_effort());
    assert!(fan.is_multicast());
    let before = fan.written;
    fan.network.hold_up(1);
    fan.write_and_run(10);
    fan.network.nodes[3].delete_reader(fan.network.now, fan.readers[2]).expect("it is there");
    fan.write_and_run(50);
    fan.network.resume(1, false);
    fan.write_and_run(50);
    fan.clear_counts();
    fan.write_and_run(10);
    assert_eq!([1, 2].map(|node| fan.sent_to(address(node))), [10, 10], "two are served one by one");
    for at in 0..2 {
        let taken: Vec<_> = fan.network.take_all(at + 1, fan.readers[at]).into_iter().map(|(_, bytes)| bytes).collect();
        let expected: Vec<_> = (before..fan.written).map(|number| payload(number, 100)).collect();
        assert_eq!(taken.len(), expected.len(), "reader {at}");
        assert_eq!(taken, expected);
    }
}

/// Returns a writer of long samples with readers at three nodes in turn. The hosts receive long
/// packets, and at first no multicast.
fn long_samples_by_unicast(readers_each: usize) -> (Network, WriterHandle, Vec<ReaderHandle>) {
    let mut network = Network::new(0, 3);
    network.deaf = vec![1, 2, 3];
    for node in 0..=3 {
        let mut config = config(node, 9_000);
        config.locators.default_multicast = vec![group()];
        network.join_with(config);
    }
    let writer = network.writer(0, writer_spec("T", false, best_effort_writer()));
    let nodes = (1..=3).cycle().take(3 * readers_each);
    let spec = || reader_spec("T", false, best_effort_reader());
    let readers: Vec<_> = nodes.map(|node| (node, network.reader(node, spec()))).collect();
    readers.iter().for_each(|reader| network.await_match((0, writer), *reader));
    (network, writer, readers.into_iter().map(|(_, reader)| reader).collect())
}

/// Writes samples of `len` octets every 50 ms until the condition holds.
fn write_until(network: &mut Network, writer: WriterHandle, len: usize, mut is_done: impl FnMut(&mut Network) -> bool) {
    let mut written = 0;
    while !is_done(network) {
        assert!(written < 2_000, "it is so within 100 s");
        network.write(0, writer, &payload(written, len)).expect("write accepted");
        network.run(50);
        written += 1;
    }
}

#[test]
fn writer_detects_a_smaller_multicast_mtu_after_a_unicast_probe() {
    let (mut network, writer, readers) = long_samples_by_unicast(1);
    network.group_len_max = Some(1_472);
    let mut count = 0;
    write_until(&mut network, writer, 8_000, |_| {
        count += 1;
        count > 100
    });
    for (at, reader) in readers.iter().enumerate() {
        assert_eq!(network.take_all(at + 1, *reader).len(), 100, "by unicast reader {at} gets all");
    }
    network.deaf.clear();
    network.sent_to.clear();
    write_until(&mut network, writer, 8_000, |network| network.nodes[0].counters().narrowed_paths == 3);
    (0..3).for_each(|at| _ = network.take_all(at + 1, readers[at]));
    let by_group = |network: &Network| network.sent_to.get(&multicast_locator()).copied().unwrap_or(0);
    let before = by_group(&network);
    for number in 0..10 {
        network.write(0, writer, &payload(number, 8_000)).expect("write accepted");
        network.run(50);
    }
    assert!(by_group(&network) >= before + 10, "samples go to the group");
    for (at, reader) in readers.iter().enumerate() {
        assert_eq!(network.take_all(at + 1, *reader).len(), 10, "reader {at}");
    }
}

#[test]
fn probes_of_paths_and_route_changes_allocate_nothing() {
    let (mut network, writer, _) = long_samples_by_unicast(20);
    let mut count = 0;
    write_until(&mut network, writer, 100, |_| {
        count += 1;
        count > 10
    });
    network.longest = 0;
    network.sent_to.clear();
    (network.meter, network.metered) = (crate::allocations::allocations, 0);
    write_until(&mut network, writer, 2_000, |network| network.longest > 8_000);
    assert_eq!(network.metered, 0, "a probe of the path MTU was sent");
    network.deaf.clear();
    let by_group = |network: &Network| network.sent_to.get(&multicast_locator()).copied().unwrap_or(0);
    write_until(&mut network, writer, 2_000, |network| by_group(network) > 100);
    assert_eq!(network.metered, 0, "a probe was sent before samples went to the group");
}

/// A writer and three best-effort readers served by multicast: a directed sample to one of them
/// comes between other samples.
#[test]
fn best_effort_multicast_reader_loses_no_directed_sample() {
    let mut fan = Fan::new(3, 0, best_effort());
    assert!(fan.is_multicast());
    let chosen = fan.network.nodes[1].reader_guid(fan.readers[0]).expect("the reader exists");
    let before = fan.written;
    fan.network.hold_up(1);
    fan.clear_counts();
    for number in before..before + 20 {
        let bytes = payload(number, if number % 6 == 0 { 5_000 } else { 100 });
        let destinations: &[_] = if number % 3 == 0 { &[chosen] } else { &[] };
        let (kind, payload_len) = (ChangeKind::Alive, bytes.len());
        let change = NewChange { kind, key_hash: [0; 16], source_timestamp: None, destinations, payload_len };
        let now = fan.network.now;
        let written = fan.network.nodes[0].write(now, fan.writer, &change, |slot| {
            slot.copy_from_slice(&bytes);
            Some(bytes.len())
        });
        assert!(written.is_ok(), "{written:?}");
        fan.network.run(2);
    }
    fan.network.resume(1, true);
    fan.network.run(10);
    assert!(fan.sent_to(multicast_locator()) >= 20 && fan.sent_to(address(1)) == 0, "{:?}", fan.network.sent_to);
    let mut numbers = |at: usize| -> Vec<u32> {
        let taken = fan.network.take_all(at + 1, fan.readers[at]);
        taken.iter().map(|(_, bytes)| crate::qos::content_filter::number(bytes)).collect()
    };
    assert_eq!(numbers(0), (before..before + 20).collect::<Vec<_>>());
    let of_all: Vec<u32> = (before..before + 20).filter(|number| number % 3 != 0).collect();
    assert_eq!([numbers(1), numbers(2)], [of_all.clone(), of_all], "the others get none of them");
}

#[test]
fn best_effort_multicast_reader_loses_nothing_when_a_filter_rejects_samples_for_others() {
    let mut network = Network::new(0, 3);
    (0..=3).for_each(|node| _ = network.join_with(listening(node)));
    let filters: Option<std::sync::Arc<dyn FilterFactory>> =
        Some(std::sync::Arc::new(crate::qos::content_filter::Factory));
    let writer = network.writer(0, WriterSpec { filters, ..writer_spec("T", false, best_effort_writer()) });
    let readers: Vec<_> = (1..=3)
        .map(|node| {
            let content_filter = if node == 1 { crate::qos::content_filter::multiples_of(3) } else { None };
            network.reader(node, ReaderSpec { content_filter, ..reader_spec("T", false, best_effort_reader()) })
        })
        .collect();
    for (at, reader) in readers.iter().enumerate() {
        network.await_match((0, writer), (at + 1, *reader));
    }
    let by_group = |network: &Network| network.sent_to.get(&multicast_locator()).copied().unwrap_or(0);
    write_until(&mut network, writer, 100, |network| by_group(network) > 50);
    (0..3).for_each(|at| _ = network.take_all(at + 1, readers[at]));
    network.hold_up(2);
    for number in 0..30 {
        network.write(0, writer, &payload(number, 100)).expect("write accepted");
        network.run(2);
    }
    network.resume(2, true);
    network.run(10);
    let mut numbers = |at: usize| -> Vec<u32> {
        network
            .take_all(at + 1, readers[at])
            .iter()
            .map(|(_, bytes)| crate::qos::content_filter::number(bytes))
            .collect()
    };
    assert_eq!(numbers(0), (0..30).step_by(3).collect::<Vec<_>>());
    assert_eq!([numbers(1), numbers(2)], [(0..30).collect::<Vec<_>>(), (0..30).collect()]);
}
