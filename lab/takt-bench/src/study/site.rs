//! Hosts and networks of a campaign: two ends on one host, on two hosts of a lab, or on two
//! machines.
//!
//! On loopback the campaign moves to a network namespace of its own, whose loopback interface
//! supports multicast, and to a mount namespace with an empty `/dev/shm`. So neither other DDS
//! participants of the machine nor leftovers in shared memory take part. Both namespaces end with
//! the process.
//!
//! Two hosts on one machine each have a `/dev/shm` and a machine ID. So shared memory cannot bypass
//! their network, and systems that read the machine ID treat them as two hosts. Without root the
//! machine's own loopback interface is used, and the environment records that.

use super::file::Site;
use super::file::site::LabSite;
use super::per_host_files::PerHostFiles;
use super::ssh::Ssh;
use super::system::{Agent, System};
use crate::campaign;
use crate::error::{Error, Result};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::ffi::CString;
use std::net::Ipv4Addr;
use takt_lab::file::SWITCHES;
use takt_lab::plan::{Interface, LinkPlan};
use takt_lab::{Lab, Namespace, namespace};
use takt_netlink::{Netlink, interface_index};

/// Network of the multicast addresses of IPv4.
const MULTICAST: (Ipv4Addr, u8) = (Ipv4Addr::new(224, 0, 0, 0), 4);

/// End of a measurement: its host's interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Address of the interface.
    pub address: Ipv4Addr,
    /// Name of the interface.
    pub interface: String,
    /// Path of the network namespace; `None`: that of the calling thread, or another machine.
    pub namespace: Option<CString>,
}

/// Amount of traffic sent and received at an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of frames.
    pub frames: u64,
    /// Number of octets.
    pub octets: u64,
}

impl Traffic {
    /// Parses the counters of an interface in the text of `/proc/net/dev`. The loopback interface
    /// receives what it sends, so its traffic counts once.
    fn parse(text: &str, interface: &str) -> Option<Self> {
        let of = |line: &str| line.trim_start().strip_prefix(interface)?.strip_prefix(':').map(ToOwned::to_owned);
        let line = text.lines().find_map(of)?;
        let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let (received, sent) = (numbers.get(..2)?, numbers.get(8..10)?);
        let share = if interface == "lo" { [0, 0] } else { [received[1], received[0]] };
        Some(Self { frames: share[0] + sent[1], octets: share[1] + sent[0] })
    }

    /// Returns the traffic since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self { frames: self.frames.saturating_sub(earlier.frames), octets: self.octets.saturating_sub(earlier.octets) }
    }
}

/// Both ends of a campaign. Dropping the value removes everything that was created for them.
#[derive(Debug)]
pub struct CampaignSite {
    /// End of the measuring process, and the other end.
    pub ends: [End; 2],
    /// Whether the ends are two hosts.
    pub are_two: bool,
    /// Feature that is unavailable, with the reason.
    pub missing: Option<String>,
    /// Machines, if they are reached by ssh.
    pub ssh: Option<Ssh>,
    /// Lab, if the campaign describes a network.
    pub lab: Option<Lab>,
    per_host_files: Option<[PerHostFiles; 2]>,
    _link: Option<campaign::Site>,
}

impl CampaignSite {
    /// Creates the hosts and networks of a campaign. Processes that the calling thread starts from
    /// now on run in them.
    ///
    /// # Errors
    /// The site needs root, the machine cannot create it, or a host is not reached.
    pub fn make(site: &Site) -> Result<Self> {
        match site {
            Site::Loopback => {
                let missing =
                    own_loopback().err().map(|why| format!("loopback of the machine, shared with others: {why}"));
                let end = End { address: Ipv4Addr::LOCALHOST, interface: "lo".into(), namespace: None };
                Ok(Self { are_two: false, missing, ..Self::of([end.clone(), end]) })
            }
            Site::Link => {
                let link = campaign::Site::new()?;
                let end = |end: campaign::End| End {
                    address: end.address,
                    interface: link.interface().into(),
                    namespace: Some(end.namespace),
                };
                let ends = link.ends().map(end);
                Ok(Self { per_host_files: Some(PerHostFiles::of_two_hosts()?), _link: Some(link), ..Self::of(ends) })
            }
            Site::Lab(site) => Self::in_lab(site),
            Site::Ssh(site) => {
                let end = |side: usize| End {
                    address: site.addresses[side],
                    interface: site.interfaces[side].clone(),
                    namespace: None,
                };
                Ok(Self { ssh: Some(Ssh::connect(site)?), ..Self::of([end(0), end(1)]) })
            }
        }
    }

    /// Returns the frames and octets that the interface of an end has sent and received.
    ///
    /// # Errors
    /// The kernel, or the machine, does not report them.
    pub fn traffic(&self, side: usize) -> Result<Traffic> {
        const DEVICES: &str = "/proc/thread-self/net/dev";
        let end = &self.ends[side];
        let read = || std::fs::read_to_string(DEVICES).map_err(|e| Error::os(DEVICES, e));
        let text = match (&self.ssh, &end.namespace) {
            (Some(ssh), _) => ssh.interface_counters(side)?,
            (None, Some(path)) => {
                let path = path.to_string_lossy();
                let name = path.rsplit('/').next().unwrap_or_default();
                let namespace = Namespace::open(name).map_err(|e| Error::os(path.as_ref(), e))?;
                namespace.run(read).map_err(|e| Error::os(path.as_ref(), e))??
            }
            (None, None) => read()?,
        };
        let missing = || Error::Usage(format!("the kernel has no counters of {}", end.interface));
        Traffic::parse(&text, &end.interface).ok_or_else(missing)
    }

