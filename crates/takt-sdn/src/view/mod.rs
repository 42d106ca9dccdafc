//! The state of a controller in one plain snapshot, for people and programs ([`View`]).
//!
//! [`Controller::view`](crate::controller::Controller::view) makes it. Identifiers are texts, since
//! a datapath id does not fit into a number of JavaScript. Times are in nanoseconds, `time_ns` and `at_ns` since the start of
//! the controller. What is not known is absent.

mod counters;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use takt_wire::discovery::{HostStage, HostStages};

pub use counters::{COUNTERS, CounterDescription};

use crate::PortRef;
use crate::admission::Protection as Admitted;
use crate::model::Egress;
pub use crate::registration::State;
use crate::schedule::{PairStages, Remedies as ScheduledRemedies, Route, SecondWay};

/// The version of this format: changes when a field changes its meaning or goes.
pub const FORMAT: u32 = 1;

/// Decisions that are remembered; the oldest are forgotten.
pub const DECISIONS_MAX: usize = 256;

/// State of the controller at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// [`FORMAT`].
    pub format: u32,
    /// When it was made.
    pub time_ns: u64,
    /// Counts the changes of switches, roles of ports and links.
    pub topology_version: u64,
    /// The version of the network that admission has; absent without a description of the network.
    pub network_version: Option<u64>,
    /// Whether every connected switch has the tables that it shall have.
    pub is_settled: bool,
    /// Whether this controller leads; absent if it is the only one.
    pub cluster: Option<Cluster>,
    /// The policy of isolation; absent if nothing can be denied.
    pub isolation: Option<Isolation>,
    /// The switches.
    pub switches: Vec<Switch>,
    /// The links between switches.
    pub links: Vec<Link>,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The participants.
    pub participants: Vec<Participant>,
    /// Their writers and readers.
    pub endpoints: Vec<Endpoint>,
    /// Writers and readers that match.
    pub pairs: Vec<Pair>,
    /// Counts since the start, by the names of [`COUNTERS`].
    pub counters: BTreeMap<String, u64>,
    /// The last decisions, the oldest first.
    pub log: Vec<LogEntry>,
}

/// A controller among several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Whether it is the leader; a standby otherwise.
    pub is_leader: bool,
    /// The generation of the leader, as far as it is known: a number as text.
    pub generation: String,
}

/// The policy of isolation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// What holds without a rule: `allow` or `deny`.
    pub default: String,
    /// The names of the labels.
    pub labels: Vec<String>,
    /// Rules of the file.
    pub rules: usize,
    /// Pairs that it denies now.
    pub denied_pairs: usize,
    /// Flow entries of it in each switch.
    pub filters: usize,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortId {
    /// The switch: 16 hexadecimal digits.
    pub datapath_id: String,
    /// The number.
    pub port: u32,
}

impl From<PortRef> for PortId {
    fn from(at: PortRef) -> Self {
        Self { datapath_id: format!("{:016x}", at.dpid), port: at.port }
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.datapath_id, self.port)
    }
}

/// What a switch is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchState {
    /// It has no connection; it forwards by what it has.
    Disconnected,
    /// It keeps what an earlier run of the controller left, until hosts and links are known.
    Adopting,
    /// Its tables are being changed.
    Changing,
    /// It has the tables that it shall have.
    Settled,
}

impl SwitchState {
    /// As it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::Adopting => "adopting",
            Self::Changing => "changing",
            Self::Settled => "settled",
        }
    }
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// 16 hexadecimal digits.
    pub datapath_id: String,
    /// What it is at.
    pub state: SwitchState,
    /// Whether it has meters.
    pub has_meters: bool,
    /// Its model; absent if the description of the network has none for it.
    pub model: Option<String>,
    /// Flow entries that it has.
    pub flow_entries: usize,
    /// Groups that it has.
    pub groups: usize,
    /// Meters that it has.
    pub meters: usize,
    /// Entries that it refused.
    pub refused_entries: usize,
    /// Packets to groups, beyond the limits of its hosts, that it dropped; absent if no host has a limit.
    pub group_packets_dropped: Option<u64>,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It has no link.
    Down,
    /// Whether another switch is behind it is not known yet.
    Probing,
    /// Hosts are behind it.
    Edge,
    /// Another switch is behind it.
    Link,
}

impl Role {
    /// As it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Probing => "probing",
            Self::Edge => "edge",
            Self::Link => "link",
        }
    }
}

