//! Multicast membership of edges by IGMP and MLD snooping (RFC 4541).
//!
//! The controller queries each edge when it comes up and every [`Config::interval`]. A group is
//! known while at least one edge has reported it; its frames are sent to these edges, to routers,
//! and to edges that have not had the time to answer yet. Frames to unknown groups are flooded
//! along the tree. So are link-local groups (224.0.0.0/24, ff02::/16), which need no report, and
//! groups in VLANs, where no queries are sent.
//!
//! Sans-IO and bounded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use takt_openflow::channel::Instant;

use crate::PortRef;
use crate::frame::MacAddress;
use crate::frame::membership::Statement;

/// Limits and timing of a [`Membership`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether groups are tracked.
    pub is_used: bool,
    /// Interval between two queries of an edge.
    pub interval: Duration,
    /// Time within which an edge must answer.
    pub answer: Duration,
    /// Lifetime of a report: more than two intervals and a response time, so that one lost query
    /// does no harm.
    pub lifetime: Duration,
    /// Maximum number of groups; further ones are flooded.
    pub groups: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            is_used: true,
            interval: Duration::from_secs(60),
            answer: Duration::from_secs(3),
            lifetime: Duration::from_secs(130),
            groups: 256,
        }
    }
}

/// Membership of edges in multicast groups.
pub struct Membership {
    config: Config,
    /// Edges, with the time until which each may answer its first query.
    edges: BTreeMap<PortRef, Instant>,
    /// Edges with a router, with the time until which its query is valid.
    routers: BTreeMap<PortRef, Instant>,
    /// Edges that receive each group, with the time until which their report is valid.
    groups: BTreeMap<MacAddress, BTreeMap<PortRef, Instant>>,
    next_query: Instant,
    queries: VecDeque<PortRef>,
}

/// Reports whether a group is link-local.
fn is_of_link(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[..3] == [224, 0, 0],
        IpAddr::V6(group) => group.segments()[0] & 0xff0f <= 0xff02,
    }
}

impl Membership {
    /// Creates a membership without edges.
    pub fn new(now: Instant, config: Config) -> Self {
        Self {
            next_query: now.after(config.interval),
            config,
            edges: BTreeMap::new(),
            routers: BTreeMap::new(),
            groups: BTreeMap::new(),
            queries: VecDeque::new(),
        }
    }

    /// Sets the present edges. Reports whether they changed.
    pub fn set_edges(&mut self, now: Instant, edges: &BTreeSet<PortRef>) -> bool {
        if !self.config.is_used {
            return false;
        }
        let removed: Vec<PortRef> = self.edges.keys().filter(|edge| !edges.contains(edge)).copied().collect();
        for edge in &removed {
            self.edges.remove(edge);
            self.routers.remove(edge);
            for members in self.groups.values_mut() {
                members.remove(edge);
            }
        }
        self.groups.retain(|_, members| !members.is_empty());
        let new: Vec<PortRef> = edges.iter().filter(|edge| !self.edges.contains_key(edge)).copied().collect();
        for edge in &new {
            self.edges.insert(*edge, now.after(self.config.answer));
            self.queries.push_back(*edge);
        }
        !removed.is_empty() || !new.is_empty()
    }

    /// Handles a report or query at an edge. Reports whether the membership changed.
    pub fn handle(&mut self, now: Instant, at: PortRef, statement: Statement) -> bool {
        if !self.config.is_used || !self.edges.contains_key(&at) {
            return false;
        }
        let until = now.after(self.config.lifetime);
        match statement {
            Statement::Query => self.routers.insert(at, until).is_none(),
            Statement::Receives(group) | Statement::Leaves(group) if is_of_link(group) => false,
            Statement::Receives(group) => {
                let Some(mac) = MacAddress::of_group(group) else { return false };
                if !self.groups.contains_key(&mac) && self.groups.len() >= self.config.groups {
                    return false;
                }
                self.groups.entry(mac).or_default().insert(at, until).is_none()
            }
            Statement::Leaves(group) => {
                // Another host at the same port may still receive the group, so the edge is
                // queried.
                let member = MacAddress::of_group(group).and_then(|mac| self.groups.get_mut(&mac)?.get_mut(&at));
                if let Some(member) = member {
                    *member = now.after(self.config.answer).min(*member);
                    self.queries.push_back(at);
                }
                false
            }
        }
    }

    /// Queues queries, and removes expired entries. Reports whether the membership changed.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if !self.config.is_used {
            return false;
        }
        if now >= self.next_query {
            self.next_query = now.after(self.config.interval);
            self.queries = self.edges.keys().copied().collect();
        }
        let is_valid = |until: &Instant| now < *until;
        let before = self.groups.values().map(BTreeMap::len).sum::<usize>() + self.routers.len();
        self.groups.values_mut().for_each(|members| members.retain(|_, until| is_valid(until)));
        self.groups.retain(|_, members| !members.is_empty());
        self.routers.retain(|_, until| is_valid(until));
        let after = self.groups.values().map(BTreeMap::len).sum::<usize>() + self.routers.len();
        let answered = self.edges.values_mut().filter(|until| **until != Instant(0) && now >= **until);
        // Zero marks an edge whose time has passed.
        let answered = answered.map(|until| *until = Instant(0)).count();
        before != after || answered > 0
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = self.edges.values().filter(|until| **until != Instant(0));
        let members = self.groups.values().flat_map(BTreeMap::values);
        let all = deadlines.chain(members).chain(self.routers.values()).copied().chain([self.next_query]);
        all.min().filter(|_| self.config.is_used)
    }

    /// Returns the next edge to be queried.
    pub fn poll_query(&mut self) -> Option<PortRef> {
        self.queries.pop_front()
    }

    /// Returns the known groups.
    pub fn groups(&self) -> impl Iterator<Item = MacAddress> {
        self.groups.keys().copied()
    }

    /// Returns the edges with a router.
    pub fn routers(&self) -> impl Iterator<Item = PortRef> {
        self.routers.keys().copied()
    }

    /// Returns the edges that receive the frames of a group; `None` for an unknown group, whose
    /// frames are flooded.
    pub fn receivers(&self, group: MacAddress) -> Option<BTreeSet<PortRef>> {
        let members = self.groups.get(&group)?.keys();
        let unanswered = self.edges.iter().filter(|(_, until)| **until != Instant(0)).map(|(edge, _)| edge);
        Some(members.chain(unanswered).chain(self.routers.keys()).copied().collect())
    }
}
