//! Daemon of a host that owns network and discovery for its applications, which reach it through
//! shared memory. See `docs/guide/daemon.md`.
//!
//! A participant keeps the protocol engine. [`DaemonTransport`] is its transport: it announces the
//! daemon's UDP locators, hands messages with their destinations to the daemon, and receives the
//! messages that the daemon routes to it. [`Daemon`] is the other end.
//!
//! * [`handshake`]: the connection setup between application and daemon,
//! * [`frame`]: the header of a message between them,
//! * [`link`]: the connection of the application, and its reconnection,
//! * [`message`], [`bundle`], [`announcements`], [`router`]: the daemon's decisions, sans-IO,
//! * [`server`], [`outputs`]: the daemon's sockets and rings.
//!
//! One [`ShmTransport`] carries messages to the daemon and another one back. Rings, wake-ups and
//! the detection of ended processes are those of [`shm`](crate::shm).
//!
//! # When the daemon dies
//! The kernel closes its connections. The transport then counts outgoing messages as
//! `network_unreachable`, and tries to reach a daemon of the same name: at once, and then with
//! pauses that double from 50 ms to 1 s.
//!
//! Deliberately not here: flows with their own ports, and payloads by reference.

mod announcements;
mod bundle;
mod frame;
mod handshake;
mod link;
mod message;
mod outputs;
mod router;
mod server;
#[cfg(test)]
mod tests;

use std::io;

use takt_wire::message::{HEADER_LEN, MessageView};
use takt_wire::{GuidPrefix, Locator};

use crate::shm::{ShmConfig, ShmTransport};
use crate::{
    Capabilities, Commit, Control, FlowId, FlowSpec, Interface, Locators, Reach, Receive, RxFrame, RxMeta, Status,
    Transport, TransportError, TransportEvent, TransportStats,
};
use frame::{DESTINATIONS_MAX, IN_LEN, Inbound, MESSAGE_LEN_MAX, OUT_LEN, Outbound, UPDATE};
use handshake::{Request, Welcome};
use link::{ConnectParameters, Link};

pub use router::{ApplicationCounters, Bundling, DomainCounters};
pub use server::{Daemon, DaemonConfig, DaemonEvent};

/// Size of a ring of a daemon in each direction, in bytes.
const RING_BYTES: usize = 8 << 20;
/// Maximum number of rings of an application: to and from its daemon, and those of lost daemons.
const APPLICATION_CONNECTIONS_MAX: usize = 8;

/// Message without submessages; replaces a frame that is for the transport alone.
const EMPTY: [u8; HEADER_LEN] = {
    let mut header = [0; HEADER_LEN];
    let start = *b"RTPS\x02\x05";
    let mut at = 0;
    while at < start.len() {
        header[at] = start[at];
        at += 1;
    }
    header
};

/// Makes the settings of shared memory between an application and its daemon.
fn shm_config(connections_max: usize) -> ShmConfig {
    let (segment_bytes, segment_slots) = (*ShmConfig::SEGMENT_BYTES.start(), *ShmConfig::SEGMENT_SLOTS.start());
    ShmConfig { ring_bytes: RING_BYTES, connections_max, segment_bytes, segment_slots }
}

/// Returns the status of a daemon as lines of text: first the daemon, then its domains and
/// applications.
///
/// # Errors
/// No daemon of this name runs, or it does not answer.
pub fn status(name: Option<&str>) -> Result<String, TransportError> {
    let text = link::converse(name, &Request::Status);
    text.map_err(|source| {
        TransportError::new("ask", format_args!("the daemon {:?}", name.unwrap_or("default")), source)
    })
}

/// Transport of a participant through the daemon of its host. See the [module](self).
#[derive(Debug)]
pub struct DaemonTransport {
    parameters: ConnectParameters,
    multicast: bool,
    shm: ShmTransport,
    link: Link,
    locators: Locators,
    interfaces: Vec<Interface>,
    /// GUID prefix of the participant, once it has sent a message.
    prefix: Option<GuidPrefix>,
    /// Priorities of flows, with the number of users of each; the first is the default flow.
    flows: Vec<(i32, usize)>,
    is_loaned: bool,
    /// A due refresh was returned as an event, and not yet requested.
    is_change_reported: bool,
    /// Update of the daemon that [`Control::Refresh`] has not applied yet.
    pending_update: Option<Welcome>,
    stats: TransportStats,
}

