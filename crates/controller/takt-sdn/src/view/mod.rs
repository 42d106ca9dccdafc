//! Snapshot of the state of a controller ([`View`]), for display and for programs.
//!
//! [`Controller::view`](crate::controller::Controller::view) creates it. Identifiers are strings,
//! since a datapath id does not fit into a JavaScript number. Times are in nanoseconds, `time_ns`
//! and `at_ns` since the start of the controller. Unknown values are absent.

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
use crate::schedule::{BackupPath, PairStages, Remedies as ScheduledRemedies, Route};

/// Version of this format: changes when a field changes its meaning or is removed.
pub const FORMAT: u32 = 1;

/// Maximum number of logged decisions; the oldest are dropped.
pub const DECISIONS_MAX: usize = 256;

/// State of the controller at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Version of the format: [`FORMAT`].
    pub format: u32,
    /// Time of the snapshot.
    pub time_ns: u64,
    /// Version of the topology, incremented by changes of switches, port roles and links.
    pub topology_version: u64,
    /// Version of the network that admission uses; absent without a description of the network.
    pub network_version: Option<u64>,
    /// Whether every connected switch has its wanted tables.
    pub is_settled: bool,
    /// Role in the cluster; absent if this controller is the only one.
    pub cluster: Option<Cluster>,
    /// Isolation policy; absent if it cannot deny anything.
    pub isolation: Option<Isolation>,
    /// Switches.
    pub switches: Vec<Switch>,
    /// Links between switches.
    pub links: Vec<Link>,
    /// Hosts.
    pub hosts: Vec<Host>,
    /// Participants.
    pub participants: Vec<Participant>,
    /// Writers and readers of the participants.
    pub endpoints: Vec<Endpoint>,
    /// Matching writers and readers.
    pub pairs: Vec<Pair>,
    /// Counters since the start, by the names of [`COUNTERS`].
    pub counters: BTreeMap<String, u64>,
    /// The most recent decisions, the oldest first.
    pub log: Vec<LogEntry>,
}

/// Role of the controller in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Whether the controller is the leader; otherwise it is a standby.
    pub is_leader: bool,
    /// Generation of the leader as far as known, as a string.
    pub generation: String,
}

/// The isolation policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// The default decision: `allow` or `deny`.
    pub default: String,
    /// Names of the labels.
    pub labels: Vec<String>,
    /// Number of rules in the file.
    pub rules: usize,
    /// Number of pairs that it denies now.
    pub denied_pairs: usize,
    /// Number of its flow entries in each switch.
    pub filters: usize,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortId {
    /// Datapath id of the switch: 16 hexadecimal digits.
    pub datapath_id: String,
    /// Port number.
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

/// State of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchState {
    /// The switch is disconnected and forwards by its present tables.
    Disconnected,
    /// The switch keeps the tables of an earlier run of the controller, until hosts and links are
    /// known.
    Adopting,
    /// Its tables are being changed.
    Changing,
    /// It has the wanted tables.
    Settled,
}

impl SwitchState {
    /// Returns the serialized name.
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
    /// Datapath id: 16 hexadecimal digits.
    pub datapath_id: String,
    /// State of the switch.
    pub state: SwitchState,
    /// Whether the switch has meters.
    pub has_meters: bool,
    /// Model of the switch; absent if the description of the network has none for it.
    pub model: Option<String>,
    /// Number of its flow entries.
    pub flow_entries: usize,
    /// Number of its groups.
    pub groups: usize,
    /// Number of its meters.
    pub meters: usize,
    /// Number of entries that it refused.
    pub refused_entries: usize,
    /// Number of group packets beyond the limits of its hosts that it dropped; absent if no host
    /// has a limit.
    pub group_packets_dropped: Option<u64>,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// Role of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The port has no link.
    Down,
    /// It is not known yet whether the port leads to another switch.
    Probing,
    /// The port leads to hosts.
    Edge,
    /// The port leads to another switch.
    Link,
}

impl Role {
    /// Returns the serialized name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Probing => "probing",
            Self::Edge => "edge",
            Self::Link => "link",
        }
    }
}

