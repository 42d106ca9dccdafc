//! Hosts: their addresses, the port where each is attached, moves, and spoofing.
//!
//! A host is an Ethernet address in a VLAN. Frames show where it is; ARP and neighbour discovery show its IP addresses. A frame
//! that claims an address at another port is believed only if the port known so far is down, or the host has been silent there
//! for [`Config::silence`]. Otherwise it is spoofing: it is refused and reported. The same holds for an IP address that another
//! host has.
//!
//! While a rule in a switch forwards what a host sends, its frames do not come to the controller: [`Devices::set_active`] says so, and such
//! a host is not silent.
//!
//! Sans-IO. Hosts, hosts of a port and addresses of a host are bounded; a call costs a few look-ups, [`Devices::handle_timeout`] a pass
//! over all hosts.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use takt_openflow::channel::Instant;

use crate::PortRef;
use crate::frame::MacAddress;

/// Bounds and times of [`Devices`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Silence after which a claim at another port is believed.
    pub silence: Duration,
    /// Silence after which a host is forgotten.
    pub forget: Duration,
    /// Hosts at most.
    pub hosts: usize,
    /// Hosts of one port at most.
    pub hosts_of_port: usize,
    /// IP addresses of a host at most; further ones are not learned.
    pub addresses: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(10),
            forget: Duration::from_secs(300),
            hosts: 4096,
            hosts_of_port: 256,
            addresses: 16,
        }
    }
}

/// A VLAN as OpenFlow matches it: 0 for frames without a tag, otherwise the id with [`takt_openflow::oxm::VLAN_PRESENT`].
pub type Vlan = u16;

/// Identifies a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId {
    /// The VLAN.
    pub vlan: Vlan,
    /// The address.
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
    /// Where it is attached.
    pub at: PortRef,
    /// When it was found there.
    pub since: Instant,
    /// Its IP addresses.
    pub addresses: BTreeSet<IpAddr>,
    /// When the controller last saw a frame of it.
    pub last_seen: Instant,
    /// Whether a rule forwards what it sends, so that the controller does not see that.
    pub is_active: bool,
}

/// What a frame says of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sighting {
    /// The host is where it was.
    Known,
    /// A new host.
    New,
    /// The host was at another port, and is here now.
    Moved {
        /// Where it was.
        from: PortRef,
    },
    /// The host is at another port, and has not left it: the frame must not be forwarded.
    Spoofed {
        /// Where it is.
        at: PortRef,
    },
    /// The source is no address of a host.
    NotAHost,
    /// There is no room for another host, at this port or at all.
    Full,
}

/// What a claim of an IP address says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// The address is that of the host.
    Accepted,
    /// Another host has it and has not fallen silent: the frame must not be forwarded.
    Conflict {
        /// The host that has it.
        owner: HostId,
    },
    /// The host is not known, or has as many addresses as it may have.
    Full,
}

/// All hosts.
pub struct Devices {
    config: Config,
    hosts: BTreeMap<HostId, Host>,
    /// The host that has an IP address in a VLAN, and since when.
    by_address: BTreeMap<(IpAddr, Vlan), (HostId, Instant)>,
    /// Hosts with an Ethernet address, one in each VLAN.
    by_mac: BTreeMap<MacAddress, BTreeSet<HostId>>,
    by_port: BTreeMap<PortRef, BTreeSet<HostId>>,
}

impl Devices {
    /// No hosts.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            hosts: BTreeMap::new(),
            by_address: BTreeMap::new(),
            by_mac: BTreeMap::new(),
            by_port: BTreeMap::new(),
        }
    }

    /// A frame of `id` came in at an edge port. `is_up` says whether a port carries frames.
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

    /// A host says that it has an IP address, by ARP or neighbour discovery. `is_up` says whether a port carries frames.
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

    /// Whether a rule forwards what a host sends. Its silence begins when none does.
    pub fn set_active(&mut self, now: Instant, id: HostId, is_active: bool) {
        if let Some(host) = self.hosts.get_mut(&id) {
            if host.is_active && !is_active {
                host.last_seen = now;
            }
            host.is_active = is_active;
        }
    }

    /// Forgets the hosts of a port; they are returned.
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

    /// Forgets hosts that have been silent for [`Config::forget`]; they are returned.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<HostId> {
        let forget = self.config.forget;
        let gone = self.hosts.iter().filter(|(_, host)| is_silent(host, now, forget));
        let gone: Vec<HostId> = gone.map(|(id, _)| *id).collect();
        for id in &gone {
            self.remove(*id);
        }
        gone
    }

    /// A host.
    pub fn get(&self, id: HostId) -> Option<&Host> {
        self.hosts.get(&id)
    }

    /// The host that has an IP address.
    pub fn by_address(&self, vlan: Vlan, address: IpAddr) -> Option<HostId> {
        self.by_address.get(&(address, vlan)).map(|(id, _)| *id)
    }

    /// The host that an IP address belongs to, of those that have it in their VLANs: the one that claimed it first. One whose port is down, or that has
    /// been silent for [`Config::silence`], does not count. `is_up` says whether a port carries frames.
    pub fn owner(&self, now: Instant, address: IpAddr, is_up: impl Fn(PortRef) -> bool) -> Option<HostId> {
        let holders = self.by_address.range((address, 0)..=(address, Vlan::MAX)).map(|(_, holder)| *holder);
        let counts = |id: &HostId| {
            self.hosts.get(id).is_some_and(|host| is_up(host.at) && !is_silent(host, now, self.config.silence))
        };
        holders.filter(|(id, _)| counts(id)).min_by_key(|(_, since)| *since).map(|(id, _)| id)
    }

    /// The port of an Ethernet address: an interface has it in all of its VLANs. Of hosts with one address at several ports the one counts that
    /// was found there first, so that a claim in another VLAN moves no interface.
    pub fn interface(&self, mac: MacAddress) -> Option<PortRef> {
        let hosts = self.by_mac.get(&mac)?.iter().filter_map(|id| self.hosts.get(id));
        hosts.min_by_key(|host| host.since).map(|host| host.at)
    }

    /// All Ethernet addresses with their ports.
    pub fn interfaces(&self) -> impl Iterator<Item = (MacAddress, PortRef)> {
        self.by_mac.keys().filter_map(|mac| Some((*mac, self.interface(*mac)?)))
    }

    /// All hosts.
    pub fn iter(&self) -> impl Iterator<Item = (HostId, &Host)> {
        self.hosts.iter().map(|(id, host)| (*id, host))
    }
}

fn is_silent(host: &Host, now: Instant, span: Duration) -> bool {
    !host.is_active && now >= host.last_seen.after(span)
}
