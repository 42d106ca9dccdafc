//! Roles of a participant's transports: which data each of them carries.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use takt_core::{LocatorKinds, Locators};
use takt_transport::Transport;
use takt_transport::choice::{Malformed, TransportChoice, TransportSpec};
use takt_wire::Locator;
use takt_wire::partition::fnmatch;

use crate::{Error, Result};

/// Maximum number of transports of a participant.
pub(crate) const TRANSPORTS_MAX: usize = 64;

/// Set of transports, by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TransportSet(u64);

impl TransportSet {
    /// All transports, however many there are.
    pub(crate) const ALL: Self = Self(u64::MAX);

    /// Reports whether the set contains the transport. All transports from the last index on share
    /// one bit.
    #[inline]
    pub(crate) fn has(self, index: usize) -> bool {
        self.0 >> index.min(TRANSPORTS_MAX - 1) & 1 != 0
    }

    pub(crate) fn with(self, index: usize) -> Self {
        Self(self.0 | 1 << index.min(TRANSPORTS_MAX - 1))
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Renumbers the set for a list in which only the `kept` transports remain.
    pub(crate) fn intersection(self, kept: Self) -> Self {
        let indexes = (0..TRANSPORTS_MAX).filter(|index| kept.has(*index)).enumerate();
        indexes.filter(|(_, before)| self.has(*before)).fold(Self::default(), |set, (now, _)| set.with(now))
    }
}

/// Transports of the topics whose names match a pattern.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) pattern: String,
    pub(crate) transports: TransportSet,
}

/// Assignment of transports to purposes; see the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Roles {
    pub(crate) user_data: TransportSet,
    pub(crate) discovery: TransportSet,
    /// Rules in order; the first one that matches applies.
    pub(crate) rules: Vec<Rule>,
    /// Specification with which each transport was requested; empty if transports were not
    /// requested by name.
    pub(crate) specs: Vec<TransportSpec>,
}

impl Roles {
    /// Returns roles under which every transport may carry everything.
    pub(crate) fn all() -> Self {
        Self { user_data: TransportSet::ALL, discovery: TransportSet::ALL, rules: Vec::new(), specs: Vec::new() }
    }

    /// Returns the locators of the transports in the form that the core expects. Discovery uses
    /// network transports only, and finds the participants on this host through them.
    pub(crate) fn locators(&self, transports: &[Box<dyn Transport>]) -> Locators {
        let mut all = Locators::default();
        for (index, own) in transports.iter().map(|transport| transport.status().locators).enumerate() {
            if self.discovery.has(index) {
                let by_network =
                    own.metatraffic_unicast.iter().filter(|locator| locator.kind != Locator::KIND_TAKT_SHM);
                all.metatraffic_unicast.extend(by_network);
                all.metatraffic_multicast.extend(&own.metatraffic_multicast);
            }
            if self.user_data.has(index) {
                all.default_unicast.extend(&own.default_unicast);
                all.default_multicast.extend(&own.default_multicast);
            }
        }
        all
    }

    /// Returns the locator kinds that a set of transports serves; all kinds if the set contains all
    /// transports.
    pub(crate) fn kinds(transports: &[Box<dyn Transport>], set: TransportSet) -> LocatorKinds {
        if (0..transports.len()).all(|index| set.has(index)) {
            return LocatorKinds::ALL;
        }
        let mut kinds = LocatorKinds::NONE;
        for (_, transport) in transports.iter().enumerate().filter(|(index, _)| set.has(*index)) {
            let reached = sample_of_each_kind().into_iter().filter(|locator| transport.reach(locator).is_served());
            kinds = reached.fold(kinds, |kinds, locator| kinds.with(locator.kind));
            // A transport can send to locators of the kind that it announces, even if it serves no
            // peer yet.
            kinds = transport.status().locators.default_unicast.iter().fold(kinds, |kinds, own| kinds.with(own.kind));
        }
        kinds
    }

