//! Well-known UDP ports of domains and participants (RTPS 2.5 §9.6.2).

/// Parameters of the mapping from domain and participant to ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortMapping {
    /// PB: base of all ports.
    pub port_base: u16,
    /// DG: number of ports of a domain.
    pub domain_gain: u16,
    /// PG: number of ports of a participant.
    pub participant_gain: u16,
    /// Offset of the multicast port of discovery.
    pub d0: u16,
    /// Offset of the unicast ports of discovery.
    pub d1: u16,
    /// Offset of the multicast port of user data.
    pub d2: u16,
    /// Offset of the unicast ports of user data.
    pub d3: u16,
}

impl Default for PortMapping {
    fn default() -> Self {
        Self { port_base: 7400, domain_gain: 250, participant_gain: 2, d0: 0, d1: 10, d2: 1, d3: 11 }
    }
}

impl PortMapping {
    /// Returns the port of SPDP multicast; `None` if it exceeds the range of UDP ports.
    pub fn discovery_multicast(&self, domain_id: u32) -> Option<u16> {
        self.port(domain_id, 0, self.d0)
    }

    /// Returns the port on which a participant receives unicast discovery traffic.
    pub fn discovery_unicast(&self, domain_id: u32, participant_index: u32) -> Option<u16> {
        self.port(domain_id, participant_index, self.d1)
    }

    /// Returns the port of multicast user data.
    pub fn user_multicast(&self, domain_id: u32) -> Option<u16> {
        self.port(domain_id, 0, self.d2)
    }

    /// Returns the port on which a participant receives unicast user data.
    pub fn user_unicast(&self, domain_id: u32, participant_index: u32) -> Option<u16> {
        self.port(domain_id, participant_index, self.d3)
    }

    /// Returns the highest domain whose first participant has all ports: 232 by default. `None` if
    /// not even domain 0 has them.
    pub fn domain_max(&self) -> Option<u32> {
        let offset = [self.d0, self.d1, self.d2, self.d3].into_iter().max().map_or(0, u32::from);
        let room = u32::from(u16::MAX).checked_sub(u32::from(self.port_base) + offset)?;
        Some(room.checked_div(u32::from(self.domain_gain)).unwrap_or(u32::MAX))
    }

    fn port(&self, domain_id: u32, participant_index: u32, offset: u16) -> Option<u16> {
        let domain = u32::from(self.domain_gain).checked_mul(domain_id)?;
        let participant = u32::from(self.participant_gain).checked_mul(participant_index)?;
        let port =
            u32::from(self.port_base).checked_add(domain)?.checked_add(participant)?.checked_add(u32::from(offset))?;
        u16::try_from(port).ok().filter(|port| *port != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_zero_has_the_specified_ports() {
        let ports = PortMapping::default();
        assert_eq!(ports.discovery_multicast(0), Some(7400));
        assert_eq!(ports.user_multicast(0), Some(7401));
        assert_eq!(ports.discovery_unicast(0, 0), Some(7410));
        assert_eq!(ports.user_unicast(0, 0), Some(7411));
        assert_eq!(ports.discovery_unicast(0, 3), Some(7416));
        assert_eq!(ports.user_unicast(0, 3), Some(7417));
    }

    #[test]
    fn domains_beyond_the_udp_port_range_have_no_ports() {
        let ports = PortMapping::default();
        assert_eq!(ports.discovery_multicast(232), Some(65_400));
        assert_eq!(ports.discovery_multicast(233), None);
        assert_eq!(ports.user_unicast(232, 62), Some(65_535));
        assert_eq!(ports.user_unicast(232, 63), None);
        assert_eq!(ports.user_unicast(u32::MAX, u32::MAX), None);
    }
}
