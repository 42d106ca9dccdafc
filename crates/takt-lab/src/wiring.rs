//! Links, addresses and queueing disciplines, made in the namespaces.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;

use takt_netlink::feature::TX_CHECKSUM;
use takt_netlink::link::VethEnd;
use takt_netlink::strict_priority::{self, StrictPriority};
use takt_netlink::{Netlink, interface_index};

use crate::error::{Error, Result};
use crate::file::{Class, LabFile};
use crate::namespace::Namespace;
use crate::plan::{Cable, Interface};

/// What is sent in segments must not leave the stack as one frame: Open vSwitch would cut it.
const SEGMENTATION: [&str; 4] =
    ["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-udp-segmentation"];

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
pub fn lay(namespaces: &Namespaces, cable: &Cable, file: &LabFile) -> Result<()> {
    let [one, other] = &cable.ends;
    let failed = || Error::os(format!("make the link {} to {}", one.name, other.name));
    add(namespaces, cable).map_err(failed())?;
    for end in &cable.ends {
        let failed = || Error::os(format!("set up the interface {} of {}", end.name, end.place));
        set_up(namespaces, end).map_err(failed())?;
        let has_classes = file.switch_classes || end.port.is_none();
        if let Some(rate) = cable.rate.filter(|_| has_classes) {
            let failed = Error::os(format!("give {} of {} its classes", end.name, end.place));
            at(namespaces, end, |netlink, index| add_classes(netlink, index, rate, &file.classes)).map_err(failed)?;
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

/// The classes of the file at an interface.
pub fn add_classes(netlink: &mut Netlink, index: i32, rate: u64, classes: &[Class]) -> io::Result<()> {
    let rate = u32::try_from(rate / 8).map_err(io::Error::other)?;
    let class = |class: &Class| strict_priority::Class {
        dscp: class.dscp.clone(),
        ether_types: class.ether_types.clone(),
        frames: class.frames,
    };
    netlink.add_strict_priority(index, &StrictPriority { rate, classes: classes.iter().map(class).collect() })
}
