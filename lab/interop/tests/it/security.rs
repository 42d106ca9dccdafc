//! DDS Security with CycloneDDS 0.10 and Fast DDS 2.9. Samples and the end of an instance are
//! exchanged in both directions under each governance, with identities of both algorithms. Each
//! side begins the handshake once.
//!
//! The participant with the lower GUID begins the handshake. A GUID begins with a hash of the
//! subject name, so that the names decide. Both directions of a pair use the same names with
//! swapped sides.

use std::path::Path;
use std::time::Duration;

use takt_interop::content;
use takt_interop::event::{Event, InstanceState};
use takt_interop::network::Network;
use takt_interop::peer::{Batch, Endpoint, Kind, Options, Peer};
use takt_interop::programs::Program;
use takt_security::documents::{BasicProtectionKind, ProtectionKind};
use takt_security::identity::KeyAlgorithm;
use takt_testkit::waiting;

use crate::scene::{hosts, possible};
use crate::secure::{EnclaveDirectories, Incompatibility, Variant};

const SAMPLES: u64 = 20;
pub const SIZES: [usize; 2] = [64, 20_000];
/// Topics, whose names do not occur elsewhere.
pub const THERE: &str = "SecuredThere";
const BACK: &str = "SecuredBack";
const TIMEOUT: Duration = Duration::from_secs(30);

pub const NONE: ProtectionKind = ProtectionKind::None;
const SIGN: ProtectionKind = ProtectionKind::Sign;
const ENCRYPT: ProtectionKind = ProtectionKind::Encrypt;
const SIGN_ORIGIN: ProtectionKind = ProtectionKind::SignWithOriginAuthentication;
const ENCRYPT_ORIGIN: ProtectionKind = ProtectionKind::EncryptWithOriginAuthentication;
const BARE: BasicProtectionKind = BasicProtectionKind::None;
const SIGNED: BasicProtectionKind = BasicProtectionKind::Sign;
const HIDDEN: BasicProtectionKind = BasicProtectionKind::Encrypt;

/// Protection of discovery, liveliness, rtps, metadata and data, and whether access is controlled.
type Row = (ProtectionKind, ProtectionKind, ProtectionKind, ProtectionKind, BasicProtectionKind, bool);

const VARIANTS: [Row; 22] = [
    (NONE, NONE, NONE, NONE, BARE, false),
    (NONE, NONE, NONE, NONE, BARE, true),
    (SIGN, NONE, NONE, NONE, BARE, true),
    (ENCRYPT, NONE, NONE, NONE, BARE, true),
    (SIGN_ORIGIN, SIGN_ORIGIN, NONE, NONE, BARE, true),
    (ENCRYPT_ORIGIN, ENCRYPT_ORIGIN, NONE, NONE, BARE, true),
    (NONE, SIGN, NONE, NONE, BARE, true),
    (NONE, ENCRYPT, NONE, NONE, BARE, true),
    (NONE, NONE, SIGN, NONE, BARE, true),
    (NONE, NONE, ENCRYPT, NONE, BARE, true),
    (NONE, NONE, SIGN_ORIGIN, NONE, BARE, true),
    (NONE, NONE, ENCRYPT_ORIGIN, NONE, BARE, true),
    (NONE, NONE, NONE, SIGN, BARE, true),
    (NONE, NONE, NONE, ENCRYPT, BARE, true),
    (NONE, NONE, NONE, SIGN_ORIGIN, BARE, true),
    (NONE, NONE, NONE, ENCRYPT_ORIGIN, BARE, true),
    (NONE, NONE, NONE, NONE, HIDDEN, true),
    (NONE, NONE, NONE, ENCRYPT, HIDDEN, false),
    (ENCRYPT, ENCRYPT, SIGN, ENCRYPT, BARE, true),
    (ENCRYPT_ORIGIN, ENCRYPT_ORIGIN, ENCRYPT_ORIGIN, ENCRYPT_ORIGIN, HIDDEN, true),
    (NONE, NONE, NONE, NONE, SIGNED, true),
    (SIGN, SIGN, NONE, SIGN, SIGNED, true),
];

/// Indices of the variants that stand for the others in short runs.
const REPRESENTATIVE: [usize; 5] = [1, 11, 16, 18, 19];

