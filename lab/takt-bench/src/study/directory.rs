//! Results directory of a campaign.
//!
//! | file | content |
//! |---|---|
//! | `campaign.json` | the campaign as it was measured, with systems and length |
//! | `environment.json` | the machine, before the first job |
//! | `measurements.jsonl` | one measurement per line, appended when its job is done |
//! | `raw/` | all latencies of each measurement |
//!
//! A line that a crash cut off is ignored, and its job is measured again. Archived results may have
//! `measurements.jsonl.gz` instead.

use super::cell::{Cell, Measurement};
use super::file::{Campaign, Length};
use super::support::Roles;
use super::system::System;
use crate::error::{Error, Result};
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

const CAMPAIGN: &str = "campaign.json";
const ENVIRONMENT: &str = "environment.json";
const MEASUREMENTS: &str = "measurements.jsonl";
const COMPRESSED: &str = "measurements.jsonl.gz";
const RAW: &str = "raw";

/// Description of a measured campaign.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Header {
    /// Campaign file, with the changes of its length.
    pub campaign: Campaign,
    /// Length of the campaign.
    pub length: Length,
    /// Systems that were measured.
    pub systems: Vec<System>,
    /// Systems that were not measured, with reasons.
    pub missing: Vec<Missing>,
    /// Roles that the agents report.
    #[serde(default, skip_serializing_if = "Roles::is_empty")]
    pub roles: Roles,
    /// Version, commit and profile of `takt`.
    pub build: String,
    /// Words of the command line.
    pub command: Vec<String>,
}

/// System that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Missing {
    /// Name of the system.
    pub system: String,
    /// Reason and remedy.
    pub why: String,
}

/// Results directory that is written.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    measurements: File,
}

/// Contents of a results directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Description of the campaign.
    pub header: Header,
    /// Environment of the machine.
    pub environment: serde_json::Value,
    /// Measurements in the order in which they were made.
    pub measurements: Vec<Measurement>,
}

impl Directory {
    /// Creates a directory for a campaign. It must not contain results.
    ///
    /// # Errors
    /// The directory cannot be written, or contains results.
    pub fn create(path: &Path, header: &Header, environment: &serde_json::Value) -> Result<Self> {
        if path.join(CAMPAIGN).exists() {
            let text = format!("{} has results; give another --out, or --resume {0}", path.display());
            return Err(Error::Usage(text));
        }
        fs::create_dir_all(path.join(RAW)).map_err(|e| failure(path, e))?;
        write_json(&path.join(ENVIRONMENT), environment)?;
        write_json(&path.join(CAMPAIGN), header)?;
        Self::open(path)
    }

    /// Opens a directory to append.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.join(MEASUREMENTS);
        if path.join(COMPRESSED).exists() {
            return Err(Error::Usage(format!("{}: decompress {COMPRESSED} before resuming", path.display())));
        }
        truncate_partial_line(&name)?;
        let measurements = File::options().create(true).append(true).open(&name).map_err(|e| failure(&name, e))?;
        Ok(Self { path: path.into(), measurements })
    }

    /// Appends measurements, and flushes them to disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, measurements: &[Measurement]) -> Result<()> {
        let name = self.path.join(MEASUREMENTS);
        let mut text = Vec::new();
        for measurement in measurements {
            serde_json::to_writer(&mut text, measurement).map_err(|e| failure(&name, e.into()))?;
            text.push(b'\n');
        }
        self.measurements.write_all(&text).map_err(|e| failure(&name, e))?;
        self.measurements.sync_data().map_err(|e| failure(&name, e))
    }

    /// Writes all latencies of a cell. Returns the name of the file relative to the directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_raw(&self, cell: &Cell, round: u32, values_ns: &[u64]) -> Result<String> {
        let name = format!("{RAW}/{}-round{round}.u64", cell.to_string().replace(['/', ',', '='], "_"));
        let path = self.path.join(&name);
        let bytes: Vec<u8> = values_ns.iter().flat_map(|value| value.to_le_bytes()).collect();
        fs::write(&path, bytes).map_err(|e| failure(&path, e))?;
        Ok(name)
    }
}

impl Results {
    /// Reads a directory.
    ///
    /// # Errors
    /// The directory has no results, or a file is damaged; the error names file and line.
    pub fn read(path: &Path) -> Result<Self> {
        let header = read_json(&path.join(CAMPAIGN))?;
        let environment = read_json(&path.join(ENVIRONMENT))?;
        let (plain, compressed) = (path.join(MEASUREMENTS), path.join(COMPRESSED));
        let measurements = if let Some(file) = opened(&plain)? {
            read_lines(BufReader::new(file), &plain)?
        } else if let Some(file) = opened(&compressed)? {
            read_lines(BufReader::new(GzDecoder::new(file)), &compressed)?
        } else {
            Vec::new()
        };
        Ok(Self { header, environment, measurements })
    }

    /// Returns the cells that were measured, or failed, by round.
    #[must_use]
    pub fn done(&self) -> BTreeSet<(Cell, u32)> {
        self.measurements.iter().map(|measurement| (measurement.cell.clone(), measurement.round)).collect()
    }
}

/// Opens the file, if it exists.
fn opened(name: &Path) -> Result<Option<File>> {
    match File::open(name) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failure(name, e)),
    }
}

