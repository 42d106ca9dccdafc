//! Message router of a daemon, sans-IO: selects the applications that receive a message, the
//! messages that leave for the network, and those that share a datagram.
//!
//! A message is routed by its INFO_DST (RTPS 2.5 §8.3.8.7): to the applications whose participants
//! it names, and to all applications of the domain if a submessage names none. An application is
//! identified by its shared memory locator. It owns the first GUID prefix that it sends with.

use std::collections::BTreeMap;
use std::time::Duration;

use takt_wire::builder::{DataEmit, MessageBuilder};
use takt_wire::discovery::ParticipantData;
use takt_wire::inline_qos::{InlineQosBuilder, STATUS_INFO_DISPOSED, STATUS_INFO_UNREGISTERED};
use takt_wire::message::{HEADER_LEN, MessageView, Payload};
use takt_wire::{EntityId, Guid, GuidPrefix, Locator, SequenceNumber};

use super::announcements::{LEN_MAX, Own, RemoteAnnouncements};
use super::bundle::{Bundler, Target};
use super::frame::Inbound;
use super::message::{Kind, Mark, Parts, Summary, header_of};
use crate::Locators;

/// Maximum number of known addresses of other daemons in a domain; the oldest is evicted.
const DAEMONS_MAX: usize = 256;
/// Time after which the address of another daemon expires.
const DAEMON_TIME: Duration = Duration::from_secs(30);
/// Maximum length of a bundle in octets; the MTU may be smaller.
const BUNDLE_LEN_MAX: usize = 8192;
/// Octets of the IPv6 and UDP headers.
const HEADERS_LEN: usize = 48;

/// Messages of several applications that share a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bundling {
    /// No messages.
    Off,
    /// Messages to another daemon, and announcements.
    #[default]
    Daemons,
    /// Messages to any address. The receiver has to process INFO_SRC.
    All,
}

/// Counters of a daemon for an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplicationCounters {
    /// Messages from the application.
    pub messages_in: u64,
    /// Messages to the application.
    pub messages_out: u64,
    /// Messages to the application that were dropped because its ring was full.
    pub dropped: u64,
    /// Frames from the application that were dropped: malformed, or with the GUID prefix of another
    /// application.
    pub refused: u64,
}

impl ApplicationCounters {
    fn count(&mut self, is_delivered: bool) {
        self.messages_out += u64::from(is_delivered);
        self.dropped += u64::from(!is_delivered);
    }
}

/// Counters of a daemon for a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainCounters {
    /// Datagrams sent to the network.
    pub datagrams_out: u64,
    /// Messages in these datagrams.
    pub messages_out: u64,
    /// Datagrams with several messages.
    pub bundles_out: u64,
    /// Datagrams received from the network.
    pub datagrams_in: u64,
    /// Bundles among the received datagrams.
    pub bundles_in: u64,
    /// Datagrams from the network that are no RTPS messages.
    pub malformed: u64,
    /// Messages from the network without a receiving application.
    pub unrouted: u64,
    /// Repeated announcements that were already sent with those of another application.
    pub suppressed: u64,
}

/// Delivery of messages to applications: one frame at a time, to each receiver.
pub(super) trait Deliver {
    /// Prepares the next frame.
    fn prepare(&mut self, header: &Inbound, message: &[u8]);
    /// Delivers the prepared frame to an application; returns false if its ring is full.
    fn deliver(&mut self, application: &Locator) -> bool;
}

/// Transmission of datagrams to the network.
pub(super) trait Network {
    /// Sends one datagram.
    fn send(&mut self, domain: u32, priority: i32, to: &Locator, pieces: &[&[u8]]);
}

/// State of an application that joined.
#[derive(Debug)]
pub(super) struct Application {
    pub(super) domain: u32,
    pub(super) prefix: Option<GuidPrefix>,
    announcement: Option<Own>,
    pub(super) counters: ApplicationCounters,
}

#[derive(Debug, Default)]
struct Domain {
    own: Locators,
    bundle_len: usize,
    applications: Vec<Locator>,
    /// GUID prefixes of the applications that have sent a message.
    prefixes: BTreeMap<GuidPrefix, Locator>,
    remote_announcements: RemoteAnnouncements,
    daemons: BTreeMap<Locator, Duration>,
    bundler: Bundler,
    counters: DomainCounters,
}

