//! [`Capture`]: a pcapng file of the datagrams that the transports of a process send and receive.
//!
//! Each transport is an interface of the file, named after the transport. Datagrams have composed
//! IP and UDP headers. A locator without an IP address, such as one of shared memory, is shown as
//! an IPv6 address of `fd00::/8` with the last 15 octets of the locator. A loaned payload is shown
//! within its DATA, as UDP would carry it. Datagrams are shown as the participant committed and
//! received them, not as they are on the wire, and at most [`DATAGRAM_LEN_MAX`] octets of each.
//!
//! A thread writes the file, so that the data path does not wait for a disk. Bounds:
//! [`BUFFER_BYTES`] wait for the thread, and the file has a maximum length. Datagrams beyond a
//! bound are dropped and counted. The counts are in the file, and in a [`CaptureSummary`].

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use takt_wire::{Locator, PAYLOAD_PREFIX_LEN, SharedPayload};

use crate::packet::{Captured, Headers, LinkType};
use crate::pcapng::{self, Direction, InterfaceCounts, PacketInfo};
use crate::trace::{Observer, TraceEvent, Tracer};
use crate::{Transport, TransportError};

/// Maximum number of octets that wait for the thread.
const BUFFER_BYTES: usize = 8 << 20;
/// Octets from which on the thread is woken before the end of its period.
const WAKE_BYTES: usize = 1 << 20;
/// Period at which the thread writes.
const PERIOD: Duration = Duration::from_millis(100);
/// Maximum number of octets of a datagram: the limit of UDP over IPv4.
const DATAGRAM_LEN_MAX: usize = 65_507;
/// Octets reserved in the file for the counters of an interface.
const STATISTICS_LEN: usize = 64;
/// Length of an RTPS message header, and of a submessage header (RTPS 2.5 §9.4.4, §9.4.5.1).
const HEADER_LEN: usize = 20;
const SUBMESSAGE_HEADER_LEN: usize = 4;
const DATA: u8 = 0x15;

/// Result of a capture.
#[derive(Debug)]
pub struct CaptureSummary {
    /// Captured file.
    pub path: PathBuf,
    /// Datagrams in the file.
    pub packets: u64,
    /// Datagrams that are not in the file because the thread was too slow.
    pub dropped_by_buffer: u64,
    /// Datagrams that are not in the file because it had its maximum length, or because it could
    /// not be written.
    pub dropped_by_file: u64,
    /// Datagrams in the file of which octets are missing.
    pub truncated: u64,
    /// Error that ended writing.
    pub failure: Option<io::Error>,
}

/// Handle of a capture file. The last handle writes the counts and closes the file.
///
/// All captures of a process to the same path share one file.
pub struct Capture {
    path: PathBuf,
    shared: Arc<Shared>,
}

/// Capture files of this process. A file that is not open any more is continued with a new section.
static FILES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

struct Entry {
    path: PathBuf,
    open: Option<OpenFile>,
}

struct OpenFile {
    handles: usize,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
    report: Report,
}

type Report = Box<dyn FnOnce(&CaptureSummary) + Send>;

