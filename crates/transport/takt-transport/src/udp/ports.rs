//! Unicast ports of a participant (RTPS 2.5 §9.6.2.3).
//!
//! A participant takes all ports of one participant index: metatraffic and user, for each address
//! family. Beyond the last index, the kernel chooses ports, and discovery announces them: a peer
//! needs well-known unicast ports only to find participants without multicast.

use std::io;
use std::net::IpAddr;

use super::config::{ParticipantIndex, UdpConfig};
use super::socket::{Socket, socket_error};
use crate::{TransportError, Warning};

/// Last participant index whose ports do not collide with those of the next domain.
const LAST_INDEX: u16 = 119;

/// Unicast sockets of one participant, one of each kind per address family.
#[derive(Debug)]
pub(super) struct UnicastSockets {
    /// Participant index of the ports; `None` if the kernel chose them.
    pub(super) index: Option<u16>,
    pub(super) metatraffic: Vec<Socket>,
    pub(super) user: Vec<Socket>,
}

/// Takes unicast ports at each of the `addresses` (one per family).
pub(super) fn take(config: &UdpConfig, addresses: &[IpAddr]) -> Result<UnicastSockets, TransportError> {
    match config.participant_index {
        ParticipantIndex::Ephemeral => {}
        ParticipantIndex::Metatraffic(port) => {
            let taken = || TransportError::new("bind port", port, io::Error::from(io::ErrorKind::AddrInUse));
            return Ok(UnicastSockets {
                index: None,
                metatraffic: take_port(config, addresses, port)?.ok_or_else(taken)?,
                user: take_port(config, addresses, 0)?.unwrap_or_default(),
            });
        }
        ParticipantIndex::Fixed(index) => {
            return match take_index(config, addresses, index)? {
                Some(sockets) => Ok(sockets),
                None => Err(TransportError::new(
                    "bind the ports of participant index",
                    index,
                    io::Error::from(io::ErrorKind::AddrInUse),
                )),
            };
        }
        ParticipantIndex::Auto => {
            for index in 0..=LAST_INDEX {
                if let Some(sockets) = take_index(config, addresses, index)? {
                    return Ok(sockets);
                }
            }
        }
    }
    Ok(UnicastSockets {
        index: None,
        metatraffic: take_port(config, addresses, 0)?.unwrap_or_default(),
        user: take_port(config, addresses, 0)?.unwrap_or_default(),
    })
}

/// Makes the warning that all well-known ports of a domain are taken.
pub(super) fn all_taken(domain_id: u32) -> Warning {
    Warning {
        what: format!(
            "the well-known unicast ports of all {} participant indices of domain {domain_id} are taken, so the \
             kernel chose others: participants that search by unicast only do not discover this one",
            u32::from(LAST_INDEX) + 1
        ),
        remedy: "stop unneeded participants, or add this one's port to the others' peers (takt ls shows it)".into(),
    }
}

/// Takes all ports of this index, or returns `None` if one of them is taken or does not exist.
fn take_index(config: &UdpConfig, addresses: &[IpAddr], index: u16) -> Result<Option<UnicastSockets>, TransportError> {
    let (domain, participant) = (config.domain_id, u32::from(index));
    let metatraffic = config.ports.discovery_unicast(domain, participant);
    let user = config.ports.user_unicast(domain, participant);
    let (Some(metatraffic), Some(user)) = (metatraffic, user) else {
        return Ok(None);
    };
    let Some(metatraffic) = take_port(config, addresses, metatraffic)? else {
        return Ok(None);
    };
    let Some(user) = take_port(config, addresses, user)? else {
        return Ok(None);
    };
    Ok(Some(UnicastSockets { index: Some(index), metatraffic, user }))
}

/// Takes this port at every address, or returns `None` if it is taken at one of them.
fn take_port(config: &UdpConfig, addresses: &[IpAddr], port: u16) -> Result<Option<Vec<Socket>>, TransportError> {
    let mut sockets = Vec::with_capacity(addresses.len());
    for address in addresses {
        match Socket::unicast(*address, port, config) {
            Ok(socket) => sockets.push(socket),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && port != 0 => return Ok(None),
            Err(e) => return Err(socket_error("bind", *address, port)(e)),
        }
    }
    Ok(Some(sockets))
}
