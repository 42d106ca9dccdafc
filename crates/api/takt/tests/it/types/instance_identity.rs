//! Instance identity: writers with different representations share an instance (XTypes 1.3 §7.6.8).

use crate::support::*;
use takt::dcps::ReadOperations;
use takt::qos::*;
use takt::*;

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Numbers {
    #[dds(key)]
    a: u32,
    #[dds(key)]
    b: u64,
    value: i32,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(extensibility = "final")]
struct Unaligned {
    before: String,
    #[dds(key)]
    a: u8,
    between: Vec<u16>,
    #[dds(key)]
    b: i64,
    value: i32,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Named {
    #[dds(key)]
    name: String,
    #[dds(key)]
    number: u64,
    value: i32,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(extensibility = "mutable")]
struct Listed {
    value: i32,
    #[dds(key)]
    names: Vec<String>,
    #[dds(key)]
    numbers: Vec<i64>,
}

fn with(representation: DataRepresentation, writer: DataWriterQos) -> DataWriterQos {
    DataWriterQos { data_representation: representation, ..writer }
}

/// Creates a pair whose writer uses XCDR1, and a second writer that uses XCDR2.
fn of_both<T: TypeSupport>(
    writer: DataWriterQos,
    second: DataWriterQos,
    reader: DataReaderQos,
) -> (Pair<T>, DataWriter<T>) {
    let pair = Pair::<T>::new(Runtime::Inline, with(DataRepresentation::xcdr1(), writer), reader);
    let second = create_writer::<T>(&pair.publisher, "Topic", with(DataRepresentation::xcdr2(), second));
    pair.wait_until("match", || {
        pair.reader.matched_publications().expect("open").len() == 2
            && second.matched_subscriptions().expect("open").contains(&pair.reader.guid())
    });
    (pair, second)
}

fn check<T: TypeSupport + Clone + PartialEq + std::fmt::Debug>(first: &T, later: &T) {
    let qos = reliable_writer(History::KeepAll);
    let (pair, second) = of_both::<T>(qos.clone(), qos, reliable_reader(History::KeepLast(1)));
    let arrived = |sn| {
        pair.wait_until("the sample", || {
            let samples = pair.reader.read(10).expect("open");
            assert!(samples.len() <= 1, "KEEP_LAST 1 holds one sample of an instance: {samples:?}");
            samples.last().is_some_and(|sample| sample.data.as_ref() == Some(sn))
        });
        pair.reader.read(1).expect("open")[0].info
    };
    pair.writer.write(first).expect("room");
    let info = arrived(first);
    for handle in [
        pair.reader.lookup_instance(later).expect("a key"),
        pair.writer.register_instance(later).expect("a key"),
        second.register_instance(later).expect("a key"),
    ] {
        assert_eq!(handle, info.instance_handle);
    }
    second.write(later).expect("room");
    assert_eq!(arrived(later).instance_handle, info.instance_handle);
    let read = pair.reader.read_instance(info.instance_handle, 1).expect("open");
    assert_eq!(read[0].data.as_ref(), Some(later));
    second.dispose(later).expect("room");
    pair.wait_until("the disposal", || {
        let samples = pair.reader.read(10).expect("open");
        samples.iter().any(|sample| sample.info.instance_state == InstanceState::NotAliveDisposed)
    });
    assert!(pair.reader.take(10).expect("open").iter().all(|it| it.info.instance_handle == info.instance_handle));
}

#[test]
fn writers_of_both_representations_share_an_instance() {
    check(&Numbers { a: 1, b: 2, value: 3 }, &Numbers { a: 1, b: 2, value: 4 });
    let unaligned = Unaligned { before: "x".into(), a: 7, between: vec![1, 2, 3], b: -2, value: 3 };
    check(&unaligned, &Unaligned { before: "another".into(), between: Vec::new(), value: 4, ..unaligned.clone() });
    let named = Named { name: "an engine".into(), number: 9, value: 3 };
    check(&named, &Named { value: 4, ..named.clone() });
    let listed = Listed { value: 3, names: vec!["a".into(), "bc".into()], numbers: vec![1, -1] };
    check(&listed, &Listed { value: 4, ..listed.clone() });
}

#[test]
fn exclusive_ownership_ranks_writers_of_both_representations() {
    let owned = |strength| DataWriterQos {
        ownership: Ownership::Exclusive,
        ownership_strength: OwnershipStrength(strength),
        ..reliable_writer(History::KeepAll)
    };
    let reader = DataReaderQos { ownership: Ownership::Exclusive, ..reliable_reader(History::KeepAll) };
    let (pair, second) = of_both::<Numbers>(owned(1), owned(2), reader);
    second.write(&Numbers { a: 1, b: 2, value: 1 }).expect("room");
    pair.take(1);
    pair.writer.write(&Numbers { a: 1, b: 2, value: 2 }).expect("room");
    pair.writer.write(&Numbers { a: 1, b: 3, value: 3 }).expect("room");
    assert_eq!(pair.take(1)[0].data, Some(Numbers { a: 1, b: 3, value: 3 }), "the other instance has a stronger owner");
}

#[test]
fn deadline_counts_writers_of_both_representations_as_one_instance() {
    let period = |ms| Deadline { period: takt::Duration::from_millis(ms) };
    let qos = DataWriterQos { deadline: period(400), ..reliable_writer(History::KeepAll) };
    let reader = DataReaderQos { deadline: period(500), ..reliable_reader(History::KeepAll) };
    let (pair, second) = of_both::<Numbers>(qos.clone(), qos, reader);
    pair.writer.write(&Numbers { a: 1, b: 2, value: 1 }).expect("room");
    second.write(&Numbers { a: 1, b: 2, value: 2 }).expect("room");
    let handles: Vec<_> = pair.take(2).iter().map(|sample| sample.info.instance_handle).collect();
    assert_eq!(handles[0], handles[1]);
    let mut missed = std::collections::BTreeSet::new();
    pair.wait_until("two missed deadlines", || {
        let status = pair.reader.requested_deadline_missed_status().expect("open");
        missed.extend(status.last_instance.filter(|_| status.total_count > 0).map(|handle| handle.0));
        status.total_count >= 2
    });
    assert_eq!(missed.into_iter().collect::<Vec<_>>(), [handles[0].0], "one instance is watched, not two");
}