impl DaemonTransport {
    /// Connects to the named daemon, or the default one, for a domain. Without `multicast`, no
    /// group is announced or sent to.
    ///
    /// # Errors
    /// No such daemon runs, it does not answer within a second, or it refuses, with its reason.
    pub fn open(name: Option<&str>, domain: u32, multicast: bool) -> Result<Self, TransportError> {
        let shm = ShmTransport::open(&shm_config(APPLICATION_CONNECTIONS_MAX))?;
        let target = format!("the daemon {:?}", name.unwrap_or("default"));
        let failed = |source| TransportError::new("connect to", &target, source);
        let [own, ..] = shm.status().locators.default_unicast[..] else {
            return Err(failed(io::ErrorKind::AddrNotAvailable.into()));
        };
        let parameters = ConnectParameters { name: name.map(str::to_owned), domain, shm: own };
        let (link, welcome) = Link::open(&parameters).map_err(failed)?;
        let mut transport = Self {
            parameters,
            multicast,
            shm,
            link,
            locators: Locators::default(),
            interfaces: Vec::new(),
            prefix: None,
            flows: vec![(0, 1)],
            is_loaned: false,
            is_change_reported: false,
            pending_update: None,
            stats: TransportStats::default(),
        };
        transport.apply_update(welcome);
        if !transport.open_ring() {
            return Err(failed(io::Error::other("the shared memory of the daemon cannot be attached")));
        }
        transport.stats.connections.opened = 1;
        Ok(transport)
    }

    /// Reports whether the daemon is connected.
    pub fn is_connected(&self) -> bool {
        self.link.is_up()
    }

    fn apply_update(&mut self, welcome: Welcome) {
        self.locators = welcome.locators;
        self.interfaces = welcome.interfaces;
        if !self.multicast {
            self.locators.metatraffic_multicast.clear();
            self.locators.default_multicast.clear();
        }
    }

    /// Opens the ring to the daemon.
    fn open_ring(&mut self) -> bool {
        let Link::Up { inbox } = self.link else { return false };
        let is_reached = self.shm.control(Control::Connect(&inbox)).is_ok();
        if !is_reached {
            self.link.mark_lost();
        }
        is_reached
    }

    fn priority(&self, flow: FlowId) -> Result<i32, TransportError> {
        match self.flows.get(usize::from(flow.0)) {
            Some((priority, users)) if *users > 0 => Ok(*priority),
            _ => {
                let what = format_args!("flow {}", flow.0);
                Err(TransportError::new("commit to", what, io::ErrorKind::NotFound.into()))
            }
        }
    }

    /// Sends the loaned message to the daemon, for up to [`DESTINATIONS_MAX`] destinations.
    fn send_to_daemon(&mut self, len: usize, priority: i32, to: &[Locator]) -> Result<(), TransportError> {
        let count = to.len() as u64;
        let Link::Up { inbox } = self.link else {
            self.stats.send_errors.network_unreachable += count;
            return Ok(());
        };
        let before = self.shm.datagrams_out();
        // The frame keeps its content: the ring always loans the same frame.
        Outbound::write(self.shm.loan()?, priority, to);
        self.shm.commit(Commit::new(OUT_LEN + len, FlowId::DEFAULT, &[inbox]))?;
        if self.shm.datagrams_out() > before {
            self.stats.datagrams_out += count;
            self.stats.bytes_out += len as u64 * count;
        } else {
            self.stats.send_errors.would_block += count;
        }
        Ok(())
    }

    /// Converts a frame of the daemon to a frame for the participant.
    fn open_frame<'a>(
        frame: &RxFrame<'a>,
        pending_update: &mut Option<Welcome>,
        stats: &mut TransportStats,
    ) -> RxFrame<'a> {
        let bytes = frame.bytes();
        if let Some((meta, message)) = Inbound::parse(bytes) {
            stats.datagrams_in += 1;
            stats.bytes_in += message.len() as u64;
            return RxFrame::new(message, meta);
        }
        let text = bytes.get(IN_LEN..).and_then(|text| std::str::from_utf8(text).ok());
        match text.filter(|_| bytes[0] == UPDATE).map(Welcome::parse) {
            Some(Ok(welcome)) => *pending_update = Some(welcome),
            _ => stats.receive_errors += 1,
        }
        let (source, local) = (Locator::INVALID, Locator::INVALID);
        RxFrame::new(&EMPTY, RxMeta { source, local, flow: FlowId::DEFAULT, multicast: false })
    }
}

