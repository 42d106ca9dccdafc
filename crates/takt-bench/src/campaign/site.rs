//! Two hosts on this machine for a campaign: network namespaces at the ends of a veth pair with an MTU of 1500.
//!
//! Needs root and iproute2. The namespaces carry the process id in their names and go with the [`Site`].

use crate::error::{Error, Result};
use crate::wire::hardware_address;
use serde::{Serialize, Serializer};
use std::ffi::CString;
use std::net::Ipv4Addr;
use std::process::Command;

/// The interface of a host.
const INTERFACE: &str = "eth0";

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

/// Both hosts; gone when dropped.
#[derive(Debug)]
pub struct Site {
    names: [String; 2],
    ends: [End; 2],
}

impl Site {
    /// Makes the hosts.
    ///
    /// # Errors
    /// This user, or this machine, cannot.
    pub fn new() -> Result<Self> {
        let name = |side: &str| format!("takt-perf-{}{side}", std::process::id());
        let names = [name("a"), name("b")];
        let end = |last: u8| End {
            address: Ipv4Addr::new(10, 79, 0, last),
            namespace: CString::new(format!("/run/netns/{}", names[usize::from(last - 1)])).unwrap_or_default(),
        };
        let site = Self { ends: [end(1), end(2)], names };
        let made = site.build();
        made.map(|()| site).map_err(|why| {
            Error::Usage(format!("two network namespaces are needed, and they need root and iproute2: {why}"))
        })
    }

    fn build(&self) -> Result<()> {
        let [a, b] = &self.names;
        for name in [a, b] {
            ip(&["netns", "add", name])?;
        }
        ip(&["link", "add", INTERFACE, "netns", a, "type", "veth", "peer", "name", INTERFACE, "netns", b])?;
        for (name, end) in self.names.iter().zip(&self.ends) {
            let [x, y, p, q, r, s] = hardware_address(end.address);
            let mac = format!("{x:02x}:{y:02x}:{p:02x}:{q:02x}:{r:02x}:{s:02x}");
            ip(&["-n", name, "link", "set", INTERFACE, "address", &mac])?;
            ip(&["-n", name, "addr", "add", &format!("{}/24", end.address), "dev", INTERFACE])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            ip(&["-n", name, "link", "set", INTERFACE, "up"])?;
            ip(&["-n", name, "route", "add", "224.0.0.0/4", "dev", INTERFACE])?;
        }
        Ok(())
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

    /// A command that runs on one of the hosts.
    #[must_use]
    pub fn command(&self, side: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[side], program]);
        command
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for name in &self.names {
            // It may never have been made.
            drop(ip(&["netns", "del", name]));
        }
    }
}

/// Takes off what an agent that was killed may have left at the interface: DPDK attaches programs that outlive it.
pub(super) fn clear(end: &End) {
    let path = end.namespace.to_string_lossy();
    let name = path.rsplit('/').next().unwrap_or_default();
    for mode in ["xdpdrv", "xdpgeneric"] {
        // Nothing is there, mostly.
        drop(ip(&["-n", name, "link", "set", INTERFACE, mode, "off"]));
    }
}

fn ip(words: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(words).output().map_err(|e| Error::os("run ip", e))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Usage(format!("ip {}: {}", words.join(" "), said.trim())))
}
