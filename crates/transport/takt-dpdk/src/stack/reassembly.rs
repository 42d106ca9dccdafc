//! Reassembly of fragmented IPv4 packets, from senders whose kernel fragments datagrams longer than
//! a frame.
//!
//! At most [`PACKETS_MAX`] packets are incomplete at a time; beyond that, the oldest one is
//! dropped. A packet is also dropped after [`FRAGMENT_TIMEOUT`]. Overlapping
//! fragments indicate an attack, so the packet is dropped (RFC 5722 requires that for IPv6).

use std::net::Ipv4Addr;
use std::time::Duration;

use takt_packet::Ipv4Packet;

/// Maximum number of incomplete packets.
pub(super) const PACKETS_MAX: usize = 16;

/// Time limit for the fragments of a packet.
const FRAGMENT_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum length of a payload in octets, and the number of units of 8 octets in it.
const LEN_MAX: usize = 65_536;
const UNITS: usize = LEN_MAX / 8;

/// Fields that the fragments of one packet share.
type Key = (Ipv4Addr, Ipv4Addr, u8, u16);

#[derive(Debug)]
struct PartialPacket {
    key: Option<Key>,
    since: Duration,
    bytes: Box<[u8]>,
    /// One bit for each unit that has arrived.
    units: Box<[u64]>,
    units_count: usize,
    /// Total length, known from the last fragment.
    len: Option<usize>,
}

/// Reassembly of fragments. See the [module](self).
#[derive(Debug)]
pub(super) struct Reassembly {
    packets: Vec<PartialPacket>,
    dropped: u64,
}

impl Reassembly {
    pub(super) fn new() -> Self {
        let packet = || PartialPacket {
            key: None,
            since: Duration::ZERO,
            bytes: vec![0; LEN_MAX].into(),
            units: vec![0; UNITS / 64].into(),
            units_count: 0,
            len: None,
        };
        Self { packets: std::iter::repeat_with(packet).take(PACKETS_MAX).collect(), dropped: 0 }
    }

    /// Returns the number of packets that were dropped because fragments were missing or
    /// inconsistent.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds a fragment. Returns the index and length of a packet that is complete now; it stays
    /// valid until the next call.
    pub(super) fn add(&mut self, fragment: &Ipv4Packet<'_>, now: Duration) -> Option<(usize, usize)> {
        let key = (fragment.source(), fragment.destination(), fragment.protocol(), fragment.identification());
        let at = self.find_or_create(key, now);
        let packet = &mut self.packets[at];
        match packet.add(fragment.fragment_offset(), fragment.payload(), fragment.has_more_fragments()) {
            Err(()) => {
                packet.key = None;
                self.dropped += 1;
                None
            }
            Ok(false) => None,
            Ok(true) => {
                packet.key = None;
                Some((at, packet.len.unwrap_or(0)))
            }
        }
    }

    /// Returns the complete payload that [`add`](Self::add) reported.
    pub(super) fn payload(&self, at: usize, len: usize) -> &[u8] {
        self.packets.get(at).map_or(&[], |packet| &packet.bytes[..len])
    }

    /// Drops packets that have exceeded the time limit.
    pub(super) fn expire(&mut self, now: Duration) {
        for packet in &mut self.packets {
            if packet.key.is_some() && now.saturating_sub(packet.since) >= FRAGMENT_TIMEOUT {
                packet.key = None;
                self.dropped += 1;
            }
        }
    }

    fn find_or_create(&mut self, key: Key, now: Duration) -> usize {
        if let Some(at) = self.packets.iter().position(|packet| packet.key == Some(key)) {
            return at;
        }
        let free = self.packets.iter().position(|packet| packet.key.is_none());
        let at = free.unwrap_or_else(|| {
            self.dropped += 1;
            let by_age = self.packets.iter().enumerate().min_by_key(|(_, packet)| packet.since);
            by_age.map_or(0, |(at, _)| at)
        });
        let packet = &mut self.packets[at];
        packet.units.fill(0);
        (packet.key, packet.since, packet.units_count, packet.len) = (Some(key), now, 0, None);
        at
    }
}

