//! State behind a participant's lock: the driver, and the pending notifications for endpoints.

mod endpoint;
mod lead;
mod participant_events;
mod pass;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use takt_core::{Event, Instant, Priority};
use takt_schedule::{JobKind, Run};
use takt_wire::Guid;

use super::drive::Driving;
use super::driver::Driver;
use super::event_count::EventCount;
use super::job_recorder::JobRecorder;
use super::listeners::{Call, EndpointRef, Level, Listener, ParentId, Parents, Slot, TreePosition};
use super::poll::ListGeneration;
use super::tasks::TaskKey;
use crate::status::{Signal, StatusMask};
use crate::timing::SchedulingProperties;
pub(crate) use endpoint::{Endpoint, Identity, ListenerJob, Target};
use endpoint::{Endpoints, PendingWakeups};
pub(crate) use lead::Led;
use participant_events::ParticipantEvents;
use pass::NormalJob;
pub(crate) use pass::{Rank, Step};

use crate::{BudgetOverrun, BudgetOverrunStatus, Error, OverrunEndpoint, Result, Runtime};

/// Event for the participant's listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParticipantEvent {
    Discovered(Guid),
    Lost(Guid),
    /// Jobs exceeded their budget.
    BudgetOverrun(BudgetOverrunStatus),
}