/// A port of a switch in sending direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Port number.
    pub number: u32,
    /// Name that the switch reports.
    pub name: String,
    /// Ethernet address.
    pub mac: String,
    /// Role of the port.
    pub role: Role,
    /// Port at the other end of a link.
    pub peer: Option<PortId>,
    /// Rate in bit/s; absent if the network model does not contain the port.
    pub rate_bps: Option<u64>,
    /// Share of the rate that admitted flows use, in ppm.
    pub admitted_ppm: Option<u64>,
    /// Limit of the packets that its hosts receive without admission; absent without a limit, and
    /// if the switch has no meters.
    pub host_limit: Option<HostLimit>,
    /// Queues of flows with contracts, the most urgent first.
    pub queues: Vec<Queue>,
    /// Counters of the switch; absent before the first reading, and without a connection.
    #[serde(default)]
    pub traffic: Option<PortTraffic>,
}

/// Limit of the packets that hosts receive without admission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLimit {
    /// Limit in packets per second.
    pub packets_per_s: u32,
    /// Number of unicast packets to the hosts that the switch dropped.
    pub packets_dropped: u64,
}

/// A queue of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Class; 0 is the most urgent.
    pub class: usize,
    /// DSCP that selects the queue.
    pub dscp: Option<u8>,
    /// SET_QUEUE number that selects the queue.
    pub set_queue: Option<u32>,
    /// Depth in octets; absent without a limit.
    pub depth_octets: Option<u64>,
    /// Depth in frames; absent without a limit.
    pub depth_frames: Option<u64>,
    /// Maximum time of frames of admitted flows in the queue in ns; 0 without such flows.
    pub budget_ns: u64,
    /// Counters of the switch; absent if it has no queue counters.
    #[serde(default)]
    pub traffic: Option<Traffic>,
}

/// Counted frames. Counters that a switch does not have are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Number of frames.
    pub frames: Option<u64>,
    /// Number of octets, as the switch counts them.
    pub octets: Option<u64>,
    /// Number of frames dropped by the port, the queue or the meter.
    pub dropped: Option<u64>,
    /// Rate of these octets in bit/s in the last interval; absent before the second reading.
    pub rate_bps: Option<u64>,
}

/// Traffic of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTraffic {
    /// Sent traffic.
    pub sent: Traffic,
    /// Received traffic.
    pub received: Traffic,
    /// Share of the port's rate used by sent frames in the last interval, with FCS, preamble and
    /// interframe gap, in ppm.
    pub sent_ppm: Option<u64>,
}

/// Traffic at the meters of an admitted pair. Pairs with the same addresses and UDP port share a
/// meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowTraffic {
    /// Samples and HEARTBEATs that arrived at the first switch, with those that its meter dropped.
    pub samples: Traffic,
    /// ACKNACKs that arrived at the first switch, with those that its meter dropped.
    pub answers: Option<Traffic>,
    /// Number of pairs that share the flow, including this one.
    pub sharers: usize,
    /// Whether the meter drops samples because this or another writer of the flow violates its
    /// contract.
    pub breaks_contract: bool,
}

/// Registration of a pair that is not discovered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Id as a string.
    pub id: String,
    /// Credential that created it.
    pub owner: String,
    /// State of the registration.
    pub state: State,
    /// UDP port of samples.
    pub port: u16,
    /// UDP port of ACKNACKs; absent for a best-effort pair.
    pub answer_port: Option<u16>,
    /// Multicast group of samples.
    pub group: Option<SocketAddr>,
    /// Number of octets that security adds to each datagram.
    pub overhead: u32,
    /// End of the lease, since the start of the controller.
    pub until_ns: u64,
}

/// A link between switches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Ports of the link, the lower first.
    pub ends: [PortId; 2],
    /// Whether floods use the link.
    pub is_in_tree: bool,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Ethernet address of the interface.
    pub mac: String,
    /// VLAN of its frames; absent for untagged frames.
    pub vlan: Option<u16>,
    /// Port where it is attached.
    pub at: PortId,
    /// IP addresses.
    pub addresses: Vec<String>,
}

/// A DDS participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Participant {
    /// GUID prefix.
    pub prefix: String,
    /// Name, host and process, as far as announced.
    pub label: String,
    /// Domain id.
    pub domain: u32,
    /// Port where its host is attached.
    pub at: PortId,
    /// Source address of its discovery.
    pub address: String,
    /// Labels by the isolation policy.
    pub labels: Vec<String>,
}

