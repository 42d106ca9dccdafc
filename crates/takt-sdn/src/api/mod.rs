//! State, what-if decisions and registrations of a controller over HTTP: control socket, REST, metrics, web page.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | requests and responses, with their limits |
//! | [`token`] | the bearer token |
//! | [`questions`] | what the thread of the controller is asked |
//! | [`what_if`] | what would be decided of a pair |
//! | [`registrations`] | pairs that callers register, renew and remove |
//! | [`metrics`] | the text format of Prometheus |
//! | [`service`] | the routes, and who may use them |
//! | [`server`] | listeners, and a thread for each connection |
//! | [`control`] | the control socket: where it is, and the client's half |
//!
//! The API changes registrations alone, for the control socket and for callers with a token for writing. Each connection has one request and a thread of its own, [`server::CONNECTIONS_MAX`] at once. The
//! thread of the controller copies its state, at most once in [`questions::VIEW_INTERVAL`]; everything else happens in the threads
//! of the API.

pub mod control;
pub mod http;
pub mod metrics;
pub mod questions;
mod registrations;
pub mod server;
pub mod service;
pub mod token;
pub mod what_if;

use std::sync::atomic::{AtomicU64, Ordering};

/// What the API counted.
#[derive(Debug, Default)]
pub struct ApiCounters {
    /// Requests that were read.
    pub requests: AtomicU64,
    /// Requests without the token.
    pub unauthorized: AtomicU64,
    /// Registrations without a token for writing.
    pub forbidden: AtomicU64,
    /// Registrations that were refused with an error.
    pub rejected: AtomicU64,
    /// Requests that are no HTTP, too long, or too slow.
    pub malformed: AtomicU64,
    /// Connections beyond the limit, which were closed.
    pub overloaded: AtomicU64,
    /// Responses that were not taken.
    pub cut_off: AtomicU64,
}

impl ApiCounters {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Names, meanings and values.
    pub fn values(&self) -> [(&'static str, &'static str, u64); 7] {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("requests", "Requests that were read.", value(&self.requests)),
            ("unauthorized", "Requests without the token, which were refused.", value(&self.unauthorized)),
            ("malformed", "Requests that are no HTTP, too long, or too slow.", value(&self.malformed)),
            ("overloaded", "Connections beyond the limit, which were closed.", value(&self.overloaded)),
            ("cut_off", "Responses that were not taken in time.", value(&self.cut_off)),
            ("forbidden", "Registrations without a token for writing, which were refused.", value(&self.forbidden)),
            ("rejected", "Registrations that were refused with an error.", value(&self.rejected)),
        ]
    }
}
