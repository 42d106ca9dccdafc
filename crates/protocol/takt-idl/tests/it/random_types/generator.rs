//! Generator of random types from a seed, with all features of definitions. Each type consists of
//! previously generated types.

use takt_testkit::Random;
use takt_xtypes::Extensibility;
use takt_xtypes::definition::{
    AliasDefinition, BitmaskDefinition, CaseDefinition, Definition, DefinitionId, Definitions, EnumDefinition, Limit,
    MemberDefinition, StructDefinition, TryConstruct, TypeSpec, UnionDefinition, ValueAnnotations,
};
use takt_xtypes::describe::hash_id as member_hash;

/// Features that a type may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Features that CycloneDDS 0.10.2 supports.
    Shared,
    /// All features: also `wchar`, `wstring`, `map`, `int8`, `uint8`, and recursive structs.
    Whole,
}

/// Types of one file. The last one is the topic type.
pub struct RandomTypes {
    pub definitions: Definitions,
    pub order: Vec<DefinitionId>,
    /// True if a struct contains sequences of itself, directly or through another struct.
    pub is_recursive: bool,
}

pub fn generate(seed: u64, range: Range) -> RandomTypes {
    let mut generator = Generator {
        random: Random(seed),
        range,
        definitions: Definitions::new(),
        order: Vec::new(),
        scope: String::new(),
        names: 0,
    };
    let parts = 1 + generator.random.below(7);
    let is_recursive = generator.chance(8);
    let recursion = if is_recursive { generator.random.below(parts + 1) } else { parts + 1 };
    for index in 0..=parts {
        if index == 0 || generator.random.one_in(4) {
            generator.scope = generator.new_scope();
        }
        if index == recursion {
            generator.recursive_structures(index == parts);
            continue;
        }
        let definition = match generator.random.below(6) {
            _ if index == parts => generator.topic_type(),
            0 => generator.enumeration(),
            1 => generator.bitmask(),
            2 => generator.alias(),
            3 => generator.union(false),
            _ => generator.structure(false),
        };
        let id = generator.definitions.add(definition);
        generator.order.push(id);
    }
    RandomTypes { definitions: generator.definitions, order: generator.order, is_recursive }
}

struct Generator {
    random: Random,
    range: Range,
    definitions: Definitions,
    order: Vec<DefinitionId>,
    /// Module, followed by `::`.
    scope: String,
    names: usize,
}

impl Generator {
    fn new_scope(&mut self) -> String {
        self.names += 1;
        let name = self.names;
        match self.random.below(4) {
            0 => String::new(),
            1 | 2 => format!("mod{name}::"),
            _ => format!("mod{name}::part::"),
        }
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{}{prefix}{}", self.scope, self.names)
    }

    fn member_name(&mut self) -> String {
        self.names += 1;
        format!("m{}", self.names)
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.random.one_in(one_in)
    }

    fn extensibility(&mut self) -> Extensibility {
        [Extensibility::Final, Extensibility::Appendable, Extensibility::Mutable][self.random.below(3)]
    }

    fn topic_type(&mut self) -> Definition {
        if self.chance(12) { self.union(true) } else { self.structure(true) }
    }

    fn enumeration(&mut self) -> Definition {
        let name = self.name("E");
        let bit_bound = [32, 32, 8, 16, 5, 17][self.random.below(6)];
        let most = (1_i64 << (bit_bound - 1)) - 1;
        let (mut literals, mut next) = (Vec::new(), 0_i64);
        for index in 0..1 + self.random.below(6) {
            if self.chance(4) {
                next += self.random.below(7) as i64;
            }
            if next > most {
                break;
            }
            literals.push((format!("{}_L{index}", super::text::simple_name(&name)), next as i32));
            next += 1;
        }
        // INTEROP(CycloneDDS 0.10.2): idlc ignores `@default_literal` and generates a different
        // type.
        let has_default = self.range == Range::Whole && self.chance(3);
        let default = has_default.then(|| self.random.below(literals.len()));
        let extensibility = [Extensibility::Final, Extensibility::Appendable][self.random.below(2)];
        Definition::Enum(EnumDefinition { name, extensibility, bit_bound, literals, default })
    }