/// Reports whether an event may be recorded in the diagnostic log.
fn is_log_event(event: &Event) -> bool {
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

/// State behind the lock.
pub(crate) struct State {
    /// `None` once the participant is closed.
    driver: Option<Driver>,
    writers: Endpoints,
    readers: Endpoints,
    pending_wakeups: PendingWakeups,
    /// Execution times of the jobs.
    pub(crate) job_recorder: JobRecorder,
    /// Notified when a type request is answered.
    pub(crate) type_answers: Arc<EventCount>,
    /// State of publishers, subscribers and topics.
    pub(crate) parents: Parents,
    /// Listener of the participant.
    pub(crate) participant: Slot,
    participant_events: ParticipantEvents,
    /// A listener is being called; nested driving does not call others meanwhile.
    pub(crate) dispatching: bool,
    /// Latest end of the receiving thread's sleep; zero while it is awake.
    sleeps_until: Instant,
    /// A datagram was received or a call made since the last sleep.
    active: bool,
    /// Next job at normal priority.
    next_normal: NormalJob,
    /// Receive attempts since the timers were last checked.
    attempts: u32,
    attempts_per_pass: u32,
    /// Index of the transports' first descriptor in the last sleep.
    first_descriptor: usize,
    /// `None` while the thread of an inline participant drives.
    pub(crate) driving: Option<Box<Driving>>,
    /// Generation of the leader's descriptor list; the list of the receiving thread must be newer.
    leader_list: ListGeneration,
    /// A leader has left datagrams in the transports, so the receiving thread polls all of them.
    poll_requested: bool,
}

impl State {
    pub(crate) fn new(runtime: Runtime, driver: Driver) -> Self {
        Self {
            driver: Some(driver),
            writers: Endpoints::default(),
            readers: Endpoints::default(),
            pending_wakeups: PendingWakeups::default(),
            job_recorder: JobRecorder::new(),
            type_answers: Arc::new(EventCount::new()),
            parents: Parents::default(),
            participant: Slot::default(),
            participant_events: ParticipantEvents::default(),
            dispatching: false,
            sleeps_until: Instant(0),
            active: true,
            next_normal: NormalJob::default(),
            attempts: 0,
            attempts_per_pass: match runtime {
                Runtime::Inline => pass::ATTEMPTS_PER_TIMER_CHECK,
                Runtime::Shared => pass::SHARED_ATTEMPTS_PER_PASS,
            },
            first_descriptor: 0,
            driving: Some(Box::default()),
            leader_list: ListGeneration::new(),
            poll_requested: false,
        }
    }

    pub(crate) fn driver(&mut self) -> Result<&mut Driver> {
        // `ok_or` would construct and drop an error on each call.
        match &mut self.driver {
            Some(driver) => Ok(driver),
            None => Err(Error::AlreadyDeleted),
        }
    }

    /// Passes the core's events to conditions, listeners and blocked calls. Returns true if there
    /// was any.
    #[inline]
    fn route_events(&mut self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.core.has_events()) && self.route_all_events()
    }

    fn route_all_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.driver.as_mut().and_then(Driver::poll_event) {
            if is_log_event(&event) {
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
                Event::ParticipantDiscovered(guid) if self.participant.is_set() => {
                    self.participant_events.push_discovered(guid)
                }
                Event::ParticipantLost(guid) if self.participant.is_set() => self.participant_events.push_lost(guid),
                Event::TypeAnswer(_) => self.type_answers.notify(),
                _ => {}
            }
            any = true;
        }
        any
    }

    /// Records an event in the diagnostic log. Of the events on the data path, only losses are
    /// recorded.
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
        find(&mut self.writers, &mut self.readers, target)
    }

    fn raise(&mut self, target: Target, status: StatusMask) {
        let Self { writers, readers, pending_wakeups, parents, participant, .. } = self;
        let Some(endpoint) = find(writers, readers, target) else { return };
        endpoint.signal.raise(status);
        if status == StatusMask::DATA_AVAILABLE {
            endpoint.tasks.drain_into(&mut pending_wakeups.woken);
            if let Some(signal) = parents.get(endpoint.tree_position.group).and_then(|group| group.signal.as_ref()) {
                signal.raise(StatusMask::DATA_ON_READERS);
            }
        }
        endpoint.notify(status, parents, participant, pending_wakeups);
    }

    fn notify_progress(&mut self, target: Target) {
        let Self { writers, readers, pending_wakeups, .. } = self;
        if let Some(endpoint) = find(writers, readers, target) {
            endpoint.progress.notify();
            endpoint.tasks.drain_into(&mut pending_wakeups.woken);
        }
    }

    /// Registers a task to be woken when the state of the endpoint changes. The caller drops the
    /// returned former waker without holding the lock.
    pub(crate) fn add_task(
        &mut self,
        target: Target,
        task: &mut Option<TaskKey>,
        waker: &Waker,
    ) -> Result<Option<Waker>> {
        let endpoint = self.endpoint(target).ok_or(Error::AlreadyDeleted)?;
        Ok(endpoint.tasks.insert(task, waker))
    }

    /// Unregisters a task. The caller drops the returned waker without holding the lock.
    #[must_use]
    pub(crate) fn remove_task(&mut self, target: Target, task: TaskKey) -> Option<Waker> {
        self.endpoint(target)?.tasks.remove(task)
    }

    /// Takes the next event for the participant's listener.
    pub(crate) fn next_participant_event(&mut self) -> Option<ParticipantEvent> {
        if let Some(event) = self.participant_events.pop() {
            return Some(event);
        }
        let (last, total_count_change, total_count) = self.job_recorder.take_report()?;
        Some(ParticipantEvent::BudgetOverrun(BudgetOverrunStatus { total_count, total_count_change, last }))
    }

    /// Reports whether tasks must be woken.
    #[inline]
    pub(crate) fn has_woken(&self) -> bool {
        !self.pending_wakeups.woken.is_empty()
    }

    /// Takes the next waker to be woken.
    pub(crate) fn next_woken(&mut self) -> Option<Waker> {
        self.pending_wakeups.woken.pop()
    }

    /// Reports whether a listener must be called and none is being called.
    pub(crate) fn has_calls(&self) -> bool {
        self.due_call().is_some()
    }

    /// Returns the priority of the next listener call; `None` if a listener is being called.
    #[inline]
    pub(crate) fn due_call(&self) -> Option<Priority> {
        if self.dispatching { None } else { self.next_notification_priority() }
    }

    /// Returns the priority of the next listener call, including that of the participant's
    /// listener.
    #[inline]
    pub(crate) fn next_notification_priority(&self) -> Option<Priority> {
        let has_overruns = self.job_recorder.has_unreported() && self.participant.is_set();
        let of_participant = (has_overruns || !self.participant_events.is_empty()).then_some(Priority::NORMAL);
        self.next_call_priority().max(of_participant)
    }

    /// Returns the priority of the next listener call for an endpoint.
    #[inline]
    pub(crate) fn next_call_priority(&self) -> Option<Priority> {
        self.pending_wakeups.calls.first_priority()
    }

    /// Takes the listener of the next call out of its slot.
    pub(crate) fn next_call(&mut self) -> Option<Call> {
        while let Some((_, target)) = self.pending_wakeups.calls.pop() {
            if let Some(call) = self.take_call(target, true) {
                return Some(call);
            }
        }
        None
    }

    /// Takes the own listener of an endpoint on another executor out of its slot, if a status is
    /// pending.
    pub(crate) fn take_call_for_other_executor(&mut self, target: Target) -> Option<Call> {
        self.take_call(target, false)
    }

    /// Takes the first listener with a pending status for an endpoint out of its slot.
    /// `called_here` selects the levels that the participant's executor calls.
    fn take_call(&mut self, target: Target, called_here: bool) -> Option<Call> {
        let Self { writers, readers, parents, participant, pending_wakeups, .. } = self;
        let endpoint = find(writers, readers, target)?;
        if called_here {
            endpoint.queued = false;
        }
        if endpoint.suspended {
            // The pending statuses are delivered on resumption.
            return None;
        }
        let concerns = |level: &Level| {
            !endpoint.pending[*level as usize].is_empty() && endpoint.is_called_here(*level) == called_here
        };
        let mut pending = Level::ALL.into_iter().filter(concerns);
        let (next, more) = (pending.next(), pending.next().is_some());
        if called_here && more {
            endpoint.queued = true;
            pending_wakeups.calls.push(endpoint.timing.priority, target);
        }
        let level = next?;
        // Until the entity is complete it cannot be passed to a listener. The listener stays in its
        // slot, and `complete` queues the call.
        let reference = endpoint.endpoint.as_ref()?;
        let slot = match level {
            Level::Endpoint => Some(&mut endpoint.slot),
            Level::Group => parents.get_mut(endpoint.tree_position.group).map(|parent| &mut parent.slot),
            Level::Topic => parents.get_mut(endpoint.tree_position.topic).map(|parent| &mut parent.slot),
            Level::Participant => Some(participant),
        };
        let slot = slot?;
        if slot.is_being_called() {
            // Another executor is calling the listener. The rest is delivered when that call ends.
            return None;
        }
        let statuses = std::mem::take(&mut endpoint.pending[level as usize]);
        let (listener, version, entity) = slot.take_for(reference)?;
        endpoint.signal.clear(statuses);
        if let Some(signal) = parents.get(endpoint.tree_position.group).and_then(|group| group.signal.as_ref()) {
            signal.clear(statuses);
        }
        Some(Call { target, priority: endpoint.timing.priority, level, listener, version, entity, statuses })
    }

    /// Moves calls of an endpoint's own listener to another executor, or with `None` back to that
    /// of the participant. Swaps in the former value, which the caller drops without holding the
    /// lock.
    pub(crate) fn set_listener_job(&mut self, target: Target, listener_job: &mut Option<ListenerJob>) -> Result<()> {
        let endpoint = self.endpoint(target).ok_or(Error::AlreadyDeleted)?;
        std::mem::swap(&mut endpoint.listener_job, listener_job);
        self.renotify(target);
        Ok(())
    }

    /// Returns the priority of an endpoint and its topic.
    pub(crate) fn describe(&mut self, target: Target) -> Result<(Priority, String)> {
        let endpoint = self.endpoint(target).ok_or(Error::AlreadyDeleted)?;
        Ok((endpoint.timing.priority, endpoint.topic.clone()))
    }

    /// Returns a listener to its slot after a call. Hands it back if its entity is deleted or has
    /// another listener, to be dropped without holding the lock.
    pub(crate) fn end_call(
        &mut self,
        target: Target,
        level: Level,
        listener: Listener,
        version: u64,
    ) -> Option<Listener> {
        let Self { writers, readers, parents, participant, .. } = self;
        let endpoint = find(writers, readers, target);
        let slot = match (level, endpoint) {
            (Level::Participant, _) => Some(participant),
            (Level::Endpoint, Some(endpoint)) => Some(&mut endpoint.slot),
            (Level::Group, Some(endpoint)) => {
                parents.get_mut(endpoint.tree_position.group).map(|parent| &mut parent.slot)
            }
            (Level::Topic, Some(endpoint)) => {
                parents.get_mut(endpoint.tree_position.topic).map(|parent| &mut parent.slot)
            }
            (Level::Endpoint | Level::Group | Level::Topic, None) => None,
        };
        let left = match slot {
            Some(slot) => slot.put_back(listener, version),
            None => Some(listener),
        };
        self.requeue_pending(target, level);
        left
    }

    /// Queues statuses that became pending for this level while another executor called its
    /// listener.
    fn requeue_pending(&mut self, target: Target, level: Level) {
        let Self { writers, readers, pending_wakeups, .. } = self;
        let endpoint = find(writers, readers, target);
        if let Some(endpoint) = endpoint.filter(|endpoint| !endpoint.pending[level as usize].is_empty()) {
            endpoint.queue(level, pending_wakeups);
        }
    }

    pub(crate) fn add_endpoint(&mut self, endpoint: Endpoint) {
        let (target, priority) = (endpoint.target, endpoint.timing.priority);
        match target {
            Target::Writer(writer) => self.writers.insert(writer.index(), endpoint),
            Target::Reader(reader) => self.readers.insert(reader.index(), endpoint),
        }
        let endpoints = self.writers.0.len() + self.readers.0.len();
        self.pending_wakeups.calls.reserve(priority, endpoints);
        self.open_class_statistics(priority);
    }

    /// Changes the priority of an endpoint, effective with the next call.
    pub(crate) fn set_timing(&mut self, target: Target, timing: SchedulingProperties) -> Result<()> {
        self.endpoint(target).ok_or(Error::AlreadyDeleted)?.timing = timing;
        let endpoints = self.writers.0.len() + self.readers.0.len();
        self.pending_wakeups.calls.reserve(timing.priority, endpoints);
        self.open_class_statistics(timing.priority);
        Ok(())
    }

    /// Opens separate statistics for jobs of this priority.
    fn open_class_statistics(&mut self, priority: Priority) {
        for kind in [JobKind::Receive, JobKind::Transmit, JobKind::Callback, JobKind::LockWait] {
            self.job_recorder.statistics.class_mut(kind, priority);
        }
    }

    /// Records a call of an endpoint's listener, and an overrun if it exceeded its budget.
    pub(crate) fn count_call(&mut self, target: Target, run: &Run) {
        let class_budget_ns = self.job_recorder.record(run);
        let Some(endpoint) = self.endpoint(target) else { return };
        let own = endpoint.timing.budget.filter(|budget| run.duration_ns() > budget.limit_ns);
        let Some(limit_ns) = own.map(|budget| budget.limit_ns).or(class_budget_ns) else { return };
        let suspended = own.is_some_and(|budget| budget.suspends);
        endpoint.suspended |= suspended;
        let endpoint = Some(OverrunEndpoint { guid: endpoint.guid, topic: endpoint.topic.clone() });
        self.job_recorder.record_overrun(BudgetOverrun { endpoint, suspended, ..BudgetOverrun::of(run, limit_ns) });
    }

    /// Returns the topics of the endpoints, by the [numbers](Target::number) used in traces.
    pub(crate) fn topics_by_number(&self) -> BTreeMap<u32, String> {
        let endpoints = self.writers.0.iter().chain(&self.readers.0).flatten();
        endpoints.map(|endpoint| (endpoint.target.number(), endpoint.topic.clone())).collect()
    }

    /// Resumes the listener of an endpoint if it is suspended. Missed statuses are delivered first.
    pub(crate) fn resume(&mut self, target: Target) -> Result<()> {
        let endpoint = self.endpoint(target).ok_or(Error::AlreadyDeleted)?;
        if std::mem::take(&mut endpoint.suspended) {
            self.renotify(target);
        }
        Ok(())
    }

    /// Marks an endpoint's entity as complete, so that it can be passed to listeners.
    pub(crate) fn complete(&mut self, target: Target, endpoint: EndpointRef) {
        if let Some(known) = self.endpoint(target) {
            known.endpoint = Some(endpoint);
            self.renotify(target);
        }
    }

    /// Queues listener calls for all status changes that the application has not read.
    fn renotify(&mut self, target: Target) {
        let Self { writers, readers, parents, participant, pending_wakeups, .. } = self;
        let Some(endpoint) = find(writers, readers, target) else { return };
        endpoint.pending = Default::default();
        for status in endpoint.signal.changes().each() {
            endpoint.notify(status, parents, participant, pending_wakeups);
        }
    }

    /// Removes an endpoint. The caller drops it without holding the lock.
    #[must_use]
    pub(crate) fn remove_endpoint(&mut self, target: Target) -> Option<Endpoint> {
        self.endpoint(target)?;
        let mut removed = match target {
            Target::Writer(writer) => self.writers.0[writer.index()].take(),
            Target::Reader(reader) => self.readers.0[reader.index()].take(),
        }?;
        removed.progress.notify();
        removed.signal.delete();
        removed.tasks.drain_into(&mut self.pending_wakeups.woken);
        Some(removed)
    }

    /// Sets or removes the listener of an endpoint. A new listener is first called for statuses
    /// that have already changed. The caller drops the returned former listener without holding the
    /// lock.
    pub(crate) fn set_listener(
        &mut self,
        target: Target,
        listener: Option<Listener>,
        mask: StatusMask,
    ) -> Result<Option<Listener>> {
        let endpoint = self.endpoint(target).ok_or(Error::AlreadyDeleted)?;
        let former = endpoint.slot.set(listener, mask);
        self.renotify(target);
        Ok(former)
    }

    /// Sets or removes the listener of a publisher, subscriber or topic, like
    /// [`set_listener`](Self::set_listener).
    pub(crate) fn set_parent_listener(
        &mut self,
        id: ParentId,
        listener: Option<Listener>,
        mask: StatusMask,
    ) -> Result<Option<Listener>> {
        let parent = self.parents.get_mut(id).ok_or(Error::AlreadyDeleted)?;
        let former = parent.slot.set(listener, mask);
        self.renotify_all(|position| position.group == id || position.topic == id);
        Ok(former)
    }

    /// Sets or removes the listener of the participant, like [`set_listener`](Self::set_listener).
    pub(crate) fn set_participant_listener(
        &mut self,
        listener: Option<Listener>,
        mask: StatusMask,
    ) -> Option<Listener> {
        let former = self.participant.set(listener, mask);
        if !self.participant.is_set() {
            self.participant_events.clear();
        }
        self.renotify_all(|_| true);
        former
    }

    /// Returns the signal of a publisher, subscriber or topic. Status changes raise it from now on.
    pub(crate) fn parent_signal(&mut self, id: ParentId) -> Result<Arc<Signal>> {
        let parent = self.parents.get_mut(id).ok_or(Error::AlreadyDeleted)?;
        Ok(Arc::clone(parent.signal.get_or_insert_with(|| Arc::new(Signal::new()))))
    }

    /// Queues `on_data_available` for each reader of a subscriber that holds unread samples, even
    /// if a listener handles `DATA_ON_READERS`.
    pub(crate) fn notify_readers(&mut self, subscriber: ParentId) {
        let available = StatusMask::DATA_AVAILABLE;
        let Self { readers, parents, pending_wakeups, .. } = self;
        let group_handles = parents.get(subscriber).is_some_and(|group| group.slot.handles(available));
        for reader in readers.0.iter_mut().flatten().filter(|reader| reader.tree_position.group == subscriber) {
            let level = if reader.slot.handles(available) { Level::Endpoint } else { Level::Group };
            let is_handled = level == Level::Endpoint || group_handles;
            if is_handled && reader.signal.changes().intersects(available) {
                reader.pending[level as usize] |= available;
                reader.queue(level, pending_wakeups);
            }
        }
    }

    /// Returns the event count on which blocked calls wait for changes of an endpoint.
    pub(crate) fn progress_of(&mut self, target: Target) -> Option<Arc<EventCount>> {
        self.endpoint(target).map(|endpoint| Arc::clone(&endpoint.progress))
    }

    fn renotify_all(&mut self, concerns: impl Fn(TreePosition) -> bool) {
        let endpoints = self.writers.0.iter().chain(&self.readers.0).flatten();
        let targets: Vec<Target> =
            endpoints.filter(|endpoint| concerns(endpoint.tree_position)).map(|endpoint| endpoint.target).collect();
        targets.into_iter().for_each(|target| self.renotify(target));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.driver.is_none()
    }

    /// Announces that the participant leaves, closes the sockets and wakes all waiting threads and
    /// tasks. The caller drops the returned listeners without holding the lock, since they may own
    /// handles of this participant.
    #[must_use]
    pub(crate) fn close(&mut self, now: Instant) -> Closed {
        let driver = self.driver.take().map(|mut driver| {
            driver.shutdown(now);
            driver
        });
        let mut endpoints = Vec::new();
        let mut tasks = std::mem::take(&mut self.pending_wakeups.woken);
        for mut endpoint in self.writers.0.drain(..).chain(self.readers.0.drain(..)).flatten() {
            endpoint.progress.notify();
            endpoint.signal.delete();
            endpoint.tasks.drain_into(&mut tasks);
            endpoints.push(endpoint);
        }
        self.pending_wakeups.calls.clear();
        self.participant_events.clear();
        let mut listeners: Vec<Slot> = self.parents.drain().map(|parent| parent.slot).collect();
        listeners.push(std::mem::take(&mut self.participant));
        Closed { tasks, _driver: driver, _endpoints: endpoints, _listeners: listeners }
    }
}

#[inline]
fn find<'a>(writers: &'a mut Endpoints, readers: &'a mut Endpoints, target: Target) -> Option<&'a mut Endpoint> {
    match target {
        Target::Writer(writer) => writers.get_mut(writer.index(), target),
        Target::Reader(reader) => readers.get_mut(reader.index(), target),
    }
}

/// Remains of a closed participant, to be dropped without holding the lock.
pub(crate) struct Closed {
    /// Wakers to be woken.
    pub(crate) tasks: Vec<Waker>,
    _driver: Option<Driver>,
    _endpoints: Vec<Endpoint>,
    _listeners: Vec<Slot>,
}
