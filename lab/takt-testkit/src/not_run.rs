//! Record of a test that could not run.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Environment variable that names the file to which [`not_run`] appends. The runner sets it.
///
/// Participants ignore variables that begin with `TAKT_TEST_`, without a warning.
pub const RECORDS_VARIABLE: &str = "TAKT_TEST_NOT_RUN";

/// Reports that the current test cannot run, with the reason. The test returns immediately
/// afterward:
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
/// Call it from the test's own thread, which is named after the test. Under `cargo xtask test` it
/// appends one line (`test<TAB>reason`) to the file that [`RECORDS_VARIABLE`] names; otherwise it
/// writes `NOT RUN: test: reason` to standard error, bypassing libtest's capture.
///
/// # Panics
///
/// The line cannot be written: an unrecorded skip would count as a pass.
pub fn not_run(reason: impl Display) {
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    let reason = reason.to_string().replace(['\n', '\t'], " ");
    let Some(path) = std::env::var_os(RECORDS_VARIABLE) else {
        // libtest captures `eprintln!`.
        writeln!(std::io::stderr(), "NOT RUN: {test}: {reason}").expect("standard error accepts a line");
        return;
    };
    let mut records =
        OpenOptions::new().append(true).create(true).open(&path).expect("the runner's file can be opened");
    // A single write: the tests of one program append to the same file.
    records.write_all(format!("{test}\t{reason}\n").as_bytes()).expect("the runner file accepts a line");
}
