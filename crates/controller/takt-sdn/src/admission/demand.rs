//! Network demand of a pair: requests for the scheduler, and the meters that enforce them.

use takt_calculus::network::Frames;
use takt_wire::builder::{ACKNACK_LEN_MAX, HEARTBEAT_LEN};

use super::{Application, End};
use crate::contract::Source;
use crate::model::{Egress, HostId, NetworkFile, Node, Snapshot, SwitchModel};
use crate::rules::Selector;
use crate::schedule::{Contract, FormatError, NetworkShare, PairStages, Remedies, Request, WireFormat};

/// Length of the frame check sequence in octets. Some switches include it in what they meter.
const FCS_LEN: u64 = 4;

/// Probes that a participant of Takt sends within 100 ms before the route of a writer changes
/// between unicast and a group. The second follows after 10 ms; each further interval is half as
/// long again.
const PROBES: u64 = 5;

/// Length in octets of the frame of a probe: RTPS header, INFO_DST and HEARTBEAT (RTPS 2.5 §9.4) by
/// IPv6. The frame of a sample is longer than the sample by more than this.
const PROBE_LEN: u64 = 130;

/// Lengths in octets of the RTPS messages that fit an MTU of 1,500 octets by IPv4, but not by IPv6.
/// Before a writer of Takt sends messages of a length in this range to best-effort readers, it
/// probes the path to them.
const LONG_MESSAGES: std::ops::RangeInclusive<u64> = 1453..=1472;

/// Length in octets of RTPS header, INFO_DST, INFO_TS and HEARTBEAT in a message (RTPS 2.5 §9.4).
const MESSAGE_OVERHEAD_LEN: u64 = 80;
/// Length in octets of the part of a DATA_FRAG before its fragment.
const FRAGMENT_HEADER_LEN: u64 = 36;

/// Length in octets of a pair of path probes: a short one, and one that fills a frame, with its
/// FCS.
const PATH_PROBES_LEN: u64 = PROBE_LEN + 1518;

/// Minimum time between two such pairs.
const PATH_PROBES_NS: u64 = 50_000_000;

/// Returns the number of samples, at least one, that together are as long as the probes before a
/// change of route.
fn probe_burst_samples(sample_len: u64) -> u64 {
    (PROBES * PROBE_LEN).div_ceil(sample_len.saturating_add(PROBE_LEN))
}

/// Returns the number of samples that together are as long as the path probes; zero if no message
/// with at most `at_once` samples is long.
fn path_probes(sample_len: u64, at_once: u64, fragment_len: u64) -> u64 {
    let part = sample_len.min(fragment_len).saturating_add(FRAGMENT_HEADER_LEN);
    let parts = ((LONG_MESSAGES.end() - MESSAGE_OVERHEAD_LEN) / part.max(1)).clamp(1, at_once.max(1));
    if MESSAGE_OVERHEAD_LEN.saturating_add(parts.saturating_mul(part)) < *LONG_MESSAGES.start() {
        return 0;
    }
    let fragments = sample_len.div_ceil(fragment_len.max(1)).max(1);
    PATH_PROBES_LEN.div_ceil(sample_len.saturating_add(fragments.saturating_mul(PROBE_LEN)))
}

/// Demand of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Demand {
    /// Request for the scheduler; its name is unique.
    pub(super) request: Request,
    pub(super) selector: Selector,
    pub(super) rate_kbps: u32,
    pub(super) burst_kbit: u32,
    /// Whether the flow is to have backup paths.
    pub(super) is_protected: bool,
    /// Latency stages of the hosts, and the longest limit that they leave for the network.
    hosts: (PairStages, u64),
}

/// Returns the separation of one source that covers two sources with separations `a_ns` and `b_ns`,
/// if its burst is larger by one.
fn combined_separation(a_ns: u64, b_ns: u64) -> u64 {
    let (a, b) = (u128::from(a_ns), u128::from(b_ns));
    u64::try_from(a * b / (a + b).max(1)).unwrap_or(u64::MAX)
}

