//! Large samples on a slow link: all their fragments are sent, and samples of other topics do not
//! wait behind them.

use crate::network::{Host, veth_pair};
use crate::support::*;
use takt::qos::*;
use takt::*;

const IMAGE_LEN: usize = 1_000_000;
const IMAGES: u32 = 6;

/// Creates a participant on each of two hosts, of which the first one sends at this rate and the
/// second one receives in a thread of its own.
fn participants(runtime: Runtime, rate: &str) -> Option<([Host; 2], [DomainParticipant; 2])> {
    let hosts = veth_pair(1)?;
    hosts[0].limit_rate(rate);
    let domain = domain();
    let build = |host: &Host, runtime| {
        let _inside = host.enter();
        DomainParticipant::builder(domain).runtime(runtime).build().expect("participant")
    };
    let participants = [build(&hosts[0], runtime), build(&hosts[1], Runtime::Shared)];
    Some((hosts, participants))
}

fn best_effort_writer(max_blocking_s: i32) -> DataWriterQos {
    let max_blocking_time = takt::Duration::from_secs(max_blocking_s);
    let reliability = Reliability { max_blocking_time, ..Reliability::BEST_EFFORT };
    DataWriterQos { reliability, history: History::KeepLast(1), ..DataWriterQos::default() }
}

fn best_effort_reader() -> DataReaderQos {
    DataReaderQos { reliability: Reliability::BEST_EFFORT, ..reliable_reader(History::KeepAll) }
}

fn refused_by_kernel(participant: &DomainParticipant) -> u64 {
    let all = participant.diagnostics().transport_stats().expect("open");
    all.iter().map(|traffic| traffic.stats.send_errors.would_block).sum()
}

#[test]
fn writer_that_exceeds_the_rate_of_the_link_waits_and_loses_nothing() {
    for runtime in RUNTIMES {
        let Some((_hosts, [publisher, subscriber])) = participants(runtime, "40mbit") else { return };
        let (writer, reader) =
            connect::<Blob>(&publisher, &subscriber, "Image", best_effort_writer(60), best_effort_reader());
        // More than the send buffer of a socket.
        for number in 0..IMAGES {
            writer.write(&Blob::new(number, IMAGE_LEN)).expect("there is room");
        }
        let mut taken = Vec::new();
        wait_until(&[&publisher, &subscriber], "all images arrive", || {
            taken.extend(reader.take(IMAGES as usize).expect("open"));
            taken.len() == IMAGES as usize
        });
        for (number, sample) in (0..).zip(&taken) {
            assert!(sample.data == Some(Blob::new(number, IMAGE_LEN)), "{runtime:?}: image {number} comes next, whole");
        }
        assert_eq!(refused_by_kernel(&publisher), 0);
    }
}

#[test]
fn write_returns_after_max_blocking_time_and_the_rest_of_the_sample_follows() {
    for runtime in RUNTIMES {
        let Some((_hosts, [publisher, subscriber])) = participants(runtime, "40mbit") else { return };
        let (writer, reader) =
            connect::<Blob>(&publisher, &subscriber, "Image", best_effort_writer(0), best_effort_reader());
        writer.write(&Blob::new(1, IMAGE_LEN)).expect("there is room");
        wait_until(&[&publisher, &subscriber], "the image arrives", || {
            reader.take(1).expect("open").first().is_some_and(|sample| sample.data == Some(Blob::new(1, IMAGE_LEN)))
        });
    }
}

#[test]
fn small_sample_overtakes_a_large_one_that_was_written_before() {
    for runtime in RUNTIMES {
        let Some((_hosts, [publisher, subscriber])) = participants(runtime, "4mbit") else { return };
        let (images, image_reader) =
            connect::<Blob>(&publisher, &subscriber, "Image", best_effort_writer(0), best_effort_reader());
        let (poses, pose_reader) =
            connect::<Blob>(&publisher, &subscriber, "Pose", best_effort_writer(0), best_effort_reader());
        images.write(&Blob::new(1, IMAGE_LEN)).expect("there is room");
        poses.write(&Blob::new(2, 10)).expect("there is room");
        let mut has_image = false;
        wait_until(&[&publisher, &subscriber], "the pose arrives", || {
            has_image |= !image_reader.take(1).expect("open").is_empty();
            !pose_reader.take(1).expect("open").is_empty()
        });
        assert!(!has_image, "{runtime:?}: the image takes 2 s on the link");
    }
}

#[test]
fn reliable_large_samples_arrive_in_order_over_a_slow_link() {
    for runtime in RUNTIMES {
        let Some((_hosts, [publisher, subscriber])) = participants(runtime, "40mbit") else { return };
        let pair: Pair<Blob> =
            Pair::between(publisher, subscriber, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        pair.exchange(3, IMAGE_LEN);
        assert_eq!(refused_by_kernel(&pair.publisher), 0);
    }
}
