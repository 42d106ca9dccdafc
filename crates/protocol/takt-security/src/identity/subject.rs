//! Subject names of certificates and of permissions, compared independently of their spelling.
//!
//! The normal form is that of RFC 2253: last attribute first, short names, no spaces around
//! separators. Names are parsed in three notations: RFC 2253 (`CN=a,O=b`), the order of the
//! certificate with spaces (`O = b, CN = a`), and with slashes (`/O=b/CN=a`). Two names are equal
//! if their attributes are equal, in the same or in the opposite order. Values compare exactly,
//! except that runs of spaces count as one.

use std::fmt;

use openssl::x509::X509NameRef;

use crate::error::{ErrorKind, Result, SecurityError, failed};

/// Maximum length in octets of a subject name as text.
const SUBJECT_LEN_MAX: usize = 2_048;
/// Maximum number of attributes of a subject name.
const ATTRIBUTES_MAX: usize = 32;

/// Long names, obsolete names and object identifiers, with their short names.
const SYNONYMS: &[(&str, &str)] = &[
    ("COMMONNAME", "CN"),
    ("2.5.4.3", "CN"),
    ("COUNTRYNAME", "C"),
    ("2.5.4.6", "C"),
    ("STATEORPROVINCENAME", "ST"),
    ("S", "ST"),
    ("2.5.4.8", "ST"),
    ("LOCALITYNAME", "L"),
    ("2.5.4.7", "L"),
    ("ORGANIZATIONNAME", "O"),
    ("2.5.4.10", "O"),
    ("ORGANIZATIONALUNITNAME", "OU"),
    ("2.5.4.11", "OU"),
    ("EMAILADDRESS", "EMAIL"),
    ("E", "EMAIL"),
    ("1.2.840.113549.1.9.1", "EMAIL"),
];

/// Subject name as a list of attributes.
#[derive(Clone, Debug)]
pub struct SubjectName {
    /// Attributes in the order of the text: name in normal form, name as written, value.
    attributes: Vec<Attribute>,
}

#[derive(Clone, Debug)]
struct Attribute {
    kind: String,
    written: String,
    value: String,
}

impl SubjectName {
    /// Reads the subject name of a certificate.
    pub(super) fn of(name: &X509NameRef) -> Result<Self> {
        let mut attributes = Vec::new();
        for entry in name.entries() {
            let value = entry.data().to_string().map_err(failed(ErrorKind::Certificate, "subject name"))?;
            let nid = entry.object().nid();
            let written = nid.short_name().map_or_else(|_| entry.object().to_string(), ToOwned::to_owned);
            attributes.push(Attribute::new(&written, &value)?);
        }
        // A certificate lists attributes in hierarchical order, RFC 2253 in the opposite order.
        attributes.reverse();
        Self::checked(attributes)
    }

    /// Parses the `subject_name` of a grant.
    ///
    /// # Errors
    /// The name is too long or empty, or an attribute has no `=`.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.len() > SUBJECT_LEN_MAX {
            let reason = format!("subject name of {} octets, at most {SUBJECT_LEN_MAX}", text.len());
            return Err(SecurityError::new(ErrorKind::Limit, reason));
        }
        let (separators, text) = match text.strip_prefix('/') {
            Some(rest) => (&['/'][..], rest),
            None => (&[',', ';', '+'][..], text),
        };
        let attributes = split(text, separators).iter().map(|part| attribute(part)).collect::<Result<_>>()?;
        Self::checked(attributes)
    }

    fn checked(attributes: Vec<Attribute>) -> Result<Self> {
        if attributes.is_empty() || attributes.len() > ATTRIBUTES_MAX {
            let reason = format!("subject name of {} attributes, expected 1 to {ATTRIBUTES_MAX}", attributes.len());
            return Err(SecurityError::new(ErrorKind::Certificate, reason));
        }
        Ok(Self { attributes })
    }
}

impl PartialEq for SubjectName {
    fn eq(&self, other: &Self) -> bool {
        let key = |attribute: &Attribute| (attribute.kind.clone(), attribute.value.clone());
        let own: Vec<_> = self.attributes.iter().map(key).collect();
        let others: Vec<_> = other.attributes.iter().map(key).collect();
        own == others || own.iter().eq(others.iter().rev())
    }
}

impl Eq for SubjectName {}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, attribute) in self.attributes.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}=", attribute.written)?;
            let len = attribute.value.chars().count();
            for (position, character) in attribute.value.chars().enumerate() {
                let is_edge =
                    (position == 0 && matches!(character, '#' | ' ')) || (position + 1 == len && character == ' ');
                if is_edge || matches!(character, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
                    f.write_str("\\")?;
                }
                write!(f, "{character}")?;
            }
        }
        Ok(())
    }
}

