//! Configuration, events and counters of a controller.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use takt_openflow::cause::ErrorMessage;
use takt_wire::GuidPrefix;

use super::sync::{Difference, Target};
use crate::admission::Protection;
use crate::devices::HostId;
use crate::discovery::Pair;
use crate::model::NetworkFile;
use crate::registration::{RegistrationId, State};
use crate::{PortRef, devices, discovery, forwarding, topology};

/// Configuration of a controller, with its limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// Configuration of switches and links.
    pub topology: topology::Config,
    /// Configuration of hosts.
    pub devices: devices::Config,
    /// Configuration of forwarding rules.
    pub forwarding: forwarding::Config,
    /// Configuration of the interception of discovery.
    pub discovery: discovery::Config,
    /// The operator's description of the network: pairs with contracts are admitted by proof.
    /// `None`: every pair matches.
    pub network: Option<NetworkFile>,
    /// Maximum number of connections.
    pub connections: usize,
    /// Timeout of a switch for a request or a change.
    pub operation: Duration,
    /// Time for which the rules of an earlier run stay untouched: hosts are adopted from them once
    /// ports are known.
    pub adoption: Duration,
    /// Time for which pairs of an earlier run may wait until switches, links and hosts are found
    /// again.
    pub restoration: Duration,
    /// Maximum number of waiting events; the oldest are dropped and counted.
    pub events: usize,
    /// Interval at which the counters of each switch are read; `None`: never.
    pub poll_cycle: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            topology: topology::Config::default(),
            devices: devices::Config::default(),
            forwarding: forwarding::Config::default(),
            discovery: discovery::Config::default(),
            network: None,
            connections: 512,
            operation: Duration::from_secs(5),
            adoption: Duration::from_secs(3),
            restoration: Duration::from_secs(30),
            events: 4096,
            poll_cycle: Some(Duration::from_secs(2)),
        }
    }
}

/// Location where a sample that exceeded its bound was delayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlowStage {
    /// The writer's host: a call of `write` took longer than the bound of its stages.
    Writer {
        /// Duration of the longest call.
        took_ns: u64,
        /// Bound of the stages.
        bound_ns: u64,
    },
    /// After `write`: in the network, or on the reader's host. Timestamps do not distinguish the
    /// two.
    BehindWrite,
    /// Unknown, because the writer reports no times.
    Unknown,
}

impl fmt::Display for SlowStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writer { took_ns, bound_ns } => {
                write!(
                    f,
                    "a call of write took {took_ns} ns; the stages of the writer's host are bounded by {bound_ns} ns"
                )
            }
            Self::BehindWrite => f.write_str("after write, in the network or on the reader's host"),
            Self::Unknown => f.write_str("the writer reports no write times"),
        }
    }
}

