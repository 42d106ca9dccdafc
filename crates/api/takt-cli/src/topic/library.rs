//! Types that are built into the command.

use takt::DdsType;
use takt::dynamic::DynamicTypeSupport;
use takt_bench::{Error, Result};

/// Shape of the demo programs that most DDS implementations include. Its topics are `Square`,
/// `Circle` and `Triangle`.
#[derive(DdsType, Clone, Debug, Default)]
#[dds(name = "ShapeType")]
struct ShapeType {
    #[dds(key, bound = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
}

/// A line of text.
#[derive(DdsType, Clone, Debug, Default)]
#[dds(name = "takt::Text")]
struct Text {
    text: String,
}

/// Names of the built-in types.
pub const NAMES: [&str; 2] = ["ShapeType", "takt::Text"];

/// Returns a built-in type by name.
///
/// # Errors
/// There is no type of this name.
pub fn find(name: &str) -> Result<DynamicTypeSupport> {
    match name {
        "ShapeType" => Ok(DynamicTypeSupport::of::<ShapeType>()?),
        "takt::Text" => Ok(DynamicTypeSupport::of::<Text>()?),
        _ => Err(Error::Usage(format!("no built-in type {name}; the built-in types are {}", NAMES.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_type_is_found_and_no_other() {
        for name in NAMES {
            assert_eq!(find(name).expect("a built-in type").type_name(), name);
        }
        let error = find("Sphere").expect_err("not a built-in type").to_string();
        assert!(error.contains("Sphere") && error.contains("ShapeType"), "{error}");
    }
}
