//! [`DpdkPort`]: sends and receives frames at one DPDK port, in bursts.
//!
//! The loaned frame is an mbuf, which the driver gets without a copy. A received frame is loaned
//! where the driver put it; one of several parts is copied together first. A frame to a joined
//! group or to the own address also returns by an internal queue, since no device returns it: to
//! the own address the frame itself, to a group a copy.
//!
//! Bounds: a call of `recv` takes at most one burst. A flush drops and counts frames that the
//! driver does not accept after [`SEND_ATTEMPTS_MAX`] attempts. Offloads are not used: the caller
//! computes checksums in software.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use takt_packet::{EthernetFrame, EthernetHeader, MacAddress};
use takt_transport::ethernet::{FramePort, FramePortStats};
use takt_transport::{Interface, Scan, TransportError, Warning};

use crate::config::DpdkConfig;
use crate::eal;
use crate::ffi::{BURST, Mbuf, Pool, Port};

/// Maximum number of attempts to hand over a burst of which the driver accepts nothing.
const SEND_ATTEMPTS_MAX: u32 = 64;

/// Maximum number of waiting frames to the own address.
const LOOPBACK_QUEUE_LEN: usize = 256;

/// Maximum MTU.
const MTU_MAX: u16 = 9_216;

/// Octets of the frames of a pool, for an MTU of up to 1,500 and for larger ones. Hardware drivers
/// require multiples of 1,024.
const ROOM_SMALL: u16 = 2_048;
const ROOM_LARGE: u16 = 10_240;

/// Number of frames with which `net_af_xdp` fills its own ring, however few are requested.
const AF_XDP_FRAMES: u16 = 2_048;

/// Maximum interval between checks of a link that is down.
const PERIOD_DOWN: Duration = Duration::from_millis(10);

/// Number of empty calls between two reads of the clock.
const CLOCK_INTERVAL: u32 = 64;

/// Frames that a port carried, and those that it lost, by reason. Cumulative since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DpdkCounters {
    /// Frames taken from the driver.
    pub frames_in: u64,
    /// Frames of several parts among them, which were copied together.
    pub gathered_in: u64,
    /// Frames among them for other hardware addresses or groups, which were dropped.
    pub not_addressed_in: u64,
    /// Frames that the driver accepted.
    pub frames_out: u64,
    /// Frames to the own address, and returned copies of frames to groups.
    pub loopback: u64,
    /// Returned frames that were lost, because there was no frame or no room in the queue.
    pub loopback_lost: u64,
    /// Frames that the driver did not accept in time.
    pub refused_out: u64,
    /// Frames that were sent while the link was down, and lost.
    pub link_down_out: u64,
    /// Frames that were not sent because no frame was free.
    pub no_frame_out: u64,
    /// Number of times that the link went down.
    pub link_losses: u64,
}

/// DPDK port with one queue in each direction.
#[derive(Debug)]
pub struct DpdkPort {
    port: Port,
    /// Pools of receive frames and of transmit frames. `drop` takes them.
    pools: Option<[Pool; 2]>,
    driver: String,
    interface: Interface,
    mac: MacAddress,
    promiscuous: bool,
    groups: Vec<MacAddress>,
    /// Frame that is written next.
    loan: Mbuf,
    out: Vec<Mbuf>,
    received: VecDeque<Mbuf>,
    loopback: VecDeque<Mbuf>,
    /// Current received frame, and its length if it lies in `gathered`.
    current: Option<Mbuf>,
    gathered: Box<[u8]>,
    gathered_len: Option<usize>,
    link: Link,
    counters: DpdkCounters,
    truncated: u64,
    in_place_out: u64,
    /// Has capacity for the next warning.
    warnings: Vec<Warning>,
    /// Warning while the link is down; allocated in advance.
    link_warning: Option<Warning>,
}

/// State of the link, checked periodically.
#[derive(Debug)]
struct Link {
    is_up: bool,
    period: Duration,
    checked_at: Instant,
    calls: u32,
}

impl DpdkPort {
    /// Starts DPDK's environment, if this is the first port of the process, attaches the device and
    /// starts it. Devices that belong to a network namespace use that of the calling thread.
    /// Allocates; afterwards only `join` and `leave` do.
    ///
    /// # Errors
    /// The environment does not start, with DPDK's reason (it also writes to standard error); the
    /// device does not exist or belongs to another transport; the environment has no memory left.
    pub fn open(config: &DpdkConfig) -> Result<Self, TransportError> {
        let is_ours = eal::start(&config.eal)?;
        let failed = |source| TransportError::new("attach", format_args!("DPDK device {}", config.device), source);
        let port = Port::attach(&config.device).map_err(failed)?;
        Self::start(config, port, is_ours)
    }

