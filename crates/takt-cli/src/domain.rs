//! How a command joins a domain: its configuration, and the options that all commands share.
//!
//! Options come before the environment, the environment before files. The settings of one program (its name, ports, threads and
//! where it accepts TCP connections) do not apply to a command that runs beside it with the same configuration.

use crate::output::note;
use clap::Args;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use takt::{DomainParticipant, DomainParticipantBuilder, INTEREST_PROPERTY, Runtime};
use takt_bench::{Error, Result};
use takt_config::{ConfigError, Settings};

/// Longest sleep before a signal is noticed.
pub const STEP: Duration = Duration::from_millis(100);

/// Settings of one program, which a command that runs beside it leaves at their defaults. The addresses of `tcp.listen`
/// are taken by the program; a command connects.
const OF_ONE_PROGRAM: [&str; 8] = [
    "participant.name",
    "participant.index",
    "participant.runtime",
    "participant.idle",
    "participant.spin_time",
    "real_time",
    "tcp.listen",
    "tcp.announce",
];

/// The variable that has the domain of ROS 2 nodes.
const ROS_DOMAIN_ID: &str = "ROS_DOMAIN_ID";

/// Which domain, by which configuration.
#[derive(Args, Clone, Debug, Default)]
pub struct DomainConfig {
    /// DDS domain [default: TAKT_DOMAIN, that of the configuration, or 0]
    #[arg(long, value_parser = domain_id)]
    pub domain: Option<u32>,
    /// Configuration file, TOML or XML; may be repeated [default: those of TAKT_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
}

/// Which domain, by which configuration and by which way.
#[derive(Args, Clone, Debug, Default)]
pub struct Domain {
    #[command(flatten)]
    pub configuration: DomainConfig,
    /// Network interface by name or address; may be repeated, or separated by commas [default: all but loopback]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub interface: Vec<String>,
    /// Host to announce to directly, tcp/HOST:PORT by TCP; may be repeated, or separated by commas
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub peer: Vec<String>,
    /// Discovery server to use in place of multicast; may be repeated, or separated by commas
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub server: Vec<String>,
    /// What carries user data, by the names of takt transport ls, such as xdp:eth0; repeated: the first that opens
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub transport: Vec<String>,
}

impl DomainConfig {
    /// The settings of files, environment and options.
    ///
    /// # Errors
    /// A file cannot be read, or something in it, in the environment or in an option is wrong.
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = if self.config.is_empty() {
            Settings::from_environment().map_err(refused)?
        } else {
            read(&self.config, true)?
        };
        settings.clear(&OF_ONE_PROGRAM);
        if let Some(domain) = self.domain {
            settings.set("participant.domain", &domain.to_string(), "--domain").map_err(refused)?;
        }
        Ok(settings)
    }
}

impl Domain {
    /// The settings of files, environment and options.
    ///
    /// # Errors
    /// As [`DomainConfig::settings`].
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = self.configuration.settings()?;
        set_list(&mut settings, "network.interfaces", &self.interface, "--interface")?;
        set_list(&mut settings, "network.peers", &self.peer, "--peer")?;
        set_list(&mut settings, "network.discovery_servers", &self.server, "--server")?;
        set_list(&mut settings, "transport.user_data", &self.transport, "--transport")?;
        Ok(settings)
    }

    /// A participant without a thread, named after the command.
    ///
    /// # Errors
    /// The configuration is wrong, or the domain cannot be joined.
    pub fn join(&self, name: &str) -> Result<DomainParticipant> {
        Self::join_with(&self.settings()?, name)
    }

    /// The same for a topic of ROS 2: without --domain, TAKT_DOMAIN and a configuration the domain is that of ROS_DOMAIN_ID.
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
        // Why it is not the first choice is worth a line, and so is what it has become.
        participant.transport_report().to_string().lines().for_each(|line| note!("takt: {line}"));
        Ok(participant)
    }
}

/// A participant of these settings, prepared.
///
/// # Errors
/// The settings do not go together.
pub fn prepare(settings: &Settings) -> Result<DomainParticipantBuilder> {
    settings.participant().map_err(refused)
}

/// The same, and a discovery server shows it all participants, not only those whose endpoints match its own.
///
/// # Errors
/// The settings do not go together.
pub fn prepare_observer(settings: &Settings) -> Result<DomainParticipantBuilder> {
    let mut qos = settings.participant_qos().map_err(refused)?;
    qos.property.0.push((INTEREST_PROPERTY.to_owned(), "all".to_owned(), true));
    Ok(prepare(settings)?.qos(qos))
}

/// Reads configuration files, and the environment unless it is left aside.
///
/// # Errors
/// What is wrong, and where.
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

/// A configuration that is refused.
pub fn refused(error: ConfigError) -> Error {
    Error::Os { op: "configuration".to_owned(), source: io::Error::other(error) }
}

fn set_list(settings: &mut Settings, path: &str, items: &[String], option: &str) -> Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    settings.set(path, &items.join(","), option).map_err(refused)
}

/// Reads a domain id. Beyond 232 the well-known ports of the default mapping end (RTPS 2.5 §9.6.2).
///
/// # Errors
/// The text is none.
pub fn domain_id(text: &str) -> std::result::Result<u32, String> {
    let id = text.parse().ok().filter(|id| *id <= 232); // tidy-allow(dropped-cause): the message says what is wanted
    id.ok_or_else(|| "a domain is a number from 0 to 232".to_owned())
}

/// The longest time that an option may say, some 31 years: a clock can count to the end of it.
pub const MAX_TIME: Duration = Duration::from_secs(1_000_000_000);

/// Reads a number of seconds, from zero to [`MAX_TIME`].
///
/// # Errors
/// The text is none.
pub fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()); // tidy-allow(dropped-cause): the message says what is wanted
    let seconds = seconds.filter(|seconds| *seconds <= MAX_TIME);
    seconds.ok_or_else(|| "a time is a number of seconds, such as 0.5, from 0 to 1e9".to_owned())
}

/// An address to listen at.
///
/// # Errors
/// The text is none.
pub fn address_and_port(text: &str) -> std::result::Result<SocketAddr, String> {
    let address = text.parse().ok(); // tidy-allow(dropped-cause): the message says what is wanted
    address.ok_or_else(|| "expected an IP address and a port, such as 0.0.0.0:7400 or [::1]:7400".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port() {
        assert_eq!(address_and_port("127.0.0.1:7400"), Ok(SocketAddr::from(([127, 0, 0, 1], 7400))));
        for text in ["", "nonsense", "127.0.0.1", "host:7400", "127.0.0.1:70000"] {
            assert!(address_and_port(text).is_err_and(|why| why.contains("such as 0.0.0.0:7400")), "{text}");
        }
    }

    #[test]
    fn numbers_that_are_none_are_refused_in_words() {
        assert_eq!(domain_id("232"), Ok(232));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["abc", "233", "-1", "1.5"] {
            assert_eq!(domain_id(wrong), Err("a domain is a number from 0 to 232".to_owned()), "{wrong}");
        }
        for wrong in ["abc", "-1", "inf", "NaN"] {
            assert!(seconds(wrong).is_err_and(|text| text.starts_with("a time is a number of seconds")), "{wrong}");
        }
    }
}
