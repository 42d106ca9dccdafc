//! Parts of a sample's JSON value: one member (`--field`), or the value without array elements
//! (`--no-arr`).

use takt::xtypes::dynamic::JsonValue;

/// Returns the member at a path such as `pose.position.x` or `ranges[3]`. `None` if the value has
/// no such member.
pub fn select<'v>(value: &'v JsonValue, path: &str) -> Option<&'v JsonValue> {
    let mut value = value;
    for step in path.split('.') {
        let (name, indexes) = step.split_once('[').map_or((step, ""), |(name, rest)| (name, rest));
        if !name.is_empty() {
            let JsonValue::Object(members) = value else { return None };
            value = members.iter().find(|(member, _)| member == name).map(|(_, value)| value)?;
        } else if indexes.is_empty() {
            return None;
        }
        for index in indexes.split('[').filter(|index| !index.is_empty()) {
            let index: usize = index.strip_suffix(']')?.parse().ok()?;
            let JsonValue::Array(elements) = value else { return None };
            value = elements.get(index)?;
        }
    }
    Some(value)
}

/// Returns the value with the number of elements in place of each array.
pub fn without_arrays(value: &JsonValue) -> JsonValue {
    match value {
        JsonValue::Array(elements) => JsonValue::String(format!("<{} elements>", elements.len())),
        JsonValue::Object(members) => {
            JsonValue::Object(members.iter().map(|(name, value)| (name.clone(), without_arrays(value))).collect())
        }
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::json::from_serde;
    use serde_json::json;

    #[test]
    fn path_selects_members_and_elements() {
        let value = from_serde(json!({ "pose": { "x": 1, "rows": [[1, 2], [3, 4]] }, "ranges": [5, 6] }));
        let number = |path: &str| match select(&value, path) {
            Some(JsonValue::Integer(number)) => Some(*number),
            _ => None,
        };
        assert_eq!(number("pose.x"), Some(1));
        assert_eq!(number("pose.rows[1][0]"), Some(3));
        assert_eq!(number("ranges[1]"), Some(6));
        for path in ["", "pose.y", "ranges[2]", "ranges[x]", "ranges[1", "pose.x.y", "pose..x", "pose.x[0]"] {
            assert!(select(&value, path).is_none(), "{path}");
        }
    }

    #[test]
    fn arrays_are_replaced_by_their_length_at_every_depth() {
        let value = from_serde(json!({ "a": [1, 2, 3], "b": { "c": [], "d": 4 } }));
        let expected = from_serde(json!({ "a": "<3 elements>", "b": { "c": "<0 elements>", "d": 4 } }));
        assert_eq!(without_arrays(&value), expected);
    }
}
