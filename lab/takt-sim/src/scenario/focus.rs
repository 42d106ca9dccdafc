//! Focused worlds: small worlds that exercise one mechanism each, which random worlds exercise too
//! rarely. This module has runs of lost best-effort samples, partition changes while samples wait,
//! suspended publications, long histories, and readers that join a participant with a matched
//! reader. Other modules have further mechanisms.

use super::{
    Alteration, AlterationPlan, Direction, EndpointPlan, Fault, FaultKind, HostPlan, Impairment, NetworkPlan,
    ProcessPlan, QosPlan, Role, Scenario, TopicPlan,
};
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::rng::Rng;

/// Mechanism of a focused world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Focus {
    /// Best-effort samples are lost one by one and in runs.
    Losses,
    /// Writers change their partition while samples wait for their LATENCY_BUDGET.
    Movers,
    /// `suspend_publications` and `resume_publications`, in an exact world.
    Suspensions,
    /// One participant keeps many long histories.
    Archives,
    /// Readers join a participant that has a reader of the same writer, over a link that loses
    /// datagrams in both directions.
    Joiners,
    /// The owner of instances ends or stops writing, and a weaker writer takes over, in an exact
    /// world.
    Owners,
    /// DESTINATION_ORDER by source timestamp, with writers of different latency, and wall clocks
    /// that are set back.
    Orders,
    /// Writers that end most of their instances and write few samples.
    Endings,
    /// `write_batch` and `take_batch`, with batches that exceed histories.
    Batches,
    /// Participants, topics, writers and readers are ignored.
    Ignoring,
    /// Static endpoints.
    Statics,
    /// PARTITION with patterns and with several names.
    Patterns,
    /// Applications that read before they take.
    Reading,
    /// Worlds of more than an hour, with leases and deadlines of minutes.
    Hours,
    /// Counts of heartbeats and acknowledgments, and the seconds of clocks, that pass 2^31.
    Counts,
    /// Two durability services.
    Services,
    /// Participants that request types from each other.
    Lookups,
    /// SQL content filters whose parameters change.
    Filters,
    /// DDS Security: grants, an insider that violates them, a participant without a grant,
    /// handshakes under faults, and renewed session keys.
    Secured,
}

impl Focus {
    /// All mechanisms.
    pub const ALL: [Self; 19] = [
        Self::Losses,
        Self::Movers,
        Self::Suspensions,
        Self::Archives,
        Self::Joiners,
        Self::Owners,
        Self::Orders,
        Self::Endings,
        Self::Batches,
        Self::Ignoring,
        Self::Statics,
        Self::Patterns,
        Self::Reading,
        Self::Hours,
        Self::Counts,
        Self::Services,
        Self::Lookups,
        Self::Filters,
        Self::Secured,
    ];
}

/// Groups of mechanisms with common random numbers: group size in the order of [`Focus::ALL`], salt
/// of the seed, and chance in a million. A later mechanism gets a new group, so that most existing
/// worlds stay unchanged, including those in the table of deliberate bugs.
const FOCUS_GROUPS: [(usize, u64, u32); 4] =
    [(8, 0x666f_6375, 100_000), (3, 0x666f_6332, 60_000), (7, 0x666f_0000_009b, 80_000), (1, 0x666f_0000_00a3, 30_000)];

/// Maximum LATENCY_BUDGET that readers request where writers have one.
const BUDGET_MAX: Nanos = 20 * MILLISECOND;

impl Scenario {
    /// Returns the mechanism of the world of a seed, if any. Uses separate random numbers, so that
    /// other worlds stay unchanged.
    #[must_use]
    pub fn focus_of(seed: u64) -> Option<Focus> {
        let mut rest = &Focus::ALL[..];
        FOCUS_GROUPS.into_iter().find_map(|(count, salt, chance)| {
            let (these, later) = rest.split_at(count);
            rest = later;
            let mut rng = Rng::new(seed ^ salt);
            rng.chance(chance).then(|| *rng.pick(these))
        })
    }

