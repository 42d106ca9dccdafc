//! Text form of the replies of a controller.

use takt_bench::Result;
use takt_sdn::api::service::Status;
use takt_sdn::api::what_if::Verdict;
use takt_sdn::view::{
    Decision, FlowTraffic, Hop, HostLimit, Isolation, Pair, Place, Port, Protection, ProtectionState, Registration,
    Remedies, Traffic, View,
};

use crate::output::outln;

/// Formats a time span with its unit.
pub fn span(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", nanos as f64 / 1e6),
        _ => format!("{:.3} s", nanos as f64 / 1e9),
    }
}

fn rate(bps: u64) -> String {
    if bps.is_multiple_of(1_000_000) { format!("{} Mbit/s", bps / 1_000_000) } else { format!("{bps} bit/s") }
}

/// Formats a measured rate.
fn measured_rate(bps: u64) -> String {
    match bps {
        0..1_000_000 => format!("{:.1} kbit/s", bps as f64 / 1e3),
        _ => format!("{:.1} Mbit/s", bps as f64 / 1e6),
    }
}

/// Formats the sent traffic: a rate if there is one, otherwise frames.
fn sent(traffic: &Traffic) -> String {
    let frames = || traffic.frames.map_or_else(|| "-".to_owned(), |frames| format!("{frames} frames"));
    traffic.rate_bps.map_or_else(frames, measured_rate)
}

fn dropped(traffic: &Traffic) -> Option<u64> {
    traffic.dropped.filter(|dropped| *dropped > 0)
}

fn hop(hop: &Hop) -> String {
    format!("class {} of {}", hop.class, hop.sender)
}

/// Prints `takt sdn status`.
pub fn status(status: &Status) -> Result<()> {
    let state = if status.is_settled { "settled" } else { "changing switches" };
    outln!("controller up for {}, {state}", span(status.uptime_ns))?;
    let admission = status.network_version.map_or_else(
        || "off: no network description (takt sdn run --network)".to_owned(),
        |version| format!("on, version {version} of the network"),
    );
    outln!("  admission      {admission}")?;
    if let Some(cluster) = &status.cluster {
        let office = if cluster.is_leader { "leader" } else { "standby" };
        outln!("  cluster        {office}, generation {}", cluster.generation)?;
    }
    if let Some(isolation) = &status.isolation {
        let Isolation { default, labels, rules, denied_pairs, filters } = isolation;
        let count = labels.len();
        outln!(
            "  isolation      default {default}, {count} labels, {rules} rules; {denied_pairs} pairs denied, {filters} filters"
        )?;
    }
    outln!("  switches       {}, {} connected", status.switches, status.connected_switches)?;
    outln!("  links          {}", status.links)?;
    outln!("  hosts          {}", status.hosts)?;
    outln!("  participants   {} with {} endpoints", status.participants, status.endpoints)?;
    let pairs = status.pairs.iter().filter(|(_, count)| **count > 0);
    let pairs: Vec<String> = pairs.map(|(decision, count)| format!("{count} {decision}")).collect();
    outln!("  pairs          {}", if pairs.is_empty() { "none".to_owned() } else { pairs.join(", ") })?;
    let counters = status.counters.iter().chain(&status.api).filter(|(_, count)| **count > 0);
    for (name, count) in counters {
        outln!("  {name:<30} {count}")?;
    }
    Ok(())
}

fn port(port: &Port) -> Result<()> {
    let peer = port.peer.as_ref().map_or_else(String::new, |peer| format!(" to {peer}"));
    let use_of = port.rate_bps.zip(port.admitted_ppm);
    let use_of =
        use_of.map_or_else(String::new, |(bps, ppm)| format!(", {}, {:.1} % admitted", rate(bps), ppm as f64 / 1e4));
    let limit = port.host_limit.as_ref().map_or_else(String::new, |HostLimit { packets_per_s, packets_dropped }| {
        format!(", {packets_per_s} packets/s to hosts, {packets_dropped} dropped")
    });
    let measured = port.traffic.as_ref().map_or_else(String::new, |traffic| {
        let share = traffic.sent_ppm.map_or_else(|| sent(&traffic.sent), |ppm| format!("{:.1} %", ppm as f64 / 1e4));
        let drops = dropped(&traffic.sent).map_or_else(String::new, |drops| format!(", {drops} dropped"));
        format!(", {share} sent{drops}, {} received", sent(&traffic.received))
    });
    outln!("    port {:<5} {:<16} {}{peer}{use_of}{limit}{measured}", port.number, port.name, port.role.name())?;
    let is_used = |frames: Option<u64>| frames.is_some_and(|frames| frames > 0);
    for queue in &port.queues {
        let traffic = queue.traffic.as_ref().filter(|traffic| is_used(traffic.frames));
        let counted = traffic.map_or_else(String::new, |traffic| {
            format!(", {} sent, {} dropped", sent(traffic), traffic.dropped.unwrap_or(0))
        });
        if queue.budget_ns > 0 || traffic.is_some() {
            outln!("      class {}: {} at most{counted}", queue.class, span(queue.budget_ns))?;
        }
    }
    Ok(())
}

