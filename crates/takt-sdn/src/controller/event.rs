//! What a controller reports, counts and is configured by.

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

/// How a controller works, and what it may hold.
#[derive(Clone, Debug)]
pub struct Config {
    /// Switches and links.
    pub topology: topology::Config,
    /// Hosts.
    pub devices: devices::Config,
    /// Rules.
    pub forwarding: forwarding::Config,
    /// Interception of discovery.
    pub discovery: discovery::Config,
    /// What the operator says of the network: pairs with contracts are admitted by proof. `None`: every pair matches.
    pub network: Option<NetworkFile>,
    /// Connections at most.
    pub connections: usize,
    /// How long a switch may take for a request or a change.
    pub operation: Duration,
    /// For how long the rules of an earlier run stay before they are judged: hosts are taken from them once ports are known.
    pub adoption: Duration,
    /// For how long pairs of an earlier run may wait until switches, links and hosts are found again.
    pub restoration: Duration,
    /// Events that wait at most; the oldest are dropped, and counted.
    pub events: usize,
    /// How often the counters of each switch are read; `None`: never.
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

/// Where a sample that exceeded its bound was held up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlowStage {
    /// On the writer's host: a call of `write` took longer than its stages.
    Writer {
        /// The longest call.
        took_ns: u64,
        /// The bound of the stages.
        bound_ns: u64,
    },
    /// Behind `write`: in the network, or on the reader's host. Time stamps do not tell which.
    BehindWrite,
    /// The writer reports no times.
    Unknown,
}

impl fmt::Display for SlowStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writer { took_ns, bound_ns } => {
                write!(
                    f,
                    "a call of write took {took_ns} ns, the stages of the writer's host are bounded by {bound_ns} ns"
                )
            }
            Self::BehindWrite => f.write_str("behind write, in the network or on the reader's host"),
            Self::Unknown => f.write_str("the writer reports no times"),
        }
    }
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A switch has connected and its state has been read.
    SwitchUp {
        /// Its datapath id.
        dpid: u64,
        /// Its ports that are up.
        ports: usize,
    },
    /// The connection of a switch ended.
    SwitchDown {
        /// Its datapath id.
        dpid: u64,
        /// Why.
        why: String,
    },
    /// A connection ended before its switch was known, or was refused.
    ConnectionRefused {
        /// Why.
        why: String,
    },
    /// A switch whose tables have been read is brought to what it shall be.
    Resynchronised {
        /// The switch.
        dpid: u64,
        /// How its tables differed.
        difference: Difference,
    },
    /// A switch refuses an entry; it is left out.
    EntryRefused {
        /// The switch.
        dpid: u64,
        /// The entry.
        entry: Target,
        /// Why.
        error: ErrorMessage,
    },
    /// Ports, links and probes.
    Topology(topology::Event),
    /// Participants, pairs and forgeries.
    Discovery(discovery::Event),
    /// A pair matches now: the flow entries of its flows are in force.
    Admitted {
        /// The pair.
        pair: Pair,
        /// Longest time of a sample, with the stages that its hosts announce.
        bound_ns: u64,
    },
    /// What an earlier run kept is taken up.
    Restored {
        /// Participants.
        participants: usize,
        /// Hosts.
        hosts: usize,
        /// Admitted pairs.
        pairs: usize,
        /// Records that are not readable, or have no room.
        unreadable: usize,
    },
    /// A sample of an admitted pair took longer than was proven.
    BoundExceeded {
        /// The pair.
        pair: Pair,
        /// The longest latency that the reader saw.
        worst_ns: u64,
        /// What is proven for as long as the pair is admitted.
        bound_ns: u64,
        /// What took longer than declared, as far as the reports of both ends tell.
        stage: SlowStage,
    },
    /// A pair does not match.
    Refused {
        /// The pair.
        pair: Pair,
        /// The binding hop and what would make it fit, or what is not known.
        reason: String,
    },
    /// An admitted pair shares its class and its meter with a topic without a contract
    /// ([`WithoutContract::Caution`](crate::model::WithoutContract::Caution)).
    Caution {
        /// The pair.
        pair: Pair,
        /// The topic.
        topic: String,
    },
    /// What becomes of an admitted pair when a link fails is another than it was.
    Protection {
        /// The pair.
        pair: Pair,
        /// What it has now.
        protection: Protection,
    },
    /// A participant receives discovery and user data at one address: its pairs with contracts are refused.
    SharedPort {
        /// The participant.
        participant: GuidPrefix,
        /// The address.
        address: SocketAddr,
        /// Whether its discovery is intercepted there. Not if too much user data comes; then its endpoints are not seen.
        is_intercepted: bool,
    },
    /// The meter of an admitted flow drops frames: a writer of it breaks its contract. Reported once, until drops have ended.
    ContractBroken {
        /// The pairs of the flow in words.
        flow: String,
        /// The pairs.
        pairs: Vec<Pair>,
        /// Frames that the meter dropped since it was read before.
        dropped: u64,
        /// Frames that came to it.
        frames: u64,
    },
    /// A registration is admitted, refused or withdrawn.
    Registration {
        /// Its number.
        id: RegistrationId,
        /// Its topic.
        topic: String,
        /// What it is now.
        state: State,
        /// Its bound, or why it is not served.
        outcome: Result<u64, String>,
    },
    /// A registration was removed, or its lease ended.
    RegistrationGone {
        /// Its number.
        id: RegistrationId,
        /// Its topic.
        topic: String,
    },
    /// Hosts with a limit are sent more packets without admission than that: a meter began to drop them.
    HostOverload {
        /// The switch.
        dpid: u64,
        /// The port of the hosts; `None` if the packets go to groups.
        port: Option<u32>,
        /// Packets dropped since the last reading of the meter.
        dropped: u64,
    },
    /// Floods follow these links.
    Tree(BTreeSet<forwarding::Link>),
    /// A host appeared.
    HostFound {
        /// The host.
        host: HostId,
        /// Where it is.
        at: PortRef,
    },
    /// A host is at another port.
    HostMoved {
        /// The host.
        host: HostId,
        /// Where it was.
        from: PortRef,
        /// Where it is.
        to: PortRef,
    },
    /// A host is gone.
    HostGone(HostId),
    /// A host has an IP address.
    AddressFound {
        /// The host.
        host: HostId,
        /// The address.
        address: IpAddr,
    },
    /// A frame claimed the address of a host that is elsewhere; it was dropped.
    Spoofed {
        /// The host.
        host: HostId,
        /// Where it is.
        owner: PortRef,
        /// Where the frame came in.
        at: PortRef,
    },
    /// A host claimed the IP address of another; the frame was dropped.
    AddressConflict {
        /// The host that has the address.
        owner: HostId,
        /// The host that claimed it.
        claimed_by: HostId,
        /// Where the frame came in.
        at: PortRef,
        /// The address.
        address: IpAddr,
    },
}

