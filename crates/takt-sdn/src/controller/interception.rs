//! DDS discovery in the controller: its frames go to the interceptor, and what that decides is forwarded.
//!
//! The port of multicast discovery of each configured domain is intercepted, and of each participant the unicast ports that it
//! announces for discovery alone. A port that a participant uses for user data, too, is intercepted if the network is described, for as long as
//! few frames come there: [`SHARED_BURST`], and [`SHARED_PER_SECOND`] of them. Its pairs with contracts are refused, so that what comes there is
//! discovery and samples without a contract. Beyond that what comes there is forwarded by rules, and announcements of endpoints pass unseen. An announcement of a participant waits until the switches divert the addresses
//! in it: otherwise the first announcements of endpoints would be answered past the controller. Only addresses that the participant sends from are believed, so that no
//! announcement diverts the traffic of another host.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use takt_openflow::channel::Instant;
use takt_wire::GuidPrefix;
use takt_wire::Locator;

use super::{Controller, Event};
use crate::PortRef;
use crate::discovery::{Decision, Emission, Event as DiscoveryEvent};
use crate::frame::{Frame, IpPacket};

/// How long discovery waits for switches at most; one that is not in sync by then lets announcements of endpoints pass unseen.
const HOLD_NS: u64 = 1_000_000_000;
/// Frames of discovery that wait at most; further ones are dropped, as on any network.
const HELD_MAX: usize = 1024;

/// Frames to a port of discovery and user data that are intercepted at once, and how many more each second.
const SHARED_BURST: u64 = 1_000;
const SHARED_PER_SECOND: u64 = 50;

/// Frames to a port of discovery and user data.
#[derive(Debug)]
pub(super) struct SharedPort {
    participant: GuidPrefix,
    /// Frames that may come, and since when.
    left: u64,
    since: Instant,
    is_intercepted: bool,
}

/// Unicast addresses of discovery that are intercepted of one participant.
const ADDRESSES_MAX: usize = 4;

fn address_of(locator: &Locator) -> Option<SocketAddr> {
    let port = u16::try_from(locator.port).ok()?; // tidy-allow(dropped-cause): a port beyond 16 bits is none.
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

    /// A frame of discovery from a host.
    pub(super) fn intercept(&mut self, now: Instant, at: PortRef, frame: &Frame<'_>) {
        self.counters.discovery += 1;
        self.changes += 1;
        self.count_shared(now, frame);
        let frames = match self.discovery.handle(now, at, frame.bytes()) {
            Decision::Pass => vec![frame.bytes().to_vec()],
            Decision::Replace(frames) => frames,
        };
        self.is_metatraffic_new = false;
        self.follow_discovery(now);
        for octets in frames {
            if !self.is_metatraffic_new && self.held.is_empty() {
                self.forward_octets(at, &octets);
            } else if self.held.len() < HELD_MAX {
                self.held.push_back((now, at, octets));
            }
        }
    }

    /// Forwards what waited until the switches divert the discovery of new participants.
    pub(super) fn forward_held(&mut self, now: Instant) {
        while let Some((since, ..)) = self.held.front() {
            if !self.is_settled() && now.0 < since.0.saturating_add(HOLD_NS) {
                return;
            }
            let Some((_, at, octets)) = self.held.pop_front() else { return };
            self.forward_octets(at, &octets);
        }
    }

    fn forward_octets(&mut self, at: PortRef, octets: &[u8]) {
        if let Ok(frame) = Frame::parse(octets) {
            self.forward(at, &frame);
        }
    }

    /// Answers and reports what the interceptor found, and sends what it has to send.
    pub(super) fn follow_discovery(&mut self, now: Instant) {
        while let Some(event) = self.discovery.poll_event() {
            match &event {
                DiscoveryEvent::PairFound { pair, contract: Ok(_) } => self.ask(now, *pair),
                DiscoveryEvent::PairFound { pair, contract: Err(_) } => {
                    self.forget_pair(*pair);
                    self.enter_without_contract(*pair);
                    self.forget_latency(*pair);
                }
                DiscoveryEvent::CompanionFound { pair } => self.ask_companion(now, *pair),
                DiscoveryEvent::PairGone { pair } => {
                    self.forget_pair(*pair);
                    self.forget_latency(*pair);
                }
                DiscoveryEvent::PairDenied { pair, reason } => self.deny(now, *pair, reason),
                DiscoveryEvent::ParticipantFound { participant, source, .. } => {
                    self.learn_metatraffic(now, *participant, source.ip());
                    self.renew_filters();
                }
                DiscoveryEvent::ParticipantGone { participant } => {
                    self.forget_metatraffic(*participant);
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

    /// Counts a frame to a port of discovery and user data. Beyond its share the port is left to the rules.
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

    fn forget_metatraffic(&mut self, participant: GuidPrefix) {
        self.shared_ports.retain(|_, port| port.participant != participant);
        if self.metatraffic.remove(&participant).is_some() {
            self.registrations.are_stale = true;
            self.want_all_static();
        }
    }

    /// The addresses where a participant receives discovery, and as long as it may be nothing else.
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

/// An event of the interceptor in words.
pub(super) fn write_event(event: &DiscoveryEvent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match event {
        DiscoveryEvent::ParticipantFound { participant, label, port, source } => {
            write!(f, "participant {participant} ({}) found, {source} at {port}", label.escape_debug())
        }
        DiscoveryEvent::LatencyReported { participant } => write!(f, "participant {participant} saw longer latencies"),
        DiscoveryEvent::ParticipantGone { participant } => write!(f, "participant {participant} is gone"),
        DiscoveryEvent::PairFound { pair, contract: Ok(_) } => write!(f, "pair {pair} found, with a contract"),
        DiscoveryEvent::PairFound { pair, contract: Err(_) } => write!(f, "pair {pair} found, without a contract"),
        DiscoveryEvent::CompanionFound { pair } => {
            write!(f, "pair {pair} waits for the multicast of its writer's others")
        }
        DiscoveryEvent::PairDenied { pair, reason } => write!(f, "pair {pair} is denied: {reason}"),
        DiscoveryEvent::PairGone { pair } => write!(f, "pair {pair} is gone"),
        DiscoveryEvent::VerdictMissed { pair } => write!(f, "pair {pair} is refused: no verdict came in time"),
        DiscoveryEvent::Forged { participant, port, source, what } => {
            write!(f, "forged: participant {participant} from {source} at {port}: {what}")
        }
        DiscoveryEvent::LimitReached { participant, limit } => {
            write!(f, "participant {participant} reached the limit {limit:?}")
        }
        DiscoveryEvent::Opaque { participant } => write!(f, "discovery of participant {participant} is encrypted"),
    }
}
