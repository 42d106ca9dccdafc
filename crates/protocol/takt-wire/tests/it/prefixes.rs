//! Truncation tests: a message cut at every length yields its complete submessages, an error for
//! the rest, and never a panic.

use takt_wire::builder::{HEADER_LEN, SUBMESSAGE_HEADER_LEN};
use takt_wire::message::MessageView;

use crate::corpus::{ORDERS, datagrams, message, submessages};
use crate::hostile_input::read_everything;

#[test]
fn truncated_datagrams_cause_no_panic() {
    for datagram in datagrams() {
        for len in 0..=datagram.len() {
            read_everything(&datagram[..len]);
        }
    }
}

#[test]
fn truncated_submessage_is_malformed() {
    for datagram in ORDERS.into_iter().flat_map(submessages) {
        for len in HEADER_LEN + 1..datagram.len() {
            let view = MessageView::parse(&datagram[..len]).expect("header is whole");
            let mut items = view.submessages();
            assert!(matches!(items.next(), Some(Err(_))), "{len} of {datagram:x?}");
            assert!(items.next().is_none(), "the start of the next submessage is unknown");
        }
    }
}

/// The length in the header is reduced to match the truncated body.
#[test]
fn submessage_with_a_short_body_is_malformed_or_complete() {
    for datagram in ORDERS.into_iter().flat_map(submessages) {
        let (header, body) = datagram[HEADER_LEN..].split_at(SUBMESSAGE_HEADER_LEN);
        for len in 1..body.len() {
            let octets = u16::try_from(len).expect("short");
            let octets = if header[1] & 1 == 0 { octets.to_be_bytes() } else { octets.to_le_bytes() };
            let cut = message(&[&header[..2], &octets, &body[..len]].concat());
            let mut items = MessageView::parse(&cut).expect("header is whole").submessages();
            assert!(items.next().is_some());
            assert!(items.next().is_none());
        }
    }
}
