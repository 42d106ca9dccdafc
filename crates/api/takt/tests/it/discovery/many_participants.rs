//! More participants on one host than there are well-known ports (RTPS 2.5 §9.6.2).

use crate::support::*;
use takt::qos::*;
use takt::*;

/// Participants 0 to 119 have well-known ports.
const PARTICIPANTS: usize = 130;

#[test]
fn one_hundred_and_thirty_participants_discover_the_first_and_exchange_samples() {
    allow_descriptors(PARTICIPANTS as u64 * 12);
    let domain = domain();
    // Without multicast, all participants contact the first ten by their well-known ports. These
    // answer to the announced ports, which may be others.
    let hub = on_loopback(domain, Runtime::Shared).multicast(false).build().expect("participant");
    let reader = create_reader::<Blob>(&hub, "Topic", reliable_reader(History::KeepAll));
    let others: Vec<_> = (1..PARTICIPANTS)
        .map(|index| {
            let builder = on_loopback(domain, Runtime::Inline).multicast(false);
            builder.build().unwrap_or_else(|error| panic!("{index}: {error}"))
        })
        .collect();
    let writers: Vec<_> = others
        .iter()
        .map(|participant| create_writer::<Blob>(participant, "Topic", reliable_writer(History::KeepAll)))
        .collect();
    wait_until(&[], "all matches", || {
        drive(&others);
        reader.matched_publications().expect("open").len() == writers.len()
            && writers.iter().all(|writer| !writer.matched_subscriptions().expect("open").is_empty())
    });
    for (number, writer) in (1..).zip(&writers) {
        writer.write(&Blob::new(number, 10)).expect("room");
    }
    let mut numbers = Vec::new();
    wait_until(&[], "all samples", || {
        drive(&others);
        let samples = reader.take(usize::MAX).expect("open");
        numbers.extend(samples.into_iter().filter_map(|sample| sample.data).map(|blob| blob.number));
        numbers.len() == writers.len()
    });
    numbers.sort_unstable();
    assert_eq!(numbers, (1..PARTICIPANTS as u32).collect::<Vec<_>>());
    assert_eq!(hub.discovered_participants().expect("open").len(), PARTICIPANTS - 1);
}

/// Drives each participant until nothing is due. The first ten receive announcements from 129
/// participants. With one datagram per pass they would fall behind on a slow machine until their
/// sockets overflow.
fn drive(participants: &[DomainParticipant]) {
    for participant in participants {
        while participant.spin_once(takt::Duration::ZERO).expect("inline") {}
    }
}

/// Raises the limit of descriptors, usually 1024: each participant has several sockets.
fn allow_descriptors(count: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is live and writable.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    if limit.rlim_cur < count + 512 {
        limit.rlim_cur = limit.rlim_max.min(count + 512);
        // SAFETY: `limit` is live.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    }
}
