//! IGMP membership in the multicast group: version 3 (RFC 3376), or version 2 (RFC 2236) while a
//! router sends queries of version 2 or 1.
//!
//! A report is sent at the start, again a second later, and in reply to each query, after a part of
//! its maximum response time.

use std::net::Ipv4Addr;
use std::time::Duration;

use takt_packet::{IgmpMessage, MacAddress};

/// Time for which version 2 is used after a query of version 2 or 1 (RFC 3376 §8.12 with the
/// default values).
const V2_ROUTER_TIMEOUT: Duration = Duration::from_secs(260);

/// Interval between the first two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Membership of this host. See the [module](self).
#[derive(Debug)]
pub(super) struct Membership {
    group: Ipv4Addr,
    /// State of a linear congruential generator, whose numbers spread the replies of hosts over
    /// time.
    random: u32,
    /// Time until which version 2 is used.
    v2_until: Option<Duration>,
    due: Option<Duration>,
    /// Number of initial reports that remain to be sent.
    initial_reports: u8,
}

impl Membership {
    pub(super) fn new(group: Ipv4Addr, own: MacAddress, now: Duration) -> Self {
        let [.., b, c, d, e] = own.0;
        Self { group, random: u32::from_be_bytes([b, c, d, e]), v2_until: None, due: Some(now), initial_reports: 2 }
    }

    /// Returns the report that is due now, if any.
    pub(super) fn poll(&mut self, now: Duration) -> Option<IgmpMessage> {
        self.due.filter(|due| *due <= now)?;
        let is_change = self.initial_reports > 0;
        self.initial_reports = self.initial_reports.saturating_sub(1);
        self.due = (self.initial_reports > 0).then_some(now + REPORT_INTERVAL);
        Some(match self.uses_v2(now) {
            true => IgmpMessage::ReportV2(self.group),
            false => IgmpMessage::ReportV3 { group: self.group, is_change },
        })
    }

    /// Returns the message that ends the membership.
    pub(super) fn leave(&self, now: Duration) -> IgmpMessage {
        if self.uses_v2(now) { IgmpMessage::LeaveV2(self.group) } else { IgmpMessage::LeaveV3(self.group) }
    }

    /// Handles a message of a router or another host.
    pub(super) fn handle(&mut self, message: IgmpMessage, now: Duration) {
        match message {
            IgmpMessage::Query { version, group, max_response } if group.is_unspecified() || group == self.group => {
                if version < 3 {
                    self.v2_until = Some(now + V2_ROUTER_TIMEOUT);
                }
                self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let within = Duration::from_millis(u64::from(max_response) * 100);
                let reply_at = now + within.mul_f32((self.random >> 16) as f32 / 65_536.0);
                self.due = Some(self.due.map_or(reply_at, |due| due.min(reply_at)));
            }
            // Another member has replied already, and in version 2 one reply suffices
            // (RFC 2236 §3).
            IgmpMessage::ReportV2(group) if group == self.group && self.initial_reports == 0 && self.uses_v2(now) => {
                self.due = None
            }
            _ => {}
        }
    }

    fn uses_v2(&self, now: Duration) -> bool {
        self.v2_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
    const CHANGE: IgmpMessage = IgmpMessage::ReportV3 { group: GROUP, is_change: true };
    const ANSWER: IgmpMessage = IgmpMessage::ReportV3 { group: GROUP, is_change: false };

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Makes a member that has sent its initial reports.
    fn member() -> Membership {
        let mut member = Membership::new(GROUP, MacAddress([2, 0, 0, 0, 0, 1]), at(0));
        assert_eq!((member.poll(at(0)), member.poll(at(999))), (Some(CHANGE), None));
        assert_eq!((member.poll(at(1_000)), member.poll(at(900_000))), (Some(CHANGE), None));
        member
    }

    fn query(version: u8, group: Ipv4Addr) -> IgmpMessage {
        IgmpMessage::Query { version, group, max_response: 100 }
    }

    #[test]
    fn query_is_answered_in_time_and_once() {
        for group in [GROUP, Ipv4Addr::UNSPECIFIED] {
            let mut member = member();
            member.handle(query(3, group), at(900_000));
            assert_eq!((member.poll(at(910_000)), member.poll(at(999_000))), (Some(ANSWER), None));
        }
        let mut member = member();
        member.handle(query(3, Ipv4Addr::new(239, 0, 0, 7)), at(900_000));
        assert_eq!(member.poll(at(999_000)), None, "another group");
        assert_eq!(member.leave(at(999_000)), IgmpMessage::LeaveV3(GROUP));
    }

    #[test]
    fn version_is_that_of_the_router() {
        let mut member = member();
        member.handle(query(2, GROUP), at(900_000));
        assert_eq!(member.poll(at(910_000)), Some(IgmpMessage::ReportV2(GROUP)));
        assert_eq!(member.leave(at(910_000)), IgmpMessage::LeaveV2(GROUP));
        member.handle(query(2, GROUP), at(910_000));
        member.handle(IgmpMessage::ReportV2(GROUP), at(910_000));
        assert_eq!(member.poll(at(930_000)), None, "another member reported first");
        member.handle(query(3, GROUP), at(1_300_000));
        assert_eq!(member.poll(at(1_310_000)), Some(ANSWER), "the old router is gone");
    }
}
