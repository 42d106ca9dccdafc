//! Tests that samples on loan stay in the frames that they arrived in.

use std::sync::mpsc;
use std::time::Instant;

use takt::LoanedSample;
use takt_transport::ethernet::{EthernetConfig, EthernetTransport, PacketConfig, PacketPort};
use takt_transport::udp::UdpTransport;
use takt_xdp::{Mode, XdpConfig, XdpPort, XdpPortConfig, XdpTransport};

use crate::checked::checked;
use crate::network::Network;
use crate::participants_helper::{Blob, TIMEOUT, TestParticipant, new_participant};
use crate::transport_on_host::TransportOnHost;

const MODES: [Mode; 2] = [Mode::Native, Mode::Generic];

/// Number of receive frames, and of those that can be held.
const FRAMES: u32 = 64;
const HELD: usize = 16;

fn blob(number: u32) -> Blob {
    Blob { number, octets: (0..400).map(|at: u32| (at ^ number) as u8).collect() }
}

fn spin(participants: [&TestParticipant; 2]) {
    for one in participants {
        one.participant.spin_once(takt::Duration::from_millis(1)).expect("open");
    }
}

/// Writes these samples one after another, and takes them as loans when all have arrived.
fn borrow(
    writer: &TestParticipant,
    reader: &TestParticipant,
    numbers: std::ops::Range<u32>,
) -> Vec<LoanedSample<Blob>> {
    let since = Instant::now();
    let matched = || writer.writer.publication_matched_status().expect("open").current_count;
    while matched() == 0 {
        assert!(since.elapsed() < TIMEOUT, "the participants do not discover each other");
        spin([writer, reader]);
    }
    let count = numbers.len();
    for number in numbers {
        writer.writer.write(&blob(number)).expect("the writer accepts the sample");
        spin([writer, reader]);
    }
    // All samples are in the reader's history before one is taken: acknowledgment implies this.
    while writer.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_err() {
        assert!(since.elapsed() < TIMEOUT, "nothing arrives");
        spin([writer, reader]);
    }
    let samples: Vec<_> = std::iter::from_fn(|| reader.reader.take_loaned().expect("open")).collect();
    assert_eq!(samples.len(), count);
    samples
}

/// Checks the content of the samples, numbered from `first`. Returns how many are loans.
fn count_loans(samples: &[LoanedSample<Blob>], first: u32) -> usize {
    for (number, sample) in (first..).zip(samples) {
        let mut value = Blob::default();
        assert!(sample.decode(&mut value) && value == blob(number), "{number}: {value:?}");
        assert!(sample.is_intact());
    }
    samples.iter().filter(|sample| sample.is_loaned()).count()
}

/// Takes loans, holds and releases them, takes others, and holds one beyond the end of the
/// participant.
fn borrow_and_release(writer: TestParticipant, reader: TestParticipant) {
    reader.reader.borrow_samples(true).expect("open");
    let mut first = borrow(&writer, &reader, 0..40);
    assert_eq!(count_loans(&first, 0), HELD, "samples beyond the limit are copied");
    // All other frames are reused meanwhile.
    let second = borrow(&writer, &reader, 40..200);
    assert_eq!((count_loans(&second, 40), count_loans(&first, 0)), (0, HELD));
    let last = first.swap_remove(0);
    drop((first, second));
    assert_eq!(count_loans(&borrow(&writer, &reader, 200..210), 200), 10, "the send buffer has space again");
    reader.reader.borrow_samples(false).expect("open");
    assert_eq!(count_loans(&borrow(&writer, &reader, 210..220), 210), 0, "a reader without loans copies");
    drop((writer, reader));
    assert!(last.is_loaned());
    assert_eq!(count_loans(&[last], 0), 1, "the loan stays valid");
}

#[test]
fn samples_by_udp_are_loaned_from_the_frames() {
    for mode in MODES {
        let Some(network) = Network::new() else { return };
        let (here, there) = (network.host(true), network.host(true));
        let config = XdpConfig { mode: Some(mode), rx_frames: FRAMES, ..XdpConfig::new(0, "eth0") };
        let xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        let udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let (sender, receiver) = mpsc::channel();
        let reader =
            new_participant(Box::new(checked(xdp, here, Some(sender))), "Back", "There").expect("a participant");
        let writer =
            new_participant(Box::new(TransportOnHost::new(udp, there)), "There", "Back").expect("a participant");
        borrow_and_release(writer, reader);
        let counters = receiver.recv_timeout(TIMEOUT).expect("the transport is dropped");
        assert_eq!((counters.held_in, counters.kernel_drops), (HELD as u64 + 10, 0), "{counters:?}");
    }
}

#[test]
fn samples_without_ip_are_loaned_from_the_frames() {
    for mode in MODES {
        let Some(network) = Network::new() else { return };
        let (here, there) = (network.host(true), network.host(true));
        let packet = PacketConfig::new("eth0");
        let config =
            XdpPortConfig { packet: packet.clone(), mode: Some(mode), rx_frames: FRAMES, ..XdpPortConfig::new("eth0") };
        let (xdp, other) = (
            here.run(|| EthernetTransport::open(XdpPort::open(&config)?, &EthernetConfig::new(0))),
            there.run(|| EthernetTransport::open(PacketPort::open(&packet)?, &EthernetConfig::new(0))),
        );
        let writer = new_participant(
            Box::new(TransportOnHost::new(other.expect("AF_PACKET can be opened"), there)),
            "There",
            "Back",
        )
        .expect("a participant");
        let reader = new_participant(Box::new(TransportOnHost::new(xdp.expect("opened"), here)), "Back", "There")
            .expect("a participant");
        borrow_and_release(writer, reader);
    }
}
