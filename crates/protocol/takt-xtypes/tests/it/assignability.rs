//! Assignability tests (XTypes 1.3 §7.2.4): single cases, and properties of all types.
//!
//! Each case compares complete with complete, minimal with minimal, and mixed forms.

use std::collections::BTreeMap;

use takt_derive::DdsType;
use takt_xtypes::assignability::{Caution, Inassignable, MAX_STEPS, Rules, TypeRef, is_assignable, is_equivalent};
use takt_xtypes::type_object::{TypeObject, TypeRegistry};
use takt_xtypes::{Char8, Representation, TypeSupport, Uint8, bitmask};

use crate::zoo;

/// Compares both types in all forms. Returns the result of the complete forms.
fn in_all_forms<R: TypeSupport, W: TypeSupport>(
    check: impl Fn(TypeRef<'_>, TypeRef<'_>) -> Result<Vec<Caution>, Inassignable>,
) -> Result<Vec<Caution>, Inassignable> {
    let (mut of_reader, mut of_writer) = (TypeRegistry::new(), TypeRegistry::new());
    let (reader, writer) = (R::type_information(&mut of_reader), W::type_information(&mut of_writer));
    let readers = [&reader.complete.type_id, &reader.minimal.type_id];
    let writers = [&writer.complete.type_id, &writer.minimal.type_id];
    let mut results = readers.into_iter().flat_map(|reader| writers.map(|writer| (reader, writer))).map(|(r, w)| {
        check(TypeRef { identifier: r, types: &of_reader }, TypeRef { identifier: w, types: &of_writer })
    });
    let complete = results.next().expect("four forms");
    for other in results {
        assert_eq!(other.is_ok(), complete.is_ok(), "{other:?} in another form, {complete:?} in the complete one");
    }
    complete
}

fn verdict<R: TypeSupport, W: TypeSupport>(rules: &Rules) -> String {
    match in_all_forms::<R, W>(|reader, writer| is_assignable(reader, writer, rules)) {
        Ok(cautions) if cautions.is_empty() => "ok".to_owned(),
        Ok(cautions) => format!("ok, but {}", cautions[0]),
        Err(reason) => reason.to_string(),
    }
}

/// Compares with the rules of ALLOW_TYPE_COERCION.
fn allowed<R: TypeSupport, W: TypeSupport>() -> String {
    verdict::<R, W>(&Rules::default())
}

/// Declares a structure with one member for each type.
macro_rules! one {
    ($($name:ident $(($($attribute:tt)*))?: $type:ty;)*) => {$(
        #[derive(Clone, Debug, Default, PartialEq, DdsType)]
        #[dds(crate = "takt_xtypes", name = "T")]
        pub struct $name {
            $(#[dds($($attribute)*)])?
            pub value: $type,
        }
    )*};
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, DdsType)]
#[dds(crate = "takt_xtypes", name = "E")]
pub enum Two {
    #[default]
    A,
    B,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, DdsType)]
#[dds(crate = "takt_xtypes", name = "E")]
pub enum Three {
    #[default]
    A,
    B,
    C,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "E", extensibility = "final")]
pub enum FinalTwo {
    #[default]
    A,
    B,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "E", extensibility = "final")]
pub enum FinalThree {
    #[default]
    A,
    B,
    C,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "E")]
pub enum Swapped {
    #[default]
    B,
    A,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "E")]
pub enum Renamed {
    #[default]
    A,
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "E", bit_bound = 8)]
pub enum Narrow {
    #[default]
    A,
    B,
}

bitmask! {
    /// Eight bits.
    pub struct Bits8: u8 {
        /// One.
        const A = 0;
    }
}

bitmask! {
    /// Eight bits with different flags.
    pub struct OtherBits8: u8 {
        /// Another.
        const Z = 3;
    }
}

bitmask! {
    /// Sixteen bits.
    pub struct Bits16: u16 {
        /// One.
        const A = 0;
    }
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "Inner")]
pub struct Inner {
    pub a: i32,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "Inner")]
