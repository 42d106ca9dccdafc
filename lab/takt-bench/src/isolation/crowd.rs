//! Many simulated participants in one process and one thread, as discovery load on another
//! participant.
//!
//! Each is the protocol engine of Takt with a writer and a reader. A datagram goes to the
//! participant that its INFO_DST names (RTPS 2.5 §8.3.8.7), or without one to all participants of
//! the socket. Plain participants share one socket per address. Secured participants have one
//! socket each, because an encrypted message does not show its destination. Plain participants
//! leave all at once after [`STAY`], and as many new ones join. Secured participants leave one by
//! one, each after [`SECURED_STAY`].

use crate::error::{Error, Result};
use crate::machine::monotonic_ns;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use takt::qos::{DataReaderQos, DataWriterQos, History, PublisherQos, SubscriberQos, TopicData};
use takt::{GuidPrefix, Locator};
use takt_core::{Config, Instant, Interface, Locators, Participant, ReaderSpec, Received, WriterFlows, WriterSpec};
use takt_wire::ports::PortMapping;

/// Time for which plain participants stay.
const STAY: Duration = Duration::from_secs(2);
/// Time for which secured participants stay.
const SECURED_STAY: Duration = Duration::from_secs(10);
/// Maximum number of secured participants replaced before received datagrams are handled.
const REPLACED_PER_STEP: usize = 8;
/// Maximum length of a datagram that is sent.
const DATAGRAM_LEN: usize = 1472;
/// Maximum length of a datagram that is received or protected.
const FRAME_LEN: usize = 1 << 16;
/// Number of datagrams taken from one socket before the next one is served.
const BURST: usize = 256;
const TOPIC: &str = "Crowd";
/// Offset of the first submessage, and the submessage ID of INFO_DST.
const HEADER_LEN: usize = 20;
const INFO_DST: u8 = 0x0e;

/// Constructor of a participant of the crowd with a given number. It may change the GUID prefix.
pub type ParticipantConstructor = Box<dyn FnMut(usize, Config, Instant) -> Result<Participant>>;

/// Domain, interface and addresses of a crowd.
#[derive(Clone, Copy, Debug)]
pub struct CrowdSettings<'a> {
    /// DDS domain ID.
    pub domain: u32,
    /// Interface of the addresses.
    pub interface: &'a str,
    /// Addresses of the crowd.
    pub own: &'a [Ipv4Addr],
    /// Address of the only peer.
    pub peer: Ipv4Addr,
}

/// Participants whose only peer is at one address.
pub struct Crowd {
    constructor: ParticipantConstructor,
    sockets: Vec<UdpSocket>,
    addresses: Vec<Locator>,
    members: Vec<Participant>,
    by_prefix: HashMap<[u8; 12], usize>,
    config: Config,
    count: usize,
    /// Number of participants that have joined so far.
    joined: u32,
    is_secured: bool,
    /// Time at which each member leaves.
    leave_at_ns: Vec<u64>,
    frame: Vec<u8>,
}

impl Crowd {
    /// Opens the sockets and creates `count` participants.
    ///
    /// # Errors
    /// An address is not local, or the domain has no ports.
    pub fn new(settings: &CrowdSettings<'_>, count: usize) -> Result<Self> {
        let plain: ParticipantConstructor =
            Box::new(|_, config, now| Ok(Participant::new(config, now).map_err(takt::Error::from)?));
        Self::open(plain, settings, count, false)
    }

    /// Creates a crowd whose participants `make` constructs, with one socket each.
    ///
    /// # Errors
    /// Those of [`new`](Self::new), or `make` failed.
    pub fn with_constructor(make: ParticipantConstructor, settings: &CrowdSettings<'_>, count: usize) -> Result<Self> {
        Self::open(make, settings, count, true)
    }

