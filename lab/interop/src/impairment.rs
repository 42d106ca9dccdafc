//! Link impairment: a packet filter (nftables) that drops, duplicates or delays datagrams at
//! random.
//!
//! Loss applies to the datagrams that a host receives, after IP reassembly in the kernel. A loss of
//! one per cent therefore means one per cent of *datagrams* for every product. Duplication and
//! reordering apply to the datagrams that a host sends. A delayed datagram goes through a slow
//! queue, and the following datagrams overtake it.
//!
//! If there is a switch between the hosts, all impairments apply to the frames that leave its
//! ports. The kernels of the hosts do not see frames that bypass their network stacks. One per cent
//! of frames equals one per cent of datagrams only for senders whose datagrams fit into one frame.

use std::io::Write;
use std::process::Stdio;

use crate::error::{checked, shown};
use crate::network::{Host, INTERFACE, LATE_CLASS, Network, PORTS};
use crate::process::output_of;
use crate::{Error, Result};

/// Impairment of UDP, in per cent of the datagrams that a host receives (loss) or sends
/// (duplication and delay).
#[derive(Clone, Copy, Debug, Default)]
pub struct Impairment {
    /// Percentage of dropped datagrams.
    pub loss_percent: u32,
    /// Percentage of datagrams that are sent twice.
    pub duplicate_percent: u32,
    /// Percentage of datagrams that are overtaken by later ones.
    pub late_percent: u32,
    /// Drops every datagram to the multicast group of user data (domain 0).
    pub drops_user_multicast: bool,
}

/// Effects of an impairment so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentCounters {
    /// Number of dropped datagrams.
    pub dropped: u64,
    /// Number of datagrams that were sent twice.
    pub duplicated: u64,
    /// Number of delayed datagrams.
    pub late: u64,
}

/// Impairs the datagrams that `host` receives and sends. A further call replaces the impairment.
pub fn impair(host: &Host, impairment: Impairment) -> Result<()> {
    ImpairmentPoint::Host(host).impair(impairment)
}

/// Removes the impairment of `host`.
pub fn clear(host: &Host) -> Result<()> {
    ImpairmentPoint::Host(host).clear()
}

impl Network {
    /// Impairs both directions: at the ports of the switch if there is one, otherwise at the hosts.
    pub fn impair(&self, impairment: Impairment) -> Result<()> {
        self.impairment_points().iter().try_for_each(|place| place.impair(impairment))
    }

    /// Removes the impairment of both directions.
    pub fn clear_impairment(&self) -> Result<()> {
        self.impairment_points().iter().try_for_each(ImpairmentPoint::clear)
    }

    /// Returns the effects on the datagrams from left to right since [`impair`](Self::impair).
    pub fn impairment_counters(&self) -> Result<ImpairmentCounters> {
        let [left, right] = self.impairment_points();
        match left {
            ImpairmentPoint::Host(_) => {
                Ok(ImpairmentCounters { dropped: right.counters()?.dropped, ..left.counters()? })
            }
            ImpairmentPoint::Port(..) => right.counters(),
        }
    }

    /// Returns the points at which the two directions are impaired.
    fn impairment_points(&self) -> [ImpairmentPoint<'_>; 2] {
        match self.switch() {
            None => [ImpairmentPoint::Host(&self.left), ImpairmentPoint::Host(&self.right)],
            Some(switch) => PORTS.map(|port| ImpairmentPoint::Port(switch, port)),
        }
    }
}

/// A point at which datagrams are impaired.
enum ImpairmentPoint<'a> {
    /// A host: loss applies to received datagrams, duplication and delay to sent ones.
    Host(&'a Host),
    /// A port of a switch: all impairments apply to the frames that leave it.
    Port(&'a Host, &'static str),
}

