//! Command line of the project's checks: `cargo xtask tidy`, `cargo xtask conformance [--check]`.
//!
//! Exit codes: 0 all is well, 1 a check failed, 2 the command line or the machine is at fault.

use std::process::ExitCode;

use xtask::tree::SourceTree;
use xtask::{conformance, tidy, workspace_root};

const USAGE: &str = "\
Usage: cargo xtask <command>

Commands:
  tidy                 check the house rules (see CONTRIBUTING.md)
  conformance          write docs/conformance.md from the citations and tags in the sources
  conformance --check  fail if docs/conformance.md is not what the sources say
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["tidy"] => run_tidy(),
        ["conformance"] => run_conformance(false),
        ["conformance", "--check"] => run_conformance(true),
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
