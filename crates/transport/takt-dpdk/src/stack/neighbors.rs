//! Neighbor table: hardware addresses in a bounded table, resolved by ARP (RFC 826).
//!
//! An entry is reachable for [`REACHABLE_TIME`] after it was confirmed. Later, it is still used,
//! but verified; it is removed after [`TRIES`] unanswered requests. Only replies to own requests,
//! and requests for the own address, create an entry; other packets update existing ones. When the
//! table is full, the least recently used entry is evicted.

use std::net::Ipv4Addr;
use std::time::Duration;

use takt_packet::MacAddress;

/// Maximum number of entries.
pub(super) const NEIGHBORS_MAX: usize = 1_024;

/// Time for which an entry is used without verification.
const REACHABLE_TIME: Duration = Duration::from_secs(30);

/// Interval between two requests for one address.
const RETRY: Duration = Duration::from_secs(1);

/// Number of unanswered requests after which a known address is removed.
const TRIES: u8 = 3;

#[derive(Debug)]
struct Neighbor {
    ip: Ipv4Addr,
    mac: Option<MacAddress>,
    /// Configured entry, which is never verified.
    is_static: bool,
    confirmed: Duration,
    requested: Option<Duration>,
    tries: u8,
    used: Duration,
}

/// Result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) mac: Option<MacAddress>,
    /// A request is due: to the known address, or to all hosts.
    pub(super) must_request: bool,
}

/// Neighbor table. See the [module](self). Times are relative to any fixed moment, and never
/// decrease.
#[derive(Debug)]
pub(super) struct Neighbors {
    /// Entries, sorted by address.
    table: Vec<Neighbor>,
}

impl Neighbors {
    pub(super) fn new(fixed: &[(Ipv4Addr, MacAddress)]) -> Self {
        let mut table = Vec::with_capacity(NEIGHBORS_MAX);
        table.extend(fixed.iter().take(NEIGHBORS_MAX).map(|(ip, mac)| Neighbor {
            mac: Some(*mac),
            is_static: true,
            ..Neighbor::unknown(*ip, Duration::ZERO)
        }));
        table.sort_by_key(|neighbor| neighbor.ip);
        table.dedup_by_key(|neighbor| neighbor.ip);
        Self { table }
    }

    /// Looks up the hardware address of a destination.
    pub(super) fn lookup(&mut self, ip: Ipv4Addr, now: Duration) -> Found {
        let Some(neighbor) = self.entry(ip, now) else {
            return Found { mac: None, must_request: false };
        };
        neighbor.used = now;
        let is_reachable = neighbor.mac.is_some() && now.saturating_sub(neighbor.confirmed) < REACHABLE_TIME;
        let requested_lately = neighbor.requested.is_some_and(|requested| now.saturating_sub(requested) < RETRY);
        if neighbor.is_static || is_reachable || requested_lately {
            return Found { mac: neighbor.mac, must_request: false };
        }
        if neighbor.tries >= TRIES {
            neighbor.mac = None;
        }
        neighbor.requested = Some(now);
        neighbor.tries = neighbor.tries.saturating_add(1);
        Found { mac: neighbor.mac, must_request: true }
    }

    /// Records the hardware address that a neighbor states. An unknown neighbor gets an entry only
    /// if `is_for_us`.
    pub(super) fn record(&mut self, ip: Ipv4Addr, mac: MacAddress, is_for_us: bool, now: Duration) {
        if !is_for_us && self.search(ip).is_err() {
            return;
        }
        if let Some(neighbor) = self.entry(ip, now).filter(|neighbor| !neighbor.is_static) {
            (neighbor.mac, neighbor.confirmed) = (Some(mac), now);
            (neighbor.requested, neighbor.tries) = (None, 0);
        }
    }

    /// Returns the known hardware address, without triggering a request.
    pub(super) fn known(&self, ip: Ipv4Addr) -> Option<MacAddress> {
        self.search(ip).ok().and_then(|at| self.table[at].mac) // tidy-allow(dropped-cause): not in the table.
    }

