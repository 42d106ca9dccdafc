//! Participants over a transport that the application provides: the example of
//! `docs/guide/write-a-transport.md`.

use crate::support::*;
use takt::qos::*;
use takt::*;

#[path = "../../../../../transport/takt-transport/examples/queue_transport.rs"]
#[expect(dead_code, reason = "a test calls no main")]
mod queue_transport;

use queue_transport::{Hub, QueueTransport};

#[test]
fn samples_go_through_a_transport_of_the_application() {
    for runtime in RUNTIMES {
        let hub = Hub::default();
        let [publisher, subscriber] = [0, 1].map(|_| {
            let transport = Box::new(QueueTransport::open(&hub));
            DomainParticipant::builder(0).runtime(runtime).transport(transport).build().expect("participant")
        });
        let (writer, reader) = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let pair = Pair::<Blob>::between(publisher, subscriber, writer, reader);
        pair.exchange(100, 100);
        pair.exchange(10, 20_000);
        let stats = pair.publisher.diagnostics().transport_stats().expect("open");
        assert_eq!(stats.iter().map(|traffic| traffic.name).collect::<Vec<_>>(), ["queue"]);
        assert!(stats[0].stats.datagrams_out > 200, "20,000 octets are 15 fragments");
    }
}
