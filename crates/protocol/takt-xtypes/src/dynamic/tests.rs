//! Tests of dynamic types with types that no compiler produces: random types and malicious types of
//! a peer.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use takt_testkit::Random as Rng;

use super::node::{Node, NodeId, Primitive, Types};
use super::{DynamicData, DynamicType, JsonValue, MAX_MEMBERS};
use crate::describe::TypeIdentifiers;
use crate::type_object::complete::*;
use crate::type_object::form::CommonLiteral;
use crate::type_object::identifier::{ComponentId, HashId, Identifier};
use crate::type_object::kind::{MemberFlag, TypeFlag};
use crate::type_object::{Object, TypeError, TypeIdentifier, TypeObject, TypeRegistry};
use crate::{Endianness, Representation, WString};

fn detail(name: &str) -> MemberDetail {
    MemberDetail { name: name.to_string(), ..MemberDetail::default() }
}

fn header(name: &str) -> TypeDetail {
    TypeDetail { type_name: name.to_string(), ..TypeDetail::default() }
}

fn member(id: u32, flags: MemberFlag, type_id: Identifier) -> StructMember {
    let member_flags = MemberFlag::TRY_CONSTRUCT1 | flags;
    StructMember { member_id: id, member_flags, member_type_id: type_id, detail: detail(&format!("m{id}")) }
}

fn structure(name: &str, flags: TypeFlag, base: Identifier, members: Vec<StructMember>) -> Complete {
    let header = StructHeader { base_type: base, detail: header(name) };
    Complete::Struct(Struct { struct_flags: flags, header, member_seq: members })
}

fn plain_structure(members: Vec<StructMember>) -> Complete {
    structure("S", TypeFlag::IS_FINAL, Identifier::None, members)
}

fn union_of(cases: Vec<UnionMember>) -> Complete {
    Complete::Union(Union {
        union_flags: TypeFlag::IS_FINAL,
        header: Header { detail: header("U") },
        discriminator: Discriminator {
            member_flags: MemberFlag(0),
            type_id: Identifier::Int32,
            detail: DiscriminatorDetail::default(),
        },
        member_seq: cases,
    })
}

fn case(id: u32, labels: Vec<i32>, default: bool, type_id: Identifier) -> UnionMember {
    let member_flags = MemberFlag(0).with(MemberFlag::IS_DEFAULT, default);
    UnionMember { member_id: id, member_flags, type_id, label_seq: labels, detail: detail(&format!("c{id}")) }
}

fn literal(name: &str, value: i32) -> Literal {
    Literal { common: CommonLiteral { value, flags: MemberFlag(0) }, detail: detail(name) }
}

fn enumeration(bit_bound: u16, literals: Vec<Literal>) -> Complete {
    let header = BitBoundHeader { bit_bound, detail: header("E") };
    Complete::Enum(Enum { enum_flags: TypeFlag(0), header, literal_seq: literals })
}

fn insert(registry: &mut TypeRegistry, complete: Complete) -> Identifier {
    registry.insert(TypeObject(Object::Complete(complete))).expect("room").0
}

/// Returns the identifier of the type with this index in a component. No hash verifies it.
fn component(index: i32, length: i32) -> Identifier {
    Identifier::Component(ComponentId { hash: HashId::Complete([7; 14]), length, index })
}

fn insert_component(registry: &mut TypeRegistry, index: i32, complete: Complete) -> Identifier {
    let identifier = TypeIdentifier(component(index, 9));
    registry.insert_as(&identifier, TypeObject(Object::Complete(complete))).expect("room");
    identifier.0
}

fn build(registry: &TypeRegistry, root: Identifier) -> Result<DynamicType, TypeError> {
    DynamicType::new(&TypeIdentifier(root), registry)
}

fn sequence_of(element: Identifier) -> Identifier {
    TypeIdentifiers::same(element).sequence(0, false).complete.0
}

fn is_invalid(complete: Complete) -> bool {
    let mut registry = TypeRegistry::new();
    let inner = insert(&mut registry, complete);
    let root = insert(&mut registry, plain_structure(vec![member(0, MemberFlag(0), inner)]));
    matches!(build(&registry, root), Err(TypeError::Invalid { .. }))
}

