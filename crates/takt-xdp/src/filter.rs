//! The packet filter: which frames of an interface come to which socket. All others go on to the kernel untouched.
//!
//! One program serves all participants at an interface. Each queue that a participant has is given two things: its AF_XDP
//! socket, and a [`Table`] of the addresses and ports that the participant listens at. Taken is a frame that is all of this:
//!
//! - by such a queue, and addressed to what stands in the queue's table: one of another participant goes on to the kernel, whose
//!   sockets have the same ports, so that nothing is lost when frames come by queues that belong to others;
//! - IPv4 without options, no fragment, or IPv6 without extension headers, and UDP; or of Takt's own EtherType;
//! - without a tag of 802.1Q, with one that says priority only, or with the one VLAN that the table says;
//! - no longer than the participant's frames, and beginning with `RTPS` if that is all that the participant wants.
//!
//! A table belongs to one participant, and a queue that changes hands gets the new one's table before its socket. So what
//! a participant that was killed has left behind is without effect, and gone with the queue's next owner or the program, whichever
//! comes first.
//!
//! What the filter does not judge is left to the receiver: lengths and checksums.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use takt_packet::{EtherType, MacAddress, TaktHeader, UDP};

use crate::assembler::{Assembler, Register, Width};
use crate::bpf::{Instruction, Map, Program};

/// Let the kernel have it.
const XDP_PASS: i32 = 2;

/// The kernel's functions that the filter calls.
const MAP_LOOKUP_ELEM: i32 = 1;
const REDIRECT_MAP: i32 = 51;
const XDP_GET_BUFF_LEN: i32 = 188;

/// Addresses and ports at most, as pairs, of one participant.
pub(crate) const PORTS_MAX: u32 = 1024;

/// Queues at most.
pub(crate) const QUEUES_MAX: u32 = 64;

/// Octets of what names an address and a port.
const KEY: usize = 20;

/// How an address is to be understood: stands in the key above the twelve bits of the VLAN.
const FORM_V4: u16 = 4 << 12;
const FORM_V6: u16 = 6 << 12;
const FORM_ETHERNET: u16 = 1 << 12;

/// An address and a port, in a VLAN (0: in none), as the filter finds them in a frame: sixteen octets of the address, shorter ones
/// of IP at the end and of Ethernet at the start, and a word of 32 bits, form and VLAN above, the port as it stands in the frame
/// below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key([u8; KEY]);

impl Key {
    /// A port of UDP.
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

    /// A port of the layer-2 form.
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

/// What a participant wants of what is addressed to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Only what begins with `RTPS`.
    pub(crate) rtps_only: bool,
    /// Longest frame, in octets.
    pub(crate) frame_len_max: usize,
}

/// The addresses and ports of one participant.
#[derive(Debug)]
pub(crate) struct Table {
    map: Map<KEY>,
    /// The value of every entry: the longest frame, and in the lowest bit whether it must be RTPS.
    rule: u32,
}

impl Table {
    /// An empty one. Takes CAP_BPF.
    pub(crate) fn new(rules: Rules) -> io::Result<Self> {
        let longest = u32::try_from(rules.frame_len_max).unwrap_or(u32::MAX >> 1);
        Ok(Self { map: Map::hash(PORTS_MAX)?, rule: longest << 1 | u32::from(rules.rtps_only) })
    }

    /// Takes what comes to this port of this address from now on.
    pub(crate) fn open(&self, key: Key) -> io::Result<()> {
        self.map.set(&key.0, self.rule)
    }

    /// Leaves it to the kernel from now on.
    pub(crate) fn close(&self, key: Key) -> io::Result<()> {
        self.map.remove(&key.0)
    }
}

/// What the program looks into, shared by all participants at the interface.
#[derive(Debug)]
pub(crate) struct Switchboard {
    /// Of each queue the table of the participant that has it.
    tables: Map<4>,
    /// Of each queue the socket.
    sockets: Map<4>,
}

impl Switchboard {
    /// An empty one. Takes CAP_BPF.
    pub(crate) fn new() -> io::Result<Self> {
        let tables = Map::maps(QUEUES_MAX, &Map::<KEY>::hash(PORTS_MAX)?)?;
        Ok(Self { tables, sockets: Map::sockets(QUEUES_MAX)? })
    }

