//! Configuration of a participant: calls of the builder take precedence over the environment, and
//! the environment over defaults.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::ParseIntError;

use takt_transport::udp::{InterfaceSelection, UdpConfig};
use takt_wire::Locator;

use super::peers;
use super::transports::TransportConfig;
use crate::runtime::diagnosis::ConfiguredPeer;
use crate::{Error, Result};

/// Network interfaces to use, by name or address, comma-separated.
pub(super) const TAKT_INTERFACES: &str = "TAKT_INTERFACES";
/// Unicast peers for discovery, in addition to multicast ([`peers`]), comma-separated.
pub(super) const TAKT_PEERS: &str = "TAKT_PEERS";
/// Discovery servers in the syntax of peers, comma-separated.
pub(super) const TAKT_DISCOVERY_SERVERS: &str = "TAKT_DISCOVERY_SERVERS";
/// `0` or `1`: whether to use multicast.
pub(super) const TAKT_MULTICAST: &str = "TAKT_MULTICAST";
/// Minimum number of matched readers from which user data is sent to their multicast group; 0 for
/// never.
pub(super) const TAKT_MULTICAST_READERS_MIN: &str = "TAKT_MULTICAST_READERS_MIN";
/// `0` or `1`: whether to use UDPv6 in addition to UDPv4.
pub(super) const TAKT_IPV6: &str = "TAKT_IPV6";
/// `0` or `1`: whether to use UDP.
pub(super) const TAKT_UDP: &str = "TAKT_UDP";
/// `0` or `1`: whether to use shared memory.
pub(super) const TAKT_SHARED_MEMORY: &str = "TAKT_SHARED_MEMORY";
/// `0`, `1`, or the name of the daemon that owns the network.
pub(super) const TAKT_DAEMON: &str = "TAKT_DAEMON";

/// File that captures the datagrams of all transports; empty for none.
const TAKT_CAPTURE: &str = "TAKT_CAPTURE";
/// Maximum length of the captured file in octets.
const TAKT_CAPTURE_BYTES_MAX: &str = "TAKT_CAPTURE_BYTES_MAX";
/// `0` or `1`: whether source addresses of datagrams are validated.
const TAKT_CHECK_SOURCES: &str = "TAKT_CHECK_SOURCES";
/// Transports for user data in order of preference, comma-separated.
const TAKT_TRANSPORT_USER_DATA: &str = "TAKT_TRANSPORT_USER_DATA";
/// Transports for discovery in order of preference, comma-separated.
const TAKT_TRANSPORT_DISCOVERY: &str = "TAKT_TRANSPORT_DISCOVERY";
/// Transports for topics that match a pattern: `PATTERN=TRANSPORTS`, comma-separated.
const TAKT_TRANSPORT_TOPICS: &str = "TAKT_TRANSPORT_TOPICS";
/// Transports opened in addition, for endpoints that request them, comma-separated.
const TAKT_TRANSPORT_EXTRA: &str = "TAKT_TRANSPORT_EXTRA";

/// Directory with the files of DDS Security.
const TAKT_SECURITY: &str = "TAKT_SECURITY";
/// `0` or `1`: whether discovery data that governance leaves unprotected is accepted outside
/// protected messages.
const TAKT_SECURITY_CLEAR_DISCOVERY: &str = "TAKT_SECURITY_CLEAR_DISCOVERY";
/// `0` or `1`: whether the security log is published on its topic.
const TAKT_SECURITY_LOG_TOPIC: &str = "TAKT_SECURITY_LOG_TOPIC";
/// `0` or `1`: whether the participant drops replayed messages.
const TAKT_SECURITY_REPLAY_WINDOW: &str = "TAKT_SECURITY_REPLAY_WINDOW";

/// Name of the transport that leads to a daemon.
const DAEMON: &str = "daemon";

/// Network configuration of a participant. `None` means not configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NetworkConfig {
    pub(super) interfaces: Option<Vec<String>>,
    pub(super) peers: Option<Vec<String>>,
    pub(super) servers: Option<Vec<String>>,
    pub(super) multicast: Option<bool>,
    pub(super) multicast_readers_min: Option<usize>,
    pub(super) check_sources: Option<bool>,
    pub(super) ipv6: Option<bool>,
    pub(super) shared_memory: Option<bool>,
    pub(super) udp: Option<bool>,
    /// `0` for no daemon, `1` for the default one, else the name of the daemon.
    pub(super) daemon: Option<String>,
    pub(super) transports: TransportConfig,
    /// File that captures the datagrams of all transports.
    pub(super) capture: Option<String>,
    pub(super) capture_bytes_max: Option<usize>,
    /// Directory with the files of DDS Security.
    pub(super) security: Option<String>,
    pub(super) accepts_clear_discovery: Option<bool>,
    pub(super) has_replay_window: Option<bool>,
    pub(super) distributes_log: Option<bool>,
}

