//! Enumerations and unions that have no IDL equivalent.
use takt_derive::DdsType;

#[derive(DdsType)]
#[dds(crate = "takt_xtypes", bit_bound = 33)]
enum Wide {
    A,
}

#[derive(DdsType)]
#[dds(crate = "takt_xtypes", bit_bound = 8)]
enum TooGreat {
    A = 127,
    B,
}

#[derive(DdsType)]
#[dds(crate = "takt_xtypes")]
enum TwoDefaults {
    #[dds(default)]
    A,
    #[dds(default)]
    B,
}

#[derive(DdsType)]
#[dds(crate = "takt_xtypes")]
enum Empty {}

#[derive(DdsType)]
#[dds(crate = "takt_xtypes", default)]
enum NoLabel {
    #[dds(case = 1)]
    A(i32),
    B(u8),
}

#[derive(DdsType)]
#[dds(crate = "takt_xtypes", default)]
enum SameLabel {
    #[dds(case = [1, 2])]
    A(i32),
    #[dds(case = 2)]
    B(u8),
}

#[derive(DdsType)]
#[dds(crate = "takt_xtypes", default)]
enum TwoMembers {
    #[dds(case = 1)]
    A(i32, i32),
}

#[derive(DdsType)]
#[dds(crate = "takt_xtypes", default, discriminator = "bool")]
enum WhichLabel {
    #[dds(case = true)]
    A(i32),
    #[dds(default)]
    B,
}

fn main() {}
