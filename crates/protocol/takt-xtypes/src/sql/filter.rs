//! SQL filters: conditions bound to a type. They are checked once and evaluated on payloads without
//! allocation.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::lexer::{Operator, Token, number};
use super::parser::{Condition, Positioned, Predicate, QueryExpression, Step, Term};
use super::pattern::{like, matches};
use super::{FieldPart, PARAMETER_LEN_MAX, PARAMETERS_MAX, SqlError, error};
use crate::DecodeError;
use crate::dynamic::{Budget, DynamicData, DynamicType, Field, FieldKind, Scalar, Text};

/// Condition bound to a type and to parameters: the expression of a ContentFilteredTopic.
#[derive(Clone, Debug)]
pub struct Filter {
    ty: Arc<DynamicType>,
    condition: Condition,
    predicates: Vec<Bound>,
}

/// Filter and sort order: the expression of a QueryCondition.
#[derive(Clone, Debug)]
pub struct Query {
    filter: Filter,
    order_by: Vec<Field>,
}

/// Constant.
#[derive(Clone, Debug)]
enum Literal {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Char(char),
    Text(String),
    Enum(i32),
}

#[derive(Clone, Debug)]
enum Operand {
    Field(Field),
    Literal(Literal),
}

#[derive(Clone, Debug)]
enum Bound {
    Compare { left: Operand, operator: Operator, right: Operand },
    Between { field: Operand, negated: bool, low: Operand, high: Operand },
}

impl Filter {
    /// Binds an expression to a type. The empty expression accepts all samples.
    ///
    /// # Errors
    /// Fails if the text is not a condition, a field is unknown, or the operands of a comparison
    /// are not comparable. Fails if a parameter is missing or has the wrong type, or if a limit is
    /// exceeded.
    pub fn new<S: AsRef<str>>(ty: Arc<DynamicType>, expression: &str, parameters: &[S]) -> Result<Self, SqlError> {
        Self::bind(ty, Condition::parse(expression)?, parameters)
    }

    /// Binds a condition to a type.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does.
    pub fn bind<S: AsRef<str>>(ty: Arc<DynamicType>, condition: Condition, parameters: &[S]) -> Result<Self, SqlError> {
        let predicates = bind(&ty, &condition, parameters)?;
        Ok(Self { ty, condition, predicates })
    }

    /// Sets the values of the parameters. After an error, they are unchanged.
    ///
    /// # Errors
    /// Fails if a parameter of the condition is missing or has the wrong type.
    pub fn set_parameters<S: AsRef<str>>(&mut self, parameters: &[S]) -> Result<(), SqlError> {
        self.predicates = bind(&self.ty, &self.condition, parameters)?;
        Ok(())
    }

    /// Reports whether a sample passes the filter, by its payload. Does not allocate.
    ///
    /// # Errors
    /// Fails if the examined bytes are not a value of the type.
    pub fn matches(&self, payload: &[u8]) -> Result<bool, DecodeError> {
        let budget = Budget::unlimited();
        self.run(&budget, |field| field.read(&self.ty, payload))
    }

    /// Reports whether a sample passes the filter, within a number of steps. Subtracts the steps
    /// used; returns `None` if they do not suffice.
    ///
    /// A step is a value that is skipped on the way to a field, 16 octets of a string that are
    /// read, or a character that is compared with a pattern. When the steps run out, access to the
    /// current field is still completed.
    ///
    /// # Errors
    /// Fails as [`matches`](Self::matches) does.
    pub fn matches_within(&self, payload: &[u8], steps: &mut u64) -> Result<Option<bool>, DecodeError> {
        let budget = Budget::new(*steps);
        let value = self.run(&budget, |field| field.read_within(&self.ty, payload, &budget))?;
        *steps = budget.left();
        Ok((!budget.is_exceeded()).then_some(value))
    }

    /// Reports whether decoded data passes the filter.
    #[must_use]
    pub fn matches_data(&self, data: &DynamicData) -> bool {
        let budget = Budget::unlimited();
        self.run(&budget, |field| Ok::<_, DecodeError>(field.get(&self.ty, data))).unwrap_or(false)
    }

    /// Reports whether the filter accepts all samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.condition.program.is_empty()
    }

    fn run<'a, E>(
        &'a self,
        budget: &Budget,
        read: impl Fn(&'a Field) -> Result<Option<Scalar<'a>>, E>,
    ) -> Result<bool, E> {
        let (mut value, mut at) = (true, 0);
        while let Some(step) = self.condition.program.get(at).filter(|_| !budget.is_exceeded()) {
            at += 1;
            match step {
                Step::Test(predicate, unknown) => {
                    value = self.predicates[*predicate].test(&read, budget)?.unwrap_or(*unknown);
                }
                Step::Not => value = !value,
                // Jumps lead forward only, so the loop terminates.
                Step::JumpIf(when, target) if *when == value => at = *target,
                Step::JumpIf(..) => {}
            }
        }
        Ok(value)
    }
}