impl Domain {
    fn mark(&self) -> Mark {
        let port = |of: &[Locator]| of.first().map_or(0, |locator| locator.port as u16);
        let (metatraffic, user) = (port(&self.own.metatraffic_unicast), port(&self.own.default_unicast));
        Mark { is_bundle: false, metatraffic_port: metatraffic, user_port: user }
    }

    fn is_own(&self, locator: &Locator) -> bool {
        self.own.metatraffic_unicast.contains(locator) || self.own.default_unicast.contains(locator)
    }

    /// Reports whether the locator is a group that applications are members of.
    fn has_member_of(&self, locator: &Locator) -> bool {
        let mut groups = self.own.metatraffic_multicast.iter().chain(&self.own.default_multicast);
        groups.any(|group| is_same_group(group, locator))
    }

    fn is_daemon(&self, now: Duration, locator: &Locator) -> bool {
        self.daemons.get(locator).is_some_and(|at| now.saturating_sub(*at) < DAEMON_TIME)
    }

    /// Records that a daemon sends from this address.
    fn record_daemon(&mut self, now: Duration, source: &Locator, mark: &Mark) {
        for port in [mark.metatraffic_port, mark.user_port] {
            let locator = Locator { port: port.into(), ..*source };
            if !self.daemons.contains_key(&locator)
                && self.daemons.len() == DAEMONS_MAX
                && let Some(oldest) = self.daemons.iter().min_by_key(|(_, at)| **at).map(|(locator, _)| *locator)
            {
                self.daemons.remove(&oldest);
            }
            self.daemons.insert(locator, now);
        }
    }

    /// Collects the applications that receive a message.
    fn select_receivers(&self, summary: &Summary, receivers: &mut Vec<Locator>) {
        receivers.clear();
        if summary.destinations.is_undirected {
            receivers.extend_from_slice(&self.applications);
        } else {
            let named = summary.destinations.prefixes().iter();
            receivers.extend(named.filter_map(|prefix| self.prefixes.get(prefix)));
        }
    }

    fn source(&self) -> Locator {
        self.own.default_unicast.first().copied().unwrap_or(Locator::INVALID)
    }
}

/// Message of an application that passed the checks.
struct Admitted {
    domain_id: u32,
    summary: Summary,
    /// The message is sent to its groups now.
    leaves: bool,
}

/// Message router of a daemon. See the [module](self).
#[derive(Debug)]
pub(super) struct Router {
    bundling: Bundling,
    applications: BTreeMap<Locator, Application>,
    domains: BTreeMap<u32, Domain>,
    /// Number of frames from senders that have not joined.
    pub(super) unknown_senders: u64,
    /// Receivers of the next message; kept to reuse its memory.
    receivers: Vec<Locator>,
    /// Message of a bundle; kept to reuse its memory.
    scratch: Vec<u8>,
}

impl Router {
    pub(super) fn new(bundling: Bundling) -> Self {
        let (applications, domains) = (BTreeMap::new(), BTreeMap::new());
        Self { bundling, applications, domains, unknown_senders: 0, receivers: Vec::new(), scratch: Vec::new() }
    }

    /// Sets the locators of the daemon in a domain, and the smallest MTU of its interfaces.
    pub(super) fn set_own(&mut self, domain: u32, own: &Locators, mtu: usize) {
        let domain = self.domains.entry(domain).or_default();
        domain.own = own.clone();
        domain.bundle_len = mtu.saturating_sub(HEADERS_LEN).min(BUNDLE_LEN_MAX);
    }

    pub(super) fn applications(&self) -> &BTreeMap<Locator, Application> {
        &self.applications
    }

    pub(super) fn domain_counters(&self) -> impl Iterator<Item = (u32, &DomainCounters)> {
        self.domains.iter().map(|(id, domain)| (*id, &domain.counters))
    }

