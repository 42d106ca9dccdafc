//! Counters of a lab's queues and of the sockets that its switches receive from: where frames were lost.

use std::fmt;

use takt_netlink::strict_priority::class;

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::preflight;
use crate::wiring::at;

/// The queue of one class at one end of a link with a rate, since the lab was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The interface; `SWITCH-n` for port n of a switch.
    pub interface: String,
    /// The class's name.
    pub class: String,
    /// Frames that have left it.
    pub frames: u64,
    /// Frames that it dropped because it was full.
    pub drops: u64,
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {} sent, {} dropped", self.interface, self.class, self.frames, self.drops)
    }
}

/// What the socket of a switch's port lost because Open vSwitch did not read it in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSocket {
    /// The interface.
    pub interface: String,
    /// Frames that found no room.
    pub drops: u64,
}

impl Lab {
    /// The queues of all links with a rate.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn queues(&self) -> Result<Vec<Queue>> {
        let mut queues = Vec::new();
        let cables = self.plan().cables.iter().filter(|cable| cable.rate.is_some());
        for end in cables.flat_map(|cable| &cable.ends) {
            let failed = Error::os(format!("look at the disciplines of {} of {}", end.name, end.place));
            let all = at(&self.namespaces, end, |netlink, index| netlink.disciplines(index)).map_err(failed)?;
            for (place, wanted) in self.file().classes.iter().enumerate() {
                let Some(leaf) = all.iter().find(|one| one.parent == class(place)) else { continue };
                let (interface, name) = (end.name.clone(), wanted.name.clone());
                queues.push(Queue { interface, class: name, frames: leaf.frames, drops: leaf.drops.into() });
            }
        }
        Ok(queues)
    }

    /// The sockets that Open vSwitch receives from; none without switches.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn port_sockets(&self) -> Result<Vec<PortSocket>> {
        let Some(switches) = &self.switches else { return Ok(Vec::new()) };
        let drops = preflight::port_drops(&self.namespaces, self.plan(), switches.pid())?;
        Ok(drops.into_iter().map(|(interface, drops)| PortSocket { interface, drops }).collect())
    }
}