#[test]
fn contradictory_types_are_refused() {
    let int = || Identifier::Int32;
    let none = MemberFlag(0);
    assert!(!is_invalid(plain_structure(vec![member(0, none, int()), member(1, none, int())])));
    assert!(is_invalid(plain_structure(vec![member(1, none, int()), member(1, none, int())])));
    assert!(is_invalid(plain_structure(vec![member(1 << 28, none, int())])));
    assert!(is_invalid(plain_structure(vec![member(0, MemberFlag::IS_KEY | MemberFlag::IS_OPTIONAL, int())])));
    assert!(is_invalid(plain_structure(vec![member(0, none, Identifier::None)])));
    assert!(is_invalid(plain_structure(vec![member(0, none, Identifier::array(int(), none, &[0]))])));
    assert!(is_invalid(plain_structure(vec![member(0, none, Identifier::array(int(), none, &[u32::MAX; 3]))])));
    assert!(is_invalid(structure("S", TypeFlag(7), Identifier::None, vec![])));
    assert!(is_invalid(structure("\u{1b}[2J", TypeFlag::IS_FINAL, Identifier::None, vec![])));
    assert!(is_invalid(structure("S", TypeFlag::IS_FINAL, Identifier::Int16, vec![])));
    assert!(!is_invalid(union_of(vec![case(1, vec![1, 2], false, int()), case(2, vec![], true, int())])));
    assert!(is_invalid(union_of(vec![case(1, vec![1], false, int()), case(2, vec![1], false, int())])));
    assert!(is_invalid(union_of(vec![case(1, vec![], true, int()), case(2, vec![], true, int())])));
    assert!(is_invalid(union_of(vec![case(1, vec![], false, int())])));
    assert!(!is_invalid(enumeration(8, vec![literal("A", -128), literal("B", 127)])));
    assert!(is_invalid(enumeration(8, vec![literal("A", 128)])));
    assert!(is_invalid(enumeration(33, vec![literal("A", 0)])));
    assert!(is_invalid(enumeration(32, vec![])));
    assert!(is_invalid(enumeration(32, vec![literal("A", 0), literal("A", 1)])));
}

#[test]
fn types_that_contain_themselves_without_end_are_refused() {
    let endless = |complete: Complete| {
        let mut registry = TypeRegistry::new();
        let root = insert_component(&mut registry, 1, complete);
        match build(&registry, root) {
            Err(TypeError::Invalid { .. }) => true,
            Err(error) => panic!("{error}"),
            Ok(ty) => {
                // The recursion ends: its default value can be built, encoded and decoded.
                let data = ty.default_data();
                let bytes = ty.encode(&data, Representation::Xcdr1).expect("a payload");
                assert_eq!(ty.decode(&bytes), Ok(data));
                assert!(!ty.to_idl().is_empty());
                false
            }
        }
    };
    let itself = || component(1, 9);
    let of = |flags, type_id| plain_structure(vec![member(0, flags, type_id)]);
    assert!(endless(of(MemberFlag(0), itself())));
    assert!(endless(of(MemberFlag::IS_EXTERNAL, itself())));
    assert!(endless(of(MemberFlag(0), Identifier::array(itself(), MemberFlag(0), &[2]))));
    assert!(endless(structure("S", TypeFlag::IS_FINAL, itself(), vec![])));
    assert!(endless(union_of(vec![case(1, vec![1], false, itself())])));
    assert!(!endless(union_of(vec![case(1, vec![1], false, Identifier::Int8), case(2, vec![2], false, itself())])));
    assert!(!endless(of(MemberFlag::IS_OPTIONAL, itself())));
    assert!(!endless(of(MemberFlag(0), sequence_of(itself()))));
    let alias_body =
        AliasBody { related_flags: MemberFlag(0), related_type: itself(), detail: ElementDetail::default() };
    let alias = Alias { alias_flags: TypeFlag(0), header: Header { detail: header("A") }, body: alias_body };
    assert!(endless(Complete::Alias(alias)));
}

#[test]
fn huge_defaults_and_deep_types_are_refused() {
    // Each structure contains ten of the previous one.
    let mut registry = TypeRegistry::new();
    let mut root = Identifier::Int32;
    for level in 0..20 {
        let members = (0..10).map(|id| member(id, MemberFlag(0), root.clone())).collect();
        root = insert(&mut registry, structure(&format!("L{level}"), TypeFlag::IS_FINAL, Identifier::None, members));
    }
    assert!(matches!(build(&registry, root), Err(TypeError::Limit { .. })));

    let mut registry = TypeRegistry::new();
    let mut root = Identifier::Int32;
    for level in 0..1000 {
        let members = vec![member(0, MemberFlag::IS_OPTIONAL, root)];
        root = insert(&mut registry, structure(&format!("L{level}"), TypeFlag::IS_FINAL, Identifier::None, members));
    }
    assert!(matches!(build(&registry, root), Err(TypeError::Limit { .. })));
}