/// Prints `takt sdn topology`.
pub fn topology(view: &View) -> Result<()> {
    if view.switches.is_empty() {
        return outln!("no switch has connected");
    }
    for switch in &view.switches {
        let model = switch.model.as_deref().map_or_else(String::new, |model| format!(", model {model}"));
        outln!(
            "switch {} {}{model}, {} flow entries, {} groups, {} meters",
            switch.datapath_id,
            switch.state.name(),
            switch.flow_entries,
            switch.groups,
            switch.meters
        )?;
        switch.ports.iter().try_for_each(port)?;
    }
    for link in &view.links {
        let [a, b] = &link.ends;
        outln!("link {a} to {b}{}", if link.is_in_tree { ", floods follow it" } else { "" })?;
    }
    for host in &view.hosts {
        let vlan = host.vlan.map_or_else(String::new, |vlan| format!(" in VLAN {vlan}"));
        outln!("host {}{vlan} at {}  {}", host.mac, host.at, host.addresses.join(" "))?;
    }
    Ok(())
}

/// Prints `takt sdn flows`.
pub fn flows(view: &View, flows: &[&Pair]) -> Result<()> {
    if flows.is_empty() {
        return outln!("no flow has a contract; {} pairs match without one", view.pairs.len());
    }
    outln!(
        "{:<12} {:<24} {:>12} {:>12} {:>12} {:>14} {:>9}  {}",
        "decision",
        "topic",
        "measured",
        "bound",
        "limit",
        "sent",
        "dropped",
        "from and to"
    )?;
    for pair in flows {
        let measured = pair.measured.map_or_else(|| "-".to_owned(), |measured| span(measured.worst_ns));
        let bound = pair.bound_ns.map_or_else(|| "-".to_owned(), span);
        let limit = pair.contract.as_ref().map_or_else(|| "-".to_owned(), |contract| span(contract.limit_ns));
        let (decision, topic) = (pair.decision.name(), pair.topic.escape_debug().to_string());
        let of_meter = pair.traffic.as_ref();
        let at_meter = of_meter.map_or_else(|| "-".to_owned(), |traffic| sent(&traffic.samples));
        let drops = of_meter.and_then(|traffic| traffic.samples.dropped);
        let drops = drops.map_or_else(|| "-".to_owned(), |drops| drops.to_string());
        outln!(
            "{decision:<12} {topic:<24} {measured:>12} {bound:>12} {limit:>12} {at_meter:>14} {drops:>9}  {} to {}",
            pair.from,
            pair.to
        )?;
        if of_meter.is_some_and(|traffic| traffic.breaks_contract) {
            outln!("             the writer violates its contract: the meter drops samples")?;
        }
        if let Some(reason) = pair.reason.as_ref().filter(|_| pair.decision == Decision::Refused) {
            outln!("             {}", reason.escape_debug())?;
        }
        if let Some(own) = pair.protection.as_ref().filter(|own| own.state != ProtectionState::Protected) {
            outln!("             {}", protection(own))?;
        }
    }
    Ok(())
}

fn remedies(remedies: &Remedies) -> Result<()> {
    let remedies = [
        remedies.limit_ns.map(|limit_ns| format!("a limit of {}", span(limit_ns))),
        remedies.separation_ns.map(|separation_ns| format!("a separation of {}", span(separation_ns))),
        remedies.size.map(|size| format!("samples of {size} octets")),
    ];
    let remedies: Vec<String> = remedies.into_iter().flatten().collect();
    if remedies.is_empty() { Ok(()) } else { outln!("  would fit   {}", remedies.join(", or ")) }
}

/// Describes how a link failure affects a pair.
fn protection(own: &Protection) -> String {
    let Protection { links, of, .. } = own;
    match own.state {
        ProtectionState::Protected | ProtectionState::Partly => {
            format!("{links} of {of} links of its path have a detour")
        }
        ProtectionState::Searching => "searching second paths".to_owned(),
        ProtectionState::FallenBack => "a link failed: one path remains, without protection".to_owned(),
        ProtectionState::Unprotected => {
            let reason = own.reason.as_deref().unwrap_or("no second path is admissible");
            format!("not protected: {}", reason.escape_debug())
        }
    }
}

fn registration(own: &Registration) -> Result<()> {
    let answers = own.answer_port.map_or_else(String::new, |port| format!(", ACKNACKs at {port}"));
    let group = own.group.map_or_else(String::new, |group| format!(", group {group}"));
    outln!("  registered  {} by {}: {}", own.id, own.owner.escape_debug(), own.state.name())?;
    outln!("  sockets     samples at {}{answers}{group}; {} octets of overhead", own.port, own.overhead)
}

