//! Processes of a Takt pair in the SDN overload experiment. Each writes one JSON object per line to
//! standard output, in the form of the programs of `lab/interop/peers`, and reads lines from
//! standard input.
//!
//! | role | task |
//! |---|---|
//! | `overload-subscribe` | writes a line `sample` for each sample when it arrives |
//! | `overload-publish` | writes a sample per period from its first input line on, then `done` |
//!
//! Both run until a signal stops them.

use crate::agent::Lines;
use crate::error::{Error, Result};
use crate::isolation::side::read_line;
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use crate::signal::stopped;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::Write;
use std::time::Duration;
use takt::qos::{
    Contract, DataReaderQos, DataWriterQos, DestinationOrder, History, PublisherQos, Reliability, SubscriberQos,
    TopicQos,
};
use takt::{DataWriter, DomainParticipant, Runtime};

use super::category::Category;

/// Maximum time for a process to match the other one.
pub(super) const MATCH_LIMIT: Duration = Duration::from_secs(25);
/// Maximum blocking time of a reliable write.
pub(super) const BLOCKING_LIMIT: Duration = Duration::from_secs(30);
/// Octets of the serialized sample in addition to its data: encapsulation header and length.
const SERIALIZED_MORE: u32 = 8;
/// Interval between two checks of standard input.
const STEP: Duration = Duration::from_millis(20);

/// Settings of the processes of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SidePlan {
    /// DDS domain ID.
    pub domain: u32,
    /// Topic name.
    pub topic: String,
    /// RELIABILITY and HISTORY.
    pub category: Category,
    /// Octets of data in a sample.
    pub size: usize,
    /// Interval between two samples, ns.
    pub period_ns: u64,
    /// Number of samples.
    pub count: u64,
    /// Number of readers that the writer waits for.
    pub readers: usize,
    /// E2E_LATENCY of the contracts that the endpoints announce, ns; `None`: no contracts.
    pub limit_ns: Option<u64>,
}

/// Runs a role; `None` if it is none of this experiment.
pub fn run(role: &str, plan: &str, out: &mut dyn Write) -> Option<Result<()>> {
    let play = match role {
        "overload-publish" => publish,
        "overload-subscribe" => subscribe,
        _ => return None,
    };
    let mut lines = Lines::new(out);
    let parsed = serde_json::from_str(plan).map_err(|why| Error::Usage(format!("invalid plan of {role}: {why}")));
    let result = parsed.and_then(|plan: SidePlan| play(&plan, &mut lines));
    Some(result.or_else(|error| match error {
        // A stop by signal is the regular end.
        Error::Stopped => Ok(()),
        error => {
            lines.write(&json!({ "ev": "error", "what": error.to_string() }))?;
            Err(error)
        }
    }))
}

fn participant(plan: &SidePlan) -> Result<DomainParticipant> {
    let builder = DomainParticipant::builder(plan.domain).name("takt-overload").interfaces(["eth0"]);
    Ok(builder.shared_memory(false).runtime(Runtime::Inline).build()?)
}

fn reliability(category: Category) -> Reliability {
    let of_kind = if category.is_reliable() { Reliability::RELIABLE } else { Reliability::BEST_EFFORT };
    Reliability { max_blocking_time: BLOCKING_LIMIT.into(), ..of_kind }
}

fn subscribe(plan: &SidePlan, lines: &mut Lines<'_>) -> Result<()> {
    let participant = participant(plan)?;
    let topic = participant.create_topic::<Blob>(&plan.topic, TopicQos::default())?;
    let mut qos = DataReaderQos {
        reliability: reliability(plan.category),
        history: History::KeepAll,
        destination_order: DestinationOrder::BySourceTimestamp,
        ..DataReaderQos::default()
    };
    if let Some(limit_ns) = plan.limit_ns {
        let e2e_latency = Some(Duration::from_nanos(limit_ns).into());
        Contract { e2e_latency, ..Contract::default() }.put_into_reader(&mut qos);
    }
    let reader = participant.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)?;
    lines.ready()?;
    let (mut sample, mut writers) = (Blob::default(), 0);
    loop {
        if stopped() {
            return Err(Error::Stopped);
        }
        let found = reader.subscription_matched_status()?.current_count;
        if found != writers {
            writers = found;
            lines.write(&json!({ "ev": "matched", "current": found }))?;
        }
        participant.spin_once(STEP)?;
        while let Some(info) = reader.take_next_sample(&mut sample)? {
            let received_ns = monotonic_ns();
            if let Some((seq, stamp_ns)) = sample.marks().filter(|_| info.valid_data) {
                let line = json!({ "ev": "sample", "seq": seq, "stamp_ns": stamp_ns, "received_ns": received_ns });
                lines.write(&line)?;
            }
        }
    }
}

fn publish(plan: &SidePlan, lines: &mut Lines<'_>) -> Result<()> {
    let participant = participant(plan)?;
    let topic = participant.create_topic::<Blob>(&plan.topic, TopicQos::default())?;
    let mut qos = DataWriterQos {
        reliability: reliability(plan.category),
        history: plan.category.depth().map_or(History::KeepAll, History::KeepLast),
        destination_order: DestinationOrder::BySourceTimestamp,
        ..DataWriterQos::default()
    };
    if plan.limit_ns.is_some() {
        let len = u32::try_from(plan.size).unwrap_or(u32::MAX).saturating_add(SERIALIZED_MORE);
        let minimum_separation = Some(Duration::from_nanos(plan.period_ns).into());
        let contract = Contract { minimum_separation, max_sample_bytes: Some(len), ..Contract::default() };
        contract.put_into_writer(&mut qos);
    }
    let writer = participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)?;
    lines.ready()?;
    let mut readers = 0;
    let mut is_begun = false;
    while !is_begun {
        let found = writer.publication_matched_status()?.current_count;
        if found != readers {
            readers = found;
            lines.write(&json!({ "ev": "matched", "current": found }))?;
        }
        participant.spin_once(STEP)?;
        is_begun = read_line()?;
    }
    write_all(plan, &participant, &writer)?;
    lines.write(&json!({ "ev": "done", "command": "write" }))?;
    while !stopped() {
        participant.spin_once(STEP)?;
    }
    Err(Error::Stopped)
}

/// Writes all samples, each at its due time.
fn write_all(plan: &SidePlan, participant: &DomainParticipant, writer: &DataWriter<Blob>) -> Result<()> {
    let mut sample = Blob::filled(plan.size);
    let begin_ns = monotonic_ns() + plan.period_ns;
    for number in 0..plan.count {
        let due_ns = begin_ns + number * plan.period_ns;
        loop {
            let left = due_ns.saturating_sub(monotonic_ns());
            participant.spin_once(Duration::from_nanos(left))?;
            if left == 0 {
                break;
            }
        }
        if stopped() {
            return Err(Error::Stopped);
        }
        sample.mark(number, monotonic_ns());
        writer.write(&sample)?;
    }
    Ok(())
}
