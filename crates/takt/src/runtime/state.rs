//! What a participant's lock protects: the driver, and who is to be told about which endpoint.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use takt_core::{Event, Instant, ReaderHandle, WriterHandle};
use takt_transport::Scan;
use takt_wire::Guid;

use super::clock;
use super::driver::Driver;
use super::event_count::EventCount;
use super::listeners::{Call, EndpointRef, Level, Listener, ParentId, Parents, Place, Slot, audience};
use super::poll::{PollSet, Ready};
use super::tasks::{TaskKey, Tasks};
use crate::status::{Signal, StatusMask};
use crate::{Error, Result, Runtime};

/// Futile attempts to receive between two looks at the timers while spinning. One is a system call of some 300 ns, so
/// timers are some 5 us late at most.
const ATTEMPTS_PER_TIMER_CHECK: u32 = 16;

/// Futile attempts of one turn while spinning under [`Runtime::Shared`], which keeps others waiting for the lock.
const SHARED_ATTEMPTS_PER_TURN: u32 = 2;

/// Datagrams that one turn takes at most, which bounds how long it keeps the lock.
const DATAGRAMS_PER_TURN: usize = 32;

/// Another participant came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParticipantEvent {
    Discovered(Guid),
    Lost(Guid),
}

/// Whose listener is to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Writer(WriterHandle),
    Reader(ReaderHandle),
}

/// The runtime's side of a writer or reader.
pub(crate) struct Endpoint {
    target: Target,
    signal: Arc<Signal>,
    /// Notified when a writer may go on.
    progress: Arc<EventCount>,
    /// Tasks that wait for samples, or for room to write.
    tasks: Tasks,
    place: Place,
    /// The entity, once it is complete.
    endpoint: Option<EndpointRef>,
    slot: Slot,
    /// What each level is to be told.
    pending: [StatusMask; Level::ALL.len()],
    queued: bool,
}

impl Endpoint {
    /// Has whom it concerns told of a status.
    fn tell(&mut self, status: StatusMask, parents: &Parents, participant: &Slot, ready: &mut VecDeque<Target>) {
        if let Some((level, status)) = audience(&self.slot, self.place, parents, participant, status) {
            self.pending[level as usize] |= status;
            if !std::mem::replace(&mut self.queued, true) {
                ready.push_back(self.target);
            }
        }
    }
}

/// Endpoints by their handle's index.
#[derive(Default)]
struct Endpoints(Vec<Option<Endpoint>>);

impl Endpoints {
    fn insert(&mut self, index: usize, endpoint: Endpoint) {
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(endpoint);
    }

    fn get_mut(&mut self, index: usize, target: Target) -> Option<&mut Endpoint> {
        self.0.get_mut(index)?.as_mut().filter(|endpoint| endpoint.target == target)
    }
}

/// Everything behind the lock.
pub(crate) struct State {
    /// `None` once the participant is closed.
    driver: Option<Driver>,
    writers: Endpoints,
    readers: Endpoints,
    /// Endpoints whose listener is to be called.
    ready: VecDeque<Target>,
    /// Tasks to be woken as soon as the lock is released.
    pub(crate) woken: Vec<Waker>,
    /// Notified when a request for types is answered.
    pub(crate) type_answers: Arc<EventCount>,
    /// Publishers, subscribers and topics.
    pub(crate) parents: Parents,
    /// The participant's listener.
    pub(crate) participant: Slot,
    pub(crate) participant_events: VecDeque<ParticipantEvent>,
    /// A listener is being called, so that a nested turn leaves the others for later.
    pub(crate) dispatching: bool,
    /// What the receiving thread sleeps for at most; zero while it is awake.
    sleeps_until: Instant,
    /// Something was received or called since the last sleep.
    active: bool,
    /// Attempts to receive since the last look at the timers.
    attempts: u32,
    attempts_per_turn: u32,
    /// Where the transports' descriptors begin among those that were last slept on.
    first_descriptor: usize,
    pub(crate) poll_set: PollSet,
}

