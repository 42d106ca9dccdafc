//! The operator's description of a network in TOML: models of switches, rates of ports, interfaces
//! of hosts.
//!
//! Switches, links and hosts are discovered; the file describes properties that cannot be
//! discovered. Unknown keys are errors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use takt_calculus::network::Depth;
use takt_wire::partition::partitions_match;
use takt_wire::qos::Partition;
use toml::Spanned;

use super::host_limit::{PACKETS_PER_S_MAX, PACKETS_PER_S_MIN};
use super::switch::{FILE_MAX, Text};
use super::{HostId, HostInterface, HostLimit, ModelError, Network, SwitchModel};
use crate::PortRef;
use crate::schedule::WireFormat;

/// Length in octets of the longest frame of a host without a contract, without FCS: an MTU of 1,500
/// octets and a VLAN tag.
const FOREIGN_FRAME_LEN: u64 = 1518;

/// Maximum number of tables in a file.
pub const TABLES_MAX: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchEntry {
    datapath_id: Spanned<String>,
    model: Spanned<String>,
    rate_bps: Spanned<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PortEntry {
    datapath_id: Spanned<String>,
    port: Spanned<u32>,
    rate_bps: Option<Spanned<u64>>,
    packets_per_s: Option<Spanned<u64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    packets_per_s: Option<Spanned<u64>>,
    queue_frames: Option<Spanned<u64>>,
    queue_octets: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    fragment_len: Option<Spanned<u64>>,
    heartbeat_period_ns: Option<Spanned<u64>>,
    #[serde(default)]
    without_contract: WithoutContract,
    #[serde(default)]
    switch: Vec<Spanned<SwitchEntry>>,
    #[serde(default)]
    port: Vec<Spanned<PortEntry>>,
    #[serde(default)]
    host: HostEntry,
}

#[derive(Debug, Clone)]
struct SwitchRule {
    pattern: Partition,
    model: Arc<SwitchModel>,
    rate_bps: u64,
}

#[derive(Debug, Clone)]
struct PortRule {
    pattern: Partition,
    port: u32,
    rate_bps: Option<u64>,
    limit: Option<HostLimit>,
}

/// Treatment of pairs without a contract whose datagrams no rule distinguishes from those of a pair
/// with one: they use its class and meter.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutContract {
    /// The later pair is refused.
    #[default]
    Refuse,
    /// Both match, and a caution is reported.
    Caution,
}

/// The operator's description of a network.
#[derive(Debug, Clone)]
pub struct NetworkFile {
    switches: Vec<SwitchRule>,
    ports: Vec<PortRule>,
    interface: HostInterface,
    limit: Option<HostLimit>,
    /// Maximum length in octets of a sample in one DATA, or of the part in each DATA_FRAG.
    pub fragment_len: u64,
    /// Minimum period in ns of HEARTBEATs that reliable writers send separately.
    pub heartbeat_period_ns: u64,
    /// Treatment of pairs without a contract that share addresses and UDP port with a pair that has
    /// one.
    pub without_contract: WithoutContract,
}

fn matches(pattern: &Partition, dpid: u64) -> bool {
    partitions_match(pattern, &Partition { names: vec![format!("{dpid:016x}")] })
}