    /// Returns a world of this mechanism.
    #[must_use]
    pub fn focused_on(focus: Focus, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x666f_6375_7365_6422);
        let active = rng.between(2 * SECOND, 4 * SECOND);
        let hosts = rng.between(2, 3) as usize;
        let host = HostPlan { drift_ppb: 0, wall_jumps: vec![], hears_multicast: true, switch: 0 };
        let process = |host| ProcessPlan {
            host,
            start: host as Nanos * 100_000,
            ends: vec![],
            stalls: vec![],
            cost: 0,
            endpoints: vec![],
        };
        let mut world = Self {
            seed,
            active,
            hosts: vec![host; hosts],
            network: NetworkPlan { propagation: rng.between(500, 50_000), ..NetworkPlan::PLAIN },
            topics: vec![],
            processes: (0..hosts).map(process).collect(),
            ..Self::default()
        };
        match focus {
            Focus::Losses => world.add_losses(&mut rng),
            Focus::Movers => world.move_writers(&mut rng),
            Focus::Suspensions => world.suspend(&mut rng),
            Focus::Archives => world.archive(&mut rng),
            Focus::Joiners => world.join(&mut rng),
            Focus::Owners => world.change_owner(&mut rng),
            Focus::Orders => world.order(&mut rng),
            Focus::Endings => world.end_instances(&mut rng),
            Focus::Batches => world.write_batches(&mut rng),
            Focus::Ignoring => world.ignore_others(&mut rng),
            Focus::Statics => world.match_by_list(&mut rng),
            Focus::Patterns => world.match_by_pattern(&mut rng),
            Focus::Reading => world.read_before_taking(&mut rng),
            Focus::Hours => world.last_for_hours(&mut rng),
            Focus::Counts => world.pass_boundaries(&mut rng),
            Focus::Services => return Self::served_twice(seed),
            Focus::Lookups => world.add_type_requests(&mut rng),
            Focus::Filters => world.filter_by_content(&mut rng),
            Focus::Secured => world.plan_domain(&mut rng),
        }
        world
    }

    fn add_losses(&mut self, rng: &mut Rng) {
        for topic in 0..rng.between(1, 2) as usize {
            self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes: (24, 1_000) });
            for _ in 0..rng.between(1, 2) {
                let burst = rng.between(1, 4);
                let period = rng.between(2, 20) * MILLISECOND * burst;
                let role = Role::Writer { period, burst: burst as u32, samples: 2_000, endings: 0 };
                self.add(0, topic, QosPlan::default(), role, 0);
            }
            for _ in 0..rng.between(1, 3) {
                let qos = QosPlan { transient_local: false, ..QosPlan::default() };
                let create = if rng.chance(600_000) { 0 } else { rng.below(self.active / 2) };
                self.add(self.other(rng), topic, qos, Role::Reader { period: 0 }, create);
            }
        }
        for _ in 0..rng.between(1, 2) {
            let impairment =
                *rng.pick(&[Impairment::Loss(100_000), Impairment::Loss(300_000), Impairment::Burst(20_000, 200_000)]);
            self.add_impairment(rng.below(self.hosts.len() as u64) as usize, impairment, rng);
        }
    }

    fn move_writers(&mut self, rng: &mut Rng) {
        self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes: (24, 200) });
        let writers = rng.between(1, 2) as usize;
        for _ in 0..writers {
            let budget = *rng.pick(&[5, 10, 20]) * MILLISECOND;
            let qos = QosPlan { reliable: rng.chance(500_000), budget, ..QosPlan::default() };
            let role = Role::Writer { period: rng.between(1, 5) * MILLISECOND, burst: 1, samples: 5_000, endings: 0 };
            self.add(0, 0, qos, role, 0);
        }
        for partition in [0, 1, 0, 1].into_iter().take(rng.between(2, 4) as usize) {
            let reliable = rng.chance(500_000);
            let qos = QosPlan { reliable, partition, budget: BUDGET_MAX, ..QosPlan::default() };
            self.add(self.other(rng), 0, qos, Role::Reader { period: 0 }, 0);
        }
        let mut at = rng.between(300, 600) * MILLISECOND;
        let mut partition = 1;
        while at < self.active {
            let what = Alteration::Partition(partition);
            let endpoint = rng.below(writers as u64) as usize;
            self.alterations.push(AlterationPlan { at, process: 0, endpoint, what, time: 0 });
            partition = 1 - partition;
            at += rng.between(50, 500) * MILLISECOND + rng.below(MILLISECOND);
        }
        let endpoint = rng.below(writers as u64) as usize;
        let (what, at) = (Alteration::UserData(rng.between(1, 200) as u8), self.active - MILLISECOND);
        self.alterations.push(AlterationPlan { at, process: 0, endpoint, what, time: 0 });
    }

    fn suspend(&mut self, rng: &mut Rng) {
        self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes: (24, 200) });
        let writers = rng.between(1, 2) as usize;
        for _ in 0..writers {
            let qos = QosPlan { reliable: rng.chance(500_000), ..QosPlan::default() };
            let role = Role::Writer { period: rng.between(10, 30) * MILLISECOND, burst: 1, samples: 5_000, endings: 0 };
            self.add(0, 0, qos, role, 0);
        }
        for _ in 0..rng.between(1, 3) {
            let qos = QosPlan { reliable: rng.chance(500_000), ..QosPlan::default() };
            let create = if rng.chance(700_000) { 0 } else { rng.below(self.active) };
            self.add(self.other(rng), 0, qos, Role::Reader { period: 0 }, create);
        }
        for endpoint in 0..writers {
            let mut at = rng.between(200, 1_000) * MILLISECOND;
            loop {
                let time = rng.between(MILLISECOND, 400 * MILLISECOND);
                if at + time >= self.active {
                    break;
                }
                let what = Alteration::Suspended(true);
                self.alterations.push(AlterationPlan { at, process: 0, endpoint, what, time });
                at += time + rng.between(MILLISECOND, 800 * MILLISECOND);
            }
        }
    }

    fn archive(&mut self, rng: &mut Rng) {
        let writers = rng.between(10, 16) as usize;
        let history = QosPlan { reliable: true, transient_local: true, ..QosPlan::default() };
        for topic in 0..writers {
            self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes: (24, 24) });
            let samples = rng.between(2_000, 4_000) as u32;
            self.add(0, topic, history, Role::Writer { period: 20 * MILLISECOND, burst: 60, samples, endings: 0 }, 0);
        }
        // Samples and announcements of other participants after the long histories.
        self.topics.push(TopicPlan { instances: 0, sizes: (24, 24) });
        let role = Role::Writer { period: 10 * MILLISECOND, burst: 1, samples: 5_000, endings: 0 };
        self.add(1, writers, history, role, 0);
        self.add(0, writers, history, Role::Reader { period: 0 }, 0);
        for _ in 0..rng.between(1, 3) {
            let topic = rng.below(writers as u64) as usize;
            let qos = QosPlan { transient_local: rng.chance(700_000), ..history };
            let create = rng.below(self.active);
            self.add(self.other(rng), topic, qos, Role::Reader { period: 0 }, create);
        }
    }

    fn join(&mut self, rng: &mut Rng) {
        self.topics.push(TopicPlan { instances: 0, sizes: (24, 1_000) });
        let qos = QosPlan { reliable: true, ..QosPlan::default() };
        let history = QosPlan { transient_local: rng.chance(300_000), ..qos };
        let burst = rng.between(1, 10);
        let role = Role::Writer { period: 3 * burst * MILLISECOND, burst: burst as u32, samples: 5_000, endings: 0 };
        self.add(0, 0, history, role, 0);
        self.add(1, 0, qos, Role::Reader { period: 0 }, 0);
        for _ in 0..rng.between(12, 24) {
            let create = rng.below(self.active);
            self.add(1, 0, qos, Role::Reader { period: 0 }, create);
        }
        let share = *rng.pick(&[200_000, 300_000, 400_000]);
        for direction in [Direction::Up, Direction::Down] {
            let kind = FaultKind::Link { host: 1, direction, impairment: Impairment::Loss(share) };
            self.faults.push(Fault { from: 0, until: self.active, kind });
        }
    }

    fn change_owner(&mut self, rng: &mut Rng) {
        self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes: (24, 200) });
        let deadline = rng.chance(500_000).then_some(200 * MILLISECOND);
        let qos = QosPlan { reliable: true, deadline, ..QosPlan::default() };
        let period = *rng.pick(&[10, 20, 50]) * MILLISECOND;
        // The owner stops writing, is deleted, or its process ends.
        let silent_after = if deadline.is_some() && rng.chance(500_000) { rng.between(5, 20) as u32 } else { 5_000 };
        let delete = (silent_after == 5_000).then(|| rng.between(self.active / 8, self.active / 3));
        let role = Role::Writer { period, burst: 1, samples: silent_after, endings: 0 };
        let owner = QosPlan { strength: Some(2), ..qos };
        self.processes[0].endpoints.push(EndpointPlan { topic: 0, qos: owner, create: 0, delete, role });
        let role = Role::Writer { period, burst: 1, samples: 5_000, endings: 0 };
        for strength in 0..rng.between(1, 2) as i32 {
            let next = QosPlan { strength: Some(strength), ..qos };
            self.add(self.other(rng), 0, next, role, 0);
        }
        for _ in 0..rng.between(1, 2) {
            let to = QosPlan { strength: Some(0), ..qos };
            self.add(self.other(rng), 0, to, Role::Reader { period: 0 }, 0);
        }
    }

    fn order(&mut self, rng: &mut Rng) {
        self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes: (24, 200) });
        let qos = QosPlan { reliable: rng.chance(700_000), by_source: true, ..QosPlan::default() };
        for at in 0..rng.between(2, 3) as usize {
            let budget = *rng.pick(&[0, 5, 20]) * MILLISECOND;
            let role = Role::Writer { period: rng.between(2, 20) * MILLISECOND, burst: 1, samples: 5_000, endings: 0 };
            self.add(at % self.processes.len(), 0, QosPlan { budget, ..qos }, role, 0);
        }
        for _ in 0..rng.between(1, 2) {
            let period = *rng.pick(&[0, 0, 50]) * MILLISECOND;
            let to = QosPlan { budget: BUDGET_MAX, by_source: rng.chance(700_000), ..qos };
            self.add(self.other(rng), 0, to, Role::Reader { period }, 0);
        }
        if rng.chance(400_000) {
            let by = -(rng.between(1, 10_000) as i64 * MILLISECOND as i64);
            self.hosts[0].wall_jumps.push((rng.between(self.active / 4, self.active / 2), by));
        }
    }

    fn end_instances(&mut self, rng: &mut Rng) {
        let mut purges = Rng::new(self.seed ^ 0x7075_7267_6573);
        for topic in 0..rng.between(4, 8) as usize {
            self.topics.push(TopicPlan { instances: rng.between(1, 3) as u8, sizes: (24, 200) });
            let qos = QosPlan { reliable: true, transient_local: rng.chance(500_000), ..QosPlan::default() };
            let (period, samples) = (rng.between(30, 200) * MILLISECOND, rng.between(3, 12) as u32);
            self.add(0, topic, qos, Role::Writer { period, burst: 1, samples, endings: 400_000 }, 0);
            for _ in 0..rng.between(1, 2) {
                let period = *rng.pick(&[0, 0, 400]) * MILLISECOND;
                let create = if rng.chance(700_000) { 0 } else { rng.below(self.active) };
                let transient_local = qos.transient_local && rng.chance(500_000);
                // Ended instances are purged before the next take, or only after it. In the second
                // case, samples that arrived meanwhile stay.
                let delay = *purges.pick(&[100, 500]) * MILLISECOND;
                let purge = (period > 0 && rng.chance(700_000)).then_some(delay);
                let to = QosPlan { transient_local, purge, ..qos };
                self.add(self.other(rng), topic, to, Role::Reader { period }, create);
            }
        }
    }

    pub(super) fn add(&mut self, process: usize, topic: usize, qos: QosPlan, role: Role, create: Nanos) {
        self.processes[process].endpoints.push(EndpointPlan { topic, qos, create, delete: None, role });
    }

    /// Returns the index of a process other than the first one.
    pub(super) fn other(&self, rng: &mut Rng) -> usize {
        rng.between(1, self.processes.len() as u64 - 1) as usize
    }

    pub(super) fn add_impairment(&mut self, host: usize, impairment: Impairment, rng: &mut Rng) {
        let direction = *rng.pick(&[Direction::Up, Direction::Down]);
        let from = rng.below(self.active / 2);
        let kind = FaultKind::Link { host, direction, impairment };
        self.faults.push(Fault { from, until: self.active, kind });
    }
}
