//! Strict parser of small XML documents: known elements only, with line numbers in errors.

use roxmltree::{Document, Node, ParsingOptions};

use crate::error::{ErrorKind, Result, SecurityError};

/// Maximum length in octets of a document.
pub const DOCUMENT_LEN_MAX: usize = 1 << 18;
/// Maximum number of nodes of a document, texts and comments included.
pub const NODES_MAX: u32 = 20_000;
/// Maximum length in octets of a topic or partition expression.
pub const EXPRESSION_LEN_MAX: usize = 256;

/// Element with its document.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    document: &'a Document<'a>,
    node: Node<'a, 'a>,
}

/// Parses a text and calls `read` with its root element.
pub(super) fn read<T>(text: &str, read: impl FnOnce(Element<'_>) -> Result<T>) -> Result<T> {
    if text.len() > DOCUMENT_LEN_MAX {
        let reason = format!("document of {} octets, at most {DOCUMENT_LEN_MAX}", text.len());
        return Err(SecurityError::new(ErrorKind::Limit, reason));
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| SecurityError::new(ErrorKind::Malformed, format!("XML: {error}")))?;
    read(Element { document: &document, node: document.root_element() })
}

impl<'a> Element<'a> {
    pub(super) fn name(self) -> &'a str {
        self.node.tag_name().name()
    }

    pub(super) fn line(self) -> u32 {
        self.document.text_pos_at(self.node.range().start).row
    }

    pub(super) fn error(self, what: &str) -> SecurityError {
        SecurityError::new(ErrorKind::Malformed, format!("line {}: <{}> {what}", self.line(), self.name()))
    }

    pub(super) fn attribute(self, name: &str) -> Option<&'a str> {
        self.node.attribute(name)
    }

    /// Returns the child elements. Text between them and names outside of `known` are errors.
    pub(super) fn children(self, known: &[&str]) -> Result<Vec<Self>> {
        let mut children = Vec::new();
        for node in self.node.children() {
            let child = Self { document: self.document, node };
            if node.is_element() {
                if !known.contains(&child.name()) {
                    return Err(child.error(&format!(
                        "is unknown in <{}>; expected {}",
                        self.name(),
                        known.join(", ")
                    )));
                }
                children.push(child);
            } else if node.is_text() && !node.text().unwrap_or_default().trim().is_empty() {
                return Err(self.error("has text between its elements"));
            }
        }
        Ok(children)
    }

    /// Returns the trimmed text of an element without children.
    pub(super) fn text(self) -> Result<&'a str> {
        if self.node.children().any(|child| child.is_element()) {
            return Err(self.error("has elements, expected text"));
        }
        let mut texts = self.node.children().filter(|child| child.is_text());
        let first = texts.next().and_then(|text| text.text()).unwrap_or_default();
        // A comment splits a text in two; a signed document that hides a part in this way is
        // refused.
        if texts.next().is_some() {
            return Err(self.error("has text in several pieces"));
        }
        Ok(first.trim())
    }

    pub(super) fn expression(self) -> Result<String> {
        let text = self.text()?;
        if text.len() > EXPRESSION_LEN_MAX {
            return Err(self.error(&format!("has {} octets, at most {EXPRESSION_LEN_MAX}", text.len())));
        }
        Ok(text.to_owned())
    }

    pub(super) fn boolean(self) -> Result<bool> {
        match self.text()? {
            "1" => Ok(true),
            "0" => Ok(false),
            text if text.eq_ignore_ascii_case("true") => Ok(true),
            text if text.eq_ignore_ascii_case("false") => Ok(false),
            text => Err(self.error(&format!("is \"{text}\", expected true or false"))),
        }
    }
}

/// Children of an element by name, each at most once.
pub(super) struct Fields<'a> {
    parent: Element<'a>,
    children: Vec<Element<'a>>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(parent: Element<'a>, known: &[&str]) -> Result<Self> {
        let children = parent.children(known)?;
        for (index, child) in children.iter().enumerate() {
            if children[..index].iter().any(|other| other.name() == child.name()) {
                return Err(child.error("occurs twice"));
            }
        }
        Ok(Self { parent, children })
    }

    pub(super) fn optional(&self, name: &str) -> Option<Element<'a>> {
        self.children.iter().copied().find(|child| child.name() == name)
    }

    pub(super) fn required(&self, name: &str) -> Result<Element<'a>> {
        self.optional(name).ok_or_else(|| self.parent.error(&format!("has no <{name}>")))
    }
}