impl PartialPacket {
    /// Adds a fragment to its packet; returns whether the packet is complete. An error if the
    /// fragment is inconsistent.
    fn add(&mut self, offset: usize, bytes: &[u8], more: bool) -> Result<bool, ()> {
        let end = offset + bytes.len();
        // Empty, beyond the maximum length, a middle fragment that is no whole number of units, or
        // a second end.
        let is_impossible = bytes.is_empty() || end > LEN_MAX || (more && !bytes.len().is_multiple_of(8));
        let is_beyond = self.len.is_some_and(|len| end > len || !more);
        if is_impossible || is_beyond {
            return Err(());
        }
        for unit in offset / 8..end.div_ceil(8) {
            let (word, bit) = (unit / 64, 1 << (unit % 64));
            if self.units[word] & bit != 0 {
                return Err(());
            }
            self.units[word] |= bit;
            self.units_count += 1;
        }
        self.bytes[offset..end].copy_from_slice(bytes);
        if !more {
            self.len = Some(end);
        }
        // Units beyond the end would make the count too large, and the packet never complete.
        Ok(self.len.is_some_and(|len| self.units_count == len.div_ceil(8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    /// Makes a fragment of packet `id`; its octets are derived from their offsets.
    fn fragment(id: u16, offset: usize, len: usize, more: bool) -> Vec<u8> {
        let mut bytes = vec![0; 20];
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&((20 + len) as u16).to_be_bytes());
        bytes[4..6].copy_from_slice(&id.to_be_bytes());
        bytes[6..8].copy_from_slice(&((offset / 8) as u16 | if more { 0x2000 } else { 0 }).to_be_bytes());
        bytes[9] = 17;
        bytes[12..16].copy_from_slice(&[192, 0, 2, 1]);
        bytes[16..20].copy_from_slice(&ME.octets());
        bytes.extend((offset..offset + len).map(|at| (at * 7) as u8));
        bytes
    }

    fn add_fragment(reassembly: &mut Reassembly, bytes: &[u8], ms: u64) -> Option<(usize, usize)> {
        reassembly.add(&Ipv4Packet::parse(bytes).expect("a part"), Duration::from_millis(ms))
    }

    #[test]
    fn fragments_in_any_order_make_the_packet() {
        let parts = [fragment(1, 0, 1480, true), fragment(1, 1480, 1480, true), fragment(1, 2960, 33, false)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let mut reassembly = Reassembly::new();
            let [a, b, c] = order.map(|at| add_fragment(&mut reassembly, &parts[at], 0));
            assert_eq!((a, b), (None, None));
            let (at, len) = c.expect("whole");
            assert_eq!(len, 2993);
            assert!(reassembly.payload(at, len).iter().enumerate().all(|(at, byte)| *byte == (at * 7) as u8));
            assert_eq!(reassembly.dropped(), 0);
        }
    }

    #[test]
    fn fragments_of_different_packets_do_not_mix() {
        let mut reassembly = Reassembly::new();
        for id in 0..8 {
            assert_eq!(add_fragment(&mut reassembly, &fragment(id, 0, 800, true), 0), None);
        }
        for id in 0..8 {
            let (_, len) =
                add_fragment(&mut reassembly, &fragment(id, 800, 8 + usize::from(id), false), 0).expect("whole");
            assert_eq!(len, 808 + usize::from(id));
        }
    }

    #[test]
    fn inconsistent_fragments_drop_the_packet() {
        let wrong: [&[Vec<u8>]; 5] = [
            &[fragment(1, 0, 16, true), fragment(1, 8, 16, true)],
            &[fragment(1, 16, 8, false), fragment(1, 24, 8, true)],
            &[fragment(1, 16, 8, false), fragment(1, 8, 8, false)],
            &[fragment(1, 0, 15, true)],
            &[fragment(1, 65_528, 16, false)],
        ];
        for parts in wrong {
            let mut reassembly = Reassembly::new();
            for fragment in parts {
                assert_eq!(add_fragment(&mut reassembly, fragment, 0), None);
            }
            assert_eq!(reassembly.dropped(), 1, "{} parts", parts.len());
        }
    }

    #[test]
    fn fragment_behind_the_end_never_completes_a_packet() {
        let mut reassembly = Reassembly::new();
        assert_eq!(add_fragment(&mut reassembly, &fragment(1, 800, 8, true), 0), None);
        assert_eq!(add_fragment(&mut reassembly, &fragment(1, 0, 8, true), 0), None);
        assert_eq!(add_fragment(&mut reassembly, &fragment(1, 8, 8, false), 0), None);
    }

    #[test]
    fn number_and_lifetime_of_incomplete_packets_are_bounded() {
        let mut reassembly = Reassembly::new();
        for id in 0..100 {
            assert_eq!(add_fragment(&mut reassembly, &fragment(id, 0, 8, true), u64::from(id)), None);
        }
        assert_eq!(reassembly.dropped(), 100 - PACKETS_MAX as u64);
        assert!(add_fragment(&mut reassembly, &fragment(99, 8, 8, false), 100).is_some(), "the last ones are there");
        reassembly.expire(Duration::from_millis(2_084));
        assert_eq!(reassembly.dropped(), 100 - PACKETS_MAX as u64 + 1, "the oldest");
        reassembly.expire(Duration::from_secs(9));
        assert_eq!(reassembly.dropped(), 99, "all incomplete datagrams");
    }
}
