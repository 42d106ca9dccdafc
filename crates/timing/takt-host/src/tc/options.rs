//! Settings of disciplines and classes: octets of the kernel, and text for the kinds that plans use
//! (linux/pkt_sched.h).
//!
//! Invariant: text is used only if it gives the same octets back. Other settings are `octets` in
//! hexadecimal. Rates are in octets per second, bursts in ticks of 64 ns, as in the kernel.

use takt_netlink::{attributes, find, number, put};

use super::{etf, mqprio, taprio};

/// Kinds whose settings the kernel accepts in the form in which it reports them, with the same
/// effect.
pub(crate) const RESTORABLE: [&str; 11] =
    ["mq", "htb", "tbf", "pfifo", "bfifo", "pfifo_head_drop", "pfifo_fast", "noqueue", "mqprio", "taprio", "etf"];

/// Kinds of these whose settings need a text form. The kernel may report settings without one in a
/// form that it does not accept.
pub(crate) const TEXT_KINDS: [&str; 3] = ["mqprio", "taprio", "etf"];

/// Prefix of settings without a text form.
pub(crate) const OCTETS: &str = "octets ";

const HTB_PARAMETERS: u16 = 1;
const HTB_INIT: u16 = 2;
const HTB_DIRECT_QLEN: u16 = 5;
/// HTB version that the kernel expects. It reports another one.
const HTB_VERSION: u32 = 3;
const LINK_LAYER_ETHERNET: u8 = 1;
/// Offset of the level in the parameters of a class. The level follows from the tree.
const LEVEL_AT: usize = 36;

/// Returns octets that can be set again, without counters and derived values.
pub(crate) fn normal(kind: &str, is_class: bool, reported: &[u8]) -> Vec<u8> {
    match (kind, is_class) {
        ("pfifo_fast" | "mq" | "noqueue", _) => Vec::new(),
        ("mqprio", _) => mqprio::normal(reported),
        ("taprio", _) => taprio::normal(reported),
        ("htb", _) => {
            let mut normal = Vec::new();
            for (attribute, value) in attributes(reported) {
                let mut value = value.to_vec();
                match attribute {
                    HTB_INIT if value.len() >= 20 => {
                        value[..4].copy_from_slice(&HTB_VERSION.to_ne_bytes());
                        value[16..20].fill(0);
                    }
                    HTB_PARAMETERS if value.len() >= LEVEL_AT + 4 => value[LEVEL_AT..LEVEL_AT + 4].fill(0),
                    _ => {}
                }
                put(&mut normal, attribute, &value);
            }
            normal
        }
        _ => reported.to_vec(),
    }
}

/// Formats settings as text. Empty for none.
pub(crate) fn to_text(kind: &str, is_class: bool, octets_there: &[u8]) -> String {
    if octets_there.is_empty() {
        return String::new();
    }
    let known = match (kind, is_class) {
        ("pfifo" | "bfifo" | "pfifo_head_drop", false) => number(octets_there).map(|limit| format!("limit {limit}")),
        ("htb", false) => htb_text(octets_there),
        ("mqprio", false) => mqprio::to_text(octets_there),
        ("taprio", false) => taprio::to_text(octets_there),
        ("etf", false) => etf::to_text(octets_there),
        ("htb", true) => class_text(octets_there),
        _ => None,
    };
    let is_whole = |words: &String| {
        octets(kind, is_class, &words.split(' ').collect::<Vec<_>>()).is_some_and(|again| again == octets_there)
    };
    known.filter(is_whole).unwrap_or_else(|| {
        let hexadecimal: String = octets_there.iter().map(|octet| format!("{octet:02x}")).collect();
        format!("{OCTETS}{hexadecimal}")
    })
}

/// Parses settings. `None` if they are invalid.
pub(crate) fn octets(kind: &str, is_class: bool, words: &[&str]) -> Option<Vec<u8>> {
    match (kind, is_class, words) {
        (_, _, []) => Some(Vec::new()),
        (_, _, ["octets", text]) => {
            let pairs =
                text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()); // tidy-allow(dropped-cause): the caller names the text
            pairs.collect::<Option<_>>().filter(|_| text.len() % 2 == 0)
        }
        ("pfifo" | "bfifo" | "pfifo_head_drop", false, ["limit", limit]) => {
            Some(decimal(limit)?.to_ne_bytes().to_vec())
        }
        ("htb", false, ["default", default, "r2q", r2q, rest @ ..]) => {
            let default = u32::from_str_radix(default, 16).ok()?; // tidy-allow(dropped-cause): as above
            let init = [HTB_VERSION, decimal(r2q)?, default, 0, 0];
            let mut octets = Vec::new();
            put(&mut octets, HTB_INIT, &init.map(u32::to_ne_bytes).concat());
            match rest {
                [] => {}
                ["direct_qlen", len] => put(&mut octets, HTB_DIRECT_QLEN, &decimal(len)?.to_ne_bytes()),
                _ => return None,
            }
            Some(octets)
        }
        ("htb", true, words) => class_octets(words),
        ("mqprio", false, words) => mqprio::from_text(words),
        ("taprio", false, words) => taprio::from_text(words),
        ("etf", false, words) => etf::from_text(words),
        _ => None,
    }
}