impl Query {
    /// Binds an expression to a type.
    ///
    /// # Errors
    /// Fails as [`Filter::new`] does.
    pub fn new<S: AsRef<str>>(ty: Arc<DynamicType>, expression: &str, parameters: &[S]) -> Result<Self, SqlError> {
        let expression = QueryExpression::parse(expression)?;
        let field = |(position, path): &(usize, Vec<FieldPart>)| ty.field(path).map_err(|e| error(*position, e.what));
        let order_by = expression.order_by.iter().map(field).collect::<Result<_, _>>()?;
        Ok(Self { filter: Filter::bind(ty, expression.condition, parameters)?, order_by })
    }

    /// Returns the filter that selects the samples.
    #[must_use]
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Sets the values of the parameters; see [`Filter::set_parameters`].
    ///
    /// # Errors
    /// Fails as [`Filter::set_parameters`] does.
    pub fn set_parameters<S: AsRef<str>>(&mut self, parameters: &[S]) -> Result<(), SqlError> {
        self.filter.set_parameters(parameters)
    }

    /// Reports whether the expression has an `ORDER BY`.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        !self.order_by.is_empty()
    }

    /// Compares two samples by their payloads. Fields that are absent or cannot be read sort first.
    /// Does not allocate.
    #[must_use]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let ty = &self.filter.ty;
        let fields = self.order_by.iter();
        let orders = fields.map(|field| match (field.read(ty, a), field.read(ty, b)) {
            (Ok(Some(Scalar::Float(a))), Ok(Some(Scalar::Float(b)))) => a.total_cmp(&b),
            (Ok(Some(a)), Ok(Some(b))) => a.compare(b).unwrap_or(Ordering::Equal),
            (a, b) => matches!(a, Ok(Some(_))).cmp(&matches!(b, Ok(Some(_)))),
        });
        orders.fold(Ordering::Equal, Ordering::then)
    }
}

impl Literal {
    fn scalar(&self) -> Scalar<'_> {
        match self {
            Self::Bool(value) => Scalar::Bool(*value),
            Self::Integer(value) => Scalar::Integer(*value),
            Self::Float(value) => Scalar::Float(*value),
            Self::Char(value) => Scalar::Char(*value),
            Self::Text(text) => Scalar::Text(Text::Utf8(text)),
            Self::Enum(value) => Scalar::Enum(*value),
        }
    }
}

impl Operand {
    fn value<'a, E>(
        &'a self,
        read: &impl Fn(&'a Field) -> Result<Option<Scalar<'a>>, E>,
    ) -> Result<Option<Scalar<'a>>, E> {
        match self {
            Self::Field(field) => read(field),
            Self::Literal(literal) => Ok(Some(literal.scalar())),
        }
    }
}

impl Bound {
    /// Evaluates the predicate. `None` means unknown: an operand is absent.
    fn test<'a, E>(
        &'a self,
        read: &impl Fn(&'a Field) -> Result<Option<Scalar<'a>>, E>,
        budget: &Budget,
    ) -> Result<Option<bool>, E> {
        match self {
            Self::Compare { left, operator, right } => {
                let (Some(left), Some(right)) = (left.value(read)?, right.value(read)?) else { return Ok(None) };
                Ok(Some(compare_scalars(left, *operator, right, budget)))
            }
            Self::Between { field, negated, low, high } => {
                let Some(value) = field.value(read)? else { return Ok(None) };
                let (Some(low), Some(high)) = (low.value(read)?, high.value(read)?) else { return Ok(None) };
                let is_above = compare_scalars(value, Operator::GreaterOrEqual, low, budget);
                let inside = is_above && compare_scalars(value, Operator::LessOrEqual, high, budget);
                Ok(Some(inside != *negated))
            }
        }
    }
}

fn compare_scalars(left: Scalar<'_>, operator: Operator, right: Scalar<'_>, budget: &Budget) -> bool {
    if let Operator::Like | Operator::Match = operator {
        let (Some(text), Some(pattern)) = (left.text(), right.text()) else { return false };
        let is_like = operator == Operator::Like;
        return if is_like { like(text, pattern, budget) } else { matches(text, pattern, budget) };
    }
    let order = left.compare(right);
    match operator {
        Operator::Equal => order == Some(Ordering::Equal),
        Operator::NotEqual => order != Some(Ordering::Equal),
        Operator::Less => order == Some(Ordering::Less),
        Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Operator::Greater => order == Some(Ordering::Greater),
        Operator::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Operator::Like | Operator::Match => false,
    }
}