fn read_lines(from: impl BufRead, name: &Path) -> Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    let mut lines = from.split(b'\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let line = line.map_err(|e| failure(name, e))?;
        match serde_json::from_slice(&line) {
            Ok(measurement) => measurements.push(measurement),
            // A crash may have cut off the last line.
            Err(_) if lines.peek().is_none() => {}
            Err(why) => return Err(Error::Usage(format!("{}, line {}: {why}", name.display(), index + 1))),
        }
    }
    Ok(measurements)
}

fn truncate_partial_line(name: &Path) -> Result<()> {
    let bytes = match fs::read(name) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|e| failure(name, e))?,
    };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole == bytes.len() {
        return Ok(());
    }
    let file = File::options().write(true).open(name).map_err(|e| failure(name, e))?;
    file.set_len(whole as u64).map_err(|e| failure(name, e))
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| failure(path, e.into()))?;
    text.push(b'\n');
    fs::write(path, text).map_err(|e| failure(path, e))
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T> {
    let text = fs::read(path).map_err(|e| failure(path, e))?;
    serde_json::from_slice(&text).map_err(|e| Error::Usage(format!("{}: {e}", path.display())))
}

fn failure(path: &Path, error: std::io::Error) -> Error {
    Error::os(path.display().to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::super::cell::{Disturbance, Outcome};
    use super::*;

    fn header() -> Header {
        let text =
            "name = 'x'\ntitle = 'x'\nrounds = 1\n[[workload]]\nname = 'w'\nkind = 'round-trip'\nsystems = ['a']";
        Header {
            campaign: Campaign::parse(text, Length::Normal).unwrap(),
            length: Length::Normal,
            systems: Vec::new(),
            missing: Vec::new(),
            roles: Roles::new(),
            build: "0".into(),
            command: Vec::new(),
        }
    }

    fn measurement(round: u32) -> Measurement {
        Measurement {
            cell: Cell { workload: "w".into(), system: "a".into(), values: Default::default() },
            round,
            turn: 0,
            at: 1,
            disturbance: Disturbance::default(),
            commands: vec!["a ping".into()],
            outcome: Outcome::Failed { why: "it ended".into() },
        }
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let scratch = takt_testkit::directory::Directory::new("read");
        let environment = serde_json::json!({"kernel": "6"});
        let mut directory = Directory::create(scratch.path(), &header(), &environment).unwrap();
        directory.append(&[measurement(0), measurement(1)]).unwrap();
        let results = Results::read(scratch.path()).unwrap();
        assert_eq!((results.header, results.environment), (header(), environment));
        assert_eq!(results.measurements, [measurement(0), measurement(1)]);
        let again = Directory::create(scratch.path(), &header(), &serde_json::Value::Null).unwrap_err();
        assert!(again.to_string().contains("has results"));
    }

    #[test]
    fn compressed_results_are_read_and_cannot_be_appended_to() {
        let scratch = takt_testkit::directory::Directory::new("compressed");
        let mut directory = Directory::create(scratch.path(), &header(), &serde_json::Value::Null).unwrap();
        directory.append(&[measurement(0), measurement(1)]).unwrap();
        let name = scratch.path().join(MEASUREMENTS);
        let compressed = File::create(scratch.path().join(COMPRESSED)).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(compressed, flate2::Compression::best());
        encoder.write_all(&fs::read(&name).unwrap()).unwrap();
        encoder.finish().unwrap();
        fs::remove_file(&name).unwrap();
        assert_eq!(Results::read(scratch.path()).unwrap().measurements, [measurement(0), measurement(1)]);
        assert!(Directory::open(scratch.path()).err().unwrap().to_string().contains("decompress"));
        fs::write(scratch.path().join(COMPRESSED), b"no gzip").unwrap();
        assert!(Results::read(scratch.path()).unwrap_err().to_string().contains(COMPRESSED));
    }

    #[test]
    fn partial_line_is_ignored_and_replaced() {
        let scratch = takt_testkit::directory::Directory::new("half");
        let mut directory = Directory::create(scratch.path(), &header(), &serde_json::Value::Null).unwrap();
        directory.append(&[measurement(0), measurement(1)]).unwrap();
        drop(directory);
        let name = scratch.path().join(MEASUREMENTS);
        let bytes = fs::read(&name).unwrap();
        fs::write(&name, &bytes[..bytes.len() - 9]).unwrap();
        assert_eq!(Results::read(scratch.path()).unwrap().measurements, [measurement(0)]);
        Directory::open(scratch.path()).unwrap().append(&[measurement(2)]).unwrap();
        assert_eq!(Results::read(scratch.path()).unwrap().measurements, [measurement(0), measurement(2)]);
    }

    #[test]
    fn damage_in_the_middle_is_an_error_with_its_line() {
        let scratch = takt_testkit::directory::Directory::new("damage");
        let mut directory = Directory::create(scratch.path(), &header(), &serde_json::Value::Null).unwrap();
        directory.append(&[measurement(0)]).unwrap();
        let name = scratch.path().join(MEASUREMENTS);
        let text = fs::read_to_string(&name).unwrap();
        fs::write(&name, format!("{{\n{text}")).unwrap();
        assert!(Results::read(scratch.path()).unwrap_err().to_string().contains("line 1"));
    }
}
