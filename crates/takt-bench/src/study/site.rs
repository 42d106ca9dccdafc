//! Where the processes of a campaign run: two ends, on one host or on two.
//!
//! On loopback the campaign moves to a network namespace of its own, whose loopback interface has multicast, and to a mount namespace with an empty
//! `/dev/shm`. So neither other DDS participants of the machine nor what earlier runs left in shared memory takes part. Both vanish with the
//! process. Without root the machine's own loopback interface is used, and the environment says so.

use super::file::Site;
use crate::campaign;
use crate::error::{Error, Result};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::ffi::CString;
use std::net::Ipv4Addr;
use takt_netlink::{Netlink, interface_index};

/// Multicast addresses of IPv4.
const MULTICAST: (Ipv4Addr, u8) = (Ipv4Addr::new(224, 0, 0, 0), 4);

/// One end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Address of its interface.
    pub address: Ipv4Addr,
    /// Name of its interface.
    pub interface: String,
    /// Path of its network namespace; `None`: that of the calling thread.
    pub namespace: Option<CString>,
}

/// Both ends; what was made for them goes with the value.
#[derive(Debug)]
pub struct Place {
    /// The end of the measuring process, and the other one.
    pub ends: [End; 2],
    /// Whether they are two hosts.
    pub are_two: bool,
    /// What could not be had, and why.
    pub missing: Option<String>,
    _link: Option<campaign::Site>,
}

impl Place {
    /// Makes what a campaign asks for. Processes that the calling thread starts from now on are in it.
    ///
    /// # Errors
    /// It needs root, or the machine cannot.
    pub fn make(site: &Site) -> Result<Self> {
        match site {
            Site::Loopback => {
                let missing =
                    own_loopback().err().map(|why| format!("loopback of the machine, shared with others: {why}"));
                let end = End { address: Ipv4Addr::LOCALHOST, interface: "lo".into(), namespace: None };
                Ok(Self { ends: [end.clone(), end], are_two: false, missing, _link: None })
            }
            Site::Link => {
                let link = campaign::Site::new()?;
                let end = |end: campaign::End| End {
                    address: end.address,
                    interface: link.interface().into(),
                    namespace: Some(end.namespace),
                };
                let ends = link.ends().map(end);
                Ok(Self { ends, are_two: true, missing: None, _link: Some(link) })
            }
        }
    }
}

fn own_loopback() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).map_err(|e| Error::os("unshare", e.into()))?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(|e| Error::os("mount /", e.into()))?;
    let shared_memory = mount(Some("tmpfs"), "/dev/shm", Some("tmpfs"), MsFlags::empty(), None::<&str>);
    shared_memory.map_err(|e| Error::os("mount /dev/shm", e.into()))?;
    let up = || {
        let (mut netlink, lo) = (Netlink::route()?, interface_index("lo")?);
        netlink.set_up(lo, true)?;
        netlink.set_multicast(lo, true)?;
        netlink.add_route(lo, MULTICAST.0.into(), MULTICAST.1)
    };
    up().map_err(|e| Error::os("set the loopback interface up", e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    /// On a thread of its own, which takes the namespaces with it.
    #[test]
    fn loopback_of_a_campaign_carries_multicast_and_nothing_of_the_machine() {
        if let Err(why) = takt_testkit::require::root() {
            return takt_testkit::not_run(why);
        }
        let outside = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = outside.local_addr().unwrap().port();
        let test = move || {
            let place = Place::make(&Site::Loopback).unwrap();
            assert_eq!(place.missing, None);
            let reader = UdpSocket::bind(("0.0.0.0", port)).unwrap();
            let group = Ipv4Addr::new(239, 255, 0, 1);
            reader.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).unwrap();
            reader.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let writer = UdpSocket::bind("127.0.0.1:0").unwrap();
            for to in [group, Ipv4Addr::LOCALHOST] {
                writer.send_to(b"x", (to, port)).unwrap();
                assert_eq!(reader.recv(&mut [0; 4]).unwrap(), 1, "{to}");
            }
            std::fs::read_dir("/dev/shm").unwrap().count()
        };
        assert_eq!(std::thread::spawn(test).join().unwrap(), 0, "/dev/shm is empty");
        outside.set_nonblocking(true).unwrap();
        assert!(outside.recv(&mut [0; 4]).is_err(), "nothing left the namespace");
    }
}
