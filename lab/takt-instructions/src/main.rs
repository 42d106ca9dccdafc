//! Instruction counts of the data path: counts the instructions per sample and compares them with
//! recorded counts.
//!
//! Valgrind's callgrind counts user-space instructions, without those of the kernel. The count
//! hardly depends on the load of the machine, so it shows regressions of a few percent that are
//! within the variation of times. It does not cover system calls, caches and waiting;
//! docs/guide/performance-guide.md has times.
//!
//! The program runs itself under callgrind, once for each [case](case::CASES). The recorded counts
//! are in `counts.txt`.
#![forbid(unsafe_code)]

mod callgrind;
mod case;
mod record;

use std::process::ExitCode;

const USAGE: &str = "\
usage: takt-instructions check         compares with the recorded counts; exit code 1 if one differs
       takt-instructions record        counts, and records the result
       takt-instructions run CASE      runs one case; callgrind counts it";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["check"] => check(),
        ["record"] => count_all().and_then(|counts| record::write(&counts)),
        ["run", name] => case::run(name),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

/// Number of runs of each case, of which the smallest count is used: timers that fire during a run
/// only add to it.
const RUNS: usize = 3;

/// Counts the instructions per sample, by the name of the case.
fn count_all() -> Result<Vec<(&'static str, u64)>, String> {
    callgrind::check_installed()?;
    let count = |case: &case::Case| {
        let runs = (0..RUNS).map(|_| callgrind::count(case.name)).collect::<Result<Vec<_>, _>>()?;
        let least = runs.into_iter().min().ok_or("the case has a run")?;
        Ok((case.name, least / case.samples))
    };
    case::CASES.iter().map(count).collect()
}

fn check() -> Result<(), String> {
    let recorded = record::read()?;
    let mut differing = 0;
    println!("{:<28} {:>9} {:>9} {:>8}", "instructions per sample", "recorded", "now", "change");
    for (name, now) in count_all()? {
        let before = recorded.iter().find(|(recorded, _)| recorded == name).map(|(_, count)| *count);
        let verdict = record::compare(before, now);
        differing += u32::from(verdict.fails());
        println!("{name:<28} {:>9} {now:>9} {verdict}", before.unwrap_or(0));
    }
    match differing {
        0 => Ok(()),
        _ => Err(format!(
            "{differing} counts differ by more than {} %. Fix a regression. Record an intended change with `cargo run \
             --release -p takt-instructions -- record` and give the reason in the commit.",
            record::TOLERANCE_PERCENT
        )),
    }
}
