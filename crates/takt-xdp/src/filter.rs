//! The packet filter: which frames of an interface come to our socket. All others go on to the kernel untouched.
//!
//! Taken is a frame that is all of this: IPv4 without options, no fragment, UDP, to one of our addresses and ports, its payload
//! beginning with `RTPS` unless everything is asked for, and short enough for a frame of the umem. It is taken if it
//! came by a queue that a socket is bound to; by any other queue it goes on to the kernel, whose sockets have the same ports.
//!
//! What the filter does not judge is left to the receiver: lengths and checksums.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::assembler::{Assembler, Register, Width};
use crate::bpf::{Instruction, Map, Program};

/// Let the kernel have it.
const XDP_PASS: i32 = 2;

/// The kernel's functions that the filter calls.
const MAP_LOOKUP_ELEM: i32 = 1;
const REDIRECT_MAP: i32 = 51;
const XDP_GET_BUFF_LEN: i32 = 188;

/// Addresses and ports at most, as pairs.
pub(crate) const PORTS_MAX: u32 = 1024;

/// Queues at most.
const QUEUES_MAX: u32 = 64;

/// What the filter is to take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Only what begins with `RTPS`.
    pub(crate) rtps_only: bool,
    /// Longest frame, in octets.
    pub(crate) frame_len_max: usize,
    /// Frames may come in several parts, as drivers have it where the MTU exceeds a page. Where it does not, a driver without
    /// them has trains of datagrams from this machine taken apart before, so that they can be taken too.
    pub(crate) several_parts: bool,
}

/// A loaded filter, with the maps that it looks into.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) program: Program,
    ports: Map<8>,
    sockets: Map<4>,
}

impl Filter {
    /// Loads a filter that takes nothing yet.
    pub(crate) fn load(rules: Rules) -> io::Result<Self> {
        let (ports, sockets) = (Map::hash(PORTS_MAX)?, Map::sockets(QUEUES_MAX)?);
        let program = Program::load(&assemble(rules, ports.number(), sockets.number()), rules.several_parts)?;
        Ok(Self { program, ports, sockets })
    }

    /// Takes what comes to this port of this address from now on.
    pub(crate) fn open(&self, address: Ipv4Addr, port: u16) -> io::Result<()> {
        self.ports.set(&key(address, port), 1)
    }

    /// Leaves it to the kernel from now on.
    pub(crate) fn close(&self, address: Ipv4Addr, port: u16) -> io::Result<()> {
        self.ports.remove(&key(address, port))
    }

    /// What is taken of a queue goes to this socket.
    pub(crate) fn connect(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.sockets.set(&queue.to_ne_bytes(), socket.as_raw_fd() as u32)
    }
}

/// As the filter finds them in a frame, and two octets of zeros.
fn key(address: Ipv4Addr, port: u16) -> [u8; 8] {
    let ([a, b, c, d], [high, low]) = (address.octets(), port.to_be_bytes());
    // The filter stores the port as a number of 32 bits.
    let [e, f, g, h] = u32::from(u16::from_ne_bytes([high, low])).to_ne_bytes();
    [a, b, c, d, e, f, g, h]
}

/// Offsets in a frame without tag and options.
mod offset {
    pub(super) const ETHER_TYPE: i16 = 12;
    pub(super) const IP: i16 = 14;
    pub(super) const FRAGMENT: i16 = IP + 6;
    pub(super) const PROTOCOL: i16 = IP + 9;
    pub(super) const ADDRESS: i16 = IP + 16;
    pub(super) const PORT: i16 = IP + 22;
    pub(super) const PAYLOAD: i16 = IP + 28;
}

/// The program. What it loads from a frame is in network order, and so are the numbers that it compares with.
fn assemble(rules: Rules, ports: u32, sockets: u32) -> Vec<Instruction> {
    let [r0, r1, r2, r3, r4, r5, r6] = [0, 1, 2, 3, 4, 5, 6].map(Register);
    let stack = Register(10);
    let mut program = Assembler::default();
    program.copy(r6, r1);
    // All parts of a frame that has several.
    let longest = i32::try_from(rules.frame_len_max).unwrap_or(i32::MAX);
    program.call(XDP_GET_BUFF_LEN).pass_if_above(r0, longest);
    // struct xdp_md: data, data_end.
    program.load(Width::U32, r2, r6, 0).load(Width::U32, r3, r6, 4);
    let needed = offset::PAYLOAD + if rules.rtps_only { 4 } else { 0 };
    program.copy(r4, r2).increase(r4, needed.into()).pass_if_beyond(r4, r3);
    let ipv4 = u16::from_ne_bytes([0x08, 0x00]);
    program.load(Width::U16, r5, r2, offset::ETHER_TYPE).pass_unless(r5, ipv4.into());
    program.load(Width::U8, r5, r2, offset::IP).pass_unless(r5, 0x45);
    let fragment = u16::from_ne_bytes([0x3f, 0xff]);
    program.load(Width::U16, r5, r2, offset::FRAGMENT).mask(r5, fragment.into()).pass_unless(r5, 0);
    program.load(Width::U8, r5, r2, offset::PROTOCOL).pass_unless(r5, takt_packet::UDP.into());
    if rules.rtps_only {
        program.load(Width::U32, r5, r2, offset::PAYLOAD).pass_unless(r5, u32::from_ne_bytes(*b"RTPS"));
    }
    program.load(Width::U32, r5, r2, offset::ADDRESS).store(stack, -8, r5);
    program.load(Width::U16, r5, r2, offset::PORT).store(stack, -4, r5);
    program.set_map(r1, ports).copy(r2, stack).increase(r2, -8).call(MAP_LOOKUP_ELEM).pass_if_none(r0);
    // struct xdp_md: rx_queue_index. Without a socket there the function says what is in its third argument.
    program.load(Width::U32, r2, r6, 16).set_map(r1, sockets).set(r3, XDP_PASS).call(REDIRECT_MAP).exit();
    program.finish(XDP_PASS)
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
