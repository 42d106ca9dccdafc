//! Countermeasures against interference, and configurations as sets of them.
//!
//! A configuration is a set of measures and nothing else: `baseline` has none, `isolated` all that
//! are available, `alone-X` has one, `without-X` all but one.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Countermeasure against interference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Countermeasure {
    /// The participant's executor runs jobs by priority.
    ExecutorPriorities,
    /// User data bypass the kernel's network stack.
    AfXdp,
    /// One queue of the hosts and the first class of the link carry only real-time traffic.
    ReservedQueue,
    /// Both processes run under `SCHED_FIFO`.
    Fifo,
    /// Both processes have cores of their own; the interference runs on other cores if there are
    /// any.
    Affinity,
    /// Processors do not enter sleep states with an exit latency.
    DmaLatency,
    /// Interrupts of the interface are not delayed.
    Coalescing,
}

impl Countermeasure {
    /// All measures, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::ExecutorPriorities,
        Self::AfXdp,
        Self::ReservedQueue,
        Self::Fifo,
        Self::Affinity,
        Self::DmaLatency,
        Self::Coalescing,
    ];

    /// Returns the name as it appears in names of configurations.
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

impl fmt::Display for Countermeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Set of measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Countermeasure>", into = "Vec<Countermeasure>")]
pub struct Countermeasures(u8);

impl Countermeasures {
    /// Reports whether the set contains the measure.
    #[must_use]
    pub fn has(self, measure: Countermeasure) -> bool {
        self.0 & measure.bit() != 0
    }

    /// Returns the set without this measure.
    #[must_use]
    pub fn without(self, measure: Countermeasure) -> Self {
        Self(self.0 & !measure.bit())
    }

    /// Iterates over the measures, in the order of [`Countermeasure::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Countermeasure> {
        Countermeasure::ALL.into_iter().filter(move |measure| self.has(*measure))
    }
}

impl FromIterator<Countermeasure> for Countermeasures {
    fn from_iter<I: IntoIterator<Item = Countermeasure>>(measures: I) -> Self {
        Self(measures.into_iter().fold(0, |set, measure| set | measure.bit()))
    }
}

impl From<Vec<Countermeasure>> for Countermeasures {
    fn from(measures: Vec<Countermeasure>) -> Self {
        measures.into_iter().collect()
    }
}

impl From<Countermeasures> for Vec<Countermeasure> {
    fn from(measures: Countermeasures) -> Self {
        measures.iter().collect()
    }
}

/// Measure that is unavailable on this machine, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableMeasure {
    /// Measure.
    pub measure: Countermeasure,
    /// Reason.
    pub why: String,
}

/// Named set of measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Name in tables.
    pub name: String,
    /// Measures that are applied.
    pub measures: Countermeasures,
}

/// Name of the configuration without any measure.
pub const BASELINE: &str = "baseline";
/// Name of the configuration that Meszlenyi et al. (2025) use as baseline. It has plain sockets and
/// the default stack; like the isolated one, it has the executor, SCHED_FIFO and a core of its own.
pub const PAPER_BASELINE: &str = "paper-baseline";
/// Measures of the paper's baseline.
const OF_PAPER_BASELINE: [Countermeasure; 3] =
    [Countermeasure::ExecutorPriorities, Countermeasure::Fifo, Countermeasure::Affinity];
/// Name of the configuration with all available measures.
pub const ISOLATED: &str = "isolated";

impl Configuration {
    /// Returns the configuration without any measure.
    #[must_use]
    pub fn baseline() -> Self {
        Self { name: BASELINE.into(), measures: Countermeasures::default() }
    }

    /// Returns the configuration with all available measures.
    #[must_use]
    pub fn isolated(here: Countermeasures) -> Self {
        Self { name: ISOLATED.into(), measures: here }
    }

    /// Returns the paper's baseline, as far as its measures are available.
    #[must_use]
    pub fn paper_baseline(here: Countermeasures) -> Self {
        let measures = OF_PAPER_BASELINE.into_iter().filter(|measure| here.has(*measure)).collect();
        Self { name: PAPER_BASELINE.into(), measures }
    }

    /// Returns the configuration with this name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str, here: Countermeasures) -> Option<Self> {
        let all = [Self::baseline(), Self::paper_baseline(here), Self::isolated(here)];
        let ablation =
            Countermeasure::ALL.into_iter().flat_map(|measure| [Self::alone(measure), Self::without(here, measure)]);
        all.into_iter().chain(ablation).find(|configuration| configuration.name == name)
    }

    /// Returns the configuration with one measure alone.
    #[must_use]
    pub fn alone(measure: Countermeasure) -> Self {
        Self { name: format!("alone-{measure}"), measures: [measure].into_iter().collect() }
    }

    /// Returns the configuration with all available measures but one.
    #[must_use]
    pub fn without(here: Countermeasures, measure: Countermeasure) -> Self {
        Self { name: format!("without-{measure}"), measures: here.without(measure) }
    }

    /// Returns, for each available measure, the configuration with it alone and the one without it.
    #[must_use]
    pub fn ablation(here: Countermeasures) -> Vec<Self> {
        here.iter().flat_map(|measure| [Self::alone(measure), Self::without(here, measure)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_contain_exactly_the_measures_of_their_names() {
        let here: Countermeasures = [Countermeasure::AfXdp, Countermeasure::Fifo].into_iter().collect();
        assert!(Configuration::baseline().measures.iter().next().is_none());
        assert_eq!(Configuration::isolated(here).measures, here);
        let ablation = Configuration::ablation(here);
        let names: Vec<&str> = ablation.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["alone-af-xdp", "without-af-xdp", "alone-fifo", "without-fifo"]);
        assert_eq!(ablation[1].measures, ablation[2].measures, "of two measures, leaving out one is the other alone");
        assert!(!ablation[0].measures.has(Countermeasure::Fifo) && ablation[0].measures.has(Countermeasure::AfXdp));
    }

    #[test]
    fn paper_baseline_has_executor_fifo_and_affinity() {
        let all: Countermeasures = Countermeasure::ALL.into_iter().collect();
        let baseline = Configuration::named("paper-baseline", all).unwrap().measures;
        assert_eq!(
            baseline,
            [Countermeasure::ExecutorPriorities, Countermeasure::Fifo, Countermeasure::Affinity].into_iter().collect()
        );
        let without_fifo = Configuration::named("paper-baseline", all.without(Countermeasure::Fifo)).unwrap().measures;
        assert!(!without_fifo.has(Countermeasure::Fifo) && without_fifo.has(Countermeasure::Affinity));
        assert_eq!(Configuration::named("without-fifo", all).unwrap().measures, all.without(Countermeasure::Fifo));
        assert_eq!(Configuration::named("best", all), None);
    }

    #[test]
    fn set_of_measures_is_a_list_in_json() {
        let set: Countermeasures = Countermeasure::ALL.into_iter().collect();
        assert_eq!(set.iter().count(), Countermeasure::ALL.len());
        let text = serde_json::to_string(&set.without(Countermeasure::Coalescing)).unwrap();
        assert!(text.starts_with(r#"["executor-priorities","af-xdp""#), "{text}");
        assert_eq!(serde_json::from_str::<Countermeasures>(&text).unwrap(), set.without(Countermeasure::Coalescing));
    }
}
