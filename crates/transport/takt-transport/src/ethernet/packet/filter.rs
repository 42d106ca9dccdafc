//! Kernel filter of an AF_PACKET socket: classic BPF (`bpf(4)` of BSD, `SO_ATTACH_FILTER`).
//!
//! It keeps frames for others out of the ring. Correctness does not depend on it: accepted frames
//! are validated again. A load beyond the end of a frame rejects the frame.

use takt_packet::{EtherType, MacAddress};

/// Instruction as in `struct sock_filter`: code, jump offsets if true and if false, operand.
pub(super) type Instruction = (u16, u8, u8, u32);

const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const REJECT: Instruction = (RETURN, 0, 0, 0);
const ACCEPT: Instruction = (RETURN, 0, 0, u32::MAX);

/// Base offset for loads of packet metadata (`SKF_AD_OFF` of `linux/filter.h`).
const KNOWN: u32 = -0x1000_i32 as u32;
const PROTOCOL: u32 = KNOWN;
const PACKET_TYPE: u32 = KNOWN + 4;
const VLAN_TAG: u32 = KNOWN + 44;
const HAS_VLAN_TAG: u32 = KNOWN + 48;

/// `PACKET_OTHERHOST`: for another host, or of a VLAN that this host does not have.
const FOR_OTHERS: u32 = 3;

/// Maximum number of ports in a filter: a program has at most 4,096 instructions. With more ports,
/// all ports are accepted.
pub(super) const PORTS_MAX: usize = 2000;

/// Direction of the frames that a filter examines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the interface. The kernel strips tags.
    Wire,
    /// From this host, through the loopback interface, with the tags under the EtherType that the
    /// sender substituted.
    Local,
}

/// Builds the program that accepts frames to `own` or to groups, to one of the ports, of this VLAN
/// (`None`: untagged).
pub(super) fn program(direction: Direction, own: MacAddress, vlan: Option<u16>, ports: &[u16]) -> Vec<Instruction> {
    let mut all = Vec::with_capacity(32 + 2 * ports.len());
    let [a, b, c, d, e, f] = own.0;
    let (high, low) = (u32::from_be_bytes([a, b, c, d]), u32::from(u16::from_be_bytes([e, f])));
    let mut require = |loads: &[Instruction], value: u32| {
        all.extend_from_slice(loads);
        all.extend([(IF_EQUAL, 1, 0, value), REJECT]);
    };
    let ether_type = u32::from(EtherType::TAKT.0);
    let takt = match (direction, vlan) {
        (Direction::Wire, None) => {
            all.extend([(LOAD_WORD, 0, 0, PACKET_TYPE), (IF_EQUAL, 0, 1, FOR_OTHERS), REJECT]);
            14
        }
        (Direction::Wire, Some(vid)) => {
            require(&[(LOAD_WORD, 0, 0, HAS_VLAN_TAG)], 1);
            require(&[(LOAD_WORD, 0, 0, VLAN_TAG), (AND, 0, 0, 0xfff)], vid.into());
            require(&[(LOAD_WORD, 0, 0, PROTOCOL)], ether_type);
            14
        }
        (Direction::Local, None) => 14,
        (Direction::Local, Some(vid)) => {
            require(&[(LOAD_HALF, 0, 0, 14), (AND, 0, 0, 0xfff)], vid.into());
            require(&[(LOAD_HALF, 0, 0, 16)], ether_type);
            18
        }
    };
    // Source address.
    match direction {
        // Own frames that the network returned were received when they were sent.
        Direction::Wire => all.extend([
            (LOAD_WORD, 0, 0, 6),
            (IF_EQUAL, 0, 3, high),
            (LOAD_HALF, 0, 0, 10),
            (IF_EQUAL, 0, 1, low),
            REJECT,
        ]),
        // Frames of another interface are for the participants there.
        Direction::Local => all.extend([
            (LOAD_WORD, 0, 0, 6),
            (IF_EQUAL, 1, 0, high),
            REJECT,
            (LOAD_HALF, 0, 0, 10),
            (IF_EQUAL, 1, 0, low),
            REJECT,
        ]),
    }
    // Destination address.
    all.extend([
        (LOAD_BYTE, 0, 0, 0),
        (IF_ANY_BIT, 6, 0, 1),
        (LOAD_WORD, 0, 0, 0),
        (IF_EQUAL, 1, 0, high),
        REJECT,
        (LOAD_HALF, 0, 0, 4),
        (IF_EQUAL, 1, 0, low),
        REJECT,
    ]);
    if ports.len() <= PORTS_MAX {
        all.push((LOAD_HALF, 0, 0, takt + 4));
        ports.iter().for_each(|port| all.extend([(IF_EQUAL, 0, 1, u32::from(*port)), ACCEPT]));
        all.push(REJECT);
    } else {
        all.push(ACCEPT);
    }
    all
}

#[cfg(test)]
mod tests {
    use takt_packet::{EthernetHeader, TaktHeader, VlanTag};

    use super::*;

