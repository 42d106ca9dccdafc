//! A bad link: datagrams that a packet filter (nftables) drops, duplicates or delays at random.
//!
//! Loss is taken out of what a host receives, after the kernel has put IP fragments together again, so that a per cent is
//! a per cent of *datagrams* for everybody. Duplication and reordering are done to what it sends; a datagram chosen to be
//! late goes through a slow queue, and the following ones overtake it.

use std::io::Write;
use std::process::Stdio;

use crate::error::{checked, shown};
use crate::network::{Host, INTERFACE, LATE_BAND};
use crate::{Error, Result};

const TABLE: &str = "takt_impairment";

/// What to do to UDP, in per cent of the datagrams that reach (loss) or leave (the others) a host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Impairment {
    /// Dropped.
    pub loss_percent: u32,
    /// Sent twice.
    pub duplicate_percent: u32,
    /// Overtaken by what was sent after them.
    pub late_percent: u32,
    /// Nothing that is for the multicast group of user data (domain 0) arrives.
    pub eats_user_multicast: bool,
}

/// What an impairment did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Datagrams dropped.
    pub dropped: u64,
    /// Datagrams sent twice.
    pub duplicated: u64,
    /// Datagrams delayed.
    pub late: u64,
}

/// Starts to impair what `host` receives and sends; replaced by the next call.
pub fn impair(host: &Host, impairment: Impairment) -> Result<()> {
    relieve(host)?;
    load_rules(host, &rules(impairment))
}

/// Ends the impairment.
pub fn relieve(host: &Host) -> Result<()> {
    for family in ["inet", "netdev"] {
        // "add" first: deleting what is not there is an error.
        host.run(&["nft", "add", "table", family, TABLE])?;
        host.run(&["nft", "delete", "table", family, TABLE])?;
    }
    Ok(())
}

/// What was done to the datagrams of `host` since [`impair`].
pub fn damage(host: &Host) -> Result<Damage> {
    let listing = host.run(&["nft", "list", "ruleset"])?;
    let count = |verdict: &str| -> u64 {
        let rules =
            listing.lines().filter(|line| line.contains("counter packets") && line.trim_end().ends_with(verdict));
        rules.filter_map(|line| line.split("packets ").nth(1)?.split_whitespace().next()?.parse::<u64>().ok()).sum()
    };
    Ok(Damage {
        dropped: count("drop"),
        duplicated: count(&format!("dup to \"{INTERFACE}\"")),
        late: count(&format!("priority set {LATE_BAND}")),
    })
}

fn rules(impairment: Impairment) -> String {
    let Impairment { loss_percent, duplicate_percent, late_percent, eats_user_multicast } = impairment;
    let chosen = |percent: u32| format!("numgen random mod 100 < {percent} counter");
    let mut rules = format!("table inet {TABLE} {{\n chain incoming {{\n  type filter hook input priority 0;\n");
    if loss_percent > 0 {
        rules += &format!("  iifname \"{INTERFACE}\" meta l4proto udp {} drop\n", chosen(loss_percent));
    }
    if eats_user_multicast {
        rules += &format!("  iifname \"{INTERFACE}\" ip daddr 224.0.0.0/4 udp dport 7401 counter drop\n");
    }
    rules += " }\n}\n";
    if duplicate_percent > 0 || late_percent > 0 {
        rules += &format!(
            "table netdev {TABLE} {{\n chain outgoing {{\n  type filter hook egress device \"{INTERFACE}\" priority 0;\n"
        );
        if duplicate_percent > 0 {
            rules += &format!("  ip protocol udp {} dup to \"{INTERFACE}\"\n", chosen(duplicate_percent));
        }
        if late_percent > 0 {
            rules += &format!("  ip protocol udp {} meta priority set {LATE_BAND}\n", chosen(late_percent));
        }
        rules += " }\n}\n";
    }
    rules
}

fn load_rules(host: &Host, rules: &str) -> Result<()> {
    let mut command = host.command("nft".as_ref());
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let shown = shown(&command);
    let mut child = command.spawn().map_err(Error::io(format!("cannot run `{shown}`")))?;
    let mut input = child.stdin.take().expect("stdin was piped above");
    input.write_all(rules.as_bytes()).map_err(Error::io("write nft rules"))?;
    drop(input);
    let output = child.wait_with_output().map_err(Error::io(format!("wait for `{shown}`")))?;
    checked(shown, &output).map(drop).map_err(|error| Error::Unavailable(format!("no packet filter: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_only_what_is_asked_for() {
        let loss = rules(Impairment { loss_percent: 10, ..Impairment::default() });
        assert!(loss.contains("numgen random mod 100 < 10 counter drop"));
        assert!(!loss.contains("netdev"));
        assert!(!loss.contains("daddr"));
        let late = rules(Impairment { late_percent: 5, ..Impairment::default() });
        assert!(late.contains("priority set 1:2") && !late.contains("drop"));
    }
}
