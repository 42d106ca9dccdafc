//! Structs that have no IDL equivalent.
use takt_derive::DdsType;

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct Generic<T> {
    value: T,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct Tuple(i32, i32);

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct OptionalKey {
    #[dds(key)]
    id: Option<i32>,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct OptionalWithout {
    #[dds(optional)]
    id: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct SameIds {
    #[dds(id = 1)]
    a: i32,
    #[dds(id = 0)]
    b: i32,
    c: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct Base {
    a: i32,
}

#[derive(Default, DdsType)]
#[dds(crate = "takt_xtypes")]
struct LateBase {
    b: i32,
    #[dds(base)]
    base: Base,
}

#[derive(DdsType)]
#[dds(crate = "takt_xtypes")]
union Overlay {
    a: i32,
    b: u32,
}

fn main() {}
