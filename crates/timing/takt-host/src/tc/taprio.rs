//! `taprio`: traffic classes whose queues follow a gate schedule, as in the enhancements for
//! scheduled traffic of IEEE 802.1Q (tc-taprio(8)).
//!
//! Its text is [`Classes`], followed by `clock tai flags 0 base_time 0 cycle 1000000 entries
//! S:2:300000,S:1:700000`. An entry consists of the command, the hexadecimal mask of classes with
//! open gates, and its length. Flags are 0 for the kernel's timers, 1 for launch times of frames
//! for [`etf`](super::etf) (`txtime_delay`), and 2 for offload to the card, which uses its own
//! clock. All times are in nanoseconds.

use takt_netlink::{attributes, find, put, put_nested};

use super::classes::{Classes, is_plain_entry};
use super::words::{CLOCKS, Words, clock};

const PRIORITIES_MAP: u16 = 1;
const ENTRIES: u16 = 2;
const BASE_TIME: u16 = 3;
const CLOCK: u16 = 5;
const PADDING: u16 = 6;
/// Schedule that has not yet started.
const ADMIN_SCHEDULE: u16 = 7;
const CYCLE: u16 = 8;
const EXTENSION: u16 = 9;
const FLAGS: u16 = 10;
const TXTIME_DELAY: u16 = 11;
const CLASS: u16 = 12;
const CLASS_LEN_MAX: u16 = 2;
const CLASS_PREEMPTION: u16 = 3;
const EXPRESS: u32 = 1;

/// Attribute of one schedule entry, and its nested attributes.
const ENTRY: u16 = 1;
const ENTRY_INDEX: u16 = 1;
const ENTRY_COMMAND: u16 = 2;
const ENTRY_GATES: u16 = 3;
const ENTRY_INTERVAL: u16 = 4;
/// Commands: set gates; set gates and hold preemptable frames; set gates and release these.
const COMMANDS: [char; 3] = ['S', 'H', 'R'];

#[derive(Debug, Default)]
struct Schedule {
    base_time: i64,
    cycle: i64,
    extension: i64,
    /// Entries: command, open gates, length.
    entries: Vec<(u8, u32, u32)>,
}

#[derive(Debug)]
struct Taprio {
    classes: Classes,
    /// Clock of the schedule. `None` with offload, where the card uses its own clock.
    clock: Option<i32>,
    flags: u32,
    txtime_delay: u32,
    schedule: Schedule,
}

fn long(value: &[u8]) -> Option<i64> {
    Some(i64::from_ne_bytes(*value.first_chunk()?))
}

fn entry(value: &[u8]) -> Option<(u8, u32, u32)> {
    let number = |kind: u16| find(value, kind).and_then(takt_netlink::number);
    let is_known = |(kind, _): (u16, &[u8])| (ENTRY_INDEX..=ENTRY_INTERVAL).contains(&kind);
    let command = *find(value, ENTRY_COMMAND)?.first()?;
    let known = attributes(value).all(is_known) && usize::from(command) < COMMANDS.len();
    known.then_some((command, number(ENTRY_GATES)?, number(ENTRY_INTERVAL)?))
}

impl Schedule {
    /// Parses an attribute of a schedule. `None` for other attributes.
    fn parse_attribute(&mut self, kind: u16, value: &[u8]) -> Option<()> {
        match kind {
            BASE_TIME => self.base_time = long(value)?,
            CYCLE => self.cycle = long(value)?,
            EXTENSION => self.extension = long(value)?,
            ENTRIES => self.entries = attributes(value).map(|(_, one)| entry(one)).collect::<Option<_>>()?,
            PADDING => {}
            _ => return None,
        }
        Some(())
    }

    fn put(&self, octets: &mut Vec<u8>) {
        put(octets, BASE_TIME, &self.base_time.to_ne_bytes());
        put(octets, CYCLE, &self.cycle.to_ne_bytes());
        if self.extension != 0 {
            put(octets, EXTENSION, &self.extension.to_ne_bytes());
        }
        let mut entries = Vec::new();
        for (command, gates, interval) in &self.entries {
            let mut entry = Vec::new();
            put(&mut entry, ENTRY_COMMAND, &[*command]);
            put(&mut entry, ENTRY_GATES, &gates.to_ne_bytes());
            put(&mut entry, ENTRY_INTERVAL, &interval.to_ne_bytes());
            put_nested(&mut entries, ENTRY, &entry);
        }
        put_nested(octets, ENTRIES, &entries);
    }

    fn to_text(&self) -> String {
        let entry = |(command, gates, interval): &(u8, u32, u32)| {
            format!("{}:{gates:x}:{interval}", COMMANDS[usize::from(*command)])
        };
        let extension = if self.extension == 0 { String::new() } else { format!(" extension {}", self.extension) };
        let entries: Vec<_> = self.entries.iter().map(entry).collect();
        format!("base_time {} cycle {}{extension} entries {}", self.base_time, self.cycle, entries.join(","))
    }

