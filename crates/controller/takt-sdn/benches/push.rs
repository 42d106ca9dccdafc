//! Benchmark of the rate at which pairs are admitted in live switches, and of the controller's
//! memory.
//!
//! `cargo bench -p takt-sdn --bench push` as root, with Open vSwitch; `-- PAIRS` selects another
//! number than 10,000. Bridges of Open vSwitch form a line, with hosts at each. Every host sends
//! announcements of DDS endpoints, with contracts, to others at most two switches away. The
//! controller with its runtime and sockets discovers each pair, admits it, sends its entries and
//! meter, waits for every confirmation and releases the pair. Every pair is a flow of its own,
//! since its reader has its own UDP port. The first pairs are sent one by one, the others with a
//! number of them under way. At the end the entries of the switches are counted.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use takt_lab::Lab;
use takt_lab::file::SWITCHES;
use takt_sdn::controller::{Config, Event};
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_sdn::runtime::Runtime;
use takt_testkit::lab_text::{LabText, network_text};
use takt_testkit::{Random, require};
use takt_wire::builder::{DataEmit, MessageBuilder};
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::message::Header;
use takt_wire::qos::UserData;
use takt_wire::{
    Duration as Lease, EntityId, Guid, GuidPrefix, Locator, Payload, ProtocolVersion, SequenceNumber, VendorId,
};

const BRIDGES: usize = 10;
const HOSTS_EACH: usize = 8;
const HOSTS: usize = BRIDGES * HOSTS_EACH;
const PAIRS: usize = 10_000;
/// Distances from a writer's host to a reader's host. All namespaces of a machine share the
/// kernel's neighbor table, which holds 1,024 addresses (`gc_thresh3`): a host that knows more
/// hosts would lose announcements.
const STEPS: [usize; 4] = [1, 3, HOSTS_EACH + 1, 2 * HOSTS_EACH];
/// Number of pairs that are sent one by one.
const ALONE: usize = 100;
/// Number of the other pairs that are under way at once.
const UNDER_WAY: usize = 256;
const RATE_BPS: u64 = 1_000_000_000;
const DISCOVERY: u16 = 7400;
const METATRAFFIC: u16 = 7410;
const USER: u16 = 7411;
/// First UDP port of readers.
const FIRST_PORT: u16 = 20_000;
const LIMIT: Duration = Duration::from_secs(120);
/// Time without a decision after which announcements are sent again.
const RESEND: Duration = Duration::from_millis(500);
/// Period of participant announcements.
const ANNOUNCEMENT: Duration = Duration::from_secs(3);
const OFFER: &[u8] = b"rt.minsep=1s;rt.jitter=1ms;rt.maxsize=100";
const REQUEST: &[u8] = b"rt.e2e=200ms";

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 8, 1 + (host / 200) as u8, 1 + (host % 200) as u8)
}

fn bridge(host: usize) -> usize {
    host / HOSTS_EACH
}

fn prefix(host: usize) -> GuidPrefix {
    let [high, low] = (host as u16).to_be_bytes();
    GuidPrefix([1, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, high, low])
}