#[test]
fn inherited_members_count_for_each_structure_that_inherits_them() {
    let chain = |levels: usize| {
        let mut registry = TypeRegistry::new();
        let members = (0..10_000).map(|id| member(id, MemberFlag(0), Identifier::Int32)).collect();
        let mut root = insert(&mut registry, structure("L0", TypeFlag::IS_FINAL, Identifier::None, members));
        for level in 1..levels {
            root = insert(&mut registry, structure(&format!("L{level}"), TypeFlag::IS_FINAL, root, Vec::new()));
        }
        build(&registry, root)
    };
    chain(MAX_MEMBERS / 10_000).expect("the sum of members is within the limit");
    assert!(matches!(chain(MAX_MEMBERS / 10_000 + 1), Err(TypeError::Limit { limit: MAX_MEMBERS, .. })));
}

#[test]
fn default_of_a_union_is_a_case_that_its_discriminator_selects() {
    let mut registry = TypeRegistry::new();
    let color = insert(&mut registry, enumeration(32, vec![literal("RED", 0), literal("GREEN", 1)]));
    let union = |cases| {
        let Complete::Union(mut union) = union_of(cases) else { panic!("a union") };
        union.discriminator.type_id = color.clone();
        Complete::Union(union)
    };
    let cases = [
        // No literal has the label of the first case.
        (vec![case(1, vec![2], false, Identifier::Int32), case(2, vec![1], false, Identifier::Int16)], Some("c2")),
        (vec![case(1, vec![2], false, Identifier::Int32)], None),
        (vec![case(1, vec![2], true, Identifier::Int32)], Some("c1")),
    ];
    for (cases, expected) in cases {
        let root = insert(&mut registry, union(cases));
        let ty = build(&registry, root).expect("a type");
        let initial = ty.default_data();
        let DynamicData::Union { member, .. } = &initial else { panic!("a union") };
        assert_eq!(member.as_ref().map(|(name, _)| &**name), expected);
        assert_eq!(ty.from_json(&ty.to_json(&initial)).as_ref(), Ok(&initial));
        let bytes = ty.encode(&initial, Representation::Xcdr2).expect("a value of the type");
        assert_eq!(ty.decode(&bytes), Ok(initial));
    }
}

#[test]
fn key_length_of_malicious_types_is_computed_quickly() {
    // Nested optional members: in XCDR1, alignment restarts at zero in each.
    let mut registry = TypeRegistry::new();
    let members = (0..20).map(|id| member(id, MemberFlag::IS_OPTIONAL, component(1, 9))).collect();
    let inner = insert_component(&mut registry, 1, plain_structure(members));
    let root = insert(&mut registry, plain_structure(vec![member(0, MemberFlag::IS_KEY, inner)]));
    let ty = build(&registry, root).expect("a strange but finite type");
    assert!(ty.has_key());
    let data = ty.default_data();
    assert_ne!(ty.key_hash(&data, Representation::Xcdr1), Ok([0; 16]));
}

#[test]
fn unsupported_types_are_refused_with_a_reason() {
    let mut registry = TypeRegistry::new();
    let root = insert(&mut registry, plain_structure(vec![member(0, MemberFlag(0), Identifier::Float128)]));
    assert!(matches!(build(&registry, root), Err(TypeError::Unsupported { .. })));
    let root = insert(&mut registry, enumeration(32, vec![literal("A", 0)]));
    assert_eq!(build(&registry, root).expect_err("no topic"), TypeError::NotAggregated);
    assert_eq!(build(&registry, Identifier::Int32).expect_err("no topic"), TypeError::NotAggregated);
}

/// Generator of random types. Each consists of types that already exist.
struct Maker {
    rng: Rng,
    registry: TypeRegistry,
    count: usize,
}

const PRIMITIVES: [Identifier; 14] = [
    Identifier::Boolean,
    Identifier::Byte,
    Identifier::Uint8,
    Identifier::Int8,
    Identifier::Int16,
    Identifier::Uint16,
    Identifier::Int32,
    Identifier::Uint32,
    Identifier::Int64,
    Identifier::Uint64,
    Identifier::Float32,
    Identifier::Float64,
    Identifier::Char8,
    Identifier::Char16,
];