/// An event of the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A switch has connected, and its state has been read.
    SwitchUp {
        /// Datapath id of the switch.
        dpid: u64,
        /// Number of its ports that are up.
        ports: usize,
    },
    /// The connection of a switch ended.
    SwitchDown {
        /// Datapath id of the switch.
        dpid: u64,
        /// Reason.
        why: String,
    },
    /// A connection ended before its switch was known, or was refused.
    ConnectionRefused {
        /// Reason.
        why: String,
    },
    /// The controller starts to correct a switch whose tables have been read.
    Resynchronized {
        /// Datapath id of the switch.
        dpid: u64,
        /// Difference between its tables and the wanted ones.
        difference: Difference,
    },
    /// A switch refuses an entry, which is then omitted.
    EntryRefused {
        /// Datapath id of the switch.
        dpid: u64,
        /// The entry.
        entry: Target,
        /// Error of the switch.
        error: ErrorMessage,
    },
    /// An event of ports, links or probes.
    Topology(topology::Event),
    /// An event of participants, pairs or forgeries.
    Discovery(discovery::Event),
    /// A pair matches now: the entries of its flows are in force.
    Admitted {
        /// The pair.
        pair: Pair,
        /// Bound of the latency of a sample, with the stages that its hosts announce.
        bound_ns: u64,
    },
    /// State of an earlier run was restored.
    Restored {
        /// Number of participants.
        participants: usize,
        /// Number of hosts.
        hosts: usize,
        /// Number of admitted pairs.
        pairs: usize,
        /// Number of records that are unreadable or exceed a limit.
        unreadable: usize,
    },
    /// A sample of an admitted pair exceeded its proved bound.
    BoundExceeded {
        /// The pair.
        pair: Pair,
        /// Maximum latency that the reader observed.
        worst_ns: u64,
        /// Bound that is proved for as long as the pair is admitted.
        bound_ns: u64,
        /// Location of the delay, as far as the reports of both ends show it.
        stage: SlowStage,
    },
    /// A pair must not match.
    Refused {
        /// The pair.
        pair: Pair,
        /// Bottleneck hop and remedies, or the missing facts.
        reason: String,
    },
    /// An admitted pair shares its class and meter with a topic without a contract
    /// ([`WithoutContract::Caution`](crate::model::WithoutContract::Caution)).
    Caution {
        /// The pair.
        pair: Pair,
        /// The topic.
        topic: String,
    },
    /// The protection of an admitted pair against the failure of a link has changed.
    Protection {
        /// The pair.
        pair: Pair,
        /// Its present protection.
        protection: Protection,
    },
    /// A participant receives discovery and user data at one address: its pairs with contracts are
    /// refused.
    SharedPort {
        /// The participant.
        participant: GuidPrefix,
        /// The address.
        address: SocketAddr,
        /// Whether its discovery is intercepted at this address. With too much user data it is not
        /// intercepted, and its endpoints remain unknown.
        is_intercepted: bool,
    },
    /// The meter of an admitted flow drops frames, because a writer violates its contract. Reported
    /// once until the drops have ended.
    ContractBroken {
        /// Names of the pairs of the flow.
        flow: String,
        /// The pairs.
        pairs: Vec<Pair>,
        /// Number of frames that the meter dropped since the previous reading.
        dropped: u64,
        /// Number of frames that arrived at the meter.
        frames: u64,
    },
    /// A registration is admitted, refused or withdrawn.
    Registration {
        /// Id of the registration.
        id: RegistrationId,
        /// Its topic.
        topic: String,
        /// Its present state.
        state: State,
        /// Its bound, or the reason why it is not served.
        outcome: Result<u64, String>,
    },
    /// A registration was removed, or its lease expired.
    RegistrationGone {
        /// Id of the registration.
        id: RegistrationId,
        /// Its topic.
        topic: String,
    },
    /// Hosts with a limit get more packets without admission than the limit: a meter began to drop
    /// them.
    HostOverload {
        /// Datapath id of the switch.
        dpid: u64,
        /// Port of the hosts; `None` if the packets go to groups.
        port: Option<u32>,
        /// Number of packets dropped since the previous reading of the meter.
        dropped: u64,
    },
    /// Links of the spanning tree that floods use.
    Tree(BTreeSet<forwarding::Link>),
    /// A host was found.
    HostFound {
        /// The host.
        host: HostId,
        /// Its port.
        at: PortRef,
    },
    /// A host moved to another port.
    HostMoved {
        /// The host.
        host: HostId,
        /// Its former port.
        from: PortRef,
        /// Its present port.
        to: PortRef,
    },
    /// A host was removed.
    HostGone(HostId),
    /// An IP address of a host was found.
    AddressFound {
        /// The host.
        host: HostId,
        /// The address.
        address: IpAddr,
    },
    /// A frame with the source address of a host at another port was dropped.
    Spoofed {
        /// The real owner of the source address.
        host: HostId,
        /// Port of the owner.
        owner: PortRef,
        /// Port at which the frame arrived.
        at: PortRef,
    },
    /// A host claimed the IP address of another host; the frame was dropped.
    AddressConflict {
        /// Host that has the address.
        owner: HostId,
        /// Host that claimed the address.
        claimed_by: HostId,
        /// Port at which the frame arrived.
        at: PortRef,
        /// The address.
        address: IpAddr,
    },
}

