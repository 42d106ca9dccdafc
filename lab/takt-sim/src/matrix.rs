//! Fault matrix: results of a writer and a reader under each combination of faults, as a page for
//! `docs/`.
//!
//! The world has one writer and one reader on two hosts with one switch between them. The reader's
//! link loses, duplicates and delays frames in both directions while the writer writes. A partition
//! occurs meanwhile. The same code gives the same page, which a test verifies.

use std::fmt::Write as _;

use crate::check::Violation;
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::rng::MILLION;
use crate::scenario::{
    Direction, Discipline, EndpointPlan, Fault, FaultKind, HostPlan, Impairment, NetworkPlan, ProcessPlan, QosPlan,
    Role, Scenario, TopicPlan,
};
use crate::swarm;
use crate::timeline::Quiet;

/// Path of the page, from the root of the repository.
pub const DOCUMENT: &str = "docs/reference/fault-matrix.md";

/// Command that generates the page.
pub const COMMAND: &str = "cargo xtask sim --matrix";

/// Loss in each direction, in percent of the frames.
pub const LOSSES: [u32; 4] = [0, 1, 10, 30];

/// Share of the frames that are duplicated, or delayed.
const SHARE: u32 = MILLION / 10;

/// Maximum delay of a frame that later ones overtake.
const REORDER_DELAY: Nanos = 5 * MILLISECOND;

/// Start of the writer and of the link faults.
const WRITE: Nanos = SECOND;

/// Start of the partition.
const PARTITION_START: Nanos = 2 * SECOND;

/// Duration of writing after the partition.
const WRITE_AFTER: Nanos = 2 * SECOND;

/// Partition between the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionKind {
    /// No partition.
    None,
    /// One second, in both directions.
    Symmetric,
    /// One second, from the writer to the reader.
    OneWay,
    /// One second, repeatedly on and off.
    Flapping,
    /// Four seconds, which exceeds the lease of three.
    Long,
}

impl PartitionKind {
    const ALL: [Self; 5] = [Self::None, Self::Symmetric, Self::OneWay, Self::Flapping, Self::Long];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Symmetric => "both ways, 1 s",
            Self::OneWay => "one way, 1 s",
            Self::Flapping => "flapping",
            Self::Long => "both ways, 4 s",
        }
    }

    fn duration(self) -> Nanos {
        match self {
            Self::None => 0,
            Self::Symmetric | Self::OneWay | Self::Flapping => SECOND,
            Self::Long => 4 * SECOND,
        }
    }
}

/// Row of the page: all parameters except the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    reliable: bool,
    size: usize,
    partition: PartitionKind,
    duplication: bool,
    reordering: bool,
}

/// Result of one combination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Samples that arrived per second while the writer wrote.
    samples_per_second: u64,
    recovery: Option<Nanos>,
    /// Violated rule.
    pub violation: Option<Violation>,
}

impl Row {
    /// Returns all rows in the order of the page.
    pub fn all() -> impl Iterator<Item = Self> {
        let kinds = [(true, 100), (true, 100_000), (false, 100), (false, 100_000)];
        let partings =
            kinds.into_iter().flat_map(|kind| PartitionKind::ALL.into_iter().map(move |parting| (kind, parting)));
        let others = [(false, false), (true, false), (false, true), (true, true)];
        partings.flat_map(move |((reliable, size), parting)| {
            let row =
                move |(duplication, reordering)| Self { reliable, size, partition: parting, duplication, reordering };
            others.into_iter().map(row)
        })
    }

    /// Returns the world of one combination.
    #[must_use]
    pub fn scenario(&self, loss_percent: u32) -> Scenario {
        let active = PARTITION_START + self.partition.duration() + WRITE_AFTER;
        let max_samples = Some(if self.size > 1_000 { 200 } else { 4_000 });
        let qos = QosPlan { reliable: self.reliable, max_samples, ..QosPlan::default() };
        let period = if self.size > 1_000 { 10 * MILLISECOND } else { MILLISECOND / 2 };
        let process = |host, role| ProcessPlan {
            host,
            start: 0,
            ends: vec![],
            stalls: vec![],
            cost: 0,
            endpoints: vec![EndpointPlan { topic: 0, qos, create: WRITE, delete: None, role }],
        };
        let writer = Role::Writer { period, burst: 1, samples: u32::MAX, endings: 0 };
        Scenario {
            seed: 1,
            active,
            hosts: vec![HostPlan { drift_ppb: 0, wall_jumps: vec![], hears_multicast: true, switch: 0 }; 2],
            network: NetworkPlan {
                switches: 1,
                bits_per_second: 1_000_000_000,
                propagation: 10_000,
                queue_bytes: 256_000,
                discipline: Discipline::Fifo,
                mtu: 1_500,
                ..NetworkPlan::PLAIN
            },
            topics: vec![TopicPlan { instances: 0, sizes: (self.size, self.size) }],
            processes: vec![process(0, writer), process(1, Role::Reader { period: 0 })],
            faults: self.faults(loss_percent, active),
            ..Scenario::default()
        }
    }

