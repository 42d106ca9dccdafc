//! Table of flows and of the sockets that they send through.

use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;

use super::address::Family;
use super::priority::Priority;
use super::sender::SendSockets;
use super::socket::Socket;
use crate::{FlowId, FlowSpec, TransportError};

#[derive(Debug)]
struct Flow {
    own_port: bool,
    priority: Priority,
    /// Number of users: opened and not yet closed.
    users: usize,
    send_sockets: SendSockets,
    /// Sockets for fragments of large samples, if these are limited.
    fragment_sockets: SendSockets,
    port_v4: u16,
    port_v6: u16,
    /// Send-only sockets; the others belong to the receiver.
    sockets: Vec<Socket>,
    /// Sockets for fragments, which only send.
    for_fragments: Vec<Socket>,
}

impl Flow {
    fn new(own_port: bool, priority: Priority) -> Self {
        Self {
            own_port,
            priority,
            users: 1,
            send_sockets: SendSockets::default(),
            fragment_sockets: SendSockets::default(),
            port_v4: 0,
            port_v6: 0,
            sockets: Vec::new(),
            for_fragments: Vec::new(),
        }
    }
}

/// All flows; the first is [`FlowId::DEFAULT`].
#[derive(Debug)]
pub(super) struct Flows(Vec<Option<Flow>>);

impl Default for Flows {
    fn default() -> Self {
        let mut default = Flow::new(false, Priority::of(0));
        default.send_sockets.uses_connected = true;
        Self(vec![Some(default)])
    }
}

impl Flows {
    /// Adds a user to an open flow without its own port and of the same priority, such as the
    /// default flow, if there is one.
    pub(super) fn share(&mut self, spec: &FlowSpec) -> Option<FlowId> {
        if spec.own_port {
            return None;
        }
        let priority = Priority::of(spec.transport_priority);
        for (at, flow) in self.0.iter_mut().enumerate() {
            if let Some(flow) = flow
                && !flow.own_port
                && flow.priority == priority
            {
                flow.users += 1;
                return Some(FlowId(at as u16));
            }
        }
        None
    }

    /// Opens a flow without sockets.
    pub(super) fn open(&mut self, spec: &FlowSpec) -> Result<FlowId, TransportError> {
        let flow = Flow::new(spec.own_port, Priority::of(spec.transport_priority));
        let free = self.0.iter().position(Option::is_none);
        let at = free.unwrap_or(self.0.len());
        let Ok(id) = u16::try_from(at) else {
            let why = io::Error::other("all 65536 flows are open");
            return Err(TransportError::new("open", "a flow", why));
        };
        match free {
            Some(at) => self.0[at] = Some(flow),
            None => self.0.push(Some(flow)),
        }
        Ok(FlowId(id))
    }

    /// Adds a socket that the flow sends through, for its address family.
    pub(super) fn add_send_socket(&mut self, flow: FlowId, socket: &Socket) {
        if let Some(Some(flow)) = self.0.get_mut(usize::from(flow.0)) {
            match socket.family {
                Family::V4 => {
                    flow.send_sockets.v4 = Some(socket.raw_fd());
                    flow.port_v4 = socket.port();
                }
                Family::V6 => {
                    flow.send_sockets.v6 = Some(socket.raw_fd());
                    flow.port_v6 = socket.port();
                }
            }
        }
    }

    /// Returns the priority of the datagrams of a flow.
    pub(super) fn priority(&self, flow: FlowId) -> Priority {
        self.0.get(usize::from(flow.0)).and_then(Option::as_ref).map_or(Priority::of(0), |flow| flow.priority)
    }

    /// Replaces the send-only sockets of one address family by those that `open` makes for their
    /// priority. If `open` fails, the former socket stays.
    pub(super) fn rebind(
        &mut self,
        v4: bool,
        mut open: impl FnMut(Priority) -> Result<Socket, TransportError>,
    ) -> Result<(), TransportError> {
        let family = if v4 { Family::V4 } else { Family::V6 };
        for at in 0..self.0.len() {
            let Some(flow) = &mut self.0[at] else { continue };
            if flow.sockets.iter().any(|socket| socket.family == family) {
                let socket = open(flow.priority)?;
                flow.sockets.retain(|socket| socket.family != family);
                let id = FlowId(at as u16);
                self.add_send_socket(id, &socket);
                self.keep(id, socket);
            }
        }
        Ok(())
    }

