//! Packet filter of an interface: redirects frames to AF_XDP sockets, and passes all others to the
//! kernel unchanged.
//!
//! One program serves all participants at an interface. Each queue of a participant has its AF_XDP
//! socket, and a [`Table`] of the addresses and ports that the participant listens at. The filter
//! redirects a frame that meets all conditions:
//!
//! - it arrives at such a queue, and its destination is in the table of the queue. A frame to
//!   another participant passes to the kernel, whose sockets have the same ports, so that no frame
//!   is lost at the queue of another participant;
//! - it is UDP over unfragmented IPv4 without options, or over IPv6 without extension headers; or
//!   it has Takt's own EtherType;
//! - it has no 802.1Q tag, a priority tag, or the VLAN ID of the table;
//! - it is no longer than the participant's frames, and begins with `RTPS` if the participant
//!   requires that.
//!
//! A table belongs to one participant. A queue that changes its owner gets the table of the new one
//! before the socket. The table of a killed participant is therefore without effect. It is freed
//! with the next owner of the queue or with the program, whichever comes first.
//!
//! The receiver checks what the filter does not: lengths and checksums.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use takt_packet::{EtherType, MacAddress, TaktHeader, UDP};

use crate::program::assembler::{Assembler, Register, Width};
use crate::program::bpf::{Instruction, Map, Program};

/// Action that passes the frame to the kernel.
const XDP_PASS: i32 = 2;

/// Kernel functions that the filter calls.
const MAP_LOOKUP_ELEM: i32 = 1;
const REDIRECT_MAP: i32 = 51;
const XDP_GET_BUFF_LEN: i32 = 188;

/// Maximum number of pairs of address and port of one participant.
pub(crate) const PORTS_MAX: u32 = 1024;

/// Maximum number of queues.
pub(crate) const QUEUES_MAX: u32 = 64;

/// Length of a key, in octets.
const KEY: usize = 20;

/// Forms of an address, in the key above the twelve bits of the VLAN.
const FORM_V4: u16 = 4 << 12;
const FORM_V6: u16 = 6 << 12;
const FORM_ETHERNET: u16 = 1 << 12;

/// Address and port in a VLAN (0: none), as the filter finds them in a frame. Sixteen octets hold
/// the address; shorter ones stand at the end for IP and at the start for Ethernet. A word of 32
/// bits follows: form and VLAN in the upper half, the port in network order in the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key([u8; KEY]);

impl Key {
    /// Makes the key of a UDP port.
    pub(crate) fn udp(address: IpAddr, port: u16, vid: u16) -> Self {
        match address {
            IpAddr::V4(v4) => {
                let mut octets = [0; 16];
                octets[12..].copy_from_slice(&v4.octets());
                Self::new(octets, FORM_V4 | vid, port)
            }
            IpAddr::V6(v6) => Self::new(v6.octets(), FORM_V6 | vid, port),
        }
    }

    /// Makes the key of a port of the layer-2 transport.
    pub(crate) fn ethernet(address: MacAddress, port: u16, vid: u16) -> Self {
        let mut octets = [0; 16];
        octets[..6].copy_from_slice(&address.0);
        Self::new(octets, FORM_ETHERNET | vid, port)
    }

    fn new(address: [u8; 16], form_and_vid: u16, port: u16) -> Self {
        let mut key = [0; KEY];
        key[..16].copy_from_slice(&address);
        let word = u32::from(form_and_vid) << 16 | u32::from(u16::from_ne_bytes(port.to_be_bytes()));
        key[16..].copy_from_slice(&word.to_ne_bytes());
        Self(key)
    }
}

/// Conditions of a participant on frames to its ports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Whether to accept only payloads that begin with `RTPS`.
    pub(crate) rtps_only: bool,
    /// Maximum length of a frame, in octets.
    pub(crate) frame_len_max: usize,
}

/// Addresses and ports of one participant.
#[derive(Debug)]
pub(crate) struct Table {
    map: Map<KEY>,
    /// Value of every entry: the maximum frame length, and in the lowest bit whether the payload
    /// must be RTPS.
    rule: u32,
}

impl Table {
    /// Creates an empty table. Needs CAP_BPF.
    pub(crate) fn new(rules: Rules) -> io::Result<Self> {
        let longest = u32::try_from(rules.frame_len_max).unwrap_or(u32::MAX >> 1);
        Ok(Self { map: Map::hash(PORTS_MAX)?, rule: longest << 1 | u32::from(rules.rtps_only) })
    }

    /// Accepts frames to this port and address from now on.
    pub(crate) fn open(&self, key: Key) -> io::Result<()> {
        self.map.set(&key.0, self.rule)
    }

    /// Leaves frames to this port and address to the kernel from now on.
    pub(crate) fn close(&self, key: Key) -> io::Result<()> {
        self.map.remove(&key.0)
    }
}

/// Maps of the program, shared by all participants at the interface.
#[derive(Debug)]
pub(crate) struct Switchboard {
    /// Table of the owner of each queue.
    tables: Map<4>,
    /// Socket of each queue.
    sockets: Map<4>,
}

