//! Tests of a protected pair in a ring of three bridges of Open vSwitch, with a failed link, with
//! and without a controller.
//!
//! Each run prints the duration of the interruption and the number of lost samples. Neither is
//! asserted.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use takt_lab::Lab;
use takt_sdn::api::controller_client::Source;
use takt_sdn::controller::{Config, Event};
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_sdn::registration::{Owner, Registration, State as Decided};
use takt_sdn::view::ProtectionState;
use takt_testkit::lab_text::{CLASSES, LabText, network_text};
use takt_testkit::waiting::{OnDrop, until, until_some};
use takt_testkit::{not_run, overload, require};

use crate::site::{Running, State, socket, up};

const TALKER: Ipv4Addr = Ipv4Addr::new(10, 8, 9, 1);
const LISTENER: Ipv4Addr = Ipv4Addr::new(10, 8, 9, 2);
const PORT: u16 = 7421;
const RATE_BPS: u64 = 20_000_000;
const SAMPLE_LEN: usize = 200;
const SEPARATION: Duration = Duration::from_millis(1);
/// Number of samples that must arrive before and after the change of a link.
const ARRIVALS: u32 = 200;
/// Link between the switches of both hosts, by its index in the file.
const NEAR: usize = 0;
/// Link between the third switch and the listener's, by its index in the file.
const FAR: usize = 1;

fn ring() -> LabText {
    let text = LabText::controlled(&["s1", "s2", "s3"]).switch_priority(30).classes(CLASSES);
    let text = text.link_of_rate("s1", "s2", "20 Mbit/s").link_of_rate("s2", "s3", "20 Mbit/s");
    let text = text.link_of_rate("s3", "s1", "20 Mbit/s");
    text.host("talker", "10.8.9.1/24", "s1").host("listener", "10.8.9.2/24", "s2")
}

fn config() -> Config {
    let network = NetworkFile::parse("network.toml", &network_text(RATE_BPS), SwitchModel::built_in);
    Config { network: Some(network.unwrap_or_else(|why| panic!("{why}"))), ..Config::default() }
}

fn registration(protected: bool) -> Registration {
    Registration {
        topic: "Brake".to_owned(),
        writer: "talker".to_owned(),
        reader: "listener".to_owned(),
        from: TALKER.into(),
        to: LISTENER.into(),
        port: PORT,
        answer_port: None,
        group: None,
        separation_ns: 1_000_000,
        jitter_ns: Some(20_000_000),
        size: SAMPLE_LEN as u32,
        limit_ns: 200_000_000,
        importance: 0,
        protected,
        overhead: 0,
        lease_s: 600,
    }
}

/// Returns the protection of the pair as reported by the controller.
fn protection(running: &Running) -> Option<ProtectionState> {
    let view = running.questions.view().expect("the controller answers");
    view.pairs.iter().find_map(|pair| pair.protection.as_ref()).map(|own| own.state)
}

/// Numbered samples from one host to the other, sent until it is dropped.
struct Samples {
    sent: AtomicU32,
    is_over: AtomicBool,
    /// Arrival time of each sample.
    arrived: std::sync::Mutex<BTreeMap<u32, Instant>>,
}

impl Samples {
    fn send(&self, from: &UdpSocket) {
        let mut sample = [0; SAMPLE_LEN];
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.sent.load(Ordering::Relaxed);
            sample[..4].copy_from_slice(&number.to_le_bytes());
            from.send_to(&sample, (LISTENER, PORT)).expect("a route exists");
            self.sent.store(number + 1, Ordering::Relaxed);
            // tidy-allow(sleep): the workload sends one sample per separation.
            std::thread::sleep(SEPARATION);
        }
    }

    fn take(&self, at: &UdpSocket) {
        at.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let mut buffer = [0; SAMPLE_LEN];
        while !self.is_over.load(Ordering::Relaxed) {
            if let Ok(SAMPLE_LEN) = at.recv(&mut buffer) {
                let number = u32::from_le_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
                self.arrived.lock().expect("no panic").entry(number).or_insert_with(Instant::now);
            }
        }
    }

    /// Waits until a number of samples sent from now on have arrived.
    fn wait(&self, what: &str) {
        let from = self.sent.load(Ordering::Relaxed);
        let count = || self.arrived.lock().expect("no panic").range(from..).count();
        until(&format!("samples arrive: {what}"), || count() >= ARRIVALS as usize);
    }

    /// Prints the longest interval without a sample since a time, and the number of samples sent
    /// since then that were lost.
    fn report(&self, what: &str, since: Instant) {
        let arrived = self.arrived.lock().expect("no panic");
        let times: Vec<Instant> = arrived.values().copied().filter(|at| *at > since).collect();
        let gap = times.windows(2).map(|two| two[1].saturating_duration_since(two[0])).max().unwrap_or_default();
        let first = times.first().map(|at| at.saturating_duration_since(since)).unwrap_or_default();
        let numbers = arrived.iter().filter(|(_, at)| **at > since).map(|(number, _)| *number);
        let (least, most) = (numbers.clone().min().unwrap_or_default(), numbers.max().unwrap_or_default());
        let before = arrived.range(..least).next_back().map_or(least, |(number, _)| *number);
        let lost = (most - before) as usize - arrived.range(before + 1..=most).count();
        println!("{what}: {:.1} ms without a sample, {lost} lost", gap.max(first).as_secs_f64() * 1e3);
    }
}

