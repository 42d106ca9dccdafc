//! Which of a participant's transports carry what.

use std::net::{Ipv4Addr, Ipv6Addr};

use takt_core::{LocatorKinds, Locators};
use takt_transport::Transport;
use takt_transport::choice::{TransportChoice, TransportSpec};
use takt_wire::Locator;

use crate::{Error, Result};

/// Transports that a participant has at most.
pub(crate) const TRANSPORTS_MAX: usize = 64;

/// Some of a participant's transports, by their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(u64);

impl Set {
    /// All of them, however many there are.
    pub(crate) const ALL: Self = Self(u64::MAX);

    /// Whether the transport at this place is one of them. Those beyond the last place share it.
    #[inline]
    pub(crate) fn has(self, place: usize) -> bool {
        self.0 >> place.min(TRANSPORTS_MAX - 1) & 1 != 0
    }

    pub(crate) fn with(self, place: usize) -> Self {
        Self(self.0 | 1 << place.min(TRANSPORTS_MAX - 1))
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The same transports once only the `kept` ones are there, which have moved up.
    pub(crate) fn among(self, kept: Self) -> Self {
        let places = (0..TRANSPORTS_MAX).filter(|place| kept.has(*place)).enumerate();
        places.filter(|(_, before)| self.has(*before)).fold(Self::default(), |set, (now, _)| set.with(now))
    }
}

/// Transports of the topics whose names fit a pattern.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) pattern: String,
    pub(crate) transports: Set,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Roles {
    pub(crate) user_data: Set,
    pub(crate) discovery: Set,
    /// The first that fits holds.
    pub(crate) rules: Vec<Rule>,
    /// What each transport was asked for by; empty if nobody asked by name.
    pub(crate) specs: Vec<TransportSpec>,
}

impl Roles {
    /// Everything goes by whatever leads there.
    pub(crate) fn all() -> Self {
        Self { user_data: Set::ALL, discovery: Set::ALL, rules: Vec::new(), specs: Vec::new() }
    }

    /// Where the transports can be reached, as the core wants it. Discovery goes by networks alone: it finds out who is near.
    pub(crate) fn locators(&self, transports: &[Box<dyn Transport>]) -> Locators {
        let mut all = Locators::default();
        for (place, own) in transports.iter().map(|transport| transport.locators()).enumerate() {
            if self.discovery.has(place) {
                let by_network =
                    own.metatraffic_unicast.iter().filter(|locator| locator.kind != Locator::KIND_TAKT_SHM);
                all.metatraffic_unicast.extend(by_network);
                all.metatraffic_multicast.extend(&own.metatraffic_multicast);
            }
            if self.user_data.has(place) {
                all.default_unicast.extend(&own.default_unicast);
                all.default_multicast.extend(&own.default_multicast);
            }
        }
        all
    }

    /// The kinds of locators that some of the transports send to. All, if it is all of the transports.
    pub(crate) fn kinds(transports: &[Box<dyn Transport>], by: Set) -> LocatorKinds {
        if (0..transports.len()).all(|place| by.has(place)) {
            return LocatorKinds::ALL;
        }
        let mut kinds = LocatorKinds::NONE;
        for (_, transport) in transports.iter().enumerate().filter(|(place, _)| by.has(*place)) {
            let reached = sample_of_each_kind().into_iter().filter(|locator| transport.serves(locator));
            kinds = reached.fold(kinds, |kinds, locator| kinds.with(locator.kind));
            // What a transport announces it can be sent to by its like, even if it serves nobody yet.
            kinds = transport.locators().default_unicast.iter().fold(kinds, |kinds, own| kinds.with(own.kind));
        }
        kinds
    }

    /// What carries the data of an endpoint: as its property says, else the first rule that fits its topic, else as all user
    /// data.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a property that cannot be understood, or that asks for what is not open.
    pub(crate) fn of_endpoint(&self, topic_name: &str, property: Option<&str>) -> Result<Set> {
        if let Some(text) = property {
            return self.asked_for(text);
        }
        let rule = self.rules.iter().find(|rule| fits(&rule.pattern, topic_name));
        Ok(rule.map_or(self.user_data, |rule| rule.transports))
    }

