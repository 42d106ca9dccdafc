//! Links to participants, by locator. A link outlives its connections.
//!
//! A link to a listener has the locator of the listener; when its connection is lost, this side
//! connects again. A link of an accepted connection is named by the address of the peer and a
//! unique port beyond 65,535. When its connection is lost, it waits until the same participant
//! connects again from the same address. Senders therefore use a locator without knowing the
//! connections.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use takt_wire::Locator;

use super::connection::Connection;
use super::framing::Prefix;

/// Delay of the first attempt to reconnect; doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(50);
/// Maximum delay between attempts.
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// Time for which a lost connection is opened again without pending messages; later only to send
/// one.
const RECONNECT_TIME: Duration = Duration::from_secs(60);
/// First port in the names of links of accepted connections.
pub(super) const FIRST_NAME: u32 = 65_536;

/// Link to a participant.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: Locator,
    /// Address to connect to; `None` for accepted connections.
    pub(super) target: Option<SocketAddr>,
    /// Participant at the other end.
    pub(super) participant: Option<(Prefix, IpAddr)>,
    /// Certificate that this participant has shown, in DER; none without TLS.
    pub(super) certificate: Option<Arc<[u8]>>,
    /// Connection that messages are sent by.
    pub(super) connection: Option<u64>,
    /// Earliest time of the next attempt to connect.
    retry: Option<Instant>,
    delay: Duration,
    /// Time when the last connection that carried a message was lost.
    lost: Option<Instant>,
    used: u64,
}

impl Link {
    /// Reports whether a connection may be attempted now.
    pub(super) fn may_connect(&self, now: Instant) -> bool {
        self.target.is_some() && self.retry.is_none_or(|retry| retry <= now)
    }

    /// Returns the time of the next attempt without pending messages.
    pub(super) fn reconnect_due(&self, now: Instant) -> Option<Instant> {
        let is_wanted = self.lost.is_some_and(|lost| now.saturating_duration_since(lost) < RECONNECT_TIME);
        (is_wanted && self.target.is_some() && self.connection.is_none()).then_some(self.retry.unwrap_or(now))
    }

    /// Resets the delay, because the connection carried a message.
    pub(super) fn reset_delay(&mut self) {
        (self.retry, self.delay, self.lost) = (None, FIRST_DELAY, None);
    }

    pub(super) fn record_failure(&mut self, now: Instant, had_carried: bool) {
        if had_carried {
            self.lost = Some(now);
        }
        self.retry = Some(now + self.delay);
        self.delay = (self.delay * 2).min(LONGEST_DELAY);
    }
}

#[derive(Debug)]
pub(super) struct Links {
    links: Vec<Link>,
    by_name: BTreeMap<Locator, usize>,
    max: usize,
    names: u32,
    uses: u64,
}

impl Links {
    pub(super) fn new(max: usize) -> Self {
        Self { links: Vec::new(), by_name: BTreeMap::new(), max, names: 0, uses: 0 }
    }

