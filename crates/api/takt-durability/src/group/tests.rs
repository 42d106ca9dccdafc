//! Tests of stored changes under a disk budget, and of the credibility of original writers.

use super::*;
use crate::record::tests::record;
use takt::qos::DurabilityService;
use takt::relay::ChangeKind;

/// Returns a PERSISTENT topic with this history.
fn persistent(history: History) -> Group {
    let mut data = PublicationData { topic_name: "T".to_owned(), ..PublicationData::default() };
    data.qos.durability = Durability::Persistent;
    data.qos.durability_service = DurabilityService { history, ..DurabilityService::default() };
    Group::new(1, data, &Options::default())
}

/// Stores these records, at most `disk_bytes` on disk, and returns the limit that prevents it.
fn keep(group: &mut Group, records: impl IntoIterator<Item = Record>, disk_bytes: u64) -> Option<&'static str> {
    group.waiting.extend(records);
    let mut room = disk_bytes.saturating_sub(group.index.bytes());
    group.store_credible(&mut room, &mut Batch::default(), |_| Ok(None)).expect("it uses no DDS")
}

#[test]
fn full_disk_budget_still_replaces_samples_by_keep_last() {
    let mut group = persistent(History::KeepLast(1));
    let changes = |sn: std::ops::RangeInclusive<i64>| sn.map(|sn| record(1, sn, 0, ChangeKind::Alive));
    assert_eq!(keep(&mut group, changes(1..=50), 15), None, "each of 10 octets replaces one of 10");
    assert_eq!((group.index.len(), group.index.last_of(Guid::from_bytes([1; 16]))), (1, 50));
    assert_eq!(keep(&mut group, [record(1, 51, 9, ChangeKind::Alive)], 15), Some("disk"), "another instance");
    group.waiting.clear();
    // The budget is smaller than the changes that an earlier run stored.
    assert_eq!(keep(&mut group, changes(51..=60), 5), None);
    assert_eq!(group.index.len(), 1);
}

#[test]
fn departed_writers_without_samples_are_removed_except_the_latest() {
    let mut group = persistent(History::KeepLast(1));
    let of = |writer: u64| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&writer.to_be_bytes());
        Guid::from_bytes(bytes)
    };
    let changes = (1..=20_000).map(|writer| {
        let mut record = record(0, 1, 0, ChangeKind::Alive);
        record.origin.writer = of(writer);
        record
    });
    assert_eq!(keep(&mut group, changes, 1_000), None);
    let mut batch = Batch::default();
    group.clean_up(|writer| writer == of(7), &mut batch).expect("it uses no DDS");
    assert!(!batch.is_empty(), "they are removed from the disk too");
    let known = |writer| group.index.last_of(of(writer)) == 1;
    let count = (1..=20_000).filter(|writer| known(*writer)).count();
    assert_eq!(count, crate::index::ORIGINS_MAX + 2, "the most recent ones, the live one and the one with changes");
    assert!(known(7) && known(20_000) && known(19_999) && !known(8));
}

#[test]
fn relayed_number_beyond_its_live_writer_is_not_stored() {
    let mut group = persistent(History::KeepAll);
    let relayed = |sn| Record { is_relayed: true, ..record(1, sn, 0, ChangeKind::Alive) };
    group.waiting.extend([relayed(500 + LEAD_MAX), relayed(i64::MAX)]);
    let mut room = 1_000;
    let limit = group.store_credible(&mut room, &mut Batch::default(), |_| Ok(Some(500)));
    assert_eq!((limit.expect("no DDS"), group.index.len(), group.unconfirmed), (None, 1, 1));
}

#[test]
fn forged_number_received_before_discovery_does_not_block_the_writer() {
    let mut group = persistent(History::KeepAll);
    let own = |sn| record(1, sn, 0, ChangeKind::Alive);
    let forged = Record { is_relayed: true, ..own(i64::MAX) };
    assert_eq!(keep(&mut group, [own(1), forged], 1_000), None);
    group.waiting.extend((1..=9).map(own));
    let (mut room, mut batch) = (1_000, Batch::default());
    let limit = group.store_credible(&mut room, &mut batch, |_| Ok(Some(9)));
    assert_eq!(limit.expect("no DDS"), None);
    let numbers: Vec<i64> = group.stored.values().map(|record| record.origin.sn.0).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9], "its first change was there before");
    assert_eq!((group.unconfirmed, group.repeated), (1, 1));
}

