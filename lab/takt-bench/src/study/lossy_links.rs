//! Random frame loss on the links of a site, in both directions, while the value exists.
//!
//! The switch ports drop frames that they send to a host, so the loss also applies to transports
//! that bypass the stack of a host. A segment that the stack leaves to the interface (segmentation
//! offload) would be lost as a whole, so the hosts' interfaces do not segment meanwhile.

use super::site::{CampaignSite, at_switch};
use crate::error::{Error, Result};
use takt_lab::Lab;
use takt_lab::file::{Offload, SWITCHES};
use takt_lab::plan::Interface;
use takt_netlink::feature::SEGMENTATION;
use takt_netlink::loss::LossCounters;
use takt_netlink::{Netlink, interface_index};

/// Links that lose frames until the value is dropped; see the [module](self).
#[derive(Debug)]
pub struct LossyLinks<'a> {
    lab: &'a Lab,
    /// For each end: its switch port, and its interface if segmentation was turned off.
    ends: Vec<(&'a Interface, Option<&'a Interface>)>,
}

impl<'a> LossyLinks<'a> {
    /// Makes the links of both ends lose frames with this probability.
    ///
    /// # Errors
    /// The site has no switch, or the kernel refuses.
    pub fn new(place: &'a CampaignSite, probability: f64) -> Result<Self> {
        let mut losing = Self { lab: place.cable(0)?.0, ends: Vec::new() };
        for side in [0, 1] {
            let (_, cable) = place.cable(side)?;
            let host = cable.ends.iter().find(|end| end.node != SWITCHES);
            let host = host.filter(|_| cable.offloads.contains(&Offload::Segmentation));
            let port = at_switch(cable)?;
            losing.at(port, |netlink, index| netlink.add_loss(index, probability))?;
            // From here on, dropping the value reverts the change.
            losing.ends.push((port, host));
            if let Some(host) = host {
                losing.set_segmentation(host, false)?;
            }
        }
        Ok(losing)
    }

    /// Returns the counters of frames sent to an end.
    ///
    /// # Errors
    /// The kernel does not report them.
    pub fn lost(&self, side: usize) -> Result<LossCounters> {
        self.at(self.ends[side].0, Netlink::lost)
    }

    fn at<R: Send>(
        &self,
        port: &Interface,
        f: impl FnOnce(&mut Netlink, i32) -> std::io::Result<R> + Send,
    ) -> Result<R> {
        let failed = |e| Error::os(format!("loss at {}", port.name), e);
        let run = || f(&mut Netlink::route()?, interface_index(&port.name)?);
        self.lab.namespace(&port.node)?.run(run).map_err(failed)?.map_err(failed)
    }

    fn set_segmentation(&self, host: &Interface, is_on: bool) -> Result<()> {
        let failed = |e| Error::os(format!("segmentation of {} of {}", host.name, host.node), e);
        let set = || Netlink::generic()?.set_features(interface_index(&host.name)?, &SEGMENTATION, is_on);
        self.lab.namespace(&host.node)?.run(set).map_err(failed)?.map_err(failed)
    }
}

impl Drop for LossyLinks<'_> {
    fn drop(&mut self) {
        for (port, host) in &self.ends {
            // If the removal fails, the loss ends with the lab.
            drop(self.at(port, Netlink::remove_loss));
            if let Some(host) = host {
                drop(self.set_segmentation(host, true));
            }
        }
    }
}