    /// Replaces the sockets for fragments of one address family by those that `open` makes for
    /// their flow and priority. If `open` fails, the former socket stays.
    pub(super) fn rebind_fragment_sockets(
        &mut self,
        v4: bool,
        mut open: impl FnMut(FlowId, Priority) -> Result<Socket, TransportError>,
    ) -> Result<(), TransportError> {
        let family = if v4 { Family::V4 } else { Family::V6 };
        for at in 0..self.0.len() {
            let Some(flow) = &mut self.0[at] else { continue };
            if flow.for_fragments.iter().any(|socket| socket.family == family) {
                let id = FlowId(at as u16);
                let socket = open(id, flow.priority)?;
                flow.for_fragments.retain(|socket| socket.family != family);
                self.add_fragment_socket(id, socket);
            }
        }
        Ok(())
    }

    /// Keeps a send-only socket open as long as the flow.
    pub(super) fn keep(&mut self, flow: FlowId, socket: Socket) {
        if let Some(Some(flow)) = self.0.get_mut(usize::from(flow.0)) {
            flow.sockets.push(socket);
        }
    }

    /// Adds a socket for fragments, which stays open as long as the flow.
    pub(super) fn add_fragment_socket(&mut self, flow: FlowId, socket: Socket) {
        if let Some(Some(flow)) = self.0.get_mut(usize::from(flow.0)) {
            match socket.family {
                Family::V4 => flow.fragment_sockets.v4 = Some(socket.raw_fd()),
                Family::V6 => flow.fragment_sockets.v6 = Some(socket.raw_fd()),
            }
            flow.for_fragments.push(socket);
        }
    }

    /// Returns the open sockets for fragments of a flow.
    pub(super) fn fragment_sockets(&self, id: FlowId) -> impl Iterator<Item = RawFd> {
        let flow = self.0.get(usize::from(id.0)).and_then(Option::as_ref);
        flow.into_iter().flat_map(|flow| [flow.fragment_sockets.v4, flow.fragment_sockets.v6]).flatten()
    }

    /// Removes one user. Reports whether it was the last one, so that the flow is closed.
    pub(super) fn close(&mut self, id: FlowId) -> Result<bool, TransportError> {
        if id == FlowId::DEFAULT {
            return Ok(false);
        }
        let flow = self.0.get_mut(usize::from(id.0));
        let Some(slot @ Some(_)) = flow else {
            return Err(unknown("close", id));
        };
        let last = slot.as_mut().is_some_and(|flow| {
            flow.users -= 1;
            flow.users == 0
        });
        if last {
            *slot = None;
        }
        Ok(last)
    }

    /// Returns the sockets that a flow sends limited fragments, or all other datagrams, through.
    pub(super) fn send_sockets(&self, id: FlowId, is_limited: bool) -> Result<SendSockets, TransportError> {
        match self.0.get(usize::from(id.0)) {
            Some(Some(flow)) if is_limited && !flow.for_fragments.is_empty() => Ok(flow.fragment_sockets),
            Some(Some(flow)) => Ok(flow.send_sockets),
            _ => Err(unknown("commit to", id)),
        }
    }

    /// Returns the source port of the datagrams that a flow sends to an address of that family.
    pub(super) fn port(&self, id: FlowId, to: IpAddr) -> Option<u16> {
        let flow = self.0.get(usize::from(id.0))?.as_ref()?;
        let port = match to {
            IpAddr::V4(_) => flow.port_v4,
            IpAddr::V6(_) => flow.port_v6,
        };
        (port != 0).then_some(port)
    }
}

fn unknown(op: &'static str, id: FlowId) -> TransportError {
    let why = io::Error::from(io::ErrorKind::NotFound);
    TransportError::new(op, format_args!("flow {}", id.0), why)
}