/// Traffic of one flow: its octets once per separation, `burst` times at once, delayed by up to
/// `jitter_ns`.
struct Load {
    separation_ns: u64,
    burst: u64,
    jitter_ns: u64,
    sample_len: u64,
    limit_ns: u64,
    importance: i32,
}

/// Returns the wire format of an end. Each datagram with samples has a HEARTBEAT if the flow is
/// reliable.
fn wire_format(end: &End, file: &NetworkFile, has_heartbeats: bool) -> WireFormat {
    WireFormat {
        vlan: end.vlan != 0,
        ipv6: end.address.is_ipv6(),
        trailer_len: end.trailer_len,
        fragment_len: file.fragment_len,
        inline_qos_len: if has_heartbeats { HEARTBEAT_LEN as u64 } else { 0 },
        ..WireFormat::default()
    }
}

/// Returns the variation in ns with which frames of a host reach the meter of their switch,
/// including the step in which the meter counts time.
fn lateness_ns(snapshot: &Snapshot, host: HostId) -> u64 {
    let switch = match snapshot.link(Egress::Host(host)).map(|link| link.to) {
        Some(Node::Switch(dpid)) => snapshot.switch(dpid),
        _ => None,
    };
    let of = |model: &SwitchModel| {
        model.forwarding_ns.saturating_sub(model.forwarding_ns_min).saturating_add(model.rate_limiter_step_ns)
    };
    switch.map_or(0, of)
}

impl Demand {
    /// Returns the flow of samples, the flow of ACKNACKs if the pair is reliable, and one flow for
    /// each group that may carry its samples.
    pub(super) fn of(application: &Application, file: &NetworkFile, snapshot: &Snapshot) -> Result<Vec<Self>, String> {
        let Application { name, contract, writer, reader, data_port, answer_port, groups, stages, pair, .. } =
            application;
        let nanos = |span: std::time::Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let (separation_ns, limit_ns) = (nanos(contract.separation.value), nanos(contract.limit.value));
        let declared_ns = nanos(contract.jitter.value);
        let is_declared = contract.jitter.source != Source::Default;
        let share = stages.share(separation_ns, (is_declared.then_some(declared_ns), declared_ns), limit_ns);
        let NetworkShare { jitter_ns, limit_ns, limit_ns_max } = share.map_err(|unfit| unfit.to_string())?;
        let sample_len = u64::from(contract.size.value);
        let heartbeat_ns = file.heartbeat_period_ns;
        let importance = contract.importance.value;
        let at_once = declared_ns.div_ceil(separation_ns.max(1)).saturating_add(1);
        let probes_paths = application.probes_paths;
        let of_path = if probes_paths { path_probes(sample_len, at_once, file.fragment_len) } else { 0 };
        // Load of the samples together with `others` further streams of the writer. Each stream is
        // as frequent as HEARTBEATs or path probes; its messages are no longer than a sample.
        let samples = |others: u64, of_path: u64| Load {
            separation_ns: (0..others)
                .map(|_| heartbeat_ns)
                .chain((0..of_path).map(|_| PATH_PROBES_NS))
                .fold(separation_ns, combined_separation),
            burst: others.saturating_add(of_path).saturating_add(1),
            jitter_ns: jitter_ns.saturating_add(lateness_ns(snapshot, writer.host)),
            sample_len,
            limit_ns,
            importance,
        };
        let burst_samples = probe_burst_samples(sample_len);
        // Probes to best-effort readers have the destination address of the samples.
        let (others, of_path_by_unicast) = match answer_port {
            Some(_) => (1, 0),
            None if application.announces_groups => (burst_samples, of_path),
            None => (0, of_path),
        };
        let to_reader = writer.selector_to(reader, *data_port);
        let hosts = (stages.clone(), limit_ns_max);
        let build = |name: String, load: &Load, is_reliable: bool, selector| {
            let own = Self::build(name, load, wire_format(writer, file, is_reliable), selector, reader.host)?;
            Ok::<_, String>(Self { hosts: hosts.clone(), ..own })
        };
        let mut demands =
            vec![build(name.clone(), &samples(others, of_path_by_unicast), answer_port.is_some(), to_reader)?];
        if let Some(answer_port) = answer_port {
            // Each datagram of a sample may be acknowledged.
            let datagrams = sample_len.div_ceil(file.fragment_len).max(1);
            let load = Load {
                separation_ns: combined_separation((separation_ns / datagrams).max(1), heartbeat_ns),
                burst: datagrams.saturating_add(1),
                jitter_ns: jitter_ns.saturating_add(lateness_ns(snapshot, reader.host)),
                sample_len: ACKNACK_LEN_MAX as u64,
                limit_ns: heartbeat_ns,
                importance,
            };
            let format = wire_format(reader, file, false);
            let selector = reader.selector_to(writer, *answer_port);
            demands.push(Self::build(format!("{name}, its ACKNACKs"), &load, format, selector, writer.host)?);
        }
        demands.iter_mut().for_each(|demand| demand.is_protected = contract.is_protected.value);
        for group in groups {
            let selector = Selector { destination: group.ip(), port: group.port(), ..to_reader };
            // The participant sends the probes to the group. A reliable reader without a contract
            // may receive the group, too.
            let is_reliable = application.has_reliable_writer;
            let load = samples(burst_samples + u64::from(is_reliable), of_path);
            demands.push(build(format!("{} to group {group}", pair.writer), &load, is_reliable, selector)?);
        }
        Ok(demands)
    }

