//! Assignability of unions: cases by discriminator value (XTypes 1.3 §7.2.4).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use super::shape::{Case, Union};
use super::{Checker, Inassignable, Keys, Mode, Relation, word};
use crate::Extensibility;
use crate::type_object::annotation::NameHash;

impl<'a> Checker<'a> {
    pub(super) fn unions(&mut self, reader: &Union<'a>, writer: &Union<'a>, mode: Mode) -> Result<(), Inassignable> {
        let (r_ext, w_ext) = (reader.extensibility, writer.extensibility);
        if r_ext != w_ext {
            return self.differs(format!("{} for the reader, {} from the writer", word(r_ext), word(w_ext)));
        }
        let equivalent = mode.relation == Relation::Equivalent;
        if reader.key != writer.key && (equivalent || mode.keys != Keys::Erased) {
            let side = if reader.key { "reader" } else { "writer" };
            return self.differs(format!("the discriminator is a key for the {side} only"));
        }
        let part = String::from("discriminator");
        self.require_strongly(reader.discriminator, writer.discriminator, mode.of_parts(), part)?;
        if mode.keys == Keys::Holder && reader.key {
            return Ok(());
        }
        if equivalent || !self.rules.ignore_member_names {
            self.case_names(reader, writer)?;
        }
        self.cases(reader, writer, mode.of_parts())
    }

    /// Checks that cases with equal ids have equal names, and vice versa.
    fn case_names(&self, reader: &Union<'_>, writer: &Union<'_>) -> Result<(), Inassignable> {
        let by_name: BTreeMap<NameHash, u32> = reader.cases.iter().map(|case| (case.name.hash, case.id)).collect();
        let by_id: BTreeMap<u32, &Case<'_>> = reader.cases.iter().map(|case| (case.id, case)).collect();
        for case in &writer.cases {
            let (id, name) = (case.id, case.name.display_or("case", case.id));
            if let Some(other) = by_name.get(&case.name.hash).filter(|other| **other != id) {
                return self.differs(format!("case '{name}' has id {other} for the reader, {id} from the writer"));
            }
            if let Some(other) = by_id.get(&id).filter(|other| other.name.hash != case.name.hash) {
                let other = other.name.display_or("case", id);
                return self.differs(format!("case {id} is '{other}' for the reader, '{name}' from the writer"));
            }
        }
        Ok(())
    }

    /// Checks that the cases that one label selects on both sides are assignable.
    fn cases(&mut self, reader: &Union<'a>, writer: &Union<'a>, mode: Mode) -> Result<(), Inassignable> {
        let all = mode.relation == Relation::Equivalent || reader.extensibility == Extensibility::Final;
        let (r_by_label, w_by_label) = (by_label(reader), by_label(writer));
        let (r_default, w_default) = (default_of(reader), default_of(writer));
        if all && r_default.is_some() != w_default.is_some() {
            let side = if r_default.is_some() { "reader" } else { "writer" };
            return self.differs(format!("a default case for the {side} only"));
        }
        let mut common = r_default.is_some() && w_default.is_some();
        for (label, w_case) in &w_by_label {
            let selected = r_by_label.get(label).copied();
            common |= selected.is_some();
            if selected.is_none() && (all || (self.rules.prevent_type_widening && r_default.is_none())) {
                let name = w_case.name.display_or("case", w_case.id);
                return self.differs(format!("the reader's type lacks label {label}, case '{name}'"));
            }
            if let Some(r_case) = selected.or(r_default) {
                self.case(r_case, w_case, mode)?;
            }
        }
        for (label, r_case) in r_by_label.iter().filter(|(label, _)| !w_by_label.contains_key(label)) {
            if all {
                let name = r_case.name.display_or("case", r_case.id);
                return self.differs(format!("the writer's type lacks label {label}, case '{name}'"));
            }
            if let Some(w_case) = w_default {
                self.case(r_case, w_case, mode)?;
            }
        }
        if let (Some(r_case), Some(w_case)) = (r_default, w_default) {
            self.case(r_case, w_case, mode)?;
        }
        if common { Ok(()) } else { self.differs(String::from("no label in common")) }
    }

    fn case(&mut self, reader: &Case<'a>, writer: &Case<'a>, mode: Mode) -> Result<(), Inassignable> {
        self.require(reader.of, writer.of, mode, writer.name.display_or("case", writer.id))
    }
}

fn by_label<'u, 'a>(union: &'u Union<'a>) -> BTreeMap<i32, &'u Case<'a>> {
    union.cases.iter().flat_map(|case| case.labels.iter().map(move |label| (*label, case))).collect()
}

fn default_of<'u, 'a>(union: &'u Union<'a>) -> Option<&'u Case<'a>> {
    union.cases.iter().find(|case| case.default)
}