impl Switchboard {
    /// Creates empty maps. Needs CAP_BPF.
    pub(crate) fn new() -> io::Result<Self> {
        let tables = Map::maps(QUEUES_MAX, &Map::<KEY>::hash(PORTS_MAX)?)?;
        Ok(Self { tables, sockets: Map::sockets(QUEUES_MAX)? })
    }

    /// Wraps the maps that another process created.
    pub(crate) fn of([tables, sockets]: [OwnedFd; 2]) -> Self {
        Self { tables: Map::of(tables), sockets: Map::of(sockets) }
    }

    /// Loads the program for these maps, which accepts nothing until a queue is
    /// [connected](Self::connect). It accepts frames in `several_parts`, or only in one. Needs
    /// CAP_BPF and CAP_NET_ADMIN.
    pub(crate) fn program(&self, several_parts: bool) -> io::Result<Program> {
        Program::load(&assemble(self.tables.number(), self.sockets.number()), several_parts)
    }

    /// Returns the descriptors, to be sent to another process.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.tables.as_fd(), self.sockets.as_fd()]
    }

    /// Redirects frames of this queue that the table accepts to this socket, which is bound to the
    /// queue.
    pub(crate) fn connect(&self, queue: u32, table: &Table, socket: BorrowedFd<'_>) -> io::Result<()> {
        // In this order, so that a socket never receives frames that the table of another
        // participant accepts.
        self.tables.set(&queue.to_ne_bytes(), table.map.number())?;
        self.sockets.set(&queue.to_ne_bytes(), socket.as_raw_fd() as u32)
    }

    /// Stops redirecting frames of this queue. Its socket must still be bound: afterwards, the
    /// queue may belong to another participant.
    pub(crate) fn disconnect(&self, queue: u32) {
        // Fails only for missing entries.
        drop(self.sockets.remove(&queue.to_ne_bytes()));
        drop(self.tables.remove(&queue.to_ne_bytes()));
    }
}

/// Offsets in an Ethernet frame, after its header, and on the stack.
mod offset {
    pub(super) const ETHER_TYPE: i16 = 12;
    pub(super) const TAG: i16 = 14;
    pub(super) const TAGGED_ETHER_TYPE: i16 = 16;
    pub(super) const V4_FRAGMENT: i16 = 6;
    pub(super) const V4_PROTOCOL: i16 = 9;
    pub(super) const V4_DESTINATION: i16 = 16;
    pub(super) const V4_PORT: i16 = 22;
    pub(super) const V4_PAYLOAD: i16 = 28;
    pub(super) const V6_NEXT_HEADER: i16 = 6;
    pub(super) const V6_DESTINATION: i16 = 24;
    pub(super) const V6_PORT: i16 = 42;
    pub(super) const V6_PAYLOAD: i16 = 48;
    pub(super) const TAKT_PORT: i16 = 4;
    pub(super) const TAKT_PAYLOAD: i16 = 8;
    /// The four address words of the key, its last word, and the queue.
    pub(super) const ADDRESS: [i16; 4] = [-20, -16, -12, -8];
    pub(super) const LAST: i16 = -4;
    pub(super) const QUEUE: i16 = -24;
}

/// Result of a call, and its arguments, which it clobbers.
const R0: Register = Register(0);
const R1: Register = Register(1);
const R2: Register = Register(2);
const R3: Register = Register(3);
const R4: Register = Register(4);
const R5: Register = Register(5);
/// Preserved registers: the context (`struct xdp_md`); form and VLAN, later the rule; the octets
/// after the Ethernet header; the payload.
const CONTEXT: Register = Register(6);
const FORM: Register = Register(7);
const INNER: Register = Register(8);
const PAYLOAD: Register = Register(9);
/// End of the stack.
const STACK: Register = Register(10);

/// Converts a number to the value that a load from a frame in network order yields.
const fn network(number: u16) -> u32 {
    u16::from_ne_bytes(number.to_be_bytes()) as u32
}

