//! Parser of conditions, queries and topic expressions (DDS 1.4 annex B, "SQL grammar in BNF").
//!
//! A condition becomes a list of predicates and a program with one truth value. Each predicate sets
//! the value; jumps skip predicates that cannot change it. Nesting therefore costs nothing at
//! evaluation. Only parentheses recurse during parsing, up to a limit.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::lexer::{Operator, Token, tokens};
use super::{FieldPart, LIST_MAX, NESTING_MAX, PREDICATES_MAX, SqlError, error};

/// Operand of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    /// Field, or enumerator without quotes.
    Name(Vec<FieldPart>),
    Integer(i128),
    Float(f64),
    Text(String),
    Bool(bool),
    Parameter(usize),
}

/// Term with its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Positioned {
    pub(super) position: usize,
    pub(super) term: Term,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Predicate {
    Compare { left: Positioned, operator: Operator, right: Positioned },
    Between { field: Positioned, negated: bool, low: Positioned, high: Positioned },
}

/// Instruction of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Sets the truth value to that of this predicate. If the predicate is unknown, sets it to the
    /// flag, which is true within an odd number of NOTs.
    Test(usize, bool),
    Not,
    /// Jumps to another instruction if the truth value equals the flag.
    JumpIf(bool, usize),
}

/// Condition that is not bound to a type yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    pub(super) predicates: Vec<Predicate>,
    pub(super) program: Vec<Step>,
}

/// Expression of a QueryCondition.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryExpression {
    /// Condition; it selects all samples if the expression has none.
    pub condition: Condition,
    /// Fields to order by, the most significant one first, each with its position.
    pub order_by: Vec<(usize, Vec<FieldPart>)>,
}

/// Selected field of a MultiTopic's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Field of a constituent topic.
    pub field: Vec<FieldPart>,
    /// Field of the result; the same name if there is no `AS`.
    pub name: String,
    /// Position in the expression.
    pub position: usize,
}

/// Expression of a MultiTopic.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicExpression {
    /// Fields of the result; empty for all (`*`).
    pub selected: Vec<Selected>,
    /// Joined topics, in order.
    pub topics: Vec<String>,
    /// Condition on the result; it selects everything if there is no `WHERE`.
    pub condition: Condition,
}

impl Condition {
    /// Parses a condition. The empty text is a condition that all samples satisfy.
    ///
    /// # Errors
    /// Fails if the text is not a condition, or exceeds a limit.
    pub fn parse(text: &str) -> Result<Self, SqlError> {
        let mut parser = Parser::new(text)?;
        let condition = if parser.is_at_end() { Self::default() } else { parser.condition()? };
        parser.end()?;
        Ok(condition)
    }

    /// Returns the number of predicates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.predicates.len()
    }

    /// Reports whether all samples satisfy the condition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.predicates.is_empty()
    }
}

impl QueryExpression {
    /// Parses a query.
    ///
    /// # Errors
    /// Fails if the text is not a query, or exceeds a limit.
    pub fn parse(text: &str) -> Result<Self, SqlError> {
        let mut parser = Parser::new(text)?;
        let condition =
            if parser.is_at_end() || parser.is_at_order() { Condition::default() } else { parser.condition()? };
        let mut order_by = Vec::new();
        if parser.is_at_order() {
            parser.at += 2;
            loop {
                let position = parser.position();
                match parser.next() {
                    Some(Token::Name(field)) => order_by.push((position, field)),
                    _ => return Err(error(position, "expected a field to order by")),
                }
                if !parser.takes_comma(order_by.len())? {
                    break;
                }
            }
        }
        parser.end()?;
        Ok(Self { condition, order_by })
    }
}

impl TopicExpression {
    /// Parses the expression of a MultiTopic.
    ///
    /// # Errors
    /// Fails if the text is not such an expression, or exceeds a limit.
    pub fn parse(text: &str) -> Result<Self, SqlError> {
        let mut parser = Parser::new(text)?;
        parser.expect_word("SELECT")?;
        let selected = if parser.takes(&Token::Star) { Vec::new() } else { parser.aggregation()? };
        parser.expect_word("FROM")?;
        let topics = parser.selection()?;
        let condition = if parser.takes_word("WHERE") { parser.condition()? } else { Condition::default() };
        parser.takes(&Token::Semicolon);
        parser.end()?;
        Ok(Self { selected, topics, condition })
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    /// Length of the text.
    len: usize,
    depth: usize,
    /// True within an odd number of NOTs.
    is_within_not: bool,
    condition: Condition,
}

impl Parser {
    fn new(text: &str) -> Result<Self, SqlError> {
        Ok(Self {
            tokens: tokens(text)?,
            at: 0,
            len: text.len(),
            depth: 0,
            is_within_not: false,
            condition: Condition::default(),
        })
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += usize::from(token.is_some());
        token
    }