    /// Adds an application to a domain, after [`set_own`](Self::set_own) for it. The application
    /// receives the stored announcements of other participants at once. A `prefix` belongs to an
    /// application that has lost its daemon.
    pub(super) fn join(
        &mut self,
        now: Duration,
        at: Locator,
        domain_id: u32,
        prefix: Option<GuidPrefix>,
        out: &mut dyn Deliver,
    ) {
        let Some(domain) = self.domains.get_mut(&domain_id) else { return };
        let prefix = prefix.filter(|prefix| !domain.prefixes.contains_key(prefix));
        if let Some(prefix) = prefix {
            domain.prefixes.insert(prefix, at);
        }
        let mut counters = ApplicationCounters::default();
        let group = domain.own.metatraffic_multicast.first().copied().unwrap_or(Locator::INVALID);
        let header = Inbound { source: domain.source(), local: group, is_multicast: true };
        let others = self.applications.values().filter(|other| other.domain == domain_id);
        let own = others.filter_map(|other| Some((&header, &other.announcement.as_ref()?.message[..])));
        for (header, message) in own.chain(domain.remote_announcements.recent(now)) {
            out.prepare(header, message);
            counters.count(out.deliver(&at));
        }
        domain.applications.push(at);
        self.applications.insert(at, Application { domain: domain_id, prefix, announcement: None, counters });
    }

    /// Removes an application. If its participant did not announce that it leaves, the router sends
    /// that message for it: the kernel has closed the connection, so the process has ended or the
    /// participant is closed.
    pub(super) fn leave(&mut self, at: &Locator, out: &mut (impl Deliver + Network)) -> Option<Application> {
        let application = self.applications.remove(at)?;
        let domain = self.domains.get_mut(&application.domain)?;
        domain.applications.retain(|it| it != at);
        if let Some(prefix) = application.prefix {
            domain.prefixes.remove(&prefix);
        }
        let mut frame = [0; DISPOSE_LEN_MAX];
        let last = application.announcement.as_ref().zip(application.prefix);
        let built = last.and_then(|(own, prefix)| Some((own, dispose_message(prefix, own.sn, &mut frame)?)));
        if let Some((own, len)) = built {
            let source = domain.source();
            let header = Inbound { source, local: source, is_multicast: false };
            distribute(&domain.applications, &mut self.applications, &header, &frame[..len], out);
            for to in &own.destinations {
                if domain.is_own(to) {
                    continue;
                }
                let target = Target { locator: *to, priority: 0, is_daemon: false };
                transmit(&mut domain.counters, out, application.domain, &target, &[&frame[..len]], 1);
            }
        }
        Some(application)
    }

    /// Counts a malformed frame of an application.
    pub(super) fn refuse(&mut self, at: &Locator) {
        match self.applications.get_mut(at) {
            Some(application) => application.counters.refused += 1,
            None => self.unknown_senders += 1,
        }
    }

    /// Routes a message of an application.
    pub(super) fn handle_message(
        &mut self,
        now: Duration,
        at: &Locator,
        priority: i32,
        destinations: &[Locator],
        message: &[u8],
        out: &mut (impl Deliver + Network),
    ) {
        let Some(Admitted { domain_id, summary, leaves }) = self.admit(now, at, destinations, message) else { return };
        let Some(domain) = self.domains.get_mut(&domain_id) else { return };
        let local = destinations.iter().find(|to| domain.is_own(to) || domain.has_member_of(to));
        if let Some(local) = local {
            let header = Inbound { source: domain.source(), local: *local, is_multicast: local.is_multicast() };
            domain.select_receivers(&summary, &mut self.receivers);
            distribute(&self.receivers, &mut self.applications, &header, message, out);
        }
        for to in destinations {
            let Some(domain) = self.domains.get_mut(&domain_id) else { return };
            let is_group = to.is_multicast();
            if is_group && !leaves {
                domain.counters.suppressed += 1;
            } else if !domain.is_own(to) {
                let is_daemon = !is_group && domain.is_daemon(now, to);
                let target = Target { locator: *to, priority, is_daemon };
                self.send(now, (at, domain_id), &target, (message, &summary), out);
            }
        }
    }

