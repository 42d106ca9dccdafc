//! Transports: configurations of those of Takt, and the interface for others.
//!
//! A transport implements [`Transport`]. An application adds it with
//! [`transport`](crate::DomainParticipantBuilder::transport), or registers a factory
//! ([`choice::register`]), so that configurations request it by name. [`Tracer`],
//! [`PcapTap`] and [`FaultInjector`] wrap another transport.

pub use takt_transport::{
    Capabilities, Captured, Commit, ConnectionCounts, Control, FaultConfig, FaultCounts, FaultInjector, Faults, FlowId,
    FlowSpec, Interface, Layer, LinkType, Locators, Lost, MESSAGE_LEN_MIN, Observer, Payload, PcapFile, PcapTap, Reach,
    Receive, RxFrame, RxMeta, Scan, SendErrors, Status, TraceEvent, Tracer, Transport, TransportError, TransportEvent,
    TransportStats, Warning,
};

pub use takt_wire::{Piece, SharedBuffer, SharedFrame, SharedPayload, SharedPayloadMemory};

/// Transports that are requested by name, and their factories.
pub mod choice {
    pub use takt_transport::choice::probe::{Finding, Grade};
    pub use takt_transport::choice::{
        Description, Malformed, Opened, Request, TransportChoice, TransportFactory, TransportOption, TransportSpec,
        factories, register,
    };
}

/// RTPS over UDP.
pub mod udp {
    pub use takt_transport::udp::{InterfaceSelection, ParticipantIndex, UdpConfig, UdpTransport};
    pub use takt_wire::ports::PortMapping;
}

/// RTPS over TCP, with TLS if the feature `tls` is enabled.
pub mod tcp {
    pub use takt_transport::tcp::{TcpConfig, TcpTransport, TlsConfig};
}

/// Shared memory between the processes of a host.
pub mod shm {
    pub use takt_transport::shm::{Loan, ShmConfig, ShmTransport};
}

/// RTPS in Ethernet frames, without IP.
pub mod ethernet {
    pub use takt_transport::ethernet::{
        EthernetConfig, EthernetCounters, EthernetTransport, FramePort, FramePortStats, PacketConfig, PacketPort,
    };
}
