//! IDL names of members and enumerators: the Rust name, `name = "..."` or `rename_all = "..."`.

use syn::{Error, Ident, LitStr, Result};

/// Naming convention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NameCase {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
}

const CASES: [(&str, NameCase); 6] = [
    ("lowercase", NameCase::Lower),
    ("UPPERCASE", NameCase::Upper),
    ("PascalCase", NameCase::Pascal),
    ("camelCase", NameCase::Camel),
    ("snake_case", NameCase::Snake),
    ("SCREAMING_SNAKE_CASE", NameCase::ScreamingSnake),
];

impl NameCase {
    pub(crate) fn parse(value: &LitStr) -> Result<Self> {
        let text = value.value();
        let known = CASES.iter().find(|(name, _)| *name == text).map(|(_, case)| *case);
        known.ok_or_else(|| {
            let names: Vec<String> = CASES.iter().map(|(name, _)| format!("{name:?}")).collect();
            Error::new(value.span(), format!("rename_all is {}", names.join(", ")))
        })
    }

    fn apply(self, name: &str) -> String {
        let words = words(name);
        let capital = |word: &String| format!("{}{}", word[..1].to_ascii_uppercase(), &word[1..]);
        match self {
            Self::Lower => words.concat(),
            Self::Upper => words.concat().to_ascii_uppercase(),
            Self::Pascal => words.iter().map(capital).collect(),
            Self::Camel => words[..1].iter().cloned().chain(words[1..].iter().map(capital)).collect(),
            Self::Snake => words.join("_"),
            Self::ScreamingSnake => words.join("_").to_ascii_uppercase(),
        }
    }
}

/// Splits a name into lower-case words, at underscores and before capital letters that begin a
/// word. Returns at least one word.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let characters: Vec<char> = name.chars().collect();
    for (index, &c) in characters.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| characters[before]);
        let after_is_small = characters.get(index + 1).is_some_and(char::is_ascii_lowercase);
        let ends_word =
            |b: char| b.is_ascii_lowercase() || b.is_ascii_digit() || (b.is_ascii_uppercase() && after_is_small);
        if (c == '_' || (c.is_ascii_uppercase() && before.is_some_and(ends_word))) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c != '_' {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() || words.is_empty() {
        words.push(word);
    }
    words
}

/// Returns an identifier as an IDL name, without `r#`.
pub(crate) fn plain_name(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

/// Returns the IDL name of a member or enumerator: the given one, or the Rust name in the
/// convention of the type.
pub(crate) fn member_name(ident: &Ident, given: Option<&String>, rename_all: Option<NameCase>) -> String {
    let plain = || plain_name(ident);
    given.cloned().unwrap_or_else(|| rename_all.map_or_else(plain, |case| case.apply(&plain())))
}

/// Checks that all names are different.
pub(crate) fn check_distinct<'a>(named: impl Iterator<Item = (&'a Ident, &'a String)>) -> Result<()> {
    let mut earlier: Vec<(&Ident, &String)> = Vec::new();
    for (ident, name) in named {
        if let Some((other, _)) = earlier.iter().find(|(_, taken)| *taken == name) {
            return Err(Error::new(ident.span(), format!("the IDL name `{name}` is already used by `{other}`")));
        }
        earlier.push((ident, name));
    }
    Ok(())
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parses a name without modules.
pub(crate) fn identifier(name: &LitStr) -> Result<String> {
    let text = name.value();
    if is_identifier(&text) { Ok(text) } else { Err(Error::new(name.span(), "expected an IDL name such as `frameId`")) }
}

/// Parses a name with or without modules.
pub(crate) fn scoped_name(name: &LitStr) -> Result<String> {
    let text = name.value();
    if text.split("::").all(is_identifier) {
        Ok(text)
    } else {
        Err(Error::new(name.span(), "expected an IDL name such as `module::Name`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_convention_is_built_from_the_words_of_a_name() {
        for (name, expected) in [
            ("frame_id", ["frameid", "FRAMEID", "FrameId", "frameId", "frame_id", "FRAME_ID"]),
            ("FrameId", ["frameid", "FRAMEID", "FrameId", "frameId", "frame_id", "FRAME_ID"]),
            (
                "HttpServer2",
                ["httpserver2", "HTTPSERVER2", "HttpServer2", "httpServer2", "http_server2", "HTTP_SERVER2"],
            ),
            ("IO", ["io", "IO", "Io", "io", "io", "IO"]),
        ] {
            assert_eq!(CASES.map(|(_, case)| case.apply(name)), expected.map(str::to_owned), "{name}");
        }
    }
}
