//! Properties of a network interface, read from the kernel by netlink. Changes nothing.

use std::io;
use std::net::Ipv4Addr;

use takt_netlink::{GENERIC_LEN, Netlink, find, number, put, put_text, text};

/// Requests for links and addresses, and attributes of the replies (`linux/rtnetlink.h`,
/// `linux/if_link.h`).
const GET_LINK: u16 = 18;
const GET_ADDRESS: u16 = 22;
const LINK_LEN: usize = 16;
const ADDRESS_LEN: usize = 8;
const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const LINK_INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const LINK_RX_QUEUES: u16 = 32;
const LINK_XDP: u16 = 43;
const XDP_ATTACHED: u16 = 2;
const ADDRESS_LOCAL: u16 = 2;
/// Ethernet link type (`linux/if_arp.h`).
const TYPE_ETHERNET: u16 = 1;
const FLAG_UP: u32 = 1;
const FLAG_RUNNING: u32 = 1 << 6;

/// Commands and attributes of the family `netdev` of generic netlink (`linux/netdev.h`).
const DEVICE_GET: u8 = 1;
const DEVICE_INDEX: u16 = 1;
const DEVICE_XDP_FEATURES: u16 = 3;
const DEVICE_ZERO_COPY_PARTS: u16 = 4;
const QUEUE_GET: u8 = 10;
const QUEUE_INDEX: u16 = 2;
const QUEUE_TYPE: u16 = 3;
/// Flags of the XDP features of a driver.
const XDP_BASIC: u64 = 1;
const XDP_REDIRECT: u64 = 1 << 1;
const XDP_ZERO_COPY: u64 = 1 << 3;
const XDP_RX_PARTS: u64 = 1 << 5;

/// XDP features of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XdpFeatures {
    /// The driver runs XDP programs natively and can redirect frames to sockets.
    pub native: bool,
    /// Sockets can share their memory with the device.
    pub zero_copy: bool,
    /// Frames can have several parts, as with large MTUs.
    pub several_parts: bool,
    /// Maximum number of parts of a frame that is sent without a copy.
    pub zero_copy_parts_max: u32,
}

/// Snapshot of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Name of the interface.
    pub name: String,
    /// Index that the kernel assigned to the interface.
    pub index: u32,
    /// Driver of the device, or the kind of a virtual device, such as `veth`; empty if neither is
    /// known.
    pub driver: String,
    /// Frames have Ethernet headers.
    pub is_ethernet: bool,
    /// The interface is administratively up.
    pub is_up: bool,
    /// The interface has a carrier.
    pub has_carrier: bool,
    /// Maximum size of a packet, in octets.
    pub mtu: usize,
    /// IPv4 addresses of the interface.
    pub ipv4: Vec<Ipv4Addr>,
    /// Number of receive queues.
    pub rx_queues: u32,
    /// An XDP program is attached.
    pub has_xdp_program: bool,
    /// XDP features; `None` before Linux 6.3, where the kernel does not report them.
    pub xdp: Option<XdpFeatures>,
}

impl Link {
    /// Looks up an interface of the network namespace of the calling thread.
    ///
    /// # Errors
    /// There is no interface of this name, or the kernel does not reply.
    pub fn query(name: &str) -> io::Result<Self> {
        let mut route = Netlink::route()?;
        let mut body = vec![0; LINK_LEN];
        put_text(&mut body, LINK_NAME, name);
        let reply = route.get(GET_LINK, &body)?;
        let cut_off = || io::Error::from(io::ErrorKind::InvalidData);
        let (fixed, rest) = reply.split_at_checked(LINK_LEN).ok_or_else(cut_off)?;
        let [index, flags] = [4, 8].map(|at| number(&fixed[at..]).expect("the offset is within the header"));
        let kind = find(rest, LINK_INFO).and_then(|info| find(info, INFO_KIND)).map(text).unwrap_or_default();
        let attached = find(rest, LINK_XDP).and_then(|xdp| find(xdp, XDP_ATTACHED)?.first().copied());
        let mut link = Self {
            name: name.to_owned(),
            index,
            driver: if kind.is_empty() { driver_of(name, index).unwrap_or_default() } else { kind },
            is_ethernet: u16::from_ne_bytes([fixed[2], fixed[3]]) == TYPE_ETHERNET,
            is_up: flags & FLAG_UP != 0,
            has_carrier: flags & FLAG_RUNNING != 0,
            mtu: find(rest, LINK_MTU).and_then(number).unwrap_or_default() as usize,
            ipv4: addresses(&mut route, index)?,
            rx_queues: find(rest, LINK_RX_QUEUES).and_then(number).unwrap_or(1),
            has_xdp_program: attached.is_some_and(|mode| mode != 0),
            xdp: None,
        };
        // Kernels without this family report no XDP features.
        if let Ok(mut generic) = Netlink::generic()
            && let Ok(family) = generic.family("netdev")
        {
            link.xdp = features(&mut generic, family, index);
            link.rx_queues = queues(&mut generic, family, index).unwrap_or(link.rx_queues);
        }
        Ok(link)
    }
}

