//! Limits of the interceptor.

use std::time::Duration;

/// Limits and timeouts of an interceptor. Everything that a participant sends beyond a limit is
/// counted in [`Counters`](super::Counters) and does not reach the other participants, so that no
/// limit can be used to bypass admission.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of participants; a further one is not announced to the others.
    pub participants: usize,
    /// Maximum number of participants per IP address.
    pub participants_per_address: usize,
    /// Maximum number of endpoints per participant; the announcement of a further one is withheld.
    pub endpoints_per_participant: usize,
    /// Maximum number of endpoints of all participants.
    pub endpoints: usize,
    /// Maximum total length of all endpoint announcements in octets.
    pub announcement_bytes: usize,
    /// Maximum length in octets of an announcement that arrives in fragments; a longer one is
    /// withheld.
    pub fragmented_bytes: usize,
    /// Maximum number of incomplete announcements; the oldest is discarded.
    pub reassemblies: usize,
    /// Time within which all fragments of an announcement must arrive.
    pub reassembly_timeout: Duration,
    /// Maximum number of endpoints of one topic that a new endpoint is compared with; with more,
    /// its announcement is withheld.
    pub endpoints_per_topic: usize,
    /// Maximum number of pairs of writer and reader.
    pub pairs: usize,
    /// Maximum number of streams, which are pairs of an SEDP writer and a participant; beyond it,
    /// announcements are withheld.
    pub streams: usize,
    /// Maximum number of changes inserted into one stream; beyond it, verdicts affect only later
    /// announcements.
    pub insertions_per_stream: usize,
    /// Time that the controller has for a verdict. Afterwards the pair is refused.
    pub verdict_timeout: Duration,
    /// First interval after which an inserted change is sent again; it doubles up to 32 times this
    /// value.
    pub resend_interval: Duration,
    /// Maximum number of queued events; further ones are counted and lost. A pair whose event is
    /// lost is refused after `verdict_timeout`.
    pub events: usize,
    /// Maximum number of queued frames; further ones are counted, dropped, and sent again as after
    /// a loss on the wire.
    pub frames: usize,
    /// Average number of discovery frames per second and IP address; further ones are dropped.
    pub frames_per_second: u32,
    /// Burst of discovery frames per IP address.
    pub frames_burst: u32,
    /// Maximum length in octets of a rewritten message, unless the original or one submessage is
    /// longer.
    pub message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            participants: 1024,
            participants_per_address: 128,
            endpoints_per_participant: 2048,
            endpoints: 65_536,
            announcement_bytes: 64 << 20,
            fragmented_bytes: 65_536,
            reassemblies: 256,
            reassembly_timeout: Duration::from_secs(10),
            endpoints_per_topic: 1024,
            pairs: 131_072,
            streams: 65_536,
            insertions_per_stream: 1024,
            verdict_timeout: Duration::from_secs(2),
            resend_interval: Duration::from_millis(100),
            events: 16_384,
            frames: 16_384,
            frames_per_second: 2000,
            frames_burst: 8000,
            message_bytes: 1452,
        }
    }
}
