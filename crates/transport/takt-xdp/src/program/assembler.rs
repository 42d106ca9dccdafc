//! Assembler for BPF: instructions by name, and forward jumps to labels, including one that every
//! filter has: pass the frame to the kernel.
//!
//! The encoding is that of RFC 9669: the octet of an operation consists of class, source and code;
//! a register has four bits.

use crate::program::bpf::Instruction;

/// Register: 0 is the result, 1 to 5 are arguments that a call clobbers, 6 to 9 are preserved, 10
/// is the end of the stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Register(pub(crate) u8);

/// Width of a load or store.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Width {
    U8,
    U16,
    U32,
}

impl Width {
    const fn code(self) -> u8 {
        match self {
            Self::U32 => 0x00,
            Self::U16 => 0x08,
            Self::U8 => 0x10,
        }
    }
}

/// Target of forward jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// Program under construction.
#[derive(Debug)]
pub(crate) struct Assembler {
    instructions: Vec<Instruction>,
    /// Indices of the jumps, with their labels.
    jumps: Vec<(usize, Label)>,
    /// Number of allocated labels.
    labels: usize,
}

impl Assembler {
    /// Label of the end of the program, which passes the frame.
    const PASS: Label = Label(0);

    /// Makes an empty program.
    pub(crate) fn new() -> Self {
        Self { instructions: Vec::new(), jumps: Vec::new(), labels: 1 }
    }

    /// Allocates a label, which must be [placed](Self::place) later.
    pub(crate) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Places the label here, and completes the jumps to it.
    pub(crate) fn place(&mut self, label: Label) -> &mut Self {
        let here = self.instructions.len();
        for (jump, _) in self.jumps.extract_if(.., |(_, to)| *to == label) {
            // A jump counts from the next instruction; a filter has less than a hundred.
            self.instructions[jump].offset = (here - jump - 1) as i16;
        }
        self
    }

    fn add(&mut self, code: u8, to: Register, from: Register, offset: i16, immediate: i32) -> &mut Self {
        self.instructions.push(Instruction { code, registers: from.0 << 4 | to.0, offset, immediate });
        self
    }

    /// `to = from`
    pub(crate) fn copy(&mut self, to: Register, from: Register) -> &mut Self {
        self.add(0xbf, to, from, 0, 0)
    }

    /// `to = value`
    pub(crate) fn set(&mut self, to: Register, value: i32) -> &mut Self {
        self.add(0xb7, to, Register(0), 0, value)
    }

    /// `to += value`
    pub(crate) fn increase(&mut self, to: Register, value: i32) -> &mut Self {
        self.add(0x07, to, Register(0), 0, value)
    }

    /// `to &= mask`, 32 bits
    pub(crate) fn mask(&mut self, to: Register, mask: u32) -> &mut Self {
        self.add(0x54, to, Register(0), 0, mask.cast_signed())
    }

    /// `to |= from`, 32 bits
    pub(crate) fn or(&mut self, to: Register, from: Register) -> &mut Self {
        self.add(0x4c, to, from, 0, 0)
    }

    /// `to <<= bits`, 32 bits
    pub(crate) fn shift_up(&mut self, to: Register, bits: i32) -> &mut Self {
        self.add(0x64, to, Register(0), 0, bits)
    }

    /// `to >>= bits`, 32 bits
    pub(crate) fn shift_down(&mut self, to: Register, bits: i32) -> &mut Self {
        self.add(0x74, to, Register(0), 0, bits)
    }

    /// Converts the lower 16 bits of `to` from network order to a number, and clears the others.
    pub(crate) fn number_of_network_16(&mut self, to: Register) -> &mut Self {
        self.add(0xdc, to, Register(0), 0, 16)
    }

