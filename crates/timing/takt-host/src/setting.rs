//! Setting of the machine that can be read and written, with its text form.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ethtool::Parameter;
use crate::forbidden::why_forbidden;
use crate::route::Groups;

/// Directories of files that are settings. The rest of `/proc` is excluded, since `root` and `fd`
/// of a process lead to any file.
pub(crate) const ROOTS: [&str; 3] = ["/proc/sys", "/proc/irq", "/sys"];

/// Name of one setting. Its text forms:
///
/// | text | meaning | values |
/// |---|---|---|
/// | a path below `/proc/sys`, `/proc/irq` or `/sys` | a file with one value | that value |
/// | such a path with `/` at its end | a directory | `there`, `none` |
/// | `ethtool/INTERFACE/PARAMETER` | a numeric parameter of the driver | that number |
/// | `rule/INTERFACE/PLACE` | a rule of the driver that assigns flows to a queue | `udp4 dscp 46 queue 3`, `none` |
/// | `spread/INTERFACE` | the queues over which the driver distributes all other flows | `default`, `0,1,0,1` |
/// | `qdisc/INTERFACE` | the tree of queueing disciplines | `default`, `qdisc mq 1: root; ..` |
/// | `clsact/INTERFACE` | the hook of filters | `clsact`, `none` |
/// | `steer/INTERFACE` | the queue or class of marked frames | `queue 3 of 4 dscp 46`, `class 1:10 dscp 46`, `priority 5 dscp 46`, `none` |
/// | `route/INTERFACE/GROUPS` | the route of multicast groups over the interface | `here`, `none` |
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting {
    /// File of `/proc/sys`, `/proc/irq` or `/sys` that contains one value.
    File(PathBuf),
    /// Directory that the kernel populates when it is created, such as a control group.
    Directory(PathBuf),
    /// Numeric parameter of an interface that ethtool(8) sets.
    Ethtool(String, Parameter),
    /// Receive rule of an interface, by its location.
    Rule(String, u32),
    /// Queues of an interface that receive frames to which no rule applies.
    Indirection(String),
    /// Queueing disciplines of an interface.
    Qdisc(String),
    /// Hook of filters of an interface.
    Clsact(String),
    /// Steering of marked frames of an interface to a queue or class of their own.
    Steering(String),
    /// Route of multicast groups over an interface.
    Route(String, Groups),
}

/// Error of a text that names no setting, or a file that a plan must not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSetting {
    text: String,
    /// Reason why the file must not be set.
    forbidden: Option<&'static str>,
}

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, forbidden } = self;
        match forbidden {
            Some(why) => write!(f, "a plan may not set {text:?}: {why}"),
            None => {
                write!(f, "{text:?} is neither a file below /proc/sys, /proc/irq or /sys nor a setting of an interface")
            }
        }
    }
}

impl std::error::Error for InvalidSetting {}

impl Setting {
    /// Returns the setting of a file, by its path.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File(path.into())
    }

    /// Reports whether the setting differs between network namespaces.
    pub(crate) fn is_of_network(&self) -> bool {
        match self {
            Self::File(path) => path.starts_with("/sys/class/net") || path.starts_with("/proc/sys/net"),
            Self::Directory(_) => false,
            _ => true,
        }
    }

    /// Reports whether the setting is the controller list of a control group. It is read as a
    /// whole, and written as additions and removals.
    pub(crate) fn is_list_of_controllers(&self) -> bool {
        matches!(self, Self::File(path) if path.ends_with("cgroup.subtree_control"))
    }

    /// Normalizes a value of the kernel: only the selected one of several choices, and processor
    /// masks without leading zeros.
    pub(crate) fn normal(&self, text: &str) -> String {
        let text = text.trim();
        if !matches!(self, Self::File(_)) {
            return text.to_owned();
        }
        if let Some((_, rest)) = text.split_once('[')
            && let Some((chosen, _)) = rest.split_once(']')
        {
            return chosen.to_owned();
        }
        if self.is_list_of_controllers() {
            let mut controllers: Vec<_> = text.split_whitespace().collect();
            controllers.sort_unstable();
            return controllers.join(" ");
        }
        let is_mask = matches!(self, Self::File(path) if path.file_name().is_some_and(|name| {
            name == "cpumask" || name.to_str().is_some_and(|name| name.ends_with("_cpus") || name == "xps_rxqs")
        }));
        if !is_mask {
            return text.to_owned();
        }
        let digits: Vec<_> = text.chars().filter(|c| *c != ',').skip_while(|c| *c == '0').collect();
        if digits.is_empty() { "0".to_owned() } else { crate::facts::grouped(&digits) }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Directory(path) => write!(f, "{}/", path.display()),
            Self::Ethtool(interface, parameter) => write!(f, "ethtool/{interface}/{parameter}"),
            Self::Rule(interface, location) => write!(f, "rule/{interface}/{location}"),
            Self::Indirection(interface) => write!(f, "spread/{interface}"),
            Self::Qdisc(interface) => write!(f, "qdisc/{interface}"),
            Self::Clsact(interface) => write!(f, "clsact/{interface}"),
            Self::Steering(interface) => write!(f, "steer/{interface}"),
            Self::Route(interface, groups) => write!(f, "route/{interface}/{groups}"),
        }
    }
}

