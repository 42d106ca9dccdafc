//! Datagrams of a world: from a participant into the network or to its own host, and from there to
//! the participants that receive them.

use std::rc::Rc;

use takt_core::{FlowTag, LocatorKinds, Participant, Priority, Received};

use super::World;
use super::events::Event;
use crate::check::Rule;
use crate::clock::{Nanos, SECOND};
use crate::counts;
use crate::hostile;
use crate::network::{Frame, Head, Step};
use crate::process::{Moment, at_address, urgency_of};

/// Delay of a datagram between two processes of a host.
const LOOPBACK_DELAY: Nanos = 10_000;

/// Octets of fragments after which they are delayed, at most twice as long as they take on a link.
const FRAGMENT_OCTETS_MAX: usize = 16 << 10;
/// Minimum delay of fragments.
const BLOCKED_MIN: Nanos = 1_000;

/// Maximum number of datagrams that a process sends at one moment. The send windows of all its
/// writers hold fewer.
const DATAGRAMS_AT_ONCE_MAX: u64 = 100_000;

impl World<'_> {
    /// Schedules the processing of the next datagram in the socket, after that of the last one.
    pub(super) fn schedule_input(&mut self, index: usize) {
        let process = &mut self.processes[index];
        if !process.inbox.is_empty() && !std::mem::replace(&mut process.is_scheduled, true) {
            let at = self.now.max(process.busy_until);
            self.at(at, Event::Work(index));
        }
    }

    pub(super) fn work(&mut self, index: usize) {
        let process = &mut self.processes[index];
        process.is_scheduled = false;
        if process.core.is_none() || process.stalled_until > self.now {
            return;
        }
        let Some(frame) = process.dequeue() else { return };
        process.busy_until = self.now + self.scenario.processes[index].cost;
        self.receive(index, &frame);
        self.process_outputs(index);
        self.schedule_input(index);
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Idle { port } => self.network.idle(self.now, port, &mut self.steps),
            Step::Arrive { port, frame } => {
                if let Some((host, frame)) = self.network.arrive(self.now, port, frame, &mut self.steps) {
                    self.arrive(host, frame);
                }
            }
        }
        self.schedule_steps();
    }

    pub(super) fn schedule_steps(&mut self) {
        let mut steps = std::mem::take(&mut self.steps);
        for (delay, step) in steps.drain(..) {
            if let Step::Arrive { port, frame } = &step {
                let (from, to) = self.network.ends(*port);
                self.timeline.left(self.now, from, to, frame);
            }
            self.at(self.now + delay, Event::Network(step));
        }
        self.steps = steps;
    }

    /// Delivers a frame that arrived at a host.
    fn arrive(&mut self, host: usize, frame: Frame) {
        if frame.corrupt || self.is_partitioned(frame.from, host) || self.locations[host].has_no_interface {
            return;
        }
        if frame.host.is_none() && !self.scenario.hosts[host].hears_multicast {
            return;
        }
        if frame.host.is_some() {
            return if let Some(process) = at_address(&frame.to) {
                self.deliver(process, frame)
            };
        }
        for at in 0..self.of_host[host].len() {
            self.deliver(self.of_host[host][at], frame.clone());
        }
        if self.external_participant_host() == Some(host) {
            self.deliver(self.processes.len(), frame);
        }
    }

    pub(super) fn deliver(&mut self, index: usize, frame: Frame) {
        if index >= self.processes.len() {
            return self.deliver_to_external(&frame);
        }
        let process = &mut self.processes[index];
        let listens = || self.locations[process.host].listens(&frame.to, process.host, index);
        if process.core.is_none() || frame.host.is_some() && !listens() {
            return;
        }
        if process.stalled_until > self.now || self.scenario.processes[index].cost > 0 {
            // As in a real socket, a datagram without space is dropped.
            let _fits = process.queue(frame);
            return if process.stalled_until <= self.now {
                self.schedule_input(index)
            };
        }
        self.receive(index, &frame);
        self.process_outputs(index);
    }

    pub(super) fn receive(&mut self, index: usize, frame: &Frame) {
        self.mix(index, &frame.bytes);
        self.timeline.received(self.now, index, frame);
        let process = &mut self.processes[index];
        let local = self.clocks[process.host].local(self.now);
        if frame.hostile {
            process.meter.record_hostile(&frame.bytes);
        }
        self.checker.received(self.now, &frame.bytes, process.readers());
        let from = Received { source: frame.source, multicast: frame.to.is_multicast() };
        let Some(core) = &mut process.core else { return };
        let refusals = |core: &Participant| {
            let counters = core.counters();
            counters.unauthentic_messages + counters.malformed_messages + counters.malformed_submessages
        };
        let before = refusals(core);
        core.handle_datagram(local, from, &frame.bytes);
        let is_refused = refusals(core) > before;
        let accepted = process.accepted.as_mut().filter(|_| !is_refused);
        if accepted.is_some_and(|accepted| accepted.is_repeated(process.prefix, &frame.bytes)) {
            let text = format!("process {index} accepts a protected message of {} octets again", frame.bytes.len());
            self.checker.report(self.now, Rule::Replay, text);
        }
    }

    /// Handles the events of a process, sends its datagrams, and schedules its next timer.
    pub(super) fn process_outputs(&mut self, index: usize) {
        let loses = self.network.counters.queue_drops > 0;
        (self.checker.calm, self.checker.sound) = (self.is_calm && !loses, self.is_sound && !loses);
        loop {
            let mut ready = std::mem::take(&mut self.ready);
            self.processes[index].handle_events(self.now, &mut self.checker, &mut ready);
            self.note_security_log(index);
            let idle = ready.is_empty();
            for at in ready.drain(..) {
                self.resume_application(index, at);
            }
            self.ready = ready;
            if let Some(recorded) = &self.recorded {
                let moment = Moment { now: self.now, clock: &self.clocks[self.processes[index].host] };
                self.processes[index].exchange(recorded.recording(), moment, &mut self.checker);
            }
            self.take_durable(index);
            self.transmit(index);
            if idle {
                break;
            }
        }
        let process = &mut self.processes[index];
        let Some(core) = &mut process.core else { return };
        process.meter.check(core, self.now, index, &mut self.checker);
        let Some(due) = core.poll_timeout() else { return };
        let at = self.clocks[process.host].when(due, self.now);
        if at < process.timer {
            process.timer = at;
            self.at(at, Event::Timer(index));
        }
    }

    /// Writes the log entries of the security plugins to the timeline.
    fn note_security_log(&mut self, index: usize) {
        let Some(core) = &mut self.processes[index].core else { return };
        while let Some(entry) = core.poll_security_log() {
            self.timeline.note(self.now, index, &format!("logs: {}", entry.text));
        }
    }

    pub(super) fn transmit(&mut self, index: usize) {
        let process = &mut self.processes[index];
        if !process.core.as_ref().is_some_and(|core| core.has_transmit()) {
            return;
        }
        let host = process.host;
        let source = self.locations[host].address(host, index);
        let local = self.clocks[host].local(self.now);
        let Some(mut core) = process.core.take() else { return };
        let mut most = core.transmit_priority();
        let sent_before = process.sent;
        while let Some(transmit) = core.poll_transmit(local, &mut self.frame) {
            self.processes[index].sent += 1;
            if self.processes[index].sent - sent_before > DATAGRAMS_AT_ONCE_MAX {
                let text = format!("process {index} sends more than {DATAGRAMS_AT_ONCE_MAX} datagrams at one moment");
                self.checker.report(self.now, Rule::Work, text);
                break;
            }
            let is_meant = urgency_of(transmit.flow).is_none_or(|urgency| urgency == transmit.priority);
            if Some(transmit.priority) > most || !is_meant {
                let text =
                    format!("process {index} sent {:?} of {:?} behind {most:?}", transmit.priority, transmit.flow);
                self.checker.report(self.now, Rule::Urgency, text);
            }
            // A sent datagram may cause a probe of multicast reception.
            most = Some(transmit.priority.max(Priority::NORMAL));
            if self.scenario.boundaries.counts != 0 {
                counts::advance(&mut self.frame[..transmit.len], self.scenario.boundaries.counts);
            }
            let bytes: Rc<[u8]> = self.frame[..transmit.len].into();
            let (flow, fragment_len) = (transmit.flow, if transmit.is_fragment { transmit.len } else { 0 });
            let priority = flow.0 as u8;
            for &to in transmit.destinations {
                if to == hostile::victim() {
                    self.processes[index].meter.record_to_victim(bytes.len(), self.now, index, &mut self.checker);
                }
                let bytes = Rc::clone(&bytes);
                self.send(index, Head { source, from: host, to, host: None, priority, bytes, hostile: false });
            }
            self.limit_fragments(index, &mut core, flow, fragment_len);
        }
        self.processes[index].core = Some(core);
        self.schedule_steps();
    }

    /// Delays the fragments of a flow after some octets of them, as a network interface with a full
    /// queue does.
    fn limit_fragments(&mut self, index: usize, core: &mut Participant, flow: FlowTag, len: usize) {
        let Some(blocking) = &mut self.blocking else { return };
        let process = &mut self.processes[index];
        process.fragment_octets += len;
        if process.fragment_octets < FRAGMENT_OCTETS_MAX {
            return;
        }
        process.fragment_octets = 0;
        core.block_fragments(flow, LocatorKinds::ALL);
        let on_link = 8 * FRAGMENT_OCTETS_MAX as u64 * SECOND / self.scenario.network.bits_per_second;
        let longest = BLOCKED_MIN.max(2 * on_link);
        let (life, until) = (process.incarnation, self.now + blocking.between(BLOCKED_MIN, longest));
        self.at(until, Event::Unblock(index, life, flow));
    }

    pub(super) fn unblock(&mut self, index: usize, flow: FlowTag) {
        if let Some(core) = &mut self.processes[index].core {
            core.unblock_fragments(flow, LocatorKinds::ALL);
        }
        self.transmit(index);
    }

    pub(super) fn send(&mut self, sender: usize, head: Head) {
        let host = head.from;
        if self.locations[host].has_no_interface {
            return;
        }
        let is_multicast = head.to.is_multicast();
        let outsider = self.external_participant_host();
        let host_of = |to: usize| self.processes.get(to).map(|process| process.host).or(outsider);
        let to = at_address(&head.to).filter(|to| !is_multicast && *to <= self.processes.len());
        let target = to.and_then(host_of);
        let frame = Frame::new(Head { host: target, ..head });
        if let Some(hostile) = self.hostile.as_mut().filter(|hostile| hostile.plan.attacks_domain && !frame.hostile) {
            hostile.overhear(frame.to, &frame.bytes);
        }
        self.timeline.sent(self.now, sender, &frame);
        if is_multicast {
            for at in 0..self.of_host[host].len() {
                let other = self.of_host[host][at];
                if other != sender {
                    self.at(self.now + LOOPBACK_DELAY, Event::Loopback(other, frame.clone()));
                }
            }
            if sender < self.processes.len() && outsider == Some(host) {
                self.at(self.now + LOOPBACK_DELAY, Event::Loopback(self.processes.len(), frame.clone()));
            }
            return self.network.send(self.now, host, frame, &mut self.steps);
        }
        let Some(to) = to.filter(|_| target.is_some()) else { return };
        if target == Some(host) {
            return self.at(self.now + LOOPBACK_DELAY, Event::Loopback(to, frame));
        }
        self.network.send(self.now, host, frame, &mut self.steps);
    }

    /// Adds a received datagram, its time and its receiver to the digest, in words of eight octets.
    fn mix(&mut self, process: usize, bytes: &[u8]) {
        let mut digest = self.digest;
        let mut add = |word: u64| digest = (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        add(self.now ^ (process as u64) << 48);
        add(bytes.len() as u64);
        for word in bytes.chunks(8) {
            let mut octets = [0; 8];
            octets[..word.len()].copy_from_slice(word);
            add(u64::from_le_bytes(octets));
        }
        self.digest = digest;
    }
}
