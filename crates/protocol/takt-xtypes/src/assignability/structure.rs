//! Assignability of structures: members by id, name and position (XTypes 1.3 §7.2.4).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::shape::{Member, Shape, Struct, resolve};
use super::{Checker, Fuel, Inassignable, Keys, Mode, Relation, word};
use crate::Extensibility;
use crate::type_object::TypeRegistry;
use crate::type_object::annotation::NameHash;
use crate::type_object::identifier::Identifier;

impl<'a> Checker<'a> {
    pub(super) fn structures(
        &mut self,
        reader: &Struct<'a>,
        writer: &Struct<'a>,
        mode: Mode,
    ) -> Result<(), Inassignable> {
        let (r_ext, w_ext) = (reader.extensibility, writer.extensibility);
        if r_ext != w_ext {
            return self.differs(format!("{} for the reader, {} from the writer", word(r_ext), word(w_ext)));
        }
        let r_members = members(reader, self.of_reader, mode.keys, &mut self.fuel)?;
        let w_members = members(writer, self.of_writer, mode.keys, &mut self.fuel)?;
        let r_by_id: BTreeMap<u32, &Member<'a>> = r_members.iter().map(|member| (member.id, member)).collect();
        let w_by_id: BTreeMap<u32, &Member<'a>> = w_members.iter().map(|member| (member.id, member)).collect();
        let equivalent = mode.relation == Relation::Equivalent;
        if equivalent || !self.rules.ignore_member_names {
            self.names(&r_by_id, &w_by_id)?;
        }
        let all = equivalent || r_ext == Extensibility::Final;
        self.check_missing_members(&r_members, &w_by_id, all, "writer")?;
        self.check_missing_members(&w_members, &r_by_id, all || self.rules.prevent_type_widening, "reader")?;
        if all || r_ext == Extensibility::Appendable {
            self.check_order(&r_members, &w_members)?;
        }
        let strongly = r_ext != Extensibility::Mutable;
        let mut common = 0;
        for w_member in &w_members {
            let Some(r_member) = r_by_id.get(&w_member.id) else { continue };
            common += 1;
            self.members(r_member, w_member, mode, strongly)?;
        }
        // An empty key is equal on both sides.
        if common == 0 && !(r_members.is_empty() && w_members.is_empty()) {
            return self.differs(String::from("no member in common"));
        }
        Ok(())
    }

    /// Checks that members with equal ids have equal names, and vice versa.
    fn names(
        &self,
        reader: &BTreeMap<u32, &Member<'_>>,
        writer: &BTreeMap<u32, &Member<'_>>,
    ) -> Result<(), Inassignable> {
        let by_name: BTreeMap<NameHash, &Member<'_>> =
            reader.values().map(|member| (member.name.hash, *member)).collect();
        for (id, member) in writer {
            let name = member.name.display_or("member", id);
            if let Some(named) = by_name.get(&member.name.hash).filter(|named| named.id != *id) {
                let other = named.id;
                return self.differs(format!("member '{name}' has id {other} for the reader, {id} from the writer"));
            }
            if let Some(other) = reader.get(id).filter(|other| other.name.hash != member.name.hash) {
                let other = other.name.display_or("member", id);
                return self.differs(format!("member {id} is '{other}' for the reader, '{name}' from the writer"));
            }
        }
        Ok(())
    }

