//! Receive rules that assign frames to a queue (`ethtool -N`; linux/ethtool.h: `ethtool_rxnfc`,
//! `ethtool_rx_flow_spec`).
//!
//! A rule has a location in the driver's table. Its text is `udp4 dscp 46 queue 3`, `udp6 dscp 46
//! queue 3`, `vlan pcp 5 queue 3`, `none`, or `octets ..` for a rule of another program that has no
//! such form.

use std::io;

use super::{Driver, ROOM, command, get, put};

const COUNT: u32 = 0x2e;
const GET_RULE: u32 = 0x2f;
const GET_ALL: u32 = 0x30;
const DELETE: u32 = 0x31;
const INSERT: u32 = 0x32;

/// Offsets in the structure `ethtool_rxnfc`.
const DATA_AT: usize = 8;
const RULE_AT: usize = 16;
const RULE_LEN: usize = 168;
const COUNT_AT: usize = 184;
const LOCATIONS_AT: usize = 188;
/// Offsets within a rule.
const VALUES_AT: usize = 4;
const VALUES_VLAN_AT: usize = 66;
const MASKS_AT: usize = 76;
const MASKS_VLAN_AT: usize = 138;
const QUEUE_AT: usize = 152;
const LOCATION_AT: usize = 160;

const UDP4: u32 = 0x02;
const UDP6: u32 = 0x06;
/// Flow type of any frame, matched by its VLAN tag.
const ETHERNET_AND_TAG: u32 = 0x12 | 0x8000_0000;
/// Offsets of the octet with the DSCP among the values, for IPv4 and IPv6.
const DSCP4_AT: usize = 12;
const DSCP6_AT: usize = 36;

/// Maximum number of rules that are read.
const RULES_MAX: u32 = 8192;

/// Returns the number of locations in the driver's table, and the occupied locations.
///
/// # Errors
/// `EOPNOTSUPP` if the driver has no rules.
pub(crate) fn table(driver: &Driver<'_>, interface: &str) -> io::Result<(u32, Vec<u32>)> {
    let mut octets = command(COUNT, 0);
    driver(interface, &mut octets)?;
    let count = get(&octets, COUNT_AT).min(RULES_MAX);
    let mut octets = command(GET_ALL, 4 * count as usize);
    put(&mut octets, COUNT_AT, count);
    driver(interface, &mut octets)?;
    let locations = (0..get(&octets, COUNT_AT).min(count)).map(|index| get(&octets, LOCATIONS_AT + 4 * index as usize));
    Ok((get(&octets, DATA_AT), locations.collect()))
}

/// Reads the rule at a location.
pub(crate) fn read(driver: &Driver<'_>, interface: &str, location: u32) -> io::Result<String> {
    if !table(driver, interface)?.1.contains(&location) {
        return Ok("none".to_owned());
    }
    let mut octets = command(GET_RULE, 0);
    put(&mut octets, RULE_AT + LOCATION_AT, location);
    driver(interface, &mut octets)?;
    Ok(format_rule(&octets[RULE_AT..RULE_AT + RULE_LEN]))
}

/// Writes a rule to a location, or removes it.
pub(crate) fn write(driver: &Driver<'_>, interface: &str, location: u32, rule: &str) -> io::Result<()> {
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{rule:?} is not a valid rule, such as \"udp4 dscp 46 queue 3\""),
        )
    };
    let wanted = if rule == "none" { None } else { Some(octets(rule, location).ok_or_else(wrong)?) };
    if table(driver, interface)?.1.contains(&location) {
        let mut octets = command(DELETE, 0);
        put(&mut octets, RULE_AT + LOCATION_AT, location);
        driver(interface, &mut octets)?;
    }
    let Some(wanted) = wanted else { return Ok(()) };
    let mut octets = command(INSERT, 0);
    octets[RULE_AT..RULE_AT + RULE_LEN].copy_from_slice(&wanted);
    driver(interface, &mut octets)
}

/// Formats a rule as text.
fn format_rule(rule: &[u8]) -> String {
    let queue = get(rule, QUEUE_AT);
    let known = match get(rule, 0) {
        UDP4 => Some(format!("udp4 dscp {} queue {queue}", rule[VALUES_AT + DSCP4_AT] >> 2)),
        UDP6 => Some(format!("udp6 dscp {} queue {queue}", rule[VALUES_AT + DSCP6_AT] >> 2)),
        ETHERNET_AND_TAG => Some(format!("vlan pcp {} queue {queue}", rule[VALUES_VLAN_AT] >> 5)),
        _ => None,
    };
    // A text is used only if it gives the same octets back.
    let is_whole = |text: &String| octets(text, get(rule, LOCATION_AT)).is_some_and(|again| again == rule);
    known.filter(is_whole).unwrap_or_else(|| {
        let hexadecimal: String = rule.iter().map(|octet| format!("{octet:02x}")).collect();
        format!("octets {hexadecimal}")
    })
}

