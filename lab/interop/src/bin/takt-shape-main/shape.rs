//! Topic type of the suite, and the motion of a shape.

use std::hash::{BuildHasher, Hasher, RandomState};

use takt::DdsType;
use takt::xtypes::Uint8;

/// A colored shape on a canvas. The color is the key.
#[derive(DdsType, Clone, Debug, Default, PartialEq, Eq)]
#[dds(name = "ShapeType", extensibility = "appendable")]
pub struct ShapeType {
    /// Color, the key.
    #[dds(key, bound = 128)]
    pub color: String,
    /// Distance from the left edge.
    pub x: i32,
    /// Distance from the upper edge.
    pub y: i32,
    /// Edge length.
    pub shapesize: i32,
    /// Additional payload.
    pub additional_payload_size: Vec<Uint8>,
}

/// Size of the canvas. Positions are below these values.
const WIDTH: i32 = 240;
const HEIGHT: i32 = 270;
/// Maximum distance per iteration, on each axis.
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
    /// Starts at a random position in a random direction.
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

    /// Advances by one iteration.
    pub fn advance(&mut self) {
        self.x.advance();
        self.y.advance();
    }

    /// Returns the current position.
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

/// Returns the next size of a growing shape. With `modulo` the size restarts at 1 after `modulo`,
/// otherwise it grows without limit.
pub fn next_size(size: i32, modulo: i32) -> i32 {
    if modulo > 0 { size % modulo + 1 } else { size.wrapping_add(1).max(1) }
}

/// Returns the `index`-th of several names: the name itself, then the name with numbers from 1.
pub fn numbered(name: &str, index: u32) -> String {
    if index == 0 { name.to_owned() } else { format!("{name}{index}") }
}

#[cfg(test)]
mod tests {
    use takt::dynamic::DynamicTypeSupport;

    use super::*;

    /// INTEROP(CycloneDDS 11): does not match a sequence of `octet` with a sequence of `uint8`,
    /// which the suite's IDL uses.
    #[test]
    fn type_matches_the_idl_of_the_suite() {
        let support = DynamicTypeSupport::of::<ShapeType>().expect("it has type objects");
        let idl = support.dynamic_type().map(|type_| type_.to_idl()).unwrap_or_default();
        let members = ["@key string<128> color;", "long x;", "long y;", "long shapesize;"];
        let last = "sequence<uint8> additional_payload_size;";
        assert!(idl.contains("@appendable struct ShapeType {"), "{idl}");
        assert!(members.iter().chain([&last]).all(|member| idl.contains(member)), "{idl}");
    }

    #[test]
    fn shape_moves_within_its_canvas() {
        for _ in 0..50 {
            let mut motion = Motion::random();
            for _ in 0..1000 {
                let before = motion.clone();
                motion.advance();
                let (x, y) = motion.position();
                assert!((0..WIDTH).contains(&x) && (0..HEIGHT).contains(&y), "{motion:?}");
                // In a corner the position may repeat, with another direction.
                assert_ne!(motion, before);
            }
        }
    }

    #[test]
    fn sizes_grow_from_one_and_restart_after_the_modulo() {
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
