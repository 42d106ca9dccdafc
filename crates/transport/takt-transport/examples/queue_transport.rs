//! Transport over queues in memory: the example of `docs/guide/write-a-transport.md`. It passes the
//! conformance suite (`tests/it/queue_conforms.rs`), and carries participants.
//!
//! Left out: descriptors to sleep on, interfaces that change, loaned payloads. A lock protects the
//! queues, which a transport for real-time traffic avoids.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};

use takt_transport::urgency_buffer::{BELOW_ALL, UrgencyBuffer, Wanted, urgency};
use takt_transport::{
    Capabilities, Commit, FlowId, FlowSpec, Locators, Reach, Receive, RxFrame, RxMeta, Scan, Status, Transport,
    TransportError, TransportStats,
};
use takt_wire::Locator;

/// Maximum length of a datagram in bytes.
const MESSAGE_MAX: usize = 1_400;
/// Address of every participant; ports distinguish them. The transport serves all addresses of
/// UDPv4 in place of UDP, and participants take the size of fragments from it.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

type Result<T> = std::result::Result<T, TransportError>;

/// Network that connects transports.
#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<Ports>>);

#[derive(Default)]
struct Ports {
    last: u32,
    /// Open ports: number of the receiver, flow of the port there, and urgency of that flow.
    open: BTreeMap<u32, (u32, FlowId, i32)>,
    /// Queues of received datagrams, by number.
    queues: BTreeMap<u32, UrgencyBuffer>,
}

/// Transport that is connected to a [`Hub`].
pub struct QueueTransport {
    hub: Hub,
    /// Number of the queue: the port of user data.
    number: u32,
    locators: Locators,
    /// Source ports of the open flows.
    flows: Vec<Option<u32>>,
    frame: Vec<u8>,
    is_loaned: bool,
    received: Vec<u8>,
    stats: TransportStats,
}

impl Ports {
    fn add(&mut self, number: u32, flow: FlowId, urgency: i32) -> u32 {
        self.last += 1;
        self.open.insert(self.last, (number, flow, urgency));
        self.last
    }

    /// Queues a datagram. Returns false if no port is open there, or a queue has no room.
    fn push(&mut self, source: Locator, to: &Locator, datagram: &[u8]) -> bool {
        let meta = |flow| RxMeta { source, local: *to, flow, multicast: to.is_multicast() };
        if to.is_multicast() {
            let pushed = self.queues.values_mut().map(|queue| queue.push(0, meta(FlowId::DEFAULT), datagram));
            return pushed.filter(|has_room| !has_room).count() == 0;
        }
        let Some((number, flow, urgency)) = self.open.get(&to.port).copied() else { return false };
        self.queues.get_mut(&number).is_some_and(|queue| queue.push(urgency, meta(flow), datagram))
    }
}

impl QueueTransport {
    /// Opens a transport at a hub.
    pub fn open(hub: &Hub) -> Self {
        let mut ports = lock(hub);
        let number = ports.last + 1;
        let user = ports.add(number, FlowId::DEFAULT, 0);
        let metatraffic = ports.add(number, FlowId::DEFAULT, 0);
        let mut queue = UrgencyBuffer::default();
        queue.await_urgency(1, MESSAGE_MAX);
        ports.queues.insert(number, queue);
        drop(ports);
        let locators = Locators {
            metatraffic_unicast: vec![Locator::udp_v4(HOST, metatraffic as u16)],
            metatraffic_multicast: vec![Locator::udp_v4(GROUP, 7_400)],
            default_unicast: vec![Locator::udp_v4(HOST, user as u16)],
            default_multicast: Vec::new(),
        };
        let (frame, received, stats) = (vec![0; MESSAGE_MAX], vec![0; MESSAGE_MAX], TransportStats::default());
        Self { hub: hub.clone(), number, locators, flows: vec![Some(user)], frame, is_loaned: false, received, stats }
    }
}

fn lock(hub: &Hub) -> MutexGuard<'_, Ports> {
    hub.0.lock().expect("no thread panics while it holds the lock")
}

fn error(op: &'static str, kind: ErrorKind) -> TransportError {
    TransportError::new(op, "a queue", kind.into())
}