    fn faults(&self, loss_percent: u32, active: Nanos) -> Vec<Fault> {
        let impairments = [
            (loss_percent > 0, Impairment::Loss(loss_percent * (MILLION / 100))),
            (self.duplication, Impairment::Duplication(SHARE)),
            (self.reordering, Impairment::Reordering(SHARE, REORDER_DELAY)),
        ];
        let impairments = impairments.into_iter().filter(|(on, _)| *on);
        let link = |(_, impairment)| {
            [Direction::Up, Direction::Down].map(|direction| Fault {
                from: WRITE,
                until: active,
                kind: FaultKind::Link { host: 1, direction, impairment },
            })
        };
        let one_way = self.partition == PartitionKind::OneWay;
        let flapping = if self.partition == PartitionKind::Flapping { 100 * MILLISECOND } else { 0 };
        let partition = Fault {
            from: PARTITION_START,
            until: PARTITION_START + self.partition.duration(),
            // The group consists of the writer's host.
            kind: FaultKind::Partition { group: 1, one_way, flapping },
        };
        let active_partition = (self.partition != PartitionKind::None).then_some(partition);
        impairments.flat_map(link).chain(active_partition).collect()
    }

    /// Runs one combination.
    #[must_use]
    pub fn run(&self, loss_percent: u32) -> Outcome {
        let scenario = self.scenario(loss_percent);
        let report = swarm::run(&scenario, &mut Quiet);
        Outcome {
            samples_per_second: (report.taken_while_active * SECOND).div_ceil(scenario.active - WRITE),
            recovery: report.recovery,
            violation: report.violation,
        }
    }

    /// Returns the row of the page, and appends the violations to `broken`.
    pub fn line(&self, broken: &mut Vec<String>) -> String {
        let mark = |on: bool| if on { "10 %" } else { "-" };
        let mut line = format!(
            "| {} | {} | {} | {} | {} |",
            if self.reliable { "reliable" } else { "best effort" },
            if self.size > 1_000 { "100 KB" } else { "100 B" },
            self.partition.name(),
            mark(self.duplication),
            mark(self.reordering),
        );
        for loss in LOSSES {
            let outcome = self.run(loss);
            // Writing to a string does not fail.
            let _ = write!(line, " {} |", self.cell(&outcome));
            if let Some(violation) = outcome.violation {
                broken.push(format!("{self:?} with {loss} % loss: {violation}"));
            }
        }
        line
    }

    fn cell(&self, outcome: &Outcome) -> String {
        let samples = outcome.samples_per_second;
        let megabytes = samples as f64 * self.size as f64 / 1e6;
        let mut text = format!("{samples}/s {megabytes:.2} MB/s");
        if self.partition != PartitionKind::None {
            let recovery = outcome.recovery.map_or("never".to_owned(), |time| format!("{:.1} ms", time as f64 / 1e6));
            text = format!("{text}, {recovery}");
        }
        text
    }
}

/// Returns the whole page, or the violations.
pub fn page() -> Result<String, Vec<String>> {
    let mut broken = Vec::new();
    let mut page = HEAD.to_owned();
    for row in Row::all() {
        page.push_str(&row.line(&mut broken));
        page.push('\n');
    }
    if broken.is_empty() { Ok(page) } else { Err(broken) }
}

const HEAD: &str = "\
# Fault matrix

What one writer and one reader achieve in the simulated world ([simulation.md](../design/simulation.md)) under each combination of
faults. `cargo xtask sim --matrix` writes this page. It comes from a simulation, so it is exact: a test computes it again and
compares. A change of the protocol that changes it is a change to look at. All checkers were on, and no promise was broken.

**The world.** Two hosts, one switch, links of 1 Gbit/s and 10 us, queues of 256 KB. The writer writes 2,000 samples of 100
octets a second, or 100 samples of 100,000 octets, with KEEP_ALL, from 1 s before the partition until 2 s after it. A RELIABLE
writer stops for as long as its history of 4,000 or 200 samples is full.

**The faults**, on the reader's link in both directions while the writer writes: loss of each frame by chance; duplication of
10 % of the frames; reordering, which delays 10 % of the frames by up to 5 ms. The partition: one way means
that frames to the reader are lost and those to the writer arrive; flapping means 100 ms on, 100 ms off for 1 s. The long one
outlasts the lease of 3 s: both sides take each other for gone and have to find one another again.

**The figures.** Throughput: samples that the reader took while the writer wrote, per second of that time, the partition
included; and their octets. Recovery: from the heal of the partition until the reader has everything that was written before
it and is owed; where nothing is owed, for BEST_EFFORT or after the lease has ended, until the next sample arrives; never, if
none did. A sample of 100,000 octets is some 70 frames, all of which a best-effort reader needs: at 10 % loss one of 1,600
samples arrives. Each cell is one run of one seed, so the page shows no spread. The load is what the writer offers, which the
links carry without loss: a slower protocol would not show in the columns of little loss. Recovery from the long partition
depends on when the next announcement is due in that world.

| QoS | sample | partition | doubled | reordered | no loss | 1 % loss | 10 % loss | 30 % loss |
|---|---|---|---|---|---|---|---|---|
";
