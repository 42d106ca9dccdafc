//! Receive loop of `takt echo` and `takt sub`.

use super::learning::spin_until;
use super::output::{Format, Printer};
use crate::output::note;
use clap::Args;
use std::time::{Duration, Instant};
use takt::dynamic::{DynamicDataReader, DynamicTypeSupport};
use takt::qos::{DataReaderQos, SubscriberQos};
use takt::{DomainParticipant, Refusal, Subscriber};
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};

use crate::domain::seconds;

/// Limits after which the command ends.
#[derive(Args, Clone, Copy, Debug)]
pub struct Limits {
    /// Exit after this number of samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Exit after this time without a sample, in seconds [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

/// Content filter of the samples.
#[derive(Args, Clone, Debug)]
pub struct Selection {
    /// Content filter in DDS SQL, such as "x > 5 AND color = 'RED'"
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
    /// Values of the filter parameters %0, %1, ...
    #[arg(long = "parameter", value_name = "VALUE", requires = "filter", allow_hyphen_values = true)]
    parameters: Vec<String>,
}

impl Selection {
    /// Reports whether there is a filter.
    pub fn is_given(&self) -> bool {
        self.filter.is_some()
    }

    fn create(
        &self,
        subscriber: &Subscriber,
        topic: &str,
        type_: &DynamicTypeSupport,
        qos: DataReaderQos,
    ) -> takt::Result<DynamicDataReader> {
        let Some(filter) = &self.filter else { return subscriber.create_dynamic_datareader(topic, type_, qos) };
        let parameters: Vec<&str> = self.parameters.iter().map(String::as_str).collect();
        subscriber.create_filtered_dynamic_datareader(topic, type_, qos, filter, &parameters)
    }
}

impl Limits {
    /// Returns the deadline if nothing arrives from now on.
    pub fn deadline(&self) -> Option<Instant> {
        self.timeout.map(|timeout| Instant::now() + timeout)
    }

    /// Returns the time limit in seconds, for messages.
    pub fn seconds(&self) -> f64 {
        self.timeout.map_or(0.0, |timeout| timeout.as_secs_f64())
    }
}

/// Prints the samples of a topic until a limit is reached or a signal arrives.
///
/// # Errors
/// [`Error::Stopped`] if a signal arrives before the first sample. [`Error::NoAnswer`] if no
/// sample, or fewer than requested, arrived in time.
pub fn receive(
    participant: &DomainParticipant,
    topic: &str,
    type_: DynamicTypeSupport,
    (qos, subscriber): (DataReaderQos, SubscriberQos),
    selection: &Selection,
    limits: &Limits,
    format: &Format,
) -> Result<()> {
    let subscriber = participant.create_subscriber(subscriber)?;
    let reader = selection.create(&subscriber, topic, &type_, qos)?;
    note!("takt: reading {topic}, {}, {}", type_.type_name(), policies(&reader));
    let printer = Printer { topic: topic.to_owned(), type_, format: format.clone(), names_topic: false };
    let mut printed = 0;
    let mut reported = 0;
    loop {
        let mut samples = Vec::new();
        let batch = limits.count.map_or(64, |count| usize::try_from(count - printed).unwrap_or(64).min(64));
        let result = spin_until(participant, limits.deadline(), || {
            report_refusals(&participant.diagnostics().refusals()?, &mut reported);
            samples = reader.take(batch)?;
            Ok(!samples.is_empty())
        });
        let complete = limits.count.is_none();
        match result {
            Ok(true) => {}
            Ok(false) if printed > 0 && complete => return Ok(()),
            Ok(false) => {
                return Err(Error::NoAnswer {
                    what: format!("{printed} samples of topic {topic}; none within {} s", limits.seconds()),
                });
            }
            Err(Error::Stopped) if printed > 0 && complete => return Ok(()),
            Err(error) => return Err(error),
        }
        for sample in &samples {
            printed += 1;
            printer.print(sample)?;
        }
        if limits.count.is_some_and(|count| printed >= count) {
            return Ok(());
        }
        if stopped() && complete {
            return Ok(());
        }
    }
}

fn policies(reader: &DynamicDataReader) -> String {
    format!("{}, {}", reader.qos().reliability.kind, reader.qos().durability)
}

/// Reports each refused match once, with its reason.
pub fn report_refusals(refusals: &[Refusal], reported: &mut usize) {
    for refusal in refusals.iter().skip(*reported) {
        note!("takt: {refusal}");
    }
    *reported = refusals.len().max(*reported);
}
