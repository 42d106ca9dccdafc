//! Refusals, each with a kind that callers branch on and a text for the log.

use std::fmt;

use openssl::error::ErrorStack;

/// The stage that refused an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Octets or text that do not follow their format.
    Malformed,
    /// A size or a count above its limit.
    Limit,
    /// A certificate or a private key that is not accepted.
    Certificate,
    /// A signature that does not verify.
    Signature,
    /// A governance or permissions document that does not apply.
    Document,
    /// A handshake message that contradicts the handshake.
    Handshake,
    /// A failure inside the cryptographic library.
    Library,
}

/// A refusal with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityError {
    kind: ErrorKind,
    reason: String,
}

/// The result of everything in this crate but the transformations.
pub type Result<T> = std::result::Result<T, SecurityError>;

impl SecurityError {
    /// A refusal of `kind`; the reason names the entity, the value found and the value expected.
    pub fn new(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }

    /// The stage that refused.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The reason without the kind.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The same refusal with `context` in front of its reason.
    #[must_use]
    pub fn context(self, context: &str) -> Self {
        Self { kind: self.kind, reason: format!("{context}: {}", self.reason) }
    }
}

impl fmt::Display for SecurityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for SecurityError {}

impl From<takt_wire::Malformed> for SecurityError {
    fn from(malformed: takt_wire::Malformed) -> Self {
        Self::new(ErrorKind::Malformed, malformed.to_string())
    }
}

impl From<ErrorStack> for SecurityError {
    fn from(stack: ErrorStack) -> Self {
        Self::new(ErrorKind::Library, library_text(&stack))
    }
}

/// The reasons of OpenSSL, last first, without its file names and codes.
pub(crate) fn library_text(stack: &ErrorStack) -> String {
    let reasons: Vec<&str> = stack.errors().iter().rev().filter_map(|error| error.reason()).collect();
    if reasons.is_empty() { "OpenSSL fails without a reason".to_owned() } else { reasons.join(", ") }
}

/// A function that turns a failure of OpenSSL into a refusal of `kind` with a context.
pub(crate) fn failed(kind: ErrorKind, context: &'static str) -> impl Fn(ErrorStack) -> SecurityError {
    move |stack| SecurityError::new(kind, format!("{context}: {}", library_text(&stack)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_keeps_its_kind_when_context_is_added() {
        let error = SecurityError::new(ErrorKind::Limit, "17 tokens, at most 16").context("participant 01");
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Limit, "participant 01: 17 tokens, at most 16")
        );
    }

    #[test]
    fn failure_of_the_library_has_its_reason() {
        let stack = openssl::x509::X509::from_pem(b"no certificate").expect_err("it is none");
        let error = failed(ErrorKind::Certificate, "certificate")(stack);
        assert_eq!((error.kind(), error.reason()), (ErrorKind::Certificate, "certificate: no start line"));
    }
}
