//! [`PcapTap`]: a transport that writes what passes to a capture file.
//!
//! The file is a classic pcap with nanosecond time stamps and link type RAW:
//! every datagram stands in an IP and a UDP header, composed from what the
//! transport knows (addresses, ports; a TTL of 64, no DSCP), with correct
//! lengths and checksums, so that any dissector reads it. It shows what the
//! participant committed and received, not what the wire carried.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use takt_wire::Locator;

use crate::trace::{Observer, TraceEvent, Tracer};
use crate::{Transport, TransportError};

/// A transport that writes all datagrams that pass to a capture file.
pub type PcapTap<T> = Tracer<T, PcapFile>;

impl<T: Transport> PcapTap<T> {
    /// Captures what passes `inner` in a new file of at most `limit_bytes`.
    ///
    /// Errors: the file cannot be written, or is not a regular one (a pipe
    /// without a reader would stop the participant).
    pub fn create(inner: T, path: &Path, limit_bytes: u64) -> Result<Self, TransportError> {
        Ok(Self::new(inner, PcapFile::create(path, limit_bytes)?))
    }
}

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const UDP_HEADER: usize = 8;
/// Magic number of captures with nanoseconds.
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Records begin with an IP header.
const LINKTYPE_RAW: u32 = 101;
const SNAP_LEN: u32 = 262_144;
const TTL: u8 = 64;
const UDP: u8 = 17;

/// A capture file that is written as datagrams are observed.
///
/// What does not fit any more, or fails to be written, is left out and counted;
/// after a failure nothing more is written.
#[derive(Debug)]
pub struct PcapFile {
    file: BufWriter<File>,
    left_bytes: u64,
    pending: bool,
    recorded: u64,
    omitted: u64,
    failure: Option<io::Error>,
}

impl PcapFile {
    /// A new file of at most `limit_bytes`; see [`PcapTap::create`].
    pub fn create(path: &Path, limit_bytes: u64) -> Result<Self, TransportError> {
        let failed = |e| TransportError::new("create capture file", path.display(), e);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        // Without it, opening a pipe waits for its reader.
        let file = options.custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            let why = "not a regular file";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let mut pcap = Self {
            file: BufWriter::with_capacity(1 << 16, file),
            left_bytes: limit_bytes.saturating_sub(FILE_HEADER as u64),
            pending: true,
            recorded: 0,
            omitted: 0,
            failure: None,
        };
        pcap.file.write_all(&file_header()).map_err(failed)?;
        Ok(pcap)
    }

    /// Datagrams in the file.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Datagrams that are not in the file: no room left, an earlier failure,
    /// or no way to be shown in an IP header.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Why writing has ended early, if it has.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Writes out what is buffered. Also done whenever the transport is idle,
    /// and when this is dropped.
    pub fn flush(&mut self) {
        if std::mem::take(&mut self.pending)
            && self.failure.is_none()
            && let Err(error) = self.file.flush()
        {
            self.failure = Some(error);
        }
    }

