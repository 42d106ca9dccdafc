//! Test support for `takt sdn`: a lab, programs in it, and the counters of its switches.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use takt_lab::Lab;
use takt_testkit::flood::{Flood, Sink};
use takt_testkit::lab_text::LabText;
use takt_testkit::waiting::{self, until};

use crate::process::Takt;

/// Number of datagrams that exceeds the queues of a link.
const FLOODED: u64 = 600;

/// Rate of the bottleneck link, as [`LabText`] configures it.
pub const RATE: &str = "20 Mbit/s";
/// Rate of the bottleneck link, in bit/s.
pub const RATE_BPS: u64 = 20_000_000;

/// Creates a lab with the name of its test.
pub fn up(test: &str, network: &LabText) -> Lab {
    let file = network.text(test).parse().unwrap();
    Lab::up(&file).unwrap_or_else(|why| panic!("{why}"))
}

/// Starts `takt` on a host, or in the namespace of the switches.
pub fn start(lab: &Lab, place: &str, line: &str) -> Takt {
    lab.namespace(place).unwrap().run(|| Takt::start(line)).unwrap()
}

/// Opens a socket on a host.
pub fn socket(lab: &Lab, host: &str, port: u16) -> UdpSocket {
    lab.namespace(host).unwrap().run(|| UdpSocket::bind(("0.0.0.0", port))).unwrap().unwrap()
}

/// Returns the flow entries of a switch, one per line, as `ovs-ofctl` prints them.
pub fn entries(lab: &Lab, switch: &str) -> String {
    let target = format!("unix:{}", lab.directory().join(format!("{switch}.mgmt")).display());
    let output = waiting::output(Command::new("ovs-ofctl").args(["-O", "OpenFlow13", "dump-flows", &target]));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the packet counter of an entry.
pub fn packets(entry: &str) -> u64 {
    entry.split("n_packets=").nth(1).and_then(|rest| rest.split(',').next()).unwrap().parse().unwrap()
}

/// Flood from one host to another at twice the rate of the bottleneck.
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

    /// Ends the flood. Asserts that less than three quarters arrived, since otherwise the link was
    /// not overloaded.
    pub fn end(self) {
        let (sent, received) = (self.flood.end(), self.sink.end());
        assert!(received * 4 < sent * 3, "{received} of {sent} datagrams of the flood arrived");
    }
}