    /// Makes two connected ports of `net_ring`: each receives what the other one sends. Their names
    /// are `near.device` followed by `a` and `b`. At most 1,024 frames are in transit in each
    /// direction.
    pub fn ring_pair(near: &DpdkConfig, far: &DpdkConfig) -> Result<[Self; 2], TransportError> {
        let is_ours = eal::start(&near.eal)?;
        let names = ["a", "b"].map(|end| format!("{}{end}", near.device));
        let failed = |source| TransportError::new("make", format_args!("the rings {}", near.device), source);
        let [a, b] = Port::ring_pair([&names[0], &names[1]], 1024).map_err(failed)?;
        Ok([Self::start(near, a, is_ours)?, Self::start(far, b, is_ours)?])
    }

    fn start(config: &DpdkConfig, mut port: Port, is_ours: bool) -> Result<Self, TransportError> {
        let failed = |op| move |source| TransportError::new(op, format_args!("DPDK device {}", config.device), source);
        let mtu = requested_mtu(config).map_err(failed("open"))?;
        let [incoming, pool] = pools(config, mtu).map_err(failed("allocate frames for"))?;
        let info = match port.start(&incoming, config.rx_frames, config.tx_frames, config.mtu) {
            Ok(info) => info,
            Err(why) => {
                drop(port);
                [incoming, pool].into_iter().for_each(Pool::retire);
                return Err(failed("start")(why));
            }
        };
        let mac = config.mac.unwrap_or(if info.mac == MacAddress::default() { random_address() } else { info.mac });
        let mut warnings = Vec::with_capacity(3);
        let is_promiscuous = config.promiscuous || mac != info.mac;
        // A ring delivers all frames in any case.
        if is_promiscuous && port.promiscuous().is_err() && info.driver != "net_ring" {
            warnings.push(Warning {
                what: format!("{} may drop frames to addresses other than {}", config.device, info.mac),
                remedy: "use the hardware address of the device".into(),
            });
        }
        if !is_ours {
            warnings.push(Warning {
                what: "DPDK already runs in this process with other arguments, which stay in effect".into(),
                remedy: "use the same EAL arguments for all ports of a process".into(),
            });
        }
        // The setting of the device may exceed a small frame.
        let mtu = info.mtu.min(usize::from(if config.mtu.is_some() { mtu } else { 1_500 }));
        let loan = pool.frame().ok_or_else(|| failed("open")(io::ErrorKind::OutOfMemory.into()))?;
        let mut own = Self {
            driver: info.driver,
            interface: Interface {
                name: config.device.clone(),
                index: 0,
                addresses: Vec::new(),
                mtu,
                loopback: false,
                multicast: true,
            },
            mac,
            promiscuous: config.promiscuous,
            groups: Vec::new(),
            loan,
            out: Vec::with_capacity(BURST),
            received: VecDeque::with_capacity(BURST),
            loopback: VecDeque::with_capacity(LOOPBACK_QUEUE_LEN),
            current: None,
            gathered: vec![0; EthernetHeader::LEN_MAX + mtu].into(),
            gathered_len: None,
            link: Link { is_up: true, period: config.link_period, checked_at: Instant::now(), calls: 0 },
            counters: DpdkCounters::default(),
            truncated: 0,
            in_place_out: 0,
            warnings,
            link_warning: Some(Warning {
                what: format!("the link of {} is down: sent frames are lost", config.device),
                remedy: "check the cable and the other end".into(),
            }),
            port,
            pools: Some([incoming, pool]),
        };
        own.check_link();
        own.counters.link_losses = 0;
        Ok(own)
    }

    /// Returns the name of the driver: `net_af_packet`.
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// Returns the counters.
    pub fn counters(&self) -> DpdkCounters {
        self.counters
    }

    /// Reports whether the link was up at the last check, at most `link_period` before the last
    /// call. Frames sent while it is down are lost. Drivers without a link of their own, such as
    /// `net_af_packet`, always report that it is up.
    pub fn link_is_up(&self) -> bool {
        self.link.is_up
    }

    /// Checks the link now. Some drivers (`net_memif`) connect only by this.
    pub fn check_link(&mut self) -> bool {
        let is_up = self.port.link_is_up();
        if self.link.is_up && !is_up {
            self.counters.link_losses += 1;
            self.warnings.extend(self.link_warning.take());
        } else if !self.link.is_up && is_up {
            // It was added last.
            self.link_warning = self.warnings.pop();
        }
        if is_up && self.received.is_empty() {
            // A client of `net_memif` must poll once before the other end has memory to send into.
            self.take_burst();
        }
        self.link.is_up = is_up;
        self.link.checked_at = Instant::now();
        self.link.calls = 0;
        is_up
    }

