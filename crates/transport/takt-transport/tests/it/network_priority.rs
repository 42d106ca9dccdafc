//! Tests that TRANSPORT_PRIORITY becomes the DSCP at the receiver.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use takt_transport::udp::UdpConfig;
use takt_transport::{FlowId, FlowSpec, Transport};
use takt_wire::Locator;

use super::{loopback, open, send};

/// Socket that receives the traffic class of each datagram.
struct Observer(UdpSocket);

impl Observer {
    fn new(at: SocketAddr) -> Self {
        let socket = UdpSocket::bind(at).expect("a port is free");
        let (level, name) = match at {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVTOS),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
        };
        let on: libc::c_int = 1;
        let (fd, size) = (socket.as_raw_fd(), size_of_val(&on) as libc::socklen_t);
        // SAFETY: `on` is an int of that size, alive during the call.
        let set = unsafe { libc::setsockopt(fd, level, name, (&raw const on).cast(), size) };
        assert_eq!(set, 0);
        Self(socket)
    }

    fn locator(&self) -> Locator {
        self.0.local_addr().expect("the socket is bound").into()
    }

    /// Returns the traffic class of the next datagram: DSCP and ECN.
    fn traffic_class(&self) -> u8 {
        let (mut payload, mut control) = ([0u8; 100], [0u64; 16]);
        let mut vector = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() };
        // SAFETY: all zeros is a valid value of this C structure.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        // SAFETY: the header leads to live buffers with their true lengths.
        let len = unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut header, 0) };
        assert!(len > 0);
        // SAFETY: the kernel has just filled in the header, and its data are 1 or 4 bytes whose
        // first one, on a little-endian machine, is the value.
        unsafe {
            let message = libc::CMSG_FIRSTHDR(&header);
            assert!(!message.is_null(), "no traffic class");
            *libc::CMSG_DATA(message)
        }
    }
}

#[test]
fn receiver_sees_the_dscp() {
    let mut transport = open(&UdpConfig { ipv6: true, ..loopback(65) });
    for at in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), (Ipv6Addr::LOCALHOST, 0).into()] {
        let observer = Observer::new(at);
        for own_port in [false, true] {
            for (priority, dscp) in [(-5, 0), (0, 0), (1, 1), (46, 46), (63, 63), (1000, 63)] {
                let spec = FlowSpec { own_port, transport_priority: priority };
                let (flow, _) = transport.open_flow(&spec).expect("a port is free");
                send(&mut transport, b"?", flow, &[observer.locator()]);
                assert_eq!(observer.traffic_class(), dscp << 2, "priority {priority}");
                transport.close_flow(flow).expect("the flow is open");
            }
        }
        send(&mut transport, b"?", FlowId::DEFAULT, &[observer.locator()]);
        assert_eq!(observer.traffic_class(), 0);
    }
}