pub struct WideInner {
    pub a: i32,
    pub b: i32,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "Inner", extensibility = "final")]
pub struct FinalInner {
    #[dds(bound = 4)]
    pub a: String,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "Inner", extensibility = "final")]
pub struct FinalInnerOfOtherBound {
    #[dds(bound = 5)]
    pub a: String,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "F", extensibility = "final")]
pub struct KeyedFinal {
    #[dds(key)]
    pub a: i32,
    pub b: i32,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "F", extensibility = "final")]
pub struct UnkeyedFinal {
    pub a: i32,
    pub b: i32,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "N")]
pub struct KeylessNarrow {
    pub x: i32,
    pub y: i16,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "N")]
pub struct KeylessWide {
    pub x: i32,
    pub y: i16,
    pub z: i16,
}

one! {
    Bool: bool; Octet: u8; Signed: i8; Short: i16; Long: i32; Unsigned: u32; Double: f64; Letter: Char8;
    Text: String; Text4(bound = 4): String; Text8(bound = 8): String;
    List: Vec<i32>; List4(bound = 4): Vec<i32>; List8(bound = 8): Vec<i32>; Shorts: Vec<i16>;
    Four: [i32; 4]; Five: [i32; 5]; TwoByTwo: [[i32; 2]; 2];
    Table: BTreeMap<u8, i32>; ShortTable: BTreeMap<u8, i16>; OtherTable: BTreeMap<i16, i32>;
    OfTwo: Two; OfThree: Three; OfFinalTwo: FinalTwo; OfFinalThree: FinalThree; OfSwapped: Swapped;
    OfRenamed: Renamed; OfNarrow: Narrow;
    OfBits8: Bits8; OfOtherBits8: OtherBits8; OfBits16: Bits16;
    OfInner: Inner; OfWideInner: WideInner; OfInners: Vec<Inner>; OfWideInners: Vec<WideInner>;
    OfFinal: FinalInner; OfOtherFinal: FinalInnerOfOtherBound;
    KeyText4(key, bound = 4): String; KeyText8(key, bound = 8): String;
    KeyTwo(key): Two; KeyThree(key): Three;
    OfUint8: Uint8; Octets: Vec<u8>; Uint8s: Vec<Uint8>;
    OfKeyedFinal: KeyedFinal; OfUnkeyedFinal: UnkeyedFinal; KeyNarrow(key): KeylessNarrow; KeyWide(key): KeylessWide;
}

#[test]
fn primitive_types_are_assignable_only_to_themselves() {
    assert_eq!(allowed::<Long, Long>(), "ok");
    assert_eq!(allowed::<Long, Unsigned>(), "member 'value': int32 for the reader, uint32 from the writer");
    assert_eq!(allowed::<Long, Short>(), "member 'value': int32 for the reader, int16 from the writer");
    assert_eq!(allowed::<Octet, Signed>(), "member 'value': octet for the reader, int8 from the writer");
    assert_eq!(allowed::<Bool, Octet>(), "member 'value': boolean for the reader, octet from the writer");
    assert_eq!(allowed::<Double, Letter>(), "member 'value': double for the reader, char from the writer");
    assert_eq!(allowed::<Text, Long>(), "member 'value': a string for the reader, int32 from the writer");
}

#[test]
fn string_bounds_are_compared_unless_they_are_ignored() {
    let strict = Rules { ignore_string_bounds: false, ..Rules::default() };
    for (reader_holds_less, rules, expected) in [
        (verdict::<Text4, Text8>(&strict), strict, "member 'value': up to 4 for the reader, up to 8 from the writer"),
        (
            verdict::<Text4, Text>(&strict),
            strict,
            "member 'value': up to 4 for the reader, without bound from the writer",
        ),
        (verdict::<Text8, Text4>(&strict), strict, "ok"),
        (verdict::<Text, Text4>(&strict), strict, "ok"),
        (allowed::<Text4, Text>(), Rules::default(), "ok"),
    ] {
        assert_eq!(reader_holds_less, expected, "{rules:?}");
    }
}

