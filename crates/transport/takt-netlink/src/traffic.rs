//! Queueing disciplines that divide a rate in strict priority: HTB, FIFOs, filters by DSCP
//! (linux/pkt_sched.h, linux/pkt_cls.h).
//!
//! Rates are in octets per second. Handles have the form of tc(8): `1:2` is `0x0001_0002`.

use std::io;

use crate::{NEW, Netlink, find, number, put, put_nested, put_text, text};

pub(crate) const NEW_QDISC: u16 = 36;
pub(crate) const DELETE_QDISC: u16 = 37;
const GET_QDISC: u16 = 38;
const NEW_CLASS: u16 = 40;
const GET_CLASS: u16 = 42;
pub(crate) const NEW_FILTER: u16 = 44;
const DELETE_FILTER: u16 = 45;
const GET_FILTER: u16 = 46;

const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const STATS: u16 = 7;
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
/// Length of `tcmsg`, in octets.
const HEADER_LEN: usize = 20;

/// Parent of the root discipline.
pub const ROOT: u32 = 0xffff_ffff;

const HTB_PARAMETERS: u16 = 1;
const HTB_INIT: u16 = 2;
const HTB_VERSION: u32 = 3;
/// Divisor of the rate that gives the quantum of an HTB class without one.
const RATE_TO_QUANTUM: u32 = 10;
const LINK_LAYER_ETHERNET: u8 = 1;
/// Kernel unit of a burst's transmission time, in ns.
const TICK_NS: u64 = 64;

const U32_CLASS: u16 = 1;
const U32_SELECTOR: u16 = 5;
const TERMINAL: u8 = 1;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
/// Shift of the DSCP within the first 32 bits of the IPv4 and the IPv6 header.
const IPV4_DSCP_SHIFT: u32 = 18;
const IPV6_DSCP_SHIFT: u32 = 22;
/// Length of `tc_u32_sel` before its keys, and of a key, in octets.
const SELECTOR_LEN: usize = 16;
const KEY_LEN: usize = 16;

/// Queueing discipline to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// HTB, with classes that have rates.
    Htb {
        /// Minor number of the class of frames that match no filter.
        default: u16,
    },
    /// FIFO that drops the newest frame when it is full.
    Pfifo {
        /// Maximum length in frames.
        frames: u32,
    },
    /// FIFO that drops the oldest frame when it is full. The sender receives no ENOBUFS.
    PfifoHeadDrop {
        /// Maximum length in frames.
        frames: u32,
    },
}

impl Discipline {
    /// Returns the kernel's name of the kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Htb { .. } => "htb",
            Self::Pfifo { .. } => "pfifo",
            Self::PfifoHeadDrop { .. } => "pfifo_head_drop",
        }
    }
}

/// HTB class to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClass {
    /// Guaranteed rate in octets per second.
    pub rate: u32,
    /// Maximum rate in octets per second.
    pub ceiling: u32,
    /// Octets that the class may send at once.
    pub burst: u32,
    /// Octets that the class sends in one turn among classes of the same priority.
    pub quantum: u32,
    /// Priority, 0 to 7. The class with the smaller number borrows first.
    pub priority: u32,
    /// Octets that count for each frame in addition to its length.
    pub overhead: u16,
}

/// Existing queueing discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisciplineState {
    /// Kernel name of the kind.
    pub kind: String,
    /// Handle. 0 for a discipline that the kernel created itself.
    pub handle: u32,
    /// Class to which the discipline belongs, or [`ROOT`].
    pub parent: u32,
    /// Frames sent.
    pub frames: u64,
    /// Frames dropped.
    pub drops: u32,
    /// Queued frames.
    pub waiting: u32,
    /// Maximum length: in frames for `pfifo` and `pfifo_head_drop`, in octets for `bfifo`. `None`
    /// for other kinds.
    pub limit: Option<u32>,
}

