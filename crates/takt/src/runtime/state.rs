//! What a participant's lock protects: the driver, and who is to be told about which endpoint.

mod comings;
mod endpoint;
mod lead;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use takt_core::{Event, Instant, Priority};
use takt_exec::{JobKind, Run};
use takt_wire::Guid;

use super::drive::Driving;
use super::driver::Driver;
use super::event_count::EventCount;
use super::ledger::Ledger;
use super::listeners::{Call, EndpointRef, Level, Listener, ParentId, Parents, Place, Slot};
use super::poll::Edition;
use super::tasks::TaskKey;
use crate::status::{Signal, StatusMask};
use crate::timing::Timing;
use comings::Comings;
use endpoint::{Due, Endpoints};
pub(crate) use endpoint::{Elsewhere, Endpoint, Identity, Target};
pub(crate) use lead::Led;
use turn::NormalJob;
pub(crate) use turn::{Rank, Step};

use crate::{BudgetOverrun, BudgetOverrunStatus, Error, Result, Runtime};

/// What is told of the participant itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParticipantEvent {
    Discovered(Guid),
    Lost(Guid),
    /// Jobs took too long.
    Overran(BudgetOverrunStatus),
}

/// Whether an event is one of those that are recorded for people.
fn event_for_people(event: &Event) -> bool {
    matches!(
        event,
        Event::PairsRefused
            | Event::PairsCautioned
            | Event::ParticipantSilent(_)
            | Event::ParticipantRefused(_)
            | Event::SecurityLogged
            | Event::ReaderSilent(_)
            | Event::PathNarrowed(_)
            | Event::ParticipantDiscovered(_)
            | Event::ParticipantLost(_)
            | Event::SampleLost(_)
            | Event::PublicationMatched(_)
            | Event::SubscriptionMatched(_)
    )
}

/// Everything behind the lock.
pub(crate) struct State {
    /// `None` once the participant is closed.
    driver: Option<Driver>,
    writers: Endpoints,
    readers: Endpoints,
    due: Due,
    /// What the jobs took.
    pub(crate) ledger: Ledger,
    /// Notified when a request for types is answered.
    pub(crate) type_answers: Arc<EventCount>,
    /// Publishers, subscribers and topics.
    pub(crate) parents: Parents,
    /// The participant's listener.
    pub(crate) participant: Slot,
    comings: Comings,
    /// A listener is being called, so that a nested turn leaves the others for later.
    pub(crate) dispatching: bool,
    /// What the receiving thread sleeps for at most; zero while it is awake.
    sleeps_until: Instant,
    /// Something was received or called since the last sleep.
    active: bool,
    /// What is next at normal priority.
    next_normal: NormalJob,
    /// Attempts to receive since the last look at the timers.
    attempts: u32,
    attempts_per_turn: u32,
    /// Where the transports' descriptors begin among those that were last slept on.
    first_descriptor: usize,
    pub(crate) driving: Driving,
    /// Of the list of the thread that leads: the receiving thread's has to be younger.
    leader_list: Edition,
    /// A thread that led has left something behind: the receiving thread looks at all transports.
    has_left_behind: bool,
}

impl State {
    pub(crate) fn new(runtime: Runtime, driver: Driver) -> Self {
        Self {
            driver: Some(driver),
            writers: Endpoints::default(),
            readers: Endpoints::default(),
            due: Due::default(),
            ledger: Ledger::new(),
            type_answers: Arc::new(EventCount::new()),
            parents: Parents::default(),
            participant: Slot::default(),
            comings: Comings::default(),
            dispatching: false,
            sleeps_until: Instant(0),
            active: true,
            next_normal: NormalJob::default(),
            attempts: 0,
            attempts_per_turn: match runtime {
                Runtime::Inline => turn::ATTEMPTS_PER_TIMER_CHECK,
                Runtime::Shared => turn::SHARED_ATTEMPTS_PER_TURN,
            },
            first_descriptor: 0,
            driving: Driving::default(),
            leader_list: Edition::new(),
            has_left_behind: false,
        }
    }

