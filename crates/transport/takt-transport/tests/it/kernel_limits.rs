//! Tests that datagrams that the kernel refuses or drops are reported.

use takt_transport::udp::UdpConfig;
use takt_transport::{FlowId, Transport};

use super::{drain, loopback, open, receive, send, user_locator};

/// More than a small receive buffer holds: lost datagrams are counted.
#[test]
fn overflow_of_the_receive_buffer_is_counted() {
    let config = UdpConfig { receive_buffer_bytes: 20_000, ..loopback(60) };
    let (mut a, mut b) = (open(&config), open(&config));
    let to = user_locator(&b);
    for _ in 0..300 {
        send(&mut a, &[1; 1000], FlowId::DEFAULT, &[to]);
    }
    let arrived = drain(&mut b).len();
    assert!(arrived > 0 && arrived < 300, "{arrived} of 300 arrived");
    let stats = b.status().stats;
    assert_eq!((stats.datagrams_in, stats.kernel_drops), (arrived as u64, 300 - arrived as u64));
}

#[test]
fn buffer_smaller_than_requested_is_a_warning_with_a_remedy() {
    // More than the kernel grants.
    let most = usize::try_from(i32::MAX).expect("64 bits");
    let config = UdpConfig { receive_buffer_bytes: most, send_buffer_bytes: most, ..loopback(61) };
    let transport = open(&config);
    let texts: Vec<String> = transport.status().warnings.iter().map(|w| w.to_string()).collect();
    assert_eq!(texts.len(), 2, "each warning is reported once: {texts:?}");
    assert!(texts[0].contains("net.core.rmem_max") && texts[0].contains("receive buffer"));
    assert!(texts[1].contains("net.core.wmem_max") && texts[1].contains("send buffer"));
    let content = open(&UdpConfig { receive_buffer_bytes: 50_000, send_buffer_bytes: 50_000, ..loopback(61) });
    assert_eq!(content.status().warnings, []);
}

/// Sending to a closed port has no effect except perhaps on the counters; other receivers get
/// everything.
#[test]
fn closed_ports_do_no_harm() {
    let config = loopback(62);
    let (mut a, mut b, closed) = (open(&config), open(&config), open(&config));
    let (to_open, to_closed) = (user_locator(&b), user_locator(&closed));
    drop(closed);
    for n in 0..100u8 {
        send(&mut a, &[n], FlowId::DEFAULT, &[to_closed, to_open, to_closed]);
        assert_eq!(receive(&mut b).0, [n]);
    }
    assert_eq!(drain(&mut a), []);
}
