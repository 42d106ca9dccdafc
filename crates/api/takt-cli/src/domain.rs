//! Domain of a command: its configuration, and the options that all commands share.
//!
//! Options take precedence over the environment, and the environment over files. A command that
//! runs next to a program with the same configuration ignores the settings of that program alone:
//! its name, ports, threads, capture file and the addresses where it accepts TCP connections.

use crate::completion::interfaces;
use crate::output::note;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use takt::{DomainParticipant, DomainParticipantBuilder, INTEREST_PROPERTY, Runtime};
use takt_bench::{Error, Result};
use takt_config::{ConfigError, Settings};

/// Longest sleep before the command notices a signal.
pub const STEP: Duration = Duration::from_millis(100);

/// Settings of one program. A command that runs next to it with the same configuration leaves them
/// at their defaults. The program owns the addresses of `tcp.listen`; a command only connects.
const PROGRAM_SETTINGS: [&str; 9] = [
    "participant.name",
    "participant.index",
    "participant.runtime",
    "participant.idle",
    "participant.spin_time",
    "real_time",
    "tcp.listen",
    "tcp.announce",
    "capture",
];

/// Environment variable with the domain of ROS 2 nodes.
const ROS_DOMAIN_ID: &str = "ROS_DOMAIN_ID";

/// Domain and configuration files of a command.
#[derive(Args, Clone, Debug, Default)]
pub struct DomainConfig {
    /// DDS domain ID [default: TAKT_DOMAIN, that of the configuration, or 0]
    #[arg(long, value_parser = domain_id)]
    pub domain: Option<u32>,
    /// Configuration file, TOML or XML; may be repeated [default: those of TAKT_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
}

/// Domain, configuration, peers and transports of a command.
#[derive(Args, Clone, Debug, Default)]
pub struct Domain {
    #[command(flatten)]
    pub configuration: DomainConfig,
    /// Network interface by name or address; may be repeated, or separated by commas [default: all except loopback]
    #[arg(long, value_name = "NAME", value_delimiter = ',', add = ArgValueCompleter::new(interfaces))]
    pub interface: Vec<String>,
    /// Peer to announce to by unicast, tcp/HOST:PORT for TCP; may be repeated, or separated by commas
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub peer: Vec<String>,
    /// Discovery server to use instead of multicast; may be repeated, or separated by commas
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub server: Vec<String>,
    /// Transport of user data, as in takt transport ls, such as xdp:eth0; if repeated, the first that opens
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub transport: Vec<String>,
}

impl DomainConfig {
    /// Returns the settings of files, environment and options.
    ///
    /// # Errors
    /// A file cannot be read, or a file, the environment or an option has an invalid value.
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = if self.config.is_empty() {
            Settings::from_environment().map_err(refused)?
        } else {
            read(&self.config, true)?
        };
        settings.clear(&PROGRAM_SETTINGS);
        if let Some(domain) = self.domain {
            settings.set("participant.domain", &domain.to_string(), "--domain").map_err(refused)?;
        }
        Ok(settings)
    }
}

impl Domain {
    /// Returns the settings of files, environment and options.
    ///
    /// # Errors
    /// Same as [`DomainConfig::settings`].
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = self.configuration.settings()?;
        set_list(&mut settings, "network.interfaces", &self.interface, "--interface")?;
        set_list(&mut settings, "network.peers", &self.peer, "--peer")?;
        set_list(&mut settings, "network.discovery_servers", &self.server, "--server")?;
        set_list(&mut settings, "transport.user_data", &self.transport, "--transport")?;
        Ok(settings)
    }

    /// Joins the domain with a participant without threads, named after the command.
    ///
    /// # Errors
    /// The configuration is wrong, or the domain cannot be joined.
    pub fn join(&self, name: &str) -> Result<DomainParticipant> {
        Self::join_with(&self.settings()?, name)
    }

    /// Joins the domain of a ROS 2 topic: that of ROS_DOMAIN_ID, unless `--domain`, TAKT_DOMAIN or
    /// a configuration names one.
    ///
    /// # Errors
    /// The configuration is wrong, or the domain cannot be joined.
    pub fn join_ros2(&self, name: &str) -> Result<DomainParticipant> {
        let mut settings = self.settings()?;
        let domain = std::env::var(ROS_DOMAIN_ID).unwrap_or_default();
        if !domain.is_empty() && settings.value("participant.domain").is_none() {
            settings.set("participant.domain", &domain, ROS_DOMAIN_ID).map_err(refused)?;
            note!("takt: domain {domain} of {ROS_DOMAIN_ID}");
        }
        Self::join_with(&settings, name)
    }

    fn join_with(settings: &Settings, name: &str) -> Result<DomainParticipant> {
        let participant = prepare_observer(settings)?.name(name).runtime(Runtime::Inline).build()?;
        // The report says why the preferred transport is not used, and which transport replaces it.
        participant.diagnostics().transport_report().to_string().lines().for_each(|line| note!("takt: {line}"));
        Ok(participant)
    }
}

