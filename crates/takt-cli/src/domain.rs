//! How a command joins a domain: options that all of them share.

use clap::Args;
use std::time::Duration;
use takt::qos::DomainParticipantQos;
use takt::{DomainParticipant, INTEREST_PROPERTY, Runtime};
use takt_bench::Result;

/// Longest sleep before a signal is noticed.
pub const STEP: Duration = Duration::from_millis(100);

/// Which domain, and by which way.
#[derive(Args, Clone, Debug)]
pub struct Domain {
    /// DDS domain
    #[arg(long, default_value = "0", value_parser = clap::value_parser!(u32).range(0..=232))]
    pub domain: u32,
    /// Network interface to use; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub interface: Vec<String>,
    /// Host to ask directly; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub peer: Vec<String>,
    /// Discovery server to use in place of multicast; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub server: Vec<String>,
    /// What carries user data, by the names of takt transport ls, such as xdp:eth0; repeated: the first that opens
    #[arg(long, value_name = "NAME")]
    pub transport: Vec<String>,
}

impl Domain {
    /// A participant without a thread, named after the command.
    ///
    /// # Errors
    /// The domain cannot be joined.
    pub fn join(&self, name: &str) -> Result<DomainParticipant> {
        let mut qos = DomainParticipantQos::default();
        // A discovery server shall show all there is.
        qos.property.0.push((INTEREST_PROPERTY.to_owned(), "all".to_owned(), true));
        let mut builder = DomainParticipant::builder(self.domain).qos(qos).name(name).runtime(Runtime::Inline);
        if !self.interface.is_empty() {
            builder = builder.interfaces(&self.interface);
        }
        if !self.server.is_empty() {
            builder = builder.discovery_servers(&self.server);
        }
        if !self.peer.is_empty() {
            builder = builder.peers(&self.peer);
        }
        if !self.transport.is_empty() {
            builder = builder.user_data_transports(&self.transport);
        }
        let participant = builder.build()?;
        // Why it is not the first choice is worth a line, and so is what it has become.
        participant.transport_report().to_string().lines().for_each(|line| eprintln!("takt: {line}"));
        Ok(participant)
    }
}

/// A positive number of seconds, or zero.
///
/// # Errors
/// The text is none.
pub fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|e| format!("{e}"))?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}
