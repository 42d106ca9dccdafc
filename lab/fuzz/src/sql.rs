//! SQL expressions, their parameters and payloads: a filter decides equally on serialized and
//! decoded samples.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use crate::zoo::*;
use takt_xtypes::TypeSupport;
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::sql::{Filter, Query, SqlError, TopicExpression};
use takt_xtypes::type_object::TypeRegistry;

/// Runs an input. The first byte selects the type. An expression and its parameters follow, each
/// terminated by a zero byte, the last parameter by two; the rest is a payload.
pub fn run(input: &[u8]) {
    static TYPES: OnceLock<Vec<Arc<DynamicType>>> = OnceLock::new();
    let types = TYPES.get_or_init(|| {
        vec![
            dynamic::<ShapeType>(),
            dynamic::<Primitives>(),
            dynamic::<Enums>(),
            dynamic::<Collections>(),
            dynamic::<Unions>(),
            dynamic::<FinalOptional>(),
            dynamic::<AppendableOptional>(),
            dynamic::<Mutable>(),
            dynamic::<Nested>(),
            dynamic::<Tree>(),
            dynamic::<Exotic>(),
        ]
    });
    let Some((choice, rest)) = input.split_first() else { return };
    let ty = &types[usize::from(*choice) % types.len()];
    let (expression, mut rest) = text(rest);
    let mut parameters = Vec::new();
    while !rest.is_empty() {
        let (parameter, behind) = text(rest);
        rest = behind;
        if parameter.is_empty() {
            break;
        }
        parameters.push(parameter);
    }
    expect_position(TopicExpression::parse(&expression), &expression);
    if let Some(query) = expect_position(Query::new(Arc::clone(ty), &expression, &parameters), &expression) {
        assert_eq!(query.compare(rest, rest), Ordering::Equal);
    }
    if let Some(filter) = expect_position(Filter::new(Arc::clone(ty), &expression, &parameters), &expression) {
        let result = filter.matches(rest);
        if let Ok(data) = ty.decode(rest) {
            assert_eq!(result, Ok(filter.matches_data(&data)), "{expression}");
        }
    }
}

fn dynamic<T: TypeSupport>() -> Arc<DynamicType> {
    let mut registry = TypeRegistry::new();
    let information = T::type_information(&mut registry);
    Arc::new(DynamicType::new(&information.complete.type_id, &registry).expect("a type that compiles can be built"))
}

/// Splits at the first zero byte: the text, and the remaining bytes.
fn text(bytes: &[u8]) -> (String, &[u8]) {
    let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (String::from_utf8_lossy(&bytes[..len]).into_owned(), bytes.get(len + 1..).unwrap_or_default())
}

/// Asserts that an error position is within the text and that the error has a message.
fn expect_position<T>(result: Result<T, SqlError>, expression: &str) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(error.position <= expression.len() && !error.what.is_empty(), "{error}");
            None
        }
    }
}
