//! Common tree of XML and TOML: named nodes with attributes, and text or children. Sizes are
//! bounded, so that an untrusted file costs little.

use crate::error::{ConfigError, Origin, Result};
use crate::similar::similar;

/// Longest configuration, in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of elements. All meaningful elements are above this depth.
pub const DEPTH_MAX: usize = 12;

/// Format of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OMG DDS-XML 1.0.
    Xml,
    /// The same elements as keys in TOML.
    Toml,
}

impl Format {
    /// Returns the format by the ending of a file name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let ending = name.rsplit_once('.')?.1;
        match ending.to_ascii_lowercase().as_str() {
            "xml" => Some(Self::Xml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

/// Element with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) line: u32,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) content: Content,
}

/// Content of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text without surrounding white space.
    Text(String),
    /// Child elements.
    Children(Vec<Node>),
}

/// Position of a node for error messages: source, format and path.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) source: &'a str,
    pub(crate) path: &'a str,
    pub(crate) format: Format,
}

impl Node {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the children. Empty for an empty element.
    pub(crate) fn children(&self) -> &[Node] {
        match &self.content {
            Content::Children(children) => children,
            Content::Text(_) => &[],
        }
    }

    /// Returns the text. Empty for an empty element, `None` if there are child elements.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Children(children) => children.is_empty().then_some(""),
        }
    }

    pub(crate) fn origin(&self, place: Place<'_>) -> Origin {
        Origin { source: place.source.to_owned(), line: self.line }
    }

    /// Returns the node's component of a path. Libraries and profiles are keys in TOML, and
    /// elements with a name in XML.
    fn step(&self, format: Format) -> String {
        match (format, self.name.as_str(), self.attribute("name")) {
            (Format::Toml, "qos_library", Some(name)) => format!("qos_library.{name}"),
            (Format::Toml, "qos_profile", Some(name)) => name.to_owned(),
            _ => self.name.clone(),
        }
    }

    /// Returns the path of this node, with the separator that precedes a child.
    pub(crate) fn below(&self, place: Place<'_>) -> String {
        let separator = if place.format == Format::Toml { '.' } else { '/' };
        format!("{}{}{separator}", place.path, self.step(place.format))
    }

    /// Creates an error about this node.
    pub(crate) fn error(&self, place: Place<'_>, what: impl Into<String>) -> ConfigError {
        ConfigError::new(self.origin(place), format!("{}{}", place.path, self.step(place.format)), what)
    }

    /// Creates an error about an unknown child.
    pub(crate) fn unknown_child(&self, place: Place<'_>, child: &Node, known: &[&str]) -> ConfigError {
        let path = format!("{}{}", self.below(place), child.name);
        let meant = did_you_mean(&child.name, known.iter().copied());
        ConfigError::new(child.origin(place), path, format!("unknown element; expected {}{meant}", listing(known)))
    }

    /// Fails if the node has any other attribute.
    pub(crate) fn check_attributes(&self, place: Place<'_>, known: &[&str]) -> Result<()> {
        let unknown = self.attributes.iter().find(|(name, _)| !known.contains(&name.as_str()));
        unknown.map_or(Ok(()), |(name, _)| {
            let expected = if known.is_empty() { "none".to_owned() } else { listing(known) };
            Err(self.error(place, format!("unknown attribute {name:?}; expected {expected}")))
        })
    }

    /// Fails if there is text where elements are expected.
    pub(crate) fn check_no_text(&self, place: Place<'_>) -> Result<()> {
        match &self.content {
            Content::Text(text) if !text.is_empty() => {
                Err(self.error(place, format!("found {:?}; expected elements", clipped(text))))
            }
            _ => Ok(()),
        }
    }
}

/// Formats words as a list in a sentence.
pub(crate) fn listing(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// Returns `; did you mean history?` if one of the known names is similar.
pub(crate) fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    similar(name, known).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default()
}

/// Returns the beginning of a text, for messages.
pub(crate) fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(60)]
}

/// Refuses a text that is too long.
pub(crate) fn check_size(source: &str, text: &str) -> Result<()> {
    if text.len() <= FILE_BYTES_MAX {
        return Ok(());
    }
    let what = format!("{} bytes exceed the limit of {FILE_BYTES_MAX}", text.len());
    Err(ConfigError::new(Origin { source: source.to_owned(), line: 0 }, "", what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_follows_the_file_ending() {
        assert_eq!(Format::of_name("a/b.XML"), Some(Format::Xml));
        assert_eq!(Format::of_name("takt.toml"), Some(Format::Toml));
        assert_eq!(Format::of_name("takt"), None);
        assert_eq!(Format::of_name("takt.json"), None);
    }

    #[test]
    fn words_are_listed_in_a_sentence() {
        assert_eq!(listing(&[]), "nothing");
        assert_eq!(listing(&["a"]), "a");
        assert_eq!(listing(&["a", "b", "c"]), "a, b or c");
    }
}
