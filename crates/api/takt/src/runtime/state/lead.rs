//! Leader passes: a waiting thread receives in place of the receiving thread
//! ([`leading`](crate::runtime::leading)).
//!
//! Timers and listener calls remain with the receiving thread. A leader wakes it for them like a
//! call of the application.

use takt_core::Instant;
use takt_transport::Scan;

use super::State;
use crate::Result;
use crate::runtime::poll::{ListGeneration, PollSet, Ready};

/// Result of a leader's pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Led {
    /// The transports have more data, or this thread must not lead.
    pub(crate) more: bool,
    /// The receiving thread must be woken.
    pub(crate) wake: bool,
}

impl State {
    /// Adds the descriptors that a leader sleeps on: none if urgent flows have ports of their own,
    /// and none once the participant is closed.
    pub(crate) fn prepare_lead(&mut self, set: &mut PollSet) {
        let distinguishes_urgent = self.distinguishes_urgent();
        if let Some(driver) = self.driver.as_mut().filter(|_| !distinguishes_urgent) {
            driver.add_descriptors(set);
        }
    }

    /// Records that a leader's descriptor list was registered in the kernel. The receiving thread
    /// then registers a newer one.
    pub(crate) fn begin_leader_list(&mut self) {
        self.leader_list = ListGeneration::new();
    }

    /// Receives until a datagram concerns the application or none is left, and sends the resulting
    /// datagrams. `ready` contains the readable descriptors of the transports.
    ///
    /// If no datagram is left, all transports have been polled since, so that descriptors become
    /// readable for later ones.
    pub(crate) fn lead(&mut self, ready: Ready, now: Instant) -> Result<Led> {
        if self.driver.is_none() {
            return Ok(Led { more: false, wake: false });
        }
        if self.distinguishes_urgent() {
            return Ok(Led { more: true, wake: false });
        }
        let now = self.driver()?.advance(now);
        self.job_recorder.begin(now);
        let received = self.receive(Scan::All, ready)?;
        let more = received && self.receive(Scan::Taken, Ready::ALL)?;
        // The descriptors may be readable because blocked flows have room.
        self.driver()?.handle_transport_events(now);
        Ok(Led { more, wake: self.send_pending(now) })
    }

    /// Makes the receiving thread poll all transports before it sleeps again.
    pub(crate) fn request_poll(&mut self) {
        self.poll_requested = true;
    }
}
