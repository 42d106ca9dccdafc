//! Which edges receive which multicast groups, as IGMP and MLD say (snooping, RFC 4541).
//!
//! The controller asks each edge when it comes up and every [`Config::interval`]. A group is known while an edge has said that it receives it;
//! its frames go to these edges, to routers, and to edges that have not had the time to answer yet. Frames to groups that are not known
//! follow the tree. So do groups of the link (224.0.0.0/24, ff02::/16), which need no report, and groups in VLANs, where no host is asked.
//!
//! Sans-IO and bounded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use takt_openflow::channel::Instant;

use crate::PortRef;
use crate::frame::MacAddress;
use crate::frame::membership::Statement;

/// Bounds and times of a [`Membership`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether groups are tracked at all.
    pub is_used: bool,
    /// Between two queries of an edge.
    pub interval: Duration,
    /// How long an edge may take to answer.
    pub answer: Duration,
    /// For how long a report holds: more than two intervals and an answer, so that one lost query does no harm.
    pub lifetime: Duration,
    /// Groups at most; further ones follow the tree.
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

/// Who receives what.
pub struct Membership {
    config: Config,
    /// The edges, and until when each may answer its first query.
    edges: BTreeMap<PortRef, Instant>,
    /// Edges behind which a router asked, and until when that holds.
    routers: BTreeMap<PortRef, Instant>,
    /// Of each group the edges that receive it, and until when that holds.
    groups: BTreeMap<MacAddress, BTreeMap<PortRef, Instant>>,
    next_query: Instant,
    queries: VecDeque<PortRef>,
}

/// Whether a group is of the link alone.
fn is_of_link(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[..3] == [224, 0, 0],
        IpAddr::V6(group) => group.segments()[0] & 0xff0f <= 0xff02,
    }
}

impl Membership {
    /// No edges.
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

    /// These are the edges now. Whether there are others than before.
    pub fn set_edges(&mut self, now: Instant, edges: &BTreeSet<PortRef>) -> bool {
        if !self.config.is_used {
            return false;
        }
        let gone: Vec<PortRef> = self.edges.keys().filter(|edge| !edges.contains(edge)).copied().collect();
        for edge in &gone {
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
        !gone.is_empty() || !new.is_empty()
    }

    /// An edge said something about a group. Whether who receives what has changed.
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
                // Another host at the same port may receive it still: it is asked.
                let member = MacAddress::of_group(group).and_then(|mac| self.groups.get_mut(&mac)?.get_mut(&at));
                if let Some(member) = member {
                    *member = now.after(self.config.answer).min(*member);
                    self.queries.push_back(at);
                }
                false
            }
        }
    }

    /// Asks edges, and forgets what has passed its time. Whether who receives what has changed.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if !self.config.is_used {
            return false;
        }
        if now >= self.next_query {
            self.next_query = now.after(self.config.interval);
            self.queries = self.edges.keys().copied().collect();
        }
        let holds = |until: &Instant| now < *until;
        let before = self.groups.values().map(BTreeMap::len).sum::<usize>() + self.routers.len();
        self.groups.values_mut().for_each(|members| members.retain(|_, until| holds(until)));
        self.groups.retain(|_, members| !members.is_empty());
        self.routers.retain(|_, until| holds(until));
        let after = self.groups.values().map(BTreeMap::len).sum::<usize>() + self.routers.len();
        let answered = self.edges.values_mut().filter(|until| **until != Instant(0) && now >= **until);
        // A moment before every other: it has had its time.
        let answered = answered.map(|until| *until = Instant(0)).count();
        before != after || answered > 0
    }

    /// When [`Self::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let answers = self.edges.values().filter(|until| **until != Instant(0));
        let members = self.groups.values().flat_map(BTreeMap::values);
        let all = answers.chain(members).chain(self.routers.values()).copied().chain([self.next_query]);
        all.min().filter(|_| self.config.is_used)
    }

    /// The next edge that is asked.
    pub fn poll_query(&mut self) -> Option<PortRef> {
        self.queries.pop_front()
    }

    /// The groups that are known.
    pub fn groups(&self) -> impl Iterator<Item = MacAddress> {
        self.groups.keys().copied()
    }

    /// The edges behind which routers are.
    pub fn routers(&self) -> impl Iterator<Item = PortRef> {
        self.routers.keys().copied()
    }

    /// The edges that get the frames of a group; `None` if it is not known, and follows the tree.
    pub fn receivers(&self, group: MacAddress) -> Option<BTreeSet<PortRef>> {
        let members = self.groups.get(&group)?.keys();
        let unanswered = self.edges.iter().filter(|(_, until)| **until != Instant(0)).map(|(edge, _)| edge);
        Some(members.chain(unanswered).chain(self.routers.keys()).copied().collect())
    }
}