fn lab() -> Lab {
    let names: Vec<String> = (0..BRIDGES).map(|number| format!("s{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut text = LabText::controlled(&names);
    for pair in names.windows(2) {
        text = text.link(pair[0], pair[1]);
    }
    for host in 0..HOSTS {
        text = text.host(&format!("h{host}"), &format!("{}/16", address(host)), names[bridge(host)]);
    }
    let file = text.text("sdn-push").parse().expect("a network");
    Lab::up(&file).unwrap_or_else(|why| panic!("{why}"))
}

/// Returns a network file whose queues hold everything that all flows of a port send at once.
fn network() -> NetworkFile {
    let model = |name: &str| {
        let mut model = SwitchModel::built_in(name)?;
        model.queues.iter_mut().for_each(|queue| queue.depth.frames = 10_000);
        Ok(model)
    };
    NetworkFile::parse("network.toml", &network_text(RATE_BPS), model).unwrap_or_else(|why| panic!("{why}"))
}

/// A message of a host.
struct Message {
    from: usize,
    to: SocketAddr,
    octets: Vec<u8>,
}

/// A participant that sends announcements and reads nothing.
struct Talker {
    host: usize,
    socket: UdpSocket,
    numbers: [i64; 2],
}

impl Talker {
    fn open(lab: &Lab, host: usize) -> Self {
        let namespace = lab.namespace(&format!("h{host}")).expect("the lab file has the host");
        let socket = namespace.run(|| UdpSocket::bind((address(host), METATRAFFIC))).expect("root");
        Self { host, socket: socket.expect("the port is free"), numbers: [0; 2] }
    }

    /// Sends a message and returns it.
    fn send(&self, to: SocketAddr, writer: EntityId, number: i64, payload: &[u8]) -> Message {
        let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::CYCLONE, prefix: prefix(self.host) };
        let mut buffer = [0; 1400];
        let mut builder = MessageBuilder::new(&mut buffer, &header).expect("the buffer has space");
        let (sn, payload) = (SequenceNumber(number), Payload::Data(payload));
        let emit = DataEmit { reader: EntityId::UNKNOWN, writer, sn, inline_qos: None, payload };
        builder.data(&emit).expect("the buffer has space");
        let len = builder.len();
        let message = Message { from: self.host, to, octets: buffer[..len].to_vec() };
        self.send_again(&message);
        message
    }

    fn send_again(&self, message: &Message) {
        self.socket.send_to(&message.octets, message.to).expect("the interface is up");
    }

    fn announce(&self, to: usize) {
        let locator = |port| vec![Locator::from(SocketAddr::from((address(self.host), port)))];
        let data = ParticipantData {
            guid: Guid::new(prefix(self.host), EntityId::PARTICIPANT),
            vendor_id: VendorId::CYCLONE,
            domain_id: Some(0),
            metatraffic_unicast: locator(METATRAFFIC),
            default_unicast: locator(USER),
            lease_duration: Lease::INFINITE,
            ..ParticipantData::default()
        };
        self.send((address(to), DISCOVERY).into(), EntityId::SPDP_WRITER, 1, &data.to_bytes());
    }

    fn publish(&mut self, to: usize, number: usize) -> Message {
        let mut data = PublicationData { guid: writer(self.host, number), ..PublicationData::default() };
        (data.topic_name, data.type_name) = (format!("topic {number}"), "Test".into());
        data.qos.user_data = UserData(OFFER.to_vec());
        self.numbers[0] += 1;
        let to = (address(to), METATRAFFIC).into();
        self.send(to, EntityId::SEDP_PUB_WRITER, self.numbers[0], &data.to_bytes())
    }

    fn subscribe(&mut self, to: usize, number: usize, port: u16) -> Message {
        let guid = Guid::new(prefix(self.host), EntityId::user_reader(number as u32 + 1, false));
        let mut data = SubscriptionData { guid, ..SubscriptionData::default() };
        (data.topic_name, data.type_name) = (format!("topic {number}"), "Test".into());
        data.unicast = vec![Locator::from(SocketAddr::from((address(self.host), port)))];
        data.qos.user_data = UserData(REQUEST.to_vec());
        self.numbers[1] += 1;
        let to = (address(to), METATRAFFIC).into();
        self.send(to, EntityId::SEDP_SUB_WRITER, self.numbers[1], &data.to_bytes())
    }
}

fn writer(host: usize, number: usize) -> Guid {
    Guid::new(prefix(host), EntityId::user_writer(number as u32 + 1, false))
}

/// State that the thread of the controller exports.
#[derive(Default)]
struct Shown {
    is_over: AtomicBool,
    participants: AtomicUsize,
    is_ready: AtomicBool,
    others: Mutex<Vec<String>>,
}

fn control(mut runtime: Runtime, shown: &Shown, decided: &Sender<(Guid, bool, Instant)>) {
    while !shown.is_over.load(Ordering::Relaxed) {
        runtime.run_once(Duration::from_millis(5)).expect("the runtime can wait");
        while let Some(event) = runtime.poll_event() {
            let (writer, is_admitted) = match &event {
                Event::Admitted { pair, .. } => (pair.writer, true),
                Event::Refused { pair, .. } => (pair.writer, false),
                _ => continue,
            };
            if !is_admitted {
                shown.others.lock().expect("no panic").push(event.to_string());
            }
            // The receiver is gone after a failure of the benchmark.
            let _ = decided.send((writer, is_admitted, Instant::now()));
        }
        if !shown.is_ready.load(Ordering::Relaxed) {
            let controller = runtime.controller();
            let (links, edges) = (controller.topology().links().count(), controller.topology().edges().count());
            let is_ready = links == BRIDGES - 1 && edges == HOSTS && controller.is_settled();
            shown.is_ready.store(is_ready, Ordering::Relaxed);
        }
        let participants = runtime.controller().discovery().participants().count();
        shown.participants.store(participants, Ordering::Relaxed);
    }
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        // tidy-allow(sleep): the polling interval.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the resident memory of this process in octets.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("the kernel reports the state");
    let kib: usize = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kib << 10
}

/// Returns the hosts of a writer and its reader: on the same switch, on the next one, or two
/// switches apart.
fn ends(random: &mut Random, number: usize) -> (usize, usize) {
    let from = number % HOSTS;
    let step = STEPS[random.below(STEPS.len())];
    (from, if from + step < HOSTS { from + step } else { from - step })
}

/// Returns the number of entries of admitted flows in each switch.
fn entries(lab: &Lab) -> Vec<usize> {
    let count = |number| {
        let target = format!("unix:{}", lab.directory().join(format!("s{number}.mgmt")).display());
        let output = Command::new("ovs-ofctl").args(["-O", "OpenFlow13", "dump-flows", &target]).output();
        let output = output.expect("the program is installed");
        String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains("priority=55000,")).count()
    };
    (0..BRIDGES).map(count).collect()
}

