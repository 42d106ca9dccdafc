//! System description: TOML with names and units, converted to the system that the analysis takes.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use takt::real_time::Priority;
use takt_calculus::link::{UDP_HEADERS, frame_time_ns};
use takt_calculus::system::Server;
use takt_calculus::{Arrivals, Flow, MeasuredTime, Resource, Stage, System};

use super::job_statistics::Measurements;
use super::protection::{Operation, Protected};
use super::quantity::{rate, some_time, time};

/// Maximum octets that RTPS adds to a sample in a datagram: header, timestamp, DATA_FRAG with its
/// key hash and status, and a heartbeat.
pub const RTPS_OCTETS: u64 = 128;

/// Default MTU of a link, in octets.
const MTU: u64 = 1500;

/// Name of the resource of network stages.
const NETWORK: &str = "network";

/// Octets of the IPv4 and UDP headers of each packet.
const IP_UDP: u64 = 28;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Files of job statistics, relative to this file.
    #[serde(default)]
    pub(super) measured: Vec<PathBuf>,
    /// Factor by which measured times are multiplied.
    #[serde(default)]
    pub(super) margin: Option<f64>,
    #[serde(default)]
    executor: Vec<Executor>,
    #[serde(default)]
    link: Vec<Link>,
    #[serde(default)]
    flow: Vec<FlowEntry>,
}