/// Assembles the program. Values loaded from a frame are in network order, and so are those that it
/// compares with.
fn assemble(tables: u32, sockets: u32) -> Vec<Instruction> {
    let mut program = Assembler::new();
    let [untagged, v4, v6, look_up, take] = std::array::from_fn(|_| program.label());
    program.copy(CONTEXT, R1);
    // struct xdp_md: data, data_end. Every accepted frame is longer than a header with a tag.
    program.load(Width::U32, R2, CONTEXT, 0).load(Width::U32, R3, CONTEXT, 4);
    program.copy(R4, R2).increase(R4, offset::TAGGED_ETHER_TYPE as i32 + 2).pass_if_beyond(R4, R3);
    program.load(Width::U16, R5, R2, offset::ETHER_TYPE).set(FORM, 0).copy(INNER, R2);
    program.jump_unless_equal(R5, network(EtherType::VLAN.0), untagged);
    program.load(Width::U16, FORM, R2, offset::TAG).number_of_network_16(FORM).mask(FORM, 0x0fff);
    program.load(Width::U16, R5, R2, offset::TAGGED_ETHER_TYPE).increase(INNER, 4);
    program.place(untagged).increase(INNER, 14);
    program.jump_if_equal(R5, network(EtherType::IPV4.0), v4).jump_if_equal(R5, network(EtherType::IPV6.0), v6);
    program.pass_unless(R5, network(EtherType::TAKT.0));
    takt(&mut program);
    program.jump(look_up);
    program.place(v4);
    udp_v4(&mut program);
    program.jump(look_up);
    program.place(v6);
    udp_v6(&mut program);
    program.place(look_up).shift_up(FORM, 16).or(FORM, R5).store(STACK, offset::LAST, FORM);
    // struct xdp_md: rx_queue_index.
    program.load(Width::U32, R5, CONTEXT, 16).store(STACK, offset::QUEUE, R5);
    program.set_map(R1, tables).copy(R2, STACK).increase(R2, offset::QUEUE.into());
    program.call(MAP_LOOKUP_ELEM).pass_if_none(R0);
    program.copy(R1, R0).copy(R2, STACK).increase(R2, offset::ADDRESS[0].into());
    program.call(MAP_LOOKUP_ELEM).pass_if_none(R0);
    let rule = FORM;
    program.load(Width::U32, rule, R0, 0);
    // Length over all parts of the frame.
    program.copy(R1, CONTEXT).call(XDP_GET_BUFF_LEN);
    program.copy(R1, rule).shift_down(R1, 1).pass_if_beyond(R0, R1);
    program.mask(rule, 1).jump_if_equal(rule, 0, take);
    program.load(Width::U32, R3, CONTEXT, 4).copy(R4, PAYLOAD).increase(R4, 4).pass_if_beyond(R4, R3);
    program.load(Width::U32, R5, PAYLOAD, 0).pass_unless(R5, u32::from_ne_bytes(*b"RTPS"));
    // Without a socket at the queue, the function returns its third argument.
    program.place(take).load(Width::U32, R2, CONTEXT, 16);
    program.set_map(R1, sockets).set(R3, XDP_PASS).call(REDIRECT_MAP).exit();
    program.finish(XDP_PASS)
}

/// Passes the frame unless this number of octets follows the Ethernet header. Sets [`PAYLOAD`]
/// after them.
fn need(program: &mut Assembler, octets: i16) {
    program.copy(PAYLOAD, INNER).increase(PAYLOAD, octets.into()).pass_if_beyond(PAYLOAD, R3);
}

/// Parses a layer-2 frame: leaves the address on the stack, the port in R5 and the form in
/// [`FORM`], or passes the frame.
fn takt(program: &mut Assembler) {
    need(program, offset::TAKT_PAYLOAD);
    program.load(Width::U8, R5, INNER, 0).pass_unless(R5, TaktHeader::VERSION.into());
    let [first, second, third, fourth] = offset::ADDRESS;
    program.load(Width::U32, R5, R2, 0).store(STACK, first, R5);
    program.load(Width::U16, R5, R2, 4).store(STACK, second, R5);
    program.set(R5, 0).store(STACK, third, R5).store(STACK, fourth, R5);
    program.set(R4, FORM_ETHERNET.into()).or(FORM, R4);
    program.load(Width::U16, R5, INNER, offset::TAKT_PORT);
}

/// Parses a UDP datagram over IPv4 likewise.
fn udp_v4(program: &mut Assembler) {
    need(program, offset::V4_PAYLOAD);
    program.load(Width::U8, R5, INNER, 0).pass_unless(R5, 0x45);
    program.load(Width::U16, R5, INNER, offset::V4_FRAGMENT).mask(R5, network(0x3fff)).pass_unless(R5, 0);
    program.load(Width::U8, R5, INNER, offset::V4_PROTOCOL).pass_unless(R5, UDP.into());
    let [first, second, third, fourth] = offset::ADDRESS;
    program.set(R5, 0).store(STACK, first, R5).store(STACK, second, R5).store(STACK, third, R5);
    program.load(Width::U32, R5, INNER, offset::V4_DESTINATION).store(STACK, fourth, R5);
    program.set(R4, FORM_V4.into()).or(FORM, R4);
    program.load(Width::U16, R5, INNER, offset::V4_PORT);
}

/// Parses a UDP datagram over IPv6 likewise.
fn udp_v6(program: &mut Assembler) {
    need(program, offset::V6_PAYLOAD);
    program.load(Width::U8, R5, INNER, 0).mask(R5, 0xf0).pass_unless(R5, 0x60);
    program.load(Width::U8, R5, INNER, offset::V6_NEXT_HEADER).pass_unless(R5, UDP.into());
    for (word, at) in (0..).zip(offset::ADDRESS) {
        program.load(Width::U32, R5, INNER, offset::V6_DESTINATION + 4 * word).store(STACK, at, R5);
    }
    program.set(R4, FORM_V6.into()).or(FORM, R4);
    program.load(Width::U16, R5, INNER, offset::V6_PORT);
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
