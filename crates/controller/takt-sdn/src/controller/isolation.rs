//! Isolation in the switches: the second table drops denied frames, and the controller does not
//! forward them.
//!
//! The policy file defines the filters between networks. A filter between two participants exists
//! where the decision by labels differs from the decision by addresses. It matches the source
//! address of the sender, and a user address of the receiver with its UDP port. The port
//! distinguishes several receivers at one address. Senders at one address are not distinguished: a
//! flow that is allowed for one of them passes for all.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use takt_openflow::channel::Instant;

use super::Controller;
use crate::discovery::Pair;
use crate::frame::{Frame, Network as Payload};
use crate::isolation::{Decision, ENTRIES_MAX, Filter, Labels, Network, PARTICIPANTS};

impl Controller {
    /// Returns the filters of the policy, the lowest rank first.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// Computes the filters of the present participants.
    pub(super) fn renew_filters(&mut self) {
        let policy = self.discovery.isolation();
        let mut filters = policy.filters();
        if !policy.is_open() && policy.has_labels_of_participants() {
            let of_file = filters.len();
            for ((from, to), is_allowed) in self.participant_flows() {
                let (network, receiver) = (Network::host(from), Network::host(to.ip()));
                let is_same = decided(&filters[..of_file], from, to.ip()) == is_allowed;
                if is_same {
                    continue;
                }
                if filters.len() >= ENTRIES_MAX {
                    self.counters.filters_without_room += 1;
                    continue;
                }
                let port = Some(to.port());
                filters.push(Filter { rank: PARTICIPANTS, from: network, to: receiver, port, is_allowed });
            }
            filters.sort_unstable();
        }
        if filters != self.filters {
            (self.filters, self.are_members_stale, self.registrations.are_stale) = (filters, true, true);
            self.want_all_static();
        }
    }

    /// Returns for each participant address and user address of another participant whether the
    /// labels allow flows.
    fn participant_flows(&self) -> BTreeMap<(IpAddr, SocketAddr), bool> {
        let policy = self.discovery.isolation();
        let known: Vec<(IpAddr, Labels, Vec<SocketAddr>)> = self
            .discovery
            .participants()
            .filter_map(|data| {
                let (_, source, _) = self.discovery.origin(data.guid.prefix)?;
                let labels = self.discovery.labels_of_participant(data.guid.prefix)?;
                let user = data.default_unicast.iter().filter_map(takt_wire::Locator::socket_addr);
                Some((source.ip(), labels, user.collect()))
            })
            .collect();
        let mut flows = BTreeMap::new();
        for (from, labels, _) in &known {
            for (to, others, user) in known.iter().filter(|(to, ..)| to != from && to.is_ipv4() == from.is_ipv4()) {
                let is_allowed = policy.decide(labels, others) == Decision::Allow;
                for address in user.iter().filter(|address| address.ip() == *to) {
                    *flows.entry((*from, *address)).or_insert(false) |= is_allowed;
                }
            }
        }
        flows
    }

    /// Reports whether the policy denies a frame that is not control traffic.
    pub(super) fn is_isolated(&self, frame: &Frame<'_>) -> bool {
        if self.filters.is_empty() || self.cause(frame).is_some() {
            return false;
        }
        let Ok(Payload::Ip(packet)) = frame.network() else { return false };
        !crate::isolation::passes(&self.filters, &packet)
    }

    /// Logs that the policy denies a pair, and removes the pair from admission.
    pub(super) fn deny(&mut self, now: Instant, pair: Pair, reason: &str) {
        self.remove_pair(pair);
        self.log_decision(now, pair, Err(reason.to_owned()));
    }
}

/// Reports whether the filters between networks allow a datagram. Without a matching filter it is
/// allowed.
fn decided(filters: &[Filter], from: IpAddr, to: IpAddr) -> bool {
    let about = filters.iter().rev().find(|filter| filter.is_between(from, to));
    about.is_none_or(|filter| filter.is_allowed)
}
