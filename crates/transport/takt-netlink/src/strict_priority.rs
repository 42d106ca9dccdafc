//! Strict priority on an interface: an HTB whose leaves borrow everything, with a FIFO in each leaf
//! and filters by DSCP and EtherType.
//!
//! The root class has the line rate. Each leaf has almost no rate of its own and borrows the rest.
//! HTB lets the leaf with the smallest priority number borrow first. Frames count with preamble,
//! checksum and gap. Full queues drop from the head by default. Their sender receives no ENOBUFS,
//! after which Open vSwitch would discard the rest of its batch.
//!
//! The handle [`HANDLE`] marks a tree as one of Takt. [`Netlink::strict_priority`] reads a tree
//! back from the kernel.

use std::io;

use crate::Netlink;
use crate::traffic::{Discipline, HtbClass, ROOT};

/// Handle of the HTB. Other programs are unlikely to use it.
pub const HANDLE: u32 = 0x544b_0000;
/// Maximum number of classes, which is the number of HTB priorities.
pub const CLASSES_MAX: usize = 8;
/// Class with the line rate.
const LINE: u32 = HANDLE | 0xff;
/// Guaranteed rate of a leaf, in octets per second: the least that HTB accounts for well.
const OWN_RATE: u32 = 1000;
/// Octets that a leaf sends in its turn: an Ethernet frame without its checksum.
const QUANTUM: u32 = 1514;
/// Minimum burst in octets: a frame and its overhead.
const BURST: u32 = 1600;
/// Octets that count in addition to those of a frame: preamble, checksum and gap.
const OVERHEAD: u16 = 24;

/// Frame that a full queue drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropFrom {
    /// The oldest frame. The sender of the new frame is not notified.
    #[default]
    Head,
    /// The new frame. Its sender receives ENOBUFS.
    Tail,
}

/// Class of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// DSCPs of its IPv4 and IPv6 packets.
    pub dscp: Vec<u8>,
    /// EtherTypes of its other frames.
    pub ether_types: Vec<u16>,
    /// Maximum number of queued frames.
    pub frames: u32,
    /// Frame that a full queue drops.
    pub drop_from: DropFrom,
    /// Maximum rate in octets per second. `None` for the rate of the interface.
    pub ceiling: Option<u32>,
}

impl Class {
    /// Returns the discipline of the class's queue.
    pub fn queue(&self) -> Discipline {
        match self.drop_from {
            DropFrom::Head => Discipline::PfifoHeadDrop { frames: self.frames },
            DropFrom::Tail => Discipline::Pfifo { frames: self.frames },
        }
    }
}

/// Classes of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrictPriority {
    /// Rate of the interface in octets per second, with preamble, checksum and gap.
    pub rate: u32,
    /// Classes in the order of their service. The last one takes all frames that match no other.
    pub classes: Vec<Class>,
}

/// Returns the class of an index.
pub fn class(position: usize) -> u32 {
    HANDLE | u32::try_from(position + 1).unwrap_or(0xfe)
}

/// Returns the handle of a class's queue, by the index of the class.
pub fn leaf(position: usize) -> u32 {
    (0x10 + position as u32) << 16
}

