//! Driver: connects the protocol engine of one participant to its transports. No other module calls
//! both.
//!
//! Received datagrams go from a transport into the core. The core builds outgoing datagrams in a
//! transport's frame. The driver has no thread, does not block, and does not allocate once flows
//! are open.

use std::os::fd::RawFd;
use std::time::Duration;

use takt_core::{
    Event, FlowTag, Instant, Interface, LocatorKinds, Participant, Priority, Received, Transmit, WriterFlows,
    WriterHandle,
};
use takt_schedule::PrioritySet;
use takt_transport::shm::Loan;
use takt_transport::{
    Commit, Control, FlowId, FlowSpec, Lost, Payload, Reach, Receive, Scan, Transport, TransportError, TransportEvent,
    TransportStats,
};
use takt_wire::{Locator, SharedPayload};

use super::clock;
use super::diagnosis::Diagnosis;
use super::poll::{ListGeneration, PollSet, Ready};
use super::roles::{Roles, TransportSet};
use crate::consistency::TypeChecks;
use crate::{Error, Result};

/// Period at which the core's wall clock is updated, so that timestamps follow adjustments of the
/// clock.
const WALL_CLOCK_PERIOD: Duration = Duration::from_secs(1);

/// Minimum time between two updates of the network interfaces, which bounds the load by interfaces
/// that change frequently.
const REFRESH_PERIOD_MIN: Duration = Duration::from_millis(50);

/// Initial capacity for destinations of datagrams that several transports carry. More destinations
/// make it grow once.
const DESTINATIONS_INITIAL: usize = 256;

/// Receive attempts while spinning, of which one polls all transports. They take some 10 us if the
/// other transports poll memory. Polling an idle socket costs a system call, during which no other
/// transport is polled.
const ATTEMPTS_PER_ROUND: u32 = 512;

/// Limits on the datagrams that one job sends while an urgent datagram may arrive.
const DATAGRAMS_PER_JOB: usize = 8;
const OCTETS_PER_JOB: usize = 65_536;

/// Maximum number of datagrams received between the announcement that a participant leaves and its
/// effect: the capacity of a receive buffer of 8 MiB.
const DATAGRAMS_BEFORE_DEPARTURE: u32 = 16_384;

/// Maximum sleep if a transport has no descriptor to sleep on.
const POLL_PERIOD: Duration = Duration::from_micros(100);

/// Counters of failures between core and transports, none of which stops the participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCounters {
    /// Datagrams that a transport failed to send.
    pub send_failures: u64,
    /// Calls in which a transport failed to receive.
    pub receive_failures: u64,
    /// Calls in which a transport failed to update its interfaces.
    pub refresh_failures: u64,
    /// Datagrams with a destination that no transport serves.
    pub unserved_destinations: u64,
    /// Participants on this host that announce shared memory but are not reachable by it: one side
    /// has no capacity for another ring, or the kernel refuses memory. They are reached by other
    /// transports.
    pub unreached_local_peers: u64,
    /// Payloads that could have been loaned to readers on this host, but were copied because no
    /// shared memory was free.
    pub payloads_copied_without_loan: u64,
}

