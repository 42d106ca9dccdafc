//! Idle behavior of the driving thread as seen by a transport: the kind of scans and their times.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::*;
use takt::qos::History;
use takt::{DomainParticipant, Idle, Runtime};
use takt_testkit::waiting::{until, until_some};
use takt_transport::{
    Capabilities, Commit, FlowId, Locators, Reach, Receive, RxFrame, RxMeta, Scan, Status, Transport, TransportError,
    TransportStats,
};
use takt_wire::Locator;

/// Usually longer than preemption on a loaded machine. The tests pass even if preemption lasts
/// longer.
const SPAN: Duration = Duration::from_millis(30);

/// Kind of a scan, its time, and whether it received a datagram.
type Request = (Scan, Instant, bool);

type Log = Arc<Mutex<Vec<Request>>>;

/// Transport that receives from a socket and logs every scan.
struct Quiet {
    socket: UnixDatagram,
    descriptors: [RawFd; 1],
    buffer: [u8; 64],
    locators: Locators,
    frame: Vec<u8>,
    log: Log,
}

impl Quiet {
    /// Returns the transport, the socket that sends to it, and its log.
    fn new() -> (Self, UnixDatagram, Log) {
        let (socket, peer) = UnixDatagram::pair().expect("sockets");
        socket.set_nonblocking(true).expect("a socket");
        let log = Log::default();
        let quiet = Self {
            descriptors: [socket.as_raw_fd()],
            socket,
            buffer: [0; 64],
            locators: Locators::default(),
            frame: vec![0; 65_536],
            log: Arc::clone(&log),
        };
        (quiet, peer, log)
    }
}

type Result<T> = std::result::Result<T, TransportError>;

impl Transport for Quiet {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "quiet", max_message_len: self.frame.len(), scans_memory: false }
    }

    fn status(&self) -> Status<'_> {
        Status { descriptors: &self.descriptors, ..Status::new(&self.locators, TransportStats::default()) }
    }

    fn reach(&self, _: &Locator) -> Reach {
        Reach::Served
    }

    fn loan(&mut self) -> Result<&mut [u8]> {
        Ok(&mut self.frame)
    }

    fn commit(&mut self, _: Commit<'_>) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>> {
        let (Receive::Any(scan) | Receive::NotUrgent(scan)) = request else { return Ok(None) };
        // A datagram that arrives before the sleep is found by the scan after it.
        let received = if scan == Scan::Taken { None } else { self.socket.recv(&mut self.buffer).ok() };
        self.log.lock().expect("no panic").push((scan, Instant::now(), received.is_some()));
        let meta =
            RxMeta { source: Locator::INVALID, local: Locator::INVALID, flow: FlowId::DEFAULT, multicast: false };
        Ok(received.map(|len| RxFrame::new(&self.buffer[..len], meta)))
    }
}

fn participant(runtime: Runtime, idle: Idle) -> (DomainParticipant, UnixDatagram, Log) {
    let (quiet, peer, log) = Quiet::new();
    let builder = DomainParticipant::builder(domain()).runtime(runtime).idle(idle).transport(Box::new(quiet));
    (builder.build().expect("participant"), peer, log)
}

/// Returns the number of leading hot scans and the time of the first other scan; `None` if there
/// was none.
fn end_of_spinning(log: &[Request]) -> Option<(usize, Instant)> {
    let hot = log.iter().take_while(|(scan, ..)| *scan == Scan::Hot).count();
    log.get(hot).map(|(_, at, _)| (hot, *at))
}

#[test]
fn wait_spins_for_the_configured_time_and_then_sleeps() {
    let (participant, peer, log) = participant(Runtime::Inline, Idle::SpinThenBlock(SPAN));
    // Retry if the thread was preempted while spinning, so that no time was left to sleep.
    let (begun, hot, end) = until_some("a wait with time left sleeps", || {
        log.lock().expect("no panic").clear();
        let begun = Instant::now();
        assert!(!participant.spin_once(Duration::from_millis(100)).expect("driven"), "nothing comes");
        assert!(begun.elapsed() >= Duration::from_millis(100));
        end_of_spinning(&log.lock().expect("no panic")).map(|(hot, end)| (begun, hot, end))
    });
    assert!(hot > 0 && end - begun >= SPAN, "{hot} hot scans, {:?}", end - begun);

    // A datagram that arrives during the sleep restarts spinning.
    log.lock().expect("no panic").clear();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("it sleeps", || end_of_spinning(&log.lock().expect("no panic")).is_some());
            peer.send(b"no RTPS").expect("room");
        });
        assert!(participant.spin_once(Duration::from_secs(60)).expect("driven"), "a datagram");
    });
    assert!(log.lock().expect("no panic").iter().any(|(scan, _, found)| *found && *scan != Scan::Hot));
    log.lock().expect("no panic").clear();
    participant.spin_once(Duration::ZERO).expect("driven");
    assert_eq!(log.lock().expect("no panic").first().map(|(scan, ..)| *scan), Some(Scan::Hot));
}

