//! Limits of the interceptor.

use std::time::Duration;

/// What an interceptor holds at most, and how long it waits. Whatever a participant sends beyond a limit is counted in
/// [`Counters`](super::Counters) and does not reach the other participants, so that no limit is a way around admission.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Participants; a further one is not announced to the others.
    pub participants: usize,
    /// Participants of one IP address.
    pub participants_per_address: usize,
    /// Endpoints of one participant; the announcement of a further one is withheld.
    pub endpoints_per_participant: usize,
    /// Endpoints of all participants.
    pub endpoints: usize,
    /// Octets of all announcements of endpoints.
    pub announcement_bytes: usize,
    /// Octets of one announcement that comes in fragments; a longer one is withheld.
    pub fragmented_bytes: usize,
    /// Announcements that came in part; the oldest makes room.
    pub reassemblies: usize,
    /// Time in which all fragments of an announcement come.
    pub reassembly_timeout: Duration,
    /// Endpoints of one topic that a new one is compared with; with more, its announcement is withheld.
    pub endpoints_per_topic: usize,
    /// Pairs of writer and reader.
    pub pairs: usize,
    /// Streams: pairs of an SEDP writer and a participant. Beyond it, announcements are withheld.
    pub streams: usize,
    /// Changes inserted into one stream. Beyond it, verdicts reach only announcements that come later.
    pub insertions_per_stream: usize,
    /// Time that the controller has for a verdict. Then the pair is refused.
    pub verdict_timeout: Duration,
    /// First interval after which an inserted change is sent again; it doubles up to 32 times that.
    pub resend_interval: Duration,
    /// Events that wait; further ones are counted and lost. A pair whose event is lost is refused after `verdict_timeout`.
    pub events: usize,
    /// Frames that wait to be sent; further ones are counted and lost, and sent again as after a loss on the wire.
    pub frames: usize,
    /// Discovery frames of one IP address in a second, on average; further ones are dropped.
    pub frames_per_second: u32,
    /// Discovery frames of one IP address at once.
    pub frames_burst: u32,
    /// Octets of a message that the interceptor puts together, unless the original was longer or one submessage is.
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
