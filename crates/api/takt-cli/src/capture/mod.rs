//! `takt capture`: writes the RTPS traffic of network interfaces to a pcapng file.
//!
//! The kernel copies frames to a buffer of [`BUFFER_BYTES`] per interface; frames that do not fit
//! are dropped and counted. Traffic that passes no interface, of shared memory and of AF_XDP, is
//! captured by the participants themselves (`TAKT_CAPTURE`).

mod frame;

use crate::completion::interfaces;
use crate::domain::{STEP, seconds};
use crate::network::interface_names;
use crate::output::{self, note, outln};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use frame::Recognition;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use takt::transport::LinkType;
use takt_bench::report::to_json;
use takt_bench::{Error, Result, signal};
use takt_netlink::frame_socket::FrameSocket;
use takt_transport::choice::Link;
use takt_transport::pcapng::{self, Direction, InterfaceCounts, PacketInfo};
use takt_transport::readiness;

/// Size of the kernel's buffer per interface.
const BUFFER_BYTES: i32 = 16 << 20;
/// Longest frame: a datagram of the maximum length that the kernel passes in one piece, with
/// headers.
const FRAME_LEN_MAX: usize = 66_000;
/// Maximum number of frames that are taken from one interface before the others have their turn.
const FRAMES_PER_TURN: usize = 256;
/// File name of standard output.
const STANDARD_OUTPUT: &str = "-";
const LOOPBACK: &str = "lo";

/// `takt capture`
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  takt capture rtps.pcapng                                 all interfaces, until Ctrl-C
  takt capture rtps.pcapng --interface eth0 --seconds 10
  takt capture rtps.pcapng --interface lo --count 100 --json
  takt capture - --interface eth0 | tshark -i -            decoded as it arrives

It captures UDP datagrams that begin with RTPS, and RTPS on Ethernet without IP. It needs root, or the capabilities
CAP_NET_RAW and CAP_NET_ADMIN. Shared memory and AF_XDP pass no interface that could be captured: set TAKT_CAPTURE=FILE
for a program, and its participants write the datagrams of all their transports.")]
pub struct Capture {
    /// File to write, or - for standard output
    file: PathBuf,
    /// Network interface by name; may be repeated, or separated by commas [default: all that are up]
    #[arg(long, value_name = "NAME", value_delimiter = ',', add = ArgValueCompleter::new(interfaces))]
    interface: Vec<String>,
    /// Time after which the capture ends
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Number of packets after which the capture ends
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Length of the file at which the capture ends
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    bytes_max: u64,
    /// Print one JSON object at the end instead of text
    #[arg(long)]
    json: bool,
}

/// Result of a capture.
#[derive(Serialize)]
struct Summary<'a> {
    file: &'a Path,
    seconds: f64,
    bytes: u64,
    packets: u64,
    dropped_packets: u64,
    /// `count`, `seconds`, `bytes_max` or `signal`.
    ended_by: &'static str,
    interfaces: Vec<InterfaceSummary<'a>>,
}

#[derive(Serialize)]
struct InterfaceSummary<'a> {
    name: &'a str,
    packets: u64,
    dropped_packets: u64,
}

/// Captured interface.
struct Interface {
    name: String,
    socket: FrameSocket,
    recognition: Recognition,
    packets: u64,
    dropped: u64,
}

/// File with its length.
struct Output {
    file: BufWriter<Box<dyn Write>>,
    block: Vec<u8>,
    bytes: u64,
}

