//! Policies that decide which samples an application sees, and when: LIFESPAN (DDS 1.4 §2.2.3.16).

use crate::support::*;
use takt::qos::*;
use takt::*;

const MILLIS_100: takt::Duration = takt::Duration::from_millis(100);

fn numbers(samples: Vec<Sample<Shape>>) -> Vec<i32> {
    samples.into_iter().filter_map(|sample| sample.data).map(|shape| shape.x).collect()
}

#[test]
fn a_sample_vanishes_when_its_lifespan_is_over() {
    for runtime in RUNTIMES {
        let lifespan = Lifespan { duration: MILLIS_100 };
        let writer =
            DataWriterQos { lifespan, durability: Durability::TransientLocal, ..reliable_writer(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, writer, reliable_reader(History::KeepAll));
        // Where time is short one may expire before it is seen.
        let write_until = |what: &str, number: i32, reader: &DataReader<Shape>| {
            let mut seen = Vec::new();
            pair.wait_until(what, || {
                pair.writer.write(&Shape::new("RED", number)).expect("room");
                seen.extend(numbers(reader.read(usize::MAX).expect("open")));
                !seen.is_empty()
            });
            seen
        };
        write_until("the first sample", 1, &pair.reader);
        pair.wait_until("the end of its life", || pair.reader.read(usize::MAX).expect("open").is_empty());
        assert_eq!(pair.reader.take(10).expect("open"), []);
        assert_eq!(pair.reader.sample_lost_status().expect("open").total_count, 0);
        let late = DataReaderQos { durability: Durability::TransientLocal, ..reliable_reader(History::KeepAll) };
        let late = create_reader::<Shape>(&pair.subscriber, "Topic", late);
        pair.wait_until("the late joiner", || late.matched_publications().expect("open").len() == 1);
        let seen = write_until("the last sample", 2, &late);
        assert!(!seen.contains(&1), "{runtime:?}: {seen:?}");
    }
}
