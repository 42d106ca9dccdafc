//! AF_XDP transport on a host of the test network that checks its counters at the end.

use std::sync::mpsc::Sender;

use takt_xdp::{XdpCounters, XdpTransport};

use super::network::Host;
use super::transport_on_host::TransportOnHost;

/// Wraps a transport. When it is dropped, asserts that there were no invalid entries, and sends its
/// counters to `sender`.
pub fn checked(xdp: XdpTransport, host: Host, sender: Option<Sender<XdpCounters>>) -> TransportOnHost<XdpTransport> {
    TransportOnHost::with_on_drop(xdp, host, move |xdp| {
        let counters = xdp.counters();
        let refused = [counters.malformed, counters.damaged, counters.invalid_entries, counters.refused_flushes];
        if !std::thread::panicking() {
            assert_eq!((refused, counters.no_frame_out), ([0; 4], 0), "{counters:?}");
        }
        if let Some(sender) = &sender {
            sender.send(counters).expect("the requester waits");
        }
    })
}
