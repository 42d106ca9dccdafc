//! The lines that a peer program prints, one JSON object each.

use serde::Deserialize;

/// One line. `id` is the name that the command which created the endpoint gave to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "ev", rename_all = "snake_case")]
pub enum Event {
    /// The participant exists; commands are accepted.
    Ready {
        /// Product.
        peer: String,
        /// Its version.
        version: String,
    },
    /// A command was carried out.
    Done {
        /// Endpoint, empty for `quit`.
        id: String,
        /// First word of the command.
        command: String,
    },
    /// A command failed.
    Error {
        /// Endpoint.
        id: String,
        /// First word of the command.
        command: String,
        /// The product's reason.
        what: String,
    },
    /// Takt's transport, so far.
    Carried {
        /// Datagrams received past the kernel's network stack.
        bypassed_in: u64,
        /// Datagrams sent past it.
        bypassed_out: u64,
    },
    /// Takt: why participants may not take part.
    Refused {
        /// One for each participant.
        reasons: Vec<String>,
    },
    /// PUBLICATION_MATCHED or SUBSCRIPTION_MATCHED.
    Matched {
        /// Endpoint.
        id: String,
        /// Matched now.
        current: i64,
        /// Matched ever.
        total: i64,
    },
    /// OFFERED_INCOMPATIBLE_QOS or REQUESTED_INCOMPATIBLE_QOS.
    Incompatible {
        /// Endpoint.
        id: String,
        /// Last policy, numbered as the product numbers it.
        policy: i64,
        /// How often.
        total: i64,
        /// Offered, requested and why they do not fit, in words; only Takt says that.
        #[serde(default)]
        reasons: Vec<String>,
    },
    /// Takt: the outcome of `lookup_instance` and `key_value`.
    Instance {
        /// Endpoint.
        id: String,
        /// Whether the reader knows the instance.
        known: bool,
    },
    /// OFFERED_DEADLINE_MISSED or REQUESTED_DEADLINE_MISSED.
    DeadlineMissed {
        /// Endpoint.
        id: String,
        /// How many so far.
        total: i64,
    },
    /// SAMPLE_LOST.
    Lost {
        /// Endpoint.
        id: String,
        /// How many so far.
        total: i64,
    },
    /// SAMPLE_REJECTED.
    Rejected {
        /// Endpoint.
        id: String,
        /// How many so far.
        total: i64,
    },
    /// A sample was taken.
    Sample(Sample),
}

/// What a reader took. Times are CLOCK_REALTIME, which all processes of a machine share.
#[derive(Clone, Debug, Deserialize)]
pub struct Sample {
    /// Reader.
    pub id: String,
    /// False: a change of the instance state alone; the members up to `stamp_ns` are zero then.
    pub valid: bool,
    /// State of the instance when the sample was taken.
    pub state: InstanceState,
    /// Key, 0 without one; `None` if the peer does not know it (it was told of an instance by hash only).
    pub key: Option<u32>,
    /// Second part of the key, for types that have one.
    pub name: Option<String>,
    /// Sequence number within the writer's topic, as the application counts.
    #[serde(default)]
    pub seq: u64,
    /// Payload length in bytes.
    #[serde(default)]
    pub len: usize,
    /// FNV-1a of the payload, hexadecimal.
    #[serde(default)]
    pub hash: String,
    /// When the application wrote it (a member of the sample).
    #[serde(default)]
    pub stamp_ns: i64,
    /// The DDS source timestamp.
    pub source_ns: i64,
    /// When it was taken.
    pub received_ns: i64,
}

/// `instance_state` of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceState {
    /// ALIVE.
    Alive,
    /// NOT_ALIVE_DISPOSED.
    Disposed,
    /// NOT_ALIVE_NO_WRITERS.
    NoWriters,
}

impl Event {
    /// The endpoint that an event belongs to; empty for the program as a whole.
    pub fn id(&self) -> &str {
        match self {
            Self::Ready { .. } | Self::Carried { .. } | Self::Refused { .. } => "",
            Self::Done { id, .. }
            | Self::Error { id, .. }
            | Self::Matched { id, .. }
            | Self::Incompatible { id, .. }
            | Self::Instance { id, .. }
            | Self::DeadlineMissed { id, .. }
            | Self::Lost { id, .. }
            | Self::Rejected { id, .. } => id,
            Self::Sample(sample) => &sample.id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_sample_line() {
        let line = r#"{"ev":"sample","id":"r1","valid":true,"state":"alive","key":3,"name":"instance-0003","seq":7,"len":16,
            "hash":"00000000000000ff","stamp_ns":1,"source_ns":2,"received_ns":3}"#;
        let Event::Sample(sample) = serde_json::from_str(line).expect("valid line") else { panic!("not a sample") };
        assert_eq!((sample.key, sample.seq, sample.len), (Some(3), 7, 16));
        assert_eq!(sample.state, InstanceState::Alive);
    }

    #[test]
    fn reads_a_dispose_of_an_unknown_instance() {
        let line = r#"{"ev":"sample","id":"r1","valid":false,"state":"disposed","key":null,"name":null,"source_ns":0,"received_ns":3}"#;
        let event: Event = serde_json::from_str(line).expect("valid line");
        assert!(matches!(event, Event::Sample(Sample { valid: false, key: None, .. })));
    }
}
