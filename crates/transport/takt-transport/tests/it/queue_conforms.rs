//! Conformance of the example transport.

use std::collections::BTreeMap;
use std::sync::Mutex;

#[path = "../../examples/queue_transport.rs"]
#[expect(dead_code, reason = "a test calls no main")]
mod queue_transport;

use queue_transport::{Hub, QueueTransport};

static HUBS: Mutex<BTreeMap<u32, Hub>> = Mutex::new(BTreeMap::new());

takt_transport::conformance_tests!(|realm: u32| {
    QueueTransport::open(HUBS.lock().expect("no panic").entry(realm).or_default())
});