    /// Selects the transports for an endpoint: those of its property, else those of the first rule
    /// that matches its topic, else those for user data.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for an invalid property, and for one that names a transport that is
    /// not open.
    pub(crate) fn of_endpoint(&self, topic_name: &str, property: Option<&str>) -> Result<TransportSet> {
        if let Some(text) = property {
            return self.select_open(text);
        }
        let rule = self.rules.iter().find(|rule| fnmatch(&rule.pattern, topic_name));
        Ok(rule.map_or(self.user_data, |rule| rule.transports))
    }

    fn select_open(&self, text: &str) -> Result<TransportSet> {
        let text_of = |what: &dyn fmt::Display| format!("property takt.transport: {what}");
        let choice: TransportChoice =
            text.parse().map_err(|error: Malformed| Error::bad_parameter_from(text_of(&error), error))?;
        // A name without target and options selects every transport of that name.
        let matches = |requested: &TransportSpec, open: &TransportSpec| {
            requested == open || (*requested == TransportSpec::named(&requested.name) && requested.name == open.name)
        };
        let find = |requested: &TransportSpec| self.specs.iter().position(|open| matches(requested, open));
        let all_of = |alternative: &Vec<TransportSpec>| {
            alternative.iter().try_fold(TransportSet::default(), |set, requested| Some(set.with(find(requested)?)))
        };
        choice.alternatives.iter().find_map(all_of).ok_or_else(|| {
            let open: Vec<String> = self.specs.iter().map(ToString::to_string).collect();
            let open = if open.is_empty() { "none selected by name".to_owned() } else { open.join(", ") };
            let closed = format!("{choice} is not open; open transports: {open}; add it to transport.extra");
            Error::bad_parameter(text_of(&closed))
        })
    }
}

/// Returns one locator of each kind that has a network address.
fn sample_of_each_kind() -> [Locator; 5] {
    let (v4, v6) = (Locator::udp_v4(Ipv4Addr::LOCALHOST, 1), Locator::udp_v6(Ipv6Addr::LOCALHOST, 1));
    let tcp = |kind, udp: Locator| Locator { kind, ..udp };
    let ethernet = Locator::takt_ethernet([2, 0, 0, 0, 0, 1], 1);
    [v4, v6, tcp(Locator::KIND_TCP_V4, v4), tcp(Locator::KIND_TCP_V6, v6), ethernet]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(indexes: &[usize]) -> TransportSet {
        indexes.iter().fold(TransportSet::default(), |set, index| set.with(*index))
    }

    fn roles() -> Roles {
        let specs = ["xdp:eth0", "udp", "shm", "udp:eth1"].map(|text| text.parse().expect("well-formed"));
        let rule = |pattern: &str, indexes| Rule { pattern: pattern.to_owned(), transports: set(indexes) };
        let rules = vec![rule("Lidar*", &[0]), rule("L?g", &[3]), rule("*", &[1])];
        Roles { user_data: set(&[0, 2]), discovery: set(&[1]), rules, specs: specs.to_vec() }
    }

    #[test]
    fn first_matching_rule_applies_and_a_property_overrides_it() {
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
        assert_eq!(Roles::all().of_endpoint("Lidar", None).expect("always"), TransportSet::ALL);
    }

    #[test]
    fn property_selects_open_transports_only() {
        let refusal = |text| roles().of_endpoint("x", Some(text)).expect_err(text).to_string();
        let message = refusal("packet:eth0|xdp:eth1");
        assert!(
            message.contains("packet:eth0|xdp:eth1 is not open; open transports: xdp:eth0, udp, shm, udp:eth1"),
            "{message}"
        );
        assert!(refusal("pigeon").contains("unknown transport \"pigeon\""));
        let message = Roles::all().of_endpoint("x", Some("udp")).expect_err("nothing by name").to_string();
        assert!(message.contains("none selected by name"), "{message}");
    }

    #[test]
    fn set_is_renumbered_when_transports_are_removed() {
        assert_eq!(set(&[1, 4, 5]).intersection(set(&[1, 3, 5])), set(&[0, 2]));
        assert_eq!(set(&[]).intersection(TransportSet::ALL), set(&[]));
        assert!(TransportSet::ALL.has(1000) && !set(&[0]).has(1000));
    }
}