    /// Those that another process made.
    pub(crate) fn of([tables, sockets]: [OwnedFd; 2]) -> Self {
        Self { tables: Map::of(tables), sockets: Map::of(sockets) }
    }

    /// The program that looks into it, which takes nothing until a queue is [connected](Self::connect). Frames may come to it in
    /// `several_parts`, or in one. Takes CAP_BPF and CAP_NET_ADMIN.
    pub(crate) fn program(&self, several_parts: bool) -> io::Result<Program> {
        Program::load(&assemble(self.tables.number(), self.sockets.number()), several_parts)
    }

    /// To be given to another process.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.tables.as_fd(), self.sockets.as_fd()]
    }

    /// What is taken of a queue goes to this socket, which is bound to it, by the participant's own table.
    pub(crate) fn connect(&self, queue: u32, table: &Table, socket: BorrowedFd<'_>) -> io::Result<()> {
        // In this order: never is a socket given what a table of another participant says.
        self.tables.set(&queue.to_ne_bytes(), table.map.number())?;
        self.sockets.set(&queue.to_ne_bytes(), socket.as_raw_fd() as u32)
    }

    /// Nothing is taken of this queue any more. Its socket must still be bound: afterwards the queue may be somebody else's.
    pub(crate) fn disconnect(&self, queue: u32) {
        // They can only fail for what is not there.
        drop(self.sockets.remove(&queue.to_ne_bytes()));
        drop(self.tables.remove(&queue.to_ne_bytes()));
    }
}

/// Offsets in an Ethernet frame, in what follows its header, and on the stack.
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
    /// The key's four words of address, its last word, and the queue.
    pub(super) const ADDRESS: [i16; 4] = [-20, -16, -12, -8];
    pub(super) const LAST: i16 = -4;
    pub(super) const QUEUE: i16 = -24;
}

/// What a call answers, and its arguments, which it does not keep.
const R0: Register = Register(0);
const R1: Register = Register(1);
const R2: Register = Register(2);
const R3: Register = Register(3);
const R4: Register = Register(4);
const R5: Register = Register(5);
/// Kept: what the kernel gave (`struct xdp_md`); form and VLAN, later the rule; what follows Ethernet's header; the payload.
const CONTEXT: Register = Register(6);
const FORM: Register = Register(7);
const INNER: Register = Register(8);
const PAYLOAD: Register = Register(9);
/// The stack's end.
const STACK: Register = Register(10);

/// A number as it is loaded from a frame, in network order.
const fn network(number: u16) -> u32 {
    u16::from_ne_bytes(number.to_be_bytes()) as u32
}

/// The program. What it loads from a frame is in network order, and so are the numbers that it compares with.
fn assemble(tables: u32, sockets: u32) -> Vec<Instruction> {
    let mut program = Assembler::new();
    let [untagged, v4, v6, look_up, take] = std::array::from_fn(|_| program.label());
    program.copy(CONTEXT, R1);
    // struct xdp_md: data, data_end. Whatever is taken is longer than a header with a tag.
    program.load(Width::U32, R2, CONTEXT, 0).load(Width::U32, R3, CONTEXT, 4);
    program.copy(R4, R2).increase(R4, offset::TAGGED_ETHER_TYPE as i32 + 2).pass_if_beyond(R4, R3);
    program.load(Width::U16, R5, R2, offset::ETHER_TYPE).set(FORM, 0).copy(INNER, R2);
    program.go_unless(R5, network(EtherType::VLAN.0), untagged);
    program.load(Width::U16, FORM, R2, offset::TAG).number_of_network_16(FORM).mask(FORM, 0x0fff);
    program.load(Width::U16, R5, R2, offset::TAGGED_ETHER_TYPE).increase(INNER, 4);
    program.place(untagged).increase(INNER, 14);
    program.go_if(R5, network(EtherType::IPV4.0), v4).go_if(R5, network(EtherType::IPV6.0), v6);
    program.pass_unless(R5, network(EtherType::TAKT.0));
    takt(&mut program);
    program.go(look_up);
    program.place(v4);
    udp_v4(&mut program);
    program.go(look_up);
    program.place(v6);
    udp_v6(&mut program);
    program.place(look_up).shift_up(FORM, 16).unite(FORM, R5).store(STACK, offset::LAST, FORM);
    // struct xdp_md: rx_queue_index.
    program.load(Width::U32, R5, CONTEXT, 16).store(STACK, offset::QUEUE, R5);
    program.set_map(R1, tables).copy(R2, STACK).increase(R2, offset::QUEUE.into());
    program.call(MAP_LOOKUP_ELEM).pass_if_none(R0);
    program.copy(R1, R0).copy(R2, STACK).increase(R2, offset::ADDRESS[0].into());
    program.call(MAP_LOOKUP_ELEM).pass_if_none(R0);
    let rule = FORM;
    program.load(Width::U32, rule, R0, 0);
    // All parts of a frame that has several.
    program.copy(R1, CONTEXT).call(XDP_GET_BUFF_LEN);
    program.copy(R1, rule).shift_down(R1, 1).pass_if_beyond(R0, R1);
    program.mask(rule, 1).go_if(rule, 0, take);
    program.load(Width::U32, R3, CONTEXT, 4).copy(R4, PAYLOAD).increase(R4, 4).pass_if_beyond(R4, R3);
    program.load(Width::U32, R5, PAYLOAD, 0).pass_unless(R5, u32::from_ne_bytes(*b"RTPS"));
    // Without a socket there the function says what is in its third argument.
    program.place(take).load(Width::U32, R2, CONTEXT, 16);
    program.set_map(R1, sockets).set(R3, XDP_PASS).call(REDIRECT_MAP).exit();
    program.finish(XDP_PASS)
}

