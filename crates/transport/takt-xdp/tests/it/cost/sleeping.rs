//! Tests of a participant that spins and then sleeps: datagrams by AF_XDP are received in both
//! states, and at the transition.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use takt::qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos, TopicQos};
use takt::{DataReader, DataReaderListener, DomainParticipant, Idle, Runtime};
use takt_transport::Transport;
use takt_transport::udp::UdpTransport;
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use crate::network::wire;
use crate::participants_helper::{Blob, TIMEOUT};

/// Time that the participant spins: much shorter than it takes to inspect its thread.
const SPIN_TIME: Duration = Duration::from_micros(200);

/// Longer than any spurious sleep.
const LONG_SLEEP: Duration = Duration::from_millis(20);

/// Longer than any test, so that only data wakes a thread.
const LONG_PERIOD: Duration = Duration::from_secs(100_000);

/// Listener that reports the numbers of the samples and the thread that receives them.
struct ReportingListener(Sender<(u32, libc::pid_t)>);

impl DataReaderListener<Blob> for ReportingListener {
    fn on_data_available(&mut self, reader: &DataReader<Blob>) {
        // SAFETY: no pointers; it cannot fail.
        let thread = unsafe { libc::gettid() };
        for blob in reader.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data) {
            self.0.send((blob.number, thread)).expect("the test listens");
        }
    }
}

fn participant(transport: Box<dyn Transport>, idle: Idle) -> DomainParticipant {
    let builder = DomainParticipant::builder(0).runtime(Runtime::Shared).transport(transport).idle(idle);
    builder.lease_duration(LONG_PERIOD).announcement_period(Duration::from_secs(10_000)).build().expect("a participant")
}

/// Returns whether a thread sleeps, and its number of voluntary context switches.
fn sleeps(thread: libc::pid_t) -> (bool, String) {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).expect("the thread is alive");
    let line = |name| status.lines().find(|line| line.starts_with(name)).expect("the kernel reports it").to_owned();
    (line("State:").contains('S'), line("voluntary_ctxt_switches:"))
}

/// Waits until a thread of this process has slept for `span` without waking: its first sleep after
/// an event is short.
fn falls_asleep(thread: libc::pid_t, span: Duration) {
    let (mut since, mut before) = (Instant::now(), sleeps(thread));
    while !before.0 || since.elapsed() < span {
        std::thread::yield_now();
        let now = sleeps(thread);
        if now != before {
            (since, before) = (Instant::now(), now);
        }
    }
}

/// Waits for the next number and its thread.
fn next_report(reports: &Receiver<(u32, libc::pid_t)>) -> (u32, libc::pid_t) {
    reports.recv_timeout(TIMEOUT).expect("the wake-up is reported")
}

#[test]
fn participant_that_spins_and_then_blocks_misses_no_sample() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some([here, there]) = wire(1) else { return };
        let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
        let xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        assert!(xdp.capabilities().scans_memory);
        let udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let (sender, reports) = channel();
        let listening = here.run(|| participant(Box::new(xdp), Idle::SpinThenBlock(SPIN_TIME)));
        let topic = listening.create_topic::<Blob>("Numbers", TopicQos::default()).expect("a topic");
        let subscriber = listening.create_subscriber(SubscriberQos::default()).expect("a subscriber");
        let reader = subscriber.create_datareader(&topic, DataReaderQos::default()).expect("a reader");
        reader.set_listener(Box::new(ReportingListener(sender))).expect("a listener");
        let writing = there.run(|| participant(Box::new(udp), Idle::Block));
        let topic = writing.create_topic::<Blob>("Numbers", TopicQos::default()).expect("a topic");
        let publisher = writing.create_publisher(PublisherQos::default()).expect("a publisher");
        // Best effort, so that a missed datagram is not repaired.
        let qos = DataWriterQos { reliability: takt::qos::Reliability::BEST_EFFORT, ..DataWriterQos::default() };
        let writer = publisher.create_datawriter(&topic, qos).expect("a writer");
        let matched = || {
            let (writer, reader) = (writer.publication_matched_status(), reader.subscription_matched_status());
            writer.expect("open").current_count == 1 && reader.expect("open").current_count == 1
        };
        while !matched() {
            std::thread::yield_now();
        }
        let mut thread = None;
        for number in 0..600 {
            // The thread sleeps deeply, has just fallen asleep, is about to, or is awake after the
            // last sample.
            match (thread, number % 3) {
                (Some(thread), 0) => falls_asleep(thread, if number % 30 == 0 { LONG_SLEEP } else { Duration::ZERO }),
                (Some(_), 1) => {
                    let since = Instant::now();
                    while since.elapsed() < Duration::from_micros(180 + u64::from(number % 40)) {
                        std::hint::spin_loop();
                    }
                }
                _ => {}
            }
            writer.write(&Blob { number, octets: vec![1; 64] }).expect("the buffer has space");
            let (received, by) = next_report(&reports);
            assert_eq!(received, number);
            assert_eq!(*thread.get_or_insert(by), by, "a single thread receives");
        }
        let stats = listening.diagnostics().transport_stats().expect("open");
        let by_af_xdp: u64 = stats.iter().map(|traffic| traffic.stats.bypassed_in).sum();
        assert!(by_af_xdp >= 600, "{by_af_xdp} arrived by AF_XDP");
    }
}
