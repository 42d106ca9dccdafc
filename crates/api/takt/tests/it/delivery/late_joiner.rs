//! Durability: samples that a late joiner receives (DDS 1.4 §2.2.3.4).

use crate::support::*;
use takt::qos::*;

fn durable(durability: Durability) -> (DataWriterQos, DataReaderQos) {
    (
        DataWriterQos { durability, ..reliable_writer(History::KeepAll) },
        DataReaderQos { durability, ..reliable_reader(History::KeepAll) },
    )
}

#[test]
fn transient_local_reader_receives_the_history() {
    for runtime in RUNTIMES {
        let (writer, reader) = durable(Durability::TransientLocal);
        let pair = Pair::<Shape>::new(runtime, writer, reader.clone());
        for x in 0..20 {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
        }
        pair.take(20);
        let late = create_reader::<Shape>(&pair.subscriber, "Topic", reader);
        let mut received = Vec::new();
        pair.wait_until("history", || {
            received.extend(late.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data));
            received.len() >= 20
        });
        assert_eq!(received, (0..20).map(|x| Shape::new("RED", x)).collect::<Vec<_>>(), "{runtime:?}");
        pair.writer.write(&Shape::new("RED", 20)).expect("room");
        assert_eq!(pair.take(1)[0].data, Some(Shape::new("RED", 20)));
    }
}

#[test]
fn late_reader_receives_the_last_samples_of_each_instance() {
    for runtime in RUNTIMES {
        let (writer, reader) = durable(Durability::TransientLocal);
        let writer = DataWriterQos { history: History::KeepLast(2), ..writer };
        let domain = domain();
        let publisher = on_loopback(domain, runtime).build().expect("participant");
        let writer = create_writer::<Shape>(&publisher, "Topic", writer);
        for x in 0..10 {
            writer.write(&Shape::new("RED", x)).expect("room");
            writer.write(&Shape::new("BLUE", x)).expect("room");
        }
        let subscriber = on_loopback(domain, runtime).build().expect("participant");
        let late = create_reader::<Shape>(&subscriber, "Topic", reader);
        let mut received = Vec::new();
        wait_until(&[&publisher, &subscriber], "history", || {
            received.extend(late.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data));
            received.len() >= 4
        });
        let expected = [("RED", 8), ("BLUE", 8), ("RED", 9), ("BLUE", 9)].map(|(color, x)| Shape::new(color, x));
        assert_eq!(received, expected, "{runtime:?}");
    }
}

#[test]
fn volatile_reader_receives_only_samples_written_after_the_match() {
    for runtime in RUNTIMES {
        let (writer, reader) = durable(Durability::Volatile);
        let pair = Pair::<Shape>::new(runtime, writer, reader.clone());
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.take(1);
        let late = create_reader::<Shape>(&pair.subscriber, "Topic", reader);
        pair.wait_until("match", || pair.writer.matched_subscriptions().expect("open").len() == 2);
        pair.writer.write(&Shape::new("RED", 2)).expect("room");
        let mut received = Vec::new();
        pair.wait_until("sample", || {
            received.extend(late.take(usize::MAX).expect("open"));
            !received.is_empty()
        });
        assert_eq!(received[0].data, Some(Shape::new("RED", 2)), "{runtime:?}");
    }
}
