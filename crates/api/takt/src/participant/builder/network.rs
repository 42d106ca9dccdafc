//! Transports of a new participant: opened, wrapped and captured.

use std::sync::Arc;

use takt_transport::shm::{ShmConfig, ShmTransport};
use takt_transport::tcp::{TcpConfig, TcpTransport};
use takt_transport::udp::{UdpConfig, UdpTransport};
use takt_transport::{Capabilities, Capture, CaptureSummary, MESSAGE_LEN_MIN, Transport, TransportError, Warning};

use super::super::TransportReport;
use super::super::config::NetworkConfig;
use super::super::transports::{AdditionalTransports, Assembly, Configs, assemble};
use super::{DomainParticipantBuilder, Wrapper};
use crate::log::{self, Level};
use crate::runtime::roles::Roles;
use crate::{Error, Result};

/// Default of [`DomainParticipantBuilder::capture_bytes_max`].
const CAPTURE_BYTES_MAX: usize = 1 << 30;

impl DomainParticipantBuilder {
    /// Opens the transports, wraps the first one and captures all, as requested.
    pub(super) fn open_network(&mut self, network: &NetworkConfig, udp: &UdpConfig) -> Result<Assembly> {
        let mut assembly = self.open_transports(network, udp)?;
        for wrap in std::mem::take(&mut self.wrappers) {
            assembly.transports = wrap_first(assembly.transports, wrap);
        }
        assembly.transports.iter().try_for_each(|transport| check_message_len(transport.capabilities()))?;
        if let Some(path) = &network.capture {
            let bytes_max = network.capture_bytes_max.unwrap_or(CAPTURE_BYTES_MAX);
            assembly.transports = capture(assembly.transports, path, bytes_max as u64, &self.label())?;
        }
        Ok(assembly)
    }

    /// Opens the transports: those of the caller, those requested by name, or UDP with its
    /// companions.
    fn open_transports(&mut self, network: &NetworkConfig, udp: &UdpConfig) -> Result<Assembly> {
        let mut shm = ShmConfig::default();
        std::mem::take(&mut self.shm_changes).into_iter().for_each(|change| change(&mut shm));
        let has_tcp = !self.tcp_changes.is_empty() || network.has_tcp_peers();
        let mut tcp =
            TcpConfig { interfaces: udp.interfaces.clone(), names: network.tcp_names()?, ..TcpConfig::default() };
        std::mem::take(&mut self.tcp_changes).into_iter().for_each(|change| change(&mut tcp));
        // A discovery server, and a participant whose caller provides transports, choose none by
        // name.
        let is_chosen = network.transports.is_set() && self.transports.is_empty() && !self.is_server;
        let is_plain = self.transports.is_empty() && self.wrappers.is_empty() && network.udp != Some(false);
        let has_daemon = is_chosen && network.has_daemon();
        let additional =
            AdditionalTransports { tcp: has_tcp, shm: network.shared_memory.unwrap_or(is_plain && !has_daemon) };
        if additional.shm || is_chosen {
            shm.check().map_err(Error::bad_parameter)?;
        }
        if is_chosen {
            let configs = Configs { udp, tcp: &tcp, shm: &shm };
            return assemble(&network.transports, &configs, additional);
        }
        let mut transports = std::mem::take(&mut self.transports);
        if transports.is_empty() && network.udp != Some(false) {
            transports.push(Box::new(UdpTransport::open(udp)?));
        }
        if has_tcp {
            transports.push(Box::new(TcpTransport::open(&tcp)?));
        }
        if transports.is_empty() {
            let what = "no UDP and no TCP: add a peer tcp/HOST:PORT or a TCP listen address, or enable UDP".to_owned();
            return Err(Error::bad_parameter(what));
        }
        let mut warnings = Vec::new();
        if network.transports.is_set() {
            warnings.push(no_choice());
        }
        if additional.shm {
            match ShmTransport::open(&shm) {
                Ok(shared_memory) => transports.push(Box::new(shared_memory)),
                Err(error) => warnings.push(no_shared_memory(&error)),
            }
        }
        Ok(Assembly { transports, roles: Roles::all(), report: TransportReport::default(), warnings })
    }
}

/// Refuses a transport whose datagrams are shorter than the smallest fragments.
fn check_message_len(transport: Capabilities) -> Result<()> {
    let Capabilities { name, max_message_len, .. } = transport;
    match max_message_len < MESSAGE_LEN_MIN {
        true => {
            let what =
                format!("transport \"{name}\" sends at most {max_message_len} octets: {MESSAGE_LEN_MIN} are required");
            Err(Error::bad_parameter(what))
        }
        false => Ok(()),
    }
}

fn no_shared_memory(error: &TransportError) -> Warning {
    Warning {
        what: format!("shared memory is unavailable, UDP carries all traffic: {error}"),
        remedy: "use Linux 5.14 or later, permit Unix sockets and memfd_create, and run as a user other than 65534"
            .into(),
    }
}

fn no_choice() -> Warning {
    Warning {
        what: "transports are selected by name, but this participant is a server or has custom transports".into(),
        remedy: "remove the transport settings of this participant".into(),
    }
}

/// Wraps the first transport, which carries most of the traffic.
fn wrap_first(transports: Vec<Box<dyn Transport>>, wrap: Wrapper) -> Vec<Box<dyn Transport>> {
    let mut transports = transports.into_iter();
    transports.next().map(wrap).into_iter().chain(transports).collect()
}

/// Captures the datagrams of all transports in a file.
fn capture(
    transports: Vec<Box<dyn Transport>>,
    path: &str,
    bytes_max: u64,
    label: &str,
) -> Result<Vec<Box<dyn Transport>>> {
    let capture = Arc::new(Capture::open(path, bytes_max, report_capture)?);
    Ok(transports.into_iter().map(|transport| capture.tap(transport, label)).collect())
}

/// Logs the result of a capture.
fn report_capture(summary: &CaptureSummary) {
    let CaptureSummary { path, packets, dropped_by_buffer, dropped_by_file, truncated, failure } = summary;
    let is_whole = dropped_by_buffer + dropped_by_file == 0 && failure.is_none();
    let mut text = format!("capture {}: {packets} datagrams", path.display());
    if !is_whole {
        let drops =
            format!(", {dropped_by_buffer} dropped for lack of buffer space, {dropped_by_file} beyond the file");
        text.push_str(&drops);
    }
    if *truncated > 0 {
        text.push_str(&format!(", {truncated} truncated"));
    }
    if let Some(failure) = failure {
        text.push_str(&format!(": {failure}"));
    }
    log::record(if is_whole { Level::Info } else { Level::Warn }, text);
    // The process may end right after its last participant.
    log::flush();
}