impl FromStr for Setting {
    type Err = InvalidSetting;

    fn from_str(text: &str) -> Result<Self, InvalidSetting> {
        let is_below =
            |root: &&str| text.strip_prefix(*root).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'));
        if ROOTS.iter().any(is_below) && !text.split('/').any(|part| part == "..") {
            if let Some(why) = why_forbidden(Path::new(text)) {
                return Err(InvalidSetting { text: text.to_owned(), forbidden: Some(why) });
            }
            return Ok(match text.strip_suffix('/') {
                Some(path) => Self::Directory(path.into()),
                None => Self::file(text),
            });
        }
        of_interface(text).ok_or_else(|| InvalidSetting { text: text.to_owned(), forbidden: None })
    }
}

fn of_interface(text: &str) -> Option<Setting> {
    let (kind, rest) = text.split_once('/')?;
    let (interface, name) = rest.split_once('/').map_or((rest, None), |(interface, name)| (interface, Some(name)));
    let own = interface.to_owned();
    if interface.is_empty() {
        return None;
    }
    match (kind, name) {
        ("ethtool", Some(name)) => Some(Setting::Ethtool(own, Parameter::named(name)?)),
        ("rule", Some(location)) => Some(Setting::Rule(own, location.parse().ok()?)), // tidy-allow(dropped-cause): the error names the text
        ("route", Some(groups)) => Some(Setting::Route(own, groups.parse().ok()?)), // tidy-allow(dropped-cause): as above
        ("spread", None) => Some(Setting::Indirection(own)),
        ("qdisc", None) => Some(Setting::Qdisc(own)),
        ("clsact", None) => Some(Setting::Clsact(own)),
        ("steer", None) => Some(Setting::Steering(own)),
        _ => None,
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed_from_text() {
        for text in [
            "/proc/sys/net/core/rmem_max",
            "/sys/class/net/eth0/gro_flush_timeout",
            "/sys/fs/cgroup/takt/",
            "ethtool/eth0/rx-usecs",
            "rule/eth0/5",
            "spread/eth0",
            "qdisc/eth0",
            "clsact/eth0",
            "steer/eth0",
            "route/eth0/239.255.0.0/16",
        ] {
            assert_eq!(text.parse::<Setting>().map(|setting| setting.to_string()), Ok(text.to_owned()));
        }
        for text in [
            "",
            "/etc/passwd",
            "/proc/../etc/passwd",
            "/proc/self/cwd/passwd",
            "/proc/1/fd/3",
            "/proc/thread-self/cwd/file",
            "/proc/sysrq-trigger",
            "/sys/../etc/passwd",
            "/sys/",
            "/system/file",
            "ethtool/eth0",
            "ethtool/eth0/nothing",
            "rmem_max",
            "rule/eth0/x",
            "qdisc/",
            "qdisc/eth0/1",
            "route/eth0/10.0.0.0/8",
        ] {
            assert_eq!(text.parse::<Setting>(), Err(InvalidSetting { text: text.to_owned(), forbidden: None }));
        }
    }

    #[test]
    fn plan_with_a_setting_that_runs_code_is_refused_with_the_reason() {
        let refused = "/proc/sys/kernel/core_pattern".parse::<Setting>().map_err(|error| error.to_string());
        let why = "a plan may not set \"/proc/sys/kernel/core_pattern\": it names a program that the kernel runs";
        assert_eq!(refused, Err(why.to_owned()));
        assert!("/sys/fs/cgroup/cpu/release_agent".parse::<Setting>().is_err());
        assert!("/proc/sys/fs/binfmt_misc/".parse::<Setting>().is_err(), "a directory as well");
    }

    #[test]
    fn values_of_the_kernel_are_normalized() {
        let normal = |path: &str, text: &str| Setting::file(path).normal(text);
        assert_eq!(normal("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"), "madvise");
        assert_eq!(normal("/sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,0000000c\n"), "c");
        assert_eq!(normal("/sys/class/net/eth0/queues/rx-0/rps_cpus", "00,0\n"), "0");
        assert_eq!(normal("/sys/class/net/eth0/queues/tx-0/xps_cpus", "00c0,0000000c\n"), "c0,0000000c");
        assert_eq!(normal("/proc/sys/net/core/rmem_max", "0010\n"), "0010");
        assert_eq!(normal("/sys/fs/cgroup/cgroup.subtree_control", "memory cpu\n"), "cpu memory");
    }
}
