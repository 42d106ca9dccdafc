//! Links, addresses and queueing disciplines, made in the namespaces.
//!
//! Strict priority: the root class of an HTB has the line rate. Each leaf has nearly nothing of its own and borrows everything, and
//! HTB lends to the leaf of the smallest priority first. Frames count with preamble, checksum and gap.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;

use takt_netlink::feature::TX_CHECKSUM;
use takt_netlink::link::VethEnd;
use takt_netlink::traffic::{Discipline, HtbClass, ROOT};
use takt_netlink::{Netlink, interface_index};

use crate::error::{Error, Result};
use crate::file::Class;
use crate::namespace::Namespace;
use crate::plan::{Cable, Interface};

/// The handle of the HTB, and of its root class.
pub const HTB: u32 = 0x0001_0000;
const LINE: u32 = HTB | 0xff;
/// Octets per second that a leaf has of its own: the least that HTB keeps count of well.
const OWN_RATE: u32 = 1000;
/// An Ethernet frame, and what is counted besides: preamble, checksum, gap.
const QUANTUM: u32 = 1514;
const BURST: u32 = 1600;
const OVERHEAD: u16 = 24;
/// What is sent in segments must not leave the stack as one frame: Open vSwitch would cut it.
const SEGMENTATION: [&str; 4] =
    ["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-udp-segmentation"];

/// The class of a place in the file.
pub fn class(place: usize) -> u32 {
    HTB | u32::try_from(place + 1).unwrap_or(0xfe)
}

/// Namespaces by place.
pub type Namespaces = BTreeMap<String, Namespace>;

/// Runs `f` with a route socket in the namespace of an interface, and with the interface's number.
pub fn at<R: Send>(
    namespaces: &Namespaces,
    interface: &Interface,
    f: impl FnOnce(&mut Netlink, i32) -> io::Result<R> + Send,
) -> io::Result<R> {
    let namespace = namespaces.get(&interface.place).ok_or(io::ErrorKind::NotFound)?;
    namespace.run(|| f(&mut Netlink::route()?, interface_index(&interface.name)?))?
}

/// Makes a link, with everything at its ends.
pub fn lay(namespaces: &Namespaces, cable: &Cable, classes: &[Class]) -> Result<()> {
    let [one, other] = &cable.ends;
    let failed = || Error::os(format!("make the link {} to {}", one.name, other.name));
    add(namespaces, cable).map_err(failed())?;
    for end in &cable.ends {
        let failed = || Error::os(format!("set up the interface {} of {}", end.name, end.place));
        set_up(namespaces, end).map_err(failed())?;
        if let Some(rate) = cable.rate {
            let failed = Error::os(format!("give {} of {} its classes", end.name, end.place));
            at(namespaces, end, |netlink, index| add_classes(netlink, index, rate, classes)).map_err(failed)?;
        }
    }
    // The kernel notices the carrier of the end that came up first now, and not up to a second later.
    cable.ends.iter().try_for_each(|end| at(namespaces, end, Netlink::is_running).map(drop)).map_err(failed())
}

fn add(namespaces: &Namespaces, cable: &Cable) -> io::Result<()> {
    let mut ends = Vec::new();
    for end in &cable.ends {
        let namespace = namespaces.get(&end.place).ok_or(io::ErrorKind::NotFound)?.as_fd();
        ends.push(VethEnd { name: &end.name, namespace, mac: Some(end.mac), mtu: cable.mtu });
    }
    Netlink::route()?.add_veth([&ends[0], &ends[1]])
}

fn set_up(namespaces: &Namespaces, end: &Interface) -> io::Result<()> {
    set_offload(namespaces, end, false)?;
    at(namespaces, end, |netlink, index| {
        end.addresses.iter().try_for_each(|address| netlink.add_address(index, address.ip, address.prefix_len))?;
        netlink.set_up(index, true)?;
        let is_first = |error: io::Error| match takt_netlink::code(&error) {
            // Another interface of the host has the groups.
            Some(code) if code == nix::Error::EEXIST as i32 => Ok(()),
            _ => Err(error),
        };
        if end.addresses.iter().any(|address| address.ip.is_ipv4()) {
            netlink.add_route(index, IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), 4).or_else(is_first)?;
        }
        Ok(())
    })
}

/// Switches the checksums of an interface, and segmentation, to the interface or to the kernel.
pub fn set_offload(namespaces: &Namespaces, end: &Interface, is_on: bool) -> io::Result<()> {
    let namespace = namespaces.get(&end.place).ok_or(io::ErrorKind::NotFound)?;
    namespace.run(|| {
        let mut netlink = Netlink::generic()?;
        let index = interface_index(&end.name)?;
        netlink.set_features(index, &[TX_CHECKSUM], is_on)?;
        netlink.set_features(index, &SEGMENTATION, is_on)
    })?
}

/// The HTB of an interface with a class of each of the file's, their queues and filters.
pub fn add_classes(netlink: &mut Netlink, index: i32, rate: u64, classes: &[Class]) -> io::Result<()> {
    let rate = u32::try_from(rate / 8).map_err(io::Error::other)?;
    let last = class(classes.len() - 1);
    // The low half of a class's number.
    netlink.add_discipline(index, HTB, ROOT, Discipline::Htb { default: (last & 0xffff) as u16 })?;
    let of = |rate_own: u32, priority: usize| HtbClass {
        rate: rate_own,
        ceiling: rate,
        // On a fast link, as much as an eighth of a millisecond takes: the timer is not called more often.
        burst: BURST.max(rate / 8000),
        quantum: QUANTUM,
        priority: priority as u32,
        overhead: OVERHEAD,
    };
    netlink.add_class(index, LINE, HTB, &of(rate, 0))?;
    for (place, wanted) in classes.iter().enumerate() {
        netlink.add_class(index, class(place), LINE, &of(OWN_RATE, place))?;
        add_leaf(netlink, index, place, Discipline::PfifoHeadDrop { frames: wanted.frames })?;
        wanted.dscp.iter().try_for_each(|dscp| netlink.add_dscp_filter(index, HTB, *dscp, class(place)))?;
        let mut others = wanted.ether_types.iter();
        others.try_for_each(|ether_type| netlink.add_ether_type_filter(index, HTB, *ether_type, class(place)))?;
    }
    Ok(())
}

/// The queue of a class.
pub fn add_leaf(netlink: &mut Netlink, index: i32, place: usize, discipline: Discipline) -> io::Result<()> {
    netlink.add_discipline(index, leaf(place), class(place), discipline)
}

/// The handle of a class's queue.
pub fn leaf(place: usize) -> u32 {
    (0x10 + place as u32) << 16
}
