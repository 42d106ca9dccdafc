//! SDN overload experiment: a pair under an overload of its link, with and without the OpenFlow
//! controller, after Choi, King and Lee, "OpenFlow makes DDS really real-time" (2016).
//!
//! | module | content |
//! |---|---|
//! | [`category`] | reliability and history depth |
//! | [`site`] | hosts and switches, with or without the controller |
//! | [`pair`] | writer and readers, of Takt or of another product |
//! | [`side`] | processes of a pair of Takt |
//! | [`flood`] | overload traffic in alternating on and off phases |
//! | [`transit`] | transit times of samples, captured at the interfaces of hosts |
//! | [`series`] | losses, normalized latency and cumulative count of one run |
//! | [`outcome`] | figures of all runs; tables |
//! | [`paper`] | numbers of the paper, for comparison |
//! | [`plot`], [`html`] | plots; a page with plots, tables and comparisons |
//!
//! A sample is due every period. The **normalized latency** of sample i is its arrival time minus
//! `i * period + t_0`, where `t_0` is the arrival time of the first sample, which arrives before
//! the overload. The **cumulative count** is the number of samples that have arrived by a time.
//!
//! Each combination runs three times: idle, with the overload, and with the overload and the
//! controller. A ring needs a controller, so it runs idle, with the overload, and with the overload
//! and a link that fails. Processes run with SCHED_FIFO, since the switch, the hosts and the
//! overload share the processors of one machine. The switch has the highest priority, then the
//! pair, then the overload.

pub mod category;
pub mod flood;
pub mod html;
pub mod outcome;
pub mod pair;
pub mod paper;
pub mod plot;
pub mod series;
pub mod side;
pub mod site;
pub mod transit;

use crate::campaign::lock_campaign;
use crate::error::{Error, Result};
use crate::signal::stopped;
use category::Category;
use flood::{Flood, wire_octets};
use outcome::{Cell, Outcome, Run};
use pair::{Pair, Program};
use serde::{Deserialize, Serialize};
use side::SidePlan;
use site::{Site, SitePlan, TOPIC, Topology};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use transit::{Capture, Transits, VendorId};

/// Maximum time for the controller to reach a verdict.
const VERDICT_LIMIT: Duration = Duration::from_secs(30);
/// Time limit of a run in addition to the time of its samples: a reliable writer waits for room.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// Number of domains in rotation. Consecutive runs use different domains, so that a late datagram
/// of one does not reach the next. The controller intercepts the ports of domains 0 to 9.
const DOMAINS: u32 = 8;
const DOMAIN_FIRST: u32 = 1;
/// Octets of a serialized sample in the contract in addition to its data: encapsulation, number,
/// time and length, and 60 octets of statistics that Fast DDS 3 appends to each of two datagrams.
const SERIALIZED_MORE: usize = 152;
/// Jitter of the contract: the maximum delay of a sample in its host.
const JITTER_MS: u64 = 20;
/// End-to-end limit of the contract. It exceeds the 1 ms of the paper, so that slow links and
/// several switches are also admitted. The tables report the bound that the controller proves.
const LIMIT_MS: u64 = 50;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Programs of other products: name and path.
    pub peers: Vec<(String, PathBuf)>,
    /// Whether Takt is left out.
    pub without_takt: bool,
    /// Topology of the switches.
    pub topology: Topology,
    /// Number of readers, each on a host of its own.
    pub readers: usize,
    /// Reliability and history depths.
    pub categories: Vec<Category>,
    /// Octets of data in a best-effort sample; reliable samples have the largest size.
    pub sizes: Vec<usize>,
    /// Octets of a frame of the overload.
    pub backgrounds: Vec<usize>,
    /// Length of each run, seconds.
    pub seconds: u64,
    /// Interval between two samples, ns.
    pub period_ns: u64,
    /// Rate of the links, Mbit/s.
    pub megabits: u32,
    /// Maximum number of frames per second of the first overload host: for small frames the links
    /// have a lower rate.
    pub frames_per_second: u32,
    /// Queue length for all other traffic, frames.
    pub frames: u32,
}

