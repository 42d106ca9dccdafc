//! Tests of a controller that restarts with the records of an earlier run: admitted pairs stay in
//! force, and discovery continues.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use takt_core::Instant;
use takt_openflow::flow::FlowMod;
use takt_sdn::controller::{Config, Event};
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_sdn::store::{Records, Store};

use crate::admission::{CLASSES, NETWORK, Site};
use crate::fabric::line;

fn config() -> Config {
    let network = NetworkFile::parse("network.toml", NETWORK, SwitchModel::built_in).expect("a valid file");
    Config { network: Some(network), ..Config::default() }
}

/// Returns the entries of admitted flows in both switches.
fn entries(site: &Site) -> [Vec<FlowMod>; 2] {
    [1, 2].map(|dpid| site.entries(dpid))
}

/// Runs for a time and checks that the switches keep these entries at every moment.
fn run_with(site: &mut Site, millis: u64, before: &[Vec<FlowMod>; 2]) {
    for _ in 0..millis / 10 {
        site.run(10);
        assert_eq!(&entries(site), before, "at {:?}", site.fabric.now);
    }
}

#[test]
fn admitted_pair_keeps_its_entries_through_a_restart() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair));
    let (before, records) = (entries(&site), site.fabric.controller.records());
    assert!(before.iter().all(|entries| entries.len() == 2), "samples and ACKNACKs");
    site.fabric.restart_with(config(), &records);
    run_with(&mut site, 6_000, &before);
    assert!(site.is_admitted(pair), "{:?}", site.fabric.events);
    assert!(site.is_matched(0, writer, reader));
    assert!(CLASSES.contains(&site.classes(0, 1, 1)[0]));
    let restored =
        |event: &Event| matches!(event, Event::Restored { participants: 4, hosts: 4, pairs: 1, unreadable: 0 });
    assert!(site.fabric.events.iter().any(restored), "{:?}", site.fabric.events);
    run_with(&mut site, 60_000, &before);
    assert_eq!(entries(&site), before, "also when the time of the restoration is over");
}

#[test]
fn restart_without_a_store_deletes_the_entries() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (pair, ..) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair));
    site.fabric.restart_with(config(), &Records::new());
    site.run(6_000);
    assert_eq!(entries(&site), [Vec::new(), Vec::new()]);
}

#[test]
fn share_of_a_kept_pair_is_not_given_to_another() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (first, ..) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(first));
    let (before, records) = (entries(&site), site.fabric.controller.records());
    site.fabric.restart_with(config(), &records);
    // The pair requests admission before the switches are adopted.
    site.run(500);
    let (second, writer, reader) = site.pair(2, "Lidar", 9);
    run_with(&mut site, 8_000, &before);
    assert!(!site.is_admitted(second));
    assert!(
        site.refusal(second).is_some_and(|reason| reason.contains("of port 1 of switch")),
        "{:?}",
        site.refusal(second)
    );
    assert!(!site.is_matched(2, writer, reader));
}

#[test]
fn refused_pair_is_admitted_after_a_restart_by_continued_streams() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (first, first_writer, _) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(first));
    let (second, writer, reader) = site.pair(2, "Lidar", 0);
    site.run(1_000);
    assert!(site.refusal(second).is_some());
    let records = site.fabric.controller.records();
    site.fabric.restart_with(config(), &records);
    site.run(6_000);
    assert!(site.is_admitted(first) && !site.is_admitted(second));
    assert!(!site.is_matched(2, writer, reader));
    let now = Instant(site.fabric.now.0);
    site.nodes[0].delete_writer(now, first_writer).expect("the endpoint exists");
    site.run(2_000);
    assert!(site.is_admitted(second), "{:?}", site.fabric.events);
    assert!(
        site.is_matched(2, writer, reader),
        "the announcements reach both ends, with sequence numbers after the inserted ones"
    );
    // Later announcements have shifted numbers, too.
    let (third, ..) = site.pair(2, "Radar", 0);
    site.run(1_000);
    assert!(site.refusal(third).is_some());
}

#[test]
fn pair_whose_host_does_not_return_is_dropped() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (pair, ..) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair));
    let records = site.fabric.controller.records();
    let without_hosts: Records = records.into_iter().filter(|(key, _)| !key.starts_with("host/")).collect();
    site.fabric.restart_with(config(), &without_hosts);
    let before = entries(&site);
    site.nodes.clear();
    run_with(&mut site, 10_000, &before);
    site.run(25_000);
    assert_eq!(entries(&site), [Vec::new(), Vec::new()]);
}

#[test]
fn unreadable_records_are_counted_and_change_nothing() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    site.pair(0, "Camera", 0);
    site.run(1_000);
    let records = site.fabric.controller.records();
    for (key, value) in &records {
        let damaged = [Vec::new(), value[..value.len() / 2].to_vec(), b"[1]".to_vec()];
        for octets in damaged {
            let mut records = records.clone();
            records.insert(key.clone(), octets);
            site.fabric.restart_with(config(), &records);
        }
        let mut records = records.clone();
        let value = records.remove(key).expect("the record exists");
        records.insert(format!("{key}0"), value);
        site.fabric.restart_with(config(), &records);
    }
    let restored = |event: &Event| matches!(event, Event::Restored { unreadable: 1.., .. });
    let mut damaged = records.clone();
    let key = damaged.keys().find(|key| key.starts_with("participant/")).expect("four participants are stored").clone();
    damaged.insert(key, Vec::new());
    site.fabric.restart_with(config(), &damaged);
    assert!(site.fabric.events.iter().any(restored), "{:?}", site.fabric.events);
}

/// A path that is removed when it is dropped.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("takt-sdn-store-{}-{name}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("the test created the file");
    }
}

fn records(pairs: &[(&str, &str)]) -> Records {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect()
}

#[test]
fn store_has_what_was_saved_last_and_is_private() {
    let file = File::new("last");
    let (mut store, found) = Store::open(&file.0).expect("the store can be opened");
    assert_eq!(found, Records::new());
    let mode = std::fs::metadata(&file.0).expect("the file was created").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(store.save(records(&[("host/1", "a"), ("host/2", "b")])));
    let error = Store::open(&file.0).expect_err("the store is locked").to_string();
    assert!(error.contains("cannot use the store") && error.contains("last"), "{error}");
    store.finish(records(&[("host/2", "c"), ("host/3", "d")]));
    drop(store);
    let (store, found) = Store::open(&file.0).expect("the store is unlocked");
    assert_eq!(found, records(&[("host/2", "c"), ("host/3", "d")]));
    assert_eq!(store.take_failure(), None);
}

#[test]
fn invalid_store_file_is_refused_and_kept() {
    let file = File::new("other");
    let text = "this is no store\n".repeat(1000);
    std::fs::write(&file.0, &text).expect("written");
    assert!(Store::open(&file.0).is_err());
    assert_eq!(std::fs::read_to_string(&file.0).expect("the file exists"), text);
}
