//! Counters of a lab's interfaces, queues, and switch receive sockets; filters of the queues.

use std::fmt;

use takt_netlink::link::LinkCounters;
use takt_netlink::strict_priority::class;
use takt_netlink::{Netlink, interface_index};

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::preflight;
use crate::wiring::{self, at};

/// Queue of one class at one end of a rate-limited link, since the lab was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Interface name; `SWITCH-n` for port n of a switch.
    pub interface: String,
    /// Class name.
    pub class: String,
    /// Number of frames sent.
    pub frames: u64,
    /// Number of frames dropped because the queue was full.
    pub drops: u64,
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {} sent, {} dropped", self.interface, self.class, self.frames, self.drops)
    }
}

/// Frames lost at the socket of a switch port because Open vSwitch did not read it in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSocket {
    /// Interface name.
    pub interface: String,
    /// Number of frames without room.
    pub drops: u64,
}

impl Lab {
    /// Returns the queues of all rate-limited links.
    ///
    /// # Errors
    /// The kernel does not report them.
    pub fn queues(&self) -> Result<Vec<Queue>> {
        let mut queues = Vec::new();
        for end in self.plan().shaped() {
            let failed = Error::os(format!("read the disciplines of {} of {}", end.name, end.node));
            let all = at(&self.namespaces, end, |netlink, index| netlink.disciplines(index)).map_err(failed)?;
            for (index, wanted) in self.file().classes.iter().enumerate() {
                let Some(leaf) = all.iter().find(|one| one.parent == class(index)) else { continue };
                let (interface, name) = (end.name.clone(), wanted.name.clone());
                queues.push(Queue { interface, class: name, frames: leaf.frames, drops: leaf.drops.into() });
            }
        }
        Ok(queues)
    }

    /// Returns the sockets that Open vSwitch receives from; none without switches.
    ///
    /// # Errors
    /// The kernel does not report them.
    pub fn port_sockets(&self) -> Result<Vec<PortSocket>> {
        let Some(switches) = &self.switches else { return Ok(Vec::new()) };
        let drops = preflight::port_drops(&self.namespaces, self.plan(), switches.pid())?;
        Ok(drops.into_iter().map(|(interface, drops)| PortSocket { interface, drops }).collect())
    }

    /// Removes the filters that sort frames into classes by DSCP and EtherType, or creates them
    /// again. Without filters, all frames are in the last class, except those of classes by
    /// priority. Classes that another program created stay unchanged.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_filters(&self, are_there: bool) -> Result<()> {
        let file = self.file();
        for end in self.plan().shaped().filter(|end| wiring::has_classes(file, end)) {
            let failed = Error::os(format!("set the filters of {} of {}", end.name, end.node));
            let set = |netlink: &mut Netlink, index| wiring::set_filters(netlink, index, &file.classes, are_there);
            at(&self.namespaces, end, set).map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the counters of sent and received frames of an interface.
    ///
    /// # Errors
    /// There is no such host, or the kernel does not report the counters.
    pub fn counters(&self, node: &str, interface: &str) -> Result<LinkCounters> {
        let failed = Error::os(format!("read the counters of {interface} of {node}"));
        let read = || Netlink::route()?.counters(interface_index(interface)?);
        self.namespace(node)?.run(read).and_then(|counters| counters).map_err(failed)
    }
}
