//! Queued frames whose entries have changed, delayed as much as the certificates allow.
//!
//! A port has frames of a flow in a class for as long as entries put them there, and then until the
//! last of them, and the frames that waited for it, have left: budgets and delays up to the port,
//! and the busy period there. These times are computed independently from certificates. Both the
//! certificate before the change and the present one are valid; the shorter time counts.
//!
//! | checked condition | detected error |
//! |---|---|
//! | frames that the scheduler does not count are at a port | a share was freed too early |
//! | such frames exist after a failure, and others are at new ports | paths were taken too early |
//! | frames of a flow are in two classes at two ports, or there is a new flow meanwhile | a change began too early |

use std::collections::{BTreeMap, BTreeSet};

use takt_calculus::network::{Flow, NetworkCertificate};
use takt_sdn::PortRef;
use takt_sdn::model::Egress;

use super::tables::Datagram;
use super::world::{Place, Places};

pub const FREE_TOO_EARLY: &str = "frames are under way, and counted no more";
pub const TAKEN_TOO_EARLY: &str = "frames are on a broken way, and others where none were";
pub const CHANGED_TOO_EARLY: &str = "frames are in a class of before";

/// Last frames at a port to which no entry sends them any more.
#[derive(Debug, Clone, Copy)]
struct Last {
    at_ns: u64,
    /// Time until they have drained.
    drain_ns: u64,
}

#[derive(Debug, Default)]
pub struct Queued {
    /// Datagrams that are sent, or whose last frames are under way.
    pub sent: BTreeSet<Datagram>,
    live: Places,
    last: BTreeMap<Place, Last>,
    /// The certificate before the change.
    pub before: Option<NetworkCertificate>,
}

/// Datagrams that the scheduler counts at ports, in any class.
pub type Counted = BTreeSet<(Datagram, PortRef)>;

/// Returns the name of a flow without the suffix of its backup path.
pub fn first_name(name: &str) -> &str {
    name.strip_suffix(", second way").unwrap_or(name)
}

/// Returns the time for which frames matched now may be at a port, by name of their flow. `None` if
/// the certificate has no such flow there.
fn drain_ns(certificate: &NetworkCertificate, name: &str, port: PortRef) -> Option<u64> {
    let NetworkCertificate { ports, flows, .. } = certificate;
    let port = Egress::Switch(port).to_string();
    let own = flows.iter().filter(|flow| first_name(&flow.name) == name);
    let at = |flow: &Flow| flow.hops.iter().position(|hop| ports[hop.port].name == port);
    // Considers every path of the flow.
    own.filter_map(|flow| Some(drain_at_ns(certificate, flow, at(flow)?))).max()
}

/// Returns the time for which frames matched now may be at a hop of a flow.
fn drain_at_ns(certificate: &NetworkCertificate, flow: &Flow, at: usize) -> u64 {
    let NetworkCertificate { ports, queues, .. } = certificate;
    let mut arrival_ns = 0;
    let mut next = flow.before(at);
    while let Some(n) = next {
        let hop = flow.hops[n];
        next = flow.before(n);
        // Frames wait in the interface of their host before they are matched.
        let budget_ns = if next.is_some() { queues[hop.port][hop.class].delay_ns } else { 0 };
        arrival_ns += budget_ns + ports[hop.port].delay_ns;
    }
    let busy_ns = queues[flow.hops[at].port].iter().map(|claim| claim.busy_ns).max().unwrap_or_default();
    arrival_ns + busy_ns
}

impl Queued {
    /// Updates the state to the present entries. `names` are the names of flows.
    pub fn follow(
        &mut self,
        now_ns: u64,
        live: Places,
        names: &BTreeMap<String, Datagram>,
        present: impl Fn() -> NetworkCertificate,
    ) {
        let departed: Vec<Place> = self.live.difference(&live).copied().collect();
        if !departed.is_empty() {
            let present = present();
            for place in departed {
                let drain_ns = self.drain_of(&place, names, &present).unwrap_or_default();
                self.last.insert(place, Last { at_ns: now_ns, drain_ns });
            }
        }
        self.last.retain(|place, last| !live.contains(place) && now_ns < last.at_ns + last.drain_ns);
        self.live = live;
        let Self { sent, live, last, .. } = self;
        sent.retain(|datagram| live.iter().chain(last.keys()).any(|(own, ..)| own == datagram));
    }

    fn drain_of(
        &self,
        (datagram, port, _): &Place,
        names: &BTreeMap<String, Datagram>,
        present: &NetworkCertificate,
    ) -> Option<u64> {
        let own = names.iter().filter(|(_, own)| *own == datagram).map(|(name, _)| name);
        let certificates = || self.before.iter().chain([present]);
        own.flat_map(|name| certificates().filter_map(move |certificate| drain_ns(certificate, name, *port))).min()
    }

    /// Shortens drain times after flows have left: other frames drain by the certificate without
    /// these flows.
    pub fn shorten(&mut self, names: &BTreeMap<String, Datagram>, present: &NetworkCertificate) {
        let places: Vec<Place> = self.last.keys().copied().collect();
        for place in places {
            if let (Some(drain_ns), Some(last)) = (self.drain_of(&place, names, present), self.last.get(&place)) {
                let drain_ns = drain_ns.min(last.drain_ns);
                self.last.insert(place, Last { drain_ns, ..*last });
            }
        }
    }

    pub fn is_drained(&self) -> bool {
        self.last.is_empty()
    }

    /// # Errors
    /// Frames that no certificate covers.
    pub fn check(&self, counted: &Counted, before: &Places, is_failure: bool) -> Result<(), String> {
        let all = || self.live.iter().chain(self.last.keys());
        let ports = |places: &Places| places.iter().map(|(datagram, port, _)| (*datagram, *port)).collect::<Counted>();
        let uncounted: Vec<&Place> =
            all().filter(|(datagram, port, _)| !counted.contains(&(*datagram, *port))).collect();
        let (now, known) = (ports(&self.live), ports(before));
        let new: Vec<_> = now.difference(&known).collect();
        if !uncounted.is_empty() && (!is_failure || !new.is_empty()) {
            let kind = if is_failure { TAKEN_TOO_EARLY } else { FREE_TOO_EARLY };
            let last: Vec<_> = uncounted.iter().filter_map(|place| self.last.get(place)).collect();
            return Err(format!("{kind}: {uncounted:?}, last sent {last:?}, with {new:?}"));
        }
        let is_in_two = |(datagram, port, class): &&Place| {
            self.live.iter().any(|(own, at, other)| (own, at) == (datagram, port) && other != class)
        };
        let changing: Vec<&Place> = self.last.keys().filter(is_in_two).collect();
        let flows: BTreeSet<Datagram> = before.iter().map(|(datagram, ..)| *datagram).collect();
        let is_new = |(datagram, port): &&&(Datagram, PortRef)| {
            !flows.contains(datagram) || changing.iter().any(|(own, at, _)| own == datagram && at == port)
        };
        let others: Vec<_> = new.iter().filter(is_new).collect();
        if changing.len() > 1 || !changing.is_empty() && !others.is_empty() {
            return Err(format!("{CHANGED_TOO_EARLY}: {changing:?}, with {others:?}"));
        }
        Ok(())
    }
}