    fn from_text(words: &mut Words<'_>) -> Option<Self> {
        let entry = |text: &str| {
            let [command, gates, interval] = *text.split(':').collect::<Vec<_>>() else { return None };
            let command = COMMANDS.iter().position(|known| command.chars().eq([*known]))?;
            let gates = u32::from_str_radix(gates, 16).ok()?; // tidy-allow(dropped-cause): the caller names the text
            Some((command as u8, gates, interval.parse().ok()?)) // tidy-allow(dropped-cause): as above
        };
        let (base_time, cycle) = (words.number("base_time")?, words.number("cycle")?);
        let extension = words.optional("extension").map_or(Some(0), |text| text.parse().ok())?; // tidy-allow(dropped-cause): as above
        Some(Self { base_time, cycle, extension, entries: words.list("entries", entry)? })
    }
}

impl Taprio {
    /// Parses the kernel's options. A pending schedule counts instead of the one that it replaces.
    fn parse(reported: &[u8]) -> Option<Self> {
        let classes = Classes::parse(find(reported, PRIORITIES_MAP)?)?;
        let mut all = Self { classes, clock: None, flags: 0, txtime_delay: 0, schedule: Schedule::default() };
        let number = takt_netlink::number;
        for (kind, value) in attributes(reported) {
            match kind {
                PRIORITIES_MAP | ADMIN_SCHEDULE => {}
                CLOCK => all.clock = Some(number(value)?.cast_signed()),
                FLAGS => all.flags = number(value)?,
                TXTIME_DELAY => all.txtime_delay = number(value)?,
                CLASS if is_plain_entry(value, &[(CLASS_LEN_MAX, 0), (CLASS_PREEMPTION, EXPRESS)]) => {}
                _ => all.schedule.parse_attribute(kind, value)?,
            }
        }
        if let Some(pending) = find(reported, ADMIN_SCHEDULE) {
            all.schedule = Schedule::default();
            attributes(pending).try_for_each(|(kind, value)| all.schedule.parse_attribute(kind, value))?;
        }
        (all.classes.hardware == 0 && !all.schedule.entries.is_empty()).then_some(all)
    }

    fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        put(&mut octets, PRIORITIES_MAP, &self.classes.octets());
        if let Some(clock) = self.clock {
            put(&mut octets, CLOCK, &clock.to_ne_bytes());
        }
        for (kind, value) in [(FLAGS, self.flags), (TXTIME_DELAY, self.txtime_delay)] {
            if value != 0 {
                put(&mut octets, kind, &value.to_ne_bytes());
            }
        }
        self.schedule.put(&mut octets);
        octets
    }
}

/// Returns options that can be set again. Options without a text form are returned unchanged.
pub(crate) fn normal(reported: &[u8]) -> Vec<u8> {
    Taprio::parse(reported).map_or_else(|| reported.to_vec(), |all| all.octets())
}

pub(crate) fn to_text(octets: &[u8]) -> Option<String> {
    let all = Taprio::parse(octets)?;
    let clock = all.clock.map_or_else(String::new, |number| format!(" clock {}", clock(number)));
    let delay = if all.txtime_delay == 0 { String::new() } else { format!(" txtime_delay {}", all.txtime_delay) };
    Some(format!("{}{clock} flags {}{delay} {}", all.classes.to_text(), all.flags, all.schedule.to_text()))
}

pub(crate) fn from_text(words: &[&str]) -> Option<Vec<u8>> {
    let mut words = Words(words);
    let classes = Classes::from_text(&mut words)?;
    let clock = match words.optional("clock") {
        Some(name) => Some(CLOCKS.iter().find(|(_, known)| *known == name)?.0),
        None => None,
    };
    let flags = words.number("flags")?;
    let txtime_delay = words.optional("txtime_delay").map_or(Some(0), |text| text.parse().ok())?; // tidy-allow(dropped-cause): the caller names the text
    let schedule = Schedule::from_text(&mut words)?;
    words.is_over().then(|| Taprio { classes, clock, flags, txtime_delay, schedule }.octets())
}

/// Returns the classes of a discipline of this kind.
pub(crate) fn classes(octets: &[u8]) -> Option<Classes> {
    Classes::parse(find(octets, PRIORITIES_MAP)?)
}

/// Reports whether a discipline is a gate schedule that uses the kernel's timers, instead of
/// offload or launch times.
pub(crate) fn uses_kernel_timers(kind: &str, octets: &[u8]) -> bool {
    kind == "taprio" && Taprio::parse(octets).is_some_and(|all| all.flags == 0)
}