impl File {
    /// Returns executors with the files of protection costs of their machines.
    pub(super) fn protection(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.executor.iter().filter_map(|executor| Some((executor.name.as_str(), executor.protection.as_deref()?)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Executor {
    name: String,
    /// File with the protection costs of the executor's machine, relative to this file.
    #[serde(default)]
    protection: Option<PathBuf>,
    /// Longest time that a job waits for locks that calls of other threads hold.
    #[serde(default, deserialize_with = "some_time")]
    lock: Option<u64>,
    /// Execution time of one job that receives, sends or runs timers at normal priority.
    #[serde(default, deserialize_with = "some_time")]
    normal: Option<u64>,
}

#[derive(Deserialize, Clone, Copy)]
struct LinkSpeed {
    bits_per_second: u64,
    mtu: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    name: String,
    #[serde(deserialize_with = "rate")]
    rate: u64,
    #[serde(default)]
    mtu: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowEntry {
    name: String,
    #[serde(default)]
    topic: Option<String>,
    #[serde(default, deserialize_with = "some_time")]
    min_separation: Option<u64>,
    #[serde(default, deserialize_with = "time")]
    jitter: u64,
    #[serde(default)]
    burst: Option<u64>,
    #[serde(default, deserialize_with = "some_time")]
    limit: Option<u64>,
    stages: Vec<StageEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StageEntry {
    #[serde(default)]
    on: Option<String>,
    #[serde(default)]
    priority: Option<i32>,
    /// Longest time of the network between two hosts.
    #[serde(default, deserialize_with = "some_time")]
    network: Option<u64>,
    #[serde(default, deserialize_with = "some_time")]
    time: Option<u64>,
    #[serde(default)]
    measured: Option<Jobs>,
    #[serde(default, deserialize_with = "time")]
    time_min: u64,
    /// Octets of plaintext that one piece protects, by the name of the protection.
    #[serde(default)]
    seals: BTreeMap<String, u64>,
    /// Octets of plaintext whose protection one piece verifies and removes, by the name of the
    /// protection.
    #[serde(default)]
    opens: BTreeMap<String, u64>,
    #[serde(default)]
    pieces: Option<u64>,
    #[serde(default)]
    sample: Option<u64>,
    #[serde(default, deserialize_with = "time")]
    delay: u64,
    #[serde(default, deserialize_with = "time")]
    delay_min: u64,
}

impl StageEntry {
    /// Returns the octets that one piece seals and opens.
    fn protected(&self) -> Vec<Protected<'_>> {
        let seals = self.seals.iter().map(|(layer, octets)| (Operation::Seal, layer.as_str(), *octets));
        let opens = self.opens.iter().map(|(layer, octets)| (Operation::Open, layer.as_str(), *octets));
        seals.chain(opens).collect()
    }
}

/// Kind of jobs, or one or several named jobs of the application.
#[derive(Deserialize)]
#[serde(untagged)]
enum Jobs {
    One(String),
    Several(Vec<String>),
}

impl Jobs {
    fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

/// Description in the form that the analysis takes.
pub(super) struct Described {
    pub(super) system: System,
    pub(super) measured: Vec<MeasuredTime>,
    /// Topic of each flow, if the file names one.
    pub(super) topics: Vec<Option<String>>,
    /// Index of the network stage of each flow.
    pub(super) networks: Vec<Option<usize>>,
    /// Number of executors. They are the first resources.
    pub(super) executors: usize,
}

/// Resources of stages, by name.
type ResourceMap = BTreeMap<String, (usize, Option<LinkSpeed>)>;

/// Converts a description to a system. Errors are for users.
pub(super) fn describe(file: File, measurements: &Measurements) -> Result<Described, String> {
    let mut resources = Vec::new();
    let mut places = ResourceMap::new();
    let declared: Vec<_> = file.executor.iter().map(|executor| (executor.lock, executor.normal)).collect();
    let executors = declared.len();
    let names = file.executor.into_iter().map(|executor| (executor.name, None));
    let speed = |link: &Link| LinkSpeed { bits_per_second: link.rate, mtu: link.mtu.unwrap_or(MTU) };
    let links = file.link.into_iter().map(|link| (speed(&link), link)).map(|(speed, link)| (link.name, Some(speed)));
    for (name, speed) in names.chain(links) {
        if speed.is_some_and(|speed| speed.mtu <= IP_UDP + RTPS_OCTETS) {
            return Err(format!("link {name:?}: the MTU is too small for a sample"));
        }
        if places.insert(name.clone(), (resources.len(), speed)).is_some() {
            return Err(format!("two executors or links are named {name:?}"));
        }
        resources.push(Resource::new(name));
    }
    measurements.check_executors(resources[..executors].iter().map(|resource| resource.name.as_str()))?;
    let has_network = file.flow.iter().flat_map(|flow| &flow.stages).any(|stage| stage.network.is_some());
    if has_network {
        if places.contains_key(NETWORK) {
            return Err(format!("{NETWORK:?} is reserved for network stages, but an executor or link has that name"));
        }
        places.insert(NETWORK.to_owned(), (resources.len(), None));
        resources.push(Resource::new(NETWORK));
    }
    let topics = file.flow.iter().map(|flow| flow.topic.clone()).collect();
    let mut maker = FlowBuilder {
        resources: places,
        measurements,
        has_network,
        measured: Vec::new(),
        protected: Vec::new(),
        flows: Vec::new(),
        networks: Vec::new(),
    };
    for flow in file.flow {
        maker.add(flow)?;
    }
    let FlowBuilder { flows, mut measured, protected, networks, .. } = maker;
    for (place, (lock, normal)) in declared.into_iter().enumerate() {
        let resource = &mut resources[place];
        let here = flows.iter().flat_map(|flow| &flow.stages).filter(|stage| stage.resource == place);
        let priorities = here.map(|stage| stage.priority);
        resource.lock_ns = lock.unwrap_or_else(|| measurements.lock_ns(&resource.name, priorities));
        let piece_ns = normal
            .unwrap_or_else(|| measurements.normal_ns(&resource.name).max(longest_normal(&flows, &measured, place)));
        let period_ns = Priority::NORMAL_SERVER_PERIOD.as_nanos() as u64;
        let server = Server { priority: Priority::NORMAL.get(), period_ns, piece_ns };
        resource.server = (piece_ns > 0).then_some(server);
    }
    measured.extend(protected);
    Ok(Described { system: System { resources, flows }, measured, topics, networks, executors })
}

/// Returns the longest piece of normal priority on a resource whose time is declared.
fn longest_normal(flows: &[Flow], measured: &[MeasuredTime], resource: usize) -> u64 {
    let stages = flows.iter().enumerate().flat_map(|(flow, known)| {
        let stages = known.stages.iter().enumerate();
        stages.map(move |(at, stage)| ((flow, at), stage))
    });
    let declared = stages.filter(|(place, stage)| {
        let is_measured = measured.iter().any(|time| (time.flow, time.stage) == *place);
        stage.resource == resource && stage.priority == Priority::NORMAL.get() && !is_measured
    });
    declared.map(|(_, stage)| stage.piece_ns).max().unwrap_or(0)
}

/// Builder of flows, in the order of the file.
struct FlowBuilder<'a> {
    resources: ResourceMap,
    measurements: &'a Measurements,
    measured: Vec<MeasuredTime>,
    /// Protection costs that are added to declared times.
    protected: Vec<MeasuredTime>,
    flows: Vec<Flow>,
    networks: Vec<Option<usize>>,
    /// Whether [`NETWORK`] is not the name of an executor or link in the file.
    has_network: bool,
}

impl FlowBuilder<'_> {
    fn add(&mut self, entry: FlowEntry) -> Result<(), String> {
        let wrong = |what: &dyn Display| format!("flow {:?}: {what}", entry.name);
        let arrivals = arrivals_of(&entry).map_err(|what| wrong(&what))?;
        let (mut stages, mut network) = (Vec::new(), None);
        for stage in &entry.stages {
            if let Some(network_ns) = stage.network {
                if network.replace(stages.len()).is_some() {
                    return Err(wrong(&"two network stages"));
                }
                stages.extend(self.network(network_ns, stage).map_err(|what| wrong(&what))?);
            } else {
                stages.push(self.stage(stages.len(), stage, entry.topic.is_none()).map_err(|what| wrong(&what))?);
            }
        }
        if network.is_some() && entry.topic.is_none() {
            return Err(wrong(&"a flow with a network stage needs a topic"));
        }
        if network.is_some() && arrivals.is_none() {
            return Err(wrong(&"a flow with a network stage needs min_separation"));
        }
        self.networks.push(network);
        let place = |stage: &StageEntry| stage.on.as_ref().and_then(|on| self.resources.get(on));
        let on_executor = |stage: &StageEntry| place(stage).is_some_and(|(_, speed)| speed.is_none());
        if let Some(topic) = entry.topic.as_ref().filter(|_| !entry.stages.iter().any(on_executor)) {
            return Err(wrong(&format_args!("topic {topic:?} has no stage on an executor")));
        }
        self.flows.push(Flow { name: entry.name, arrivals, stages, limit_ns: entry.limit });
        Ok(())
    }

    /// Returns the stage of the network and, if there is a delay, the stage of the delay that
    /// follows it on the host.
    fn network(&self, network_ns: u64, entry: &StageEntry) -> Result<Vec<Stage>, &'static str> {
        let StageEntry { on, priority, time, measured, pieces, sample, .. } = entry;
        let is_busy = measured.is_some()
            || [time.is_some(), pieces.is_some(), sample.is_some()].contains(&true)
            || !entry.protected().is_empty();
        if on.is_some() || priority.is_some() || is_busy || entry.time_min > 0 {
            return Err("a network stage allows only the keys delay and delay_min");
        }
        let resource = self.resources.get(NETWORK).map_or(0, |(resource, _)| *resource);
        let pass = |delay_ns, delay_ns_min| Stage {
            resource,
            priority: 0,
            piece_ns: 0,
            piece_ns_min: 0,
            pieces: 1,
            delay_ns,
            delay_ns_min,
        };
        let behind_ns = entry.delay.max(entry.delay_min);
        let behind = (behind_ns > 0).then(|| pass(behind_ns, entry.delay_min));
        Ok([pass(network_ns, 0)].into_iter().chain(behind).collect())
    }

    /// Returns a stage. With `is_abstract`, its priority is not that of an executor of Takt and has
    /// no range.
    fn stage(&mut self, at: usize, entry: &StageEntry, is_abstract: bool) -> Result<Stage, String> {
        let (Some(on), Some(priority)) = (&entry.on, &entry.priority) else {
            return Err("a stage needs on and priority, or network".to_owned());
        };
        let Some((resource, speed)) = self.resources.get(on).copied().filter(|_| on != NETWORK || !self.has_network)
        else {
            return Err(format!("unknown executor or link {on:?}"));
        };
        let range = Priority::MIN.get()..=Priority::MAX.get();
        if speed.is_none() && !is_abstract && !range.contains(priority) {
            return Err(format!("on executor {on:?}: priority {priority} of a topic: expected -64 to 63"));
        }
        let protected_ns = self.protected(at, on, entry, speed.is_some())?;
        let (piece_ns, pieces) = match (speed, entry.time, entry.sample, &entry.measured) {
            (None, declared, None, Some(jobs)) => {
                let place = (self.flows.len(), at);
                let measured = self.measurements.stage_time(on, *priority, jobs.names(), place)?;
                let piece_ns = measured.time_ns().max(declared.unwrap_or(0));
                self.measured.push(measured);
                (piece_ns, entry.pieces.unwrap_or(1))
            }
            (_, Some(time_ns), None, None) => (time_ns, entry.pieces.unwrap_or(1)),
            (Some(speed), None, Some(octets), None) if entry.pieces.is_none() => {
                frames_of(octets, speed).ok_or("a sample that is too large, or a link without rate")?
            }
            (Some(_), ..) => return Err(format!("on link {on:?}: expected either sample, or time and pieces")),
            (None, ..) => return Err(format!("on executor {on:?}: a stage needs a declared or measured time")),
        };
        Ok(Stage {
            resource,
            priority: *priority,
            piece_ns: piece_ns.saturating_add(protected_ns),
            piece_ns_min: entry.time_min,
            pieces,
            delay_ns: entry.delay.max(entry.delay_min),
            delay_ns_min: entry.delay_min,
        })
    }

    /// Returns the time that sealing and opening add to a piece, in nanoseconds.
    fn protected(&mut self, at: usize, on: &str, entry: &StageEntry, is_link: bool) -> Result<u64, String> {
        let protected = entry.protected();
        if protected.is_empty() {
            return Ok(0);
        }
        if is_link {
            return Err(format!("on link {on:?}: seal and open are allowed on executors only"));
        }
        if entry.measured.is_some() {
            return Err(format!("on executor {on:?}: measured times already include seal and open"));
        }
        let time = self.measurements.protection_time(on, &protected, (self.flows.len(), at))?;
        let time_ns = time.time_ns();
        self.protected.push(time);
        Ok(time_ns)
    }
}

fn arrivals_of(entry: &FlowEntry) -> Result<Option<Arrivals>, &'static str> {
    match (entry.min_separation, entry.burst.unwrap_or(1)) {
        (None, 1) if entry.jitter == 0 => Ok(None),
        (None, _) => Err("jitter and burst require min_separation"),
        (Some(_), 0) => Err("a burst of 0"),
        (Some(period_ns), burst) => {
            let arrivals = Arrivals::bursts(period_ns, burst);
            Ok(Some(Arrivals { jitter_ns: arrivals.jitter_ns.saturating_add(entry.jitter), ..arrivals }))
        }
    }
}

/// Returns the transmission time of the longest frame of a sample, and the number of its frames.
fn frames_of(octets: u64, speed: LinkSpeed) -> Option<(u64, u64)> {
    let room = speed.mtu - IP_UDP - RTPS_OCTETS;
    let payload = octets.min(room) + RTPS_OCTETS;
    Some((frame_time_ns(UDP_HEADERS + payload, speed.bits_per_second)?, octets.div_ceil(room).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_is_divided_into_frames_by_the_mtu() {
        let speed = LinkSpeed { bits_per_second: 1_000_000_000, mtu: 1500 };
        assert_eq!(frames_of(64, speed), Some(((UDP_HEADERS + 64 + 128 + 24) * 8, 1)));
        assert_eq!(frames_of(1344, speed).map(|frames| frames.1), Some(1));
        assert_eq!(frames_of(1345, speed).map(|frames| frames.1), Some(2));
        assert_eq!(frames_of(0, speed).map(|frames| frames.1), Some(1));
        assert_eq!(frames_of(1, LinkSpeed { bits_per_second: 0, ..speed }), None);
    }
}