/// Runs `script` while samples flow.
fn with_samples(lab: &Lab, running: Running, protected: bool, script: impl FnOnce(&Samples, Running)) {
    let talker = socket(lab, "talker", (TALKER, PORT).into());
    let listener = socket(lab, "listener", (LISTENER, PORT).into());
    // Frames of both hosts let the controller find them.
    talker.send_to(b"greeting", (LISTENER, PORT)).expect("a route exists");
    listener.send_to(b"greeting", (TALKER, PORT)).expect("a route exists");
    until_some("the registration is admitted", || {
        let result = running.questions.register(&Owner::Operator, registration(protected)).expect("an answer");
        let registered = result.unwrap_or_else(|why| panic!("{why}"));
        let state = registered.pair.registration.expect("the pair is registered").state;
        (state == Decided::Admitted).then_some(())
    });
    let expected = protected.then_some(ProtectionState::Protected);
    until("the pair is protected as requested", || protection(&running) == expected);
    let samples =
        Samples { sent: AtomicU32::new(0), is_over: AtomicBool::new(false), arrived: std::sync::Mutex::default() };
    std::thread::scope(|scope| {
        let _end = OnDrop(|| samples.is_over.store(true, Ordering::Relaxed));
        scope.spawn(|| samples.send(&talker));
        scope.spawn(|| samples.take(&listener));
        samples.wait("before");
        script(&samples, running);
    });
}

#[test]
fn samples_of_a_protected_pair_continue_after_a_link_failure_without_a_controller() {
    let _alone = overload::lock();
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("failover", &ring());
    let running = Running::start(&lab, config());
    running.wait("three switches in a ring", State::settled(3, 2, 2));
    with_samples(&lab, running, true, |samples, running| {
        running.stop();
        for is_up in [false, true, false] {
            let since = Instant::now();
            lab.set_link(NEAR, is_up).expect("root");
            samples.wait("after the link changed");
            let what = if is_up { "is back" } else { "failed" };
            samples.report(&format!("protected, no controller, the link {what}"), since);
        }
    });
    lab.remove().expect("the lab can be removed");
}

#[test]
fn controller_keeps_samples_on_the_backup_path_and_protects_them_again() {
    let _alone = overload::lock();
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("failover-controlled", &ring());
    let running = Running::start(&lab, config());
    running.wait("three switches in a ring", State::settled(3, 2, 2));
    with_samples(&lab, running, true, |samples, running| {
        let since = Instant::now();
        lab.set_link(NEAR, false).expect("root");
        until("no second way is left", || protection(&running) == Some(ProtectionState::Unprotected));
        samples.wait("after the link failed");
        samples.report("protected, with a controller, the link failed", since);
        let since = Instant::now();
        lab.set_link(NEAR, true).expect("root");
        until("the pair is protected again", || protection(&running) == Some(ProtectionState::Protected));
        samples.wait("after the link is back");
        samples.report("protected, with a controller, the link is back", since);
        let refused = running.stop().into_iter().filter(|event| matches!(event, Event::EntryRefused { .. }));
        assert_eq!(refused.count(), 0);
        // The path is now through the third switch, which sends samples back by their ingress port.
        let since = Instant::now();
        lab.set_link(FAR, false).expect("root");
        samples.wait("after the second link of the way failed");
        samples.report("protected, no controller, the second link failed", since);
    });
    lab.remove().expect("the lab can be removed");
}

#[test]
fn samples_without_protection_wait_for_the_controller() {
    let _alone = overload::lock();
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("failover-none", &ring());
    let running = Running::start(&lab, config());
    running.wait("three switches in a ring", State::settled(3, 2, 2));
    with_samples(&lab, running, false, |samples, running| {
        let since = Instant::now();
        lab.set_link(NEAR, false).expect("root");
        samples.wait("after the link failed");
        samples.report("without protection, with a controller, the link failed", since);
        running.stop();
        lab.set_link(FAR, false).expect("root");
        // Samples under way have arrived; without a controller no further sample arrives.
        until("samples stop", || {
            let count = || samples.arrived.lock().expect("no panic").len();
            let before = count();
            // tidy-allow(sleep): samples would arrive in this time.
            std::thread::sleep(Duration::from_millis(100));
            count() == before
        });
    });
    lab.remove().expect("the lab can be removed");
}
