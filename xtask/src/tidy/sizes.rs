//! Check of sizes: a file is a warning from 800 lines and a failure above 1500; a function of more
//! than 70 lines is a warning, because a flat `match` over kinds may be longer.

use super::Report;
use crate::tree::SourceTree;

/// Number of lines from which a file should be split.
const FILE_LINES_WARN: usize = 800;
/// Maximum number of lines of a file.
const FILE_LINES_MAX: usize = 1500;
/// Number of lines that a function should not exceed.
const FUNCTION_LINES_WARN: usize = 70;
/// File name extensions of source code.
const EXTENSIONS: &[&str] = &["rs", "py", "sh", "c", "h", "cpp", "hpp", "lua"];

/// Checks the sizes of files and functions.
pub fn check(tree: &SourceTree, report: &mut Report) {
    for file in &tree.files {
        if !EXTENSIONS.contains(&file.extension()) {
            continue;
        }
        let line_count = file.text.lines().count();
        if line_count > FILE_LINES_MAX {
            let message = format!("{line_count} lines, at most {FILE_LINES_MAX}: split by concern");
            report.fail("size", &file.path, message);
        } else if line_count > FILE_LINES_WARN {
            let message = format!("{line_count} lines: look twice, split by concern");
            report.warn("size", &file.path, None, message);
        }
        let Some(rust) = &file.rust else { continue };
        for function in rust.functions() {
            if function.line_count > FUNCTION_LINES_WARN {
                let message = format!("fn {} has {} lines", function.name, function.line_count);
                report.warn("size", &file.path, Some(function.line), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE_LINES_MAX, FILE_LINES_WARN, FUNCTION_LINES_WARN, check};
    use crate::fixture::Fixture;
    use crate::tidy::{Report, Severity};

    fn severities(path: &str, text: &str) -> Vec<Severity> {
        let fixture = Fixture::new(&[(path, text)]);
        let mut report = Report::default();
        check(&fixture.tree(), &mut report);
        report.findings.iter().map(|f| f.severity).collect()
    }

    #[test]
    fn file_sizes_are_checked() {
        let lines = |count| "// x\n".repeat(count);
        assert_eq!(severities("a.rs", &lines(FILE_LINES_WARN)), []);
        assert_eq!(severities("a.rs", &lines(FILE_LINES_WARN + 1)), [Severity::Warning]);
        assert_eq!(severities("a.rs", &lines(FILE_LINES_MAX)), [Severity::Warning]);
        assert_eq!(severities("a.rs", &lines(FILE_LINES_MAX + 1)), [Severity::Failure]);
        assert_eq!(severities("a.md", &lines(FILE_LINES_MAX + 1)), []);
    }

    #[test]
    fn function_lengths_are_checked() {
        let function = |inside| format!("fn f() {{\n{}}}\n", "    x();\n".repeat(inside));
        assert_eq!(severities("a.rs", &function(FUNCTION_LINES_WARN - 2)), []);
        assert_eq!(severities("a.rs", &function(FUNCTION_LINES_WARN - 1)), [Severity::Warning]);
    }
}
