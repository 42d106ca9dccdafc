//! FFI to DPDK: the functions of `shim/shim.c`, with owning types that make them safe.
//!
//! A frame ([`Mbuf`]) has one owner: the process until a burst of a port takes it, then the driver.
//! The owner frees it once, by dropping it. Pools are never freed, since a driver or the other end
//! of a ring may hold their frames indefinitely; a pool with all its frames is reused.
//!
//! All `unsafe` code of the crate is here.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use takt_packet::MacAddress;

/// Maximum number of frames in one burst.
pub(crate) const BURST: usize = 32;

#[repr(C)]
struct RawMbuf {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawPool {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawRing {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawInfo {
    mac: [u8; 6],
    mtu: u16,
    frame_len_max: u32,
    driver: [u8; 32],
}

#[repr(C)]
#[derive(Default)]
struct RawStats {
    dropped_in: u64,
    malformed_in: u64,
    refused_out: u64,
}

#[repr(C)]
struct RawPart {
    bytes: *mut u8,
    len: u32,
    room: u32,
    whole_len: u32,
    parts: u32,
}

unsafe extern "C" {
    fn takt_dpdk_version() -> *const c_char;
    fn takt_dpdk_drivers() -> *const c_char;
    fn takt_dpdk_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    fn takt_dpdk_attach(device: *const c_char, name: *const c_char, port: *mut u16, probed: *mut c_int) -> c_int;
    fn takt_dpdk_ring(name: *const c_char, size: u32) -> *mut RawRing;
    fn takt_dpdk_ring_free(ring: *mut RawRing);
    fn takt_dpdk_ring_port(name: *const c_char, from: *mut RawRing, to: *mut RawRing, port: *mut u16) -> c_int;
    fn takt_dpdk_start(port: u16, pool: *mut RawPool, rx: u16, tx: u16, mtu: u16, own: *mut RawInfo) -> c_int;
    fn takt_dpdk_close(port: u16, remove: c_int);
    fn takt_dpdk_promiscuous(port: u16) -> c_int;
    fn takt_dpdk_groups(port: u16, groups: *const [u8; 6], count: u32) -> c_int;
    fn takt_dpdk_link_is_up(port: u16) -> c_int;
    fn takt_dpdk_stats(port: u16, own: *mut RawStats);
    fn takt_dpdk_pool(name: *const c_char, frames: u32, room: u16) -> *mut RawPool;
    fn takt_dpdk_pool_is_whole(pool: *const RawPool) -> c_int;
    fn takt_dpdk_alloc(pool: *mut RawPool) -> *mut RawMbuf;
    fn takt_dpdk_free(frame: *mut RawMbuf);
    fn takt_dpdk_part(frame: *const RawMbuf, part: *mut RawPart);
    fn takt_dpdk_set_len(frame: *mut RawMbuf, len: u16);
    fn takt_dpdk_gather(frame: *const RawMbuf, into: *mut u8, room: u32) -> u32;
    fn takt_dpdk_rx_burst(port: u16, frames: *mut *mut RawMbuf, count: u16) -> u16;
    fn takt_dpdk_tx_burst(port: u16, frames: *mut *mut RawMbuf, count: u16) -> u16;
}

/// Checks a result of the shim: a negative one is a negated errno.
fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result) }
}

/// Returns the version of the library, and the directory of its drivers.
pub(crate) fn library_info() -> (String, String) {
    // SAFETY: both are C strings that are part of the library and of the shim.
    let [version, drivers] = unsafe { [takt_dpdk_version(), takt_dpdk_drivers()].map(|text| CStr::from_ptr(text)) };
    (version.to_string_lossy().into_owned(), drivers.to_string_lossy().into_owned())
}

/// Lock for operations that lock DPDK's own tables, or need a lock that DPDK lacks: ports that come
/// and go, pools, rings.
static TABLES: Mutex<()> = Mutex::new(());

/// Runs an operation that changes DPDK's tables.
fn changing_tables<R>(change: impl FnOnce() -> R) -> R {
    let _guard = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    change()
}

/// Arguments of the environment, which DPDK keeps and whose list it reorders; they live as long as
/// the process. Stored here so that a leak checker finds them.
static ARGUMENTS: AtomicPtr<*mut c_char> = AtomicPtr::new(std::ptr::null_mut());

