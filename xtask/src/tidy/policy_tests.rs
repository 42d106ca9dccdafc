//! Check that the table "Policy by policy" of `docs/reference/qos-tests.md` names existing
//! deliberate bugs, code and tests.
//!
//! In the last column a name in backquotes is a test, `[crate::]module::function`; without a crate
//! it belongs to `takt-core`. The module is a file of the crate, in its `tests/` or its `src/`. In
//! the column before, a name with a hyphen is a deliberate bug, any other an identifier in the
//! product's code.

use super::Report;
use crate::mutation_test::mutations::DIRECTORY;
use crate::rust_text::find_word;
use crate::tree::{SourceFile, SourceTree};

/// Path of the page.
const PAGE: &str = "docs/reference/qos-tests.md";

/// Heading above the table.
const HEADING: &str = "## Policy by policy";

/// Default crate of a test.
const CRATE: &str = "takt-core";

pub(super) fn check(tree: &SourceTree, report: &mut Report) {
    let Some(page) = tree.file(PAGE) else { return };
    let section = SourceFile::lines(&page.text).skip_while(|(_, text)| *text != HEADING).skip(1);
    let rows = section.take_while(|(_, text)| !text.starts_with("## ")).filter(|(_, text)| text.starts_with('|'));
    for (line, row) in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [_, taken_away_by, tests] = cells[..] else {
            report.fail_line("policy-tests", page, line, format!("{} cells instead of 3", cells.len()));
            continue;
        };
        let unknown_code = names(taken_away_by).filter(|name| !is_bug_or_code(tree, name));
        let unknown_tests = names(tests).filter(|name| !is_test(tree, name));
        for name in unknown_code.chain(unknown_tests) {
            report.fail_line("policy-tests", page, line, format!("`{name}` does not exist"));
        }
    }
}

/// Returns the texts in backquotes.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn is_bug_or_code(tree: &SourceTree, name: &str) -> bool {
    if name.contains('-') {
        return tree.has_path(&format!("{DIRECTORY}{name}.toml"));
    }
    let libraries = tree.files.iter().filter(|file| file.path.starts_with("crates/") && file.library_of().is_some());
    libraries.filter_map(|file| file.rust.as_ref()).any(|rust| {
        let mut code = SourceFile::lines(&rust.code).filter(|(line, _)| !rust.is_test_line(*line));
        code.any(|(_, text)| find_word(text, name, 0).is_some())
    })
}

fn is_test(tree: &SourceTree, name: &str) -> bool {
    let mut parts = name.rsplit("::");
    let (Some(function), Some(module)) = (parts.next(), parts.next()) else { return false };
    let directory = format!("/{}/", parts.next().unwrap_or(CRATE));
    let in_module = |file: &&SourceFile| {
        let stem = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"));
        file.path.contains(&directory) && stem == Some(module)
    };
    let mut modules = tree.files.iter().filter(in_module).filter_map(|file| file.rust.as_ref());
    parts.next().is_none()
        && modules.any(|rust| rust.functions().iter().any(|f| f.name == function && rust.is_test_line(f.line)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::{PAGE, check};

    const FILES: [(&str, &str); 4] = [
        ("lab/takt-sim/mutations/ignore-deadline.toml", ""),
        (
            "crates/protocol/takt-core/src/deadline.rs",
            "//! D.\nfn keep() {}\n#[cfg(test)]\nmod tests {\n    fn only_a_test() {}\n}\n",
        ),
        ("crates/protocol/takt-core/tests/it/qos/deadline.rs", "//! D.\n#[test]\nfn each_period_is_counted() {}\n"),
        ("crates/api/takt/tests/it/policies.rs", "//! P.\n#[test]\nfn unregistering_disposes() {}\n"),
    ];

    fn of(rows: &str) -> Vec<String> {
        let page = format!("# P\n\n## Policy by policy\n\n{rows}\n## Mutants\n\n| `a` | `b` | `c` |\n");
        findings(&[FILES[0], FILES[1], FILES[2], FILES[3], (PAGE, &page)], check)
    }

    #[test]
    fn existing_bugs_code_and_tests_are_no_finding() {
        let rows = "| `x` | `ignore-deadline`; `keep` | `deadline::each_period_is_counted`, `deadline::only_a_test` |\n\
                    | y | no `keep` | `takt::policies::unregistering_disposes` |\n";
        assert_eq!(of(rows), Vec::<String>::new());
    }

    #[test]
    fn each_unknown_name_is_a_finding() {
        let rows = "| x | `ignore-all` | `deadline::each_period_is_counted` |\n\
                    | x | `only_a_test` | `deadline::keep` |\n\
                    | x | `keep` | `deadline::gone`, `policies::unregistering_disposes`, `each_period_is_counted` |\n";
        let (at, page) = (|line: usize| format!("policy-tests {PAGE}:{line}"), 5);
        assert_eq!(of(rows), [at(page), at(page + 1), at(page + 1), at(page + 2), at(page + 2), at(page + 2)]);
    }

    #[test]
    fn row_without_three_cells_is_a_finding() {
        assert_eq!(of("| x | `keep` |\n"), [format!("policy-tests {PAGE}:5")]);
    }
}