    /// Sets the link of the answering host down or up, at its switch.
    ///
    /// # Errors
    /// The site has no switch, or the kernel refuses.
    pub fn set_link(&self, is_up: bool) -> Result<()> {
        let (lab, cable) = self.cable(1)?;
        let port = at_switch(cable)?;
        let failed = |e| Error::os(format!("set {} {}", port.name, if is_up { "up" } else { "down" }), e);
        let set = || Netlink::route()?.set_up(interface_index(&port.name)?, is_up);
        lab.namespace(SWITCHES)?.run(set).map_err(failed)?.map_err(failed)
    }

    /// Returns the network, and the link of an end.
    ///
    /// # Errors
    /// The site has no switch.
    pub fn cable(&self, side: usize) -> Result<(&Lab, &LinkPlan)> {
        let lab = self.lab.as_ref().ok_or_else(no_switch)?;
        let own = &self.ends[side].address;
        let is_own = |end: &&Interface| end.addresses.iter().any(|address| address.ip == *own);
        let cable = lab.plan().links.iter().find(|cable| cable.ends.iter().any(|end| is_own(&end)));
        Ok((lab, cable.ok_or_else(no_switch)?))
    }

    /// Creates a site without hosts, for a campaign whose workloads create their own networks.
    #[must_use]
    pub fn none() -> Self {
        let end = End { address: Ipv4Addr::LOCALHOST, interface: "lo".into(), namespace: None };
        Self { are_two: false, ..Self::of([end.clone(), end]) }
    }

    /// Returns the bind mounts of the processes of an end.
    pub(super) fn mounts(&self, side: usize) -> Vec<(CString, CString)> {
        self.per_host_files.as_ref().map_or_else(Vec::new, |own| own[side].mounts())
    }

    /// Returns the agent of a system.
    #[must_use]
    pub fn agent(&self, system: &System) -> Agent {
        self.ssh.as_ref().map_or_else(|| system.agent(), |ssh| ssh.agent(&system.program))
    }

    /// Returns the broker of a system, if it has one.
    #[must_use]
    pub fn broker_agent(&self, system: &System) -> Option<Agent> {
        match (&self.ssh, &system.broker) {
            (Some(ssh), Some(broker)) => Some(ssh.agent(broker)),
            _ => system.broker_agent(),
        }
    }

    /// Returns the column that starts an agent at one of the ends.
    #[must_use]
    pub fn column(&self, side: usize, column: &campaign::Column) -> campaign::Column {
        self.ssh.as_ref().map_or_else(|| column.clone(), |ssh| ssh.column(side, column))
    }

    /// Quotes arguments for the ends: ssh passes them to a shell.
    #[must_use]
    pub fn words(&self, arguments: &[String]) -> Vec<String> {
        match self.ssh {
            Some(_) => arguments.iter().map(|word| super::ssh::quoted(word)).collect(),
            None => arguments.to_vec(),
        }
    }

    /// Creates a site with two hosts.
    fn of(ends: [End; 2]) -> Self {
        Self { ends, are_two: true, missing: None, ssh: None, lab: None, per_host_files: None, _link: None }
    }

    fn in_lab(site: &LabSite) -> Result<Self> {
        let lab = Lab::up(&site.network(&format!("bench-{}", std::process::id()))?)?;
        let end = |(host, interface, address): (String, String, Ipv4Addr)| -> Result<End> {
            let path = format!("{}/{}", namespace::DIRECTORY, lab.namespace_name(&host)?);
            let namespace =
                CString::new(path).map_err(|why| Error::Usage(format!("the namespace of {host}: {why}")))?;
            Ok(End { address, interface, namespace: Some(namespace) })
        };
        let [one, other] = site.ends()?;
        let ends = [end(one)?, end(other)?];
        Ok(Self { per_host_files: Some(PerHostFiles::of_two_hosts()?), lab: Some(lab), ..Self::of(ends) })
    }
}

/// Returns the switch port of a link.
///
/// # Errors
/// The link has none.
pub fn at_switch(cable: &LinkPlan) -> Result<&Interface> {
    cable.ends.iter().find(|end| end.node == SWITCHES).ok_or_else(no_switch)
}

fn no_switch() -> Error {
    Error::Usage("the site has no switch whose link could be taken down, or lose frames".into())
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

    #[test]
    fn traffic_of_loopback_counts_once_and_of_other_interfaces_both_ways() {
        let text = "Inter-|   Receive   |  Transmit\n face |bytes packets\n    lo:  1000      10    0    0    0     0          0         0  1000      10    0    0\n\
                    \x20 eth0: 500 5 0 0 0 0 0 0 70 7 0 0 0 0 0 0\n";
        assert_eq!(Traffic::parse(text, "lo"), Some(Traffic { frames: 10, octets: 1000 }));
        assert_eq!(Traffic::parse(text, "eth0"), Some(Traffic { frames: 12, octets: 570 }));
        assert_eq!(Traffic::parse(text, "eth1"), None);
    }

    /// Runs on a separate thread, whose end also ends the namespaces.
    #[test]
    fn loopback_site_has_multicast_and_is_isolated_from_the_machine() {
        if let Err(why) = takt_testkit::require::root() {
            return takt_testkit::not_run(why);
        }
        let outside = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = outside.local_addr().unwrap().port();
        let test = move || {
            let place = CampaignSite::make(&Site::Loopback).unwrap();
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