/// Protocol engine of one participant with its transports.
pub(crate) struct Driver {
    pub(crate) core: Participant,
    type_checks: TypeChecks,
    pub(crate) diagnosis: Diagnosis,
    transports: Vec<Box<dyn Transport>>,
    /// Index of the transport in whose frame the next datagram is built. It carried the last
    /// datagram, so it probably carries the next one, which then needs no copy.
    frame_owner: usize,
    /// Index of the transport with the longest frames, if frame lengths differ.
    longest_frames: Option<usize>,
    /// Index of the transport that received the last datagram.
    last_receiver: usize,
    /// Priority of that datagram.
    last_priority: Priority,
    /// Priorities above normal of flows that have a receive port of their own.
    urgent: PrioritySet,
    /// Index of the transport that is polled first for a datagram of normal priority.
    next_not_urgent: usize,
    /// Number of datagrams built.
    built: u64,
    /// Receive attempts while spinning.
    attempts: u32,
    /// Receive attempts since a departure became pending.
    attempts_before_departure: u32,
    /// Generation of the transports' descriptor lists.
    generation: ListGeneration,
    /// Descriptors of all transports in order, and the number of each transport's.
    descriptors: Vec<RawFd>,
    descriptor_counts: Vec<usize>,
    /// The descriptors of a transport may have changed since they were last queried.
    has_new_descriptors: bool,
    /// Interfaces may have changed since they were last updated.
    has_interface_changes: bool,
    /// Whether each transport's hot scan polls memory rather than the kernel.
    scan_memory: Vec<bool>,
    roles: Roles,
    /// Flows by their tags.
    flows: Vec<Option<Flow>>,
    /// Time of the last input, output or timer. Accurate enough where it only restarts pending
    /// work.
    now: Instant,
    wall_clock_due: Instant,
    /// Earliest time of the next update of the interfaces.
    refresh_due: Instant,
    /// Scratch list of the destinations that one transport serves, used if there are several
    /// transports.
    served: Vec<Locator>,
    counters: DriverCounters,
}

/// Network flow of an endpoint's outgoing datagrams.
struct Flow {
    /// Flow id in each transport.
    ids: Vec<FlowId>,
    /// Transports that may carry the datagrams.
    transports: TransportSet,
    /// Priority of datagrams received at the flow's own port.
    arrivals: Priority,
}

impl Driver {
    /// Creates a driver. `transports` must not be empty.
    pub(crate) fn new(mut core: Participant, transports: Vec<Box<dyn Transport>>, roles: Roles) -> Self {
        core.defer_departures();
        let ids = vec![FlowId::DEFAULT; transports.len()];
        let default_flow = Flow { ids, transports: roles.discovery, arrivals: Priority::NORMAL };
        let mixed = if transports.len() > 1 { DESTINATIONS_INITIAL } else { 0 };
        let mut driver = Self {
            core,
            type_checks: TypeChecks::default(),
            diagnosis: Diagnosis::default(),
            scan_memory: transports.iter().map(|transport| transport.capabilities().scans_memory).collect(),
            has_interface_changes: false,
            descriptors: Vec::new(),
            descriptor_counts: Vec::new(),
            has_new_descriptors: true,
            longest_frames: longest_frames(&transports),
            transports,
            frame_owner: 0,
            last_receiver: 0,
            last_priority: Priority::NORMAL,
            urgent: PrioritySet::default(),
            next_not_urgent: 0,
            built: 0,
            attempts: 0,
            attempts_before_departure: 0,
            generation: ListGeneration::new(),
            roles,
            flows: vec![Some(default_flow)],
            now: Instant(0),
            wall_clock_due: Instant(0),
            refresh_due: Instant(0),
            served: Vec::with_capacity(mixed),
            counters: DriverCounters::default(),
        };
        driver.update_descriptors();
        driver
    }

    /// Returns the time of the last input without reading the clock.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Advances the time of the core, which never decreases even if threads read the clock in
    /// another order.
    pub(crate) fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Receives at most one datagram from each transport. Returns true if there was any.
    ///
    /// While spinning, the arrival time is the current time. Otherwise it is the time to which the
    /// caller [advanced](Self::advance): the end of the sleep. While datagrams arrive in memory,
    /// spinning polls the kernel only now and then. After a sleep, only transports with a
    /// descriptor in `ready` are polled, by the indexes from
    /// [`prepare_sleep`](Self::prepare_sleep); others return datagrams that they have already
    /// buffered.
    ///
    /// While a departure is pending, all transports are polled, so that datagrams that arrived
    /// before it are received first.
    pub(crate) fn receive(&mut self, scan: Scan, ready: Ready) -> bool {
        match self.core.has_departures() {
            true => self.receive_before_departure(scan, ready),
            false => self.receive_from_each(scan, ready),
        }
    }

    #[cold]
    fn receive_before_departure(&mut self, scan: Scan, ready: Ready) -> bool {
        let (scan, ready) = self.scan_before_departure(scan, ready);
        let received = self.receive_from_each(scan, ready);
        self.conclude_departure(received)
    }

