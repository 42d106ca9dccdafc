//! Participants over a transport that the application provides: the example of
//! `docs/guide/write-a-transport.md`.

use crate::support::*;
use takt::qos::*;
use takt::transport::{Capabilities, Commit, Layer, MESSAGE_LEN_MIN, Payload, Transport, TransportError};
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

/// A transport with datagrams of at most so many octets.
struct Short(QueueTransport, usize);

impl Layer for Short {
    type Inner = QueueTransport;

    fn inner(&self) -> &QueueTransport {
        &self.0
    }

    fn inner_mut(&mut self) -> &mut QueueTransport {
        &mut self.0
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { max_message_len: self.1, ..self.0.capabilities() }
    }

    fn loan(&mut self) -> std::result::Result<&mut [u8], TransportError> {
        Ok(&mut self.0.loan()?[..self.1])
    }

    fn commit(&mut self, datagram: Commit<'_>) -> std::result::Result<(), TransportError> {
        let more = if let Payload::Gathered(more) = datagram.payload { more.len() } else { 0 };
        assert!(datagram.len + more <= self.1, "{} and {more} octets", datagram.len);
        self.0.commit(datagram)
    }
}

#[test]
fn fragments_fit_into_the_shortest_datagrams_and_shorter_ones_are_refused() {
    let hub = Hub::default();
    let open = |len_max| {
        let transport = Box::new(Short(QueueTransport::open(&hub), len_max));
        DomainParticipant::builder(0).transport(transport).build()
    };
    let [publisher, subscriber] = [0, 1].map(|_| open(MESSAGE_LEN_MIN).expect("participant"));
    let (writer, reader) = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    Pair::<Blob>::between(publisher, subscriber, writer, reader).exchange(10, 20_000);
    let error = open(MESSAGE_LEN_MIN - 1).map(drop).expect_err("too short");
    assert_eq!(error.to_string(), "bad parameter: transport \"queue\" sends at most 547 octets: 548 are required");
}
