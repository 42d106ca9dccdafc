//! Parsing of constant expressions (IDL 4.2 §7.4.1.4.3): integers of 128 bits and doubles, checked
//! against the type of the constant.

use takt_xtypes::definition::{Definition, TypeSpec};

use super::Parser;
use crate::error::{Location, Result};
use crate::lexer::Kind;
use crate::symbols::Symbol;
use crate::value::Value;

/// Binary operators, in ascending order of precedence.
#[derive(Clone, Copy, PartialEq)]
enum Operator {
    Or,
    Xor,
    And,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    const fn level(self) -> u8 {
        match self {
            Self::Or => 0,
            Self::Xor => 1,
            Self::And => 2,
            Self::ShiftLeft | Self::ShiftRight => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::Remainder => 5,
        }
    }
}

impl Parser<'_> {
    /// Parses an expression.
    pub(super) fn expression(&mut self) -> Result<Value> {
        self.nested(|parser| parser.binary(0, true))
    }

    /// Parses an expression with a value of this type.
    pub(super) fn expression_of(&mut self, of: &TypeSpec) -> Result<Value> {
        self.complement = match self.definitions.resolve(of) {
            Some(TypeSpec::Octet | TypeSpec::Uint8 | TypeSpec::Uint16 | TypeSpec::Uint32) => Some(u32::MAX.into()),
            Some(TypeSpec::Uint64) => Some(u64::MAX.into()),
            _ => None,
        };
        let value = self.expression();
        self.complement = None;
        value
    }

    /// Parses an expression within `<` and `>`, which `>>` ends.
    pub(super) fn bound_expression(&mut self) -> Result<Value> {
        self.nested(|parser| parser.binary(0, false))
    }

    /// Parses operands joined by operators of this precedence level and above.
    fn binary(&mut self, level: u8, with_shift: bool) -> Result<Value> {
        let mut left = self.unary()?;
        while let Some(operator) = self.operator(with_shift).filter(|operator| operator.level() >= level) {
            let location = self.location();
            self.advance();
            if operator == Operator::ShiftRight {
                self.advance();
            }
            let right = self.nested(|parser| parser.binary(operator.level() + 1, with_shift))?;
            left = combine(operator, left, right, location)?;
        }
        Ok(left)
    }

    /// Returns the operator at this position.
    fn operator(&self, with_shift: bool) -> Option<Operator> {
        Some(match self.token().kind {
            Kind::Symbol('|') => Operator::Or,
            Kind::Symbol('^') => Operator::Xor,
            Kind::Symbol('&') => Operator::And,
            Kind::ShiftLeft => Operator::ShiftLeft,
            Kind::Symbol('>') if with_shift => {
                let next = self.tokens.get(self.at + 1)?;
                return (next.kind == Kind::Symbol('>') && next.adjacent).then_some(Operator::ShiftRight);
            }
            Kind::Symbol('+') => Operator::Add,
            Kind::Symbol('-') => Operator::Subtract,
            Kind::Symbol('*') => Operator::Multiply,
            Kind::Symbol('/') => Operator::Divide,
            Kind::Symbol('%') => Operator::Remainder,
            _ => return None,
        })
    }

    fn unary(&mut self) -> Result<Value> {
        let location = self.location();
        let Kind::Symbol(sign @ ('-' | '+' | '~')) = self.token().kind else { return self.operand() };
        self.advance();
        let value = self.nested(Self::unary)?;
        match (sign, value) {
            ('-', Value::Integer(value)) => Ok(Value::Integer(-value)),
            ('-', Value::Float(value)) => Ok(Value::Float(-value)),
            ('+', value @ (Value::Integer(_) | Value::Float(_))) => Ok(value),
            ('~', Value::Integer(value)) => self.complement_of(value, location).map(Value::Integer),
            (_, value) => Err(location.failure(format!("'{sign}' cannot be applied to {}", value.describe()))),
        }
    }

    /// Evaluates `~value` (IDL 4.2 §7.4.1.4.3): 2^32-1-value or 2^64-1-value for unsigned types. A
    /// negative value is interpreted as two's complement.
    fn complement_of(&self, value: i128, location: Location) -> Result<i128> {
        match self.complement {
            Some(max) if value > max => {
                let bits = 128 - max.leading_zeros();
                Err(location.failure(format!("'~' of {value} does not fit {bits} bits")))
            }
            Some(max) if value >= 0 => Ok(max - value),
            _ => Ok(!value),
        }
    }

    fn operand(&mut self) -> Result<Value> {
        let location = self.location();
        let value = match &self.token().kind {
            Kind::Integer(value) => Value::Integer(i128::from(*value)),
            Kind::Float(value) => Value::Float(*value),
            Kind::Character { value, .. } => Value::Character(*value),
            Kind::Text { value, .. } => Value::Text(value.clone()),
            Kind::Identifier { name, escaped: false } if name.eq_ignore_ascii_case("TRUE") => Value::Boolean(true),
            Kind::Identifier { name, escaped: false } if name.eq_ignore_ascii_case("FALSE") => Value::Boolean(false),
            Kind::Symbol('(') => {
                self.advance();
                let value = self.expression()?;
                self.expect_symbol(')', "after the expression")?;
                return Ok(value);
            }
            Kind::Identifier { .. } | Kind::Scope => return self.named_value(location),
            _ => return Err(self.unexpected("a value")),
        };
        self.advance();
        let Value::Text(mut text) = value else { return Ok(value) };
        // Adjacent strings are concatenated.
        while let Kind::Text { value, .. } = &self.token().kind {
            text.push_str(value);
            self.advance();
            if text.len() > crate::limits::MAX_NAME_LEN {
                let limit = crate::limits::MAX_NAME_LEN;
                return Err(location.failure(format!("a string of more than {limit} octets")));
            }
        }
        Ok(Value::Text(text))
    }

    fn named_value(&mut self, location: Location) -> Result<Value> {
        let (name, is_absolute) = self.scoped_name("a value")?;
        match self.lookup(&name, is_absolute, location)? {
            (_, Symbol::Constant(value)) => Ok(value),
            (full, _) => Err(location.failure(format!("'{full}' is not a constant"))),
        }
    }

    /// Converts a value to a type.
    pub(super) fn value_of(&self, of: &TypeSpec, value: Value, location: Location) -> Result<Value> {
        let resolved = self.definitions.resolve(of);
        let fits = match (resolved, &value) {
            (Some(TypeSpec::Boolean), Value::Boolean(_))
            | (Some(TypeSpec::Char | TypeSpec::WChar), Value::Character(_))
            | (Some(TypeSpec::String { .. } | TypeSpec::WString { .. }), Value::Text(_))
            | (Some(TypeSpec::Float | TypeSpec::Double), Value::Float(_)) => true,
            (Some(TypeSpec::Float | TypeSpec::Double), Value::Integer(number)) => {
                return Ok(Value::Float(*number as f64));
            }
            (Some(TypeSpec::Named(id)), Value::Literal { of, .. }) => id == of,
            (Some(TypeSpec::Named(id)), Value::Integer(_)) => {
                matches!(self.definitions.get(*id), Some(Definition::Bitmask(_)))
            }
            (Some(other), Value::Integer(number)) => match range(other) {
                Some((min, max)) if (min..=max).contains(number) => true,
                Some((min, max)) => {
                    return Err(location.failure(format!("{number} is not between {min} and {max}")));
                }
                None => false,
            },
            _ => false,
        };
        if fits { Ok(value) } else { Err(location.failure(format!("{} is not a value of the type", value.describe()))) }
    }
}