fn traffic(own: &FlowTraffic) -> Result<()> {
    let frames = |traffic: &Traffic| {
        format!("{} frames, {} dropped by the meter", traffic.frames.unwrap_or(0), traffic.dropped.unwrap_or(0))
    };
    let others = own.sharers.saturating_sub(1);
    let shared = if others == 0 { String::new() } else { format!(", shared with {others} other pairs") };
    outln!("  sent        {}, {}{shared}", sent(&own.samples), frames(&own.samples))?;
    if let Some(answers) = &own.answers {
        outln!("  answers     {}, {}", sent(answers), frames(answers))?;
    }
    if own.breaks_contract {
        outln!("  broken      the meter drops samples: a writer of the flow violates its contract")
    } else {
        Ok(())
    }
}

/// Prints `takt sdn register`.
pub fn registered(pair: &Pair) -> Result<()> {
    let Some(own) = &pair.registration else { return Ok(()) };
    let name = format!("registration {} ({})", own.id, pair.topic.escape_debug());
    match pair.bound_ns {
        Some(bound_ns) => outln!("{name} is {}: {} at most", own.state.name(), span(bound_ns))?,
        None => outln!("{name} is {}", own.state.name())?,
    }
    refusal(pair)
}

/// Prints why a pair is refused or waits, and what would make it fit.
fn refusal(pair: &Pair) -> Result<()> {
    if let Some(reason) = &pair.reason {
        outln!("  because     {}", reason.escape_debug())?;
    }
    if let Some(binding) = &pair.binding_hop {
        outln!("  binding     {}", hop(binding))?;
    }
    remedies(&pair.remedies)
}

/// Prints `takt sdn explain`.
pub fn explain(pair: &Pair) -> Result<()> {
    outln!("{} ({}): {}", pair.topic.escape_debug(), pair.type_name.escape_debug(), pair.decision.name())?;
    outln!("  writer      {} at {}", pair.writer, pair.from)?;
    outln!("  reader      {} at {}", pair.reader, pair.to)?;
    if let Some(own) = &pair.registration {
        registration(own)?;
    }
    if let Some(contract) = &pair.contract {
        let [separation, jitter, size, limit, importance] = &contract.sources;
        outln!("  separation  {} ({separation})", span(contract.separation_ns))?;
        outln!("  jitter      {} ({jitter})", span(contract.jitter_ns))?;
        outln!("  size        {} octets ({size})", contract.size)?;
        outln!("  limit       {} ({limit})", span(contract.limit_ns))?;
        outln!("  importance  {} ({importance})", contract.importance)?;
    }
    if let Some(missing) = &pair.missing {
        outln!("  contract    none: {missing}")?;
    }
    if let Some(bound_ns) = pair.bound_ns {
        outln!("  bound       {}", span(bound_ns))?;
    }
    if let Some(measured) = &pair.measured {
        outln!("  measured    {} at most", span(measured.worst_ns))?;
    }
    if let Some(own) = &pair.traffic {
        traffic(own)?;
    }
    if pair.stages.is_empty() {
        pair.hops.iter().try_for_each(|own| outln!("  hop         {}", hop(own)))?;
    }
    if let Some(own) = &pair.protection {
        outln!("  protection  {}", protection(own))?;
        for path in &own.backup_paths {
            outln!("  second path {}", path.iter().map(hop).collect::<Vec<String>>().join("; "))?;
        }
    }
    for stage in &pair.stages {
        let place = match stage.place {
            Place::Writer => "writer's host, ",
            Place::Network => "",
            Place::Reader => "reader's host, ",
        };
        outln!("  stage       {:>12}  {place}{}", span(stage.bound_ns), stage.name.escape_debug())?;
    }
    refusal(pair)
}

/// Prints `takt sdn admit --what-if`.
pub fn verdict(verdict: &Verdict, limit_ns: u64) -> Result<()> {
    if let Some(bound_ns) = verdict.bound_ns {
        outln!("would be admitted: {} at most of {}", span(bound_ns), span(limit_ns))?;
        verdict.hops.iter().try_for_each(|own| outln!("  hop         {}", hop(own)))?;
        if verdict.moved > 0 {
            outln!("  moves       {} admitted flows to other classes", verdict.moved)?;
        }
        return Ok(());
    }
    outln!("would be refused")?;
    if let Some(reason) = &verdict.reason {
        outln!("  because     {}", reason.escape_debug())?;
    }
    if let Some(binding) = &verdict.binding_hop {
        outln!("  binding     {}", hop(binding))?;
    }
    remedies(&verdict.remedies)
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn span_has_the_unit_that_suits_its_length() {
        for (nanos, text) in
            [(0, "0 ns"), (999, "999 ns"), (1_500, "1.5 us"), (1_234_567, "1.235 ms"), (2_500_000_000, "2.500 s")]
        {
            assert_eq!(span(nanos), text);
        }
    }
}
