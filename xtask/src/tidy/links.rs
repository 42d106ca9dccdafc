//! Check that links between the project's documents resolve, and that the documentation's table of
//! contents is complete.
//!
//! Only relative links are checked, not web links. A link with `#` must name a heading of the page,
//! as GitHub derives anchors from headings, or an `id`. Every page of `docs/` must be linked from
//! `docs/SUMMARY.md`.

use std::collections::{HashMap, HashSet};

use super::Report;
use crate::tree::{SourceFile, SourceTree};

/// Table of contents of the documentation.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks every relative link of every Markdown file, and the table of contents.
pub fn check(tree: &SourceTree, report: &mut Report) {
    let is_page = |file: &&SourceFile| file.extension() == "md";
    let anchors: HashMap<&str, HashSet<String>> =
        tree.files.iter().filter(is_page).map(|file| (file.path.as_str(), anchors(&file.text))).collect();
    let mut listed = HashSet::new();
    for file in tree.files.iter().filter(is_page) {
        for (line, text) in prose(&file.text) {
            for target in targets(text) {
                let Some(path) = resolve(&file.path, target) else {
                    continue;
                };
                if !tree.has_path(&path) {
                    report.fail_line("link", file, line, format!("the link to `{target}` does not resolve"));
                    continue;
                }
                if file.path == SUMMARY {
                    listed.insert(path.clone());
                }
                let anchor = target.split_once('#').map(|(_, anchor)| anchor);
                let known = anchors.get(path.as_str());
                if let (Some(anchor), Some(known)) = (anchor, known)
                    && !known.contains(anchor)
                {
                    report.fail_line("link", file, line, format!("`{target}`: the page has no such heading"));
                }
            }
        }
    }
    let is_listed = |file: &SourceFile| file.path == SUMMARY || listed.contains(&file.path);
    for file in tree.files.iter().filter(is_page).filter(|file| file.path.starts_with("docs/") && !is_listed(file)) {
        report.fail("summary", &file.path, format!("the page is missing in {SUMMARY}"));
    }
}

/// Returns the lines outside code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    SourceFile::lines(text).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the anchors of the headings, and the values of `id`.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for (_, line) in prose(text) {
        if let Some((_, rest)) = line.split_once("<a id=\"") {
            anchors.extend(rest.split_once('"').map(|(id, _)| id.to_owned()));
        }
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor(heading.trim());
        let mut unique = anchor.clone();
        let mut number = 0;
        while !anchors.insert(unique.clone()) {
            number += 1;
            unique = format!("{anchor}-{number}");
        }
    }
    anchors
}

/// Returns the anchor that GitHub derives from a heading: lower case, hyphens for spaces, without
/// other punctuation.
fn anchor(heading: &str) -> String {
    // Of a link, the text counts.
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Returns the texts between `](` and `)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// Returns the path from the root to which `target` in the file at `from` refers; `None` for other
/// links.
fn resolve(from: &str, target: &str) -> Option<String> {
    let path = target.split('#').next()?;
    if target.starts_with('#') {
        return Some(from.to_owned());
    }
    let target = path;
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." if parts.pop().is_none() => return Some("..".to_owned()), // No path of the tree.
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
        let summary = "[a](a.md) [b](b.md)";
        let files = [("docs/a.md", text), ("docs/b.md", ""), ("x/c.md", ""), ("docs/SUMMARY.md", summary)];
        assert_eq!(findings(&files, check), ["link docs/a.md:3", "link docs/a.md:3"]);
    }

    #[test]
    fn directory_heading_and_web_links_pass() {
        let text = "# There\n[d](x/) [h](#there) [w](https://example.org/x) [f](x/a.md#b-c-1) [i](x/a.md#i)\n";
        let files = [("README.md", text), ("x/a.md", "## `b` c\n### B: [c](a.md)\n### b c\n<a id=\"i\"></a>\n")];
        assert_eq!(findings(&files, check), Vec::<String>::new());
    }

    #[test]
    fn link_to_a_missing_heading_fails_except_in_code() {
        let text = "[h](#here) [a](x/a.md#b)\n```sh\n# here\n[c](#code)\n```\n";
        let files = [("README.md", text), ("x/a.md", "# c\n")];
        assert_eq!(findings(&files, check), ["link README.md:1", "link README.md:1"]);
    }

    #[test]
    fn page_that_the_summary_lacks_fails() {
        let files = [("docs/SUMMARY.md", "- [a](x/a.md)\n"), ("docs/x/a.md", ""), ("docs/b.md", "")];
        assert_eq!(findings(&files, check), ["summary docs/b.md"]);
    }
}
