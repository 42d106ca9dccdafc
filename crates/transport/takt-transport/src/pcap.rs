//! [`PcapTap`]: a transport wrapper that writes all datagrams to a capture file.
//!
//! The file is a classic pcap with nanosecond time stamps. Every datagram is preceded by the
//! headers of [`crate::packet`], so that any dissector reads it. A [`PcapTap`] uses the link type
//! RAW and shows the datagrams that the participant committed and received (with a TTL of 64 and no
//! DSCP), not those on the wire.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::packet::{Captured, Headers, LinkType};
use crate::trace::{Observer, TraceEvent, Tracer};
use crate::{Transport, TransportError};

/// Transport wrapper that writes all datagrams to a capture file.
pub type PcapTap<T> = Tracer<T, PcapFile>;

impl<T: Transport> PcapTap<T> {
    /// Captures the datagrams of `inner` in a new file of at most `limit_bytes`.
    ///
    /// # Errors
    /// The file cannot be written, or is not a regular one (a pipe without a reader would block the
    /// participant).
    pub fn create(inner: T, path: &Path, limit_bytes: u64) -> Result<Self, TransportError> {
        Ok(Self::new(inner, PcapFile::create(path, LinkType::Raw, limit_bytes)?))
    }
}

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Magic number of captures with nanosecond time stamps.
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const SNAP_LEN: u32 = 262_144;

/// Capture file that is written as datagrams are observed.
///
/// Datagrams beyond the limit, or that cannot be written, are omitted and counted. After a write
/// error, all further ones are omitted.
#[derive(Debug)]
pub struct PcapFile {
    file: BufWriter<File>,
    link: LinkType,
    left_bytes: u64,
    pending: bool,
    recorded: u64,
    omitted: u64,
    failure: Option<io::Error>,
}

impl PcapFile {
    /// Creates a file of at most `limit_bytes`; see [`PcapTap::create`].
    pub fn create(path: &Path, link: LinkType, limit_bytes: u64) -> Result<Self, TransportError> {
        let failed = |e| TransportError::new("create capture file", path.display(), e);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        // Without O_NONBLOCK, opening a pipe waits for its reader.
        let file = options.custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            let why = "not a regular file";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let mut pcap = Self {
            file: BufWriter::with_capacity(1 << 16, file),
            link,
            left_bytes: limit_bytes.saturating_sub(FILE_HEADER as u64),
            pending: true,
            recorded: 0,
            omitted: 0,
            failure: None,
        };
        pcap.file.write_all(&file_header(link)).map_err(failed)?;
        Ok(pcap)
    }

    /// Returns the number of datagrams in the file.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Returns the number of omitted datagrams: file full, an earlier failure, or not representable
    /// with an IP header.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Returns the error that ended writing, if there was one.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Writes the buffered octets to the file. Also called whenever the transport is idle, and on
    /// drop.
    pub fn flush(&mut self) {
        if std::mem::take(&mut self.pending)
            && self.failure.is_none()
            && let Err(error) = self.file.flush()
        {
            self.failure = Some(error);
        }
    }

    /// Writes a datagram, or counts it as omitted.
    pub fn record(&mut self, captured: &Captured<'_>) {
        let headers = Headers::compose(self.link, captured);
        let size = headers.as_ref().map_or(0, |h| h.bytes().len() + captured.datagram.len());
        let needed = (RECORD_HEADER + size) as u64;
        let Some(headers) = headers.filter(|_| needed <= self.left_bytes) else {
            self.omitted += 1;
            return;
        };
        if self.failure.is_some() {
            self.omitted += 1;
            return;
        }
        let mut record = [0; RECORD_HEADER];
        record[..4].copy_from_slice(&(captured.time.as_secs() as u32).to_le_bytes());
        record[4..8].copy_from_slice(&captured.time.subsec_nanos().to_le_bytes());
        record[8..12].copy_from_slice(&(size as u32).to_le_bytes());
        record[12..].copy_from_slice(&(size as u32).to_le_bytes());
        let parts = [&record[..], headers.bytes(), captured.datagram];
        match parts.iter().try_for_each(|part| self.file.write_all(part)) {
            Ok(()) => {
                self.left_bytes -= needed;
                self.pending = true;
                self.recorded += 1;
            }
            Err(error) => {
                self.failure = Some(error);
                self.omitted += 1;
            }
        }
    }
}

impl Observer for PcapFile {
    fn observe(&mut self, event: TraceEvent<'_>) {
        let (source, destination, datagram) = match event {
            TraceEvent::Sent { source, destination, datagram, .. } => (source, destination, datagram),
            TraceEvent::Received { meta, destination, datagram, .. } => (Some(meta.source), destination, datagram),
            TraceEvent::Idle => return self.flush(),
        };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.record(&Captured { time, source, destination, traffic_class: 0, damaged: false, datagram });
    }
}

impl Drop for PcapFile {
    fn drop(&mut self) {
        self.flush();
    }
}

fn file_header(link: LinkType) -> [u8; FILE_HEADER] {
    let mut header = [0; FILE_HEADER];
    header[..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
    header[4..6].copy_from_slice(&2u16.to_le_bytes());
    header[6..8].copy_from_slice(&4u16.to_le_bytes());
    // Time zone and accuracy stay 0.
    header[16..20].copy_from_slice(&SNAP_LEN.to_le_bytes());
    header[20..].copy_from_slice(&link.number().to_le_bytes());
    header
}