impl State {
    pub(crate) fn new(runtime: Runtime, driver: Driver) -> Self {
        Self {
            driver: Some(driver),
            writers: Endpoints::default(),
            readers: Endpoints::default(),
            ready: VecDeque::new(),
            woken: Vec::new(),
            type_answers: Arc::new(EventCount::new()),
            parents: Parents::default(),
            participant: Slot::default(),
            participant_events: VecDeque::new(),
            dispatching: false,
            sleeps_until: Instant(0),
            active: true,
            attempts: 0,
            attempts_per_turn: match runtime {
                Runtime::Inline => ATTEMPTS_PER_TIMER_CHECK,
                Runtime::Shared => SHARED_ATTEMPTS_PER_TURN,
            },
            first_descriptor: 0,
            poll_set: PollSet::default(),
        }
    }

    pub(crate) fn driver(&mut self) -> Result<&mut Driver> {
        // Not `ok_or`: that would make and drop an error on each call.
        match &mut self.driver {
            Some(driver) => Ok(driver),
            None => Err(Error::AlreadyDeleted),
        }
    }

    /// One pass: sends what is due, takes datagrams until one means something to the application (or there are none, or
    /// it was [`DATAGRAMS_PER_TURN`]), runs one batch of timers. Says whether there may be more to do at once.
    ///
    /// What the datagrams made the core want to send leaves with the next pass, so that the application sees the data
    /// first, and its answer and our acknowledgement can share a system call.
    ///
    /// `now` is a moment ago; while spinning nobody looks at it, but at the clock where the time matters. `ready` says which of
    /// the descriptors that were slept on are readable; only those are asked.
    pub(crate) fn turn(&mut self, scan: Scan, ready: Ready, now: Instant) -> Result<bool> {
        self.sleeps_until = Instant(0);
        let driver = self.driver()?;
        if scan != Scan::Hot {
            driver.advance(now);
        }
        if driver.core.has_transmit() {
            driver.transmit(if scan == Scan::Hot { clock::now() } else { now });
        }
        let received = self.receive(scan, ready.behind(self.first_descriptor))?;
        self.active |= received;
        let mut more = received;
        // What has arrived comes first, but not for ever.
        let patience = if received { 4 * ATTEMPTS_PER_TIMER_CHECK } else { ATTEMPTS_PER_TIMER_CHECK };
        if scan != Scan::Hot || self.attempts >= patience {
            self.attempts = 0;
            let now = if scan == Scan::Hot { clock::now() } else { now };
            let driver = self.driver()?;
            more |= driver.run_timers(now);
            if !received {
                driver.transmit(now);
            }
            self.route_events();
        }
        Ok(more)
    }

    /// Takes datagrams until one is news to the application. Says whether there was any datagram.
    fn receive(&mut self, scan: Scan, ready: Ready) -> Result<bool> {
        if !self.receive_first(scan, ready)? {
            return Ok(false);
        }
        for _ in 1..DATAGRAMS_PER_TURN {
            if self.route_events() || !self.driver()?.receive(scan, ready) {
                return Ok(true);
            }
        }
        self.route_events();
        Ok(true)
    }

