//! Conversion between dynamic values and `serde_json`.

use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use takt::xtypes::dynamic::JsonValue;

/// JSON value for printing. Its members are in the order of the type. Numbers that JSON cannot
/// represent are strings.
pub struct Ordered(pub JsonValue);

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

struct Borrowed<'a>(&'a JsonValue);

impl Serialize for Borrowed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, serializer)
    }
}

fn serialize<S: Serializer>(value: &JsonValue, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        JsonValue::Null => serializer.serialize_unit(),
        JsonValue::Bool(value) => serializer.serialize_bool(*value),
        JsonValue::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => serializer.serialize_i64(value),
            (_, Ok(value)) => serializer.serialize_u64(value),
            _ => serializer.collect_str(value),
        },
        JsonValue::Number(value) if value.is_finite() => serializer.serialize_f64(*value),
        JsonValue::Number(value) => serializer.collect_str(value),
        JsonValue::String(value) => serializer.serialize_str(value),
        JsonValue::Array(values) => serializer.collect_seq(values.iter().map(Borrowed)),
        JsonValue::Object(members) => {
            serializer.collect_map(members.iter().map(|(name, value)| (name, Borrowed(value))))
        }
    }
}

impl fmt::Display for Ordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only keys that are not strings could fail, and there are none.
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Converts a parsed value.
pub fn from_serde(value: Value) -> JsonValue {
    match value {
        Value::Null => JsonValue::Null,
        Value::Bool(value) => JsonValue::Bool(value),
        Value::Number(number) => match (number.as_i128(), number.as_f64()) {
            (Some(value), _) => JsonValue::Integer(value),
            (None, value) => JsonValue::Number(value.unwrap_or(f64::NAN)),
        },
        Value::String(value) => JsonValue::String(value),
        Value::Array(values) => JsonValue::Array(values.into_iter().map(from_serde).collect()),
        Value::Object(members) => {
            JsonValue::Object(members.into_iter().map(|(name, value)| (name, from_serde(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_round_trip_in_member_order() {
        let value = json!({ "a": [1, -2, u64::MAX, 1.5, "x", null, true], "b": {} });
        let text = Ordered(from_serde(value.clone())).to_string();
        assert_eq!(serde_json::from_str::<Value>(&text).expect("valid JSON"), value);
        let members = ["z", "a"].map(|name| (name.to_owned(), JsonValue::Null));
        assert_eq!(Ordered(JsonValue::Object(members.into())).to_string(), r#"{"z":null,"a":null}"#);
    }

    #[test]
    fn double_is_parsed_exactly() {
        let value = from_serde(serde_json::from_str("398453236.81570244").expect("a number"));
        assert_eq!(value, JsonValue::Number(398_453_236.815_702_44));
    }

    #[test]
    fn numbers_that_json_cannot_represent_are_text() {
        assert_eq!(Ordered(JsonValue::Number(f64::NAN)).to_string(), r#""NaN""#);
        assert_eq!(Ordered(JsonValue::Integer(i128::MAX)).to_string(), format!("\"{}\"", i128::MAX));
    }
}
