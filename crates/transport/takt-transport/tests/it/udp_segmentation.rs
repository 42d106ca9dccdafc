//! Tests of segmentation offload: datagrams of one size to one address arrive unchanged.

use takt_transport::udp::{UdpConfig, UdpTransport};
use takt_transport::{Commit, FlowId, Transport};
use takt_wire::Locator;

use super::{drain_until, open, own_loopback, user_locator};

/// Commits datagrams of these lengths, each with its number in its first octet and its length in
/// the others.
fn commit(from: &mut UdpTransport, lens: &[usize], to: &[Locator]) {
    for (n, len) in lens.iter().enumerate() {
        let frame = from.loan().expect("a frame is loaned");
        frame[..*len].fill(*len as u8);
        frame[0] = n as u8;
        from.commit(Commit::new(*len, FlowId::DEFAULT, to)).expect("the frame is accepted");
    }
}

/// Returns the number and length of all datagrams received until `count` have arrived.
fn received(count: u64, by: &mut UdpTransport) -> Vec<(usize, usize)> {
    let whole = |bytes: &[u8]| bytes[1..].iter().all(|byte| *byte == bytes.len() as u8);
    let all = drain_until(count, by);
    let joined = all.iter().find(|(bytes, _)| !whole(bytes));
    assert!(joined.is_none(), "no datagram has octets of another: {joined:?}");
    all.iter().map(|(bytes, _)| (usize::from(bytes[0]), bytes.len())).collect()
}

#[test]
fn datagrams_to_a_group_by_one_interface_are_segmented() {
    let config = own_loopback();
    let [mut a, mut b, mut c] = [open(&config), open(&config), open(&config)];
    let group = a.status().locators.default_multicast[0].by_interface(std::net::Ipv4Addr::LOCALHOST);
    let lens = [1200; 30];
    let expected: Vec<_> = lens.iter().copied().enumerate().collect();
    for burst in 1..=3 {
        commit(&mut a, &lens, &[group]);
        a.flush().expect("flush succeeds");
        assert_eq!(received(30 * burst, &mut b), expected);
        assert_eq!(received(30 * burst, &mut c), expected);
    }
    let segmented = a.status().stats.segmented_out;
    assert!(
        segmented == 90 || a.status().warnings.iter().any(|warning| warning.what.contains("segment")),
        "{segmented}"
    );
}

/// Sends bursts of many kinds to two receivers. Returns how many datagrams were sent with GSO, and
/// how many the first receiver got with GRO.
fn bursts(config: &UdpConfig) -> (u64, u64) {
    let [mut a, mut b, mut c] = [open(config), open(config), open(config)];
    let (to_b, to_c) = (user_locator(&b), user_locator(&c));
    let bursts: &[&[usize]] = &[
        &[1000; 30],
        &[1200; 30],
        &[1200; 30],
        &[1000, 1000, 1000, 10, 1000, 1000],
        &[100, 200, 300, 300, 200, 100, 100],
        &[9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000, 1],
        &[1],
        &[1, 1],
        &[60_000, 60_000, 7],
        &[1472; 44],
    ];
    let (mut sent_b, mut sent_c) = (0, 0);
    for round in 0..3 {
        for lens in bursts {
            let expected: Vec<_> = lens.iter().copied().enumerate().collect();
            commit(&mut a, lens, &[to_b]);
            sent_b += lens.len() as u64;
            if round > 0 {
                // In the same call as those for the other receiver.
                commit(&mut a, lens, &[to_c, to_b]);
                sent_b += lens.len() as u64;
                sent_c += lens.len() as u64;
            }
            a.flush().expect("flush succeeds");
            let twice = if round > 0 { [&expected[..], &expected].concat() } else { expected.clone() };
            assert_eq!(received(sent_b, &mut b), twice, "in order, none joined, none cut");
            if round > 0 {
                assert_eq!(received(sent_c, &mut c), expected);
            }
        }
    }
    let stats = a.status().stats;
    assert_eq!((stats.datagrams_out, stats.send_errors.total()), (sent_b + sent_c, 0));
    assert_eq!(b.status().stats.truncated, 0);
    (stats.segmented_out, b.status().stats.coalesced_in)
}

#[test]
fn segmented_datagrams_arrive_as_they_were_sent() {
    for config in [own_loopback(), UdpConfig { ipv4: false, ipv6: true, ..own_loopback() }] {
        let (out, joined) = bursts(&config);
        assert!(out > 300 && joined > 200, "GSO and GRO are used: {out} sent, {joined} received");
    }
}

#[test]
fn without_segmentation_the_behavior_is_the_same() {
    assert_eq!(bursts(&UdpConfig { segmentation: false, ..own_loopback() }), (0, 0));
}

/// A receiver without GRO gets single datagrams from a sender with GSO.
#[test]
fn receiver_without_gro_gets_single_datagrams() {
    let config = own_loopback();
    let mut a = open(&config);
    let mut b = open(&UdpConfig { segmentation: false, ..config });
    let to = user_locator(&b);
    for burst in 1..=5 {
        commit(&mut a, &[1000; 20], &[to]);
        a.flush().expect("flush succeeds");
        let expected: Vec<_> = (0..20).map(|n| (n, 1000)).collect();
        assert_eq!(received(20 * burst, &mut b), expected);
    }
    assert!(a.status().stats.segmented_out > 0);
    assert_eq!(b.status().stats.coalesced_in, 0);
}
