//! Check that Rust code in README and `docs/` is compiled: each page must be included in a doctest
//! module, `#[doc = include_str!("...")]`.
//!
//! A block marked `ignore` is not compiled, and requires `<!-- ignore: reason -->` on the line
//! above. In an included page each block must name its language: rustdoc treats a block without a
//! language as Rust.

use super::Report;
use crate::tree::{SourceFile, SourceTree};

/// Attribute that includes a page for compilation in a Rust file.
const INCLUDE: &str = "#[doc = include_str!(\"";

/// Checks every Rust block of README and `docs/`.
pub fn check(tree: &SourceTree, report: &mut Report) {
    let included: Vec<String> = tree.files.iter().filter(|file| file.extension() == "rs").flat_map(includes).collect();
    let is_page = |file: &&SourceFile| file.path == "README.md" || file.path.starts_with("docs/");
    for page in tree.files.iter().filter(|file| file.extension() == "md").filter(is_page) {
        let is_included = included.contains(&page.path);
        let (mut above, mut is_inside) = ("", false);
        for (line, text) in SourceFile::lines(&page.text) {
            if let Some(language) = text.trim_start().strip_prefix("```") {
                is_inside = !is_inside;
                if is_inside && is_included && language.trim().is_empty() {
                    let message =
                        "name the language of the block: rustdoc takes one without for Rust; `text` if it has none";
                    report.fail_line("doctest", page, line, message.to_owned());
                }
            }
            if let Some(attributes) = text.trim_start().strip_prefix("```rust") {
                let is_ignored = attributes.split(',').any(|word| word.trim() == "ignore");
                if is_ignored && !has_reason(above) {
                    let message = "a Rust block that is not compiled needs `<!-- ignore: reason -->` on the line above";
                    report.fail_line("doctest", page, line, message.to_owned());
                }
                if !is_ignored && !is_included {
                    let message =
                        format!("no crate compiles this: add {INCLUDE}...{}\")] to a doctest module", page.path);
                    report.fail_line("doctest", page, line, message);
                }
            }
            above = text;
        }
    }
}

fn has_reason(line: &str) -> bool {
    let inner = line.trim().strip_prefix("<!-- ignore:").and_then(|rest| rest.strip_suffix("-->"));
    inner.is_some_and(|reason| !reason.trim().is_empty())
}

/// Returns the pages that a Rust file includes, by their paths from the root.
fn includes(file: &SourceFile) -> Vec<String> {
    let paths = file.text.lines().filter_map(|line| line.trim_start().strip_prefix(INCLUDE)?.split_once('"'));
    paths.map(|(path, _)| path.trim_start_matches("../").to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tests::findings;

    const LIBRARY: &str = "//! a\n#[cfg(doctest)]\n#[doc = include_str!(\"../../../docs/a.md\")]\nmod documents {}\n";

    #[test]
    fn rust_block_of_a_page_without_doctest_module_fails() {
        let text = "```rust\nlet a = 1;\n```\n\n```toml\n```\n\n```rust,no_run\n```\n";
        let files = [("crates/a/src/lib.rs", LIBRARY), ("docs/a.md", text), ("docs/b.md", text), ("other/c.md", text)];
        assert_eq!(findings(&files, check), ["doctest docs/b.md:1", "doctest docs/b.md:8"]);
    }

    #[test]
    fn block_without_a_language_fails_in_an_included_page() {
        let text = "```\nlet a = 1;\n```\n\n```text\n```\n  ```\n  ```\n";
        let files = [("crates/a/src/lib.rs", LIBRARY), ("docs/a.md", text), ("docs/b.md", text)];
        assert_eq!(findings(&files, check), ["doctest docs/a.md:1", "doctest docs/a.md:7"]);
    }

    #[test]
    fn ignored_block_requires_a_reason_above() {
        let text = "<!-- ignore: needs the feature a -->\n```rust,ignore\n```\n\n<!-- ignore: -->\n```rust,ignore\n```\n```rust, ignore\n```\n";
        assert_eq!(findings(&[("README.md", text)], check), ["doctest README.md:6", "doctest README.md:8"]);
    }
}