/// Returns the range of an integer type.
pub(super) fn range(of: &TypeSpec) -> Option<(i128, i128)> {
    Some(match of {
        TypeSpec::Octet | TypeSpec::Uint8 => (0, 0xff),
        TypeSpec::Int8 => (i128::from(i8::MIN), i128::from(i8::MAX)),
        TypeSpec::Int16 => (i128::from(i16::MIN), i128::from(i16::MAX)),
        TypeSpec::Uint16 => (0, i128::from(u16::MAX)),
        TypeSpec::Int32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        TypeSpec::Uint32 => (0, i128::from(u32::MAX)),
        TypeSpec::Int64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        TypeSpec::Uint64 => (0, i128::from(u64::MAX)),
        _ => return None,
    })
}

fn combine(operator: Operator, left: Value, right: Value, location: Location) -> Result<Value> {
    let overflow = || location.failure("the value of the expression is out of range");
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => {
            let shift = u32::try_from(right).ok().filter(|shift| *shift < 64);
            let no_shift = || location.failure("the shift distance must be 0 to 63");
            let value = match operator {
                Operator::Or => Some(left | right),
                Operator::Xor => Some(left ^ right),
                Operator::And => Some(left & right),
                Operator::ShiftLeft => left.checked_mul(1 << shift.ok_or_else(no_shift)?),
                Operator::ShiftRight => Some(left >> shift.ok_or_else(no_shift)?),
                Operator::Add => left.checked_add(right),
                Operator::Subtract => left.checked_sub(right),
                Operator::Multiply => left.checked_mul(right),
                Operator::Divide | Operator::Remainder if right == 0 => {
                    return Err(location.failure("a division by zero"));
                }
                Operator::Divide => left.checked_div(right),
                Operator::Remainder => left.checked_rem(right),
            };
            let limit = i128::from(u64::MAX);
            value.filter(|value| (-limit..=limit).contains(value)).map(Value::Integer).ok_or_else(overflow)
        }
        (left @ (Value::Float(_) | Value::Integer(_)), right @ (Value::Float(_) | Value::Integer(_))) => {
            let number = |value: &Value| match value {
                Value::Float(value) => *value,
                Value::Integer(value) => *value as f64,
                _ => f64::NAN,
            };
            let (left, right) = (number(&left), number(&right));
            let value = match operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left * right,
                Operator::Divide => left / right,
                _ => return Err(location.failure("the operator requires integers")),
            };
            if value.is_finite() { Ok(Value::Float(value)) } else { Err(overflow()) }
        }
        (left, right) => {
            Err(location.failure(format!("cannot compute with {} and {}", left.describe(), right.describe())))
        }
    }
}
