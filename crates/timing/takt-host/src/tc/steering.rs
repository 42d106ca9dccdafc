//! Steering: a BPF program at `clsact` that assigns frames with certain marks to a queue or class,
//! as skbedit would.
//!
//! Marks are the DSCP of IPv4 and IPv6, and the PCP of an 802.1Q tag in the frame or in its
//! metadata. If marked frames have a queue, other frames use the other queues by their flow hash.
//! The kernel follows the program's choice of a queue only if XPS makes none, and keeps the first
//! choice for a connected socket. If a discipline assigns queues to priorities
//! ([`classes`](super::classes)), the program sets the priority, and the kernel assigns all queues.
//!
//! The name of the filter is the text of the steering, so that the active steering can be read
//! back.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::str::FromStr;

use super::{DELETE_FILTER, EGRESS, GET_FILTER, Handle, KIND, NEW_FILTER, OPTIONS, message, parse_handle, read_clsact};
use takt_netlink::{NEW, Netlink, find, interface_index, number, put, put_text, text};

/// Target of marked frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Queue, and the number of queues.
    Queue(u32, u32),
    /// Class of the root discipline.
    Class(u32),
    /// Queue of a priority.
    Priority(u32),
}

/// Steering of marked frames, see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Steering {
    pub(crate) target: Target,
    pub(crate) dscp: Vec<u8>,
    pub(crate) pcp: Vec<u8>,
}

impl fmt::Display for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target {
            Target::Queue(queue, of) => write!(f, "queue {queue} of {of}")?,
            Target::Class(class) => write!(f, "class {}", Handle(class))?,
            Target::Priority(priority) => write!(f, "priority {priority}")?,
        }
        for (name, marks) in [("dscp", &self.dscp), ("pcp", &self.pcp)] {
            if !marks.is_empty() {
                let marks: Vec<_> = marks.iter().map(ToString::to_string).collect();
                write!(f, " {name} {}", marks.join(","))?;
            }
        }
        Ok(())
    }
}

impl FromStr for Steering {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        parse(text).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{text:?} is not a steering such as \"queue 3 of 4 dscp 46\""),
            )
        })
    }
}

fn parse(text: &str) -> Option<Steering> {
    let words: Vec<_> = text.split(' ').collect();
    let (target, mut rest) = match words.as_slice() {
        ["queue", queue, "of", of, rest @ ..] => {
            let [queue, of] = [queue, of].map(|number| number.parse::<u32>().ok()); // tidy-allow(dropped-cause): the caller names the text
            (
                queue
                    .zip(of)
                    .filter(|(queue, of)| queue < of && (2..=4096).contains(of))
                    .map(|(q, of)| Target::Queue(q, of)),
                rest,
            )
        }
        ["class", class, rest @ ..] => (parse_handle(class).map(Target::Class), rest),
        ["priority", priority, rest @ ..] => {
            let priority = priority.parse().ok().filter(|priority| *priority < super::classes::PRIORITIES as u32); // tidy-allow(dropped-cause): as above
            (priority.map(Target::Priority), rest)
        }
        _ => return None,
    };
    let (mut dscp, mut pcp) = (Vec::new(), Vec::new());
    while let [name, marks, more @ ..] = rest {
        let (list, max) = match *name {
            "dscp" => (&mut dscp, 63),
            "pcp" => (&mut pcp, 7),
            _ => return None,
        };
        let marks = marks.split(',').map(|mark| mark.parse().ok().filter(|mark| *mark <= max)); // tidy-allow(dropped-cause): as above
        *list = marks.collect::<Option<_>>()?;
        rest = more;
    }
    let is_whole = rest.is_empty() && !(dscp.is_empty() && pcp.is_empty());
    target.filter(|_| is_whole).map(|target| Steering { target, dscp, pcp })
}

/// Preference and protocol of the filter: all protocols.
const PREFERENCE: u32 = 0x7474;
const INFO: u32 = PREFERENCE << 16 | (libc::ETH_P_ALL as u16).to_be() as u32;

const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
/// The return value of the program decides on the frame.
const DIRECT_ACTION: u32 = 1;

/// Returns the steering of an interface, or `none`.
pub(crate) fn read(interface: &str) -> io::Result<String> {
    if read_clsact(interface)? != "clsact" {
        return Ok("none".to_owned());
    }
    let index = interface_index(interface)?;
    let filters = Netlink::route()?.dump(GET_FILTER, &message(index, 0, EGRESS, 0))?;
    let name = |filter: &Vec<u8>| {
        let is_own = number(filter.get(16..)?)? >> 16 == PREFERENCE;
        let options = is_own.then(|| find(filter.get(20..)?, OPTIONS)).flatten()?;
        find(options, BPF_NAME).map(text)
    };
    Ok(filters.iter().find_map(name).unwrap_or_else(|| "none".to_owned()))
}

