//! Generation and check of `docs/reference/conformance.md`: cited specification sections by source
//! file, deviations of Takt with reasons, and observed behavior of other vendors.
//!
//! The document is collected from the comments of Rust files. A citation is a specification with
//! its version, a section sign and a number. A tag is `DEVIATION` with a citation, or `INTEROP`
//! with a vendor and version, in parentheses; then a colon and the text, up to the end of its
//! paragraph. Files are listed without line numbers, so that the document changes only when a
//! citation changes.

mod collect;
mod render;

use crate::tidy::Report;
use crate::tree::SourceTree;

pub use render::render;

/// Path of the document, relative to the root.
pub const DOCUMENT: &str = "docs/reference/conformance.md";

/// Specification that sources may cite.
struct Specification {
    /// Name as cited, with its version.
    name: &'static str,
    /// Title and document number.
    title: &'static str,
}

const SPECIFICATIONS: &[Specification] = &[
    Specification { name: "RTPS 2.5", title: "OMG DDS Interoperability Wire Protocol 2.5, formal/2022-04-01" },
    Specification { name: "DDS 1.4", title: "OMG Data Distribution Service 1.4, formal/2015-04-10" },
    Specification {
        name: "XTypes 1.3",
        title: "OMG Extensible and Dynamic Topic Types for DDS 1.3, formal/2020-02-04",
    },
    Specification { name: "DDS-XML 1.0", title: "OMG DDS Consolidated XML Syntax 1.0, formal/2018-10-01" },
    Specification { name: "DDS-SEC 1.1", title: "OMG DDS Security 1.1, formal/2018-04-01" },
    Specification { name: "IDL 4.2", title: "OMG Interface Definition Language 4.2, formal/2018-01-05" },
    Specification { name: "OF 1.3.5", title: "ONF OpenFlow Switch Specification 1.3.5, ONF TS-023" },
];

/// Fails on a citation or tag that cannot be collected, and on a document that is out of date.
pub fn check(tree: &SourceTree) -> Report {
    let mut report = Report::default();
    let collection = collect::collect(tree);
    for bad in collection.malformed {
        let file = tree.file(&bad.path);
        let file = file.expect("the finding is about a file of this tree");
        report.fail_line("citation", file, bad.line, bad.message);
    }
    let document = tree.file(DOCUMENT).map_or("", |file| file.text.as_str());
    if document != render(tree) {
        let message = "is not what the sources say: run `cargo xtask conformance`";
        report.fail("conformance", DOCUMENT, message.to_owned());
    }
    report
}

#[cfg(test)]
mod tests {
    use super::{DOCUMENT, check, render};
    use crate::fixture::Fixture;

    const SOURCE: &str = "//! Reader, RTPS 2.5 §8.4.10.\n";

    #[test]
    fn current_document_passes_and_stale_one_fails() {
        let fixture = Fixture::new(&[("crates/a/src/lib.rs", SOURCE)]);
        assert_eq!(check(&fixture.tree()).failure_count(), 1);
        let document = render(&fixture.tree());
        fixture.write_bytes(DOCUMENT, document.as_bytes());
        assert_eq!(check(&fixture.tree()).failure_count(), 0);
        let more = format!("{SOURCE}// XTypes 1.3 §7.4\n");
        fixture.write_bytes("crates/a/src/lib.rs", more.as_bytes());
        assert_eq!(check(&fixture.tree()).failure_count(), 1);
    }

    #[test]
    fn document_stays_current_when_a_line_moves() {
        let fixture = Fixture::new(&[("crates/a/src/lib.rs", SOURCE)]);
        let before = render(&fixture.tree());
        let moved = format!("//! Longer.\n{SOURCE}");
        fixture.write_bytes("crates/a/src/lib.rs", moved.as_bytes());
        assert_eq!(render(&fixture.tree()), before);
    }

    #[test]
    fn citation_without_version_fails_with_its_line() {
        let fixture = Fixture::new(&[("crates/a/src/lib.rs", "//! A.\n// RTPS §8.4\n")]);
        let report = check(&fixture.tree());
        assert_eq!(report.findings[0].line, Some(2));
        assert_eq!(report.findings[0].rule, "citation");
    }
}
