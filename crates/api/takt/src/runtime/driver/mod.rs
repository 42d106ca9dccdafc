//! Driver: connects the protocol engine of one participant to its transports. No other module calls
//! both.
//!
//! Received datagrams go from a transport into the core. The core builds outgoing datagrams in a
//! transport's frame. The driver has no thread, does not block, and does not allocate once flows
//! are open.
//!
//! This module has the timers, the events and the descriptors to sleep on. Its submodules have the
//! [receive path](receive), the [transmit path](transmit) and the [flows].

mod flows;
mod receive;
mod transmit;

use std::os::fd::RawFd;
use std::time::Duration;

use takt_core::{Event, Instant, Interface, LocatorKinds, Participant, Priority, WriterHandle};
use takt_schedule::PrioritySet;
use takt_transport::shm::Loan;
use takt_transport::{Control, FlowId, Lost, Reach, Transport, TransportEvent, TransportStats};
use takt_wire::Locator;

use self::flows::Flow;
use self::transmit::longest_frames;
use super::clock;
use super::diagnosis::Diagnosis;
use super::poll::{ListGeneration, PollSet};
use super::roles::{Roles, TransportSet};
use crate::Result;
use crate::consistency::TypeChecks;

/// Period at which the core's wall clock is updated, so that timestamps follow adjustments of the
/// clock.
const WALL_CLOCK_PERIOD: Duration = Duration::from_secs(1);

/// Minimum time between two updates of the network interfaces, which bounds the load by interfaces
/// that change frequently.
const REFRESH_PERIOD_MIN: Duration = Duration::from_millis(50);

/// Initial capacity for destinations of datagrams that several transports carry. More destinations
/// make it grow once.
const DESTINATIONS_INITIAL: usize = 256;

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
    /// Octets of fragments of large samples that were committed since the last flush.
    unflushed_fragment_octets: usize,
    /// Locator kinds that each transport serves.
    kinds: Vec<LocatorKinds>,
    counters: DriverCounters,
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
            kinds: kinds_of_each(&transports),
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
            unflushed_fragment_octets: 0,
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
    pub(crate) fn handle_transport_events(&mut self, now: Instant) -> bool {
        let mut has_lost = false;
        for index in 0..self.transports.len() {
            while let Some(event) = self.transports[index].poll_event() {
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
                    TransportEvent::Blocked(flow) => self.set_blocked(index, flow, true),
                    TransportEvent::Unblocked(flow) => self.set_blocked(index, flow, false),
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

/// Returns the locator kinds that each transport serves.
fn kinds_of_each(transports: &[Box<dyn Transport>]) -> Vec<LocatorKinds> {
    (0..transports.len()).map(|index| Roles::kinds(transports, TransportSet::default().with(index))).collect()
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

#[cfg(test)]
mod tests;
