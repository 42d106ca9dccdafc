//! Participants in a world that are none of its processes: the hostile one, and the recorded one. A world has one of them at most,
//! whose address is that of a process behind all others.

use super::{Event, World};
use crate::clock::Nanos;
use crate::hostile;
use crate::network::{Frame, Head};
use crate::process::Moment;

impl World<'_> {
    /// The host of a participant that is none of ours: the hostile one, or the recorded one.
    pub(super) fn outsider(&self) -> Option<usize> {
        let recorded = self.scenario.services.recorded.map(|plan| plan.host);
        self.scenario.hostile.map(|plan| plan.host).or(recorded)
    }

    /// The recorded participant sends what is due.
    pub(super) fn replay(&mut self) {
        let Some(recorded) = self.recorded.as_mut() else { return };
        recorded.timer = Nanos::MAX;
        recorded.act(self.now);
        self.send_recorded();
    }

    /// Sends what the recorded participant says.
    pub(super) fn send_recorded(&mut self) {
        let Some(recorded) = self.recorded.as_mut() else { return };
        let from = recorded.plan.host;
        for (source, to, bytes) in recorded.take_shots() {
            let head = Head { source, from, to, host: None, priority: 0, bytes, hostile: false };
            self.send(self.processes.len(), head);
        }
        self.schedule_steps();
        self.call_recorded();
    }

    /// Calls the recorded participant when it has something to do.
    pub(super) fn call_recorded(&mut self) {
        let Some(recorded) = self.recorded.as_mut() else { return };
        if let Some(due) = recorded.due().filter(|due| *due < recorded.timer) {
            recorded.timer = due;
            self.at(due.max(self.now), Event::Replay);
        }
    }

    /// The session of the recorded participant is over, or so is its farewell.
    pub(super) fn replay_ends(&mut self, is_over: bool) {
        let Some(recorded) = &self.recorded else { return };
        for process in &mut self.processes {
            let moment = Moment { now: self.now, clock: &self.clocks[process.host] };
            match is_over {
                false => process.must_know(recorded.recording(), moment, &mut self.checker),
                true => process.must_have_parted(moment, &mut self.checker),
            }
        }
    }

    /// The hostile host, or the recorded participant, hears something, which it may answer.
    pub(super) fn overhear(&mut self, frame: &Frame) {
        if let Some(recorded) = self.recorded.as_mut() {
            recorded.hear(self.now, frame);
            return self.send_recorded();
        }
        if let Some(hostile) = self.hostile.as_mut().filter(|_| !frame.hostile) {
            hostile.hear(frame);
            self.shoot();
        }
    }

    /// The hostile host sends a burst. It ends when applications do, and in a world that lasts for hours before.
    pub(super) fn harm(&mut self) {
        let Some(hostile) = self.hostile.as_mut().filter(|_| !self.resting) else { return };
        if self.now > hostile.plan.start + hostile::BURSTS_FOR {
            return;
        }
        hostile.act();
        let next = self.now + hostile.plan.period;
        self.shoot();
        self.at(next, Event::Harm);
    }

    /// Octets that came from the hostile host, and that left for its victim.
    pub(super) fn harm_done(&self) -> (u64, u64) {
        let harm = self.processes.iter().map(|process| process.meter.harm());
        harm.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    pub(super) fn shoot(&mut self) {
        let Some(hostile) = self.hostile.as_mut().filter(|_| !self.resting) else { return };
        let from = hostile.plan.host;
        let shots = hostile.take_shots();
        for (source, to, bytes) in shots {
            let head = Head { source, from, to, host: None, priority: 0, bytes, hostile: true };
            self.send(self.processes.len(), head);
        }
        self.schedule_steps();
    }
}
