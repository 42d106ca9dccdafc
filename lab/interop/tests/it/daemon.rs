//! Applications of a Takt daemon with participants of other vendors, which treat the daemon's
//! messages as those of ordinary participants. Includes messages of several applications in one
//! datagram (`INFO_SRC`, RTPS 2.5 §8.3.8.9).

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use takt_interop::network::Host;
use takt_interop::peer::{Batch, Durability, Endpoint, Kind, Options, Peer};
use takt_interop::programs::{Program, takt};

use crate::scene::{hosts, possible, start};
use crate::tcp::expect;

const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn applications_and_cyclonedds_0_10_exchange() {
    exchange(Program::Cyclone10, "daemons");
}

#[test]
fn applications_and_cyclonedds_0_10_exchange_in_bundles() {
    exchange(Program::Cyclone10, "all");
}

#[test]
fn applications_and_cyclonedds_11_exchange_in_bundles() {
    exchange(Program::Cyclone11, "all");
}

#[test]
fn applications_and_fast_dds_2_9_exchange() {
    exchange(Program::FastDds2, "daemons");
}

#[test]
fn applications_and_fast_dds_2_9_exchange_in_bundles() {
    exchange(Program::FastDds2, "all");
}

/// A daemon on a host. Dropping it kills the daemon.
struct Daemon(Child);

impl Daemon {
    fn start(host: &Host, bundle: &str) -> Option<Self> {
        let mut command = host.command(&possible(takt())?);
        command.args(["daemon", "run", "--interface", host.interface(), "--bundle", bundle]);
        let mut process = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("it was piped");
        let read = BufReader::new(output).read_line(&mut line);
        assert!(read.is_ok() && line.starts_with("ready"), "{line}");
        Some(Self(process))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Exchanges samples in both directions between two applications of a daemon and a participant of
/// another vendor.
fn exchange(foreign: Program, bundle: &str) {
    let Some(network) = hosts() else { return };
    let Some(_daemon) = Daemon::start(&network.left, bundle) else { return };
    let by_daemon = Options { daemon: true, ..Options::default() };
    let Some(mut other) = start(foreign, &network.right, Options::default()) else { return };
    let mut applications: Vec<Peer> = (0..2).filter_map(|_| start(Program::Takt, &network.left, by_daemon)).collect();
    assert_eq!(applications.len(), 2);
    let endpoint = |id: &str, topic: &str| Endpoint {
        durability: Durability::TransientLocal,
        ..Endpoint::new(id, topic, Kind::Unkeyed)
    };
    other.writer(&endpoint("w", "Back")).expect("created");
    for (n, application) in applications.iter_mut().enumerate() {
        application.writer(&endpoint("w", &format!("Forth{n}"))).expect("created");
        application.reader(&endpoint("r", "Back")).expect("created");
        other.reader(&endpoint(&format!("r{n}"), &format!("Forth{n}"))).expect("created");
    }
    other.matched("w", 2).expect("matched");
    for (n, application) in applications.iter_mut().enumerate() {
        application.matched("w", 1).expect("matched");
        application.matched("r", 1).expect("matched");
        other.matched(&format!("r{n}"), 1).expect("matched");
    }
    let mut first = 0;
    for (count, size) in [(300, 100), (30, 10_000), (4, 1 << 20)] {
        let batch = Batch { first, ..Batch::new(count, size) };
        applications.iter_mut().for_each(|application| application.write("w", &batch).expect("running"));
        other.write("w", &batch).expect("running");
        for (n, application) in applications.iter_mut().enumerate() {
            expect(application, "r", &batch);
            expect(&mut other, &format!("r{n}"), &batch);
        }
        for peer in applications.iter_mut().chain([&mut other]) {
            peer.written("w", TIMEOUT).expect("written");
            peer.acknowledged("w", TIMEOUT).expect("acknowledged");
        }
        first += count;
    }
    for peer in applications.into_iter().chain([other]) {
        peer.quit().expect("it ends");
    }
}
