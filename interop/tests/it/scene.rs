//! Two hosts with a peer program each.

use std::io::Write;

use takt_interop::network::{Host, Network};
use takt_interop::peer::{Options, Peer};
use takt_interop::programs::Program;
use takt_interop::{Error, Result};

/// Two peer programs, `left` and `right`, that see each other over the link only.
pub struct Scene {
    // The peers go first, the namespaces last.
    pub left: Peer,
    pub right: Peer,
    pub network: Network,
}

impl Scene {
    /// Starts the programs on hosts of their own. `None` if this machine cannot run such a test; see [`not_run`].
    pub fn new(left: Program, right: Program) -> Option<Self> {
        Self::with(left, right, Options::default())
    }

    pub fn with(left: Program, right: Program, options: Options) -> Option<Self> {
        let network = hosts()?;
        let left = start(left, &network.left, options)?;
        let right = start(right, &network.right, options)?;
        Some(Self { left, right, network })
    }
}

/// Two hosts.
pub fn hosts() -> Option<Network> {
    possible(Network::new())
}

/// A peer program on a host.
pub fn start(program: Program, host: &Host, options: Options) -> Option<Peer> {
    possible(Peer::start(program, host, options))
}

/// `None` if the machine lacks what the test needs; any other error is a failure.
pub fn possible<T>(attempt: Result<T>) -> Option<T> {
    match attempt {
        Ok(value) => Some(value),
        Err(Error::Unavailable(why)) => {
            not_run(&why);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Says, past the test runner's capture, that a test did not run; in CI that is a failure.
fn not_run(why: &str) {
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    let ci = std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false" && value != "0");
    assert!(!ci, "{test} cannot run here, and CI is set: {why}");
    writeln!(std::io::stderr(), "NOT RUN: {test}: {why}").expect("standard error takes a line");
}