/// Parses a rule.
fn octets(text: &str, location: u32) -> Option<Vec<u8>> {
    let mut rule = vec![0; RULE_LEN];
    put(&mut rule, LOCATION_AT, location);
    let number = |text: &str, max: u32| text.parse::<u32>().ok().filter(|number| *number <= max); // tidy-allow(dropped-cause): the caller names the text
    match *text.split(' ').collect::<Vec<_>>() {
        ["octets", text] if text.len() == 2 * RULE_LEN && text.is_ascii() => {
            for (index, octet) in rule.iter_mut().enumerate() {
                *octet = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?; // tidy-allow(dropped-cause): as above
            }
        }
        ["udp4", "dscp", dscp, "queue", queue] => {
            let dscp = number(dscp, 63)? as u8;
            put(&mut rule, 0, UDP4);
            (rule[VALUES_AT + DSCP4_AT], rule[MASKS_AT + DSCP4_AT]) = (dscp << 2, 0xff);
            put(&mut rule, QUEUE_AT, number(queue, u32::MAX)?);
        }
        ["udp6", "dscp", dscp, "queue", queue] => {
            let dscp = number(dscp, 63)? as u8;
            put(&mut rule, 0, UDP6);
            (rule[VALUES_AT + DSCP6_AT], rule[MASKS_AT + DSCP6_AT]) = (dscp << 2, 0xff);
            put(&mut rule, QUEUE_AT, number(queue, u32::MAX)?);
        }
        ["vlan", "pcp", pcp, "queue", queue] => {
            let pcp = number(pcp, 7)? as u8;
            put(&mut rule, 0, ETHERNET_AND_TAG);
            (rule[VALUES_VLAN_AT], rule[MASKS_VLAN_AT]) = (pcp << 5, 0xe0);
            put(&mut rule, QUEUE_AT, number(queue, u32::MAX)?);
        }
        _ => return None,
    }
    Some(rule)
}

const _: () = assert!(LOCATIONS_AT < ROOM, "the structure is shorter than what a driver may write");

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    /// Nonzero octets that `ethtool -N eth0 flow-type .. loc 5` of ethtool 6.1 sends to the driver.
    #[test]
    fn rules_equal_those_of_ethtool() {
        let nonzero = |text: &str| {
            let rule = octets(text, 5).expect("a rule");
            let all = rule.iter().enumerate().filter(|(_, octet)| **octet != 0);
            all.map(|(at, octet)| (RULE_AT + at, *octet)).collect::<Vec<_>>()
        };
        // udp4 tos 0xb8 action 3
        assert_eq!(nonzero("udp4 dscp 46 queue 3"), [(16, 2), (32, 0xb8), (104, 0xff), (168, 3), (176, 5)]);
        // udp6 tclass 0xb8 action 3
        assert_eq!(nonzero("udp6 dscp 46 queue 3"), [(16, 6), (56, 0xb8), (128, 0xff), (168, 3), (176, 5)]);
        // ether vlan 0xa000 m 0x1fff action 3
        assert_eq!(
            nonzero("vlan pcp 5 queue 3"),
            [(16, 0x12), (19, 0x80), (82, 0xa0), (154, 0xe0), (168, 3), (176, 5)]
        );
    }

    #[test]
    fn rules_are_written_read_and_removed() {
        let rules = RefCell::new(BTreeMap::<u32, Vec<u8>>::new());
        let driver = |_: &str, octets: &mut [u8]| {
            let location = get(octets, RULE_AT + LOCATION_AT);
            let mut rules = rules.borrow_mut();
            match get(octets, 0) {
                COUNT => put(octets, COUNT_AT, rules.len() as u32),
                GET_ALL => {
                    put(octets, DATA_AT, 64);
                    rules.keys().enumerate().for_each(|(i, location)| put(octets, LOCATIONS_AT + 4 * i, *location));
                }
                GET_RULE => octets[RULE_AT..RULE_AT + RULE_LEN].copy_from_slice(&rules[&location]),
                DELETE => drop(rules.remove(&location)),
                INSERT => drop(rules.insert(location, octets[RULE_AT..RULE_AT + RULE_LEN].to_vec())),
                other => panic!("{other}"),
            }
            Ok(())
        };
        assert_eq!(read(&driver, "eth0", 7).expect("success"), "none");
        for rule in ["udp4 dscp 46 queue 3", "udp6 dscp 0 queue 1", "vlan pcp 7 queue 2"] {
            write(&driver, "eth0", 7, rule).expect("success");
            assert_eq!(read(&driver, "eth0", 7).expect("success"), rule);
        }
        assert_eq!(table(&driver, "eth0").expect("success"), (64, vec![7]));
        // Rule of another program: only TCP to port 80.
        let mut other = octets("udp4 dscp 46 queue 3", 7).expect("a rule");
        other[0] = 1;
        rules.borrow_mut().insert(7, other.clone());
        let text = read(&driver, "eth0", 7).expect("success");
        assert!(text.starts_with("octets 01000000"), "{text}");
        write(&driver, "eth0", 7, "none").expect("success");
        assert!(table(&driver, "eth0").expect("success").1.is_empty());
        write(&driver, "eth0", 7, &text).expect("success");
        assert_eq!(rules.borrow()[&7], other);
        for wrong in ["", "udp4", "udp4 dscp 64 queue 3", "vlan pcp 8 queue 1", "octets 00"] {
            assert_eq!(write(&driver, "eth0", 7, wrong).map_err(|e| e.kind()), Err(io::ErrorKind::InvalidInput));
        }
    }
}
