//! One member of a controller cluster: election, lease, loading the predecessor's records, saving
//! its own.
//!
//! Sans-IO and deterministic. At most one request is outstanding.

use std::collections::VecDeque;
use std::fmt;

use takt_openflow::channel::Instant;

use super::Cluster;
use super::etcd::{OPERATIONS_MAX, Request, Response};
use crate::store::{Changes, Records};

/// Events of the membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// This member is leader and has these records.
    Elected {
        /// Generation; grows with each election.
        generation: u64,
        /// Records that the previous leader left.
        records: Records,
    },
    /// Another member is leader.
    Follows {
        /// Name of the leader.
        leader: String,
        /// Its generation.
        generation: u64,
    },
    /// This member is no longer leader, for this reason.
    Deposed(String),
    /// etcd does not answer or refuses a request; reported once until it answers again.
    Unreachable(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elected { generation, records } => {
                write!(f, "this controller is leader, generation {generation}, with {} records", records.len())
            }
            Self::Follows { leader, generation } => {
                write!(f, "this controller is standby; {leader} is leader, generation {generation}")
            }
            Self::Deposed(why) => write!(f, "this controller is no longer leader: {why}"),
            Self::Unreachable(why) => write!(f, "the cluster is unreachable: {why}"),
        }
    }
}

struct Lease {
    id: u64,
    /// Time before which etcd does not end the lease.
    valid_until: Instant,
    renew_at: Instant,
}

enum State {
    Candidate,
    Loading { generation: u64, records: Records, from: String },
    Leader { generation: u64 },
}

/// A member of the cluster.
pub struct Member {
    cluster: Cluster,
    name: String,
    state: State,
    lease: Option<Lease>,
    /// The outstanding request and the time when it was sent.
    under_way: Option<(Request, Instant)>,
    /// Time of the next attempt of a candidate, or of the repetition of a failed request.
    try_at: Instant,
    changes: VecDeque<Changes>,
    follows: Option<(String, u64)>,
    is_unreachable: bool,
    is_leaving: bool,
    events: VecDeque<Event>,
}

impl Member {
    /// Creates a candidate without a lease.
    pub fn new(now: Instant, cluster: Cluster, name: String) -> Self {
        Self {
            cluster,
            name,
            state: State::Candidate,
            lease: None,
            under_way: None,
            try_at: now,
            changes: VecDeque::new(),
            follows: None,
            is_unreachable: false,
            is_leaving: false,
            events: VecDeque::new(),
        }
    }

