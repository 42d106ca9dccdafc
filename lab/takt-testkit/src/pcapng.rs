//! Reader of pcapng files that Takt writes: little-endian, times in nanoseconds.

use std::path::Path;

/// Content of a pcapng file.
#[derive(Clone, Debug, Default)]
pub struct Pcapng {
    /// Number of sections.
    pub sections: usize,
    /// Interfaces of all sections.
    pub interfaces: Vec<Interface>,
    /// Packets in the order of the file.
    pub packets: Vec<Packet>,
}

/// Interface of a capture.
#[derive(Clone, Debug, Default)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Description; empty if there is none.
    pub description: String,
    /// Link type.
    pub link: u16,
    /// Packets received and dropped, if the file has statistics.
    pub counts: Option<(u64, u64)>,
}

/// Packet of a capture.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Index in [`Pcapng::interfaces`].
    pub interface: usize,
    /// Time since 1970 in nanoseconds.
    pub time_ns: u64,
    /// Length before octets were cut off.
    pub original_len: usize,
    /// Octets in the file.
    pub octets: Vec<u8>,
    /// Whether the packet was sent.
    pub is_outbound: bool,
}

impl Packet {
    /// Returns the UDP payload of a packet that begins with an IP header.
    #[must_use]
    pub fn udp_payload(&self) -> &[u8] {
        &self.octets[if self.octets[0] >> 4 == 4 { 28 } else { 48 }..]
    }
}

impl Pcapng {
    /// Reads a file.
    ///
    /// # Panics
    ///
    /// The file cannot be read, or is not what Takt writes.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let octets = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (mut found, mut first, mut rest) = (Self::default(), 0, &octets[..]);
        while !rest.is_empty() {
            let len = u32_at(rest, 4) as usize;
            assert_eq!(u32_at(rest, len - 4) as usize, len, "length behind the block");
            let (block, following) = rest.split_at(len);
            rest = following;
            let body = &block[8..len - 4];
            match u32_at(block, 0) {
                0x0a0d_0d0a => {
                    assert_eq!(u32_at(body, 0), 0x1a2b_3c4d);
                    (found.sections, first) = (found.sections + 1, found.interfaces.len());
                }
                1 => found.interfaces.push(interface(body)),
                5 => {
                    let number =
                        |code| option(&body[12..], code).map(|value| u64::from_le_bytes(value.try_into().expect("8")));
                    let counts = number(4).zip(number(5));
                    found.interfaces[first + u32_at(body, 0) as usize].counts = counts;
                }
                6 => found.packets.push(packet(body, first)),
                kind => panic!("block {kind:#x}"),
            }
        }
        found
    }

    /// Returns the packets of the interfaces of this name.
    pub fn packets_of(&self, name: &str) -> impl Iterator<Item = &Packet> {
        self.packets.iter().filter(move |packet| self.interfaces[packet.interface].name == name)
    }
}

fn interface(body: &[u8]) -> Interface {
    let options = &body[8..];
    let text =
        |code| option(options, code).map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default();
    assert_eq!(option(options, 9), Some(&[9][..]), "resolution of times");
    Interface { name: text(2), description: text(3), link: u32_at(body, 0) as u16, counts: None }
}

fn packet(body: &[u8], first: usize) -> Packet {
    let len = u32_at(body, 12) as usize;
    let flags = option(&body[20 + len.next_multiple_of(4)..], 2).expect("direction");
    Packet {
        interface: first + u32_at(body, 0) as usize,
        time_ns: (u64::from(u32_at(body, 4)) << 32) + u64::from(u32_at(body, 8)),
        original_len: u32_at(body, 16) as usize,
        octets: body[20..20 + len].to_vec(),
        is_outbound: flags[0] & 3 == 2,
    }
}

/// Returns the value of an option.
fn option(mut options: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let head = u32_at(options, 0);
        let (code, len) = (head as u16, (head >> 16) as usize);
        if code == wanted {
            return Some(&options[4..4 + len]);
        }
        if code == 0 {
            return None;
        }
        options = &options[4 + len.next_multiple_of(4)..];
    }
}

fn u32_at(octets: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(octets[at..at + 4].try_into().expect("4 octets"))
}