    const OWN: MacAddress = MacAddress([2, 0, 0, 0, 1, 7]);
    const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 2, 7]);
    const GROUP: MacAddress = MacAddress([1, 0, 0x5e, 0x7f, 0, 1]);
    const PORTS: &[u16] = &[7400, 7410, 7411];

    /// Packet metadata that the kernel keeps apart from the octets.
    #[derive(Clone, Copy)]
    struct FrameMetadata {
        packet_type: u32,
        tag: Option<u32>,
        protocol: u32,
    }

    const TO_US: FrameMetadata = FrameMetadata { packet_type: 0, tag: None, protocol: 0x88b5 };

    /// Interprets a program as the kernel does, and reports whether it accepts the frame.
    fn accepts(program: &[Instruction], frame: &[u8], metadata: FrameMetadata) -> bool {
        let (mut at, mut accumulator) = (0, 0_u32);
        loop {
            let (code, if_true, if_false, k) = program[at];
            at += 1;
            let octets = |len: usize| -> Option<u32> {
                let bytes = frame.get(k as usize..k as usize + len)?;
                Some(bytes.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)))
            };
            let loaded = match (code, k) {
                (LOAD_WORD, PACKET_TYPE) => Some(metadata.packet_type),
                (LOAD_WORD, PROTOCOL) => Some(metadata.protocol),
                (LOAD_WORD, VLAN_TAG) => Some(metadata.tag.unwrap_or(0)),
                (LOAD_WORD, HAS_VLAN_TAG) => Some(metadata.tag.is_some().into()),
                (LOAD_WORD, _) => octets(4),
                (LOAD_HALF, _) => octets(2),
                (LOAD_BYTE, _) => octets(1),
                _ => Some(accumulator),
            };
            let Some(loaded) = loaded else { return false };
            accumulator = loaded;
            match code {
                AND => accumulator &= k,
                IF_EQUAL => at += usize::from(if accumulator == k { if_true } else { if_false }),
                IF_ANY_BIT => at += usize::from(if accumulator & k != 0 { if_true } else { if_false }),
                RETURN => return k != 0,
                _ => {}
            }
        }
    }

    fn frame(source: MacAddress, destination: MacAddress, tag: Option<VlanTag>, port: u16) -> Vec<u8> {
        let mut bytes = vec![0; 60];
        let header = EthernetHeader { destination, source, tag, ether_type: EtherType::TAKT };
        let at = header.emit(&mut bytes).expect("the buffer is large enough");
        TaktHeader { destination_port: port, source_port: 1 }.emit(&mut bytes[at..]).expect("enough space");
        bytes
    }

    #[test]
    fn frames_of_others_to_us_are_accepted_from_the_wire() {
        let program = program(Direction::Wire, OWN, None, PORTS);
        let is_accepted = |frame: &[u8], metadata| accepts(&program, frame, metadata);
        for port in PORTS {
            assert!(is_accepted(&frame(OTHER, OWN, None, *port), TO_US));
            assert!(is_accepted(&frame(OTHER, GROUP, None, *port), FrameMetadata { packet_type: 2, ..TO_US }));
            assert!(!is_accepted(&frame(OWN, GROUP, None, *port), TO_US), "our own frame, looped back");
            assert!(!is_accepted(&frame(OTHER, OTHER, None, *port), TO_US), "another's");
            let other_vlan = FrameMetadata { packet_type: FOR_OTHERS, ..TO_US };
            assert!(!is_accepted(&frame(OTHER, OWN, None, *port), other_vlan), "of another VLAN");
        }
        assert!(!is_accepted(&frame(OTHER, OWN, None, 7412), TO_US), "a port that is not open");
        let whole = frame(OTHER, OWN, None, 7400);
        assert!((0..20).all(|len| !is_accepted(&whole[..len], TO_US)) && is_accepted(&whole[..20], TO_US));
    }

    #[test]
    fn vlan_filter_accepts_frames_of_its_vlan_alone() {
        let program = program(Direction::Wire, OWN, Some(42), PORTS);
        let frame = frame(OTHER, OWN, None, 7411);
        let with = |tag| accepts(&program, &frame, FrameMetadata { packet_type: FOR_OTHERS, tag, ..TO_US });
        assert!(with(Some(42)) && with(Some(0xb02a)), "whatever its priority");
        assert!(!with(None) && !with(Some(43)) && !with(Some(0)));
        let ip = FrameMetadata { packet_type: FOR_OTHERS, tag: Some(42), protocol: 0x0800 };
        assert!(!accepts(&program, &frame, ip));
    }

    #[test]
    fn frames_sent_by_this_interface_are_accepted_from_this_host() {
        let plain = program(Direction::Local, OWN, None, PORTS);
        let tagged = program(Direction::Local, OWN, Some(42), PORTS);
        let tag = |vid| Some(VlanTag { pcp: 5, dei: false, vid });
        for to in [OWN, GROUP] {
            assert!(accepts(&plain, &frame(OWN, to, None, 7410), TO_US));
            assert!(!accepts(&plain, &frame(OTHER, to, None, 7410), TO_US), "by another interface");
            assert!(!accepts(&plain, &frame(OWN, to, None, 7409), TO_US));
            assert!(accepts(&tagged, &frame(OWN, to, tag(42), 7410), TO_US));
            assert!(!accepts(&tagged, &frame(OWN, to, tag(43), 7410), TO_US));
            assert!(!accepts(&tagged, &frame(OWN, to, None, 7410), TO_US));
        }
        assert!(!accepts(&plain, &frame(OWN, OTHER, None, 7410), TO_US));
    }

    #[test]
    fn program_for_any_number_of_ports_stays_within_the_kernel_limit() {
        let ports: Vec<u16> = (1..=PORTS_MAX as u16 + 1).collect();
        for count in [0, 1, PORTS_MAX, PORTS_MAX + 1] {
            let program = program(Direction::Wire, OWN, Some(1), &ports[..count]);
            assert!(program.len() <= 4096);
            let metadata = FrameMetadata { tag: Some(1), ..TO_US };
            assert_eq!(accepts(&program, &frame(OTHER, OWN, None, 2000), metadata), count >= PORTS_MAX);
            assert_eq!(accepts(&program, &frame(OTHER, OWN, None, 3000), metadata), count > PORTS_MAX);
        }
    }
}
