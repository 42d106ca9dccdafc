//! Check that links between the project's documents resolve.
//!
//! Only relative links to files and directories are checked, not web links, and not the heading
//! after a `#`.

use super::Report;
use crate::tree::{SourceFile, SourceTree};

/// Checks every relative link of every Markdown file.
pub fn check(tree: &SourceTree, report: &mut Report) {
    for file in tree.files.iter().filter(|f| f.extension() == "md") {
        for (line, text) in SourceFile::lines(&file.text) {
            for target in targets(text) {
                let Some(path) = resolve(&file.path, target) else {
                    continue;
                };
                if !tree.has_path(&path) {
                    let message = format!("the link to `{target}` leads nowhere");
                    report.fail_line("link", file, line, message);
                }
            }
        }
    }
}

/// Returns the texts between `](` and `)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// Returns the path from the root to which `target` in the file at `from` refers; `None` for other
/// links.
fn resolve(from: &str, target: &str) -> Option<String> {
    let target = target.split('#').next()?;
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." if parts.pop().is_none() => return Some("..".to_owned()), // Not ours.
            ".." => {}
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tests::findings;

    #[test]
    fn link_to_a_missing_file_fails() {
        let text = "[a](b.md) and [c](../x/c.md)\n\n[gone](gone.md#part) [out](../../a.md)\n";
        let files = [("docs/a.md", text), ("docs/b.md", ""), ("x/c.md", "")];
        assert_eq!(findings(&files, check), ["link docs/a.md:3", "link docs/a.md:3"]);
    }

    #[test]
    fn directory_heading_and_web_links_pass() {
        let text = "[d](docs/) [h](#there) [w](https://example.org/x) [f](docs/a.md#x)\n";
        let files = [("README.md", text), ("docs/a.md", "")];
        assert_eq!(findings(&files, check), Vec::<String>::new());
    }
}
