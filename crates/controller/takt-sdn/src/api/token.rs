//! Bearer token of the REST API (RFC 6750), from a file that only its owner can read.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use subtle::ConstantTimeEq;

/// Minimum length of a token in characters: 128 bits in hexadecimal digits.
pub const TOKEN_MIN: usize = 32;
/// Maximum length of a token in characters.
pub const TOKEN_MAX: usize = 256;

/// A token. Its debug output hides it.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Reads the token from the first line of a file.
    ///
    /// # Errors
    /// The file cannot be read, others can read it, or its line is not a token.
    pub fn load(path: &Path) -> io::Result<Self> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let mut file = fs::File::open(path)?;
        let mode = file.metadata()?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(invalid(format!("other users can read it (mode {mode:03o}); run chmod 600")));
        }
        let mut text = String::new();
        file.by_ref().take(TOKEN_MAX as u64 + 2).read_to_string(&mut text)?;
        let line = text.lines().next().unwrap_or("");
        let is_token = |character: u8| character.is_ascii_alphanumeric() || b"-._~+/=".contains(&character);
        if !(TOKEN_MIN..=TOKEN_MAX).contains(&line.len()) || !line.bytes().all(is_token) {
            return Err(invalid(format!(
                "expected {TOKEN_MIN} to {TOKEN_MAX} letters, digits or -._~+/= in its first line, as from openssl rand -hex 32"
            )));
        }
        Ok(Self(line.as_bytes().to_vec()))
    }

    /// Reports whether both tokens are equal, in constant time.
    pub fn is(&self, other: &Self) -> bool {
        bool::from(self.0.ct_eq(&other.0))
    }

    /// Reports whether an Authorization header field contains this token. The time depends only on
    /// the length of the field.
    pub fn is_in(&self, authorization: &[u8]) -> bool {
        let Some((scheme, token)) = authorization.split_at_checked(7) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(token.ct_eq(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, mode: u32, name: &str) -> io::Result<Token> {
        let path = std::env::temp_dir().join(format!("takt-sdn-token-{}-{name}", std::process::id()));
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("the test owns the file");
        let token = Token::load(&path);
        fs::remove_file(&path).expect("the test created the file");
        token
    }

    #[test]
    fn token_is_accepted_only_in_its_header_field() {
        let text = "0123456789abcdef0123456789abcdef";
        let token = load(&format!("{text}\n"), 0o600, "good").expect("a token");
        for field in [format!("Bearer {text}"), format!("bearer {text}")] {
            assert!(token.is_in(field.as_bytes()), "{field}");
        }
        for field in
            [text.to_owned(), format!("Basic {text}"), format!("Bearer {text}0"), "Bearer ".into(), String::new()]
        {
            assert!(!token.is_in(field.as_bytes()), "{field}");
        }
        assert!(!token.is_in(format!("Bearer {}", text.replace('0', "1")).as_bytes()));
        assert_eq!(format!("{token:?}"), "Token");
    }

    #[test]
    fn file_that_others_can_read_is_refused() {
        let error = load("0123456789abcdef0123456789abcdef", 0o640, "mode").expect_err("its group can read it");
        assert!(error.to_string().contains("mode 640"), "{error}");
    }

    #[test]
    fn short_and_odd_tokens_are_refused() {
        for (text, name) in [("", "empty"), ("0123456789", "short"), ("0123456789abcdef 0123456789abcdef", "space")] {
            assert!(load(text, 0o600, name).is_err(), "{text}");
        }
        assert!(load(&"0".repeat(TOKEN_MAX + 1), 0o600, "long").is_err());
    }
}
