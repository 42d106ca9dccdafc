//! The answering side: every `Ping` goes back as a `Pong` with the payload unchanged.

use super::{STEP, lock};
use crate::error::Result;
use crate::link::Link;
use crate::payload::Blob;
use crate::signal::stopped;
use std::sync::{Arc, Mutex};

/// Answers given and answers refused by the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Samples written back.
    pub echoed: u64,
    /// Samples that the link had no room for.
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

/// Answers until `is_over` says so; it is asked about ten times a second, and after every answer.
///
/// # Errors
/// The middleware failed.
pub fn run(link: &mut dyn Link, listen: bool, is_over: &mut dyn FnMut(&Outcome) -> bool) -> Result<Outcome> {
    let state = Arc::new(Mutex::new((Outcome::default(), None)));
    let listening = listen && {
        let state = Arc::clone(&state);
        link.listen(Box::new(move |ping, write| {
            let mut state = lock(&state);
            match write(ping) {
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
            let accepted = link.write(&ping)?;
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
