//! Benchmark of the time that protection adds to a sample, compared with the time of the bare
//! cipher. Two participants in memory exchange samples; there is no transport.
//!
//! Every round measures a pair without security, a pair for each protection, and the bare cipher,
//! one after another. The best rounds count. `cargo bench -p takt-security --bench cost`;
//! `-- 5 1024` for five rounds of samples of 1,024 octets; `-- 5 1024 data` for protections whose
//! name contains `data`.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/it/identities.rs"]
#[allow(dead_code)]
mod identities;
#[path = "../tests/it/network.rs"]
#[allow(dead_code)]
mod network;

use std::hint::black_box;
use std::time::Instant as Clock;

use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;
use takt_core::{ChangeKind, NewChange, Participant, ReadCursor, ReaderHandle, Received, Selector, WriterHandle};
use takt_security::documents::{BasicProtectionKind, DomainRule, ProtectionKind};
use takt_wire::GuidPrefix;

use identities::{Identity, rule, topic};
use network::{Network, address, config, payload, reader_spec, writer_spec};

const ROUNDS: usize = 20;
/// Octets that one measurement carries, and the maximum and minimum number of samples.
const OCTETS: usize = 8 << 20;
const SAMPLES: (usize, usize) = (8, 4_000);
const SIZES: [usize; 4] = [64, 1 << 10, 64 << 10, 1 << 20];
/// MTU of the loopback interface.
const MTU: usize = 65_536;

const NONE: ProtectionKind = ProtectionKind::None;
const SIGN: ProtectionKind = ProtectionKind::Sign;
const ENCRYPT: ProtectionKind = ProtectionKind::Encrypt;

/// Name, `rtps`, `metadata` and `data` protection of each configuration.
const PROTECTIONS: [(&str, ProtectionKind, ProtectionKind, BasicProtectionKind); 6] = [
    ("data SIGN", NONE, NONE, BasicProtectionKind::Sign),
    ("data ENCRYPT", NONE, NONE, BasicProtectionKind::Encrypt),
    ("metadata SIGN", NONE, SIGN, BasicProtectionKind::None),
    ("metadata ENCRYPT", NONE, ENCRYPT, BasicProtectionKind::None),
    ("rtps SIGN", SIGN, NONE, BasicProtectionKind::None),
    ("rtps ENCRYPT", ENCRYPT, NONE, BasicProtectionKind::None),
];

/// Two matched participants.
struct Pair {
    network: Network,
    writer: WriterHandle,
    reader: ReaderHandle,
    frame: Vec<u8>,
}

impl Pair {
    fn new(governance: Option<&DomainRule>) -> Self {
        let mut network = Network::new();
        for (node, name) in ["talker", "listener"].into_iter().enumerate() {
            let with_mtu = |prefix| {
                let mut config = config(node, prefix);
                config.interfaces.iter_mut().for_each(|interface| interface.mtu = MTU);
                config
            };
            let participant = match governance {
                None => Participant::new(with_mtu(GuidPrefix([node as u8 + 1; 12])), network.now),
                Some(rule) => {
                    let (prefix, plugin) = Identity::new(name).plugin(rule);
                    Participant::with_security(with_mtu(prefix), Box::new(plugin), network.now)
                }
            };
            network.join(participant.unwrap());
        }
        let writer = network.writer(0, writer_spec("Topic"));
        let reader = network.reader(1, reader_spec("Topic"));
        assert!(network.match_within(20_000, (0, writer), (1, reader)));
        network.run(2_000);
        network.sent = Vec::new();
        Self { network, writer, reader, frame: vec![0; 65_507] }
    }

    /// Returns the nanoseconds per sample, from `write` to `take`.
    fn measure(&mut self, sample: &[u8], count: usize) -> f64 {
        let mut nanos = 0;
        for _ in 0..count {
            let start = Clock::now();
            self.carry(sample);
            nanos += start.elapsed().as_nanos();
            self.answer();
        }
        nanos as f64 / count as f64
    }

    fn carry(&mut self, sample: &[u8]) {
        let Self { network, writer, reader, frame } = self;
        let (now, from) = (network.now, Received { source: address(0), multicast: false });
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: None,
            destinations: &[],
            payload_len: sample.len(),
        };
        let fill = |slot: &mut [u8]| {
            slot[..sample.len()].copy_from_slice(sample);
            Some(sample.len())
        };
        let (left, right) = network.nodes.split_at_mut(1);
        left[0].write(now, *writer, &change, fill).unwrap();
        while let Some(len) = left[0].poll_transmit(now, frame).map(|transmit| transmit.len) {
            right[0].handle_datagram(now, from, &frame[..len]);
        }
        let taken = right[0].read_next(now, *reader, Selector::TAKE, &mut ReadCursor::default()).unwrap();
        assert_eq!(black_box(taken.unwrap().payload).len(), sample.len());
    }

    /// Exchanges acknowledgments, which are not measured.
    fn answer(&mut self) {
        let Self { network, frame, .. } = self;
        network.now = takt_core::Instant(network.now.0 + 1_000);
        let (now, from) = (network.now, Received { source: address(1), multicast: false });
        let (left, right) = network.nodes.split_at_mut(1);
        for node in [&mut left[0], &mut right[0]] {
            if node.poll_timeout().is_some_and(|due| due <= now) {
                node.handle_timeout(now);
            }
            while node.poll_event().is_some() {}
        }
        while let Some(len) = right[0].poll_transmit(now, frame).map(|transmit| transmit.len) {
            left[0].handle_datagram(now, from, &frame[..len]);
        }
    }
}