    /// Returns how to receive: from all transports while a departure is pending.
    fn scan_before_departure(&mut self, scan: Scan, ready: Ready) -> (Scan, Ready) {
        if !self.core.has_departures() {
            return (scan, ready);
        }
        if scan == Scan::Hot {
            self.now = clock::now();
        }
        (Scan::All, Ready::ALL)
    }

    /// Applies a pending departure if polling all transports has received nothing, or after
    /// [`DATAGRAMS_BEFORE_DEPARTURE`] attempts. Returns true if anything was done.
    fn conclude_departure(&mut self, received: bool) -> bool {
        if !self.core.has_departures() {
            return received;
        }
        self.attempts_before_departure += 1;
        if !received || self.attempts_before_departure > DATAGRAMS_BEFORE_DEPARTURE {
            self.attempts_before_departure = 0;
            self.core.conclude_departure(self.now);
        }
        true
    }

    fn receive_from_each(&mut self, scan: Scan, mut ready: Ready) -> bool {
        let mut received = false;
        self.attempts = self.attempts.wrapping_add(1);
        let polls_all = scan != Scan::Hot || self.attempts.is_multiple_of(ATTEMPTS_PER_ROUND);
        for index in 0..self.transports.len() {
            if !polls_all && index != self.last_receiver && !self.scan_memory[index] {
                continue;
            }
            let scan = if ready == Ready::ALL {
                scan
            } else {
                scan_after_sleep(scan, self.descriptor_counts[index], &mut ready)
            };
            if self.receive_from(index, Receive::Any(scan)) {
                received = true;
                self.last_receiver = index;
            }
        }
        received
    }

    /// Receives at most one datagram from a transport, and passes it to the core. Returns true if
    /// there was one. Reads the clock unless the caller has slept.
    #[inline(always)]
    fn receive_from(&mut self, index: usize, request: Receive) -> bool {
        let frame = match self.transports[index].recv(request) {
            Ok(Some(frame)) => frame,
            Ok(None) => return false,
            Err(_) => {
                self.counters.receive_failures += 1;
                return false;
            }
        };
        if let Receive::Any(Scan::Hot) | Receive::NotUrgent(Scan::Hot) | Receive::Urgent { .. } = request {
            self.now = clock::now();
        }
        let from = Received { source: frame.meta.source, multicast: frame.meta.multicast };
        self.last_priority = priority_of(&self.flows, index, frame.meta.flow);
        self.core.handle_with_buffer(self.now, from, frame.bytes(), frame.shared());
        true
    }

    /// Receives the most urgent datagram with a priority above `than`, from any transport. Returns
    /// true if there was one.
    pub(crate) fn receive_above(&mut self, than: Option<Priority>) -> bool {
        for level in self.urgent.above(than.max(Some(Priority::NORMAL))) {
            for index in 0..self.transports.len() {
                if self.receive_from(index, Receive::Urgent { above: level.get() - 1 }) {
                    return true;
                }
            }
        }
        false
    }

    /// Receives one datagram of normal priority, polling the transports round-robin. Returns true
    /// if there was one. `ready` is as in [`receive`](Self::receive).
    pub(crate) fn receive_not_urgent(&mut self, scan: Scan, ready: Ready) -> bool {
        let waits = self.core.has_departures();
        let (scan, ready) = self.scan_before_departure(scan, ready);
        let received = self.receive_not_urgent_once(scan, ready) || (waits && self.receive_above(None));
        self.conclude_departure(received)
    }

    fn receive_not_urgent_once(&mut self, scan: Scan, ready: Ready) -> bool {
        let (count, first) = (self.transports.len(), self.next_not_urgent);
        self.attempts = self.attempts.wrapping_add(1);
        let polls_all = scan != Scan::Hot || self.attempts.is_multiple_of(ATTEMPTS_PER_ROUND);
        for is_before_first in [false, true] {
            let mut ready = ready;
            for index in 0..count {
                let scan = if ready == Ready::ALL {
                    scan
                } else {
                    scan_after_sleep(scan, self.descriptor_counts[index], &mut ready)
                };
                let is_polled = polls_all || index == self.last_receiver || self.scan_memory[index];
                if (index < first) != is_before_first || !is_polled {
                    continue;
                }
                if self.receive_from(index, Receive::NotUrgent(scan)) {
                    (self.last_receiver, self.next_not_urgent) = (index, (index + 1) % count);
                    return true;
                }
            }
        }
        false
    }