#[test]
fn credible_relayed_changes_remain_when_a_forged_number_is_corrected() {
    let mut group = persistent(History::KeepAll);
    let own = |sn| record(1, sn, 0, ChangeKind::Alive);
    let relayed = |sn| Record { is_relayed: true, ..own(sn) };
    assert_eq!(keep(&mut group, [relayed(1), relayed(2), relayed(i64::MAX)], 1_000), None);
    group.waiting.extend((2..=4).map(own));
    let (mut room, mut batch) = (1_000, Batch::default());
    let limit = group.store_credible(&mut room, &mut batch, |_| Ok(Some(4)));
    assert_eq!(limit.expect("no DDS"), None);
    let numbers: Vec<i64> = group.stored.values().map(|record| record.origin.sn.0).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[test]
fn announced_numbers_of_a_writer_count_as_repeated() {
    let mut group = persistent(History::KeepAll);
    let relayed = |sn| Record { is_relayed: true, ..record(1, sn, 0, ChangeKind::Alive) };
    assert_eq!(keep(&mut group, (1..=2_000).map(relayed), 100_000), None);
    group.waiting.extend((1_000..=2_001).map(|sn| record(1, sn, 0, ChangeKind::Alive)));
    let mut room = 1_000;
    let limit = group.store_credible(&mut room, &mut Batch::default(), |_| Ok(Some(2_001)));
    assert_eq!((limit.expect("no DDS"), group.index.len(), group.repeated), (None, 2_001, 1_001));
}

#[test]
fn repeated_changes_do_not_replace_later_changes_of_another_writer() {
    let mut group = persistent(History::KeepLast(1));
    let of = |writer| (1..=3).map(move |sn| record(writer, sn, 0, ChangeKind::Alive));
    assert_eq!(keep(&mut group, of(1).chain(of(2)), 1_000), None);
    // The history of the first writer arrives again; none of it is stored any more.
    group.waiting.extend(of(1));
    let mut room = 1_000;
    let limit = group.store_credible(&mut room, &mut Batch::default(), |_| Ok(Some(3)));
    assert_eq!((limit.expect("no DDS"), group.repeated), (None, 3));
    let origins: Vec<_> = group.stored.values().map(|record| record.origin).collect();
    assert_eq!(origins, [record(2, 3, 0, ChangeKind::Alive).origin]);
}

#[test]
fn topic_without_writers_and_changes_ends_after_its_idle_time() {
    let mut group = persistent(History::KeepLast(1));
    assert!(!group.is_idle_for(Duration::from_secs(3600)));
    assert!(group.is_idle_for(Duration::ZERO));
    group.is_written = true;
    assert!(!group.is_idle_for(Duration::ZERO));
    group.is_written = false;
    assert_eq!(keep(&mut group, [record(1, 1, 0, ChangeKind::Alive)], 1_000), None);
    assert!(!group.is_idle_for(Duration::ZERO));
}

/// Offers committed changes to a writer that has room for those that satisfy `has_room`. Returns
/// original writer and number of the accepted changes.
fn passed_on(group: &mut Group, has_room: impl Fn(&Record) -> bool) -> Vec<(u8, i64)> {
    let mut taken = Vec::new();
    group.mark_committed();
    let passed = group.relay(|record| {
        let fits = has_room(record);
        taken.extend(fits.then_some((record.origin.writer.to_bytes()[0], record.origin.sn.0)));
        Ok(fits)
    });
    passed.expect("it uses no DDS");
    taken
}

#[test]
fn changes_without_room_are_relayed_once_and_in_order_when_there_is_room() {
    let mut group = persistent(History::KeepAll);
    let of = |writer, sn, instance| record(writer, sn, instance, ChangeKind::Alive);
    let records = [of(1, 1, 1), of(1, 2, 2), of(2, 1, 2), of(1, 3, 3), of(3, 1, 4)];
    assert_eq!(keep(&mut group, records, 1_000), None);
    let taken = passed_on(&mut group, |record| record.origin.sn.0 != 2);
    assert_eq!(taken, [(1, 1), (3, 1)], "neither its writer nor its instance overtakes the one without room");
    assert_eq!(group.unserved(), 3);
    assert_eq!(keep(&mut group, [of(1, 4, 5), of(3, 2, 6)], 1_000), None);
    assert_eq!(passed_on(&mut group, |_| true), [(3, 2)], "before the pause is over");
    group.waiting_for_room.since = Instant::now().checked_sub(ROOM_PAUSE);
    assert_eq!(passed_on(&mut group, |_| true), [(1, 2), (2, 1), (1, 3), (1, 4)]);
    assert_eq!((group.unserved(), group.stored.len()), (0, 0));
    group.waiting_for_room.since = Instant::now().checked_sub(ROOM_PAUSE);
    assert_eq!(passed_on(&mut group, |_| true), []);
}

#[test]
fn changes_with_room_do_not_wait_for_other_writers_and_instances() {
    let mut group = persistent(History::KeepLast(1));
    let records = (0..100).map(|number| record(number, 1, number, ChangeKind::Alive));
    assert_eq!(keep(&mut group, records, 10_000), None);
    assert_eq!(passed_on(&mut group, |_| false), []);
    assert_eq!(keep(&mut group, [record(200, 1, 200, ChangeKind::Alive)], 10_000), None);
    assert_eq!(passed_on(&mut group, |_| true), [(200, 1)], "it neither waits for the pause nor for the others");
    assert_eq!(group.unserved(), 100);
}

#[test]
fn repeated_attempt_ends_after_the_refusal_limit_and_the_next_one_continues_after_it() {
    let mut group = persistent(History::KeepAll);
    let records = (0..40).map(|number| record(number, 1, number, ChangeKind::Alive));
    assert_eq!(keep(&mut group, records, 10_000), None);
    assert_eq!(passed_on(&mut group, |_| false), []);
    let mut offered = || {
        let offered = std::cell::RefCell::new(Vec::new());
        group.waiting_for_room.since = Instant::now().checked_sub(ROOM_PAUSE);
        passed_on(&mut group, |record| {
            offered.borrow_mut().push(record.origin.writer.to_bytes()[0]);
            false
        });
        offered.into_inner()
    };
    for expected in [0..16, 16..32, 32..40, 0..16] {
        assert!(offered().into_iter().eq(expected.clone()), "{expected:?}");
    }
    assert_eq!(group.unserved(), 40);
}

#[test]
fn topic_first_announced_in_xml_is_served_once_xcdr_samples_are_stored() {
    let interfaces = ["lo"];
    let domain = takt_testkit::domain::domain();
    let participant = DomainParticipant::builder(domain).interfaces(interfaces).build().expect("participant");
    let mut group = persistent(History::KeepAll);
    group.announcement.type_name = "T".to_owned();
    group.announcement.qos.data_representation = DataRepresentation(vec![DataRepresentation::XML]);
    group.is_written = true;
    let options = Options { settling_time: Duration::ZERO, ..Options::default() };
    assert!(!group.serve(&participant, &options).expect("a topic that cannot be served ends nothing"));
    assert!(group.take_remark().is_some_and(|remark| remark.contains("not served")));
    assert_eq!(keep(&mut group, [record(1, 1, 0, ChangeKind::Alive)], 1_000), None);
    group.mark_committed();
    assert!(!group.serve(&participant, &options).expect("open"), "it pauses");
    group.retry_serving();
    assert!(group.serve(&participant, &options).expect("open"));
    assert_eq!((group.is_served(), group.unserved(), group.stored.len()), (true, 0, 0));
}

#[test]
fn topic_first_announced_in_xml_is_served_after_a_restart_in_the_stored_representation() {
    let participant =
        DomainParticipant::builder(takt_testkit::domain::domain()).interfaces(["lo"]).build().expect("participant");
    for (encapsulation, expected) in [([0, 1], DataRepresentation::xcdr1()), ([0, 7], DataRepresentation::xcdr2())] {
        let mut group = persistent(History::KeepAll);
        group.announcement.type_name = "T".to_owned();
        group.announcement.qos.data_representation = DataRepresentation(vec![DataRepresentation::XML]);
        let stored = (1..=3).map(|sn| {
            let mut record = record(1, sn, 0, ChangeKind::Alive);
            record.payload[..2].copy_from_slice(&encapsulation);
            (sn as u64, record)
        });
        group.restore(stored.collect(), &[(Guid::from_bytes([1; 16]), 3)]);
        let options = Options { settling_time: Duration::ZERO, ..Options::default() };
        assert!(group.serve(&participant, &options).expect("open"), "{:?}", group.take_remark());
        assert_eq!((group.unserved(), group.index.len()), (0, 3));
        let qos = group.writer.as_ref().expect("it serves").as_any().qos();
        assert_eq!(qos.data_representation, expected);
    }
}

#[test]
fn topic_that_cannot_be_served_is_retried_after_the_pause_and_reported_once() {
    let domain = takt_testkit::domain::domain();
    let participant = DomainParticipant::builder(domain).interfaces(["lo"]).build().expect("participant");
    let mut group = persistent(History::KeepAll);
    group.is_written = true;
    let options = Options { settling_time: Duration::ZERO, ..Options::default() };
    // The announcement names no type.
    let tried = |group: &Group| group.unservable.as_ref().map(|unservable| unservable.tried);
    assert!(!group.serve(&participant, &options).expect("a topic that cannot be served ends nothing"));
    assert!(group.take_remark().is_some());
    let first = tried(&group);
    assert!(!group.serve(&participant, &options).expect("open"));
    assert_eq!(tried(&group), first, "it pauses");
    group.retry_serving();
    assert!(!group.serve(&participant, &options).expect("open"));
    assert_ne!(tried(&group), first);
    assert_eq!(group.take_remark(), None, "the reason is the same");
    let long_ago = Instant::now().checked_sub(SERVING_PAUSE).expect("the machine runs for longer");
    group.unservable.as_mut().expect("it cannot be served").tried = long_ago;
    group.announcement.type_name = "T".to_owned();
    assert!(group.serve(&participant, &options).expect("open"));
}
