//! Discovery without multicast: peers by name, port and index, added and removed at run time.

use crate::support::*;
use takt::qos::*;
use takt::*;

fn without_multicast(domain: u32) -> DomainParticipant {
    let builder = DomainParticipant::builder(domain).interfaces(["lo"]).peers([""; 0]).multicast(false);
    builder.runtime(Runtime::Inline).build().expect("participant")
}

fn knows(participant: &DomainParticipant, other: &DomainParticipant) -> bool {
    let known = participant.discovered_participants().expect("open");
    known.iter().any(|data| data.guid == other.guid())
}

#[test]
fn peers_are_added_and_removed_while_participants_run() {
    for form in ["127.0.0.1", "localhost", "localhost#0-1", "127.0.0.1#1"] {
        let domain = domain();
        let (first, second) = (without_multicast(domain), without_multicast(domain));
        let writer = create_writer::<Blob>(&first, "Topic", reliable_writer(History::KeepAll));
        let reader = create_reader::<Blob>(&second, "Topic", reliable_reader(History::KeepAll));
        let both = [&first, &second];
        // It suffices that one side has the other as peer.
        first.add_peer(form).expect("well-formed");
        wait_until(&both, form, || !writer.matched_subscriptions().expect("open").is_empty());
        wait_until(&both, form, || !reader.matched_publications().expect("open").is_empty());
        writer.write(&Blob::new(1, 10)).expect("room");
        wait_until(&both, form, || !reader.take(1).expect("open").is_empty());
    }
}

#[test]
fn removed_peer_receives_no_announcements() {
    let domain = domain();
    let (first, second) = (without_multicast(domain), without_multicast(domain));
    first.add_peer("127.0.0.1#1-2").expect("well-formed");
    first.remove_peer("127.0.0.1#2").expect("well-formed");
    let third = without_multicast(domain);
    let all = [&first, &second, &third];
    wait_until(&all, "the other peer", || knows(&first, &second) && knows(&second, &first));
    let sent = |participant: &DomainParticipant| participant.diagnostics().counters().expect("open").datagrams_sent;
    let before = sent(&first);
    wait_until(&all, "announcements", || sent(&first) > before + 2);
    assert!(!knows(&third, &first), "no peer announced it");
}

#[test]
fn invalid_peer_is_an_error() {
    let participant = without_multicast(domain());
    for wrong in ["no-such-host.invalid", "127.0.0.1#7-3", "127.0.0.1:x"] {
        let error = participant.add_peer(wrong).expect_err(wrong);
        assert!(matches!(&error, Error::BadParameter { what, .. } if what.contains(wrong)), "{error}");
    }
    let many = (0..40).map(|host| format!("127.0.1.{host}#0-119"));
    let results: Vec<_> = many.map(|peer| participant.add_peer(&peer)).collect();
    assert!(results[..30].iter().all(Result::is_ok));
    assert!(matches!(results[39], Err(Error::OutOfResources { .. })));
}
