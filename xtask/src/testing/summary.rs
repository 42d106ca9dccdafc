//! Summary of a run: tests that did not run with the reasons, failures, and the sums.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::allowed::{Allowances, LIST, matches};
use super::outcome::{Failure, Outcome, Skip};

/// Number of slowest programs that are listed with their time.
const SLOWEST: usize = 5;

/// Returns the last line, which contains nothing else: programs parse it.
pub fn closing_line(outcomes: &[Outcome]) -> String {
    let sum = |count: fn(&Outcome) -> usize| outcomes.iter().map(count).sum::<usize>();
    let (passed, failed, skipped) = (sum(|o| o.passed), sum(|o| o.failures.len()), sum(|o| o.skips.len()));
    format!("{passed} passed, {failed} failed, {skipped} skipped")
}

/// Returns the text at the end of a run, and whether the run succeeded. With a list of allowances,
/// a skip that it does not allow fails the run; if everything was run, unused entries of the list
/// are named. Failures and skips with their reasons come last, before the sums.
pub fn render(outcomes: &[Outcome], allowances: Option<&Allowances>, is_whole: bool) -> (String, bool) {
    let mut text = String::new();
    render_slowest(&mut text, outcomes);
    let skips: Vec<&Skip> = outcomes.iter().flat_map(|outcome| &outcome.skips).collect();
    let roles: usize = outcomes.iter().map(|outcome| outcome.roles).sum();
    if roles > 0 {
        line(&mut text, &format!("\n{roles} roles are started by tests and are not counted"));
    }
    if let Some(allowances) = allowances.filter(|_| is_whole) {
        render_unused(&mut text, outcomes, allowances);
    }
    render_failures(&mut text, outcomes);
    let mut is_good =
        outcomes.iter().all(|outcome| outcome.failures.is_empty()) && outcomes.iter().any(|outcome| outcome.passed > 0);
    let is_refused = |skip: &Skip| allowances.is_some_and(|list| !list.allows(&skip.test, &skip.reason));
    let (refused, allowed): (Vec<&Skip>, Vec<&Skip>) = skips.into_iter().partition(|skip| is_refused(skip));
    render_skips(&mut text, "not run", &allowed);
    if !refused.is_empty() {
        is_good = false;
        render_skips(&mut text, &format!("not run, and not in {LIST}: the run fails"), &refused);
    }
    line(&mut text, "");
    line(&mut text, &closing_line(outcomes));
    (text, is_good)
}

fn line(text: &mut String, content: &str) {
    writeln!(text, "{content}").expect("a string takes everything");
}

fn render_slowest(text: &mut String, outcomes: &[Outcome]) {
    let mut by_time: Vec<&Outcome> = outcomes.iter().collect();
    by_time.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    line(text, "\nslowest programs");
    for outcome in by_time.into_iter().take(SLOWEST) {
        line(text, &format!("  {:6.1} s  {}", outcome.took.as_secs_f64(), outcome.program));
    }
}

fn render_failures(text: &mut String, outcomes: &[Outcome]) {
    let failures: Vec<&Failure> = outcomes.iter().flat_map(|outcome| &outcome.failures).collect();
    if failures.is_empty() {
        return;
    }
    line(text, "\nfailed");
    for failure in failures {
        line(text, &format!("  {}", failure.what));
        failure.why.iter().for_each(|why| line(text, &format!("      {why}")));
    }
}

/// Renders skips by reason; tests of one module and reason share a line.
fn render_skips(text: &mut String, heading: &str, skips: &[&Skip]) {
    let mut reasons: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for skip in skips {
        let module = skip.test.rsplit_once("::").map_or(skip.test.as_str(), |(module, _)| module);
        reasons.entry(&skip.reason).or_default().entry(module).or_default().push(&skip.test);
    }
    if reasons.is_empty() {
        return;
    }
    line(text, &format!("\n{} {heading}", skips.len()));
    for (reason, modules) in reasons {
        let count: usize = modules.values().map(Vec::len).sum();
        line(text, &format!("  {count}: {reason}"));
        for (module, tests) in modules {
            match tests[..] {
                [test] => line(text, &format!("      {test}")),
                _ => line(text, &format!("      {module}: {} tests", tests.len())),
            }
        }
    }
}

