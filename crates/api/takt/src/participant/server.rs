//! Discovery servers, which announce participants to each other in networks without multicast.
//!
//! The protocol is described in `takt-core`, `discovery/server.rs`, and the setup in
//! `docs/guide/discovery.md`.

use std::net::SocketAddr;

use takt_core::Limits;
use takt_transport::udp::ParticipantIndex;
use takt_wire::Locator;

use super::{DomainParticipant, DomainParticipantBuilder};
use crate::{Result, Runtime};

/// Discovery server for one domain. It runs on a thread of its own until it is closed or dropped.
#[derive(Clone, Debug)]
pub struct DiscoveryServer {
    participant: DomainParticipant,
}

/// Configuration of a discovery server. Created by [`DiscoveryServer::builder`].
#[must_use]
pub struct DiscoveryServerBuilder {
    participant: DomainParticipantBuilder,
    listen: SocketAddr,
    other_servers: Vec<String>,
    limits: Limits,
}

impl DiscoveryServer {
    /// Configures a server of a domain that listens at `listen`. The address 0.0.0.0 stands for all
    /// interfaces except loopback.
    pub fn builder(domain_id: u32, listen: SocketAddr) -> DiscoveryServerBuilder {
        Self::from_participant(DomainParticipant::builder(domain_id), listen)
    }

    /// Configures a server from a participant's builder. Domain, UDP and TCP are taken from it.
    /// Peers, interfaces, multicast, runtime and name are set by the server.
    pub fn from_participant(participant: DomainParticipantBuilder, listen: SocketAddr) -> DiscoveryServerBuilder {
        // All clients may share one host.
        let limits = Limits { max_participants_per_address: Limits::default().max_participants, ..Limits::default() };
        DiscoveryServerBuilder { participant, listen, other_servers: Vec::new(), limits }
    }

    /// Returns the addresses at which clients reach the server.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after [`close`](Self::close).
    pub fn addresses(&self) -> Result<Vec<SocketAddr>> {
        let own = self.participant.engine().inspect(|driver| Ok(driver.core.metatraffic_unicast().to_vec()))?;
        Ok(own.iter().filter_map(Locator::socket_addr).collect())
    }

    /// Returns the server's participant, which gives access to discovered participants and
    /// counters.
    #[must_use]
    pub fn participant(&self) -> &DomainParticipant {
        &self.participant
    }

    /// Closes the server after announcing that it leaves. Clients keep what they have discovered.
    ///
    /// # Errors
    /// As [`DomainParticipant::close`].
    pub fn close(&self) -> Result<()> {
        self.participant.close()
    }
}

impl DiscoveryServerBuilder {
    /// Sets other servers, in the syntax of
    /// [`DomainParticipantBuilder::peers`](super::DomainParticipantBuilder::peers). The servers
    /// exchange the participants of their clients, and each serves as backup of the others.
    pub fn other_servers<S: Into<String>>(mut self, others: impl IntoIterator<Item = S>) -> Self {
        self.other_servers = others.into_iter().map(Into::into).collect();
        self
    }

    /// Sets limits on the data that is stored for clients.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens the sockets and starts the thread.
    ///
    /// # Errors
    /// As [`DomainParticipantBuilder::build`](super::DomainParticipantBuilder::build), in
    /// particular if the port is in use.
    pub fn build(self) -> Result<DiscoveryServer> {
        let mut builder = self
            .participant
            .name("discovery server")
            .runtime(Runtime::Shared)
            .multicast(false)
            .shared_memory(false)
            .peers([""; 0])
            .discovery_servers(self.other_servers)
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
