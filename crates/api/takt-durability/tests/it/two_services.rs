//! Tests of two services in one domain: each obtains the samples of the other, and one suffices.

use crate::support::*;
use takt::qos::*;

#[test]
fn service_catches_up_from_another_one_and_continues_without_it() {
    let (domain, first_store, second_store) = (domain(), Directory::new("durability"), Directory::new("durability"));
    let first = Running::start(options(domain, Some(&first_store)));
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    write(&writer, 0..200);
    await_durability(&writer);
    drop((writer, publisher));

    let second = Running::start(options(domain, Some(&second_store)));
    let publisher = participant(domain);
    let writer = crate::support::writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    until("both", || writer.durability_services().expect("open").len() == 2);
    write(&writer, 200..300);
    await_durability(&writer);
    // Serving begins when the service has caught up; a reader that needs the history of both
    // writers shows this.
    let observer = participant(domain);
    let reader = reader(&observer, Durability::Persistent);
    until("three", || reader.matched_publications().expect("open").len() == 3);
    let samples = take(&reader, 300);
    assert_eq!(samples.len(), 300, "each once, from two services and a writer");
    assert_eq!(first.stop().samples, 300);
    drop((writer, publisher));

    let subscriber = participant(domain);
    let samples = take(&crate::support::reader(&subscriber, Durability::Persistent), 300);
    // The order of the two writers is unspecified: only the samples of each writer are ordered.
    let (earlier, later): (Vec<u32>, Vec<u32>) = values(&samples).into_iter().partition(|value| *value < 200);
    assert!(earlier.into_iter().eq(0..200) && later.into_iter().eq(200..300), "{:?}", values(&samples));
    let totals = second.stop();
    assert_eq!(totals.samples, 300);
}

#[test]
fn restarted_service_gets_the_samples_it_missed() {
    let (domain, first_store, second_store) = (domain(), Directory::new("durability"), Directory::new("durability"));
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    let first = Running::start(options(domain, Some(&first_store)));
    let second = Running::start(options(domain, Some(&second_store)));
    until("both", || writer.durability_services().expect("open").len() == 2);
    write(&writer, 0..100);
    await_durability(&writer);
    assert_eq!(first.stop().samples, 100);
    until("one", || writer.durability_services().expect("open").len() == 1);
    write(&writer, 100..200);
    await_durability(&writer);
    drop((writer, publisher));
    let first = Running::start(options(domain, Some(&first_store)));
    let subscriber = participant(domain);
    let reader = reader(&subscriber, Durability::Persistent);
    until("both again", || reader.matched_publications().expect("open").len() == 2);
    drop(second);
    assert!(values(&take(&reader, 200)).into_iter().eq(0..200));
    drop((reader, subscriber));
    let subscriber = participant(domain);
    let samples = take(&crate::support::reader(&subscriber, Durability::Persistent), 200);
    assert!(values(&samples).into_iter().eq(0..200), "{:?}", values(&samples));
    assert_eq!(first.stop().samples, 200);
}
