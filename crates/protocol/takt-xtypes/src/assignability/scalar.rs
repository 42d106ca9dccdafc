//! Assignability of all types except structures and unions: primitive types, strings, enums,
//! bitmasks, collections (XTypes 1.3 §7.2.4).

use alloc::format;
use alloc::string::String;

use super::shape::{Bound, Label, Primitive, Shape, bound_covers};
use super::{Checker, Inassignable, Keys, Mode, Relation, word};
use crate::Extensibility;
use crate::type_object::annotation::NameHash;
use alloc::collections::BTreeMap;

fn describe_bound(bound: Bound) -> String {
    bound.map_or_else(|| String::from("without bound"), |bound| format!("up to {bound}"))
}

/// Returns the octets of an enum or bitmask with this bit bound.
fn octets(bit_bound: u16) -> u16 {
    match bit_bound {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

impl<'a> Checker<'a> {
    pub(super) fn scalars(&mut self, reader: &Shape<'a>, writer: &Shape<'a>, mode: Mode) -> Result<(), Inassignable> {
        let same = mode.relation == Relation::Equivalent;
        let key = mode.keys == Keys::Holder;
        match (reader, writer) {
            (Shape::Primitive(r), Shape::Primitive(w)) if r == w => Ok(()),
            (Shape::Primitive(r @ (Primitive::Octet | Primitive::Uint8)), Shape::Primitive(w))
                if matches!(w, Primitive::Octet | Primitive::Uint8) =>
            {
                self.caution(format!("{} for the reader, {} from the writer", r.name(), w.name()));
                Ok(())
            }
            (Shape::String { wide: r_wide, bound: r }, Shape::String { wide: w_wide, bound: w })
                if r_wide == w_wide =>
            {
                self.bounds(*r, *w, same, key || !self.rules.ignore_string_bounds)
            }
            (Shape::Sequence { bound: r, element: r_of }, Shape::Sequence { bound: w, element: w_of }) => {
                self.bounds(*r, *w, same, key || !self.rules.ignore_sequence_bounds)?;
                self.require_strongly(r_of, w_of, mode, String::from("[]"))
            }
            (Shape::Array { bounds: r, element: r_of }, Shape::Array { bounds: w, element: w_of }) => {
                if r != w {
                    return self.differs(format!("array {r:?} for the reader, {w:?} from the writer"));
                }
                self.require_strongly(r_of, w_of, mode, String::from("[]"))
            }
            (
                Shape::Map { bound: r, key: r_key, element: r_of },
                Shape::Map { bound: w, key: w_key, element: w_of },
            ) => {
                self.bounds(*r, *w, same, key || !self.rules.ignore_sequence_bounds)?;
                self.require_strongly(r_key, w_key, mode, String::from("[key]"))?;
                self.require_strongly(r_of, w_of, mode, String::from("[]"))
            }
            (
                Shape::Enum { bit_bound: r_bits, extensibility: r_ext, literals: r },
                Shape::Enum { bit_bound: w_bits, extensibility: w_ext, literals: w },
            ) => {
                self.enum_attributes((*r_bits, *r_ext), (*w_bits, *w_ext))?;
                let is_final = *r_ext == Some(Extensibility::Final) && *w_ext == Some(Extensibility::Final);
                self.labels(r, w, "literal", same || is_final, key)
            }
            (Shape::Bitmask { bit_bound: r_bits, flags: r }, Shape::Bitmask { bit_bound: w_bits, flags: w })
                if r_bits == w_bits =>
            {
                if same {
                    self.labels(r, w, "flag", true, false)
                } else {
                    Ok(())
                }
            }
            (Shape::Bitmask { bit_bound, .. }, Shape::Primitive(primitive))
            | (Shape::Primitive(primitive), Shape::Bitmask { bit_bound, .. })
                if !same && primitive.unsigned_bits() == Some(8 * octets(*bit_bound)) =>
            {
                if *primitive == Primitive::Octet {
                    self.caution(format!("{reader} for the reader, {writer} from the writer"));
                }
                Ok(())
            }
            (Shape::Bitset { fields: r }, Shape::Bitset { fields: w }) if r == w => Ok(()),
            (Shape::Bitset { .. }, Shape::Bitset { .. }) => self.differs(String::from("bitsets with different fields")),
            (reader, writer) => self.other_kind(reader, writer),
        }
    }

    fn bounds(&self, reader: Bound, writer: Bound, same: bool, counts: bool) -> Result<(), Inassignable> {
        if (same && reader != writer) || (counts && !bound_covers(reader, writer)) {
            return self.differs(format!(
                "{} for the reader, {} from the writer",
                describe_bound(reader),
                describe_bound(writer)
            ));
        }
        Ok(())
    }

    /// Compares the bit bounds of two enums, by the octets that they need, and the extensibility
    /// where both sides state it.
    fn enum_attributes(
        &self,
        (r_bits, r_ext): (u16, Option<Extensibility>),
        (w_bits, w_ext): (u16, Option<Extensibility>),
    ) -> Result<(), Inassignable> {
        if octets(r_bits) != octets(w_bits) {
            return self.differs(format!("enum of {r_bits} bits for the reader, {w_bits} from the writer"));
        }
        if let (Some(r_ext), Some(w_ext)) = (r_ext, w_ext)
            && r_ext != w_ext
        {
            let (r, w) = (word(r_ext), word(w_ext));
            return self.differs(format!("{r} enum for the reader, {w} from the writer"));
        }
        Ok(())
    }

    /// Compares labels: equal names have equal values on both sides. With `all`, both sides must
    /// have the same labels. Otherwise, the reader must have all labels of the writer.
    fn labels(
        &self,
        reader: &[Label<'_>],
        writer: &[Label<'_>],
        what: &str,
        all: bool,
        key: bool,
    ) -> Result<(), Inassignable> {
        let by_name: BTreeMap<NameHash, &Label<'_>> = reader.iter().map(|label| (label.name.hash, label)).collect();
        let by_value: BTreeMap<i32, &Label<'_>> = reader.iter().map(|label| (label.value, label)).collect();
        let mut common = 0;
        for label in writer {
            let name = label.name.display_or(what, label.value);
            match (by_name.get(&label.name.hash), by_value.get(&label.value)) {
                (Some(named), _) if named.value != label.value => {
                    let (r, w) = (named.value, label.value);
                    return self.differs(format!("{what} {name} is {r} for the reader, {w} from the writer"));
                }
                (None, Some(valued)) => {
                    let value = label.value;
                    let other = valued.name.display_or(what, value);
                    return self.differs(format!("{what} {value} is {other} for the reader, {name} from the writer"));
                }
                (None, None) if all || key => {
                    return self.differs(format!("{what} {name} is not in the reader's type"));
                }
                (None, None) => {}
                (Some(_), _) => common += 1,
            }
        }
        if all && common != by_name.len() {
            return self.differs(format!("the writer's type lacks {what}s of the reader's"));
        }
        Ok(())
    }
}