/// Replaces the steering of an interface.
pub(crate) fn write(interface: &str, steering: &str) -> io::Result<()> {
    let index = interface_index(interface)?;
    let wanted = if steering == "none" { None } else { Some(steering.parse::<Steering>()?) };
    let mut netlink = Netlink::route()?;
    if read(interface)? != "none" {
        netlink.request(DELETE_FILTER, 0, &message(index, 0, EGRESS, INFO))?;
    }
    let Some(wanted) = wanted else { return Ok(()) };
    let program = load(&program(&wanted))?;
    let mut options = Vec::new();
    put(&mut options, BPF_FD, &program.as_raw_fd().to_ne_bytes());
    put_text(&mut options, BPF_NAME, &wanted.to_string());
    put(&mut options, BPF_FLAGS, &DIRECT_ACTION.to_ne_bytes());
    let mut body = message(index, 1, EGRESS, INFO);
    put_text(&mut body, KIND, "bpf");
    put(&mut body, OPTIONS, &options);
    netlink.request(NEW_FILTER, NEW, &body)
}

/// Instruction: operation, registers (destination in the low half), offset, immediate value.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Jump targets in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    InFrame,
    Network,
    V4,
    V6,
    Code,
    Plain,
    Marked,
}

/// Instructions, and jumps whose targets are not yet known.
#[derive(Default)]
struct Assembler {
    code: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    places: Vec<(Label, usize)>,
}

impl Assembler {
    fn put(&mut self, code: u8, registers: u8, offset: i16, immediate: i32) {
        self.code.push(Instruction { code, registers, offset, immediate });
    }

    fn jump(&mut self, code: u8, register: u8, immediate: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.put(code, register, 0, immediate);
    }

    fn place(&mut self, label: Label) {
        self.places.push((label, self.code.len()));
    }

    /// Emits jumps to `to` if register 0 equals one of the marks.
    fn any(&mut self, marks: &[u8], to: Label) {
        marks.iter().for_each(|mark| self.jump(JUMP_EQUAL, 0, i32::from(*mark), to));
    }

    fn assemble(mut self) -> Vec<Instruction> {
        for (at, to) in self.jumps {
            let (_, target) = self.places.iter().find(|(label, _)| *label == to).expect("every label has an address");
            self.code[at].offset =
                i16::try_from(target - at - 1).expect("the program is short, and jumps lead forward");
        }
        self.code
    }
}

const MOVE: u8 = 0xbf;
const MOVE_NUMBER: u8 = 0xb7;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
/// Loads 16 bits of the frame in network byte order.
const FRAME_HALF: u8 = 0x28;
/// Load 8 and 16 bits of the frame, relative to a register.
const FRAME_OCTET_FROM: u8 = 0x50;
const FRAME_HALF_FROM: u8 = 0x48;
const SHIFT_RIGHT: u8 = 0x77;
const AND: u8 = 0x57;
const REMAINDER: u8 = 0x97;
const ADD: u8 = 0x07;
const JUMP: u8 = 0x05;
const JUMP_EQUAL: u8 = 0x15;
const JUMP_UNEQUAL: u8 = 0x55;
const JUMP_LESS: u8 = 0xa5;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const GET_HASH: i32 = 34;
/// Offsets in `struct __sk_buff`.
const QUEUE_MAPPING: i16 = 12;
const VLAN_PRESENT: i16 = 20;
const VLAN_TCI: i16 = 24;
const PRIORITY: i16 = 32;
/// Verdict that leaves the decision to other filters.
const UNSPEC: i32 = -1;

/// Returns the registers of an instruction: destination and source.
const fn pair(to: u8, from: u8) -> u8 {
    from << 4 | to
}

