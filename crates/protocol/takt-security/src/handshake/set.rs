//! Handshakes of one local participant, limited in number.
//!
//! Poll calls visit every handshake once, so their cost grows with the limit.

use std::collections::BTreeMap;
use std::time::Duration;

use takt_wire::Guid;

use super::{Credentials, Event, Handshake, Progress};
use crate::error::{ErrorKind, Result, SecurityError};
use crate::identity::UnixSeconds;
use crate::message::GenericMessage;

/// Handshakes by remote participant.
pub struct Handshakes {
    all: BTreeMap<Guid, Handshake>,
    limit: usize,
}

impl Handshakes {
    /// Creates a set with at most `limit` unfinished handshakes.
    pub const fn new(limit: usize) -> Self {
        Self { all: BTreeMap::new(), limit }
    }

    /// Begins a handshake with a participant whose announcement had `len` octets, or credits the
    /// announcement to an existing handshake.
    ///
    /// # Errors
    /// There are too many unfinished handshakes, or OpenSSL fails.
    pub fn handle_announcement(
        &mut self,
        local: &Credentials,
        remote: Guid,
        len: usize,
        clock: Duration,
    ) -> Result<()> {
        if let Some(handshake) = self.all.get_mut(&remote.participant()) {
            handshake.credit(len);
            return Ok(());
        }
        let pending = self.all.values().filter(|handshake| handshake.progress() == Progress::Pending).count();
        if pending >= self.limit {
            let reason = format!("no handshake with {remote}: {pending} are unfinished, at most {}", self.limit);
            return Err(SecurityError::new(ErrorKind::Limit, reason));
        }
        let mut handshake = Handshake::new(local, remote, clock)?;
        handshake.credit(len);
        self.all.insert(remote.participant(), handshake);
        Ok(())
    }

    /// Handles a payload of the stateless endpoints.
    ///
    /// # Errors
    /// The payload is malformed, of a participant that was not announced, or refused by its
    /// handshake.
    pub fn handle(
        &mut self,
        local: &Credentials,
        payload: &[u8],
        clock: Duration,
        now: UnixSeconds,
    ) -> Result<Option<(Guid, Event)>> {
        let message = GenericMessage::parse(payload)?;
        let remote = message.identity.source.participant();
        let Some(handshake) = self.all.get_mut(&remote) else {
            let reason = format!("handshake message of {remote}, which was not announced");
            return Err(SecurityError::new(ErrorKind::Handshake, reason));
        };
        let event = handshake.handle(local, &message, payload.len(), clock, now)?;
        Ok(event.map(|event| (remote, event)))
    }

    /// Returns the next payload that is due, with the participant to which it is addressed.
    pub fn poll_transmit(&mut self, clock: Duration) -> Option<(Guid, &[u8])> {
        self.all.iter_mut().find_map(|(remote, handshake)| Some((*remote, handshake.poll_transmit(clock)?)))
    }

    /// Removes the next handshake whose timeout has expired, and returns its outcome.
    pub fn poll_timeout(&mut self, clock: Duration) -> Option<(Guid, Event)> {
        let found =
            self.all.iter_mut().find_map(|(remote, handshake)| Some((*remote, handshake.handle_timeout(clock)?)));
        if let Some((remote, _)) = &found {
            self.all.remove(remote);
        }
        found
    }

    /// Returns the time of the next poll if no message arrives earlier.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.all.values().filter_map(Handshake::next_timeout).min()
    }

    /// Removes a participant that has left, so that a new handshake can begin.
    pub fn remove(&mut self, remote: Guid) {
        self.all.remove(&remote.participant());
    }

    /// Returns the handshake with a participant.
    pub fn get(&self, remote: Guid) -> Option<&Handshake> {
        self.all.get(&remote.participant())
    }
}