    /// Tries to receive; while spinning, as often as may be done in one turn.
    fn receive_first(&mut self, scan: Scan, ready: Ready) -> Result<bool> {
        let Some(driver) = &mut self.driver else { return Err(Error::AlreadyDeleted) };
        let attempts = if scan == Scan::Hot { self.attempts_per_turn } else { 1 };
        for _ in 0..attempts {
            self.attempts += 1;
            if driver.receive(scan, ready) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends a call of the application: sends what it caused. Says whether the receiving thread must wake.
    pub(crate) fn settle(&mut self, now: Instant) -> bool {
        let Some(driver) = self.driver.as_mut() else { return true };
        driver.transmit(now);
        self.active = true;
        self.route_events();
        let Some(driver) = self.driver.as_mut() else { return true };
        // What events caused: requests for types.
        driver.transmit(now);
        let due = driver.poll_timeout();
        let earlier = due.is_some_and(|due| due < self.sleeps_until);
        earlier || (self.has_calls() && self.sleeps_until != Instant(0))
    }

    /// Ends a call that read samples: what made room may have let others in. Says whether the receiving thread must wake.
    pub(crate) fn settle_read(&mut self) -> bool {
        let Some(driver) = &self.driver else { return false };
        if !driver.core.has_events() {
            return false;
        }
        self.active = true;
        self.route_events();
        self.has_calls() && self.sleeps_until != Instant(0)
    }

    /// Adds what to sleep on and decides until when. `linger` bounds the sleep after activity, so that calls
    /// which follow each other do not each have to wake the thread for an earlier timer.
    pub(crate) fn prepare_sleep(
        &mut self,
        set: &mut PollSet,
        now: Instant,
        linger: Option<Instant>,
    ) -> Result<Option<Instant>> {
        let has_calls = self.has_calls();
        let Some(driver) = &mut self.driver else { return Err(Error::AlreadyDeleted) };
        self.first_descriptor = set.len();
        let mut until = driver.prepare_sleep(set, now);
        if driver.core.has_transmit() || has_calls {
            until = Some(Instant(0));
        } else if self.active {
            until = [until, linger].into_iter().flatten().min();
        }
        self.active = false;
        self.sleeps_until = until.unwrap_or(Instant(u64::MAX));
        Ok(until)
    }

    /// Passes the core's events on to conditions, listeners and waiting calls. Says whether there was any.
    #[inline]
    fn route_events(&mut self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.core.has_events()) && self.route_all_events()
    }

    fn route_all_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.driver.as_mut().and_then(Driver::poll_event) {
            match event {
                Event::DataAvailable(reader) => self.raise(Target::Reader(reader), StatusMask::DATA_AVAILABLE),
                Event::HistoryComplete(reader) => {
                    if let Some(progress) = self.progress_of(Target::Reader(reader)) {
                        progress.notify();
                    }
                }
                Event::SubscriptionMatched(reader) => {
                    self.raise(Target::Reader(reader), StatusMask::SUBSCRIPTION_MATCHED);
                }
                Event::RequestedIncompatibleQos(reader) => {
                    self.raise(Target::Reader(reader), StatusMask::REQUESTED_INCOMPATIBLE_QOS);
                }
                Event::SampleLost(reader) => self.raise(Target::Reader(reader), StatusMask::SAMPLE_LOST),
                Event::LivelinessChanged(reader) => {
                    self.raise(Target::Reader(reader), StatusMask::LIVELINESS_CHANGED);
                }
                Event::SampleRejected(reader) => self.raise(Target::Reader(reader), StatusMask::SAMPLE_REJECTED),
                Event::ReaderInconsistentTopic(reader) => {
                    self.raise(Target::Reader(reader), StatusMask::INCONSISTENT_TOPIC);
                }
                Event::RequestedDeadlineMissed(reader) => {
                    self.raise(Target::Reader(reader), StatusMask::REQUESTED_DEADLINE_MISSED);
                }
                Event::OfferedDeadlineMissed(writer) => {
                    self.raise(Target::Writer(writer), StatusMask::OFFERED_DEADLINE_MISSED);
                }
                Event::LivelinessLost(writer) => self.raise(Target::Writer(writer), StatusMask::LIVELINESS_LOST),
                Event::PublicationMatched(writer) => {
                    self.raise(Target::Writer(writer), StatusMask::PUBLICATION_MATCHED);
                    self.notify_progress(writer);
                }
                Event::OfferedIncompatibleQos(writer) => {
                    self.raise(Target::Writer(writer), StatusMask::OFFERED_INCOMPATIBLE_QOS);
                }
                Event::WriterInconsistentTopic(writer) => {
                    self.raise(Target::Writer(writer), StatusMask::INCONSISTENT_TOPIC);
                }
                Event::WriterSpace(writer) | Event::Acknowledged(writer) => self.notify_progress(writer),
                Event::ParticipantDiscovered(guid) => self.note_participant(ParticipantEvent::Discovered(guid)),
                Event::ParticipantLost(guid) => self.note_participant(ParticipantEvent::Lost(guid)),
                Event::TypeAnswer(_) => self.type_answers.notify(),
                _ => {}
            }
            any = true;
        }
        any
    }

