//! The measures against interference, and the configurations that are made of them.
//!
//! A configuration is a set of measures and nothing else: `baseline` has none, `isolated` all that can be had,
//! `alone-X` one, `without-X` all but one.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The participant's executor does what is more urgent first.
    ExecutorPriorities,
    /// User data pass by the kernel's network stack.
    AfXdp,
    /// A queue of the hosts and the first class of the link for real-time traffic alone.
    ReservedQueue,
    /// `SCHED_FIFO` for both processes.
    Fifo,
    /// Both processes on cores of their own, the interference off them where another core is left.
    Affinity,
    /// No sleep state of a processor that takes time to leave.
    DmaLatency,
    /// Interrupts of the interface at once.
    Coalescing,
}

impl Measure {
    /// All, in the order in which tables have them.
    pub const ALL: [Self; 7] = [
        Self::ExecutorPriorities,
        Self::AfXdp,
        Self::ReservedQueue,
        Self::Fifo,
        Self::Affinity,
        Self::DmaLatency,
        Self::Coalescing,
    ];

    /// As in names of configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ExecutorPriorities => "executor-priorities",
            Self::AfXdp => "af-xdp",
            Self::ReservedQueue => "reserved-queue",
            Self::Fifo => "fifo",
            Self::Affinity => "affinity",
            Self::DmaLatency => "dma-latency",
            Self::Coalescing => "coalescing",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Measure>", into = "Vec<Measure>")]
pub struct Measures(u8);

impl Measures {
    /// Whether it is among them.
    #[must_use]
    pub fn has(self, measure: Measure) -> bool {
        self.0 & measure.bit() != 0
    }

    /// All but this one.
    #[must_use]
    pub fn without(self, measure: Measure) -> Self {
        Self(self.0 & !measure.bit())
    }

    /// Each, in the order of [`Measure::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Measure> {
        Measure::ALL.into_iter().filter(move |measure| self.has(*measure))
    }
}

impl FromIterator<Measure> for Measures {
    fn from_iter<I: IntoIterator<Item = Measure>>(measures: I) -> Self {
        Self(measures.into_iter().fold(0, |set, measure| set | measure.bit()))
    }
}

impl From<Vec<Measure>> for Measures {
    fn from(measures: Vec<Measure>) -> Self {
        measures.into_iter().collect()
    }
}

impl From<Measures> for Vec<Measure> {
    fn from(measures: Measures) -> Self {
        measures.iter().collect()
    }
}

/// A measure that cannot be had here, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotHere {
    /// Which.
    pub measure: Measure,
    /// Why not.
    pub why: String,
}

/// A named set of measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// In tables.
    pub name: String,
    /// What is done.
    pub measures: Measures,
}

/// The name of the configuration without any measure.
pub const BASELINE: &str = "baseline";
/// The name of the one that Meszlenyi et al. (2025) compare with: plain sockets and the default stack, and like the isolated one the
/// executor, SCHED_FIFO and a core of its own.
pub const PAPER_BASELINE: &str = "paper-baseline";
/// The measures of that.
const OF_PAPER_BASELINE: [Measure; 3] = [Measure::ExecutorPriorities, Measure::Fifo, Measure::Affinity];
/// The name of the one with all that can be had.
pub const ISOLATED: &str = "isolated";

impl Configuration {
    /// No measure at all.
    #[must_use]
    pub fn baseline() -> Self {
        Self { name: BASELINE.into(), measures: Measures::default() }
    }

    /// All measures that can be had.
    #[must_use]
    pub fn isolated(here: Measures) -> Self {
        Self { name: ISOLATED.into(), measures: here }
    }

    /// That of the paper, as far as it can be had.
    #[must_use]
    pub fn paper_baseline(here: Measures) -> Self {
        let measures = OF_PAPER_BASELINE.into_iter().filter(|measure| here.has(*measure)).collect();
        Self { name: PAPER_BASELINE.into(), measures }
    }

    /// The configuration of a name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str, here: Measures) -> Option<Self> {
        let all = [Self::baseline(), Self::paper_baseline(here), Self::isolated(here)];
        let ablation =
            Measure::ALL.into_iter().flat_map(|measure| [Self::alone(measure), Self::without(here, measure)]);
        all.into_iter().chain(ablation).find(|configuration| configuration.name == name)
    }

    /// One measure alone.
    #[must_use]
    pub fn alone(measure: Measure) -> Self {
        Self { name: format!("alone-{measure}"), measures: [measure].into_iter().collect() }
    }

    /// All that can be had but one.
    #[must_use]
    pub fn without(here: Measures, measure: Measure) -> Self {
        Self { name: format!("without-{measure}"), measures: here.without(measure) }
    }

    /// Each measure alone, and each left out, of those that can be had.
    #[must_use]
    pub fn ablation(here: Measures) -> Vec<Self> {
        here.iter().flat_map(|measure| [Self::alone(measure), Self::without(here, measure)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_sets() {
        let here: Measures = [Measure::AfXdp, Measure::Fifo].into_iter().collect();
        assert!(Configuration::baseline().measures.iter().next().is_none());
        assert_eq!(Configuration::isolated(here).measures, here);
        let ablation = Configuration::ablation(here);
        let names: Vec<&str> = ablation.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["alone-af-xdp", "without-af-xdp", "alone-fifo", "without-fifo"]);
        assert_eq!(ablation[1].measures, ablation[2].measures, "of two, without one is the other alone");
        assert!(!ablation[0].measures.has(Measure::Fifo) && ablation[0].measures.has(Measure::AfXdp));
    }

    #[test]
    fn baseline_of_the_paper_has_executor_fifo_and_affinity_and_no_other_stack() {
        let all: Measures = Measure::ALL.into_iter().collect();
        let baseline = Configuration::named("paper-baseline", all).unwrap().measures;
        assert_eq!(baseline, [Measure::ExecutorPriorities, Measure::Fifo, Measure::Affinity].into_iter().collect());
        let without_fifo = Configuration::named("paper-baseline", all.without(Measure::Fifo)).unwrap().measures;
        assert!(!without_fifo.has(Measure::Fifo) && without_fifo.has(Measure::Affinity));
        assert_eq!(Configuration::named("without-fifo", all).unwrap().measures, all.without(Measure::Fifo));
        assert_eq!(Configuration::named("best", all), None);
    }

    #[test]
    fn a_set_is_a_list_in_json() {
        let set: Measures = Measure::ALL.into_iter().collect();
        assert_eq!(set.iter().count(), Measure::ALL.len());
        let text = serde_json::to_string(&set.without(Measure::Coalescing)).unwrap();
        assert!(text.starts_with(r#"["executor-priorities","af-xdp""#), "{text}");
        assert_eq!(serde_json::from_str::<Measures>(&text).unwrap(), set.without(Measure::Coalescing));
    }
}
