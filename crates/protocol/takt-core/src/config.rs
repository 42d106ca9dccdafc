//! Configuration and limits of a participant.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::qos::DomainParticipantQos;
use takt_wire::{GuidPrefix, Locator};

/// Window of samples above the next expected one that are kept while that one is missing.
pub(crate) const REORDER_WINDOW: i64 = 512;

/// Maximum number of destinations of a participant's announcements: multicast groups and unicast
/// peers.
pub const MAX_PEERS: usize = 4096;

/// Network interface of this host, as far as the protocol needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface in the kernel.
    pub name: String,
    /// Addresses of the interface, each with its prefix length in bits. Empty if the interface
    /// carries Ethernet frames without IP ([`Locator::KIND_TAKT_ETHERNET`]).
    pub addresses: Vec<(IpAddr, u8)>,
    /// Largest IP packet (MTU) in bytes.
    pub mtu: usize,
    /// Whether the interface is a loopback interface.
    pub loopback: bool,
}

/// Locators on which this participant listens; announced to others (RTPS 2.5 §8.5.3.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locators {
    /// Discovery traffic to this participant.
    pub metatraffic_unicast: Vec<Locator>,
    /// Discovery traffic to multicast groups.
    pub metatraffic_multicast: Vec<Locator>,
    /// User data to this participant.
    pub default_unicast: Vec<Locator>,
    /// User data to multicast groups.
    pub default_multicast: Vec<Locator>,
}

/// Bounds on the state that the participant keeps for remote participants and for its endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of remote participants, those with unvalidated addresses included.
    pub max_participants: usize,
    /// Maximum number of remote participants that have not yet validated an address. The oldest is
    /// replaced by a new one.
    pub max_unvalidated_participants: usize,
    /// Maximum number of remote participants that share one validated address, those on this host
    /// excluded. Further ones wait.
    pub max_participants_per_address: usize,
    /// Maximum number of endpoints of one remote participant.
    pub max_endpoints_per_participant: usize,
    /// Memory in bytes for the announcements of one remote participant and of its endpoints.
    pub max_discovery_bytes_per_participant: usize,
    /// Memory in bytes for the announcements of all remote participants.
    pub max_discovery_bytes: usize,
    /// Maximum number of samples of a history whose `RESOURCE_LIMITS.max_samples` is unlimited.
    ///
    /// DEVIATION(DDS 1.4 §2.2.3.19): LENGTH_UNLIMITED is this many samples, and as many instances
    /// as the next field: memory is reserved when an endpoint is enabled. A KEEP_ALL writer blocks
    /// at the limit.
    pub default_max_samples: usize,
    /// Maximum number of instances of a history whose `RESOURCE_LIMITS.max_instances` is unlimited.
    pub default_max_instances: usize,
    /// Payload memory of one endpoint in bytes. It reserves address space; pages are committed when
    /// samples need them.
    pub endpoint_memory_bytes: usize,
    /// Bytes of incomplete fragmented samples that one reader keeps.
    pub reassembly_bytes: usize,
    /// Bytes that a reliable writer sends ahead of acknowledgments.
    pub send_window_bytes: usize,
    /// Maximum number of refused matches that are kept with their reason.
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

/// Settings of a participant at its creation.
#[derive(Clone, Debug)]
pub struct Config {
    /// DDS domain ID.
    pub domain_id: u32,
    /// GUID prefix, unique in the domain. The caller provides the randomness.
    pub guid_prefix: GuidPrefix,
    /// Random secret, never disclosed. Challenges that validate the addresses of remote
    /// participants are derived from it.
    pub secret: [u64; 2],
    /// QoS policies of the participant.
    pub qos: DomainParticipantQos,
    /// Whether the participant is enabled at its creation; otherwise by
    /// [`crate::Participant::enable`].
    pub is_enabled: bool,
    /// Lease: how long remote participants keep this one without hearing from it.
    pub lease_duration: Duration,
    /// Time between two announcements; well below the lease.
    pub announcement_period: Duration,
    /// Time between two heartbeats of a writer whose readers do not answer. The first ones are more
    /// frequent.
    pub heartbeat_period: Duration,
    /// Time from a writer's unacknowledged sample to its first heartbeat.
    pub heartbeat_first: Duration,
    /// Time from the detection of a missing sample to its ACKNACK, so that reordered datagrams can
    /// arrive.
    pub nack_delay: Duration,
    /// Minimum time between two requests for the same samples.
    pub nack_suppression: Duration,
    /// Network interfaces in use.
    pub interfaces: Vec<Interface>,
    /// Whether a transport reaches UDP locators.
    pub has_udp: bool,
    /// Whether a transport reaches TCP locators.
    pub has_tcp: bool,
    /// Longest message in bytes to a UDP locator.
    pub udp_message_max: usize,
    /// Locators on which this participant listens.
    pub locators: Locators,
    /// Destinations of announcements: multicast groups, and the ports of unicast peers. At most
    /// [`MAX_PEERS`].
    pub initial_peers: Vec<Locator>,
    /// Discovery servers among the initial peers, which introduce this participant to others.
    pub servers: Vec<Locator>,
    /// Whether a message of a participant is accepted only from addresses that the participant has
    /// validated or announces. Without this check, relays and address translation between
    /// participants may change source addresses, and any host that reaches this participant can
    /// forge messages of any other one.
    pub checks_sources: bool,
    /// Endpoints of all participants, instead of endpoint discovery. The own entry is found by
    /// ENTITY_NAME.
    pub static_endpoints: Option<Vec<StaticParticipant>>,
    /// Whether this participant is a discovery server.
    pub is_server: bool,
    /// Minimum number of matched readers' destinations from which a writer sends user data by
    /// multicast. The group is used only where that is cheaper and its listeners have acknowledged
    /// that they receive it. 0: never.
    pub multicast_readers_min: usize,
    /// Bounds of the participant.
    pub limits: Limits,
}

impl Config {
    /// Returns a configuration with the default periods: lease 20 s, announcement 3 s, heartbeat
    /// 100 ms. The caller sets the secret.
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

/// Static endpoints of one participant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticParticipant {
    /// ENTITY_NAME of the participant.
    pub name: String,
    /// Writers with their entity IDs; the GUID prefix is ignored.
    pub publications: Vec<PublicationData>,
    /// Readers with their entity IDs; the GUID prefix is ignored.
    pub subscriptions: Vec<SubscriptionData>,
}
