//! Lexer of IDL (IDL 4.2 §7.2).
//!
//! Comments are skipped. A line that begins with `#` is one directive. `>>` becomes two tokens,
//! since it also closes collections.

use crate::error::{Location, Result};
use crate::limits::MAX_NAME_LEN;

/// Kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Name. If `escaped` is true, it began with an underscore and is not a keyword.
    Identifier {
        name: String,
        escaped: bool,
    },
    Integer(u64),
    Float(f64),
    Character {
        value: u32,
        wide: bool,
    },
    Text {
        value: String,
        wide: bool,
    },
    /// `::`
    Scope,
    /// `<<`
    ShiftLeft,
    Symbol(char),
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub location: Location,
    /// True if no space separates this token from the previous one.
    pub adjacent: bool,
}

/// Token, or line for the preprocessor.
pub(crate) enum Lexeme {
    Token(Token),
    /// Text after `#`, without comments and with continued lines joined.
    Directive {
        text: String,
        location: Location,
    },
    /// Comment `//@...`, which older compilers interpreted as an annotation.
    AnnotationComment {
        text: String,
        location: Location,
    },
}

pub(crate) struct Lexer<'a> {
    rest: std::str::Chars<'a>,
    location: Location,
    at_line_start: bool,
    adjacent: bool,
}