/// Load and controller of a run, in addition to the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// No overload.
    Idle,
    /// Overload with frames of this length in octets.
    Overload(usize),
    /// Overload and controller.
    Controlled(usize),
    /// Overload and controller, and a link that fails in the middle of the run.
    Failed(usize),
}

/// Parameters of one run.
#[derive(Clone, Debug, PartialEq)]
struct Task {
    program: usize,
    category: Category,
    size: usize,
    condition: Condition,
}

impl Condition {
    fn frame_len(self) -> Option<usize> {
        match self {
            Self::Idle => None,
            Self::Overload(octets) | Self::Controlled(octets) | Self::Failed(octets) => Some(octets),
        }
    }
}

impl Plan {
    /// Returns the categories with the sizes of their samples.
    fn pairs(&self) -> Vec<(Category, usize)> {
        let largest = self.sizes.iter().max();
        let sizes = |category: Category| {
            self.sizes.iter().filter(move |size| !category.is_reliable() || Some(*size) == largest)
        };
        self.categories.iter().flat_map(|category| sizes(*category).map(|size| (*category, *size))).collect()
    }

    /// Returns the runs: all idle ones, then all of one overload after the other, so that networks
    /// are seldom rebuilt.
    fn tasks(&self, programs: usize) -> Vec<Task> {
        let under = |octets: &usize| match self.topology {
            Topology::Row(_) => [Condition::Overload(*octets), Condition::Controlled(*octets)],
            Topology::Ring => [Condition::Controlled(*octets), Condition::Failed(*octets)],
        };
        let conditions = std::iter::once(Condition::Idle).chain(self.backgrounds.iter().flat_map(under));
        let mut tasks = Vec::new();
        for condition in conditions {
            for program in 0..programs {
                let task = |(category, size)| Task { program, category, size, condition };
                tasks.extend(self.pairs().into_iter().map(task));
            }
        }
        tasks
    }

    fn samples(&self) -> u64 {
        self.seconds * 1_000_000_000 / self.period_ns
    }

    /// Returns the rate of the links under an overload of such frames, Mbit/s.
    #[must_use]
    pub fn megabits_for(&self, condition: Condition) -> u32 {
        let Some(frame_len) = condition.frame_len() else { return self.megabits };
        let most = u64::from(self.frames_per_second) * 8 * wire_octets(frame_len) / 2_000_000;
        self.megabits.min(u32::try_from(most).unwrap_or(u32::MAX)).max(1)
    }

    /// Checks that this user and this machine can create the network.
    ///
    /// # Errors
    /// The user is not root, or Open vSwitch is missing.
    pub fn check_possible(&self) -> Result<()> {
        self.site(Condition::Idle).check_possible()
    }

    /// Returns the network of a run.
    fn site(&self, condition: Condition) -> SitePlan {
        let is_controlled =
            self.topology == Topology::Ring || matches!(condition, Condition::Controlled(_) | Condition::Failed(_));
        let size = self.sizes.iter().max().copied().unwrap_or(0) + SERIALIZED_MORE;
        SitePlan {
            name: "overload".to_owned(),
            topology: self.topology,
            readers: self.readers,
            megabits: self.megabits_for(condition),
            frames: self.frames,
            contracts: is_controlled.then(|| contract(TOPIC, self.period_ns, size, Duration::from_millis(LIMIT_MS))),
        }
    }
}

/// Returns a contract file with one contract.
#[must_use]
pub fn contract(topic: &str, period_ns: u64, size: usize, limit: Duration) -> String {
    format!(
        "[[contract]]\ntopic = \"{topic}\"\nseparation = \"{period_ns}ns\"\njitter = \"{JITTER_MS}ms\"\nsize = {size}\nlimit = \"{}us\"\n",
        limit.as_micros()
    )
}

