//! `takt ps`: the processes of a domain, with the number of their topics, writers and readers.

use crate::domain::{Domain, seconds};
use crate::network;
use crate::output::outln;
use crate::paint::Paint;
use crate::progress::during;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;
use takt::{ParticipantData, PublicationData, SubscriptionData};
use takt_bench::report::to_json;
use takt_bench::{Error, Result};

/// Properties in which vendors announce the program of a participant: CycloneDDS, Connext.
pub const PROGRAM: [&str; 2] = ["__ProcessName", "dds.sys_info.executable_filepath"];

/// `takt ps`
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  takt ps
  takt ps --domain 7 --wait 5 --json

A row is one participant. Host, process and program are - if its vendor does not announce them.")]
pub struct Ps {
    #[command(flatten)]
    domain: Domain,
    /// Time to wait for announcements, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    wait: Duration,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Participant as a row of the table.
#[derive(Debug, PartialEq, Serialize)]
struct Row {
    host: Option<String>,
    pid: Option<String>,
    program: Option<String>,
    name: String,
    vendor: String,
    topics: usize,
    writers: usize,
    readers: usize,
    guid: String,
}

#[derive(Serialize)]
struct Listing {
    domain: u32,
    participants: Vec<Row>,
}

impl Ps {
    /// Collects announcements and prints a row for each participant.
    ///
    /// # Errors
    /// The domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let participant = self.domain.join("takt ps")?;
        during("listening for announcements", || network::spin(&[&participant], self.wait))?;
        let (writers, readers) = (participant.discovered_publications()?, participant.discovered_subscriptions()?);
        let mut rows: Vec<Row> =
            participant.discovered_participants()?.iter().map(|data| Row::new(data, &writers, &readers)).collect();
        rows.sort_by(|a, b| (&a.host, &a.pid, &a.name, &a.guid).cmp(&(&b.host, &b.pid, &b.name, &b.guid)));
        let domain = participant.domain_id();
        participant.close().map_err(Error::Dds)?;
        if self.json {
            return outln!("{}", to_json(&Listing { domain, participants: rows })?);
        }
        let paint = Paint::of_output();
        let paint = |(at, line): (usize, &String)| if at == 0 { paint.heading(line) } else { line.clone() };
        table(&rows).iter().enumerate().map(paint).try_for_each(|line| outln!("{line}"))
    }
}

impl Row {
    fn new(data: &ParticipantData, writers: &[PublicationData], readers: &[SubscriptionData]) -> Self {
        let own_writers: Vec<&str> = writers
            .iter()
            .filter(|writer| writer.guid.prefix == data.guid.prefix)
            .map(|writer| writer.topic_name.as_str())
            .collect();
        let own_readers: Vec<&str> = readers
            .iter()
            .filter(|reader| reader.guid.prefix == data.guid.prefix)
            .map(|reader| reader.topic_name.as_str())
            .collect();
        let topics: BTreeSet<&str> = own_writers.iter().chain(&own_readers).copied().collect();
        Self {
            host: data.host().map(printable),
            pid: data.process().map(printable),
            program: PROGRAM.iter().find_map(|name| data.properties.get(name)).map(printable),
            name: printable(&data.entity_name.0),
            vendor: data.vendor_id.to_string(),
            topics: topics.len(),
            writers: own_writers.len(),
            readers: own_readers.len(),
            guid: data.guid.to_string(),
        }
    }
}

/// Removes control characters, which a remote participant may announce.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Formats the rows as lines with aligned columns, the header first.
fn table(rows: &[Row]) -> Vec<String> {
    let header = ["HOST", "PID", "PROGRAM", "NAME", "VENDOR", "TOPICS", "WRITERS", "READERS", "GUID"];
    let mut cells: Vec<[String; 9]> = vec![header.map(str::to_owned)];
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    cells.extend(rows.iter().map(|row| {
        [
            text(&row.host),
            text(&row.pid),
            text(&row.program),
            if row.name.is_empty() { "-".to_owned() } else { row.name.clone() },
            row.vendor.clone(),
            row.topics.to_string(),
            row.writers.to_string(),
            row.readers.to_string(),
            row.guid.clone(),
        ]
    }));
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |row: &[String; 9]| {
        let padded: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    cells.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, host: Option<&str>) -> Row {
        Row {
            host: host.map(str::to_owned),
            pid: None,
            program: None,
            name: name.to_owned(),
            vendor: "Takt".to_owned(),
            topics: 1,
            writers: 2,
            readers: 3,
            guid: "g".to_owned(),
        }
    }

    #[test]
    fn columns_are_aligned_and_absent_values_are_dashes() {
        let lines = table(&[row("talker", Some("robot-1")), row("", None)]);
        assert_eq!(lines[0], "HOST     PID  PROGRAM  NAME    VENDOR  TOPICS  WRITERS  READERS  GUID");
        assert_eq!(lines[1], "robot-1  -    -        talker  Takt    1       2        3        g");
        assert_eq!(lines[2], "-        -    -        -       Takt    1       2        3        g");
    }

    #[test]
    fn topic_with_writer_and_reader_of_one_participant_counts_once() {
        let data = ParticipantData::default();
        let writer = PublicationData { topic_name: "A".to_owned(), ..PublicationData::default() };
        let readers =
            ["A", "B"].map(|name| SubscriptionData { topic_name: name.to_owned(), ..SubscriptionData::default() });
        let row = Row::new(&data, &[writer], &readers);
        assert_eq!((row.topics, row.writers, row.readers), (2, 1, 2));
    }
}