    fn open(
        make: ParticipantConstructor,
        settings: &CrowdSettings<'_>,
        count: usize,
        is_secured: bool,
    ) -> Result<Self> {
        let CrowdSettings { domain, interface, own, peer } = *settings;
        let no_port = || Error::Usage(format!("domain {domain} has no ports"));
        let port = PortMapping::default().discovery_unicast(domain, 0).ok_or_else(no_port)?;
        let mut config = Config::new(domain, GuidPrefix([0; 12]));
        let loopback = own.iter().any(Ipv4Addr::is_loopback);
        let addresses = own.iter().map(|address| (IpAddr::V4(*address), 24)).collect();
        config.interfaces = vec![Interface { name: interface.into(), addresses, mtu: 1500, loopback }];
        config.initial_peers = vec![Locator::udp_v4(peer, port)];
        config.udp_message_max = DATAGRAM_LEN;
        config.limits.endpoint_memory_bytes = 64 << 10;
        config.limits.default_max_samples = 4;
        let (mut sockets, mut addresses) = (Vec::new(), Vec::new());
        let socket_count = if is_secured { count } else { own.len() };
        for address in own.iter().cycle().take(socket_count) {
            let failure = |e| Error::os(format!("a socket at {address}"), e);
            let socket = UdpSocket::bind((*address, 0)).map_err(failure)?;
            socket.set_nonblocking(true).map_err(failure)?;
            addresses.push(Locator::udp_v4(*address, socket.local_addr().map_err(failure)?.port()));
            sockets.push(socket);
        }
        let (members, by_prefix, frame) = (Vec::new(), HashMap::new(), vec![0; FRAME_LEN]);
        let leave_at_ns = Vec::new();
        let mut crowd = Self {
            constructor: make,
            sockets,
            addresses,
            members,
            by_prefix,
            config,
            count,
            joined: 0,
            is_secured,
            leave_at_ns,
            frame,
        };
        for index in 0..count {
            let member = crowd.join(index)?;
            crowd.members.push(member);
            let share = if is_secured { (index as u32 + 1, count as u32) } else { (1, 1) };
            crowd.leave_at_ns.push(monotonic_ns() + crowd.stay_ns() * u64::from(share.0) / u64::from(share.1));
        }
        Ok(crowd)
    }

    fn stay_ns(&self) -> u64 {
        let stay = if self.is_secured { SECURED_STAY } else { STAY };
        stay.as_nanos() as u64
    }

    /// Creates the participant with an index of the crowd, at the address of that index.
    fn join(&mut self, index: usize) -> Result<Participant> {
        let now = Instant(monotonic_ns());
        self.joined += 1;
        let prefix = prefix(self.joined, index);
        let address = vec![self.addresses[index % self.addresses.len()]];
        let mut config = Config { guid_prefix: GuidPrefix(prefix), ..self.config.clone() };
        config.secret = [u64::from(std::process::id()) << 32 | u64::from(self.joined), index as u64];
        config.locators =
            Locators { metatraffic_unicast: address.clone(), default_unicast: address, ..Locators::default() };
        let mut member = (self.constructor)(index, config, now)?;
        add_endpoints(&mut member, now).map_err(takt::Error::from)?;
        self.by_prefix.insert(member.guid().prefix.0, index);
        Ok(member)
    }

    /// Replaces participants whose time is over.
    fn replace(&mut self) -> Result<()> {
        let now_ns = monotonic_ns();
        let at_once = if self.is_secured { REPLACED_PER_STEP } else { self.count };
        let over: Vec<_> = (0..self.count).filter(|index| self.leave_at_ns[*index] <= now_ns).take(at_once).collect();
        over.iter().for_each(|index| self.members[*index].shutdown());
        self.send()?;
        for index in over {
            self.by_prefix.remove(&self.members[index].guid().prefix.0);
            self.members[index] = self.join(index)?;
            self.leave_at_ns[index] = now_ns + self.stay_ns();
        }
        Ok(())
    }

    /// Receives, runs timers and sends. Blocks for at most `timeout` if nothing is due.
    ///
    /// # Errors
    /// A socket failed.
    pub fn step(&mut self, timeout: Duration) -> Result<()> {
        let is_idle = !self.receive()?;
        self.replace()?;
        let now = Instant(monotonic_ns());
        for member in &mut self.members {
            if member.poll_timeout().is_some_and(|at| at <= now) {
                member.handle_timeout(now);
            }
            while member.poll_event().is_some() {}
        }
        self.send()?;
        if is_idle {
            std::thread::sleep(timeout);
        }
        Ok(())
    }

    /// Receives pending datagrams. Returns whether there were any.
    fn receive(&mut self) -> Result<bool> {
        let mut any = false;
        for (at, socket) in self.sockets.iter().enumerate() {
            for _ in 0..BURST {
                let (len, from) = match socket.recv_from(&mut self.frame) {
                    Ok((len, SocketAddr::V4(from))) => (len, from),
                    Ok(_) => continue,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    // ICMP error of an earlier send: the peer had no socket there.
                    Err(e) if matches!(e.kind(), ErrorKind::ConnectionRefused | ErrorKind::Interrupted) => continue,
                    Err(e) => return Err(Error::os("receive", e)),
                };
                any = true;
                let datagram = &self.frame[..len];
                let received = Received { source: Locator::udp_v4(*from.ip(), from.port()), multicast: false };
                let now = Instant(monotonic_ns());
                match destination(datagram) {
                    Some(prefix) => {
                        if let Some(&index) = self.by_prefix.get(&prefix) {
                            self.members[index].handle_datagram(now, received, datagram);
                        }
                    }
                    None => {
                        for member in self.members.iter_mut().skip(at).step_by(self.sockets.len()) {
                            member.handle_datagram(now, received, datagram);
                        }
                    }
                }
            }
        }
        Ok(any)
    }

