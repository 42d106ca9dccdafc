//! Attributes that are unknown, misplaced or malformed.
use takt_derive::DdsType;

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes", colour = "red")]
struct UnknownOnType {
    x: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct UnknownOnField {
    #[dds(primary_key)]
    x: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "open")]
struct WrongExtensibility {
    x: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes", name = "no good")]
struct WrongName {
    x: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes", bit_bound = 8)]
struct Misplaced {
    x: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct GreatId {
    #[dds(id = 0x1000_0000)]
    x: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes", rename_all = "kebab-case")]
struct NoConvention {
    x: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct OneNameTwice {
    x: i32,
    #[dds(name = "x")]
    y: i32,
}

fn main() {}
