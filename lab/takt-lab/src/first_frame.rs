//! First frame of a switch, sent by OpenFlow, so that ovs-vswitchd opens its send socket while new
//! sockets have large buffers.
//!
//! Open vSwitch opens that socket, which all ports share, when it sends the first frame. A switch
//! that waits for its controller sends none.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant as Clock};

use takt_openflow::Message;
use takt_openflow::action::Action;
use takt_openflow::channel::{Controller, ControllerConfig, Event, Instant, Outcome};
use takt_openflow::packet::PacketOut;
use takt_openflow::value::PortNo;

/// Maximum time for the switch to answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Timeout of a read.
const STEP: Duration = Duration::from_millis(20);
/// Destination address that no interface has; the frame has the type 0x88b5 for local experiments,
/// and is padded.
const DESTINATION: [u8; 6] = [2, 0xff, 0, 0, 0, 1];
const SOURCE: [u8; 6] = [2, 0xff, 0, 0, 0, 2];
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

/// Makes a bridge send a frame by a port; `path` is its management socket.
pub fn send(path: &Path, port: u32) -> io::Result<()> {
    let mut socket = UnixStream::connect(path)?;
    socket.set_read_timeout(Some(STEP))?;
    let begin = Clock::now();
    let now = || Instant(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let mut controller = Controller::new(now(), ControllerConfig::default());
    let frame = [&DESTINATION[..], &SOURCE, &ETHER_TYPE, &[0; 46]].concat();
    let packet = PacketOut::new(PortNo::CONTROLLER, vec![Action::output(PortNo(port))], frame);
    let (mut buffer, mut received) = ([0; 4096], Vec::new());
    while begin.elapsed() < LIMIT {
        while let Some(event) = controller.poll_event() {
            match event {
                Event::Up { .. } => {
                    let sent = controller.transaction(now(), LIMIT, &[Message::PacketOut(packet.clone())]);
                    sent.map_err(|why| io::Error::other(why.to_string()))?;
                }
                Event::Completed { outcome: Outcome::Done, .. } => return Ok(()),
                Event::Completed { outcome, .. } => return Err(io::Error::other(format!("{outcome:?}"))),
                Event::Down(why) => return Err(io::Error::other(why.to_string())),
                _ => {}
            }
        }
        let out = controller.poll_transmit().to_vec();
        socket.write_all(&out)?;
        controller.transmitted(out.len());
        match socket.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => received.extend(&buffer[..len]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        let consumed = controller.handle_bytes(now(), &received);
        received.drain(..consumed);
        controller.handle_timeout(now());
    }
    Err(ErrorKind::TimedOut.into())
}
