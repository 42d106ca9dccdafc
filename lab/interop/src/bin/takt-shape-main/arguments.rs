//! Command-line parser with the syntax of GNU `getopt_long`, independent of the meaning of the
//! options.

use std::fmt::Display;
use std::vec::IntoIter;

/// Syntax of one option.
#[derive(Clone, Copy, Debug)]
pub struct Spec<K> {
    /// Identifier of the option.
    pub key: K,
    /// Short name, one letter.
    pub short: Option<char>,
    /// Long name, without dashes.
    pub long: Option<&'static str>,
    /// Name of the value in the usage; `None` if the option has no value.
    pub value: Option<&'static str>,
}

impl<K> Spec<K> {
    /// Returns the name for messages: the letter if there is one, otherwise the long name.
    pub fn name(&self) -> String {
        match (self.short, self.long) {
            (Some(letter), _) => format!("-{letter}"),
            (None, long) => format!("--{}", long.unwrap_or_default()),
        }
    }

    /// Returns all spellings of the option.
    pub fn usage(&self) -> String {
        let short = self.short.map(|letter| format!("-{letter}"));
        let long = self.long.map(|name| format!("--{name}"));
        let names: Vec<String> = short.into_iter().chain(long).collect();
        let value = self.value.map(|value| format!(" <{value}>"));
        format!("{}{}", names.join(", "), value.unwrap_or_default())
    }
}

/// An option found on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument<K> {
    /// Identifier of the option.
    pub key: K,
    /// Name of the option in messages.
    pub name: String,
    /// Value, empty if the option has none.
    value: String,
}

impl<K> Argument<K> {
    /// Returns the value unchanged.
    pub fn text(&self) -> String {
        self.value.clone()
    }

    /// Returns the value as a decimal number within bounds.
    ///
    /// # Errors
    /// Names the bounds if the value is not such a number.
    pub fn number<N: TryFrom<i64>>(&self, min: i64, max: i64) -> Result<N, String> {
        let number = self.value.parse::<i64>().ok().filter(|number| (min..=max).contains(number));
        let range = if max == i64::MAX { format!("from {min}") } else { format!("from {min} to {max}") };
        let wrong = || format!("{} takes a number {range}, not {:?}", self.name, self.value);
        number.and_then(|number| N::try_from(number).ok()).ok_or_else(wrong)
    }

    /// Returns the choice that the value names.
    ///
    /// # Errors
    /// Lists the choices if the value names none of them.
    pub fn choice<C: Copy>(&self, choices: &[(&str, C)]) -> Result<C, String> {
        let found = choices.iter().find(|(word, _)| *word == self.value);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            format!("{} is {}, not {:?}", self.name, enumeration(&words), self.value)
        })
    }
}

fn enumeration<W: Display + AsRef<str>>(words: &[W]) -> String {
    let Some((last, others)) = words.split_last() else { return String::new() };
    let others: Vec<&str> = others.iter().map(AsRef::as_ref).collect();
    if others.is_empty() { last.to_string() } else { format!("{} or {last}", others.join(", ")) }
}

/// Iterator over the options of a command line. It ends after an error.
pub struct Arguments<'a, K> {
    specs: &'a [Spec<K>],
    words: IntoIter<String>,
    /// Rest of a word of joined letters.
    letters: String,
}

impl<'a, K: Copy> Arguments<'a, K> {
    /// Creates the iterator over a command line without the program name.
    pub fn new(specs: &'a [Spec<K>], words: impl IntoIterator<Item = String>) -> Self {
        let words: Vec<String> = words.into_iter().collect();
        Self { specs, words: words.into_iter(), letters: String::new() }
    }