/// Kind of an endpoint.
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
    /// GUID of the endpoint.
    pub guid: String,
    /// Kind of the endpoint.
    pub kind: EndpointKind,
    /// Name of the topic.
    pub topic: String,
    /// Name of the type.
    pub type_name: String,
    /// Whether the endpoint is reliable.
    pub is_reliable: bool,
}

/// Decision on a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The pair has no contract and matches as usual, in the lowest class.
    NoContract,
    /// The pair has a contract and matches without proof, because there is no description of the
    /// network.
    Unproven,
    /// The pair has a contract and is not decided yet.
    Waiting,
    /// The pair is admitted, but not all entries are in force.
    Installing,
    /// The pair matches with a proved bound.
    Admitted,
    /// The pair does not match.
    Refused,
}

impl Decision {
    /// All decisions.
    pub const ALL: [Self; 6] =
        [Self::NoContract, Self::Unproven, Self::Waiting, Self::Installing, Self::Admitted, Self::Refused];

    /// Returns the serialized name.
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
    /// Minimum time between two samples.
    pub separation_ns: u64,
    /// Jitter: maximum delay of a sample, relative to its nominal time, at the interface of its
    /// host.
    pub jitter_ns: u64,
    /// Length in octets of the longest serialized sample.
    pub size: u32,
    /// Limit of the time from writing to delivery.
    pub limit_ns: u64,
    /// Importance: flows of higher importance are kept when not all fit.
    pub importance: i32,
    /// Whether backup paths are requested.
    #[serde(default)]
    pub is_protected: bool,
    /// Sources of separation, jitter, size, limit and importance.
    pub sources: [String; 5],
}

/// A writer and a reader that match by topic, type and policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// GUID of the writer.
    pub writer: String,
    /// GUID of the reader.
    pub reader: String,
    /// Name of the topic.
    pub topic: String,
    /// Name of the type.
    pub type_name: String,
    /// Address of the writer.
    pub from: String,
    /// Address of the reader.
    pub to: String,
    /// Declared contract.
    pub contract: Option<Contract>,
    /// Values that are missing for a contract.
    pub missing: Option<String>,
    /// Decision on the pair.
    pub decision: Decision,
    /// Bound of the latency from `write` to the end of the callback if the hosts announce their
    /// stages; otherwise from and to the interfaces of the hosts.
    pub bound_ns: Option<u64>,
    /// Queues that its samples pass.
    pub hops: Vec<Hop>,
    /// Components of the bound in the order in which a sample passes them: stages of the writer's
    /// host, queues, stages of the reader's host.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Conditions under which the stages of its hosts hold.
    #[serde(default)]
    pub hosts: Vec<HostClaim>,
    /// Protection against the failure of a link; absent if no backup path is requested.
    #[serde(default)]
    pub protection: Option<Protection>,
    /// Traffic at its meters; absent before the first reading.
    #[serde(default)]
    pub traffic: Option<FlowTraffic>,
    /// Registration of the pair; absent for a discovered pair. Writer and reader are names if it is
    /// present.
    #[serde(default)]
    pub registration: Option<Registration>,
    /// Maximum latency that the reader observed; absent if it reports none.
    #[serde(default)]
    pub measured: Option<Measured>,
    /// Reason why the pair is refused or waits.
    pub reason: Option<String>,
    /// Bottleneck queue of a refused pair.
    pub binding_hop: Option<Hop>,
    /// Changes that would each make it fit.
    pub remedies: Remedies,
}

/// State of an admitted pair's protection against the failure of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectionState {
    /// Each link between switches has a detour.
    Protected,
    /// Some links between switches have a detour.
    Partly,
    /// Backup paths are being searched.
    Searching,
    /// A link failed: the pair uses one path, and the others are being freed.
    FallenBack,
    /// No backup path fits.
    Unprotected,
}

