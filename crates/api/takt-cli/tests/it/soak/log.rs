//! Log of one reader: for each match with a writer the numbers from 1, each once and in order.

use serde_json::Value;
use std::collections::BTreeMap;

/// Samples received from one writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Number of the last sample.
    pub last: u64,
    /// Whether the reader has since reported that the instance has no writer.
    pub has_no_writer: bool,
}

/// Output of one reader, by writer.
#[derive(Debug, Default)]
pub struct Log(BTreeMap<String, Received>);

impl Log {
    /// Parses the next line.
    ///
    /// # Errors
    /// The line is no sample, or its number does not follow the previous one.
    pub fn take(&mut self, line: &str) -> Result<(), String> {
        let sample: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        let is_valid = sample["valid"] == true;
        let value = if is_valid { &sample["data"] } else { &sample["key"] };
        let name = value["color"].as_str().ok_or_else(|| format!("it names no writer: {line}"))?;
        let seen = self.0.entry(name.to_owned()).or_default();
        if is_valid {
            let number = value["x"].as_u64().ok_or_else(|| format!("it has no number: {line}"))?;
            // A writer whose lease expired matches as a new writer, so that its samples start with
            // the first again.
            let is_new_match = seen.has_no_writer && number == 1;
            if number != seen.last + 1 && !is_new_match {
                return Err(format!("{number} of {name} comes after {}", seen.last));
            }
            *seen = Received { last: number, has_no_writer: false };
        } else if sample["state"] == "no_writers" {
            seen.has_no_writer = true;
        } else {
            return Err(format!("neither data nor the end of a writer: {line}"));
        }
        Ok(())
    }

    /// Returns the samples of a writer.
    pub fn of(&self, writer: &str) -> Received {
        self.0.get(writer).copied().unwrap_or_default()
    }

    /// Returns the writers of which there are samples.
    pub fn writers(&self) -> impl Iterator<Item = (&str, Received)> {
        self.0.iter().map(|(name, seen)| (name.as_str(), *seen))
    }
}

fn line(name: &str, number: u64) -> String {
    format!(r#"{{"valid":true,"state":"alive","data":{{"color":"{name}","x":{number}}}}}"#)
}

#[test]
fn log_refuses_gaps_and_duplicates() {
    let mut log = Log::default();
    for number in 1..=3 {
        log.take(&line("a", number)).expect("it follows");
    }
    assert_eq!(log.take(&line("a", 3)), Err("3 of a comes after 3".to_owned()));
    assert_eq!(log.take(&line("a", 5)), Err("5 of a comes after 3".to_owned()));
    assert_eq!(log.take(&line("b", 2)), Err("2 of b comes after 0".to_owned()));
    log.take(r#"{"valid":false,"state":"no_writers","key":{"color":"a"}}"#).expect("an end");
    assert_eq!(log.of("a"), Received { last: 3, has_no_writer: true });
    assert_eq!(log.take(&line("a", 2)), Err("2 of a comes after 3".to_owned()));
    log.take(&line("a", 1)).expect("a new match");
    assert_eq!(log.of("a"), Received { last: 1, has_no_writer: false });
    assert!(log.take("takt").is_err());
}