    fn position(&self) -> usize {
        self.tokens.get(self.at).map_or(self.len, |(position, _)| *position)
    }

    fn is_at_end(&self) -> bool {
        self.at == self.tokens.len()
    }

    fn end(&self) -> Result<(), SqlError> {
        if self.is_at_end() { Ok(()) } else { Err(error(self.position(), "expected the end")) }
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        let token = self.tokens.get(self.at + ahead).map(|(_, token)| token);
        token.and_then(Token::word).is_some_and(|name| name.eq_ignore_ascii_case(word))
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is = self.is_word(0, word);
        self.at += usize::from(is);
        is
    }

    fn expect_word(&mut self, word: &str) -> Result<(), SqlError> {
        if self.takes_word(word) { Ok(()) } else { Err(error(self.position(), format!("expected {word}"))) }
    }

    fn takes(&mut self, token: &Token) -> bool {
        let is = self.peek() == Some(token);
        self.at += usize::from(is);
        is
    }

    fn is_at_order(&self) -> bool {
        self.is_word(0, "ORDER") && self.is_word(1, "BY")
    }

    /// Consumes a comma and reports whether another element of a list with `count` elements
    /// follows.
    fn takes_comma(&mut self, count: usize) -> Result<bool, SqlError> {
        if !self.takes(&Token::Comma) {
            return Ok(false);
        }
        if count >= LIST_MAX { Err(error(self.position(), format!("more than {LIST_MAX} fields"))) } else { Ok(true) }
    }

    fn condition(&mut self) -> Result<Condition, SqlError> {
        self.alternatives()?;
        Ok(core::mem::take(&mut self.condition))
    }

    /// `a OR b OR ...`
    fn alternatives(&mut self) -> Result<(), SqlError> {
        self.chain("OR", true, Self::conjunction)
    }

    /// `a AND b AND ...`
    fn conjunction(&mut self) -> Result<(), SqlError> {
        self.chain("AND", false, Self::negation)
    }

    /// Parses operands separated by `word`. The remaining operands are skipped once the truth value
    /// is `decided`.
    fn chain(
        &mut self,
        word: &str,
        decided: bool,
        term: impl Fn(&mut Self) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        term(self)?;
        let mut jumps = Vec::new();
        while self.takes_word(word) {
            jumps.push(self.condition.program.len());
            self.condition.program.push(Step::JumpIf(decided, 0));
            term(self)?;
        }
        let end = self.condition.program.len();
        for jump in jumps {
            self.condition.program[jump] = Step::JumpIf(decided, end);
        }
        Ok(())
    }

    fn negation(&mut self) -> Result<(), SqlError> {
        let mut negated = false;
        while self.takes_word("NOT") {
            negated = !negated;
        }
        let is_within_not = self.is_within_not;
        self.is_within_not ^= negated;
        if self.takes(&Token::Open) {
            if self.depth == NESTING_MAX {
                return Err(error(self.position(), format!("more than {NESTING_MAX} levels of parentheses")));
            }
            self.depth += 1;
            self.alternatives()?;
            self.depth -= 1;
            if !self.takes(&Token::Close) {
                return Err(error(self.position(), "expected ')'"));
            }
        } else {
            let position = self.position();
            let predicate = self.predicate()?;
            if self.condition.predicates.len() == PREDICATES_MAX {
                return Err(error(position, format!("more than {PREDICATES_MAX} predicates")));
            }
            self.condition.program.push(Step::Test(self.condition.predicates.len(), self.is_within_not));
            self.condition.predicates.push(predicate);
        }
        self.is_within_not = is_within_not;
        if negated {
            self.condition.program.push(Step::Not);
        }
        Ok(())
    }

