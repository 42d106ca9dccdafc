//! Lexer of SQL expressions (DDS 1.4 annex B, "Token expression").

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{EXPRESSION_LEN_MAX, FieldPart, PATH_PARTS_MAX, SqlError, error};

/// Comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
    Match,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// Keyword, field, topic or enumerator; the context decides which.
    Name(Vec<FieldPart>),
    Integer(i128),
    Float(f64),
    /// String without its quotes.
    Text(String),
    /// `%n`.
    Parameter(usize),
    Operator(Operator),
    Open,
    Close,
    Comma,
    Semicolon,
    Star,
}

impl Token {
    /// Returns the name if it has a single part.
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Name(parts) => match parts.as_slice() {
                [FieldPart::Name(name)] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns all tokens of a text, each with its start position.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, SqlError> {
    if text.len() > EXPRESSION_LEN_MAX {
        return Err(error(EXPRESSION_LEN_MAX, format!("more than {EXPRESSION_LEN_MAX} octets")));
    }
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.take_while(|c| c.is_ascii_whitespace());
        let start = lexer.at;
        match lexer.token()? {
            Some(token) => tokens.push((start, token)),
            None => return Ok(tokens),
        }
    }
}

/// Parses a number, as a parameter value or literal.
pub(super) fn number(text: &str) -> Option<Token> {
    let mut lexer = Lexer { text, at: 0 };
    let token = lexer.number().ok()?;
    (lexer.at == text.len()).then_some(token)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn peek_second(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at + 1).copied()
    }

    /// Consumes the next octet if it equals `octet`.
    fn takes(&mut self, octet: u8) -> bool {
        let is = self.peek() == Some(octet);
        self.at += usize::from(is);
        is
    }

    /// Consumes octets while `wanted` holds; all of them are ASCII.
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn token(&mut self) -> Result<Option<Token>, SqlError> {
        let Some(first) = self.peek() else { return Ok(None) };
        let simple = |token| (1, token);
        let (len, token) = match (first, self.peek_second()) {
            (b'a'..=b'z' | b'A'..=b'Z' | b'_', _) => return self.name().map(Some),
            (b'0'..=b'9' | b'+' | b'-' | b'.', _) => return self.number().map(Some),
            (b'\'' | b'`', _) => return self.quoted().map(Some),
            (b'%', _) => return self.parameter().map(Some),
            (b'(', _) => simple(Token::Open),
            (b')', _) => simple(Token::Close),
            (b',', _) => simple(Token::Comma),
            (b';', _) => simple(Token::Semicolon),
            (b'*', _) => simple(Token::Star),
            (b'<', Some(b'=')) => (2, Token::Operator(Operator::LessOrEqual)),
            (b'<', Some(b'>')) | (b'!', Some(b'=')) => (2, Token::Operator(Operator::NotEqual)),
            (b'<', _) => simple(Token::Operator(Operator::Less)),
            (b'>', Some(b'=')) => (2, Token::Operator(Operator::GreaterOrEqual)),
            (b'>', _) => simple(Token::Operator(Operator::Greater)),
            (b'=', Some(b'=')) => (2, Token::Operator(Operator::Equal)),
            (b'=', _) => simple(Token::Operator(Operator::Equal)),
            _ => {
                let found = self.text[self.at..].chars().next().unwrap_or_default();
                return Err(error(self.at, format!("unexpected {found:?}")));
            }
        };
        self.at += len;
        Ok(Some(token))
    }

    /// `a.b[2].c`.
    fn name(&mut self) -> Result<Token, SqlError> {
        let start = self.at;
        let mut parts = Vec::new();
        loop {
            let at = self.at;
            let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == b'_');
            if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(error(at, "expected the name of a member"));
            }
            parts.push(FieldPart::Name(name.to_string()));
            while self.takes(b'[') {
                let at = self.at;
                let index = self.take_while(|c| c.is_ascii_digit()).parse();
                let index = index.map_err(|_| error(at, "expected the index of an element"))?;
                if !self.takes(b']') {
                    return Err(error(self.at, "expected ']'"));
                }
                parts.push(FieldPart::Index(index));
            }
            if parts.len() > PATH_PARTS_MAX {
                return Err(error(start, format!("a field of more than {PATH_PARTS_MAX} parts")));
            }
            if !self.takes(b'.') {
                return Ok(Token::Name(parts));
            }
        }
    }

    fn number(&mut self) -> Result<Token, SqlError> {
        let start = self.at;
        let negative = self.takes(b'-');
        if !negative {
            self.takes(b'+');
        }
        let wrong = error(start, "expected a number");
        if self.peek() == Some(b'0') && self.peek_second().is_some_and(|c| c | 0x20 == b'x') {
            self.at += 2;
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            let value = i128::from(u64::from_str_radix(digits, 16).map_err(|_| wrong)?);
            return self.ended(Token::Integer(if negative { -value } else { value }));
        }
        let whole = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit()).len();
        let mut is_float = false;
        let mut fraction = 0;
        if self.takes(b'.') {
            is_float = true;
            fraction = self.take_while(|c| c.is_ascii_digit()).len();
        }
        if digits + fraction == 0 {
            return Err(wrong);
        }
        if self.peek().is_some_and(|c| c | 0x20 == b'e') {
            is_float = true;
            self.at += 1;
            if !self.takes(b'-') {
                self.takes(b'+');
            }
            if self.take_while(|c| c.is_ascii_digit()).is_empty() {
                return Err(wrong);
            }
        }
        let text = &self.text[whole..self.at];
        if is_float {
            let value: f64 = text.parse().map_err(|_| wrong)?;
            return self.ended(Token::Float(if negative { -value } else { value }));
        }
        match text.parse::<u64>() {
            Ok(value) => {
                let value = i128::from(value);
                self.ended(Token::Integer(if negative { -value } else { value }))
            }
            Err(_) => Err(error(start, "an integer of more than 64 bits")),
        }
    }

    /// Fails if a number is directly followed by a word.
    fn ended(&self, token: Token) -> Result<Token, SqlError> {
        match self.peek() {
            Some(c) if c.is_ascii_alphanumeric() || c == b'_' || c == b'.' => {
                Err(error(self.at, "expected the end of a number"))
            }
            _ => Ok(token),
        }
    }

    /// Reads a string. It begins with a left or right quote, ends with a right one, and contains no
    /// line break. Two right quotes within the string are one, as in SQL; DDS 1.4 Annex B has no
    /// escape for a quote.
    fn quoted(&mut self) -> Result<Token, SqlError> {
        let start = self.at;
        let mut text = String::new();
        let mut at = start + 1;
        loop {
            let inside = &self.text[at..];
            let end = inside.find(['\'', '\n', '\r']).filter(|len| inside.as_bytes()[*len] == b'\'');
            let Some(len) = end else { return Err(error(start, "a string without a closing quote")) };
            text.push_str(&inside[..len]);
            at += len + 1;
            if !self.text[at..].starts_with('\'') {
                self.at = at;
                return Ok(Token::Text(text));
            }
            text.push('\'');
            at += 1;
        }
    }

    fn parameter(&mut self) -> Result<Token, SqlError> {
        let start = self.at;
        self.at += 1;
        let digits = self.take_while(|c| c.is_ascii_digit());
        match digits.parse() {
            Ok(number) if number < super::PARAMETERS_MAX && digits.len() <= 2 => Ok(Token::Parameter(number)),
            _ => Err(error(start, "parameters are %0 to %99")),
        }
    }
}
