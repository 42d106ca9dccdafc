//! Pairs without a contract whose datagrams match the entries of admitted flows.
//!
//! No rule distinguishes them from pairs with contracts, so they use the class of the flow and
//! consume its meter. Depending on [`WithoutContract`], the later of the two is refused, or a
//! caution is reported.

use std::collections::{BTreeMap, BTreeSet};

use takt_wire::Guid;

use super::{Admission, Outcome, Refusal};
use crate::discovery::Pair;
use crate::model::WithoutContract;
use crate::rules::Selector;

/// Reason of a pair that waits for a decision.
const UNBLOCKED: &str = "the shared flow is removed";

/// Pairs without a contract, by the selectors that their datagrams match.
#[derive(Debug, Default)]
pub(super) struct Uncontracted {
    pairs: BTreeMap<Pair, (String, Vec<Selector>)>,
    by_selector: BTreeMap<Selector, BTreeSet<Pair>>,
    /// Pairs that are refused.
    blocked: BTreeSet<Pair>,
}

impl Uncontracted {
    /// Returns a topic without a contract whose pair matches and uses one of the selectors. A
    /// sample to a group is sent once for all readers, so pairs of the same writer do not count
    /// there.
    pub(super) fn topic_at(&self, writer: Guid, selectors: impl IntoIterator<Item = Selector>) -> Option<&str> {
        let is_other = |selector: &Selector, pair: &Pair| !selector.is_group() || pair.writer != writer;
        let pairs = selectors.into_iter().filter_map(|selector| {
            let pairs = self.by_selector.get(&selector)?.iter();
            Some(pairs.filter(move |pair| is_other(&selector, pair)))
        });
        let matched = pairs.flatten().filter(|pair| !self.blocked.contains(pair)).find_map(|pair| self.pairs.get(pair));
        matched.map(|(topic, _)| topic.as_str())
    }

    /// Reports whether a pair is refused for a flow that it shares.
    pub(super) fn is_blocked(&self, pair: Pair) -> bool {
        self.blocked.contains(&pair)
    }

    /// Removes a pair and reports whether it was known.
    fn remove(&mut self, pair: Pair) -> bool {
        self.blocked.remove(&pair);
        let Some((_, selectors)) = self.pairs.remove(&pair) else { return false };
        for selector in selectors {
            if let Some(pairs) = self.by_selector.get_mut(&selector) {
                pairs.remove(&pair);
                if pairs.is_empty() {
                    self.by_selector.remove(&selector);
                }
            }
        }
        true
    }
}

/// Returns the reason of a pair that is refused because it shares its flow with a topic without a
/// contract.
pub(super) fn uncontracted_reason(topic: &str) -> String {
    format!(
        "topic {topic:?} without a contract uses the same addresses and UDP port; give it a contract, or write [default] in the contract file"
    )
}

impl Admission {
    /// Registers a pair without a contract that uses these addresses and UDP ports.
    pub fn register_uncontracted(&mut self, pair: Pair, topic: String, selectors: Vec<Selector>) {
        if self.uncontracted.pairs.get(&pair).is_some_and(|known| *known == (topic.clone(), selectors.clone())) {
            return;
        }
        let was_barred = self.uncontracted.blocked.contains(&pair);
        self.uncontracted.remove(pair);
        for selector in &selectors {
            self.uncontracted.by_selector.entry(*selector).or_default().insert(pair);
        }
        let shared = selectors.iter().find_map(|selector| {
            let mut shares = self.flows.get(selector)?.present();
            let first = shares.next()?;
            let is_own = selector.is_group()
                && (first.pair.writer == pair.writer || shares.any(|share| share.pair.writer == pair.writer));
            (!is_own).then(|| (first.pair, first.demand.request.name.clone()))
        });
        self.uncontracted.pairs.insert(pair, (topic.clone(), selectors));
        match (shared, self.file.without_contract) {
            (None, _) if was_barred => self.unblock(pair),
            (None, _) => {}
            (Some((_, name)), WithoutContract::Refuse) => {
                self.uncontracted.blocked.insert(pair);
                self.companions.remove(&pair);
                let reason = format!(
                    "topic {topic:?} has no contract and uses the same addresses and UDP port as the admitted {name}; give it a contract, or \
                     write [default] in the contract file"
                );
                self.outcomes.push(Outcome::Refused { pair, reason });
            }
            (Some((admitted, _)), WithoutContract::Caution) => {
                self.outcomes.push(Outcome::Caution { pair: admitted, topic })
            }
        }
    }

    /// Returns the pairs without a contract whose datagrams match a selector.
    pub fn uncontracted_at(&self, selector: &Selector) -> impl Iterator<Item = Pair> {
        self.uncontracted.by_selector.get(selector).into_iter().flatten().copied()
    }

    /// Removes a pair without a contract. Admissions that it prevented are tried again.
    pub(super) fn remove_uncontracted(&mut self, pair: Pair) {
        self.shall_retry |= self.uncontracted.remove(pair);
    }

    /// Lets pairs match that were refused for a flow that was removed.
    pub(super) fn unblock_uncontracted(&mut self, selector: Selector) {
        let pairs = self.uncontracted.by_selector.get(&selector).into_iter().flatten();
        let flows = &self.flows;
        let is_free = |pair: &&Pair| {
            let (_, selectors) = &self.uncontracted.pairs[*pair];
            self.uncontracted.blocked.contains(*pair) && !selectors.iter().any(|selector| flows.contains_key(selector))
        };
        let free: Vec<Pair> = pairs.filter(is_free).copied().collect();
        for pair in free {
            self.unblock(pair);
        }
    }

    /// Lets a pair match. It is requested again, because the writer's other pairs may first need
    /// flows to groups.
    fn unblock(&mut self, pair: Pair) {
        self.uncontracted.blocked.remove(&pair);
        self.refused.insert(pair, Refusal::new(0, UNBLOCKED.to_owned()));
        self.shall_retry = true;
    }
}