/// Starts the environment. Only once in a process, on a thread that ends afterwards, because it is
/// bound to one processor.
pub(crate) fn init(arguments: Vec<CString>) -> io::Result<()> {
    let mut pointers: Vec<*mut c_char> = arguments.into_iter().map(CString::into_raw).collect();
    let count = c_int::try_from(pointers.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    pointers.push(std::ptr::null_mut());
    let pointers = Vec::leak(pointers);
    ARGUMENTS.store(pointers.as_mut_ptr(), Ordering::Relaxed);
    // SAFETY: `count` strings that live forever, followed by the null that C expects.
    checked(unsafe { takt_dpdk_init(count, pointers.as_mut_ptr()) }).map(drop)
}

/// Owned frame of one or several parts; dropping it returns it to its pool.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Mbuf(NonNull<RawMbuf>);

// SAFETY: a frame has one owner, and pools accept frames from any thread.
unsafe impl Send for Mbuf {}

impl Drop for Mbuf {
    fn drop(&mut self) {
        // SAFETY: this is the owner, and a frame is freed nowhere else.
        unsafe { takt_dpdk_free(self.0.as_ptr()) }
    }
}

impl Mbuf {
    fn part(&self) -> RawPart {
        let mut part = RawPart { bytes: std::ptr::null_mut(), len: 0, room: 0, whole_len: 0, parts: 0 };
        // SAFETY: the frame is owned, and `part` is valid.
        unsafe { takt_dpdk_part(self.0.as_ptr(), &mut part) };
        part
    }

    /// Returns the octets, if they lie in one part.
    pub(crate) fn contiguous(&self) -> Option<&[u8]> {
        let part = self.part();
        // SAFETY: the first part has `len` octets at `bytes`, which are owned with the frame.
        (part.parts == 1).then(|| unsafe { std::slice::from_raw_parts(part.bytes, part.len as usize) })
    }

    /// Copies the octets of all parts, as far as there is room. Returns the number of copied
    /// octets, and the total number.
    pub(crate) fn gather(&self, into: &mut [u8]) -> (usize, usize) {
        let room = u32::try_from(into.len()).unwrap_or(u32::MAX);
        // SAFETY: the frame is owned, and no more than `room` octets are written.
        let copied = unsafe { takt_dpdk_gather(self.0.as_ptr(), into.as_mut_ptr(), room) };
        (copied as usize, self.part().whole_len as usize)
    }

    /// Returns all room after the headroom for writing. Only for frames from [`Pool::frame`]:
    /// those have one part, whose octets were all written once.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let part = self.part();
        // SAFETY: `room` octets from `bytes` on are within the frame's buffer, which has no other
        // user and which `Pool::new` has filled, so all of it is initialized.
        unsafe { std::slice::from_raw_parts_mut(part.bytes, part.room as usize) }
    }

    /// Sets the length in octets; at most the room.
    pub(crate) fn set_len(&mut self, len: usize) {
        let part = self.part();
        assert!(part.parts == 1 && len <= part.room as usize, "a frame is not longer than its room");
        // SAFETY: the frame is owned, it has one part, and the length was checked. A room has 16
        // bits.
        unsafe { takt_dpdk_set_len(self.0.as_ptr(), len as u16) }
    }
}

/// Pool of frames of one size. Lives as long as the process.
#[derive(Debug)]
pub(crate) struct Pool {
    raw: NonNull<RawPool>,
    frames: u32,
    room: u16,
}

// SAFETY: DPDK's pools support use by several threads.
unsafe impl Send for Pool {}

/// Pools without a port; some of their frames may still be in use.
static RETIRED: Mutex<Vec<Pool>> = Mutex::new(Vec::new());

/// Octets that DPDK reserves at the start of every buffer.
pub(crate) const HEADROOM: u16 = 128;

impl Pool {
    /// Takes a pool of `frames` frames of `room` octets each.
    pub(crate) fn take(frames: u32, room: u16) -> io::Result<Self> {
        let mut retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: pools are never freed.
        let is_whole = |pool: &Pool| unsafe { takt_dpdk_pool_is_whole(pool.raw.as_ptr()) } == 1;
        let fits = |pool: &Pool| (pool.frames, pool.room) == (frames, room) && is_whole(pool);
        if let Some(at) = retired.iter().position(fits) {
            return Ok(retired.swap_remove(at));
        }
        drop(retired);
        Self::new(frames, room)
    }

