//! Interception of DDS discovery in the controller: frames of discovery are passed to the
//! interceptor, which decides what is forwarded.
//!
//! The controller intercepts the multicast discovery port of each configured domain, and the
//! unicast ports that each participant announces only for discovery. A port that a participant also
//! uses for user data is intercepted if the network is described, as long as few frames arrive
//! there: [`SHARED_BURST`] at once, and [`SHARED_PER_SECOND`]. Its pairs with contracts are
//! refused, so that only discovery and samples without a contract arrive at such a port. Beyond
//! this rate, rules forward its frames, and announcements of endpoints pass unseen.
//!
//! An announcement of a participant waits until the switches divert the addresses in it. Otherwise
//! the first announcements of endpoints would bypass the controller. Only addresses that the
//! participant sends from are accepted, so that no announcement diverts the traffic of another
//! host.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use takt_openflow::channel::Instant;
use takt_wire::GuidPrefix;
use takt_wire::Locator;

use super::{Controller, Event};
use crate::PortRef;
use crate::discovery::{Decision, Emission, Event as DiscoveryEvent};
use crate::frame::{Frame, IpPacket};

/// Maximum time for which discovery waits for switches. A switch that is not in sync by then lets
/// announcements of endpoints pass unseen.
const HOLD_NS: u64 = 1_000_000_000;
/// Maximum number of waiting discovery frames; further ones are dropped, as on any network.
const HELD_MAX: usize = 1024;

/// Number of frames to a shared port of discovery and user data that are intercepted at once, and
/// rate at which the budget is refilled.
const SHARED_BURST: u64 = 1_000;
const SHARED_PER_SECOND: u64 = 50;

/// Budget of frames to a shared port of discovery and user data.
#[derive(Debug)]
pub(super) struct SharedPort {
    participant: GuidPrefix,
    /// Number of frames left, and the time at which it was computed.
    left: u64,
    since: Instant,
    is_intercepted: bool,
}

/// Maximum number of intercepted unicast discovery addresses per participant.
const ADDRESSES_MAX: usize = 4;