impl Capture {
    /// Captures until a limit is reached or a signal arrives.
    ///
    /// # Errors
    /// An interface does not exist or cannot be captured, or the file cannot be written.
    pub fn run(&self) -> Result<()> {
        let is_standard_output = self.file.as_os_str() == STANDARD_OUTPUT;
        if is_standard_output && self.json {
            return Err(Error::Usage("--json and the capture cannot both be written to standard output".to_owned()));
        }
        let mut interfaces = self.open_interfaces()?;
        let mut output = Output::create(&self.file, &interfaces)?;
        let names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
        note!("takt: capturing RTPS on {}", names.join(", "));
        let begin = Instant::now();
        let ended_by = self.capture(&mut interfaces, &mut output, begin)?;
        for (number, interface) in (0..).zip(&mut interfaces) {
            interface.count_dropped()?;
            output.statistics(number, interface).map_err(|error| self.failed(error))?;
        }
        output.file.flush().map_err(|error| self.failed(error))?;
        self.report(&Summary {
            file: &self.file,
            seconds: begin.elapsed().as_secs_f64(),
            bytes: output.bytes,
            packets: interfaces.iter().map(|interface| interface.packets).sum(),
            dropped_packets: interfaces.iter().map(|interface| interface.dropped).sum(),
            ended_by,
            interfaces: interfaces.iter().map(Interface::summary).collect(),
        })
    }

    /// Opens the chosen interfaces, or all that are up and have Ethernet headers.
    fn open_interfaces(&self) -> Result<Vec<Interface>> {
        let mut interfaces = Vec::new();
        let names = if self.interface.is_empty() { interface_names() } else { self.interface.clone() };
        for name in names {
            let link = Link::query(&name).map_err(|source| Error::Os { op: format!("interface {name}"), source })?;
            let has_ethernet = link.is_ethernet || name == LOOPBACK;
            if self.interface.is_empty() && !(link.is_up && has_ethernet) {
                continue;
            }
            if !has_ethernet {
                return Err(Error::Usage(format!(
                    "interface {name} is no Ethernet interface, so it cannot be captured"
                )));
            }
            interfaces.push(Interface::open(name, link.index)?);
        }
        if interfaces.is_empty() {
            return Err(Error::Usage("no interface is up; name one by --interface".to_owned()));
        }
        if interfaces.len() > readiness::DESCRIPTORS_MAX {
            let what =
                format!("at most {} interfaces can be captured; name them by --interface", readiness::DESCRIPTORS_MAX);
            return Err(Error::Usage(what));
        }
        Ok(interfaces)
    }

    /// Writes packets until the capture ends; returns the reason.
    fn capture(&self, interfaces: &mut [Interface], output: &mut Output, begin: Instant) -> Result<&'static str> {
        let sockets: Vec<RawFd> = interfaces.iter().map(|interface| interface.socket.as_raw_fd()).collect();
        let mut buffer = vec![0; FRAME_LEN_MAX];
        let mut left = self.count.unwrap_or(u64::MAX);
        let end = self.seconds.and_then(|seconds| begin.checked_add(seconds));
        loop {
            let mut is_idle = true;
            for (number, interface) in (0..).zip(&mut *interfaces) {
                for _ in 0..FRAMES_PER_TURN {
                    let Some((info, len)) = interface.receive(number, &mut buffer)? else { break };
                    is_idle = false;
                    let Some(info) = info else { continue };
                    if output.packet(&info, &buffer[..len], self.bytes_max).map_err(|error| self.failed(error))? {
                        return Ok("bytes_max");
                    }
                    interface.packets += 1;
                    left -= 1;
                    if left == 0 {
                        return Ok("count");
                    }
                }
            }
            if signal::stopped() {
                return Ok("signal");
            }
            let rest = end.map_or(STEP, |end| end.saturating_duration_since(Instant::now()).min(STEP));
            if rest.is_zero() {
                return Ok("seconds");
            }
            if is_idle {
                // A reader of the file sees what has arrived.
                output.file.flush().map_err(|error| self.failed(error))?;
                let waited = readiness::wait(&sockets, Some(rest));
                waited.map_err(|source| Error::Os { op: "wait for frames".to_owned(), source })?;
            }
        }
    }

    fn failed(&self, source: io::Error) -> Error {
        match self.file.as_os_str() == STANDARD_OUTPUT {
            true => output::failed(source),
            false => Error::Os { op: format!("write {}", self.file.display()), source },
        }
    }

    fn report(&self, summary: &Summary<'_>) -> Result<()> {
        if self.json {
            return outln!("{}", to_json(summary)?);
        }
        for InterfaceSummary { name, packets, dropped_packets } in &summary.interfaces {
            note!("takt: {name}: {packets} packets, {dropped_packets} dropped by the kernel");
        }
        if summary.ended_by == "bytes_max" {
            note!("takt: the file has the length of --bytes-max, {} bytes", self.bytes_max);
        }
        Ok(())
    }
}

