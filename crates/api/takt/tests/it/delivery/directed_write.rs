//! Directed writes: samples for selected readers only (RTPS 2.5 §8.7.7).

use crate::support::*;
use takt::qos::*;
use takt::*;

#[test]
fn directed_sample_reaches_only_its_reader() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let other = create_reader::<Shape>(&pair.subscriber, "Topic", reliable_reader(History::KeepAll));
        pair.wait_until("match", || pair.writer.matched_subscriptions().expect("open").len() == 2);
        pair.writer.write_to(&Shape::new("RED", 1), &[pair.reader.guid()]).expect("room");
        pair.writer.write_to(&Shape::new("RED", 2), &[other.guid()]).expect("room");
        pair.writer.write(&Shape::new("RED", 3)).expect("room");
        let mut others = Vec::new();
        pair.wait_until("the other reader's samples", || {
            others.extend(other.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data));
            others.len() >= 2
        });
        assert_eq!(others, [Shape::new("RED", 2), Shape::new("RED", 3)], "{runtime:?}");
        let own: Vec<_> = pair.take(2).into_iter().filter_map(|sample| sample.data).collect();
        assert_eq!(own, [Shape::new("RED", 1), Shape::new("RED", 3)], "{runtime:?}");
        pair.wait_until("acknowledgment", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
    }
}

#[test]
fn directed_write_requires_a_reader() {
    let pair = Pair::<Shape>::new(Runtime::Shared, reliable_writer(History::KeepAll), DataReaderQos::default());
    let result = pair.writer.write_to(&Shape::new("RED", 1), &[]);
    assert!(matches!(result, Err(Error::BadParameter { .. })), "{result:?}");
}
