//! What tests of `takt sdn` share: a lab, programs in it, and what its switches count.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use takt_lab::Lab;
use takt_testkit::flood::{Flood, Sink};
use takt_testkit::lab_text::LabText;
use takt_testkit::waiting::{self, until};

use crate::process::Takt;

/// More datagrams than the queues of a link hold.
const FLOODED: u64 = 600;

/// The rate of the link that is the bottleneck, as [`LabText`] has it.
pub const RATE: &str = "20 Mbit/s";
/// The same.
pub const RATE_BPS: u64 = 20_000_000;

/// A lab with the name of its test.
pub fn up(test: &str, network: &LabText) -> Lab {
    let file = network.text(test).parse().unwrap();
    Lab::up(&file).unwrap_or_else(|why| panic!("{why}"))
}

/// Starts `takt` on a host, or in the namespace of the switches.
pub fn start(lab: &Lab, place: &str, line: &str) -> Takt {
    lab.namespace(place).unwrap().run(|| Takt::start(line)).unwrap()
}

/// A socket of a host.
pub fn socket(lab: &Lab, host: &str, port: u16) -> UdpSocket {
    lab.namespace(host).unwrap().run(|| UdpSocket::bind(("0.0.0.0", port))).unwrap().unwrap()
}

/// The entries of a switch, a line each, as `ovs-ofctl` prints them.
pub fn entries(lab: &Lab, switch: &str) -> String {
    let target = format!("unix:{}", lab.directory().join(format!("{switch}.mgmt")).display());
    let output = waiting::output(Command::new("ovs-ofctl").args(["-O", "OpenFlow13", "dump-flows", &target]));
    String::from_utf8(output.stdout).unwrap()
}

/// The packets of an entry.
pub fn packets(entry: &str) -> u64 {
    entry.split("n_packets=").nth(1).and_then(|rest| rest.split(',').next()).unwrap().parse().unwrap()
}

/// Datagrams of twice the rate of the bottleneck, from one host to another.
pub struct Overload {
    flood: Flood,
    sink: Sink,
}

impl Overload {
    pub fn start(lab: &Lab, from: &str, to: &str, address: SocketAddr) -> Self {
        let sink = Sink::start(socket(lab, to, address.port()));
        Self { flood: Flood::start(socket(lab, from, 0), address, 2 * RATE_BPS), sink }
    }

    /// Waits until the queues are full.
    pub fn reach(&self) {
        until("the flood arrives", || self.sink.received() >= FLOODED);
    }

    /// Ends it. A link that took more than three quarters of it was not overloaded.
    pub fn end(self) {
        let (sent, received) = (self.flood.end(), self.sink.end());
        assert!(received * 4 < sent * 3, "{received} of {sent} datagrams of the flood arrived");
    }
}