impl Maker {
    fn any(&mut self, depth: usize) -> Identifier {
        let choice = if depth == 0 { self.rng.below(4) } else { self.rng.below(12) };
        let bound = [0, 5, 1000][self.rng.below(3)];
        match choice {
            0 | 1 => PRIMITIVES[self.rng.below(PRIMITIVES.len())].clone(),
            2 => Identifier::string8(bound),
            3 => Identifier::string16(bound),
            4 | 5 => Identifier::sequence(self.any(depth - 1), MemberFlag(0), bound),
            6 => {
                let dimensions = [[2, 3].as_slice(), &[1], &[4]][self.rng.below(3)];
                Identifier::array(self.any(depth - 1), MemberFlag(0), dimensions)
            }
            7 => Identifier::map(self.any(0), self.any(depth - 1), MemberFlag(0), bound),
            8 => self.any_union(depth - 1),
            9 => self.any_enumeration(),
            10 => self.any_bitmask(),
            _ => self.any_struct(depth - 1),
        }
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("a::b::T{}", self.count)
    }

    fn flags(&mut self) -> TypeFlag {
        [TypeFlag::IS_FINAL, TypeFlag::IS_APPENDABLE, TypeFlag::IS_MUTABLE][self.rng.below(3)]
    }

    fn any_struct(&mut self, depth: usize) -> Identifier {
        let flags = self.flags();
        let mut members = Vec::new();
        for index in 0..1 + self.rng.below(5) as u32 {
            let id = if self.rng.one_in(3) { 0x4000 - index } else { index * 3 };
            let kind = match self.rng.below(6) {
                0 => MemberFlag::IS_OPTIONAL,
                1 => MemberFlag::IS_KEY,
                2 => MemberFlag::IS_MUST_UNDERSTAND,
                _ => MemberFlag(0),
            };
            members.push(member(id, kind, self.any(depth)));
        }
        let name = self.name();
        insert(&mut self.registry, structure(&name, flags, Identifier::None, members))
    }

    fn any_union(&mut self, depth: usize) -> Identifier {
        let cases = vec![
            case(1, vec![0], false, self.any(depth)),
            case(2, vec![1, 5], false, self.any(depth)),
            case(7, vec![], true, self.any(depth)),
        ];
        let cases = cases.into_iter().take(1 + self.rng.below(3)).collect();
        let Complete::Union(mut union) = union_of(cases) else { panic!("a union") };
        union.union_flags = self.flags();
        union.header.detail.type_name = self.name();
        insert(&mut self.registry, Complete::Union(union))
    }

    fn any_enumeration(&mut self) -> Identifier {
        let literals = vec![literal("A", -1), literal("B", 0), literal("C", 100)];
        let Complete::Enum(mut enumeration) = enumeration([8, 12, 32][self.rng.below(3)], literals) else {
            panic!("an enumeration")
        };
        enumeration.header.detail.type_name = self.name();
        insert(&mut self.registry, Complete::Enum(enumeration))
    }

    fn any_bitmask(&mut self) -> Identifier {
        let bit_bound = [8, 16, 31, 64][self.rng.below(4)];
        let flag = |position| Bitflag { position, flags: MemberFlag(0), detail: detail(&format!("f{position}")) };
        let detail = header(&self.name());
        insert(
            &mut self.registry,
            Complete::Bitmask(Bitmask {
                bitmask_flags: TypeFlag(0),
                header: BitBoundHeader { bit_bound, detail },
                flag_seq: vec![flag(0), flag(bit_bound - 1)],
            }),
        )
    }
}

