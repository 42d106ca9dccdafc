//! Preflight checks by datagrams from host to host, while every switch forwards as an Ethernet
//! switch.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use takt_netlink::strict_priority::class;

use super::{CHECKSUM, CLASSES, Check};
use crate::error::{Error, Result};
use crate::file::{Address, Class};
use crate::plan::{Interface, Plan};
use crate::wiring::{Namespaces, at};

/// Maximum time for a datagram to arrive: the host resolves the other's address first, through
/// every switch.
const LIMIT: Duration = Duration::from_secs(10);
/// Interval between two transmissions of a datagram.
const REPEAT: Duration = Duration::from_millis(20);
/// Number of hosts from which on each host sends only to the next one, not to every other one.
const HOSTS_FOR_ALL_PAIRS: usize = 9;

/// Two interfaces of hosts, with addresses in the same network.
struct Pair<'a> {
    from: &'a Interface,
    to: &'a Interface,
    addresses: [Address; 2],
}

/// Sends datagrams of every class between hosts that share a network, over links and switches.
///
/// # Errors
/// A socket cannot be opened, or the kernel's counters cannot be read.
pub fn datagrams(namespaces: &Namespaces, plan: &Plan, classes: &[Class]) -> Result<Vec<Check>> {
    let pairs = pairs(plan);
    if pairs.is_empty() {
        let why = "no two connected hosts have addresses in the same network";
        return Ok([CHECKSUM, CLASSES].map(|name| Check::not_measured(name, why)).to_vec());
    }
    let before = frames(namespaces, plan)?;
    let (mut failures, mut silent) = (Vec::new(), false);
    // All DSCPs of classes, and one of the last class.
    let unclaimed = (0..64).find(|dscp| !classes.iter().any(|class| class.dscp.contains(dscp)));
    let marks: Vec<u8> = classes.iter().flat_map(|class| class.dscp.iter().copied()).chain(unclaimed).collect();
    for pair in &pairs {
        for dscp in &marks {
            let failed = || Error::os(format!("send a datagram from {} to {}", pair.from.node, pair.to.node));
            match send(namespaces, pair, *dscp).map_err(failed())? {
                Arrival::Right => {}
                Arrival::Wrong(count) => failures.push(format!(
                    "{count} datagrams from {} arrived at {} with a wrong UDP checksum",
                    pair.from.node, pair.to.node
                )),
                Arrival::None => {
                    silent = true;
                    failures.push(format!(
                        "no datagram with DSCP {dscp} from {} arrived at {} within {} s",
                        pair.from.node,
                        pair.to.node,
                        LIMIT.as_secs()
                    ));
                }
            }
            if !failures.is_empty() {
                break;
            }
        }
    }
    let remedy = if silent {
        "see the log of ovs-vswitchd in the lab's directory"
    } else {
        "the sender offloads checksums to hardware that does not exist: switch tx-checksum-ip-generic off at both \
         ends of every veth pair (ethtool -K INTERFACE tx off)"
    };
    let detail = format!("{} pairs of hosts, {} DSCPs each", pairs.len(), marks.len());
    let checksum = Check::of(CHECKSUM, failures, remedy, detail);
    let sorted = if checksum.outcome == super::Outcome::Passed {
        let between = |port: &Interface| pairs.iter().any(|pair| plan.is_between(port, pair.from, pair.to));
        let ports = plan.ports().map(|(port, _)| port).filter(|port| between(port));
        sorted(ports, &before, &frames(namespaces, plan)?, classes)
    } else {
        Check::not_measured(CLASSES, "datagrams do not arrive")
    };
    Ok(vec![checksum, sorted])
}

fn pairs(plan: &Plan) -> Vec<Pair<'_>> {
    let ends = plan.links.iter().flat_map(|link| &link.ends).filter(|end| end.port.is_none());
    let hosts: Vec<_> = ends.flat_map(|end| end.addresses.iter().map(move |address| (end, *address))).collect();
    let of = |index: usize, other: usize| {
        let ((from, own), (to, others)) = (hosts[index], hosts[other]);
        let is_pair = from.node != to.node && own.shares_network(others) && plan.reaches(from, to);
        is_pair.then_some(Pair { from, to, addresses: [own, others] })
    };
    let count = hosts.len();
    let all = (0..count).flat_map(|index| (0..count).map(move |other| (index, other)));
    let is_chosen = |(index, other): &(usize, usize)| count < HOSTS_FOR_ALL_PAIRS || (index + 1) % count == *other;
    all.filter(is_chosen).filter_map(|(index, other)| of(index, other)).collect()
}

enum Arrival {
    Right,
    /// Number of datagrams discarded for their checksum.
    Wrong(u64),
    None,
}

