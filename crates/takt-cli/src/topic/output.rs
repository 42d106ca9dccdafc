//! Output of samples, one line each.

use super::json::Ordered;
use crate::output::outln;
use serde::Serialize;
use std::fmt::Write as _;
use takt::dynamic::{DynamicSample, DynamicTypeSupport};
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

/// Printer of the samples of one topic.
pub struct Printer {
    pub topic: String,
    pub type_: DynamicTypeSupport,
    pub json: bool,
}

impl Printer {
    /// Prints one sample.
    ///
    /// # Errors
    /// Standard output is closed, or cannot be written to.
    pub fn print(&self, sample: &DynamicSample) -> Result<()> {
        let line = self.line(sample);
        let text = if self.json {
            serde_json::to_string(&line).map_err(|e| Error::Os { op: "JSON".into(), source: e.into() })?
        } else {
            plain(&line, sample.info.source_timestamp)
        };
        outln!("{text}")
    }

    fn line<'a>(&'a self, sample: &DynamicSample) -> Line<'a> {
        let info = &sample.info;
        let (value, error) = match (&sample.value, self.type_.dynamic_type()) {
            (Some(Ok(data)), Some(type_)) => (Some(Ordered(type_.to_json(data))), None),
            (Some(Err(error)), _) => (None, Some(error.to_string())),
            _ => (None, None),
        };
        let (data, key) = if info.valid_data { (value, None) } else { (None, value) };
        let undecoded = data.is_none() && key.is_none() && !sample.payload.is_empty();
        Line {
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
        }
    }
}

/// Formats the line as text, without details that are rarely needed.
fn plain(line: &Line<'_>, time: Timestamp) -> String {
    let mut text = if time.is_invalid() { "-".to_owned() } else { time_of_day(time.to_nanos()) };
    if !line.valid {
        text.push_str(if line.state == "disposed" { " disposed" } else { " without writers" });
    }
    for part in [&line.data, &line.key].into_iter().flatten() {
        write!(text, " {part}").expect("a string takes everything");
    }
    if let Some(payload) = &line.payload {
        write!(text, " {payload}").expect("a string takes everything");
    }
    if let Some(error) = &line.error {
        write!(text, " (not decoded: {error})").expect("a string takes everything");
    }
    text
}

/// Formats the time of day in UTC, as the `Z` at its end indicates.
fn time_of_day(nanos: i64) -> String {
    let micros = nanos.div_euclid(1_000).rem_euclid(86_400_000_000);
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    format!("{:02}:{:02}:{:02}.{micros:06}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_day_omits_the_date() {
        assert_eq!(time_of_day(0), "00:00:00.000000Z");
        assert_eq!(time_of_day(86_400_000_000_000 * 20_000 + 3_661_000_002_999), "01:01:01.000002Z");
        assert_eq!(time_of_day(-1_000), "23:59:59.999999Z");
    }

    #[test]
    fn octets_have_two_digits_each() {
        assert_eq!(hex(&[0, 0xab, 0x0c]), "00ab0c");
    }
}
