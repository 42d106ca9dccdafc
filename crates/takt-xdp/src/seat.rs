//! One participant's seat at an interface: its queues, and what the filter takes of them for it. Of the form of what is carried it
//! knows nothing.

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

/// What a seat is asked to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) place: Place<'a>,
    /// Where the filter is to run.
    pub(crate) mode: Option<Mode>,
    /// Only what begins with `RTPS`.
    pub(crate) rtps_only: bool,
    pub(crate) rx_frames: u32,
    pub(crate) tx_frames: u32,
}

/// See the [module](self). Dropped, its queues are free.
#[derive(Debug)]
pub(crate) struct Seat {
    bank: Bank,
    table: Table,
    share: Share,
}

impl Seat {
    /// Joins or attaches the filter, takes queues and connects them. `route` is any socket of the interface's network namespace.
    pub(crate) fn take(asked: &Asked<'_>, route: BorrowedFd<'_>) -> Result<Self, (&'static str, io::Error)> {
        let failed = |op| move |e| (op, e);
        let driver = syscall::driver(route, asked.place.name).map_err(failed("ask for the driver of"))?;
        let target = Target { ifindex: asked.place.ifindex, driver: &driver, mode: asked.mode };
        let share = Share::open(target).map_err(failed("attach the filter of"))?;
        let copy = share.mode() == Mode::Generic;
        let wanted = Wanted { rx_frames: asked.rx_frames, tx_frames: asked.tx_frames, copy };
        let bank = Bank::open(asked.place, &wanted, route).map_err(failed("bind"))?;
        // What is longer than a packet is no frame, but a train of them from this machine, which its kernel takes apart.
        let packet = asked.place.mtu + EthernetHeader::LEN + EthernetHeader::TAG_LEN;
        let rules = Rules { rtps_only: asked.rtps_only, frame_len_max: packet.min(bank.frame_len_max()) };
        let table = Table::new(rules).map_err(lacking("CAP_BPF")).map_err(failed("make a table for the filter of"))?;
        let seat = Self { bank, table, share };
        for (number, socket) in seat.bank.numbered() {
            let connected = seat.share.switchboard().connect(number, &seat.table, socket);
            connected.map_err(failed("connect a queue of"))?;
        }
        Ok(seat)
    }

    /// What is addressed so is taken from now on.
    pub(crate) fn open(&self, key: Key) -> io::Result<()> {
        self.table.open(key)
    }

    /// It is left to the kernel from now on.
    pub(crate) fn close(&self, key: Key) -> io::Result<()> {
        self.table.close(key)
    }

    /// Its queues.
    pub(crate) fn bank(&self) -> &Bank {
        &self.bank
    }

    /// The same to send and receive.
    pub(crate) fn bank_mut(&mut self) -> &mut Bank {
        &mut self.bank
    }

    /// What it shares with others.
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // While the sockets are bound: afterwards the queues may be others'.
        self.bank.numbers().for_each(|number| self.share.switchboard().disconnect(number));
    }
}