/// Backup paths of a pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// State of the protection.
    pub state: ProtectionState,
    /// Number of links of the path that have a detour.
    pub links: usize,
    /// Number of links of the path between switches.
    pub of: usize,
    /// Reason why there is no backup path.
    pub reason: Option<String>,
    /// Queues of each backup path, from the source on: first of samples, then of ACKNACKs.
    #[serde(rename = "second_ways")]
    pub backup_paths: Vec<Vec<Hop>>,
}

impl Protection {
    /// Converts the protection of admission; `None` if protection is not requested.
    pub fn of(protection: &Admitted, paths: &[BackupPath]) -> Option<Self> {
        let (state, coverage, reason) = match protection {
            Admitted::NotRequested => return None,
            Admitted::Due => (ProtectionState::Searching, None, None),
            Admitted::FallenBack => (ProtectionState::FallenBack, None, None),
            Admitted::Unprotected(reason) => (ProtectionState::Unprotected, None, Some(reason.clone())),
            Admitted::Covered(coverage) if coverage.links < coverage.total => {
                (ProtectionState::Partly, Some(*coverage), None)
            }
            Admitted::Covered(coverage) => (ProtectionState::Protected, Some(*coverage), None),
        };
        let (links, of) = coverage.map_or((0, 0), |coverage| (coverage.links, coverage.total));
        let backup_paths = paths.iter().map(|path| Hop::all_of(&path.route)).collect();
        Some(Self { state, links, of, reason, backup_paths })
    }
}

/// Location of a stage.
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

/// A component of a bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Location of the stage.
    pub place: Place,
    /// Name of the executor, or of the port with its class.
    pub name: String,
    /// Bound of the stage. The bounds of queues may add up to more than the bound of the network,
    /// which counts a burst once.
    pub bound_ns: u64,
}

/// Conditions under which the announced stages of a host hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostClaim {
    /// Host: that of the writer or of the reader.
    pub place: Place,
    /// Name of the flow in the analysis of the host.
    pub flow: String,
    /// Minimum separation of samples in the long run.
    pub period_ns: u64,
    /// Jitter of samples: the maximum at the interface of the writer's host, or the allowed jitter
    /// from the network.
    pub jitter_ns: u64,
}

impl Pair {
    /// Returns the announced stages of an end.
    fn announced(&self, place: Place) -> Option<HostStages> {
        let HostClaim { flow, period_ns, jitter_ns, .. } = self.hosts.iter().find(|host| host.place == place)?.clone();
        let own = self.stages.iter().filter(|stage| stage.place == place);
        let stages = own.map(|stage| HostStage { name: stage.name.clone(), bound_ns: stage.bound_ns }).collect();
        Some(HostStages { period_ns, jitter_ns, flow, stages })
    }

    /// Returns the announced stages of both ends.
    pub fn announced_stages(&self) -> PairStages {
        PairStages { writer: self.announced(Place::Writer), reader: self.announced(Place::Reader) }
    }
}

/// Latency that a reader observed, from the timestamps of samples until they could be read, over
/// all its writers. The clocks of the hosts are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Maximum latency.
    pub worst_ns: u64,
}

/// A sending port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sender {
    /// Port of a switch.
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

/// A queue on the path of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Sending port.
    pub sender: Sender,
    /// Class at the port; 0 is the most urgent.
    pub class: usize,
}

impl Hop {
    /// Returns the queues of a flow.
    pub fn all_of(route: &Route) -> Vec<Self> {
        route.hops.iter().map(|hop| Self { sender: hop.port.into(), class: hop.class }).collect()
    }
}

/// Changes that would each make a refused pair fit.
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

/// A logged decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Sequence number of the decision since the start, beginning with 1.
    pub number: u64,
    /// Time of the decision.
    pub at_ns: u64,
    /// GUID of the writer.
    pub writer: String,
    /// GUID of the reader.
    pub reader: String,
    /// Name of the topic; absent if the pair was already removed.
    pub topic: Option<String>,
    /// The decision: [`Decision::Admitted`] or [`Decision::Refused`].
    pub decision: Decision,
    /// Bound of an admitted pair.
    pub bound_ns: Option<u64>,
    /// Reason of a refusal, with the remedies.
    pub reason: Option<String>,
}

impl LogEntry {
    /// Creates an entry for a decision: its bound, or the reason of the refusal. The log assigns
    /// the number.
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
