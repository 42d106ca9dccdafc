//! Transit times of samples: from the interface of the writer's host to that of each reader's host.
//!
//! The controller's bound concerns this time; the time from write to arrival also includes both
//! hosts. A sample is in transit from the departure of its first fragment to the arrival of its
//! last one. Only the first sighting of each fragment counts. A lost fragment counts when its
//! repair arrives.

use super::site::{PUBLISHER, PUBLISHER_ADDRESS, SUBSCRIBERS, Site};
use crate::error::{Error, Result};
use crate::stall::{Stall, StallObserver, stalled_ns};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use takt_netlink::frame_socket::FrameSocket;
use takt_netlink::interface_index;
use takt_packet::{Ipv4Packet, UdpDatagram};
pub use takt_wire::VendorId;
use takt_wire::message::Header;
use takt_wire::{Guid, MessageView, Submessage};

/// Interface of a host.
const INTERFACE: &str = "eth0";
/// Receive buffer of a socket: 3,500 frames of 1,400 octets. Frames beyond it are missed.
const BUFFER_LEN: i32 = 8 << 20;
/// Maximum length of an Ethernet frame without tag and FCS, and length of its header.
const FRAME_LEN_MAX: usize = 1514;
const ETHERNET_LEN: usize = 14;
/// Maximum wait of a thread for a frame before it checks whether it must end.
const PAUSE: Duration = Duration::from_millis(20);

/// Sample identity: vendor, writer, sequence number.
type Sample = (VendorId, Guid, i64);
/// Sample, and the number of a fragment; 0 for an unfragmented sample.
type Fragment = (Sample, u32);
/// Time of the first sighting of each fragment, ns.
type Sightings = BTreeMap<Fragment, i64>;

/// Transit of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit {
    /// Departure of its first fragment, ns since 1970.
    pub left_ns: i64,
    /// Time until the arrival of its last fragment, ns.
    pub len_ns: u64,
}

/// Transits of samples, and concurrent stalls of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transits {
    /// Transit of each sample that arrived.
    pub samples: Vec<Transit>,
    /// Stalls of all processors.
    pub stalls: Vec<Stall>,
}

impl Transits {
    /// Returns the number of samples whose transit exceeded `bound_ns`, and the number of those
    /// whose excess is greater than the concurrent processor stalls.
    #[must_use]
    pub fn above(&self, bound_ns: u64) -> (u64, u64) {
        let late = self.samples.iter().filter(|transit| transit.len_ns > bound_ns);
        let is_unexplained = |transit: &Transit| {
            let arrived_ns = transit.left_ns.saturating_add_unsigned(transit.len_ns);
            transit.len_ns > bound_ns + stalled_ns(&self.stalls, transit.left_ns, arrived_ns)
        };
        late.fold((0, 0), |(all, unexplained), transit| (all + 1, unexplained + u64::from(is_unexplained(transit))))
    }

    /// Returns the longest transit, ns.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        self.samples.iter().map(|transit| transit.len_ns).max().unwrap_or(0)
    }
}

/// Packet capture at the interfaces of a site, until it is dropped.
#[derive(Debug)]
pub struct Capture {
    stalls: StallObserver,
    is_over: Arc<AtomicBool>,
    /// Threads of the writer's host and of each reader's host.
    threads: Vec<JoinHandle<Result<Sightings>>>,
}

