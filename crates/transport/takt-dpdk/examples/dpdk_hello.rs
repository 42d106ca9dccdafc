//! Writes or reads `Greeting` over DPDK: `dpdk_hello DEVICE ADDRESS read`, or `dpdk_hello DEVICE
//! ADDRESS write COUNT`. ADDRESS is `10.0.0.1/24` for UDP, or `l2` for RTPS directly on Ethernet.
//! For trials only: ordinary memory and virtual devices.

#[path = "../../takt-xdp/examples/greeting/mod.rs"]
mod greeting;

use std::error::Error;

use takt::DomainParticipant;
use takt_dpdk::{DpdkConfig, DpdkPort, DpdkTransport, UdpStackConfig};
use takt_transport::Transport;
use takt_transport::ethernet::{EthernetConfig, EthernetTransport};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [device, address, role, rest @ ..] = &arguments[..] else {
        return Err("dpdk_hello DEVICE ADDRESS|l2 read | dpdk_hello DEVICE ADDRESS|l2 write COUNT".into());
    };
    let participant = DomainParticipant::builder(0).transport(open(device, address)?).build()?;
    greeting::run(&participant, role, rest)
}

fn open(device: &str, address: &str) -> Result<Box<dyn Transport>, Box<dyn Error>> {
    let device = DpdkConfig::for_trial(device);
    if address == "l2" {
        let port = DpdkPort::open(&device)?;
        println!("{}, RTPS on Ethernet", port.driver());
        return Ok(Box::new(EthernetTransport::open(port, &EthernetConfig::new(0))?));
    }
    let (address, prefix_len) = address.split_once('/').ok_or("the address has no prefix length")?;
    let udp = UdpStackConfig::new(0, address.parse()?, prefix_len.parse()?);
    let transport = DpdkTransport::open(&device, &udp)?;
    println!("{}, UDP at {address}", transport.port().driver());
    Ok(Box::new(transport))
}