/// Sent pairs and their results.
struct Run {
    talkers: Vec<Talker>,
    random: Random,
    ports: Vec<u16>,
    sent: BTreeMap<Guid, (Instant, [Message; 2])>,
    decided: Receiver<(Guid, bool, Instant)>,
    entries: Vec<usize>,
    latencies: Vec<Duration>,
    refused: usize,
    resent: usize,
    announced: Instant,
}

impl Run {
    fn send(&mut self, number: usize) {
        let (from, to) = ends(&mut self.random, number);
        self.ports[to] += 1;
        let port = self.ports[to];
        let request = self.talkers[to].subscribe(from, number, port);
        let begin = Instant::now();
        let offer = self.talkers[from].publish(to, number);
        self.sent.insert(writer(from, number), (begin, [request, offer]));
        let (low, high) = (bridge(from).min(bridge(to)), bridge(from).max(bridge(to)));
        (low..=high).for_each(|bridge| self.entries[bridge] += 1);
    }

    /// Announces every participant periodically, so that its host stays known.
    fn announce(&mut self) {
        if self.announced.elapsed() > ANNOUNCEMENT {
            self.announced = Instant::now();
            self.talkers.iter().for_each(|talker| talker.announce((talker.host + 1) % HOSTS));
        }
    }

    /// Waits for a decision. Lost announcements are sent again.
    fn receive(&mut self) {
        let begin = Instant::now();
        self.announce();
        let (writer, is_admitted, when) = loop {
            match self.decided.recv_timeout(RESEND) {
                Ok(decided) => break decided,
                Err(RecvTimeoutError::Timeout) => {
                    let waiting = self.sent.len();
                    assert!(begin.elapsed() < LIMIT, "no decision; {waiting} wait, {} were refused", self.refused);
                    self.resent += waiting;
                    let messages = self.sent.values().flat_map(|(_, messages)| messages);
                    messages.for_each(|message| self.talkers[message.from].send_again(message));
                }
                Err(RecvTimeoutError::Disconnected) => panic!("the controller has ended"),
            }
        };
        // A refused pair is tried again when more is known.
        if !is_admitted {
            self.refused += 1;
        } else if let Some((sent, _)) = self.sent.remove(&writer) {
            self.latencies.push(when.saturating_duration_since(sent));
        }
    }

    /// Sends pairs with this number under way, and returns the time until all are decided.
    fn pairs(&mut self, numbers: std::ops::Range<usize>, under_way: usize) -> Duration {
        let begin = Instant::now();
        for number in numbers {
            while self.sent.len() >= under_way {
                self.receive();
            }
            self.send(number);
        }
        while !self.sent.is_empty() {
            self.receive();
        }
        begin.elapsed()
    }

