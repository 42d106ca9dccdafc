//! What a thread does that leads: it receives in place of the receiving thread ([`leading`](crate::runtime::leading)).
//!
//! Timers and calls of listeners are up to the receiving thread, which is told to wake for them as for a call of the application.

use takt_core::Instant;
use takt_transport::Scan;

use super::State;
use crate::Result;
use crate::runtime::poll::{Edition, PollSet, Ready};

/// What became of a pass of a thread that leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Led {
    /// The transports have more, or the pass was not for this thread.
    pub(crate) more: bool,
    /// The receiving thread must wake.
    pub(crate) wake: bool,
}

impl State {
    /// Adds what a thread that leads sleeps on: nothing where the executor chooses what is received first, and once closed.
    pub(crate) fn prepare_lead(&self, set: &mut PollSet) {
        if let Some(driver) = self.driver.as_ref().filter(|_| !self.hears_urgent()) {
            driver.add_descriptors(set);
        }
    }

    /// The kernel has the list of a thread that leads from now on. The receiving thread makes itself a younger one.
    pub(crate) fn begin_leader_list(&mut self) {
        self.leader_list = Edition::new();
    }

    /// Receives until one datagram is news to the application or there are none, and sends what that causes. `ready` says which of
    /// the transports' descriptors are readable.
    ///
    /// When nothing more is there the transports have been asked since, so that descriptors become readable for what comes later.
    pub(crate) fn lead(&mut self, ready: Ready, now: Instant) -> Result<Led> {
        if self.driver.is_none() {
            return Ok(Led { more: false, wake: false });
        }
        if self.hears_urgent() {
            return Ok(Led { more: true, wake: false });
        }
        let now = self.driver()?.advance(now);
        self.ledger.begin(now);
        let received = self.receive(Scan::All, ready)?;
        let more = received && self.receive(Scan::Taken, Ready::ALL)?;
        Ok(Led { more, wake: self.settle(now) })
    }

    /// The receiving thread looks at all transports before it sleeps again.
    pub(crate) fn leave_behind(&mut self) {
        self.has_left_behind = true;
    }
}
