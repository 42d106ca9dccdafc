//! Adaptation of UDP sockets and group memberships to changed interfaces.
//!
//! Unicast sockets keep their ports. A socket is replaced only if it must be bound to another
//! address ([`BindAddresses`]). The kernel drops the memberships of an interface that loses its
//! last address, so groups are joined again at every interface that may have changed. Connected
//! sockets are closed, because their source address is fixed.
//!
//! Deliberately not here: sockets of an address family of which no selected interface had an
//! address when the transport was opened.

use std::net::IpAddr;

use takt_wire::Locator;

use super::fragments;
use super::interfaces::{self, BindAddresses, addresses_v4, addresses_v6};
use super::priority::Priority;
use super::receiver::Role;
use super::socket::{Socket, Warnings, socket_error};
use super::watch::InterfaceChanges;
use super::{Group, UdpTransport, no_multicast};
use crate::{FlowId, TransportError};

impl UdpTransport {
    /// Reads the selected interfaces again and adapts sockets, locators and memberships to them.
    pub(super) fn apply_interface_changes(&mut self, changes: &InterfaceChanges) -> Result<(), TransportError> {
        let selected = interfaces::select_present(&self.config)
            .map_err(|e| TransportError::new("list network interfaces", "of this machine", e))?;
        if selected != self.interfaces {
            self.sender.flush(&mut self.stats);
            self.sender.clear_interfaces();
            self.interfaces = selected;
            self.sender.set_mtus(&self.interfaces);
            self.receiver.set_interfaces(&self.interfaces);
            let rebound = self.rebind();
            self.locators.default_unicast = self.locators_of_role(|role| role == Role::User(FlowId::DEFAULT));
            self.locators.metatraffic_unicast = self.locators_of_role(|role| role == Role::Metatraffic);
            self.join_groups(changes);
            return rebound;
        }
        self.join_groups(changes);
        Ok(())
    }

    /// Replaces the unicast sockets of each address family that must be bound to another address.
    fn rebind(&mut self) -> Result<(), TransportError> {
        let bind = BindAddresses::new(&self.config.interfaces, &self.interfaces);
        let (has_v4, has_v6) =
            (addresses_v4(&self.interfaces).next().is_some(), addresses_v6(&self.interfaces).next().is_some());
        let mut result = Ok(());
        for index in 0..self.bind.len() {
            let former = self.bind[index];
            let (address, has_address): (IpAddr, bool) = match former {
                IpAddr::V4(_) => (bind.v4.into(), has_v4),
                IpAddr::V6(_) => (bind.v6.into(), has_v6),
            };
            // If the family has no address now, the former one may return.
            if !has_address || address == former {
                continue;
            }
            self.bind[index] = address;
            result = self.rebind_family(address).and(result);
        }
        result
    }

    /// Replaces all unicast sockets of an address family by sockets that are bound to `address`.
    fn rebind_family(&mut self, address: IpAddr) -> Result<(), TransportError> {
        let Self { config, flows, fragment_limits, receiver, warnings, .. } = self;
        let open = |former: Option<&Socket>, priority, warnings: &mut Warnings| {
            let failed = socket_error("bind", address, former.map_or(0, Socket::port));
            let socket = match former {
                Some(former) => Socket::replacing(former, address, config),
                None => Socket::unicast(address, 0, config),
            }
            .map_err(&failed)?;
            socket.size_buffers(config, warnings);
            if priority != Priority::of(0) {
                socket.set_priority(priority, warnings).map_err(&failed)?;
            }
            Ok(socket)
        };
        // The new sockets are empty. If one cannot be opened, its flow blocks again.
        fragment_limits.unblock_all();
        let v4 = address.is_ipv4();
        receiver.rebind(v4, |role, former| match role {
            Role::User(flow) => {
                let socket = open(Some(former), flows.priority(flow), warnings)?;
                flows.add_send_socket(flow, &socket);
                Ok(socket)
            }
            _ => open(Some(former), Priority::of(0), warnings),
        })?;
        flows.rebind(v4, |priority| open(None, priority, warnings))?;
        flows.rebind_fragment_sockets(v4, |flow, priority| {
            let socket = fragments::open_socket(address, priority, config, warnings)?;
            let local = socket.local;
            receiver.add_fragment_socket(&socket, flow).map_err(|e| TransportError::new("watch socket", local, e))?;
            Ok(socket)
        })
    }

    /// Returns the locators of the sockets of a role.
    fn locators_of_role(&self, is_selected: impl Fn(Role) -> bool) -> Vec<Locator> {
        self.receiver
            .sockets()
            .filter(|(role, _)| is_selected(*role))
            .flat_map(|(_, socket)| self.unicast_locators_of(socket))
            .collect()
    }

    /// Joins the groups at all interfaces that are new or may have changed. Announces a group if it
    /// was joined at one interface at least.
    fn join_groups(&mut self, changes: &InterfaceChanges) {
        self.locators.metatraffic_multicast.clear();
        self.locators.default_multicast.clear();
        for index in 0..self.groups.len() {
            let Group { address, port, is_metatraffic } = self.groups[index];
            match self.join(address, port, |ifindex| changes.affects(ifindex)) {
                Ok(Some(locator)) if is_metatraffic => self.locators.metatraffic_multicast.push(locator),
                Ok(Some(locator)) => self.locators.default_multicast.push(locator),
                Ok(None) => {}
                Err(e) => self.warnings.add(no_multicast("any interface", false, address, &e.source)),
            }
        }
    }
}
