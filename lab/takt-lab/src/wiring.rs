//! Creation of links, addresses and queueing disciplines in the namespaces.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;

use takt_netlink::feature::{SEGMENTATION, TX_CHECKSUM};
use takt_netlink::link::VethEnd;
use takt_netlink::strict_priority::{HANDLE, StrictPriority};
use takt_netlink::{Netlink, interface_index};

use crate::error::{Error, Result};
use crate::file::{Class, LabFile, Offload, SWITCHES};
use crate::namespace::Namespace;
use crate::plan::{Interface, LinkPlan, Plan};

/// Namespaces by node.
pub type Namespaces = BTreeMap<String, Namespace>;

/// Runs `f` with a netlink route socket in the namespace of an interface, and with the interface's
/// index.
pub fn at<R: Send>(
    namespaces: &Namespaces,
    interface: &Interface,
    f: impl FnOnce(&mut Netlink, i32) -> io::Result<R> + Send,
) -> io::Result<R> {
    let namespace = namespaces.get(&interface.node).ok_or(io::ErrorKind::NotFound)?;
    namespace.run(|| f(&mut Netlink::route()?, interface_index(&interface.name)?))?
}

/// Reports whether this crate creates the classes of an interface, rather than another program.
pub fn has_classes(file: &LabFile, end: &Interface) -> bool {
    end.rate.is_some() && (file.switch_classes || end.port.is_none())
}

/// Creates the bridges of the kernel.
pub fn add_bridges(namespaces: &Namespaces, plan: &Plan) -> Result<()> {
    for name in &plan.kernel_bridges {
        let add = || {
            let mut netlink = Netlink::route()?;
            netlink.add_bridge(name)?;
            netlink.set_up(interface_index(name)?, true)
        };
        let namespace = namespaces.get(SWITCHES).ok_or_else(|| io::ErrorKind::NotFound.into());
        let made = namespace.and_then(|namespace| namespace.run(add)).and_then(|made| made);
        made.map_err(Error::os(format!("create the bridge {name}")))?;
    }
    Ok(())
}

/// Creates a link, and configures both of its ends.
pub fn create_link(namespaces: &Namespaces, link: &LinkPlan, plan: &Plan, file: &LabFile) -> Result<()> {
    let [one, other] = &link.ends;
    let failed = || Error::os(format!("create the link {} to {}", one.name, other.name));
    add(namespaces, link).map_err(failed())?;
    for end in &link.ends {
        let failed = || Error::os(format!("set up the interface {} of {}", end.name, end.node));
        keep_offloads(namespaces, end, &link.offloads).map_err(failed())?;
        if let Some((_, bridge)) = plan.kernel_ports().find(|(port, _)| *port == end) {
            let join = |netlink: &mut Netlink, index| netlink.add_bridge_port(index, interface_index(bridge)?);
            at(namespaces, end, join).map_err(Error::os(format!("make {} a port of {bridge}", end.name)))?;
        }
        set_up(namespaces, end).map_err(failed())?;
        if let Some(rate) = end.rate.filter(|_| has_classes(file, end)) {
            let failed = Error::os(format!("create the classes of {} of {}", end.name, end.node));
            at(namespaces, end, |netlink, index| add_classes(netlink, index, rate, &file.classes)).map_err(failed)?;
        }
    }
    // The query makes the kernel process the carrier of the end that came up first now, not up to a
    // second later.
    link.ends.iter().try_for_each(|end| at(namespaces, end, Netlink::is_running).map(drop)).map_err(failed())
}

/// Makes the kernel process the carriers of bridges, which have one from their first port on.
pub fn process_carriers(namespaces: &Namespaces, plan: &Plan) -> Result<()> {
    let Some(namespace) = namespaces.get(SWITCHES) else { return Ok(()) };
    let query = |name: &String| Netlink::route()?.is_running(interface_index(name)?).map(drop);
    let result = namespace.run(|| plan.kernel_bridges.iter().try_for_each(query)).and_then(|result| result);
    result.map_err(Error::os("read the kernel bridges"))
}

