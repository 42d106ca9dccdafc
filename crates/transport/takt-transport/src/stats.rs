//! Counters of a transport. All are cumulative since it was opened and cover all of its sockets,
//! including closed ones.

/// Datagrams that a transport carried, and those that it lost, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransportStats {
    /// Datagrams returned to the receiver.
    pub datagrams_in: u64,
    /// Bytes of these datagrams (payload only).
    pub bytes_in: u64,
    /// Datagrams that the machine accepted for sending. One frame with three destinations counts
    /// three times, as does one multicast datagram that leaves by three interfaces.
    pub datagrams_out: u64,
    /// Bytes of these datagrams (payload only).
    pub bytes_out: u64,
    /// Sent datagrams that were segmented by the kernel (GSO, `UDP_SEGMENT`).
    pub segmented_out: u64,
    /// Received datagrams that the kernel coalesced (GRO, `UDP_GRO`).
    pub coalesced_in: u64,
    /// Sent datagrams that bypassed the kernel's network stack.
    pub bypassed_out: u64,
    /// Received datagrams that bypassed the kernel's network stack.
    pub bypassed_in: u64,
    /// Datagrams that the kernel dropped because a receive buffer was full (`SO_MEMINFO`).
    pub kernel_drops: u64,
    /// Received datagrams that were too long and dropped.
    pub truncated: u64,
    /// Errors of receive calls: ICMP replies to earlier datagrams.
    pub receive_errors: u64,
    /// Datagrams that could not be sent, by reason.
    pub send_errors: SendErrors,
    /// Counters of connections, for transports that have any.
    pub connections: ConnectionCounts,
}

/// Counters of connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections begun or accepted.
    pub opened: u64,
    /// Failed attempts to connect.
    pub failed: u64,
    /// Connections that ended after they had carried a message.
    pub lost: u64,
    /// Connections closed because another one leads to the same participant.
    pub merged: u64,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Connections closed because they made no progress in time, or to make room for others.
    pub expired: u64,
    /// Connections closed because the received octets were no stream of messages.
    pub malformed: u64,
    /// Connections closed and messages dropped because they name a participant that has shown
    /// another certificate.
    pub wrong_certificate: u64,
}

/// Datagrams that could not be sent, by reason. None of these is fatal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SendErrors {
    /// `EAGAIN`: the send buffer was full.
    pub would_block: u64,
    /// `ENOBUFS`, `ENOMEM`: the machine ran out of buffers.
    pub no_buffers: u64,
    /// `ENETUNREACH`, `ENETDOWN`, `EADDRNOTAVAIL`: no route.
    pub network_unreachable: u64,
    /// `EHOSTUNREACH`, `EHOSTDOWN`: the host does not answer.
    pub host_unreachable: u64,
    /// `ECONNREFUSED`: the port is closed.
    pub refused: u64,
    /// `EPERM`, `EACCES`: refused by a packet filter or a policy.
    pub denied: u64,
    /// `EMSGSIZE`: larger than the path or the protocol supports.
    pub too_large: u64,
    /// Destinations that this transport does not serve.
    pub unserved: u64,
    /// Any other reason.
    pub other: u64,
}

impl SendErrors {
    /// Returns the sum over all reasons.
    pub fn total(&self) -> u64 {
        self.would_block
            + self.no_buffers
            + self.network_unreachable
            + self.host_unreachable
            + self.refused
            + self.denied
            + self.too_large
            + self.unserved
            + self.other
    }
}
