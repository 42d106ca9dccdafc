//! What a pair asks of the network: requests for the scheduler, and the meters that hold it to them.

use takt_calculus::network::Frames;
use takt_wire::builder::{ACKNACK_LEN_MAX, HEARTBEAT_LEN};

use super::{Application, End};
use crate::model::{Egress, HostId, NetworkFile, Node, Snapshot, SwitchModel};
use crate::rules::Selector;
use crate::schedule::{Contract, FormatError, Request, WireFormat};

/// Octets of the frame check sequence, which some switches meter.
const FCS_LEN: u64 = 4;

/// One flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Demand {
    pub(super) request: Request,
    pub(super) selector: Selector,
    pub(super) rate_kbps: u32,
    pub(super) burst_kbit: u32,
}

/// Samples of two sources are at most those of one with this separation and one more at once.
fn together(a_ns: u64, b_ns: u64) -> u64 {
    let (a, b) = (u128::from(a_ns), u128::from(b_ns));
    u64::try_from(a * b / (a + b).max(1)).unwrap_or(u64::MAX)
}

/// What one flow sends: so many octets each separation, `burst` times at once, and as much later as `jitter_ns` says.
struct Load {
    separation_ns: u64,
    burst: u64,
    jitter_ns: u64,
    sample_len: u64,
    limit_ns: u64,
}

/// How much later than another a frame of a host may come to the meter of its switch, and how late that counts time.
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
    /// The flow of samples, and that of ACKNACKs if the pair is reliable.
    pub(super) fn of(application: &Application, file: &NetworkFile, snapshot: &Snapshot) -> Result<Vec<Self>, String> {
        let Application { contract, writer, reader, data_port, answer_port, .. } = application;
        let nanos = |span: std::time::Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let (separation_ns, limit_ns) = (nanos(contract.separation.value), nanos(contract.limit.value));
        let jitter_ns = nanos(contract.jitter.value);
        let sample_len = u64::from(contract.size.value);
        let format = WireFormat {
            ipv6: writer.address.is_ipv6(),
            fragment_len: file.fragment_len,
            // A HEARTBEAT in each datagram.
            inline_qos_len: if answer_port.is_some() { HEARTBEAT_LEN as u64 } else { 0 },
            ..WireFormat::default()
        };
        let samples_late_ns = jitter_ns.saturating_add(lateness_ns(snapshot, writer.host));
        let Some(answer_port) = answer_port else {
            let load = Load { separation_ns, burst: 1, jitter_ns: samples_late_ns, sample_len, limit_ns };
            return Ok(vec![Self::build(application, "", &load, format, (writer, reader), *data_port)?]);
        };
        let heartbeat_ns = file.heartbeat_period_ns;
        let both_ns = together(separation_ns, heartbeat_ns);
        let load = Load { separation_ns: both_ns, burst: 2, jitter_ns: samples_late_ns, sample_len, limit_ns };
        let samples = Self::build(application, "", &load, format, (writer, reader), *data_port)?;
        // Each datagram of a sample may be answered.
        let datagrams = sample_len.div_ceil(file.fragment_len).max(1);
        let load = Load {
            separation_ns: together((separation_ns / datagrams).max(1), heartbeat_ns),
            burst: datagrams.saturating_add(1),
            jitter_ns: jitter_ns.saturating_add(lateness_ns(snapshot, reader.host)),
            sample_len: ACKNACK_LEN_MAX as u64,
            limit_ns: heartbeat_ns,
        };
        let format = WireFormat { inline_qos_len: 0, ..format };
        Ok(vec![samples, Self::build(application, ", its ACKNACKs", &load, format, (reader, writer), *answer_port)?])
    }

    fn build(
        application: &Application,
        what: &str,
        load: &Load,
        format: WireFormat,
        (from, to): (&End, &End),
        port: u16,
    ) -> Result<Self, String> {
        let Load { separation_ns, burst, jitter_ns, sample_len, limit_ns } = *load;
        let frames = format.sample(sample_len, false).map_err(|error: FormatError| error.to_string())?;
        let bits = |more: u64| -> u64 { frames.iter().map(|Frames { len, count }| (len + more) * 8 * count).sum() };
        let [own, with_fcs] = [0, FCS_LEN].map(|more| u128::from(bits(more)));
        let separation_ns = separation_ns.max(1);
        let too_fast = || format!("{} sends more than a meter can count", application.name);
        let rate = (with_fcs * 1_000_000).div_ceil(u128::from(separation_ns));
        let rate_kbps = u32::try_from(rate).map_err(|_| too_fast())?;
        // At its rate the meter has room for another sample after each separation, and at first for all that may come at once.
        let late_bits = (with_fcs * u128::from(jitter_ns)).div_ceil(u128::from(separation_ns));
        let burst_bits = with_fcs.saturating_mul(burst.into()).saturating_add(late_bits);
        let burst_kbit = u32::try_from(burst_bits.div_ceil(1000)).map_err(|_| too_fast())?;
        // What the meter lets pass at its rate and burst, rounded up as they are.
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
            importance: application.contract.importance.value,
        };
        let request = Request {
            name: format!("{}{what}", application.name),
            source: from.host,
            destinations: vec![to.host],
            contract,
            format,
        };
        let selector = Selector { sender: from.host, source: from.address, destination: to.address, port };
        Ok(Self { request, selector, rate_kbps, burst_kbit })
    }
}
