//! LLDP probes that a controller sends from switch ports: construction and verification.
//!
//! A probe contains the port that sent it, a sequence number and a message authentication code over
//! both: SipHash-2-4 with 128 bits of output, under a key of this run of the controller. The time
//! of sending stays in the controller. A probe is accepted once, while it is one of the last two of
//! its port, and within [`Config::transit`](super::Config::transit) of its sending.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::PortRef;
use crate::frame::MacAddress;
use crate::frame::lldp::{Identifier, LOCAL_CHASSIS, LOCAL_PORT, Lldp, LldpFrame};

/// OUI of Takt's TLV. The address is locally administered, so it belongs to no organization.
const OUI: [u8; 3] = [0x02, 0x54, 0x4b];
/// Subtype of the TLV: sequence number and authentication code.
const PROOF: u8 = 1;
/// Length of the TLV's value in octets.
const PROOF_LEN: usize = 8 + 16;

/// Key of a run of the controller. It must be random and secret.
#[derive(Clone, Copy)]
pub struct Key(pub [u8; 16]);

/// Content of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Probe {
    /// Port that sent the probe.
    pub from: PortRef,
    /// Sequence number, unique within a run.
    pub sequence: u64,
}

/// Reason why a frame is not a valid probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoProbe {
    /// LLDP of another sender.
    Foreign,
    /// The frame has the form of a probe, but a code made without the key.
    Forged,
}

fn code(key: &Key, probe: Probe) -> [u8; 16] {
    let mut hasher = SipHasher24::new_with_key(&key.0);
    // The fields have fixed lengths, so that different probes have different octets.
    hasher.write(&probe.from.dpid.to_be_bytes());
    hasher.write(&probe.from.port.to_be_bytes());
    hasher.write(&probe.sequence.to_be_bytes());
    hasher.finish128().as_bytes()
}

/// Compares codes in constant time.
fn is_equal(a: &[u8; 16], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

impl Probe {
    /// Builds the frame; `source` is the address of the port.
    pub fn frame(self, key: &Key, source: MacAddress, ttl: u16) -> Vec<u8> {
        let mut proof = [0; PROOF_LEN];
        proof[..8].copy_from_slice(&self.sequence.to_be_bytes());
        proof[8..].copy_from_slice(&code(key, self));
        let frame = LldpFrame {
            source,
            chassis: Identifier { kind: LOCAL_CHASSIS, value: &self.from.dpid.to_be_bytes() },
            port: Identifier { kind: LOCAL_PORT, value: &self.from.port.to_be_bytes() },
            ttl,
            organization: &[(OUI, PROOF, &proof)],
        };
        frame.build().expect("its values are short")
    }

    /// Parses a probe and verifies its code.
    pub fn read(key: &Key, unit: &Lldp<'_>) -> Result<Self, NoProbe> {
        let proof = unit.organization(OUI, PROOF).ok_or(NoProbe::Foreign)?;
        let (sequence, code_read) = proof.split_first_chunk().ok_or(NoProbe::Forged)?;
        let (chassis, port) = (unit.chassis(), unit.port());
        if (chassis.kind, port.kind) != (LOCAL_CHASSIS, LOCAL_PORT) {
            return Err(NoProbe::Forged);
        }
        let (Some(dpid), Some(port)) = (chassis.value.as_array(), port.value.as_array()) else {
            return Err(NoProbe::Forged);
        };
        let from = PortRef::new(u64::from_be_bytes(*dpid), u32::from_be_bytes(*port));
        let probe = Self { from, sequence: u64::from_be_bytes(*sequence) };
        if is_equal(&code(key, probe), code_read) { Ok(probe) } else { Err(NoProbe::Forged) }
    }
}