fn decimal(text: &str) -> Option<u32> {
    text.parse().ok() // tidy-allow(dropped-cause): the caller names the text
}

fn htb_text(octets: &[u8]) -> Option<String> {
    let init = find(octets, HTB_INIT)?;
    let [r2q, default] = [number(init.get(4..)?)?, number(init.get(8..)?)?];
    let queue = find(octets, HTB_DIRECT_QLEN).and_then(number).map(|len| format!(" direct_qlen {len}"));
    Some(format!("default {default:x} r2q {r2q}{}", queue.unwrap_or_default()))
}

/// Names of the numbers of a class, in the order of the text.
const CLASS: [&str; 7] = ["rate", "ceil", "burst_ticks", "cburst_ticks", "quantum", "prio", "overhead"];

fn class_text(octets: &[u8]) -> Option<String> {
    let parameters = find(octets, HTB_PARAMETERS)?;
    let at = |at: usize| number(parameters.get(at..)?);
    let overhead = u32::from(u16::from_ne_bytes(*parameters.get(2..)?.first_chunk()?));
    let numbers = [at(8)?, at(20)?, at(24)?, at(28)?, at(32)?, at(40)?, overhead];
    let words = CLASS.iter().zip(numbers).map(|(name, number)| format!("{name} {number}"));
    // The word is omitted if there is no overhead.
    Some(words.take(if overhead == 0 { 6 } else { 7 }).collect::<Vec<_>>().join(" "))
}

fn class_octets(words: &[&str]) -> Option<Vec<u8>> {
    let mut numbers = [0; CLASS.len()];
    for (index, pair) in words.chunks(2).enumerate() {
        let [name, number] = pair else { return None };
        if CLASS.get(index) != Some(name) {
            return None;
        }
        numbers[index] = decimal(number)?;
    }
    if words.len() < 12 {
        return None;
    }
    let [rate, ceil, burst, cburst, quantum, prio, overhead] = numbers;
    let overhead = u16::try_from(overhead).ok()?; // tidy-allow(dropped-cause): as above
    let mut parameters = Vec::new();
    for rate in [rate, ceil] {
        parameters.extend([0, LINK_LAYER_ETHERNET]);
        parameters.extend(overhead.to_ne_bytes());
        parameters.extend([0; 4]);
        parameters.extend(rate.to_ne_bytes());
    }
    [burst, cburst, quantum, 0, prio].iter().for_each(|number| parameters.extend(number.to_ne_bytes()));
    let mut octets = Vec::new();
    put(&mut octets, HTB_PARAMETERS, &parameters);
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_settings_without_a_text_form_stay_octets() {
        let there_and_back = |kind: &str, is_class: bool, text: &str| {
            let octets = octets(kind, is_class, &text.split(' ').collect::<Vec<_>>()).expect("a valid text");
            assert_eq!(to_text(kind, is_class, &octets), text);
            octets
        };
        assert_eq!(there_and_back("pfifo", false, "limit 100"), 100_u32.to_ne_bytes());
        there_and_back("htb", false, "default 20 r2q 10 direct_qlen 1000");
        there_and_back("htb", true, "rate 1000 ceil 12500000 burst_ticks 3 cburst_ticks 4 quantum 1514 prio 2");
        there_and_back("tbf", false, "octets 00ff01");
        // A different link layer has no text form.
        let mut octets =
            there_and_back("htb", true, "rate 9 ceil 9 burst_ticks 3 cburst_ticks 4 quantum 5 prio 2 overhead 24");
        octets[5] = 2;
        assert!(to_text("htb", true, &octets).starts_with("octets 3000"));
        there_and_back("etf", false, "clock tai delta 300000 offload on deadline off skip_sock_check on");
        for wrong in ["limit", "limit x", "limit 1 2", "octets 0", "octets xy", "limit 4294967296"] {
            assert_eq!(super::octets("pfifo", false, &wrong.split(' ').collect::<Vec<_>>()), None, "{wrong}");
        }
        assert_eq!(super::octets("htb", true, &["rate", "1"]), None);
    }

    /// Octets that `tc class add .. htb rate 8kbit ceil 100mbit prio 0 burst 1600 quantum 1514
    /// overhead 24` of iproute2 6.1 sends, without the rate tables that the kernel no longer reads
    /// and the logarithm of their cells.
    #[test]
    fn class_equals_that_of_tc() {
        let words = "rate 1000 ceil 12500000 burst_ticks 25000000 cburst_ticks 2000 quantum 1514 prio 0 overhead 24";
        let octets = octets("htb", true, &words.split(' ').collect::<Vec<_>>()).expect("a valid text");
        let expected = [
            0x30, 0x00, 0x01, 0x00, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0xe8, 0x03, 0x00, 0x00, 0x00, 0x01,
            0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0xbc, 0xbe, 0x00, 0x40, 0x78, 0x7d, 0x01, 0xd0, 0x07, 0x00, 0x00,
            0xea, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        ];
        assert_eq!(octets, expected);
    }
}