    /// Returns the priority of the last received datagram.
    pub(crate) fn last_priority(&self) -> Priority {
        self.last_priority
    }

    /// Returns the priorities above normal of flows that have a receive port of their own.
    #[inline]
    pub(crate) fn urgent(&self) -> PrioritySet {
        self.urgent
    }

    /// Reports whether datagrams with a priority above `than` may arrive at a port of their own.
    #[inline]
    pub(crate) fn receives_above(&self, than: Option<Priority>) -> bool {
        self.urgent.highest() > than.max(Some(Priority::NORMAL))
    }

    /// Returns the number of datagrams built.
    pub(crate) fn built(&self) -> u64 {
        self.built
    }

    /// Runs at most one batch of due timers. Returns true if more are due.
    pub(crate) fn run_timers(&mut self, now: Instant) -> bool {
        let now = self.advance(now);
        self.refresh_wall_clock(now);
        self.handle_transport_events(now);
        if self.has_interface_changes && now >= self.refresh_due {
            self.follow_interfaces(now);
        }
        if !self.is_due(now) {
            return false;
        }
        self.core.handle_timeout(now);
        if self.type_checks.poll_timeout().is_some_and(|due| due <= now) {
            self.type_checks.handle_timeout(&mut self.core, now);
        }
        if self.diagnosis.poll_timeout().is_some_and(|due| due <= now) {
            self.diagnosis.handle_timeout(&self.core);
        }
        self.is_due(now)
    }

    /// Handles the events of the transports. Returns true if a local peer was lost.
    fn handle_transport_events(&mut self, now: Instant) -> bool {
        let mut has_lost = false;
        for transport in &mut self.transports {
            while let Some(event) = transport.poll_event() {
                match event {
                    TransportEvent::InterfacesChanged => self.has_interface_changes = true,
                    TransportEvent::Lost(Lost { locator, has_ended: true }) => {
                        self.core.handle_local_peer_end(now, &locator);
                        has_lost = true;
                    }
                    TransportEvent::Lost(Lost { locator, has_ended: false }) => {
                        self.core.handle_local_peer(now, &locator, false);
                        has_lost = true;
                    }
                }
            }
        }
        has_lost
    }

    /// Updates the interfaces after some have appeared, disappeared or changed.
    #[cold]
    fn follow_interfaces(&mut self, now: Instant) {
        self.refresh_due = now.after(REFRESH_PERIOD_MIN);
        self.has_interface_changes = false;
        for transport in &mut self.transports {
            if transport.control(Control::Refresh).is_err() {
                self.counters.refresh_failures += 1;
            }
        }
        self.has_new_descriptors = true;
        self.core.handle_interfaces(now, interfaces(&self.transports), self.roles.locators(&self.transports));
    }

