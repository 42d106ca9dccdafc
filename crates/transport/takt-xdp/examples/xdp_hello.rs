//! Writes or reads `Greeting` over AF_XDP: `xdp_hello IFACE read`, or `xdp_hello IFACE write
//! COUNT`. Requires root.

mod greeting;

use std::error::Error;

use takt::DomainParticipant;
use takt_xdp::{XdpConfig, XdpTransport};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [interface, role, rest @ ..] = &arguments[..] else {
        return Err("xdp_hello IFACE read | xdp_hello IFACE write COUNT".into());
    };
    let xdp = XdpTransport::open(&XdpConfig::new(0, interface))?;
    println!("{}", xdp.report());
    let participant = DomainParticipant::builder(0).transport(Box::new(xdp)).build()?;
    greeting::run(&participant, role, rest)
}
