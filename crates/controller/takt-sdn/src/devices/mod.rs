//! Hosts: their addresses, the ports where they are attached, moves, and detection of spoofing.
//!
//! A host is an Ethernet address in a VLAN. Frames show its port; ARP and neighbor discovery show
//! its IP addresses. A frame that claims an address at another port is accepted only if the known
//! port is down, or the host has been silent there for [`Config::silence`]. Otherwise it is
//! spoofed: it is refused and reported. The same applies to an IP address that another host has.
//!
//! While a rule in a switch forwards the frames of a host, they do not reach the controller. Such a
//! host is marked by [`Devices::set_active`] and does not count as silent.
//!
//! Sans-IO. The numbers of hosts, of hosts per port and of addresses per host are bounded. A call
//! costs a few look-ups, [`Devices::handle_timeout`] a pass over all hosts.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use takt_openflow::channel::Instant;

use crate::PortRef;
use crate::frame::MacAddress;

/// Limits and timeouts of [`Devices`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Silence after which a claim at another port is accepted.
    pub silence: Duration,
    /// Silence after which a host is removed.
    pub removal_time: Duration,
    /// Maximum number of hosts.
    pub hosts: usize,
    /// Maximum number of hosts per port.
    pub hosts_of_port: usize,
    /// Maximum number of IP addresses per host; further ones are not learned.
    pub addresses: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(10),
            removal_time: Duration::from_secs(300),
            hosts: 4096,
            hosts_of_port: 256,
            addresses: 16,
        }
    }
}

/// A VLAN in the form that OpenFlow matches: 0 for untagged frames, otherwise the id with
/// [`takt_openflow::oxm::VLAN_PRESENT`].
pub type Vlan = u16;

/// Identity of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId {
    /// The VLAN.
    pub vlan: Vlan,
    /// The Ethernet address.
    pub mac: MacAddress,
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mac)?;
        match self.vlan {
            0 => Ok(()),
            vlan => write!(f, " in VLAN {}", vlan & 0x0fff),
        }
    }
}

/// A host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Port where it is attached.
    pub at: PortRef,
    /// Time when it was found at the port.
    pub since: Instant,
    /// Its IP addresses.
    pub addresses: BTreeSet<IpAddr>,
    /// Time when the controller last saw a frame of the host.
    pub last_seen: Instant,
    /// Whether a rule forwards its frames, so that the controller does not see them.
    pub is_active: bool,
}

/// Result of a frame's source address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sighting {
    /// The host is at its known port.
    Known,
    /// The host is new.
    New,
    /// The host has moved to this port.
    Moved {
        /// Former port.
        from: PortRef,
    },
    /// The host is still attached to another port: the frame must not be forwarded.
    Spoofed {
        /// Port of the host.
        at: PortRef,
    },
    /// The source is no host address.
    NotAHost,
    /// There is no room for another host, at this port or in total.
    Full,
}

/// Result of a claim of an IP address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// The address belongs to the host.
    Accepted,
    /// Another host has the address and is not silent: the frame must not be forwarded.
    Conflict {
        /// Host that has the address.
        owner: HostId,
    },
    /// The host is unknown, or has the maximum number of addresses.
    Full,
}

/// Table of all hosts.
pub struct Devices {
    config: Config,
    hosts: BTreeMap<HostId, Host>,
    /// Host that has an IP address in a VLAN, with the time of its claim.
    by_address: BTreeMap<(IpAddr, Vlan), (HostId, Instant)>,
    /// Hosts with an Ethernet address, at most one per VLAN.
    by_mac: BTreeMap<MacAddress, BTreeSet<HostId>>,
    by_port: BTreeMap<PortRef, BTreeSet<HostId>>,
}