    fn advance(&mut self) -> Result<Option<Argument<K>>, String> {
        if !self.letters.is_empty() {
            return self.letter().map(Some);
        }
        let Some(word) = self.words.next() else { return Ok(None) };
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            return self.long(long).map(Some);
        }
        match word.strip_prefix('-').filter(|letters| !letters.is_empty() && *letters != "-") {
            Some(letters) => {
                self.letters = letters.to_owned();
                self.letter().map(Some)
            }
            None => Err(format!("{word:?} is no option")),
        }
    }

    fn letter(&mut self) -> Result<Argument<K>, String> {
        let mut letters = std::mem::take(&mut self.letters);
        let letter = letters.remove(0);
        let name = format!("-{letter}");
        let spec = self.specs.iter().find(|spec| spec.short == Some(letter));
        let spec = *spec.ok_or_else(|| format!("{name} is no option"))?;
        if spec.value.is_none() {
            self.letters = letters;
            return Ok(Argument { key: spec.key, name, value: String::new() });
        }
        let attached = Some(letters).filter(|value| !value.is_empty());
        self.with_value(spec.key, name, attached)
    }

    fn long(&mut self, word: &str) -> Result<Argument<K>, String> {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        let spec = *self.find_long(name)?;
        let name = format!("--{}", spec.long.unwrap_or(name));
        match (spec.value, attached) {
            (None, Some(_)) => Err(format!("{name} takes no value")),
            (None, None) => Ok(Argument { key: spec.key, name, value: String::new() }),
            (Some(_), attached) => self.with_value(spec.key, name, attached),
        }
    }

    /// Returns the option with this long name, or the only one whose name begins with it.
    fn find_long(&self, name: &str) -> Result<&'a Spec<K>, String> {
        let specs = self.specs;
        if let Some(exact) = specs.iter().find(|spec| spec.long == Some(name)) {
            return Ok(exact);
        }
        let mut similar = specs.iter().filter(|spec| spec.long.is_some_and(|long| long.starts_with(name)));
        match (similar.next(), similar.next()) {
            (Some(only), None) => Ok(only),
            (Some(_), Some(_)) => Err(format!("--{name} is the beginning of several options")),
            _ => Err(format!("--{name} is no option")),
        }
    }

    fn with_value(&mut self, key: K, name: String, attached: Option<String>) -> Result<Argument<K>, String> {
        let value = attached.or_else(|| self.words.next()).ok_or_else(|| format!("{name} needs a value"))?;
        Ok(Argument { key, name, value })
    }
}

impl<K: Copy> Iterator for Arguments<'_, K> {
    type Item = Result<Argument<K>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.words = Vec::new().into_iter();
            self.letters.clear();
        }
        next.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Spec<u8>] = &[
        Spec { key: 1, short: Some('S'), long: None, value: None },
        Spec { key: 2, short: Some('t'), long: None, value: Some("name") },
        Spec { key: 3, short: None, long: Some("write-period"), value: Some("ms") },
        Spec { key: 4, short: None, long: Some("write-all"), value: None },
    ];

    fn read(line: &str) -> Result<Vec<(u8, String)>, String> {
        let words = line.split_whitespace().map(str::to_owned);
        Arguments::new(SPECS, words).map(|argument| argument.map(|found| (found.key, found.value))).collect()
    }

    #[test]
    fn values_parse_in_every_spelling() {
        for line in ["-t Square", "-tSquare"] {
            assert_eq!(read(line), Ok(vec![(2, "Square".to_owned())]), "{line}");
        }
        for line in ["--write-period 10", "--write-period=10", "--write-p 10"] {
            assert_eq!(read(line), Ok(vec![(3, "10".to_owned())]), "{line}");
        }
        assert_eq!(read("-St -5"), Ok(vec![(1, String::new()), (2, "-5".to_owned())]));
        assert_eq!(read("--write-period="), Ok(vec![(3, String::new())]));
    }

    #[test]
    fn errors_name_the_invalid_option() {
        assert_eq!(read("-q"), Err("-q is no option".to_owned()));
        assert_eq!(read("--nothing"), Err("--nothing is no option".to_owned()));
        assert_eq!(read("--write"), Err("--write is the beginning of several options".to_owned()));
        assert_eq!(read("--write-all=3"), Err("--write-all takes no value".to_owned()));
        assert_eq!(read("-t"), Err("-t needs a value".to_owned()));
        for word in ["Square", "-", "--"] {
            assert_eq!(read(word), Err(format!("{word:?} is no option")));
        }
    }

    #[test]
    fn number_and_choice_errors_list_allowed_values() {
        let argument = |value: &str| Argument { key: 0, name: "-d".to_owned(), value: value.to_owned() };
        assert_eq!(argument("7").number::<u32>(0, 9), Ok(7));
        for value in ["10", "-1", "x", "", "99999999999999999999"] {
            let message = argument(value).number::<u32>(0, 9).expect_err(value);
            assert!(message.starts_with("-d takes a number from 0 to 9"), "{message}");
        }
        assert_eq!(argument("a").choice(&[("a", 1), ("b", 2)]), Ok(1));
        assert_eq!(argument("c").choice(&[("a", 1), ("b", 2)]), Err("-d is a or b, not \"c\"".to_owned()));
    }
}
