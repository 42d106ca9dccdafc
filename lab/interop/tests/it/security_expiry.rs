//! Expiry and renewal of certificates and permissions of a matched pair of Takt and CycloneDDS 0.10
//! or Fast DDS 2.9.
//!
//! INTEROP(CycloneDDS 0.10): ends the session when the documents of the handshake expire, and
//! discovers the participant again, with its renewed documents.
//!
//! INTEROP(Fast DDS 2.9): checks certificates and permissions in handshakes only. It keeps a
//! session that Takt has ended, and ignores further handshakes of that participant.
//!
//! All cases run at once, since most of their time is spent until documents expire.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use takt_interop::event::{Event, Sample};
use takt_interop::network::Network;
use takt_interop::peer::{Batch, Endpoint, Kind, Options, Peer};
use takt_interop::programs::Program;
use takt_testkit::waiting;

use crate::scene::{hosts, possible};
use crate::secure::{Authorities, EnclaveDirectories, Expiring};
use crate::security::variant;

/// Time from the start of a case until its document expires, in seconds. The programs start and
/// match within it.
const VALID_FOR: i64 = 25;
/// Time after the expiry from which samples must arrive, in seconds.
const AFTERWARDS: i64 = 5;
/// Maximum number of batches that are written while samples are awaited.
const BATCHES_MAX: u64 = 200;
/// Samples of a batch, and their period.
const SAMPLES: u64 = 5;
const PERIOD_US: u64 = 100_000;
/// Variant with protected discovery, liveliness, messages and submessages.
const VARIANT: usize = 18;

const PEERS: [Program; 2] = [Program::Cyclone10, Program::FastDds2];
const DOCUMENTS: [Expiring; 2] = [Expiring::Certificate, Expiring::Permissions];

/// Case: the peer, the side of Takt (which decides who begins the handshake), and the document that
/// expires.
#[derive(Clone, Copy, Debug)]
struct Case {
    peer: Program,
    is_left: bool,
    document: Expiring,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.is_left { "left" } else { "right" };
        write!(f, "{} with Takt as {side}, {:?}", self.peer, self.document)
    }
}

/// Side whose document expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Takt,
    Peer,
}

/// A pair of Takt and the peer, with a writer and a reader each.
struct Pair {
    // Dropped in this order: programs first, namespaces last.
    takt: Peer,
    peer: Peer,
    enclave: PathBuf,
    name: &'static str,
    authorities: Authorities,
    /// Time at which the document expires, in seconds since 1970.
    ends_at: i64,
    written: u64,
    enclaves: EnclaveDirectories,
    network: Network,
}

type Outcome = Result<(), String>;

fn text(error: takt_interop::Error) -> String {
    error.to_string()
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    i64::try_from(now).expect("before the end of time")
}

impl Pair {
    /// Starts the programs and waits until both endpoints of both sides are matched.
    fn start(network: Network, test: &str, case: Case, owner: Owner) -> Option<Result<Self, String>> {
        let enclaves = EnclaveDirectories::empty(&format!("{test}-{case}").replace([' ', ','], "-"));
        let authorities = Authorities::new(&variant(VARIANT));
        let ends_at = now() + VALID_FOR;
        let sides = [("left", enclaves.left(), &network.left), ("right", enclaves.right(), &network.right)];
        let [takt, peer] = if case.is_left { [0, 1] } else { [1, 0] };
        for (side, (name, enclave, _)) in sides.iter().enumerate() {
            let expires = (side == takt) == (owner == Owner::Takt);
            authorities.write(enclave, name, expires.then_some((case.document, ends_at)));
        }
        let start = |program, side: usize| {
            let (_, enclave, host): &(_, PathBuf, _) = &sides[side];
            Peer::start_in(program, host, Options::default(), Some(enclave as &Path))
        };
        let takt_peer = possible(start(Program::Takt, takt))?;
        let peer = possible(start(case.peer, peer))?;
        let (name, enclave) = (sides[takt].0, sides[takt].1.clone());
        let mut pair =
            Self { takt: takt_peer, peer, enclave, name, authorities, ends_at, written: 0, enclaves, network };
        Some(pair.create().map(|()| pair))
    }

    fn create(&mut self) -> Outcome {
        create_endpoints(&mut self.takt, ["There", "Back"])?;
        create_endpoints(&mut self.peer, ["Back", "There"])?;
        for peer in [&mut self.takt, &mut self.peer] {
            peer.matched("w", 1).map_err(text)?;
            peer.matched("r", 1).map_err(text)?;
        }
        self.exchange_until(0).map(drop)
    }

    /// Starts the peer again, and waits for matches and samples.
    fn restart_peer(&mut self, case: Case) -> Outcome {
        let (host, enclave) = match case.is_left {
            true => (&self.network.right, self.enclaves.right()),
            false => (&self.network.left, self.enclaves.left()),
        };
        self.peer = Peer::start_in(case.peer, host, Options::default(), Some(&enclave)).map_err(text)?;
        create_endpoints(&mut self.peer, ["Back", "There"])?;
        self.exchange_until(now())
    }