impl Devices {
    /// Creates an empty table.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            hosts: BTreeMap::new(),
            by_address: BTreeMap::new(),
            by_mac: BTreeMap::new(),
            by_port: BTreeMap::new(),
        }
    }

    /// Handles a frame of `id` that arrived at an edge port. `is_up` reports whether
    /// a port is up.
    pub fn observe(&mut self, now: Instant, at: PortRef, id: HostId, is_up: impl FnOnce(PortRef) -> bool) -> Sighting {
        if id.mac.is_group() || id.mac == MacAddress::default() {
            return Sighting::NotAHost;
        }
        let silence = self.config.silence;
        let Some(host) = self.hosts.get_mut(&id) else { return self.add(now, at, id) };
        if host.at == at {
            host.last_seen = now;
            return Sighting::Known;
        }
        let from = host.at;
        if is_up(from) && !is_silent(host, now, silence) {
            return Sighting::Spoofed { at: from };
        }
        if !self.has_room_at(at) {
            return Sighting::Full;
        }
        self.leave_port(from, id);
        self.by_port.entry(at).or_default().insert(id);
        if let Some(host) = self.hosts.get_mut(&id) {
            (host.at, host.since, host.last_seen, host.is_active) = (at, now, now, false);
        }
        Sighting::Moved { from }
    }

    fn has_room_at(&self, at: PortRef) -> bool {
        self.by_port.get(&at).is_none_or(|hosts| hosts.len() < self.config.hosts_of_port)
    }

    fn add(&mut self, now: Instant, at: PortRef, id: HostId) -> Sighting {
        if self.hosts.len() >= self.config.hosts || !self.has_room_at(at) {
            return Sighting::Full;
        }
        self.hosts.insert(id, Host { at, since: now, addresses: BTreeSet::new(), last_seen: now, is_active: false });
        self.by_port.entry(at).or_default().insert(id);
        self.by_mac.entry(id.mac).or_default().insert(id);
        Sighting::New
    }

    fn leave_port(&mut self, at: PortRef, id: HostId) {
        if let Some(hosts) = self.by_port.get_mut(&at) {
            hosts.remove(&id);
            if hosts.is_empty() {
                self.by_port.remove(&at);
            }
        }
    }

    /// Handles the claim of an IP address by ARP or neighbor discovery. `is_up` reports whether a
    /// port is up.
    pub fn claim(&mut self, now: Instant, id: HostId, address: IpAddr, is_up: impl FnOnce(PortRef) -> bool) -> Claim {
        if address.is_unspecified() || address.is_multicast() {
            return Claim::Accepted;
        }
        let key = (address, id.vlan);
        if let Some((owner, _)) = self.by_address.get(&key).copied() {
            if owner == id {
                return Claim::Accepted;
            }
            if let Some(host) = self.hosts.get_mut(&owner) {
                if is_up(host.at) && !is_silent(host, now, self.config.silence) {
                    return Claim::Conflict { owner };
                }
                host.addresses.remove(&address);
            }
            self.by_address.remove(&key);
        }
        match self.hosts.get_mut(&id) {
            Some(host) if host.addresses.len() < self.config.addresses => {
                host.addresses.insert(address);
                self.by_address.insert(key, (id, now));
                Claim::Accepted
            }
            _ => Claim::Full,
        }
    }

    /// Sets whether a rule forwards the frames of a host. Its silence begins when no rule does.
    pub fn set_active(&mut self, now: Instant, id: HostId, is_active: bool) {
        if let Some(host) = self.hosts.get_mut(&id) {
            if host.is_active && !is_active {
                host.last_seen = now;
            }
            host.is_active = is_active;
        }
    }

    /// Removes the hosts of a port and returns them.
    pub fn remove_port(&mut self, at: PortRef) -> Vec<HostId> {
        let hosts: Vec<HostId> = self.by_port.remove(&at).into_iter().flatten().collect();
        for id in &hosts {
            self.remove(*id);
        }
        hosts
    }

    fn remove(&mut self, id: HostId) {
        if let Some(host) = self.hosts.remove(&id) {
            for address in host.addresses {
                self.by_address.remove(&(address, id.vlan));
            }
            if let Some(hosts) = self.by_mac.get_mut(&id.mac) {
                hosts.remove(&id);
                if hosts.is_empty() {
                    self.by_mac.remove(&id.mac);
                }
            }
            self.leave_port(host.at, id);
        }
    }

    /// Removes hosts that have been silent for [`Config::removal_time`] and returns them.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<HostId> {
        let removal_time = self.config.removal_time;
        let removed = self.hosts.iter().filter(|(_, host)| is_silent(host, now, removal_time));
        let removed: Vec<HostId> = removed.map(|(id, _)| *id).collect();
        for id in &removed {
            self.remove(*id);
        }
        removed
    }

    /// Returns a host.
    pub fn get(&self, id: HostId) -> Option<&Host> {
        self.hosts.get(&id)
    }

    /// Returns the host that has an IP address.
    pub fn by_address(&self, vlan: Vlan, address: IpAddr) -> Option<HostId> {
        self.by_address.get(&(address, vlan)).map(|(id, _)| *id)
    }

    /// Returns the owner of an IP address among the hosts that have it in their VLANs: the host
    /// that claimed it first. A host whose port is down, or that has been silent for
    /// [`Config::silence`], does not count. `is_up` reports whether a port is up.
    pub fn owner(&self, now: Instant, address: IpAddr, is_up: impl Fn(PortRef) -> bool) -> Option<HostId> {
        let holders = self.by_address.range((address, 0)..=(address, Vlan::MAX)).map(|(_, holder)| *holder);
        let counts = |id: &HostId| {
            self.hosts.get(id).is_some_and(|host| is_up(host.at) && !is_silent(host, now, self.config.silence))
        };
        holders.filter(|(id, _)| counts(id)).min_by_key(|(_, since)| *since).map(|(id, _)| id)
    }

    /// Returns the port of an Ethernet address, which an interface uses in all of its VLANs. Among
    /// hosts with this address at several ports, the host that was found first decides, so that a
    /// claim in another VLAN does not move an interface.
    pub fn interface(&self, mac: MacAddress) -> Option<PortRef> {
        let hosts = self.by_mac.get(&mac)?.iter().filter_map(|id| self.hosts.get(id));
        hosts.min_by_key(|host| host.since).map(|host| host.at)
    }

    /// Iterates over all Ethernet addresses with their ports.
    pub fn interfaces(&self) -> impl Iterator<Item = (MacAddress, PortRef)> {
        self.by_mac.keys().filter_map(|mac| Some((*mac, self.interface(*mac)?)))
    }

    /// Iterates over all hosts.
    pub fn iter(&self) -> impl Iterator<Item = (HostId, &Host)> {
        self.hosts.iter().map(|(id, host)| (*id, host))
    }
}

fn is_silent(host: &Host, now: Instant, span: Duration) -> bool {
    !host.is_active && now >= host.last_seen.after(span)
}