    /// Checks members that `side` lacks: fails unless the side may lack them.
    fn check_missing_members(
        &self,
        members: &[Member<'_>],
        others: &BTreeMap<u32, &Member<'_>>,
        all: bool,
        side: &str,
    ) -> Result<(), Inassignable> {
        for member in members.iter().filter(|member| !others.contains_key(&member.id)) {
            let why = if member.key {
                "key"
            } else if member.must_understand && !member.optional {
                "must_understand"
            } else if all {
                ""
            } else {
                continue;
            };
            let name = member.name.display_or("member", member.id);
            let space = if why.is_empty() { "" } else { " " };
            return self.differs(format!("the {side}'s type lacks the {why}{space}member '{name}'"));
        }
        Ok(())
    }

    /// Checks that the n-th members of both sides are the same, up to the shorter length.
    fn check_order(&self, reader: &[Member<'_>], writer: &[Member<'_>]) -> Result<(), Inassignable> {
        for (place, (r, w)) in reader.iter().zip(writer).enumerate() {
            if r.id != w.id {
                let (r_name, w_name) = (r.name.display_or("member", r.id), w.name.display_or("member", w.id));
                let place = place + 1;
                return self.differs(format!(
                    "member number {place} is '{r_name}' for the reader, '{w_name}' from the writer"
                ));
            }
            if r.optional != w.optional {
                let (name, side) = (r.name.display_or("member", r.id), if r.optional { "reader" } else { "writer" });
                return self.differs(format!("member '{name}' is optional for the {side} only"));
            }
        }
        Ok(())
    }

    /// Compares two members with the same id.
    fn members(
        &mut self,
        reader: &Member<'a>,
        writer: &Member<'a>,
        mode: Mode,
        strongly: bool,
    ) -> Result<(), Inassignable> {
        let name = reader.name.display_or("member", reader.id);
        let name = if reader.name.text.is_none() { writer.name.display_or("member", writer.id) } else { name };
        if mode.relation == Relation::Equivalent {
            let differs = [
                ("a key", reader.key, writer.key),
                ("optional", reader.optional, writer.optional),
                // Key members imply must_understand, regardless of their flag.
                ("must_understand", reader.must_understand && !reader.key, writer.must_understand && !writer.key),
            ];
            if let Some((what, for_reader, _)) = differs.iter().find(|(_, r, w)| r != w) {
                let side = if *for_reader { "reader" } else { "writer" };
                return self.differs(format!("member '{name}' is {what} for the {side} only"));
            }
        }
        if strongly && mode.relation == Relation::Equivalent {
            let flags = [
                ("a key", mode.keys == Keys::Erased, reader.declared_key, writer.declared_key),
                ("external", true, reader.external, writer.external),
            ];
            for (what, _, for_reader, _) in flags.iter().filter(|(_, counts, r, w)| *counts && r != w) {
                let side = if *for_reader { "reader" } else { "writer" };
                self.caution(format!("member '{name}' is {what} for the {side} only"));
            }
        }
        if strongly {
            self.require_strongly(reader.of, writer.of, mode.of_parts(), name.clone())?;
        } else {
            self.require(reader.of, writer.of, mode.of_parts(), name.clone())?;
        }
        // Key members identify an instance, so the reader must represent every value of them.
        if writer.key { self.require(reader.of, writer.of, mode.with_keys(Keys::Holder), name) } else { Ok(()) }
    }
}

/// Returns the members, inherited ones first. For a key holder, returns the key members alone.
fn members<'a>(
    structure: &Struct<'a>,
    types: &'a TypeRegistry,
    keys: Keys,
    fuel: &mut Fuel,
) -> Result<Vec<Member<'a>>, Inassignable> {
    let mut levels = alloc::vec![structure.members.clone()];
    let mut base = structure.base;
    while *base != Identifier::None {
        // For a structure that inherits from itself, the step limit ends the loop.
        let Shape::Struct(of) = resolve(base, types, fuel)? else {
            let what = String::from("a base type that is not a structure");
            return Err(Inassignable::Differs { member: String::new(), what });
        };
        levels.push(of.members);
        base = of.base;
    }
    let mut members: Vec<Member<'a>> = levels.into_iter().rev().flatten().collect();
    match keys {
        Keys::Whole => {}
        Keys::Holder => {
            if members.iter().any(|member| member.key) {
                members.retain(|member| member.key);
            }
            // Without key members, all members identify the instance (XTypes 1.3 §7.6.8.4).
            members.iter_mut().for_each(|member| member.key = true);
        }
        Keys::Erased => {
            for member in members.iter_mut().filter(|member| member.key) {
                // Key members imply must_understand only as keys.
                (member.key, member.must_understand) = (false, false);
            }
        }
    }
    Ok(members)
}
