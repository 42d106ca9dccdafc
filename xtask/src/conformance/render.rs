//! Rendering of the collection as Markdown, in an order that depends only on the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::SPECIFICATIONS;
use super::collect::{Citation, Tag, collect};
use crate::tree::SourceTree;

const HEAD: &str = "\
# Conformance

`cargo xtask conformance` writes this page from the comments of the sources: do not edit it. It
lists where each section of a specification is cited, where Takt deviates and why, and how
implementations of other vendors behave on the wire. A citation means that the code there follows
the section, not that every sentence of the section is implemented.
";

/// Sections of one specification, each with the files that cite it.
type Sections = BTreeMap<SectionKey, BTreeSet<String>>;

/// Sort key that orders `8.3.10` after `8.3.9`: the number in parts, annexes last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SectionKey(Vec<(u32, String)>);

impl SectionKey {
    fn new(section: &str) -> Self {
        let part = |part: &str| (part.parse().unwrap_or(u32::MAX), part.to_owned());
        Self(section.split('.').map(part).collect())
    }

    fn number(&self) -> String {
        let parts: Vec<&str> = self.0.iter().map(|(_, text)| text.as_str()).collect();
        parts.join(".")
    }
}

/// Renders the document for this tree.
pub fn render(tree: &SourceTree) -> String {
    let collection = collect(tree);
    let by_specification = group(&collection.citations);
    let mut out = String::from(HEAD);
    summary(&mut out, &by_specification, &collection.citations);
    tags(
        &mut out,
        "Deviations",
        "Where Takt deviates from a specification.",
        ["Section", "What and why"],
        &collection.deviations,
    );
    tags(
        &mut out,
        "Behavior of other vendors",
        "What implementations of other vendors do on the wire, as far as the code depends on it.",
        ["Implementation", "Behavior"],
        &collection.interop,
    );
    for (specification, sections) in &by_specification {
        line(&mut out, &format!("\n## {specification}\n"));
        line(&mut out, "| Section | Cited in |\n|---|---|");
        for (section, paths) in sections {
            let links: Vec<String> = paths.iter().map(|path| link(path)).collect();
            line(&mut out, &format!("| {} | {} |", section.number(), links.join(", ")));
        }
    }
    out
}

/// Groups citations by specification: known specifications in the order of their table, then RFCs.
fn group(citations: &[Citation]) -> Vec<(String, Sections)> {
    let mut groups: BTreeMap<(usize, String), Sections> = BTreeMap::new();
    for citation in citations {
        let known = SPECIFICATIONS.iter().position(|s| s.name == citation.specification);
        let rank = known.unwrap_or(SPECIFICATIONS.len());
        let sections = groups.entry((rank, citation.specification.clone())).or_default();
        let paths = sections.entry(SectionKey::new(&citation.section)).or_default();
        paths.insert(citation.path.clone());
    }
    let unranked = groups.into_iter().map(|((_, name), sections)| (name, sections));
    unranked.collect()
}

fn summary(out: &mut String, groups: &[(String, Sections)], citations: &[Citation]) {
    line(out, "\n| Specification | Document | Sections cited | Citations |\n|---|---|---|---|");
    for (name, sections) in groups {
        let known = SPECIFICATIONS.iter().find(|s| s.name == name);
        let title = known.map_or("IETF", |s| s.title);
        let count = citations.iter().filter(|c| c.specification == *name).count();
        line(out, &format!("| {name} | {title} | {} | {count} |", sections.len()));
    }
}

fn tags(out: &mut String, title: &str, explanation: &str, columns: [&str; 2], tags: &[Tag]) {
    line(out, &format!("\n## {title}\n\n{explanation}\n"));
    if tags.is_empty() {
        line(out, "None.");
        return;
    }
    line(out, &format!("| {} | {} | Where |\n|---|---|---|", columns[0], columns[1]));
    let mut sorted: Vec<&Tag> = tags.iter().collect();
    sorted.sort_by(|a, b| (&a.subject, &a.path, &a.text).cmp(&(&b.subject, &b.path, &b.text)));
    for tag in sorted {
        let row = format!("| {} | {} | {} |", cell(&tag.subject), cell(&tag.text), link(&tag.path));
        line(out, &row);
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn link(path: &str) -> String {
    let in_group = path.strip_prefix("crates/").and_then(|path| path.split_once('/'));
    let short = in_group.map_or(path, |(_, path)| path);
    format!("[{short}](../../{path})")
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::fixture::Fixture;

    #[test]
    fn sections_are_ordered_by_number_with_their_files_joined() {
        let fixture = Fixture::new(&[
            ("crates/api/a/src/lib.rs", "//! RTPS 2.5 §8.3.10, RTPS 2.5 §8.3.9, RFC 2474 §3\n"),
            ("crates/api/b/src/lib.rs", "//! RTPS 2.5 §8.3.9, RTPS 2.5 §8.3.9\n"),
        ]);
        let text = render(&fixture.tree());
        let nine = text.find("| 8.3.9 | [a/src/lib.rs](../../crates/api/a/src/lib.rs), [b/src/lib.rs]");
        let ten = text.find("| 8.3.10 |");
        assert!(nine.expect("both files in one row") < ten.expect("a row of its own"));
        assert!(text.contains("formal/2022-04-01 | 2 | 4 |"), "{text}");
        assert!(text.contains("| RFC 2474 | IETF | 1 | 1 |"), "{text}");
        assert_eq!(text.matches("None.").count(), 2);
    }

    #[test]
    fn tags_are_written_with_their_file() {
        let source = "//! A.\n// DEVIATION(DDS 1.4 §2.2.3): a | b\n// INTEROP(Fast DDS 2.9.1): seen\n";
        let text = render(&Fixture::new(&[("crates/api/a/src/lib.rs", source)]).tree());
        let row = "| DDS 1.4 §2.2.3 | a \\| b | [a/src/lib.rs](../../crates/api/a/src/lib.rs) |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| Fast DDS 2.9.1 | seen | [a/src/lib.rs]"), "{text}");
    }
}
