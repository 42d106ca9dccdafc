//! Preflight checks of sockets and queueing disciplines, which can be made at any time.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use takt_netlink::packet_socket::PacketSocket;
use takt_netlink::strict_priority::{HANDLE, class};
use takt_netlink::{Netlink, interface_index};

use super::{BRIDGE, Check, DISCIPLINE, HEAD_DROP, RECEIVE_BUFFER, RECEIVE_OCTETS, SEND_BUFFER};
use crate::error::{Error, Result};
use crate::file::{Class, DropFrom, SWITCHES};
use crate::plan::Plan;
use crate::wiring::{Namespaces, at};

/// Compares the buffers of ovs-vswitchd's sockets with the capacity of the queues (`queues`
/// octets). `pid` is `None` without switches.
///
/// # Errors
/// The kernel does not report them.
pub fn sockets(namespaces: &Namespaces, plan: &Plan, pid: Option<u32>, queues: u64) -> Result<Vec<Check>> {
    let Some(pid) = pid else {
        return Ok([SEND_BUFFER, RECEIVE_BUFFER]
            .map(|name| Check::not_measured(name, "no switch is an Open vSwitch"))
            .to_vec());
    };
    let failed = || Error::os("read the sockets of ovs-vswitchd");
    let (sockets, ports) = sockets_of(namespaces, plan, pid).map_err(failed())?;
    Ok(vec![send_buffer(&sockets, queues), receive_buffer(&sockets, &ports)])
}

/// Returns the number of frames that the sockets of ports dropped, by interface name.
pub(crate) fn port_drops(namespaces: &Namespaces, plan: &Plan, pid: u32) -> Result<Vec<(String, u64)>> {
    let failed = Error::os("read the sockets of ovs-vswitchd");
    let (sockets, ports) = sockets_of(namespaces, plan, pid).map_err(failed)?;
    let of_port = |number: u32| sockets.iter().find(|socket| socket.interface == number);
    Ok(ports.into_iter().filter_map(|(name, number)| Some((name, of_port(number)?.drops.into()))).collect())
}

/// Name and index of a port's interface.
type Port = (String, u32);

/// Returns the packet sockets of a process in the namespace of the switches, and the ports there.
fn sockets_of(namespaces: &Namespaces, plan: &Plan, pid: u32) -> io::Result<(Vec<PacketSocket>, Vec<Port>)> {
    let namespace = namespaces.get(SWITCHES).ok_or(io::ErrorKind::NotFound)?;
    let names: Vec<_> = plan.open_vswitch_ports().map(|(interface, _)| interface.name.clone()).collect();
    let inodes = inodes(pid)?;
    namespace.run(|| {
        let mut sockets = Netlink::sockets()?.packet_sockets()?;
        sockets.retain(|socket| inodes.contains(&socket.inode));
        let number = |name: String| interface_index(&name).map(|index| (name, index.cast_unsigned()));
        Ok((sockets, names.into_iter().map(number).collect::<io::Result<_>>()?))
    })?
}

/// Returns the inodes of a process's sockets.
fn inodes(pid: u32) -> io::Result<BTreeSet<u32>> {
    let mut inodes = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        // The process may have closed the descriptor meanwhile.
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inodes.extend(inode.and_then(|inode| inode.parse::<u32>().ok())); // tidy-allow(dropped-cause): the kernel writes a number
    }
    Ok(inodes)
}

fn send_buffer(sockets: &[PacketSocket], queues: u64) -> Check {
    let remedy =
        "raise net.core.wmem_default above the queues before ovs-vswitchd starts, or reduce the frames of the classes";
    match sockets.iter().find(|socket| socket.interface == 0) {
        None => Check::not_measured(SEND_BUFFER, "Open vSwitch has not sent a frame yet, which opens its socket"),
        Some(socket) if u64::from(socket.send_buffer) > queues => {
            let detail = format!("{} octets; the queues of all ports hold {queues}", socket.send_buffer);
            Check::passed(SEND_BUFFER, detail)
        }
        Some(socket) => {
            let failure = format!(
                "Open vSwitch sends through one socket of {} octets, but all queues hold {queues}: when they are full, \
                 frames of every class are lost, and no discipline counts them",
                socket.send_buffer
            );
            Check::of(SEND_BUFFER, vec![failure], remedy, "")
        }
    }
}

