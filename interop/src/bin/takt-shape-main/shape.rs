//! The suite's type, and how a shape moves.

use std::hash::{BuildHasher, Hasher, RandomState};

use takt::DdsType;
use takt::xtypes::Uint8;

/// A coloured shape on a canvas; the color is the key.
#[derive(DdsType, Clone, Debug, Default, PartialEq, Eq)]
#[dds(name = "ShapeType", extensibility = "appendable")]
pub struct ShapeType {
    /// Which shape.
    #[dds(key, bound = 128)]
    pub color: String,
    /// From the left edge.
    pub x: i32,
    /// From the upper edge.
    pub y: i32,
    /// Edge length.
    pub shapesize: i32,
    /// Ballast.
    pub additional_payload_size: Vec<Uint8>,
}

/// The canvas: positions are from 0 to below these.
const WIDTH: i32 = 240;
const HEIGHT: i32 = 270;
/// Longest way in one iteration, on each axis.
const SPEED_MAX: u64 = 5;

/// A position that moves in straight lines and bounces off the edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Motion {
    x: Axis,
    y: Axis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Axis {
    position: i32,
    velocity: i32,
    end: i32,
}

impl Motion {
    /// Starts anywhere, in any direction.
    pub fn random() -> Self {
        let mut bits = RandomState::new().build_hasher().finish();
        let mut below = |end: u64| {
            let value = bits % end;
            bits /= end;
            i32::try_from(value).expect("the ends are small")
        };
        let mut axis = |end: i32| {
            let position = below(end.unsigned_abs().into());
            let speed = 1 + below(SPEED_MAX);
            Axis { position, velocity: if below(2) == 0 { speed } else { -speed }, end }
        };
        Self { x: axis(WIDTH), y: axis(HEIGHT) }
    }

    /// One iteration later.
    pub fn advance(&mut self) {
        self.x.advance();
        self.y.advance();
    }

    /// Where it is.
    pub fn position(&self) -> (i32, i32) {
        (self.x.position, self.y.position)
    }
}

impl Axis {
    fn advance(&mut self) {
        self.position += self.velocity;
        if self.position < 0 {
            self.position = -self.position;
            self.velocity = -self.velocity;
        } else if self.position >= self.end {
            self.position = 2 * (self.end - 1) - self.position;
            self.velocity = -self.velocity;
        }
    }
}

/// The size after this one, for shapes that grow: without end, or from 1 to `modulo` and again.
pub fn next_size(size: i32, modulo: i32) -> i32 {
    if modulo > 0 { size % modulo + 1 } else { size.wrapping_add(1).max(1) }
}

/// The `index`-th of several names: the name itself, then with numbers from 1.
pub fn numbered(name: &str, index: u32) -> String {
    if index == 0 { name.to_owned() } else { format!("{name}{index}") }
}

#[cfg(test)]
mod tests {
    use takt::dynamic::DynamicTypeSupport;

    use super::*;

    /// INTEROP(CycloneDDS 11): does not match a sequence of `octet` with one of `uint8`, as the suite's IDL has it.
    #[test]
    fn the_type_is_that_of_the_suite() {
        let support = DynamicTypeSupport::of::<ShapeType>().expect("it has type objects");
        let idl = support.dynamic_type().map(|type_| type_.to_idl()).unwrap_or_default();
        let members = ["@key string<128> color;", "long x;", "long y;", "long shapesize;"];
        let last = "sequence<uint8> additional_payload_size;";
        assert!(idl.contains("@appendable struct ShapeType {"), "{idl}");
        assert!(members.iter().chain([&last]).all(|member| idl.contains(member)), "{idl}");
    }

    #[test]
    fn a_shape_stays_on_its_canvas_and_moves() {
        for _ in 0..50 {
            let mut motion = Motion::random();
            for _ in 0..1000 {
                let before = motion.clone();
                motion.advance();
                let (x, y) = motion.position();
                assert!((0..WIDTH).contains(&x) && (0..HEIGHT).contains(&y), "{motion:?}");
                // In a corner it may come back to where it was, with another direction.
                assert_ne!(motion, before);
            }
        }
    }

    #[test]
    fn sizes_grow_from_one_and_start_again_after_the_modulo() {
        let sizes = |modulo| {
            let mut size = 0;
            std::iter::repeat_with(move || {
                size = next_size(size, modulo);
                size
            })
        };
        assert_eq!(sizes(0).take(4).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(sizes(3).take(7).collect::<Vec<_>>(), [1, 2, 3, 1, 2, 3, 1]);
        assert_eq!(next_size(i32::MAX, 0), 1, "never zero or below");
    }

    #[test]
    fn names_are_numbered_from_the_second_on() {
        let names: Vec<String> = (0..3).map(|index| numbered("BLUE", index)).collect();
        assert_eq!(names, ["BLUE", "BLUE1", "BLUE2"]);
    }
}