impl Transport for QueueTransport {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "queue", max_message_len: MESSAGE_MAX, scans_memory: true }
    }

    fn status(&self) -> Status<'_> {
        Status::new(&self.locators, self.stats)
    }

    fn reach(&self, to: &Locator) -> Reach {
        let is_usable = to.ip().is_some_and(|ip| !ip.is_unspecified()) && to.port != 0;
        Reach::from(to.kind == Locator::KIND_UDP_V4 && is_usable)
    }

    fn loan(&mut self) -> Result<&mut [u8]> {
        self.is_loaned = true;
        Ok(&mut self.frame)
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<()> {
        let source = self.source_of(datagram.flow, &Locator::INVALID);
        let source = source.ok_or_else(|| error("commit", ErrorKind::NotFound))?;
        if !self.is_loaned {
            return Err(error("commit", ErrorKind::InvalidInput));
        }
        let len = datagram.assemble(&mut self.frame)?;
        self.is_loaned = false;
        let mut ports = lock(&self.hub);
        for to in datagram.destinations {
            if !self.reach(to).is_served() {
                self.stats.send_errors.unserved += 1;
                continue;
            }
            if ports.push(source, to, &self.frame[..len]) {
                self.stats.datagrams_out += 1;
                self.stats.bytes_out += len as u64;
            } else {
                self.stats.send_errors.no_buffers += 1;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>> {
        let wanted = match request {
            Receive::Any(_) => Wanted::Above(BELOW_ALL),
            Receive::Urgent { above } => Wanted::Above(above),
            Receive::NotUrgent(_) => Wanted::NotUrgent,
        };
        let mut ports = lock(&self.hub);
        let queue = ports.queues.get_mut(&self.number).ok_or_else(|| error("receive from", ErrorKind::NotFound))?;
        let Some((slot, meta)) = queue.pop(wanted) else { return Ok(None) };
        let received = &mut self.received[..queue.bytes(&slot).len()];
        received.copy_from_slice(queue.bytes(&slot));
        queue.release();
        self.stats.datagrams_in += 1;
        self.stats.bytes_in += received.len() as u64;
        Ok(Some(RxFrame::new(received, meta)))
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>)> {
        if !spec.own_port && spec.transport_priority <= 0 {
            return Ok((FlowId::DEFAULT, Vec::new()));
        }
        let flow = FlowId(u16::try_from(self.flows.len()).map_err(|_| error("open", ErrorKind::OutOfMemory))?);
        let mut ports = lock(&self.hub);
        let port = ports.add(self.number, flow, urgency(spec));
        ports.queues.entry(self.number).and_modify(|queue| queue.await_urgency(urgency(spec).max(1), MESSAGE_MAX));
        self.flows.push(Some(port));
        Ok((flow, spec.own_port.then(|| Locator::udp_v4(HOST, port as u16)).into_iter().collect()))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<()> {
        if flow == FlowId::DEFAULT {
            return Ok(());
        }
        let port = self.flows.get_mut(usize::from(flow.0)).and_then(Option::take);
        let port = port.ok_or_else(|| error("close a flow of", ErrorKind::NotFound))?;
        let mut ports = lock(&self.hub);
        ports.open.remove(&port);
        ports.queues.entry(self.number).and_modify(|queue| queue.remove_flow(flow));
        Ok(())
    }

    fn source_of(&self, flow: FlowId, _: &Locator) -> Option<Locator> {
        let port = self.flows.get(usize::from(flow.0)).copied().flatten()?;
        Some(Locator::udp_v4(HOST, port as u16))
    }
}

impl Drop for QueueTransport {
    fn drop(&mut self) {
        let mut ports = lock(&self.hub);
        ports.queues.remove(&self.number);
        ports.open.retain(|_, (number, ..)| *number != self.number);
    }
}

fn main() -> Result<()> {
    let hub = Hub::default();
    let (mut sender, mut receiver) = (QueueTransport::open(&hub), QueueTransport::open(&hub));
    let to = receiver.status().locators.default_unicast[0];
    sender.loan()?[..5].copy_from_slice(b"hello");
    sender.commit(Commit::new(5, FlowId::DEFAULT, &[to]))?;
    sender.flush()?;
    let datagram = receiver.recv(Receive::Any(Scan::All))?;
    println!("{:?}", datagram.as_deref().map(str::from_utf8));
    Ok(())
}
