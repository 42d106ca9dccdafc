//! What does not fit is refused, said and counted.

use crate::support::*;
use std::time::{Duration, Instant};
use takt::qos::*;
use takt_durability::{Options, Service};

#[test]
fn what_finds_no_room_is_not_acknowledged_and_what_is_there_stays() {
    let (domain, directory) = (domain(), Directory::new());
    // Number is 8 octets, with its encapsulation header 12.
    let options = Options { disk_bytes_max: 12 * 50, ..options(domain, Some(&directory)) };
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    let mut service = Service::new(options.clone()).expect("a service");
    let mut notes = Vec::new();
    let mut written = 0;
    let deadline = Instant::now() + PATIENCE;
    while service.totals().full == 0 {
        assert!(Instant::now() < deadline, "it never was full");
        service.step().expect("the store takes what fits");
        notes.extend(service.take_notes());
        if service.totals().topics == 1 && written < 100 {
            write(&writer, written..written + 1);
            written += 1;
        }
    }
    let quiet = Instant::now() + Duration::from_millis(500);
    while Instant::now() < quiet {
        service.step().expect("nothing more comes in");
    }
    notes.extend(service.take_notes());
    assert_eq!(service.totals().samples, 50);
    let full = notes.iter().filter(|note| note.contains("full (disk)")).count();
    assert_eq!(full, 1, "said once: {notes:?}");
    let upto = writer.durable_upto().expect("open").expect("the service is there");
    assert!(upto.0 <= 50, "{upto:?}");
}

#[test]
fn topics_that_are_not_wanted_or_too_many_are_left_alone() {
    let domain = domain();
    let publisher = participant(domain);
    let _writer = writer(&publisher, writer_qos(Durability::Transient, keep_all()));
    for (options, heard) in [
        (Options { topics: vec!["Letters".to_owned()], ..options(domain, None) }, false),
        (Options { topics_max: 0, ..options(domain, None) }, false),
        (Options { topics: vec!["Num*".to_owned()], ..options(domain, None) }, true),
    ] {
        let has_limit = options.topics_max == 0;
        let mut service = Service::new(options).expect("a service");
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            service.step().expect("nothing is stored");
        }
        assert_eq!(service.totals().topics == 1, heard);
        assert_eq!(service.take_notes().iter().any(|note| note.contains("refused, there are 0 topics")), has_limit);
    }
}

#[test]
fn persistent_topics_need_a_store() {
    let domain = domain();
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    let mut service = Service::new(options(domain, None)).expect("a service");
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        service.step().expect("nothing is stored");
    }
    assert_eq!(service.totals().topics, 0);
    assert_eq!(writer.durable_upto().expect("open"), None, "nobody tells it so");
}
