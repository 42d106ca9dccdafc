//! Access by instance and by condition, and sample ranks (DDS 1.4 §2.2.2.5.3, §2.2.2.5.1).

use crate::support::*;
use takt::dcps::ReadOperations;
use takt::qos::*;
use takt::*;

fn filled(runtime: Runtime, colors: &[&str]) -> Pair<Shape> {
    let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    for (x, color) in colors.iter().enumerate() {
        pair.writer.write(&Shape::new(color, x as i32)).expect("room");
    }
    let unread = |count| pair.reader.read(usize::MAX).expect("open").len() == count;
    pair.wait_until("samples", || unread(colors.len()));
    pair
}

fn colors(samples: &[Sample<Shape>]) -> Vec<&str> {
    samples.iter().filter_map(|sample| sample.data.as_ref()).map(|shape| shape.color.as_str()).collect()
}

/// Visits every instance in turn; `visit` reads or takes the next one.
fn walk(mut visit: impl FnMut(Option<InstanceHandle>) -> Vec<Sample<Shape>>) -> Vec<(InstanceHandle, usize)> {
    let mut seen = Vec::new();
    loop {
        let samples = visit(seen.last().map(|(handle, _)| *handle));
        let Some(first) = samples.first().map(|sample| sample.info.instance_handle) else { return seen };
        assert!(samples.iter().all(|sample| sample.info.instance_handle == first), "one instance at a time");
        seen.push((first, samples.len()));
    }
}

#[test]
fn next_instance_visits_each_instance_once_in_the_order_of_handles() {
    for runtime in RUNTIMES {
        let pair = filled(runtime, &["RED", "BLUE", "GREEN", "RED", "BLUE", "RED"]);
        let read = walk(|previous| pair.reader.read_next_instance(previous, usize::MAX).expect("open"));
        assert!(read.is_sorted_by(|a, b| a.0 < b.0), "{runtime:?}: {read:?}");
        let mut counts: Vec<_> = read.iter().map(|(_, count)| *count).collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 2, 3]);
        assert_eq!(pair.reader.read(usize::MAX).expect("open").len(), 6, "reading leaves them");
        let taken = walk(|previous| pair.reader.take_next_instance(previous, usize::MAX).expect("open"));
        assert_eq!(taken, read);
        assert_eq!(pair.reader.read(usize::MAX).expect("open"), [], "taking does not");
    }
}

#[test]
fn next_instance_continues_from_an_unknown_handle() {
    let pair = filled(Runtime::Inline, &["RED", "BLUE", "GREEN"]);
    let order = walk(|previous| pair.reader.read_next_instance(previous, usize::MAX).expect("open"));
    let (first, middle, last) = (order[0].0, order[1].0, order[2].0);
    pair.writer.unregister_instance(&key_of(&pair, middle)).expect("room");
    pair.wait_until("no writers", || {
        pair.reader.read_instance(middle, usize::MAX).expect("open").iter().any(|sample| !sample.info.valid_data)
    });
    assert_eq!(pair.reader.take_instance(middle, usize::MAX).expect("open").len(), 2, "data and state changes");
    assert!(!pair.reader.key_value(&mut Shape::default(), middle).expect("open"), "it is forgotten");
    let next = pair.reader.take_next_instance(Some(middle), usize::MAX).expect("open");
    assert_eq!(next[0].info.instance_handle, last);
    assert_eq!(pair.reader.take_next_instance(Some(last), usize::MAX).expect("open"), []);
    let mut before = first.0;
    before[15] = before[15].wrapping_sub(1);
    let unknown = InstanceHandle(before);
    assert!(unknown < first, "the key is not that unlucky");
    let next = pair.reader.take_next_instance(Some(unknown), usize::MAX).expect("open");
    assert_eq!(next[0].info.instance_handle, first, "one that never was");
}

fn key_of(pair: &Pair<Shape>, instance: InstanceHandle) -> Shape {
    let mut shape = Shape::default();
    assert!(pair.reader.key_value(&mut shape, instance).expect("open"));
    shape
}

