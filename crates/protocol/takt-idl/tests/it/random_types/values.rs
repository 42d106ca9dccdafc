//! Generator of random values of random types.

use std::sync::Arc;

use takt_testkit::Random;
use takt_xtypes::WString;
use takt_xtypes::definition::{Definition, DefinitionId, Definitions, StructDefinition, TypeSpec, UnionDefinition};
use takt_xtypes::dynamic::DynamicData;

/// Generator of values, with the definitions of the types.
pub struct Values<'a> {
    pub definitions: &'a Definitions,
    pub random: Random,
    /// Number of enclosing named types.
    pub depth: usize,
}

/// Maximum depth at which sequences have elements and optional members are present. Values of
/// recursive types end there.
const DEPTH_MAX: usize = 5;

impl Values<'_> {
    /// Maximum length of a collection without a bound.
    const UNBOUNDED_LEN_MAX: usize = 5;

    /// Returns a random value of a type.
    pub fn value(&mut self, of: &TypeSpec) -> DynamicData {
        let number = self.number();
        match of {
            TypeSpec::Boolean => DynamicData::Bool(number & 1 == 1),
            TypeSpec::Octet | TypeSpec::Uint8 => DynamicData::U8(number as u8),
            TypeSpec::Int8 => DynamicData::I8(number as i8),
            TypeSpec::Int16 => DynamicData::I16(number as i16),
            TypeSpec::Uint16 => DynamicData::U16(number as u16),
            TypeSpec::Int32 => DynamicData::I32(number as i32),
            TypeSpec::Uint32 => DynamicData::U32(number as u32),
            TypeSpec::Int64 => DynamicData::I64(number as i64),
            TypeSpec::Uint64 => DynamicData::U64(number),
            TypeSpec::Float => DynamicData::F32(number as i32 as f32 / 7.0),
            TypeSpec::Double => DynamicData::F64(number as i64 as f64 / 7.0),
            // No NUL, and ASCII alone.
            TypeSpec::Char => DynamicData::Char8(1 + (number % 126) as u8),
            // No NUL and no surrogate.
            TypeSpec::WChar => DynamicData::Char16(1 + (number % 0xd000) as u16),
            TypeSpec::String { bound } => {
                let len = self.len(*bound);
                DynamicData::String((0..len).map(|_| char::from(b' ' + self.random.below(90) as u8)).collect())
            }
            TypeSpec::WString { bound } => {
                let len = self.len(*bound);
                let text: String = (0..len).map(|_| ['a', 'é', '—'][self.random.below(3)]).collect();
                DynamicData::WString(WString::from(text.as_str()))
            }
            TypeSpec::Sequence { element, bound, .. } => {
                let len = self.len(*bound);
                self.elements(element, len)
            }
            TypeSpec::Array { element, dimensions } => {
                let len = dimensions.iter().product::<u32>() as usize;
                self.elements(element, len)
            }
            TypeSpec::Map { key, element, bound } => {
                let mut pairs: Vec<(DynamicData, DynamicData)> = Vec::new();
                for _ in 0..self.len(*bound) {
                    let key = self.value(key);
                    if pairs.iter().all(|(other, _)| *other != key) {
                        pairs.push((key, self.value(element)));
                    }
                }
                DynamicData::Map(pairs)
            }
            TypeSpec::Named(id) => self.named(*id),
        }
    }

    /// Returns a number that is small, near a limit, or arbitrary.
    fn number(&mut self) -> u64 {
        match self.random.below(4) {
            0 => self.random.below(3) as u64,
            1 => u64::MAX - self.random.below(3) as u64,
            _ => self.random.next(),
        }
    }

    /// Returns a random length of a collection with this bound; 0 is no bound.
    fn len(&mut self, bound: u32) -> usize {
        if self.depth > DEPTH_MAX {
            return 0;
        }
        let max = if bound == 0 { Self::UNBOUNDED_LEN_MAX } else { bound as usize };
        self.random.below(max + 1)
    }

    fn elements(&mut self, of: &TypeSpec, len: usize) -> DynamicData {
        if matches!(self.definitions.resolve(of), Some(TypeSpec::Octet | TypeSpec::Uint8)) {
            return DynamicData::Bytes((0..len).map(|_| self.random.next() as u8).collect());
        }
        DynamicData::Sequence((0..len).map(|_| self.value(of)).collect())
    }

    fn named(&mut self, id: DefinitionId) -> DynamicData {
        self.depth += 1;
        let value = self.value_of(id);
        self.depth -= 1;
        value
    }

    fn value_of(&mut self, id: DefinitionId) -> DynamicData {
        let definitions = self.definitions;
        match definitions.get(id).expect("the type is defined") {
            Definition::Alias(alias) => self.value(&alias.of),
            Definition::Enum(of) => {
                let (name, value) = &of.literals[self.random.below(of.literals.len())];
                DynamicData::Enum { name: name.as_str().into(), value: *value }
            }
            Definition::Bitmask(of) => {
                let set: Vec<&(String, u16)> = of.flags.iter().filter(|_| self.random.one_in(2)).collect();
                DynamicData::Bitmask {
                    value: set.iter().map(|(_, position)| 1 << position).sum(),
                    flags: set.iter().map(|(name, _)| name.as_str().into()).collect(),
                }
            }
            Definition::Struct(of) => DynamicData::Struct(self.members(of)),
            Definition::Union(of) => self.union(of),
        }
    }

    fn members(&mut self, of: &StructDefinition) -> Vec<(Arc<str>, DynamicData)> {
        let mut members = match of.base.and_then(|base| self.definitions.get(base)) {
            Some(Definition::Struct(base)) => self.members(base),
            _ => Vec::new(),
        };
        for member in &of.members {
            let is_absent = member.optional && (self.depth > DEPTH_MAX || self.random.one_in(2));
            let value = if is_absent { DynamicData::Absent } else { self.value(&member.of) };
            members.push((member.name.as_str().into(), value));
        }
        members
    }

    fn union(&mut self, of: &UnionDefinition) -> DynamicData {
        let case = &of.cases[self.random.below(of.cases.len())];
        let taken = |label: &i32| of.cases.iter().any(|case| case.labels.contains(label));
        let label = match case.labels.first() {
            Some(_) => case.labels[self.random.below(case.labels.len())],
            None => self
                .all_labels(&of.discriminator)
                .into_iter()
                .find(|label| !taken(label))
                .expect("a label belongs to no case"),
        };
        DynamicData::Union {
            discriminator: Box::new(self.discriminator(&of.discriminator, label)),
            member: Some((case.name.as_str().into(), Box::new(self.value(&case.of)))),
        }
    }

    /// Returns possible labels of a discriminator: all of an enumeration, some of a number.
    fn all_labels(&self, of: &TypeSpec) -> Vec<i32> {
        match self.definitions.resolve(of) {
            Some(TypeSpec::Named(id)) => match self.definitions.get(*id) {
                Some(Definition::Enum(of)) => of.literals.iter().map(|(_, value)| *value).collect(),
                _ => panic!("a discriminator is an enumeration or a primitive type"),
            },
            _ => (0..100).collect(),
        }
    }

    /// Returns the value of a discriminator for a label.
    fn discriminator(&self, of: &TypeSpec, label: i32) -> DynamicData {
        match self.definitions.resolve(of).expect("the type is defined") {
            TypeSpec::Boolean => DynamicData::Bool(label != 0),
            TypeSpec::Octet | TypeSpec::Uint8 => DynamicData::U8(label as u8),
            TypeSpec::Int8 => DynamicData::I8(label as i8),
            TypeSpec::Char => DynamicData::Char8(label as u8),
            TypeSpec::WChar => DynamicData::Char16(label as u16),
            TypeSpec::Int16 => DynamicData::I16(label as i16),
            TypeSpec::Uint16 => DynamicData::U16(label as u16),
            TypeSpec::Int32 => DynamicData::I32(label),
            TypeSpec::Uint32 => DynamicData::U32(label as u32),
            TypeSpec::Int64 => DynamicData::I64(label.into()),
            TypeSpec::Uint64 => DynamicData::U64(label as u64),
            TypeSpec::Named(id) => match self.definitions.get(*id) {
                Some(Definition::Enum(of)) => {
                    let (name, value) = of.literals.iter().find(|(_, value)| *value == label).expect("a literal");
                    DynamicData::Enum { name: name.as_str().into(), value: *value }
                }
                _ => panic!("a discriminator is an enumeration or a primitive type"),
            },
            _ => panic!("a discriminator is an enumeration or a primitive type"),
        }
    }
}
