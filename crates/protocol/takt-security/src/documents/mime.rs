//! MIME forms of a signed document (RFC 1847, RFC 8551): a detached signature, and a signature that
//! contains its content.
//!
//! OpenSSL does not parse the MIME headers: the crate `openssl` panics on an error text that is not
//! UTF-8, and OpenSSL quotes MIME headers in its error texts.

use openssl::base64::decode_block;

use crate::error::{ErrorKind, Result, SecurityError, failed};

/// Signature, and the content if the signature is detached.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signed {
    /// PKCS#7 structure in DER.
    pub(super) signature: Vec<u8>,
    /// Signed content, with CR LF at the end of each line.
    pub(super) content: Option<Vec<u8>>,
}

fn malformed(what: &str) -> SecurityError {
    SecurityError::new(ErrorKind::Malformed, format!("S/MIME: {what}"))
}

/// Parses a signed document.
pub(super) fn parse(document: &[u8]) -> Result<Signed> {
    let lines: Vec<&[u8]> = document.split(|octet| *octet == b'\n').map(without_carriage_return).collect();
    let (header, body) = header(&lines).ok_or_else(|| malformed("no header"))?;
    let content_type = field(&header, "content-type").ok_or_else(|| malformed("no Content-Type"))?;
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "multipart/signed" => multipart(body, &content_type),
        "application/pkcs7-mime" | "application/x-pkcs7-mime" => Ok(Signed { signature: base64(body)?, content: None }),
        _ => Err(malformed("Content-Type is neither multipart/signed nor application/pkcs7-mime")),
    }
}

fn multipart(lines: &[&[u8]], content_type: &str) -> Result<Signed> {
    let boundary = boundary(content_type).ok_or_else(|| malformed("no boundary"))?;
    let delimiter = format!("--{boundary}").into_bytes();
    let last = format!("--{boundary}--").into_bytes();
    let next = |from: usize, delimiter: &[u8]| {
        let found = lines[from..].iter().position(|line| line.trim_ascii_end() == delimiter);
        found.map(|index| from + index).ok_or_else(|| malformed("a boundary is missing"))
    };
    let first = next(0, &delimiter)?;
    let second = next(first + 1, &delimiter)?;
    let end = next(second + 1, &last)?;
    // The line end before a boundary is part of the boundary.
    let content = lines[first + 1..second].join(&b"\r\n"[..]);
    let (_, body) = header(&lines[second + 1..end]).ok_or_else(|| malformed("signature without header"))?;
    Ok(Signed { signature: base64(body)?, content: Some(content) })
}

fn without_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns the header fields before the first empty line, and the lines after it.
fn header<'a>(lines: &'a [&'a [u8]]) -> Option<(Vec<String>, &'a [&'a [u8]])> {
    let end = lines.iter().position(|line| line.trim_ascii().is_empty())?;
    let mut fields: Vec<String> = Vec::new();
    for line in &lines[..end] {
        let text = String::from_utf8_lossy(line);
        match fields.last_mut() {
            Some(field) if text.starts_with([' ', '\t']) => field.push_str(&text),
            _ => fields.push(text.into_owned()),
        }
    }
    Some((fields, &lines[end + 1..]))
}

fn field(fields: &[String], name: &str) -> Option<String> {
    let found = fields.iter().filter_map(|field| field.split_once(':'));
    let mut found = found.filter(|(own, _)| own.trim().eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim().to_owned())
}

fn boundary(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1);
    let mut parameters = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, value) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"))?;
    let value = value.trim();
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    (!value.is_empty()).then_some(value)
}

fn base64(lines: &[&[u8]]) -> Result<Vec<u8>> {
    let text: String = lines.iter().flat_map(|line| line.trim_ascii()).map(|octet| char::from(*octet)).collect();
    decode_block(&text).map_err(failed(ErrorKind::Malformed, "S/MIME signature in base64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_parsed_with_any_line_ends() {
        let detached = "MIME-Version: 1.0\nContent-Type: multipart/signed; protocol=\"x\";\n\tBoundary=\"--B\"\n\npreamble\n\
            ----B\nContent-Type: text/plain\n\nline \u{fc}\n\n----B\nContent-Type: application/x\n\nAQID\nBA==\n\n----B--\n";
        let content = "Content-Type: text/plain\r\n\r\nline \u{fc}\r\n".as_bytes().to_vec();
        let expected = Signed { signature: vec![1, 2, 3, 4], content: Some(content) };
        for text in [detached.to_owned(), detached.replace('\n', "\r\n")] {
            assert_eq!(parse(text.as_bytes()).as_ref(), Ok(&expected));
        }
        let opaque = "Content-Type: application/x-pkcs7-mime; smime-type=signed-data\n\nAQIDBA==\n";
        assert_eq!(parse(opaque.as_bytes()), Ok(Signed { signature: vec![1, 2, 3, 4], content: None }));
    }

    #[test]
    fn malformed_signed_documents_are_refused() {
        for text in [
            "",
            "\n",
            "<dds/>",
            "Content-Type: text/plain\n\nAQID\n",
            "Content-Type: multipart/signed\n\n",
            "Content-Type: multipart/signed; boundary=\"\"\n\n--\n--\n----\n",
            "Content-Type: multipart/signed; boundary=b\n\n--b\nx\n--b--\n",
            "Content-Type: multipart/signed; boundary=b\n\n--b\nx\n--b\nAQID\n--b--\n",
            "Content-Type: multipart/signed; boundary=b\n\n--b\nx\n--b\n\nA\u{fc}QID\n--b--\n",
            "Content-Type: application/pkcs7-mime\n\nnot base64!\n",
        ] {
            assert_eq!(parse(text.as_bytes()).expect_err(text).kind(), ErrorKind::Malformed);
        }
    }
}
