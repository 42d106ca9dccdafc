//! Values of constants.

use takt_xtypes::definition::DefinitionId;

/// Value of a constant expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Character(u32),
    Text(String),
    /// Literal of an enumeration.
    Literal {
        of: DefinitionId,
        number: i32,
    },
}

impl Value {
    /// Returns the value as an error message shows it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Boolean(value) => value.to_string().to_uppercase(),
            Self::Character(_) => "a character".to_owned(),
            Self::Text(_) => "a string".to_owned(),
            Self::Literal { .. } => "a literal of an enumeration".to_owned(),
        }
    }
}