    /// Reports whether [`run_timers`](Self::run_timers) has a timer to run.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.poll_timeout().is_some_and(|due| due <= now)
    }

    /// Returns the time at which [`run_timers`](Self::run_timers) must be called next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match (self.type_checks.poll_timeout(), self.diagnosis.poll_timeout()) {
            (None, None) => self.core.poll_timeout(),
            (checks, named) => self.core.poll_timeout().into_iter().chain(checks).chain(named).min(),
        }
    }

    pub(crate) fn refresh_wall_clock(&mut self, now: Instant) {
        if now >= self.wall_clock_due {
            let (moment, wall) = clock::both();
            self.core.set_wall_clock(moment, wall);
            self.wall_clock_due = now.after(WALL_CLOCK_PERIOD);
        }
    }

    /// Sends all datagrams that are due.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Instant) {
        let now = self.advance(now);
        if self.core.has_transmit() {
            self.transmit_all(now);
        }
    }

    /// Sends for a call of the application: all datagrams, or at most those of one job if urgent
    /// datagrams may arrive.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant) {
        if self.receives_above(None) {
            self.transmit_some(now);
        } else {
            self.transmit(now);
        }
    }

    fn transmit_all(&mut self, now: Instant) {
        let mut to_flush = FlushSet::default();
        while self.core.has_transmit() && self.transmit_one(now, &mut to_flush).is_some() {}
        self.flush(to_flush);
    }

    /// Sends the most urgent datagrams, all of one priority and at most as many as one job may
    /// send.
    pub(crate) fn transmit_some(&mut self, now: Instant) {
        let now = self.advance(now);
        let (mut to_flush, mut octets) = (FlushSet::default(), 0);
        let priority = self.core.transmit_priority();
        for _ in 0..DATAGRAMS_PER_JOB {
            if self.core.transmit_priority() != priority || octets >= OCTETS_PER_JOB {
                break;
            }
            match self.transmit_one(now, &mut to_flush) {
                Some(len) => octets += len,
                None => break,
            }
        }
        self.flush(to_flush);
    }

    fn flush(&mut self, to_flush: FlushSet) {
        for (index, transport) in self.transports.iter_mut().enumerate() {
            if to_flush.has(index) && transport.flush().is_err() {
                self.counters.send_failures += 1;
            }
        }
    }

    /// Builds one datagram in a transport's frame and commits it. Returns its length; `None` if no
    /// datagram is due.
    fn transmit_one(&mut self, now: Instant, to_flush: &mut FlushSet) -> Option<usize> {
        if let Some(longest) = self.longest_frames
            && self.transports[self.frame_owner].capabilities().max_message_len < self.core.next_transmit_len_max()
        {
            self.frame_owner = longest;
        }
        let Ok(frame) = self.transports[self.frame_owner].loan() else {
            self.counters.send_failures += 1;
            return None;
        };
        let transmit = self.core.poll_transmit_gathering(now, frame)?;
        self.built += 1;
        let whole = transmit.len + transmit.payload.len();
        let Some(Some(Flow { ids: flows, transports: set, .. })) = self.flows.get(usize::from(transmit.flow.0)) else {
            self.counters.send_failures += 1;
            return Some(whole);
        };
        let Transmit { len, destinations, loan, payload, .. } = transmit;
        let outgoing = Outgoing { len, payload, flows, transports: *set, destinations, loan: loan.as_ref() };
        if let [only] = &mut self.transports[..] {
            to_flush.add(0);
            if outgoing.commit(only, flows[0], destinations).is_err() {
                self.counters.send_failures += 1;
            }
            return Some(whole);
        }
        let Self { transports, served, counters, frame_owner, .. } = self;
        *frame_owner = outgoing.route(transports, *frame_owner, served, to_flush, counters);
        Some(whole)
    }

    /// Returns loanable shared memory for a payload of `len` bytes. If there is none, counts that
    /// and returns `None`.
    pub(crate) fn loan(&mut self, len: usize) -> Option<Loan> {
        let loan = self.transports.iter_mut().find_map(|transport| transport.loan_payload(len));
        self.counters.payloads_copied_without_loan += u64::from(loan.is_none());
        loan
    }

    /// Reports whether new samples of a writer go to readers in this process only.
    pub(crate) fn stays_in_process(&mut self, writer: WriterHandle) -> Result<bool> {
        let destinations = self.core.destinations(writer)?;
        let stays = |locator| self.transports.iter().any(|transport| transport.reach(locator) == Reach::InProcess);
        Ok(!destinations.is_empty() && destinations.iter().all(stays))
    }

    /// Records an event in the diagnostic log.
    pub(crate) fn diagnose(&mut self, event: Event, topic: Option<&str>) {
        self.diagnosis.handle_event(&mut self.core, self.now, event, topic);
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        loop {
            let event = self.core.poll_event()?;
            if let Event::LocalPeerAnnounced(locator) = event {
                let is_reached =
                    self.transports.iter_mut().any(|transport| transport.control(Control::Connect(&locator)).is_ok());
                self.core.handle_local_peer(self.now, &locator, is_reached);
                self.counters.unreached_local_peers += u64::from(!is_reached);
                continue;
            }
            let is_type_event = matches!(event, Event::TypeChecks | Event::TypeAnswer(_));
            if !is_type_event || !self.type_checks.handle_event(&mut self.core, self.now, event) {
                return Some(event);
            }
        }
    }

    /// Adds the descriptors to sleep on, and returns the latest time at which to wake up.
    pub(crate) fn prepare_sleep(&mut self, set: &mut PollSet, now: Instant) -> Option<Instant> {
        let has_lost = self.handle_transport_events(now);
        let mut until = if has_lost { Some(now) } else { self.poll_timeout() };
        if self.has_interface_changes {
            until = Some(until.map_or(self.refresh_due, |until| until.min(self.refresh_due)));
        }
        self.update_descriptors();
        if self.descriptor_counts.contains(&0) {
            let soon = now.after(POLL_PERIOD);
            until = Some(until.map_or(soon, |until| until.min(soon)));
        }
        self.add_descriptors(set);
        until
    }

    /// Adds the descriptors of the transports.
    pub(crate) fn add_descriptors(&mut self, set: &mut PollSet) {
        self.update_descriptors();
        set.add_generation(self.generation);
        self.descriptors.iter().for_each(|descriptor| set.add(*descriptor));
    }

    /// Queries the descriptors of the transports if their lists may have changed.
    fn update_descriptors(&mut self) {
        if !std::mem::take(&mut self.has_new_descriptors) {
            return;
        }
        self.generation = ListGeneration::new();
        self.descriptors.clear();
        self.descriptor_counts.clear();
        for transport in &self.transports {
            let descriptors = transport.status().descriptors;
            self.descriptors.extend_from_slice(descriptors);
            self.descriptor_counts.push(descriptors.len());
        }
    }

    /// Returns the locator kinds that these transports serve.
    pub(crate) fn kinds_of(&self, transports: TransportSet) -> LocatorKinds {
        Roles::kinds(&self.transports, transports)
    }

    /// Returns the transports that carry the data of an endpoint, from its topic and its property
    /// `takt.transport`, if any.
    pub(crate) fn transports_of(&self, topic_name: &str, property: Option<&str>) -> Result<TransportSet> {
        self.roles.of_endpoint(topic_name, property)
    }

    /// Opens a flow on these transports. Also returns the locators that reach the flow if they
    /// differ from those of the participant.
    pub(crate) fn open_flow(&mut self, spec: &FlowSpec, transports: TransportSet) -> Result<(FlowTag, Vec<Locator>)> {
        let is_default = *spec == FlowSpec::default();
        let mut locators = Vec::new();
        if !spec.own_port && transports != self.roles.user_data {
            let chosen = self.transports.iter().enumerate().filter(|(position, _)| transports.has(*position));
            locators.extend(chosen.flat_map(|(_, transport)| &transport.status().locators.default_unicast));
        }
        if is_default && transports == self.roles.discovery {
            return Ok((FlowTag::default(), locators));
        }
        let index = self.flows.iter().position(Option::is_none).unwrap_or(self.flows.len());
        let tag =
            u16::try_from(index).map_err(|_| Error::OutOfResources { limit: "flows", value: u64::from(u16::MAX) })?;
        let mut ids = Vec::new();
        for (position, transport) in self.transports.iter_mut().enumerate() {
            if is_default || !transports.has(position) {
                ids.push(FlowId::DEFAULT);
                continue;
            }
            match transport.open_flow(spec) {
                Ok((flow, reached_at)) => {
                    ids.push(flow);
                    locators.extend(reached_at);
                }
                Err(error) => {
                    self.close_flows(&ids);
                    return Err(error.into());
                }
            }
        }
        self.has_new_descriptors = true;
        if index == self.flows.len() {
            self.flows.push(None);
        }
        let arrivals = if spec.own_port { Priority::new(spec.transport_priority) } else { Priority::NORMAL };
        self.flows[index] = Some(Flow { ids, transports, arrivals });
        self.find_urgent();
        Ok((FlowTag(tag), locators))
    }

    /// Opens the flows of a writer on these transports. A writer with a priority sends historical
    /// data to late joiners on a second flow of priority 0. Also returns the locators that reach
    /// the writer if they differ from those of the participant.
    pub(crate) fn open_writer_flows(
        &mut self,
        spec: &FlowSpec,
        transports: TransportSet,
    ) -> Result<(WriterFlows, Vec<Locator>)> {
        let (live, locators) = self.open_flow(spec, transports)?;
        if spec.transport_priority <= 0 {
            return Ok((live.into(), locators));
        }
        let (history, _) = self.open_flow(&FlowSpec::default(), transports).inspect_err(|_| self.close_flow(live))?;
        Ok((WriterFlows { live, history }, locators))
    }

    /// Closes the flows opened by [`Self::open_writer_flows`].
    pub(crate) fn close_writer_flows(&mut self, flows: WriterFlows) {
        self.close_flow(flows.live);
        if flows.history != flows.live {
            self.close_flow(flows.history);
        }
    }

    /// Closes a flow, except the default flow.
    pub(crate) fn close_flow(&mut self, tag: FlowTag) {
        if tag == FlowTag::default() {
            return;
        }
        if let Some(flow) = self.flows.get_mut(usize::from(tag.0)).and_then(Option::take) {
            self.close_flows(&flow.ids);
            self.find_urgent();
        }
    }

    fn find_urgent(&mut self) {
        let arrivals = self.flows.iter().flatten().map(|flow| flow.arrivals);
        self.urgent = PrioritySet::default();
        arrivals.filter(|priority| *priority > Priority::NORMAL).for_each(|priority| self.urgent.insert(priority));
    }

    fn close_flows(&mut self, flows: &[FlowId]) {
        for (transport, flow) in self.transports.iter_mut().zip(flows) {
            if transport.close_flow(*flow).is_err() {
                self.counters.send_failures += 1;
            }
        }
        self.has_new_descriptors = true;
    }

    /// Announces that the participant leaves, and sends the announcement.
    pub(crate) fn shutdown(&mut self, now: Instant) {
        self.core.shutdown();
        self.transmit(now);
    }

    pub(crate) fn counters(&self) -> DriverCounters {
        self.counters
    }

    pub(crate) fn transport_stats(&self) -> impl Iterator<Item = (&'static str, TransportStats)> {
        self.transports.iter().map(|transport| (transport.capabilities().name, transport.status().stats))
    }
}

