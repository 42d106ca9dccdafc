//! Probes: two interfaces at a switch, of which one sends frames and the other receives them, with
//! kernel timestamps of both.
//!
//! A frame is a UDP datagram between documentation addresses (RFC 5737) with a mark, the number of
//! the run, the number of its stream and a sequence number. Its destination address selects a flow
//! entry.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant as Clock};

use takt_netlink::frame_socket::FrameSocket;
use takt_netlink::interface_index;
use takt_openflow::value::MacAddress;

use super::MeasureError;
use crate::frame::{MacAddress as FrameAddress, UdpFrame};

/// Receive buffer size in octets.
const BUFFER: i32 = 64 << 20;
const MARK: [u8; 4] = *b"takt";
/// Offset of the payload after Ethernet, IPv4 and UDP headers.
const PAYLOAD: usize = 42;
const CHECKSUM: std::ops::Range<usize> = 40..42;
/// Length of the shortest frame in octets.
pub const LEN_MIN: usize = 60;
const PORT: u16 = 9;
const SOURCE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DESTINATION: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Minimum time ahead of schedule from which a sender sleeps for this time; otherwise it polls. RT
/// throttling would stop a real-time thread that polls all the time, together with all other
/// real-time threads of its processor.
const SLEEP: Duration = Duration::from_micros(50);
/// Interval at which the OpenFlow channel is served.
const IDLE: Duration = Duration::from_millis(500);
/// Time after which a missing frame is lost.
const SETTLING: Duration = Duration::from_millis(300);
/// Maximum wait for outstanding frames.
const DRAINING: Duration = Duration::from_secs(20);

/// Frames of one length at a constant interval.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    /// Number of the flow entry.
    pub entry: u8,
    /// Length in octets without FCS.
    pub len: usize,
    /// Interval between two frames; 0: as fast as possible.
    pub period_ns: u64,
    /// Number of frames.
    pub count: u32,
}

impl Stream {
    /// Returns a stream with a rate in bit/s for a time. The rate includes preamble, FCS and
    /// interframe gap.
    pub fn of_rate(entry: u8, len: usize, rate_bps: u64, time: Duration) -> Self {
        let period_ns = (wire_bits(len) * 1_000_000_000 / rate_bps.max(1)).max(1);
        let count = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / period_ns;
        Self { entry, len, period_ns, count: u32::try_from(count).unwrap_or(u32::MAX) }
    }
}

/// Returns the number of bits that a frame occupies on a link.
pub const fn wire_bits(len: usize) -> u64 {
    (len as u64 + 24) * 8
}

/// Timestamps of the frames of a stream in ns since 1970; 0: not seen.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Timestamps at the sending interface.
    pub sent: Vec<u64>,
    /// Timestamps at the receiving interface.
    pub arrived: Vec<u64>,
}

impl Record {
    /// Returns the number of frames that were sent.
    pub fn sent_count(&self) -> usize {
        self.sent.iter().filter(|time| **time > 0).count()
    }

    /// Returns the number of frames that arrived.
    pub fn arrived_count(&self) -> usize {
        self.arrived.iter().filter(|time| **time > 0).count()
    }

    /// Returns the share of frames that did not arrive.
    pub fn lost(&self) -> f64 {
        1.0 - self.arrived_count() as f64 / self.sent_count().max(1) as f64
    }

    /// Returns the transit times of arrived frames, ascending, in ns.
    pub fn delays(&self) -> Vec<u64> {
        let pairs = self.sent.iter().zip(&self.arrived).filter(|(sent, arrived)| **sent > 0 && **arrived > 0);
        let mut delays: Vec<u64> = pairs.map(|(sent, arrived)| arrived.saturating_sub(*sent)).collect();
        delays.sort_unstable();
        delays
    }
}

/// Pair of probes at a switch. See the [module](self).
#[derive(Debug)]
pub struct Probes {
    /// Sending probe.
    near: Probe,
    /// Receiving probe.
    far: Probe,
    run: u32,
}

/// Sockets of an interface.
#[derive(Debug)]
pub struct Probe {
    sender: FrameSocket,
    capture: FrameSocket,
}

/// Returns the destination address of a flow entry.
pub fn address(entry: u8) -> MacAddress {
    MacAddress([2, 0x54, 0x4b, 0x4d, 0, entry])
}

impl Probe {
    /// Opens an interface of this thread's network namespace.
    ///
    /// # Errors
    /// The interface does not exist, or the process has no root privileges.
    pub fn open(interface: &str) -> std::io::Result<Self> {
        let index = interface_index(interface)?;
        Ok(Self { sender: FrameSocket::sender(index)?, capture: FrameSocket::capture(index, BUFFER)? })
    }
}

fn failed(source: std::io::Error) -> MeasureError {
    MeasureError::Os { action: "use the probes".to_owned(), source }
}

impl Probes {
    /// Creates the probes from the sending and the receiving interface.
    pub fn new(near: Probe, far: Probe) -> Self {
        Self { near, far, run: 0 }
    }

    /// Swaps sender and receiver.
    pub(super) fn swap(&mut self) {
        std::mem::swap(&mut self.near, &mut self.far);
    }