/// What a controller counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets from switches.
    pub packets: u64,
    /// Packets that are no frames, or were cut.
    pub malformed: u64,
    /// Packets from ports that carry nothing yet, or from unknown switches.
    pub ignored: u64,
    /// Frames with a source that is elsewhere.
    pub spoofed: u64,
    /// Frames dropped since there is no room for their host, or since their source is no host.
    pub refused: u64,
    /// ARP requests and neighbour solicitations that went to the host alone.
    pub directed: u64,
    /// Frames that went to all edges.
    pub flooded: u64,
    /// Frames that went to one port.
    pub forwarded: u64,
    /// Frames to hosts to which no way leads.
    pub unreachable: u64,
    /// Frames of DDS discovery.
    pub discovery: u64,
    /// Messages that a connection had no room for.
    pub unsent: u64,
    /// Frames of control traffic beyond the allowance of their port, which went in the lowest class.
    pub control_excess: u64,
    /// Packets to hosts with limits that meters dropped.
    pub host_excess: u64,
    /// Frames to hosts with limits that the controller did not send since its share was used up.
    pub host_excess_of_controller: u64,
    /// Frames that the controller did not forward since the policy of isolation denies them.
    pub isolated: u64,
    /// Filters between participants that found no room.
    pub filters_without_room: u64,
    /// Rules that did not fit into [`forwarding::Config::rules`].
    pub no_room_for_rule: u64,
    /// Errors of switches about packets.
    pub errors: u64,
    /// Events that were dropped.
    pub events_dropped: u64,
    /// Registrations whose lease ended.
    pub registrations_expired: u64,
    /// Readings of the counters of a switch.
    pub polls: u64,
    /// Readings that were left out, since the switch had not answered the one before.
    pub polls_left_out: u64,
    /// Counters that a switch refused, or did not give in time.
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
            Self::Resynchronised { dpid, difference: Difference { added, changed, deleted } } => {
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
                    "too many samples come there, so that its endpoints are not seen any more"
                })?;
                write!(f, "; give it ports of their own (CycloneDDS: Discovery/ParticipantIndex auto)")
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
            Self::Tree(links) => write!(f, "floods follow {} links", links.len()),
            Self::HostFound { host, at } => write!(f, "host {host} at {at}"),
            Self::HostMoved { host, from, to } => write!(f, "host {host} moved from {from} to {to}"),
            Self::HostGone(host) => write!(f, "host {host} is gone"),
            Self::AddressFound { host, address } => write!(f, "host {host} has the address {address}"),
            Self::Spoofed { host, owner, at } => {
                write!(f, "spoofed: a frame of host {host}, which is at {owner}, came in at {at}")
            }
            Self::AddressConflict { owner, claimed_by, at, address } => {
                write!(f, "host {claimed_by} at {at} claims {address}, which host {owner} has")
            }
        }
    }
}