/// A port of a switch, as it sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// The number.
    pub number: u32,
    /// The name that the switch gives.
    pub name: String,
    /// The Ethernet address.
    pub mac: String,
    /// What it is for.
    pub role: Role,
    /// The port at the other end, of a link.
    pub peer: Option<PortId>,
    /// Its rate; absent if it is not in the model of the network.
    pub rate_bps: Option<u64>,
    /// What admitted flows take of the rate, in parts of a million.
    pub admitted_ppm: Option<u64>,
    /// How many packets its hosts receive without admission; absent without a limit, and if the switch has no meters.
    pub host_limit: Option<HostLimit>,
    /// Its queues with contracts, the most urgent first.
    pub queues: Vec<Queue>,
    /// What the switch counted; absent before it was read, and without a connection.
    #[serde(default)]
    pub traffic: Option<PortTraffic>,
}

/// How many packets hosts receive without admission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLimit {
    /// The limit of a second.
    pub packets_per_s: u32,
    /// Packets to their addresses that the switch dropped.
    pub packets_dropped: u64,
}

/// A queue of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// 0 is the most urgent.
    pub class: usize,
    /// The DSCP that leads into it.
    pub dscp: Option<u8>,
    /// The number of SET_QUEUE that leads into it.
    pub set_queue: Option<u32>,
    /// Octets that it holds; absent without a limit.
    pub depth_octets: Option<u64>,
    /// Frames that it holds; absent without a limit.
    pub depth_frames: Option<u64>,
    /// How long frames of admitted flows may be in it; 0 without such flows.
    pub budget_ns: u64,
    /// What the switch counted; absent if it has no counters of queues.
    #[serde(default)]
    pub traffic: Option<Traffic>,
}

/// Counted frames. What a switch does not count is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Frames.
    pub frames: Option<u64>,
    /// Their octets, as the switch counts them.
    pub octets: Option<u64>,
    /// Frames that were dropped: by the port, by the queue, or by the meter.
    pub dropped: Option<u64>,
    /// Bits a second in the last interval, of these octets; absent before the second reading.
    pub rate_bps: Option<u64>,
}

/// What a port sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTraffic {
    /// Sent.
    pub sent: Traffic,
    /// Received.
    pub received: Traffic,
    /// The share of the rate of the port that it sent in the last interval, with FCS, preamble and gap, in parts of a million.
    pub sent_ppm: Option<u64>,
}

/// What the meters of an admitted pair saw. Pairs with the same addresses and UDP port have one meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowTraffic {
    /// Samples and HEARTBEATs that came to the first switch, with those that its meter dropped.
    pub samples: Traffic,
    /// ACKNACKs, likewise.
    pub answers: Option<Traffic>,
    /// Pairs that share the flow, this one included.
    pub sharers: usize,
    /// Whether the meter drops samples: the writer, or another one of the flow, breaks its contract.
    pub breaks_contract: bool,
}

/// A pair that discovery does not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Its number as text.
    pub id: String,
    /// The credential that made it.
    pub owner: String,
    /// What is decided of it.
    pub state: State,
    /// The UDP port of samples.
    pub port: u16,
    /// The UDP port of ACKNACKs; absent of a best-effort pair.
    pub answer_port: Option<u16>,
    /// The multicast group.
    pub group: Option<SocketAddr>,
    /// Octets that security adds to each datagram.
    pub overhead: u32,
    /// When its lease ends, since the start of the controller.
    pub until_ns: u64,
}

/// A link between switches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its ports, the lesser first.
    pub ends: [PortId; 2],
    /// Whether floods follow it.
    pub is_in_tree: bool,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The Ethernet address of its interface.
    pub mac: String,
    /// The VLAN of its frames; absent without a tag.
    pub vlan: Option<u16>,
    /// Where it is attached.
    pub at: PortId,
    /// Its IP addresses.
    pub addresses: Vec<String>,
}

/// A DDS participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Participant {
    /// The GUID prefix.
    pub prefix: String,
    /// Name, host and process, as far as it announces these.
    pub label: String,
    /// Its domain.
    pub domain: u32,
    /// Where its host is attached.
    pub at: PortId,
    /// The address that it sends discovery from.
    pub address: String,
    /// Its labels by the policy of isolation.
    pub labels: Vec<String>,
}

/// Writer or reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndpointKind {
    /// A writer.
    Writer,
    /// A reader.
    Reader,
}

/// A writer or reader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The GUID.
    pub guid: String,
    /// Which of the two.
    pub kind: EndpointKind,
    /// The name of its topic.
    pub topic: String,
    /// The name of its type.
    pub type_name: String,
    /// Whether it is reliable.
    pub is_reliable: bool,
}

