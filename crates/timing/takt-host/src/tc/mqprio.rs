//! `mqprio`: traffic classes with their own queues, among which the network card may prioritize
//! (tc-mqprio(8)).
//!
//! Its text is [`Classes`], followed by `hw 0`, or by `hw 1` if the card does it. `mode` and
//! `shaper` are passed to the card. Rates of classes have no text form.

use takt_netlink::{attributes, find, put};

use super::classes::{Classes, LEN, is_plain_entry};
use super::words::Words;

/// Length of the structure with padding to a multiple of four. Attributes follow.
const STRUCTURE_LEN: usize = LEN.next_multiple_of(4);
const MODE: u16 = 1;
const SHAPER: u16 = 2;
const ENTRY: u16 = 5;
const ENTRY_PREEMPTION: u16 = 2;
const EXPRESS: u32 = 1;
/// Modes that are passed to the card (linux/pkt_sched.h).
const MODES: [&str; 2] = ["dcb", "channel"];
const SHAPERS: [&str; 2] = ["dcb", "bw_rlimit"];

/// Returns options that can be set again. Options without a text form are returned unchanged.
pub(crate) fn normal(reported: &[u8]) -> Vec<u8> {
    let parse = || {
        let classes = Classes::parse(reported)?;
        let (mut mode, mut shaper) = (None, None);
        for (kind, value) in attributes(reported.get(STRUCTURE_LEN..).unwrap_or_default()) {
            match kind {
                MODE => mode = named(&MODES, value),
                SHAPER => shaper = named(&SHAPERS, value),
                ENTRY if is_plain_entry(value, &[(ENTRY_PREEMPTION, EXPRESS)]) => {}
                _ => return None,
            }
        }
        Some(octets(&classes, mode, shaper))
    };
    parse().unwrap_or_else(|| reported.to_vec())
}

fn named(names: &[&'static str], value: &[u8]) -> Option<&'static str> {
    names.get(usize::from(u16::from_ne_bytes(*value.first_chunk()?))).copied()
}

fn octets(classes: &Classes, mode: Option<&str>, shaper: Option<&str>) -> Vec<u8> {
    let mut octets = classes.octets();
    octets.resize(STRUCTURE_LEN, 0);
    for (kind, names, wanted) in [(MODE, MODES, mode), (SHAPER, SHAPERS, shaper)] {
        if let Some(number) = names.iter().position(|name| Some(*name) == wanted) {
            put(&mut octets, kind, &(number as u16).to_ne_bytes());
        }
    }
    octets
}

pub(crate) fn to_text(octets: &[u8]) -> Option<String> {
    let classes = Classes::parse(octets)?;
    let attributes = octets.get(STRUCTURE_LEN..)?;
    let mut words = format!("{} hw {}", classes.to_text(), classes.hardware);
    for (kind, name, names) in [(MODE, "mode", MODES), (SHAPER, "shaper", SHAPERS)] {
        if let Some(value) = find(attributes, kind) {
            words += &format!(" {name} {}", named(&names, value)?);
        }
    }
    Some(words)
}

pub(crate) fn from_text(words: &[&str]) -> Option<Vec<u8>> {
    let mut words = Words(words);
    let mut classes = Classes::from_text(&mut words)?;
    classes.hardware = words.number("hw")?;
    let [mode, shaper] = ["mode", "shaper"].map(|name| words.optional(name));
    let is_known = mode.is_none_or(|mode| MODES.contains(&mode)) && shaper.is_none_or(|one| SHAPERS.contains(&one));
    (is_known && words.is_over()).then(|| octets(&classes, mode, shaper))
}
