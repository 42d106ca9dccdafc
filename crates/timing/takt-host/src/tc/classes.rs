//! Traffic classes: the class of each priority, and the queues of each class (linux/pkt_sched.h:
//! `tc_mqprio_qopt`).
//!
//! `mqprio` and `taprio` share them. Their text is `map 0,0,..,1 queues 3@0,1@3`: the class of each
//! of the 16 priorities, and for each class the number of queues and the first one. The priority of
//! a frame is `SO_PRIORITY`, or the one that a program at clsact set.

use takt_netlink::attributes;

use super::words::Words;

/// Number of priorities with a class. Higher priorities use the class of their lowest four bits.
pub(crate) const PRIORITIES: usize = 16;
const CLASSES_MAX: usize = 16;
/// Length of the structure, in octets.
pub(crate) const LEN: usize = 82;
const HARDWARE_AT: usize = 17;
const COUNTS_AT: usize = 18;
const FIRSTS_AT: usize = 50;

/// Traffic classes, see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Classes {
    /// Class of each priority.
    pub(crate) map: [u8; PRIORITIES],
    /// Number of queues and first queue of each class.
    pub(crate) queues: Vec<(u16, u16)>,
    /// Offload to the network card (`mqprio` only).
    pub(crate) hardware: u8,
}

impl Classes {
    /// Parses the structure. `None` if it has no text form, such as no classes at all.
    pub(crate) fn parse(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; LEN] = octets.first_chunk()?;
        let number = |at: usize, class: usize| u16::from_ne_bytes([octets[at + 2 * class], octets[at + 2 * class + 1]]);
        let classes = usize::from(octets[0]);
        let queues = (0..classes.min(CLASSES_MAX)).map(|class| (number(COUNTS_AT, class), number(FIRSTS_AT, class)));
        let map = *octets[1..].first_chunk()?;
        let all = Self { map, queues: queues.collect(), hardware: octets[HARDWARE_AT] };
        all.is_whole().then_some(all)
    }

    fn is_whole(&self) -> bool {
        let classes = self.queues.len();
        (1..=CLASSES_MAX).contains(&classes) && self.map.iter().all(|class| usize::from(*class) < classes)
    }

    pub(crate) fn octets(&self) -> Vec<u8> {
        let mut octets = vec![0; LEN];
        octets[0] = u8::try_from(self.queues.len()).expect("at most 16 classes");
        octets[1..=PRIORITIES].copy_from_slice(&self.map);
        octets[HARDWARE_AT] = self.hardware;
        for (class, (count, first)) in self.queues.iter().enumerate() {
            octets[COUNTS_AT + 2 * class..][..2].copy_from_slice(&count.to_ne_bytes());
            octets[FIRSTS_AT + 2 * class..][..2].copy_from_slice(&first.to_ne_bytes());
        }
        octets
    }

    pub(crate) fn to_text(&self) -> String {
        let map: Vec<_> = self.map.iter().map(ToString::to_string).collect();
        let queues: Vec<_> = self.queues.iter().map(|(count, first)| format!("{count}@{first}")).collect();
        format!("map {} queues {}", map.join(","), queues.join(","))
    }

    /// Parses the text form, without the offload.
    pub(crate) fn from_text(words: &mut Words<'_>) -> Option<Self> {
        let map = words.list("map", |class| class.parse().ok())?; // tidy-allow(dropped-cause): the caller names the text
        let queues = words.list("queues", |range| {
            let (count, first) = range.split_once('@')?;
            Some((count.parse().ok()?, first.parse().ok()?)) // tidy-allow(dropped-cause): as above
        })?;
        let all = Self { map: map.try_into().ok()?, queues, hardware: 0 }; // tidy-allow(dropped-cause): as above
        all.is_whole().then_some(all)
    }

    /// Returns the queues of a priority: their number and the first one.
    pub(crate) fn queues_of(&self, priority: u32) -> Option<(u16, u16)> {
        let class = self.map[priority as usize % PRIORITIES];
        self.queues.get(usize::from(class)).copied()
    }
}

/// Attributes of one class: its index, the longest frame, and whether frames are preemptable (IEEE
/// 802.1Q frame preemption).
const ENTRY_INDEX: u16 = 1;

/// Reports whether the settings of a class are its defaults. Kernels from 6.1 report them for all
/// classes.
pub(crate) fn is_plain_entry(entry: &[u8], plain: &[(u16, u32)]) -> bool {
    let is_plain = |(kind, value): (u16, &[u8])| {
        kind == ENTRY_INDEX || plain.iter().any(|(known, plain)| kind == *known && value == plain.to_ne_bytes())
    };
    attributes(entry).all(is_plain)
}