fn address_of(locator: &Locator) -> Option<SocketAddr> {
    let port = u16::try_from(locator.port).ok()?; // tidy-allow(dropped-cause): a port beyond 16 bits is invalid.
    let ip = match locator.kind {
        Locator::KIND_UDP_V4 => IpAddr::from(*locator.address.last_chunk::<4>()?),
        Locator::KIND_UDP_V6 => IpAddr::from(locator.address),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

impl Controller {
    pub(super) fn is_discovery(&self, packet: &IpPacket<'_>) -> bool {
        let Some(datagram) = packet.udp() else { return false };
        let to = SocketAddr::new(packet.destination(), datagram.destination_port());
        self.discovery_ports.contains(&to.port()) || self.metatraffic.values().flatten().any(|address| *address == to)
    }

    /// Handles a discovery frame from a host.
    pub(super) fn intercept(&mut self, now: Instant, at: PortRef, frame: &Frame<'_>) {
        self.counters.discovery += 1;
        self.changes += 1;
        self.count_shared(now, frame);
        let frames = match self.discovery.handle(now, at, frame.bytes()) {
            Decision::Pass => vec![frame.bytes().to_vec()],
            Decision::Replace(frames) => frames,
        };
        self.is_metatraffic_new = false;
        self.handle_discovery_events(now);
        for octets in frames {
            if !self.is_metatraffic_new && self.held_frames.is_empty() {
                self.forward_octets(at, &octets);
            } else if self.held_frames.len() < HELD_MAX {
                self.held_frames.push_back((now, at, octets));
            }
        }
    }

    /// Forwards frames that waited until the switches diverted the discovery of new participants.
    pub(super) fn forward_held(&mut self, now: Instant) {
        while let Some((since, ..)) = self.held_frames.front() {
            if !self.is_settled() && now.0 < since.0.saturating_add(HOLD_NS) {
                return;
            }
            let Some((_, at, octets)) = self.held_frames.pop_front() else { return };
            self.forward_octets(at, &octets);
        }
    }

    fn forward_octets(&mut self, at: PortRef, octets: &[u8]) {
        if let Ok(frame) = Frame::parse(octets) {
            self.forward(at, &frame);
        }
    }

    /// Processes the events of the interceptor and sends its frames.
    pub(super) fn handle_discovery_events(&mut self, now: Instant) {
        while let Some(event) = self.discovery.poll_event() {
            match &event {
                DiscoveryEvent::PairFound { pair, contract: Ok(_) } => self.request_admission(now, *pair),
                DiscoveryEvent::PairFound { pair, contract: Err(_) } => {
                    self.remove_pair(*pair);
                    self.register_uncontracted(*pair);
                    self.remove_latency(*pair);
                }
                DiscoveryEvent::CompanionFound { pair } => self.request_companion(now, *pair),
                DiscoveryEvent::PairGone { pair } => {
                    self.remove_pair(*pair);
                    self.remove_latency(*pair);
                }
                DiscoveryEvent::PairDenied { pair, reason } => self.deny(now, *pair, reason),
                DiscoveryEvent::ParticipantFound { participant, source, .. } => {
                    self.learn_metatraffic(now, *participant, source.ip());
                    self.renew_filters();
                }
                DiscoveryEvent::ParticipantGone { participant } => {
                    self.remove_metatraffic(*participant);
                    self.renew_filters();
                }
                DiscoveryEvent::LatencyReported { participant } => {
                    self.compare_latencies(*participant);
                    continue;
                }
                _ => {}
            }
            self.push(Event::Discovery(event));
        }
        while let Some(Emission { from, frame }) = self.discovery.poll_frame() {
            self.forward_octets(from, &frame);
        }
    }

    /// Counts a frame to a shared port of discovery and user data. When its budget is exhausted,
    /// the port is left to the rules.
    fn count_shared(&mut self, now: Instant, frame: &Frame<'_>) {
        let Some((packet, datagram)) = frame.udp() else { return };
        let address = SocketAddr::new(packet.destination(), datagram.destination_port());
        let Some(port) = self.shared_ports.get_mut(&address).filter(|port| port.is_intercepted) else { return };
        let earned = now.0.saturating_sub(port.since.0).saturating_mul(SHARED_PER_SECOND) / 1_000_000_000;
        if earned > 0 {
            (port.left, port.since) = (port.left.saturating_add(earned).min(SHARED_BURST), now);
        }
        if let Some(left) = port.left.checked_sub(1) {
            port.left = left;
            return;
        }
        port.is_intercepted = false;
        let participant = port.participant;
        let addresses = self.metatraffic.entry(participant).or_default();
        addresses.retain(|own| *own != address);
        self.push(Event::SharedPort { participant, address, is_intercepted: false });
        self.want_all_static();
    }

    fn remove_metatraffic(&mut self, participant: GuidPrefix) {
        self.shared_ports.retain(|_, port| port.participant != participant);
        if self.metatraffic.remove(&participant).is_some() {
            self.registrations.are_stale = true;
            self.want_all_static();
        }
    }

    /// Records the addresses at which a participant receives discovery. An address that is shared
    /// with user data is intercepted only within its budget.
    pub(super) fn learn_metatraffic(&mut self, now: Instant, participant: GuidPrefix, source: IpAddr) {
        let Some(data) = self.discovery.participants().find(|data| data.guid.prefix == participant) else { return };
        let is_shared =
            |address: &SocketAddr| data.default_unicast.iter().any(|user| address_of(user) == Some(*address));
        let addresses = data.metatraffic_unicast.iter().filter_map(address_of);
        let own = addresses.filter(|address| address.ip() == source).take(ADDRESSES_MAX);
        let (shared, mut own): (Vec<SocketAddr>, Vec<SocketAddr>) = own.partition(is_shared);
        let shared = if self.admission.is_some() { shared } else { Vec::new() };
        for address in shared {
            let port = SharedPort { participant, left: SHARED_BURST, since: now, is_intercepted: true };
            let is_new = !self.shared_ports.contains_key(&address);
            if self.shared_ports.entry(address).or_insert(port).is_intercepted {
                own.push(address);
            }
            if is_new {
                self.push(Event::SharedPort { participant, address, is_intercepted: true });
            }
        }
        if self.metatraffic.insert(participant, own.clone()) != Some(own) {
            (self.is_metatraffic_new, self.registrations.are_stale) = (true, true);
            self.want_all_static();
        }
    }
}

/// Writes an event of the interceptor as text.
pub(super) fn write_event(event: &DiscoveryEvent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match event {
        DiscoveryEvent::ParticipantFound { participant, label, port, source } => {
            write!(f, "participant {participant} ({}) found, {source} at {port}", label.escape_debug())
        }
        DiscoveryEvent::LatencyReported { participant } => write!(f, "participant {participant} has longer latencies"),
        DiscoveryEvent::ParticipantGone { participant } => write!(f, "participant {participant} is gone"),
        DiscoveryEvent::PairFound { pair, contract: Ok(_) } => write!(f, "pair {pair} found, with a contract"),
        DiscoveryEvent::PairFound { pair, contract: Err(_) } => write!(f, "pair {pair} found, without a contract"),
        DiscoveryEvent::CompanionFound { pair } => {
            write!(f, "pair {pair} waits for the other multicast readers of its writer")
        }
        DiscoveryEvent::PairDenied { pair, reason } => write!(f, "pair {pair} is denied: {reason}"),
        DiscoveryEvent::PairGone { pair } => write!(f, "pair {pair} is gone"),
        DiscoveryEvent::VerdictMissed { pair } => write!(f, "pair {pair} is refused: no verdict arrived in time"),
        DiscoveryEvent::Forged { participant, port, source, what } => {
            write!(f, "forged: participant {participant} from {source} at {port}: {what}")
        }
        DiscoveryEvent::LimitReached { participant, limit } => {
            write!(f, "participant {participant} reached the limit {limit:?}")
        }
        DiscoveryEvent::Opaque { participant } => write!(f, "discovery of participant {participant} is encrypted"),
    }
}
