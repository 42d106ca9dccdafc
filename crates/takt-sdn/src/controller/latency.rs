//! Longest latencies that readers report, compared with what is proven.
//!
//! A reader's figure is of all its writers, so it is compared with the longest bound of its pairs, and only if all of them are admitted.
//! What is proven for as long as a pair is admitted is the network's limit with the stages of the hosts; the bound at a moment may be
//! shorter. A reader that has exceeded it is reported again when its longest latency has grown.

use takt_wire::discovery::ObservedLatency;
use takt_wire::{Guid, GuidPrefix};

use super::event::SlowStage;
use super::{Controller, Event};
use crate::admission::Progress;
use crate::discovery::Pair;

impl Controller {
    /// What is proven of an admitted pair, in nanoseconds.
    fn proven_ns(&self, pair: Pair) -> Option<(u64, Progress)> {
        let progress = self.admission.as_ref()?.progress(pair)?;
        let network_ns = progress.routes.first()?.limit_ns;
        Some((progress.stages.whole_ns(network_ns), progress))
    }

    /// A participant reports what its endpoints saw.
    pub(super) fn compare_latencies(&mut self, participant: GuidPrefix) {
        let data = self.discovery.participants().find(|data| data.guid.prefix == participant);
        let reports: Vec<ObservedLatency> =
            data.map_or(Vec::new(), |data| ObservedLatency::all_of(&data.properties).collect());
        for ObservedLatency { entity, worst_ns } in reports.into_iter().filter(|report| report.entity.is_reader()) {
            let pairs = self.discovery.pairs_of(Guid { prefix: participant, entity_id: entity });
            let proven: Option<Vec<_>> = pairs.iter().map(|pair| Some((*pair, self.proven_ns(*pair)?))).collect();
            let longest = proven.into_iter().flatten().max_by_key(|(_, (bound_ns, _))| *bound_ns);
            let Some((pair, (bound_ns, progress))) = longest.filter(|(_, (bound_ns, _))| worst_ns > *bound_ns) else {
                continue;
            };
            if self.exceeded.insert(pair.reader, worst_ns).is_some_and(|known_ns| worst_ns <= known_ns) {
                continue;
            }
            let writer = progress.stages.writer.as_ref().map(|stages| stages.bound_ns());
            let stage = match (self.discovery.observed_ns(pair.writer), writer) {
                (Some(took_ns), Some(bound_ns)) if took_ns > bound_ns => SlowStage::Writer { took_ns, bound_ns },
                (Some(_), Some(_)) => SlowStage::BehindWrite,
                _ => SlowStage::Unknown,
            };
            self.push(Event::BoundExceeded { pair, worst_ns, bound_ns, stage });
        }
    }

    /// The endpoints of a pair are no more.
    pub(super) fn forget_latency(&mut self, pair: Pair) {
        self.exceeded.remove(&pair.reader);
    }
}
