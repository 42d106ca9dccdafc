//! Exclusive ports: each port of an interface has one owner among all participants, across
//! processes.
//!
//! The kernel does not manage ports for frames without IP. The owner of a port therefore binds a
//! Unix socket to its name in the abstract namespace, which belongs to the network namespace like
//! the interface. The kernel removes the name when the process ends, for any reason. This
//! prevents accidental collisions only: any process of the namespace can take names, and
//! participants then use another index.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::EthernetConfig;
use crate::TransportError;
use crate::udp::ParticipantIndex;

/// Last participant index whose ports do not collide with those of the next domain.
const LAST_INDEX: u16 = 119;

/// First port outside the well-known ranges.
const FIRST_FREE: u16 = 49_152;

/// Maximum number of attempts to find a free port.
const PORTS_TRIED: usize = 4096;

/// Ownership of a port; released on drop.
#[derive(Debug)]
pub(super) struct Taken {
    number: u16,
    _name: UnixDatagram,
}

impl Taken {
    pub(super) fn number(&self) -> u16 {
        self.number
    }
}

/// Ports of one interface.
#[derive(Debug)]
pub(super) struct PortNames {
    interface: String,
    /// Start of the next search. It advances, so that a closed port is not reused soon.
    next: u16,
}

impl PortNames {
    pub(super) fn new(interface: &str) -> Self {
        let random = RandomState::new().hash_one(std::process::id());
        Self { interface: interface.to_owned(), next: FIRST_FREE | random as u16 }
    }

    /// Takes the ports of metatraffic and of user data, and returns them with their index.
    pub(super) fn take_participant(
        &mut self,
        config: &EthernetConfig,
    ) -> Result<(Option<u16>, [Taken; 2]), TransportError> {
        match config.participant_index {
            ParticipantIndex::Ephemeral => {}
            ParticipantIndex::Metatraffic(port) => {
                let metatraffic = self.take(port)?.ok_or_else(|| taken("reserve port", port))?;
                return Ok((None, [metatraffic, self.take_any()?]));
            }
            ParticipantIndex::Fixed(index) => {
                let own = self.take_index(config, index)?;
                return match own {
                    Some(own) => Ok((Some(index), own)),
                    None => Err(taken("reserve the ports of participant index", index)),
                };
            }
            ParticipantIndex::Auto => {
                for index in 0..=LAST_INDEX {
                    if let Some(own) = self.take_index(config, index)? {
                        return Ok((Some(index), own));
                    }
                }
            }
        }
        Ok((None, [self.take_any()?, self.take_any()?]))
    }

    /// Takes both ports of this index, or returns `None` if one of them is taken or does not exist.
    fn take_index(&self, config: &EthernetConfig, index: u16) -> Result<Option<[Taken; 2]>, TransportError> {
        let (domain, participant) = (config.domain_id, u32::from(index));
        let metatraffic = config.ports.discovery_unicast(domain, participant);
        let user = config.ports.user_unicast(domain, participant);
        let (Some(metatraffic), Some(user)) = (metatraffic, user) else { return Ok(None) };
        let Some(metatraffic) = self.take(metatraffic)? else { return Ok(None) };
        Ok(self.take(user)?.map(|user| [metatraffic, user]))
    }

    /// Takes any free port.
    pub(super) fn take_any(&mut self) -> Result<Taken, TransportError> {
        for _ in 0..PORTS_TRIED {
            let port = self.next;
            self.next = port.wrapping_add(1) | FIRST_FREE;
            if let Some(taken) = self.take(port)? {
                return Ok(taken);
            }
        }
        Err(taken("find a free port of", &self.interface))
    }

    /// Takes this port, or returns `None` if it is taken.
    fn take(&self, port: u16) -> Result<Option<Taken>, TransportError> {
        let name = format!("takt-eth/{}/{port}", self.interface);
        let failed = |e| TransportError::new("take", &name, e);
        let address = SocketAddr::from_abstract_name(&name).map_err(failed)?;
        match UnixDatagram::bind_addr(&address) {
            Ok(socket) => Ok(Some(Taken { number: port, _name: socket })),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(e) => Err(failed(e)),
        }
    }
}

fn taken(op: &'static str, target: impl std::fmt::Display) -> TransportError {
    TransportError::new(op, target, io::ErrorKind::AddrInUse.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(participant_index: ParticipantIndex) -> EthernetConfig {
        EthernetConfig { participant_index, ..EthernetConfig::new(3) }
    }

    fn numbers(own: &[Taken; 2]) -> [u16; 2] {
        [own[0].number(), own[1].number()]
    }

    #[test]
    fn participant_index_has_one_owner_until_dropped() {
        let interface = format!("test-{}", std::process::id());
        let (mut one, mut two) = (PortNames::new(&interface), PortNames::new(&interface));
        let auto = config(ParticipantIndex::Auto);
        let (first, own) = one.take_participant(&auto).expect("no ports are in use");
        assert_eq!((first, numbers(&own)), (Some(0), [8160, 8161]));
        let (second, other) = two.take_participant(&auto).expect("119 are free");
        assert_eq!((second, numbers(&other)), (Some(1), [8162, 8163]));
        let fixed = config(ParticipantIndex::Fixed(0));
        let why = two.take_participant(&fixed).expect_err("the ports are in use").to_string();
        assert!(why.contains("participant index 0"), "{why}");
        let (index, _) = PortNames::new("elsewhere").take_participant(&fixed).expect("another interface");
        assert_eq!(index, Some(0));
        drop(own);
        assert_eq!(two.take_participant(&fixed).expect("the ports are free").0, Some(0));
    }

    #[test]
    fn ports_beyond_the_indices_are_high_and_distinct() {
        let mut names = PortNames::new(&format!("high-{}", std::process::id()));
        let (index, own) = names.take_participant(&config(ParticipantIndex::Ephemeral)).expect("some ports are free");
        assert!(index.is_none() && own[0].number() != own[1].number());
        let named = config(ParticipantIndex::Metatraffic(9000));
        let (index, taken) = names.take_participant(&named).expect("the ports are free");
        assert_eq!((index, taken[0].number()), (None, 9000));
        assert!(names.take_participant(&named).is_err(), "twice");
        names.next = u16::MAX;
        let others: Vec<Taken> = (0..3).map(|_| names.take_any().expect("some ports are free")).collect();
        assert!(others.iter().chain(&own).all(|port| port.number() >= FIRST_FREE));
    }
}