/// Returns the priority of datagrams received for a flow of a transport.
#[inline]
fn priority_of(flows: &[Option<Flow>], transport: usize, id: FlowId) -> Priority {
    if id == FlowId::DEFAULT {
        return Priority::NORMAL;
    }
    let its = flows.iter().flatten().find(|flow| flow.ids.get(transport) == Some(&id));
    its.map_or(Priority::NORMAL, |flow| flow.arrivals)
}

/// Returns the index of the transport with the longest frames, if others are shorter.
fn longest_frames(transports: &[Box<dyn Transport>]) -> Option<usize> {
    let len_max = |index: &usize| transports[*index].capabilities().max_message_len;
    let (shortest, longest) = ((0..transports.len()).min_by_key(len_max)?, (0..transports.len()).max_by_key(len_max)?);
    (len_max(&shortest) < len_max(&longest)).then_some(longest)
}

/// Returns how to poll a transport with `count` descriptors after a sleep: without the kernel if
/// none of them is readable. Removes its descriptors from `ready`.
fn scan_after_sleep(scan: Scan, count: usize, ready: &mut Ready) -> Scan {
    let is_quiet = count > 0 && !ready.is_any_of(count);
    *ready = ready.without_first(count);
    if is_quiet { Scan::Taken } else { scan }
}

