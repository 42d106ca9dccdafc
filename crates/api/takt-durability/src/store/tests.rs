//! Tests of stored data after reopening, and of refused files.

use super::*;
use crate::record::tests::record;
use takt::relay::ChangeKind;
use takt_testkit::Random;
use takt_testkit::directory::Directory;

fn topic(name: &str) -> PublicationData {
    let guid = Guid::from_bytes([5; 16]);
    PublicationData { guid, topic_name: name.to_owned(), type_name: "Type".to_owned(), ..PublicationData::default() }
}

fn batch(numbers: std::ops::Range<u64>) -> Batch {
    let stored = numbers.map(|number| (1, number, record(5, number as i64 + 1, 0, ChangeKind::Alive))).collect();
    Batch { topics: vec![(1, topic("T"))], stored, ..Batch::default() }
}

#[test]
fn committed_changes_are_restored_in_order() {
    let directory = Directory::new("store");
    let mut store = Store::open(directory.path()).expect("a new store");
    assert!(store.load().expect("an empty store").is_empty());
    store.commit(&batch(0..300)).expect("room");
    let mut second = batch(300..310);
    second.removed = vec![(1, 0), (1, 305)];
    second.set_origin(1, Guid::from_bytes([5; 16]), 310);
    store.commit(&second).expect("room");
    drop(store);
    let topics = Store::open(directory.path()).and_then(|mut store| store.load()).expect("the same store");
    assert_eq!(topics.len(), 1);
    assert_eq!(topics[0].announcement.topic_name, "T");
    assert_eq!(topics[0].origins, [(Guid::from_bytes([5; 16]), 310)]);
    let numbers = topics[0].changes.iter().map(|(number, _)| *number);
    assert!(numbers.eq((1..305).chain(306..310)));
    assert!(topics[0].changes.iter().all(|(number, record)| record.origin.sn.0 == *number as i64 + 1));
}

#[test]
fn store_is_refused_while_another_process_uses_it() {
    let directory = Directory::new("store");
    let _store = Store::open(directory.path()).expect("a new store");
    let error = Store::open(directory.path()).expect_err("in use").to_string();
    assert!(error.contains("another process uses the store"), "{error}");
}

#[test]
fn file_of_another_format_is_refused() {
    for (name, bytes) in [("text", b"once upon a time".repeat(1000)), ("zeroes", vec![0; 10_000]), ("short", vec![1])] {
        let directory = Directory::new("store");
        std::fs::write(directory.file(FILE), &bytes).expect("a file");
        let error = Store::open(directory.path()).and_then(|mut store| store.load()).expect_err(name).to_string();
        assert!(error.contains(FILE), "{name}: {error}");
        assert_eq!(std::fs::read(directory.file(FILE)).expect("the file"), bytes, "{name}: it is as it was");
    }
}

#[test]
fn other_database_or_version_is_refused() {
    let directory = Directory::new("store");
    let database = Database::create(directory.file(FILE)).expect("a database");
    let transaction = database.begin_write().expect("a transaction");
    transaction.open_table(TableDefinition::<u8, u8>::new("apples")).expect("a table").insert(1, 2).expect("room");
    transaction.commit().expect("room");
    drop(database);
    let error = Store::open(directory.path()).expect_err("apples").to_string();
    assert!(error.contains("another program"), "{error}");

    let directory = Directory::new("store");
    drop(Store::open(directory.path()).expect("a new store"));
    let database = Database::create(directory.file(FILE)).expect("a database");
    let transaction = database.begin_write().expect("a transaction");
    transaction.open_table(FORMAT).expect("a table").insert("version", VERSION + 1).expect("room");
    transaction.commit().expect("room");
    drop(database);
    let error = Store::open(directory.path()).expect_err("newer").to_string();
    assert!(error.contains("version 3; expected 1 or 2"), "{error}");
}

#[test]
fn torn_file_is_refused() {
    let directory = Directory::new("store");
    let mut store = Store::open(directory.path()).expect("a new store");
    store.commit(&batch(0..2_000)).expect("room");
    drop(store);
    let whole = std::fs::read(directory.file(FILE)).expect("the file");
    for len in [1, 100, 4096, whole.len() / 2] {
        std::fs::write(directory.file(FILE), &whole[..len]).expect("a file");
        let result = Store::open(directory.path()).and_then(|mut store| store.load());
        assert!(result.is_err(), "{len} of {} octets", whole.len());
    }
}

