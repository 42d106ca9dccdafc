//! Conversion of XML to [`Node`]s. Document type definitions, and with them entities that expand,
//! are refused.

use roxmltree::{Document, ParsingOptions};

use crate::error::{ConfigError, Origin, Result};
use crate::tree::{Content, DEPTH_MAX, Node, check_size};

/// Maximum number of nodes of a document, text and comments included.
const NODES_MAX: u32 = 100_000;

/// Parses a document and returns its root element.
pub(crate) fn parse(source: &str, text: &str) -> Result<Node> {
    check_size(source, text)?;
    let options = ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let origin = Origin { source: source.to_owned(), line: error.pos().row };
        ConfigError::new(origin, "", format!("not well-formed XML: {error}"))
    })?;
    node(&document, document.root_element(), source)
}

fn node(document: &Document<'_>, element: roxmltree::Node<'_, '_>, source: &str) -> Result<Node> {
    let line = document.text_pos_at(element.range().start).row;
    let name = element.tag_name().name().to_owned();
    if element.ancestors().count() > DEPTH_MAX + 1 {
        let origin = Origin { source: source.to_owned(), line };
        return Err(ConfigError::new(origin, name, "elements are nested too deeply"));
    }
    // Attributes of other namespaces, such as xsi:schemaLocation, are ignored.
    let own = element.attributes().filter(|attribute| attribute.namespace().is_none());
    let attributes = own.map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned())).collect();
    let mut children = Vec::new();
    let mut text = String::new();
    for child in element.children() {
        if child.is_element() {
            children.push(self::node(document, child, source)?);
        } else if child.is_text() {
            text.push_str(child.text().unwrap_or_default());
        }
    }
    let text = text.trim();
    let content = match (children.is_empty(), text.is_empty()) {
        (false, true) => Content::Children(children),
        (true, _) => Content::Text(text.to_owned()),
        (false, false) => {
            let origin = Origin { source: source.to_owned(), line };
            return Err(ConfigError::new(origin, name, "text between elements"));
        }
    };
    Ok(Node { name, line, attributes, content })
}

/// Escapes a text for element content or an attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse("t.xml", text).expect_err("refused").to_string()
    }

    #[test]
    fn elements_attributes_and_lines_are_parsed() {
        let text = "<?xml version='1.0'?>\n<a xmlns='http://www.omg.org/spec/DDS-XML' name='n'>\n <!-- c -->\n <b> 1 &lt; 2 </b>\n <c/>\n</a>";
        let root = parse("t.xml", text).expect("well-formed");
        assert_eq!((root.name.as_str(), root.line, root.attribute("name")), ("a", 2, Some("n")));
        let [b, c] = root.children() else { panic!("{root:?}") };
        assert_eq!((b.name.as_str(), b.line, b.text()), ("b", 4, Some("1 < 2")));
        assert_eq!((c.line, c.text(), c.children().len()), (5, Some(""), 0));
    }

    #[test]
    fn document_type_definitions_are_refused() {
        let bomb = "<!DOCTYPE a [<!ENTITY x \"xxxx\"><!ENTITY y \"&x;&x;\">]><a>&y;</a>";
        assert!(refusal(bomb).contains("DTD"), "{}", refusal(bomb));
        assert!(refusal("<a>&unknown;</a>").starts_with("t.xml:1: not well-formed XML"));
    }

    #[test]
    fn malformed_xml_is_reported_with_its_line() {
        assert!(refusal("<a>\n<b>\n</a>").starts_with("t.xml:3: "), "{}", refusal("<a>\n<b>\n</a>"));
        assert!(refusal("<a>text<b/></a>").contains("text between elements"));
        assert!(refusal("").starts_with("t.xml:"));
    }

    #[test]
    fn depth_and_size_are_bounded() {
        for levels in [DEPTH_MAX + 2, 100, 300_000] {
            let deep = "<a>".repeat(levels);
            assert!(!refusal(&deep).is_empty(), "{levels}");
        }
        let nested = format!("{}{}", "<a>".repeat(DEPTH_MAX + 1), "</a>".repeat(DEPTH_MAX + 1));
        assert!(refusal(&nested).contains("nested too deeply"), "{}", refusal(&nested));
        let long = format!("<a>{}</a>", " ".repeat(crate::tree::FILE_BYTES_MAX));
        assert!(refusal(&long).contains("bytes"));
    }

    #[test]
    fn escaped_text_round_trips() {
        let text = "a<b>&\"c\"";
        let root = parse("t", &format!("<x y=\"{0}\">{0}</x>", escape(text))).expect("well-formed");
        assert_eq!((root.text(), root.attribute("y")), (Some(text), Some(text)));
    }
}
