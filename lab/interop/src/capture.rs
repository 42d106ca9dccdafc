//! Packet captures of the link, and their analysis by tshark.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use crate::error::{output_of, shown};
use crate::network::{Host, INTERFACE, Network, PORTS};
use crate::process::{self, Line};
use crate::{Error, Result};

/// Value of `_ws.expert.severity` from which an expert item counts as an error.
const SEVERITY_ERROR: u64 = 0x0080_0000;
/// UDP discard port (RFC 863). Takt sends an empty datagram there to have the kernel confirm that a
/// neighbor is reachable. A capture sends the datagram there that marks its end.
const DISCARD_PORT: &str = "9";
/// Longest time for dumpcap to open the interface, to write all frames to the file, or to exit.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of unread output lines of dumpcap.
const OUTPUT_LINES_MAX: usize = 64;
/// Polling interval of the capture file, to which dumpcap writes twice a second.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Multicast group of all hosts of the link. No host answers the datagrams of a capture.
const ALL_HOSTS: &str = "224.0.0.1";

/// A running capture on the interface of a host. Dropping it removes the file, unless
/// [`Capture::keep`] was called or `TAKT_KEEP_CAPTURES` is set.
#[derive(Debug)]
pub struct Capture {
    dumpcap: Child,
    file: PathBuf,
    /// Host whose frames are recorded.
    host: Host,
    is_kept: bool,
}

/// A frame with an error.
#[derive(Debug, PartialEq, Eq)]
pub struct FrameError {
    /// Frame number in the capture.
    pub frame: u64,
    /// Source address of the frame.
    pub source: Option<Ipv4Addr>,
    /// Description of the error.
    pub what: String,
}

/// Result of tshark's analysis of a capture.
#[derive(Debug, Default)]
pub struct Analysis {
    /// Number of RTPS messages by sender.
    pub rtps: BTreeMap<Ipv4Addr, u64>,
    /// Malformed frames, error-level expert items, and UDP that is not recognized as RTPS.
    pub errors: Vec<FrameError>,
    /// Number of IP fragments by sender.
    pub fragments: BTreeMap<Ipv4Addr, u64>,
}

impl Capture {
    /// Starts to record everything that the left host sends and receives. Records at the host, or
    /// at the switch if there is one.
    pub fn start(network: &Network) -> Result<Self> {
        match network.switch() {
            None => Self::start_at(&network.left, INTERFACE, &network.left),
            Some(switch) => Self::start_at(switch, PORTS[0], &network.left),
        }
    }

