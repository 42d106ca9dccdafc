//! Participants of a world that are not among its processes: the hostile one and the recorded one.
//! A world has at most one of them. Its address is that of a process with an index after all
//! others.

use super::World;
use super::events::Event;
use crate::clock::Nanos;
use crate::hostile;
use crate::network::{Frame, Head};
use crate::process::Moment;

impl World<'_> {
    /// Returns the host of the hostile or the recorded participant.
    pub(super) fn external_participant_host(&self) -> Option<usize> {
        let recorded = self.scenario.services.recorded.map(|plan| plan.host);
        self.scenario.hostile.map(|plan| plan.host).or(recorded)
    }

    /// Makes the recorded participant send the datagrams that are due.
    pub(super) fn replay(&mut self) {
        let Some(recorded) = self.recorded.as_mut() else { return };
        recorded.timer = Nanos::MAX;
        recorded.send_due(self.now);
        self.send_recorded();
    }

    /// Sends the pending datagrams of the recorded participant.
    pub(super) fn send_recorded(&mut self) {
        let Some(recorded) = self.recorded.as_mut() else { return };
        let from = recorded.plan.host;
        for (source, to, bytes) in recorded.take_datagrams() {
            let head = Head { source, from, to, host: None, priority: 0, bytes, hostile: false };
            self.send(self.processes.len(), head);
        }
        self.schedule_steps();
        self.schedule_recorded();
    }

    /// Schedules the next call of the recorded participant.
    pub(super) fn schedule_recorded(&mut self) {
        let Some(recorded) = self.recorded.as_mut() else { return };
        if let Some(due) = recorded.due().filter(|due| *due < recorded.timer) {
            recorded.timer = due;
            self.at(due.max(self.now), Event::Replay);
        }
    }

    /// Checks the partners after the session of the recorded participant, or after its end if
    /// `is_over`.
    pub(super) fn replay_ends(&mut self, is_over: bool) {
        let Some(recorded) = &self.recorded else { return };
        for process in &mut self.processes {
            let moment = Moment { now: self.now, clock: &self.clocks[process.host] };
            match is_over {
                false => process.check_session(recorded.recording(), moment, &mut self.checker),
                true => process.check_end(moment, &mut self.checker),
            }
        }
    }

    /// Passes a frame to the hostile host or the recorded participant, which may reply.
    pub(super) fn deliver_to_external(&mut self, frame: &Frame) {
        if let Some(recorded) = self.recorded.as_mut() {
            recorded.receive(self.now, frame);
            return self.send_recorded();
        }
        if let Some(hostile) = self.hostile.as_mut().filter(|_| !frame.hostile) {
            hostile.receive(frame);
            self.send_hostile();
        }
    }

    /// Makes the hostile host send a burst. It stops when applications do, and earlier in a world
    /// of several hours.
    pub(super) fn send_hostile_burst(&mut self) {
        let Some(hostile) = self.hostile.as_mut().filter(|_| !self.is_draining) else { return };
        if self.now > hostile.plan.start + hostile::BURSTS_FOR {
            return;
        }
        hostile.send_burst();
        let next = self.now + hostile.plan.period;
        self.send_hostile();
        self.at(next, Event::Attack);
    }

    /// Returns the octets received from the hostile host and those sent to its victim.
    pub(super) fn hostile_octets(&self) -> (u64, u64) {
        let octets = self.processes.iter().map(|process| process.meter.hostile_octets());
        octets.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    pub(super) fn send_hostile(&mut self) {
        let Some(hostile) = self.hostile.as_mut().filter(|_| !self.is_draining) else { return };
        let from = hostile.plan.host;
        let datagrams = hostile.take_datagrams();
        for (source, to, bytes) in datagrams {
            let head = Head { source, from, to, host: None, priority: 0, bytes, hostile: true };
            self.send(self.processes.len(), head);
        }
        self.schedule_steps();
    }
}
