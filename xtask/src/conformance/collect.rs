//! Collection of specification citations and tags from comments.

use super::SPECIFICATIONS;
use crate::rust_text::{RustText, find_word};
use crate::tree::{SourceFile, SourceTree};

const TAGS: [&str; 2] = ["DEVIATION", "INTEROP"];

/// Citation in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// Specification and version: `RTPS 2.5`, `RFC 2474`.
    pub specification: String,
    /// Section number, without its sign.
    pub section: String,
    /// Path of the file.
    pub path: String,
}

/// `DEVIATION` or `INTEROP` tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Text in the parentheses.
    pub subject: String,
    /// The text after the colon, to the end of its paragraph.
    pub text: String,
    /// Path of the file.
    pub path: String,
}

/// Citation or tag whose form cannot be collected.
pub struct Bad {
    /// Path of the file.
    pub path: String,
    /// Line number, from 1.
    pub line: usize,
    /// Description of the problem.
    pub message: String,
}

/// Citations and tags of a tree, in the order of its files.
#[derive(Default)]
pub struct Collection {
    /// Citations.
    pub citations: Vec<Citation>,
    /// Deviations of Takt from a specification.
    pub deviations: Vec<Tag>,
    /// Observed behavior of other vendors.
    pub interop: Vec<Tag>,
    /// Malformed citations and tags.
    pub malformed: Vec<Bad>,
}

/// Collects from every Rust file of the product; the checks themselves cite nothing.
pub fn collect(tree: &SourceTree) -> Collection {
    let mut collection = Collection::default();
    let product = |file: &&SourceFile| !file.path.starts_with("xtask/");
    for file in tree.files.iter().filter(product) {
        let Some(rust) = &file.rust else { continue };
        let mut current = None;
        for (line, comment) in SourceFile::lines(&rust.comments) {
            collect_citations(file, line, comment, &mut current, &mut collection);
            collect_tags(file, rust, line, comment, &mut collection);
        }
    }
    collection
}

/// Collects the citations of one line. `current` is the specification last cited in this paragraph:
/// a further section sign in an enumeration belongs to it.
fn collect_citations(
    file: &SourceFile,
    line: usize,
    comment: &str,
    current: &mut Option<String>,
    into: &mut Collection,
) {
    if comment_text(comment).is_empty() {
        *current = None;
    }
    let mut from = 0;
    while let Some(offset) = comment[from..].find('§') {
        let at = from + offset;
        from = at + '§'.len_utf8();
        let before = &comment[..at];
        if let Some(named) = specification_before(before) {
            *current = Some(named);
        } else if !continues_enumeration(before) {
            *current = None;
        }
        let message = match (&*current, section_number(&comment[from..])) {
            (Some(specification), Some(section)) => {
                into.citations.push(Citation {
                    specification: specification.clone(),
                    section: section.to_owned(),
                    path: file.path.clone(),
                });
                continue;
            }
            (None, _) => "cite as `RTPS 2.5 §8.3.7`: specification, version, section",
            (_, None) => "`§` without a section number",
        };
        into.malformed.push(Bad { path: file.path.clone(), line, message: message.to_owned() });
    }
}

/// Reports whether a `§` after `before` can continue an enumeration: after nothing, punctuation or
/// a joining word.
fn continues_enumeration(before: &str) -> bool {
    let text = comment_text(before);
    let last = text.rsplit(' ').next().unwrap_or("");
    let joins = ["and", "or", "to", "with"].contains(&last);
    last.is_empty() || joins || last.ends_with([',', ';', '(', ')', '/', '-', '–'])
}

/// Returns a comment without its marks and surrounding blanks.
fn comment_text(comment: &str) -> &str {
    let text = comment.trim().trim_start_matches(['/', '!', '*']);
    text.trim_end_matches("*/").trim()
}

/// Returns the specification whose name ends `text`, if it is a known one or an RFC.
fn specification_before(text: &str) -> Option<String> {
    let text = text.strip_suffix(' ')?;
    let mut words = text.rsplit(' ');
    let version = words.next()?;
    let family = words.next()?.trim_start_matches(|c: char| !c.is_alphanumeric());
    let family = family.rsplit(['(', '/', '`']).next()?;
    let name = format!("{family} {version}");
    let is_rfc = family == "RFC" && version.bytes().all(|b| b.is_ascii_digit());
    (is_rfc || SPECIFICATIONS.iter().any(|s| s.name == name)).then_some(name)
}

/// Returns the section number at the start of `text`: `8.3.8.6`, `A.2`; `None` if there is none.
fn section_number(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    let first = number.split('.').next()?;
    let is_annex = first.len() == 1 && first.starts_with(|c: char| c.is_ascii_uppercase());
    let is_clause = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
    let rest_is_numeric =
        number.split('.').skip(1).all(|part| part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty());
    ((is_annex || is_clause) && rest_is_numeric).then_some(number)
}

fn collect_tags(file: &SourceFile, rust: &RustText, line: usize, comment: &str, into: &mut Collection) {
    for name in TAGS {
        let mut from = 0;
        while let Some(at) = find_word(comment, name, from) {
            from = at + name.len();
            let rest = &comment[from..];
            if !rest.starts_with(['(', ':']) {
                continue; // The word in a sentence, not a tag.
            }
            let parts = rest
                .strip_prefix('(')
                .and_then(|rest| rest.split_once("):"))
                .filter(|(subject, text)| !subject.trim().is_empty() && !text.trim().is_empty());
            let Some((subject, text)) = parts else {
                let message = format!("write the tag as `{name}(subject): text`");
                into.malformed.push(Bad { path: file.path.clone(), line, message });
                continue;
            };
            let text = paragraph(rust, line, text);
            let tag = Tag { subject: subject.trim().to_owned(), text, path: file.path.clone() };
            match name {
                "DEVIATION" => into.deviations.push(tag),
                _ => into.interop.push(tag),
            }
        }
    }
}