/// Adds static neighbor entries to the hosts.
pub fn add_static_neighbors(namespaces: &Namespaces, plan: &Plan) -> Result<()> {
    for known in plan.neighbors() {
        let failed = Error::os(format!("set on {} the neighbor {}", known.of.node, known.address.ip));
        let set = |netlink: &mut Netlink, index| netlink.set_neighbor(index, known.address.ip, known.interface.mac);
        at(namespaces, known.of, set).map_err(failed)?;
    }
    Ok(())
}

fn add(namespaces: &Namespaces, link: &LinkPlan) -> io::Result<()> {
    let mut ends = Vec::new();
    for end in &link.ends {
        let namespace = namespaces.get(&end.node).ok_or(io::ErrorKind::NotFound)?.as_fd();
        ends.push(VethEnd { name: &end.name, namespace, mac: Some(end.mac), mtu: link.mtu, queues: link.queues });
    }
    Netlink::route()?.add_veth([&ends[0], &ends[1]])
}

fn set_up(namespaces: &Namespaces, end: &Interface) -> io::Result<()> {
    at(namespaces, end, |netlink, index| {
        end.addresses.iter().try_for_each(|address| netlink.add_address(index, address.ip, address.prefix_len))?;
        netlink.set_up(index, true)?;
        let is_first = |error: io::Error| match takt_netlink::code(&error) {
            // Another interface of the host has the multicast route.
            Some(code) if code == nix::Error::EEXIST as i32 => Ok(()),
            _ => Err(error),
        };
        if end.addresses.iter().any(|address| address.ip.is_ipv4()) {
            netlink.add_route(index, IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), 4).or_else(is_first)?;
        }
        Ok(())
    })
}

/// Keeps the offloads that the link names, and disables the others.
fn keep_offloads(namespaces: &Namespaces, end: &Interface, kept: &[Offload]) -> io::Result<()> {
    if !kept.contains(&Offload::Checksum) {
        set_features(namespaces, end, &[TX_CHECKSUM], false)?;
    }
    if !kept.contains(&Offload::Segmentation) {
        // Without segmentation offload: Open vSwitch would truncate a frame of several segments.
        set_features(namespaces, end, &SEGMENTATION, false)?;
    }
    Ok(())
}

fn set_features(namespaces: &Namespaces, end: &Interface, names: &[&str], is_on: bool) -> io::Result<()> {
    let namespace = namespaces.get(&end.node).ok_or(io::ErrorKind::NotFound)?;
    namespace.run(|| Netlink::generic()?.set_features(interface_index(&end.name)?, names, is_on))?
}

/// Turns checksum and segmentation offload of an interface on or off.
#[cfg(test)]
pub fn set_offload(namespaces: &Namespaces, end: &Interface, is_on: bool) -> io::Result<()> {
    set_features(namespaces, end, &[TX_CHECKSUM], is_on)?;
    set_features(namespaces, end, &SEGMENTATION, is_on)
}

/// Creates the classes of the file at an interface.
pub fn add_classes(netlink: &mut Netlink, index: i32, rate: u64, classes: &[Class]) -> io::Result<()> {
    let rate = u32::try_from(rate / 8).map_err(io::Error::other)?;
    let classes = classes.iter().map(Class::of_kernel).collect();
    netlink.add_strict_priority(index, &StrictPriority { rate, classes })
}

/// Replaces the filters of an interface by those of the file, or removes them.
pub fn set_filters(netlink: &mut Netlink, index: i32, classes: &[Class], are_there: bool) -> io::Result<()> {
    netlink.remove_filters(index, HANDLE)?;
    if are_there {
        let classes: Vec<_> = classes.iter().map(Class::of_kernel).collect();
        netlink.add_class_filters(index, &classes)?;
    }
    Ok(())
}