#[test]
fn key_bounds_are_always_compared() {
    assert_eq!(allowed::<KeyText8, KeyText4>(), "ok");
    assert_eq!(allowed::<KeyText4, KeyText8>(), "member 'value': up to 4 for the reader, up to 8 from the writer");
    assert_eq!(allowed::<KeyThree, KeyTwo>(), "ok");
    assert_eq!(allowed::<KeyTwo, KeyThree>(), "member 'value': literal C is not in the reader's type");
}

#[test]
fn collections_are_assignable_by_kind_and_bound() {
    let strict = Rules { ignore_sequence_bounds: false, ..Rules::default() };
    assert_eq!(verdict::<List4, List8>(&strict), "member 'value': up to 4 for the reader, up to 8 from the writer");
    assert_eq!(verdict::<List8, List4>(&strict), "ok");
    assert_eq!(allowed::<List4, List>(), "ok");
    assert_eq!(allowed::<List, Shorts>(), "member 'value[]': int32 for the reader, int16 from the writer");
    assert_eq!(allowed::<List, Four>(), "member 'value': a sequence for the reader, an array from the writer");
    assert_eq!(allowed::<Four, Five>(), "member 'value': array [4] for the reader, [5] from the writer");
    assert_eq!(allowed::<Four, TwoByTwo>(), "member 'value': array [4] for the reader, [2, 2] from the writer");
    assert_eq!(allowed::<Table, Table>(), "ok");
    assert_eq!(allowed::<Table, ShortTable>(), "member 'value[]': int32 for the reader, int16 from the writer");
    assert_eq!(allowed::<Table, OtherTable>(), "member 'value[key]': octet for the reader, int16 from the writer");
    assert_eq!(allowed::<OfInners, OfWideInners>(), "ok", "appendable elements have an end of their own");
    assert_eq!(allowed::<OfWideInners, OfInners>(), "ok");
}

#[test]
fn enums_and_bitmasks_are_assignable_by_literals_and_size() {
    assert_eq!(allowed::<OfTwo, OfThree>(), "ok");
    assert_eq!(allowed::<OfThree, OfTwo>(), "ok");
    assert_eq!(allowed::<OfFinalTwo, OfFinalThree>(), "member 'value': literal C is not in the reader's type");
    assert_eq!(
        allowed::<OfFinalThree, OfFinalTwo>(),
        "member 'value': the writer's type lacks literals of the reader's"
    );
    assert_eq!(allowed::<OfTwo, OfSwapped>(), "member 'value': literal B is 1 for the reader, 0 from the writer");
    assert_eq!(allowed::<OfTwo, OfRenamed>(), "member 'value': literal 1 is B for the reader, Other from the writer");
    assert_eq!(
        allowed::<OfTwo, OfNarrow>(),
        "member 'value': enum of 32 bits for the reader, 8 from the writer",
        "other octets"
    );
    assert_eq!(allowed::<OfBits8, OfOtherBits8>(), "ok");
    assert_eq!(allowed::<OfBits8, OfUint8>(), "ok");
    assert_eq!(allowed::<OfUint8, OfBits8>(), "ok");
    assert_eq!(
        allowed::<OfBits8, OfBits16>(),
        "member 'value': a bitmask of 8 bits for the reader, a bitmask of 16 bits from the writer"
    );
    assert_eq!(
        allowed::<Octet, OfBits16>(),
        "member 'value': octet for the reader, a bitmask of 16 bits from the writer"
    );
}

