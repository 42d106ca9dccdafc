//! Scanner that splits a Rust file into code and comments, and finds test items.
//!
//! Both views have the length and the line breaks of the file: all other text is blank. The
//! contents of string and character literals are blank in both. The scanner implements the lexical
//! rules (nested comments, raw strings, lifetimes versus character literals) and no grammar.

use std::ops::RangeInclusive;

/// Scanned file.
pub struct RustText {
    /// File without comments and without the contents of literals.
    pub code: String,
    /// Comments only, with their `//`, `///`, `//!` or `/*`.
    pub comments: String,
    test_lines: Vec<RangeInclusive<usize>>,
}

impl RustText {
    /// Scans `text`; any input is accepted.
    pub fn scan(text: &str) -> Self {
        let (code, comments) = split(text.as_bytes());
        let code = String::from_utf8_lossy(&code).into_owned();
        let comments = String::from_utf8_lossy(&comments).into_owned();
        let test_lines = test_items(&code).map(|(start, end)| line_of(&code, start)..=line_of(&code, end)).collect();
        Self { code, comments, test_lines }
    }

    /// Reports whether line `line` (from 1) belongs to an item under `#[cfg(test)]` or `#[test]`.
    pub fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.iter().any(|range| range.contains(&line))
    }

    /// Marks every line as a test line.
    pub fn mark_all_as_test(&mut self) {
        self.test_lines = vec![1..=usize::MAX];
    }

    /// Returns the names of the modules declared `#[cfg(test)] mod name;`.
    pub fn test_modules(&self) -> Vec<&str> {
        test_items(&self.code)
            .filter_map(|(start, end)| {
                let item = self.code[start..end].trim_end();
                let at = item.rfind("mod ")?;
                let name = item[at + 4..].strip_suffix(';')?;
                Some(name.trim())
            })
            .collect()
    }

    /// Returns the functions with a body: name, first line, and length in lines.
    pub fn functions(&self) -> Vec<Function<'_>> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = find_word(&self.code, "fn", from) {
            from = at + 2;
            let rest = self.code[from..].trim_start();
            let name_len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let Some(end) = item_end(&self.code, from) else {
                continue;
            };
            if name_len > 0 && self.code[..end].ends_with('}') {
                let line = line_of(&self.code, at);
                found.push(Function { name: &rest[..name_len], line, line_count: line_of(&self.code, end) - line + 1 });
            }
        }
        found
    }
}

/// Function with a body.
pub struct Function<'a> {
    /// Name of the function.
    pub name: &'a str,
    /// Line of its `fn`, from 1.
    pub line: usize,
    /// Number of lines from `fn` to the closing brace.
    pub line_count: usize,
}

/// Returns the first position at or after `from` where `word` occurs as a whole word in `text`.
pub fn find_word(text: &str, word: &str, from: usize) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = from;
    while let Some(offset) = text.get(at..)?.find(word) {
        let start = at + offset;
        let end = start + word.len();
        let joined_before = word.starts_with(is_word) && text[..start].ends_with(is_word);
        let joined_after = word.ends_with(is_word) && text[end..].starts_with(is_word);
        if !joined_before && !joined_after {
            return Some(start);
        }
        at = end;
    }
    None
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// Returns the byte ranges of the items under a test attribute, attribute included.
fn test_items(code: &str) -> impl Iterator<Item = (usize, usize)> {
    const ATTRIBUTES: [&str; 3] = ["#[cfg(test)]", "#[cfg(all(test", "#[test]"];
    let mut from = 0;
    std::iter::from_fn(move || {
        if from == 0 && code.contains("#![cfg(test)]") {
            from = code.len();
            return Some((0, code.len()));
        }
        let starts = ATTRIBUTES.iter().filter_map(|a| code[from..].find(a));
        let start = from + starts.min()?;
        let end = item_end(code, start).unwrap_or(code.len());
        from = end;
        Some((start, end))
    })
}

/// Returns the end of the item that starts at `start`: after its `;`, or after its closing brace.
fn item_end(code: &str, start: usize) -> Option<usize> {
    let mut depth_round = 0_i32;
    let mut depth_brace = 0_i32;
    for (offset, byte) in code.as_bytes()[start..].iter().enumerate() {
        match byte {
            b'(' | b'[' => depth_round += 1,
            b')' | b']' => depth_round -= 1,
            b'{' => depth_brace += 1,
            b'}' => {
                depth_brace -= 1;
                if depth_brace <= 0 && depth_round <= 0 {
                    return Some(start + offset + 1);
                }
            }
            b';' if depth_round <= 0 && depth_brace == 0 => return Some(start + offset + 1),
            _ => {}
        }
    }
    None
}

fn split(text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let blank = |byte: &u8| if *byte == b'\n' { b'\n' } else { b' ' };
    let mut code: Vec<u8> = text.iter().map(blank).collect();
    let mut comments = code.clone();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let previous = at.checked_sub(1).map_or(b' ', |i| text[i]);
        let after_word = previous.is_ascii_alphanumeric() || previous == b'_';
        if let Some(len) = comment_len(rest) {
            comments[at..at + len].copy_from_slice(&rest[..len]);
            at += len;
        } else if let Some(literal) = literal(rest, after_word) {
            let (open, close, len) = literal;
            code[at..at + open].copy_from_slice(&rest[..open]);
            code[at + len - close..at + len].copy_from_slice(&rest[len - close..len]);
            at += len;
        } else {
            code[at] = text[at];
            at += 1;
        }
    }
    (code, comments)
}