fn bind<S: AsRef<str>>(ty: &DynamicType, condition: &Condition, parameters: &[S]) -> Result<Vec<Bound>, SqlError> {
    if parameters.len() > PARAMETERS_MAX {
        return Err(error(0, format!("more than {PARAMETERS_MAX} parameters")));
    }
    if let Some(long) = parameters.iter().position(|text| text.as_ref().len() > PARAMETER_LEN_MAX) {
        return Err(error(0, format!("%{long} has more than {PARAMETER_LEN_MAX} octets")));
    }
    let binder = Binder { ty, parameters };
    condition.predicates.iter().map(|predicate| binder.predicate(predicate)).collect()
}

struct Binder<'a, S> {
    ty: &'a DynamicType,
    parameters: &'a [S],
}

impl<S: AsRef<str>> Binder<'_, S> {
    fn predicate(&self, predicate: &Predicate) -> Result<Bound, SqlError> {
        match predicate {
            Predicate::Compare { left, operator, right } => {
                let (left_operand, right_operand) = self.pair(left, right)?;
                if let Operator::Like | Operator::Match = operator {
                    for (positioned, operand) in [(left, &left_operand), (right, &right_operand)] {
                        if !matches!(kind(operand), FieldKind::Text | FieldKind::Char) {
                            return Err(error(positioned.position, "LIKE and MATCH apply to strings only"));
                        }
                    }
                }
                Ok(Bound::Compare { left: left_operand, operator: *operator, right: right_operand })
            }
            Predicate::Between { field, negated, low, high } => {
                let (operand, low) = self.pair(field, low)?;
                let (_, high) = self.pair(field, high)?;
                Ok(Bound::Between { field: operand, negated: *negated, low, high })
            }
        }
    }

    /// Binds both sides of a comparison. A constant takes the type of the field on the other side.
    fn pair(&self, left: &Positioned, right: &Positioned) -> Result<(Operand, Operand), SqlError> {
        match (self.field(left), self.field(right)) {
            (Some(Ok(a)), Some(Ok(b))) => {
                if !are_comparable(self.ty, &a, &b) {
                    return Err(error(right.position, format!("{} compared with {}", name(b.kind()), name(a.kind()))));
                }
                Ok((Operand::Field(a), Operand::Field(b)))
            }
            // A name that is not a field may be an enumerator.
            (Some(Ok(field)), _) => {
                let literal = self.literal(right, &field)?;
                Ok((Operand::Field(field), Operand::Literal(literal)))
            }
            (_, Some(Ok(field))) => {
                let literal = self.literal(left, &field)?;
                Ok((Operand::Literal(literal), Operand::Field(field)))
            }
            (Some(Err(wrong)), _) | (_, Some(Err(wrong))) => Err(wrong),
            (None, None) => {
                let (a, b) = (Operand::Literal(self.constant(left)?), Operand::Literal(self.constant(right)?));
                if !kinds_agree(kind(&a), kind(&b)) {
                    return Err(error(right.position, format!("{} compared with {}", name(kind(&b)), name(kind(&a)))));
                }
                Ok((a, b))
            }
        }
    }

    /// Returns the field that a term names; `None` for a constant.
    fn field(&self, positioned: &Positioned) -> Option<Result<Field, SqlError>> {
        match &positioned.term {
            Term::Name(path) => Some(self.ty.field(path).map_err(|wrong| error(positioned.position, wrong.what))),
            _ => None,
        }
    }

    fn parameter(&self, positioned: &Positioned, number: usize) -> Result<&str, SqlError> {
        match self.parameters.get(number) {
            Some(text) => Ok(text.as_ref()),
            None => Err(error(positioned.position, format!("parameter %{number} has no value"))),
        }
    }

    /// Returns a constant of the field's type.
    fn literal(&self, positioned: &Positioned, field: &Field) -> Result<Literal, SqlError> {
        let found = match &positioned.term {
            Term::Name(path) => match path.as_slice() {
                [FieldPart::Name(word)] => field.literal(self.ty, word).map(Literal::Enum),
                _ => None,
            },
            Term::Parameter(number) => {
                let text = self.parameter(positioned, *number)?;
                let what = || format!("parameter %{number} = {text} is not {}", name(field.kind()));
                return self.parameter_literal(field, text).ok_or_else(|| error(positioned.position, what()));
            }
            Term::Bool(value) => (field.kind() == FieldKind::Bool).then_some(Literal::Bool(*value)),
            Term::Integer(value) => match field.kind() {
                FieldKind::Integer | FieldKind::Float | FieldKind::Enum => Some(Literal::Integer(*value)),
                _ => None,
            },
            Term::Float(value) => {
                matches!(field.kind(), FieldKind::Integer | FieldKind::Float).then_some(Literal::Float(*value))
            }
            Term::Text(text) => self.quoted_literal(field, text),
        };
        match (&positioned.term, found) {
            (_, Some(literal)) => Ok(literal),
            (Term::Name(path), None) => match self.ty.field(path) {
                Err(wrong) => Err(error(positioned.position, wrong.what)),
                Ok(_) => Err(error(positioned.position, format!("expected {}", name(field.kind())))),
            },
            (_, None) => Err(error(positioned.position, format!("expected {}", name(field.kind())))),
        }
    }

    /// Interprets a quoted string for a field.
    fn quoted_literal(&self, field: &Field, text: &str) -> Option<Literal> {
        match field.kind() {
            FieldKind::Text => Some(Literal::Text(text.to_string())),
            FieldKind::Enum => field.literal(self.ty, text).map(Literal::Enum),
            FieldKind::Char => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(char), None) => Some(Literal::Char(char)),
                    _ => None,
                }
            }
            FieldKind::Bool | FieldKind::Integer | FieldKind::Float => None,
        }
    }

    /// Interprets the value of a parameter for a field. INTEROP(Fast DDS 2.9): strings have quotes
    /// here; other vendors omit them, so both forms are accepted.
    fn parameter_literal(&self, field: &Field, text: &str) -> Option<Literal> {
        let plain = unquoted(text);
        match field.kind() {
            FieldKind::Text | FieldKind::Char => self.quoted_literal(field, plain.unwrap_or(text)),
            FieldKind::Bool if text.trim().eq_ignore_ascii_case("TRUE") => Some(Literal::Bool(true)),
            FieldKind::Bool if text.trim().eq_ignore_ascii_case("FALSE") => Some(Literal::Bool(false)),
            FieldKind::Bool => None,
            FieldKind::Enum => match number(text.trim()) {
                Some(Token::Integer(value)) => Some(Literal::Integer(value)),
                _ => self.quoted_literal(field, plain.unwrap_or(text).trim()),
            },
            FieldKind::Integer | FieldKind::Float => match number(text.trim())? {
                Token::Integer(value) => Some(Literal::Integer(value)),
                Token::Float(value) => Some(Literal::Float(value)),
                _ => None,
            },
        }
    }

    /// Returns a constant by its syntax.
    fn constant(&self, positioned: &Positioned) -> Result<Literal, SqlError> {
        Ok(match &positioned.term {
            Term::Integer(value) => Literal::Integer(*value),
            Term::Float(value) => Literal::Float(*value),
            Term::Text(text) => Literal::Text(text.clone()),
            Term::Bool(value) => Literal::Bool(*value),
            Term::Name(_) => return Err(error(positioned.position, "expected a literal")),
            Term::Parameter(parameter) => {
                let text = self.parameter(positioned, *parameter)?;
                match number(text.trim()) {
                    Some(Token::Integer(value)) => Literal::Integer(value),
                    Some(Token::Float(value)) => Literal::Float(value),
                    _ if text.trim().eq_ignore_ascii_case("TRUE") => Literal::Bool(true),
                    _ if text.trim().eq_ignore_ascii_case("FALSE") => Literal::Bool(false),
                    _ => Literal::Text(unquoted(text).unwrap_or(text).to_string()),
                }
            }
        })
    }
}

