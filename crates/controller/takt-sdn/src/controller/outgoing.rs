//! Frames that the controller sends out of ports (PACKET_OUT): control traffic in its class, all
//! other frames in the lowest class.
//!
//! Control traffic is LLDP, ARP, neighbor discovery, IGMP, MLD and DDS discovery. The model of the
//! switch defines its class, and the [`Allowance`] of the port limits its rate there. Frames above
//! the allowance are sent in the lowest class, so that a flood of one host takes no bandwidth from
//! admitted flows. At a port of hosts with a limit, frames in the lowest class are dropped beyond
//! the share of the controller, except LLDP. Without a description of the network there are no
//! classes.

use std::collections::BTreeMap;

use takt_openflow::Message;
use takt_openflow::action::Action;
use takt_openflow::channel::Instant;
use takt_openflow::packet::PacketOut;
use takt_openflow::value::PortNo;

use super::Controller;
use super::packets::neighbor_of;
use crate::PortRef;
use crate::frame::membership::statements;
use crate::frame::{EtherType, Frame, LLDP, Network, with_dscp};
use crate::model::{Allowance, Cause, Egress, QueueSelection, Share};

/// Use of each allowance, by the generic cell rate algorithm (GCRA).
#[derive(Default)]
pub(super) struct RateLimiters {
    /// Theoretical arrival time of the next frame in ns.
    due: BTreeMap<(PortRef, Cause), u64>,
    /// Theoretical arrival time of the next frame to hosts with limits in ns.
    hosts: BTreeMap<PortRef, u64>,
}

/// Counts a frame if a burst of `burst` frames and one frame per `period_ns` leave room for it.
/// Reports whether they do.
fn take(now: Instant, due: &mut u64, period_ns: u64, burst: u64) -> bool {
    let next = (*due).max(now.0);
    let tolerance = period_ns.saturating_mul(burst.saturating_sub(1));
    let is_within = next - now.0 <= tolerance;
    if is_within {
        *due = next.saturating_add(period_ns);
    }
    is_within
}

impl RateLimiters {
    /// Counts a frame against the allowance, if the allowance has room for it. Reports whether it
    /// has.
    fn take(&mut self, now: Instant, at: PortRef, cause: Cause, allowance: Allowance) -> bool {
        take(now, self.due.entry((at, cause)).or_default(), allowance.period_ns, allowance.burst)
    }

    /// Counts a frame in the lowest class against the share of the hosts at a port, if the share
    /// has room for it. Reports whether it has.
    pub(super) fn take_of_host(&mut self, now: Instant, at: PortRef, share: Share) -> bool {
        let period_ns = 1_000_000_000_u64.div_ceil(u64::from(share.rate.max(1)));
        take(now, self.hosts.entry(at).or_default(), period_ns, share.burst.into())
    }

    /// Discards removed ports and shares that are full again.
    pub(super) fn retain(&mut self, now: Instant, is_known: impl Fn(PortRef) -> bool) {
        self.due.retain(|(at, _), _| is_known(*at));
        self.hosts.retain(|_, due| *due > now.0);
    }
}

impl Controller {
    /// Returns the kind of control traffic of a frame; `None` for other frames.
    pub(super) fn cause(&self, frame: &Frame<'_>) -> Option<Cause> {
        match frame.ether_type() {
            LLDP => return Some(Cause::Probe),
            EtherType::ARP => return Some(Cause::Learning),
            _ => {}
        }
        let Ok(Network::Ip(packet)) = frame.network() else { return None };
        if neighbor_of(&packet).is_some() || statements(&packet).is_some() {
            return Some(Cause::Learning);
        }
        self.is_discovery(&packet).then_some(Cause::Discovery)
    }

    /// Returns the class of control traffic at a port; `None` if the allowance of the cause is used
    /// up there.
    fn control_class(&mut self, at: PortRef, cause: Cause) -> Option<QueueSelection> {
        let snapshot = self.admission.as_ref()?.snapshot();
        let model = snapshot.switch(at.dpid)?;
        let (control, link) = (model.control?, snapshot.link(Egress::Switch(at))?);
        let allowance = Allowance::of(cause, link.rate_bps, model.foreign_frame_len);
        if self.rate_limiters.take(self.now, at, cause, allowance) {
            return Some(control.selection);
        }
        self.counters.control_excess += 1;
        None
    }

    /// Sends a frame out of ports of a switch, at each port in the class that its allowance
    /// permits.
    pub(super) fn send_packet(&mut self, dpid: u64, ports: &[u32], frame: &Frame<'_>) {
        let cause = self.cause(frame);
        let (mut classed, mut others) = (None, Vec::new());
        for port in ports {
            match cause.and_then(|cause| self.control_class(PortRef::new(dpid, *port), cause)) {
                // All ports of a switch have the same class for control traffic.
                Some(selection) => classed.get_or_insert((selection, Vec::new())).1.push(*port),
                // LLDP is rare, and detects that a port leads to a switch.
                None if cause == Some(Cause::Probe) || self.has_share(PortRef::new(dpid, *port)) => others.push(*port),
                None => {}
            }
        }
        if let Some((selection, ports)) = classed {
            let octets = selection.dscp.map_or_else(|| frame.bytes().to_vec(), |dscp| with_dscp(frame, dscp));
            self.send_octets(dpid, selection.set_queue, &ports, octets);
        }
        if !others.is_empty() {
            let is_cleared = self.config.forwarding.clear_dscp;
            let octets = if is_cleared { with_dscp(frame, 0) } else { frame.bytes().to_vec() };
            self.send_octets(dpid, None, &others, octets);
        }
    }

    fn send_octets(&mut self, dpid: u64, queue: Option<u32>, ports: &[u32], octets: Vec<u8>) {
        let outputs = ports.iter().map(|port| Action::output(PortNo(*port)));
        let actions = queue.map(Action::SetQueue).into_iter().chain(outputs).collect();
        let message = Message::PacketOut(PacketOut::new(PortNo::CONTROLLER, actions, octets));
        let connection = self.switches.get(&dpid).and_then(|switch| switch.connection);
        let session = connection.and_then(|id| self.sessions.get_mut(&id));
        if session.is_none_or(|session| session.channel.send(&message).is_err()) {
            self.counters.unsent += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowance_is_used_up_by_its_burst_and_grows_with_its_period() {
        let (mut limiters, at) = (RateLimiters::default(), PortRef::new(1, 1));
        let allowance = Allowance { period_ns: 10, burst: 3, frame_len: 1514 };
        let mut sent = |now| limiters.take(Instant(now), at, Cause::Learning, allowance);
        assert_eq!([100, 100, 100, 100, 109].map(&mut sent), [true, true, true, false, false]);
        assert_eq!([110, 110, 1000, 1000, 1000, 1000].map(&mut sent), [true, false, true, true, true, false]);
        assert!(limiters.take(Instant(1000), at, Cause::Discovery, allowance), "each cause has its own allowance");
        let share = Share { rate: 100_000_000, burst: 2 };
        let mut sent = |now| limiters.take_of_host(Instant(now), at, share);
        assert_eq!([1000, 1000, 1000, 1010].map(&mut sent), [true, true, false, true]);
        limiters.retain(Instant(1015), |_| false);
        assert!(limiters.due.is_empty());
        assert!(!limiters.take_of_host(Instant(1015), at, share), "a change of the network gives no further burst");
        limiters.retain(Instant(1030), |_| false);
        assert!(limiters.hosts.is_empty());
    }
}