    fn record(&mut self, from: Option<Locator>, to: Locator, datagram: &[u8]) {
        let headers = headers(from, to, datagram);
        let size = headers.as_ref().map_or(0, |h| h.len() + datagram.len());
        let needed = (RECORD_HEADER + size) as u64;
        let Some(headers) = headers.filter(|_| needed <= self.left_bytes) else {
            self.omitted += 1;
            return;
        };
        if self.failure.is_some() {
            self.omitted += 1;
            return;
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut record = [0; RECORD_HEADER];
        record[..4].copy_from_slice(&(time.as_secs() as u32).to_le_bytes());
        record[4..8].copy_from_slice(&time.subsec_nanos().to_le_bytes());
        record[8..12].copy_from_slice(&(size as u32).to_le_bytes());
        record[12..].copy_from_slice(&(size as u32).to_le_bytes());
        let parts = [&record[..], headers.bytes(), datagram];
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
        match event {
            TraceEvent::Sent { source, destination, datagram, .. } => self.record(source, destination, datagram),
            TraceEvent::Received { meta, destination, datagram } => {
                self.record(Some(meta.source), destination, datagram)
            }
            TraceEvent::Idle => self.flush(),
        }
    }
}

impl Drop for PcapFile {
    fn drop(&mut self) {
        self.flush();
    }
}

fn file_header() -> [u8; FILE_HEADER] {
    let mut header = [0; FILE_HEADER];
    header[..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
    header[4..6].copy_from_slice(&2u16.to_le_bytes());
    header[6..8].copy_from_slice(&4u16.to_le_bytes());
    // Time zone and accuracy stay 0.
    header[16..20].copy_from_slice(&SNAP_LEN.to_le_bytes());
    header[20..].copy_from_slice(&LINKTYPE_RAW.to_le_bytes());
    header
}

/// An IP and a UDP header.
struct Headers {
    bytes: [u8; 40 + UDP_HEADER],
    len: usize,
}

impl Headers {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// The headers of a datagram; `None` if it cannot be one of UDP. An unknown
/// source is shown as the unspecified address.
fn headers(from: Option<Locator>, to: Locator, datagram: &[u8]) -> Option<Headers> {
    let to = to.socket_addr()?;
    let unspecified = match to.ip() {
        IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        IpAddr::V6(_) => SocketAddr::from(([0u16; 8], 0)),
    };
    let from = from.and_then(|from| from.socket_addr()).unwrap_or(unspecified);
    let udp_len = u16::try_from(UDP_HEADER + datagram.len()).ok()?;
    let mut headers = Headers { bytes: [0; 40 + UDP_HEADER], len: 0 };
    let mut sum = Checksum::default();
    let ip_len = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let h = &mut headers.bytes[..20];
            h[0] = 0x45;
            h[2..4].copy_from_slice(&udp_len.checked_add(20)?.to_be_bytes());
            h[6] = 0x40; // do not fragment
            h[8] = TTL;
            h[9] = UDP;
            h[12..16].copy_from_slice(&from.octets());
            h[16..20].copy_from_slice(&to.octets());
            let mut own = Checksum::default();
            own.add(h);
            h[10..12].copy_from_slice(&own.finish().to_be_bytes());
            sum.add(&h[12..20]);
            20
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let h = &mut headers.bytes[..40];
            h[0] = 0x60;
            h[4..6].copy_from_slice(&udp_len.to_be_bytes());
            h[6] = UDP;
            h[7] = TTL;
            h[8..24].copy_from_slice(&from.octets());
            h[24..40].copy_from_slice(&to.octets());
            sum.add(&h[8..40]);
            40
        }
        _ => return None,
    };
    let h = &mut headers.bytes[ip_len..][..UDP_HEADER];
    h[..2].copy_from_slice(&from.port().to_be_bytes());
    h[2..4].copy_from_slice(&to.port().to_be_bytes());
    h[4..6].copy_from_slice(&udp_len.to_be_bytes());
    // The pseudo header: addresses (above), protocol, length.
    sum.add(&[0, UDP]);
    sum.add(&udp_len.to_be_bytes());
    sum.add(h);
    sum.add(datagram);
    // A sum of zero is sent as its other representation: zero means "none".
    let sum = match sum.finish() {
        0 => 0xffff,
        sum => sum,
    };
    h[6..].copy_from_slice(&sum.to_be_bytes());
    headers.len = ip_len + UDP_HEADER;
    Some(headers)
}

/// The one's complement sum of 16-bit words that IP and UDP use.
#[derive(Default)]
struct Checksum(u64);

impl Checksum {
    /// Adds bytes; an odd number of them only as the last.
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            self.0 += u64::from(u16::from_be_bytes([pair[0], low]));
        }
    }

    fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_right() {
        // RFC 1071 §3 has this example; its sum is ddf2.
        let mut sum = Checksum::default();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn a_whole_packet_sums_up_to_nothing() {
        let v4 = |last| Locator::udp_v4(Ipv4Addr::new(192, 0, 2, last), 7400 + u16::from(last));
        let v6 = |last| Locator::udp_v6([0xfd00, 0, 0, 0, 0, 0, 0, last].into(), 7400 + last);
        for len in [0, 1, 2, 3, 1472, 65_507] {
            let datagram: Vec<u8> = (0..len).map(|i: u32| i as u8).collect();
            let h = headers(Some(v4(1)), v4(2), &datagram).expect("a UDP datagram");
            let mut ip = Checksum::default();
            ip.add(&h.bytes()[..20]);
            assert_eq!(ip.finish(), 0);
            assert_eq!(pseudo_sum(&h, 12..20, 20, &datagram), 0, "{len} bytes");
            let h = headers(Some(v6(1)), v6(2), &datagram).expect("a UDP datagram");
            assert_eq!(pseudo_sum(&h, 8..40, 40, &datagram), 0, "{len} bytes");
        }
    }

    fn pseudo_sum(h: &Headers, addresses: std::ops::Range<usize>, ip: usize, datagram: &[u8]) -> u16 {
        let mut sum = Checksum::default();
        sum.add(&h.bytes()[addresses]);
        sum.add(&[0, UDP]);
        sum.add(&h.bytes()[ip + 4..ip + 6]);
        sum.add(&h.bytes()[ip..]);
        sum.add(datagram);
        sum.finish()
    }

    #[test]
    fn what_is_not_udp_has_no_headers() {
        let shm = Locator { kind: Locator::KIND_SHM, port: 1, address: [0; 16] };
        let v4 = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7411);
        let v6 = Locator::udp_v6(std::net::Ipv6Addr::LOCALHOST, 7411);
        assert!(headers(Some(v4), shm, b"x").is_none());
        assert!(headers(Some(v4), v6, b"x").is_none());
        assert!(headers(None, v4, b"x").is_some());
        assert!(headers(Some(v4), v4, &vec![0; 65_508]).is_none());
    }
}
