//! Test setup: two hosts with one peer program each.

use takt_interop::capture::Capture;
use takt_interop::network::{Host, Network};
use takt_interop::peer::{Options, Peer};
use takt_interop::programs::Program;
use takt_interop::{Error, Result};
use takt_testkit::{not_run, require};

/// Two peer programs, `left` and `right`, that are connected only by the link.
pub struct Scene {
    // Dropped in this order: programs first, namespaces last.
    pub left: Peer,
    pub right: Peer,
    pub network: Network,
}

impl Scene {
    /// Starts the programs on two new hosts. `None` if this machine cannot run such a test, which
    /// is reported.
    pub fn new(left: Program, right: Program) -> Option<Self> {
        Self::with(left, right, Options::default())
    }

    /// Starts the programs with `options`. With AF_XDP, the hosts are connected by a switch.
    pub fn with(left: Program, right: Program, options: Options) -> Option<Self> {
        Self::on(network_for(options)?, left, right, options)
    }

    fn on(network: Network, left: Program, right: Program, options: Options) -> Option<Self> {
        // In parallel, since most programs take a while to load.
        let (left, right) = std::thread::scope(|scope| {
            let left = scope.spawn(|| Peer::start(left, &network.left, options));
            let right = Peer::start(right, &network.right, options);
            (left.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), right)
        });
        // Missing prerequisites are reported by this thread, whose name is that of the test.
        let (left, right) = (possible(left)?, possible(right)?);
        Some(Self { left, right, network })
    }
}

/// A [`Scene`] whose traffic is recorded.
pub struct Recorded {
    pub scene: Scene,
    capture: Capture,
    programs: [Program; 2],
}

impl Recorded {
    pub fn new(left: Program, right: Program) -> Option<Self> {
        Self::with(left, right, Options::default())
    }

    pub fn with(left: Program, right: Program, options: Options) -> Option<Self> {
        let programs = [left, right];
        let network = network_for(options)?;
        let capture = possible(Capture::start(&network))?;
        let scene = Scene::on(network, left, right, options)?;
        Some(Self { scene, capture, programs })
    }

    /// Makes the programs quit. Returns tshark's errors in the frames that Takt sent, and the
    /// programs that do not exit.
    pub fn finish(self) -> Vec<String> {
        let Scene { left, right, network } = self.scene;
        let mut found = Vec::new();
        for (program, running) in self.programs.into_iter().zip([left, right]) {
            found.extend(running.quit().err().map(|error| format!("{program} does not end: {error}")));
        }
        found.extend(remarks(self.capture, &network, self.programs));
        found
    }

    /// Keeps the capture and reads the kernel counters, as evidence of where a datagram was lost.
    pub fn evidence(&mut self) -> String {
        let mut text = format!("capture at the left host or the switch: {}", self.capture.keep().display());
        for (side, host) in [("left", &self.scene.network.left), ("right", &self.scene.network.right)] {
            let counters = host.counters().unwrap_or_else(|error| error.to_string());
            text += &format!("\n{side} host {}:\n{counters}", host.address());
        }
        text
    }

    /// Ends as [`Self::finish`], and fails on any error.
    pub fn end(self) {
        let errors = self.finish();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }

    /// Kills the programs, and has tshark check the frames that Takt sent.
    pub fn stop(self) {
        let Scene { left, right, network } = self.scene;
        drop((left, right));
        let errors = remarks(self.capture, &network, self.programs);
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }
}

/// Returns tshark's errors in the frames that Takt sent; `programs` ran left and right.
fn remarks(capture: Capture, network: &Network, programs: [Program; 2]) -> Vec<String> {
    /// Maximum number of reported errors of one kind.
    const ENOUGH: usize = 8;
    let verdict = capture.analyze().expect("tshark reads the capture");
    let mut found = Vec::new();
    for (host, program) in [&network.left, &network.right].into_iter().zip(programs) {
        if program != Program::Takt {
            continue;
        }
        let address = host.address();
        if verdict.rtps.get(&address).is_none_or(|messages| *messages == 0) {
            found.push(format!("no RTPS from {address} in the capture"));
        }
        if verdict.fragments.get(&address).is_some_and(|fragments| *fragments > 0) {
            found.push(format!("{} IP fragments from {address}", verdict.fragments[&address]));
        }
        let errors = verdict.errors.iter().filter(|error| error.source == Some(address));
        found.extend(errors.take(ENOUGH).map(|error| format!("frame {}: {}", error.frame, error.what)));
    }
    found
}

fn network_for(options: Options) -> Option<Network> {
    if options.xdp.is_some() { switched_hosts() } else { hosts() }
}

/// Creates two hosts on a switch.
pub fn switched_hosts() -> Option<Network> {
    has_namespaces()?;
    possible(Network::switched())
}

/// Creates two hosts between which the test forwards.
pub fn forwarded_hosts() -> Option<Network> {
    has_namespaces()?;
    possible(Network::forwarded())
}

/// Creates two hosts.
pub fn hosts() -> Option<Network> {
    has_namespaces()?;
    possible(Network::new())
}

/// Requests namespaces from the kernel, so that all tests without them report the same reason.
fn has_namespaces() -> Option<()> {
    require::network_namespaces().map_err(not_run).ok()
}

/// Starts a peer program on a host.
pub fn start(program: Program, host: &Host, options: Options) -> Option<Peer> {
    possible(Peer::start(program, host, options))
}

/// Returns `None` if the machine lacks a prerequisite of the test. Panics on any other error.
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