    fn start_at(at: &Host, interface: &str, recorded: &Host) -> Result<Self> {
        static CAPTURES: AtomicU32 = AtomicU32::new(0);
        let number = CAPTURES.fetch_add(1, Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("takt-{}-{number}.pcapng", std::process::id()));
        let mut command = at.command("dumpcap".as_ref());
        command.args(["-q", "-B", "64", "-i", interface, "-w"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let shown = shown(&command);
        let mut dumpcap = command.spawn().map_err(Error::io(format!("cannot run `{shown}`")))?;
        let stderr = dumpcap.stderr.take().expect("stderr was piped above");
        let is_kept = std::env::var_os("TAKT_KEEP_CAPTURES").is_some();
        let mut capture = Self { dumpcap, file, host: recorded.clone(), is_kept };
        let (sender, lines) = sync_channel(OUTPUT_LINES_MAX);
        // Without a reader, dumpcap might block on a full pipe.
        std::thread::spawn(move || process::lines(stderr).for_each(|line| drop(sender.try_send(line))));
        // dumpcap prints the file name once the interface is open.
        let (deadline, mut output) = (Instant::now() + TIMEOUT, String::new());
        loop {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Line::Whole(line)) if line.starts_with("File:") => return Ok(capture),
                Ok(Line::Whole(line) | Line::TooLong(line)) => output += &format!("{line}\n"),
                Err(RecvTimeoutError::Timeout) => {
                    let awaited = "its file".to_owned();
                    return Err(Error::Timeout { peer: "dumpcap".to_owned(), awaited, context: output });
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = process::end(&mut capture.dumpcap, TIMEOUT);
        Err(Error::Unavailable(format!("no capture (apt-get install tshark): `{shown}` ended ({status:?}): {output}")))
    }

    /// Keeps the file on disk as evidence of a failure, and returns its path.
    pub fn keep(&mut self) -> &Path {
        self.is_kept = true;
        &self.file
    }

    /// Waits until the file contains every frame that was sent so far. dumpcap discards unread
    /// frames when it exits. The host sends a marker datagram to the discard port, and this
    /// function searches the file for it every `POLL_INTERVAL`.
    fn await_all(&self) -> Result<()> {
        let mark = format!("takt-interop end of {}", self.file.display());
        let send = format!("printf '{mark}' > /dev/udp/{ALL_HOSTS}/{DISCARD_PORT}");
        let mut growth = Growth::of(&self.file)?;
        let deadline = Instant::now() + TIMEOUT;
        loop {
            // Sent in each iteration, since an impaired link may drop it.
            output_of(self.host.command("bash".as_ref()).args(["-c", &send]))?;
            if growth.has(mark.as_bytes())? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let awaited = "the end of the traffic in the capture".to_owned();
                let context = format!("the file has {} bytes", growth.position);
                return Err(Error::Timeout { peer: "dumpcap".to_owned(), awaited, context });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Stops the capture and has tshark analyze every frame.
    pub fn analyze(mut self) -> Result<Analysis> {
        self.stop()?;
        analyze_file(&self.file)
    }

    /// Stops the capture and returns what an eavesdropper without keys sees.
    pub fn eavesdropped(mut self) -> Result<Eavesdropped> {
        self.stop()?;
        let octets = std::fs::read(&self.file).map_err(Error::io("read the capture"))?;
        let mut tshark = tshark(&self.file);
        tshark.args([
            "-Y",
            "rtps",
            "-T",
            "fields",
            "-E",
            "separator=|",
            "-e",
            "rtps.sm.id",
            "-e",
            "rtps.sm.wrEntityId",
        ]);
        Ok(Eavesdropped { octets, messages: messages(&output_of(&mut tshark)?) })
    }

    fn stop(&mut self) -> Result<()> {
        self.await_all()?;
        output_of(Command::new("kill").args(["-INT", &self.dumpcap.id().to_string()]))?;
        process::end(&mut self.dumpcap, TIMEOUT).map_err(Error::io("wait for dumpcap")).map(drop)
    }
}

/// Content of a capture as an eavesdropper sees it.
#[derive(Debug)]
pub struct Eavesdropped {
    /// All octets of the file, including those of the file format between the frames.
    pub octets: Vec<u8>,
    /// All RTPS messages, as far as they can be read without keys.
    pub messages: Vec<EavesdroppedMessage>,
}

/// Parts of an RTPS message that can be read without keys.
#[derive(Debug, PartialEq, Eq)]
pub struct EavesdroppedMessage {
    /// Ids of the submessages.
    pub submessages: Vec<u64>,
    /// Writer entity ids in the submessages.
    pub writers: Vec<u64>,
}

impl Eavesdropped {
    /// Reports whether one frame contains these octets.
    pub fn has(&self, marker: &[u8]) -> bool {
        self.octets.windows(marker.len()).any(|window| window == marker)
    }
}

fn messages(fields: &str) -> Vec<EavesdroppedMessage> {
    let numbers = |list: &str| list.split(',').filter_map(number).collect();
    let pairs = fields.lines().filter_map(|line| line.split_once('|'));
    pairs.map(|(ids, writers)| EavesdroppedMessage { submessages: numbers(ids), writers: numbers(writers) }).collect()
}

/// Reader of the part appended to a file after a point in time. A capture has hundreds of
/// megabytes, so the earlier part is not read.
struct Growth {
    file: File,
    /// File offset in bytes up to which the file has been searched.
    position: u64,
    /// Last bytes read, which may contain the beginning of a mark.
    rest: Vec<u8>,
}

impl Growth {
    /// Creates a reader that starts at the current end of the file.
    fn of(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(Error::io("open the capture"))?;
        let position = file.seek(SeekFrom::End(0)).map_err(Error::io("seek in the capture"))?;
        Ok(Self { file, position, rest: Vec::new() })
    }

    /// Reads the bytes appended since the last call and reports whether they contain `mark`.
    fn has(&mut self, mark: &[u8]) -> Result<bool> {
        let len = self.file.read_to_end(&mut self.rest).map_err(Error::io("read the capture"))?;
        if self.rest.windows(mark.len()).any(|window| window == mark) {
            return Ok(true);
        }
        self.position += len as u64;
        self.rest.drain(..self.rest.len().saturating_sub(mark.len()));
        Ok(false)
    }
}

fn tshark(file: &Path) -> Command {
    let mut tshark = Command::new("tshark");
    // tshark may assign an ephemeral port to another protocol.
    tshark.arg("-r").arg(file).args(["-n", "-o", "udp.try_heuristic_first:TRUE"]);
    tshark
}

/// Has tshark analyze every frame of a capture file.
pub fn analyze_file(file: &Path) -> Result<Analysis> {
    let mut tshark = tshark(file);
    tshark.args(["-Y", "ip", "-T", "fields", "-E", "separator=|"]);
    for field in [
        "frame.number",
        "ip.src",
        "ip.flags.mf",
        "ip.frag_offset",
        "frame.protocols",
        "_ws.expert.severity",
        "_ws.malformed",
        "udp.dstport",
        "_ws.expert.message",
    ] {
        tshark.args(["-e", field]);
    }
    Ok(parse_analysis(&output_of(&mut tshark)?))
}

impl Drop for Capture {
    fn drop(&mut self) {
        let killed = self.dumpcap.kill();
        drop(killed);
        let ended = self.dumpcap.wait();
        drop(ended);
        if !self.is_kept {
            let removed = std::fs::remove_file(&self.file);
            drop(removed);
        }
    }
}

fn parse_analysis(fields: &str) -> Analysis {
    let mut verdict = Analysis::default();
    for line in fields.lines() {
        let field: Vec<&str> = line.splitn(9, '|').collect();
        let [frame, source, more_fragments, fragment_offset, protocols, severities, malformed, port, message] =
            field[..]
        else {
            verdict.errors.push(FrameError { frame: 0, source: None, what: format!("unexpected line: {line}") });
            continue;
        };
        // The second address of an ICMP message belongs to the packet that it quotes.
        let source: Option<Ipv4Addr> = source.split(',').next().and_then(|source| source.parse().ok());
        let is_fragment =
            any(more_fragments, |value| value == "1" || value == "True") || any(fragment_offset, |value| value != "0");
        let is_error = any(severities, |value| number(value).is_some_and(|severity| severity >= SEVERITY_ERROR));
        let is_rtps = protocols.ends_with(":rtps") || protocols.contains(":rtps:");
        let is_known = is_rtps || is_fragment || port == DISCARD_PORT;
        let is_unknown = protocols.contains(":udp") && !protocols.contains(":icmp") && !is_known;
        if is_error || !malformed.is_empty() || is_unknown {
            let what = format!("{protocols} {severities} {malformed} {message}");
            verdict.errors.push(FrameError { frame: frame.parse().unwrap_or(0), source, what });
        }
        if let Some(source) = source {
            *verdict.rtps.entry(source).or_default() += u64::from(is_rtps);
            *verdict.fragments.entry(source).or_default() += u64::from(is_fragment);
        }
    }
    verdict
}

fn any(values: &str, test: impl Fn(&str) -> bool) -> bool {
    values.split(',').any(|value| !value.is_empty() && test(value))
}

fn number(value: &str) -> Option<u64> {
    match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use takt_testkit::directory::Directory;

    use super::*;

    #[test]
    fn growth_finds_a_split_mark_and_ignores_marks_before_its_start() {
        let directory = Directory::new("growth");
        let path = directory.write("capture", "mark");
        let mut growth = Growth::of(&path).expect("the file is there");
        let mut file = File::options().append(true).open(&path).expect("the file is there");
        assert!(!growth.has(b"mark").expect("the file is read"));
        file.write_all(b"other ma").expect("the file takes bytes");
        assert!(!growth.has(b"mark").expect("the file is read"));
        file.write_all(b"rk").expect("the file takes bytes");
        assert!(growth.has(b"mark").expect("the file is read"));
    }

    #[test]
    fn message_lists_its_submessages_and_their_writers() {
        let seen = messages("0x0e,0x09,0x15|0x00000102\n0x33,0x34|\n");
        let [first, second] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!((&first.submessages[..], &first.writers[..]), (&[0x0e, 0x09, 0x15][..], &[0x102][..]));
        assert_eq!((&second.submessages[..], &second.writers[..]), (&[0x33, 0x34][..], &[][..]));
    }

    #[test]
    fn verdict_reports_fragments_errors_and_other_protocols() {
        let verdict = parse_analysis(concat!(
            "1|10.77.0.1|0|0|eth:ethertype:ip:udp:rtps|||7400|\n",
            "2|10.77.0.2|1|0|eth:ethertype:ip:data||||\n",
            "3|10.77.0.2|0|1480|eth:ethertype:ip:udp:rtps|||7400|\n",
            "4|10.77.0.1|0|0|eth:ethertype:ip:udp:rtps|2097152,8388608||7400|Malformed | Packet\n",
            "5|10.77.0.1|0|0|eth:ethertype:ip:udp:data|||7411|\n",
            "6|10.77.0.2,10.77.0.1|0,0|0,0|eth:ethertype:ip:icmp:ip:udp:data|||7411|\n",
            "7|10.77.0.1|0|0|eth:ethertype:ip:udp|||9|\n",
        ));
        assert_eq!(verdict.rtps[&Ipv4Addr::new(10, 77, 0, 1)], 2);
        assert_eq!(verdict.fragments[&Ipv4Addr::new(10, 77, 0, 1)], 0);
        assert_eq!(verdict.fragments[&Ipv4Addr::new(10, 77, 0, 2)], 2);
        assert_eq!(verdict.errors.iter().map(|error| error.frame).collect::<Vec<_>>(), [4, 5]);
    }
}
