//! Labs with names of their own.

use takt_lab::{Lab, LabFile};

/// The name of a lab of one test of this process.
pub fn name(test: &str) -> String {
    format!("test-{test}-{}", std::process::id())
}

/// A file under that name.
pub fn file(test: &str, text: &str) -> LabFile {
    format!("name = \"{}\"\n{text}", name(test)).parse().expect("the network can be made")
}

/// A lab under that name.
pub fn up(test: &str, text: &str) -> Lab {
    Lab::up(&file(test, text)).unwrap_or_else(|why| panic!("{why}"))
}

/// Two hosts at a switch.
pub const ONE_SWITCH: &str = r#"
    [[classes]]
    name = "urgent"
    dscp = [46]
    frames = 64
    [[classes]]
    name = "other"
    frames = 256
    [hosts.left]
    eth0 = ["10.7.0.1/24", "fd07::1/64"]
    [hosts.right]
    eth0 = ["10.7.0.2/24", "fd07::2/64"]
    [switches.s1]
    [[links]]
    ends = ["left:eth0", "s1"]
    [[links]]
    ends = ["s1", "right:eth0"]
    rate = "20 Mbit/s"
"#;
