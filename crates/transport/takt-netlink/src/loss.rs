//! Random loss of the frames that an interface sends, by the clsact discipline and a classic BPF
//! filter (tc-bpf(8)).
//!
//! The filter precedes the queue of the interface and also sees the frames of packet sockets, such
//! as those of Open vSwitch. A segment that the stack leaves to the interface counts as one frame.
//! The sender of a dropped frame is not notified. netem(8) has the same effect where the kernel
//! supports it, but replaces the queue.

use std::io;

use crate::traffic::{DELETE_QDISC, NEW_FILTER, NEW_QDISC, message};
use crate::{NEW, Netlink, put, put_nested, put_text};

const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const BPF_INSTRUCTIONS_LEN: u16 = 4;
const BPF_INSTRUCTIONS: u16 = 5;
const BPF_FLAGS: u16 = 8;
/// The return value of the program is the action.
const BPF_DIRECT_ACTION: u32 = 1;

/// Parent of clsact, its handle, and the parent of filters for outgoing frames.
const CLSACT: u32 = 0xffff_fff1;
const HANDLE: u32 = 0xffff_0000;
const SENT: u32 = 0xffff_fff3;
const EVERY_PROTOCOL: u16 = 0x0003;

/// Loads a 32-bit random number: `BPF_LD | BPF_W | BPF_ABS` at SKF_AD_OFF + SKF_AD_RANDOM.
const LOAD: (u16, u32) = (0x20, 0xffff_f000 + 56);
/// Conditional jump: `BPF_JMP | BPF_JGE | BPF_K`.
const JUMP_IF_AT_LEAST: u16 = 0x35;
/// Return: `BPF_RET | BPF_K`.
const RETURN: u16 = 0x06;
const TC_ACT_OK: u32 = 0;
const TC_ACT_SHOT: u32 = 2;

/// Frame counters of an interface with loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounters {
    /// Frames to be sent.
    pub frames: u64,
    /// Dropped frames among them.
    pub dropped: u64,
}

impl Netlink {
    /// Makes an interface drop each outgoing frame with the same probability, from 0 to 1.
    ///
    /// # Errors
    /// `EEXIST`: the interface has a clsact discipline. `ENOENT`: this kernel has no clsact or no
    /// BPF filters. `EPERM`: not root.
    pub fn add_loss(&mut self, index: i32, probability: f64) -> io::Result<()> {
        let mut body = message(index, HANDLE, CLSACT, 0);
        put_text(&mut body, KIND, "clsact");
        self.request(NEW_QDISC, NEW, &body)?;
        let mut options = Vec::new();
        let program = program(probability);
        put(&mut options, BPF_INSTRUCTIONS_LEN, &(program.len() as u16).to_ne_bytes());
        put(&mut options, BPF_INSTRUCTIONS, &program.concat());
        put(&mut options, BPF_FLAGS, &BPF_DIRECT_ACTION.to_ne_bytes());
        let mut body = message(index, 0, SENT, 1 << 16 | u32::from(EVERY_PROTOCOL.to_be()));
        put_text(&mut body, KIND, "bpf");
        put_nested(&mut body, OPTIONS, &options);
        let added = self.request(NEW_FILTER, NEW, &body);
        if added.is_err() {
            // The first error is returned.
            drop(self.remove_loss(index));
        }
        added
    }

    /// Returns the frame counters since [`add_loss`](Self::add_loss). All are 0 without it.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist.
    pub fn lost(&mut self, index: i32) -> io::Result<LossCounters> {
        let found = self.disciplines(index)?.into_iter().find(|one| one.parent == CLSACT);
        Ok(found
            .map_or_else(LossCounters::default, |one| LossCounters { frames: one.frames, dropped: one.drops.into() }))
    }

    /// Removes the loss.
    ///
    /// # Errors
    /// `ENOENT`: the interface has no loss. `EPERM`: not root.
    pub fn remove_loss(&mut self, index: i32) -> io::Result<()> {
        self.request(DELETE_QDISC, 0, &message(index, 0, CLSACT, 0))
    }
}

/// Returns the program as `sock_filter`s: operation, steps if true, steps if false, operand.
fn program(probability: f64) -> [Vec<u8>; 4] {
    let share = probability.clamp(0.0, 1.0) * f64::from(u32::MAX);
    let instruction = |(operation, operand): (u16, u32), if_true: u8| {
        let mut octets = operation.to_ne_bytes().to_vec();
        octets.extend([if_true, 0]);
        octets.extend(operand.to_ne_bytes());
        octets
    };
    [
        instruction(LOAD, 0),
        instruction((JUMP_IF_AT_LEAST, share as u32), 1),
        instruction((RETURN, TC_ACT_SHOT), 0),
        instruction((RETURN, TC_ACT_OK), 0),
    ]
}