/// Returns the interfaces of all transports in the form that the core expects.
pub(crate) fn interfaces(transports: &[Box<dyn Transport>]) -> Vec<Interface> {
    let mut all = Vec::new();
    for interface in transports.iter().flat_map(|transport| transport.status().interfaces) {
        let interface = Interface {
            name: interface.name.clone(),
            addresses: interface.addresses.clone(),
            mtu: interface.mtu,
            loopback: interface.loopback,
        };
        if !all.contains(&interface) {
            all.push(interface);
        }
    }
    all
}

/// Set of transports that have data to flush. All transports from index 63 on share one bit.
#[derive(Clone, Copy, Default)]
struct FlushSet(u64);

impl FlushSet {
    fn add(&mut self, index: usize) {
        self.0 |= 1 << index.min(63);
    }

    fn has(self, index: usize) -> bool {
        self.0 >> index.min(63) & 1 != 0
    }
}

/// Outgoing datagram that several transports may carry.
struct Outgoing<'a> {
    len: usize,
    /// Data that follow the frame's first `len` octets.
    payload: &'a [u8],
    flows: &'a [FlowId],
    /// Transports that may carry the datagram.
    transports: TransportSet,
    destinations: &'a [Locator],
    /// Loan of the payload.
    loan: Option<&'a SharedPayload>,
}

