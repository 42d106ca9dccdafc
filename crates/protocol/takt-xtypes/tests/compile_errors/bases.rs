//! Structs that are incompatible with their base.
use takt_derive::DdsType;

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct Base {
    a: i32,
    b: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct OtherExtensibility {
    #[dds(base)]
    base: Base,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct TakenId {
    #[dds(base)]
    base: Base,
    next: i32,
    #[dds(id = 1)]
    taken: i32,
}

fn main() {}