/// Returns the text between quotes, if it is quoted.
fn unquoted(text: &str) -> Option<&str> {
    let inside = text.trim().strip_suffix('\'')?;
    inside.strip_prefix(['\'', '`'])
}

fn kind(operand: &Operand) -> FieldKind {
    match operand {
        Operand::Field(field) => field.kind(),
        Operand::Literal(literal) => match literal {
            Literal::Bool(_) => FieldKind::Bool,
            Literal::Integer(_) => FieldKind::Integer,
            Literal::Float(_) => FieldKind::Float,
            Literal::Char(_) => FieldKind::Char,
            Literal::Text(_) => FieldKind::Text,
            Literal::Enum(_) => FieldKind::Enum,
        },
    }
}

/// Reports whether values of two kinds can be compared: DDS 1.4 annex B, "Type compatibility in
/// predicate".
fn kinds_agree(a: FieldKind, b: FieldKind) -> bool {
    use FieldKind::{Bool, Char, Enum, Float, Integer, Text};
    matches!(
        (a, b),
        (Bool, Bool)
            | (Integer | Float, Integer | Float)
            | (Char | Text, Char | Text)
            | (Enum, Integer)
            | (Integer, Enum)
    )
}

fn are_comparable(ty: &DynamicType, a: &Field, b: &Field) -> bool {
    match (a.kind(), b.kind()) {
        (FieldKind::Enum, FieldKind::Enum) => a.has_literals_of(ty, b),
        (a, b) => kinds_agree(a, b),
    }
}

fn name(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Bool => "a boolean",
        FieldKind::Integer => "an integer",
        FieldKind::Float => "a number",
        FieldKind::Char => "a character",
        FieldKind::Text => "a string",
        FieldKind::Enum => "an enumerator of its type",
    }
}