    fn predicate(&mut self) -> Result<Predicate, SqlError> {
        let left = self.term()?;
        let negated = self.is_word(0, "NOT") && self.is_word(1, "BETWEEN");
        self.at += usize::from(negated);
        if self.takes_word("BETWEEN") {
            if !matches!(left.term, Term::Name(_)) {
                return Err(error(left.position, "expected a field before BETWEEN"));
            }
            let low = self.term()?;
            self.expect_word("AND")?;
            let high = self.term()?;
            return Ok(Predicate::Between { field: left, negated, low, high });
        }
        let position = self.position();
        let operator = match self.next() {
            Some(Token::Operator(operator)) => operator,
            Some(token) if token.word().is_some_and(|word| word.eq_ignore_ascii_case("LIKE")) => Operator::Like,
            Some(token) if token.word().is_some_and(|word| word.eq_ignore_ascii_case("MATCH")) => Operator::Match,
            _ => return Err(error(position, "expected a comparison: = > >= < <= <> LIKE MATCH BETWEEN")),
        };
        Ok(Predicate::Compare { left, operator, right: self.term()? })
    }

    fn term(&mut self) -> Result<Positioned, SqlError> {
        /// Words that cannot be fields, since they are keywords in this position.
        const RESERVED: [&str; 6] = ["AND", "OR", "NOT", "BETWEEN", "LIKE", "MATCH"];
        let position = self.position();
        let is = |token: &Token, word: &str| token.word().is_some_and(|name| name.eq_ignore_ascii_case(word));
        let term = match self.next() {
            Some(Token::Integer(value)) => Term::Integer(value),
            Some(Token::Float(value)) => Term::Float(value),
            Some(Token::Text(text)) => Term::Text(text),
            Some(Token::Parameter(number)) => Term::Parameter(number),
            Some(token) if is(&token, "TRUE") => Term::Bool(true),
            Some(token) if is(&token, "FALSE") => Term::Bool(false),
            Some(Token::Name(parts)) if !RESERVED.iter().any(|word| is(&Token::Name(parts.clone()), word)) => {
                Term::Name(parts)
            }
            _ => return Err(error(position, "expected a field, a literal or a parameter")),
        };
        Ok(Positioned { position, term })
    }

    /// `a.b, c AS d, e f`
    fn aggregation(&mut self) -> Result<Vec<Selected>, SqlError> {
        let mut selected = Vec::new();
        loop {
            let position = self.position();
            let Some(Token::Name(field)) = self.next() else { return Err(error(position, "expected a field")) };
            let has_as = self.takes_word("AS");
            let name = if has_as || (!self.is_word(0, "FROM") && self.peek().is_some_and(|t| t.word().is_some())) {
                self.identifier("a name for the field")?
            } else {
                match field.last() {
                    Some(FieldPart::Name(name)) => name.clone(),
                    _ => return Err(error(position, "a selected element needs a name: add AS NAME")),
                }
            };
            selected.push(Selected { field, name, position });
            if !self.takes_comma(selected.len())? {
                return Ok(selected);
            }
        }
    }

    fn identifier(&mut self, what: &str) -> Result<String, SqlError> {
        let position = self.position();
        match self.next().as_ref().and_then(Token::word) {
            Some(word) => Ok(word.to_string()),
            None => Err(error(position, format!("expected {what}"))),
        }
    }

    /// `a NATURAL JOIN b NATURAL JOIN c`. Joins are associative, so parentheses only have to be
    /// balanced.
    fn selection(&mut self) -> Result<Vec<String>, SqlError> {
        let (mut topics, mut open) = (Vec::new(), 0_usize);
        loop {
            while !topics.is_empty() && self.takes(&Token::Open) {
                open += 1;
            }
            if topics.len() == LIST_MAX {
                return Err(error(self.position(), format!("more than {LIST_MAX} topics")));
            }
            topics.push(self.identifier("the name of a topic")?);
            while open > 0 && self.takes(&Token::Close) {
                open -= 1;
            }
            if !self.takes_join()? {
                break;
            }
        }
        if open > 0 { Err(error(self.position(), "expected ')'")) } else { Ok(topics) }
    }

    /// `INNER JOIN`, `INNER NATURAL JOIN`, `NATURAL JOIN` or `NATURAL INNER JOIN`, which mean the
    /// same.
    fn takes_join(&mut self) -> Result<bool, SqlError> {
        let first = self.takes_word("NATURAL");
        let second = self.takes_word("INNER");
        if !first && !second {
            return Ok(false);
        }
        if !first {
            self.takes_word("NATURAL");
        }
        self.expect_word("JOIN").map(|()| true)
    }
}