impl Netlink {
    /// Creates the classes at the root of an interface that has only the kernel's default
    /// discipline. After an error, everything created is removed.
    ///
    /// # Errors
    /// `InvalidInput`: there is no class, or there are more than [`CLASSES_MAX`]. `EEXIST`: the
    /// interface has another discipline. `ENOENT`: this kernel does not support HTB, u32 or
    /// `pfifo_head_drop`. `EPERM`: not root.
    pub fn add_strict_priority(&mut self, index: i32, wanted: &StrictPriority) -> io::Result<()> {
        if wanted.classes.is_empty() || wanted.classes.len() > CLASSES_MAX {
            let what = format!("{} classes; expected 1 to {CLASSES_MAX}", wanted.classes.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        // Minor number of the last class.
        let default = (class(wanted.classes.len() - 1) & 0xffff) as u16;
        self.add_discipline(index, HANDLE, ROOT, Discipline::Htb { default })?;
        self.add_classes(index, wanted).inspect_err(|_| {
            // The first error is returned.
            drop(self.remove_discipline(index, ROOT));
        })
    }

    fn add_classes(&mut self, index: i32, wanted: &StrictPriority) -> io::Result<()> {
        let of = |rate: u32, ceiling: u32, priority: usize| HtbClass {
            rate,
            ceiling,
            // On a fast link, the burst covers an eighth of a millisecond, which limits the rate of
            // timer events.
            burst: BURST.max(ceiling / 8000),
            quantum: QUANTUM,
            priority: priority as u32,
            overhead: OVERHEAD,
        };
        self.add_class(index, LINE, HANDLE, &of(wanted.rate, wanted.rate, 0))?;
        for (position, one) in wanted.classes.iter().enumerate() {
            self.add_class(index, class(position), LINE, &of(OWN_RATE, one.ceiling.unwrap_or(wanted.rate), position))?;
            self.add_leaf(index, position, one.queue())?;
        }
        self.add_class_filters(index, &wanted.classes)
    }

    /// Creates the filters that sort frames into the classes of
    /// [`add_strict_priority`](Self::add_strict_priority), which calls this itself. After
    /// [`remove_filters`](Self::remove_filters) it creates them again.
    ///
    /// # Errors
    /// `EINVAL`: the interface has no such classes. `EPERM`: not root.
    pub fn add_class_filters(&mut self, index: i32, classes: &[Class]) -> io::Result<()> {
        for (position, Class { dscp, ether_types, .. }) in classes.iter().enumerate() {
            dscp.iter().try_for_each(|dscp| self.add_dscp_filter(index, HANDLE, *dscp, class(position)))?;
            let mut others = ether_types.iter();
            others
                .try_for_each(|ether_type| self.add_ether_type_filter(index, HANDLE, *ether_type, class(position)))?;
        }
        Ok(())
    }

    /// Creates the queue of a class.
    ///
    /// # Errors
    /// Those of [`add_discipline`](Self::add_discipline).
    pub fn add_leaf(&mut self, index: i32, position: usize, discipline: Discipline) -> io::Result<()> {
        self.add_discipline(index, leaf(position), class(position), discipline)
    }

    /// Returns the classes of an interface in the kernel. DSCPs and EtherTypes are in ascending
    /// order.
    ///
    /// Returns `None` if [`add_strict_priority`](Self::add_strict_priority) did not create them, or
    /// if something is missing, added or changed.
    ///
    /// # Errors
    /// A request to the kernel failed.
    pub fn strict_priority(&mut self, index: i32) -> io::Result<Option<StrictPriority>> {
        let disciplines = self.disciplines(index)?;
        if !disciplines.iter().any(|one| one.kind == "htb" && one.handle == HANDLE && one.parent == ROOT) {
            return Ok(None);
        }
        let (mut kernel, filters) = (self.htb_classes(index)?, self.u32_filters(index, HANDLE)?);
        kernel.sort_by_key(|one| one.class);
        let Some(line) = kernel.pop().filter(|line| line.class == LINE && line.rate == line.ceiling) else {
            return Ok(None);
        };
        let mut classes = Vec::new();
        for (position, one) in kernel.iter().enumerate() {
            let is_own = one.class == class(position)
                && (one.parent, one.rate) == (LINE, OWN_RATE)
                && (one.priority, one.overhead) == (position as u32, OVERHEAD);
            let ceiling = (one.ceiling != line.rate).then_some(one.ceiling);
            let queue = disciplines.iter().find(|queue| queue.parent == one.class).filter(|_| is_own);
            let drop_from = match queue.map(|queue| queue.kind.as_str()) {
                Some("pfifo_head_drop") => DropFrom::Head,
                Some("pfifo") => DropFrom::Tail,
                _ => return Ok(None),
            };
            let Some(frames) = queue.and_then(|queue| queue.limit) else { return Ok(None) };
            let of_class = || filters.iter().filter(|filter| filter.class == one.class);
            let mut dscp: Vec<u8> = of_class().filter_map(crate::traffic::U32Filter::dscp).collect();
            dscp.sort_unstable();
            // One filter each for IPv4 and IPv6, without a tag and with one.
            let is_whole = dscp.chunks(4).all(|four| four.len() == 4 && four.iter().all(|one| *one == four[0]));
            dscp.dedup();
            let mut ether_types: Vec<u16> =
                of_class().filter(|filter| filter.mask == 0).map(|filter| filter.protocol).collect();
            ether_types.sort_unstable();
            if !is_whole || 4 * dscp.len() + ether_types.len() != of_class().count() {
                return Ok(None);
            }
            classes.push(Class { dscp, ether_types, frames, drop_from, ceiling });
        }
        let is_sorted = filters.iter().all(|filter| kernel.iter().any(|one| one.class == filter.class));
        Ok((is_sorted && !classes.is_empty()).then_some(StrictPriority { rate: line.rate, classes }))
    }
}