/// Returns the driver of the underlying device, if there is one. Compares the interface index,
/// because the mounted sysfs may belong to another network namespace.
fn driver_of(name: &str, index: u32) -> Option<String> {
    let directory = format!("/sys/class/net/{name}");
    // tidy-allow(dropped-cause): no device, no driver.
    let ifindex = std::fs::read_to_string(format!("{directory}/ifindex")).ok()?;
    if ifindex.trim() != index.to_string() {
        return None;
    }
    // tidy-allow(dropped-cause): likewise.
    let link = std::fs::read_link(format!("{directory}/device/driver")).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

fn addresses(route: &mut Netlink, index: u32) -> io::Result<Vec<Ipv4Addr>> {
    let mut body = vec![0; ADDRESS_LEN];
    body[0] = libc::AF_INET as u8;
    let replies = route.dump(GET_ADDRESS, &body)?;
    let local = |body: &Vec<u8>| {
        let (fixed, rest) = body.split_at_checked(ADDRESS_LEN)?;
        let octets: [u8; 4] = find(rest, ADDRESS_LOCAL)?.try_into().ok()?; // tidy-allow(dropped-cause): four octets
        (fixed[4..] == index.to_ne_bytes()).then(|| Ipv4Addr::from(octets))
    };
    Ok(replies.iter().filter_map(local).collect())
}

fn features(generic: &mut Netlink, family: u16, index: u32) -> Option<XdpFeatures> {
    let mut body = vec![DEVICE_GET, 1, 0, 0];
    put(&mut body, DEVICE_INDEX, &index.to_ne_bytes());
    // tidy-allow(dropped-cause): every failure means that the kernel reports nothing.
    let reply = generic.get(family, &body).ok()?;
    let attributes = reply.get(GENERIC_LEN..)?;
    let octets = find(attributes, DEVICE_XDP_FEATURES)?.try_into().ok()?; // tidy-allow(dropped-cause): eight octets
    let features = u64::from_ne_bytes(octets);
    Some(XdpFeatures {
        native: features & (XDP_BASIC | XDP_REDIRECT) == XDP_BASIC | XDP_REDIRECT,
        zero_copy: features & XDP_ZERO_COPY != 0,
        several_parts: features & XDP_RX_PARTS != 0,
        zero_copy_parts_max: find(attributes, DEVICE_ZERO_COPY_PARTS).and_then(number).unwrap_or(1),
    })
}

/// Counts the receive queues in use; the kernel reports them from Linux 6.8 on.
fn queues(generic: &mut Netlink, family: u16, index: u32) -> Option<u32> {
    let mut body = vec![QUEUE_GET, 1, 0, 0];
    put(&mut body, QUEUE_INDEX, &index.to_ne_bytes());
    // tidy-allow(dropped-cause): every failure means that the kernel reports nothing.
    let replies = generic.dump(family, &body).ok()?;
    let receives = |body: &&Vec<u8>| {
        let kind = body.get(GENERIC_LEN..).and_then(|rest| find(rest, QUEUE_TYPE));
        kind.and_then(number) == Some(0)
    };
    u32::try_from(replies.iter().filter(receives).count()).ok().filter(|count| *count > 0) // tidy-allow(dropped-cause): bounded
}
