//! Discovery servers: participants that introduce others to each other, for networks without multicast.
//!
//! What a server does is told in `takt-core`, `discovery/server.rs`; how one is set up, in `docs/discovery.md`.

use std::net::SocketAddr;

use takt_core::Limits;
use takt_transport::udp::ParticipantIndex;
use takt_wire::Locator;

use super::{DomainParticipant, DomainParticipantBuilder};
use crate::{Result, Runtime};

/// A discovery server, for a domain, in this process. It runs on a thread of its own until it is closed or dropped.
#[derive(Clone, Debug)]
pub struct DiscoveryServer {
    participant: DomainParticipant,
}

/// What a discovery server shall be. Made by [`DiscoveryServer::builder`].
#[must_use]
pub struct DiscoveryServerBuilder {
    participant: DomainParticipantBuilder,
    listen: SocketAddr,
    others: Vec<String>,
    limits: Limits,
}

impl DiscoveryServer {
    /// Prepares a server of a domain that listens at an address; 0.0.0.0 is all but loopback.
    pub fn builder(domain_id: u32, listen: SocketAddr) -> DiscoveryServerBuilder {
        Self::on(DomainParticipant::builder(domain_id), listen)
    }

    /// The same with a prepared participant, whose domain, UDP and TCP count. Peers, interfaces, multicast, runtime and name are
    /// the server's own.
    pub fn on(participant: DomainParticipantBuilder, listen: SocketAddr) -> DiscoveryServerBuilder {
        // All clients may be on one host.
        let limits = Limits { max_participants_per_address: Limits::default().max_participants, ..Limits::default() };
        DiscoveryServerBuilder { participant, listen, others: Vec::new(), limits }
    }

    /// Where clients find it.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after [`close`](Self::close).
    pub fn addresses(&self) -> Result<Vec<SocketAddr>> {
        let own = self.participant.engine().look(|driver| Ok(driver.core.metatraffic_unicast().to_vec()))?;
        Ok(own.iter().filter_map(Locator::socket_addr).collect())
    }

    /// The participant that it is: tells whom it knows, and counts.
    #[must_use]
    pub fn participant(&self) -> &DomainParticipant {
        &self.participant
    }

    /// Takes its leave. Clients keep what they have found.
    ///
    /// # Errors
    /// As [`DomainParticipant::close`].
    pub fn close(&self) -> Result<()> {
        self.participant.close()
    }
}

impl DiscoveryServerBuilder {
    /// Other servers, in the forms of [`DomainParticipantBuilder::peers`](super::DomainParticipantBuilder::peers): they and
    /// this one tell each other of their clients, and back each other up.
    pub fn others<S: Into<String>>(mut self, others: impl IntoIterator<Item = S>) -> Self {
        self.others = others.into_iter().map(Into::into).collect();
        self
    }

    /// Bounds on what is kept for clients.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens the sockets and starts the thread.
    ///
    /// # Errors
    /// As [`DomainParticipantBuilder::build`](super::DomainParticipantBuilder::build); among them a port that is taken.
    pub fn build(self) -> Result<DiscoveryServer> {
        let mut builder = self
            .participant
            .name("discovery server")
            .runtime(Runtime::Shared)
            .multicast(false)
            .shared_memory(false)
            .peers([""; 0])
            .discovery_servers(self.others)
            .participant_index(ParticipantIndex::Metatraffic(self.listen.port()))
            .limits(self.limits)
            .serve_discovery();
        if !self.listen.ip().is_unspecified() {
            builder = builder.interfaces([self.listen.ip().to_string()]);
        }
        if self.listen.ip().is_ipv6() {
            builder = builder.ipv6(true);
        }
        Ok(DiscoveryServer { participant: builder.build()? })
    }
}