    fn new(frames: u32, room: u16) -> io::Result<Self> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = CString::new(format!("takt{n}")).expect("digits have no zero octet");
        let with_headroom = room.checked_add(HEADROOM).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the name is a C string, which is copied.
        let raw = changing_tables(|| unsafe { takt_dpdk_pool(name.as_ptr(), frames, with_headroom) });
        let raw = NonNull::new(raw).ok_or(io::ErrorKind::OutOfMemory)?;
        let pool = Self { raw, frames, room };
        // Every octet is written once, so that no uninitialized one is read.
        let all: Vec<Mbuf> = std::iter::from_fn(|| pool.frame()).collect();
        for frame in &all {
            let part = frame.part();
            // SAFETY: a new frame has one part with this room, which is owned.
            unsafe { std::ptr::write_bytes(part.bytes, 0, part.room as usize) };
        }
        Ok(pool)
    }

    /// Returns a free frame without content.
    pub(crate) fn frame(&self) -> Option<Mbuf> {
        // SAFETY: the pool lives as long as the process; the caller owns the returned frame.
        NonNull::new(unsafe { takt_dpdk_alloc(self.raw.as_ptr()) }).map(Mbuf)
    }

    /// Retires the pool, which is reused when all its frames are back.
    pub(crate) fn retire(self) {
        RETIRED.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }
}

/// Pair of rings that connects two ports; freed when both are closed.
#[derive(Debug)]
pub(crate) struct Rings([NonNull<RawRing>; 2]);

// SAFETY: rings support use by two threads, and the last owner frees them.
unsafe impl Send for Rings {}
// SAFETY: as above; there is no access through a shared reference.
unsafe impl Sync for Rings {}

impl Drop for Rings {
    fn drop(&mut self) {
        for ring in self.0 {
            // SAFETY: the ports at both ends are closed, since each has a reference to this value.
            changing_tables(|| unsafe { takt_dpdk_ring_free(ring.as_ptr()) });
        }
    }
}

/// DPDK port, closed on drop.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// Whether this process created the device, and so removes it.
    probed: bool,
    /// Rings of a port that is one end of a pair; released after the port.
    rings: Option<std::sync::Arc<Rings>>,
}

/// Properties of a started port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortInfo {
    pub(crate) mac: MacAddress,
    pub(crate) mtu: usize,
    pub(crate) driver: String,
}

/// Frames that a port lost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PortStats {
    pub(crate) dropped_in: u64,
    pub(crate) malformed_in: u64,
    pub(crate) refused_out: u64,
}

/// Numbers of the ports in use, so that each has one owner.
static IN_USE: Mutex<Vec<u16>> = Mutex::new(Vec::new());

impl Port {
    /// Attaches the port of a device in DPDK's notation: `net_af_packet0,iface=eth0`. Creates the
    /// device if it does not exist.
    pub(crate) fn attach(device: &str) -> io::Result<Self> {
        let name = CString::new(device.split(',').next().unwrap_or(device))?;
        let device = CString::new(device)?;
        let (mut number, mut probed) = (0, 0);
        changing_tables(|| {
            // SAFETY: C strings, and valid references.
            checked(unsafe { takt_dpdk_attach(device.as_ptr(), name.as_ptr(), &mut number, &mut probed) })?;
            Self::claim(number, probed == 1, None)
        })
    }

    fn claim(number: u16, probed: bool, rings: Option<std::sync::Arc<Rings>>) -> io::Result<Self> {
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if in_use.contains(&number) {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another transport of this process uses the port"));
        }
        in_use.push(number);
        Ok(Self { number, probed, rings })
    }

    /// Makes two ports, each of which receives what the other one sends; at most `size` frames, a
    /// power of two, are in transit.
    pub(crate) fn ring_pair(names: [&str; 2], size: u32) -> io::Result<[Self; 2]> {
        let names = [CString::new(names[0])?, CString::new(names[1])?];
        let ring = |name: &CStr| {
            // SAFETY: a C string, which is copied.
            NonNull::new(unsafe { takt_dpdk_ring(name.as_ptr(), size) }).ok_or(io::ErrorKind::OutOfMemory)
        };
        let there = changing_tables(|| ring(&names[0]))?;
        let back = match changing_tables(|| ring(&names[1])) {
            Ok(back) => back,
            Err(why) => {
                // SAFETY: the ring has no other user.
                changing_tables(|| unsafe { takt_dpdk_ring_free(there.as_ptr()) });
                return Err(why.into());
            }
        };
        let rings = std::sync::Arc::new(Rings([there, back]));
        let port = |name: &CStr, from: NonNull<RawRing>, to: NonNull<RawRing>| {
            let mut number = 0;
            changing_tables(|| {
                // SAFETY: a C string; rings that live until both ports are closed, because each has
                // a reference to them.
                checked(unsafe { takt_dpdk_ring_port(name.as_ptr(), from.as_ptr(), to.as_ptr(), &mut number) })?;
                Self::claim(number, true, Some(rings.clone()))
            })
        };
        Ok([port(&names[0], back, there)?, port(&names[1], there, back)?])
    }

