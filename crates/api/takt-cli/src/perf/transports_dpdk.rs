//! Columns of `takt perf transports` whose ports DPDK drives: by packet sockets, by AF_XDP, and by
//! shared memory without a network.
//!
//! The ports use ordinary memory instead of hugepages. The ends of DPDK have IP and hardware
//! addresses of their own. The kernel, which sees what packet sockets see, therefore ignores their
//! frames, and discovery uses DPDK too. Both ends of shared memory are on one host.

use super::compare::own;
use std::net::Ipv4Addr;
use takt_bench::Result;
use takt_bench::campaign::Column;
use takt_bench::link::Notify;

/// Returns for each column its name after `dpdk-`, and the device at each end. The second process
/// starts first.
fn devices() -> [(&'static str, [String; 2]); 3] {
    let same = |device: &str| [device.to_owned(), device.to_owned()];
    let memif = |role: &str| format!("net_memif0,role={role},socket=takt-perf-{}", std::process::id());
    [
        ("packet", same("net_af_packet0,iface=eth0,qdisc_bypass=1")),
        ("xdp", same("net_af_xdp0,iface=eth0,force_copy=1")),
        ("memif", [memif("client"), memif("server")]),
    ]
}

/// Returns the IP address of an end.
fn address(end: usize) -> Ipv4Addr {
    [Ipv4Addr::new(10, 79, 1, 1), Ipv4Addr::new(10, 79, 1, 2)][end]
}

/// Returns the transport name of a device at one of the ends.
fn udp(device: &str, end: usize) -> String {
    format!("dpdk:{device}/address={}/mac=02:00:0a:4f:01:0{}/huge=no", address(end), end + 1)
}

/// Returns the columns of plain datagrams and of Takt for each device, and of Takt without IP for
/// the device that leaves discovery to the kernel.
pub fn columns() -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for (name, devices) in devices() {
        let transports = [udp(&devices[0], 0), udp(&devices[1], 1)];
        let floor = format!("raw-dpdk-{name}-spin");
        let mut raw = own(&floor, "raw", Some(Notify::Poll))?;
        let mut takt = own(&format!("takt-dpdk-{name}-spin"), "udp", None)?.compared_with(&floor);
        for (end, transport) in transports.iter().enumerate() {
            let peer = format!("peer={}", address(1 - end));
            raw.arguments_by_side[end] = vec![format!("transport=raw={transport}-spin"), peer.clone()];
            takt.arguments_by_side[end] = vec![format!("transport={transport}-spin"), peer];
        }
        columns.extend([raw, takt].map(|column| Column { on_one_host: name == "memif", ..column }));
    }
    let [(_, [packet, _]), ..] = devices();
    let ethernet = format!("dpdk-ethernet:{packet}/huge=no-spin");
    columns.push(own("takt-dpdk-ethernet-spin", &ethernet, None)?.compared_with("raw-dpdk-packet-spin"));
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_own_address_and_that_of_its_peer() {
        let columns = columns().unwrap();
        assert_eq!(columns.len(), 7);
        for column in columns.iter().filter(|column| column.name != "takt-dpdk-ethernet-spin") {
            let has =
                |end: usize, what: &str| column.arguments_by_side[end].iter().any(|argument| argument.contains(what));
            for (end, own, peer) in [(0, "10.79.1.1", "10.79.1.2"), (1, "10.79.1.2", "10.79.1.1")] {
                assert!(has(end, &format!("/address={own}/")) && has(end, &format!("peer={peer}")), "{column:?}");
            }
            assert_eq!(column.on_one_host, has(0, "role=client") && has(1, "role=server"), "{column:?}");
        }
    }
}
