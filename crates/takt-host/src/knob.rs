//! One thing of the machine that can be read and set.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ethtool::Parameter;

/// Names one setting. As text: the path of a file below `/proc` or `/sys`, or `ethtool/INTERFACE/PARAMETER`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// A file of `/proc` or `/sys` that holds one value.
    File(PathBuf),
    /// What ethtool(8) sets, of an interface.
    Ethtool(String, Parameter),
}

/// Names no knob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoKnob(String);

impl fmt::Display for NoKnob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is neither a file below /proc or /sys nor ethtool/INTERFACE/PARAMETER", self.0)
    }
}

impl std::error::Error for NoKnob {}

impl Knob {
    /// A file, by its path.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File(path.into())
    }

    /// What the kernel tells, in one form: of a choice the chosen, of a mask of processors no zeros that say nothing.
    pub(crate) fn normal(&self, text: &str) -> String {
        let text = text.trim();
        if let Some((_, rest)) = text.split_once('[')
            && let Some((chosen, _)) = rest.split_once(']')
        {
            return chosen.to_owned();
        }
        let is_mask = matches!(self, Self::File(path) if path.file_name().is_some_and(|name| {
            name == "cpumask" || name.to_str().is_some_and(|name| name.ends_with("_cpus"))
        }));
        if !is_mask {
            return text.to_owned();
        }
        let digits = text.replace(',', "");
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() { "0".to_owned() } else { digits.to_owned() }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Ethtool(interface, parameter) => write!(f, "ethtool/{interface}/{parameter}"),
        }
    }
}

impl FromStr for Knob {
    type Err = NoKnob;

    fn from_str(text: &str) -> Result<Self, NoKnob> {
        let is_below = |root: &str| text.starts_with(root) && !text.split('/').any(|part| part == "..");
        if is_below("/proc/") || is_below("/sys/") {
            return Ok(Self::file(text));
        }
        let named = text.strip_prefix("ethtool/").and_then(|rest| rest.split_once('/'));
        let knob =
            named.and_then(|(interface, name)| Some(Self::Ethtool(interface.to_owned(), Parameter::named(name)?)));
        knob.ok_or_else(|| NoKnob(text.to_owned()))
    }
}

impl Serialize for Knob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Knob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_are_named_by_text() {
        for text in ["/proc/sys/net/core/rmem_max", "/sys/class/net/eth0/gro_flush_timeout", "ethtool/eth0/rx-usecs"] {
            assert_eq!(text.parse::<Knob>().map(|knob| knob.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "/etc/passwd", "/proc/../etc/passwd", "ethtool/eth0", "ethtool/eth0/nothing", "rmem_max"] {
            assert_eq!(text.parse::<Knob>(), Err(NoKnob(text.to_owned())));
        }
    }

    #[test]
    fn what_the_kernel_tells_has_one_form() {
        let normal = |path: &str, text: &str| Knob::file(path).normal(text);
        assert_eq!(normal("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"), "madvise");
        assert_eq!(normal("/sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,0000000c\n"), "c");
        assert_eq!(normal("/sys/class/net/eth0/queues/rx-0/rps_cpus", "00,0\n"), "0");
        assert_eq!(normal("/proc/sys/net/core/rmem_max", "0010\n"), "0010");
    }
}