    /// Makes Takt use documents that are valid for a year.
    fn renew(&mut self) -> Outcome {
        self.authorities.write(&self.enclave, self.name, None);
        self.takt.renew(&self.enclave).map_err(text)
    }

    /// Has both sides write until each has received a sample that was written after `time`.
    fn exchange_until(&mut self, time: i64) -> Outcome {
        let mut has_arrived = [false; 2];
        for _ in 0..BATCHES_MAX {
            let batch = Batch { first: self.written, period_us: PERIOD_US, ..Batch::new(SAMPLES, 64) };
            self.written += SAMPLES;
            let mut both = [&mut self.takt, &mut self.peer];
            for peer in &mut both {
                peer.write("w", &batch).map_err(text)?;
            }
            for (peer, has_arrived) in both.into_iter().zip(&mut has_arrived) {
                peer.written("w", waiting::LIMIT).map_err(text)?;
                let is_late = |sample: &Sample| sample.valid && sample.stamp_ns > time * 1_000_000_000;
                let events = peer.pending("r");
                *has_arrived |= events.iter().any(|event| matches!(event, Event::Sample(sample) if is_late(sample)));
            }
            if has_arrived == [true; 2] {
                return Ok(());
            }
        }
        Err(format!("samples arrive at Takt and the peer: {has_arrived:?}; refused: {:?}", self.takt.refused()))
    }

    /// Waits until a handshake of Takt with the peer has timed out. Takes a minute, so this is for
    /// long runs.
    fn is_not_answered(&mut self) -> Outcome {
        if !takt_testkit::is_full_length() {
            return Ok(());
        }
        waiting::until("Takt gets no answer", || {
            self.takt.refused().is_ok_and(|reasons| reasons.iter().any(|reason| reason.contains("in time")))
        });
        Ok(())
    }

    /// Waits until Takt has ended both matches, and returns the reason.
    fn ended(&mut self) -> Result<String, String> {
        for endpoint in ["w", "r"] {
            self.takt.matched_within(endpoint, 0, waiting::LIMIT).map_err(text)?;
        }
        // CycloneDDS ends a session with expired permissions a second earlier than Takt.
        let reason = waiting::until_some("Takt gives a reason", || {
            self.takt.refused().map(|reasons| reasons.into_iter().next()).transpose()
        });
        reason.map_err(text)
    }
}

/// Creates a writer of the first topic and a reader of the second one.
fn create_endpoints(peer: &mut Peer, topics: [&str; 2]) -> Outcome {
    let endpoint = |id, topic| Endpoint { keep_last: 1, ..Endpoint::new(id, topic, Kind::Key) };
    peer.writer(&endpoint("w", topics[0])).map_err(text)?;
    peer.reader(&endpoint("r", topics[1])).map_err(text)
}

fn check_all(test: &str, owner: Owner, check: fn(&mut Pair, Case) -> Outcome) {
    let sides = [true, false].into_iter();
    let cases = sides.flat_map(|is_left| PEERS.map(|peer| (is_left, peer)));
    let cases: Vec<Case> =
        cases.flat_map(|(is_left, peer)| DOCUMENTS.map(move |document| Case { peer, is_left, document })).collect();
    let failures: Vec<String> = std::thread::scope(|scope| {
        let start = |case: Case| {
            scope.spawn(move || {
                let outcome = Pair::start(hosts()?, test, case, owner)?.and_then(|mut pair| check(&mut pair, case));
                outcome.err().map(|why| format!("{case}: {why}"))
            })
        };
        let running: Vec<_> = cases.into_iter().map(start).collect();
        running.into_iter().filter_map(|case| case.join().expect("a case does not panic")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check_reason(case: Case, reason: &str) -> Outcome {
    let expected = match case.document {
        Expiring::Certificate => "certificate has expired",
        Expiring::Permissions => "expired",
    };
    if reason.contains(expected) { Ok(()) } else { Err(format!("ended for another reason: {reason}")) }
}

#[test]
fn samples_flow_after_the_expiry_of_a_document_that_takt_has_renewed() {
    check_all("renewed", Owner::Takt, |pair, _| {
        pair.renew()?;
        pair.exchange_until(pair.ends_at + AFTERWARDS)
    });
}

#[test]
fn matches_end_when_a_document_of_takt_expires_and_return_with_its_renewal() {
    check_all("renewed-late", Owner::Takt, |pair, case| {
        check_reason(case, &pair.ended()?)?;
        pair.renew()?;
        match case.peer {
            Program::FastDds2 => {
                pair.is_not_answered()?;
                pair.restart_peer(case)
            }
            _ => pair.exchange_until(now()),
        }
    });
}

#[test]
fn matches_end_when_a_document_of_the_peer_expires() {
    check_all("peer", Owner::Peer, |pair, case| check_reason(case, &pair.ended()?));
}
