//! UDP in a VLAN over a packet socket, for kernels without VLAN interfaces.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use takt_netlink::frame_socket::FrameSocket;
use takt_sdn::frame::{ArpOperation, ArpPacket, Frame, MacAddress, UdpFrame, VlanTag, arp_frame};

use super::station::{GROUP, METATRAFFIC, MULTICAST, USER};

pub const TAG: VlanTag = VlanTag { pcp: 0, dei: false, vid: 5 };
const PORTS: [u16; 3] = [MULTICAST, METATRAFFIC, USER];

pub struct Tagged {
    socket: FrameSocket,
    mac: MacAddress,
    address: Ipv4Addr,
    /// Known hosts, which have sent frames.
    neighbors: BTreeMap<IpAddr, MacAddress>,
}

impl Tagged {
    /// Announces the address in the VLAN.
    pub fn new(socket: FrameSocket, address: Ipv4Addr) -> Self {
        let mac = MacAddress(socket.address().expect("the socket is bound"));
        let target = (MacAddress::default(), address);
        let packet = ArpPacket { operation: ArpOperation::Request, sender: (mac, address), target };
        socket.send(&arp_frame(MacAddress::BROADCAST, mac, &[TAG], &packet)).expect("the interface is up");
        Self { socket, mac, address, neighbors: BTreeMap::new() }
    }

    pub fn send(&self, to: SocketAddr, payload: &[u8]) {
        let known = self.neighbors.get(&to.ip()).copied();
        // A host that has sent nothing has announced nothing to answer.
        let Some(destination_mac) = MacAddress::of_group(to.ip()).or(known) else { return };
        let frame = UdpFrame {
            destination_mac,
            source_mac: self.mac,
            tags: &[TAG],
            source: (self.address, METATRAFFIC).into(),
            destination: to,
            hop_limit: 64,
            traffic_class: 0,
            payload,
        };
        self.socket.send(&frame.build().expect("the frame is valid")).expect("the interface is up");
    }

    pub fn receive(&mut self, timeout: Duration, handle: &mut impl FnMut(SocketAddr, bool, &[u8])) {
        let mut buffer = vec![0; 65_550];
        self.socket.wait(timeout).expect("the interface is there");
        while let Some(captured) = self.socket.receive(&mut buffer).expect("the interface is there") {
            let Ok(frame) = Frame::parse(&buffer[..captured.len]) else { continue };
            let Some((packet, datagram)) = frame.udp() else { continue };
            let to = packet.destination();
            let is_own = packet.source() == self.address;
            if is_own || !PORTS.contains(&datagram.destination_port()) || (to != GROUP && to != self.address) {
                continue;
            }
            self.neighbors.insert(packet.source(), frame.source());
            let source = SocketAddr::new(packet.source(), datagram.source_port());
            handle(source, to.is_multicast(), datagram.payload());
        }
    }
}