impl Capture {
    /// Starts the capture.
    ///
    /// # Errors
    /// The user is not root.
    pub fn start(site: &Site) -> Result<Self> {
        let stalls = StallObserver::start();
        let mut transits = Self { stalls, is_over: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        for host in std::iter::once(&PUBLISHER).chain(&SUBSCRIBERS[..site.plan().readers]) {
            let failed = |source| Error::os(format!("capture frames of {host}"), source);
            let socket = site.run(host, capture)?.map_err(failed)?;
            let is_over = Arc::clone(&transits.is_over);
            transits.threads.push(std::thread::spawn(move || capture_frames(&socket, &is_over)));
        }
        Ok(transits)
    }

    /// Stops the capture. Returns the transits for each reader's host and each vendor of writers.
    ///
    /// # Errors
    /// Packets could not be read.
    pub fn stop(self) -> Result<Vec<BTreeMap<VendorId, Transits>>> {
        let Self { stalls, is_over, threads } = self;
        is_over.store(true, Ordering::Relaxed);
        let ended = |_| Error::NoAnswer { what: "a thread that watches an interface has ended".to_owned() };
        let seen = threads.into_iter().map(|thread| thread.join().map_err(ended)?);
        let seen = seen.collect::<Result<Vec<Sightings>>>()?;
        let Some((left, arrived)) = seen.split_first() else { return Ok(Vec::new()) };
        let stalls = stalls.stop();
        let with_stalls = |samples| Transits { samples, stalls: stalls.clone() };
        let of = |arrived| transits(left, arrived).into_iter().map(|(vendor, samples)| (vendor, with_stalls(samples)));
        Ok(arrived.iter().map(|arrived| of(arrived).collect()).collect())
    }
}

/// Opens a socket that captures traffic from the writer's host at the interface of a host.
fn capture() -> std::io::Result<FrameSocket> {
    let socket = FrameSocket::capture(interface_index(INTERFACE)?, BUFFER_LEN)?;
    socket.accept_udp_from(PUBLISHER_ADDRESS)?;
    // Drains frames from before the filter.
    while socket.receive(&mut [0; FRAME_LEN_MAX])?.is_some() {}
    Ok(socket)
}

fn capture_frames(socket: &FrameSocket, is_over: &AtomicBool) -> Result<Sightings> {
    let failed = |source| Error::os("capture frames", source);
    let (mut seen, mut frame) = (Sightings::new(), [0; FRAME_LEN_MAX]);
    while !is_over.load(Ordering::Relaxed) {
        socket.wait(PAUSE).map_err(failed)?;
        while let Some(passed) = socket.receive(&mut frame).map_err(failed)? {
            let packet = frame[..passed.len].get(ETHERNET_LEN..).unwrap_or_default();
            record_frame(packet, passed.time_ns.cast_signed(), &mut seen);
        }
    }
    Ok(seen)
}

/// Records the user data of a packet; other packets are ignored.
fn record_frame(packet: &[u8], at_ns: i64, seen: &mut Sightings) {
    let Ok(packet) = Ipv4Packet::parse(packet) else { return };
    let Ok(datagram) = UdpDatagram::parse(packet.payload()) else { return };
    let Ok(message) = MessageView::parse(datagram.payload()) else { return };
    let Header { vendor, prefix, .. } = message.header();
    for submessage in message.submessages() {
        let (writer, number, fragment) = match submessage {
            Ok(Submessage::Data(data)) => (data.writer, data.sn, 0),
            Ok(Submessage::DataFrag(data)) => (data.writer, data.sn, data.fragment_starting_num),
            Ok(_) => continue,
            Err(_) => return,
        };
        if !writer.is_builtin() {
            seen.entry(((vendor, Guid::new(prefix, writer), number.0), fragment)).or_insert(at_ns);
        }
    }
}

/// Returns the transit of each sample that left and arrived, by the vendor of its writer.
fn transits(left: &Sightings, arrived: &Sightings) -> BTreeMap<VendorId, Vec<Transit>> {
    let mut departures: BTreeMap<Sample, i64> = BTreeMap::new();
    for ((sample, _), at_ns) in left {
        departures.entry(*sample).and_modify(|first| *first = (*first).min(*at_ns)).or_insert(*at_ns);
    }
    let mut arrivals: BTreeMap<Sample, i64> = BTreeMap::new();
    for ((sample, _), at_ns) in arrived {
        arrivals.entry(*sample).and_modify(|last| *last = (*last).max(*at_ns)).or_insert(*at_ns);
    }
    let mut transits: BTreeMap<VendorId, Vec<Transit>> = BTreeMap::new();
    for (sample, at_ns) in arrivals {
        let Some(left_ns) = departures.get(&sample) else { continue };
        let len_ns = u64::try_from(at_ns - left_ns).unwrap_or(0);
        transits.entry(sample.0).or_default().push(Transit { left_ns: *left_ns, len_ns });
    }
    transits
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddrV4};

    use takt_packet::{DatagramAddresses, DatagramHeader};
    use takt_wire::{
        DataEmit, DataFragEmit, EntityId, GuidPrefix, MessageBuilder, Payload, ProtocolVersion, SequenceNumber,
    };

