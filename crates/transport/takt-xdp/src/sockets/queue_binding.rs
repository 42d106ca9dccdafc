//! Queues of one participant at an interface, and its part in the filter. Independent of the wire
//! format.

use std::io;
use std::os::fd::BorrowedFd;

use takt_packet::EthernetHeader;

use crate::capabilities::name_missing;
use crate::config::Mode;
use crate::program::attach::Target;
use crate::program::filter::{Key, Rules, Table};
use crate::share::Share;
use crate::sockets::socket::Wanted;
use crate::sockets::socket_set::{QueueLocation, SocketSet};
use crate::syscall;

/// Parameters of a [`QueueBinding`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct BindingParameters<'a> {
    pub(crate) location: QueueLocation<'a>,
    /// Requested mode of the filter.
    pub(crate) mode: Option<Mode>,
    /// Whether to accept only payloads that begin with `RTPS`.
    pub(crate) rtps_only: bool,
    pub(crate) rx_frames: u32,
    pub(crate) tx_frames: u32,
}

/// Queues and filter table of one participant. See the [module](self). Dropping it frees the
/// queues.
#[derive(Debug)]
pub(crate) struct QueueBinding {
    sockets: SocketSet,
    table: Table,
    share: Share,
}

impl QueueBinding {
    /// Joins or attaches the filter, binds queues and connects them. `route` is any socket of the
    /// interface's network namespace.
    pub(crate) fn acquire(
        parameters: &BindingParameters<'_>,
        route: BorrowedFd<'_>,
    ) -> Result<Self, (&'static str, io::Error)> {
        let failed = |op| move |e| (op, e);
        let driver = syscall::driver(route, parameters.location.name).map_err(failed("query the driver of"))?;
        let target = Target { ifindex: parameters.location.ifindex, driver: &driver, mode: parameters.mode };
        let share = Share::open(target).map_err(failed("attach the filter of"))?;
        let copy = share.mode() == Mode::Generic;
        let wanted = Wanted { rx_frames: parameters.rx_frames, tx_frames: parameters.tx_frames, copy };
        let sockets = SocketSet::open(parameters.location, &wanted, route).map_err(failed("bind"))?;
        // A longer frame is not from the wire: it is a segmented datagram of this machine, which
        // its kernel will split.
        let packet = parameters.location.mtu + EthernetHeader::LEN + EthernetHeader::TAG_LEN;
        let rules = Rules { rtps_only: parameters.rtps_only, frame_len_max: packet.min(sockets.frame_len_max()) };
        let table =
            Table::new(rules).map_err(name_missing("CAP_BPF")).map_err(failed("create the map for the filter of"))?;
        let binding = Self { sockets, table, share };
        for (number, socket) in binding.sockets.numbered() {
            let connected = binding.share.switchboard().connect(number, &binding.table, socket);
            connected.map_err(failed("connect a queue of"))?;
        }
        Ok(binding)
    }

    /// Accepts frames with this key from now on.
    pub(crate) fn open(&self, key: Key) -> io::Result<()> {
        self.table.open(key)
    }

    /// Leaves frames with this key to the kernel from now on.
    pub(crate) fn close(&self, key: Key) -> io::Result<()> {
        self.table.close(key)
    }

    /// Returns the queues.
    pub(crate) fn sockets(&self) -> &SocketSet {
        &self.sockets
    }

    /// Returns the queues for sending and receiving.
    pub(crate) fn sockets_mut(&mut self) -> &mut SocketSet {
        &mut self.sockets
    }

    /// Returns the part shared with other participants.
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }
}

impl Drop for QueueBinding {
    fn drop(&mut self) {
        // While the sockets are bound: afterwards, the queues may belong to other participants.
        self.sockets.numbers().for_each(|number| self.share.switchboard().disconnect(number));
    }
}
