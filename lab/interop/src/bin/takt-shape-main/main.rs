//! `takt-shape-main`: the application of the OMG's DDS-RTPS interoperability suite, for Takt.
//!
//! Runs one publisher or subscriber of colored shapes with the policies of its command line, and
//! prints the lines that the suite's harness matches. `docs/reference/interop.md` explains how to
//! run the suite. Written from the behavior of the harness, without any of its text.
//!
//! Exit codes: 0 success, 1 wrong usage, 2 an entity cannot be created or a feature is missing, 3
//! later failure.

mod arguments;
mod lines;
mod options;
mod output;
mod publish;
mod session;
mod shape;
mod subscribe;

use std::io::stdout;
use std::process::ExitCode;
use std::time::Duration;

use options::{Command, Role};
use output::Output;
use session::{Failure, Session};
use takt_bench::signal;

/// Maximum time that the exit waits for the reader of standard output.
const LAST_LINES_MAX: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    signal::install();
    let (options, warnings) = match options::parse(std::env::args().skip(1)) {
        Ok(Command::Help) => {
            print!("{}", options::usage());
            return ExitCode::SUCCESS;
        }
        Ok(Command::Run(options, warnings)) => (*options, warnings),
        Err(what) => {
            eprintln!("takt-shape-main: {what}\n{}", options::usage());
            return ExitCode::from(1);
        }
    };
    let output = match Output::start(stdout()) {
        Ok(output) => output,
        Err(error) => {
            eprintln!("takt-shape-main: cannot start a thread: {error}");
            return ExitCode::from(2);
        }
    };
    warnings.into_iter().for_each(|warning| output.report(warning));
    let code = match run(options, &output) {
        Ok(()) => {
            output.report("Done.".to_owned());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            output.report(failure.what);
            ExitCode::from(failure.exit_code)
        }
    };
    output.drain(LAST_LINES_MAX);
    code
}

/// Runs the application except for the first and last lines of output. All entities are deleted on
/// return.
fn run(options: options::Options, output: &Output) -> Result<(), Failure> {
    let session = Session::open(options, output.clone())?;
    match session.options.role {
        Role::Publisher => publish::run(&session)?,
        Role::Subscriber => subscribe::run(&session)?,
    }
    session.participant.close().map_err(Failure::run("leave the domain"))
}
