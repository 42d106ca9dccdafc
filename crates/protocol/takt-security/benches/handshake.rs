//! Benchmark of the time until two participants have authenticated each other and matched their
//! builtin endpoints. The result is the processing time of both sides together. It is compared with
//! the time without security, and with the time of OpenSSL for the signatures and key agreements of
//! a handshake.
//!
//! Two participants run in memory; there is no transport. Every round measures all cases in turn,
//! and the best rounds count. `cargo bench -p takt-security --bench handshake`; `-- 5` for five
//! rounds.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/it/identities.rs"]
#[allow(dead_code)]
mod identities;
#[path = "../tests/it/network.rs"]
#[allow(dead_code)]
mod network;

use std::hint::black_box;
use std::time::Instant as Clock;

use openssl::derive::Deriver;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::sign::{Signer, Verifier};
use takt_core::Participant;
use takt_security::documents::{BasicProtectionKind, ProtectionKind};
use takt_security::identity::KeyAlgorithm;
use takt_wire::GuidPrefix;

use identities::{Identity, rule, topic};
use network::{Network, config};

const ROUNDS: usize = 50;

/// Each side signs once, verifies the signature of the peer and derives a key.
const SIDES: usize = 2;
/// Each side verifies certificate and permissions of the peer. All authorities have keys on P-256.
const OF_AUTHORITIES: usize = 4;

/// Returns the microseconds until two new participants have authenticated each other.
fn authenticate(algorithm: Option<KeyAlgorithm>) -> f64 {
    let mut network = Network::new();
    let rule = rule(
        ProtectionKind::Encrypt,
        ProtectionKind::Encrypt,
        topic(ProtectionKind::None, BasicProtectionKind::None, true),
    );
    let mut made = Vec::new();
    for (node, name) in ["talker", "listener"].into_iter().enumerate() {
        made.push(match algorithm {
            None => Participant::new(config(node, GuidPrefix([node as u8 + 1; 12])), network.now).unwrap(),
            Some(algorithm) => {
                let (prefix, plugin) = Identity { algorithm, ..Identity::new(name) }.plugin(&rule);
                Participant::with_security(config(node, prefix), Box::new(plugin), network.now).unwrap()
            }
        });
    }
    let start = Clock::now();
    made.into_iter().for_each(|participant| _ = network.join(participant));
    let is_over = |network: &mut Network| network.nodes.iter().all(|node| node.counters().participants_validated == 1);
    assert!(network.run_until(10_000, is_over));
    start.elapsed().as_secs_f64() * 1e6
}

fn p256() -> PKey<Private> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
}

fn sign(key: &PKey<Private>) -> Vec<u8> {
    Signer::new(MessageDigest::sha256(), key).unwrap().sign_oneshot_to_vec(&[7; 500]).unwrap()
}

fn check(key: &PKey<Private>, signature: &[u8]) {
    let mut verifier = Verifier::new(MessageDigest::sha256(), key).unwrap();
    assert!(verifier.verify_oneshot(signature, &[7; 500]).unwrap());
}

/// Returns the microseconds that OpenSSL needs for the signatures and key agreements of a
/// handshake.
fn bare(key: &PKey<Private>, (authority, of_authority): (&PKey<Private>, &[u8])) -> f64 {
    let start = Clock::now();
    for _ in 0..SIDES {
        check(key, &sign(key));
    }
    for _ in 0..OF_AUTHORITIES {
        check(authority, of_authority);
    }
    let keys = [p256(), p256()];
    for at in 0..SIDES {
        let mut deriver = Deriver::new(&keys[at]).unwrap();
        deriver.set_peer(&keys[1 - at]).unwrap();
        black_box(deriver.derive_to_vec().unwrap());
    }
    start.elapsed().as_secs_f64() * 1e6
}

fn main() {
    let rounds = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(ROUNDS);
    let rsa = PKey::from_rsa(Rsa::generate(2_048).unwrap()).unwrap();
    let authority = p256();
    let signed = sign(&authority);
    let keys = [(KeyAlgorithm::EcP256, "EC P-256", p256()), (KeyAlgorithm::Rsa2048, "RSA 2048", rsa)];
    let (mut plain, mut of_keys) = (f64::INFINITY, [[f64::INFINITY; 2]; 2]);
    for _ in 0..rounds {
        plain = plain.min(authenticate(None));
        for ((algorithm, _, key), best) in keys.iter().zip(&mut of_keys) {
            *best = [best[0].min(authenticate(Some(*algorithm))), best[1].min(bare(key, (&authority, &signed)))];
        }
    }
    println!(
        "| keys | without security, us | authenticated, us | added, us | OpenSSL, us | added / OpenSSL | handshakes/s |"
    );
    println!("|---|---|---|---|---|---|---|");
    for ((_, name, _), [secured, library]) in keys.iter().zip(of_keys) {
        let added = secured - plain;
        println!(
            "| {name} | {plain:.0} | {secured:.0} | {added:.0} | {library:.0} | {:.2} | {:.0} |",
            added / library,
            1e6 / added
        );
    }
}
