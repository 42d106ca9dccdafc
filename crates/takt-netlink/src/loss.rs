//! Random loss of the frames that an interface sends: the discipline clsact, and a filter of classic BPF (tc-bpf(8)).
//!
//! The filter is before the queue of the interface, and sees also the frames of packet sockets, such as those of Open vSwitch. A segment that
//! the stack leaves to the interface to cut is one frame. The sender of a frame is not told that it was dropped. netem(8) does the same
//! where the kernel has it, but takes the place of the queue.

use std::io;

use crate::traffic::{DELETE_QDISC, NEW_FILTER, NEW_QDISC, message};
use crate::{NEW, Netlink, put, put_nested, put_text};

const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const BPF_INSTRUCTIONS_LEN: u16 = 4;
const BPF_INSTRUCTIONS: u16 = 5;
const BPF_FLAGS: u16 = 8;
/// What the program returns is done.
const BPF_DIRECT_ACTION: u32 = 1;

/// The parent of clsact, its handle, and the parent of filters of frames that are sent.
const CLSACT: u32 = 0xffff_fff1;
const HANDLE: u32 = 0xffff_0000;
const SENT: u32 = 0xffff_fff3;
const EVERY_PROTOCOL: u16 = 0x0003;

/// `BPF_LD | BPF_W | BPF_ABS` at SKF_AD_OFF + SKF_AD_RANDOM: a random number of 32 bits.
const LOAD: (u16, u32) = (0x20, 0xffff_f000 + 56);
/// `BPF_JMP | BPF_JGE | BPF_K`.
const JUMP_IF_AT_LEAST: u16 = 0x35;
/// `BPF_RET | BPF_K`.
const RETURN: u16 = 0x06;
const TC_ACT_OK: u32 = 0;
const TC_ACT_SHOT: u32 = 2;

/// Frames while an interface lost some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Frames that were to be sent.
    pub frames: u64,
    /// Those of them that were dropped.
    pub dropped: u64,
}

impl Netlink {
    /// Has an interface drop a share of the frames that it is to send, each with the same probability, from 0 to 1.
    ///
    /// # Errors
    /// `EEXIST`: the interface has the discipline clsact. `ENOENT`: this kernel has no clsact or no filter of BPF. `EPERM`: not root.
    pub fn add_loss(&mut self, index: i32, probability: f64) -> io::Result<()> {
        let mut body = message(index, HANDLE, CLSACT, 0);
        put_text(&mut body, KIND, "clsact");
        self.order(NEW_QDISC, NEW, &body)?;
        let mut options = Vec::new();
        let program = program(probability);
        put(&mut options, BPF_INSTRUCTIONS_LEN, &(program.len() as u16).to_ne_bytes());
        put(&mut options, BPF_INSTRUCTIONS, &program.concat());
        put(&mut options, BPF_FLAGS, &BPF_DIRECT_ACTION.to_ne_bytes());
        let mut body = message(index, 0, SENT, 1 << 16 | u32::from(EVERY_PROTOCOL.to_be()));
        put_text(&mut body, KIND, "bpf");
        put_nested(&mut body, OPTIONS, &options);
        let added = self.order(NEW_FILTER, NEW, &body);
        if added.is_err() {
            // The first error counts.
            drop(self.remove_loss(index));
        }
        added
    }

    /// Frames of an interface since [`add_loss`](Self::add_loss); none without it.
    ///
    /// # Errors
    /// `ENODEV`: there is no such interface.
    pub fn lost(&mut self, index: i32) -> io::Result<Lost> {
        let found = self.disciplines(index)?.into_iter().find(|one| one.parent == CLSACT);
        Ok(found.map_or_else(Lost::default, |one| Lost { frames: one.frames, dropped: one.drops.into() }))
    }

    /// Ends the loss.
    ///
    /// # Errors
    /// `ENOENT`: there is none. `EPERM`: not root.
    pub fn remove_loss(&mut self, index: i32) -> io::Result<()> {
        self.order(DELETE_QDISC, 0, &message(index, 0, CLSACT, 0))
    }
}

/// `sock_filter`s: operation, steps if true, steps if false, operand.
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