/// AES-256-GCM of one buffer, encrypted and decrypted.
struct Bare {
    contexts: [CipherCtx; 2],
    octets: Vec<u8>,
    nonce: u64,
}

impl Bare {
    fn new(len: usize) -> Self {
        let mut contexts = [CipherCtx::new().unwrap(), CipherCtx::new().unwrap()];
        contexts[0].encrypt_init(Some(Cipher::aes_256_gcm()), Some(&[7; 32]), None).unwrap();
        contexts[1].decrypt_init(Some(Cipher::aes_256_gcm()), Some(&[7; 32]), None).unwrap();
        Self { contexts, octets: vec![0x5a; len], nonce: 0 }
    }

    fn measure(&mut self, encrypts: bool, count: usize) -> f64 {
        let start = Clock::now();
        for _ in 0..count {
            self.pass(encrypts);
        }
        start.elapsed().as_nanos() as f64 / count as f64
    }

    fn pass(&mut self, encrypts: bool) {
        self.nonce += 1;
        let (mut nonce, mut code, len) = ([0; 12], [0; 16], self.octets.len());
        nonce[..8].copy_from_slice(&self.nonce.to_le_bytes());
        let [sealer, opener] = &mut self.contexts;
        sealer.encrypt_init(None, None, Some(&nonce)).unwrap();
        match encrypts {
            true => drop(sealer.cipher_update_inplace(&mut self.octets, len).unwrap()),
            false => drop(sealer.cipher_update(&self.octets, None).unwrap()),
        }
        sealer.cipher_final(&mut []).unwrap();
        sealer.tag(&mut code).unwrap();
        opener.decrypt_init(None, None, Some(&nonce)).unwrap();
        match encrypts {
            true => drop(opener.cipher_update_inplace(&mut self.octets, len).unwrap()),
            false => drop(opener.cipher_update(&self.octets, None).unwrap()),
        }
        opener.set_tag(&code).unwrap();
        opener.cipher_final(&mut []).unwrap();
    }
}

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let (rounds, only) = (numbers.next().unwrap_or(ROUNDS), numbers.next());
    let is_word = |argument: &String| !argument.starts_with('-') && argument.parse::<usize>().is_err();
    let name_part = std::env::args().skip(1).find(is_word).unwrap_or_default();
    let mut plain = Pair::new(None);
    let protections = PROTECTIONS.iter().filter(|(name, ..)| name.contains(&name_part));
    let mut pairs: Vec<(&str, Pair)> = protections
        .map(|&(name, rtps, metadata, data)| {
            (name, Pair::new(Some(&rule(rtps, ProtectionKind::Encrypt, topic(metadata, data, true)))))
        })
        .collect();
    println!("| octets | protection | plain, ns | protected, ns | added, ns | cipher, ns | added / cipher |");
    println!("|---|---|---|---|---|---|---|");
    for size in SIZES.into_iter().filter(|size| only.is_none_or(|only| only == *size)) {
        let (sample, count) = (payload(1, b"", size), (OCTETS / size).clamp(SAMPLES.0, SAMPLES.1));
        let (mut bare, mut minimum) = (Bare::new(size), f64::INFINITY);
        let (mut ciphers, mut protected) = ([f64::INFINITY; 2], vec![f64::INFINITY; pairs.len()]);
        for _ in 0..rounds {
            minimum = minimum.min(plain.measure(&sample, count));
            for (best, encrypts) in ciphers.iter_mut().zip([false, true]) {
                *best = best.min(bare.measure(encrypts, count));
            }
            for (best, (_, pair)) in protected.iter_mut().zip(&mut pairs) {
                *best = best.min(pair.measure(&sample, count));
            }
        }
        for ((name, _), protected) in pairs.iter().zip(protected) {
            let cipher = ciphers[usize::from(name.ends_with("ENCRYPT"))];
            let added = protected - minimum;
            println!(
                "| {size} | {name} | {minimum:.0} | {protected:.0} | {added:.0} | {cipher:.0} | {:.2} |",
                added / cipher
            );
        }
    }
}
