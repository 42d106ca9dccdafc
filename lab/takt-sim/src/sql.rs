//! SQL content filters of simulated readers (DDS 1.4 §2.2.2.3.3, annex B), which `takt-xtypes`
//! evaluates on the octets of samples.
//!
//! Each expression has a text, which readers announce and writers compile, and a predicate, which
//! the checkers use.

use std::sync::Arc;

use takt_core::{ContentFilter, FilterFactory, ReaderFilter};
use takt_derive::DdsType;
use takt_wire::discovery::ContentFilterProperty;
use takt_xtypes::TypeSupport;
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::sql::Filter;
use takt_xtypes::type_object::TypeRegistry;

/// Parameters `%0` and `%1` of an expression.
pub type Parameters = [u32; 2];

/// Filter expression.
#[derive(Clone, Copy)]
struct Expression {
    text: &'static str,
    /// Predicate that reports whether a sample with this number and instance passes.
    meaning: fn(u32, u32, Parameters) -> bool,
}

const EXPRESSIONS: [Expression; 6] = [
    Expression { text: "number > %0 AND instance < 200", meaning: |number, _, [least, _]| number > least },
    Expression { text: "number BETWEEN %0 AND %1", meaning: |number, _, [low, high]| (low..=high).contains(&number) },
    Expression {
        text: "number NOT BETWEEN %0 AND %1",
        meaning: |number, _, [low, high]| !(low..=high).contains(&number),
    },
    Expression {
        text: "instance = 1 OR (number >= %0 AND number <= %1)",
        meaning: |number, instance, [low, high]| instance == 1 || (low <= number && number <= high),
    },
    Expression {
        text: "NOT (instance <> 2 AND number < %1)",
        meaning: |number, instance, [_, high]| instance == 2 || number >= high,
    },
    Expression {
        text: "number < %0 OR number > %1 AND NOT instance = 1",
        meaning: |number, instance, [low, high]| number < low || (number > high && instance != 1),
    },
];

/// Number of expressions.
pub const COUNT: u8 = EXPRESSIONS.len() as u8;

/// Reports whether a sample passes an expression.
#[must_use]
pub fn passes(expression: u8, parameters: Parameters, number: u32, instance: u8) -> bool {
    (EXPRESSIONS[usize::from(expression)].meaning)(number, instance.into(), parameters)
}

/// Members of a sample that the expressions use ([`crate::sample`]).
#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(extensibility = "final", crate = "takt_xtypes")]
struct Sample {
    instance: u8,
    writer: u32,
    number: u32,
}

fn sample_type() -> Arc<DynamicType> {
    let mut types = TypeRegistry::new();
    let information = Sample::type_information(&mut types);
    Arc::new(DynamicType::new(&information.complete.type_id, &types).expect("a type that compiles can be built"))
}

/// Filter class name of these filters.
const FILTER_CLASS: &str = "DDSSQL";

/// An expression that is compiled for the type.
struct Bound(Filter);

impl ContentFilter for Bound {
    fn passes(&mut self, payload: &[u8]) -> bool {
        self.0.matches(payload).expect("a simulated sample can be read")
    }

    fn passes_within(&mut self, payload: &[u8], steps: &mut u64) -> Option<bool> {
        self.0.matches_within(payload, steps).expect("a simulated sample can be read")
    }
}

/// Returns the filter of a reader.
#[must_use]
pub fn reader_filter(expression: u8, parameters: Parameters) -> ReaderFilter {
    let property = ContentFilterProperty {
        content_filtered_topic_name: "filtered".into(),
        related_topic_name: "topic".into(),
        filter_class_name: FILTER_CLASS.into(),
        filter_expression: EXPRESSIONS[usize::from(expression)].text.into(),
        expression_parameters: parameters.map(|parameter| parameter.to_string()).into(),
    };
    let filter = compile(&property).expect("it is one of those");
    ReaderFilter { property, filter }
}

fn compile(property: &ContentFilterProperty) -> Option<Box<dyn ContentFilter>> {
    let filter = Filter::new(sample_type(), &property.filter_expression, &property.expression_parameters).ok()?;
    Some(Box::new(Bound(filter)))
}

/// Factory of such filters for writers.
#[derive(Debug)]
pub struct SqlFilters;

impl FilterFactory for SqlFilters {
    fn compile(&self, property: &ContentFilterProperty) -> Option<Box<dyn ContentFilter>> {
        if property.filter_class_name == FILTER_CLASS { compile(property) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Identity, fill};

    #[test]
    fn expression_texts_agree_with_their_predicates() {
        let mut payload = [0; 24];
        for expression in 0..COUNT {
            let mut filter = reader_filter(expression, [5, 9]).filter;
            let mut passed = 0;
            for (number, instance) in (1..15).flat_map(|number| (0..4).map(move |instance| (number, instance))) {
                fill(Identity { writer: 3, number, instance }, &mut payload);
                let expected = passes(expression, [5, 9], number, instance);
                assert_eq!(filter.passes(&payload), expected, "{expression}: {number}, {instance}");
                passed += u32::from(expected);
            }
            assert!(passed > 0 && passed < 14 * 4, "{expression}");
        }
    }
}