impl NetworkConfig {
    /// Fills in settings that are `None` from environment variables, which `variable` returns by
    /// name.
    pub(super) fn or_environment(self, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let list = |name: &str| variable(name).map(|value| split(&value));
        let switch = |name: &str| variable(name).map(|value| parse_switch(name, &value)).transpose();
        let number = |name: &str| variable(name).map(|value| parse_number(name, &value)).transpose();
        let transports = TransportConfig {
            user_data: list(TAKT_TRANSPORT_USER_DATA),
            discovery: list(TAKT_TRANSPORT_DISCOVERY),
            topics: list(TAKT_TRANSPORT_TOPICS),
            extra: list(TAKT_TRANSPORT_EXTRA),
        };
        Ok(Self {
            interfaces: self.interfaces.or_else(|| list(TAKT_INTERFACES)),
            peers: self.peers.or_else(|| list(TAKT_PEERS)),
            servers: self.servers.or_else(|| list(TAKT_DISCOVERY_SERVERS)),
            multicast: self.multicast.map_or_else(|| switch(TAKT_MULTICAST), |value| Ok(Some(value)))?,
            multicast_readers_min: self
                .multicast_readers_min
                .map_or_else(|| number(TAKT_MULTICAST_READERS_MIN), |value| Ok(Some(value)))?,
            check_sources: self.check_sources.map_or_else(|| switch(TAKT_CHECK_SOURCES), |value| Ok(Some(value)))?,
            ipv6: self.ipv6.map_or_else(|| switch(TAKT_IPV6), |value| Ok(Some(value)))?,
            shared_memory: self.shared_memory.map_or_else(|| switch(TAKT_SHARED_MEMORY), |value| Ok(Some(value)))?,
            udp: self.udp.map_or_else(|| switch(TAKT_UDP), |value| Ok(Some(value)))?,
            daemon: self.daemon.or_else(|| variable(TAKT_DAEMON)),
            transports: self.transports.or(transports),
            capture: self.capture.or_else(|| variable(TAKT_CAPTURE)).filter(|path| !path.is_empty()),
            capture_bytes_max: self
                .capture_bytes_max
                .map_or_else(|| number(TAKT_CAPTURE_BYTES_MAX), |value| Ok(Some(value)))?,
            security: self.security.or_else(|| variable(TAKT_SECURITY)).filter(|directory| !directory.is_empty()),
            accepts_clear_discovery: self
                .accepts_clear_discovery
                .map_or_else(|| switch(TAKT_SECURITY_CLEAR_DISCOVERY), |value| Ok(Some(value)))?,
            has_replay_window: self
                .has_replay_window
                .map_or_else(|| switch(TAKT_SECURITY_REPLAY_WINDOW), |value| Ok(Some(value)))?,
            distributes_log: self
                .distributes_log
                .map_or_else(|| switch(TAKT_SECURITY_LOG_TOPIC), |value| Ok(Some(value)))?,
        })
    }

    /// Selects the daemon for user data, if one is configured and no transport is named explicitly.
    pub(super) fn choose_daemon(&mut self) {
        let transport = match self.daemon.as_deref().map(str::trim) {
            None | Some("" | "0" | "false" | "off" | "no") => return,
            Some("1" | "true" | "on" | "yes") => DAEMON.to_owned(),
            Some(name) => format!("{DAEMON}:{name}"),
        };
        self.transports.user_data.get_or_insert_with(|| vec![transport]);
    }

    /// Reports whether a daemon is the first choice for user data.
    pub(super) fn has_daemon(&self) -> bool {
        let first = self.transports.user_data.iter().flatten().next();
        first.is_some_and(|first| first.split(':').next().is_some_and(|name| name.trim() == DAEMON))
    }

    /// Returns the configuration of the UDP transport.
    pub(super) fn udp(&self, domain_id: u32) -> UdpConfig {
        let interfaces = match &self.interfaces {
            Some(names) if !names.is_empty() => InterfaceSelection::Named(names.clone()),
            _ => InterfaceSelection::All,
        };
        UdpConfig {
            interfaces,
            ipv6: self.ipv6.unwrap_or(false),
            // Discovery servers make multicast unnecessary.
            multicast: self.multicast.unwrap_or(!self.has_servers()),
            ..UdpConfig::new(domain_id)
        }
    }