/// Returns the program. Register 6 holds the frame's metadata, register 9 the offset of the network
/// layer.
fn program(steering: &Steering) -> Vec<Instruction> {
    let mut a = Assembler::default();
    a.put(MOVE, pair(6, 1), 0, 0);
    a.put(LOAD, pair(0, 6), VLAN_PRESENT, 0);
    a.jump(JUMP_EQUAL, 0, 0, Label::InFrame);
    a.put(LOAD, pair(0, 6), VLAN_TCI, 0);
    a.put(SHIFT_RIGHT, 0, 0, 13);
    a.put(AND, 0, 0, 7);
    a.any(&steering.pcp, Label::Marked);
    a.place(Label::InFrame);
    a.put(FRAME_HALF, 0, 0, 12);
    a.put(MOVE_NUMBER, 9, 0, 14);
    a.jump(JUMP_UNEQUAL, 0, libc::ETH_P_8021Q, Label::Network);
    a.put(FRAME_HALF, 0, 0, 14);
    a.put(SHIFT_RIGHT, 0, 0, 13);
    a.any(&steering.pcp, Label::Marked);
    a.put(FRAME_HALF, 0, 0, 16);
    a.put(MOVE_NUMBER, 9, 0, 18);
    a.place(Label::Network);
    a.jump(JUMP_EQUAL, 0, libc::ETH_P_IP, Label::V4);
    a.jump(JUMP_EQUAL, 0, libc::ETH_P_IPV6, Label::V6);
    a.jump(JUMP, 0, 0, Label::Plain);
    a.place(Label::V4);
    a.put(FRAME_OCTET_FROM, pair(0, 9), 0, 1);
    a.put(SHIFT_RIGHT, 0, 0, 2);
    a.jump(JUMP, 0, 0, Label::Code);
    a.place(Label::V6);
    a.put(FRAME_HALF_FROM, pair(0, 9), 0, 0);
    a.put(SHIFT_RIGHT, 0, 0, 6);
    a.put(AND, 0, 0, 0x3f);
    a.place(Label::Code);
    a.any(&steering.dscp, Label::Marked);
    a.place(Label::Plain);
    let number = |number: u32| i32::try_from(number).expect("a queue number is small");
    if let Target::Queue(queue, of) = steering.target {
        a.put(MOVE, pair(1, 6), 0, 0);
        a.put(CALL, 0, 0, GET_HASH);
        a.put(REMAINDER, 0, 0, number(of - 1));
        a.put(JUMP_LESS, 0, 1, number(queue));
        a.put(ADD, 0, 0, 1);
        // Queue numbers start at 1 here, and 0 stands for no queue.
        a.put(ADD, 0, 0, 1);
        a.put(STORE, pair(6, 0), QUEUE_MAPPING, 0);
    }
    a.put(MOVE_NUMBER, 0, 0, UNSPEC);
    a.put(EXIT, 0, 0, 0);
    a.place(Label::Marked);
    let (value, field) = match steering.target {
        Target::Queue(queue, _) => (number(queue + 1), QUEUE_MAPPING),
        Target::Class(class) => (class.cast_signed(), PRIORITY),
        Target::Priority(priority) => (number(priority), PRIORITY),
    };
    a.put(MOVE_NUMBER, 0, 0, value);
    a.put(STORE, pair(6, 0), field, 0);
    a.put(MOVE_NUMBER, 0, 0, UNSPEC);
    a.put(EXIT, 0, 0, 0);
    a.assemble()
}

const PROGRAM_LOAD: libc::c_int = 5;
const SCHED_CLS: u32 = 3;

/// Beginning of `union bpf_attr` for loading a program. The kernel takes the rest as zero.
#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions_len: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_len: u32,
    log: u64,
}

fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let license = c"Apache-2.0";
    let attributes = ProgramLoad {
        kind: SCHED_CLS,
        instructions_len: u32::try_from(program.len()).map_err(io::Error::other)?,
        instructions: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_len: 0,
        log: 0,
    };
    let len = size_of::<ProgramLoad>() as libc::c_uint;
    // SAFETY: the structure is valid for `len` octets; the program and the license live during the
    // call, with the lengths given there.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, PROGRAM_LOAD, &raw const attributes, len) };
    match libc::c_int::try_from(fd) {
        // SAFETY: the command creates a new descriptor without another owner.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steering_is_parsed_from_text() {
        for text in
            ["queue 3 of 4 dscp 46,34 pcp 5", "class 1:10 dscp 46", "queue 0 of 2 pcp 7", "priority 5 dscp 46 pcp 5"]
        {
            assert_eq!(text.parse::<Steering>().expect("a valid text").to_string(), text);
        }
        for text in [
            "",
            "queue 4 of 4 dscp 46",
            "queue 0 of 1 dscp 46",
            "queue 0 of 2",
            "class x dscp 1",
            "class 1:1 dscp 64",
            "class 1:1 pcp 8",
            "class 1:1 dscp",
            "class 1:1 vlan 3",
            "priority 16 dscp 46",
            "priority x dscp 46",
        ] {
            assert_eq!(text.parse::<Steering>().map_err(|e| e.kind()), Err(io::ErrorKind::InvalidInput), "{text}");
        }
    }

    /// The verifier is part of the kernel and requires root.
    #[test]
    fn kernel_accepts_every_program() {
        if let Err(why) = takt_testkit::require::root() {
            return takt_testkit::not_run(why);
        }
        for text in
            ["queue 3 of 4 dscp 46,34 pcp 5", "class 1:10 dscp 46", "queue 0 of 2 pcp 7", "priority 5 dscp 46 pcp 5"]
        {
            load(&program(&text.parse().expect("a valid text"))).unwrap_or_else(|why| panic!("{text}: {why}"));
        }
    }
}
