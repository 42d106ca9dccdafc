//! Labs with unique names for tests.

use takt_lab::{Lab, LabFile};
use takt_testkit::lab_text::{LabText, TWO_CLASSES, lab_name};

/// Returns the lab name of one test of this process.
pub fn name(test: &str) -> String {
    lab_name(&format!("test-{test}"))
}

/// Returns a lab file with that name.
pub fn file(test: &str, text: &str) -> LabFile {
    format!("name = \"{}\"\n{text}", name(test)).parse().expect("success")
}

/// Creates a lab with that name.
pub fn up(test: &str, text: &str) -> Lab {
    Lab::up(&file(test, text)).unwrap_or_else(|why| panic!("{why}"))
}

/// Returns the text of two hosts at a switch.
pub fn one_switch() -> String {
    let text = LabText::of(&["s1"]).classes(TWO_CLASSES).host("left", "10.7.0.1/24 fd07::1/64", "s1");
    text.host_of_rate("right", "10.7.0.2/24 fd07::2/64", "s1", "20 Mbit/s").body()
}
