//! URIs in the values of security properties (DDS-SEC 1.1 §9.3.1).

use std::path::Path;

use super::read_file;
use crate::{Error, Result};

/// Reads the private key that a URI names; returns the URI itself if the key is in a token
/// (`pkcs11:`, RFC 7512).
pub(super) fn read_key(name: &str, uri: &str) -> Result<Vec<u8>> {
    match uri.starts_with("pkcs11:") {
        true => Ok(uri.as_bytes().to_vec()),
        false => read(name, uri),
    }
}

/// Reads the content that a URI names: `file:PATH`, `file:///PATH`, or `data:,TEXT`.
pub(super) fn read(name: &str, uri: &str) -> Result<Vec<u8>> {
    if let Some(path) = file(uri) {
        return read_file(name, path);
    }
    if let Some(data) = uri.strip_prefix("data:") {
        let (_, text) = data.split_once(',').ok_or_else(|| invalid_uri(name, "is a data URI without a comma"))?;
        return Ok(text.as_bytes().to_vec());
    }
    Err(invalid_uri(name, "must begin with file: or data:"))
}

/// Returns the file that a URI names, if any.
pub(super) fn file(uri: &str) -> Option<&Path> {
    let path = uri.strip_prefix("file:")?;
    // An empty host may precede an absolute path (RFC 8089).
    Some(Path::new(path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path)))
}

fn invalid_uri(name: &str, what: &str) -> Error {
    Error::bad_parameter(format!("property \"{name}\" {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_yields_inline_text_or_file_content() {
        assert_eq!(read("p", "data:,-----BEGIN").expect("text"), b"-----BEGIN");
        assert_eq!(read("p", "data:text/plain,a,b").expect("text"), b"a,b");
        let file = std::env::temp_dir().join(format!("takt-uri-{}", std::process::id()));
        std::fs::write(&file, "content").expect("a file");
        for form in ["file:", "file://"] {
            assert_eq!(read("p", &format!("{form}{}", file.display())).expect("a file"), b"content");
        }
        std::fs::remove_file(&file).expect("it is there");
        let error = read("p", &format!("file:{}", file.display())).expect_err("it is gone").to_string();
        assert!(error.contains("p: ") && error.contains("cannot be read"), "{error}");
    }

    #[test]
    fn unknown_uri_forms_are_errors() {
        assert_eq!(read_key("p", "pkcs11:object=a").expect("a key in a token"), b"pkcs11:object=a");
        for (uri, expected) in
            [("pkcs11:object=a", "must begin"), ("/etc/cert.pem", "must begin"), ("data:x", "without a comma")]
        {
            let error = read("p", uri).expect_err("no form").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