/// Returns `first` and the comment lines after `line` that continue it, as one line, up to the next
/// tag.
fn paragraph(rust: &RustText, line: usize, first: &str) -> String {
    let mut text = comment_text(first).to_owned();
    let code = rust.code.lines().skip(line);
    for (code, comment) in code.zip(rust.comments.lines().skip(line)) {
        let more = comment_text(comment);
        if more.is_empty() || more.starts_with(['-', '#']) || !code.trim().is_empty() {
            break;
        }
        text.push(' ');
        text.push_str(more);
    }
    let next = TAGS.iter().filter_map(|name| text.find(&format!("{name}("))).min();
    text.truncate(next.unwrap_or(text.len()));
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Collection, collect, section_number};
    use crate::fixture::Fixture;

    fn collected(text: &str) -> Collection {
        collect(&Fixture::new(&[("crates/a/src/lib.rs", text)]).tree())
    }

    #[test]
    fn citations_are_collected_from_every_kind_of_comment() {
        let found = collected(
            "//! A (RTPS 2.5 §8.3.8.6), see DDS 1.4 §2.2.3.14.\n/// `XTypes 1.3 §7.4.3`\n/* RFC 2474 §3 */ fn f() {} // IDL 4.2 §A.2\n",
        );
        let names: Vec<String> = found.citations.iter().map(|c| format!("{}/{}", c.specification, c.section)).collect();
        let expected = ["RTPS 2.5/8.3.8.6", "DDS 1.4/2.2.3.14", "XTypes 1.3/7.4.3", "RFC 2474/3", "IDL 4.2/A.2"];
        assert_eq!(names, expected);
        assert_eq!(found.malformed.len(), 0);
    }

    #[test]
    fn enumeration_of_sections_keeps_its_specification() {
        let found = collected("//! (RTPS 2.5 §8.2, §8.3 (x), §8.4 and §8.5,\n//! §9.1; DDS 1.4 §2)\n");
        let count = |name| found.citations.iter().filter(|c| c.specification == name).count();
        assert_eq!((count("RTPS 2.5"), count("DDS 1.4"), found.malformed.len()), (5, 1, 0));
        for broken in ["// RTPS 2.5 §8\n//\n// §9\n", "// RTPS 2.5 §8, XTypes §9\n"] {
            let found = collected(broken);
            assert_eq!((found.citations.len(), found.malformed.len()), (1, 1), "{broken}");
        }
    }

    #[test]
    fn citations_in_literals_are_ignored() {
        let found = collected("const A: &str = \"RTPS 2.5 §8.3\"; // plain\n");
        assert_eq!(found.citations.len() + found.malformed.len(), 0);
    }

    #[test]
    fn citation_that_cannot_be_searched_is_malformed() {
        for text in ["// RTPS §8.3", "// RTPS 2.3 §8.3", "// §8.3", "// RTPS 2.5 §", "// RTPS 2.5§8.3"] {
            let found = collected(text);
            assert_eq!((found.citations.len(), found.malformed.len()), (0, 1), "{text}");
            assert_eq!(found.malformed[0].line, 1);
        }
    }

    #[test]
    fn section_numbers_are_parsed() {
        assert_eq!(section_number("8.3.8.6."), Some("8.3.8.6"));
        assert_eq!(section_number("9)"), Some("9"));
        assert_eq!(section_number("A.2, and"), Some("A.2"));
        for bad in ["", "x.1", "8..1", "8.a"] {
            assert_eq!(section_number(bad), None, "{bad}");
        }
    }

    #[test]
    fn tags_are_collected_to_the_end_of_their_paragraph() {
        let found = collected(
            "//! DEVIATION(RTPS 2.5 §8.4.2): first\n//! second.\n//!\n//! Not this.\nfn f() {} // INTEROP(CycloneDDS 0.10.2): alone\nfn g() {} // not this\n",
        );
        assert_eq!(found.deviations.len(), 1);
        assert_eq!(found.deviations[0].subject, "RTPS 2.5 §8.4.2");
        assert_eq!(found.deviations[0].text, "first second.");
        assert_eq!(found.interop[0].subject, "CycloneDDS 0.10.2");
        assert_eq!(found.interop[0].text, "alone");
        assert_eq!(found.citations.len(), 1);
    }

    #[test]
    fn tag_text_ends_at_the_next_tag() {
        let found = collected("// INTEROP(A 1): one. INTEROP(B 2): two\n// more. INTEROP(C 3): three\n");
        let texts: Vec<&str> = found.interop.iter().map(|t| t.text.as_str()).collect();
        assert_eq!(texts, ["one.", "two more.", "three"]);
    }

    #[test]
    fn tag_without_subject_or_text_is_malformed() {
        for text in ["// DEVIATION: why", "// INTEROP(): x", "// INTEROP(A 1):", "// DEVIATION(x) y"] {
            assert_eq!(collected(text).malformed.len(), 1, "{text}");
        }
        assert_eq!(collected("// the DEVIATION tags are collected").malformed.len(), 0);
    }
}
