//! Mapping of TRANSPORT_PRIORITY (DDS 1.4 §2.2.3.15) to network priorities.
//!
//! | TRANSPORT_PRIORITY | DSCP (`IP_TOS`, `IPV6_TCLASS`) | `SO_PRIORITY` |
//! |---|---|---|
//! | below 0 | 0 | 0 |
//! | 0..=63 | the value itself | value / 8 |
//! | above 63 | 63 | 7 |
//!
//! The value of the policy is thus the DSCP, and 46 means Expedited Forwarding as elsewhere in a
//! network. `SO_PRIORITY` is the class selector, 0..=7. The egress map of a VLAN maps it to the PCP
//! of the tag, and queueing disciplines (prio, mqprio, taprio) choose the queue by it. The kernel
//! allows 7 only with `CAP_NET_ADMIN`; without it, 6 is set, with a warning.

/// Network priority of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Priority {
    /// Differentiated services code point, 0..=63.
    pub(super) dscp: u8,
    /// Priority of the packet within this host, 0..=7.
    pub(super) so_priority: u8,
}

/// Highest `SO_PRIORITY` without a privilege.
pub(super) const UNPRIVILEGED_MAX: u8 = 6;

impl Priority {
    pub(super) fn of(transport_priority: i32) -> Self {
        let dscp = transport_priority.clamp(0, 63) as u8;
        Self { dscp, so_priority: dscp >> 3 }
    }

    /// Returns the octet of the IP header: the DSCP and two bits of ECN, which stay 0.
    pub(super) fn tos(self) -> libc::c_int {
        libc::c_int::from(self.dscp << 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_follow_the_table() {
        let of = |value| {
            let p = Priority::of(value);
            (p.dscp, p.so_priority)
        };
        assert_eq!(of(i32::MIN), (0, 0));
        assert_eq!(of(0), (0, 0));
        assert_eq!(of(7), (7, 0));
        assert_eq!(of(8), (8, 1));
        assert_eq!(of(46), (46, 5));
        assert_eq!(of(63), (63, 7));
        assert_eq!(of(i32::MAX), (63, 7));
        assert_eq!(Priority::of(46).tos(), 0xb8);
    }
}
