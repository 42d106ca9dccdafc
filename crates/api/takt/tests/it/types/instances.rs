//! Instances: dispose, unregister, loss of writers, and lookup (DDS 1.4 §2.2.2.5.1.3).

use crate::support::*;
use takt::qos::*;
use takt::*;

fn keyed(runtime: Runtime, autodispose: bool) -> Pair<Shape> {
    let lifecycle = WriterDataLifecycle { autodispose_unregistered_instances: autodispose };
    let writer = DataWriterQos { writer_data_lifecycle: lifecycle, ..reliable_writer(History::KeepAll) };
    Pair::new(runtime, writer, reliable_reader(History::KeepAll))
}

fn assert_state_change(sample: &Sample<Shape>, state: InstanceState, color: &str) {
    assert!(!sample.info.valid_data);
    assert_eq!(sample.data, None);
    assert_eq!(sample.info.instance_state, state);
    assert_eq!(sample.key.as_ref().map(|key| key.color.as_str()), Some(color));
}

#[test]
fn disposed_instance_is_reported_with_its_key() {
    for runtime in RUNTIMES {
        let pair = keyed(runtime, true);
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.writer.write(&Shape::new("BLUE", 2)).expect("room");
        pair.take(2);
        pair.writer.dispose(&Shape::new("RED", 0)).expect("room");
        let changes = pair.take(1);
        assert_state_change(&changes[0], InstanceState::NotAliveDisposed, "RED");
        pair.writer.write(&Shape::new("RED", 3)).expect("room");
        let reborn = pair.take(1);
        assert_eq!(reborn[0].info.instance_state, InstanceState::Alive);
        assert_eq!(reborn[0].info.disposed_generation_count, 1);
        assert_eq!(reborn[0].info.view_state, ViewState::New);
    }
}

#[test]
fn unregistered_instance_has_no_writers_unless_autodisposed() {
    for runtime in RUNTIMES {
        for (autodispose, state) in [(false, InstanceState::NotAliveNoWriters), (true, InstanceState::NotAliveDisposed)]
        {
            let pair = keyed(runtime, autodispose);
            pair.writer.write(&Shape::new("RED", 1)).expect("room");
            pair.take(1);
            pair.writer.unregister_instance(&Shape::new("RED", 0)).expect("room");
            assert_state_change(&pair.take(1)[0], state, "RED");
        }
    }
}

#[test]
fn deleted_writer_leaves_its_instances_without_writers() {
    for runtime in RUNTIMES {
        let Pair { publisher, subscriber, writer, reader } = keyed(runtime, true);
        writer.write(&Shape::new("RED", 1)).expect("room");
        wait_until(&[&publisher, &subscriber], "sample", || !reader.take(1).expect("open").is_empty());
        drop(writer);
        let mut changes = Vec::new();
        wait_until(&[&publisher, &subscriber], "news", || {
            changes.extend(reader.take(1).expect("open"));
            !changes.is_empty()
        });
        assert_state_change(&changes[0], InstanceState::NotAliveNoWriters, "RED");
    }
}

#[test]
fn key_value_returns_the_key_of_a_handle() {
    for runtime in RUNTIMES {
        let pair = keyed(runtime, true);
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        let handle = pair.take(1)[0].info.instance_handle;
        let mut key = Shape::default();
        assert!(pair.reader.key_value(&mut key, handle).expect("open"));
        assert_eq!(key.color, "RED");
        assert_eq!(pair.reader.lookup_instance(&Shape::new("RED", 9)).expect("a key"), handle);
        assert_eq!(pair.writer.register_instance(&Shape::new("RED", 9)).expect("a key"), handle);
        let unknown = pair.reader.lookup_instance(&Shape::new("PINK", 0)).expect("a key");
        assert!(!pair.reader.key_value(&mut key, unknown).expect("open"));
    }
}

#[test]
fn dispose_fails_on_a_topic_without_key() {
    let pair = Pair::<Blob>::new(Runtime::Shared, reliable_writer(History::KeepAll), DataReaderQos::default());
    let result = pair.writer.dispose(&Blob::new(1, 1));
    assert!(matches!(result, Err(Error::IllegalOperation { .. })), "{result:?}");
    assert_eq!(pair.writer.register_instance(&Blob::new(1, 1)).expect("no key"), InstanceHandle::NIL);
}