/// Counters of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets received from switches.
    pub packets: u64,
    /// Packets that are no frames, or are truncated.
    pub malformed: u64,
    /// Packets from ports without a role yet, or from unknown switches.
    pub ignored: u64,
    /// Frames whose source is at another port.
    pub spoofed: u64,
    /// Frames dropped because the host table is full, or because their source is no host address.
    pub refused: u64,
    /// ARP requests and neighbor solicitations that were sent only to the owner of the address.
    pub directed: u64,
    /// Frames that were sent to all edges.
    pub flooded: u64,
    /// Frames that were sent to one port.
    pub forwarded: u64,
    /// Frames to hosts without a path.
    pub unreachable: u64,
    /// Frames of DDS discovery.
    pub discovery: u64,
    /// Messages that were dropped because the transmit queue of a connection was full.
    pub unsent: u64,
    /// Control frames beyond the allowance of their port, which were sent in the lowest class.
    pub control_excess: u64,
    /// Packets to hosts with limits that meters dropped.
    pub host_excess: u64,
    /// Frames to hosts with limits that the controller dropped because its share was used up.
    pub host_excess_of_controller: u64,
    /// Frames that the controller dropped because the isolation policy denies them.
    pub isolated: u64,
    /// Filters between participants that were omitted because the table was full.
    pub filters_without_room: u64,
    /// Rules beyond [`forwarding::Config::rules`].
    pub no_room_for_rule: u64,
    /// Errors that switches reported for packets.
    pub errors: u64,
    /// Events that were dropped.
    pub events_dropped: u64,
    /// Registrations whose lease expired.
    pub registrations_expired: u64,
    /// Readings of the counters of switches.
    pub polls: u64,
    /// Readings that were skipped because the switch had not answered the previous one.
    pub polls_left_out: u64,
    /// Readings that a switch refused, or did not answer in time.
    pub polls_failed: u64,
    /// Episodes in which the meter of an admitted flow dropped frames.
    pub contracts_broken: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SwitchUp { dpid, ports } => write!(f, "switch {dpid:016x} is up with {ports} ports"),
            Self::SwitchDown { dpid, why } => write!(f, "switch {dpid:016x} is down: {why}"),
            Self::ConnectionRefused { why } => write!(f, "connection refused: {why}"),
            Self::Resynchronized { dpid, difference: Difference { added, changed, deleted } } => {
                write!(f, "switch {dpid:016x}: {added} entries added, {changed} changed, {deleted} deleted")
            }
            Self::EntryRefused { dpid, entry, error } => {
                write!(f, "switch {dpid:016x} refuses {entry:?}: {}", error.cause)
            }
            Self::Topology(event) => event.fmt(f),
            Self::Discovery(event) => super::interception::write_event(event, f),
            Self::Admitted { pair, bound_ns } => write!(f, "pair {pair} is admitted: {bound_ns} ns at most"),
            Self::BoundExceeded { pair, worst_ns, bound_ns, stage } => {
                write!(f, "pair {pair} exceeded its bound: {worst_ns} ns, at most {bound_ns} ns are proven; {stage}")
            }
            Self::Refused { pair, reason } => write!(f, "pair {pair} is refused: {reason}"),
            Self::Restored { participants, hosts, pairs, unreadable } => {
                write!(f, "an earlier run left {participants} participants, {hosts} hosts, {pairs} admitted pairs")?;
                if *unreadable == 0 { Ok(()) } else { write!(f, "; {unreadable} records cannot be used") }
            }
            Self::Caution { pair, topic } => {
                write!(f, "pair {pair} shares its class and meter with topic {topic:?}, which has no contract")
            }
            Self::Protection { pair, protection } => write!(f, "pair {pair} is {protection}"),
            Self::SharedPort { participant, address, is_intercepted } => {
                write!(f, "participant {participant} receives discovery and samples at {address}: ")?;
                f.write_str(if *is_intercepted {
                    "its pairs with contracts are refused"
                } else {
                    "too many samples arrive there, so that its endpoints are no longer discovered"
                })?;
                write!(f, "; give it separate ports (CycloneDDS: Discovery/ParticipantIndex auto)")
            }
            Self::ContractBroken { flow, dropped, frames, .. } => {
                write!(f, "{flow} breaks its contract: its meter dropped {dropped} of {frames} frames")
            }
            Self::Registration { id, topic, state, outcome } => {
                write!(f, "registration {id} ({}) is {}: ", topic.escape_debug(), state.name())?;
                match outcome {
                    Ok(bound_ns) => write!(f, "{bound_ns} ns at most"),
                    Err(reason) => f.write_str(reason),
                }
            }
            Self::RegistrationGone { id, topic } => write!(f, "registration {id} ({}) is gone", topic.escape_debug()),
            Self::HostOverload { dpid, port: Some(port), dropped } => {
                let at = PortRef::new(*dpid, *port);
                write!(f, "overload of the hosts at {at}: {dropped} packets beyond their limit dropped")
            }
            Self::HostOverload { dpid, port: None, dropped } => {
                write!(
                    f,
                    "overload of hosts at switch {dpid:016x}: {dropped} packets to groups beyond their limit dropped"
                )
            }
            Self::Tree(links) => write!(f, "flooding uses {} links", links.len()),
            Self::HostFound { host, at } => write!(f, "host {host} at {at}"),
            Self::HostMoved { host, from, to } => write!(f, "host {host} moved from {from} to {to}"),
            Self::HostGone(host) => write!(f, "host {host} is gone"),
            Self::AddressFound { host, address } => write!(f, "host {host} has the address {address}"),
            Self::Spoofed { host, owner, at } => {
                write!(f, "spoofed: a frame of host {host}, which is at {owner}, arrived at {at}")
            }
            Self::AddressConflict { owner, claimed_by, at, address } => {
                write!(f, "host {claimed_by} at {at} claims {address}, which host {owner} has")
            }
        }
    }
}