    fn has_servers(&self) -> bool {
        self.servers.as_ref().is_some_and(|servers| !servers.is_empty())
    }

    /// Returns the locators of the discovery servers.
    pub(super) fn server_locators(&self, domain_id: u32) -> Result<Vec<Locator>> {
        let servers = self.servers.iter().flatten();
        let located = servers.map(|server| peers::locate(server, domain_id, self.ipv6.unwrap_or(false)));
        Ok(located.collect::<Result<Vec<_>>>()?.concat())
    }

    /// Reports whether a peer or server is reached by TCP.
    pub(super) fn has_tcp_peers(&self) -> bool {
        self.peers_and_servers().any(|peer| peers::is_tcp(peer))
    }

    /// Returns the host names of peers and servers reached by TCP, by socket address.
    pub(super) fn tcp_names(&self) -> Result<BTreeMap<SocketAddr, String>> {
        let named = self.peers_and_servers().filter(|peer| peers::is_tcp(peer));
        let named = named.map(|peer| peers::tcp_names(peer, self.ipv6.unwrap_or(false)));
        Ok(named.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn peers_and_servers(&self) -> impl Iterator<Item = &String> {
        self.peers.iter().flatten().chain(self.servers.iter().flatten())
    }

    /// Returns the peers and servers with their locators. Those that could not be located have
    /// caused an error earlier.
    pub(super) fn named(&self, domain_id: u32) -> Vec<ConfiguredPeer> {
        let roles = [(&self.peers, false), (&self.servers, true)];
        let all =
            roles.into_iter().flat_map(|(names, is_server)| names.iter().flatten().map(move |name| (name, is_server)));
        let located = all.filter_map(|(text, is_server)| {
            let Ok(locators) = peers::locate(text, domain_id, self.ipv6.unwrap_or(false)) else { return None };
            Some(ConfiguredPeer { text: text.clone(), locators, is_server })
        });
        located.collect()
    }

    /// Returns the locators at which the unicast peers may receive discovery data.
    pub(super) fn peer_locators(&self, domain_id: u32) -> Result<Vec<Locator>> {
        let mut locators = Vec::new();
        for peer in self.peers.iter().flatten() {
            locators.extend(peers::locate(peer, domain_id, self.ipv6.unwrap_or(false))?);
        }
        Ok(locators)
    }
}

fn split(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn parse_switch(name: &str, value: &str) -> Result<bool> {
    match value.trim() {
        "0" | "false" | "off" | "no" => Ok(false),
        "1" | "true" | "on" | "yes" => Ok(true),
        other => Err(Error::bad_parameter(format!("{name} is {other:?}; expected 0 or 1"))),
    }
}

fn parse_number(name: &str, value: &str) -> Result<usize> {
    let invalid =
        |error: ParseIntError| Error::bad_parameter_from(format!("{name} is {value:?}; expected a number"), error);
    value.trim().parse().map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        let value = match name {
            TAKT_INTERFACES => "lo, 192.0.2.2,",
            TAKT_PEERS => "192.0.2.9,[2001:db8::1]:7410",
            TAKT_MULTICAST => "off",
            TAKT_MULTICAST_READERS_MIN => " 8",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[test]
    fn environment_fills_in_settings_that_the_program_omits() {
        let config = NetworkConfig { multicast: Some(true), ..NetworkConfig::default() };
        let config = config.or_environment(environment).expect("well-formed");
        assert_eq!(config.interfaces, Some(vec!["lo".to_owned(), "192.0.2.2".to_owned()]));
        assert_eq!((config.multicast, config.multicast_readers_min), (Some(true), Some(8)));
        assert_eq!(config.ipv6, None);
    }

    #[test]
    fn switch_parses_on_and_off() {
        let config = NetworkConfig::default().or_environment(|_| Some("maybe".to_owned()));
        let error = config.expect_err("no switch").to_string();
        assert!(error.contains("TAKT_MULTICAST") && error.contains("maybe"), "{error}");
    }

    #[test]
    fn peer_locators_contain_every_peer() {
        let config = NetworkConfig::default().or_environment(environment).expect("well-formed");
        let locators = config.peer_locators(1).expect("addresses");
        assert_eq!(locators.len(), 10 + 1);
        assert_eq!(locators.last().map(ToString::to_string), Some("udp/[2001:db8::1]:7410".to_owned()));
    }
}
