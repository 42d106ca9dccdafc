//! Tests of registrations: value ranges, sockets, identifiers, and the budget of an owner.

use super::*;

fn registration() -> Registration {
    serde_json::from_str(
        r#"{"topic": "Camera", "writer": "robot/1", "reader": "desk", "from": "10.0.0.1", "to": "10.0.0.2", "port": 7411,
            "separation_ns": 5000000, "size": 1000, "limit_ns": 10000000}"#,
    )
    .expect("the other fields have defaults")
}

#[test]
fn omitted_fields_have_their_defaults() {
    let own = registration();
    assert_eq!((own.overhead, own.lease_s, own.importance), (OVERHEAD_DEFAULT, LEASE_DEFAULT_S, 0));
    assert_eq!(own.check(), Ok(()));
    assert_eq!(own.contract().jitter, Sourced::new(Duration::from_millis(5), Source::Default));
    let declared = Registration { jitter_ns: Some(7), ..own };
    assert_eq!(declared.contract().jitter, Sourced::new(Duration::from_nanos(7), Source::Registration));
}

#[test]
fn values_out_of_range_are_refused_with_their_name() {
    let changed = |change: fn(&mut Registration)| {
        let mut changed = registration();
        change(&mut changed);
        changed.check()
    };
    type Change = fn(&mut Registration);
    let cases: [(Change, &str); 17] = [
        (|it| it.topic.clear(), "topic"),
        (|it| it.writer = "x".repeat(NAME_MAX + 1), "writer"),
        (|it| it.reader = "a\nb".to_owned(), "reader"),
        (|it| it.from = IpAddr::from([239, 0, 0, 1]), "from"),
        (|it| it.to = IpAddr::from([0; 4]), "to"),
        (|it| it.to = IpAddr::from([255; 4]), "to"),
        (|it| it.from = IpAddr::from([127, 0, 0, 1]), "from"),
        (|it| it.to = it.from, "two addresses"),
        (|it| it.to = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]), "version of IP"),
        (|it| it.port = 0, "port"),
        (|it| it.answer_port = Some(0), "answer_port"),
        (|it| it.group = Some(([10, 0, 0, 9], 7401).into()), "group"),
        (|it| it.separation_ns = 0, "separation_ns"),
        (|it| it.size = 0, "size"),
        (|it| it.limit_ns = 0, "limit_ns"),
        (|it| it.overhead = OVERHEAD_MAX + 1, "overhead"),
        (|it| it.lease_s = LEASE_S.end() + 1, "lease_s"),
    ];
    for (own, word) in cases {
        match changed(own) {
            Err(RegistrationError::Invalid(what)) => assert!(what.contains(word), "{word}: {what}"),
            other => panic!("{word}: {other:?}"),
        }
    }
}

#[test]
fn registrations_that_differ_only_in_the_lease_are_the_same() {
    let own = registration();
    assert!(own.is_same(&Registration { lease_s: 5, ..own.clone() }));
    assert!(!own.is_same(&Registration { port: 7412, ..own.clone() }));
    assert!(own.has_names_of(&Registration { port: 7412, ..own.clone() }));
    assert!(!own.has_names_of(&Registration { reader: "other".into(), ..own.clone() }));
}

#[test]
fn sockets_are_those_of_samples_answers_and_group() {
    let group = ([239, 255, 0, 1], 7401).into();
    let own = Registration { answer_port: Some(7413), group: Some(group), ..registration() };
    let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
    let expected = [
        Socket { source: a, destination: (b, 7411).into() },
        Socket { source: b, destination: (a, 7413).into() },
        Socket { source: a, destination: group },
    ];
    assert_eq!(own.sockets().collect::<Vec<_>>(), expected);
    assert_eq!(registration().sockets().count(), 1);
}

#[test]
fn number_of_a_registered_pair_is_that_of_its_registration() {
    let pair = pair_of(0x0102_0304_0506_0708, 9);
    assert_eq!(number_of(pair), Some(0x0102_0304_0506_0708));
    assert!(is_reserved(pair.writer.prefix));
    assert_eq!(pair_of(1, 9).writer, pair.writer, "the writer of both");
    let others = Pair { reader: Guid { prefix: GuidPrefix([1; 12]), ..pair.reader }, ..pair };
    assert_eq!(number_of(others), None);
}

#[test]
fn budget_allows_a_burst_and_refills_at_its_rate() {
    let mut budget = Budget::new(0);
    assert_eq!((0..CHANGES_AT_ONCE + 50).filter(|_| budget.take(0)).count() as u64, CHANGES_AT_ONCE);
    assert_eq!((0..1_000).filter(|_| budget.take(1_000_000_000)).count() as u64, CHANGES_PER_SECOND);
    let hour = 3_600_000_000_000;
    assert_eq!((0..1_000).filter(|_| budget.take(hour)).count() as u64, CHANGES_AT_ONCE, "and no more than at first");
}
