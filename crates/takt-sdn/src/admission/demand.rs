//! What a pair asks of the network: requests for the scheduler, and the meters that hold it to them.

use takt_calculus::network::Frames;
use takt_wire::builder::{ACKNACK_LEN_MAX, HEARTBEAT_LEN};

use super::{Application, End};
use crate::model::NetworkFile;
use crate::rules::Selector;
use crate::schedule::{Contract, FormatError, Refused, Remedies, Request, WireFormat};

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

/// What one flow sends: so many octets each separation, `burst` times at once.
struct Load {
    separation_ns: u64,
    burst: u64,
    sample_len: u64,
    limit_ns: u64,
}

impl Demand {
    /// The flow of samples, and that of ACKNACKs if the pair is reliable.
    pub(super) fn of(application: &Application, file: &NetworkFile) -> Result<Vec<Self>, String> {
        let Application { contract, writer, reader, data_port, answer_port, .. } = application;
        let nanos = |span: std::time::Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let (separation_ns, limit_ns) = (nanos(contract.separation.value), nanos(contract.limit.value));
        let sample_len = u64::from(contract.size.value);
        let format = WireFormat {
            ipv6: writer.address.is_ipv6(),
            fragment_len: file.fragment_len,
            // A HEARTBEAT in each datagram.
            inline_qos_len: if answer_port.is_some() { HEARTBEAT_LEN as u64 } else { 0 },
            ..WireFormat::default()
        };
        let Some(answer_port) = answer_port else {
            let load = Load { separation_ns, burst: 2, sample_len, limit_ns };
            return Ok(vec![Self::build(application, "", load, format, (writer, reader), *data_port)?]);
        };
        let heartbeat_ns = file.heartbeat_period_ns;
        let both_ns = together(separation_ns, heartbeat_ns);
        let samples = Load { separation_ns: both_ns, burst: 3, sample_len, limit_ns };
        let samples = Self::build(application, "", samples, format, (writer, reader), *data_port)?;
        // Each datagram of a sample may be answered.
        let datagrams = sample_len.div_ceil(file.fragment_len).max(1);
        let load = Load {
            separation_ns: together((separation_ns / datagrams).max(1), heartbeat_ns),
            burst: datagrams.saturating_mul(2).saturating_add(1),
            sample_len: ACKNACK_LEN_MAX as u64,
            limit_ns: heartbeat_ns,
        };
        let format = WireFormat { inline_qos_len: 0, ..format };
        Ok(vec![samples, Self::build(application, ", its ACKNACKs", load, format, (reader, writer), *answer_port)?])
    }

    fn build(
        application: &Application,
        what: &str,
        load: Load,
        format: WireFormat,
        (from, to): (&End, &End),
        port: u16,
    ) -> Result<Self, String> {
        let Load { separation_ns, burst, sample_len, limit_ns } = load;
        let frames = format.sample(sample_len, false).map_err(|error: FormatError| error.to_string())?;
        let bits = |more: u64| -> u64 { frames.iter().map(|Frames { len, count }| (len + more) * 8 * count).sum() };
        let too_fast = || format!("{} sends more than a meter can count", application.name);
        let per_kbps = |bits: u64| u128::from(bits) * 1_000_000;
        let rate = per_kbps(bits(FCS_LEN)).div_ceil(u128::from(separation_ns.max(1)));
        let rate_kbps = u32::try_from(rate).map_err(|_| too_fast())?;
        let burst_kbit = u32::try_from(bits(FCS_LEN).saturating_mul(burst).div_ceil(1000)).map_err(|_| too_fast())?;
        // What the meter lets pass at its rate, rounded up as it is.
        let metered_ns = u64::try_from(per_kbps(bits(0)) / u128::from(rate_kbps.max(1))).map_err(|_| too_fast())?;
        let contract = Contract {
            min_separation_ns: metered_ns.min(separation_ns).max(1),
            burst,
            jitter_ns: 0,
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

/// A refusal with what would make the flow fit.
pub(super) fn in_words(refused: &Refused, remedies: &Remedies) -> String {
    let remedies = [
        remedies.limit_ns.map(|limit_ns| format!("a limit of {limit_ns} ns")),
        remedies.min_separation_ns.map(|separation_ns| format!("a separation of {separation_ns} ns")),
        remedies.sample_len.map(|sample_len| format!("samples of {sample_len} octets")),
    ];
    let remedies: Vec<String> = remedies.into_iter().flatten().collect();
    if remedies.is_empty() { refused.to_string() } else { format!("{refused}; would fit: {}", remedies.join(", or ")) }
}