    fn endpoint(&mut self, target: Target) -> Option<&mut Endpoint> {
        match target {
            Target::Writer(writer) => self.writers.get_mut(writer.index(), target),
            Target::Reader(reader) => self.readers.get_mut(reader.index(), target),
        }
    }

    fn raise(&mut self, target: Target, status: StatusMask) {
        let Self { writers, readers, woken, parents, participant, ready, .. } = self;
        let endpoint = match target {
            Target::Writer(writer) => writers.get_mut(writer.index(), target),
            Target::Reader(reader) => readers.get_mut(reader.index(), target),
        };
        let Some(endpoint) = endpoint else { return };
        endpoint.signal.raise(status);
        if status == StatusMask::DATA_AVAILABLE {
            endpoint.tasks.drain_into(woken);
            if let Some(signal) = parents.get(endpoint.place.group).and_then(|group| group.signal.as_ref()) {
                signal.raise(StatusMask::DATA_ON_READERS);
            }
        }
        endpoint.tell(status, parents, participant, ready);
    }

    fn notify_progress(&mut self, writer: WriterHandle) {
        let Self { writers, woken, .. } = self;
        if let Some(endpoint) = writers.get_mut(writer.index(), Target::Writer(writer)) {
            endpoint.progress.notify();
            endpoint.tasks.drain_into(woken);
        }
    }

    /// Has a task woken when the endpoint has news for it. What it was to be woken by before is for the caller to drop
    /// outside the lock.
    pub(crate) fn add_task(
        &mut self,
        target: Target,
        task: &mut Option<TaskKey>,
        waker: &Waker,
    ) -> Result<Option<Waker>> {
        let endpoint = self.endpoint(target).ok_or(Error::AlreadyDeleted)?;
        Ok(endpoint.tasks.insert(task, waker))
    }

    /// A task waits no more. Its waker is for the caller to drop outside the lock.
    #[must_use]
    pub(crate) fn remove_task(&mut self, target: Target, task: TaskKey) -> Option<Waker> {
        self.endpoint(target)?.tasks.remove(task)
    }

    fn note_participant(&mut self, event: ParticipantEvent) {
        if self.participant.is_set() {
            self.participant_events.push_back(event);
        }
    }

    /// Whether a listener is to be called and none is being called.
    pub(crate) fn has_calls(&self) -> bool {
        let is_idle = self.ready.is_empty() && self.participant_events.is_empty();
        !is_idle && !self.dispatching
    }

    /// Takes the next listener out of its slot.
    pub(crate) fn next_call(&mut self) -> Option<Call> {
        while let Some(target) = self.ready.pop_front() {
            let Self { writers, readers, parents, participant, ready, .. } = self;
            let endpoint = match target {
                Target::Writer(writer) => writers.get_mut(writer.index(), target),
                Target::Reader(reader) => readers.get_mut(reader.index(), target),
            };
            let Some(endpoint) = endpoint else { continue };
            let mut pending = Level::ALL.into_iter().filter(|level| !endpoint.pending[*level as usize].is_empty());
            let (next, more) = (pending.next(), pending.next().is_some());
            endpoint.queued = more;
            if more {
                ready.push_back(target);
            }
            let Some(level) = next else { continue };
            let statuses = std::mem::take(&mut endpoint.pending[level as usize]);
            // An entity that is not complete cannot be shown to a listener, which stays where it is; `complete` tells it.
            let Some(reference) = &endpoint.endpoint else { continue };
            let slot = match level {
                Level::Endpoint => Some(&mut endpoint.slot),
                Level::Group => parents.get_mut(endpoint.place.group).map(|parent| &mut parent.slot),
                Level::Topic => parents.get_mut(endpoint.place.topic).map(|parent| &mut parent.slot),
                Level::Participant => Some(participant),
            };
            if let Some((listener, version, entity)) = slot.and_then(|slot| slot.take_for(reference)) {
                endpoint.signal.clear(statuses);
                if let Some(signal) = parents.get(endpoint.place.group).and_then(|group| group.signal.as_ref()) {
                    signal.clear(statuses);
                }
                return Some(Call { target, level, listener, version, entity, statuses });
            }
        }
        None
    }

