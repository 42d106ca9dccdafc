//! Endpoints with ports of their own, by which the network distinguishes topics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::support::*;
use takt::qos::*;
use takt::transport::{TraceEvent, Tracer};
use takt::*;

/// Number of datagrams by source port and destination port.
type Ports = Arc<Mutex<BTreeMap<(u32, u32), usize>>>;

/// Creates a participant that records the ports of received datagrams.
fn observed(domain: u32, ports: &Ports) -> DomainParticipant {
    let ports = Arc::clone(ports);
    let observe = move |event: TraceEvent<'_>| {
        if let TraceEvent::Received { meta, .. } = event {
            *ports.lock().expect("no panic").entry((meta.source.port, meta.local.port)).or_default() += 1;
        }
    };
    let builder = on_loopback(domain, Runtime::Inline);
    builder.wrap_transport(|udp| Box::new(Tracer::new(udp, observe))).build().expect("participant")
}

#[test]
fn endpoints_with_own_ports_exchange_data_on_these_ports_only() {
    let domain = domain();
    let ports = Ports::default();
    let publisher = on_loopback(domain, Runtime::Inline).shared_memory(false).build().expect("participant");
    let subscriber = observed(domain, &ports);
    let topic = publisher.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let writers = publisher.create_publisher(PublisherQos::default()).expect("publisher");
    let qos = reliable_writer(History::KeepAll);
    let writer = writers.create_datawriter_with_flow(&topic, qos.clone(), Flow::OWN_PORT).expect("writer");
    let other = writers.create_datawriter(&topic, qos).expect("writer");
    let topic = subscriber.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let readers = subscriber.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let qos = reliable_reader(History::KeepAll);
    let reader = readers.create_datareader_with_flow(&topic, qos, Flow::OWN_PORT).expect("reader");
    let both = [&publisher, &subscriber];
    wait_until(&both, "match", || {
        writer.matched_subscriptions().expect("open").len() == 1
            && other.matched_subscriptions().expect("open").len() == 1
            && reader.matched_publications().expect("open").len() == 2
    });
    let announced = |guid: Guid| {
        let all = subscriber.discovered_publications().expect("open");
        let ports: Vec<_> = all.iter().filter(|data| data.guid == guid).flat_map(|data| &data.unicast).collect();
        ports.iter().map(|locator| locator.port).collect::<Vec<_>>()
    };
    let own_port = announced(writer.guid());
    assert_eq!(own_port.len(), 1, "one address on loopback");
    assert!(announced(other.guid()).is_empty(), "the participant's");
    let reader_port = publisher.discovered_subscriptions().expect("open")[0].unicast[0].port;

    ports.lock().expect("no panic").clear();
    for x in 0..10 {
        writer.write(&Shape::new("RED", x)).expect("room");
    }
    let mut count = 0;
    wait_until(&both, "samples", || {
        count += reader.take(usize::MAX).expect("open").len();
        count == 10
    });
    let flow = (own_port[0], reader_port);
    let seen = ports.lock().expect("no panic").clone();
    wait_until(&both, "acknowledgment", || writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
    assert!(seen.get(&flow).is_some_and(|datagrams| *datagrams > 0), "{flow:?} not in {seen:?}");

    ports.lock().expect("no panic").clear();
    other.write(&Shape::new("BLUE", 1)).expect("room");
    wait_until(&both, "the other writer's sample", || !reader.take(1).expect("open").is_empty());
    let seen = ports.lock().expect("no panic").clone();
    assert!(!seen.contains_key(&flow), "the other writer must not use it: {seen:?}");
}

#[test]
fn flow_of_a_writer_is_closed_with_the_writer() {
    let pair = Pair::<Shape>::new(Runtime::Shared, reliable_writer(History::KeepAll), DataReaderQos::default());
    let topic = pair.publisher.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let publisher = pair.publisher.create_publisher(PublisherQos::default()).expect("publisher");
    for _ in 0..100 {
        let qos = DataWriterQos { transport_priority: TransportPriority(40), ..reliable_writer(History::KeepAll) };
        let writer = publisher.create_datawriter_with_flow(&topic, qos, Flow::OWN_PORT).expect("descriptors");
        writer.write(&Shape::new("RED", 1)).expect("room");
    }
    assert_eq!(pair.publisher.diagnostics().driver_counters().expect("open"), DriverCounters::default());
}
