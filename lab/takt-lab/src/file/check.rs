//! Validation of lab files: networks that cannot be made are refused, with a text that names the
//! part.

use std::collections::BTreeSet;

use super::{Class, DropFrom, End, LabFile, Link, Offload, SWITCHES, Switch, SwitchKind};
use crate::error::{Error, Result};

/// Maximum length of a host's or a lab's name, octets.
const NAME_LEN_MAX: usize = 32;
/// Maximum length of a switch's name, octets: its interfaces are named NAME-PORT, with at most 15
/// octets.
const SWITCH_LEN_MAX: usize = 10;
/// Maximum length of an interface's name, octets (IFNAMSIZ without the NUL).
const INTERFACE_LEN_MAX: usize = 15;
/// Maximum number of classes: HTB has eight priorities.
const CLASSES_MAX: usize = 8;
/// Smallest EtherType: smaller numbers are lengths (IEEE 802.3).
const ETHER_TYPE_MIN: u16 = 0x600;
const IP: [u16; 2] = [0x0800, 0x86dd];
/// Maximum numbers of hosts, and of links.
const HOSTS_MAX: usize = 100;
const LINKS_MAX: usize = 500;
const SWITCHES_MAX: usize = 50;
/// Limits of a link's rate, bit/s: HTB counts octets per second in 32 bits.
const RATE_MIN: u64 = 64_000;
const RATE_MAX: u64 = 32_000_000_000;
/// Maximum number of queues of each end of a link.
const QUEUES_MAX: u32 = 64;

impl LabFile {
    /// Checks that the file describes a valid network.
    pub(crate) fn check(&self) -> Result<()> {
        check_name("lab", &self.name, NAME_LEN_MAX)?;
        for (what, number, most) in [
            ("classes", self.classes.len(), CLASSES_MAX),
            ("hosts", self.hosts.len(), HOSTS_MAX),
            ("switches", self.switches.len(), SWITCHES_MAX),
            ("links", self.links.len(), LINKS_MAX),
        ] {
            if number > most {
                return Err(Error::File(format!("{number} {what}; a lab has at most {most}")));
            }
        }
        for (host, interfaces) in &self.hosts {
            check_name("host", host, NAME_LEN_MAX)?;
            if host == SWITCHES || self.switches.contains_key(host) {
                return Err(Error::File(format!(
                    "host {host} has the name of a switch, or of the namespace of the switches; rename it"
                )));
            }
            for interface in interfaces.keys() {
                check_name("interface", interface, INTERFACE_LEN_MAX)?;
            }
        }
        self.switches.iter().try_for_each(|(name, switch)| check_switch(name, switch))?;
        if let Some(priority) = self.switch_priority.filter(|priority| !(1..=99).contains(priority)) {
            return Err(Error::File(format!(
                "switch_priority is {priority}; expected a SCHED_FIFO priority from 1 to 99"
            )));
        }
        self.check_classes()?;
        self.check_links()
    }

    fn check_classes(&self) -> Result<()> {
        let (mut seen, mut sorted) = (BTreeSet::new(), BTreeSet::new());
        let count = self.classes.len();
        for (index, class) in self.classes.iter().enumerate() {
            let wrong = |what: String| Err(Error::File(format!("class {:?}: {what}", class.name)));
            if class.frames == 0 || class.frames > 1_000_000 {
                return wrong(format!("{} frames; expected 1 to 1,000,000", class.frames));
            }
            let is_chosen = !class.dscp.is_empty() || class.by_priority;
            if is_chosen == (index + 1 == count) {
                let what = "every class except the last needs dscp or by_priority; the last is for all other frames";
                return wrong(what.to_owned());
            }
            if class.ceiling.is_some_and(|ceiling| !(RATE_MIN..=RATE_MAX).contains(&ceiling.0)) {
                return wrong("expected a ceiling from 64 kbit/s to 32 Gbit/s".to_owned());
            }
            if let Some(dscp) = class.dscp.iter().find(|dscp| **dscp > 63 || !seen.insert(**dscp)) {
                return wrong(format!("DSCP {dscp} exceeds 63, or belongs to two classes"));
            }
            let is_other = |ether_type: &u16| *ether_type >= ETHER_TYPE_MIN && !IP.contains(ether_type);
            if let Some(wanted) = class.ether_types.iter().find(|wanted| !is_other(wanted) || !sorted.insert(**wanted))
            {
                return wrong(format!(
                    "EtherType {wanted:#06x} is not valid, is that of IP, or belongs to two classes"
                ));
            }
            if index + 1 == count && !class.ether_types.is_empty() {
                return wrong("the last class cannot have ether_types, since it is for all other frames".to_owned());
            }
        }
        match self.links.iter().find(|link| link.rate.is_some()) {
            Some(link) if count == 0 => {
                let [one, other] = &link.ends;
                Err(Error::File(format!("link {one} to {other} has a rate, but the file has no [[classes]]")))
            }
            _ => Ok(()),
        }
    }