    /// Puts a listener back after its call. Hands it back if its entity has gone or has another one, for the caller to
    /// drop outside the lock.
    pub(crate) fn end_call(
        &mut self,
        target: Target,
        level: Level,
        listener: Listener,
        version: u64,
    ) -> Option<Listener> {
        let Self { writers, readers, parents, participant, .. } = self;
        let endpoint = match target {
            Target::Writer(writer) => writers.get_mut(writer.index(), target),
            Target::Reader(reader) => readers.get_mut(reader.index(), target),
        };
        let slot = match (level, endpoint) {
            (Level::Participant, _) => Some(participant),
            (Level::Endpoint, Some(endpoint)) => Some(&mut endpoint.slot),
            (Level::Group, Some(endpoint)) => parents.get_mut(endpoint.place.group).map(|parent| &mut parent.slot),
            (Level::Topic, Some(endpoint)) => parents.get_mut(endpoint.place.topic).map(|parent| &mut parent.slot),
            (Level::Endpoint | Level::Group | Level::Topic, None) => None,
        };
        match slot {
            Some(slot) => slot.put_back(listener, version),
            None => Some(listener),
        }
    }

    pub(crate) fn add_endpoint(
        &mut self,
        target: Target,
        signal: Arc<Signal>,
        progress: Arc<EventCount>,
        place: Place,
    ) {
        let endpoint = Endpoint {
            target,
            signal,
            progress,
            tasks: Tasks::default(),
            place,
            endpoint: None,
            slot: Slot::default(),
            pending: [StatusMask::NONE; Level::ALL.len()],
            queued: false,
        };
        match target {
            Target::Writer(writer) => self.writers.insert(writer.index(), endpoint),
            Target::Reader(reader) => self.readers.insert(reader.index(), endpoint),
        }
        let endpoints = self.writers.0.len() + self.readers.0.len();
        self.ready.reserve(endpoints.saturating_sub(self.ready.len()));
    }

    /// The endpoint's entity is complete: from now on listeners can be told of it.
    pub(crate) fn complete(&mut self, target: Target, endpoint: EndpointRef) {
        if let Some(known) = self.endpoint(target) {
            known.endpoint = Some(endpoint);
            self.tell_again(target);
        }
    }

    /// Tells who has an ear for it now what has changed and nobody has seen.
    fn tell_again(&mut self, target: Target) {
        let Self { writers, readers, parents, participant, ready, .. } = self;
        let endpoint = match target {
            Target::Writer(writer) => writers.get_mut(writer.index(), target),
            Target::Reader(reader) => readers.get_mut(reader.index(), target),
        };
        let Some(endpoint) = endpoint else { return };
        endpoint.pending = Default::default();
        for status in endpoint.signal.changes().each() {
            endpoint.tell(status, parents, participant, ready);
        }
    }

    /// Forgets an endpoint. Its listener is for the caller to drop outside the lock.
    #[must_use]
    pub(crate) fn remove_endpoint(&mut self, target: Target) -> Option<Listener> {
        self.endpoint(target)?;
        let mut removed = match target {
            Target::Writer(writer) => self.writers.0[writer.index()].take(),
            Target::Reader(reader) => self.readers.0[reader.index()].take(),
        }?;
        removed.progress.notify();
        removed.signal.delete();
        removed.tasks.drain_into(&mut self.woken);
        removed.slot.set(None, StatusMask::NONE)
    }

    /// Sets or removes an endpoint's listener; a new one is first told what has changed already. The former
    /// one is for the caller to drop outside the lock.
    pub(crate) fn set_listener(
        &mut self,
        target: Target,
        listener: Option<Listener>,
        mask: StatusMask,
    ) -> Result<Option<Listener>> {
        let endpoint = self.endpoint(target).ok_or(Error::AlreadyDeleted)?;
        let former = endpoint.slot.set(listener, mask);
        self.tell_again(target);
        Ok(former)
    }