    /// Returns the interface, for owners that set its addresses.
    pub(crate) fn interface_mut(&mut self) -> &mut Interface {
        &mut self.interface
    }

    /// Returns the pool of transmit frames.
    fn pool(&self) -> &Pool {
        let [_, outgoing] = self.pools.as_ref().expect("the pools are released only at the end");
        outgoing
    }

    /// Takes a free frame; flushes first if none is free.
    fn frame(&mut self) -> Option<Mbuf> {
        let frame = self.pool().frame();
        if frame.is_some() {
            return frame;
        }
        self.transmit_queued();
        let frame = self.pool().frame();
        if frame.is_none() {
            self.counters.no_frame_out += 1;
        }
        frame
    }

    /// Queues a frame for sending, for return to this port, or for both.
    fn queue(&mut self, frame: Mbuf) {
        let Some(to) = frame.contiguous().and_then(EthernetFrame::destination) else {
            return;
        };
        if to == self.mac {
            self.return_to_self(frame);
            return;
        }
        if self.groups.contains(&to) {
            match self.copy_of(&frame) {
                Some(copy) => self.return_to_self(copy),
                None => self.counters.loopback_lost += 1,
            }
        }
        if !self.link.is_up {
            self.counters.link_down_out += 1;
            return;
        }
        self.out.push(frame);
        if self.out.len() == BURST {
            self.transmit_queued();
        }
    }

    /// Queues a frame to the own address.
    fn return_to_self(&mut self, frame: Mbuf) {
        if self.loopback.len() == LOOPBACK_QUEUE_LEN {
            self.counters.loopback_lost += 1;
            return;
        }
        self.counters.loopback += 1;
        self.loopback.push_back(frame);
    }

    fn copy_of(&mut self, frame: &Mbuf) -> Option<Mbuf> {
        let mut copy = self.frame()?;
        let bytes = frame.contiguous()?;
        copy.room().get_mut(..bytes.len())?.copy_from_slice(bytes);
        copy.set_len(bytes.len());
        Some(copy)
    }

    /// Hands over the queued frames to the driver; frames that it does not accept are lost.
    fn transmit_queued(&mut self) {
        let mut idle = 0;
        while !self.out.is_empty() && idle < SEND_ATTEMPTS_MAX {
            match self.port.transmit(&mut self.out) {
                0 => {
                    idle += 1;
                    std::hint::spin_loop();
                }
                accepted => {
                    idle = 0;
                    self.counters.frames_out += accepted as u64;
                }
            }
        }
        self.counters.refused_out += self.out.len() as u64;
        self.out.clear();
    }

    /// Checks the link when its interval has elapsed.
    fn check_link_if_due(&mut self, scan: Scan) {
        self.link.calls += 1;
        let is_due = scan == Scan::All || self.link.calls >= CLOCK_INTERVAL;
        let period = if self.link.is_up { self.link.period } else { self.link.period.min(PERIOD_DOWN) };
        if is_due && self.link.checked_at.elapsed() >= period {
            self.check_link();
        }
        if self.link.calls >= CLOCK_INTERVAL {
            self.link.calls = 0;
        }
    }

    fn take_burst(&mut self) {
        self.port.receive(&mut self.received);
        self.counters.frames_in += self.received.len() as u64;
    }

    /// Reports whether this port accepts frames to this address.
    fn accepts(&self, to: MacAddress) -> bool {
        self.promiscuous || to == self.mac || to == MacAddress::BROADCAST || self.groups.contains(&to)
    }

    /// Returns the next frame of the driver that this port accepts.
    fn next(&mut self) -> Option<Mbuf> {
        if self.received.is_empty() {
            self.take_burst();
        }
        while let Some(frame) = self.received.pop_front() {
            self.gathered_len = None;
            let to = match frame.contiguous() {
                Some(bytes) => EthernetFrame::destination(bytes),
                None => {
                    self.counters.gathered_in += 1;
                    let (copied, len) = frame.gather(&mut self.gathered);
                    if copied < len {
                        self.truncated += 1;
                        continue;
                    }
                    self.gathered_len = Some(len);
                    EthernetFrame::destination(&self.gathered[..len])
                }
            };
            if to.is_some_and(|to| self.accepts(to)) {
                return Some(frame);
            }
            self.counters.not_addressed_in += 1;
        }
        self.gathered_len = None;
        None
    }
}

