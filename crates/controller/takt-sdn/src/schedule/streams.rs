//! Flows of one writer and its readers: samples, and the traffic of the RTPS reliability protocol.

use takt_calculus::Arrivals;
use takt_calculus::network::Frames;

use super::wire::{FormatError, WireFormat};
use crate::model::HostId;

/// Timing of the reliability protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reliability {
    /// Minimum period in ns of HEARTBEATs that a writer sends separately.
    pub heartbeat_period_ns: u64,
    /// Maximum delay in ns of a reader's response to a HEARTBEAT.
    pub response_delay_ns: u64,
}

/// Guarantees of a writer and demands of its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// Minimum time between two samples in ns.
    pub min_separation_ns: u64,
    /// Number of samples that may arrive at once; at least 1.
    pub burst: u64,
    /// Jitter in ns: maximum delay of a sample, relative to its nominal time, at the interface of
    /// its host.
    pub jitter_ns: u64,
    /// Maximum length of a sample in octets, including its encapsulation header.
    pub sample_len: u64,
    /// Limit in ns from the sample's arrival at the interface of its host until its last octet is
    /// at the last reader's host.
    pub limit_ns: u64,
    /// Timing of the reliability protocol; `None` for best effort.
    pub reliability: Option<Reliability>,
    /// Importance: flows with a larger value are served longer when links fail.
    pub importance: i32,
}

impl Contract {
    /// Returns the arrivals of samples, including bursts and jitter.
    pub(super) fn arrivals(&self) -> Arrivals {
        let bursts = Arrivals::bursts(self.min_separation_ns, self.burst);
        Arrivals { jitter_ns: bursts.jitter_ns.saturating_add(self.jitter_ns), ..bursts }
    }
}

/// Admission request of a pair of endpoints, or of a writer with several readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Name for display.
    pub name: String,
    /// Host of the writer.
    pub source: HostId,
    /// Hosts of the readers. The source itself must not be included.
    pub destinations: Vec<HostId>,
    /// Guarantees and demands.
    pub contract: Contract,
    /// Wire format of the samples.
    pub format: WireFormat,
}

/// One flow of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) name: String,
    pub(super) source: HostId,
    pub(super) destinations: Vec<HostId>,
    pub(super) arrivals: Arrivals,
    pub(super) frames: Vec<Frames>,
    pub(super) limit_ns: u64,
}

/// Streams with the same ends: in each switch one flow entry carries them, and one meter polices
/// their sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bundle {
    pub(super) source: HostId,
    pub(super) destinations: Vec<HostId>,
    pub(super) streams: Vec<Stream>,
}

impl Bundle {
    /// Returns the name of the last stream, which is the latest to have joined.
    pub(super) fn name(&self) -> String {
        self.streams.last().map(|stream| stream.name.clone()).unwrap_or_default()
    }
}

/// Returns the streams of requests grouped by their ends, in the order of their first ones.
pub(super) fn bundles(requests: &[Request]) -> Result<Vec<Bundle>, (&Request, FormatError)> {
    let mut bundles: Vec<Bundle> = Vec::new();
    for request in requests {
        for stream in request.streams().map_err(|error| (request, error))? {
            let Stream { source, destinations, .. } = &stream;
            let is_same = |bundle: &&mut Bundle| (&bundle.source, &bundle.destinations) == (source, destinations);
            match bundles.iter_mut().find(is_same) {
                Some(bundle) => bundle.streams.push(stream),
                None => {
                    bundles.push(Bundle { source: *source, destinations: destinations.clone(), streams: vec![stream] })
                }
            }
        }
    }
    Ok(bundles)
}

impl Request {
    /// Returns the flows: samples first, then HEARTBEATs and the ACKNACKs of each reader's host.
    pub(super) fn streams(&self) -> Result<Vec<Stream>, FormatError> {
        let Contract { sample_len, limit_ns, reliability, .. } = self.contract;
        let arrivals = self.contract.arrivals();
        let mut streams = vec![Stream {
            name: self.name.clone(),
            source: self.source,
            destinations: self.destinations.clone(),
            arrivals,
            frames: self.format.sample(sample_len, reliability.is_some())?,
            limit_ns,
        }];
        let Some(Reliability { heartbeat_period_ns, response_delay_ns }) = reliability else { return Ok(streams) };
        streams.push(Stream {
            name: format!("{} HEARTBEAT", self.name),
            source: self.source,
            destinations: self.destinations.clone(),
            arrivals: Arrivals::sporadic(heartbeat_period_ns),
            frames: self.format.heartbeat()?,
            limit_ns: heartbeat_period_ns,
        });
        // The datagrams of each sample carry HEARTBEATs, and a reader replies to each HEARTBEAT
        // once.
        let by_samples: u64 = self.format.sample(sample_len, true)?.iter().map(|frames| frames.count).sum();
        let late_ns = limit_ns.max(heartbeat_period_ns).saturating_add(response_delay_ns);
        let acknacks = answers(arrivals, by_samples, heartbeat_period_ns, late_ns).ok_or(FormatError::Answers)?;
        for destination in &self.destinations {
            streams.push(Stream {
                name: format!("{} ACKNACK of {destination}", self.name),
                source: *destination,
                destinations: vec![self.source],
                arrivals: acknacks,
                frames: self.format.acknack()?,
                limit_ns: heartbeat_period_ns,
            });
        }
        Ok(streams)
    }
}

