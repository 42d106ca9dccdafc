//! Output of samples, one line each.

use super::field;
use super::json::Ordered;
use crate::output::outln;
use clap::Args;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::fmt::Write as _;
use takt::dynamic::{DynamicSample, DynamicTypeSupport};
use takt::xtypes::dynamic::JsonValue;
use takt::{InstanceState, Timestamp};
use takt_bench::{Error, Result};

/// JSON form of a sample.
#[derive(Serialize)]
struct Line<'a> {
    topic: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    /// Instance state: `alive`, `disposed` or `no_writers`.
    state: &'static str,
    /// Whether the sample has data. Otherwise `key` identifies the instance.
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Ordered>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Ordered>,
    /// Serialized payload in hexadecimal, with its encapsulation header.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    /// Reason why the payload could not be decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    writer: String,
    sequence_number: i64,
    /// Source timestamp in nanoseconds since 1970, by the writer's clock. Absent if the writer
    /// sends none.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_timestamp_ns: Option<i64>,
    reception_timestamp_ns: i64,
}

/// Form in which samples are printed.
#[derive(Args, Clone, Debug, Default)]
pub struct Format {
    /// Print one JSON object per line instead of text
    #[arg(long)]
    pub json: bool,
    /// Print only this member of the data, such as pose.position.x
    #[arg(long, value_name = "PATH")]
    field: Option<String>,
    /// Print the number of elements instead of each array
    #[arg(long)]
    no_arr: bool,
}

impl Format {
    /// Returns the part of a sample's data that is printed.
    ///
    /// # Errors
    /// The data has no member of `--field`.
    fn part(&self, data: JsonValue, type_name: &str) -> Result<JsonValue> {
        let data = match &self.field {
            None => data,
            Some(path) => field::select(&data, path)
                .cloned()
                .ok_or_else(|| Error::Usage(format!("type {type_name}: the sample has no member {path}")))?,
        };
        Ok(if self.no_arr { field::without_arrays(&data) } else { data })
    }
}

/// Printer of the samples of one topic.
pub struct Printer {
    pub topic: String,
    pub type_: DynamicTypeSupport,
    pub format: Format,
    /// Whether text begins with the topic's name.
    pub names_topic: bool,
}

impl Printer {
    /// Prints one sample.
    ///
    /// # Errors
    /// Standard output is closed, or cannot be written to.
    pub fn print(&self, sample: &DynamicSample) -> Result<()> {
        let line = self.line(sample)?;
        if self.format.json {
            let text = serde_json::to_string(&line).map_err(|e| Error::Os { op: "JSON".into(), source: e.into() })?;
            return outln!("{text}");
        }
        let text = match (&self.format.field, &line.data) {
            (Some(_), Some(data)) => data.to_string(),
            _ => plain(&line, sample.info.source_timestamp),
        };
        if self.names_topic { outln!("{} {text}", self.topic) } else { outln!("{text}") }
    }

    fn line<'a>(&'a self, sample: &DynamicSample) -> Result<Line<'a>> {
        let info = &sample.info;
        let (value, error) = match (&sample.value, self.type_.dynamic_type()) {
            (Some(Ok(data)), Some(type_)) => (Some(Ordered(type_.to_json(data))), None),
            (Some(Err(error)), _) => (None, Some(error.to_string())),
            _ => (None, None),
        };
        let (data, key) = if info.valid_data { (value, None) } else { (None, value) };
        let part = |data: Ordered| self.format.part(data.0, self.type_.type_name()).map(Ordered);
        let data = data.map(part).transpose()?;
        let undecoded = data.is_none() && key.is_none() && !sample.payload.is_empty();
        Ok(Line {
            topic: &self.topic,
            type_name: self.type_.type_name(),
            state: match info.instance_state {
                InstanceState::Alive => "alive",
                InstanceState::NotAliveDisposed => "disposed",
                InstanceState::NotAliveNoWriters => "no_writers",
            },
            valid: info.valid_data,
            data,
            key,
            payload: undecoded.then(|| hex(&sample.payload)),
            error,
            writer: info.publication.to_string(),
            sequence_number: info.sequence_number.0,
            source_timestamp_ns: (!info.source_timestamp.is_invalid()).then(|| info.source_timestamp.to_nanos()),
            reception_timestamp_ns: info.reception_timestamp.to_nanos(),
        })
    }
}

/// Formats the line as text, without details that are rarely needed.
fn plain(line: &Line<'_>, time: Timestamp) -> String {
    let mut text = if time.is_invalid() { "-".to_owned() } else { time_of_day(time.to_nanos(), &TimeZone::system()) };
    if !line.valid {
        text.push_str(if line.state == "disposed" { " disposed" } else { " without writers" });
    }
    for part in [&line.data, &line.key].into_iter().flatten() {
        write!(text, " {part}").expect("writing to a String cannot fail");
    }
    if let Some(payload) = &line.payload {
        write!(text, " {payload}").expect("writing to a String cannot fail");
    }
    if let Some(error) = &line.error {
        write!(text, " (not decoded: {error})").expect("writing to a String cannot fail");
    }
    text
}

/// Formats the time of day in local time, with its offset from UTC.
fn time_of_day(nanos: i64, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_nanosecond(nanos.into()) {
        Ok(time) => time.to_zoned_datetime(zone.clone()).strftime("%H:%M:%S%.6f%:z").to_string(),
        Err(_) => format!("{nanos} ns"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_day_is_local_and_has_the_offset() {
        let day = 86_400_000_000_000 * 20_000;
        assert_eq!(time_of_day(0, &TimeZone::UTC), "00:00:00.000000+00:00");
        assert_eq!(time_of_day(day + 3_661_000_002_999, &TimeZone::UTC), "01:01:01.000002+00:00");
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(time_of_day(day + 3_661_000_002_999, &zone), "03:01:01.000002+02:00");
        assert_eq!(time_of_day(i64::MAX, &TimeZone::UTC), "23:47:16.854775+00:00");
    }

    #[test]
    fn unknown_member_is_refused_with_the_type() {
        let format = Format { field: Some("a.b".to_owned()), ..Format::default() };
        let error = format.part(JsonValue::Object(Vec::new()), "T").expect_err("refused").to_string();
        assert_eq!(error, "type T: the sample has no member a.b");
    }

    #[test]
    fn octets_have_two_digits_each() {
        assert_eq!(hex(&[0, 0xab, 0x0c]), "00ab0c");
    }
}
