//! Minimum separation and maximum length of a writer's samples, as its contract states
//! (`takt_wire::qos::Contract`).

use super::{Write, Writer};
use crate::cache::ChangeKind;
use crate::context::Context;
use crate::error::{Error, WriteError};
use crate::event::Event;
use crate::time::Instant;
use crate::timer::TimerId;
use alloc::format;
use core::time::Duration;
use takt_wire::qos::{Contract, DataWriterQos, EarlyWrite};

#[derive(Debug)]
pub(super) struct Pace {
    contract: Contract,
    separation: Duration,
    /// Earliest time of the next sample.
    next: Instant,
    timer: TimerId,
}

impl Pace {
    pub(super) fn new(qos: &DataWriterQos, timer: TimerId) -> Self {
        let mut pace = Self { contract: Contract::default(), separation: Duration::ZERO, next: Instant(0), timer };
        pace.adopt(qos);
        pace
    }

    pub(super) fn adopt(&mut self, qos: &DataWriterQos) {
        self.contract = Contract::of(&qos.user_data, &qos.property);
        let separation = self.contract.minimum_separation.unwrap_or(takt_wire::Duration::ZERO);
        self.separation = Duration::from_nanos(separation.as_nanos().unwrap_or(u64::MAX));
    }

    pub(super) fn close(&self, ctx: &mut Context) {
        ctx.timers.release(self.timer);
    }

    /// Checks a change against the contract. A change that comes early finds no room until its
    /// time, or is refused. Dispose and unregister are not samples.
    pub(super) fn check_contract(&mut self, now: Instant, ctx: &mut Context, write: &Write) -> Result<(), WriteError> {
        if write.kind != ChangeKind::Alive {
            return Ok(());
        }
        let Self { contract, next, timer, .. } = self;
        if let Some(max) = contract.max_sample_bytes.filter(|max| write.payload_len > *max as usize) {
            return Err(Error::OutOfResources { limit: "rt.max_bytes", value: u64::from(max) }.into());
        }
        if now >= *next {
            return Ok(());
        }
        if contract.early_write == EarlyWrite::Refuse {
            let remaining = next.since(now);
            let what = format!("rt.min_sep_ns of the writer allows the next sample in {remaining:?}");
            return Err(Error::PreconditionNotMet { what }.into());
        }
        ctx.timers.arm(*timer, *next);
        Err(WriteError::WouldBlock)
    }

    /// Starts the separation after a written sample.
    pub(super) fn begin_separation(&mut self, now: Instant, write: &Write) {
        if write.kind == ChangeKind::Alive && self.separation > Duration::ZERO {
            self.next = now.after(self.separation);
        }
    }
}

impl Writer {
    /// Handles the timer: the separation that a `write` waits for has elapsed.
    pub(crate) fn handle_pace(&mut self, ctx: &mut Context) {
        ctx.notify(Event::WriterSpace(self.handle));
    }
}
