//! Demo of Takt in two parts. First, Takt and CycloneDDS exchange data. Then a pair of each product
//! runs under an overload of its link, without and with the OpenFlow controller, and the controller
//! refuses a third pair.
//!
//! `takt-demo [PAGE]` writes the measurements to an HTML page. The second part needs root and Open
//! vSwitch. Without them it is skipped, and the exit code is 3. The exit code is 1 if samples were
//! lost that must arrive.

mod exchange;
mod overload;
mod pair;
mod screen;

use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code if the second part is skipped.
const SKIPPED: u8 = 3;

fn main() -> ExitCode {
    let page = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "takt-demo.html".to_owned()));
    println!("1. Takt and CycloneDDS feed each other\n");
    match exchange::run() {
        Ok(true) => {}
        Ok(false) => return failed("not every sample arrived as it was written"),
        Err(error) => return failed(&error.to_string()),
    }
    println!("\n2. The network keeps the promise\n");
    match overload::run(&page) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => failed("admitted pairs lost samples, or the overload did no harm without the controller"),
        Err(takt_interop::Error::Unavailable(why)) => {
            println!("left out: {why}");
            ExitCode::from(SKIPPED)
        }
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("\nthe demo failed: {why}");
    ExitCode::FAILURE
}