impl Kind {
    /// Returns the token as an error message shows it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Identifier { name, .. } => format!("'{name}'"),
            Self::Integer(value) => format!("'{value}'"),
            Self::Float(value) => format!("'{value}'"),
            Self::Character { .. } => "a character".to_owned(),
            Self::Text { .. } => "a string".to_owned(),
            Self::Scope => "'::'".to_owned(),
            Self::ShiftLeft => "'<<'".to_owned(),
            Self::Symbol(symbol) => format!("'{symbol}'"),
            Self::End => "the end of the file".to_owned(),
        }
    }
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, file: u32) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self::at(text, Location { file, line: 1, column: 1 })
    }

    /// Returns the position of the next character.
    pub(crate) const fn location(&self) -> Location {
        self.location
    }

    /// Returns a lexer of a text at this position.
    pub(crate) fn at(text: &'a str, location: Location) -> Self {
        Self { rest: text.chars(), location, at_line_start: true, adjacent: false }
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn starts_with(&self, text: &str) -> bool {
        self.rest.as_str().starts_with(text)
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.location.line += 1;
            self.location.column = 1;
        } else {
            self.location.column += 1;
        }
        Some(c)
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    /// Reads the text up to the end of the line, without the newline.
    fn rest_of_line(&mut self) -> String {
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|c| *c != '\n') {
            text.push(c);
            self.bump();
        }
        text
    }

    /// Skips lines up to one that begins with `#` outside of comments. Reports whether there is
    /// one.
    pub(crate) fn skip_to_directive(&mut self) -> Result<bool> {
        let mut is_quoted = false;
        while let Some(c) = self.peek() {
            if c == '#' && self.at_line_start {
                return Ok(true);
            }
            if !is_quoted && self.starts_with("/*") {
                self.comment()?;
            } else if !is_quoted && self.starts_with("//") {
                self.rest_of_line();
            } else {
                self.at_line_start = c == '\n' || self.at_line_start && c.is_whitespace();
                self.quotable(&mut is_quoted);
                // A string ends with its line, since a skipped part may be prose.
                is_quoted &= c != '\n';
            }
        }
        Ok(false)
    }

    /// Skips the next character, or the next group: a backslash in a string with the escaped
    /// character, or the quotation mark of `'"'` with the apostrophe before it. `is_quoted` is true
    /// within a string.
    fn quotable(&mut self, is_quoted: &mut bool) -> [Option<char>; 2] {
        let is_pair = if *is_quoted { self.peek() == Some('\\') } else { self.starts_with("'\"'") };
        *is_quoted ^= self.peek() == Some('"');
        [self.bump(), if is_pair { self.bump() } else { None }]
    }

    /// Returns the next token, directive or annotation comment; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Lexeme>> {
        if let Some(comment) = self.skip_space()? {
            return Ok(Some(comment));
        }
        let location = self.location;
        let Some(c) = self.peek() else { return Ok(None) };
        if c == '#' && self.at_line_start {
            self.bump();
            return Ok(Some(Lexeme::Directive { text: self.directive()?, location }));
        }
        self.at_line_start = false;
        let adjacent = std::mem::replace(&mut self.adjacent, true);
        Ok(Some(Lexeme::Token(Token { kind: self.kind(c, location)?, location, adjacent })))
    }

    /// Skips spaces and comments.
    fn skip_space(&mut self) -> Result<Option<Lexeme>> {
        while let Some(c) = self.peek() {
            let location = self.location;
            if c.is_whitespace() {
                self.at_line_start |= c == '\n';
                self.bump();
            } else if self.starts_with("//") {
                let text = self.rest_of_line();
                // `/// @brief` is documentation.
                let body = text[2..].trim_start();
                if body.starts_with('@') {
                    self.adjacent = false;
                    return Ok(Some(Lexeme::AnnotationComment { text: body.trim_end().to_owned(), location }));
                }
            } else if self.starts_with("/*") {
                self.comment()?;
            } else {
                break;
            }
            self.adjacent = false;
        }
        Ok(None)
    }

    /// Skips a comment `/* */` that begins here.
    fn comment(&mut self) -> Result<()> {
        let location = self.location;
        self.skip(2);
        while !self.starts_with("*/") {
            if self.bump().is_none() {
                return Err(location.failure("unterminated comment: expected */"));
            }
        }
        self.skip(2);
        Ok(())
    }

    /// Reads the text after `#` up to the end of the line, including lines continued by a backslash
    /// or a comment, without comments.
    fn directive(&mut self) -> Result<String> {
        let mut text = String::new();
        let (mut is_quoted, mut is_comment) = (false, false);
        while self.peek().is_some_and(|c| c != '\n') {
            if let Some(end) = ["\\\n", "\\\r\n"].into_iter().find(|end| self.starts_with(end)) {
                self.skip(end.len());
                text.push(' ');
            } else if is_comment {
                self.bump();
            } else if !is_quoted && self.starts_with("/*") {
                self.comment()?;
                text.push(' ');
            } else if !is_quoted && self.starts_with("//") {
                is_comment = true;
            } else {
                text.extend(self.quotable(&mut is_quoted).into_iter().flatten());
            }
        }
        self.at_line_start = true;
        Ok(text.trim().to_owned())
    }

    fn kind(&mut self, c: char, location: Location) -> Result<Kind> {
        if c.is_ascii_alphabetic() || c == '_' {
            return self.word(location);
        }
        if c.is_ascii_digit() || c == '.' && self.rest.as_str()[1..].starts_with(|c: char| c.is_ascii_digit()) {
            return self.number(location);
        }
        for (text, kind) in [("::", Kind::Scope), ("<<", Kind::ShiftLeft)] {
            if self.starts_with(text) {
                self.skip(2);
                return Ok(kind);
            }
        }
        match c {
            '\'' => self.character(false, location),
            '"' => self.text(false, location),
            '{' | '}' | '(' | ')' | '[' | ']' | '<' | '>' | ',' | ';' | ':' | '=' | '@' | '+' | '-' | '*' | '/'
            | '%' | '|' | '^' | '&' | '~' => {
                self.bump();
                Ok(Kind::Symbol(c))
            }
            _ => Err(location.failure(format!("unexpected character {c:?}"))),
        }
    }

    fn word(&mut self, location: Location) -> Result<Kind> {
        if self.starts_with("L'") || self.starts_with("L\"") {
            self.bump();
            let is_text = self.peek() == Some('"');
            return if is_text { self.text(true, location) } else { self.character(true, location) };
        }
        let rest = self.rest.as_str();
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if len > MAX_NAME_LEN {
            return Err(location.failure(format!("an identifier of more than {MAX_NAME_LEN} octets")));
        }
        let word = &rest[..len];
        self.skip(len);
        let (name, escaped) = match word.strip_prefix('_') {
            Some(name) if !name.is_empty() => (name, true),
            _ => (word, false),
        };
        Ok(Kind::Identifier { name: name.to_owned(), escaped })
    }

    /// Decimal, octal and hexadecimal integers, and floating point numbers with an optional `f` or
    /// `d`.
    fn number(&mut self, location: Location) -> Result<Kind> {
        let rest = self.rest.as_str();
        let is_hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
        let mut len = 0;
        for (index, c) in rest.char_indices() {
            let is_sign = matches!(c, '+' | '-') && !is_hexadecimal && rest[..index].ends_with(['e', 'E']);
            if !c.is_ascii_alphanumeric() && c != '.' && !is_sign {
                break;
            }
            len = index + 1;
        }
        let text = &rest[..len];
        self.skip(len);
        let wrong = || location.failure(format!("'{text}' is not a number"));
        let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
        let integer = if is_hexadecimal {
            Some(u64::from_str_radix(&digits[2..], 16))
        } else if digits.bytes().all(|c| c.is_ascii_digit()) && !digits.is_empty() {
            let is_octal = digits.len() > 1 && digits.starts_with('0');
            Some(u64::from_str_radix(digits, if is_octal { 8 } else { 10 }))
        } else {
            None
        };
        if let Some(integer) = integer {
            return integer.map(Kind::Integer).map_err(|error| location.failure(format!("'{text}': {error}")));
        }
        let number = text.trim_end_matches(['f', 'F', 'd', 'D']);
        match number.parse::<f64>() {
            Ok(value) if value.is_finite() && !number.contains(['n', 'N']) => Ok(Kind::Float(value)),
            _ => Err(wrong()),
        }
    }

    fn character(&mut self, wide: bool, location: Location) -> Result<Kind> {
        self.bump();
        let value = match self.bump() {
            Some('\\') => self.escape(location)?,
            Some(c) if c != '\'' && c != '\n' => u32::from(c),
            _ => return Err(location.failure("expected a character between apostrophes")),
        };
        if self.bump() != Some('\'') {
            return Err(location.failure("unterminated character literal: expected '"));
        }
        let limit = if wide { 0xffff } else { 0xff };
        if value > limit {
            return Err(location.failure(format!("a character above {limit:#x}")));
        }
        Ok(Kind::Character { value, wide })
    }

    fn text(&mut self, wide: bool, location: Location) -> Result<Kind> {
        self.bump();
        let mut value = String::new();
        loop {
            let c = match self.bump() {
                Some('"') => return Ok(Kind::Text { value, wide }),
                Some('\\') => {
                    let code = self.escape(location)?;
                    char::from_u32(code).ok_or_else(|| location.failure("an escape that is not a character"))?
                }
                Some('\n') | None => return Err(location.failure("unterminated string: expected \"")),
                Some(c) => c,
            };
            if c == '\0' {
                return Err(location.failure("a string with a NUL character, which IDL does not allow"));
            }
            value.push(c);
            if value.len() > MAX_NAME_LEN {
                return Err(location.failure(format!("a string of more than {MAX_NAME_LEN} octets")));
            }
        }
    }

    /// Reads the escape sequence after a backslash.
    fn escape(&mut self, location: Location) -> Result<u32> {
        let wrong = || location.failure("an unknown escape sequence");
        let c = self.bump().ok_or_else(wrong)?;
        Ok(match c {
            'n' => 0x0a,
            't' => 0x09,
            'v' => 0x0b,
            'b' => 0x08,
            'r' => 0x0d,
            'f' => 0x0c,
            'a' => 0x07,
            '\\' | '?' | '\'' | '"' => u32::from(c),
            'x' => self.digits(16, 2).ok_or_else(wrong)?,
            'u' => self.digits(16, 4).ok_or_else(wrong)?,
            '0'..='7' => {
                let first = u32::from(c) - u32::from('0');
                let mut value = first;
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
                    self.bump();
                    value = value * 8 + digit;
                }
                value
            }
            _ => return Err(wrong()),
        })
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
            self.bump();
            value = Some(value.unwrap_or(0) * radix + digit);
        }
        value
    }
}
