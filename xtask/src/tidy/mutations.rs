//! Check that deliberate bugs apply to the code: each snippet to be replaced occurs exactly once.
//!
//! It detects a code change that breaks an edit earlier than `cargo xtask sim --teeth`.

use super::Report;
use crate::mutation_test::mutations::{MutationError, apply, load};
use crate::tree::SourceTree;

pub(super) fn check(tree: &SourceTree, report: &mut Report) {
    let misfits = match load(tree) {
        Ok(mutations) => apply(tree, &mutations).1,
        Err(error) => vec![error],
    };
    for MutationError { place, message } in misfits {
        report.fail("mutation", &place, message);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::check;

    #[test]
    fn deliberate_bug_with_a_missing_snippet_is_a_finding() {
        let code = ("crates/a/src/lib.rs", "//! A.\nfn f() -> bool {\n    true\n}\n");
        let edit = |find: &str| {
            let file = "crates/a/src/lib.rs";
            format!("promise = 'p'\nbug = 'b'\n[[edit]]\nfile = '{file}'\nfind = '{find}'\nreplace = '!BUG'\n")
        };
        let (fits, outgrown) = (edit("true"), edit("false"));
        assert_eq!(findings(&[code, ("lab/takt-sim/mutations/x.toml", &fits)], check), Vec::<String>::new());
        let expected = ["mutation lab/takt-sim/mutations/x.toml"];
        assert_eq!(findings(&[code, ("lab/takt-sim/mutations/x.toml", &outgrown)], check), expected);
        assert_eq!(findings(&[code, ("lab/takt-sim/mutations/x.toml", "edit =")], check), expected);
    }
}