    pub(super) fn get(&self, index: usize) -> &Link {
        &self.links[index]
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Link {
        &mut self.links[index]
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.links.iter_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Link)> {
        self.links.iter().enumerate()
    }

    /// Returns the link of this name; makes one if it is the locator of a possible listener. `None`
    /// if there is none, or no room.
    pub(super) fn find(&mut self, name: &Locator) -> Option<usize> {
        self.uses += 1;
        let index = match self.by_name.get(name) {
            Some(index) => *index,
            None => {
                let port = u16::try_from(name.port).ok()?;
                let target = SocketAddr::new(name.ip()?, port);
                self.insert(*name, Some(target), None)?
            }
        };
        self.links[index].used = self.uses;
        Some(index)
    }

    /// Returns the link of a participant that connected from an address; makes one at its first
    /// connection. `None` if there is no room.
    pub(super) fn of_accepted(&mut self, participant: (Prefix, IpAddr), kind: i32) -> Option<usize> {
        let existing =
            self.links.iter().position(|link| link.target.is_none() && link.participant == Some(participant));
        existing.or_else(|| {
            let name = Locator { port: FIRST_NAME.checked_add(self.names)?, ..super::locator(kind, participant.1) };
            self.names += 1;
            self.insert(name, None, Some(participant))
        })
    }

    fn insert(
        &mut self,
        name: Locator,
        target: Option<SocketAddr>,
        participant: Option<(Prefix, IpAddr)>,
    ) -> Option<usize> {
        let (retry, lost, used) = (None, None, self.uses);
        let link = Link {
            name,
            target,
            participant,
            certificate: None,
            connection: None,
            retry,
            delay: FIRST_DELAY,
            lost,
            used,
        };
        let index = if self.links.len() < self.max {
            self.links.push(link);
            self.links.len() - 1
        } else {
            let idle = self.links.iter().enumerate().filter(|(_, link)| link.connection.is_none());
            let (index, oldest) = idle.min_by_key(|(_, link)| link.used)?;
            self.by_name.remove(&oldest.name);
            self.links[index] = link;
            index
        };
        self.by_name.insert(name, index);
        Some(index)
    }

    /// Reports whether a participant has shown another certificate than this one. Searches all
    /// links.
    pub(super) fn has_another_certificate(&self, prefix: Prefix, certificate: Option<&[u8]>) -> bool {
        let is_of = |link: &&Link| link.participant.is_some_and(|(participant, _)| participant == prefix);
        self.links
            .iter()
            .filter(is_of)
            .any(|link| link.certificate.is_some() && link.certificate.as_deref() != certificate)
    }

    /// Sends the messages of a connection by `replacement` from now on.
    pub(super) fn redirect(&mut self, from: u64, replacement: Option<u64>) {
        for link in self.links.iter_mut().filter(|link| link.connection == Some(from)) {
            link.connection = replacement;
        }
    }

    /// Reports whether a connection leads to the participant of this link, as far as known.
    pub(super) fn is_to(link: &Link, connection: &Connection) -> bool {
        let at = connection.participant.map(|participant| (participant.prefix, connection.peer.ip()));
        link.participant.is_some() && link.participant == at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn listener(port: u32) -> Locator {
        Locator { port, ..super::super::locator(Locator::KIND_TCP_V4, Ipv4Addr::LOCALHOST.into()) }
    }

    #[test]
    fn accepted_participant_keeps_its_exclusive_link() {
        let mut links = Links::new(8);
        let participant = |n: u8| ([n; 12], IpAddr::from(Ipv4Addr::LOCALHOST));
        let first = links.of_accepted(participant(1), Locator::KIND_TCP_V4).expect("room");
        let second = links.of_accepted(participant(2), Locator::KIND_TCP_V4).expect("room");
        assert_ne!(first, second);
        assert_eq!(links.of_accepted(participant(1), Locator::KIND_TCP_V4), Some(first));
        let name = links.get(first).name;
        assert!(name.port >= FIRST_NAME && links.find(&name) == Some(first));
        assert_eq!(links.find(&Locator { port: FIRST_NAME + 77, ..name }), None, "no connection has that name");
    }

    #[test]
    fn least_recently_used_link_is_evicted() {
        let mut links = Links::new(2);
        let (a, b) = (links.find(&listener(1)).expect("room"), links.find(&listener(2)).expect("room"));
        links.find(&listener(1));
        assert_eq!(links.find(&listener(3)), Some(b));
        links.get_mut(a).connection = Some(1);
        links.get_mut(b).connection = Some(2);
        assert_eq!(links.find(&listener(4)), None, "all names are in use");
        assert_eq!((links.find(&listener(1)), links.find(&listener(3))), (Some(a), Some(b)));
    }

    #[test]
    fn reconnects_become_rarer_and_end_without_pending_messages() {
        let mut links = Links::new(2);
        let index = links.find(&listener(1)).expect("room");
        let link = links.get_mut(index);
        let mut now = Instant::now();
        let begin = now;
        assert!(link.may_connect(now) && link.reconnect_due(now).is_none());
        link.record_failure(now, true);
        let mut attempts = 0;
        while let Some(next) = link.reconnect_due(now) {
            assert!(!link.may_connect(next - Duration::from_millis(1)) && link.may_connect(next));
            (now, attempts) = (next, attempts + 1);
            link.record_failure(now, false);
        }
        // 50 ms doubled to 5 s, and then every 5 s.
        assert_eq!((attempts, now - begin), (18, Duration::from_millis(61_350)));
        link.reset_delay();
        assert!(link.may_connect(now));
    }
}