    /// Checks that a message is RTPS and from the participant of the application; counts it, and
    /// stores it if it is an announcement.
    fn admit(&mut self, now: Duration, at: &Locator, destinations: &[Locator], message: &[u8]) -> Option<Admitted> {
        let Some(sender) = self.applications.get_mut(at) else {
            self.unknown_senders += 1;
            return None;
        };
        let domain = self.domains.get_mut(&sender.domain)?;
        let view = MessageView::parse(message);
        let Ok((view, summary)) = view.and_then(|view| Ok((view, Summary::of(&view, message)?))) else {
            sender.counters.refused += 1;
            return None;
        };
        let prefix = view.header().prefix;
        if sender.prefix.is_none() && !domain.prefixes.contains_key(&prefix) {
            domain.prefixes.insert(prefix, *at);
            sender.prefix = Some(prefix);
        }
        if sender.prefix != Some(prefix) {
            sender.counters.refused += 1;
            return None;
        }
        sender.counters.messages_in += 1;
        let mut leaves = true;
        match summary.kind {
            Kind::Announcement(sn) if destinations.iter().any(Locator::is_multicast) && message.len() <= LEN_MAX => {
                match &mut sender.announcement {
                    Some(stored) if stored.message == *message => leaves = stored.repeat(now),
                    announcement => *announcement = Some(Own::new(now, message, sn, destinations)),
                }
            }
            Kind::Dispose => sender.announcement = None,
            _ => {}
        }
        Some(Admitted { domain_id: sender.domain, summary, leaves })
    }

    /// Sends a message of an application to the network, or bundles it until the end of the pass.
    fn send(
        &mut self,
        now: Duration,
        (at, domain_id): (&Locator, u32),
        target: &Target,
        (message, summary): (&[u8], &Summary),
        out: &mut impl Network,
    ) {
        let Some(domain) = self.domains.get_mut(&domain_id) else { return };
        let is_announcement = matches!(summary.kind, Kind::Announcement(_));
        let is_multicast_announcement = is_announcement && target.locator.is_multicast();
        let is_bundled = match self.bundling {
            Bundling::Off => false,
            Bundling::Daemons => target.is_daemon || is_multicast_announcement,
            Bundling::All => true,
        };
        let (mark, limit) = (domain.mark(), domain.bundle_len);
        let Domain { bundler, counters, .. } = domain;
        let mut send = |target: &Target, pieces: &[&[u8]], messages| {
            transmit(counters, out, domain_id, target, pieces, messages);
        };
        if !is_bundled && is_announcement {
            let (head, rest) = message.split_at(HEADER_LEN);
            return send(target, &[head, &mark.to_bytes(), rest], 1);
        }
        if !is_bundled {
            return send(target, &[message], 1);
        }
        bundler.add(*target, message, summary, (mark, limit), &mut send);
        if !is_multicast_announcement {
            return;
        }
        // The announcements of other applications are sent with it, and their next repetitions are
        // suppressed.
        let others = self.applications.iter_mut().filter(|(it, other)| other.domain == domain_id && *it != at);
        let announcements = others.filter_map(|(_, other)| other.announcement.as_mut());
        for own in announcements.filter(|own| own.destinations.contains(&target.locator)) {
            if own.joins(now)
                && let Ok(view) = MessageView::parse(&own.message)
                && let Ok(summary) = Summary::of(&view, &own.message)
            {
                bundler.add(*target, &own.message, &summary, (mark, limit), &mut send);
            }
        }
    }

    /// Routes a datagram from the network.
    pub(super) fn handle_datagram(
        &mut self,
        now: Duration,
        domain_id: u32,
        header: &Inbound,
        datagram: &[u8],
        out: &mut impl Deliver,
    ) {
        let Some(domain) = self.domains.get_mut(&domain_id) else { return };
        domain.counters.datagrams_in += 1;
        let Ok(view) = MessageView::parse(datagram) else {
            domain.counters.malformed += 1;
            return;
        };
        if header.is_multicast && domain.prefixes.contains_key(&view.header().prefix) {
            // A datagram that this daemon sent.
            return;
        }
        let Some(mark) = Mark::of(datagram, &view.header()) else {
            return self.route(now, domain_id, header, datagram, out);
        };
        domain.record_daemon(now, &header.source, &mark);
        if mark.is_bundle {
            domain.counters.bundles_in += 1;
        }
        let mut message = std::mem::take(&mut self.scratch);
        for part in Parts::of(datagram) {
            message.clear();
            match part {
                Ok((head, rest)) => {
                    message.extend_from_slice(&head);
                    message.extend_from_slice(rest);
                    self.route(now, domain_id, header, &message, out);
                }
                Err(_) => self.count_malformed(domain_id),
            }
        }
        self.scratch = message;
    }

