//! The processes of the pair. Each writes one JSON object a line to standard output, and reads lines from standard input.
//!
//! | role | what it does |
//! |---|---|
//! | `overload-subscribe` | notes when each sample arrives; writes all of it when it reads a line |
//! | `overload-publish` | writes samples each period from the first line on that it reads |

use super::category::Category;
use super::site::TOPIC;
use crate::agent::Lines;
use crate::error::{Error, Result};
use crate::isolation::side::line_heard;
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use crate::signal::stopped;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::Write;
use std::time::Duration;
use takt::qos::{
    DataReaderQos, DataWriterQos, DestinationOrder, History, PublisherQos, Reliability, SubscriberQos, TopicQos,
};
use takt::{DomainParticipant, Runtime};

/// How long a process looks for the other one.
const MATCH_LIMIT_NS: u64 = 25_000_000_000;
/// How long a reliable writer waits for its last acknowledgements, and a write for room.
const ACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(30);
/// Between two looks at standard input.
const STEP: Duration = Duration::from_millis(20);

/// What a process of the pair is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SidePlan {
    /// DDS domain.
    pub domain: u32,
    /// RELIABILITY and HISTORY.
    pub category: Category,
    /// Octets of data in a sample.
    pub size: usize,
    /// Time from one sample to the next, ns.
    pub period_ns: u64,
    /// Samples.
    pub count: u64,
}

/// Plays a role; `None` if it is none of this experiment.
pub fn run(role: &str, plan: &str, out: &mut dyn Write) -> Option<Result<()>> {
    let play = match role {
        "overload-publish" => publish,
        "overload-subscribe" => subscribe,
        _ => return None,
    };
    let mut lines = Lines::new(out);
    let parsed = serde_json::from_str(plan).map_err(|why| Error::Usage(format!("the plan of {role}: {why}")));
    let result = parsed.and_then(|plan: SidePlan| play(&plan, &mut lines));
    Some(result.or_else(|error| {
        lines.say(&json!({ "ev": "error", "what": error.to_string() }))?;
        Err(error)
    }))
}

fn participant(plan: &SidePlan) -> Result<DomainParticipant> {
    let builder = DomainParticipant::builder(plan.domain).name("takt-overload").interfaces(["eth0"]);
    Ok(builder.shared_memory(false).runtime(Runtime::Inline).build()?)
}

fn reliability(category: Category) -> Reliability {
    let of_kind = if category.is_reliable() { Reliability::RELIABLE } else { Reliability::BEST_EFFORT };
    Reliability { max_blocking_time: ACKNOWLEDGED_LIMIT.into(), ..of_kind }
}

fn subscribe(plan: &SidePlan, lines: &mut Lines<'_>) -> Result<()> {
    let participant = participant(plan)?;
    let topic = participant.create_topic::<Blob>(TOPIC, TopicQos::default())?;
    let qos = DataReaderQos {
        reliability: reliability(plan.category),
        history: History::KeepAll,
        destination_order: DestinationOrder::BySourceTimestamp,
        ..DataReaderQos::default()
    };
    let reader = participant.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)?;
    lines.ready()?;
    let (mut arrivals, mut sample, mut is_matched) = (Vec::new(), Blob::default(), false);
    while !line_heard()? {
        if stopped() {
            return Err(Error::Stopped);
        }
        if !is_matched && reader.subscription_matched_status()?.current_count > 0 {
            lines.say(&json!({ "ev": "matched" }))?;
            is_matched = true;
        }
        participant.spin_once(STEP)?;
        while let Some(info) = reader.take_next_sample(&mut sample)? {
            let number = sample.marks().filter(|_| info.valid_data).map(|(number, _)| number);
            arrivals.extend(number.map(|number| (number, monotonic_ns())));
        }
    }
    lines.say(&json!({ "ev": "result", "arrivals": arrivals }))
}

fn publish(plan: &SidePlan, lines: &mut Lines<'_>) -> Result<()> {
    let participant = participant(plan)?;
    let topic = participant.create_topic::<Blob>(TOPIC, TopicQos::default())?;
    let qos = DataWriterQos {
        reliability: reliability(plan.category),
        history: plan.category.depth().map_or(History::KeepAll, History::KeepLast),
        destination_order: DestinationOrder::BySourceTimestamp,
        ..DataWriterQos::default()
    };
    let writer = participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)?;
    let deadline = monotonic_ns() + MATCH_LIMIT_NS;
    while writer.publication_matched_status()?.current_count == 0 {
        if stopped() {
            return Err(Error::Stopped);
        }
        if monotonic_ns() > deadline {
            return Err(Error::NoAnswer { what: "the subscriber is not found".to_owned() });
        }
        participant.spin_once(STEP)?;
    }
    lines.say(&json!({ "ev": "matched" }))?;
    while !line_heard()? {
        participant.spin_once(STEP)?;
    }
    let (mut sample, mut late_ns) = (Blob::filled(plan.size), 0);
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
        let now_ns = monotonic_ns();
        late_ns = late_ns.max(now_ns - due_ns);
        sample.mark(number, now_ns);
        writer.write(&sample)?;
    }
    if plan.category.is_reliable() {
        writer.wait_for_acknowledgments(ACKNOWLEDGED_LIMIT)?;
    } else {
        // The last samples may still wait in the queue of the link.
        let end_ns = monotonic_ns() + 1_000_000_000;
        while monotonic_ns() < end_ns {
            participant.spin_once(STEP)?;
        }
    }
    lines.say(&json!({ "ev": "result", "sent": plan.count, "late_ns": late_ns }))
}