impl Attribute {
    fn new(written: &str, value: &str) -> Result<Self> {
        let upper = written.to_ascii_uppercase();
        let bare = upper.strip_prefix("OID.").unwrap_or(&upper);
        if value.chars().any(char::is_control) {
            return Err(SecurityError::new(ErrorKind::Malformed, "control character in a subject name"));
        }
        if bare.is_empty() {
            return Err(SecurityError::new(ErrorKind::Malformed, "attribute without a name in a subject name"));
        }
        // A separator inside an attribute name would change the name when it is written and parsed
        // again.
        if !written.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '-' | '.' | '_')) {
            let reason =
                format!("attribute name \"{written}\" in a subject name, expected letters, digits, '-', '.' and '_'");
            return Err(SecurityError::new(ErrorKind::Malformed, reason));
        }
        let kind = SYNONYMS.iter().find(|(synonym, _)| *synonym == bare).map_or(bare, |(_, kind)| kind).to_owned();
        Ok(Self { kind, written: written.to_owned(), value: squeezed(value) })
    }
}

/// Splits at unescaped separators outside of quotes; empty parts are omitted.
fn split<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let (mut parts, mut start, mut is_escaped, mut is_quoted) = (Vec::new(), 0, false, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            other if !is_quoted && separators.contains(&other) => {
                parts.push(&text[start..index]);
                start = index + other.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn attribute(part: &str) -> Result<Attribute> {
    let Some((name, value)) = part.split_once('=') else {
        let reason = format!("\"{}\" in a subject name, expected NAME=VALUE", part.trim());
        return Err(SecurityError::new(ErrorKind::Malformed, reason));
    };
    let value = value.trim();
    let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    Attribute::new(name.trim(), &unescaped(value))
}

/// Removes the backslashes of RFC 2253 and combines octets written as hex pairs.
fn unescaped(value: &str) -> String {
    let mut octets = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            octets.push(*first);
            continue;
        }
        let digit = |octet: &u8| (*octet as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match rest {
            [high, low, tail @ ..] if digit(high).is_some() && digit(low).is_some() => {
                octets.push(digit(high).unwrap_or(0) << 4 | digit(low).unwrap_or(0));
                rest = tail;
            }
            [escaped, tail @ ..] => {
                octets.push(*escaped);
                rest = tail;
            }
            [] => {}
        }
    }
    String::from_utf8_lossy(&octets).into_owned()
}

fn squeezed(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SubjectName {
        SubjectName::parse(text).expect("a subject name")
    }

    #[test]
    fn notations_of_the_same_name_are_equal() {
        let rfc = name("emailAddress=a@b.c,CN=Alice A,O=Big\\, Inc.,ST=MA,C=US");
        for text in [
            "C = US, ST = MA, O = \"Big, Inc.\", CN = Alice A, emailAddress = a@b.c",
            "/C=US/ST=MA/O=Big, Inc./CN=Alice A/emailAddress=a@b.c",
            "E=a@b.c, commonName=Alice  A, O=Big\\2c Inc., S=MA, c=US",
            " 1.2.840.113549.1.9.1=a@b.c;OID.2.5.4.3=Alice A;O=Big\\, Inc.;ST=MA;C=US ",
        ] {
            assert_eq!(name(text), rfc, "{text}");
        }
    }

    #[test]
    fn different_names_are_not_equal() {
        let rfc = name("CN=Alice,O=A,C=US");
        for text in
            ["CN=alice,O=A,C=US", "CN=Alice,O=A", "CN=Alice,C=US,O=A", "OU=Alice,O=A,C=US", "CN=Alice,O=A,C=US,C=US"]
        {
            assert_ne!(name(text), rfc, "{text}");
        }
    }

    #[test]
    fn display_is_rfc_2253_and_parses_back() {
        let text = "CN=a\\, b\\+c,O=\\#d,C=US";
        assert_eq!(name(text).to_string(), text);
    }

    #[test]
    fn malformed_names_are_refused() {
        for text in ["", "  ", "CN", "=a", "CN=a,b"] {
            assert!(SubjectName::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(SubjectName::parse(&"C=a,".repeat(600)).expect_err("long").kind(), ErrorKind::Limit);
        assert!(SubjectName::parse(&"C=a,".repeat(33)).is_err());
        assert!(SubjectName::parse("CN=\\").is_ok(), "a lone backslash ends nothing");
    }
}
