//! Test types of every kind. The names, members and ids equal those of tests/vectors/generate.py.

use std::collections::BTreeMap;

use takt_derive::DdsType;
use takt_xtypes::{Bounded, Char8, Char16, WString, bitmask};

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
pub struct ShapeType {
    #[dds(key, bound = 128)]
    pub color: String,
    pub x: i32,
    pub y: i32,
    pub shapesize: i32,
    pub additional_payload_size: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
pub struct Primitives {
    pub flag: bool,
    pub i64: i64,
    pub octet: u8,
    pub double: f64,
    pub i16: i16,
    pub i32: i32,
    pub letter: Char8,
    pub u16: u16,
    pub float: f32,
    pub i8: i8,
    pub u32: u32,
    pub u64: u64,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
pub struct Point {
    pub x: i32,
    pub y: f64,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
pub struct Grown {
    pub name: String,
    pub count: i8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, DdsType)]
#[dds(crate = "takt_xtypes")]
pub enum Color {
    #[default]
    Red,
    Green,
    Blue = 7,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", bit_bound = 8)]
pub enum Small {
    #[default]
    One = 1,
    Two,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", bit_bound = 16)]
pub enum Middle {
    #[default]
    Low,
    High = 300,
}

bitmask! {
    /// Three flags in a byte.
    pub struct Mask8: u8 {
        /// The first.
        const A = 0;
        /// The second.
        const B = 1;
        /// The third.
        const C = 2;
    }
}

bitmask! {
    /// Flags far apart.
    pub struct Mask64: u64 {
        /// Lowest.
        const LOW = 0;
        /// High.
        const HIGH = 31;
    }
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
pub struct Enums {
    pub small: Small,
    pub color: Color,
    pub middle: Middle,
    pub mask: Mask8,
    pub wide: Mask64,
    pub colors: Vec<Color>,
    pub smalls: [Small; 3],
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
pub struct Collections {
    pub shorts: Vec<i16>,
    pub longs: Vec<i64>,
    pub flags: Vec<bool>,
    pub names: Vec<String>,
    pub fixed: [i32; 3],
    pub words: [String; 2],
    pub matrix: [[f64; 2]; 3],
    pub table: [[String; 2]; 2],
    pub points: Vec<Point>,
    pub grown: Vec<Grown>,
    pub nested: Vec<Vec<i32>>,
    pub empty: Vec<i64>,
    pub last: u8,
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final", default)]
pub enum FinalUnion {
    #[dds(case = 1)]
    Radius(f64),
    #[dds(case = [2, 3])]
    Label(String),
    #[dds(case = 4)]
    Point(Point),
    #[dds(default)]
    Other(i16),
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", discriminator = "Color", default)]
pub enum AppendableUnion {
    #[dds(case = Color::Red)]
    Radius(f64),
    #[dds(case = Color::Blue)]
    Grown(Grown),
    #[dds(case = Color::Green)]
    Nothing,
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", discriminator = "u8", extensibility = "mutable", default, key)]
pub enum MutableUnion {
    #[dds(case = 1)]
    Number(u16),
    #[dds(case = 2, id = 9)]
    Text(String),
    #[dds(default)]
    Nothing,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
pub struct Unions {
    pub lead: u8,
    pub a: FinalUnion,
    pub b: FinalUnion,
    pub c: FinalUnion,
    pub d: FinalUnion,
    pub e: AppendableUnion,
    pub f: AppendableUnion,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
pub struct FinalOptional {
    pub lead: u8,
    pub number: Option<i32>,
    pub wide: Option<f64>,
    #[dds(optional)]
    pub text: Option<String>,
    pub point: Option<Point>,
    pub last: i16,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
pub struct AppendableOptional {
    pub lead: u8,
    pub number: Option<i32>,
    pub wide: Option<f64>,
    #[dds(bound = 100)]
    pub text: Option<String>,
    pub grown: Option<Grown>,
    pub last: i16,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "mutable")]
pub struct Mutable {
    pub octet: u8,
    #[dds(id = 10)]
    pub i16: i16,
    pub i32: i32,
    pub i64: i64,
    #[dds(must_understand)]
    pub text: String,
    #[dds(id = 0x3f00)]
    pub octets: Vec<u8>,
    pub ints: Vec<i32>,
    pub longs: Vec<i64>,
    pub shorts: Vec<i16>,
    pub names: Vec<String>,
    #[dds(id = 5)]
    pub point: Point,
    pub grown: Grown,
    pub fixed: [i32; 3],
    pub words: [String; 2],
    #[dds(id = 16)]
    pub color: Color,
    pub absent: Option<i32>,
    pub present: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
pub struct Nested {
    pub lead: u8,
    pub grown: Grown,
    pub mutable: Mutable,
    pub tail: u64,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
pub struct Base {
    #[dds(key)]
    pub id: i32,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "zoo::Derived")]
pub struct Derived {
    #[dds(base)]
    pub base: Base,
    pub extra: f64,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
pub struct Inner {
    pub ignored: String,
    #[dds(key, id = 9)]
    pub high: i64,
    #[dds(key, id = 3)]
    pub low: i16,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
pub struct Keyed {
    pub text: String,
    #[dds(key, id = 20)]
    pub late: i64,
    #[dds(key, id = 4)]
    pub inner: Inner,
    #[dds(key, id = 2)]
    pub early: i32,
    #[dds(key, id = 30)]
    pub point: Point,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "mutable")]
pub struct MutableKeyed {
    pub text: String,
    #[dds(key)]
    pub id: i64,
    #[dds(key)]
    pub name: String,
    pub flag: u8,
}

/// Recursive type, through a sequence and through an optional box.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
pub struct Tree {
    pub value: i32,
    pub children: Vec<Tree>,
    pub other: Option<Box<Tree>>,
}

/// Struct without members.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
pub struct Empty {}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes")]
pub struct OnlyBase {
    #[dds(base)]
    pub base: Derived,
}

/// Type with features that the peer does not support: wide text, maps, bounds within collections,
/// mutable unions.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "mutable", autoid = "hash")]
pub struct Exotic {
    pub wide: WString,
    pub letters: Vec<Char16>,
    #[dds(bound = 4)]
    pub numbers: BTreeMap<u32, f64>,
    pub words: BTreeMap<String, Vec<Color>>,
    pub short: Vec<Bounded<String, 8>>,
    pub boxed: Box<Point>,
    pub union: MutableUnion,
    pub unions: Vec<MutableUnion>,
    pub masks: Vec<Mask64>,
    #[dds(hashid = "renamed")]
    pub collections: Collections,
    pub optional: AppendableOptional,
}
