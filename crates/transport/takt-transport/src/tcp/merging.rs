//! Identification of the peer of a connection, and merging of two connections to the same
//! participant.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use takt_wire::VendorId;

use super::TcpTransport;
use super::connection::{Connection, Participant, State};
use super::framing;
use super::kind_of;

/// Time limit for the end of a connection that is not needed any more.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

impl TcpTransport {
    /// Identifies the participant by the first message of a connection. Returns false if there is
    /// no room for another link, or if the participant has shown another certificate before.
    pub(super) fn identify_peer(&mut self, token: u64, now: Instant) -> bool {
        let Some(connection) = self.connections.get_mut(token) else { return false };
        let Some((vendor, prefix)) = framing::sender(connection.pending()) else { return false };
        let ip = connection.peer.ip();
        let certificate = connection.certificate().map(Arc::from);
        if self.links.has_another_certificate(prefix, certificate.as_deref()) {
            self.stats.connections.wrong_certificate += 1;
            return false;
        }
        let index = match connection.link {
            Some(index) => index,
            None => match self.links.of_accepted((prefix, ip), kind_of(ip)) {
                Some(index) => index,
                None => return false,
            },
        };
        connection.link = Some(index);
        connection.participant = Some(Participant { vendor, prefix });
        connection.deadline = None;
        let is_sent_by = connection.accepts_messages();
        let link = self.links.get_mut(index);
        (link.participant, link.certificate) = (Some((prefix, ip)), certificate);
        link.reset_delay();
        if is_sent_by {
            // The newest connection, because an older one may be dead without notice.
            link.connection = Some(token);
        }
        self.identify_self(token, vendor);
        self.merge(token, now);
        true
    }

    /// Reports whether the sender that a message names may be at the other end of the connection.
    /// With TLS, it must not have shown another certificate.
    pub(super) fn may_be_from(&self, connection: &Connection) -> bool {
        let Some((_, prefix)) = framing::sender(connection.pending()) else { return true };
        let is_own = connection.participant.is_some_and(|participant| participant.prefix == prefix);
        is_own || !self.links.has_another_certificate(prefix, connection.certificate())
    }

    /// Identifies this participant to another Takt. The peer may receive no other message on this
    /// connection, and has to know that it is one of two.
    fn identify_self(&mut self, token: u64, vendor: [u8; 2]) {
        let (Some(own), Some(connection)) = (self.own, self.connections.get_mut(token)) else { return };
        if vendor == VendorId::TAKT.0 && connection.accepts_messages() {
            let identification = framing::identification(vendor, own);
            let epoll = self.epoll.as_fd();
            // tidy-allow(dropped-cause): a broken connection is detected, with its cause, when it
            // is read.
            let _ = connection.queue(&identification, epoll).and_then(|_| connection.send(epoll));
        }
    }

    /// Keeps one of several connections to the same participant: the oldest one that the
    /// participant with the lower prefix opened. Each side closes only connections that it opened.
    ///
    /// INTEROP(CycloneDDS 0.10): forgets the participants behind a connection that ends, so only
    /// connections to Takt are closed.
    fn merge(&mut self, token: u64, now: Instant) {
        let Some(new) = self.connections.get(token) else { return };
        let (Some(participant), ip, Some(own)) = (new.participant, new.peer.ip(), self.own) else { return };
        if participant.vendor != VendorId::TAKT.0 {
            return;
        }
        let same =
            |one: &&Connection| one.accepts_messages() && one.participant == Some(participant) && one.peer.ip() == ip;
        let of = |is_ours: bool| self.connections.iter().filter(same).filter(move |one| one.is_initiator == is_ours);
        let theirs = of(false).map(|one| one.token).max().filter(|_| own > participant.prefix);
        let Some(kept) = theirs.or_else(|| of(true).map(|one| one.token).min()) else { return };
        let duplicates: Vec<u64> = of(true).map(|one| one.token).filter(|one| *one != kept).collect();
        for token in duplicates {
            self.close_duplicate(token, kept, now);
        }
    }

    /// Redirects messages to another connection, and lets this one end.
    fn close_duplicate(&mut self, token: u64, replacement: u64, now: Instant) {
        self.links.redirect(token, Some(replacement));
        self.stats.connections.merged += 1;
        let Some(connection) = self.connections.get_mut(token) else { return };
        connection.state = State::Leaving;
        connection.deadline = Some(now + CLOSE_TIMEOUT);
        let sent = connection.send(self.epoll.as_fd());
        self.timer.set_by(now + CLOSE_TIMEOUT, now);
        if sent.is_err() {
            self.close(token, now);
        }
    }
}
