//! Preprocessor (IDL 4.2 §7.3): yields the tokens of a file and its includes.
//!
//! Supported are `#include`, `#define` of names without parameters, `#undef`, `#ifdef`, `#ifndef`,
//! `#else`, `#endif`, `#if` and `#elif` of a number or of `defined`, `#error`, `#pragma once`.
//! Other pragmas, `#line` and `#warning` have no effect; pragmas yield a warning. All other
//! directives are errors.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Failure, Location, Result, Warnings};
use crate::files::Files;
use crate::lexer::{Kind, Lexeme, Lexer, Token};
use crate::limits::{MAX_DEPTH, MAX_INCLUDE_DEPTH, MAX_TEXT_LEN, MAX_TOKENS};

/// All tokens, the last of them [`Kind::End`], with the files and warnings.
pub(crate) struct Preprocessed {
    pub tokens: Vec<Token>,
    pub files: Vec<String>,
    pub warnings: Warnings,
    /// Error that ended preprocessing early, if any.
    pub failure: Option<Failure>,
}

struct Preprocessor<'a> {
    source: &'a mut dyn Files,
    output: Preprocessed,
    macros: BTreeMap<String, Vec<Token>>,
    /// Files with `#pragma once`.
    once: BTreeSet<String>,
    conditions: Vec<Condition>,
    /// Number of open conditions at the start of the current file.
    outer_conditions: usize,
    text_len: usize,
    /// Tokens of macros, including redefined ones.
    macro_tokens: usize,
    include_depth: usize,
    /// Number of macro replacements.
    replaced: usize,
}

/// Open `#if`.
struct Condition {
    location: Location,
    /// True if the current part is active.
    holds: bool,
    /// True if a part has been active.
    was_true: bool,
    has_else: bool,
}

/// Preprocesses a file with a known text.
pub(crate) fn run(name: &str, text: &str, source: &mut dyn Files) -> Preprocessed {
    let output = Preprocessed { tokens: Vec::new(), files: Vec::new(), warnings: Warnings::default(), failure: None };
    let mut preprocessor = Preprocessor {
        source,
        output,
        macros: BTreeMap::new(),
        once: BTreeSet::new(),
        conditions: Vec::new(),
        outer_conditions: 0,
        text_len: 0,
        macro_tokens: 0,
        include_depth: 0,
        replaced: 0,
    };
    let result = preprocessor.file(name.to_owned(), text, Location { file: 0, line: 1, column: 1 });
    let mut output = preprocessor.output;
    output.failure = result.err();
    output
}

