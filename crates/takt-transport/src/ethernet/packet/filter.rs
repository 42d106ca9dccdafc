//! The kernel's filter before a socket of AF_PACKET: classic BPF (`bpf(4)` of BSD, `SO_ATTACH_FILTER`).
//!
//! It spares a participant what others are sent, and the ring the room for it. Nothing depends on it: what it lets through is
//! checked all the same. A load beyond a frame's end refuses the frame.

use takt_packet::{EtherType, MacAddress};

/// One instruction: code, where to go on if true and if false (instructions to pass over), operand. As `struct sock_filter`.
pub(super) type Instruction = (u16, u8, u8, u32);

const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const REFUSE: Instruction = (RETURN, 0, 0, 0);
const ACCEPT: Instruction = (RETURN, 0, 0, u32::MAX);

/// Where what the kernel knows about a packet is loaded from (`SKF_AD_OFF` of `linux/filter.h`).
const KNOWN: u32 = -0x1000_i32 as u32;
const PROTOCOL: u32 = KNOWN;
const PACKET_TYPE: u32 = KNOWN + 4;
const VLAN_TAG: u32 = KNOWN + 44;
const HAS_VLAN_TAG: u32 = KNOWN + 48;

/// `PACKET_OTHERHOST`: not for this host, or of a VLAN that it does not know.
const FOR_OTHERS: u32 = 3;

/// Ports that a filter can tell apart: a program has at most 4,096 instructions. With more of them all ports are let through.
pub(super) const PORTS_MAX: usize = 2000;

/// Which way frames come that a filter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// From the interface. The kernel takes tags off.
    Wire,
    /// From this host, by the loopback interface, with the tags as the sender has disguised them.
    Local,
}