#[test]
fn malformed_record_is_an_error() {
    let directory = Directory::new("store");
    let mut store = Store::open(directory.path()).expect("a new store");
    store.commit(&batch(0..3)).expect("room");
    let transaction = store.database.as_ref().expect("it is open").begin_write().expect("a transaction");
    transaction.open_table(CHANGES).expect("a table").insert((1, 1), &b"torn"[..]).expect("room");
    transaction.commit().expect("room");
    let error = store.load().expect_err("damaged").to_string();
    assert!(error.contains("change 1 of topic 1 is damaged"), "{error}");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

#[test]
fn directory_and_file_are_accessible_to_their_owner_only() {
    let parent = Directory::new("store");
    let directory = parent.file("store");
    let mut store = Store::open(&directory).expect("a new store");
    assert_eq!((mode(&directory), mode(&directory.join(FILE))), (0o700, 0o600));
    assert_eq!(store.take_remarks(), [""; 0]);
}

#[test]
fn accessible_file_gets_mode_0600_and_accessible_directory_is_reported() {
    let directory = Directory::new("store");
    drop(Store::open(directory.path()).expect("a new store"));
    fs::set_permissions(directory.file(FILE), Permissions::from_mode(0o644)).expect("it is ours");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).expect("it is ours");
    let remarks = Store::open(directory.path()).expect("the same store").take_remarks();
    assert_eq!((mode(directory.path()), mode(&directory.file(FILE))), (0o777, 0o600));
    assert!(remarks.iter().any(|remark| remark.contains("others may write the directory (mode 0777)")), "{remarks:?}");
    assert!(remarks.iter().any(|remark| remark.contains("mode 0644 changed to 0600")), "{remarks:?}");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o1777)).expect("it is ours");
    assert_eq!(Store::open(directory.path()).expect("the same store").take_remarks(), [""; 0], "like /tmp");
}

#[test]
fn altered_octet_is_detected() {
    let directory = Directory::new("store");
    let mut store = Store::open(directory.path()).expect("a new store");
    store.commit(&batch(0..2_000)).expect("room");
    drop(store);
    let whole = fs::read(directory.file(FILE)).expect("the file");
    // The announcement of the topic, and the payload of a change.
    let altered = whole.windows(4).position(|octets| octets == b"Type").expect("the announcement is in it");
    let mut bytes = whole.clone();
    bytes[altered] ^= 1;
    fs::write(directory.file(FILE), &bytes).expect("a file");
    let error =
        Store::open(directory.path()).and_then(|mut store| store.load()).expect_err("it is altered").to_string();
    assert!(error.contains("not a store, or damaged"), "{error}");
}

#[test]
fn garbage_in_an_empty_store_is_refused_or_ignored_with_a_remark() {
    let directory = Directory::new("store");
    drop(Store::open(directory.path()).expect("a new store"));
    let whole = fs::read(directory.file(FILE)).expect("the file");
    let mut numbers = Random(1);
    for _ in 0..8 {
        let random = numbers.next();
        let at = usize::try_from(random >> 32).expect("32 bits") % (whole.len() - 3_000);
        let mut bytes = whole.clone();
        bytes[at..at + 3_000]
            .iter_mut()
            .enumerate()
            .for_each(|(i, octet)| *octet = (random >> (i % 56)) as u8 ^ i as u8);
        fs::write(directory.file(FILE), &bytes).expect("a file");
        match Store::open(directory.path()) {
            Ok(mut store) => {
                assert!(store.load().expect("nothing of it is used").is_empty());
                let remarks = store.take_remarks();
                assert!(remarks.iter().any(|remark| remark.contains("0 topics, 0 changes, 0 bytes")), "{remarks:?}");
            }
            Err(error) => assert!(error.to_string().contains("damaged"), "{error}"),
        }
    }
}

#[test]
fn store_of_version_1_is_converted_to_version_2() {
    let directory = Directory::new("store");
    let mut store = Store::open(directory.path()).expect("a new store");
    store.commit(&batch(0..3)).expect("room");
    let transaction = store.database.as_ref().expect("it is open").begin_write().expect("a transaction");
    transaction.open_table(FORMAT).expect("a table").insert("version", 1).expect("room");
    transaction.commit().expect("room");
    drop(store);
    for _ in 0..2 {
        let topics = Store::open(directory.path()).and_then(|mut store| store.load()).expect("the same store");
        assert_eq!(topics[0].changes.len(), 3);
    }
}

#[test]
fn ended_topic_leaves_no_records() {
    let directory = Directory::new("store");
    let mut store = Store::open(directory.path()).expect("a new store");
    let mut first = batch(0..30);
    first.set_origin(1, Guid::from_bytes([5; 16]), 30);
    first.topics.push((2, topic("U")));
    first.set_origin(2, Guid::from_bytes([6; 16]), 1);
    store.commit(&first).expect("room");
    store.commit(&Batch { ended: vec![1], ..Batch::default() }).expect("room");
    drop(store);
    let topics = Store::open(directory.path()).and_then(|mut store| store.load()).expect("the same store");
    assert_eq!((topics.len(), topics[0].id, topics[0].origins.len()), (1, 2, 1));
}