/// What is decided of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It has no contract and matches as usual, in the lowest class.
    NoContract,
    /// It has a contract and matches without proof, since no description of the network was given.
    Unproven,
    /// It has a contract and is not decided yet.
    Waiting,
    /// It fits, and its entries are not all in force.
    Installing,
    /// It matches, with a proven bound.
    Admitted,
    /// It does not match.
    Refused,
}

impl Decision {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::NoContract, Self::Unproven, Self::Waiting, Self::Installing, Self::Admitted, Self::Refused];

    /// As it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoContract => "no-contract",
            Self::Unproven => "unproven",
            Self::Waiting => "waiting",
            Self::Installing => "installing",
            Self::Admitted => "admitted",
            Self::Refused => "refused",
        }
    }
}

/// A contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// Least time between two samples.
    pub separation_ns: u64,
    /// How late a sample may come to the interface of its host.
    pub jitter_ns: u64,
    /// Octets of the longest serialised sample.
    pub size: u32,
    /// Longest time from writing to delivery.
    pub limit_ns: u64,
    /// Flows of higher importance are kept when not all fit.
    pub importance: i32,
    /// Whether second ways are asked for.
    #[serde(default)]
    pub is_protected: bool,
    /// Where separation, jitter, size, limit and importance come from.
    pub sources: [String; 5],
}

/// A writer and a reader that match by topic, type and policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The GUID of the writer.
    pub writer: String,
    /// The GUID of the reader.
    pub reader: String,
    /// The topic.
    pub topic: String,
    /// The type.
    pub type_name: String,
    /// The address of the writer.
    pub from: String,
    /// The address of the reader.
    pub to: String,
    /// What was declared.
    pub contract: Option<Contract>,
    /// What is missing for a contract.
    pub missing: Option<String>,
    /// What was decided.
    pub decision: Decision,
    /// Longest time from `write` to the end of the callback, as far as the hosts announce their stages; from and to the interfaces of the
    /// hosts otherwise.
    pub bound_ns: Option<u64>,
    /// The queues that its samples go by.
    pub hops: Vec<Hop>,
    /// What the bound is made of, in the order in which a sample passes it: stages of the writer's host, queues, stages of the reader's.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// What the stages of its hosts hold for.
    #[serde(default)]
    pub hosts: Vec<HostClaim>,
    /// What becomes of it when a link fails; absent if it asks for no second way.
    #[serde(default)]
    pub protection: Option<Protection>,
    /// What its meters saw; absent before they were read.
    #[serde(default)]
    pub traffic: Option<FlowTraffic>,
    /// What registered it; absent of a pair that discovery shows. Writer and reader are names then.
    #[serde(default)]
    pub registration: Option<Registration>,
    /// The longest latency that the reader saw; absent if it reports none.
    #[serde(default)]
    pub measured: Option<Measured>,
    /// Why it is refused, or waits.
    pub reason: Option<String>,
    /// The queue that binds, of a refused one.
    pub binding_hop: Option<Hop>,
    /// What would make it fit, each alone.
    pub remedies: Remedies,
}

/// Whether an admitted pair goes on when a link fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectionState {
    /// Each link between switches has a detour.
    Protected,
    /// Some links have one.
    Partly,
    /// Second ways are searched.
    Searching,
    /// A link failed: it goes by one way, and its others are given back.
    FallenBack,
    /// No second way fits.
    Unprotected,
}

/// The second ways of a pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// What it has.
    pub state: ProtectionState,
    /// Links of the way with a detour.
    pub links: usize,
    /// Links of the way between switches.
    pub of: usize,
    /// Why it has no second way.
    pub reason: Option<String>,
    /// The queues of each second way, from the source on: of samples, then of ACKNACKs.
    pub second_ways: Vec<Vec<Hop>>,
}

impl Protection {
    /// What admission says; `None` if it is not asked for.
    pub fn of(protection: &Admitted, ways: &[SecondWay]) -> Option<Self> {
        let (state, covered, reason) = match protection {
            Admitted::Unasked => return None,
            Admitted::Due => (ProtectionState::Searching, None, None),
            Admitted::FallenBack => (ProtectionState::FallenBack, None, None),
            Admitted::Unprotected(reason) => (ProtectionState::Unprotected, None, Some(reason.clone())),
            Admitted::Covered(covered) if covered.links < covered.of => (ProtectionState::Partly, Some(*covered), None),
            Admitted::Covered(covered) => (ProtectionState::Protected, Some(*covered), None),
        };
        let (links, of) = covered.map_or((0, 0), |covered| (covered.links, covered.of));
        let second_ways = ways.iter().map(|way| Hop::all_of(&way.route)).collect();
        Some(Self { state, links, of, reason, second_ways })
    }
}