pub fn variant(index: usize) -> Variant {
    let (discovery, liveliness, rtps, metadata, data, is_controlled) = VARIANTS[index];
    Variant { discovery, liveliness, rtps, metadata, data, is_controlled, allows_unauthenticated: false }
}

pub fn chosen() -> Vec<usize> {
    if takt_testkit::is_full_length() { (0..VARIANTS.len()).collect() } else { REPRESENTATIVE.to_vec() }
}

#[test]
fn takt_and_takt_exchange_samples_under_each_governance() {
    exchange_all(&chosen(), Program::Takt, Program::Takt);
}

#[test]
fn takt_and_cyclonedds_exchange_samples_under_each_governance() {
    exchange_all(&chosen(), Program::Takt, Program::Cyclone10);
}

#[test]
fn takt_and_fast_dds_exchange_samples_under_each_governance() {
    exchange_all(&chosen(), Program::Takt, Program::FastDds2);
}

/// Returns the start options. With `rtps` protection, CycloneDDS sends unprotected discovery in the
/// clear.
pub fn options(index: usize, left: Program, right: Program) -> Options {
    let (discovery, liveliness, rtps, ..) = VARIANTS[index];
    let is_clear = rtps != NONE && (discovery == NONE || liveliness == NONE);
    Options { clear_discovery: is_clear && [left, right].contains(&Program::Cyclone10), ..Options::default() }
}

