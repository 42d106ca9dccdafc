//! `ContentFilterProperty_t`: the filter that a reader asks its writers to apply (RTPS 2.5 §8.7.3).

use alloc::string::String;
use alloc::vec::Vec;

use super::limits::{self, parse_name};
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::parameter::ParameterWriter;

/// Content filter of a reader.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContentFilterProperty {
    /// Name of the content-filtered topic.
    pub content_filtered_topic_name: String,
    /// Name of the topic that is filtered.
    pub related_topic_name: String,
    /// Language of the expression; DDS defines `DDSSQL`.
    pub filter_class_name: String,
    /// Filter expression; an empty one filters nothing.
    pub filter_expression: String,
    /// Values of `%0`, `%1`, ...
    pub expression_parameters: Vec<String>,
}

impl ContentFilterProperty {
    pub(super) fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let content_filtered_topic_name = parse_name(value)?;
        let related_topic_name = parse_name(value)?;
        let filter_class_name = parse_name(value)?;
        let filter_expression = String::from(value.string()?);
        value.align(4)?;
        let at = value.malformed("too many filter parameters");
        let count = value.count(5)?;
        if count > limits::FILTER_PARAMETERS_MAX {
            return Err(at);
        }
        let mut expression_parameters = Vec::with_capacity(count);
        for _ in 0..count {
            expression_parameters.push(String::from(value.string()?));
        }
        Ok(Self {
            content_filtered_topic_name,
            related_topic_name,
            filter_class_name,
            filter_expression,
            expression_parameters,
        })
    }

    pub(super) fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.string(&self.content_filtered_topic_name);
        value.string(&self.related_topic_name);
        value.string(&self.filter_class_name);
        value.string(&self.filter_expression);
        value.count(self.expression_parameters.len());
        for parameter in &self.expression_parameters {
            value.string(parameter);
        }
    }
}
