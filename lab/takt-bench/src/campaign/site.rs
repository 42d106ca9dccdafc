//! Two hosts on this machine for a campaign: network namespaces at the ends of a veth pair with an
//! MTU of 1500, created by `takt-lab`.
//!
//! Needs root. The lab has the process ID in its name. Dropping the [`Site`] removes it; after a
//! kill, the next lab does.

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

/// Name of the interface of a host.
const INTERFACE: &str = "eth0";
/// Names of the hosts in the lab file, and their addresses.
const HOSTS: [(&str, Ipv4Addr); 2] = [("a", Ipv4Addr::new(10, 79, 0, 1)), ("b", Ipv4Addr::new(10, 79, 0, 2))];

/// Host of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// Address of the interface.
    pub address: Ipv4Addr,
    /// Path of the network namespace.
    #[serde(serialize_with = "as_text")]
    pub namespace: CString,
}

fn as_text<S: Serializer>(path: &CString, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl End {
    /// Returns a host of a lab.
    pub(crate) fn of(lab: &Lab, (host, address): (&str, Ipv4Addr)) -> Result<Self> {
        let path = format!("{}/{}", namespace::DIRECTORY, lab.namespace_name(host)?);
        let namespace = CString::new(path).map_err(|why| Error::Usage(format!("the namespace of {host}: {why}")))?;
        Ok(Self { address, namespace })
    }
}

/// Pair of hosts; dropping it removes them.
#[derive(Debug)]
pub struct Site {
    _lab: Lab,
    ends: [End; 2],
}

impl Site {
    /// Creates the hosts.
    ///
    /// # Errors
    /// The user lacks the privileges, or the machine lacks a kernel feature.
    pub fn new() -> Result<Self> {
        let file: LabFile = file(&format!("perf-{}", std::process::id())).parse()?;
        let lab = Lab::up(&file)?;
        let [a, b] = HOSTS;
        let ends = [End::of(&lab, a)?, End::of(&lab, b)?];
        Ok(Self { _lab: lab, ends })
    }

    /// Returns the hosts, for a [`Plan`](super::Plan).
    #[must_use]
    pub fn ends(&self) -> [End; 2] {
        self.ends.clone()
    }

    /// Returns the name of the interface, which is the same on both hosts.
    #[must_use]
    pub fn interface(&self) -> &'static str {
        INTERFACE
    }

    /// Returns a command that runs on one of the hosts and ends with this process.
    #[must_use]
    pub fn command(&self, side: usize, program: &str) -> Command {
        let mut command = Command::new(program);
        let namespace = Some(self.ends[side].namespace.clone());
        place(&mut command, Placement { cpu: None, fifo: None, namespace, ..Placement::default() });
        command
    }
}

/// Returns the lab file of the hosts, with the hardware addresses that peers without IP expect.
fn file(name: &str) -> String {
    let [a, b] = HOSTS.map(|(host, address)| format!("{host} = {{ {INTERFACE} = [\"{address}/24\"] }}"));
    let [one, other] = HOSTS.map(|(_, address)| Mac(hardware_address(address)));
    let ends = HOSTS.map(|(host, _)| format!("{host}:{INTERFACE}"));
    format!(
        "name = \"{name}\"\n[hosts]\n{a}\n{b}\n[[links]]\nends = {ends:?}\nmacs = [\"{one}\", \"{other}\"]\n\
         offloads = [\"checksum\", \"segmentation\"]\n"
    )
}

/// Detaches XDP programs that a killed agent may have left at the interface: those that DPDK
/// attaches outlive it.
pub(super) fn clear(end: &End) {
    let path = end.namespace.to_string_lossy();
    let name = path.rsplit('/').next().unwrap_or_default();
    let detach = || Netlink::route()?.detach_xdp(interface_index(INTERFACE)?);
    // An error is ignored: the failure of the agent is reported, and the next agent fails if the
    // program is still attached.
    drop(Namespace::open(name).and_then(|namespace| namespace.run(detach)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lab_hosts_have_hardware_addresses_derived_from_their_ip_addresses() {
        let file: LabFile = file("perf-1").parse().expect("the lab file is valid");
        let plan = takt_lab::plan::Plan::new(&file).expect("the plan is valid");
        let macs: Vec<_> = plan.interfaces().map(|end| end.mac).collect();
        assert_eq!(macs, HOSTS.map(|(_, address)| hardware_address(address)));
    }
}
