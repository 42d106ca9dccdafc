//! Check that marked frames leave by their planned queue or class: the module sends frames and
//! compares the kernel's counters before and after.
//!
//! The frames are small datagrams to a multicast group and the discard port. They do not leave the
//! link (TTL 1). Other traffic is counted too, so that the counters may increase by more.

use std::io;
use std::net::UdpSocket;

use crate::Plan;
use crate::machine::Machine;
use crate::setting::Setting;
use crate::tc;
use crate::tc::steering::{Steering, Target};
use takt_netlink::interface_index;

/// Number of datagrams of each kind.
pub const FRAMES: u64 = 32;

/// Multicast group of DDS discovery, and the discard port.
const DESTINATION: &str = "239.255.0.1:9";

/// Counters of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SteeringCounters {
    /// Name of the interface.
    pub interface: String,
    /// Marks of the steered frames, and their queue or class.
    pub steering: String,
    /// Increase of that queue's counter while [`FRAMES`] frames were sent for each DSCP.
    pub marked: u64,
    /// Number of marked frames sent.
    pub sent: u64,
    /// Increase of the counter while as many unmarked frames were sent.
    pub unmarked: u64,
}

impl SteeringCounters {
    /// Reports whether all marked frames left by their queue or class.
    pub fn all_steered(&self) -> bool {
        self.marked >= self.sent
    }
}

/// Counts frames for each steering by DSCP in a plan. Steering by PCP alone is not measured, since
/// a socket sets no PCP.
///
/// # Errors
/// The interface cannot send, for instance without an address or while it is down, or a counter
/// does not exist.
pub fn steering(machine: &Machine, plan: &Plan) -> io::Result<Vec<SteeringCounters>> {
    let mut all = Vec::new();
    for change in &plan.changes {
        let Setting::Steering(interface) = &change.setting else { continue };
        if change.to == "none" {
            continue;
        }
        let wanted: Steering = change.to.parse()?;
        let leaf = match wanted.target {
            // Queue 0 is class 1 of the root discipline.
            Target::Queue(queue, _) => tc::root(interface)? | (queue + 1),
            Target::Class(class) => class,
            Target::Priority(priority) => tc::leaf_of_priority(interface, priority)?,
        };
        // The active steering is that of the kernel, which may differ from the plan.
        let steering = machine.read(&change.setting)?;
        let count = |dscp: u8| -> io::Result<u64> {
            let before = tc::frames(interface, leaf)?;
            send(interface, dscp)?;
            Ok(tc::frames(interface, leaf)?.saturating_sub(before))
        };
        let marked = wanted.dscp.iter().map(|dscp| count(*dscp)).sum::<io::Result<u64>>()?;
        let is_free = |dscp: &u8| !wanted.dscp.contains(dscp);
        let unmarked = (0..64).find(is_free).map_or(Ok(0), count)?;
        let sent = FRAMES * wanted.dscp.len() as u64;
        all.push(SteeringCounters { interface: interface.clone(), steering, marked, sent, unmarked });
    }
    Ok(all)
}

/// Sends frames of several flows with a DSCP.
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

/// Socket options that the standard library does not offer.
mod options {
    #![allow(unsafe_code)]

    use std::io;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    /// Sets the interface of outgoing multicast, and the DSCP.
    pub(super) fn set(socket: &UdpSocket, index: i32, dscp: u8) -> io::Result<()> {
        let any = libc::in_addr { s_addr: 0 };
        let by = libc::ip_mreqn { imr_multiaddr: any, imr_address: any, imr_ifindex: index };
        option(socket, libc::IP_MULTICAST_IF, &by)?;
        option(socket, libc::IP_TOS, &(libc::c_int::from(dscp) << 2))
    }

    fn option<T: Copy>(socket: &UdpSocket, name: libc::c_int, value: &T) -> io::Result<()> {
        let (address, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: the address is of `len` initialized octets.
        match unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, name, address, len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
