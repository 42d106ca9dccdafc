//! Properties of a type that are independent of its values: minimum encoded length and size of the
//! default. The computation detects types that contain themselves without end.

use alloc::vec;
use alloc::vec::Vec;

use super::node::{Node, NodeId, Types};
use super::{MAX_INITIAL_VALUES, MAX_NESTING};
use crate::structure::min_encoded_len;
use crate::type_object::TypeError;

/// Approximate number of octets that take the memory of one value, since octets are kept as bytes.
const OCTETS_PER_VALUE: usize = 64;

/// Properties of all values of a type.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    /// Minimum encoded length in bytes.
    pub min_len: usize,
    /// Number of values in the default.
    pub initial_values: usize,
}

/// Progress of the computation for a type.
#[derive(Clone, Copy)]
enum State {
    New,
    Open,
    Done,
}

struct Computer<'a> {
    types: &'a Types,
    layouts: Vec<Layout>,
    states: Vec<State>,
    depth: u8,
}

/// Returns the layouts of all types.
pub(super) fn compute(types: &Types) -> Result<Vec<Layout>, TypeError> {
    let count = types.nodes.len();
    let mut computer =
        Computer { types, layouts: vec![Layout::default(); count], states: vec![State::New; count], depth: 0 };
    for id in 0..count {
        computer.layout(id)?;
    }
    Ok(computer.layouts)
}

impl Computer<'_> {
    fn layout(&mut self, id: NodeId) -> Result<Layout, TypeError> {
        match self.states[id] {
            State::Done => return Ok(self.layouts[id]),
            State::Open => return Err(TypeError::Invalid { what: "a type contains itself infinitely" }),
            State::New => self.states[id] = State::Open,
        }
        if self.depth >= MAX_NESTING {
            return Err(TypeError::Limit { what: "levels of types", limit: usize::from(MAX_NESTING) });
        }
        self.depth += 1;
        let layout = self.compute(id)?;
        self.depth -= 1;
        if layout.initial_values > MAX_INITIAL_VALUES {
            return Err(TypeError::Limit { what: "values in the default of a type", limit: MAX_INITIAL_VALUES });
        }
        self.layouts[id] = layout;
        self.states[id] = State::Done;
        Ok(layout)
    }

    fn compute(&mut self, id: NodeId) -> Result<Layout, TypeError> {
        let types = self.types;
        let of = |min_len| Layout { min_len, initial_values: 1 };
        Ok(match &types.nodes[id] {
            Node::Primitive(primitive) => of(primitive.len()),
            Node::Enum(enumeration) => of(enumeration.holder_len()),
            Node::Bitmask(bitmask) => of(bitmask.holder_len()),
            Node::String { .. } | Node::WString { .. } | Node::Sequence { .. } | Node::Map { .. } => of(4),
            Node::Array { element, len, .. } => {
                let layout = self.layout(*element)?;
                let values = if types.is_octet(*element) {
                    len / OCTETS_PER_VALUE
                } else {
                    layout.initial_values.saturating_mul(*len)
                };
                Layout { min_len: layout.min_len.saturating_mul(*len), initial_values: values.saturating_add(1) }
            }
            Node::Struct(structure) => {
                let (mut min_len, mut initial_values) = (0_usize, 1_usize);
                for member in &structure.members {
                    let layout = if member.optional { of(1) } else { self.layout(member.node)? };
                    min_len = min_len.saturating_add(layout.min_len);
                    initial_values = initial_values.saturating_add(layout.initial_values);
                }
                Layout { min_len: min_encoded_len(structure.extensibility, min_len), initial_values }
            }
            Node::Union(union) => {
                let discriminator = self.layout(union.discriminator)?;
                let case = match types.initial_case(union) {
                    (_, Some(case)) => self.layout(case.node)?,
                    (_, None) => Layout::default(),
                };
                Layout {
                    min_len: min_encoded_len(union.extensibility, discriminator.min_len),
                    initial_values: case.initial_values.saturating_add(2),
                }
            }
            Node::Alias { target, .. } => self.layout(*target)?,
        })
    }
}
