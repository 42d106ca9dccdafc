//! Errors of the security plugins: a kind for callers to branch on and a text for the log.

use std::fmt;

use openssl::error::ErrorStack;

/// Stage that refused an input.
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

/// Result of everything in this crate except the transformations.
pub type Result<T> = std::result::Result<T, SecurityError>;

impl SecurityError {
    /// Creates an error of `kind`. The reason names the entity, the value found and the value
    /// expected.
    pub fn new(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }

    /// Returns the stage that refused the input.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the reason without the kind.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the error with `context` prepended to its reason.
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

/// Returns the error reasons of OpenSSL, last first, without its file names and codes.
pub(crate) fn library_text(stack: &ErrorStack) -> String {
    let reasons: Vec<&str> = stack.errors().iter().rev().filter_map(|error| error.reason()).collect();
    if reasons.is_empty() { "OpenSSL failed without an error code".to_owned() } else { reasons.join(", ") }
}

/// Returns a function that converts a failure of OpenSSL into an error of `kind` with a context.
pub(crate) fn failed(kind: ErrorKind, context: &'static str) -> impl Fn(ErrorStack) -> SecurityError {
    move |stack| SecurityError::new(kind, format!("{context}: {}", library_text(&stack)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_keeps_its_kind_when_context_is_added() {
        let error = SecurityError::new(ErrorKind::Limit, "17 tokens, at most 16").context("participant 01");
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Limit, "participant 01: 17 tokens, at most 16")
        );
    }

    #[test]
    fn openssl_failure_includes_its_reason() {
        let stack = openssl::x509::X509::from_pem(b"no certificate").expect_err("it is none");
        let error = failed(ErrorKind::Certificate, "certificate")(stack);
        assert_eq!((error.kind(), error.reason()), (ErrorKind::Certificate, "certificate: no start line"));
    }
}