    /// Sends all pending datagrams. A datagram that the kernel has no room for is lost, as on any
    /// network.
    fn send(&mut self) -> Result<()> {
        for (index, member) in self.members.iter_mut().enumerate() {
            let socket = &self.sockets[index % self.sockets.len()];
            while let Some(transmit) = member.poll_transmit(Instant(monotonic_ns()), &mut self.frame) {
                let (len, to) = (transmit.len, transmit.destinations.to_vec());
                for locator in to {
                    let Some(ip) = locator.ip() else { continue };
                    match socket.send_to(&self.frame[..len], (ip, locator.port as u16)) {
                        Ok(_) => {}
                        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {}
                        Err(e) => return Err(Error::os("send", e)),
                    }
                }
            }
        }
        Ok(())
    }
}

/// Creates a writer and a reader.
fn add_endpoints(member: &mut Participant, now: Instant) -> std::result::Result<(), takt_core::Error> {
    let history = History::KeepLast(1);
    member.create_writer(
        now,
        WriterSpec {
            topic_name: TOPIC.into(),
            type_name: "Blob".into(),
            keyed: false,
            qos: DataWriterQos { history, ..DataWriterQos::default() },
            publisher: PublisherQos::default(),
            group: None,
            topic_data: TopicData::default(),
            type_information: None,
            max_serialized_len: Some(64),
            flows: WriterFlows::default(),
            unicast: Vec::new(),
            filters: None,
        },
    )?;
    member.create_reader(
        now,
        ReaderSpec {
            topic_name: TOPIC.into(),
            type_name: "Blob".into(),
            key: None,
            qos: DataReaderQos { history, ..DataReaderQos::default() },
            subscriber: SubscriberQos::default(),
            group: None,
            topic_data: TopicData::default(),
            type_information: None,
            max_serialized_len: Some(64),
            unicast: Vec::new(),
            content_filter: None,
        },
    )?;
    Ok(())
}

/// Returns a GUID prefix that no other participant has or had in this process.
fn prefix(number: u32, index: usize) -> [u8; 12] {
    let mut prefix = [0; 12];
    prefix[..2].copy_from_slice(&[1, 0x7a]);
    prefix[2..6].copy_from_slice(&std::process::id().to_be_bytes());
    prefix[6..10].copy_from_slice(&number.to_be_bytes());
    prefix[10..].copy_from_slice(&(index as u16).to_be_bytes());
    prefix
}

/// Returns the GUID prefix of the INFO_DST at the beginning of a datagram.
fn destination(datagram: &[u8]) -> Option<[u8; 12]> {
    let submessage = datagram.get(HEADER_LEN..)?;
    let is_destination = submessage.first() == Some(&INFO_DST);
    let prefix: [u8; 12] = submessage.get(4..16)?.try_into().ok()?; // tidy-allow(dropped-cause): twelve octets are twelve.
    (is_destination && prefix != [0; 12]).then_some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt::{DomainParticipant, ParticipantData, Runtime};

    #[test]
    fn destination_is_that_of_a_complete_info_dst_with_a_prefix() {
        let mut datagram = vec![0_u8; HEADER_LEN + 16];
        assert_eq!(destination(&datagram), None);
        datagram[HEADER_LEN] = INFO_DST;
        assert_eq!(destination(&datagram), None, "to nobody in particular");
        datagram[HEADER_LEN + 4] = 9;
        assert_eq!(destination(&datagram).map(|prefix| prefix[0]), Some(9));
        assert_eq!(destination(&datagram[..HEADER_LEN + 15]), None);
    }

    #[test]
    fn a_participant_discovers_all_of_a_crowd_with_their_endpoints() {
        let domain = takt_testkit::domain::domain();
        let participant = DomainParticipant::builder(domain)
            .interfaces(["lo"])
            .shared_memory(false)
            .multicast(false)
            .peers(["127.0.0.1"])
            .runtime(Runtime::Inline)
            .build()
            .unwrap();
        let (own, peer) = (&[Ipv4Addr::LOCALHOST], Ipv4Addr::LOCALHOST);
        let mut crowd = Crowd::new(&CrowdSettings { domain, interface: "lo", own, peer }, 60).unwrap();
        // No member leaves, so all are discovered, however long that takes on a busy machine.
        crowd.leave_at_ns.fill(u64::MAX);
        let limit = monotonic_ns() + 60_000_000_000;
        let is_member = |data: &ParticipantData| data.guid.prefix.0[..2] == [1, 0x7a];
        loop {
            crowd.step(Duration::ZERO).unwrap();
            participant.spin_once(Duration::ZERO).unwrap();
            let found = participant.discovered_participants().unwrap().iter().filter(|data| is_member(data)).count();
            let readers = participant.discovered_subscriptions().unwrap().len();
            if found == 60 && readers == 60 {
                break;
            }
            assert!(monotonic_ns() < limit, "{found} participants and {readers} readers of 60");
        }
    }
}