    /// `to = *(from + offset)`
    pub(crate) fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) -> &mut Self {
        self.add(0x61 | width.code(), to, from, offset, 0)
    }

    /// `*(to + offset) = from`, 32 bits
    pub(crate) fn store(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.add(0x63, to, from, offset, 0)
    }

    /// Loads the map of this descriptor into `to`.
    pub(crate) fn set_map(&mut self, to: Register, map: u32) -> &mut Self {
        // A load of 64 bits, which takes two instructions; source 1 marks the value as the
        // descriptor of a map.
        self.add(0x18, to, Register(1), 0, map.cast_signed());
        self.add(0, Register(0), Register(0), 0, 0)
    }

    /// Calls the kernel function of this number.
    pub(crate) fn call(&mut self, function: i32) -> &mut Self {
        self.add(0x85, Register(0), Register(0), 0, function)
    }

    /// Ends the program; register 0 is the decision.
    pub(crate) fn exit(&mut self) -> &mut Self {
        self.add(0x95, Register(0), Register(0), 0, 0)
    }

    fn push_jump(&mut self, code: u8, a: Register, b: Register, immediate: i32, to: Label) -> &mut Self {
        self.jumps.push((self.instructions.len(), to));
        self.add(code, a, b, 0, immediate)
    }

    /// Jumps to the label.
    pub(crate) fn jump(&mut self, to: Label) -> &mut Self {
        self.push_jump(0x05, Register(0), Register(0), 0, to)
    }

    /// Jumps to the label if the lower 32 bits of `a` equal `value`.
    pub(crate) fn jump_if_equal(&mut self, a: Register, value: u32, to: Label) -> &mut Self {
        self.push_jump(0x16, a, Register(0), value.cast_signed(), to)
    }

    /// Jumps to the label unless the lower 32 bits of `a` equal `value`.
    pub(crate) fn jump_unless_equal(&mut self, a: Register, value: u32, to: Label) -> &mut Self {
        self.push_jump(0x56, a, Register(0), value.cast_signed(), to)
    }

    /// Passes the frame if `a > b`.
    pub(crate) fn pass_if_beyond(&mut self, a: Register, b: Register) -> &mut Self {
        self.push_jump(0x2d, a, b, 0, Self::PASS)
    }

    /// Passes the frame unless the lower 32 bits of `a` equal `value`.
    pub(crate) fn pass_unless(&mut self, a: Register, value: u32) -> &mut Self {
        self.jump_unless_equal(a, value, Self::PASS)
    }

    /// Passes the frame if `a` is zero.
    pub(crate) fn pass_if_none(&mut self, a: Register) -> &mut Self {
        self.push_jump(0x15, a, Register(0), 0, Self::PASS)
    }

    /// Ends the program with the result for passed frames.
    pub(crate) fn finish(mut self, pass: i32) -> Vec<Instruction> {
        self.place(Self::PASS).set(Register(0), pass).exit();
        assert!(self.jumps.is_empty(), "every label is placed");
        self.instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_their_labels() {
        let mut program = Assembler::new();
        let (r0, r3) = (Register(0), Register(3));
        let end = program.label();
        program.pass_if_none(r3).jump_if_equal(r3, 7, end).pass_if_beyond(r3, r0).place(end).set(r0, 1).exit();
        let program = program.finish(2);
        let offsets: Vec<i16> = program.iter().map(|instruction| instruction.offset).collect();
        assert_eq!(offsets, [4, 1, 2, 0, 0, 0, 0]);
        assert_eq!(program[5], Instruction { code: 0xb7, registers: 0, offset: 0, immediate: 2 });
    }

    #[test]
    #[should_panic(expected = "every label is placed")]
    fn label_without_a_place_panics() {
        let mut program = Assembler::new();
        let unplaced = program.label();
        program.jump(unplaced);
        program.finish(2);
    }

    #[test]
    fn registers_and_widths_are_encoded_by_the_rfc() {
        let mut program = Assembler::new();
        program.load(Width::U16, Register(5), Register(2), 12).load(Width::U8, Register(5), Register(2), 14);
        program.load(Width::U32, Register(5), Register(2), 30).store(Register(10), -8, Register(5));
        let program = program.finish(0);
        let encoded: Vec<(u8, u8)> = program.iter().map(|i| (i.code, i.registers)).collect();
        assert_eq!(encoded[..4], [(0x69, 0x25), (0x71, 0x25), (0x61, 0x25), (0x63, 0x5a)]);
    }
}
