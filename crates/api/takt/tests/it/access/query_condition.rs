//! Query conditions: trigger value, selection and order of samples.

use crate::support::*;
use takt::dcps::ReadOperations;
use takt::qos::*;
use takt::*;

const SAMPLES: [(&str, i32); 6] = [("RED", 3), ("BLUE", 9), ("RED", 1), ("GREEN", 5), ("BLUE", 2), ("RED", 7)];

/// Creates a pair whose reader holds these samples.
fn pair(runtime: Runtime) -> Pair<Shape> {
    let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    write(&pair, &SAMPLES);
    pair
}

fn write(pair: &Pair<Shape>, samples: &[(&str, i32)]) {
    samples.iter().for_each(|(color, x)| pair.writer.write(&Shape::new(color, *x)).expect("room"));
    pair.wait_until("samples", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
}

fn numbers(samples: Vec<Sample<Shape>>) -> Vec<i32> {
    samples.into_iter().filter_map(|sample| sample.data).map(|shape| shape.x).collect()
}

#[test]
fn matching_samples_are_read_and_the_rest_remains() {
    for runtime in RUNTIMES {
        let pair = pair(runtime);
        let reader = &pair.reader;
        let large = reader.query_condition(Selector::READ, "x > %0", &["4"]).expect("a query");
        assert!(large.trigger_value().expect("open"));
        assert_eq!(numbers(reader.read_w_condition(&large, 10).expect("open")), [9, 5, 7], "{runtime:?}");
        assert_eq!(numbers(reader.take_w_condition(&large, 2).expect("open")), [9, 5]);
        assert_eq!(numbers(reader.take_w_condition(&large, 10).expect("open")), [7]);
        assert!(!large.trigger_value().expect("open"));
        large.set_query_parameters(&["many"]).expect_err("no number");
        large.set_query_parameters(&["2"]).expect("a number");
        assert_eq!((large.query_expression(), large.query_parameters()), ("x > %0", vec!["2".to_owned()]));
        assert!(large.trigger_value().expect("open"));
        assert_eq!(numbers(reader.take_w_condition(&large, 10).expect("open")), [3]);
        assert_eq!(numbers(reader.take(10).expect("open")), [1, 2]);
    }
}

#[test]
fn condition_requires_matching_states_and_content() {
    let pair = pair(Runtime::Inline);
    let reader = &pair.reader;
    let unread = Selector { sample_states: SampleStates::NOT_READ, ..Selector::READ };
    let red = reader.query_condition(unread, "color = 'RED'", &[]).expect("a query");
    assert_eq!(numbers(reader.read_w_condition(&red, 2).expect("open")), [3, 1]);
    assert_eq!(numbers(reader.read_w_condition(&red, 10).expect("open")), [7]);
    assert!(!red.trigger_value().expect("open"));
    write(&pair, &[("GREEN", 1)]);
    assert!(!red.trigger_value().expect("open"));
    // A dispose message has no content.
    pair.writer.dispose(&Shape::new("RED", 0)).expect("room");
    pair.wait_until("samples", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
    assert!(!red.trigger_value().expect("open"));
    let none = reader.query_condition(Selector::READ, "color = 'PINK'", &[]).expect("a query");
    assert!(reader.take_w_condition(&none, 10).expect("open").is_empty());
}

#[test]
fn order_by_determines_order_and_selection() {
    let pair = pair(Runtime::Inline);
    let reader = &pair.reader;
    let query = |text: &str| reader.query_condition(Selector::READ, text, &[]).expect("a query");
    assert_eq!(numbers(reader.read_w_condition(&query("ORDER BY x"), 10).expect("open")), [1, 2, 3, 5, 7, 9]);
    assert_eq!(numbers(reader.read_w_condition(&query("ORDER BY color, x"), 10).expect("open")), [2, 9, 5, 1, 3, 7]);
    // `y` is `-x`.
    assert_eq!(numbers(reader.read_w_condition(&query("x < 9 ORDER BY y"), 3).expect("open")), [7, 5, 3]);
    let red = query("ORDER BY x");
    let next = reader.read_next_instance_w_condition(None, &red, 10).expect("open");
    let only = next[0].info.instance_handle;
    assert!(next.iter().all(|sample| sample.info.instance_handle == only));
    let sorted = numbers(next);
    assert!(sorted.is_sorted(), "{sorted:?}");
    assert_eq!(numbers(reader.take_w_condition(&query("ORDER BY x"), 2).expect("open")), [1, 2]);
    assert_eq!(numbers(reader.take(10).expect("open")), [3, 9, 5, 7]);
}

#[test]
fn wait_set_waits_for_content() {
    let pair = pair(Runtime::Shared);
    let query = pair.reader.query_condition(Selector::READ, "x = %0", &["100"]).expect("a query");
    let again = pair.reader.query_condition(Selector::READ, "x = %0", &["100"]).expect("a query");
    let waitset = WaitSet::new().expect("a wait set");
    waitset.attach(&query).expect("attached");
    assert!(matches!(waitset.wait(takt::Duration::ZERO), Err(Error::Timeout { .. })));
    write(&pair, &[("RED", 100)]);
    let seconds = takt::Duration::from_secs(60);
    assert_eq!(waitset.wait(seconds).expect("it is true"), [Condition::from(&query)]);
    assert_ne!(Condition::from(&query), Condition::from(&again), "each is one of its own");
    pair.reader.take_w_condition(&query, 1).expect("open");
    assert!(matches!(waitset.wait(takt::Duration::ZERO), Err(Error::Timeout { .. })));
    // New parameters make the condition true.
    let waiting = query.clone();
    let setter = std::thread::spawn(move || waiting.set_query_parameters(&["9"]));
    assert_eq!(waitset.wait(seconds).expect("it is true").len(), 1);
    setter.join().expect("no panic").expect("a number");
}

#[test]
fn invalid_expressions_and_foreign_conditions_are_rejected() {
    let pair = pair(Runtime::Inline);
    for expression in ["speed > 1", "x >", "x > %0", "ORDER BY speed", "x > 1 ORDER BY"] {
        let error = pair.reader.query_condition(Selector::READ, expression, &[]).expect_err(expression);
        assert!(matches!(error, Error::BadParameter { .. }), "{error}");
    }
    let other = create_reader::<Shape>(&pair.subscriber, "Other", DataReaderQos::default());
    let foreign = other.query_condition(Selector::READ, "x > 1", &[]).expect("a query");
    assert!(matches!(pair.reader.take_w_condition(&foreign, 1), Err(Error::PreconditionNotMet { .. })));
}