fn render_unused(text: &mut String, outcomes: &[Outcome], allowances: &Allowances) {
    let tests = || outcomes.iter().flat_map(|outcome| &outcome.tests);
    let skips = || outcomes.iter().flat_map(|outcome| &outcome.skips);
    for entry in &allowances.0 {
        if !tests().any(|test| matches(&entry.tests, test)) {
            line(text, &format!("\n{LIST}: no test is called {}: take the entry out", entry.tests));
        } else if !skips().any(|skip| entry.covers(&skip.test, &skip.reason)) {
            line(text, &format!("\n{LIST}: {} was not needed here ({})", entry.tests, entry.because));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{closing_line, render};
    use crate::testing::allowed::{Allowance, Allowances};
    use crate::testing::outcome::{Failure, Outcome, Skip};

    fn outcome(skipped: &[&str]) -> Outcome {
        let skip = |test: &&str| Skip { test: (*test).to_owned(), reason: "not root".into() };
        Outcome {
            passed: 3,
            skips: skipped.iter().map(skip).collect(),
            tests: skipped.iter().map(|test| (*test).to_owned()).collect(),
            ..Outcome::default()
        }
    }

    fn allowances(tests: &str) -> Allowances {
        Allowances(vec![Allowance { tests: tests.into(), because: "not root".into() }])
    }

    #[test]
    fn skips_are_grouped_by_reason_and_module() {
        let (text, is_good) = render(&[outcome(&["a::it::x::1", "a::it::x::2", "a::it::y"])], None, true);
        assert!(is_good);
        assert!(text.contains("3 not run\n  3: not root\n      a::it::y\n      a::it::x: 2 tests\n"), "{text}");
        assert!(text.ends_with("\n\n3 passed, 0 failed, 3 skipped\n"), "{text}");
    }

    #[test]
    fn last_lines_are_failures_then_skips_then_the_sums() {
        let failure = Failure { what: "a::it::y".into(), why: Vec::new() };
        let both = Outcome { failures: vec![failure], roles: 1, ..outcome(&["a::it::x"]) };
        let (text, _) = render(&[both], None, true);
        let last =
            "\nfailed\n  a::it::y\n\n1 not run\n  1: not root\n      a::it::x\n\n3 passed, 1 failed, 1 skipped\n";
        assert!(text.ends_with(last), "{text}");
    }

    #[test]
    fn skip_that_is_not_allowed_fails_the_run() {
        let outcomes = [outcome(&["a::it::x"])];
        let (text, is_good) = render(&outcomes, Some(&allowances("b::*")), false);
        assert!(!is_good && text.contains("the run fails\n  1: not root\n      a::it::x\n"), "{text}");
        let (text, is_good) = render(&outcomes, Some(&allowances("a::*")), false);
        assert!(is_good, "{text}");
    }

    #[test]
    fn entry_without_a_test_or_without_a_skip_is_named() {
        let outcomes = [Outcome { tests: vec!["a::it::x".into()], passed: 1, ..Outcome::default() }];
        let (text, is_good) = render(&outcomes, Some(&allowances("b::*")), true);
        assert!(is_good && text.contains("no test is called b::*"), "{text}");
        let (text, _) = render(&outcomes, Some(&allowances("a::*")), true);
        assert!(text.contains("a::* was not needed here (not root)"), "{text}");
    }

    #[test]
    fn run_with_a_failure_or_without_a_pass_fails() {
        let failure = Failure { what: "a::it::x".into(), why: vec!["panicked at x.rs".into()] };
        let failed = Outcome { failures: vec![failure], passed: 1, ..Outcome::default() };
        let (text, is_good) = render(&[failed], None, true);
        assert!(!is_good && text.contains("\nfailed\n  a::it::x\n      panicked at x.rs\n"), "{text}");
        assert!(!render(&[], None, true).1);
        assert_eq!(closing_line(&[]), "0 passed, 0 failed, 0 skipped");
    }
}