    /// Extends the remedies for the flow in the network to remedies for the pair.
    pub(super) fn remedies(&self, of_network: Remedies) -> Remedies {
        let (stages, limit_ns_max) = &self.hosts;
        let limit_ns = of_network.limit_ns.filter(|limit_ns| limit_ns <= limit_ns_max);
        Remedies { limit_ns: limit_ns.map(|limit_ns| stages.whole_ns(limit_ns)), ..of_network }
    }

    fn build(
        name: String,
        load: &Load,
        format: WireFormat,
        selector: Selector,
        receiver: HostId,
    ) -> Result<Self, String> {
        let Load { separation_ns, burst, jitter_ns, sample_len, limit_ns, importance } = *load;
        let frames = format.sample(sample_len, false).map_err(|error: FormatError| error.to_string())?;
        let bits = |more: u64| -> u64 { frames.iter().map(|Frames { len, count }| (len + more) * 8 * count).sum() };
        let [own, with_fcs] = [0, FCS_LEN].map(|more| u128::from(bits(more)));
        let separation_ns = separation_ns.max(1);
        let too_fast = || format!("{name} sends more than a meter can measure");
        let rate = (with_fcs * 1_000_000).div_ceil(u128::from(separation_ns));
        let rate_kbps = u32::try_from(rate).map_err(|_| too_fast())?;
        // At its rate the meter admits one more sample per separation; its bucket must hold
        // all samples that may arrive at once.
        let late_bits = (with_fcs * u128::from(jitter_ns)).div_ceil(u128::from(separation_ns));
        let burst_bits = with_fcs.saturating_mul(burst.into()).saturating_add(late_bits);
        let burst_kbit = u32::try_from(burst_bits.div_ceil(1000)).map_err(|_| too_fast())?;
        // Separation of samples that the meter passes at its rate and burst, both rounded up.
        let metered_ns = u64::try_from(own * 1_000_000 / u128::from(rate_kbps.max(1))).map_err(|_| too_fast())?;
        let metered_ns = metered_ns.min(separation_ns).max(1);
        let beyond_first = (u128::from(burst_kbit) * 1000).saturating_sub(own);
        let passed_late_ns = (beyond_first * u128::from(metered_ns)).div_ceil(own.max(1));
        let contract = Contract {
            min_separation_ns: metered_ns,
            burst: 1,
            jitter_ns: u64::try_from(passed_late_ns).map_err(|_| too_fast())?,
            sample_len,
            limit_ns,
            reliability: None,
            importance,
        };
        let request = Request { name, source: selector.sender, destinations: vec![receiver], contract, format };
        let hosts = (PairStages::default(), u64::MAX);
        Ok(Self { request, selector, rate_kbps, burst_kbit, is_protected: false, hosts })
    }
}