    fn count_malformed(&mut self, domain_id: u32) {
        if let Some(domain) = self.domains.get_mut(&domain_id) {
            domain.counters.malformed += 1;
        }
    }

    /// Delivers one message from the network to its receivers.
    fn route(&mut self, now: Duration, domain_id: u32, header: &Inbound, message: &[u8], out: &mut impl Deliver) {
        let view = MessageView::parse(message);
        let Ok((view, summary)) = view.and_then(|view| Ok((view, Summary::of(&view, message)?))) else {
            return self.count_malformed(domain_id);
        };
        let Some(domain) = self.domains.get_mut(&domain_id) else { return };
        let prefix = view.header().prefix;
        match summary.kind {
            Kind::Announcement(_) if summary.destinations.is_undirected => {
                domain.remote_announcements.insert(now, prefix, *header, message);
            }
            Kind::Dispose => domain.remote_announcements.remove(&prefix),
            _ => {}
        }
        domain.select_receivers(&summary, &mut self.receivers);
        domain.counters.unrouted += u64::from(self.receivers.is_empty());
        distribute(&self.receivers, &mut self.applications, header, message, out);
    }

    /// Sends the open bundles.
    pub(super) fn flush(&mut self, out: &mut impl Network) {
        for (id, Domain { bundler, counters, .. }) in &mut self.domains {
            bundler.flush(&mut |target, pieces, messages| transmit(counters, out, *id, target, pieces, messages));
        }
    }
}

/// Maximum length of the message that a participant leaves, in octets.
const DISPOSE_LEN_MAX: usize = 128;

/// Writes the message that a participant leaves, whose last announcement has this number
/// (RTPS 2.5 §8.5.3).
fn dispose_message(prefix: GuidPrefix, sn: SequenceNumber, frame: &mut [u8]) -> Option<usize> {
    let mut builder = MessageBuilder::new(frame, &header_of(prefix)).ok()?;
    let mut inline = InlineQosBuilder::<32>::new();
    inline.status_info(STATUS_INFO_DISPOSED | STATUS_INFO_UNREGISTERED).ok()?;
    let key = ParticipantData::key_payload(Guid { prefix, entity_id: EntityId::PARTICIPANT });
    let data = DataEmit {
        reader: EntityId::SPDP_READER,
        writer: EntityId::SPDP_WRITER,
        sn: sn.next(),
        inline_qos: Some(inline.finish().ok()?),
        payload: Payload::Key(&key),
    };
    builder.data(&data).ok()?;
    Some(builder.len())
}

/// Delivers a message to applications.
fn distribute(
    receivers: &[Locator],
    applications: &mut BTreeMap<Locator, Application>,
    header: &Inbound,
    message: &[u8],
    out: &mut impl Deliver,
) {
    if receivers.is_empty() {
        return;
    }
    out.prepare(header, message);
    for to in receivers {
        let is_delivered = out.deliver(to);
        if let Some(application) = applications.get_mut(to) {
            application.counters.count(is_delivered);
        }
    }
}

/// Sends one datagram that carries this number of messages.
fn transmit(
    counters: &mut DomainCounters,
    out: &mut impl Network,
    domain: u32,
    target: &Target,
    pieces: &[&[u8]],
    messages: u32,
) {
    counters.datagrams_out += 1;
    counters.messages_out += u64::from(messages);
    counters.bundles_out += u64::from(messages > 1);
    out.send(domain, target.priority, &target.locator, pieces);
}

/// Reports whether two locators are the same group, regardless of the interfaces that they name.
fn is_same_group(one: &Locator, other: &Locator) -> bool {
    one.kind == other.kind && one.port == other.port && one.ip() == other.ip()
}