impl Preprocessor<'_> {
    fn file(&mut self, name: String, text: &str, from: Location) -> Result<()> {
        let file = u32::try_from(self.output.files.len()).unwrap_or(u32::MAX);
        self.output.files.push(name);
        self.text_len += text.len();
        if self.text_len > MAX_TEXT_LEN {
            return Err(from.failure(format!("more than {MAX_TEXT_LEN} octets of IDL")));
        }
        let outer_conditions = std::mem::replace(&mut self.outer_conditions, self.conditions.len());
        let mut lexer = Lexer::new(text, file);
        loop {
            if !self.is_read() && !lexer.skip_to_directive()? {
                break;
            }
            match lexer.next()? {
                None => break,
                Some(Lexeme::Token(token)) => self.token(token, &mut Vec::new())?,
                Some(Lexeme::Directive { text, location }) => self.directive(&text, location)?,
                Some(Lexeme::AnnotationComment { text, location }) => {
                    self.warn(location, format!("the comment '//{text}' is not an annotation; write {text}"));
                }
            }
        }
        if let Some(open) = self.conditions.get(self.outer_conditions) {
            return Err(open.location.failure("unterminated condition: expected #endif"));
        }
        self.outer_conditions = outer_conditions;
        if self.include_depth == 0 {
            // The last token of the file is closer to the missing input than the end of the file.
            let last = self.output.tokens.last().map(|token| token.location).filter(|last| last.file == file);
            let location = last.unwrap_or(lexer.location());
            self.output.tokens.push(Token { kind: Kind::End, location, adjacent: false });
        }
        Ok(())
    }

    fn is_read(&self) -> bool {
        self.conditions.iter().all(|condition| condition.holds)
    }

    fn warn(&mut self, location: Location, message: String) {
        self.output.warnings.push(location, message);
    }

    /// Appends a token or its replacement. `within` lists the macros being replaced.
    fn token(&mut self, token: Token, within: &mut Vec<String>) -> Result<()> {
        if let Kind::Identifier { name, escaped: false } = &token.kind
            && !within.contains(name)
            && let Some(body) = self.macros.get(name)
        {
            let body = body.clone();
            self.replaced += 1;
            if within.len() >= MAX_DEPTH || self.replaced > MAX_TOKENS {
                let message = format!("more than {MAX_DEPTH} levels of macros, or {MAX_TOKENS} uses of them");
                return Err(token.location.failure(message));
            }
            within.push(name.clone());
            for part in body {
                self.token(Token { location: token.location, ..part }, within)?;
            }
            within.pop();
            return Ok(());
        }
        if self.output.tokens.len() >= MAX_TOKENS {
            return Err(token.location.failure(format!("more than {MAX_TOKENS} tokens")));
        }
        self.output.tokens.push(token);
        Ok(())
    }

    /// Closes the most recently opened condition of this file.
    fn close(&mut self, word: &str, location: Location) -> Result<Condition> {
        let own = self.conditions.len() > self.outer_conditions;
        let closed = if own { self.conditions.pop() } else { None };
        closed.ok_or_else(|| location.failure(format!("#{word} without #if")))
    }

    fn directive(&mut self, text: &str, location: Location) -> Result<()> {
        let len = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (word, rest) = (&text[..len], text[len..].trim());
        match word {
            "ifdef" | "ifndef" => {
                let is_defined = self.macros.contains_key(name_of(rest, location)?);
                return self.open(location, is_defined == (word == "ifdef"));
            }
            "if" => {
                let holds = !self.is_read() || self.condition(rest, location)?;
                return self.open(location, holds);
            }
            "elif" | "else" => return self.otherwise(word, rest, location),
            "endif" => return self.close(word, location).map(drop),
            _ if !self.is_read() => return Ok(()),
            _ => {}
        }
        match word {
            "include" => self.include(rest, location),
            "define" => self.define(rest, location),
            "undef" => {
                self.macros.remove(name_of(rest, location)?);
                Ok(())
            }
            "pragma" if rest == "once" => {
                let name = self.output.files[location.file as usize].clone();
                self.once.insert(name);
                Ok(())
            }
            "pragma" => {
                self.warn(location, format!("#pragma {rest} has no effect"));
                Ok(())
            }
            "error" => Err(location.failure(format!("#error {rest}"))),
            // `# 1 "file"` is output of a preprocessor.
            "" | "line" | "warning" | "ident" => Ok(()),
            _ => Err(location.failure(format!("#{word} is not supported"))),
        }
    }

    fn open(&mut self, location: Location, holds: bool) -> Result<()> {
        if self.conditions.len() >= MAX_DEPTH {
            return Err(location.failure(format!("more than {MAX_DEPTH} levels of #if")));
        }
        self.conditions.push(Condition { location, holds, was_true: holds, has_else: false });
        Ok(())
    }

    fn otherwise(&mut self, word: &str, rest: &str, location: Location) -> Result<()> {
        let mut condition = self.close(word, location)?;
        if condition.has_else {
            return Err(location.failure(format!("#{word} after #else")));
        }
        let is_evaluated = self.is_read() && !condition.was_true;
        condition.holds = is_evaluated && (word == "else" || self.condition(rest, location)?);
        condition.was_true |= condition.holds;
        condition.has_else = word == "else";
        self.conditions.push(condition);
        Ok(())
    }

    /// Evaluates a number, `defined(NAME)` or `defined NAME`, each after any number of `!`.
    fn condition(&self, text: &str, location: Location) -> Result<bool> {
        let operand = text.trim_start_matches(['!', ' ', '\t']);
        let is_negated = text[..text.len() - operand.len()].matches('!').count() % 2 == 1;
        let holds = if let Some(name) = operand.strip_prefix("defined") {
            let name = name.trim().trim_start_matches('(').trim_end_matches(')').trim();
            self.macros.contains_key(name_of(name, location)?)
        } else if let Ok(number) = operand.parse::<u64>() {
            number != 0
        } else {
            let message = format!("'{text}' is not supported: a condition must be a number or defined(NAME)");
            return Err(location.failure(message));
        };
        Ok(holds != is_negated)
    }

    fn define(&mut self, text: &str, location: Location) -> Result<()> {
        let len = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        let (name, body) = text.split_at(len);
        let name = name_of(name, location)?;
        if body.starts_with('(') {
            return Err(location.failure(format!("#define {name}(...): macros with parameters are not supported")));
        }
        let mut lexer = Lexer::at(body, location);
        let mut tokens = Vec::new();
        // A redefined macro has its latest meaning. The text contains neither comments nor line
        // continuations, so tokens have the position of the directive.
        while let Some(lexeme) = lexer.next().map_err(|failure| location.failure(failure.message))? {
            match lexeme {
                Lexeme::Token(token) => {
                    self.macro_tokens += 1;
                    if self.macro_tokens > MAX_TOKENS {
                        return Err(location.failure(format!("more than {MAX_TOKENS} tokens of macros")));
                    }
                    tokens.push(token);
                }
                Lexeme::Directive { .. } => return Err(location.failure("'#' in a macro is not supported")),
                Lexeme::AnnotationComment { .. } => {}
            }
        }
        self.macros.insert(name.to_owned(), tokens);
        Ok(())
    }

    fn include(&mut self, text: &str, location: Location) -> Result<()> {
        let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let angled = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
        let Some(name) = quoted.or(angled).filter(|name| !name.is_empty()) else {
            return Err(location.failure("expected #include \"FILE\" or #include <FILE>"));
        };
        if self.include_depth + 1 >= MAX_INCLUDE_DEPTH {
            return Err(location.failure(format!("more than {MAX_INCLUDE_DEPTH} levels of included files")));
        }
        let from = self.output.files[location.file as usize].clone();
        let found = self.source.include(name, &from, &self.once).map_err(|what| location.failure(what))?;
        let Some((path, text)) = found else { return Ok(()) };
        self.include_depth += 1;
        self.file(path, &text, location)?;
        self.include_depth -= 1;
        Ok(())
    }
}

/// Returns the name that a directive requires.
fn name_of(text: &str, location: Location) -> Result<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.is_empty() || !text.chars().all(is_part) || text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(location.failure(format!("expected the name of a macro, found '{text}'")));
    }
    Ok(text)
}