    const PREFIX: GuidPrefix = GuidPrefix([7; 12]);
    const WRITER: EntityId = EntityId([0, 0, 1, 3]);

    /// Returns a UDP packet with one submessage.
    fn packet(vendor: VendorId, add: impl FnOnce(&mut MessageBuilder<'_>)) -> Vec<u8> {
        let mut message = [0; 200];
        let header = Header { version: ProtocolVersion::V2_5, vendor, prefix: PREFIX };
        let mut builder = MessageBuilder::new(&mut message, &header).expect("the buffer has space");
        add(&mut builder);
        let payload = builder.bytes().to_vec();
        let [source, destination] =
            [(1, 7000), (2, 7411)].map(|(last, port)| SocketAddrV4::new(Ipv4Addr::new(10, 81, 0, last), port));
        let addresses = DatagramAddresses::V4(source, destination);
        let header = DatagramHeader { addresses, traffic_class: 0, hop_limit: 64 };
        let mut packet = [vec![0; header.header_len()], payload].concat();
        header.emit(&mut packet).expect("the buffer has space");
        packet
    }

    fn data(vendor: VendorId, writer: EntityId, number: i64) -> Vec<u8> {
        let (reader, sn) = (EntityId::UNKNOWN, SequenceNumber(number));
        let payload = Payload::Data(&[0, 1, 0, 0]);
        packet(vendor, |builder| {
            builder.data(&DataEmit { reader, writer, sn, inline_qos: None, payload }).expect("the buffer has space");
        })
    }

    fn fragment(number: i64, fragment_starting_num: u32) -> Vec<u8> {
        let fragment = DataFragEmit {
            reader: EntityId::UNKNOWN,
            writer: WRITER,
            sn: SequenceNumber(number),
            fragment_starting_num,
            fragment_size: 8,
            sample_size: 16,
            inline_qos: None,
            key: false,
            payload: &[3; 8],
            fragments_in_submessage: 1,
        };
        packet(VendorId::TAKT, |builder| builder.data_frag(&fragment).expect("the buffer has space"))
    }

    #[test]
    fn sample_is_in_the_network_from_its_first_fragment_to_its_last_one() {
        let (mut left, mut arrived) = (Sightings::new(), Sightings::new());
        for (at_ns, number) in [(100, 1), (110, 2)] {
            record_frame(&fragment(5, number), at_ns, &mut left);
        }
        record_frame(&data(VendorId::TAKT, WRITER, 6), 200, &mut left);
        record_frame(&data(VendorId::CYCLONE, WRITER, 6), 300, &mut left);
        for (at_ns, number) in [(150, 1), (190, 2), (999, 2)] {
            record_frame(&fragment(5, number), at_ns, &mut arrived);
        }
        record_frame(&data(VendorId::CYCLONE, WRITER, 6), 330, &mut arrived);
        // The second sample of the first vendor is lost, and the repeated fragment does not count.
        let of = |left_ns, len_ns| vec![Transit { left_ns, len_ns }];
        let expected = [(VendorId::CYCLONE, of(300, 30)), (VendorId::TAKT, of(100, 90))];
        assert_eq!(transits(&left, &arrived), BTreeMap::from(expected));
    }

    #[test]
    fn late_samples_are_explained_by_concurrent_stalls() {
        let samples = [(0, 50), (100, 90), (300, 90)].map(|(left_ns, len_ns)| Transit { left_ns, len_ns });
        let stalls = vec![Stall { from_ns: 90, to_ns: 140 }, Stall { from_ns: 300, to_ns: 320 }];
        let transits = Transits { samples: samples.to_vec(), stalls };
        assert_eq!(transits.above(60), (2, 1), "the third one is late by 30, and 20 of them are explained");
        assert_eq!((transits.above(90), transits.longest_ns()), ((0, 0), 90));
    }

    #[test]
    fn discovery_data_and_invalid_packets_are_not_recorded() {
        let mut seen = Sightings::new();
        record_frame(&data(VendorId::TAKT, EntityId::SPDP_WRITER, 1), 1, &mut seen);
        record_frame(&data(VendorId::TAKT, WRITER, 1)[..60], 1, &mut seen);
        record_frame(&[], 1, &mut seen);
        assert_eq!(seen, Sightings::new());
    }
}