    fn asked_for(&self, text: &str) -> Result<Set> {
        let wrong = |what: String| Error::BadParameter { what: format!("property takt.transport: {what}") };
        let choice: TransportChoice = text.parse().map_err(|error| wrong(format!("{error}")))?;
        // Without target and options: whichever one it is.
        let is_meant = |asked: &TransportSpec, open: &TransportSpec| {
            asked == open || (*asked == TransportSpec::named(&asked.name) && asked.name == open.name)
        };
        let place = |asked: &TransportSpec| self.specs.iter().position(|open| is_meant(asked, open));
        let all_of = |alternative: &Vec<TransportSpec>| {
            alternative.iter().try_fold(Set::default(), |set, asked| Some(set.with(place(asked)?)))
        };
        choice.alternatives.iter().find_map(all_of).ok_or_else(|| {
            let open: Vec<String> = self.specs.iter().map(ToString::to_string).collect();
            let open = if open.is_empty() { "none that was asked for by name".to_owned() } else { open.join(", ") };
            wrong(format!("{choice} is not open here, but {open}; transport.extra opens more"))
        })
    }
}

/// A locator of each kind that has an address.
fn sample_of_each_kind() -> [Locator; 5] {
    let (v4, v6) = (Locator::udp_v4(Ipv4Addr::LOCALHOST, 1), Locator::udp_v6(Ipv6Addr::LOCALHOST, 1));
    let tcp = |kind, udp: Locator| Locator { kind, ..udp };
    let ethernet = Locator::takt_ethernet([2, 0, 0, 0, 0, 1], 1);
    [v4, v6, tcp(Locator::KIND_TCP_V4, v4), tcp(Locator::KIND_TCP_V6, v6), ethernet]
}

/// Whether a name fits a pattern, in which `*` stands for any characters and `?` for one.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // After each character of the pattern: the lengths of beginnings of the name that fit so far.
    let mut fitting = vec![false; name.len() + 1];
    fitting[0] = true;
    for expected in pattern {
        let before = fitting.clone();
        fitting[0] = before[0] && expected == '*';
        for len in 1..=name.len() {
            fitting[len] = match expected {
                '*' => before[len] || fitting[len - 1],
                '?' => before[len - 1],
                _ => before[len - 1] && name[len - 1] == expected,
            };
        }
    }
    fitting[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(places: &[usize]) -> Set {
        places.iter().fold(Set::default(), |set, place| set.with(*place))
    }

    fn roles() -> Roles {
        let specs = ["xdp:eth0", "udp", "shm", "udp:eth1"].map(|text| text.parse().expect("well-formed"));
        let rule = |pattern: &str, places| Rule { pattern: pattern.to_owned(), transports: set(places) };
        let rules = vec![rule("Lidar*", &[0]), rule("L?g", &[3]), rule("*", &[1])];
        Roles { user_data: set(&[0, 2]), discovery: set(&[1]), rules, specs: specs.to_vec() }
    }

    #[test]
    fn the_first_rule_that_fits_holds_and_a_property_before_all() {
        let of = |topic, property| roles().of_endpoint(topic, property).expect("understood");
        assert_eq!(of("LidarFront", None), set(&[0]));
        assert_eq!((of("Log", None), of("Legg", None)), (set(&[3]), set(&[1])));
        assert_eq!(of("LidarFront", Some("shm+udp:eth1")), set(&[2, 3]));
        assert_eq!(
            of("x", Some("packet:eth0|xdp|udp")),
            set(&[0]),
            "the first one that is open, whatever its interface"
        );
        let without_rules = Roles { rules: Vec::new(), ..roles() };
        assert_eq!(without_rules.of_endpoint("Lidar", None).expect("always"), set(&[0, 2]));
        assert_eq!(Roles::all().of_endpoint("Lidar", None).expect("always"), Set::ALL);
    }

    #[test]
    fn a_property_asks_for_what_is_open() {
        let refusal = |text| roles().of_endpoint("x", Some(text)).expect_err(text).to_string();
        let message = refusal("packet:eth0|xdp:eth1");
        assert!(
            message.contains("packet:eth0|xdp:eth1 is not open here, but xdp:eth0, udp, shm, udp:eth1"),
            "{message}"
        );
        assert!(refusal("pigeon").contains("there is no \"pigeon\""));
        let message = Roles::all().of_endpoint("x", Some("udp")).expect_err("nothing by name").to_string();
        assert!(message.contains("none that was asked for by name"), "{message}");
    }

    #[test]
    fn places_move_up_when_others_go() {
        assert_eq!(set(&[1, 4, 5]).among(set(&[1, 3, 5])), set(&[0, 2]));
        assert_eq!(set(&[]).among(Set::ALL), set(&[]));
        assert!(Set::ALL.has(1000) && !set(&[0]).has(1000));
    }

    #[test]
    fn patterns_have_stars_and_question_marks() {
        for (pattern, name) in [("*", ""), ("a*c", "ac"), ("a*c", "abbc"), ("?", "ä"), ("*b*", "abc"), ("a", "a")] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("?", ""), ("a*c", "abd"), ("a", "ab"), ("", "a"), ("b*", "ab")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
