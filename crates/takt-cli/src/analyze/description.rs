//! A system as people write it: TOML with names and units, made into what the analysis takes.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use takt_calculus::link::{UDP_HEADERS, frame_time_ns};
use takt_calculus::{Arrivals, Flow, Resource, Stage, System};

/// What RTPS has in a datagram besides the sample, at most: header, time stamp, DATA_FRAG with its key hash and status, and a heartbeat.
pub const RTPS_OCTETS: u64 = 128;

/// The MTU of a link unless it says otherwise.
const MTU: u64 = 1500;

/// IPv4 and UDP of each packet.
const IP_UDP: u64 = 28;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    executor: Vec<Executor>,
    #[serde(default)]
    link: Vec<Link>,
    #[serde(default)]
    flow: Vec<FlowEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Executor {
    name: String,
}

#[derive(Deserialize, Clone, Copy)]
struct LinkSpeed {
    bits_per_second: u64,
    mtu: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    name: String,
    #[serde(deserialize_with = "rate")]
    rate: u64,
    #[serde(default)]
    mtu: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowEntry {
    name: String,
    #[serde(default, deserialize_with = "some_time")]
    min_separation: Option<u64>,
    #[serde(default, deserialize_with = "time")]
    jitter: u64,
    #[serde(default)]
    burst: Option<u64>,
    #[serde(default, deserialize_with = "some_time")]
    limit: Option<u64>,
    stages: Vec<StageEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StageEntry {
    on: String,
    priority: u32,
    #[serde(default, deserialize_with = "some_time")]
    time: Option<u64>,
    #[serde(default, deserialize_with = "time")]
    time_min: u64,
    #[serde(default)]
    pieces: Option<u64>,
    #[serde(default)]
    sample: Option<u64>,
    #[serde(default, deserialize_with = "time")]
    delay: u64,
    #[serde(default, deserialize_with = "time")]
    delay_min: u64,
}

/// Reads a description. Errors are for people, with the line where it can be said.
pub fn read(text: &str) -> Result<System, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut resources = Vec::new();
    let mut places: BTreeMap<String, (usize, Option<LinkSpeed>)> = BTreeMap::new();
    let executors = file.executor.into_iter().map(|executor| (executor.name, None));
    let speed = |link: &Link| LinkSpeed { bits_per_second: link.rate, mtu: link.mtu.unwrap_or(MTU) };
    let links = file.link.into_iter().map(|link| (speed(&link), link)).map(|(speed, link)| (link.name, Some(speed)));
    for (name, speed) in executors.chain(links) {
        if speed.is_some_and(|speed| speed.mtu <= IP_UDP + RTPS_OCTETS) {
            return Err(format!("link {name:?}: the MTU leaves no room for a sample"));
        }
        if places.insert(name.clone(), (resources.len(), speed)).is_some() {
            return Err(format!("two executors or links are called {name:?}"));
        }
        resources.push(Resource { name });
    }
    let flows = file.flow.into_iter().map(|flow| flow_of(flow, &places)).collect::<Result<_, _>>()?;
    Ok(System { resources, flows })
}

fn flow_of(entry: FlowEntry, places: &BTreeMap<String, (usize, Option<LinkSpeed>)>) -> Result<Flow, String> {
    let name = entry.name;
    let wrong = |what: &dyn Display| format!("flow {name:?}: {what}");
    let arrivals = match (entry.min_separation, entry.burst.unwrap_or(1)) {
        (None, 1) if entry.jitter == 0 => None,
        (None, _) => {
            return Err(wrong(
                &"without min_separation it comes as often as it can; jitter and burst mean nothing then",
            ));
        }
        (Some(_), 0) => return Err(wrong(&"a burst of 0")),
        (Some(period_ns), burst) => {
            let arrivals = Arrivals::bursts(period_ns, burst);
            Some(Arrivals { jitter_ns: arrivals.jitter_ns.saturating_add(entry.jitter), ..arrivals })
        }
    };
    let stage_of = |entry: StageEntry| {
        let Some((resource, speed)) = places.get(&entry.on) else {
            return Err(wrong(&format_args!("there is no executor or link {:?}", entry.on)));
        };
        let (piece_ns, pieces) = match (speed, entry.time, entry.sample) {
            (_, Some(time_ns), None) => (time_ns, entry.pieces.unwrap_or(1)),
            (Some(speed), None, Some(octets)) if entry.pieces.is_none() => {
                frames_of(octets, *speed).ok_or_else(|| wrong(&"a sample beyond counting, or a link without rate"))?
            }
            (Some(_), _, _) => {
                return Err(wrong(&format_args!("on link {:?}: either sample, or time and pieces", entry.on)));
            }
            (None, _, _) => return Err(wrong(&format_args!("on executor {:?} it takes a time", entry.on))),
        };
        Ok(Stage {
            resource: *resource,
            priority: entry.priority,
            piece_ns,
            piece_ns_min: entry.time_min,
            pieces,
            delay_ns: entry.delay.max(entry.delay_min),
            delay_ns_min: entry.delay_min,
        })
    };
    let stages = entry.stages.into_iter().map(stage_of).collect::<Result<_, String>>()?;
    Ok(Flow { name: name.clone(), arrivals, stages, limit_ns: entry.limit })
}

/// How long the longest frame of a sample takes, and how many frames there are.
fn frames_of(octets: u64, speed: LinkSpeed) -> Option<(u64, u64)> {
    let room = speed.mtu - IP_UDP - RTPS_OCTETS;
    let payload = octets.min(room) + RTPS_OCTETS;
    Some((frame_time_ns(UDP_HEADERS + payload, speed.bits_per_second)?, octets.div_ceil(room).max(1)))
}

/// A number and a unit out of `units`, as a whole number of the smallest.
fn quantity(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let names = || units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let wrong = || format!("{text:?} where a number and one of {} is expected", names());
    let factor = units.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scaled = |digits: &str, factor: u64| digits.parse::<u64>().ok()?.checked_mul(factor);
    let mut sum = scaled(whole, factor).ok_or_else(wrong)?;
    let mut place = factor;
    for digit in fraction.chars() {
        if !place.is_multiple_of(10) {
            return Err(format!("{text:?} is not a whole number of {}", units[0].0));
        }
        place /= 10;
        sum = sum.checked_add(u64::from(digit.to_digit(10).ok_or_else(wrong)?) * place).ok_or_else(wrong)?;
    }
    Ok(sum)
}

const TIMES: [(&str, u64); 4] = [("ns", 1), ("us", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)];

const RATES: [(&str, u64); 4] = [("bit/s", 1), ("kbit/s", 1000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    quantity(&String::deserialize(deserializer)?, &TIMES).map_err(D::Error::custom)
}

fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    time(deserializer).map(Some)
}

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    quantity(&String::deserialize(deserializer)?, &RATES).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_units_and_are_exact() {
        let time = |text| quantity(text, &TIMES);
        assert_eq!(time("20us"), Ok(20_000));
        assert_eq!(time(" 1.25 ms "), Ok(1_250_000));
        assert_eq!(time("0.5 ns"), Err("\"0.5 ns\" is not a whole number of ns".to_owned()));
        for text in ["", "5", "ms", "1..5 ms", "-1 ms", "1 min", "99999999999999999999 s", "18446744074 s"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert_eq!(quantity("2.5 Gbit/s", &RATES), Ok(2_500_000_000));
    }

    #[test]
    fn a_sample_becomes_as_many_frames_as_it_takes() {
        let speed = LinkSpeed { bits_per_second: 1_000_000_000, mtu: 1500 };
        assert_eq!(frames_of(64, speed), Some(((UDP_HEADERS + 64 + 128 + 24) * 8, 1)));
        assert_eq!(frames_of(1344, speed).map(|frames| frames.1), Some(1));
        assert_eq!(frames_of(1345, speed).map(|frames| frames.1), Some(2));
        assert_eq!(frames_of(0, speed).map(|frames| frames.1), Some(1));
        assert_eq!(frames_of(1, LinkSpeed { bits_per_second: 0, ..speed }), None);
    }
}
