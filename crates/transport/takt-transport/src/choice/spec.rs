//! Textual specification of transports.

use std::fmt;
use std::str::FromStr;

/// Requested transport, such as `xdp:eth0/queue=1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransportSpec {
    /// Name of the transport.
    pub name: String,
    /// Interface or device that the transport uses.
    pub target: Option<String>,
    /// Options, in the given order.
    pub options: Vec<TransportOption>,
}

/// Option of a requested transport, such as `queue=1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransportOption {
    /// Name of the option.
    pub key: String,
    /// Value of the option; its meaning depends on the transport.
    pub value: String,
}

/// Alternatives in order of preference: the first that opens is used. An alternative can consist of
/// several transports that are used together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransportChoice {
    /// Alternatives, each of which is a non-empty list; empty if nothing is requested.
    pub alternatives: Vec<Vec<TransportSpec>>,
}

/// Parse error of a transport specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Rejected text.
    pub text: String,
    /// Reason of the rejection.
    pub what: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transport {:?}: {}", self.text, self.what)
    }
}

impl std::error::Error for Malformed {}

impl TransportSpec {
    /// Makes a specification without target and options.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), target: None, options: Vec::new() }
    }
}

impl FromStr for TransportSpec {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let wrong = |what: String| Malformed { text: text.to_owned(), what };
        let mut parts = text.trim().split('/');
        let head = parts.next().unwrap_or_default();
        let (name, target) = head.split_once(':').map_or((head, None), |(name, target)| (name, Some(target)));
        if !super::KNOWN_NAMES.contains(&name) {
            return Err(wrong(format!(
                "unknown transport {name:?}; expected one of {}",
                super::KNOWN_NAMES.join(", ")
            )));
        }
        if target.is_some_and(|target| target.is_empty() || target.contains(char::is_whitespace)) {
            return Err(wrong(format!("expected an interface after {name}:")));
        }
        let mut options: Vec<TransportOption> = Vec::new();
        for part in parts {
            let pair = part.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
            let (key, value) = pair.ok_or_else(|| wrong(format!("found {part:?}; expected KEY=VALUE")))?;
            if options.iter().any(|known| known.key == key) {
                return Err(wrong(format!("{key} is given twice")));
            }
            options.push(TransportOption { key: key.to_owned(), value: value.to_owned() });
        }
        Ok(Self { name: name.to_owned(), target: target.map(str::to_owned), options })
    }
}

impl fmt::Display for TransportSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(target) = &self.target {
            write!(f, ":{target}")?;
        }
        self.options.iter().try_for_each(|TransportOption { key, value }| write!(f, "/{key}={value}"))
    }
}

impl TransportChoice {
    /// Parses a list of texts, each of which may contain alternatives.
    ///
    /// # Errors
    /// Names the first text that cannot be parsed.
    pub fn parse_list<S: AsRef<str>>(list: impl IntoIterator<Item = S>) -> Result<Self, Malformed> {
        let mut alternatives = Vec::new();
        for text in list {
            for alternative in text.as_ref().split('|') {
                alternatives.push(alternative.split('+').map(str::parse).collect::<Result<Vec<_>, _>>()?);
            }
        }
        Ok(Self { alternatives })
    }

    /// Reports whether nothing is requested.
    pub fn is_empty(&self) -> bool {
        self.alternatives.is_empty()
    }
}

impl FromStr for TransportChoice {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::parse_list([text])
    }
}

impl fmt::Display for TransportChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.alternatives.iter().map(|set| join_specs(set)).collect();
        f.write_str(&texts.join("|"))
    }
}

/// Formats transports that are used together.
pub(crate) fn join_specs(set: &[TransportSpec]) -> String {
    set.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specification_round_trips_through_text() {
        for text in ["udp", "xdp:eth0", "xdp:eth0/queue=1/mode=generic", "dpdk:0000:03:00.0", "shm+xdp:eth0|udp"] {
            let choice: TransportChoice = text.parse().expect(text);
            assert_eq!(choice.to_string(), text);
        }
        let choice = TransportChoice::parse_list(["xdp:eth0 | packet:eth0", " shm + udp"]).expect("well-formed");
        let eth0 = |name: &str| TransportSpec { target: Some("eth0".to_owned()), ..TransportSpec::named(name) };
        let both = vec![TransportSpec::named("shm"), TransportSpec::named("udp")];
        assert_eq!(choice.alternatives, [vec![eth0("xdp")], vec![eth0("packet")], both]);
        assert!(TransportChoice::parse_list([""; 0]).expect("nothing").is_empty());
    }

    #[test]
    fn malformed_specification_is_reported_with_its_reason() {
        for (text, part) in [
            ("", "unknown transport \"\"; expected one of udp, tcp"),
            ("pigeon", "unknown transport \"pigeon\""),
            ("UDP", "unknown transport \"UDP\""),
            ("xdp:", "expected an interface after xdp:"),
            ("xdp:eth0 eth1", "expected an interface"),
            ("xdp:eth0/queue", "found \"queue\"; expected KEY=VALUE"),
            ("xdp:eth0/queue=", "expected KEY=VALUE"),
            ("xdp:eth0/queue=1/queue=2", "queue is given twice"),
            ("udp||tcp", "unknown transport \"\""),
            ("udp+", "unknown transport \"\""),
        ] {
            let error = text.parse::<TransportChoice>().expect_err(text).to_string();
            assert!(error.contains(part) && error.starts_with("transport \""), "{error}");
        }
    }
}
