//! The record of a test that could not run.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Environment variable that names the file to which [`not_run`] appends. The runner sets it.
///
/// Participants heed no variable that begins with `TAKT_TEST_`, and do not warn of it.
pub const RECORDS_VARIABLE: &str = "TAKT_TEST_NOT_RUN";

/// Reports that the current test cannot run, and why. The test returns right after it:
///
/// ```
/// # use takt_testkit::{not_run, require};
/// # fn example() {
/// if let Err(why) = require::root() {
///     return not_run(why);
/// }
/// # }
/// ```
///
/// Call it from the test's own thread, whose name is the test's. Under `cargo xtask test` it appends one line
/// (`test<TAB>reason`) to the file that [`RECORDS_VARIABLE`] names; else it writes `NOT RUN: test: reason` to standard error,
/// past libtest's capture.
///
/// # Panics
///
/// If the line cannot be written: a skip that is not recorded would count as a pass.
pub fn not_run(reason: impl Display) {
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    let reason = reason.to_string().replace(['\n', '\t'], " ");
    let Some(path) = std::env::var_os(RECORDS_VARIABLE) else {
        // `eprintln!` would be captured.
        writeln!(std::io::stderr(), "NOT RUN: {test}: {reason}").expect("standard error takes a line");
        return;
    };
    let mut records =
        OpenOptions::new().append(true).create(true).open(&path).expect("the runner's file can be opened");
    // One write: the tests of one program append to the same file.
    records.write_all(format!("{test}\t{reason}\n").as_bytes()).expect("the runner's file takes a line");
}
