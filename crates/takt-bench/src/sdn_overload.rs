//! A pair under an overload of its link, with and without the OpenFlow controller: the experiment of Choi, King and Lee, "OpenFlow makes DDS
//! really real-time" (2016).
//!
//! | module | what it is |
//! |---|---|
//! | [`category`] | reliability and history depth |
//! | [`site`] | three hosts and a switch, with or without the controller |
//! | [`side`] | the processes that publish and subscribe |
//! | [`flood`] | the overload: so long on, so long off |
//! | [`series`] | losses, normalised latency and cumulative count of one run |
//! | [`outcome`] | the figures of all runs; tables |
//!
//! A sample is due every period. The **normalised latency** of sample i is its arrival less `i * period + t_0`, where `t_0` is the arrival of
//! the first sample, which comes before the overload. The **cumulative count** is that of samples that have arrived by a time.
//!
//! Each combination runs three times: idle, with the overload, and with the overload and the controller. Processes run with SCHED_FIFO, since the
//! switch, the hosts and the overload share the processors of one machine: the switch before the pair before the overload.

pub mod category;
pub mod flood;
pub mod outcome;
pub mod series;
pub mod side;
pub mod site;

use crate::campaign::Column;
use crate::campaign::child::{Child, Placement};
use crate::campaign::wait_until_alone;
use crate::error::{Error, Result};
use crate::signal::stopped;
use category::Category;
use flood::{Flood, FloodPlan};
use outcome::{Cell, Outcome};
use serde::{Deserialize, Serialize};
use series::Series;
use side::SidePlan;
use site::{PUBLISHER, SUBSCRIBER, Site};
use std::ffi::CString;
use std::path::PathBuf;
use std::time::Duration;

/// A participant may take so long to start, or to find the other.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Time for a run beyond that of its samples: a reliable writer waits for acknowledgements.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// The SCHED_FIFO priority of the pair, below that of the switch.
const FIFO: u8 = 20;
/// Consecutive runs use different domains, so that a late datagram of one does not reach the next. The controller intercepts the ports of
/// domains 0 to 9.
const DOMAINS: u32 = 8;
const DOMAIN_FIRST: u32 = 1;
/// The program that plays both roles of CycloneDDS, in Python.
const CYCLONE: &str = include_str!("sdn_overload/cyclone.py");
/// CycloneDDS uses one port for discovery and samples otherwise, and datagrams above the MTU.
const CYCLONE_URI: &str = "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"eth0\"/></Interfaces>\
                           <MaxMessageSize>1400B</MaxMessageSize><FragmentSize>1300B</FragmentSize></General>\
                           <Discovery><ParticipantIndex>auto</ParticipantIndex></Discovery></Domain></CycloneDDS>";

/// The experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// A Python with the module `cyclonedds`, to measure that too.
    pub cyclone: Option<PathBuf>,
    /// Reliability and history depths.
    pub categories: Vec<Category>,
    /// Octets of data in a sample.
    pub sizes: Vec<usize>,
    /// Octets of a frame of the overload.
    pub backgrounds: Vec<usize>,
    /// Length of each run, seconds.
    pub seconds: u64,
    /// Time from one sample to the next, ns.
    pub period_ns: u64,
    /// Rate of the link to the subscriber, Mbit/s.
    pub megabits: u32,
    /// Frames that the queue of all other traffic holds.
    pub frames: u32,
}

/// What a run has besides the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Nothing.
    Idle,
    /// The overload, in frames of so many octets.
    Overload(usize),
    /// The overload and the controller.
    Controlled(usize),
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
struct Task {
    program: String,
    category: Category,
    size: usize,
    condition: Condition,
}

impl Plan {
    fn programs(&self) -> Vec<String> {
        let cyclone = self.cyclone.as_ref().map(|_| "cyclonedds".to_owned());
        std::iter::once("takt".to_owned()).chain(cyclone).collect()
    }

    /// The runs: an idle one first, then the others with the same pair.
    fn tasks(&self) -> Vec<Task> {
        let of_pair = |program: &String, category: Category, size: usize| {
            let with = self
                .backgrounds
                .iter()
                .flat_map(|octets| [Condition::Overload(*octets), Condition::Controlled(*octets)]);
            let conditions = std::iter::once(Condition::Idle).chain(with);
            let task = |condition| Task { program: program.clone(), category, size, condition };
            conditions.map(task).collect::<Vec<_>>()
        };
        let mut tasks = Vec::new();
        for program in &self.programs() {
            for category in &self.categories {
                self.sizes.iter().for_each(|size| tasks.extend(of_pair(program, *category, *size)));
            }
        }
        tasks
    }

    fn samples(&self) -> u64 {
        self.seconds * 1_000_000_000 / self.period_ns
    }
}