/// Unless so many octets follow Ethernet's header, let it pass. [`PAYLOAD`] is behind them.
fn need(program: &mut Assembler, octets: i16) {
    program.copy(PAYLOAD, INNER).increase(PAYLOAD, octets.into()).pass_if_beyond(PAYLOAD, R3);
}

/// Of the layer-2 form: leaves the address on the stack, the port in R5 and the form in [`FORM`], or lets it pass.
fn takt(program: &mut Assembler) {
    need(program, offset::TAKT_PAYLOAD);
    program.load(Width::U8, R5, INNER, 0).pass_unless(R5, TaktHeader::VERSION.into());
    let [first, second, third, fourth] = offset::ADDRESS;
    program.load(Width::U32, R5, R2, 0).store(STACK, first, R5);
    program.load(Width::U16, R5, R2, 4).store(STACK, second, R5);
    program.set(R5, 0).store(STACK, third, R5).store(STACK, fourth, R5);
    program.set(R4, FORM_ETHERNET.into()).unite(FORM, R4);
    program.load(Width::U16, R5, INNER, offset::TAKT_PORT);
}

/// Of UDP over IPv4, likewise.
fn udp_v4(program: &mut Assembler) {
    need(program, offset::V4_PAYLOAD);
    program.load(Width::U8, R5, INNER, 0).pass_unless(R5, 0x45);
    program.load(Width::U16, R5, INNER, offset::V4_FRAGMENT).mask(R5, network(0x3fff)).pass_unless(R5, 0);
    program.load(Width::U8, R5, INNER, offset::V4_PROTOCOL).pass_unless(R5, UDP.into());
    let [first, second, third, fourth] = offset::ADDRESS;
    program.set(R5, 0).store(STACK, first, R5).store(STACK, second, R5).store(STACK, third, R5);
    program.load(Width::U32, R5, INNER, offset::V4_DESTINATION).store(STACK, fourth, R5);
    program.set(R4, FORM_V4.into()).unite(FORM, R4);
    program.load(Width::U16, R5, INNER, offset::V4_PORT);
}

/// Of UDP over IPv6, likewise.
fn udp_v6(program: &mut Assembler) {
    need(program, offset::V6_PAYLOAD);
    program.load(Width::U8, R5, INNER, 0).mask(R5, 0xf0).pass_unless(R5, 0x60);
    program.load(Width::U8, R5, INNER, offset::V6_NEXT_HEADER).pass_unless(R5, UDP.into());
    for (word, at) in (0..).zip(offset::ADDRESS) {
        program.load(Width::U32, R5, INNER, offset::V6_DESTINATION + 4 * word).store(STACK, at, R5);
    }
    program.set(R4, FORM_V6.into()).unite(FORM, R4);
    program.load(Width::U16, R5, INNER, offset::V6_PORT);
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