fn comment_len(rest: &[u8]) -> Option<usize> {
    if rest.starts_with(b"//") {
        return Some(rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with(b"/*") {
        return None;
    }
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    Some(rest.len())
}

/// Recognizes a literal at the start of `rest`: length of its opening, of its closing, and of the
/// whole.
fn literal(rest: &[u8], after_word: bool) -> Option<(usize, usize, usize)> {
    let prefix = if after_word { 0 } else { prefix_len(rest) };
    let raw = rest[..prefix].contains(&b'r');
    match rest.get(prefix)? {
        b'"' if !raw => {
            let len = quoted_len(&rest[prefix..], b'"')?;
            Some((prefix + 1, 1, prefix + len))
        }
        b'\'' if !raw => char_len(&rest[prefix..]).map(|len| (prefix + 1, 1, prefix + len)),
        b'"' | b'#' if raw => {
            let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
            let open = prefix + hashes + 1;
            if rest.get(open - 1) != Some(&b'"') {
                return None;
            }
            let mut close = vec![b'"'];
            close.resize(hashes + 1, b'#');
            let end = rest[open..].windows(close.len()).position(|w| w == close)?;
            Some((open, close.len(), open + end + close.len()))
        }
        _ => None,
    }
}

/// Returns the length of a literal's prefix: `b`, `c`, `r`, `br`, `cr`, or none.
fn prefix_len(rest: &[u8]) -> usize {
    let marks = rest.iter().take(2).take_while(|b| b"bcr".contains(b)).count();
    match rest.get(marks) {
        Some(b'"' | b'\'' | b'#') => marks,
        _ => 0,
    }
}

fn quoted_len(rest: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// Returns the length of a character literal; `None` for a lifetime.
fn char_len(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return quoted_len(rest, b'\'');
    }
    // One character of one to four bytes, then the closing quote.
    (2..=5)
        .find(|at| rest.get(*at) == Some(&b'\''))
        .filter(|at| std::str::from_utf8(&rest[1..*at]).is_ok_and(|text| text.chars().count() == 1))
        .map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::{RustText, find_word};

    #[test]
    fn code_comments_and_literals_are_separated() {
        let text = "let a = \"// not\"; // yes \"x\"\n/* one /* two */ one */ b('\\'', '{');\n";
        let scanned = RustText::scan(text);
        assert_eq!(scanned.code.len(), text.len());
        assert!(scanned.code.contains("let a = \"      \";"));
        assert!(!scanned.code.contains("not") && !scanned.code.contains("yes"));
        assert!(scanned.code.contains("b('  ', ' ');"));
        assert!(scanned.comments.contains("// yes \"x\""));
        assert!(scanned.comments.contains("/* one /* two */ one */"));
        assert!(!scanned.comments.contains("not"));
    }

    #[test]
    fn raw_strings_and_lifetimes_are_recognized() {
        let scanned = RustText::scan("fn f<'a>(x: &'a str) { g(r#\"dbg \" } //\"#, br\"{\", b'{', 'é') }");
        assert!(scanned.code.contains("fn f<'a>(x: &'a str) {"));
        assert!(!scanned.code.contains("dbg"));
        assert_eq!(scanned.code.matches('{').count(), 1);
        assert_eq!(scanned.comments.trim(), "");
    }

    #[test]
    fn identifier_ending_in_r_is_no_literal_prefix() {
        let scanned = RustText::scan("writer\"x\" for'y'");
        assert!(scanned.code.starts_with("writer\" \""));
    }

    #[test]
    fn unterminated_input_is_accepted() {
        for text in ["\"open", "/* open", "r#\"open", "'", "b'", "r#", "#[cfg(test)] mod x {"] {
            assert_eq!(RustText::scan(text).code.len(), text.len());
        }
    }

    #[test]
    fn test_items_are_marked() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(dead_code)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[test]\nfn d(x: [u8; 2]) {\n}\n";
        let scanned = RustText::scan(text);
        let marked: Vec<usize> = (1..=10).filter(|line| scanned.is_test_line(*line)).collect();
        assert_eq!(marked, [2, 3, 4, 5, 6, 8, 9, 10]);
    }

    #[test]
    fn test_modules_are_listed() {
        let scanned = RustText::scan("#[cfg(test)]\nmod tests;\nmod real;\n#[cfg(test)]\npub(crate) mod support;\n");
        assert_eq!(scanned.test_modules(), ["tests", "support"]);
    }

    #[test]
    fn function_lengths_are_measured() {
        let scanned = RustText::scan(
            "trait T {\n fn declared(&self);\n fn with_body(&self) {\n  x();\n }\n}\ntype F = fn(u8);\n",
        );
        let functions = scanned.functions();
        assert_eq!(functions.len(), 1);
        assert_eq!((functions[0].name, functions[0].line, functions[0].line_count), ("with_body", 3, 3));
    }

    #[test]
    fn find_word_matches_whole_words_only() {
        assert_eq!(find_word("mktemp YYYY, YYY", "YYY", 0), Some(13));
        assert_eq!(find_word("sometodo!() todo!()", "todo!", 0), Some(12));
        assert_eq!(find_word("none", "on", 0), None);
    }
}
