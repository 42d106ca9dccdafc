//! A discovery server: two participants without multicast that know its address alone.

use takt::DiscoveryServer;
use takt::prelude::*;

#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    celsius: f64,
}

fn main() -> takt::Result<()> {
    let server = DiscoveryServer::builder(0, "127.0.0.1:0".parse().expect("an address")).build()?;
    let address = server.addresses()?.first().expect("it listens").to_string();
    let client = |name: &str| {
        DomainParticipant::builder(0).name(name).multicast(false).discovery_servers([address.as_str()]).build()
    };
    let (publisher, subscriber) = (client("publisher")?, client("subscriber")?);
    let reader = subscriber.reader::<Reading>("Temperature")?;
    let writer = publisher.writer::<Reading>("Temperature")?;
    writer.wait_for_readers(1, secs(30))?;
    writer.write(&Reading { celsius: 21.5 })?;
    println!("{:?}", reader.recv_timeout(secs(10))?.data.unwrap_or_default());
    Ok(())
}