/// Returns the MTU that the configuration requests, or that of Ethernet.
fn requested_mtu(config: &DpdkConfig) -> io::Result<u16> {
    let mtu = config.mtu.unwrap_or(1_500);
    if !(64..=MTU_MAX).contains(&mtu) {
        let why = format!("MTU {mtu}: expected 64 to {MTU_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(mtu)
}

/// Takes the pools of receive frames and of transmit frames.
fn pools(config: &DpdkConfig, mtu: u16) -> io::Result<[Pool; 2]> {
    let room = if mtu <= 1_500 { ROOM_SMALL } else { ROOM_LARGE };
    let least = if config.device.starts_with("net_af_xdp") { AF_XDP_FRAMES } else { 0 };
    // Receive: full rings, the taken burst and the loaned frame. Transmit: full rings, the queued
    // burst and the returned frames. And half as much for frames that drivers keep.
    let incoming = (u32::from(config.rx_frames.max(least)) + 2 * BURST as u32) * 3 / 2;
    let outgoing = (u32::from(config.tx_frames) + (LOOPBACK_QUEUE_LEN + 2 * BURST) as u32) * 3 / 2;
    Ok([Pool::take(incoming, config.rx_room.unwrap_or(room))?, Pool::take(outgoing, room)?])
}

/// Returns a random, locally administered address.
fn random_address() -> MacAddress {
    let [a, b, c, d, e, f, ..] = RandomState::new().hash_one(std::process::id()).to_ne_bytes();
    MacAddress([a & 0xfc | 0x02, b, c, d, e, f])
}

impl FramePort for DpdkPort {
    fn name(&self) -> &'static str {
        "dpdk"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn mac(&self) -> MacAddress {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.interface.mtu
    }

    fn loan(&mut self) -> &mut [u8] {
        let len = EthernetHeader::LEN_MAX + self.interface.mtu;
        &mut self.loan.room()[..len]
    }

    fn send(&mut self, len: usize) -> bool {
        let Some(next) = self.frame() else {
            return false;
        };
        self.loan.set_len(len);
        let frame = std::mem::replace(&mut self.loan, next);
        self.in_place_out += 1;
        self.queue(frame);
        true
    }

    fn send_copy(&mut self, len: usize) -> bool {
        self.loan.set_len(len);
        let Some(mut copy) = self.frame() else {
            return false;
        };
        let frame_len = EthernetHeader::LEN_MAX + self.interface.mtu;
        copy.room()[..frame_len].copy_from_slice(&self.loan.room()[..frame_len]);
        let frame = std::mem::replace(&mut self.loan, copy);
        self.queue(frame);
        true
    }

    fn flush(&mut self) -> io::Result<()> {
        self.transmit_queued();
        Ok(())
    }

    fn recv(&mut self, scan: Scan) -> io::Result<bool> {
        self.current = None;
        self.gathered_len = None;
        let found = self.loopback.pop_front().or_else(|| self.next());
        if found.is_none() && scan != Scan::Taken {
            self.check_link_if_due(scan);
        }
        self.current = found;
        Ok(self.current.is_some())
    }

    fn received(&self) -> &[u8] {
        match (&self.current, self.gathered_len) {
            (Some(_), Some(len)) => &self.gathered[..len],
            (Some(frame), None) => frame.contiguous().unwrap_or_default(),
            (None, _) => &[],
        }
    }

    fn listen_at(&mut self, _: u16) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _: u16) {}

    fn join(&mut self, group: MacAddress) -> io::Result<()> {
        if !self.groups.contains(&group) {
            self.groups.push(group);
            self.port.set_groups(&self.groups);
        }
        Ok(())
    }

    fn leave(&mut self, group: MacAddress) {
        self.groups.retain(|joined| *joined != group);
        self.port.set_groups(&self.groups);
    }

    fn descriptors(&self) -> &[RawFd] {
        &[]
    }

    fn scans_memory(&self) -> bool {
        true
    }

    fn stats(&self) -> FramePortStats {
        let driver = self.port.stats();
        let own = &self.counters;
        FramePortStats {
            dropped_in: driver.dropped_in + own.loopback_lost,
            truncated: self.truncated,
            malformed: driver.malformed_in,
            refused_out: driver.refused_out + own.refused_out + own.link_down_out,
            in_place_out: self.in_place_out,
        }
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl Drop for DpdkPort {
    fn drop(&mut self) {
        // The driver returns its frames when the port is closed, which happens later; a pool is
        // reused only when it has all its frames.
        self.pools.take().into_iter().flatten().for_each(Pool::retire);
    }
}