/// Measures. `program` followed by `words`, a role and a plan plays that role ([`side::run`]); `progress` is called with each run before it
/// begins. Waits until it is the only campaign on the machine.
///
/// # Errors
/// Not root, no Open vSwitch, a pair was not admitted, a process failed, or a signal asked to stop. Nothing is left behind in any case.
pub fn run(
    plan: &Plan,
    program: PathBuf,
    words: &[&str],
    command: String,
    progress: &mut dyn FnMut(&str),
) -> Result<Outcome> {
    let _alone = wait_until_alone()?;
    let prefix = words.iter().map(ToString::to_string).collect();
    let takt = Column { name: "takt".into(), program, prefix, ..Column::default() };
    let python = plan.cyclone.clone().unwrap_or_default();
    let prefix = vec!["-c".to_owned(), CYCLONE.to_owned()];
    let cyclone = Column { name: "cyclonedds".into(), program: python, prefix, ..Column::default() };
    let mut bench =
        Bench { plan, columns: [takt, cyclone], plain: Site::new(plan, false)?, controlled: None, domain: 0 };
    bench.controlled = Some(Site::new(plan, true)?);
    let mut outcome = Outcome::new(plan.clone(), command);
    let tasks = plan.tasks();
    for (place, task) in tasks.iter().enumerate() {
        if stopped() {
            return Err(Error::Stopped);
        }
        let Task { program, category, size, condition } = task;
        progress(&format!("{} of {}: {program}, {category}, {size} B, {condition}", place + 1, tasks.len()));
        // A signal from the keyboard stops the children, too, and their ends are no failures then.
        let cell = bench.measure(task).map_err(|why| if stopped() { Error::Stopped } else { why })?;
        outcome.push(cell);
    }
    Ok(outcome)
}

struct Bench<'a> {
    plan: &'a Plan,
    columns: [Column; 2],
    plain: Site,
    controlled: Option<Site>,
    domain: u32,
}

impl Bench<'_> {
    fn measure(&mut self, task: &Task) -> Result<Cell> {
        self.domain = (self.domain + 1) % DOMAINS;
        let plan = self.plan;
        let is_controlled = matches!(task.condition, Condition::Controlled(_));
        let site = self.controlled.as_mut().filter(|_| is_controlled).unwrap_or(&mut self.plain);
        let column = self.columns.iter().find(|column| column.name == task.program).unwrap_or(&self.columns[0]);
        let side = SidePlan {
            domain: DOMAIN_FIRST + self.domain,
            category: task.category,
            size: task.size,
            period_ns: plan.period_ns,
            count: plan.samples(),
        };
        site.begin();
        let mut subscriber = start(column, "overload-subscribe", site, SUBSCRIBER, &side)?;
        subscriber.wait_for("ready", READY_LIMIT)?;
        let mut publisher = start(column, "overload-publish", site, PUBLISHER, &side)?;
        publisher.wait_for("matched", READY_LIMIT)?;
        subscriber.wait_for("matched", READY_LIMIT)?;
        site.wait_until_admitted(READY_LIMIT)?;
        let frame_len = match task.condition {
            Condition::Idle => None,
            Condition::Overload(octets) | Condition::Controlled(octets) => Some(octets),
        };
        let flood = frame_len.map(|frame_len| {
            Flood::start(site, FloodPlan { frame_len, bits_per_second: 2_000_000 * u64::from(plan.megabits) })
        });
        let flood = flood.transpose()?;
        publisher.tell("go")?;
        let length = Duration::from_secs(plan.seconds);
        let published = publisher.wait_for("result", RUN_LIMIT + 2 * length)?;
        let flood = flood.map(Flood::stop);
        subscriber.tell("report")?;
        let received = subscriber.wait_for("result", RUN_LIMIT)?;
        for child in [&mut publisher, &mut subscriber] {
            child.stop()?;
        }
        let series = Series::parse(&published, &received, plan.period_ns)?;
        Ok(Cell::new(task.program.clone(), (task.category, task.size, task.condition), &series, flood))
    }
}

fn start<'a>(column: &'a Column, role: &'static str, site: &Site, host: &str, plan: &SidePlan) -> Result<Child<'a>> {
    let text = serde_json::to_string(plan).map_err(|why| Error::os("JSON", why.into()))?;
    let namespace = CString::new(site.namespace(host)).map_err(|why| Error::Usage(why.to_string()))?;
    let place = Placement { cpu: None, fifo: Some(FIFO), namespace: Some(namespace) };
    Child::start(column, role, &[text, CYCLONE_URI.to_owned()], place)
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Overload(octets) => write!(f, "overload of {octets} B"),
            Self::Controlled(octets) => write!(f, "overload of {octets} B, controller"),
        }
    }
}