/// The program for frames to `own` or to groups, to one of the ports, of this VLAN (`None`: no VLAN).
pub(super) fn program(way: Way, own: MacAddress, vlan: Option<u16>, ports: &[u16]) -> Vec<Instruction> {
    let mut all = Vec::with_capacity(32 + 2 * ports.len());
    let [a, b, c, d, e, f] = own.0;
    let (high, low) = (u32::from_be_bytes([a, b, c, d]), u32::from(u16::from_be_bytes([e, f])));
    let mut require = |loads: &[Instruction], value: u32| {
        all.extend_from_slice(loads);
        all.extend([(IF_EQUAL, 1, 0, value), REFUSE]);
    };
    let ether_type = u32::from(EtherType::TAKT.0);
    let takt = match (way, vlan) {
        (Way::Wire, None) => {
            all.extend([(LOAD_WORD, 0, 0, PACKET_TYPE), (IF_EQUAL, 0, 1, FOR_OTHERS), REFUSE]);
            14
        }
        (Way::Wire, Some(vid)) => {
            require(&[(LOAD_WORD, 0, 0, HAS_VLAN_TAG)], 1);
            require(&[(LOAD_WORD, 0, 0, VLAN_TAG), (AND, 0, 0, 0xfff)], vid.into());
            require(&[(LOAD_WORD, 0, 0, PROTOCOL)], ether_type);
            14
        }
        (Way::Local, None) => 14,
        (Way::Local, Some(vid)) => {
            require(&[(LOAD_HALF, 0, 0, 14), (AND, 0, 0, 0xfff)], vid.into());
            require(&[(LOAD_HALF, 0, 0, 16)], ether_type);
            18
        }
    };
    // Source.
    match way {
        // Our own frames that the network has brought back: we heard them when they left.
        Way::Wire => all.extend([
            (LOAD_WORD, 0, 0, 6),
            (IF_EQUAL, 0, 3, high),
            (LOAD_HALF, 0, 0, 10),
            (IF_EQUAL, 0, 1, low),
            REFUSE,
        ]),
        // Another interface's are for whoever is there.
        Way::Local => all.extend([
            (LOAD_WORD, 0, 0, 6),
            (IF_EQUAL, 1, 0, high),
            REFUSE,
            (LOAD_HALF, 0, 0, 10),
            (IF_EQUAL, 1, 0, low),
            REFUSE,
        ]),
    }
    // Destination.
    all.extend([
        (LOAD_BYTE, 0, 0, 0),
        (IF_ANY_BIT, 6, 0, 1),
        (LOAD_WORD, 0, 0, 0),
        (IF_EQUAL, 1, 0, high),
        REFUSE,
        (LOAD_HALF, 0, 0, 4),
        (IF_EQUAL, 1, 0, low),
        REFUSE,
    ]);
    if ports.len() <= PORTS_MAX {
        all.push((LOAD_HALF, 0, 0, takt + 4));
        ports.iter().for_each(|port| all.extend([(IF_EQUAL, 0, 1, u32::from(*port)), ACCEPT]));
        all.push(REFUSE);
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

    /// What the kernel knows about a packet besides its octets.
    #[derive(Clone, Copy)]
    struct Known {
        packet_type: u32,
        tag: Option<u32>,
        protocol: u32,
    }

    const TO_US: Known = Known { packet_type: 0, tag: None, protocol: 0x88b5 };

    /// Runs a program as the kernel would: is the frame let through?
    fn lets_through(program: &[Instruction], frame: &[u8], known: Known) -> bool {
        let (mut at, mut accumulator) = (0, 0_u32);
        loop {
            let (code, yes, no, k) = program[at];
            at += 1;
            let octets = |len: usize| -> Option<u32> {
                let bytes = frame.get(k as usize..k as usize + len)?;
                Some(bytes.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)))
            };
            let loaded = match (code, k) {
                (LOAD_WORD, PACKET_TYPE) => Some(known.packet_type),
                (LOAD_WORD, PROTOCOL) => Some(known.protocol),
                (LOAD_WORD, VLAN_TAG) => Some(known.tag.unwrap_or(0)),
                (LOAD_WORD, HAS_VLAN_TAG) => Some(known.tag.is_some().into()),
                (LOAD_WORD, _) => octets(4),
                (LOAD_HALF, _) => octets(2),
                (LOAD_BYTE, _) => octets(1),
                _ => Some(accumulator),
            };
            let Some(loaded) = loaded else { return false };
            accumulator = loaded;
            match code {
                AND => accumulator &= k,
                IF_EQUAL => at += usize::from(if accumulator == k { yes } else { no }),
                IF_ANY_BIT => at += usize::from(if accumulator & k != 0 { yes } else { no }),
                RETURN => return k != 0,
                _ => {}
            }
        }
    }

    fn frame(source: MacAddress, destination: MacAddress, tag: Option<VlanTag>, port: u16) -> Vec<u8> {
        let mut bytes = vec![0; 60];
        let header = EthernetHeader { destination, source, tag, ether_type: EtherType::TAKT };
        let at = header.emit(&mut bytes).expect("it fits");
        TaktHeader { destination_port: port, source_port: 1 }.emit(&mut bytes[at..]).expect("it fits");
        bytes
    }

    #[test]
    fn from_the_wire_what_is_for_us_from_others_is_let_through() {
        let program = program(Way::Wire, OWN, None, PORTS);
        let lets = |frame: &[u8], known| lets_through(&program, frame, known);
        for port in PORTS {
            assert!(lets(&frame(OTHER, OWN, None, *port), TO_US));
            assert!(lets(&frame(OTHER, GROUP, None, *port), Known { packet_type: 2, ..TO_US }));
            assert!(!lets(&frame(OWN, GROUP, None, *port), TO_US), "our own, brought back");
            assert!(!lets(&frame(OTHER, OTHER, None, *port), TO_US), "another's");
            let foreign = Known { packet_type: FOR_OTHERS, ..TO_US };
            assert!(!lets(&frame(OTHER, OWN, None, *port), foreign), "of another VLAN");
        }
        assert!(!lets(&frame(OTHER, OWN, None, 7412), TO_US), "a port that is not open");
        let whole = frame(OTHER, OWN, None, 7400);
        assert!((0..20).all(|len| !lets(&whole[..len], TO_US)) && lets(&whole[..20], TO_US));
    }

    #[test]
    fn of_a_vlan_nothing_else_is_let_through() {
        let program = program(Way::Wire, OWN, Some(42), PORTS);
        let frame = frame(OTHER, OWN, None, 7411);
        let with = |tag| lets_through(&program, &frame, Known { packet_type: FOR_OTHERS, tag, ..TO_US });
        assert!(with(Some(42)) && with(Some(0xb02a)), "whatever its priority");
        assert!(!with(None) && !with(Some(43)) && !with(Some(0)));
        let ip = Known { packet_type: FOR_OTHERS, tag: Some(42), protocol: 0x0800 };
        assert!(!lets_through(&program, &frame, ip));
    }

    #[test]
    fn from_this_host_what_left_by_this_interface_is_let_through() {
        let plain = program(Way::Local, OWN, None, PORTS);
        let tagged = program(Way::Local, OWN, Some(42), PORTS);
        let tag = |vid| Some(VlanTag { pcp: 5, dei: false, vid });
        for to in [OWN, GROUP] {
            assert!(lets_through(&plain, &frame(OWN, to, None, 7410), TO_US));
            assert!(!lets_through(&plain, &frame(OTHER, to, None, 7410), TO_US), "by another interface");
            assert!(!lets_through(&plain, &frame(OWN, to, None, 7409), TO_US));
            assert!(lets_through(&tagged, &frame(OWN, to, tag(42), 7410), TO_US));
            assert!(!lets_through(&tagged, &frame(OWN, to, tag(43), 7410), TO_US));
            assert!(!lets_through(&tagged, &frame(OWN, to, None, 7410), TO_US));
        }
        assert!(!lets_through(&plain, &frame(OWN, OTHER, None, 7410), TO_US));
    }

    #[test]
    fn any_number_of_ports_is_a_program_that_the_kernel_takes() {
        let ports: Vec<u16> = (1..=PORTS_MAX as u16 + 1).collect();
        for count in [0, 1, PORTS_MAX, PORTS_MAX + 1] {
            let program = program(Way::Wire, OWN, Some(1), &ports[..count]);
            assert!(program.len() <= 4096);
            let known = Known { tag: Some(1), ..TO_US };
            assert_eq!(lets_through(&program, &frame(OTHER, OWN, None, 2000), known), count >= PORTS_MAX);
            assert_eq!(lets_through(&program, &frame(OTHER, OWN, None, 3000), known), count > PORTS_MAX);
        }
    }
}
