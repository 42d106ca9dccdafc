//! Counters of a transport. All are cumulative since it was opened and cover
//! all of its sockets, the closed ones included.

/// What a transport has carried, and what it has lost and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransportStats {
    /// Datagrams handed to the receiver.
    pub datagrams_in: u64,
    /// Their bytes (payload only).
    pub bytes_in: u64,
    /// Datagrams that the machine took for sending. One frame with three
    /// destinations counts three times, as does one multicast datagram that
    /// leaves by three interfaces.
    pub datagrams_out: u64,
    /// Their bytes (payload only).
    pub bytes_out: u64,
    /// Of the datagrams sent, those that the kernel took in one piece with others (`UDP_SEGMENT`).
    pub segmented_out: u64,
    /// Of the datagrams received, those that the kernel handed out in one piece with others (`UDP_GRO`).
    pub joined_in: u64,
    /// Of the datagrams sent, those that passed by the kernel's network stack.
    pub bypassed_out: u64,
    /// Of the datagrams received, those that passed by the kernel's network stack.
    pub bypassed_in: u64,
    /// Datagrams that the kernel dropped since a receive buffer was full (`SO_MEMINFO`).
    pub kernel_drops: u64,
    /// Received datagrams that did not fit and were dropped.
    pub truncated: u64,
    /// Errors reported by a receive call: answers (ICMP) to what was sent earlier.
    pub receive_errors: u64,
    /// Datagrams that could not be sent, by reason.
    pub send_errors: SendErrors,
    /// What has become of connections; of transports that have any.
    pub connections: ConnectionCounts,
}

/// What has become of connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Begun or accepted.
    pub opened: u64,
    /// Attempts to connect that led to nothing.
    pub failed: u64,
    /// Ended after they had carried something.
    pub lost: u64,
    /// Let go, since another one leads to the same participant.
    pub merged: u64,
    /// Not accepted: there were too many.
    pub refused: u64,
    /// Closed, since they did not get any further in time, or others came.
    pub expired: u64,
    /// Closed, since what came was no stream of messages.
    pub malformed: u64,
    /// Connections closed and messages dropped, since they name a participant that has shown another certificate.
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
    /// `EHOSTUNREACH`, `EHOSTDOWN`: no such neighbour.
    pub host_unreachable: u64,
    /// `ECONNREFUSED`: nobody listens there.
    pub refused: u64,
    /// `EPERM`, `EACCES`: a packet filter or a policy refused.
    pub denied: u64,
    /// `EMSGSIZE`: larger than the path or the protocol carries.
    pub too_large: u64,
    /// A destination that this transport does not serve.
    pub unserved: u64,
    /// Any other reason.
    pub other: u64,
}

impl SendErrors {
    /// The sum over all reasons.
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