/// Returns a random value of a type.
fn random_value(types: &Types, id: NodeId, rng: &mut Rng, depth: usize) -> DynamicData {
    let len = |rng: &mut Rng| if depth == 0 { 0 } else { rng.below(4) };
    let inner = depth.saturating_sub(1);
    match types.resolved(id) {
        Node::Primitive(Primitive::F32) => DynamicData::F32(rng.next() as i16 as f32 / 8.0),
        Node::Primitive(Primitive::F64) => DynamicData::F64(rng.next() as i32 as f64 / 8.0),
        Node::Primitive(_) => types.number(id, i128::from(rng.below(2) as u64)).expect("every type has 0 and 1"),
        Node::String { .. } => DynamicData::String("é水".chars().take(rng.below(3)).collect()),
        Node::WString { .. } => DynamicData::WString(WString::from(["", "a", "🦀"][rng.below(3)])),
        Node::Enum(enumeration) => {
            let (_, value) = enumeration.literals[rng.below(enumeration.literals.len())];
            enumeration.literal(value).expect("a literal")
        }
        Node::Bitmask(bitmask) => bitmask.value(rng.next() >> (64 - 8 * bitmask.holder_len())),
        Node::Sequence { element, .. } => {
            let count = len(rng);
            elements(types, *element, count, rng, inner)
        }
        Node::Array { element, len, .. } => elements(types, *element, *len, rng, inner),
        Node::Map { key, element, .. } => {
            let pair = |rng: &mut Rng| (random_value(types, *key, rng, 0), random_value(types, *element, rng, inner));
            DynamicData::Map((0..len(rng)).map(|_| pair(rng)).collect())
        }
        Node::Struct(structure) => {
            let mut members = Vec::new();
            for member in &structure.members {
                let value = if member.optional && rng.one_in(2) {
                    DynamicData::Absent
                } else {
                    random_value(types, member.node, rng, depth)
                };
                members.push((member.name.clone(), value));
            }
            DynamicData::Struct(members)
        }
        Node::Union(union) => {
            let number = [0, 1, 5, 9][rng.below(4)];
            let discriminator = Box::new(types.number(union.discriminator, number).expect("a discriminator"));
            let member = union.select(number);
            let member = member.map(|case| (case.name.clone(), Box::new(random_value(types, case.node, rng, depth))));
            DynamicData::Union { discriminator, member }
        }
        Node::Alias { target, .. } => random_value(types, *target, rng, depth),
    }
}

fn elements(types: &Types, element: NodeId, count: usize, rng: &mut Rng, depth: usize) -> DynamicData {
    if types.is_octet(element) {
        return DynamicData::Bytes((0..count).map(|_| rng.next() as u8).collect());
    }
    DynamicData::Sequence((0..count).map(|_| random_value(types, element, rng, depth)).collect())
}

/// Reports whether the value round-trips through JSON. JSON cannot represent two members with one
/// name, nor a map with a duplicate key.
fn round_trips_through_json(json: &JsonValue) -> bool {
    match json {
        JsonValue::Object(members) => {
            let twice = (1..members.len()).any(|i| members[..i].iter().any(|(name, _)| *name == members[i].0));
            !twice && members.iter().all(|(_, value)| round_trips_through_json(value))
        }
        JsonValue::Array(values) => values.iter().all(round_trips_through_json),
        _ => true,
    }
}

#[test]
fn values_of_random_types_round_trip() {
    for seed in 0..300 {
        let mut maker = Maker { rng: Rng(seed), registry: TypeRegistry::new(), count: 0 };
        let root = maker.any_struct(4);
        let Maker { mut rng, registry, .. } = maker;
        // Types of a peer arrive as bytes.
        for (identifier, object) in registry.iter() {
            assert_eq!(TypeObject::parse(&object.to_bytes()).as_ref(), Ok(object), "seed {seed}");
            assert_eq!(object.identifier(), *identifier, "seed {seed}");
        }
        let ty = build(&registry, root).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(ty.to_idl().contains("module a {"));
        for round in 0..5 {
            let data = if round == 0 { ty.default_data() } else { random_value(&ty.types, ty.root, &mut rng, 4) };
            let json = ty.to_json(&data);
            if round_trips_through_json(&json) {
                assert_eq!(ty.from_json(&json), Ok(data.clone()), "seed {seed}");
            }
            for representation in [Representation::Xcdr1, Representation::Xcdr2] {
                for endianness in [Endianness::Little, Endianness::Big] {
                    let bytes = ty.encode_with(&data, representation, endianness).expect("a payload");
                    let context =
                        format!("seed {seed} {representation:?} {endianness:?}\n{}\n{bytes:02x?}", ty.to_idl());
                    assert_eq!(ty.decode(&bytes).as_ref(), Ok(&data), "{context}");
                    for len in 0..bytes.len() {
                        // Truncated input must not panic. Whether it decodes depends on the
                        // defaults of the type.
                        if let Ok(data) = ty.decode(&bytes[..len]) {
                            assert!(ty.encode(&data, representation).is_ok(), "{context} at {len}");
                        }
                    }
                }
                let hash = ty.key_hash(&data, representation);
                let key = ty.encode_key(&data, representation).expect("a key");
                let decoded = ty.decode_key(&key).expect("a key");
                assert_eq!(ty.key_hash(&decoded, representation), hash, "seed {seed}");
            }
        }
    }
}
