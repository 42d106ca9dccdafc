//! Random values of every test type, from a seed.

use std::collections::BTreeMap;

pub use takt_testkit::Random as Rng;
use takt_xtypes::{Bounded, CdrValue, Char8, Char16, WString};

use crate::zoo::*;

pub trait Random: Sized {
    fn random(rng: &mut Rng) -> Self;
}

macro_rules! random_integers {
    ($($type:ty),*) => {$(
        impl Random for $type {
            fn random(rng: &mut Rng) -> Self {
                rng.next() as $type
            }
        }
    )*};
}

random_integers!(u8, i8, u16, i16, u32, i32, u64, i64);

impl Random for bool {
    fn random(rng: &mut Rng) -> Self {
        rng.below(2) == 1
    }
}

impl Random for f32 {
    fn random(rng: &mut Rng) -> Self {
        rng.next() as i32 as f32 / 3.0
    }
}

impl Random for f64 {
    fn random(rng: &mut Rng) -> Self {
        rng.next() as i64 as f64 / 3.0
    }
}

impl Random for Char8 {
    fn random(rng: &mut Rng) -> Self {
        Self(rng.next() as u8)
    }
}

impl Random for Char16 {
    fn random(rng: &mut Rng) -> Self {
        Self(rng.next() as u16)
    }
}

impl Random for String {
    fn random(rng: &mut Rng) -> Self {
        let letters = ['a', 'Z', ' ', 'é', '水', '🦀'];
        (0..rng.below(6)).map(|_| letters[rng.below(letters.len())]).collect()
    }
}

impl Random for WString {
    fn random(rng: &mut Rng) -> Self {
        Self::from(String::random(rng).as_str())
    }
}

impl<const N: usize> Random for Bounded<String, N> {
    fn random(rng: &mut Rng) -> Self {
        Self((0..rng.below(N + 1)).map(|_| 'b').collect())
    }
}

impl<T: Random> Random for Vec<T> {
    fn random(rng: &mut Rng) -> Self {
        (0..rng.below(5)).map(|_| T::random(rng)).collect()
    }
}

impl<T: Random, const N: usize> Random for [T; N] {
    fn random(rng: &mut Rng) -> Self {
        std::array::from_fn(|_| T::random(rng))
    }
}

impl<K: Random + Ord, V: Random> Random for BTreeMap<K, V> {
    fn random(rng: &mut Rng) -> Self {
        (0..rng.below(5)).map(|_| (K::random(rng), V::random(rng))).collect()
    }
}

impl<T: Random> Random for Option<T> {
    fn random(rng: &mut Rng) -> Self {
        bool::random(rng).then(|| T::random(rng))
    }
}

impl<T: Random> Random for Box<T> {
    fn random(rng: &mut Rng) -> Self {
        Self::new(T::random(rng))
    }
}

macro_rules! random_structs {
    ($($type:ident { $($field:ident),* })*) => {$(
        impl Random for $type {
            fn random(rng: &mut Rng) -> Self {
                Self { $($field: Random::random(rng)),* }
            }
        }
    )*};
}

random_structs! {
    ShapeType { color, x, y, shapesize, additional_payload_size }
    Primitives { flag, i64, octet, double, i16, i32, letter, u16, float, i8, u32, u64 }
    Point { x, y }
    Grown { name, count }
    Enums { small, color, middle, mask, wide, colors, smalls }
    Collections {
        shorts, longs, flags, names, fixed, words, matrix, table, points, grown, nested, empty, last
    }
    Unions { lead, a, b, c, d, e, f }
    FinalOptional { lead, number, wide, text, point, last }
    AppendableOptional { lead, number, wide, text, grown, last }
    Mutable {
        octet, i16, i32, i64, text, octets, ints, longs, shorts, names, point, grown, fixed, words, color, absent,
        present
    }
    Nested { lead, grown, mutable, tail }
    Base { id, name }
    Derived { base, extra }
    OnlyBase { base }
    Inner { ignored, high, low }
    Keyed { text, late, inner, early, point }
    MutableKeyed { text, id, name, flag }
    Exotic { wide, letters, numbers, words, short, boxed, union, unions, masks, collections, optional }
}

impl Random for Color {
    fn random(rng: &mut Rng) -> Self {
        [Self::Red, Self::Green, Self::Blue][rng.below(3)]
    }
}

impl Random for Small {
    fn random(rng: &mut Rng) -> Self {
        [Self::One, Self::Two][rng.below(2)]
    }
}

impl Random for Middle {
    fn random(rng: &mut Rng) -> Self {
        [Self::Low, Self::High][rng.below(2)]
    }
}

impl Random for Mask8 {
    fn random(rng: &mut Rng) -> Self {
        Self(Random::random(rng))
    }
}

impl Random for Mask64 {
    fn random(rng: &mut Rng) -> Self {
        Self(Random::random(rng))
    }
}

impl Random for FinalUnion {
    fn random(rng: &mut Rng) -> Self {
        match rng.below(4) {
            0 => Self::Radius(Random::random(rng)),
            1 => Self::Label(Random::random(rng)),
            2 => Self::Point(Random::random(rng)),
            _ => Self::Other(Random::random(rng)),
        }
    }
}

impl Random for AppendableUnion {
    fn random(rng: &mut Rng) -> Self {
        match rng.below(3) {
            0 => Self::Radius(Random::random(rng)),
            1 => Self::Grown(Random::random(rng)),
            _ => Self::Nothing,
        }
    }
}

impl Random for MutableUnion {
    fn random(rng: &mut Rng) -> Self {
        match rng.below(3) {
            0 => Self::Number(Random::random(rng)),
            1 => Self::Text(Random::random(rng)),
            _ => Self::Nothing,
        }
    }
}

impl Random for Tree {
    fn random(rng: &mut Rng) -> Self {
        let children =
            if rng.below(2) == 0 { Vec::new() } else { (0..rng.below(3)).map(|_| Self::random(rng)).collect() };
        let other = (rng.below(3) == 0).then(|| Box::new(Self::random(rng)));
        Self { value: Random::random(rng), children, other }
    }
}

/// Runs a check for every top-level type of the module `zoo`.
pub trait ForEachType {
    fn visit<T>(&mut self)
    where
        T: takt_xtypes::TypeSupport + CdrValue + Random + PartialEq + Clone + std::fmt::Debug;
}

pub fn for_each_type(check: &mut impl ForEachType) {
    check.visit::<ShapeType>();
    check.visit::<Primitives>();
    check.visit::<Point>();
    check.visit::<Grown>();
    check.visit::<Enums>();
    check.visit::<Collections>();
    check.visit::<FinalUnion>();
    check.visit::<AppendableUnion>();
    check.visit::<MutableUnion>();
    check.visit::<Unions>();
    check.visit::<FinalOptional>();
    check.visit::<AppendableOptional>();
    check.visit::<Mutable>();
    check.visit::<Nested>();
    check.visit::<Derived>();
    check.visit::<OnlyBase>();
    check.visit::<Keyed>();
    check.visit::<MutableKeyed>();
    check.visit::<Tree>();
    check.visit::<Exotic>();
}
