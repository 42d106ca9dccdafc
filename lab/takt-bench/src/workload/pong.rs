//! Round-trip workload, answering side: every `Ping` is returned as a `Pong` with the same payload,
//! or with only its sequence number.

use super::{STEP, lock};
use crate::error::Result;
use crate::link::Link;
use crate::payload::{Blob, SEQUENCE_LEN};
use crate::signal::stopped;
use std::sync::{Arc, Mutex};

/// Numbers of answers sent and of answers refused by the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of samples written back.
    pub echoed: u64,
    /// Number of samples that the link had no room for.
    pub refused: u64,
}

impl Outcome {
    fn count(&mut self, accepted: bool) {
        if accepted {
            self.echoed += 1;
        } else {
            self.refused += 1;
        }
    }
}

/// Answers until `is_over` returns true. It is called about ten times a second, and after every
/// answer. A short reply is a payload of [`SEQUENCE_LEN`] octets.
///
/// # Errors
/// The middleware failed.
pub fn run(
    link: &mut dyn Link,
    listen: bool,
    short_reply: bool,
    is_over: &mut dyn FnMut(&Outcome) -> bool,
) -> Result<Outcome> {
    let mut short = Blob::filled(SEQUENCE_LEN);
    let mut answer = move |ping: &Blob, write: &mut dyn FnMut(&Blob) -> Result<bool>| {
        if !short_reply {
            return write(ping);
        }
        short.mark(ping.marks().map_or(0, |(sequence, _)| sequence), 0);
        write(&short)
    };
    let state = Arc::new(Mutex::new((Outcome::default(), None)));
    let listening = listen && {
        let state = Arc::clone(&state);
        let mut answer = answer.clone();
        link.listen(Box::new(move |ping, write| {
            let mut state = lock(&state);
            match answer(ping, write) {
                Ok(accepted) => state.0.count(accepted),
                Err(error) => state.1 = Some(error),
            }
        }))?
    };
    let mut ping = Blob::default();
    loop {
        if listening {
            link.drive(STEP)?;
        } else if link.receive(&mut ping, STEP)? {
            let accepted = answer(&ping, &mut |pong| link.write(pong))?;
            lock(&state).0.count(accepted);
        }
        let mut state = lock(&state);
        if let Some(error) = state.1.take() {
            return Err(error);
        }
        if stopped() || is_over(&state.0) {
            return Ok(state.0);
        }
    }
}