    fn frame(&self, stream: &Stream, number: u8) -> Result<Vec<u8>, MeasureError> {
        let mut payload = vec![0; stream.len.max(LEN_MIN) - PAYLOAD];
        payload[..4].copy_from_slice(&MARK);
        payload[4..8].copy_from_slice(&self.run.to_be_bytes());
        payload[8] = number;
        let frame = UdpFrame {
            destination_mac: FrameAddress(address(stream.entry).0),
            source_mac: FrameAddress([2, 0x54, 0x4b, 0x4d, 1, 0]),
            tags: &[],
            source: SocketAddr::from((SOURCE, PORT)),
            destination: SocketAddr::from((DESTINATION, PORT)),
            hop_limit: 64,
            traffic_class: 0,
            payload: &payload,
        };
        let mut frame =
            frame.build().map_err(|_| MeasureError::Switch(format!("a frame cannot have {} octets", stream.len)))?;
        // The checksum is disabled (RFC 768), since the sequence number changes.
        frame[CHECKSUM].fill(0);
        Ok(frame)
    }

    /// Sends streams concurrently and waits for the arrivals. `idle` is called periodically and can
    /// end the run by an error.
    ///
    /// # Errors
    /// An interface is down, frames were not read in time, or `idle` returned an error.
    pub fn run(
        &mut self,
        streams: &[Stream],
        idle: &mut dyn FnMut() -> Result<(), MeasureError>,
    ) -> Result<Vec<Record>, MeasureError> {
        self.run = self.run.wrapping_add(1);
        let mut frames = Vec::new();
        for (number, stream) in (0..).zip(streams) {
            frames.push(self.frame(stream, number)?);
        }
        let records = streams
            .iter()
            .map(|stream| Record { sent: vec![0; stream.count as usize], arrived: vec![0; stream.count as usize] });
        let mut records: Vec<Record> = records.collect();
        let (begin, mut next, mut last_check) = (Clock::now(), vec![0_u32; streams.len()], Clock::now());
        let mut quiet = Clock::now();
        let mut ended: Option<Clock> = None;
        loop {
            let mut due = Duration::MAX;
            for (index, stream) in streams.iter().enumerate() {
                let elapsed = begin.elapsed();
                let at = |number: u32| Duration::from_nanos(u64::from(number) * stream.period_ns);
                if next[index] < stream.count
                    && at(next[index]) <= elapsed
                    && self.send(&mut frames[index], next[index])?
                {
                    next[index] += 1;
                }
                if next[index] < stream.count {
                    due = due.min(at(next[index]).saturating_sub(begin.elapsed()));
                }
            }
            if self.drain(&mut records)? {
                quiet = Clock::now();
            }
            if due == Duration::MAX {
                let ended = *ended.get_or_insert_with(Clock::now);
                if ended.max(quiet).elapsed() > SETTLING || ended.elapsed() > DRAINING {
                    break;
                }
            }
            if last_check.elapsed() > IDLE {
                last_check = Clock::now();
                idle()?;
            }
            if due > SLEEP {
                std::thread::sleep(due.min(SLEEP));
            }
        }
        idle()?;
        match self.near.capture.take_lost().and_then(|near| Ok(near + self.far.capture.take_lost()?)).map_err(failed)? {
            0 => Ok(records),
            lost => {
                Err(MeasureError::Switch(format!("{lost} frames were not read from the probes in time: measure again")))
            }
        }
    }

    /// Sends a frame; returns false if the queue of the interface is full.
    fn send(&self, frame: &mut [u8], number: u32) -> Result<bool, MeasureError> {
        frame[PAYLOAD + 9..PAYLOAD + 13].copy_from_slice(&number.to_be_bytes());
        match self.near.sender.send(frame) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(NO_ROOM) || error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Reads the received timestamps. Reports whether a frame of this run has arrived.
    fn drain(&self, records: &mut [Record]) -> Result<bool, MeasureError> {
        let (mut buffer, mut has_arrived) = ([0; PAYLOAD + 13], false);
        for (socket, is_near) in [(&self.near.capture, true), (&self.far.capture, false)] {
            while let Some(captured) = socket.receive(&mut buffer).map_err(failed)? {
                let Some((stream, number)) = self.mark(&buffer[..captured.len]) else { continue };
                let Some(record) = records.get_mut(stream).filter(|_| captured.is_outgoing == is_near) else {
                    continue;
                };
                let times = if is_near { &mut record.sent } else { &mut record.arrived };
                if let Some(time) = times.get_mut(number).filter(|time| **time == 0) {
                    *time = captured.time_ns;
                    has_arrived |= !is_near;
                }
            }
        }
        Ok(has_arrived)
    }

    /// Returns stream and sequence number of a frame of this run.
    fn mark(&self, frame: &[u8]) -> Option<(usize, usize)> {
        let payload = frame.get(PAYLOAD..PAYLOAD + 13)?;
        let word = |at: usize| payload[at..].first_chunk().map(|octets| u32::from_be_bytes(*octets));
        let is_own = payload[..4] == MARK && word(4)? == self.run;
        is_own.then_some((payload[8].into(), word(9)? as usize))
    }
}

/// ENOBUFS of Linux.
const NO_ROOM: i32 = 105;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_the_rate_on_the_wire_and_records_count_what_is_missing() {
        let stream = Stream::of_rate(1, 1226, 10_000_000, Duration::from_secs(1));
        assert_eq!((stream.period_ns, stream.count), (1_000_000, 1000));
        let record = Record { sent: vec![10, 20, 30, 0], arrived: vec![15, 0, 31, 0] };
        assert_eq!((record.sent_count(), record.arrived_count(), record.delays()), (3, 2, vec![1, 5]));
        assert!((record.lost() - 1.0 / 3.0).abs() < 1e-9);
    }
}
