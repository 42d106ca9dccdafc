//! Whether marked frames really leave where a plan has them leave: some are sent, and the kernel's counters are read before and after.
//!
//! What is sent are small datagrams to a multicast group, by the discard port, which go no further than the link (TTL 1). Other traffic
//! counts too, so the counters may rise by more.

use std::io;
use std::net::UdpSocket;

use crate::Plan;
use crate::knob::Knob;
use crate::machine::Machine;
use crate::tc;
use crate::tc::steering::{Steering, Way};
use takt_netlink::interface_index;

/// Datagrams that are sent of each kind.
pub const FRAMES: u64 = 32;

/// The group of DDS domains, and nobody's port.
const DESTINATION: &str = "239.255.0.1:9";

/// What was counted of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Which interface.
    pub interface: String,
    /// How frames are marked that are to leave on their own, and where.
    pub steering: String,
    /// By how much the counter of that place rose while [`FRAMES`] frames were sent for each DSCP.
    pub marked: u64,
    /// How many of those were sent.
    pub sent: u64,
    /// By how much it rose while as many were sent without marks.
    pub unmarked: u64,
}

impl Counted {
    /// Whether all marked frames left where they should.
    pub fn is_well(&self) -> bool {
        self.marked >= self.sent
    }
}

/// Counts for every steering by DSCP that a plan has. PCPs alone are not measured: a socket sets none.
///
/// # Errors
/// Nothing can be sent by the interface, such as without an address or while it is down; counters that are not there.
pub fn steering(machine: &Machine, plan: &Plan) -> io::Result<Vec<Counted>> {
    let mut all = Vec::new();
    for change in &plan.changes {
        let Knob::Steering(interface) = &change.knob else { continue };
        if change.to == "none" {
            continue;
        }
        let wanted: Steering = change.to.parse()?;
        let leaf = match wanted.way {
            // Queue 0 is class 1 of the discipline at the root.
            Way::Queue(queue, _) => tc::root(interface)? | (queue + 1),
            Way::Class(class) => class,
            Way::Priority(priority) => tc::leaf_of_priority(interface, priority)?,
        };
        // What is steered is what the kernel says, and not only what the plan says.
        let steering = machine.read(&change.knob)?;
        let count = |dscp: u8| -> io::Result<u64> {
            let before = tc::frames(interface, leaf)?;
            send(interface, dscp)?;
            Ok(tc::frames(interface, leaf)?.saturating_sub(before))
        };
        let marked = wanted.dscp.iter().map(|dscp| count(*dscp)).sum::<io::Result<u64>>()?;
        let is_free = |dscp: &u8| !wanted.dscp.contains(dscp);
        let unmarked = (0..64).find(is_free).map_or(Ok(0), count)?;
        let sent = FRAMES * wanted.dscp.len() as u64;
        all.push(Counted { interface: interface.clone(), steering, marked, sent, unmarked });
    }
    Ok(all)
}

/// Sends frames of as many flows with a DSCP.
fn send(interface: &str, dscp: u8) -> io::Result<()> {
    let index = interface_index(interface)?;
    for _ in 0..FRAMES {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_multicast_ttl_v4(1)?;
        socket.set_multicast_loop_v4(false)?;
        options::set(&socket, index, dscp)?;
        socket.send_to(b"takt host verify", DESTINATION)?;
    }
    Ok(())
}

/// The options of a socket that the standard library has not.
mod options {
    #![allow(unsafe_code)]

    use std::io;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    /// By which interface multicast leaves, and with which DSCP.
    pub(super) fn set(socket: &UdpSocket, index: i32, dscp: u8) -> io::Result<()> {
        let any = libc::in_addr { s_addr: 0 };
        let by = libc::ip_mreqn { imr_multiaddr: any, imr_address: any, imr_ifindex: index };
        option(socket, libc::IP_MULTICAST_IF, &by)?;
        option(socket, libc::IP_TOS, &(libc::c_int::from(dscp) << 2))
    }

    fn option<T: Copy>(socket: &UdpSocket, name: libc::c_int, value: &T) -> io::Result<()> {
        let (address, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: the address is of `len` initialised octets.
        match unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, name, address, len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
