//! Two hosts on this machine for a campaign, made by `takt-lab`: network namespaces at the ends of a veth pair with an MTU of 1500.
//!
//! Needs root. The lab carries the process id in its name and goes with the [`Site`]; after a kill, with the next lab.

use super::child::{Placement, place};
use crate::error::{Error, Result};
use crate::wire::hardware_address;
use serde::{Serialize, Serializer};
use std::ffi::CString;
use std::net::Ipv4Addr;
use std::process::Command;
use takt_lab::file::Mac;
use takt_lab::{Lab, LabFile, Namespace, namespace};
use takt_netlink::{Netlink, interface_index};

/// The interface of a host.
const INTERFACE: &str = "eth0";
/// The hosts in the file of the lab, and their addresses.
const HOSTS: [(&str, Ipv4Addr); 2] = [("a", Ipv4Addr::new(10, 79, 0, 1)), ("b", Ipv4Addr::new(10, 79, 0, 2))];

/// One host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// Address of its interface.
    pub address: Ipv4Addr,
    /// Path of its network namespace.
    #[serde(serialize_with = "as_text")]
    pub namespace: CString,
}

fn as_text<S: Serializer>(path: &CString, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl End {
    /// A host of a lab.
    pub(crate) fn of(lab: &Lab, (host, address): (&str, Ipv4Addr)) -> Result<Self> {
        let path = format!("{}/{}", namespace::DIRECTORY, lab.namespace_name(host)?);
        let namespace = CString::new(path).map_err(|why| Error::Usage(format!("the namespace of {host}: {why}")))?;
        Ok(Self { address, namespace })
    }
}

/// Both hosts; gone when dropped.
#[derive(Debug)]
pub struct Site {
    _lab: Lab,
    ends: [End; 2],
}

impl Site {
    /// Makes the hosts.
    ///
    /// # Errors
    /// This user, or this machine, cannot.
    pub fn new() -> Result<Self> {
        let file: LabFile = file(&format!("perf-{}", std::process::id())).parse()?;
        let lab = Lab::up(&file)?;
        let [a, b] = HOSTS;
        let ends = [End::of(&lab, a)?, End::of(&lab, b)?];
        Ok(Self { _lab: lab, ends })
    }

    /// The hosts, for a [`Plan`](super::Plan).
    #[must_use]
    pub fn ends(&self) -> [End; 2] {
        self.ends.clone()
    }

    /// The interface of each.
    #[must_use]
    pub fn interface(&self) -> &'static str {
        INTERFACE
    }

    /// A command that runs on one of the hosts, and ends with this process.
    #[must_use]
    pub fn command(&self, side: usize, program: &str) -> Command {
        let mut command = Command::new(program);
        let namespace = Some(self.ends[side].namespace.clone());
        place(&mut command, Placement { cpu: None, fifo: None, namespace, ..Placement::default() });
        command
    }
}

/// The hosts, with the hardware addresses that peers without IP expect.
fn file(name: &str) -> String {
    let [a, b] = HOSTS.map(|(host, address)| format!("{host} = {{ {INTERFACE} = [\"{address}/24\"] }}"));
    let [one, other] = HOSTS.map(|(_, address)| Mac(hardware_address(address)));
    let ends = HOSTS.map(|(host, _)| format!("{host}:{INTERFACE}"));
    format!(
        "name = \"{name}\"\n[hosts]\n{a}\n{b}\n[[links]]\nends = {ends:?}\nmacs = [\"{one}\", \"{other}\"]\n\
         offloads = [\"checksum\", \"segmentation\"]\n"
    )
}

/// Takes off what an agent that was killed may have left at the interface: DPDK attaches programs that outlive it.
pub(super) fn clear(end: &End) {
    let path = end.namespace.to_string_lossy();
    let name = path.rsplit('/').next().unwrap_or_default();
    let detach = || Netlink::route()?.detach_xdp(interface_index(INTERFACE)?);
    // The failure of the agent counts; the next agent fails by itself where the program is still there.
    drop(Namespace::open(name).and_then(|namespace| namespace.run(detach)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_a_lab_with_the_hardware_addresses_of_their_addresses() {
        let file: LabFile = file("perf-1").parse().expect("it is one");
        let plan = takt_lab::plan::Plan::of(&file).expect("it can be made");
        let macs: Vec<_> = plan.interfaces().map(|end| end.mac).collect();
        assert_eq!(macs, HOSTS.map(|(_, address)| hardware_address(address)));
    }
}