/// The participants do not match, and Takt gives the reason. A failed handshake is detected after a
/// minute.
#[test]
fn incompatible_secured_participants_do_not_match_and_takt_gives_the_reason() {
    let flaws: &[_] = match takt_testkit::is_full_length() {
        true => &[Incompatibility::OtherGovernance, Incompatibility::ForeignAuthority],
        false => &[Incompatibility::OtherGovernance],
    };
    let pairs = [
        [Program::Takt; 2],
        [Program::Takt, Program::Cyclone10],
        [Program::Cyclone10, Program::Takt],
        [Program::Takt, Program::FastDds2],
        [Program::FastDds2, Program::Takt],
    ];
    let failures: Vec<_> = std::thread::scope(|scope| {
        let cases = flaws.iter().flat_map(|incompatibility| pairs.map(|pair| (pair, *incompatibility)));
        let start = |(pair, incompatibility)| {
            scope.spawn(move || {
                refusal(pair, incompatibility)?.err().map(|why| format!("{pair:?}, {incompatibility:?}: {why}"))
            })
        };
        let running: Vec<_> = cases.map(start).collect();
        running.into_iter().filter_map(|case| case.join().expect("a case does not panic")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Checks that Takt refuses the other participant because of the incompatibility.
fn refusal([left, right]: [Program; 2], incompatibility: Incompatibility) -> Option<Result<(), String>> {
    let network = hosts()?;
    let name = format!("refusal-{left:?}-{right:?}-{incompatibility:?}");
    let enclaves = EnclaveDirectories::with(&name, &variant(1), [KeyAlgorithm::EcP256; 2], Some(incompatibility));
    let start = |program, host, enclave: &Path| Peer::start_in(program, host, Options::default(), Some(enclave));
    let mut peers = [
        possible(start(left, &network.left, &enclaves.left()))?,
        possible(start(right, &network.right, &enclaves.right()))?,
    ];
    let takt = usize::from(left != Program::Takt);
    let expected: &[&str] = match incompatibility {
        Incompatibility::OtherGovernance => {
            &["security attributes of the participant differ: is_rtps_protected on the"]
        }
        // The side that waits for a Reply only detects that none has arrived.
        Incompatibility::ForeignAuthority => &["no valid Reply in time", "unable to get local issuer certificate"],
    };
    Some(refused(&mut peers, takt).and_then(|why| match expected.iter().any(|expected| why.contains(expected)) {
        true => Ok(()),
        false => Err(format!("refused for another reason: {why}")),
    }))
}

fn refused(peers: &mut [Peer; 2], takt: usize) -> Result<String, String> {
    let text = |error: takt_interop::Error| error.to_string();
    let endpoints = ["w", "r"];
    peers[0].writer(&Endpoint::new(endpoints[0], THERE, Kind::Key)).map_err(text)?;
    peers[1].reader(&Endpoint::new(endpoints[1], THERE, Kind::Key)).map_err(text)?;
    let why = waiting::until_some("Takt refuses the other one", || {
        peers[takt].refused().map(|mut all| all.pop()).transpose()
    });
    let why = why.map_err(text)?;
    for (peer, endpoint) in peers.iter_mut().zip(endpoints) {
        if let Some(event) = peer.pending(endpoint).into_iter().find(|event| matches!(event, Event::Matched { .. })) {
            return Err(format!("refused ({why}), and yet {event:?}"));
        }
    }
    Ok(why)
}

fn exchange_all(indices: &[usize], one: Program, other: Program) {
    let mut failures = Vec::new();
    for &index in indices {
        let algorithms: &[_] = match takt_testkit::is_full_length() {
            true => {
                &[[KeyAlgorithm::EcP256; 2], [KeyAlgorithm::Rsa2048; 2], [KeyAlgorithm::EcP256, KeyAlgorithm::Rsa2048]]
            }
            false if index % 2 == 0 => &[[KeyAlgorithm::Rsa2048; 2]],
            false => &[[KeyAlgorithm::EcP256; 2]],
        };
        for algorithms in algorithms {
            for (left, right) in [(one, other), (other, one)] {
                match exchange(index, left, right, *algorithms) {
                    None => return,
                    Some(Ok(())) => {}
                    Some(Err(why)) => failures.push(format!(
                        "variant {index} ({}), {left} and {right}, {algorithms:?}: {why}",
                        variant(index)
                    )),
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Exchanges samples of both sizes in both directions between two new hosts.
fn exchange(index: usize, left: Program, right: Program, algorithms: [KeyAlgorithm; 2]) -> Option<Result<(), String>> {
    exchange_in(&hosts()?, "exchange", index, [left, right], algorithms)
}

/// Exchanges samples on an existing network. `name` is that of the test.
pub fn exchange_in(
    network: &Network,
    name: &str,
    index: usize,
    [left, right]: [Program; 2],
    algorithms: [KeyAlgorithm; 2],
) -> Option<Result<(), String>> {
    let options = options(index, left, right);
    let name = format!("{name}-{index}-{left:?}-{right:?}-{:?}-{:?}", algorithms[0], algorithms[1]);
    let enclaves = EnclaveDirectories::new(&name, &variant(index), algorithms);
    let start = |program, host, enclave: &Path| Peer::start_in(program, host, options, Some(enclave));
    let mut left = possible(start(left, &network.left, &enclaves.left()))?;
    let mut right = possible(start(right, &network.right, &enclaves.right()))?;
    let there = send(&mut left, &mut right, THERE);
    Some(there.and_then(|()| send(&mut right, &mut left, BACK)))
}

fn send(from: &mut Peer, to: &mut Peer, topic: &str) -> Result<(), String> {
    let text = |error: takt_interop::Error| error.to_string();
    let (writer, reader) = (format!("w{topic}"), format!("r{topic}"));
    from.writer(&Endpoint::new(&writer, topic, Kind::Key)).map_err(text)?;
    to.reader(&Endpoint::new(&reader, topic, Kind::Key)).map_err(text)?;
    from.matched(&writer, 1).map_err(text)?;
    to.matched(&reader, 1).map_err(text)?;
    let mut first = 0;
    for size in SIZES {
        from.write(&writer, &Batch { first, ..Batch::new(SAMPLES, size) }).map_err(text)?;
        for seq in first..first + SAMPLES {
            let sample = to.sample_within(&reader, TIMEOUT).map_err(text)?;
            let expected = format!("{:016x}", content::expected_hash(size, 0, seq));
            if (sample.seq, sample.len, &sample.hash) != (seq, size, &expected) {
                return Err(format!("sample {seq} of {size} B is {sample:?}"));
            }
        }
        from.written(&writer, TIMEOUT).map_err(text)?;
        first += SAMPLES;
    }
    from.dispose(&writer, 0).map_err(text)?;
    let end = to.sample_within(&reader, TIMEOUT).map_err(text)?;
    match (end.valid, end.state, end.key) {
        (false, InstanceState::Disposed, Some(0)) => Ok(()),
        _ => Err(format!("the end of the instance is {end:?}")),
    }
}