/// Existing HTB class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClassState {
    /// Number of the class.
    pub class: u32,
    /// Parent class, or [`ROOT`].
    pub parent: u32,
    /// Guaranteed rate in octets per second.
    pub rate: u32,
    /// Maximum rate in octets per second.
    pub ceiling: u32,
    /// Priority, 0 to 7. The class with the smaller number borrows first.
    pub priority: u32,
    /// Octets that count for each frame in addition to its length.
    pub overhead: u16,
}

/// u32 filter with one key, which is the first 32 bits after the Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct U32Filter {
    /// EtherType of matching frames.
    pub protocol: u16,
    /// Mask of the compared bits.
    pub mask: u32,
    /// Value of the compared bits.
    pub value: u32,
    /// Class of matching frames.
    pub class: u32,
}

impl U32Filter {
    /// Returns the DSCP that the filter matches, of IPv4 or IPv6, with or without a VLAN tag.
    /// `None` if it matches something else.
    pub fn dscp(&self) -> Option<u8> {
        let version_mask = 0xf << 28;
        let (shift, mask) = match (self.protocol, self.value >> 28) {
            (IPV4, 0) => (IPV4_DSCP_SHIFT, 0),
            (IPV6, 0) => (IPV6_DSCP_SHIFT, 0),
            (VLAN, 4) => (IPV4_DSCP_SHIFT, version_mask),
            (VLAN, 6) => (IPV6_DSCP_SHIFT, version_mask),
            _ => return None,
        };
        // A DSCP has six bits.
        (self.mask == 0x3f << shift | mask).then_some((self.value >> shift & 0x3f) as u8)
    }
}

impl Netlink {
    /// Creates a queueing discipline.
    ///
    /// # Errors
    /// `ENOENT`: this kernel does not have the kind. `EEXIST`: the parent has a discipline.
    /// `EPERM`: not root.
    pub fn add_discipline(&mut self, index: i32, handle: u32, parent: u32, discipline: Discipline) -> io::Result<()> {
        let mut body = message(index, handle, parent, 0);
        put_text(&mut body, KIND, discipline.kind());
        match discipline {
            Discipline::Htb { default } => {
                let init = [HTB_VERSION, RATE_TO_QUANTUM, default.into(), 0, 0];
                let mut options = Vec::new();
                put(&mut options, HTB_INIT, &init.map(u32::to_ne_bytes).concat());
                put(&mut body, OPTIONS, &options);
            }
            Discipline::Pfifo { frames } | Discipline::PfifoHeadDrop { frames } => {
                put(&mut body, OPTIONS, &frames.to_ne_bytes());
            }
        }
        self.request(NEW_QDISC, NEW, &body)
    }

    /// Removes the discipline of a parent, with everything below it.
    ///
    /// # Errors
    /// `ENOENT`: the parent has no discipline. `EPERM`: not root.
    pub fn remove_discipline(&mut self, index: i32, parent: u32) -> io::Result<()> {
        self.request(DELETE_QDISC, 0, &message(index, 0, parent, 0))
    }

    /// Creates an HTB class. Its parent is another class, or the handle of the HTB.
    ///
    /// # Errors
    /// `EINVAL`: the parent does not exist, or the rate is 0. `EPERM`: not root.
    pub fn add_class(&mut self, index: i32, class: u32, parent: u32, of: &HtbClass) -> io::Result<()> {
        let mut parameters = Vec::new();
        for rate in [of.rate, of.ceiling] {
            parameters.extend([0, LINK_LAYER_ETHERNET]);
            parameters.extend(of.overhead.to_ne_bytes());
            parameters.extend([0; 4]);
            parameters.extend(rate.to_ne_bytes());
        }
        let ticks = |rate: u32| {
            let time_ns = u64::from(of.burst) * 1_000_000_000 / u64::from(rate.max(1));
            u32::try_from(time_ns / TICK_NS).unwrap_or(u32::MAX)
        };
        for number in [ticks(of.rate), ticks(of.ceiling), of.quantum, 0, of.priority] {
            parameters.extend(number.to_ne_bytes());
        }
        let mut options = Vec::new();
        put(&mut options, HTB_PARAMETERS, &parameters);
        let mut body = message(index, class, parent, 0);
        put_text(&mut body, KIND, "htb");
        put(&mut body, OPTIONS, &options);
        self.request(NEW_CLASS, NEW, &body)
    }