fn receive_buffer(sockets: &[PacketSocket], ports: &[Port]) -> Check {
    let of_port = |number: u32| sockets.iter().find(|socket| socket.interface == number);
    let measured: Vec<_> = ports.iter().filter_map(|(name, number)| Some((name, of_port(*number)?))).collect();
    if measured.is_empty() {
        return Check::not_measured(RECEIVE_BUFFER, "Open vSwitch has no ports");
    }
    let is_short = |(_, socket): &&(&String, &PacketSocket)| u64::from(socket.receive_buffer) < RECEIVE_OCTETS;
    let failure = |(name, socket): &(&String, &PacketSocket)| {
        format!(
            "port {name} has a receive buffer of {} octets and has lost {} frames so far",
            socket.receive_buffer, socket.drops
        )
    };
    let failures = measured.iter().filter(is_short).map(failure).collect();
    let remedy = format!("raise net.core.rmem_default to {RECEIVE_OCTETS} before ovs-vswitchd starts");
    let drops: u64 = measured.iter().map(|(_, socket)| u64::from(socket.drops)).sum();
    Check::of(RECEIVE_BUFFER, failures, &remedy, format!("{} ports, {drops} frames lost so far", measured.len()))
}

/// Checks that rate-limited links have their disciplines, and that queues drop from the end given
/// by the file.
///
/// # Errors
/// The kernel does not report them.
pub fn disciplines(namespaces: &Namespaces, plan: &Plan, classes: &[Class]) -> Result<Vec<Check>> {
    let (mut missing, mut kinds, mut count) = (Vec::new(), Vec::new(), 0);
    let are_filters_expected = classes.iter().any(Class::has_filters);
    for end in plan.shaped() {
        let failed = Error::os(format!("read the disciplines of {} of {}", end.name, end.node));
        let result = at(namespaces, end, |netlink, index| {
            Ok((netlink.disciplines(index)?, netlink.has_filters(index, HANDLE).unwrap_or(false)))
        });
        let (disciplines, has_filters) = result.map_err(failed)?;
        count += 1;
        let has_htb = disciplines.iter().any(|one| one.kind == "htb" && one.handle == HANDLE);
        if !has_htb || !has_filters && are_filters_expected {
            missing.push(format!("{} of {} has lost its HTB discipline or its filters", end.name, end.node));
            continue;
        }
        for (index, wanted) in classes.iter().enumerate() {
            let leaf = disciplines.iter().find(|one| one.parent == class(index));
            let kind = leaf.map_or("none", |leaf| leaf.kind.as_str());
            let expected = wanted.of_kernel().queue().kind();
            if kind != expected && wanted.drop_from == DropFrom::Tail {
                kinds.push(format!(
                    "class {} of {} at {} has a queue of kind {kind}, expected {expected}",
                    wanted.name, end.name, end.node
                ));
            } else if kind != expected {
                kinds.push(format!(
                    "class {} of {} at {} has a queue of kind {kind}: when it is full, Open vSwitch gets ENOBUFS and \
                     discards the rest of its batch, frames of other classes included",
                    wanted.name, end.name, end.node
                ));
            }
        }
    }
    if count == 0 {
        let why = "no link has a rate";
        return Ok([DISCIPLINE, HEAD_DROP].map(|name| Check::not_measured(name, why)).to_vec());
    }
    let remedy = "ovs-vswitchd removes the discipline of a port without a QoS row at its start: add for each port a row of type \
                linux-noop, and recreate the lab";
    let detail = format!("{count} interfaces");
    Ok(vec![
        Check::of(DISCIPLINE, missing, remedy, detail.clone()),
        Check::of(HEAD_DROP, kinds, "use pfifo_head_drop, or recreate the lab", detail),
    ])
}

/// Checks that ports of kernel bridges forward, and that their bridges flood multicast. Returns
/// `None` without such bridges.
///
/// # Errors
/// The kernel does not report them.
pub fn bridges(namespaces: &Namespaces, plan: &Plan) -> Result<Option<Check>> {
    let (mut failures, mut count) = (Vec::new(), 0);
    for (end, bridge) in plan.kernel_ports() {
        count += 1;
        let result = at(namespaces, end, |netlink, index| {
            let bridge = interface_index(bridge)?;
            let port = netlink.bridge_port(index)?.filter(|port| port.bridge == bridge);
            Ok((port, netlink.has_multicast_snooping(bridge)?))
        });
        let (port, snooping) = result.map_err(Error::os(format!("read the bridge {bridge}")))?;
        let name = &end.name;
        match port {
            None => failures.push(format!("{name} is no longer a port of the bridge {bridge}")),
            Some(port) if !port.is_forwarding => {
                failures.push(format!("port {name} of the bridge {bridge} does not forward"))
            }
            Some(_) if snooping == Some(true) => failures.push(format!(
                "the bridge {bridge} drops multicast, since mcast_snooping is on and no host reports memberships"
            )),
            Some(_) => {}
        }
    }
    let remedy = "set both ends of the link up and mcast_snooping to 0, or recreate the lab";
    let check = || Check::of(BRIDGE, failures, remedy, format!("{count} ports"));
    Ok((count > 0).then(check))
}
