//! `takt sdn measure`: a switch model, measured on a real switch with two probes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_lab::Namespace;
use takt_sdn::measure::probes::{Probe, Probes};
use takt_sdn::measure::report::model_text;
use takt_sdn::measure::session::{Endpoint, Session};
use takt_sdn::measure::{MeasureError, Settings, measure};
use takt_sdn::model::SwitchModel;

use crate::domain::address_and_port;
use crate::output::{note, out};

/// Maximum length of a model file, in octets.
const FILE_MAX: u64 = takt_sdn::model::switch::FILE_MAX as u64;

const EXAMPLES: &str = "\
Examples:
  takt sdn measure --listen 192.0.2.1:6653 --from eth1 --to eth2 --cable-rate 1000000000 --name my-switch --output my-switch.toml
                                             a switch that connects to this controller; eth1 and eth2 are cabled to two of its ports
  takt sdn measure --switch unix:/run/takt/lab/measured/s1.mgmt --from takt.measured.left/eth0 --to takt.measured.right/eth0
                                             a switch of takt lab, with probes in the namespaces of two hosts
The switch port at --to must be slower than the traffic of --from, and must have its queues (takt sdn queues apply).
Needs root. Stop takt sdn run of this switch before. docs/guide/sdn.md describes the measurement.";

/// `takt sdn measure`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Measure {
    /// Address at which the switch listens for a controller: unix:PATH or tcp:ADDRESS:PORT
    #[arg(long, value_name = "TARGET", value_parser = target, required_unless_present = "listen", conflicts_with = "listen")]
    switch: Option<Endpoint>,
    /// Address to which the switch connects
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_and_port)]
    listen: Option<SocketAddr>,
    /// Interface that sends, optionally in a network namespace of ip netns
    #[arg(long, value_name = "[NAMESPACE/]INTERFACE")]
    from: String,
    /// Interface that receives
    #[arg(long, value_name = "[NAMESPACE/]INTERFACE")]
    to: String,
    /// Name of the model
    #[arg(long, value_name = "NAME", default_value = "measured")]
    name: String,
    /// Model file [default: standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Model, built in or a file, with the queues to search for and the values for what cannot be measured
    #[arg(long, value_name = "MODEL", default_value = "generic-hardware")]
    candidates: String,
    /// Frames of each delay measurement, one per millisecond
    #[arg(long, value_name = "FRAMES", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    samples: u32,
    /// Load on the switch, in frames per second
    #[arg(long, value_name = "FRAMES", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    load: u32,
    /// Rate of the switch port at --to, in bit/s [default: measured]
    #[arg(long, value_name = "BIT/S", value_parser = clap::value_parser!(u64).range(64_000..=400_000_000_000))]
    rate: Option<u64>,
    /// Rate of both cables in bit/s; their transmission times are subtracted
    #[arg(long, value_name = "BIT/S", value_parser = clap::value_parser!(u64).range(64_000..=400_000_000_000))]
    cable_rate: Option<u64>,
    /// Write the 99.9th percentile of the delay instead of the maximum; bounds hold while the switch keeps it
    #[arg(long)]
    percentile: bool,
    /// Rate of the meter in kbit/s [default: half the rate of the port, at most 10000]
    #[arg(long, value_name = "KBIT/S", value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    meter_rate: Option<u32>,
    /// Maximum flow entries, groups and meters to add if the switch does not report its table sizes
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    table_cap: u32,
}

fn target(text: &str) -> std::result::Result<Endpoint, String> {
    let expected = || "expected unix:PATH or tcp:ADDRESS:PORT".to_owned();
    match text.split_once(':').ok_or_else(expected)? {
        ("unix", path) if !path.is_empty() => Ok(Endpoint::Unix(Path::new(path).to_owned())),
        ("tcp", address) => address.parse().map(Endpoint::Tcp).map_err(|_| expected()),
        _ => Err(expected()),
    }
}

fn failure(error: MeasureError) -> Error {
    match error {
        MeasureError::Os { action, source } => Error::Os { op: action, source },
        MeasureError::Stopped => Error::Stopped,
        error => Error::NotKept { what: error.to_string() },
    }
}

/// Opens the sockets of an interface, in the network namespace that precedes its name.
fn probe(name: &str) -> Result<Probe> {
    let failed = |source| Error::Os { op: format!("open the probe {name}"), source };
    match name.split_once('/') {
        None => Probe::open(name).map_err(failed),
        Some((namespace, interface)) => {
            let namespace = Namespace::open(namespace).map_err(failed)?;
            namespace.run(|| Probe::open(interface)).and_then(|probe| probe).map_err(failed)
        }
    }
}

fn candidates(name: &str) -> Result<SwitchModel> {
    if SwitchModel::BUILT_IN.iter().any(|(known, _)| *known == name) {
        return SwitchModel::built_in(name).map_err(|error| Error::Usage(error.to_string()));
    }
    let failed = |what: String| Error::Usage(format!("--candidates {name}: {what}"));
    let len = std::fs::metadata(name).map_err(|error| failed(error.to_string()))?.len();
    if len > FILE_MAX {
        return Err(failed(format!("the file exceeds {FILE_MAX} octets")));
    }
    let text = std::fs::read_to_string(name).map_err(|error| failed(error.to_string()))?;
    SwitchModel::parse(name, &text).map_err(|error| Error::Usage(error.to_string()))
}

impl Measure {
    /// Measures the switch and writes the model file.
    pub fn run(self) -> Result<()> {
        let settings = Settings {
            name: self.name.clone(),
            candidates: candidates(&self.candidates)?,
            samples: self.samples,
            load_fps: self.load,
            rate_bps: self.rate,
            cable_bps: self.cable_rate,
            is_percentile: self.percentile,
            meter_kbps: self.meter_rate,
            table_cap: self.table_cap,
        };
        let probes = Probes::new(probe(&self.from)?, probe(&self.to)?);
        let contact = self.switch.or(self.listen.map(Endpoint::Listen));
        let contact = contact.ok_or_else(|| Error::Usage("clap requires --switch or --listen".to_owned()))?;
        let session = Session::open(&contact, &stopped).map_err(failure)?;
        let measured = measure(session, probes, &settings, &stopped, &mut |line| note!("{line}")).map_err(failure)?;
        let text = model_text(&measured, &settings);
        SwitchModel::parse("measured", &text).map_err(|error| Error::NotKept { what: format!("{error}\n{text}") })?;
        match &self.output {
            None => out!("{text}"),
            Some(path) => {
                let failed = |source| Error::Os { op: format!("write {}", path.display()), source };
                std::fs::write(path, text).map_err(failed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Endpoint, candidates, target};

    #[test]
    fn switch_targets_are_parsed_or_refused_with_the_expected_form() {
        assert_eq!(target("unix:/run/s1.mgmt"), Ok(Endpoint::Unix(PathBuf::from("/run/s1.mgmt"))));
        assert_eq!(target("tcp:127.0.0.1:6654"), Ok(Endpoint::Tcp(([127, 0, 0, 1], 6654).into())));
        for wrong in ["", "unix:", "s1", "tcp:host:1", "ssl:127.0.0.1:1"] {
            assert!(target(wrong).is_err_and(|why| why.contains("unix:PATH")), "{wrong}");
        }
        assert!(candidates("generic-hardware").is_ok());
        assert!(candidates("/nowhere/model.toml").is_err_and(|error| error.to_string().contains("--candidates")));
    }
}
