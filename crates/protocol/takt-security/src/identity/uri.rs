//! PKCS#11 URIs of private keys (RFC 7512 §2.3, §2.4).

use std::path::PathBuf;

use crate::error::{ErrorKind, Result, SecurityError};

/// URI scheme of PKCS#11.
pub(super) const SCHEME: &str = "pkcs11:";
/// Maximum length in octets of a file with a PIN.
const PIN_LEN_MAX: u64 = 1_024;

/// PKCS#11 URI of a private key in a token.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct KeyUri {
    /// Label of the token.
    pub token: Option<String>,
    /// Serial number of the token.
    pub serial: Option<String>,
    /// Label of the key.
    pub object: Option<String>,
    /// Id of the key.
    pub id: Option<Vec<u8>>,
    /// Path of the PKCS#11 library.
    pub module: Option<PathBuf>,
    pin_value: Option<String>,
    pin_source: Option<PathBuf>,
}

fn refused(reason: impl Into<String>) -> SecurityError {
    SecurityError::new(ErrorKind::Certificate, reason)
}

impl KeyUri {
    /// Parses a URI. The attributes `manufacturer` and `model`, and those of slots and libraries,
    /// are not supported.
    ///
    /// # Errors
    /// An attribute is malformed, unknown, or repeated. The error does not reveal a PIN.
    pub fn parse(uri: &str) -> Result<Self> {
        let rest =
            uri.trim().strip_prefix(SCHEME).ok_or_else(|| refused(format!("key does not begin with {SCHEME}")))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let attributes = path.split(';').map(|text| (text, false)).chain(query.split('&').map(|text| (text, true)));
        let mut key = Self::default();
        for (attribute, is_query) in attributes.filter(|(text, _)| !text.is_empty()) {
            let no_value = || refused(format!("PKCS#11 URI: \"{attribute}\" has no value"));
            let (name, value) = attribute.split_once('=').ok_or_else(no_value)?;
            let octets = decoded(name, value)?;
            let is_first = match (name, is_query) {
                ("token", false) => key.token.replace(text(name, octets)?).is_none(),
                ("serial", false) => key.serial.replace(text(name, octets)?).is_none(),
                ("object", false) => key.object.replace(text(name, octets)?).is_none(),
                ("id", false) => key.id.replace(octets).is_none(),
                ("type", false) if octets == b"private" => true,
                ("type", false) => return Err(refused("PKCS#11 URI: type is not private")),
                ("module-path", true) => key.module.replace(text(name, octets)?.into()).is_none(),
                ("pin-value", true) => key.pin_value.replace(text(name, octets)?).is_none(),
                ("pin-source", true) => {
                    let source = text(name, octets)?;
                    let path = source.strip_prefix("file:").unwrap_or(&source);
                    key.pin_source.replace(path.strip_prefix("//").unwrap_or(path).into()).is_none()
                }
                _ => return Err(refused(format!("PKCS#11 URI: {name} is not supported"))),
            };
            if !is_first {
                return Err(refused(format!("PKCS#11 URI: {name} is given twice")));
            }
        }
        Ok(key)
    }

    /// Returns the PIN that the URI contains, or reads it from the file that the URI names.
    ///
    /// # Errors
    /// The file cannot be read or is too long.
    pub fn pin(&self) -> Result<Option<String>> {
        let Some(path) = &self.pin_source else { return Ok(self.pin_value.clone()) };
        let failed = |cause: &dyn std::fmt::Display| refused(format!("PIN in {}: {cause}", path.display()));
        if std::fs::metadata(path).map_err(|cause| failed(&cause))?.len() > PIN_LEN_MAX {
            return Err(failed(&format_args!("more than {PIN_LEN_MAX} octets")));
        }
        let pin = std::fs::read_to_string(path).map_err(|cause| failed(&cause))?;
        Ok(Some(pin.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

/// Decodes percent-encoding.
fn decoded(name: &str, value: &str) -> Result<Vec<u8>> {
    let mut octets = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            octets.push(*first);
            continue;
        }
        let malformed = || refused(format!("PKCS#11 URI: {name} has a % without two hexadecimal digits"));
        let (digits, tail) = rest.split_first_chunk::<2>().ok_or_else(malformed)?;
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        let (Some(high), Some(low)) = (digit(0), digit(1)) else { return Err(malformed()) };
        octets.push((high * 16 + low) as u8);
        rest = tail;
    }
    Ok(octets)
}

fn text(name: &str, octets: Vec<u8>) -> Result<String> {
    String::from_utf8(octets).map_err(|_| refused(format!("PKCS#11 URI: {name} is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_decoded() {
        let uri =
            "pkcs11:token=My%20robot;serial=0a;object=arm;id=%01%ff;type=private?module-path=/m.so&pin-value=12%26";
        let key = KeyUri::parse(uri).expect("good");
        assert_eq!((key.token.as_deref(), key.serial.as_deref()), (Some("My robot"), Some("0a")));
        assert_eq!((key.object.as_deref(), key.id.as_deref()), (Some("arm"), Some(&[1, 0xff][..])));
        assert_eq!(key.module, Some("/m.so".into()));
        assert_eq!(key.pin().expect("given").as_deref(), Some("12&"));
        assert_eq!(KeyUri::parse("pkcs11:").expect("any key").pin().expect("none"), None);
    }

    #[test]
    fn pin_is_read_from_the_named_file() {
        let directory = takt_testkit::directory::Directory::new("pin");
        std::fs::write(directory.path().join("pin"), "1234\n").expect("a file");
        for form in ["", "file:", "file://"] {
            let key = KeyUri::parse(&format!("pkcs11:?pin-source={form}{}", directory.text("pin"))).expect("good");
            assert_eq!(key.pin().expect("read").as_deref(), Some("1234"));
        }
        let key = KeyUri::parse(&format!("pkcs11:?pin-source={}", directory.text("none"))).expect("good");
        assert!(key.pin().is_err());
    }

    #[test]
    fn malformed_uris_are_refused_without_revealing_the_pin() {
        for (uri, expected) in [
            ("file:x", "does not begin with pkcs11:"),
            ("pkcs11:token", "has no value"),
            ("pkcs11:token=a;token=b", "token is given twice"),
            ("pkcs11:token=%4", "two hexadecimal digits"),
            ("pkcs11:token=%zz", "two hexadecimal digits"),
            ("pkcs11:token=%ff", "is not UTF-8"),
            ("pkcs11:type=cert", "type is not private"),
            ("pkcs11:slot-id=1", "slot-id is not supported"),
            ("pkcs11:pin-value=1", "pin-value is not supported"),
            ("pkcs11:?pin-value=secret&pin-value=secret", "pin-value is given twice"),
        ] {
            let error = KeyUri::parse(uri).err().expect("refused").to_string();
            assert!(error.contains(expected) && !error.contains("secret"), "{uri}: {error}");
        }
    }
}