    fn search(&self, ip: Ipv4Addr) -> Result<usize, usize> {
        self.table.binary_search_by_key(&ip, |neighbor| neighbor.ip)
    }

    /// Returns the entry of an address, making an empty one if necessary. `None` if all entries are
    /// static.
    fn entry(&mut self, ip: Ipv4Addr, now: Duration) -> Option<&mut Neighbor> {
        let at = match self.search(ip) {
            Ok(at) => at,
            Err(_) => {
                if self.table.len() == NEIGHBORS_MAX {
                    let others = self.table.iter().enumerate().filter(|(_, neighbor)| !neighbor.is_static);
                    let (oldest, _) = others.min_by_key(|(_, neighbor)| neighbor.used)?;
                    self.table.remove(oldest);
                }
                let at = self.search(ip).unwrap_or_else(|at| at);
                self.table.insert(at, Neighbor::unknown(ip, now));
                at
            }
        };
        self.table.get_mut(at)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.table.len()
    }
}

impl Neighbor {
    fn unknown(ip: Ipv4Addr, now: Duration) -> Self {
        Self { ip, mac: None, is_static: false, confirmed: now, requested: None, tries: 0, used: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn found(mac: Option<MacAddress>, must_request: bool) -> Found {
        Found { mac, must_request }
    }

    #[test]
    fn address_is_requested_once_a_second_until_a_reply() {
        let mut table = Neighbors::new(&[]);
        for (ms, must_request) in [(0, true), (1, false), (999, false), (1_000, true), (1_500, false), (9_000, true)] {
            assert_eq!(table.lookup(A, at(ms)), found(None, must_request), "after {ms} ms");
        }
        table.record(A, MAC, true, at(9_100));
        assert_eq!(table.lookup(A, at(9_100)), found(Some(MAC), false));
    }

    #[test]
    fn old_entry_is_verified_and_then_removed() {
        let mut table = Neighbors::new(&[]);
        table.record(A, MAC, true, at(0));
        assert_eq!(table.lookup(A, at(29_999)), found(Some(MAC), false));
        for ms in [30_000, 31_000, 32_000] {
            assert_eq!(table.lookup(A, at(ms)), found(Some(MAC), true), "after {ms} ms");
            assert_eq!(table.lookup(A, at(ms + 999)), found(Some(MAC), false));
        }
        assert_eq!(table.lookup(A, at(33_000)), found(None, true), "three requests remain unanswered");
        table.record(A, OTHER, true, at(33_100));
        assert_eq!(table.lookup(A, at(63_000)), found(Some(OTHER), false));
    }

    #[test]
    fn unsolicited_packets_update_entries_but_create_none() {
        let mut table = Neighbors::new(&[]);
        table.record(A, MAC, false, at(0));
        assert_eq!(table.len(), 0);
        table.record(A, MAC, true, at(0));
        table.record(A, OTHER, false, at(1));
        assert_eq!(table.lookup(A, at(2)), found(Some(OTHER), false));
    }

    #[test]
    fn table_is_bounded_and_keeps_configured_entries() {
        let mut table = Neighbors::new(&[(A, MAC), (A, MAC)]);
        for n in 0..5_000_u32 {
            table.record(Ipv4Addr::from_bits(0x0a00_0000 + n), OTHER, true, at(u64::from(n)));
        }
        assert_eq!(table.len(), NEIGHBORS_MAX);
        table.record(A, OTHER, true, at(5_000));
        assert_eq!(table.lookup(A, at(900_000)), found(Some(MAC), false));
        let last = Ipv4Addr::from_bits(0x0a00_0000 + 4_999);
        assert_eq!(table.lookup(last, at(5_000)), found(Some(OTHER), false), "the last one is there");
        let many: Vec<_> = (0..2_000).map(|n| (Ipv4Addr::from_bits(n), MAC)).collect();
        let mut full = Neighbors::new(&many);
        assert_eq!(full.lookup(A, at(0)), found(None, false), "the table is full and no entry can be evicted");
    }
}
