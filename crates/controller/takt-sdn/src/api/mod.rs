//! HTTP API of the controller: state, what-if decisions and registrations, by control socket, REST,
//! metrics and web page.
//!
//! | module | contents |
//! |---|---|
//! | [`http`] | requests and responses, with their limits |
//! | [`token`] | the bearer token |
//! | [`controller_client`] | requests of the API to the controller's thread |
//! | [`what_if`] | trial decisions on a pair |
//! | [`registrations`] | pairs that clients register, renew and remove |
//! | [`metrics`] | the Prometheus text format |
//! | [`service`] | the routes and their access control |
//! | [`server`] | listeners, and a thread per connection |
//! | [`control`] | the control socket and its client |
//!
//! The API changes only registrations, for the control socket and for clients with a write token.
//! Each connection has one request and a thread of its own; at most [`server::CONNECTIONS_MAX`] are
//! open at once. The controller's thread copies its state at most once per
//! [`controller_client::VIEW_INTERVAL`]; all other work is done in the threads of the API.

pub mod control;
pub mod controller_client;
pub mod http;
pub mod metrics;
mod registrations;
pub mod server;
pub mod service;
pub mod token;
pub mod what_if;

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the API.
#[derive(Debug, Default)]
pub struct ApiCounters {
    /// Number of requests that were read.
    pub requests: AtomicU64,
    /// Number of requests without a valid token.
    pub unauthorized: AtomicU64,
    /// Number of registrations without a write token.
    pub forbidden: AtomicU64,
    /// Number of registrations that were refused with an error.
    pub rejected: AtomicU64,
    /// Number of requests that were not HTTP, too long, or too slow.
    pub malformed: AtomicU64,
    /// Number of connections that were closed because the limit was reached.
    pub overloaded: AtomicU64,
    /// Number of responses that the client did not receive completely.
    pub cut_off: AtomicU64,
}

impl ApiCounters {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns names, meanings and values of all counters.
    pub fn values(&self) -> [(&'static str, &'static str, u64); 7] {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("requests", "Requests received.", value(&self.requests)),
            ("unauthorized", "Requests refused for lack of the token.", value(&self.unauthorized)),
            ("malformed", "Requests that are not HTTP, too long, or too slow.", value(&self.malformed)),
            ("overloaded", "Connections closed because of the limit.", value(&self.overloaded)),
            ("cut_off", "Responses that the client did not read in time.", value(&self.cut_off)),
            ("forbidden", "Registrations refused for lack of a write token.", value(&self.forbidden)),
            ("rejected", "Registrations refused with an error.", value(&self.rejected)),
        ]
    }
}
