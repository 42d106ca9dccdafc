//! Events of a peer program: one JSON object per line of standard output.

use serde::Deserialize;

/// One line. `id` is the name that the creating command gave to the endpoint.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "ev", rename_all = "snake_case")]
pub enum Event {
    /// The participant exists; commands are accepted.
    Ready {
        /// Product name.
        peer: String,
        /// Product version.
        version: String,
    },
    /// A command was executed.
    Done {
        /// Endpoint, or empty for `quit`.
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
        /// Reason that the product reported.
        what: String,
    },
    /// Takt only: datagram counters of the transport.
    #[serde(rename = "carried")]
    BypassCounters {
        /// Datagrams received past the kernel's network stack.
        bypassed_in: u64,
        /// Datagrams sent past the kernel's network stack.
        bypassed_out: u64,
    },
    /// Takt only: reasons why participants were refused.
    #[serde(rename = "refused")]
    RefusedParticipants {
        /// One reason for each participant.
        reasons: Vec<String>,
    },
    /// PUBLICATION_MATCHED or SUBSCRIPTION_MATCHED.
    Matched {
        /// Endpoint.
        id: String,
        /// Number of currently matched endpoints.
        current: i64,
        /// Total number of matches.
        total: i64,
    },
    /// OFFERED_INCOMPATIBLE_QOS or REQUESTED_INCOMPATIBLE_QOS.
    Incompatible {
        /// Endpoint.
        id: String,
        /// Last incompatible policy, numbered as the product numbers it.
        policy: i64,
        /// Total count.
        total: i64,
        /// Descriptions of the offered and the requested value and of their incompatibility. Takt
        /// only.
        #[serde(default)]
        reasons: Vec<String>,
    },
    /// Takt only: result of `lookup_instance` and `key_value`.
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
        /// Total count.
        total: i64,
    },
    /// SAMPLE_LOST.
    Lost {
        /// Endpoint.
        id: String,
        /// Total count.
        total: i64,
    },
    /// SAMPLE_REJECTED.
    Rejected {
        /// Endpoint.
        id: String,
        /// Total count.
        total: i64,
    },
    /// A sample was taken.
    Sample(Sample),
}

/// A sample that a reader took. Times are CLOCK_REALTIME, which all processes of a machine share.
#[derive(Clone, Debug, Deserialize)]
pub struct Sample {
    /// Endpoint id of the reader.
    pub id: String,
    /// False if only the instance state changed. The members up to `stamp_ns` are then zero.
    pub valid: bool,
    /// State of the instance when the sample was taken.
    pub state: InstanceState,
    /// Key, 0 for an unkeyed type. `None` if the peer knows the instance only by its hash.
    pub key: Option<u32>,
    /// Second part of the key, for types that have one.
    pub name: Option<String>,
    /// Application sequence number within the topic of the writer.
    #[serde(default)]
    pub seq: u64,
    /// Payload length in bytes.
    #[serde(default)]
    pub len: usize,
    /// FNV-1a of the payload, hexadecimal.
    #[serde(default)]
    pub hash: String,
    /// Time at which the application wrote the sample, from a member of the sample.
    #[serde(default)]
    pub stamp_ns: i64,
    /// DDS source timestamp.
    pub source_ns: i64,
    /// Time at which the sample was taken.
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
    /// Returns the endpoint of the event, or an empty string for the program as a whole.
    pub fn id(&self) -> &str {
        match self {
            Self::Ready { .. } | Self::BypassCounters { .. } | Self::RefusedParticipants { .. } => "",
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
    fn sample_line_parses() {
        let line = r#"{"ev":"sample","id":"r1","valid":true,"state":"alive","key":3,"name":"instance-0003","seq":7,"len":16,
            "hash":"00000000000000ff","stamp_ns":1,"source_ns":2,"received_ns":3}"#;
        let Event::Sample(sample) = serde_json::from_str(line).expect("valid line") else { panic!("not a sample") };
        assert_eq!((sample.key, sample.seq, sample.len), (Some(3), 7, 16));
        assert_eq!(sample.state, InstanceState::Alive);
    }

    #[test]
    fn dispose_of_an_unknown_instance_parses() {
        let line = r#"{"ev":"sample","id":"r1","valid":false,"state":"disposed","key":null,"name":null,"source_ns":0,"received_ns":3}"#;
        let event: Event = serde_json::from_str(line).expect("valid line");
        assert!(matches!(event, Event::Sample(Sample { valid: false, key: None, .. })));
    }
}
