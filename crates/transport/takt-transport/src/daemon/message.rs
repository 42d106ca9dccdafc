//! Properties of an RTPS message that a daemon routes by: sender, destinations, kind; and the
//! submessage of the daemon (RTPS 2.5 §8.3.4, §8.3.8).
//!
//! A daemon reads interpreter submessages and the header of SPDP data. It never reads user data.
//! Invariant: a walk takes at most one step for four octets, and allocates nothing.

use takt_wire::inline_qos::InlineQos;
use takt_wire::message::{HEADER_LEN, Header, MessageView, Submessage};
use takt_wire::{EntityId, GuidPrefix, Malformed, ProtocolVersion, SequenceNumber, VendorId};

/// Maximum number of participants that a message is directed to; a message to more goes to all
/// applications.
const DIRECTED_MAX: usize = 8;

/// `submessageId` of the daemon's submessage, from the vendor-specific range.
const MARK_ID: u8 = 0xd4;
/// Submessage ids of interpreter submessages (RTPS 2.5 §9.4.5.1.1).
const INFO_TS_ID: u8 = 0x09;
const INFO_SRC_ID: u8 = 0x0c;
const INFO_DST_ID: u8 = 0x0e;
/// Octets of the daemon's submessage.
pub(super) const MARK_LEN: usize = 12;
/// Octets of INFO_SRC.
pub(super) const INFO_SRC_LEN: usize = 24;
/// Version of the daemon's submessage.
const MARK_VERSION: u8 = 1;
/// Flag of the daemon's submessage: the message is a bundle of several messages.
const IS_BUNDLE: u8 = 1;

/// Submessage that a daemon inserts after the header. It states that the sender is a daemon with
/// these unicast ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) is_bundle: bool,
    pub(super) metatraffic_port: u16,
    pub(super) user_port: u16,
}

impl Mark {
    pub(super) fn to_bytes(self) -> [u8; MARK_LEN] {
        let [m0, m1] = self.metatraffic_port.to_be_bytes();
        let [u0, u1] = self.user_port.to_be_bytes();
        let flags = if self.is_bundle { IS_BUNDLE } else { 0 };
        // Flag E is 0: big-endian.
        [MARK_ID, 0, 0, (MARK_LEN - 4) as u8, b'T', b'D', MARK_VERSION, flags, m0, m1, u0, u1]
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let [MARK_ID, 0, 0, 8, b'T', b'D', MARK_VERSION, flags, m0, m1, u0, u1] = *bytes else { return None };
        let (metatraffic_port, user_port) = (u16::from_be_bytes([m0, m1]), u16::from_be_bytes([u0, u1]));
        Some(Self { is_bundle: flags & IS_BUNDLE != 0, metatraffic_port, user_port })
    }

    /// Returns the mark of a message, if a Takt daemon sent it.
    pub(super) fn of(message: &[u8], header: &Header) -> Option<Self> {
        if header.vendor != VendorId::TAKT {
            return None;
        }
        Self::parse(message.get(HEADER_LEN..HEADER_LEN + MARK_LEN)?)
    }
}

/// Encodes INFO_SRC for the sender of this header.
pub(super) fn info_source(header: &[u8; HEADER_LEN]) -> [u8; INFO_SRC_LEN] {
    let mut bytes = [0; INFO_SRC_LEN];
    (bytes[0], bytes[3]) = (INFO_SRC_ID, (INFO_SRC_LEN - 4) as u8);
    bytes[8..].copy_from_slice(&header[4..]);
    bytes
}

/// Destinations of the submessages of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Destinations {
    prefixes: [GuidPrefix; DIRECTED_MAX],
    count: usize,
    /// At least one submessage is for every participant.
    pub(super) is_undirected: bool,
}

impl Destinations {
    const NONE: Self = Self { prefixes: [GuidPrefix([0; 12]); DIRECTED_MAX], count: 0, is_undirected: false };

    fn add(&mut self, prefix: GuidPrefix) {
        if prefix == GuidPrefix::default() || self.count == DIRECTED_MAX {
            self.is_undirected = true;
        } else if !self.prefixes().contains(&prefix) {
            self.prefixes[self.count] = prefix;
            self.count += 1;
        }
    }

    /// Returns the participants that INFO_DST names.
    pub(super) fn prefixes(&self) -> &[GuidPrefix] {
        &self.prefixes[..self.count]
    }
}

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An SPDP announcement and nothing else.
    Announcement(SequenceNumber),
    /// The participant leaves the domain.
    Dispose,
    Other,
}

/// Routing properties of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    pub(super) destinations: Destinations,
    pub(super) kind: Kind,
    /// Other submessages can follow in the same message: the last one states its length, which is a
    /// multiple of four, and there is no INFO_SRC.
    pub(super) can_be_bundled: bool,
    /// The first submessage is for every participant.
    pub(super) begins_undirected: bool,
    /// The last submessage is for one participant.
    pub(super) ends_directed: bool,
}

