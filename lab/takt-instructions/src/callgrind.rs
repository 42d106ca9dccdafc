//! Execution of this program under Valgrind's callgrind.

use std::process::Command;

/// Function whose instructions are counted, including its callees: [`crate::case::measured`].
const MEASURED: &str = "--toggle-collect=takt_instructions::case::measured";

/// Returns an error if Valgrind cannot be run.
pub fn check_installed() -> Result<(), String> {
    match Command::new("valgrind").arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("valgrind does not run: {}", output.status)),
        Err(error) => Err(format!("cannot run valgrind ({error}); install the package valgrind")),
    }
}

/// Counts the instructions of the measured part of a case.
pub fn count(case: &str) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program is unknown: {error}"))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", MEASURED, "--callgrind-out-file=/dev/stdout"])
        .arg(program)
        .args(["run", case])
        .output()
        .map_err(|error| format!("valgrind cannot be started: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{case}: valgrind ended with {}: {errors}", output.status));
    }
    total(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| format!("{case}: callgrind counted nothing"))
}

/// Returns the total of a profile in callgrind's format.
fn total(profile: &str) -> Option<u64> {
    let totals = profile.lines().find_map(|line| line.strip_prefix("totals: "))?;
    totals.trim().parse().ok().filter(|total| *total > 0)
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn total_is_read_from_a_profile() {
        assert_eq!(total("version: 1\nevents: Ir\nfn=(1) main\n5 17\ntotals: 4711\n"), Some(4711));
    }

    #[test]
    fn profile_without_a_count_has_no_total() {
        assert_eq!(total("events: Ir\ntotals: 0\n"), None);
        assert_eq!(total("events: Ir\n"), None);
    }
}