/// Runs the experiment. `program`, followed by `words`, a role and a plan, must run that role
/// ([`side::run`]). `progress` is called before every run. Waits until no other campaign runs on
/// the machine.
///
/// # Errors
/// The user is not root, Open vSwitch is missing, a pair was not admitted, a process failed, or a
/// signal requested a stop. The network is removed in any case.
pub fn run(
    plan: &Plan,
    program: PathBuf,
    words: &[&str],
    command: String,
    progress: &mut dyn FnMut(&str),
) -> Result<Outcome> {
    plan.check_possible()?;
    let _lock = lock_campaign()?;
    let takt = (!plan.without_takt).then(|| Program::takt(program, words));
    let peers = plan.peers.iter().map(|(name, path)| Program::peer(name, path.clone()));
    let programs: Vec<_> = takt.into_iter().chain(peers).collect();
    let mut outcome = Outcome::new(plan.clone(), command);
    let tasks = plan.tasks(programs.len());
    let mut bench = Bench::new(plan.clone());
    for (index, task) in tasks.iter().enumerate() {
        if stopped() {
            return Err(Error::Stopped);
        }
        let Task { category, size, condition, .. } = task;
        let program = &programs[task.program];
        progress(&format!("{} of {}: {}, {category}, {size} B, {condition}", index + 1, tasks.len(), program.name()));
        // An interrupt from the keyboard also reaches the children; their ends are no failures
        // then.
        let cells = bench.measure(program, *category, *size, *condition);
        let cells = cells.map_err(|why| if stopped() { Error::Stopped } else { why })?;
        cells.into_iter().for_each(|cell| outcome.push(cell));
    }
    Ok(outcome)
}

/// Runner of single runs. It keeps the network of the last run, which the next one may use.
#[derive(Debug)]
pub struct Bench {
    plan: Plan,
    site: Option<Site>,
    domain: u32,
}

impl Bench {
    /// Creates a runner without a network.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self { plan, site: None, domain: 0 }
    }

    /// Returns the network of this plan: the existing one, or a new one that replaces it.
    fn at(&mut self, plan: SitePlan) -> Result<&mut Site> {
        if self.site.as_ref().is_some_and(|up| *up.plan() != plan) {
            self.site = None;
        }
        let up = match self.site.take() {
            Some(up) => up,
            None => Site::new(plan)?,
        };
        Ok(self.site.insert(up))
    }

    /// Makes one run and returns a cell for each reader.
    ///
    /// # Errors
    /// The user is not root, Open vSwitch is missing, the pair was not admitted, or a process
    /// failed.
    pub fn measure(
        &mut self,
        program: &Program,
        category: Category,
        size: usize,
        condition: Condition,
    ) -> Result<Vec<Cell>> {
        self.domain = (self.domain + 1) % DOMAINS;
        let domain = DOMAIN_FIRST + self.domain;
        let plan = self.plan.clone();
        let site = self.at(plan.site(condition))?;
        let (period_ns, count, readers) = (plan.period_ns, plan.samples(), plan.readers);
        let side =
            SidePlan { domain, topic: TOPIC.to_owned(), category, size, period_ns, count, readers, limit_ns: None };
        site.clear_verdicts();
        let mut pair = Pair::start(program, site, side)?;
        pair.wait_until_matched()?;
        let bound_ns = site.wait_until_admitted(readers, VERDICT_LIMIT)?;
        let flood = condition.frame_len().map(|frame_len| Flood::start(site, frame_len)).transpose()?;
        let capture = Capture::start(site)?;
        pair.begin()?;
        let length = Duration::from_secs(plan.seconds);
        if matches!(condition, Condition::Failed(_)) {
            // The time of the failure is part of the experiment.
            std::thread::sleep(length / 2); // tidy-allow(sleep): see above
            site.set_direct_link(false)?;
        }
        let finished = pair.finish(RUN_LIMIT + 2 * length);
        let transits = capture.stop()?;
        let flooded = flood.map(Flood::stop);
        if matches!(condition, Condition::Failed(_)) {
            site.set_direct_link(true)?;
        }
        let run = |reader| Run {
            program: program.name().to_owned(),
            category,
            size,
            condition,
            reader,
            megabits: plan.megabits_for(condition),
            bound_ns,
            flooded,
        };
        let all = |transits: BTreeMap<VendorId, Transits>| transits.into_values().next().unwrap_or_default();
        let cell = |((series, transits), reader)| Cell::new(run(reader), series, &all(transits));
        Ok(finished?.into_iter().zip(transits).zip(1..).map(cell).collect())
    }
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Overload(octets) => write!(f, "overload of {octets} B"),
            Self::Controlled(octets) => write!(f, "overload of {octets} B, controller"),
            Self::Failed(octets) => write!(f, "overload of {octets} B, failed link"),
        }
    }
}

