//! Receive path of the driver: polls the transports and passes each datagram to the core.
//!
//! Each call receives at most one datagram from each transport, in ascending index or round-robin,
//! or the most urgent one. A pending departure of a participant is applied here, after the
//! datagrams that arrived before it.

use takt_core::{Priority, Received};
use takt_transport::{Receive, Scan};

use super::Driver;
use super::flows::priority_of;
use crate::runtime::clock;
use crate::runtime::poll::Ready;

/// Receive attempts while spinning, of which one polls all transports. They take some 10 us if the
/// other transports poll memory. Polling an idle socket costs a system call, during which no other
/// transport is polled.
const ATTEMPTS_PER_ROUND: u32 = 512;

/// Maximum number of datagrams received between the announcement that a participant leaves and its
/// effect: the capacity of a receive buffer of 8 MiB.
const DATAGRAMS_BEFORE_DEPARTURE: u32 = 16_384;

impl Driver {
    /// Receives at most one datagram from each transport. Returns true if there was any.
    ///
    /// While spinning, the arrival time is the current time. Otherwise it is the time to which the
    /// caller [advanced](Self::advance): the end of the sleep. While datagrams arrive in memory,
    /// spinning polls the kernel only now and then. After a sleep, only transports with a
    /// descriptor in `ready` are polled, by the indexes from
    /// [`prepare_sleep`](Self::prepare_sleep); others return datagrams that they have already
    /// buffered.
    ///
    /// While a departure is pending, all transports are polled, so that datagrams that arrived
    /// before it are received first.
    pub(crate) fn receive(&mut self, scan: Scan, ready: Ready) -> bool {
        match self.core.has_departures() {
            true => self.receive_before_departure(scan, ready),
            false => self.receive_from_each(scan, ready),
        }
    }

    #[cold]
    fn receive_before_departure(&mut self, scan: Scan, ready: Ready) -> bool {
        let (scan, ready) = self.scan_before_departure(scan, ready);
        let received = self.receive_from_each(scan, ready);
        self.conclude_departure(received)
    }

    /// Returns how to receive: from all transports while a departure is pending.
    fn scan_before_departure(&mut self, scan: Scan, ready: Ready) -> (Scan, Ready) {
        if !self.core.has_departures() {
            return (scan, ready);
        }
        if scan == Scan::Hot {
            self.now = clock::now();
        }
        (Scan::All, Ready::ALL)
    }

    /// Applies a pending departure if polling all transports has received nothing, or after
    /// [`DATAGRAMS_BEFORE_DEPARTURE`] attempts. Returns true if anything was done.
    fn conclude_departure(&mut self, received: bool) -> bool {
        if !self.core.has_departures() {
            return received;
        }
        self.attempts_before_departure += 1;
        if !received || self.attempts_before_departure > DATAGRAMS_BEFORE_DEPARTURE {
            self.attempts_before_departure = 0;
            self.core.conclude_departure(self.now);
        }
        true
    }

    fn receive_from_each(&mut self, scan: Scan, mut ready: Ready) -> bool {
        let mut received = false;
        self.attempts = self.attempts.wrapping_add(1);
        let polls_all = scan != Scan::Hot || self.attempts.is_multiple_of(ATTEMPTS_PER_ROUND);
        for index in 0..self.transports.len() {
            if !polls_all && index != self.last_receiver && !self.scan_memory[index] {
                continue;
            }
            let scan = if ready == Ready::ALL {
                scan
            } else {
                scan_after_sleep(scan, self.descriptor_counts[index], &mut ready)
            };
            if self.receive_from(index, Receive::Any(scan)) {
                received = true;
                self.last_receiver = index;
            }
        }
        received
    }

    /// Receives at most one datagram from a transport, and passes it to the core. Returns true if
    /// there was one. Reads the clock unless the caller has slept.
    #[inline(always)]
    fn receive_from(&mut self, index: usize, request: Receive) -> bool {
        let frame = match self.transports[index].recv(request) {
            Ok(Some(frame)) => frame,
            Ok(None) => return false,
            Err(_) => {
                self.counters.receive_failures += 1;
                return false;
            }
        };
        if let Receive::Any(Scan::Hot) | Receive::NotUrgent(Scan::Hot) | Receive::Urgent { .. } = request {
            self.now = clock::now();
        }
        let from = Received { source: frame.meta.source, multicast: frame.meta.multicast };
        self.last_priority = priority_of(&self.flows, index, frame.meta.flow);
        self.core.handle_with_buffer(self.now, from, frame.bytes(), frame.shared());
        true
    }

    /// Receives the most urgent datagram with a priority above `than`, from any transport. Returns
    /// true if there was one.
    pub(crate) fn receive_above(&mut self, than: Option<Priority>) -> bool {
        for level in self.urgent.above(than.max(Some(Priority::NORMAL))) {
            for index in 0..self.transports.len() {
                if self.receive_from(index, Receive::Urgent { above: level.get() - 1 }) {
                    return true;
                }
            }
        }
        false
    }

    /// Receives one datagram of normal priority, polling the transports round-robin. Returns true
    /// if there was one. `ready` is as in [`receive`](Self::receive).
    pub(crate) fn receive_not_urgent(&mut self, scan: Scan, ready: Ready) -> bool {
        let waits = self.core.has_departures();
        let (scan, ready) = self.scan_before_departure(scan, ready);
        let received = self.receive_not_urgent_once(scan, ready) || (waits && self.receive_above(None));
        self.conclude_departure(received)
    }

    fn receive_not_urgent_once(&mut self, scan: Scan, ready: Ready) -> bool {
        let (count, first) = (self.transports.len(), self.next_not_urgent);
        self.attempts = self.attempts.wrapping_add(1);
        let polls_all = scan != Scan::Hot || self.attempts.is_multiple_of(ATTEMPTS_PER_ROUND);
        for is_before_first in [false, true] {
            let mut ready = ready;
            for index in 0..count {
                let scan = if ready == Ready::ALL {
                    scan
                } else {
                    scan_after_sleep(scan, self.descriptor_counts[index], &mut ready)
                };
                let is_polled = polls_all || index == self.last_receiver || self.scan_memory[index];
                if (index < first) != is_before_first || !is_polled {
                    continue;
                }
                if self.receive_from(index, Receive::NotUrgent(scan)) {
                    (self.last_receiver, self.next_not_urgent) = (index, (index + 1) % count);
                    return true;
                }
            }
        }
        false
    }

    /// Returns the priority of the last received datagram.
    pub(crate) fn last_priority(&self) -> Priority {
        self.last_priority
    }

    /// Reports whether datagrams with a priority above `than` may arrive at a port of their own.
    #[inline]
    pub(crate) fn receives_above(&self, than: Option<Priority>) -> bool {
        self.urgent.highest() > than.max(Some(Priority::NORMAL))
    }
}

/// Returns how to poll a transport with `count` descriptors after a sleep: without the kernel if
/// none of them is readable. Removes its descriptors from `ready`.
fn scan_after_sleep(scan: Scan, count: usize, ready: &mut Ready) -> Scan {
    let is_quiet = count > 0 && !ready.is_any_of(count);
    *ready = ready.without_first(count);
    if is_quiet { Scan::Taken } else { scan }
}