    /// Sorts IPv4 and IPv6 frames with a DSCP into a class, with or without an 802.1Q tag, by four
    /// u32 filters (tc-u32(8)).
    ///
    /// For tagged frames, the filter reads the IP version from the packet. u32 counts from the
    /// network header. That header follows the tag of frames that packet sockets send (since Linux
    /// 6.0), and of frames whose tag is stored outside the frame.
    ///
    /// # Errors
    /// `ENOENT`: this kernel has no u32. `EPERM`: not root.
    pub fn add_dscp_filter(&mut self, index: i32, parent: u32, dscp: u8, class: u32) -> io::Result<()> {
        let dscp = u32::from(dscp & 0x3f);
        // Filters of one protocol share a preference.
        for (priority, protocol, shift, version) in
            [(1_u32, IPV4, IPV4_DSCP_SHIFT, 4_u32), (2, IPV6, IPV6_DSCP_SHIFT, 6)]
        {
            let [mask, value] = [0x3f << shift, dscp << shift];
            self.add_u32_filter(index, parent, priority, protocol, [mask, value], class)?;
            self.add_u32_filter(index, parent, 3, VLAN, [mask | 0xf << 28, value | version << 28], class)?;
        }
        Ok(())
    }

    /// Sorts frames with an EtherType, such as ARP, into a class, by a u32 filter that matches
    /// every frame of the protocol. Frames with an 802.1Q tag do not match.
    ///
    /// # Errors
    /// `ENOENT`: this kernel has no u32. `EPERM`: not root.
    pub fn add_ether_type_filter(&mut self, index: i32, parent: u32, ether_type: u16, class: u32) -> io::Result<()> {
        // Filters of one protocol share a preference. Numbers below 0x600 are not EtherTypes and
        // are used by other filters.
        self.add_u32_filter(index, parent, u32::from(ether_type), ether_type, [0, 0], class)
    }

    /// Adds a filter with one key: mask and value of the first 32 bits after the Ethernet header.
    fn add_u32_filter(
        &mut self,
        index: i32,
        parent: u32,
        priority: u32,
        protocol: u16,
        [mask, value]: [u32; 2],
        class: u32,
    ) -> io::Result<()> {
        // `tc_u32_sel` with one key: mask, value, offset 0, no further offset.
        let mut selector = vec![TERMINAL, 0, 1, 0];
        selector.extend([0; 12]);
        selector.extend([mask.to_be_bytes(), value.to_be_bytes(), [0; 4], [0; 4]].concat());
        let mut options = Vec::new();
        put(&mut options, U32_CLASS, &class.to_ne_bytes());
        put(&mut options, U32_SELECTOR, &selector);
        let mut body = message(index, 0, parent, priority << 16 | u32::from(protocol.to_be()));
        put_text(&mut body, KIND, "u32");
        put_nested(&mut body, OPTIONS, &options);
        self.request(NEW_FILTER, NEW, &body)
    }

    /// Removes all filters of a discipline. Does nothing if there are none.
    ///
    /// # Errors
    /// `EINVAL`: the discipline does not exist. `EPERM`: not root.
    pub fn remove_filters(&mut self, index: i32, parent: u32) -> io::Result<()> {
        self.request(DELETE_FILTER, 0, &message(index, 0, parent, 0))
    }

    /// Reports whether a discipline has filters.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist.
    pub fn has_filters(&mut self, index: i32, parent: u32) -> io::Result<bool> {
        Ok(!self.dump(GET_FILTER, &message(index, 0, parent, 0))?.is_empty())
    }

    /// Returns the u32 filters of a discipline with one key, which is the first 32 bits after the
    /// Ethernet header.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist.
    pub fn u32_filters(&mut self, index: i32, parent: u32) -> io::Result<Vec<U32Filter>> {
        let all = self.dump(GET_FILTER, &message(index, 0, parent, 0))?;
        Ok(all.iter().filter_map(|one| u32_filter(one)).collect())
    }

