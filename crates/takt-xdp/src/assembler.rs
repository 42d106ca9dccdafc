//! Instructions of BPF by name, and jumps to one label, "let it pass", which is all that a filter needs.
//!
//! The encoding is that of RFC 9669: an operation's octet is class, source and code; a register is four bits.

use crate::bpf::Instruction;

/// A register: 0 is the result, 1 to 5 are arguments and lost by a call, 6 to 9 are kept, 10 is the stack's end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Register(pub(crate) u8);

/// The width of a load or store.
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

/// A program that is being written.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    instructions: Vec<Instruction>,
    /// Which of them jump to the label.
    jumps: Vec<usize>,
}

impl Assembler {
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

    /// `to = *(from + offset)`
    pub(crate) fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) -> &mut Self {
        self.add(0x61 | width.code(), to, from, offset, 0)
    }

    /// `*(to + offset) = from`, 32 bits
    pub(crate) fn store(&mut self, to: Register, offset: i16, from: Register) -> &mut Self {
        self.add(0x63, to, from, offset, 0)
    }

    /// `to` is the map of this descriptor.
    pub(crate) fn set_map(&mut self, to: Register, map: u32) -> &mut Self {
        // A load of 64 bits, which takes two instructions; source 1 says that the value is a map's descriptor.
        self.add(0x18, to, Register(1), 0, map.cast_signed());
        self.add(0, Register(0), Register(0), 0, 0)
    }

    /// Calls the kernel's function of this number.
    pub(crate) fn call(&mut self, function: i32) -> &mut Self {
        self.add(0x85, Register(0), Register(0), 0, function)
    }

    /// Ends; register 0 is the decision.
    pub(crate) fn exit(&mut self) -> &mut Self {
        self.add(0x95, Register(0), Register(0), 0, 0)
    }

    fn pass_if(&mut self, code: u8, a: Register, b: Register, immediate: i32) -> &mut Self {
        self.jumps.push(self.instructions.len());
        self.add(code, a, b, 0, immediate)
    }

    /// Let it pass if `a > b`.
    pub(crate) fn pass_if_beyond(&mut self, a: Register, b: Register) -> &mut Self {
        self.pass_if(0x2d, a, b, 0)
    }

    /// Let it pass if `a > value`.
    pub(crate) fn pass_if_above(&mut self, a: Register, value: i32) -> &mut Self {
        self.pass_if(0x25, a, Register(0), value)
    }

    /// Let it pass if the lower 32 bits of `a` are not these.
    pub(crate) fn pass_unless(&mut self, a: Register, value: u32) -> &mut Self {
        self.pass_if(0x56, a, Register(0), value.cast_signed())
    }

    /// Let it pass if `a` is zero.
    pub(crate) fn pass_if_none(&mut self, a: Register) -> &mut Self {
        self.pass_if(0x15, a, Register(0), 0)
    }

    /// Here is the label; ends the program.
    pub(crate) fn finish(mut self, pass: i32) -> Vec<Instruction> {
        let label = self.instructions.len();
        for jump in std::mem::take(&mut self.jumps) {
            // A jump counts from the instruction behind it; a filter has some forty.
            self.instructions[jump].offset = (label - jump - 1) as i16;
        }
        self.set(Register(0), pass).exit();
        self.instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_the_label() {
        let mut program = Assembler::default();
        let (r0, r3) = (Register(0), Register(3));
        program.pass_if_none(r3).pass_if_above(r3, 7).set(r0, 1).exit();
        let program = program.finish(2);
        let offsets: Vec<i16> = program.iter().map(|instruction| instruction.offset).collect();
        assert_eq!(offsets, [3, 2, 0, 0, 0, 0]);
        assert_eq!(program[4], Instruction { code: 0xb7, registers: 0, offset: 0, immediate: 2 });
    }

    #[test]
    fn registers_and_widths_are_encoded_as_the_rfc_says() {
        let mut program = Assembler::default();
        program.load(Width::U16, Register(5), Register(2), 12).load(Width::U8, Register(5), Register(2), 14);
        program.load(Width::U32, Register(5), Register(2), 30).store(Register(10), -8, Register(5));
        let program = program.finish(0);
        let encoded: Vec<(u8, u8)> = program.iter().map(|i| (i.code, i.registers)).collect();
        assert_eq!(encoded[..4], [(0x69, 0x25), (0x71, 0x25), (0x61, 0x25), (0x63, 0x5a)]);
    }
}