/// Sends a datagram repeatedly until it arrives.
fn send(namespaces: &Namespaces, pair: &Pair<'_>, dscp: u8) -> io::Result<Arrival> {
    let [from, to] = pair.addresses.map(|address| address.ip);
    let namespace = |end: &Interface| namespaces.get(&end.node).ok_or(io::ErrorKind::NotFound);
    let receiver = namespace(pair.to)?.run(|| UdpSocket::bind((to, 0)))??;
    let sender = namespace(pair.from)?.run(|| UdpSocket::bind((from, 0)))??;
    let octet = i32::from(dscp) << 2;
    match from {
        IpAddr::V4(_) => setsockopt(&sender, sockopt::Ipv4Tos, &octet)?,
        IpAddr::V6(_) => setsockopt(&sender, sockopt::Ipv6TClass, &octet)?,
    }
    let errors = || namespace(pair.to)?.run(|| checksum_errors(from.is_ipv4()))?;
    let errors_before = errors()?;
    receiver.set_read_timeout(Some(REPEAT))?;
    let target = SocketAddr::new(to, receiver.local_addr()?.port());
    let begin = Instant::now();
    let mut buffer = [0; 16];
    while begin.elapsed() < LIMIT {
        sender.send_to(b"preflight", target)?;
        let has_arrived = match receiver.recv_from(&mut buffer) {
            Ok(_) => true,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => false,
            Err(error) => return Err(error),
        };
        let wrong = errors()?.saturating_sub(errors_before);
        if wrong > 0 {
            return Ok(Arrival::Wrong(wrong));
        }
        if has_arrived {
            return Ok(Arrival::Right);
        }
    }
    Ok(Arrival::None)
}

/// Returns the number of datagrams that this namespace discarded for a wrong checksum.
fn checksum_errors(is_v4: bool) -> io::Result<u64> {
    if !is_v4 {
        let text = std::fs::read_to_string("/proc/thread-self/net/snmp6")?;
        let line = text.lines().find_map(|line| line.strip_prefix("Udp6InCsumErrors"));
        return line.and_then(|value| value.trim().parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into()); // tidy-allow(dropped-cause): named
    }
    // The file has two lines: names and values.
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let pairs = lines.next().zip(lines.next()).map(|(names, values)| names.split(' ').zip(values.split(' ')));
    let value = pairs.and_then(|mut pairs| pairs.find(|(name, _)| *name == "InCsumErrors"));
    value.and_then(|(_, value)| value.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into()) // tidy-allow(dropped-cause): named
}

/// Number of frames that left each rate-limited port of a switch, by class.
type Frames = BTreeMap<String, BTreeMap<u32, u64>>;

fn frames(namespaces: &Namespaces, plan: &Plan) -> Result<Frames> {
    let mut all = Frames::new();
    for (end, _) in plan.ports().filter(|(end, link)| end.rate.is_some() && !link.closes_ring) {
        let failed = Error::os(format!("read the disciplines of {}", end.name));
        let disciplines = at(namespaces, end, |netlink, index| netlink.disciplines(index)).map_err(failed)?;
        all.insert(end.name.clone(), disciplines.iter().map(|one| (one.parent, one.frames)).collect());
    }
    Ok(all)
}

/// Checks that every class has sent frames at each port that datagrams of all DSCPs leave by. Other
/// ports only send ARP.
fn sorted<'a>(
    between: impl Iterator<Item = &'a Interface>,
    before: &Frames,
    after: &Frames,
    classes: &[Class],
) -> Check {
    let mut failures = Vec::new();
    let mut ports = 0;
    for port in between.map(|port| &port.name).filter(|port| after.contains_key(*port)) {
        let sent = |index: usize| {
            let count = |frames: &Frames| frames.get(port).and_then(|counts| counts.get(&class(index)).copied());
            count(after).unwrap_or(0).saturating_sub(count(before).unwrap_or(0))
        };
        ports += 1;
        // No datagram reaches a class that only SO_PRIORITY selects.
        let is_sent_to = |(class, index): &(&Class, usize)| !class.dscp.is_empty() || index + 1 == classes.len();
        let empty = classes.iter().zip(0..).filter(is_sent_to).find(|(_, index)| sent(*index) == 0);
        if let Some((class, _)) = empty {
            failures
                .push(format!("port {port} forwarded datagrams of all DSCPs, but none through class {}", class.name));
        }
    }
    if ports == 0 {
        return Check::not_measured(CLASSES, "no port between two hosts has a rate");
    }
    let remedy = "the filters of the port are missing (tc filter show): recreate the lab";
    Check::of(CLASSES, failures, remedy, format!("{ports} ports, {} classes each", classes.len()))
}