    fn report(&mut self, what: &str, count: usize, took: Duration, entries_before: &[usize], empty: usize, all: usize) {
        self.latencies.sort_unstable();
        let at = |percent: usize| self.latencies[(self.latencies.len() - 1) * percent / 100];
        let new: Vec<usize> = self.entries.iter().zip(entries_before).map(|(now, before)| now - before).collect();
        let seconds = took.as_secs_f64();
        let rate = |count: usize| count as f64 / seconds;
        let (least, most) = (new.iter().min().expect("bridges"), new.iter().max().expect("bridges"));
        let memory = resident();
        println!(
            "{what}: {:.0} pairs/s, {:.0} entries/s (per switch {:.0} to {:.0}); from announcement to release p50 {:?}, p99 {:?}; \
             resident {:.1} MiB, {:.1} KiB for each of {all}",
            rate(count),
            rate(new.iter().sum()),
            rate(*least),
            rate(*most),
            at(50),
            at(99),
            memory as f64 / 1_048_576.0,
            memory.saturating_sub(empty) as f64 / 1024.0 / all as f64
        );
        self.latencies.clear();
    }
}

fn main() {
    if let Err(why) = require::open_vswitch() {
        println!("not run: {why}");
        return;
    }
    let pairs = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(PAIRS);
    let lab = lab();
    let config = Config { network: Some(network()), ..Config::default() };
    let address = "127.0.0.1:6653".parse().expect("a valid address");
    let listen = || Runtime::listen(address, None, config);
    let runtime = lab.namespace(SWITCHES).expect("switches").run(listen).expect("root").expect("a free port");
    let (shown, (sender, decided)) = (Arc::new(Shown::default()), channel());
    let thread = std::thread::spawn({
        let shown = Arc::clone(&shown);
        move || control(runtime, &shown, &sender)
    });
    wait("all links and edges", || shown.is_ready.load(Ordering::Relaxed));
    let talkers: Vec<Talker> = (0..HOSTS).map(|host| Talker::open(&lab, host)).collect();
    wait("all participants", || {
        talkers.iter().for_each(|talker| talker.announce((talker.host + 1) % HOSTS));
        // tidy-allow(sleep): the interval between two announcements.
        std::thread::sleep(Duration::from_millis(200));
        shown.participants.load(Ordering::Relaxed) == HOSTS
    });
    let empty = resident();
    println!("{BRIDGES} switches, {HOSTS} hosts; resident {:.1} MiB without a pair", empty as f64 / 1_048_576.0);
    let mut run = Run {
        talkers,
        random: Random(1),
        ports: vec![FIRST_PORT; HOSTS],
        sent: BTreeMap::new(),
        decided,
        entries: vec![0; BRIDGES],
        latencies: Vec::new(),
        refused: 0,
        resent: 0,
        announced: Instant::now(),
    };
    let took = run.pairs(0..ALONE, 1);
    run.report("one by one", ALONE, took, &[0; BRIDGES], empty, ALONE);
    let (begin, begin_entries) = (Instant::now(), run.entries.clone());
    for from in (ALONE..pairs).step_by(1000) {
        let (to, before) = (pairs.min(from + 1000), run.entries.clone());
        let took = run.pairs(from..to, UNDER_WAY);
        run.report(&format!("up to {to}"), to - from, took, &before, empty, to);
    }
    let took = begin.elapsed().as_secs_f64();
    let new: usize = run.entries.iter().zip(&begin_entries).map(|(now, before)| now - before).sum();
    println!("all: {:.0} pairs/s, {:.0} entries/s", (pairs - ALONE) as f64 / took, new as f64 / took);
    let why = shown.others.lock().expect("no panic").first().cloned();
    println!("{} pairs sent again; {} refusals before admission, the first one: {why:?}", run.resent, run.refused);
    assert_eq!(entries(&lab), run.entries, "the switches have the entries of all pairs");
    shown.is_over.store(true, Ordering::Relaxed);
    thread.join().expect("the controller ends");
}
