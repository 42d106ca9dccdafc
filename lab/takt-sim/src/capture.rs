//! Captures of simulated links: the frames of one direction of a link, or of all links, as they
//! leave their ports.
//!
//! The time of a record is the simulated time at which its first bit leaves, in nanoseconds since
//! the start of the world. Frames that a fault drops earlier are missing. Frames that a partition
//! drops are present, since the drop is at the far end. The traffic class is shown as a class
//! selector (the upper three bits of the DSCP), a damaged frame by a wrong UDP checksum. Processes
//! on the same host communicate without a link.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use takt_transport::{Captured, LinkType, PcapFile, TransportError};

use crate::clock::Nanos;
use crate::network::{Frame, Node};
use crate::timeline::Timeline;

/// Maximum size of a capture in octets. Later frames are counted and omitted.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// One direction of a link, or all directions of all links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Every port. A frame appears once per hop.
    All,
    /// Direction from a host to its switch.
    Up(usize),
    /// Direction from a switch to a host.
    Down(usize),
    /// Direction from one switch to an adjacent one.
    Between(usize, usize),
}

impl Link {
    fn is(self, from: Node, to: Node) -> bool {
        match self {
            Self::All => true,
            Self::Up(host) => from == Node::Host(host),
            Self::Down(host) => to == Node::Host(host),
            Self::Between(one, other) => (from, to) == (Node::Switch(one), Node::Switch(other)),
        }
    }
}

impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is no link: all, host:3:up, host:3:down or switch:0:1");
        let number = |text: &str| text.parse().map_err(|_| bad());
        match text.split(':').collect::<Vec<_>>()[..] {
            ["all"] => Ok(Self::All),
            ["host", host, "up"] => Ok(Self::Up(number(host)?)),
            ["host", host, "down"] => Ok(Self::Down(number(host)?)),
            ["switch", one, other] => Ok(Self::Between(number(one)?, number(other)?)),
            _ => Err(bad()),
        }
    }
}

/// Timeline that writes the frames of a link to a file.
#[derive(Debug)]
pub struct Capture {
    link: Link,
    file: PcapFile,
}

impl Capture {
    /// Creates a capture in a new file. Fails if the file cannot be written.
    pub fn create(path: &Path, link: Link) -> Result<Self, TransportError> {
        Ok(Self { link, file: PcapFile::create(path, LinkType::Ethernet, FILE_BYTES_MAX)? })
    }

    /// Flushes the buffer. Returns the number of recorded frames, or why the capture is incomplete.
    pub fn finish(&mut self) -> Result<u64, String> {
        self.file.flush();
        match (self.file.failure(), self.file.omitted()) {
            (Some(failure), _) => Err(failure.to_string()),
            (None, 0) => Ok(self.file.recorded()),
            (None, omitted) => Err(format!("{omitted} frames found no room in it")),
        }
    }
}

impl Timeline for Capture {
    fn left(&mut self, now: Nanos, from: Node, to: Node, frame: &Frame) {
        if self.link.is(from, to) {
            self.file.record(&Captured {
                time: Duration::from_nanos(now),
                source: Some(frame.source),
                destination: frame.to,
                traffic_class: frame.priority << 5,
                damaged: frame.corrupt,
                datagram: &frame.bytes,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_names_parse() {
        assert_eq!("all".parse(), Ok(Link::All));
        assert_eq!("host:3:up".parse(), Ok(Link::Up(3)));
        assert_eq!("host:0:down".parse(), Ok(Link::Down(0)));
        assert_eq!("switch:1:0".parse(), Ok(Link::Between(1, 0)));
        for bad in ["", "host", "host:3", "host:x:up", "switch:1:", "host:3:left"] {
            assert!(bad.parse::<Link>().is_err(), "{bad}");
        }
    }
}
