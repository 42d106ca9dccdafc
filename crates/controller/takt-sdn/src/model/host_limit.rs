//! Limits of the packets that a host receives without admission.
//!
//! A host that receives more packets than its interface and processor can handle also loses packets
//! of admitted flows, although no switch queue drops them. The limit of a port is divided into
//! three fixed [`Share`]s, because meters of OpenFlow 1.3 exist only in flow entries, and no single
//! entry sees unicast, group copies and frames of the controller.
//!
//! Rates are in packets per second, bursts in packets. In any interval of `t` seconds the shares of
//! a port together pass at most `packets_per_s * (t + 0.1)` packets, within the accuracy of the
//! switch's meters.

/// Minimum limit, at which each share can still pass one packet at once.
pub const PACKETS_PER_S_MIN: u64 = 40;
/// Maximum limit.
pub const PACKETS_PER_S_MAX: u64 = 1_000_000_000;

/// Divisor of the rate that yields the burst.
const BURSTS_PER_S: u32 = 10;

/// Share of the limit for one kind of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Packets per second.
    pub rate: u32,
    /// Burst in packets.
    pub burst: u32,
}

impl Share {
    const fn of(rate: u32) -> Self {
        Self { rate, burst: rate / BURSTS_PER_S }
    }
}

/// Limit of the packets that a host, or all hosts at a port, receive without admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostLimit {
    packets_per_s: u32,
}

impl HostLimit {
    /// Creates a limit; `None` if it is below [`PACKETS_PER_S_MIN`] or above [`PACKETS_PER_S_MAX`].
    pub fn new(packets_per_s: u64) -> Option<Self> {
        if !(PACKETS_PER_S_MIN..=PACKETS_PER_S_MAX).contains(&packets_per_s) {
            return None;
        }
        u32::try_from(packets_per_s).map_or(None, |packets_per_s| Some(Self { packets_per_s }))
    }

    /// Returns the sum of all shares.
    pub const fn packets_per_s(self) -> u32 {
        self.packets_per_s
    }

    const fn quarter(self) -> u32 {
        self.packets_per_s / 4
    }

    /// Returns the share for frames to the addresses of the hosts.
    pub const fn unicast(self) -> Share {
        Share::of(self.packets_per_s - 2 * self.quarter())
    }

    /// Returns the share for copies of multicast and broadcast frames.
    pub const fn groups(self) -> Share {
        Share::of(self.quarter())
    }

    /// Returns the share for frames that the controller sends out of the port in the lowest class.
    pub const fn of_controller(self) -> Share {
        Share::of(self.quarter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_limit_and_their_bursts_to_a_tenth_of_it() {
        for packets_per_s in [40, 41, 43, 999, 1_000, 12_345, 1_000_000_000] {
            let limit = HostLimit::new(packets_per_s).expect("the limit is in range");
            let shares = [limit.unicast(), limit.groups(), limit.of_controller()];
            assert_eq!(shares.iter().map(|share| u64::from(share.rate)).sum::<u64>(), packets_per_s);
            let at_once = shares.iter().map(|share| u64::from(share.burst)).sum::<u64>();
            assert!(at_once * 10 <= packets_per_s, "{at_once} of {packets_per_s}");
            assert!(shares.iter().all(|share| share.burst > 0), "{shares:?}");
        }
        assert_eq!((HostLimit::new(39), HostLimit::new(1_000_000_001)), (None, None));
    }
}
