//! Check that library code preserves error causes: no `unwrap()` without a reason, and no error
//! dropped by `.ok();`.
//!
//! Library code is the code in `src/` that is no test. For an invariant use `expect` with the
//! reason why it cannot fail.

use super::Report;
use crate::tree::{SourceFile, SourceTree};

const RULES: [(&str, &str, &str); 2] = [
    ("unwrap", concat!(".unw", "rap()"), "return the error, or `expect` with the reason why it cannot fail"),
    ("dropped-cause", concat!(".ok", "();"), "handle the error, count it, or keep its cause"),
];

/// Checks the library code of every crate.
pub fn check(tree: &SourceTree, report: &mut Report) {
    for file in tree.files.iter().filter(|f| f.library_of().is_some()) {
        let Some(rust) = &file.rust else { continue };
        for (line, code) in SourceFile::lines(&rust.code) {
            if rust.is_test_line(line) {
                continue;
            }
            for (rule, text, instead) in RULES {
                if code.contains(text) {
                    report.fail_line(rule, file, line, format!("`{text}`: {instead}"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RULES, check};
    use crate::tidy::tests::findings;

    #[test]
    fn unwrap_and_dropped_errors_in_library_code_are_findings() {
        for (rule, text, _) in RULES {
            let code = format!("fn f() {{\n    let x = g(){text}\n}}\n");
            let found = findings(&[("crates/a/src/x.rs", &code)], check);
            assert_eq!(found, [format!("{rule} crates/a/src/x.rs:2")]);
        }
    }

    #[test]
    fn tests_comments_and_allowed_lines_are_exempt() {
        let text = RULES[0].1;
        let code = format!(
            "// {text}\n#[cfg(test)]\nmod tests {{\n    fn f() {{ g(){text}; }}\n}}\n\
             // tidy-allow(unwrap): shown in the documentation\nfn h() {{ g(){text}; }}\n"
        );
        let outside = format!("fn f() {{ g(){text}; }}\n");
        let files = [("crates/a/src/x.rs", code.as_str()), ("crates/a/tests/it/y.rs", &outside)];
        assert_eq!(findings(&files, check), Vec::<String>::new());
    }

    #[test]
    fn expect_with_a_reason_is_allowed() {
        let code = "fn f() { g().expect(\"the slice has four bytes\"); }\n";
        assert_eq!(findings(&[("crates/a/src/x.rs", code)], check), Vec::<String>::new());
    }
}
