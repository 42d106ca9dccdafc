//! Conversion of TOML to the same [`Node`]s as XML.
//!
//! A key becomes an element, in the order of the file. Attributes of XML are keys. An array becomes
//! an element with children named `element`. An array of an entity's policies (`.._qos`) becomes
//! that element several times instead.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, Origin, Result};
use crate::tree::{Content, DEPTH_MAX, Node, check_size};

/// Keys that are attributes in XML.
pub(crate) const ATTRIBUTES: [&str; 3] = ["base_name", "is_default_qos", "topic_filter"];

/// Suffix of elements that may occur several times.
const REPEATED: &str = "_qos";

struct Reader<'a> {
    source: &'a str,
    /// Offset of the start of each line.
    lines: Vec<usize>,
}

/// Parses a document. Returns a root element without a name that contains its keys.
pub(crate) fn parse(source: &str, text: &str) -> Result<Node> {
    check_size(source, text)?;
    let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let reader = Reader { source, lines };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        ConfigError::new(reader.origin(at), "", format!("invalid TOML: {}", error.message()))
    })?;
    let mut root = Node { name: String::new(), line: 1, attributes: Vec::new(), content: Content::Text(String::new()) };
    reader.fill(&mut root, table.get_ref(), 1)?;
    Ok(root)
}

impl Reader<'_> {
    fn line(&self, at: usize) -> u32 {
        u32::try_from(self.lines.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    fn origin(&self, at: usize) -> Origin {
        Origin { source: self.source.to_owned(), line: self.line(at) }
    }

    /// Adds the keys of a table to a node, in the order of the file.
    fn fill(&self, node: &mut Node, table: &DeTable<'_>, depth: usize) -> Result<()> {
        let mut entries: Vec<(&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut children = Vec::new();
        for (key, value) in entries {
            let name = key.get_ref().as_ref();
            let at = key.span().start;
            if depth > DEPTH_MAX {
                return Err(ConfigError::new(self.origin(at), name, "tables are nested too deeply"));
            }
            if let Some(text) = scalar(value.get_ref()).filter(|_| ATTRIBUTES.contains(&name)) {
                node.attributes.push((name.to_owned(), text));
                continue;
            }
            match value.get_ref() {
                DeValue::Array(items) if name.ends_with(REPEATED) => {
                    for item in items {
                        children.push(self.node(name, item.span().start, item.get_ref(), depth)?);
                    }
                }
                value => children.push(self.node(name, at, value, depth)?),
            }
        }
        node.content = Content::Children(children);
        Ok(())
    }

    fn node(&self, name: &str, at: usize, value: &DeValue<'_>, depth: usize) -> Result<Node> {
        let content = scalar(value).map_or_else(|| Content::Children(Vec::new()), Content::Text);
        let mut node = Node { name: name.to_owned(), line: self.line(at), attributes: Vec::new(), content };
        match value {
            DeValue::Table(table) => self.fill(&mut node, table, depth + 1)?,
            DeValue::Array(items) => {
                let element = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
                    DeValue::Array(_) => Err(ConfigError::new(self.origin(item.span().start), name, "a nested array")),
                    value => self.node("element", item.span().start, value, depth + 1),
                };
                node.content = Content::Children(items.iter().map(element).collect::<Result<_>>()?);
            }
            _ => {}
        }
        Ok(node)
    }
}

/// Returns a value as XML would write it. `None` for tables and arrays.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.as_ref().to_owned()),
        DeValue::Integer(number) => match number.radix() {
            16 => Some(format!("0x{}", number.as_str())),
            _ => i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string()),
        },
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Datetime(moment) => Some(moment.to_string()),
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// Quotes a text as TOML.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if control.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse("t.toml", text).expect_err("refused").to_string()
    }

    #[test]
    fn keys_become_elements_in_the_order_of_the_file() {
        let text = "[b]\nx = 0x1F\ny = true\n\n[a]\nlist = [\"p\", {k = 2}]\nbase_name = \"L::P\"\n[[a.x_qos]]\nz = 1\n[[a.x_qos]]\nz = 2\n";
        let root = parse("t.toml", text).expect("TOML");
        let [b, a] = root.children() else { panic!("{root:?}") };
        assert_eq!(
            (b.name.as_str(), b.children()[0].text(), b.children()[1].text()),
            ("b", Some("0x1F"), Some("true"))
        );
        assert_eq!((b.children()[0].line, a.attribute("base_name")), (2, Some("L::P")));
        let [list, q, again] = a.children() else { panic!("{a:?}") };
        let [text, table] = list.children() else { panic!("{list:?}") };
        assert_eq!((text.name.as_str(), text.text()), ("element", Some("p")));
        assert_eq!((table.name.as_str(), table.children()[0].text()), ("element", Some("2")));
        assert_eq!((q.line, again.line, again.children()[0].text()), (8, 10, Some("2")));
    }

    #[test]
    fn malformed_toml_is_reported_with_its_line() {
        assert!(refusal("a = 1\nb = \n").starts_with("t.toml:2: invalid TOML"), "{}", refusal("a = 1\nb = \n"));
        assert!(refusal("a = 1\na = 2").starts_with("t.toml:2: "), "{}", refusal("a = 1\na = 2"));
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let dotted = format!("{}z = 1", "a.".repeat(DEPTH_MAX + 2));
        assert!(refusal(&dotted).contains("too deeply"), "{}", refusal(&dotted));
        for levels in [200, 100_000] {
            assert!(!refusal(&format!("a = {}", "[".repeat(levels))).is_empty());
            assert!(!refusal(&format!("{}z = 1", "a.".repeat(levels))).is_empty());
        }
        assert!(refusal("a = [[1]]").contains("nested array"));
        assert!(refusal(&" ".repeat(crate::tree::FILE_BYTES_MAX + 1)).contains("bytes"));
    }

    #[test]
    fn quoted_text_round_trips() {
        let text = "a\"b\\c\nd\u{7f}é";
        let root = parse("t", &format!("x = {}", quote(text))).expect("TOML");
        assert_eq!(root.children()[0].text(), Some(text));
    }
}
