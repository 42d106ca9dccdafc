//! Blocking receive: `recv_timeout` and the iterator.

use crate::support::*;
use takt::qos::*;
use takt::*;
use takt_testkit::waiting::{OnDrop, until};

const SHORT: std::time::Duration = std::time::Duration::from_millis(20);
const LONG: takt::Duration = takt::Duration::from_secs(60);

#[test]
fn recv_timeout_takes_the_oldest_sample_or_times_out() {
    for runtime in RUNTIMES {
        let qos = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let pair = Pair::<Blob>::new(runtime, qos.0, qos.1);
        assert!(matches!(pair.reader.recv_timeout(SHORT), Err(Error::Timeout { .. })), "{runtime:?}");
        for number in 0..3 {
            pair.writer.write(&Blob::new(number, 8)).expect("room");
        }
        for number in 0..3 {
            let sample = pair.reader.recv_timeout(LONG).expect("a sample");
            assert_eq!(sample.data, Some(Blob::new(number, 8)), "{runtime:?}");
        }
        assert!(matches!(pair.reader.recv_timeout(SHORT), Err(Error::Timeout { .. })), "{runtime:?}");
    }
}

#[test]
fn recv_timeout_returns_when_a_sample_arrives() {
    let pair = Pair::<Blob>::new(Runtime::Shared, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pair.reader.recv_timeout(LONG));
        pair.writer.write(&Blob::new(1, 8)).expect("room");
        assert_eq!(waiting.join().expect("no panic").expect("a sample").data, Some(Blob::new(1, 8)));
    });
}

#[test]
fn iterator_yields_each_sample_and_ends_with_the_reader() {
    let pair = Pair::<Blob>::new(Runtime::Shared, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut numbers = Vec::new();
            for sample in &pair.reader {
                let number = sample.expect("open").data.expect("data").number;
                numbers.push(number);
                if number == 99 {
                    pair.reader.close().expect("open");
                }
            }
            numbers
        });
        // The thread closes the reader after the last sample. If samples are missing, closing the
        // reader ends it.
        let _ending = OnDrop(|| drop(pair.reader.close()));
        for number in 0..100 {
            pair.writer.write(&Blob::new(number, 8)).expect("room");
        }
        until("all samples are received", || receiving.is_finished());
        assert_eq!(receiving.join().expect("no panic"), (0..100).collect::<Vec<_>>());
    });
    assert!(pair.reader.iter().next().is_none(), "closed");
}

#[test]
fn dds_type_bound_accepts_derived_types() {
    fn type_name<T: DdsType>() -> &'static str {
        T::TYPE_NAME
    }
    assert_eq!(type_name::<Blob>(), "Blob");
}