/// Returns the builder of a participant with these settings.
///
/// # Errors
/// The settings contradict each other.
pub fn prepare(settings: &Settings) -> Result<DomainParticipantBuilder> {
    settings.participant().map_err(refused)
}

/// Like [`prepare`], but a discovery server announces all participants to it, not only those whose
/// endpoints match its own.
///
/// # Errors
/// The settings contradict each other.
pub fn prepare_observer(settings: &Settings) -> Result<DomainParticipantBuilder> {
    let mut qos = settings.participant_qos().map_err(refused)?;
    qos.property.set(INTEREST_PROPERTY, "all", true);
    Ok(prepare(settings)?.qos(qos))
}

/// Reads configuration files and, with `with_environment`, the environment.
///
/// # Errors
/// A file or a variable is invalid; the error says what is wrong, and where.
pub fn read(files: &[PathBuf], with_environment: bool) -> Result<Settings> {
    let mut settings = Settings::new();
    for file in files {
        settings.add_file(file).map_err(refused)?;
    }
    if with_environment {
        let variable = |name: &str| std::env::var_os(name).map(|text| text.to_string_lossy().into_owned());
        settings.add_environment(variable).map_err(refused)?;
    }
    Ok(settings)
}

/// Converts the error of a configuration that is refused.
pub fn refused(error: ConfigError) -> Error {
    Error::Os { op: "configuration".to_owned(), source: io::Error::other(error) }
}

fn set_list(settings: &mut Settings, path: &str, items: &[String], option: &str) -> Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    settings.set(path, &items.join(","), option).map_err(refused)
}

/// Parses a domain ID. The well-known ports of the default mapping end at domain 232
/// (RTPS 2.5 §9.6.2).
///
/// # Errors
/// The text is no domain ID.
pub fn domain_id(text: &str) -> std::result::Result<u32, String> {
    let id = text.parse().ok().filter(|id| *id <= 232); // tidy-allow(dropped-cause): the message says what is wanted
    id.ok_or_else(|| "expected a domain ID from 0 to 232".to_owned())
}

/// Longest time that an option accepts, some 31 years. The clock can represent its end.
pub const MAX_TIME: Duration = Duration::from_secs(1_000_000_000);

/// Parses a number of seconds, from zero to [`MAX_TIME`].
///
/// # Errors
/// The text is no such number.
pub fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()); // tidy-allow(dropped-cause): the message says what is wanted
    let seconds = seconds.filter(|seconds| *seconds <= MAX_TIME);
    seconds.ok_or_else(|| "expected a time in seconds, such as 0.5, from 0 to 1e9".to_owned())
}

/// Parses a listening address.
///
/// # Errors
/// The text is no address with a port.
pub fn address_and_port(text: &str) -> std::result::Result<SocketAddr, String> {
    let address = text.parse().ok(); // tidy-allow(dropped-cause): the message says what is wanted
    address.ok_or_else(|| "expected an IP address and a port, such as 0.0.0.0:7400 or [::1]:7400".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_without_a_port_is_refused() {
        assert_eq!(address_and_port("127.0.0.1:7400"), Ok(SocketAddr::from(([127, 0, 0, 1], 7400))));
        for text in ["", "nonsense", "127.0.0.1", "host:7400", "127.0.0.1:70000"] {
            assert!(address_and_port(text).is_err_and(|why| why.contains("such as 0.0.0.0:7400")), "{text}");
        }
    }

    #[test]
    fn invalid_numbers_are_refused_with_a_readable_message() {
        assert_eq!(domain_id("232"), Ok(232));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["abc", "233", "-1", "1.5"] {
            assert_eq!(domain_id(wrong), Err("expected a domain ID from 0 to 232".to_owned()), "{wrong}");
        }
        for wrong in ["abc", "-1", "inf", "NaN"] {
            assert!(seconds(wrong).is_err_and(|text| text.starts_with("expected a time in seconds")), "{wrong}");
        }
    }
}