impl Outgoing<'_> {
    /// Sends the datagram to each destination by the first transport that serves it. The frame of
    /// transport `frame_owner` contains the datagram; other transports receive a copy. Returns the
    /// index of the next frame owner: the transport that carried this datagram, if it was the only
    /// one.
    fn route(
        &self,
        transports: &mut [Box<dyn Transport>],
        frame_owner: usize,
        served: &mut Vec<Locator>,
        to_flush: &mut FlushSet,
        counters: &mut DriverCounters,
    ) -> usize {
        let transport_of = |transports: &[Box<dyn Transport>], destination: &Locator| {
            let mut candidates = transports.iter().enumerate();
            candidates
                .position(|(index, transport)| self.transports.has(index) && transport.reach(destination).is_served())
        };
        let first = self.destinations.first().and_then(|destination| transport_of(transports, destination));
        if let Some(only) = first
            && self.destinations[1..].iter().all(|destination| transport_of(transports, destination) == first)
        {
            to_flush.add(only);
            let copied = only == frame_owner || self.copy(transports, frame_owner, only);
            if !copied || self.commit(&mut transports[only], self.flows[only], self.destinations).is_err() {
                counters.send_failures += 1;
            }
            return only;
        }
        let unserved = self.destinations.iter().filter(|destination| transport_of(transports, destination).is_none());
        counters.unserved_destinations += unserved.count() as u64;
        let (mut count, mut last) = (0, frame_owner);
        // The frame owner commits last, since its commit ends the loan of the frame.
        for index in (0..transports.len()).filter(|index| *index != frame_owner).chain([frame_owner]) {
            served.clear();
            let of_this = |destination: &&Locator| transport_of(transports, destination) == Some(index);
            served.extend(self.destinations.iter().filter(of_this));
            if served.is_empty() {
                continue;
            }
            (count, last) = (count + 1, index);
            to_flush.add(index);
            let copied = index == frame_owner || self.copy(transports, frame_owner, index);
            if !copied || self.commit(&mut transports[index], self.flows[index], served).is_err() {
                counters.send_failures += 1;
            }
        }
        // Destinations that no transport serves are not considered.
        if count == 1 { last } else { frame_owner }
    }

    /// Commits the frame of a transport.
    fn commit(
        &self,
        transport: &mut Box<dyn Transport>,
        flow: FlowId,
        destinations: &[Locator],
    ) -> std::result::Result<(), TransportError> {
        let payload = match self.loan {
            None if self.payload.is_empty() => Payload::InFrame,
            None => Payload::Gathered(self.payload),
            Some(loan) => Payload::Loaned(loan),
        };
        transport.commit(Commit { len: self.len, flow, destinations, payload })
    }

    /// Copies the datagram between the frames of two transports. Returns false if that is not
    /// possible.
    fn copy(&self, transports: &mut [Box<dyn Transport>], from: usize, to: usize) -> bool {
        let Ok([from, to]) = transports.get_disjoint_mut([from, to]) else { return false };
        match (from.loan(), to.loan()) {
            (Ok(from), Ok(to)) if to.len() >= self.len => {
                to[..self.len].copy_from_slice(&from[..self.len]);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
