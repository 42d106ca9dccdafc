//! SPDP announcements (RTPS 2.5 §8.5.3) that a daemon stores. It sends those of its applications
//! together, and repeats those of other hosts to applications that join.

use std::collections::BTreeMap;
use std::time::Duration;

use takt_wire::{GuidPrefix, Locator, SequenceNumber};

use super::frame::Inbound;

/// Maximum number of stored announcements of other hosts; the oldest is evicted.
pub(super) const REMOTE_MAX: usize = 1024;
/// Maximum size of a stored announcement, in octets.
pub(super) const LEN_MAX: usize = 8192;
/// Time for which an announcement of another host is repeated to applications that join.
const REMOTE_LIFETIME: Duration = Duration::from_secs(30);

/// Last announcement of an application.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) message: Vec<u8>,
    pub(super) sn: SequenceNumber,
    /// Destinations of the application: groups and peers.
    pub(super) destinations: Vec<Locator>,
    /// Arrival time of the last announcement, and its distance from the one before.
    arrived: Duration,
    period: Duration,
    /// Time of the last transmission to the network.
    sent: Duration,
}

impl Own {
    /// Stores the first announcement, or one with new content, which is sent at once.
    pub(super) fn new(now: Duration, message: &[u8], sn: SequenceNumber, destinations: &[Locator]) -> Self {
        let (message, destinations) = (message.to_vec(), destinations.to_vec());
        Self { message, sn, destinations, arrived: now, period: Duration::ZERO, sent: now }
    }

    /// Records a repetition. Reports whether to send it to the network now, because it was not sent
    /// with those of other applications for three quarters of its period.
    pub(super) fn repeat(&mut self, now: Duration) -> bool {
        self.period = now.saturating_sub(self.arrived);
        self.arrived = now;
        let is_due = now.saturating_sub(self.sent) >= self.period * 3 / 4;
        if is_due {
            self.sent = now;
        }
        is_due
    }

    /// Reports whether to send it with the announcement of another application, because half of its
    /// period has elapsed.
    pub(super) fn joins(&mut self, now: Duration) -> bool {
        let is_due = !self.period.is_zero() && now.saturating_sub(self.sent) >= self.period / 2;
        if is_due {
            self.sent = now;
        }
        is_due
    }
}

#[derive(Debug)]
struct RemoteAnnouncement {
    header: Inbound,
    message: Vec<u8>,
    at: Duration,
}

/// Announcements of participants on other hosts in one domain.
#[derive(Debug, Default)]
pub(super) struct RemoteAnnouncements(BTreeMap<GuidPrefix, RemoteAnnouncement>);

impl RemoteAnnouncements {
    /// Stores the announcement of a participant on another host.
    pub(super) fn insert(&mut self, now: Duration, prefix: GuidPrefix, header: Inbound, message: &[u8]) {
        if message.len() > LEN_MAX {
            return;
        }
        if let Some(stored) = self.0.get_mut(&prefix) {
            (stored.header, stored.at) = (header, now);
            stored.message.clear();
            stored.message.extend_from_slice(message);
            return;
        }
        if self.0.len() == REMOTE_MAX
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, announcement)| announcement.at).map(|(prefix, _)| *prefix)
        {
            self.0.remove(&oldest);
        }
        self.0.insert(prefix, RemoteAnnouncement { header, message: message.to_vec(), at: now });
    }

    /// Removes the announcement of a participant that left.
    pub(super) fn remove(&mut self, prefix: &GuidPrefix) {
        self.0.remove(prefix);
    }

    /// Returns the recent announcements.
    pub(super) fn recent(&self, now: Duration) -> impl Iterator<Item = (&Inbound, &[u8])> {
        let recent = self.0.values().filter(move |announcement| now.saturating_sub(announcement.at) < REMOTE_LIFETIME);
        recent.map(|announcement| (&announcement.header, &announcement.message[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn lone_application_is_announced_at_its_own_period() {
        let mut own = Own::new(Duration::ZERO, b"", SequenceNumber::FIRST, &[]);
        let times = [100, 300, 700, 1500, 4500, 7500].map(Duration::from_millis);
        assert!(times.into_iter().all(|now| own.repeat(now)));
    }

    #[test]
    fn announcement_sent_with_another_is_not_repeated() {
        let mut own = Own::new(Duration::ZERO, b"", SequenceNumber::FIRST, &[]);
        assert!(!own.joins(SECOND), "its period is not known");
        assert!(own.repeat(3 * SECOND));
        assert!(!own.joins(4 * SECOND) && own.joins(5 * SECOND));
        assert!(!own.repeat(6 * SECOND), "a second ago");
        assert!(own.repeat(9 * SECOND));
    }

    #[test]
    fn announcements_of_others_are_bounded_and_expire() {
        let header = Inbound { source: Locator::INVALID, local: Locator::INVALID, is_multicast: true };
        let prefix = |n: usize| GuidPrefix(std::array::from_fn(|at| (n >> (8 * at.min(3))) as u8));
        let mut all = RemoteAnnouncements::default();
        for n in 0..=REMOTE_MAX {
            all.insert(Duration::from_millis(n as u64), prefix(n), header, b"data");
        }
        assert_eq!(all.recent(2 * SECOND).count(), REMOTE_MAX);
        all.insert(2 * SECOND, prefix(5), header, &[0; LEN_MAX + 1]);
        all.insert(20 * SECOND, prefix(6), header, b"news");
        assert_eq!(all.recent(40 * SECOND).count(), 1);
        all.remove(&prefix(6));
        assert_eq!(all.recent(40 * SECOND).count(), 0);
    }
}