#[test]
fn octet_and_uint8_are_assignable_with_a_caution() {
    let caution = "ok, but member 'value': octet for the reader, uint8 from the writer";
    assert_eq!(allowed::<Octet, OfUint8>(), caution);
    assert_eq!(allowed::<OfUint8, Octet>(), "ok, but member 'value': uint8 for the reader, octet from the writer");
    assert_eq!(allowed::<Octets, Uint8s>(), caution.replace("value", "value[]"));
    assert_eq!(
        allowed::<OfBits8, Octet>(),
        "ok, but member 'value': a bitmask of 8 bits for the reader, octet from the writer"
    );
    assert_eq!(allowed::<OfUint8, OfUint8>(), "ok");
}

#[test]
fn enums_of_different_extensibility_are_not_assignable() {
    let reason = "member 'value': final enum for the reader, appendable from the writer";
    assert_eq!(allowed::<OfFinalTwo, OfTwo>(), reason);
    assert_eq!(allowed::<OfTwo, OfFinalTwo>(), "member 'value': appendable enum for the reader, final from the writer");
}

#[test]
fn key_flag_within_a_final_structure_is_a_caution() {
    assert_eq!(
        allowed::<OfKeyedFinal, OfUnkeyedFinal>(),
        "ok, but member 'value': member 'a' is a key for the reader only"
    );
    assert_eq!(allowed::<OfKeyedFinal, OfKeyedFinal>(), "ok");
}

#[test]
fn key_type_without_key_members_is_compared_completely() {
    assert_eq!(allowed::<KeyNarrow, KeyWide>(), "member 'value': the reader's type lacks the key member 'z'");
    assert_eq!(allowed::<KeyWide, KeyNarrow>(), "member 'value': the writer's type lacks the key member 'z'");
    assert_eq!(allowed::<KeyWide, KeyWide>(), "ok");
}

#[test]
fn undelimited_types_must_be_identical() {
    let xcdr1 = Rules { representation: Representation::Xcdr1, ..Rules::default() };
    assert_eq!(allowed::<OfInner, OfWideInner>(), "ok");
    assert_eq!(allowed::<OfWideInner, OfInner>(), "ok");
    assert_eq!(verdict::<OfInner, OfWideInner>(&xcdr1), "member 'value': the reader's type lacks the member 'b'");
    assert_eq!(verdict::<Inner, WideInner>(&xcdr1), "ok", "the end of the payload is one");
    assert_eq!(allowed::<OfFinal, OfOtherFinal>(), "member 'value.a': up to 4 for the reader, up to 5 from the writer");
    assert_eq!(allowed::<FinalInner, FinalInnerOfOtherBound>(), "ok", "it is the last thing in the payload");
}