    fn bitmask(&mut self) -> Definition {
        let name = self.name("B");
        let bit_bound = [8, 16, 32, 64, 3, 20, 40][self.random.below(7)];
        let (mut flags, mut next) = (Vec::new(), 0_u16);
        for index in 0..1 + self.random.below(5) {
            if self.chance(3) {
                next += self.random.below(9) as u16;
            }
            if next >= bit_bound {
                break;
            }
            flags.push((format!("{}_F{index}", super::text::simple_name(&name)), next));
            next += 1;
        }
        if flags.is_empty() {
            flags.push((format!("{}_F", super::text::simple_name(&name)), 0));
        }
        Definition::Bitmask(BitmaskDefinition { name, bit_bound, flags })
    }

    fn alias(&mut self) -> Definition {
        let name = self.name("A");
        let last = self.order.iter().copied().rfind(|id| self.is_alias(*id));
        let of = match last {
            Some(last) if self.chance(2) => {
                let dimensions = (0..1 + self.random.below(2)).map(|_| 1 + self.random.below(2) as u32).collect();
                TypeSpec::Array { element: Box::new(TypeSpec::Named(last)), dimensions }
            }
            _ => self.declared_type(),
        };
        Definition::Alias(AliasDefinition { name, of })
    }

    fn is_alias(&self, id: DefinitionId) -> bool {
        matches!(self.definitions.get(id), Some(Definition::Alias(_)))
    }

    /// Generates a recursive struct, or two mutually recursive ones.
    fn recursive_structures(&mut self, is_topic: bool) {
        let ids: Vec<DefinitionId> = (0..1 + self.random.below(2)).map(|_| self.definitions.declare()).collect();
        for (index, id) in ids.iter().enumerate() {
            let is_last = index + 1 == ids.len();
            let Definition::Struct(mut structure) = self.structure(is_topic && is_last) else { panic!("a struct") };
            let next = structure.members.iter().map(|member| member.id + 1).max();
            let next = next.into_iter().chain(structure.base.map(|base| self.next_id(base))).max().unwrap_or(0);
            let link = self.link(TypeSpec::Named(ids[(index + 1) % ids.len()]), next);
            structure.members.push(link);
            self.definitions.define(*id, Definition::Struct(structure));
            self.order.push(*id);
        }
    }

    /// Generates a member that refers back to a struct: a sequence of it, or an optional external
    /// member.
    fn link(&mut self, to: TypeSpec, id: u32) -> MemberDefinition {
        let is_direct = self.chance(3);
        let bound = self.random.below(4) as u32;
        let of = if is_direct { to } else { TypeSpec::Sequence { element: Box::new(to), external: false, bound } };
        MemberDefinition {
            name: self.member_name(),
            id,
            hash_id: None,
            values: ValueAnnotations::default(),
            key: false,
            must_understand: false,
            optional: is_direct || self.chance(4),
            external: is_direct,
            try_construct: TryConstruct::Discard,
            of,
        }
    }

