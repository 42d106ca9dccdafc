//! Comparison of the maximum latencies that readers report with the proved bounds.
//!
//! A reader reports one maximum over all its writers. It is therefore compared with the largest
//! bound of its pairs, and only if all of them are admitted. The bound is the limit of the pair in
//! the network plus the stages of the hosts, since that sum holds for as long as the pair is
//! admitted. The bound that is computed at present may be lower, and may rise with further pairs.
//!
//! An event reports a maximum above the bound. It is repeated when the maximum has grown.

use takt_wire::discovery::ObservedLatency;
use takt_wire::{Guid, GuidPrefix};

use super::event::SlowStage;
use super::{Controller, Event};
use crate::admission::Progress;
use crate::discovery::Pair;

impl Controller {
    /// Returns the proved bound of an admitted pair in nanoseconds, and its progress.
    fn proved_bound(&self, pair: Pair) -> Option<(u64, Progress)> {
        let progress = self.admission.as_ref()?.progress(pair)?;
        let network_ns = progress.routes.first()?.limit_ns;
        Some((progress.stages.whole_ns(network_ns), progress))
    }

    /// Compares the latencies that a participant reports for its readers.
    pub(super) fn compare_latencies(&mut self, participant: GuidPrefix) {
        let data = self.discovery.participants().find(|data| data.guid.prefix == participant);
        let reports: Vec<ObservedLatency> =
            data.map_or(Vec::new(), |data| ObservedLatency::all_of(&data.properties).collect());
        for ObservedLatency { entity, worst_ns } in reports.into_iter().filter(|report| report.entity.is_reader()) {
            let pairs = self.discovery.pairs_of(Guid { prefix: participant, entity_id: entity });
            let bounds: Option<Vec<_>> = pairs.iter().map(|pair| Some((*pair, self.proved_bound(*pair)?))).collect();
            let largest = bounds.into_iter().flatten().max_by_key(|(_, (bound_ns, _))| *bound_ns);
            let Some((pair, (bound_ns, progress))) = largest.filter(|(_, (bound_ns, _))| worst_ns > *bound_ns) else {
                continue;
            };
            if self.exceeded.insert(pair.reader, worst_ns).is_some_and(|known_ns| worst_ns <= known_ns) {
                continue;
            }
            let writer_bound_ns = progress.stages.writer.as_ref().map(|stages| stages.bound_ns());
            let stage = match (self.discovery.observed_ns(pair.writer), writer_bound_ns) {
                (Some(took_ns), Some(bound_ns)) if took_ns > bound_ns => SlowStage::Writer { took_ns, bound_ns },
                (Some(_), Some(_)) => SlowStage::BehindWrite,
                _ => SlowStage::Unknown,
            };
            self.push(Event::BoundExceeded { pair, worst_ns, bound_ns, stage });
        }
    }

    /// Removes the reported maximum of the reader of a removed pair.
    pub(super) fn remove_latency(&mut self, pair: Pair) {
        self.exceeded.remove(&pair.reader);
    }
}