/// Where a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// On the writer's host.
    Writer,
    /// A queue of the network.
    Network,
    /// On the reader's host.
    Reader,
}

/// A part of a bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Where it is.
    pub place: Place,
    /// The executor, or the port with its class.
    pub name: String,
    /// Its bound. Those of the queues may add up to more than the bound of the network, which counts a burst once.
    pub bound_ns: u64,
}

/// What the stages of a host hold for, as its endpoint announces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostClaim {
    /// Which host: that of the writer or of the reader.
    pub place: Place,
    /// The flow in the analysis of the host.
    pub flow: String,
    /// Samples are at least so far apart in the long run.
    pub period_ns: u64,
    /// How much later than its time a sample comes: to the interface of the writer's host at most, or from the network as is allowed for.
    pub jitter_ns: u64,
}

impl Pair {
    /// The stages that an end announces, as they came.
    fn announced(&self, place: Place) -> Option<HostStages> {
        let HostClaim { flow, period_ns, jitter_ns, .. } = self.hosts.iter().find(|host| host.place == place)?.clone();
        let own = self.stages.iter().filter(|stage| stage.place == place);
        let stages = own.map(|stage| HostStage { name: stage.name.clone(), bound_ns: stage.bound_ns }).collect();
        Some(HostStages { period_ns, jitter_ns, flow, stages })
    }

    /// The stages that both ends announce.
    pub fn announced_stages(&self) -> PairStages {
        PairStages { writer: self.announced(Place::Writer), reader: self.announced(Place::Reader) }
    }
}

/// What a reader saw of its samples: from their time stamps until they could be read, of all its writers. Clocks of the hosts are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The longest latency.
    pub worst_ns: u64,
}

/// A port that sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sender {
    /// Of a switch.
    Port(PortId),
    /// The interface of a host: its Ethernet address.
    Host(String),
}

impl From<Egress> for Sender {
    fn from(egress: Egress) -> Self {
        match egress {
            Egress::Switch(at) => Self::Port(at.into()),
            Egress::Host(host) => {
                let text = host.to_string();
                Self::Host(text.strip_prefix("host ").unwrap_or(&text).to_owned())
            }
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(at) => write!(f, "port {} of switch {}", at.port, at.datapath_id),
            Self::Host(mac) => write!(f, "interface of host {mac}"),
        }
    }
}

/// A queue on the way of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The port that sends.
    pub sender: Sender,
    /// The class there, 0 the most urgent.
    pub class: usize,
}

impl Hop {
    /// The queues of a flow.
    pub fn all_of(route: &Route) -> Vec<Self> {
        route.hops.iter().map(|hop| Self { sender: hop.port.into(), class: hop.class }).collect()
    }
}

/// What would make a refused pair fit, each alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedies {
    /// A longer limit.
    pub limit_ns: Option<u64>,
    /// A longer separation.
    pub separation_ns: Option<u64>,
    /// Smaller samples, in octets.
    pub size: Option<u64>,
}

impl From<ScheduledRemedies> for Remedies {
    fn from(remedies: ScheduledRemedies) -> Self {
        let ScheduledRemedies { limit_ns, min_separation_ns, sample_len } = remedies;
        Self { limit_ns, separation_ns: min_separation_ns, size: sample_len }
    }
}

/// A decision that was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Counts decisions since the start, from 1.
    pub number: u64,
    /// When.
    pub at_ns: u64,
    /// The GUID of the writer.
    pub writer: String,
    /// The GUID of the reader.
    pub reader: String,
    /// The topic; absent if the pair has gone meanwhile.
    pub topic: Option<String>,
    /// [`Decision::Admitted`] or [`Decision::Refused`].
    pub decision: Decision,
    /// The bound of an admitted pair.
    pub bound_ns: Option<u64>,
    /// Why a pair is refused, and what would make it fit.
    pub reason: Option<String>,
}

impl LogEntry {
    /// A decision about a pair: its bound, or why it is refused. The log numbers it.
    pub fn new(
        at_ns: u64,
        (writer, reader): (String, String),
        topic: Option<String>,
        outcome: Result<u64, String>,
    ) -> Self {
        let decision = if outcome.is_ok() { Decision::Admitted } else { Decision::Refused };
        let (bound_ns, reason) = match outcome {
            Ok(bound_ns) => (Some(bound_ns), None),
            Err(reason) => (None, Some(reason)),
        };
        Self { number: 0, at_ns, writer, reader, topic, decision, bound_ns, reason }
    }
}