    /// Returns the classes of all HTBs of an interface.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist.
    pub fn htb_classes(&mut self, index: i32) -> io::Result<Vec<HtbClassState>> {
        let all = self.dump(GET_CLASS, &message(index, 0, 0, 0))?;
        Ok(all.iter().filter_map(|one| htb_class(one)).collect())
    }

    /// Returns the queueing disciplines of an interface.
    ///
    /// # Errors
    /// A request to the kernel failed.
    pub fn disciplines(&mut self, index: i32) -> io::Result<Vec<DisciplineState>> {
        let all = self.dump(GET_QDISC, &message(index, 0, 0, 0))?;
        Ok(all.iter().filter_map(|one| state(index, one)).collect())
    }
}

/// Returns `tcmsg`.
pub(crate) fn message(index: i32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(index.to_ne_bytes());
    [handle, parent, info].iter().for_each(|number| body.extend(number.to_ne_bytes()));
    body
}

/// Parses a discipline. `None` for disciplines of other interfaces.
fn state(index: i32, message: &[u8]) -> Option<DisciplineState> {
    if number(message.get(4..)?)? != index.cast_unsigned() {
        return None;
    }
    let attributes = message.get(HEADER_LEN..)?;
    let stats = find(attributes, STATS).unwrap_or_default();
    // `gnet_stats_basic`: octets (64 bits), frames. `gnet_stats_queue`: queued frames, queued
    // octets, drops.
    let basic = find(stats, STATS_BASIC).unwrap_or_default();
    let queue = find(stats, STATS_QUEUE).unwrap_or_default();
    let at = |bytes: &[u8], at: usize| bytes.get(at..).and_then(number).unwrap_or(0);
    let kind = text(find(attributes, KIND)?);
    let is_fifo = ["pfifo", "pfifo_head_drop", "bfifo"].contains(&kind.as_str());
    Some(DisciplineState {
        limit: find(attributes, OPTIONS).filter(|_| is_fifo).and_then(number),
        kind,
        handle: number(message.get(8..)?)?,
        parent: number(message.get(12..)?)?,
        frames: at(basic, 8).into(),
        waiting: at(queue, 0),
        drops: at(queue, 8),
    })
}

/// Parses an HTB class. `None` for classes of other kinds.
fn htb_class(message: &[u8]) -> Option<HtbClassState> {
    let attributes = message.get(HEADER_LEN..)?;
    if text(find(attributes, KIND)?) != "htb" {
        return None;
    }
    // `tc_htb_opt`: two `tc_ratespec` of 12 octets, of which the last four are the rate, then
    // bursts, quantum, level, priority.
    let options = find(find(attributes, OPTIONS)?, HTB_PARAMETERS)?;
    let at = |at: usize| options.get(at..).and_then(number);
    Some(HtbClassState {
        class: number(message.get(8..)?)?,
        parent: number(message.get(12..)?)?,
        overhead: u16::from_ne_bytes(*options.get(2..)?.first_chunk()?),
        rate: at(8)?,
        ceiling: at(20)?,
        priority: at(40)?,
    })
}

fn u32_filter(message: &[u8]) -> Option<U32Filter> {
    let attributes = message.get(HEADER_LEN..)?;
    if text(find(attributes, KIND)?) != "u32" {
        return None;
    }
    let options = find(attributes, OPTIONS)?;
    // Hash tables of u32 have neither.
    let (class, selector) = (find(options, U32_CLASS).and_then(number)?, find(options, U32_SELECTOR)?);
    let key = selector.get(SELECTOR_LEN..SELECTOR_LEN + KEY_LEN)?;
    let at = |at: usize| Some(u32::from_be_bytes(*key.get(at..)?.first_chunk()?));
    let has_one_key = selector.get(2) == Some(&1) && selector.len() == SELECTOR_LEN + KEY_LEN && at(8)? == 0;
    let protocol = u16::from_be_bytes(*message.get(16..)?.first_chunk()?);
    has_one_key.then_some(U32Filter { protocol, mask: at(0)?, value: at(4)?, class })
}