    /// Sets or removes the listener of a publisher, subscriber or topic; as [`set_listener`](Self::set_listener).
    pub(crate) fn set_parent_listener(
        &mut self,
        id: ParentId,
        listener: Option<Listener>,
        mask: StatusMask,
    ) -> Result<Option<Listener>> {
        let parent = self.parents.get_mut(id).ok_or(Error::AlreadyDeleted)?;
        let former = parent.slot.set(listener, mask);
        self.tell_all_again(|place| place.group == id || place.topic == id);
        Ok(former)
    }

    /// Sets or removes the participant's listener; as [`set_listener`](Self::set_listener).
    pub(crate) fn set_participant_listener(
        &mut self,
        listener: Option<Listener>,
        mask: StatusMask,
    ) -> Option<Listener> {
        let former = self.participant.set(listener, mask);
        if !self.participant.is_set() {
            self.participant_events.clear();
        }
        self.tell_all_again(|_| true);
        former
    }

    /// The signal of a publisher, subscriber or topic, which is raised from now on.
    pub(crate) fn parent_signal(&mut self, id: ParentId) -> Result<Arc<Signal>> {
        let parent = self.parents.get_mut(id).ok_or(Error::AlreadyDeleted)?;
        Ok(Arc::clone(parent.signal.get_or_insert_with(|| Arc::new(Signal::new()))))
    }

    /// Has the listener of each reader of a subscriber that holds unseen samples told, whoever has an ear for
    /// `DATA_ON_READERS`.
    pub(crate) fn notify_readers(&mut self, subscriber: ParentId) {
        let available = StatusMask::DATA_AVAILABLE;
        let Self { readers, parents, ready, .. } = self;
        let group_hears = parents.get(subscriber).is_some_and(|group| group.slot.hears(available));
        for reader in readers.0.iter_mut().flatten().filter(|reader| reader.place.group == subscriber) {
            let level = if reader.slot.hears(available) { Level::Endpoint } else { Level::Group };
            let is_heard = level == Level::Endpoint || group_hears;
            if is_heard && reader.signal.changes().intersects(available) {
                reader.pending[level as usize] |= available;
                if !std::mem::replace(&mut reader.queued, true) {
                    ready.push_back(reader.target);
                }
            }
        }
    }

    /// What a call that waits for news of an endpoint sleeps on.
    pub(crate) fn progress_of(&mut self, target: Target) -> Option<Arc<EventCount>> {
        self.endpoint(target).map(|endpoint| Arc::clone(&endpoint.progress))
    }

    fn tell_all_again(&mut self, concerns: impl Fn(Place) -> bool) {
        let endpoints = self.writers.0.iter().chain(&self.readers.0).flatten();
        let targets: Vec<Target> =
            endpoints.filter(|endpoint| concerns(endpoint.place)).map(|endpoint| endpoint.target).collect();
        targets.into_iter().for_each(|target| self.tell_again(target));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.driver.is_none()
    }

    /// Says goodbye, closes the sockets and wakes everyone who waits. The listeners are for the caller to drop
    /// outside the lock, since they may own handles of this participant.
    #[must_use]
    pub(crate) fn close(&mut self, now: Instant) -> Closed {
        let driver = self.driver.take().map(|mut driver| {
            driver.shutdown(now);
            driver
        });
        let mut listeners = Vec::new();
        let mut tasks = std::mem::take(&mut self.woken);
        for mut endpoint in self.writers.0.drain(..).chain(self.readers.0.drain(..)).flatten() {
            endpoint.progress.notify();
            endpoint.signal.delete();
            endpoint.tasks.drain_into(&mut tasks);
            listeners.push(endpoint.slot);
        }
        self.ready.clear();
        self.participant_events.clear();
        listeners.extend(self.parents.drain().map(|parent| parent.slot));
        listeners.push(std::mem::take(&mut self.participant));
        Closed { tasks, _driver: driver, _listeners: listeners }
    }
}

/// What is left of a closed participant, to be dropped outside the lock.
pub(crate) struct Closed {
    /// To be woken.
    pub(crate) tasks: Vec<Waker>,
    _driver: Option<Driver>,
    _listeners: Vec<Slot>,
}