impl Interface {
    fn open(name: String, index: u32) -> Result<Self> {
        let failed = |source: io::Error| {
            let source = match source.kind() {
                io::ErrorKind::PermissionDenied => io::Error::new(
                    source.kind(),
                    format!("{source}; run as root, or with CAP_NET_RAW and CAP_NET_ADMIN"),
                ),
                _ => source,
            };
            Error::Os { op: format!("capture {name}"), source }
        };
        let socket = FrameSocket::capture(index.cast_signed(), BUFFER_BYTES).map_err(failed)?;
        socket.accept_udp().map_err(failed)?;
        Ok(Self { name, socket, recognition: Recognition::default(), packets: 0, dropped: 0 })
    }

    /// Returns the next frame with its length, without its properties if it is not recorded. `None`
    /// if there is no frame now.
    fn receive(&mut self, number: u32, buffer: &mut [u8]) -> Result<Option<(Option<PacketInfo>, usize)>> {
        let received = self.socket.receive(buffer);
        let received = received.map_err(|source| Error::Os { op: format!("capture {}", self.name), source })?;
        let Some(frame) = received else { return Ok(None) };
        // Loopback passes each frame twice.
        let is_repeated = frame.is_outgoing && self.name == LOOPBACK;
        if is_repeated || !self.recognition.is_rtps(&buffer[..frame.len]) {
            return Ok(Some((None, frame.len)));
        }
        let direction = if frame.is_outgoing { Direction::Outbound } else { Direction::Inbound };
        let time = Duration::from_nanos(frame.time_ns);
        Ok(Some((Some(PacketInfo { interface: number, time, original_len: frame.len, direction }), frame.len)))
    }

    fn count_dropped(&mut self) -> Result<()> {
        let lost = self.socket.take_lost();
        let lost = lost.map_err(|source| Error::Os { op: format!("counters of {}", self.name), source })?;
        self.dropped += u64::from(lost);
        Ok(())
    }

    fn summary(&self) -> InterfaceSummary<'_> {
        InterfaceSummary { name: &self.name, packets: self.packets, dropped_packets: self.dropped }
    }
}

impl Output {
    fn create(path: &Path, interfaces: &[Interface]) -> Result<Self> {
        let file: Box<dyn Write> = match path.as_os_str() == STANDARD_OUTPUT {
            true => Box::new(io::stdout()),
            false => {
                let failed = |source| Error::Os { op: format!("create {}", path.display()), source };
                Box::new(File::create(path).map_err(failed)?)
            }
        };
        let mut output = Self { file: BufWriter::with_capacity(1 << 16, file), block: Vec::new(), bytes: 0 };
        pcapng::section_header(&mut output.block, concat!("takt ", env!("CARGO_PKG_VERSION")));
        for interface in interfaces {
            pcapng::interface(&mut output.block, LinkType::Ethernet, &interface.name, "");
        }
        output.write().map_err(|source| Error::Os { op: format!("write {}", path.display()), source })?;
        Ok(output)
    }

    /// Writes a packet. Reports whether the file would exceed its limit, without writing it.
    fn packet(&mut self, info: &PacketInfo, octets: &[u8], bytes_max: u64) -> io::Result<bool> {
        if self.bytes + pcapng::packet_block_len(octets.len()) as u64 > bytes_max {
            return Ok(true);
        }
        pcapng::packet(&mut self.block, info, &[octets]);
        self.write().map(|()| false)
    }

    fn statistics(&mut self, number: u32, interface: &Interface) -> io::Result<()> {
        let counts = InterfaceCounts { received: interface.packets + interface.dropped, dropped: interface.dropped };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        pcapng::interface_statistics(&mut self.block, number, now, &counts);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.bytes += self.block.len() as u64;
        self.file.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }
}