#[test]
fn read_instance_returns_samples_of_one_instance_only() {
    let pair = filled(Runtime::Shared, &["RED", "BLUE", "RED"]);
    let red = pair.reader.lookup_instance(&Shape::new("RED", 0)).expect("a key");
    assert_eq!(colors(&pair.reader.read_instance(red, 1).expect("open")), ["RED"]);
    assert_eq!(colors(&pair.reader.take_instance(red, usize::MAX).expect("open")), ["RED", "RED"]);
    assert_eq!(pair.reader.take_instance(red, usize::MAX).expect("open"), []);
    assert_eq!(colors(&pair.reader.take(usize::MAX).expect("open")), ["BLUE"]);
}

#[test]
fn conditions_select_samples_and_instances() {
    let pair = filled(Runtime::Inline, &["RED", "BLUE"]);
    let condition = pair.reader.read_condition(Selector::READ.in_states(
        SampleStates::NOT_READ,
        ViewStates::ANY,
        InstanceStates::ALIVE,
    ));
    assert_eq!(pair.reader.read_w_condition(&condition, usize::MAX).expect("open"), [], "all were read");
    pair.writer.write(&Shape::new("RED", 7)).expect("room");
    pair.writer.write(&Shape::new("BLUE", 8)).expect("room");
    pair.wait_until("news", || pair.reader.read(usize::MAX).expect("open").len() == 4);
    pair.writer.write(&Shape::new("RED", 9)).expect("room");
    pair.wait_until("a condition", || condition.trigger_value().expect("open"));
    let next = pair.reader.read_next_instance_w_condition(None, &condition, usize::MAX).expect("open");
    assert_eq!(next.iter().map(|sample| sample.data.as_ref().expect("data").x).collect::<Vec<_>>(), [9]);
    assert!(!condition.trigger_value().expect("open"), "it was read");
    assert_eq!(pair.reader.take_w_condition(&condition, usize::MAX).expect("open"), []);
    let all = pair.reader.read_condition(Selector::READ);
    let first = pair.reader.take_next_instance_w_condition(None, &all, usize::MAX).expect("open");
    let second = pair
        .reader
        .take_next_instance_w_condition(Some(first[0].info.instance_handle), &all, usize::MAX)
        .expect("open");
    assert_eq!(first.len() + second.len(), 5);

    let other = filled(Runtime::Inline, &[]);
    assert!(matches!(other.reader.take_w_condition(&all, 1), Err(Error::PreconditionNotMet { .. })));
}

#[test]
fn ranks_count_the_following_samples_of_the_instance() {
    let pair = filled(Runtime::Inline, &["RED", "BLUE", "RED"]);
    pair.writer.dispose(&Shape::new("RED", 0)).expect("room");
    for x in 0..2 {
        pair.writer.write(&Shape::new("RED", 10 + x)).expect("room");
    }
    pair.wait_until("samples", || pair.reader.read(usize::MAX).expect("open").len() == 6);
    let ranks = |samples: &[Sample<Shape>]| -> Vec<(u32, u32, u32)> {
        let rank = |info: &SampleInfo| (info.sample_rank, info.generation_rank, info.absolute_generation_rank);
        samples.iter().map(|sample| rank(&sample.info)).collect()
    };
    // RED, BLUE, RED, the dispose of RED, then RED twice in the next generation.
    let all = pair.reader.read(usize::MAX).expect("open");
    assert_eq!(ranks(&all), [(4, 1, 1), (0, 0, 0), (3, 1, 1), (2, 1, 1), (1, 0, 0), (0, 0, 0)]);
    assert_eq!(all[4].info.disposed_generation_count, 1);
    assert_eq!(all[0].info.publication_handle(), InstanceHandle::from(pair.writer.guid()));
    let some = pair.reader.take(3).expect("open");
    assert_eq!(ranks(&some), [(1, 0, 1), (0, 0, 0), (0, 0, 1)], "within the collection, and beyond it");
    let mut shape = Shape::default();
    let alone = pair.reader.take_next_sample(&mut shape).expect("open").expect("the disposal");
    assert_eq!((alone.sample_rank, alone.generation_rank, alone.absolute_generation_rank), (0, 0, 1));
}