impl NetworkFile {
    /// Reads a file. Names of models that are not built in are paths relative to the file.
    ///
    /// # Errors
    /// A file cannot be read; or the line and the key of an invalid value.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        let source = path.display().to_string();
        let directory = path.parent().unwrap_or(Path::new("."));
        Self::parse(&source, &read(path)?, |name| {
            if SwitchModel::BUILT_IN.iter().any(|(known, _)| *known == name) {
                return SwitchModel::built_in(name);
            }
            let path = directory.join(name);
            SwitchModel::parse(&path.display().to_string(), &read(&path)?)
        })
    }

    /// Parses the text of a file. `source` is its name in errors; `model` returns the switch model
    /// of a name.
    ///
    /// # Errors
    /// Line and key of an invalid value.
    pub fn parse(
        source: &str,
        text: &str,
        model: impl Fn(&str) -> Result<SwitchModel, ModelError>,
    ) -> Result<Self, ModelError> {
        let text = Text { source, text };
        let file: File = toml::from_str(text.text)
            .map_err(|error| text.error(error.span(), text.key(error.span()), error.message()))?;
        if file.switch.len() + file.port.len() > TABLES_MAX {
            return Err(text.error(None, "switch", format!("expected at most {TABLES_MAX} tables")));
        }
        let positive = |value: &Spanned<u64>, key: &str| match value.get_ref() {
            0 => Err(text.error(Some(value.span()), key, "expected a number above 0")),
            value => Ok(*value),
        };
        let optional = |value: &Option<Spanned<u64>>, key: &str, default: u64| {
            value.as_ref().map_or(Ok(default), |value| positive(value, key))
        };
        let pattern = |id: &Spanned<String>| match id.get_ref().as_str() {
            "" => {
                Err(text.error(Some(id.span()), "datapath_id", "expected 16 hexadecimal digits, or a pattern of them"))
            }
            id => Ok(Partition { names: vec![id.to_owned()] }),
        };
        let mut switches = Vec::new();
        for entry in file.switch.iter().map(Spanned::get_ref) {
            let model = model(entry.model.get_ref())
                .map_err(|error| text.error(Some(entry.model.span()), "model", error.to_string()))?;
            let (pattern, rate_bps) = (pattern(&entry.datapath_id)?, positive(&entry.rate_bps, "rate_bps")?);
            switches.push(SwitchRule { pattern, model: Arc::new(model), rate_bps });
        }
        let mut ports = Vec::new();
        for entry in file.port.iter().map(Spanned::get_ref) {
            let rate_bps = entry.rate_bps.as_ref().map(|rate| positive(rate, "rate_bps")).transpose()?;
            let limit = host_limit(&text, entry.packets_per_s.as_ref())?;
            if rate_bps.is_none() && limit.is_none() {
                let what = "expected rate_bps, packets_per_s, or both";
                return Err(text.error(Some(entry.port.span()), "port", what));
            }
            ports.push(PortRule {
                pattern: pattern(&entry.datapath_id)?,
                port: *entry.port.get_ref(),
                rate_bps,
                limit,
            });
        }
        let frames = optional(&file.host.queue_frames, "queue_frames", u64::MAX)?;
        let octets = optional(&file.host.queue_octets, "queue_octets", u64::MAX)?;
        Ok(Self {
            switches,
            ports,
            interface: HostInterface { queues: vec![Depth { octets, frames }], foreign_frame_len: FOREIGN_FRAME_LEN },
            limit: host_limit(&text, file.host.packets_per_s.as_ref())?,
            fragment_len: optional(&file.fragment_len, "fragment_len", WireFormat::default().fragment_len)?,
            heartbeat_period_ns: optional(&file.heartbeat_period_ns, "heartbeat_period_ns", 100_000_000)?,
            without_contract: file.without_contract,
        })
    }

    fn switch(&self, dpid: u64) -> Option<&SwitchRule> {
        self.switches.iter().find(|rule| matches(&rule.pattern, dpid))
    }

    fn rate_bps(&self, at: PortRef) -> Option<u64> {
        let own = self.rules_of(at).find_map(|rule| rule.rate_bps);
        Some(own.unwrap_or(self.switch(at.dpid)?.rate_bps))
    }

    fn rules_of(&self, at: PortRef) -> impl Iterator<Item = &PortRule> {
        self.ports.iter().filter(move |rule| rule.port == at.port && matches(&rule.pattern, at.dpid))
    }

    /// Returns the limit of packets that the hosts at a port receive without admission; `None`
    /// without a limit.
    pub fn host_limit(&self, at: PortRef) -> Option<HostLimit> {
        self.rules_of(at).find_map(|rule| rule.limit).or(self.limit)
    }

    /// Reports whether any port has such a limit.
    pub fn has_host_limits(&self) -> bool {
        self.limit.is_some() || self.ports.iter().any(|rule| rule.limit.is_some())
    }

    /// Returns the model of a port's switch, and the port's rate in bit/s. `None` if no table
    /// describes the switch.
    pub fn describe(&self, at: PortRef) -> Option<(Arc<SwitchModel>, u64)> {
        Some((Arc::clone(&self.switch(at.dpid)?.model), self.rate_bps(at)?))
    }

    /// Builds the network model of these switches, links and hosts. Switches that no table
    /// describes are omitted, and so are ports with several hosts: no flow can be admitted there. A
    /// link has the lower rate of its two ports.
    pub fn network(
        &self,
        switches: impl Iterator<Item = u64>,
        links: impl Iterator<Item = (PortRef, PortRef)>,
        hosts: impl Iterator<Item = (HostId, PortRef)>,
    ) -> Network {
        let mut network = Network::default();
        for (dpid, rule) in switches.filter_map(|dpid| Some((dpid, self.switch(dpid)?))) {
            // Switches beyond the limit of a network are omitted.
            let _ = network.add_switch(dpid, Arc::clone(&rule.model));
        }
        for (a, b) in links {
            if let Some((rate_a, rate_b)) = self.rate_bps(a).zip(self.rate_bps(b)) {
                let _ = network.link([(a.dpid, a.port), (b.dpid, b.port)], rate_a.min(rate_b), 0);
            }
        }
        let mut ports: BTreeMap<PortRef, BTreeSet<HostId>> = BTreeMap::new();
        for (host, at) in hosts {
            ports.entry(at).or_default().insert(host);
        }
        for (at, hosts) in ports {
            if let ([host], Some(rate)) = (hosts.into_iter().collect::<Vec<_>>().as_slice(), self.rate_bps(at)) {
                let _ = network.attach(*host, self.interface.clone(), (at.dpid, at.port), rate, 0);
            }
        }
        network
    }
}

