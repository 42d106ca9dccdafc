//! Helper processes of an agent: the daemon of its host (federated) or the discovery server of its
//! domain (centralized).

use super::Lines;
use super::options::Options;
use crate::error::{Error, Result};
use crate::signal::stopped;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use takt::{DiscoveryServer, DomainParticipant};
use takt_transport::daemon;

/// Maximum time for a daemon to start.
const START_LIMIT: Duration = Duration::from_secs(10);
/// Interval between checks whether the daemon has started.
const STEP: Duration = Duration::from_millis(10);

/// Returns the name of the daemon that all agents of a domain on one host share.
pub(super) fn daemon_name(domain: u32) -> String {
    format!("bench-{domain}")
}

/// Ensures that the daemon of this domain and host runs; another agent may have started it. The
/// daemon ends after its last application has gone.
pub(super) fn start_daemon(options: &Options) -> Result<()> {
    let name = daemon_name(options.link.domain);
    if daemon::status(Some(&name)).is_ok() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(|e| Error::os("locate the program", e))?;
    let mut command = Command::new(program);
    command.args(["daemon", "run", "--until-idle", "--name", &name, "--interface", &options.link.interface]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The daemon outlives this agent if other agents use it. If the name is taken, the new daemon
    // ends at once.
    let mut child = command.spawn().map_err(|e| Error::os("start the daemon", e))?;
    std::thread::spawn(move || child.wait());
    let begun = Instant::now();
    while begun.elapsed() < START_LIMIT && !stopped() {
        match daemon::status(Some(&name)) {
            Ok(_) => return Ok(()),
            Err(_) => std::thread::sleep(STEP),
        }
    }
    Err(Error::NoAnswer { what: format!("the daemon {name} did not start within {START_LIMIT:?}") })
}

/// Runs the discovery server of a domain until a signal arrives.
pub(super) fn serve_discovery(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    let Some(address) = options.broker else {
        return Err(Error::Usage("the role broker needs broker=ADDRESS:PORT".into()));
    };
    let participant = DomainParticipant::builder(options.link.domain);
    let server = DiscoveryServer::from_participant(participant, address).build()?;
    lines.ready()?;
    while !stopped() {
        std::thread::sleep(STEP);
    }
    server.close().map_err(Error::Dds)
}