impl Summary {
    /// Walks the submessages of a message.
    pub(super) fn of(view: &MessageView<'_>, message: &[u8]) -> Result<Self, Malformed> {
        let mut destinations = Destinations::NONE;
        let (mut current, mut kind, mut contents) = (GuidPrefix::default(), Kind::Other, 0_usize);
        let (mut can_be_bundled, mut begins_undirected) = (message.len().is_multiple_of(4), false);
        let mut submessages = view.submessages();
        while let Some(envelope) = submessages.next_envelope() {
            let envelope = envelope?;
            let range = envelope.range();
            let stated_len = &message[range.start + 2..range.start + 4];
            can_be_bundled &= *stated_len != [0, 0] || range.len() == 4;
            if let Some(data) = envelope.data() {
                let data = data?;
                if data.writer == EntityId::SPDP_WRITER {
                    let inline = data.inline_qos.map(InlineQos::parse).transpose()?;
                    let status = inline.and_then(|inline| inline.status_info).unwrap_or(0);
                    kind = if status == 0 { Kind::Announcement(data.sn) } else { Kind::Dispose };
                }
            } else {
                match envelope.id() {
                    INFO_SRC_ID => {
                        can_be_bundled = false;
                        continue;
                    }
                    INFO_DST_ID => {
                        if let Submessage::InfoDestination(prefix) = envelope.open()? {
                            current = prefix;
                        }
                        continue;
                    }
                    INFO_TS_ID => continue,
                    _ => {}
                }
            }
            begins_undirected |= contents == 0 && current == GuidPrefix::default();
            contents += 1;
            destinations.add(current);
        }
        if contents != 1 && kind != Kind::Dispose {
            kind = Kind::Other;
        }
        let ends_directed = current != GuidPrefix::default();
        Ok(Self { destinations, kind, can_be_bundled, begins_undirected, ends_directed })
    }
}

/// Iterator over the messages of a bundle, each as its header and its submessages.
pub(super) struct Parts<'a> {
    bundle: &'a [u8],
    header: Option<[u8; HEADER_LEN]>,
    at: usize,
}

impl<'a> Parts<'a> {
    /// Splits a message that begins with a [`Mark`].
    pub(super) fn of(bundle: &'a [u8]) -> Self {
        let header = bundle.first_chunk().copied();
        Self { bundle, header, at: HEADER_LEN + MARK_LEN }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<([u8; HEADER_LEN], &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let header = self.header.take()?;
        let start = self.at;
        // A view over the remaining octets; the octets of one header precede them.
        let rest = self.bundle.get(start - HEADER_LEN..)?;
        let mut at = HEADER_LEN;
        while let Some(head) = rest.get(at..at + 4) {
            if head[0] == INFO_SRC_ID {
                break;
            }
            let len = match head[1] & 1 {
                0 => u16::from_be_bytes([head[2], head[3]]),
                _ => u16::from_le_bytes([head[2], head[3]]),
            };
            at += 4 + usize::from(len);
        }
        let end = start + at - HEADER_LEN;
        if end > self.bundle.len() {
            return Some(Err(Malformed { offset: start, what: "submessage is longer than the message" }));
        }
        if let Some(source) = self.bundle.get(end..end + INFO_SRC_LEN) {
            let mut next = [0; HEADER_LEN];
            next[..4].copy_from_slice(b"RTPS");
            next[4..].copy_from_slice(&source[8..]);
            (self.header, self.at) = (Some(next), end + INFO_SRC_LEN);
        }
        Some(Ok((header, &self.bundle[start..end])))
    }
}

/// Makes the header of a message from a Takt participant.
pub(super) fn header_of(prefix: GuidPrefix) -> Header {
    Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_wire::builder::MessageBuilder;

    fn prefix(n: u8) -> GuidPrefix {
        GuidPrefix([n; 12])
    }

    fn message(from: u8, to: &[u8]) -> Vec<u8> {
        let mut frame = [0; 512];
        let mut builder = MessageBuilder::new(&mut frame, &header_of(prefix(from))).expect("room");
        for n in to {
            builder.info_destination(prefix(*n)).expect("room");
            builder.pad(8).expect("room");
        }
        let len = builder.len();
        frame[..len].to_vec()
    }

    fn summary(message: &[u8]) -> Summary {
        Summary::of(&MessageView::parse(message).expect("a header"), message).expect("well-formed")
    }

    #[test]
    fn destinations_come_from_info_dst() {
        let both = summary(&message(1, &[7, 8, 7]));
        assert_eq!(both.destinations.prefixes(), [prefix(7), prefix(8)]);
        assert!(!both.destinations.is_undirected && both.ends_directed && both.can_be_bundled);
        let all = summary(&message(1, &[7, 0]));
        assert!(all.destinations.is_undirected && !all.ends_directed && !all.begins_undirected);
        let many: Vec<u8> = (1..=9).collect();
        assert!(summary(&message(1, &many)).destinations.is_undirected);
    }

    #[test]
    fn mark_round_trips_and_other_bytes_are_no_mark() {
        let mark = Mark { is_bundle: true, metatraffic_port: 7410, user_port: 7411 };
        let bytes = mark.to_bytes();
        assert_eq!(Mark::parse(&bytes), Some(mark));
        for at in [0, 3, 4, 5, 6] {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(Mark::parse(&other), None, "{at}");
        }
    }

    #[test]
    fn bundle_is_split_and_truncated_bundle_fails() {
        let (one, two) = (message(1, &[7]), message(2, &[8, 0]));
        let mut bundle = one[..HEADER_LEN].to_vec();
        bundle.extend(Mark { is_bundle: true, metatraffic_port: 1, user_port: 2 }.to_bytes());
        bundle.extend(&one[HEADER_LEN..]);
        bundle.extend(info_source(two.first_chunk().expect("a header")));
        bundle.extend(&two[HEADER_LEN..]);
        let parts: Vec<Vec<u8>> = Parts::of(&bundle)
            .map(|part| part.map(|(header, rest)| [&header[..], rest].concat()).expect("well-formed"))
            .collect();
        assert_eq!(parts, [one, two]);
        let cut = &bundle[..bundle.len() - 1];
        assert!(Parts::of(cut).any(|part| part.is_err()));
        // The walk ends for all bytes.
        for len in HEADER_LEN + MARK_LEN..bundle.len() {
            assert!(Parts::of(&bundle[..len]).count() <= bundle.len());
        }
    }
}