/// Parses a limit in packets per second.
fn host_limit(text: &Text<'_>, value: Option<&Spanned<u64>>) -> Result<Option<HostLimit>, ModelError> {
    let read = |value: &Spanned<u64>| {
        let what = format!("expected {PACKETS_PER_S_MIN} to {PACKETS_PER_S_MAX} packets per second");
        HostLimit::new(*value.get_ref()).ok_or_else(|| text.error(Some(value.span()), "packets_per_s", what))
    };
    value.map(read).transpose()
}

fn read(path: &Path) -> Result<String, ModelError> {
    let source = path.display().to_string();
    let fail = |what: String| ModelError { source: source.clone(), line: 1, key: "file".to_owned(), what };
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    if text.len() > FILE_MAX {
        return Err(fail(format!("the file has more than {FILE_MAX} octets")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Egress;

    const TEXT: &str = r#"
fragment_len = 1300

[[switch]]
datapath_id = "000000000000000[12]"
model = "ovs-netdev"
rate_bps = 100_000_000

[[port]]
datapath_id = "*2"
port = 1
rate_bps = 20_000_000

[host]
queue_frames = 1000
"#;

    fn parse(text: &str) -> Result<NetworkFile, ModelError> {
        NetworkFile::parse("network.toml", text, SwitchModel::built_in)
    }

    #[test]
    fn link_has_the_lower_rate_and_unknown_switches_are_omitted() {
        let file = parse(TEXT).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(file.fragment_len, 1300);
        let port = PortRef::new;
        let links = [(port(1, 1), port(2, 1)), (port(2, 2), port(3, 1))];
        let hosts = [(HostId(7), port(1, 5)), (HostId(8), port(2, 5)), (HostId(9), port(2, 5))];
        let snapshot = file.network([1, 2, 3].into_iter(), links.into_iter(), hosts.into_iter()).snapshot();
        assert_eq!(snapshot.switches().map(|(dpid, _)| dpid).collect::<Vec<_>>(), [1, 2]);
        let rate = |egress| snapshot.link(egress).map(|link| link.rate_bps);
        assert_eq!(rate(Egress::Switch(port(1, 1))), Some(20_000_000));
        assert_eq!(rate(Egress::Switch(port(2, 2))), None, "switch 3 is not described");
        assert_eq!(rate(Egress::Host(HostId(7))), Some(100_000_000));
        assert_eq!(snapshot.hosts().collect::<Vec<_>>(), [HostId(7)], "two hosts share a port");
    }

    #[test]
    fn limit_of_a_port_overrides_the_limit_of_all_hosts() {
        let limit = |text: &str, at| parse(text).unwrap_or_else(|error| panic!("{error}")).host_limit(at);
        let (one, other) = (PortRef::new(2, 1), PortRef::new(2, 2));
        assert_eq!((limit(TEXT, one), limit(TEXT, other)), (None, None), "no limit is the default");
        let all = format!("{TEXT}packets_per_s = 5_000\n");
        assert_eq!((limit(&all, one), limit(&all, other)), (HostLimit::new(5_000), HostLimit::new(5_000)));
        let own = all.replacen("rate_bps = 20_000_000", "packets_per_s = 800", 1);
        assert_eq!((limit(&own, one), limit(&own, other)), (HostLimit::new(800), HostLimit::new(5_000)));
        let nothing = TEXT.replacen("rate_bps = 20_000_000\n", "", 1);
        let error = parse(&nothing).expect_err("the table says nothing");
        assert!(error.to_string().contains("expected rate_bps, packets_per_s, or both"), "{error}");
    }

    #[test]
    fn errors_name_line_and_key() {
        let line_of = |text: &str, part: &str| text.lines().position(|line| line.contains(part)).expect("there") + 1;
        for (old, new, key) in [
            ("rate_bps = 100_000_000", "rate_bps = 0", "rate_bps"),
            ("rate_bps = 20_000_000", "rate_bps = -1", "rate_bps"),
            ("\"ovs-netdev\"", "\"abacus\"", "model"),
            ("\"*2\"", "\"\"", "datapath_id"),
            ("port = 1", "prot = 1", "prot"),
            ("queue_frames = 1000", "queue_frames = 0", "queue_frames"),
            ("fragment_len = 1300", "fragment_len = 0", "fragment_len"),
            ("queue_frames = 1000", "packets_per_s = 39", "packets_per_s"),
            ("rate_bps = 20_000_000", "packets_per_s = 2_000_000_000", "packets_per_s"),
        ] {
            let bad = TEXT.replacen(old, new, 1);
            let error = parse(&bad).expect_err(new);
            assert_eq!((error.key.as_str(), error.line), (key, line_of(&bad, new)), "{error}");
        }
    }
}
