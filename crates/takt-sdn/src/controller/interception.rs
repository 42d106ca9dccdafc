//! DDS discovery in the controller: its frames go to the interceptor, and what that decides is forwarded.
//!
//! The port of multicast discovery of each configured domain is intercepted, and of each participant the unicast ports that it
//! announces for discovery alone. A port that a participant uses for user data, too, is not: what comes there is forwarded by rules, and
//! announcements of endpoints that are sent there pass unseen. An announcement of a participant waits until the switches divert the addresses
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
                DiscoveryEvent::PairFound { pair, contract: Err(_) } | DiscoveryEvent::PairGone { pair } => {
                    self.forget_pair(*pair);
                }
                DiscoveryEvent::ParticipantFound { participant, source, .. } => {
                    self.learn_metatraffic(*participant, source.ip());
                }
                DiscoveryEvent::ParticipantGone { participant } => self.forget_metatraffic(*participant),
                _ => {}
            }
            self.push(Event::Discovery(event));
        }
        while let Some(Emission { from, frame }) = self.discovery.poll_frame() {
            self.forward_octets(from, &frame);
        }
    }

    fn forget_metatraffic(&mut self, participant: GuidPrefix) {
        if self.metatraffic.remove(&participant).is_some() {
            self.want_all_static();
        }
    }

    /// The addresses where a participant receives discovery and nothing else.
    pub(super) fn learn_metatraffic(&mut self, participant: GuidPrefix, source: IpAddr) {
        let Some(data) = self.discovery.participants().find(|data| data.guid.prefix == participant) else { return };
        let is_shared =
            |address: &SocketAddr| data.default_unicast.iter().any(|user| address_of(user) == Some(*address));
        let addresses = data.metatraffic_unicast.iter().filter_map(address_of);
        let own = addresses.filter(|address| address.ip() == source && !is_shared(address));
        let own: Vec<SocketAddr> = own.take(ADDRESSES_MAX).collect();
        if self.metatraffic.insert(participant, own.clone()) != Some(own) {
            self.is_metatraffic_new = true;
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
        DiscoveryEvent::ParticipantGone { participant } => write!(f, "participant {participant} is gone"),
        DiscoveryEvent::PairFound { pair, contract: Ok(_) } => write!(f, "pair {pair} found, with a contract"),
        DiscoveryEvent::PairFound { pair, contract: Err(_) } => write!(f, "pair {pair} found, without a contract"),
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
