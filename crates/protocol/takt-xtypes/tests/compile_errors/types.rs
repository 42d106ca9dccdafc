//! Members whose types have no encoding, and a topic type without a default.
use takt_derive::DdsType;

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes", nested)]
struct Character {
    letter: char,
}

#[derive(DdsType)]
#[dds(crate = "takt_xtypes")]
struct NoDefault {
    x: i32,
}

fn main() {}
