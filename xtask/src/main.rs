//! Command line of the project's checks: `cargo xtask tidy`, `conformance`, `sim`, `test`.
//!
//! Exit codes: 0 success, 1 a check failed, 2 an error in the command line or the environment.

use std::path::Path;
use std::process::ExitCode;

use xtask::tree::SourceTree;
use xtask::{conformance, mutation_test, testing, tidy, workspace_root};

const USAGE: &str = "\
Usage: cargo xtask <command>

Commands:
  tidy                 check the house rules (see CONTRIBUTING.md)
  conformance          write docs/reference/conformance.md from the citations and tags in the sources
  conformance --check  fail if docs/reference/conformance.md is not what the sources say
  test [--ci] ...      build and run the tests, and count what did not run; what follows is for `cargo test`
  test --root DIR ...  the same for the workspace in a directory
  sim ...              Takt in a simulated world; `sim --help` says more (docs/design/simulation.md)
  sim --teeth          whether the simulation finds each deliberate bug of lab/takt-sim/mutations, put into a copy
                       of the sources; --bug NAME for one, --seeds N (500), --from S (0), --jobs N (one a processor)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["tidy"] => run_tidy(),
        ["conformance"] => run_conformance(false),
        ["conformance", "--check"] => run_conformance(true),
        ["sim", options @ ..] if options.contains(&"--teeth") => mutation_test::run(&workspace_root(), options),
        ["test", "--root", root, options @ ..] => testing::run(Path::new(root), options),
        ["test", options @ ..] => testing::run(&workspace_root(), options),
        ["sim", options @ ..] => return run_simulation(options),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the simulator, built with optimization and all assertions.
fn run_simulation(options: &[&str]) -> ExitCode {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = std::process::Command::new(cargo);
    command.args(["run", "--quiet", "--locked", "--profile", "sim", "-p", "takt-sim"]);
    match command.arg("--").args(options).status() {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::from(2), ExitCode::from),
        Err(error) => {
            eprintln!("xtask: cannot run cargo: {error}");
            ExitCode::from(2)
        }
    }
}

fn run_tidy() -> Result<bool, String> {
    let report = tidy::run(&workspace_root())?;
    print!("{report}");
    Ok(report.failure_count() == 0)
}

fn run_conformance(check: bool) -> Result<bool, String> {
    let tree = SourceTree::load(&workspace_root())?;
    if check {
        let report = conformance::check(&tree);
        print!("{report}");
        return Ok(report.failure_count() == 0);
    }
    let path = workspace_root().join(conformance::DOCUMENT);
    std::fs::write(&path, conformance::render(&tree))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("wrote {}", conformance::DOCUMENT);
    Ok(true)
}