/// State that taps and thread share.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Blocks that wait for the thread. The capacity is reserved.
    pending: Vec<u8>,
    /// Octets that the file can still grow by.
    left_bytes: u64,
    interfaces: Vec<InterfaceCounts>,
    packets: u64,
    dropped_by_buffer: u64,
    dropped_by_file: u64,
    truncated: u64,
    failure: Option<io::Error>,
    is_closing: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Capture {
    /// Opens a capture file of at most `bytes_max` octets, or shares it with the captures of this
    /// process that have it open. `{pid}` in the path is replaced by the process ID. The last
    /// handle calls the `report` of the first one.
    ///
    /// # Errors
    /// The file cannot be written, is not a regular one, or another process writes it.
    pub fn open(
        path: &str,
        bytes_max: u64,
        report: impl FnOnce(&CaptureSummary) + Send + 'static,
    ) -> Result<Self, TransportError> {
        let path = PathBuf::from(path.replace("{pid}", &std::process::id().to_string()));
        let path = std::path::absolute(&path).unwrap_or(path);
        let failed = |source| TransportError::new("create capture file", path.display(), source);
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = files.iter().position(|entry| entry.path == path);
        if let Some(open) = known.and_then(|index| files[index].open.as_mut()) {
            open.handles += 1;
            let shared = Arc::clone(&open.shared);
            return Ok(Self { path, shared });
        }
        let file = create(&path, known.is_some()).map_err(failed)?;
        let written = file.metadata().map_err(failed)?.len();
        let mut pending = Vec::with_capacity(BUFFER_BYTES);
        pcapng::section_header(&mut pending, concat!("takt ", env!("CARGO_PKG_VERSION")));
        let left_bytes = bytes_max.saturating_sub(written + pending.len() as u64);
        let state = State { pending, left_bytes, ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let writer = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("takt-capture".to_owned());
        let thread = thread.spawn(move || write(&writer, file)).map_err(failed)?;
        let report: Report = Box::new(report);
        let open = Some(OpenFile { handles: 1, shared: Arc::clone(&shared), thread, report });
        match known {
            Some(index) => files[index].open = open,
            None => files.push(Entry { path: path.clone(), open }),
        }
        Ok(Self { path, shared })
    }

    /// Captures the datagrams of a transport of a participant. `description` says which participant
    /// it belongs to. Allocates.
    #[must_use]
    pub fn tap(self: &Arc<Self>, transport: Box<dyn Transport>, description: &str) -> Box<dyn Transport> {
        let mut state = self.shared.lock();
        let before = state.pending.len();
        pcapng::interface(&mut state.pending, LinkType::Raw, transport.capabilities().name, description);
        let used = (state.pending.len() - before + STATISTICS_LEN) as u64;
        state.left_bytes = state.left_bytes.saturating_sub(used);
        let interface = state.interfaces.len() as u32;
        state.interfaces.push(InterfaceCounts::default());
        drop(state);
        let spliced = Vec::with_capacity(DATAGRAM_LEN_MAX);
        Box::new(Tracer::new(transport, Tap { capture: Arc::clone(self), interface, spliced }))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = files.iter_mut().find(|entry| entry.path == self.path) else { return };
        let Some(open) = entry.open.as_mut() else { return };
        open.handles -= 1;
        if open.handles > 0 {
            return;
        }
        let Some(OpenFile { shared, thread, report, .. }) = entry.open.take() else { return };
        shared.lock().is_closing = true;
        shared.changed.notify_one();
        let has_panicked = thread.join().is_err();
        let mut state = shared.lock();
        let failure = state.failure.take().or_else(|| has_panicked.then(|| io::Error::other("the thread panicked")));
        let summary = CaptureSummary {
            path: self.path.clone(),
            packets: state.packets,
            dropped_by_buffer: state.dropped_by_buffer,
            dropped_by_file: state.dropped_by_file,
            truncated: state.truncated,
            failure,
        };
        drop(state);
        report(&summary);
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Creates the file, or continues the one that this process has written.
fn create(path: &Path, is_continued: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Without O_NONBLOCK, opening a pipe waits for its reader.
    let file = options.append(true).create(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let is_locked = file.try_lock().is_err();
    if is_locked {
        let why = "another process writes it; put {pid} into the file name";
        return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
    }
    if !is_continued {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Writes the pending blocks until the capture is closed.
fn write(shared: &Shared, mut file: File) {
    let mut taken = Vec::with_capacity(BUFFER_BYTES);
    loop {
        let mut state = shared.lock();
        while state.pending.is_empty() && !state.is_closing {
            state = shared.changed.wait_timeout(state, PERIOD).unwrap_or_else(PoisonError::into_inner).0;
        }
        let is_closing = state.is_closing;
        if is_closing {
            let state = &mut *state;
            for (interface, counts) in state.interfaces.iter().enumerate() {
                pcapng::interface_statistics(&mut state.pending, interface as u32, now(), counts);
            }
        }
        std::mem::swap(&mut state.pending, &mut taken);
        let has_failed = state.failure.is_some();
        drop(state);
        if !has_failed && let Err(error) = file.write_all(&taken) {
            shared.lock().failure = Some(error);
        }
        taken.clear();
        if is_closing {
            // A process that is being started may still hold the descriptor, and the lock with it.
            if let Err(error) = file.unlock() {
                shared.lock().failure.get_or_insert(error);
            }
            return;
        }
        let state = shared.lock();
        if state.pending.len() < WAKE_BYTES && !state.is_closing {
            drop(shared.changed.wait_timeout(state, PERIOD));
        }
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Observer that appends the datagrams of one transport.
struct Tap {
    capture: Arc<Capture>,
    interface: u32,
    /// Datagram with its loaned payload. The capacity is reserved.
    spliced: Vec<u8>,
}

impl Observer for Tap {
    fn observe(&mut self, event: TraceEvent<'_>) {
        let (source, destination, datagram, payload, direction) = match event {
            TraceEvent::Sent { source, destination, datagram, payload, .. } => {
                (source, destination, datagram, payload, Direction::Outbound)
            }
            TraceEvent::Received { meta, destination, datagram, payload } => {
                (Some(meta.source), destination, datagram, payload, Direction::Inbound)
            }
            TraceEvent::Idle => return,
        };
        let original_len = match payload {
            Some(payload) => splice(datagram, payload, &mut self.spliced),
            None => datagram.len(),
        };
        let datagram = if payload.is_some() { &self.spliced } else { datagram };
        let datagram = &datagram[..datagram.len().min(DATAGRAM_LEN_MAX)];
        let destination = as_udp(destination);
        // Both addresses must be of one IP version.
        let known = source.filter(|source| source.kind != Locator::KIND_INVALID);
        let source = known.map(as_udp).filter(|source| source.kind == destination.kind);
        let time = now();
        let captured = Captured { time, source, destination, traffic_class: 0, damaged: false, datagram };
        let headers = Headers::compose(LinkType::Raw, &captured);
        let parts = headers.as_ref().map(|headers| [headers.bytes(), datagram]);
        let is_truncated = original_len > datagram.len();
        let original_len = headers.as_ref().map_or(0, |headers| headers.bytes().len()) + original_len;
        let info = PacketInfo { interface: self.interface, time, original_len, direction };
        let has_work = self.capture.shared.lock().record(&info, parts.as_ref(), is_truncated);
        if has_work {
            self.capture.shared.changed.notify_one();
        }
    }
}

impl State {
    /// Appends a packet, or counts it as dropped. Reports whether the thread should be woken.
    fn record(&mut self, info: &PacketInfo, parts: Option<&[&[u8]; 2]>, is_truncated: bool) -> bool {
        let counts = &mut self.interfaces[info.interface as usize];
        counts.received += 1;
        let len = pcapng::packet_block_len(parts.map_or(0, |[headers, datagram]| headers.len() + datagram.len()));
        let Some(parts) = parts.filter(|_| self.failure.is_none() && len as u64 <= self.left_bytes) else {
            counts.dropped += 1;
            self.dropped_by_file += 1;
            return false;
        };
        let pending = self.pending.len();
        if pending + len > BUFFER_BYTES {
            counts.dropped += 1;
            self.dropped_by_buffer += 1;
            return false;
        }
        pcapng::packet(&mut self.pending, info, parts);
        self.left_bytes -= len as u64;
        self.packets += 1;
        self.truncated += u64::from(is_truncated);
        pending < WAKE_BYTES && pending + len >= WAKE_BYTES
    }
}

/// Returns a locator that has an IP address and a UDP port: the locator itself for UDP and TCP.
fn as_udp(locator: Locator) -> Locator {
    // Port 0 has no socket address; a source that is not known has it.
    let port = if locator.port as u16 == 0 { 1 } else { u32::from(locator.port as u16) };
    match locator.kind {
        Locator::KIND_UDP_V4 | Locator::KIND_TCP_V4 => Locator { kind: Locator::KIND_UDP_V4, port, ..locator },
        Locator::KIND_UDP_V6 | Locator::KIND_TCP_V6 => Locator { kind: Locator::KIND_UDP_V6, port, ..locator },
        _ => {
            let mut address = locator.address;
            address[0] = 0xfd;
            Locator { kind: Locator::KIND_UDP_V6, port, address }
        }
    }
}

/// Copies a datagram to `spliced`, with the loaned payload in place of its first octets in the
/// DATA. Cuts the payload where `spliced` is full. Returns the length without the cut.
fn splice(datagram: &[u8], payload: &SharedPayload, spliced: &mut Vec<u8>) -> usize {
    spliced.clear();
    let missing = payload.len().saturating_sub(PAYLOAD_PREFIX_LEN);
    let Some((data, data_end)) = data_submessage(datagram) else {
        spliced.extend_from_slice(datagram);
        return datagram.len() + missing;
    };
    let (head, tail) = datagram.split_at(data_end);
    spliced.extend_from_slice(head);
    let room = DATAGRAM_LEN_MAX.saturating_sub(datagram.len());
    let copied = missing.min(room);
    spliced.resize(data_end + copied, 0);
    payload.copy_to(PAYLOAD_PREFIX_LEN, &mut spliced[data_end..]);
    spliced.extend_from_slice(tail);
    // A DATA with its length continues at the next submessage; one of length 0 ends the message.
    let len = u16::try_from(data_end - data - SUBMESSAGE_HEADER_LEN + missing).ok().filter(|_| copied == missing); // tidy-allow(dropped-cause): too long for the field
    let len = len.unwrap_or(0);
    let is_little_endian = datagram[data + 1] & 1 == 1;
    let len = if is_little_endian { len.to_le_bytes() } else { len.to_be_bytes() };
    spliced[data + 2..data + 4].copy_from_slice(&len);
    datagram.len() + missing
}

/// Returns the offsets of the DATA of a message, and of its end.
fn data_submessage(datagram: &[u8]) -> Option<(usize, usize)> {
    let mut at = HEADER_LEN;
    while let Some(&[kind, flags, a, b]) = datagram.get(at..)?.first_chunk() {
        let len = usize::from(if flags & 1 == 1 { u16::from_le_bytes([a, b]) } else { u16::from_be_bytes([a, b]) });
        let end = if len == 0 && kind == DATA { datagram.len() } else { at + SUBMESSAGE_HEADER_LEN + len };
        if kind == DATA {
            return (end <= datagram.len()).then_some((at, end));
        }
        at = end;
    }
    None
}