    fn check_links(&self) -> Result<()> {
        let mut linked = BTreeSet::new();
        for link in &self.links {
            let [one, other] = &link.ends;
            let wrong = |what: &str| Err(Error::File(format!("link {one} to {other}: {what}")));
            for end in &link.ends {
                let exists = match end {
                    End::Host { host, interface } => {
                        self.hosts.get(host).is_some_and(|interfaces| interfaces.contains_key(interface))
                    }
                    End::Switch(name) => self.switches.contains_key(name),
                };
                if !exists {
                    return wrong(&format!("{end} is neither in [hosts] nor in [switches]"));
                }
                if matches!(end, End::Host { .. }) && !linked.insert(end.clone()) {
                    return wrong(&format!("{end} has two links"));
                }
            }
            if one == other {
                return wrong("both ends are on the same switch");
            }
            check_link(link, &self.classes).or_else(|what| wrong(&what))?;
            self.check_open_vswitch(link).or_else(|what| wrong(&what))?;
        }
        for (host, interfaces) in &self.hosts {
            for interface in interfaces.keys() {
                let end = End::Host { host: host.clone(), interface: interface.clone() };
                if !linked.contains(&end) {
                    return Err(Error::File(format!("interface {end} has no link")));
                }
            }
        }
        Ok(())
    }
    /// Checks the limits of Open vSwitch, which reads frames from packet sockets and sends them by
    /// one.
    fn check_open_vswitch(&self, link: &Link) -> std::result::Result<(), String> {
        let is_open_vswitch = |end: &&End| {
            let switch = if let End::Switch(name) = end { self.switches.get(name) } else { None };
            switch.is_some_and(|switch| switch.kind == SwitchKind::OpenVswitch)
        };
        let Some(end) = link.ends.iter().find(is_open_vswitch) else { return Ok(()) };
        if !link.offloads.is_empty() {
            return Err(format!(
                "Open vSwitch at {end} forwards frames without checksums or above the MTU unchanged: remove the offloads"
            ));
        }
        let mut shaped =
            link.ends.iter().filter(|end| link.rate.is_some() && link.rate_at.as_ref().is_none_or(|at| at == *end));
        let tail = self.classes.iter().find(|class| class.drop_from == DropFrom::Tail);
        match (tail, shaped.find(is_open_vswitch)) {
            (Some(class), Some(end)) if self.switch_classes => Err(format!(
                "class {:?} drops from the tail, so Open vSwitch at {end} discards the rest of its batch: use drop_from = \"head\"",
                class.name
            )),
            _ => Ok(()),
        }
    }
}

fn check_switch(name: &str, switch: &Switch) -> Result<()> {
    check_name("switch", name, SWITCH_LEN_MAX)?;
    let has_open_flow = switch.controller.is_some() || switch.fail_mode.is_some() || switch.datapath_id.is_some();
    if switch.kind == SwitchKind::Bridge && has_open_flow {
        return Err(Error::File(format!(
            "switch {name}: a kernel bridge has no controller, fail_mode or datapath_id: use kind = \"open-vswitch\""
        )));
    }
    Ok(())
}

/// Checks the settings of a link other than its ends.
fn check_link(link: &Link, classes: &[Class]) -> std::result::Result<(), String> {
    if link.rate.is_some_and(|rate| !(RATE_MIN..=RATE_MAX).contains(&rate.0)) {
        return Err("expected a rate from 64 kbit/s to 32 Gbit/s".to_owned());
    }
    let is_above = |class: &&Class| class.ceiling.zip(link.rate).is_some_and(|(ceiling, rate)| ceiling > rate);
    if let Some(class) = classes.iter().find(is_above) {
        return Err(format!("the ceiling of class {:?} exceeds the rate of the link", class.name));
    }
    if let Some(at) = &link.rate_at {
        if !link.ends.contains(at) {
            return Err(format!("rate_at is {at}, which is not an end of the link"));
        }
        if link.rate.is_none() {
            return Err("rate_at requires a rate".to_owned());
        }
    }
    if !(576..=9000).contains(&link.mtu) {
        return Err("expected an MTU from 576 to 9000 octets".to_owned());
    }
    if link.queues.is_some_and(|queues| !(1..=QUEUES_MAX).contains(&queues)) {
        return Err(format!("expected 1 to {QUEUES_MAX} queues"));
    }
    if link.offloads.contains(&Offload::Segmentation) && !link.offloads.contains(&Offload::Checksum) {
        return Err("segmentation offload requires checksum offload: add checksum to the offloads".to_owned());
    }
    Ok(())
}

/// Checks a name, which becomes part of the names of namespaces, files and interfaces.
fn check_name(what: &str, name: &str, len_max: usize) -> Result<()> {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > len_max || name.starts_with('-') || !name.chars().all(is_fit) {
        let expected = format!("expected 1 to {len_max} of a-z, 0-9, _ and -, not beginning with -");
        return Err(Error::File(format!("{what} {name:?}: {expected}")));
    }
    Ok(())
}
