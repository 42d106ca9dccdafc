//! Multicast of user data: one Takt writer and readers of several products on another host. The
//! writer uses multicast while it arrives, and unicast otherwise.

use std::path::Path;
use std::time::{Duration, Instant};

use takt_interop::content;
use takt_interop::impairment::{Impairment, clear, impair};
use takt_interop::network::{Host, Network};
use takt_interop::peer::{Batch, Endpoint, Kind, Peer};
use takt_interop::programs::Program;

use crate::scene::{hosts, start};

const READERS: [Program; 4] = [Program::Takt, Program::Cyclone10, Program::Cyclone11, Program::Takt];
/// Number of samples that are written one by one.
const BATCH: u64 = 20;
/// Maximum time in which the writer detects which readers receive multicast.
const DETECTION_TIMEOUT: Duration = Duration::from_secs(30);

struct Fan {
    left: Peer,
    right: Vec<Peer>,
    network: Network,
    written: u64,
    reliable: bool,
}

/// Returns the number of IPv4 multicast datagrams that have left a host. A GSO send (`UDP_SEGMENT`)
/// counts as one.
fn multicasts(host: &Host) -> u64 {
    let output = host.command(Path::new("cat")).arg("/proc/net/netstat").output().expect("`cat` runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut lines = text.lines().filter(|line| line.starts_with("IpExt:"));
    let (names, values) = (lines.next().expect("the names"), lines.next().expect("the values"));
    let found = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == "OutMcastPkts");
    found.expect("the kernel counts multicast").1.parse().expect("a number")
}

impl Fan {
    fn new(reliable: bool) -> Option<Self> {
        let network = hosts()?;
        let mut left = start(Program::Takt, &network.left, Default::default())?;
        let endpoint = |id: &str| Endpoint { reliable, ..Endpoint::new(id, "T", Kind::Key) };
        left.writer(&endpoint("w")).expect("created");
        let mut right = Vec::new();
        for program in READERS {
            let mut peer = start(program, &network.right, Default::default())?;
            peer.reader(&endpoint("r")).expect("created");
            peer.matched("r", 1).expect("the reader finds the writer");
            right.push(peer);
        }
        left.matched("w", READERS.len() as i64).expect("the writer finds all");
        Some(Self { left, right, network, written: 0, reliable })
    }

    /// Writes samples that every reader must receive once and in order. Returns the number of
    /// multicast datagrams sent meanwhile.
    fn write(&mut self, size: usize) -> u64 {
        let before = multicasts(&self.network.left);
        let batch = Batch { first: self.written, period_us: 2_000, ..Batch::new(BATCH, size) };
        self.left.write("w", &batch).expect("running");
        self.left.written("w", DETECTION_TIMEOUT).expect("nobody holds the writer up");
        for (peer, program) in self.right.iter_mut().zip(READERS) {
            for number in self.written..self.written + BATCH {
                let sample = peer.sample("r").unwrap_or_else(|error| panic!("{program}: {number}: {error}"));
                let hash = format!("{:016x}", content::expected_hash(size, sample.key.expect("a key"), sample.seq));
                assert_eq!((sample.seq, sample.hash), (number, hash), "{program}");
            }
        }
        if self.reliable {
            self.left.acknowledged("w", DETECTION_TIMEOUT).expect("acknowledged");
        }
        self.written += BATCH;
        multicasts(&self.network.left) - before
    }

    /// Writes until samples are sent by multicast, or until they no longer are.
    fn await_multicast(&mut self, wanted: bool) {
        let begin = Instant::now();
        while (self.write(100) >= BATCH) != wanted {
            assert!(begin.elapsed() < DETECTION_TIMEOUT, "it goes {} the group", if wanted { "not to" } else { "to" });
        }
    }
}

#[test]
fn readers_of_several_products_share_multicast_samples() {
    for reliable in [true, false] {
        let Some(mut fan) = Fan::new(reliable) else { return };
        fan.await_multicast(true);
        let fragmented = fan.write(3_000);
        // The kernel counts all fragments of a GSO send once.
        assert!(fragmented >= BATCH, "fragments go there too: {fragmented}");
    }
}

#[test]
fn link_without_multicast_gets_all_samples_by_unicast() {
    let Some(mut fan) = Fan::new(true) else { return };
    fan.await_multicast(true);
    let eaten = Impairment { drops_user_multicast: true, ..Impairment::default() };
    impair(&fan.network.right, eaten).expect("the packet filter works");
    fan.await_multicast(false);
    clear(&fan.network.right).expect("the packet filter works");
    fan.await_multicast(true);
}