    /// Returns the prefix of the cluster's keys.
    pub fn prefix(&self) -> &str {
        &self.cluster.prefix
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time until which this member is leader without a renewal of its lease; `None` if
    /// it is not leader.
    pub fn leads_until(&self) -> Option<Instant> {
        matches!(self.state, State::Leader { .. }).then_some(self.lease.as_ref()?.valid_until)
    }

    /// Queues changes of the leader's records. Changes of a member that is not leader are dropped.
    pub fn save(&mut self, changes: Changes) {
        if !matches!(self.state, State::Leader { .. }) {
            return;
        }
        let Changes { put, removed } = changes;
        let puts = put.chunks(OPERATIONS_MAX).map(|put| Changes { put: put.to_vec(), removed: Vec::new() });
        let removals = removed.chunks(OPERATIONS_MAX).map(|keys| Changes { put: Vec::new(), removed: keys.to_vec() });
        self.changes.extend(removals.chain(puts));
    }

    /// Reports whether all changes are in etcd.
    pub fn is_saved(&self) -> bool {
        self.changes.is_empty() && !matches!(self.under_way, Some((Request::Save { .. }, _)))
    }

    /// Resigns after all changes are saved.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Discards the lease, which then expires.
    pub fn abandon(&mut self) {
        (self.lease, self.under_way) = (None, None);
    }

    fn holds(&self, now: Instant) -> bool {
        self.lease.as_ref().is_some_and(|lease| now < lease.valid_until)
    }

    /// Reports whether the member has resigned and has nothing left to do.
    pub fn has_left(&self) -> bool {
        self.is_leaving && self.lease.is_none() && self.under_way.is_none()
    }

    /// Returns the time of the next action, if no request is outstanding.
    pub fn poll_timeout(&self) -> Instant {
        let renewal = self.lease.as_ref().map_or(self.try_at, |lease| lease.renew_at.min(lease.valid_until));
        match self.state {
            State::Leader { .. } if self.changes.is_empty() => renewal.max(self.try_at),
            _ => self.try_at,
        }
    }

    /// Returns the next request, to be sent now. [`Self::handle_response`] accepts its response.
    pub fn poll_request(&mut self, now: Instant) -> Option<Request> {
        if self.under_way.is_some() {
            return None;
        }
        if self.lease.is_some() && !self.holds(now) {
            self.lose_lease("its lease has ended");
        }
        if now < self.try_at {
            return None;
        }
        let request = self.next_request(now)?;
        self.under_way = Some((request.clone(), now));
        Some(request)
    }

    fn next_request(&mut self, now: Instant) -> Option<Request> {
        let Some(lease) = &self.lease else {
            let seconds = self.cluster.lease.as_secs();
            return (!self.is_leaving).then_some(Request::Grant { seconds });
        };
        if now >= lease.renew_at {
            return Some(Request::KeepAlive { lease: lease.id });
        }
        match &self.state {
            State::Leader { generation } if !self.changes.is_empty() => {
                let changes = self.changes.front()?.clone();
                Some(Request::Save { generation: *generation, changes })
            }
            _ if self.is_leaving => Some(Request::Revoke { lease: lease.id }),
            State::Leader { .. } => None,
            State::Candidate => Some(Request::Campaign { lease: lease.id, name: self.name.clone() }),
            State::Loading { generation, from, .. } => {
                Some(Request::Load { from: from.clone(), revision: *generation })
            }
        }
    }

    /// Handles the response to the outstanding request, or the reason why there is none.
    pub fn handle_response(&mut self, now: Instant, response: Result<Response, String>) {
        let Some((request, sent)) = self.under_way.take() else { return };
        let response = match response {
            Ok(response) => response,
            Err(why) => return self.fail(now, &request, why),
        };
        self.is_unreachable = false;
        match (request, response) {
            (_, Response::Granted { lease }) => self.renew(lease, sent),
            // After a late response, other members may consider the lease as expired.
            (Request::KeepAlive { lease }, Response::Alive(true)) if self.holds(now) => self.renew(lease, sent),
            (_, Response::Alive(_)) => self.lose_lease("etcd has ended its lease"),
            (_, Response::Revoked) => self.lose_lease("it resigned"),
            (_, Response::Elected { generation }) => {
                self.follows = None;
                self.state = State::Loading { generation, records: Records::new(), from: String::new() };
            }
            (_, Response::Follows { leader, generation }) => {
                self.try_at = now.after(self.cluster.retry);
                // A key of this member's own earlier run, whose lease has not expired yet, has
                // another generation.
                if self.follows.as_ref() != Some(&(leader.clone(), generation)) {
                    self.follows = Some((leader.clone(), generation));
                    self.events.push_back(Event::Follows { leader, generation });
                }
            }
            (_, Response::Records(page, has_more)) => self.take_page(page, has_more),
            (_, Response::Saved(true)) => _ = self.changes.pop_front(),
            (_, Response::Saved(false)) => self.depose("another controller was elected"),
        }
    }

    fn take_page(&mut self, page: Vec<(String, Vec<u8>)>, has_more: bool) {
        let State::Loading { generation, records, from } = &mut self.state else { return };
        if let Some((last, _)) = page.last() {
            *from = format!("{last}\0");
        }
        let is_last = page.is_empty() || !has_more;
        records.extend(page);
        if is_last {
            let (generation, records) = (*generation, std::mem::take(records));
            self.state = State::Leader { generation };
            self.events.push_back(Event::Elected { generation, records });
        }
    }

    /// Renews the lease. It counts from the time of the request, less a sixth for differences
    /// between clocks.
    fn renew(&mut self, id: u64, sent: Instant) {
        let lease = self.cluster.lease;
        self.lease = Some(Lease { id, valid_until: sent.after(lease - lease / 6), renew_at: sent.after(lease / 3) });
    }

    fn fail(&mut self, now: Instant, request: &Request, why: String) {
        self.try_at = now.after(self.cluster.retry);
        if matches!(request, Request::Revoke { .. }) {
            // The lease expires.
            self.lease = None;
        }
        if !std::mem::replace(&mut self.is_unreachable, true) {
            self.events.push_back(Event::Unreachable(why));
        }
    }

    fn lose_lease(&mut self, why: &str) {
        self.lease = None;
        self.depose(why);
    }

    fn depose(&mut self, why: &str) {
        self.changes.clear();
        if let State::Leader { .. } = std::mem::replace(&mut self.state, State::Candidate) {
            self.events.push_back(Event::Deposed(why.to_owned()));
        }
    }
}
