//! Samples from a writer to a reader, under both runtimes.

use crate::support::*;
use takt::qos::*;
use takt::*;

#[test]
fn reliable_samples_arrive_complete_and_in_order() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        for x in 0..100 {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
        }
        let samples = pair.take(100);
        for (x, sample) in (0..).zip(&samples) {
            assert_eq!(sample.data, Some(Shape::new("RED", x)), "{runtime:?}");
            assert!(sample.info.valid_data);
            assert_eq!(sample.info.publication, pair.writer.guid());
            assert_eq!(sample.info.instance_state, InstanceState::Alive);
        }
    }
}

#[test]
fn best_effort_samples_arrive_on_an_idle_loopback() {
    for runtime in RUNTIMES {
        let writer = DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() };
        let pair = Pair::<Shape>::new(runtime, writer, DataReaderQos::default());
        for x in 0..10 {
            pair.writer.write(&Shape::new("BLUE", x)).expect("best effort never waits");
            assert_eq!(pair.take(1)[0].data, Some(Shape::new("BLUE", x)), "{runtime:?}");
        }
    }
}
