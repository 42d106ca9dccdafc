//! A participant's configuration and limits.

use crate::discovery::StaticParticipant;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;
use takt_wire::qos::DomainParticipantQos;
use takt_wire::{GuidPrefix, Locator};

/// Groups and unicast peers that a participant announces itself to, at most.
pub const MAX_PEERS: usize = 4096;

/// A network interface of this host as far as the protocol needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's name of it.
    pub name: String,
    /// Its addresses with the length of their network prefix in bits; none if it carries Ethernet frames without IP
    /// ([`Locator::KIND_TAKT_ETHERNET`]).
    pub addresses: Vec<(IpAddr, u8)>,
    /// The largest IP packet in bytes.
    pub mtu: usize,
    /// Whether it never leaves the host.
    pub loopback: bool,
}

/// Where this participant listens; announced to others (RTPS 2.5 §8.5.3.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locators {
    /// Discovery, addressed to this participant.
    pub metatraffic_unicast: Vec<Locator>,
    /// Discovery, addressed to all.
    pub metatraffic_multicast: Vec<Locator>,
    /// User data, addressed to this participant.
    pub default_unicast: Vec<Locator>,
    /// User data, addressed to all.
    pub default_multicast: Vec<Locator>,
}

/// Bounds on what the participant keeps for others and for its endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Remote participants, those on probation included.
    pub max_participants: usize,
    /// Remote participants that have not proven yet that they receive what we send; the oldest makes room for a new one.
    pub max_unvalidated_participants: usize,
    /// Remote participants that have proven it of one address, this host's apart; further ones wait.
    pub max_participants_per_address: usize,
    /// Endpoints kept of one remote participant.
    pub max_endpoints_per_participant: usize,
    /// Memory in bytes for what one remote participant announces: itself and its endpoints.
    pub max_discovery_bytes_per_participant: usize,
    /// Memory in bytes for what all remote participants announce.
    pub max_discovery_bytes: usize,
    /// Samples of a history whose `RESOURCE_LIMITS.max_samples` is unlimited.
    ///
    /// DEVIATION(DDS 1.4 §2.2.3.19): LENGTH_UNLIMITED is this many samples, and so many instances as below: memory is taken when an
    /// endpoint is enabled. A KEEP_ALL writer blocks there.
    pub default_max_samples: usize,
    /// Instances of a history whose `RESOURCE_LIMITS.max_instances` is unlimited.
    pub default_max_instances: usize,
    /// Payload memory of one endpoint in bytes. It is address space: pages are used when samples need them.
    pub endpoint_memory_bytes: usize,
    /// Bytes of incomplete samples that one reader keeps.
    pub reassembly_bytes: usize,
    /// Bytes that a reliable writer sends ahead of acknowledgements.
    pub send_window_bytes: usize,
    /// Refused matches that are remembered with their reason.
    pub max_refusals: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_participants: 1024,
            max_unvalidated_participants: 128,
            max_participants_per_address: 256,
            max_endpoints_per_participant: 512,
            max_discovery_bytes_per_participant: 4 << 20,
            max_discovery_bytes: 256 << 20,
            default_max_samples: 4096,
            default_max_instances: 65_536,
            endpoint_memory_bytes: 64 << 20,
            reassembly_bytes: 16 << 20,
            send_window_bytes: 2 << 20,
            max_refusals: 64,
        }
    }
}

/// Everything a participant is told when it is created.
#[derive(Clone, Debug)]
pub struct Config {
    /// DDS domain.
    pub domain_id: u32,
    /// Unique in the domain; the caller provides the randomness.
    pub guid_prefix: GuidPrefix,
    /// Random and told to nobody: others prove their address by what it makes of it.
    pub secret: [u64; 2],
    /// The participant's policies.
    pub qos: DomainParticipantQos,
    /// Whether it takes part from the start; otherwise from [`crate::Participant::enable`] on.
    pub is_enabled: bool,
    /// How long others believe in us without hearing from us.
    pub lease_duration: Duration,
    /// Between two announcements; well below the lease.
    pub announcement_period: Duration,
    /// Between two heartbeats of a writer whose readers do not answer. The first ones come faster.
    pub heartbeat_period: Duration,
    /// Between a writer's unacknowledged sample and its first heartbeat.
    pub heartbeat_first: Duration,
    /// Between noticing a missing sample and asking for it, so that reordered datagrams can arrive.
    pub nack_delay: Duration,
    /// Least time between two requests for the same samples.
    pub nack_suppression: Duration,
    /// The interfaces in use.
    pub interfaces: Vec<Interface>,
    /// Whether there is a way to UDP locators.
    pub has_udp: bool,
    /// Whether there is a way to TCP locators.
    pub has_tcp: bool,
    /// The longest message that may go to a UDP locator.
    pub udp_message_max: usize,
    /// Where this participant listens.
    pub locators: Locators,
    /// Where announcements go: the multicast groups, and the ports of unicast peers. At most [`MAX_PEERS`].
    pub initial_peers: Vec<Locator>,
    /// Discovery servers among them, by whom we let ourselves be introduced to others.
    pub servers: Vec<Locator>,
    /// What is said in the name of a participant counts only from addresses that it has proven or announces. Without this, relays
    /// and address translation between participants may change the source addresses of datagrams, and whoever reaches this
    /// participant can speak for any other one.
    pub checks_sources: bool,
    /// The endpoints of all participants, in place of endpoint discovery; the own ones are found by ENTITY_NAME.
    pub static_endpoints: Option<Vec<StaticParticipant>>,
    /// Whether this participant is such a server.
    pub is_server: bool,
    /// Places of a writer's readers from which on user data go to their multicast group, where that is cheaper and they have
    /// shown that it arrives; 0: never.
    pub multicast_readers_min: usize,
    /// Bounds.
    pub limits: Limits,
}

impl Config {
    /// The usual periods: lease 20 s, announcement 3 s, heartbeat 100 ms. The caller sets the secret.
    #[must_use]
    pub fn new(domain_id: u32, guid_prefix: GuidPrefix) -> Self {
        Self {
            domain_id,
            guid_prefix,
            secret: [0; 2],
            qos: DomainParticipantQos::default(),
            is_enabled: true,
            lease_duration: Duration::from_secs(20),
            announcement_period: Duration::from_secs(3),
            heartbeat_period: Duration::from_millis(100),
            heartbeat_first: Duration::from_millis(5),
            nack_delay: Duration::from_micros(500),
            nack_suppression: Duration::from_millis(1),
            interfaces: Vec::new(),
            has_udp: true,
            has_tcp: false,
            udp_message_max: usize::MAX,
            locators: Locators::default(),
            initial_peers: Vec::new(),
            servers: Vec::new(),
            checks_sources: true,
            static_endpoints: None,
            is_server: false,
            multicast_readers_min: 3,
            limits: Limits::default(),
        }
    }
}
