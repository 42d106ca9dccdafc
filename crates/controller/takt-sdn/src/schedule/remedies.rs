//! Remedies of a refused request: similar contracts that fit, found by trial.

use super::classes::Trials;
use super::decision::RequestId;
use super::scheduler::{Scheduler, trials_of};
use super::streams::Request;
use crate::model::Snapshot;

/// Changes that would each make a refused request fit; found by trial against the present state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remedies {
    /// A longer limit.
    pub limit_ns: Option<u64>,
    /// A longer separation.
    pub min_separation_ns: Option<u64>,
    /// Smaller samples.
    pub sample_len: Option<u64>,
}

impl Scheduler {
    /// Returns the remedies of a request that is refused, alone or with the requests that it
    /// `joins`. The search makes at most as many trials as three decisions; remedies that it does
    /// not reach are omitted.
    pub fn remedies(&mut self, snapshot: &Snapshot, joins: Option<RequestId>, request: &Request) -> Remedies {
        let contract = request.contract;
        let mut fits = |trials: &mut Trials, change: &dyn Fn(&mut Request)| {
            let mut changed = request.clone();
            change(&mut changed);
            !trials.are_spent() && self.try_out(snapshot, joins, &changed, trials).is_ok()
        };
        let [mut for_limit, mut for_separation, mut for_len] =
            [(); 3].map(|()| trials_of(std::slice::from_ref(request)));
        let limit = min_fitting(contract.limit_ns, |limit_ns| {
            fits(&mut for_limit, &|changed| changed.contract.limit_ns = limit_ns)
        });
        let separation = min_fitting(contract.min_separation_ns, |separation_ns| {
            fits(&mut for_separation, &|changed| changed.contract.min_separation_ns = separation_ns)
        });
        // The search minimizes the number of removed octets.
        let less = min_fitting((contract.sample_len >> 16).max(1), |less| {
            let sample_len = contract.sample_len.saturating_sub(less).max(1);
            fits(&mut for_len, &|changed| changed.contract.sample_len = sample_len)
        });
        Remedies {
            limit_ns: limit,
            min_separation_ns: separation,
            sample_len: less.map(|less| contract.sample_len.saturating_sub(less).max(1)),
        }
    }
}

/// Returns a value above `from` that fits, at most a sixteenth above the minimum if every value
/// above a fitting one fits, too. `None` if multiplying by 2, 4, 16, 256 and 65,536 does not
/// suffice or overflows.
fn min_fitting(from: u64, mut fits: impl FnMut(u64) -> bool) -> Option<u64> {
    let scaled = |doublings: u32| from.checked_mul(1 << doublings);
    // Numbers of doublings: one that is too small, and one that suffices.
    let mut few = 0;
    let mut enough = [1, 2, 4, 8, 16].into_iter().find(|doublings| {
        let is_enough = scaled(*doublings).is_some_and(&mut fits);
        few = if is_enough { few } else { *doublings };
        is_enough
    })?;
    while enough - few > 1 {
        let middle = few + (enough - few) / 2;
        if scaled(middle).is_some_and(&mut fits) {
            enough = middle;
        } else {
            few = middle;
        }
    }
    let mut high = scaled(enough)?;
    let mut low = high / 2;
    while high - low > (high / 16).max(1) {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_is_at_most_a_sixteenth_above_the_minimum() {
        for threshold in [101, 150, 199, 201, 1_000, 77_777, 6_500_000] {
            let found = min_fitting(100, |value| value >= threshold).expect("the value is within 16 doublings");
            assert!(found >= threshold && found <= threshold + threshold / 15 + 2, "{threshold}: {found}");
        }
        assert_eq!(min_fitting(100, |value| value >= 6_553_601), None);
        assert_eq!(min_fitting(u64::MAX, |_| true), None, "no larger number exists");
        assert_eq!(min_fitting(0, |value| value > 0), None);
    }

    #[test]
    fn least_finds_a_fitting_value_below_values_that_do_not_fit() {
        assert!(min_fitting(100, |value| (180..250).contains(&value)).is_some_and(|found| found < 250));
    }
}