    fn structure(&mut self, is_topic: bool) -> Definition {
        let name = self.name("S");
        let mut extensibility = self.extensibility();
        let base = if self.chance(4) { self.base() } else { None };
        let mut next = 0;
        if let Some(base) = base {
            extensibility = self.struct_of(base).extensibility;
            next = self.next_id(base);
        }
        let autoid_hash = base.is_none() && extensibility == Extensibility::Mutable && self.chance(4);
        let is_keyed = base.is_none() && self.chance(2);
        let mut members: Vec<MemberDefinition> = Vec::new();
        // INTEROP(CycloneDDS 0.10.2): for an empty struct, idlc generates C code that does not
        // compile. Values without octets are refused as elements.
        let may_be_empty = self.range == Range::Whole && extensibility == Extensibility::Mutable;
        let is_empty = may_be_empty && !is_topic && self.chance(12);
        for index in 0..if is_empty { 0 } else { 1 + self.random.below(6) } {
            let name = self.member_name();
            let key = is_keyed && (self.chance(3) || is_topic && index == 0);
            let hash_id = (extensibility == Extensibility::Mutable && base.is_none() && self.chance(8))
                .then(|| if self.chance(2) { String::new() } else { format!("h{name}") });
            let id = match &hash_id {
                Some(hashed) => member_hash(if hashed.is_empty() { &name } else { hashed }),
                None if self.chance(8) => next + self.random.below(300) as u32,
                None if autoid_hash => member_hash(&name),
                None => next,
            };
            next = id + 1;
            let of = if key { self.key_type() } else { self.declared_type() };
            let optional = !key && self.chance(5);
            members.push(MemberDefinition {
                hash_id,
                values: self.values(&of),
                id,
                key,
                must_understand: permits_must_understand(self.range, extensibility) && self.chance(10),
                optional,
                external: self.chance(8),
                try_construct: self.try_construct(&of),
                of,
                name,
            });
        }
        let mut ids: Vec<u32> = members.iter().map(|member| member.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let nested = !is_topic && self.chance(3);
        if ids.len() < members.len() {
            members.truncate(1);
        }
        Definition::Struct(StructDefinition { name, extensibility, nested, autoid_hash, base, members })
    }

    /// Returns a random base struct that is defined and not a typedef.
    fn base(&mut self) -> Option<DefinitionId> {
        let structs: Vec<DefinitionId> = self.order.iter().copied().filter(|id| self.is_struct(*id)).collect();
        (!structs.is_empty()).then(|| structs[self.random.below(structs.len())])
    }

    fn is_struct(&self, id: DefinitionId) -> bool {
        matches!(self.definitions.get(id), Some(Definition::Struct(_)))
    }

    fn struct_of(&self, id: DefinitionId) -> &StructDefinition {
        match self.definitions.get(id) {
            Some(Definition::Struct(structure)) => structure,
            _ => panic!("a struct"),
        }
    }

    /// Returns the id after the largest one of a struct and its bases.
    fn next_id(&self, id: DefinitionId) -> u32 {
        let structure = self.struct_of(id);
        let own = structure.members.iter().map(|member| member.id + 1).max().unwrap_or(0);
        own.max(structure.base.map_or(0, |base| self.next_id(base)))
    }

    fn values(&mut self, of: &TypeSpec) -> ValueAnnotations {
        let unit = self.chance(12).then(|| "m / s".to_owned());
        if !matches!(of, TypeSpec::Uint64 | TypeSpec::Double | TypeSpec::Int16) || !self.chance(4) {
            return ValueAnnotations { unit, ..ValueAnnotations::default() };
        }
        let min = [Limit::Integer(0), Limit::Integer(7)][self.random.below(2)];
        let max = match of {
            TypeSpec::Double => Limit::Float(1.5e3),
            TypeSpec::Uint64 => Limit::Integer([9, 3_000_000_000, u64::MAX.into()][self.random.below(3)]),
            _ => Limit::Integer(300),
        };
        ValueAnnotations { unit, min: Some(min), max: self.chance(2).then_some(max) }
    }

    fn union(&mut self, is_topic: bool) -> Definition {
        let name = self.name("U");
        let mut extensibility = self.extensibility();
        if self.range == Range::Shared && extensibility == Extensibility::Mutable {
            // INTEROP(CycloneDDS 0.10.2): mutable unions are refused.
            extensibility = Extensibility::Appendable;
        }
        let discriminator = self.discriminator();
        let possible = self.labels(&discriminator);
        let (mut cases, mut next, mut at) = (Vec::new(), 0_u32, 0);
        let has_default = self.chance(2) && possible.len() > 1;
        let most = possible.len() - usize::from(has_default);
        for _ in 0..1 + self.random.below(4) {
            let mut labels = Vec::new();
            while at < most && (labels.is_empty() || self.chance(3)) {
                labels.push(possible[at]);
                at += 1;
            }
            if !labels.is_empty() {
                next += 1 + if self.chance(4) { self.random.below(50) as u32 } else { 0 };
                cases.push(self.case(next, labels, false));
            }
        }
        if has_default {
            cases.push(self.case(next + 1, Vec::new(), true));
        }
        let nested = !is_topic && self.chance(3);
        let autoid_hash = self.chance(6);
        // INTEROP(CycloneDDS 0.10.2): idlc refuses `@key` of a discriminator.
        let key = self.range == Range::Whole && self.chance(3);
        Definition::Union(UnionDefinition { name, extensibility, nested, autoid_hash, key, discriminator, cases })
    }

    fn case(&mut self, id: u32, labels: Vec<i32>, default: bool) -> CaseDefinition {
        let (name, of) = (self.member_name(), self.declared_type());
        let (mut external, try_construct) = (self.chance(8), self.try_construct(&of));
        // INTEROP(CycloneDDS 0.10.2): the library reads such a case through an invalid pointer.
        external &= self.range == Range::Whole || !self.is_array_of_strings(&of);
        let values = self.values(&of);
        CaseDefinition { name, id, hash_id: None, values, labels, default, external, try_construct, of }
    }

    fn is_array_of_strings(&self, of: &TypeSpec) -> bool {
        match self.definitions.resolve(of).expect("it is defined") {
            TypeSpec::Array { element, .. } => {
                let element = self.definitions.resolve(element).expect("it is defined");
                matches!(element, TypeSpec::String { .. }) || self.is_array_of_strings(element)
            }
            _ => false,
        }
    }

    fn discriminator(&mut self) -> TypeSpec {
        let enums: Vec<DefinitionId> = self.order.iter().copied().filter(|id| self.is_enum(*id)).collect();
        if !enums.is_empty() && self.chance(3) {
            return TypeSpec::Named(enums[self.random.below(enums.len())]);
        }
        let mut kinds = vec![
            TypeSpec::Boolean,
            TypeSpec::Octet,
            TypeSpec::Char,
            TypeSpec::Int16,
            TypeSpec::Uint16,
            TypeSpec::Int32,
            TypeSpec::Uint32,
        ];
        // INTEROP(CycloneDDS 0.10.2): the library aborts on discriminators of 64 bits.
        if self.range == Range::Whole {
            kinds.extend([TypeSpec::WChar, TypeSpec::Int8, TypeSpec::Uint8, TypeSpec::Int64, TypeSpec::Uint64]);
        }
        kinds.swap_remove(self.random.below(kinds.len()))
    }

    fn is_enum(&self, id: DefinitionId) -> bool {
        matches!(self.definitions.resolve(&TypeSpec::Named(id)), Some(TypeSpec::Named(id))
            if matches!(self.definitions.get(*id), Some(Definition::Enum(_))))
    }

    /// Returns the labels that a discriminator can have, in the order in which cases use them.
    fn labels(&mut self, discriminator: &TypeSpec) -> Vec<i32> {
        let start = self.random.below(20) as i32;
        match self.definitions.resolve(discriminator).expect("it is defined") {
            TypeSpec::Boolean => vec![i32::from(start % 2 == 0), i32::from(start % 2 != 0)],
            TypeSpec::Char | TypeSpec::WChar => (0..8).map(|n| i32::from(b'A') + start + n).collect(),
            TypeSpec::Octet | TypeSpec::Uint8 | TypeSpec::Uint16 | TypeSpec::Uint32 | TypeSpec::Uint64 => {
                (start..start + 8).collect()
            }
            TypeSpec::Named(id) => match self.definitions.get(*id) {
                Some(Definition::Enum(of)) => of.literals.iter().map(|(_, value)| *value).collect(),
                _ => panic!("an enumeration"),
            },
            // INTEROP(CycloneDDS 0.10.2): the library matches no value of 16 bits with a negative
            // label.
            TypeSpec::Int16 if self.range == Range::Shared => (start..start + 8).collect(),
            _ => (start - 10..start - 2).collect(),
        }
    }

    /// INTEROP(CycloneDDS 0.10.2): idlc refuses TRIM of types that have no bound.
    fn try_construct(&mut self, of: &TypeSpec) -> TryConstruct {
        let has_bound = matches!(of, TypeSpec::String { bound: 1.. } | TypeSpec::Sequence { bound: 1.., .. });
        match self.random.below(10) {
            0 => TryConstruct::UseDefault,
            1 if has_bound || self.range == Range::Whole => TryConstruct::Trim,
            _ => TryConstruct::Discard,
        }
    }

    /// Returns a random type of a member, a case or a typedef.
    fn declared_type(&mut self) -> TypeSpec {
        let element = self.type_spec(0);
        if !self.chance(6) {
            return element;
        }
        let dimensions = (0..1 + self.random.below(3)).map(|_| 1 + self.random.below(3) as u32).collect();
        TypeSpec::Array { element: Box::new(element), dimensions }
    }

    fn type_spec(&mut self, depth: u8) -> TypeSpec {
        if depth < 3 && self.chance(6) {
            let element = Box::new(self.type_spec(depth + 1));
            let bound = if self.chance(2) { 0 } else { 1 + self.random.below(6) as u32 };
            if self.range == Range::Whole && self.chance(3) {
                let key = Box::new([TypeSpec::Int32, TypeSpec::String { bound: 0 }][self.random.below(2)].clone());
                return TypeSpec::Map { key, element, bound };
            }
            return TypeSpec::Sequence { element, external: false, bound };
        }
        if !self.order.is_empty() && self.chance(3) {
            return TypeSpec::Named(self.order[self.random.below(self.order.len())]);
        }
        self.simple()
    }

    fn simple(&mut self) -> TypeSpec {
        let bound = if self.chance(2) { 0 } else { 1 + self.random.below(12) as u32 };
        let mut kinds = vec![
            TypeSpec::Boolean,
            TypeSpec::Octet,
            TypeSpec::Int16,
            TypeSpec::Uint16,
            TypeSpec::Int32,
            TypeSpec::Uint32,
            TypeSpec::Int64,
            TypeSpec::Uint64,
            TypeSpec::Float,
            TypeSpec::Double,
            TypeSpec::Char,
            TypeSpec::String { bound },
        ];
        if self.range == Range::Whole {
            kinds.extend([TypeSpec::WChar, TypeSpec::Int8, TypeSpec::Uint8, TypeSpec::WString { bound }]);
        }
        kinds.swap_remove(self.random.below(kinds.len()))
    }

    /// Returns a random type of a key member. It is usually short, so that both keys of up to 16
    /// octets and digests occur.
    fn key_type(&mut self) -> TypeSpec {
        let structs: Vec<DefinitionId> = self.order.iter().copied().filter(|id| self.is_struct(*id)).collect();
        let of = match self.random.below(4) {
            0 if !structs.is_empty() => TypeSpec::Named(structs[self.random.below(structs.len())]),
            0 | 1 => self.declared_type(),
            _ => self.simple(),
        };
        if self.range == Range::Whole || self.fits_key(&of) { of } else { self.simple() }
    }

    /// INTEROP(CycloneDDS 0.10.2): idlc aborts on a key that is an empty struct. It refuses
    /// keys with sequences, unions, and arrays of strings or structs. The library hashes a key with
    /// optional members without the octets that represent their presence.
    fn fits_key(&self, of: &TypeSpec) -> bool {
        match self.definitions.resolve(of).expect("it is defined") {
            TypeSpec::Sequence { .. } | TypeSpec::Map { .. } => false,
            TypeSpec::Array { element, .. } => {
                let element = self.definitions.resolve(element).expect("it is defined");
                let is_struct = matches!(element, TypeSpec::Named(id) if self.is_struct(*id));
                !is_struct && !matches!(element, TypeSpec::String { .. }) && self.fits_key(element)
            }
            TypeSpec::Named(id) => match self.definitions.get(*id) {
                Some(Definition::Struct(structure)) => {
                    let fits = |member: &MemberDefinition| !member.optional && self.fits_key(&member.of);
                    let is_empty = structure.members.is_empty() && structure.base.is_none();
                    !is_empty
                        && structure.members.iter().all(fits)
                        && structure.base.is_none_or(|id| self.fits_key(&TypeSpec::Named(id)))
                }
                Some(Definition::Union(_)) => false,
                _ => true,
            },
            _ => true,
        }
    }
}

/// INTEROP(CycloneDDS 0.10.2): idlc refuses `@must_understand` in structs that are not mutable.
fn permits_must_understand(range: Range, extensibility: Extensibility) -> bool {
    range == Range::Whole || extensibility == Extensibility::Mutable
}
