//! Random frame loss, with datagrams between two namespaces.

use std::net::UdpSocket;
use std::time::Duration;

use takt_netlink::code;
use takt_netlink::loss::LossCounters;

use crate::in_namespace;

#[test]
fn interface_drops_its_share_of_frames_and_counts_them_until_loss_is_removed() {
    /// Address of the remote end.
    const PEER: &str = "10.77.0.2";
    const DATAGRAMS: u32 = 4000;
    /// Number of datagrams that fit into a socket buffer.
    const BURST: u32 = 20;
    in_namespace(|netlink, index, peer| {
        let receiver = peer.run(|| UdpSocket::bind("0.0.0.0:7400").expect("the port is free"));
        receiver.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
        let sender = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        let received = || {
            let mut count = 0;
            for _ in 0..DATAGRAMS / BURST {
                for _ in 0..BURST {
                    sender.send_to(&[7; 100], (PEER, 7400)).expect("the link is up");
                }
                receiver.set_nonblocking(true).expect("a socket");
                while receiver.recv(&mut [0; 200]).is_ok() {
                    count += 1;
                }
            }
            receiver.set_nonblocking(false).expect("a socket");
            while receiver.recv(&mut [0; 200]).is_ok() {
                count += 1;
            }
            count
        };
        assert_eq!(received(), DATAGRAMS);
        netlink.add_loss(index, 0.2).expect("root has the permission");
        let error = netlink.add_loss(index, 0.2).expect_err("the interface already drops frames");
        assert_eq!(code(&error), Some(libc::EEXIST), "{error}");
        let arrived = received();
        let LossCounters { frames, dropped } = netlink.lost(index).expect("the interface exists");
        assert!(frames >= u64::from(DATAGRAMS) && dropped >= u64::from(DATAGRAMS - arrived), "{frames} {dropped}");
        // For 4,000 frames at 20 %, the standard deviation is 25.
        assert!((3000..3400).contains(&arrived), "{arrived}");
        netlink.remove_loss(index).expect("root has the permission");
        assert_eq!(netlink.lost(index).expect("the interface exists"), LossCounters::default());
        assert_eq!(received(), DATAGRAMS);
    });
}
