//! Configuration of the protocol engine of a new participant.

use std::net::Ipv4Addr;

use takt_core::Config;
use takt_transport::Transport;
use takt_wire::Locator;
use takt_wire::discovery::{HOST_PROPERTY, PROCESS_PROPERTY};

use super::super::config::NetworkConfig;
use super::super::guid_prefix;
use super::DomainParticipantBuilder;
use crate::qos::Property;
use crate::runtime::driver::interfaces;
use crate::runtime::roles::Roles;
use crate::{Duration, Error, Result};

/// Minimum lease duration. Remote Takt participants raise a shorter lease to this value.
const LEASE_MIN: std::time::Duration = std::time::Duration::from_millis(100);
/// Minimum time between two announcements.
const ANNOUNCEMENT_PERIOD_MIN: std::time::Duration = std::time::Duration::from_millis(1);

impl DomainParticipantBuilder {
    /// Returns the protocol configuration for these transports.
    pub(super) fn configure(
        &mut self,
        network: &NetworkConfig,
        transports: &[Box<dyn Transport>],
        roles: &Roles,
    ) -> Result<Config> {
        let mut config = Config::new(self.domain_id, guid_prefix::generate()?);
        config.secret = guid_prefix::secret()?;
        config.qos = self.qos.clone();
        announce_process(&mut config.qos.property);
        config.limits = self.limits;
        config.is_enabled = self.is_enabled;
        if let Some(lease) = self.lease_duration {
            config.lease_duration = at_least(LEASE_MIN, "lease_duration", lease)?;
        }
        if let Some(period) = self.announcement_period {
            config.announcement_period = at_least(ANNOUNCEMENT_PERIOD_MIN, "announcement_period", period)?;
        }
        config.announcement_period = config.announcement_period.min(config.lease_duration / 4);
        config.interfaces = interfaces(transports);
        config.has_tcp = transports.iter().any(|transport| carries_tcp(transport.as_ref()));
        config.has_udp = !transports.iter().all(|transport| carries_tcp(transport.as_ref()));
        config.udp_message_max = longest_udp_message(transports).unwrap_or(usize::MAX);
        config.locators = roles.locators(transports);
        config.initial_peers = config.locators.metatraffic_multicast.clone();
        config.initial_peers.extend(network.peer_locators(self.domain_id)?);
        config.servers = network.server_locators(self.domain_id)?;
        config.initial_peers.extend(&config.servers);
        config.is_server = self.is_server;
        config.multicast_readers_min = network.multicast_readers_min.unwrap_or(config.multicast_readers_min);
        config.checks_sources = network.check_sources.unwrap_or(config.checks_sources);
        config.static_endpoints = std::mem::take(&mut self.static_endpoints);
        Ok(config)
    }
}

/// Returns the name of the host; empty if it cannot be read.
pub(super) fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Converts a duration of the builder to the core's type; an infinite one becomes the longest
/// possible.
fn at_least(minimum: std::time::Duration, name: &str, given: Duration) -> Result<std::time::Duration> {
    let duration = given.as_nanos().map_or(std::time::Duration::MAX, std::time::Duration::from_nanos);
    match duration < minimum {
        true => Err(Error::bad_parameter(format!("{name} is {given}: it must be at least {minimum:?}"))),
        false => Ok(duration),
    }
}

/// Sets the properties that announce host and process to tools and logs, unless the application has
/// set them.
fn announce_process(property: &mut Property) {
    let values = [(HOST_PROPERTY, hostname()), (PROCESS_PROPERTY, std::process::id().to_string())];
    for (name, value) in values {
        if !value.is_empty() && property.get(name).is_none() {
            property.set(name, value, true);
        }
    }
}

/// Reports whether a transport is TCP.
fn carries_tcp(transport: &dyn Transport) -> bool {
    let somewhere = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
    transport.reach(&Locator { kind: Locator::KIND_TCP_V4, ..somewhere }).is_served()
}

/// Returns the largest message in octets that every UDP transport can carry; `None` if there is
/// none.
fn longest_udp_message(transports: &[Box<dyn Transport>]) -> Option<usize> {
    let sample = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
    let those = transports.iter().filter(|transport| transport.reach(&sample).is_served());
    those.map(|transport| transport.capabilities().max_message_len).min()
}
