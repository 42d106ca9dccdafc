//! Queues of one participant at an interface, and its part in the filter. Independent of the wire
//! format.

use std::io;
use std::os::fd::BorrowedFd;

use takt_packet::EthernetHeader;

use crate::attach::Target;
use crate::bank::{Bank, Place};
use crate::capabilities::lacking;
use crate::config::Mode;
use crate::filter::{Key, Rules, Table};
use crate::share::Share;
use crate::socket::Wanted;
use crate::syscall;

/// Parameters of a seat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) place: Place<'a>,
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
pub(crate) struct Seat {
    bank: Bank,
    table: Table,
    share: Share,
}

impl Seat {
    /// Joins or attaches the filter, binds queues and connects them. `route` is any socket of the
    /// interface's network namespace.
    pub(crate) fn take(asked: &Asked<'_>, route: BorrowedFd<'_>) -> Result<Self, (&'static str, io::Error)> {
        let failed = |op| move |e| (op, e);
        let driver = syscall::driver(route, asked.place.name).map_err(failed("query the driver of"))?;
        let target = Target { ifindex: asked.place.ifindex, driver: &driver, mode: asked.mode };
        let share = Share::open(target).map_err(failed("attach the filter of"))?;
        let copy = share.mode() == Mode::Generic;
        let wanted = Wanted { rx_frames: asked.rx_frames, tx_frames: asked.tx_frames, copy };
        let bank = Bank::open(asked.place, &wanted, route).map_err(failed("bind"))?;
        // A longer frame is not from the wire: it is a segmented datagram of this machine, which
        // its kernel will split.
        let packet = asked.place.mtu + EthernetHeader::LEN + EthernetHeader::TAG_LEN;
        let rules = Rules { rtps_only: asked.rtps_only, frame_len_max: packet.min(bank.frame_len_max()) };
        let table =
            Table::new(rules).map_err(lacking("CAP_BPF")).map_err(failed("create the map for the filter of"))?;
        let seat = Self { bank, table, share };
        for (number, socket) in seat.bank.numbered() {
            let connected = seat.share.switchboard().connect(number, &seat.table, socket);
            connected.map_err(failed("connect a queue of"))?;
        }
        Ok(seat)
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
    pub(crate) fn bank(&self) -> &Bank {
        &self.bank
    }

    /// Returns the queues for sending and receiving.
    pub(crate) fn sockets_mut(&mut self) -> &mut Bank {
        &mut self.bank
    }

    /// Returns the part shared with other participants.
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // While the sockets are bound: afterwards, the queues may belong to other participants.
        self.bank.numbers().for_each(|number| self.share.switchboard().disconnect(number));
    }
}