macro_rules! structs {
    ($($name:ident ($extensibility:literal) { $($(($($attribute:tt)*))? $member:ident: $type:ty),* $(,)? })*) => {$(
        #[derive(Clone, Debug, Default, PartialEq, DdsType)]
        #[dds(crate = "takt_xtypes", name = "T", extensibility = $extensibility)]
        pub struct $name {
            $($(#[dds($($attribute)*)])? pub $member: $type,)*
        }
    )*};
}

structs! {
    A1("appendable") { a: i32 }
    A2("appendable") { a: i32, b: String }
    A2Renamed("appendable") { a: i32, c: String }
    A2Swapped("appendable") { (id = 1) b: String, (id = 0) a: i32 }
    A2Key("appendable") { a: i32, (key) b: String }
    A2Must("appendable") { a: i32, (must_understand) b: String }
    F1("final") { a: i32 }
    F2("final") { a: i32, b: String }
    M1("mutable") { (id = 1) a: i32, (id = 2) b: String }
    M2("mutable") { (id = 3) c: u8, (id = 2) b: String, (id = 1) a: i32 }
    M3("mutable") { (id = 1) a: i64, (id = 2) b: String }
    M4("mutable") { (id = 1) b: i32 }
    M5("mutable") { (id = 9) a: i32 }
    M6("mutable") { (id = 8) x: i32 }
    M1Key("mutable") { (id = 1, key) a: i32, (id = 2) b: String }
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "T")]
pub struct A2Optional {
    pub a: i32,
    pub b: Option<String>,
}

#[test]
fn structures_may_grow_according_to_their_extensibility() {
    assert_eq!(allowed::<A1, A2>(), "ok");
    assert_eq!(allowed::<A2, A1>(), "ok");
    assert_eq!(allowed::<F1, F2>(), "the reader's type lacks the member 'b'");
    assert_eq!(allowed::<F2, F1>(), "the writer's type lacks the member 'b'");
    assert_eq!(allowed::<M1, M2>(), "ok", "in any order");
    assert_eq!(allowed::<M2, M1>(), "ok");
    assert_eq!(allowed::<A1, F1>(), "appendable for the reader, final from the writer");
    assert_eq!(allowed::<F1, M1>(), "final for the reader, mutable from the writer");
}

#[test]
fn members_match_by_id_name_and_position() {
    assert_eq!(allowed::<A2, A2Renamed>(), "member 1 is 'b' for the reader, 'c' from the writer");
    let nameless = Rules { ignore_member_names: true, ..Rules::default() };
    assert_eq!(verdict::<A2, A2Renamed>(&nameless), "ok");
    assert_eq!(allowed::<M1, M4>(), "member 'b' has id 2 for the reader, 1 from the writer");
    assert_eq!(allowed::<M1, M5>(), "member 'a' has id 1 for the reader, 9 from the writer");
    assert_eq!(verdict::<M1, M4>(&nameless), "ok");
    assert_eq!(allowed::<M1, M6>(), "no member in common");
    assert_eq!(allowed::<M1, M3>(), "member 'a': int32 for the reader, int64 from the writer");
    assert_eq!(allowed::<A2, A2Optional>(), "member 'b' is optional for the writer only");
    assert_eq!(allowed::<A2, A2Swapped>(), "member number 1 is 'a' for the reader, 'b' from the writer");
}

#[test]
fn key_and_must_understand_members_must_exist_on_both_sides() {
    assert_eq!(allowed::<A1, A2Key>(), "the reader's type lacks the key member 'b'");
    assert_eq!(allowed::<A2Key, A1>(), "the writer's type lacks the key member 'b'");
    assert_eq!(allowed::<A1, A2Must>(), "the reader's type lacks the must_understand member 'b'");
    assert_eq!(allowed::<A2Must, A1>(), "the writer's type lacks the must_understand member 'b'");
    assert_eq!(allowed::<A2Must, A2Must>(), "ok");
    assert_eq!(allowed::<M1Key, M1Key>(), "ok");
}

macro_rules! key_structures {
    ($($name:ident, $of:ident ($extensibility:literal) { $($member:ident: $type:ty),* })*) => {$(
        #[derive(Clone, Debug, Default, PartialEq, DdsType)]
        #[dds(crate = "takt_xtypes", name = "N", nested, extensibility = $extensibility)]
        pub struct $of { $(pub $member: $type,)* }

        #[derive(Clone, Debug, Default, PartialEq, DdsType)]
        #[dds(crate = "takt_xtypes", name = "T")]
        pub struct $name {
            #[dds(key)]
            pub n: $of,
            pub x: i32,
        }
    )*};
}

key_structures! {
    ByTwo, NTwo ("appendable") { x: i32, y: i16 }
    ByThree, NThree ("appendable") { x: i32, y: i16, z: i16 }
    ByMutableTwo, MTwo ("mutable") { x: i32, y: i16 }
    ByMutableThree, MThree ("mutable") { x: i32, y: i16, z: i16 }
}

#[test]
fn key_structure_without_key_members_is_compared_completely() {
    assert_eq!(allowed::<ByTwo, ByTwo>(), "ok");
    assert_eq!(allowed::<ByTwo, ByThree>(), "member 'n': the reader's type lacks the key member 'z'");
    assert_eq!(allowed::<ByThree, ByTwo>(), "member 'n': the writer's type lacks the key member 'z'");
    assert_eq!(allowed::<ByMutableTwo, ByMutableThree>(), "member 'n': the reader's type lacks the key member 'z'");
    assert_eq!(allowed::<ByMutableThree, ByMutableTwo>(), "member 'n': the writer's type lacks the key member 'z'");
}

#[test]
fn widening_can_be_prevented() {
    let narrow = Rules { prevent_type_widening: true, ..Rules::default() };
    assert_eq!(verdict::<A1, A2>(&narrow), "the reader's type lacks the member 'b'");
    assert_eq!(verdict::<A2, A1>(&narrow), "ok", "the writer's type is the narrower one");
    assert_eq!(verdict::<M1, M2>(&narrow), "the reader's type lacks the member 'c'");
    assert_eq!(verdict::<SomeCases, MoreCases>(&narrow), "the reader's type lacks label 3, case 'Truth'");
}

macro_rules! unions {
    ($($name:ident ($($attribute:tt)*) { $($(#[$case:meta])* $variant:ident $(($type:ty))?),* $(,)? })*) => {$(
        #[derive(Clone, Debug, PartialEq, DdsType)]
        #[dds(crate = "takt_xtypes", name = "U", default, $($attribute)*)]
        pub enum $name {
            $($(#[$case])* $variant $(($type))?,)*
        }
    )*};
}

unions! {
    SomeCases(extensibility = "appendable") { #[dds(case = 1)] Number(i32), #[dds(case = 2)] Text(String) }
    MoreCases(extensibility = "appendable") {
        #[dds(case = 1)] Number(i32), #[dds(case = 2)] Text(String), #[dds(case = 3)] Truth(bool),
    }
    OtherNumber(extensibility = "appendable") { #[dds(case = 1)] Number(i16), #[dds(case = 2)] Text(String) }
    OtherName(extensibility = "appendable") { #[dds(case = 1)] Figure(i32), #[dds(case = 2)] Text(String) }
    OtherLabels(extensibility = "appendable") { #[dds(case = 4)] Number(i32), #[dds(case = 5)] Text(String) }
    FinalCases(extensibility = "final") { #[dds(case = 1)] Number(i32), #[dds(case = 2)] Text(String) }
    FinalMore(extensibility = "final") {
        #[dds(case = 1)] Number(i32), #[dds(case = 2)] Text(String), #[dds(case = 3)] Truth(bool),
    }
    FinalDefault(extensibility = "final") {
        #[dds(case = 1)] Number(i32), #[dds(case = 2)] Text(String), #[dds(default)] Rest(bool),
    }
    NumberDefault(extensibility = "appendable") { #[dds(case = 7)] Seven(u8), #[dds(default)] Number(i32) }
    ShortDefault(extensibility = "appendable") { #[dds(case = 7)] Seven(u8), #[dds(default)] Number(i16) }
    Seven(extensibility = "appendable") { #[dds(case = 7)] Seven(u8), #[dds(case = 8)] Number(i32) }
    SevenShort(extensibility = "appendable") { #[dds(case = 7)] Seven(u8), #[dds(case = 8)] Number(i16) }
    ShortLabels(extensibility = "appendable", discriminator = "i16") { #[dds(case = 1)] Number(i32), #[dds(case = 2)] Text(String) }
}

#[test]
fn unions_are_compared_by_the_cases_of_their_labels() {
    assert_eq!(allowed::<SomeCases, MoreCases>(), "ok");
    assert_eq!(allowed::<MoreCases, SomeCases>(), "ok");
    assert_eq!(allowed::<SomeCases, OtherNumber>(), "member 'Number': int32 for the reader, int16 from the writer");
    assert_eq!(allowed::<SomeCases, OtherLabels>(), "no label in common");
    assert!(allowed::<SomeCases, OtherName>().ends_with("is 'Number' for the reader, 'Figure' from the writer"));
    let nameless = Rules { ignore_member_names: true, ..Rules::default() };
    assert_eq!(verdict::<SomeCases, OtherName>(&nameless), "ok");
    assert_eq!(allowed::<FinalCases, FinalMore>(), "the reader's type lacks label 3, case 'Truth'");
    assert_eq!(allowed::<FinalMore, FinalCases>(), "the writer's type lacks label 3, case 'Truth'");
    assert_eq!(allowed::<FinalCases, FinalDefault>(), "a default case for the writer only");
    assert_eq!(allowed::<SomeCases, FinalCases>(), "appendable for the reader, final from the writer");
    assert_eq!(
        allowed::<SomeCases, ShortLabels>(),
        "member 'discriminator': int32 for the reader, int16 from the writer"
    );
}

#[test]
fn default_case_covers_all_other_labels() {
    assert_eq!(allowed::<NumberDefault, NumberDefault>(), "ok");
    assert_eq!(
        allowed::<NumberDefault, ShortDefault>(),
        "member 'Number': int32 for the reader, int16 from the writer"
    );
    assert_eq!(allowed::<NumberDefault, Seven>(), "ok", "label 8 selects the reader's default case");
    assert_eq!(allowed::<NumberDefault, SevenShort>(), "member 'Number': int32 for the reader, int16 from the writer");
    assert_eq!(allowed::<Seven, NumberDefault>(), "ok", "label 8 selects the writer's default case");
    assert_eq!(allowed::<SevenShort, NumberDefault>(), "member 'Number': int16 for the reader, int32 from the writer");
}

mod inheriting {
    use super::DdsType;

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", name = "Base")]
    pub struct Base {
        pub a: i32,
    }

    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(crate = "takt_xtypes", name = "T")]
    pub struct Derived {
        #[dds(base)]
        pub base: Base,
        pub b: String,
    }
}

#[test]
fn inherited_members_are_compared_as_first_members() {
    assert_eq!(allowed::<inheriting::Derived, A2>(), "ok");
    assert_eq!(allowed::<A2, inheriting::Derived>(), "ok");
    assert_eq!(allowed::<A1, inheriting::Derived>(), "ok");
    assert_eq!(allowed::<inheriting::Derived, A2Renamed>(), "member 1 is 'b' for the reader, 'c' from the writer");
}

mod recursive {
    use super::DdsType;

    macro_rules! tree {
        ($name:ident, $leaf:ty $(, $extra:ident)?) => {
            #[derive(Clone, Debug, Default, PartialEq, DdsType)]
            #[dds(crate = "takt_xtypes", name = "Tree")]
            pub struct $name {
                pub leaf: $leaf,
                pub children: Vec<$name>,
                $(pub $extra: i32,)?
            }
        };
    }

    tree!(Tree, i32);
    tree!(WideTree, i32, more);
    tree!(OtherTree, i64);
}

#[test]
fn recursive_types_are_assignable_to_themselves() {
    assert_eq!(allowed::<recursive::Tree, recursive::Tree>(), "ok");
    assert_eq!(allowed::<recursive::Tree, recursive::WideTree>(), "ok");
    assert_eq!(allowed::<recursive::WideTree, recursive::Tree>(), "ok");
    assert_eq!(
        allowed::<recursive::Tree, recursive::OtherTree>(),
        "member 'leaf': int32 for the reader, int64 from the writer"
    );
}

fn is_itself<T: TypeSupport>() {
    for ignore in [false, true] {
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let rules = Rules {
                ignore_sequence_bounds: ignore,
                ignore_string_bounds: ignore,
                ignore_member_names: ignore,
                prevent_type_widening: !ignore,
                representation,
            };
            assert_eq!(verdict::<T, T>(&rules), "ok", "{} with {rules:?}", std::any::type_name::<T>());
        }
    }
    assert_eq!(in_all_forms::<T, T>(is_equivalent), Ok(Vec::new()), "{}", std::any::type_name::<T>());
}

#[test]
fn every_type_is_assignable_to_itself() {
    is_itself::<zoo::ShapeType>();
    is_itself::<zoo::Primitives>();
    is_itself::<zoo::Grown>();
    is_itself::<zoo::Enums>();
    is_itself::<zoo::Collections>();
    is_itself::<zoo::FinalUnion>();
    is_itself::<zoo::AppendableUnion>();
    is_itself::<zoo::MutableUnion>();
    is_itself::<zoo::Unions>();
    is_itself::<zoo::FinalOptional>();
    is_itself::<zoo::AppendableOptional>();
    is_itself::<zoo::Mutable>();
    is_itself::<zoo::Nested>();
    is_itself::<zoo::Derived>();
    is_itself::<zoo::Keyed>();
    is_itself::<zoo::MutableKeyed>();
    is_itself::<zoo::Tree>();
    is_itself::<zoo::Empty>();
    is_itself::<zoo::OnlyBase>();
    is_itself::<zoo::Exotic>();
}

#[test]
fn equivalence_is_stricter_than_assignability() {
    let equivalent = |result: Result<Vec<Caution>, Inassignable>| result.map_err(|reason| reason.to_string());
    assert_eq!(equivalent(in_all_forms::<A2, A2>(is_equivalent)), Ok(Vec::new()));
    let differs = |words: &str| Err(words.to_owned());
    assert_eq!(equivalent(in_all_forms::<A1, A2>(is_equivalent)), differs("the reader's type lacks the member 'b'"));
    assert_eq!(
        equivalent(in_all_forms::<Text4, Text8>(is_equivalent)),
        differs("member 'value': up to 4 for the reader, up to 8 from the writer")
    );
    assert_eq!(
        equivalent(in_all_forms::<OfTwo, OfThree>(is_equivalent)),
        differs("member 'value': literal C is not in the reader's type")
    );
    assert_eq!(
        equivalent(in_all_forms::<M1, M1Key>(is_equivalent)),
        differs("member 'a' is a key for the writer only")
    );
}

#[test]
fn missing_definition_is_reported() {
    let (mut all, none) = (TypeRegistry::new(), TypeRegistry::new());
    let information = A1::type_information(&mut all);
    let id = &information.complete.type_id;
    let other = A2::type_information(&mut TypeRegistry::new());
    let unknown = TypeRef { identifier: &other.complete.type_id, types: &none };
    let result = is_assignable(TypeRef { identifier: id, types: &all }, unknown, &Rules::default());
    assert_eq!(result, Err(Inassignable::Undefined { identifier: other.complete.type_id.clone() }));
}

#[test]
fn comparison_of_malicious_types_is_bounded() {
    // A structure with many members that inherits from itself, as a malicious peer may send it.
    let (mut own, mut hostile) = (TypeRegistry::new(), TypeRegistry::new());
    let reader = recursive::Tree::type_information(&mut own);
    let writer = recursive::WideTree::type_information(&mut hostile);
    let root = &writer.complete.type_id;
    let bytes = hostile.get(root).expect("just described").to_bytes();
    // Definitions damaged byte by byte under the correct identifier. Members of a component are not
    // verified.
    let mut outcomes = [0_usize; 2];
    for at in 0..bytes.len() {
        for flip in [0x01, 0x10, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            let Ok(object) = TypeObject::parse(&damaged) else { continue };
            let mut types = TypeRegistry::new();
            if types.insert_as(root, object).is_err() {
                continue;
            }
            let reader = TypeRef { identifier: &reader.complete.type_id, types: &own };
            let result = is_assignable(reader, TypeRef { identifier: root, types: &types }, &Rules::default());
            outcomes[usize::from(result.is_ok())] += 1;
        }
    }
    assert!(outcomes[0] > 20 && outcomes[1] > 0, "{outcomes:?} of at most {MAX_STEPS} steps each");
}