    /// Configures and starts the port; received frames are put into frames of this pool.
    pub(crate) fn start(&mut self, pool: &Pool, rx: u16, tx: u16, mtu: Option<u16>) -> io::Result<PortInfo> {
        let mut raw = RawInfo { mac: [0; 6], mtu: 0, frame_len_max: 0, driver: [0; 32] };
        changing_tables(|| {
            // SAFETY: the pool lives as long as the process, and `raw` is valid.
            checked(unsafe { takt_dpdk_start(self.number, pool.raw.as_ptr(), rx, tx, mtu.unwrap_or(0), &mut raw) })
        })?;
        let driver = CStr::from_bytes_until_nul(&raw.driver).unwrap_or_default();
        Ok(PortInfo {
            mac: MacAddress(raw.mac),
            mtu: usize::from(raw.mtu),
            driver: driver.to_string_lossy().into_owned(),
        })
    }

    /// Enables reception of all frames, for any destination, if the device supports it.
    pub(crate) fn promiscuous(&mut self) -> io::Result<()> {
        // SAFETY: the port is owned.
        checked(unsafe { takt_dpdk_promiscuous(self.number) }).map(drop)
    }

    /// Enables reception of frames to these groups.
    pub(crate) fn set_groups(&mut self, groups: &[MacAddress]) {
        let groups: Vec<[u8; 6]> = groups.iter().map(|group| group.0).collect();
        // A device without a filter delivers everything, so every result is acceptable.
        // SAFETY: the port is owned; `groups` has the stated number of addresses, which are copied.
        unsafe { takt_dpdk_groups(self.number, groups.as_ptr(), groups.len() as u32) };
    }

    /// Reports whether the link is up. Some drivers use this call to try to connect.
    pub(crate) fn link_is_up(&self) -> bool {
        // SAFETY: the port is owned.
        unsafe { takt_dpdk_link_is_up(self.number) == 1 }
    }

    pub(crate) fn stats(&self) -> PortStats {
        let mut raw = RawStats::default();
        // SAFETY: the port is owned, and `raw` is valid.
        unsafe { takt_dpdk_stats(self.number, &mut raw) };
        let RawStats { dropped_in, malformed_in, refused_out } = raw;
        PortStats { dropped_in, malformed_in, refused_out }
    }

    /// Receives at most [`BURST`] frames, for which there must be room.
    pub(crate) fn receive(&mut self, into: &mut std::collections::VecDeque<Mbuf>) {
        let mut frames = [std::ptr::null_mut(); BURST];
        // SAFETY: the port is started and exclusively owned; there is room for the stated number of
        // frames.
        let count = unsafe { takt_dpdk_rx_burst(self.number, frames.as_mut_ptr(), BURST as u16) };
        // The driver has handed over the first `count` frames.
        into.extend(frames[..usize::from(count).min(BURST)].iter().filter_map(|frame| NonNull::new(*frame)).map(Mbuf));
    }

    /// Hands over as many of the frames, from the first on, as the driver accepts now, and returns
    /// their number.
    pub(crate) fn transmit(&mut self, frames: &mut Vec<Mbuf>) -> usize {
        let count = u16::try_from(frames.len()).unwrap_or(u16::MAX);
        // An `Mbuf` is a pointer (`repr(transparent)`).
        let list = frames.as_mut_ptr().cast::<*mut RawMbuf>();
        // SAFETY: the port is started and exclusively owned; `count` owned frames, of which the
        // driver owns the returned number from now on.
        let taken = usize::from(unsafe { takt_dpdk_tx_burst(self.number, list, count) });
        frames.drain(..taken.min(frames.len())).for_each(mem::forget);
        taken
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        changing_tables(|| {
            // SAFETY: the port is owned, and nothing uses it afterwards.
            unsafe { takt_dpdk_close(self.number, c_int::from(self.probed)) };
            IN_USE.lock().unwrap_or_else(PoisonError::into_inner).retain(|number| *number != self.number);
        });
        // They take the same lock, so not earlier.
        self.rings.take();
    }
}