#[test]
fn datagram_while_spinning_is_received_without_sleep_and_prolongs_spinning() {
    let (participant, peer, log) = participant(Runtime::Inline, Idle::SpinThenBlock(Duration::from_secs(3600)));
    log.lock().expect("no panic").clear();
    for _ in 0..100 {
        peer.send(b"no RTPS").expect("room");
        assert!(participant.spin_once(Duration::from_secs(60)).expect("driven"), "a datagram");
    }
    assert!(!participant.spin_once(Duration::from_millis(5)).expect("driven"), "the time is over before the span");
    assert_eq!(end_of_spinning(&log.lock().expect("no panic")), None, "only hot scans");
}

#[test]
fn only_readable_transports_are_polled_after_a_sleep() {
    let (silent, _silent_peer, silent_log) = Quiet::new();
    let (other, peer, log) = Quiet::new();
    let builder = DomainParticipant::builder(domain()).runtime(Runtime::Inline);
    let participant = builder.transport(Box::new(silent)).transport(Box::new(other)).build().expect("participant");
    for _ in 0..10 {
        silent_log.lock().expect("no panic").clear();
        log.lock().expect("no panic").clear();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until("it looks", || !log.lock().expect("no panic").is_empty());
                peer.send(b"no RTPS").expect("room");
            });
            assert!(participant.spin_once(Duration::from_secs(60)).expect("driven"), "a datagram");
        });
        assert!(log.lock().expect("no panic").iter().any(|(scan, _, found)| *found && *scan == Scan::All));
        // A full scan may precede a sleep, but must not follow it.
        let silent = silent_log.lock().expect("no panic");
        let slept = silent.iter().skip_while(|(scan, ..)| *scan != Scan::Taken);
        assert_eq!(slept.filter(|(scan, ..)| *scan == Scan::All).count(), 0);
    }
}

#[test]
fn receiving_thread_spins_and_sleeps() {
    let (_participant, peer, log) = participant(Runtime::Shared, Idle::SpinThenBlock(SPAN));
    let wait_for =
        |what: &str, is_there: &dyn Fn(&[Request]) -> bool| until(what, || is_there(&log.lock().expect("no panic")));
    let slept = |log: &[Request]| {
        log.iter().position(|(scan, ..)| *scan == Scan::Hot).is_some_and(|hot| end_of_spinning(&log[hot..]).is_some())
    };
    wait_for("it spins, then sleeps", &slept);
    peer.send(b"no RTPS").expect("room");
    wait_for("it spins for a span after a datagram", &|log| {
        let Some(found) = log.iter().position(|(_, _, found)| *found) else { return false };
        let later = &log[found + 1..];
        let Some(hot) = later.iter().position(|(scan, ..)| *scan == Scan::Hot) else { return false };
        end_of_spinning(&later[hot..]).is_some_and(|(_, end)| end - log[found].1 >= SPAN)
    });
}

/// The reception timestamp after a long sleep is the time of wakeup, not that of falling asleep.
#[test]
fn reception_timestamp_after_silence_is_the_arrival_time() {
    const SILENCE: Duration = Duration::from_millis(600);
    for runtime in RUNTIMES {
        let domain = domain();
        let publisher = on_loopback(domain, Runtime::Shared).build().expect("participant");
        let subscriber = on_loopback(domain, runtime).build().expect("participant");
        let (writer, reader) = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let pair = Pair::<Shape>::between(publisher, subscriber, writer, reader);
        let begun = Instant::now();
        let mut samples = Vec::new();
        let (writer, reader, subscriber) = (pair.writer.clone(), &pair.reader, &pair.subscriber);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while begun.elapsed() < SILENCE {
                    std::thread::yield_now();
                }
                writer.write(&Shape::new("RED", 1)).expect("room");
            });
            while samples.is_empty() {
                assert!(begun.elapsed() < TIMEOUT, "{runtime:?}: the sample does not come");
                if runtime == Runtime::Inline {
                    subscriber.spin_once(Duration::from_secs(10)).expect("driven");
                } else {
                    std::thread::yield_now();
                }
                samples = reader.take(1).expect("open");
            }
        });
        let info = samples[0].info;
        let early = info.source_timestamp.to_nanos() - info.reception_timestamp.to_nanos();
        assert!(early < 100_000_000, "{runtime:?}: received {early} ns before it was sent");
    }
}