    pub(crate) fn driver(&mut self) -> Result<&mut Driver> {
        // Not `ok_or`: that would make and drop an error on each call.
        match &mut self.driver {
            Some(driver) => Ok(driver),
            None => Err(Error::AlreadyDeleted),
        }
    }

    /// Passes the core's events on to conditions, listeners and waiting calls. Says whether there was any.
    #[inline]
    fn route_events(&mut self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.core.has_events()) && self.route_all_events()
    }

    fn route_all_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.driver.as_mut().and_then(Driver::poll_event) {
            if event_for_people(&event) {
                self.diagnose(event);
            }
            match event {
                Event::DataAvailable(reader) => self.raise(Target::Reader(reader), StatusMask::DATA_AVAILABLE),
                Event::HistoryComplete(reader) => {
                    if let Some(progress) = self.progress_of(Target::Reader(reader)) {
                        progress.notify();
                    }
                }
                Event::SubscriptionMatched(reader) => {
                    self.raise(Target::Reader(reader), StatusMask::SUBSCRIPTION_MATCHED);
                    self.notify_progress(Target::Reader(reader));
                }
                Event::RequestedIncompatibleQos(reader) => {
                    self.raise(Target::Reader(reader), StatusMask::REQUESTED_INCOMPATIBLE_QOS);
                }
                Event::SampleLost(reader) => self.raise(Target::Reader(reader), StatusMask::SAMPLE_LOST),
                Event::LatencyExceeded(reader) => self.raise(Target::Reader(reader), StatusMask::LATENCY_EXCEEDED),
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
                    self.notify_progress(Target::Writer(writer));
                }
                Event::OfferedIncompatibleQos(writer) => {
                    self.raise(Target::Writer(writer), StatusMask::OFFERED_INCOMPATIBLE_QOS);
                }
                Event::WriterInconsistentTopic(writer) => {
                    self.raise(Target::Writer(writer), StatusMask::INCONSISTENT_TOPIC);
                }
                Event::WriterSpace(writer) | Event::Acknowledged(writer) => {
                    self.notify_progress(Target::Writer(writer));
                }
                Event::ParticipantDiscovered(guid) if self.participant.is_set() => self.comings.come(guid),
                Event::ParticipantLost(guid) if self.participant.is_set() => self.comings.go(guid),
                Event::TypeAnswer(_) => self.type_answers.notify(),
                _ => {}
            }
            any = true;
        }
        any
    }

    /// Records an event for people. No event of the data path comes here, but of losses.
    #[cold]
    fn diagnose(&mut self, event: Event) {
        let is_wanted = self.driver.as_ref().is_some_and(|driver| driver.diagnosis.wants(driver.now(), &event));
        if !is_wanted {
            return;
        }
        let target = match event {
            Event::SampleLost(reader) | Event::SubscriptionMatched(reader) => Some(Target::Reader(reader)),
            Event::PublicationMatched(writer) | Event::ReaderSilent(writer) | Event::PathNarrowed(writer) => {
                Some(Target::Writer(writer))
            }
            _ => None,
        };
        let topic = target.and_then(|target| self.endpoint(target)).map(|endpoint| endpoint.topic.clone());
        if let Some(driver) = &mut self.driver {
            driver.diagnose(event, topic.as_deref());
        }
    }

    fn endpoint(&mut self, target: Target) -> Option<&mut Endpoint> {
        match target {
            Target::Writer(writer) => self.writers.get_mut(writer.index(), target),
            Target::Reader(reader) => self.readers.get_mut(reader.index(), target),
        }
    }

    fn raise(&mut self, target: Target, status: StatusMask) {
        let Self { writers, readers, due, parents, participant, .. } = self;
        let endpoint = match target {
            Target::Writer(writer) => writers.get_mut(writer.index(), target),
            Target::Reader(reader) => readers.get_mut(reader.index(), target),
        };
        let Some(endpoint) = endpoint else { return };
        endpoint.signal.raise(status);
        if status == StatusMask::DATA_AVAILABLE {
            endpoint.tasks.drain_into(&mut due.woken);
            if let Some(signal) = parents.get(endpoint.place.group).and_then(|group| group.signal.as_ref()) {
                signal.raise(StatusMask::DATA_ON_READERS);
            }
        }
        endpoint.tell(status, parents, participant, due);
    }

    fn notify_progress(&mut self, target: Target) {
        let Self { writers, readers, due, .. } = self;
        let endpoint = match target {
            Target::Writer(writer) => writers.get_mut(writer.index(), target),
            Target::Reader(reader) => readers.get_mut(reader.index(), target),
        };
        if let Some(endpoint) = endpoint {
            endpoint.progress.notify();
            endpoint.tasks.drain_into(&mut due.woken);
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

    /// What the participant's listener is to be told next.
    pub(crate) fn next_participant_event(&mut self) -> Option<ParticipantEvent> {
        if let Some(event) = self.comings.pop() {
            return Some(event);
        }
        let (last, total_count_change, total_count) = self.ledger.take_news()?;
        Some(ParticipantEvent::Overran(BudgetOverrunStatus { total_count, total_count_change, last }))
    }

    /// Whether tasks are to be woken.
    #[inline]
    pub(crate) fn has_woken(&self) -> bool {
        !self.due.woken.is_empty()
    }

    /// The next of them.
    pub(crate) fn next_woken(&mut self) -> Option<Waker> {
        self.due.woken.pop()
    }

    /// Whether a listener is to be called and none is being called.
    pub(crate) fn has_calls(&self) -> bool {
        self.due_call().is_some()
    }

    /// The priority of the next call of a listener, if none is being called.
    #[inline]
    pub(crate) fn due_call(&self) -> Option<Priority> {
        if self.dispatching { None } else { self.next_told_priority() }
    }

    /// How urgent the next call of a listener is, the participant's among them.
    #[inline]
    pub(crate) fn next_told_priority(&self) -> Option<Priority> {
        let has_overruns = self.ledger.has_news() && self.participant.is_set();
        let of_participant = (has_overruns || !self.comings.is_empty()).then_some(Priority::NORMAL);
        self.next_call_priority().max(of_participant)
    }

    /// How urgent the next call is, if there is one of an endpoint.
    #[inline]
    pub(crate) fn next_call_priority(&self) -> Option<Priority> {
        self.due.calls.first_priority()
    }

    /// Takes the next listener out of its slot.
    pub(crate) fn next_call(&mut self) -> Option<Call> {
        while let Some((_, target)) = self.due.calls.pop() {
            if let Some(call) = self.take_call(target, true) {
                return Some(call);
            }
        }
        None
    }

    /// Takes the own listener of an endpoint that another executor calls out of its slot, if there is something to tell it.
    pub(crate) fn take_call_elsewhere(&mut self, target: Target) -> Option<Call> {
        self.take_call(target, false)
    }

    /// Takes the first listener that is to be told of an endpoint, of those that are called here or elsewhere, out of its slot.
    fn take_call(&mut self, target: Target, is_here: bool) -> Option<Call> {
        let Self { writers, readers, parents, participant, due, .. } = self;
        let endpoint = match target {
            Target::Writer(writer) => writers.get_mut(writer.index(), target),
            Target::Reader(reader) => readers.get_mut(reader.index(), target),
        }?;
        if is_here {
            endpoint.queued = false;
        }
        if endpoint.suspended {
            // It is told when it is resumed.
            return None;
        }
        let concerns =
            |level: &Level| !endpoint.pending[*level as usize].is_empty() && endpoint.is_called_here(*level) == is_here;
        let mut pending = Level::ALL.into_iter().filter(concerns);
        let (next, more) = (pending.next(), pending.next().is_some());
        if is_here && more {
            endpoint.queued = true;
            due.calls.push(endpoint.timing.priority, target);
        }
        let level = next?;
        // An entity that is not complete cannot be shown to a listener, which stays where it is; `complete` tells it.
        let reference = endpoint.endpoint.as_ref()?;
        let slot = match level {
            Level::Endpoint => Some(&mut endpoint.slot),
            Level::Group => parents.get_mut(endpoint.place.group).map(|parent| &mut parent.slot),
            Level::Topic => parents.get_mut(endpoint.place.topic).map(|parent| &mut parent.slot),
            Level::Participant => Some(participant),
        };
        let slot = slot?;
        if slot.is_out() {
            // Another executor calls it. It is told the rest when it is back.
            return None;
        }
        let statuses = std::mem::take(&mut endpoint.pending[level as usize]);
        let (listener, version, entity) = slot.take_for(reference)?;
        endpoint.signal.clear(statuses);
        if let Some(signal) = parents.get(endpoint.place.group).and_then(|group| group.signal.as_ref()) {
            signal.clear(statuses);
        }
        Some(Call { target, priority: endpoint.timing.priority, level, listener, version, entity, statuses })
    }

    /// Has an endpoint's own listener called by another executor; `None`: by the participant's again. Leaves the former one in its
    /// place, for the caller to drop outside the lock.
    pub(crate) fn call_elsewhere(&mut self, target: Target, elsewhere: &mut Option<Elsewhere>) -> Result<()> {
        let endpoint = self.endpoint(target).ok_or(Error::AlreadyDeleted)?;
        std::mem::swap(&mut endpoint.elsewhere, elsewhere);
        self.tell_again(target);
        Ok(())
    }

    /// How urgent an endpoint is, and its topic.
    pub(crate) fn describe(&mut self, target: Target) -> Result<(Priority, String)> {
        let endpoint = self.endpoint(target).ok_or(Error::AlreadyDeleted)?;
        Ok((endpoint.timing.priority, endpoint.topic.clone()))
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
        let left = match slot {
            Some(slot) => slot.put_back(listener, version),
            None => Some(listener),
        };
        self.queue_again(target, level);
        left
    }

    /// What somebody wanted to tell the listener of this level while another executor called it is told now.
    fn queue_again(&mut self, target: Target, level: Level) {
        let Self { writers, readers, due, .. } = self;
        let endpoint = match target {
            Target::Writer(writer) => writers.get_mut(writer.index(), target),
            Target::Reader(reader) => readers.get_mut(reader.index(), target),
        };
        if let Some(endpoint) = endpoint.filter(|endpoint| !endpoint.pending[level as usize].is_empty()) {
            endpoint.queue(level, due);
        }
    }

    pub(crate) fn add_endpoint(&mut self, endpoint: Endpoint) {
        let (target, priority) = (endpoint.target, endpoint.timing.priority);
        match target {
            Target::Writer(writer) => self.writers.insert(writer.index(), endpoint),
            Target::Reader(reader) => self.readers.insert(reader.index(), endpoint),
        }
        let endpoints = self.writers.0.len() + self.readers.0.len();
        self.due.calls.reserve(priority, endpoints);
        self.open_accounts(priority);
    }

    /// Changes how urgent an endpoint is, from its next call on.
    pub(crate) fn set_timing(&mut self, target: Target, timing: Timing) -> Result<()> {
        self.endpoint(target).ok_or(Error::AlreadyDeleted)?.timing = timing;
        let endpoints = self.writers.0.len() + self.readers.0.len();
        self.due.calls.reserve(timing.priority, endpoints);
        self.open_accounts(timing.priority);
        Ok(())
    }

    /// Jobs of this priority are counted on their own.
    fn open_accounts(&mut self, priority: Priority) {
        for kind in [JobKind::Receive, JobKind::Transmit, JobKind::Callback, JobKind::LockWait] {
            self.ledger.accounts.open(kind, priority);
        }
    }

    /// Counts a call of an endpoint's listener, which may have taken longer than it may.
    pub(crate) fn count_call(&mut self, target: Target, run: &Run) {
        let class_budget_ns = self.ledger.record(run);
        let Some(endpoint) = self.endpoint(target) else { return };
        let own = endpoint.timing.budget.filter(|budget| run.duration_ns() > budget.limit_ns);
        let Some(limit_ns) = own.map(|budget| budget.limit_ns).or(class_budget_ns) else { return };
        let suspended = own.is_some_and(|budget| budget.suspends);
        endpoint.suspended |= suspended;
        let endpoint = Some((endpoint.guid, endpoint.topic.clone()));
        self.ledger.overran(BudgetOverrun { endpoint, suspended, ..BudgetOverrun::of(run, limit_ns) });
    }

    /// The topics of endpoints, by the [numbers](Target::number) that traces have.
    pub(crate) fn topics_by_number(&self) -> BTreeMap<u32, String> {
        let endpoints = self.writers.0.iter().chain(&self.readers.0).flatten();
        endpoints.map(|endpoint| (endpoint.target.number(), endpoint.topic.clone())).collect()
    }

    /// The listener of an endpoint is called again, if it was not any more, and told first what it missed.
    pub(crate) fn resume(&mut self, target: Target) -> Result<()> {
        let endpoint = self.endpoint(target).ok_or(Error::AlreadyDeleted)?;
        if std::mem::take(&mut endpoint.suspended) {
            self.tell_again(target);
        }
        Ok(())
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
        let Self { writers, readers, parents, participant, due, .. } = self;
        let endpoint = match target {
            Target::Writer(writer) => writers.get_mut(writer.index(), target),
            Target::Reader(reader) => readers.get_mut(reader.index(), target),
        };
        let Some(endpoint) = endpoint else { return };
        endpoint.pending = Default::default();
        for status in endpoint.signal.changes().each() {
            endpoint.tell(status, parents, participant, due);
        }
    }

    /// Forgets an endpoint, which is for the caller to drop outside the lock.
    #[must_use]
    pub(crate) fn remove_endpoint(&mut self, target: Target) -> Option<Endpoint> {
        self.endpoint(target)?;
        let mut removed = match target {
            Target::Writer(writer) => self.writers.0[writer.index()].take(),
            Target::Reader(reader) => self.readers.0[reader.index()].take(),
        }?;
        removed.progress.notify();
        removed.signal.delete();
        removed.tasks.drain_into(&mut self.due.woken);
        Some(removed)
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
            self.comings.clear();
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
        let Self { readers, parents, due, .. } = self;
        let group_hears = parents.get(subscriber).is_some_and(|group| group.slot.hears(available));
        for reader in readers.0.iter_mut().flatten().filter(|reader| reader.place.group == subscriber) {
            let level = if reader.slot.hears(available) { Level::Endpoint } else { Level::Group };
            let is_heard = level == Level::Endpoint || group_hears;
            if is_heard && reader.signal.changes().intersects(available) {
                reader.pending[level as usize] |= available;
                reader.queue(level, due);
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
        let mut endpoints = Vec::new();
        let mut tasks = std::mem::take(&mut self.due.woken);
        for mut endpoint in self.writers.0.drain(..).chain(self.readers.0.drain(..)).flatten() {
            endpoint.progress.notify();
            endpoint.signal.delete();
            endpoint.tasks.drain_into(&mut tasks);
            endpoints.push(endpoint);
        }
        self.due.calls.clear();
        self.comings.clear();
        let mut listeners: Vec<Slot> = self.parents.drain().map(|parent| parent.slot).collect();
        listeners.push(std::mem::take(&mut self.participant));
        Closed { tasks, _driver: driver, _endpoints: endpoints, _listeners: listeners }
    }
}

/// What is left of a closed participant, to be dropped outside the lock.
pub(crate) struct Closed {
    /// To be woken.
    pub(crate) tasks: Vec<Waker>,
    _driver: Option<Driver>,
    _endpoints: Vec<Endpoint>,
    _listeners: Vec<Slot>,
}