impl std::str::FromStr for Condition {
    type Err = String;

    /// Parses `idle`, or `overload`, `controller` or `failed-link` followed by `-` and the octets
    /// of a frame.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let octets = |text: &str| text.parse().ok().filter(|octets| (60..=1514).contains(octets)); // tidy-allow(dropped-cause): the text is named
        let condition = match (text, text.rsplit_once('-')) {
            ("idle", _) => Some(Self::Idle),
            (_, Some(("overload", text))) => octets(text).map(Self::Overload),
            (_, Some(("controller", text))) => octets(text).map(Self::Controlled),
            (_, Some(("failed-link", text))) => octets(text).map(Self::Failed),
            _ => None,
        };
        let known = "idle, overload-OCTETS, controller-OCTETS and failed-link-OCTETS (60 to 1514)";
        condition.ok_or_else(|| format!("{text:?}: expected one of {known}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the plan of the paper.
    pub fn plan() -> Plan {
        Plan {
            peers: Vec::new(),
            without_takt: false,
            topology: Topology::Row(1),
            readers: 1,
            categories: Category::ALL.to_vec(),
            sizes: vec![100, 500, 1000, 1400],
            backgrounds: vec![100, 1400],
            seconds: 25,
            period_ns: 5_000_000,
            megabits: 100,
            frames_per_second: 40_000,
            frames: 256,
        }
    }

    #[test]
    fn plan_of_the_paper_has_all_its_pairs_under_each_condition() {
        let plan = plan();
        assert_eq!(plan.pairs().len(), 4 + 4, "best effort with four sizes, reliable with four depths");
        let tasks = plan.tasks(2);
        assert_eq!(tasks.len(), 2 * 8 * (1 + 2 * 2));
        let changes = tasks.windows(2).filter(|two| plan.site(two[0].condition) != plan.site(two[1].condition));
        assert_eq!(changes.count(), 4, "a network is made for each condition");
        assert_eq!(plan.samples(), 5000);
    }

    #[test]
    fn conditions_are_read_from_their_names_in_campaigns() {
        let read = |text: &str| text.parse::<Condition>();
        assert_eq!(read("idle"), Ok(Condition::Idle));
        assert_eq!(read("overload-100"), Ok(Condition::Overload(100)));
        assert_eq!(read("controller-1400"), Ok(Condition::Controlled(1400)));
        assert_eq!(read("failed-link-1400"), Ok(Condition::Failed(1400)));
        for wrong in ["", "busy", "overload", "overload-20", "overload-x", "idle-100"] {
            read(wrong).unwrap_err();
        }
    }

    #[test]
    fn link_rate_is_half_the_maximum_rate_of_the_overload() {
        let plan = plan();
        assert_eq!(plan.megabits_for(Condition::Idle), 100);
        assert_eq!(plan.megabits_for(Condition::Overload(1400)), 100);
        // 40,000 frames of 124 octets on the wire are 39.7 Mbit/s, twice the rate of the link.
        assert_eq!(plan.megabits_for(Condition::Controlled(100)), 19);
    }

    #[test]
    fn ring_always_has_a_controller() {
        let plan = Plan { topology: Topology::Ring, ..plan() };
        assert!(plan.tasks(1).iter().all(|task| plan.site(task.condition).contracts.is_some()));
        assert!(plan.tasks(1).iter().any(|task| task.condition == Condition::Failed(1400)));
    }
}
