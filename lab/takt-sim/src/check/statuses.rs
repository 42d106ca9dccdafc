//! Checks of statuses and their counts.

use takt_core::{ChangeKind, IncompatibleQosStatus, MatchedStatus, SampleLostStatus, SampleRejectedStatus};

use super::pair::Pair;
use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::{Nanos, SECOND};
use crate::model;
use crate::partitions;

/// Time from the creation of an endpoint until all participants know it, without faults.
const KNOWN_AFTER: Nanos = 2 * SECOND;

impl Checker {
    /// Checks the counts of PUBLICATION_MATCHED or SUBSCRIPTION_MATCHED against the matches and the
    /// earlier counts.
    pub fn matched_status(&mut self, at: Nanos, id: EndpointId, peers: usize, status: &MatchedStatus) {
        let before = self.matches.insert(id, (status.total_count, status.current_count)).unwrap_or_default();
        let total = before.0 + status.total_count_change;
        let current = i64::from(before.1) + i64::from(status.current_count_change);
        let is_true = status.current_count as usize == peers
            && (status.total_count, i64::from(status.current_count)) == (total, current)
            && status.total_count >= status.current_count;
        if !is_true {
            self.report(at, Rule::Status, format!("endpoint {id}: {status:?} after {before:?}, {peers} are matched"));
        }
    }

    /// Checks in the end that no reader was notified of a loss or a rejection, if no loss occurred
    /// and no limit was reached.
    pub fn finish_losses(
        &mut self,
        at: Nanos,
        reader: EndpointId,
        lost: &SampleLostStatus,
        rejected: &SampleRejectedStatus,
    ) {
        if self.exact && self.calm && (lost.total_count > 0 || rejected.total_count > 0) {
            self.report(at, Rule::Status, format!("reader {reader}: {lost:?}, {rejected:?}, though nothing was lost"));
        }
    }

    /// Checks in the end that a best-effort reader was notified of each sample that it missed
    /// between the first and the last one of its matches. The count may be higher, by the samples
    /// of which a fragment has arrived before the first and after the last one. Applies only if no
    /// other policy withholds samples, and each writer was matched once.
    pub fn finish_holes(&mut self, at: Nanos, reader: EndpointId, lost: &SampleLostStatus) {
        let pairs = || self.pairs.iter().filter(|((_, to), _)| *to == reader);
        let matches = self.matches.get(&reader).map_or(0, |(total, _)| *total as usize);
        let is_matched_once = matches == pairs().count() && pairs().all(|(_, pair)| pair.is_matched());
        let shows_all = |((writer, _), pair): (&(EndpointId, EndpointId), &Pair)| {
            self.shows_all_that_arrive(*writer, reader) && !pair.unmatched_by_writer
        };
        if matches == 0 || !is_matched_once || self.uses_presentation() || !pairs().all(shows_all) {
            return;
        }
        let holes = |(key, pair): (&(EndpointId, EndpointId), &Pair)| {
            let first = pair.first.unwrap_or(pair.last);
            let missing = |number: &u32| !pair.arrived.contains(*number);
            let between = (first..pair.last).filter(missing).count() as u64;
            let Some((begun, ended)) = self.partial_samples.span(*key) else { return (between, between) };
            let from = if pair.last == 0 { begun } else { begun.min(first) };
            let of_all = (from..=ended.max(pair.last)).filter(missing).count() as u64;
            (between, of_all)
        };
        let (least, most) = pairs().map(holes).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        // The checker cannot read encrypted fragments.
        let most = if self.authenticated { u64::MAX } else { most };
        if !(least..=most).contains(&lost.total_count) {
            let reported = lost.total_count;
            let text = format!("reader {reader} was told of {reported} lost samples, not of {least} to {most}");
            self.report(at, Rule::Status, text);
        }
    }

    /// Reports whether a best-effort reader takes each sample of a writer that arrives, so that
    /// every other sample was lost.
    fn shows_all_that_arrive(&self, writer: EndpointId, reader: EndpointId) -> bool {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        let (w, r) = (&from.qos, &to.qos);
        let selects = w.directed || w.lifespan.is_some() || w.transient_local && w.keep_last.is_some();
        let hides = r.keep_last.is_some() || r.max_samples.is_some() || r.separation.is_some() || r.purge.is_some();
        let drops = selects || hides || r.filter.is_some() || r.by_source || w.strength.is_some();
        let has_ends = from.written.iter().any(|change| change.kind != ChangeKind::Alive);
        !drops && !has_ends && !model::is_reliable(w, r)
    }

    /// Checks in the end that an endpoint was notified once of each incompatible endpoint.
    pub fn finish_incompatible(&mut self, at: Nanos, id: EndpointId, status: &IncompatibleQosStatus) {
        let of = &self.endpoints[id as usize];
        let differs = |other: &Endpoint| {
            let (writer, reader) = if of.is_writer { (of, other) } else { (other, of) };
            other.is_writer != of.is_writer
                && other.topic == of.topic
                && partitions::have_common(other.qos.partition, of.qos.partition)
                && !model::matches(&writer.qos, &reader.qos)
        };
        let all = || self.endpoints.iter().filter(|other| differs(other));
        let is_known = |other: &&Endpoint| other.alive && other.created_at.max(of.created_at) + KNOWN_AFTER < at;
        let (least, most) = (all().filter(is_known).count(), all().count());
        let reported = status.total_count as usize;
        if self.exact && self.calm && !(least..=most).contains(&reported) {
            let text = format!("endpoint {id} was told of {reported} that do not fit, there were {least} to {most}");
            self.report(at, Rule::Status, text);
        }
    }
}