/// Returns arrivals that cover the answers to the HEARTBEATs of samples, `each` of them per sample,
/// and to periodic HEARTBEATs. An answer follows its HEARTBEAT within `late_ns`.
///
/// A window `w` contains at most `each * ((w + j + late) / p + 1) + (w + late) / h + 1` answers.
/// With the combined rate `each / p + 1 / h`, this is one flow whose jitter allows `each` more at
/// once.
///
/// Returns `None` if there is more than one answer per nanosecond.
fn answers(samples: Arrivals, each: u64, heartbeat_period_ns: u64, late_ns: u64) -> Option<Arrivals> {
    let (p, h) = (u128::from(samples.period_ns), u128::from(heartbeat_period_ns));
    let both = u128::from(each).saturating_mul(h).saturating_add(p).max(1);
    let period_ns = u64::try_from(p.saturating_mul(h) / both).unwrap_or(u64::MAX);
    let at_once_ns = period_ns.saturating_mul(each);
    let jitter_ns = samples.jitter_ns.saturating_add(late_ns).saturating_add(at_once_ns);
    (period_ns > 0).then_some(Arrivals { period_ns, jitter_ns, distance_ns: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(reliability: Option<Reliability>) -> Request {
        let contract = Contract {
            min_separation_ns: 5_000_000,
            burst: 2,
            jitter_ns: 1_000,
            sample_len: 3_000,
            limit_ns: 2_000_000,
            reliability,
            importance: 0,
        };
        Request {
            name: "steering".into(),
            source: HostId(1),
            destinations: vec![HostId(2), HostId(3)],
            contract,
            format: WireFormat::default(),
        }
    }

    #[test]
    fn best_effort_writer_has_one_flow() {
        let streams = request(None).streams().expect("the request has frames");
        assert_eq!(streams.len(), 1);
        assert_eq!(streams[0].arrivals.count(0), 2, "the burst");
        assert_eq!(streams[0].arrivals.jitter_ns, 5_001_000);
    }

    #[test]
    fn reliable_writer_has_heartbeats_and_an_answer_from_each_host() {
        let reliability = Reliability { heartbeat_period_ns: 100_000_000, response_delay_ns: 1_000_000 };
        let streams = request(Some(reliability)).streams().expect("the request has frames");
        let ends: Vec<_> = streams.iter().map(|stream| (stream.source.0, stream.destinations.len())).collect();
        assert_eq!(ends, [(1, 2), (1, 2), (2, 1), (3, 1)]);
    }

    /// Counts the answers to both kinds of HEARTBEAT at their maximum density, and compares them
    /// with the flow.
    #[test]
    fn answer_arrivals_cover_answers_to_samples_and_to_heartbeats() {
        for (period_ns, jitter_ns, each, heartbeat_ns, late_ns) in
            [(100, 0, 1, 1000, 50), (100, 250, 3, 70, 0), (7, 3, 2, 5, 11), (1000, 0, 1, 2, 1)]
        {
            let samples = Arrivals { period_ns, jitter_ns, distance_ns: 0 };
            let flow = answers(samples, each, heartbeat_ns, late_ns).expect("the rate does not overflow");
            for window_ns in 0..5000 {
                let late_samples = samples.count(window_ns + late_ns) * each;
                let answers = late_samples + Arrivals::sporadic(heartbeat_ns).count(window_ns + late_ns);
                assert!(flow.count(window_ns) >= answers, "{samples:?} {each} {heartbeat_ns} {late_ns}: {window_ns}");
            }
        }
        assert_eq!(answers(Arrivals::sporadic(1000), 1, 1, 0), None, "1001 in 1000 ns");
    }
}