impl DaemonTransport {
    /// Applies a pending update, and takes the next step to reach a lost daemon.
    fn refresh(&mut self) {
        self.is_change_reported = false;
        if let Some(update) = self.pending_update.take() {
            self.apply_update(update);
        }
        if let Some(welcome) = self.link.advance(&self.parameters, self.prefix)
            && self.open_ring()
        {
            self.apply_update(welcome);
            self.stats.connections.opened += 1;
        }
    }
}

impl Transport for DaemonTransport {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "daemon", max_message_len: MESSAGE_LEN_MAX, scans_memory: true }
    }

    fn status(&self) -> Status<'_> {
        let shm = self.shm.status();
        let receive_errors = self.stats.receive_errors + shm.stats.receive_errors;
        Status {
            interfaces: &self.interfaces,
            descriptors: shm.descriptors,
            ..Status::new(&self.locators, TransportStats { receive_errors, ..self.stats })
        }
    }

    fn reach(&self, locator: &Locator) -> Reach {
        let own = self.locators.default_unicast.iter().any(|own| own.kind == locator.kind);
        Reach::from(own && locator.is_usable() && (self.multicast || !locator.is_multicast()))
    }

    /// Opens a flow with the requested priority and without its own port.
    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        let priority = spec.transport_priority.max(0);
        let at = self.flows.iter().position(|(existing, users)| *existing == priority && *users > 0);
        let at = at.or_else(|| self.flows.iter().position(|(_, users)| *users == 0)).unwrap_or(self.flows.len());
        let exhausted = |_| TransportError::new("open", "a flow", io::Error::other("all 65536 flows are open"));
        let id = FlowId(u16::try_from(at).map_err(exhausted)?);
        if at == self.flows.len() {
            self.flows.push((priority, 0));
        }
        let users = self.flows[at].1;
        self.flows[at] = (priority, if at == 0 { users } else { users + 1 });
        Ok((id, Vec::new()))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.flush()?;
        self.priority(flow)?;
        if flow != FlowId::DEFAULT {
            self.flows[usize::from(flow.0)].1 -= 1;
        }
        Ok(())
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.is_loaned = true;
        Ok(&mut self.shm.loan()?[OUT_LEN..OUT_LEN + MESSAGE_LEN_MAX])
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        let priority = self.priority(datagram.flow)?;
        if !self.is_loaned {
            return Err(TransportError::new("commit", "a message", io::ErrorKind::InvalidInput.into()));
        }
        let len = datagram.assemble(&mut self.shm.loan()?[OUT_LEN..OUT_LEN + MESSAGE_LEN_MAX])?;
        self.is_loaned = false;
        if self.prefix.is_none() {
            let message = &self.shm.loan()?[OUT_LEN..OUT_LEN + len];
            self.prefix = MessageView::parse(message).ok().map(|view| view.header().prefix);
        }
        let mut to = [Locator::INVALID; DESTINATIONS_MAX];
        let mut count = 0;
        for destination in datagram.destinations {
            if !self.reach(destination).is_served() {
                self.stats.send_errors.unserved += 1;
                continue;
            }
            to[count] = *destination;
            count += 1;
            if count == DESTINATIONS_MAX {
                self.send_to_daemon(len, priority, &to)?;
                count = 0;
            }
        }
        if count > 0 { self.send_to_daemon(len, priority, &to[..count]) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.shm.flush()
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        let Self { shm, pending_update, stats, .. } = self;
        Ok(shm.recv(request)?.map(|frame| Self::open_frame(&frame, pending_update, stats)))
    }

    /// While the daemon is lost, each refresh takes the next step to reach it.
    fn poll_event(&mut self) -> Option<TransportEvent> {
        while let Some(TransportEvent::Lost(lost)) = self.shm.poll_event() {
            if matches!(self.link, Link::Up { inbox } if inbox == lost.locator) {
                self.stats.connections.lost += 1;
                self.link.mark_lost();
            }
        }
        let is_due = self.pending_update.is_some() || !self.link.is_up();
        let is_new = is_due && !std::mem::replace(&mut self.is_change_reported, true);
        is_new.then_some(TransportEvent::InterfacesChanged)
    }

    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        match request {
            Control::Connect(to) => self.reach(to).or_unserved(to),
            Control::Refresh => {
                self.refresh();
                Ok(())
            }
            Control::ReportSources => Ok(()),
        }
    }
}