impl ImpairmentPoint<'_> {
    fn host(&self) -> &Host {
        match self {
            Self::Host(host) | Self::Port(host, _) => host,
        }
    }

    fn interface(&self) -> &'static str {
        match self {
            Self::Host(_) => INTERFACE,
            Self::Port(_, port) => port,
        }
    }

    /// Returns the table name of this point. A switch has several tables.
    fn table(&self) -> String {
        format!("takt_impairment_{}", self.interface().replace('-', "_"))
    }

    fn impair(&self, impairment: Impairment) -> Result<()> {
        self.clear()?;
        load_rules(self.host(), &self.rules(impairment))
    }

    fn clear(&self) -> Result<()> {
        let table = self.table();
        for family in ["inet", "netdev"] {
            // "add" first: deleting a table that does not exist is an error.
            self.host().run(&["nft", "add", "table", family, &table])?;
            self.host().run(&["nft", "delete", "table", family, &table])?;
        }
        Ok(())
    }

    fn counters(&self) -> Result<ImpairmentCounters> {
        let mut listing = self.host().run(&["nft", "list", "table", "inet", &self.table()])?;
        // Loss alone needs no table of this family.
        listing += &self.host().run(&["nft", "list", "table", "netdev", &self.table()]).unwrap_or_default();
        let count = |verdict: &str| -> u64 {
            let rules =
                listing.lines().filter(|line| line.contains("counter packets") && line.trim_end().ends_with(verdict));
            rules.filter_map(|line| line.split("packets ").nth(1)?.split_whitespace().next()?.parse::<u64>().ok()).sum()
        };
        Ok(ImpairmentCounters {
            dropped: count("drop"),
            duplicated: count(&format!("dup to \"{}\"", self.interface())),
            late: count(&format!("priority set {LATE_CLASS}")),
        })
    }

    fn rules(&self, impairment: Impairment) -> String {
        let Impairment { loss_percent, duplicate_percent, late_percent, drops_user_multicast } = impairment;
        let (table, interface) = (self.table(), self.interface());
        let chosen = |percent: u32| format!("numgen random mod 100 < {percent} counter");
        let (mut incoming, mut outgoing) = (String::new(), String::new());
        if loss_percent > 0 {
            let loss = chosen(loss_percent);
            match self {
                Self::Host(_) => incoming += &format!("  iifname \"{interface}\" meta l4proto udp {loss} drop\n"),
                Self::Port(..) => outgoing += &format!("  ip protocol udp {loss} drop\n"),
            }
        }
        if drops_user_multicast {
            incoming += &format!("  iifname \"{interface}\" ip daddr 224.0.0.0/4 udp dport 7401 counter drop\n");
        }
        if duplicate_percent > 0 {
            outgoing += &format!("  ip protocol udp {} dup to \"{interface}\"\n", chosen(duplicate_percent));
        }
        if late_percent > 0 {
            outgoing += &format!("  ip protocol udp {} meta priority set {LATE_CLASS}\n", chosen(late_percent));
        }
        let mut rules = format!(
            "table inet {table} {{\n chain incoming {{\n  type filter hook input priority 0;\n{incoming} }}\n}}\n"
        );
        if !outgoing.is_empty() {
            let hook = format!("type filter hook egress device \"{interface}\" priority 0;");
            rules += &format!("table netdev {table} {{\n chain outgoing {{\n  {hook}\n{outgoing} }}\n}}\n");
        }
        rules
    }
}

fn load_rules(host: &Host, rules: &str) -> Result<()> {
    let mut command = host.command("nft".as_ref());
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let shown = shown(&command);
    let mut child = command.spawn().map_err(Error::io(format!("cannot run `{shown}`")))?;
    let mut input = child.stdin.take().expect("stdin was piped above");
    input.write_all(rules.as_bytes()).map_err(Error::io("write nft rules"))?;
    drop(input);
    let output = output_of(child).map_err(Error::io(format!("wait for `{shown}`")))?;
    checked(shown, &output).map(drop).map_err(|error| Error::Unavailable(format!("no packet filter: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_contain_only_requested_impairments() {
        let host = Host::loopback();
        let loss = Impairment { loss_percent: 10, ..Impairment::default() };
        let at_host = ImpairmentPoint::Host(&host).rules(loss);
        assert!(at_host.contains("numgen random mod 100 < 10 counter drop"));
        assert!(!at_host.contains("netdev"));
        assert!(!at_host.contains("daddr"));
        let late = ImpairmentPoint::Host(&host).rules(Impairment { late_percent: 5, ..Impairment::default() });
        assert!(late.contains("priority set 544b:1") && !late.contains("drop"));
    }

    #[test]
    fn switch_port_drops_outgoing_frames() {
        let switch = Host::loopback();
        let loss = Impairment { loss_percent: 10, ..Impairment::default() };
        let rules = ImpairmentPoint::Port(&switch, "switch-1").rules(loss);
        let (incoming, outgoing) = rules.split_once("table netdev").expect("what leaves is touched");
        assert!(!incoming.contains("drop") && outgoing.contains("device \"switch-1\"") && outgoing.contains("drop"));
    }
}
