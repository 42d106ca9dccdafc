//! Data representations: writers encode in an offered one, readers decode any that arrives.

use crate::support::*;
use takt::qos::*;
use takt::*;

#[test]
fn both_representations_arrive_at_one_reader() {
    for runtime in RUNTIMES {
        let xcdr1 = reliable_writer(History::KeepAll);
        let pair = Pair::<Shape>::new(runtime, xcdr1.clone(), reliable_reader(History::KeepAll));
        let xcdr2 = DataWriterQos { data_representation: DataRepresentation::xcdr2(), ..xcdr1 };
        let second = create_writer::<Shape>(&pair.publisher, "Topic", xcdr2);
        pair.wait_until("match", || pair.reader.matched_publications().expect("open").len() == 2);
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        let first = pair.take(1).remove(0);
        second.write(&Shape::new("RED", 2)).expect("room");
        let mut identifier = 0;
        pair.wait_until("second sample", || {
            let visited =
                pair.reader.take_payloads(1, |payload, _| identifier = u16::from_be_bytes([payload[0], payload[1]]));
            visited.expect("open") == 1
        });
        assert_eq!(identifier, 0x0009, "delimited XCDR2, little endian");
        second.write(&Shape::new("RED", 3)).expect("room");
        let third = pair.take(1).remove(0);
        assert_eq!((first.data, third.data), (Some(Shape::new("RED", 1)), Some(Shape::new("RED", 3))));
        assert_eq!(first.info.instance_handle, third.info.instance_handle, "one key, one instance");
    }
}

#[test]
fn writer_must_offer_a_binary_representation() {
    let participant = on_loopback(domain(), Runtime::Shared).build().expect("participant");
    let topic = participant.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let publisher = participant.create_publisher(PublisherQos::default()).expect("publisher");
    let xml = DataRepresentation(vec![DataRepresentation::XML]);
    let result = publisher.create_datawriter(&topic, DataWriterQos { data_representation: xml, ..Default::default() });
    assert!(matches!(result, Err(Error::Unsupported { .. })), "{result:?}");
}

/// `Blob` with shorter data. The default type consistency of readers ignores such bounds.
#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Blob")]
struct SmallBlob {
    number: u32,
    #[dds(bound = 4)]
    bytes: Vec<u8>,
}

#[test]
fn invalid_payloads_are_counted_and_dropped() {
    for runtime in RUNTIMES {
        let domain = domain();
        let publisher = on_loopback(domain, runtime).build().expect("participant");
        let subscriber = on_loopback(domain, runtime).build().expect("participant");
        let larger = create_writer::<Blob>(&publisher, "Topic", reliable_writer(History::KeepAll));
        let pair = Pair::<SmallBlob>::between(
            publisher,
            subscriber,
            reliable_writer(History::KeepAll),
            reliable_reader(History::KeepAll),
        );
        pair.wait_until("match", || {
            let is_known = !larger.matched_subscriptions().expect("open").is_empty();
            is_known && pair.reader.matched_publications().expect("open").len() == 2
        });
        larger.write(&Blob::new(1, 5)).expect("room");
        pair.wait_until("failure", || {
            assert_eq!(pair.reader.take(1).expect("no error to the application"), []);
            pair.reader.deserialize_failures() == 1
        });
        let fits = SmallBlob { number: 2, bytes: vec![1, 2, 3, 4] };
        pair.writer.write(&fits).expect("room");
        assert_eq!(pair.take(1)[0].data, Some(fits), "{runtime:?}");
    }
}
