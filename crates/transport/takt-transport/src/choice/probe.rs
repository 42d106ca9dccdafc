//! Findings about what a machine provides for a transport.

use std::fmt;
use std::io;

use super::link::Link;

/// Grade of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Best case.
    Good,
    /// The transport works, but less well than it could.
    Lesser,
    /// Unknown until the transport is opened.
    Unknown,
    /// The transport does not open without this.
    Missing,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "good",
            Self::Lesser => "lesser",
            Self::Unknown => "unknown",
            Self::Missing => "missing",
        })
    }
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Subject of the check: `capabilities`, `queues`.
    pub what: &'static str,
    /// Grade of the result.
    pub grade: Grade,
    /// Observed state, and what would be better.
    pub detail: String,
}

impl Finding {
    /// Makes a finding.
    pub fn new(what: &'static str, grade: Grade, detail: impl Into<String>) -> Self {
        Self { what, grade, detail: detail.into() }
    }
}

/// Capabilities by their numbers (`linux/capability.h`).
const CAPABILITIES: [(&str, u32); 5] =
    [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13), ("CAP_IPC_LOCK", 14), ("CAP_SYS_ADMIN", 21), ("CAP_BPF", 39)];

/// Returns the effective capabilities of this thread as a bit set.
fn capabilities() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let line = line.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)
}

/// Reports whether the named capability is effective in this thread.
pub fn has_capability(name: &str) -> bool {
    let bit = CAPABILITIES.iter().find(|(known, _)| *known == name).map(|(_, bit)| *bit);
    bit.is_some_and(|bit| capabilities().is_ok_and(|effective| effective >> bit & 1 != 0))
}

/// Checks that this thread has all these capabilities; `|` separates alternatives, as in
/// `"CAP_BPF|CAP_SYS_ADMIN"`.
pub fn capabilities_finding(needed: &[&str]) -> Finding {
    let lacks = |names: &&&str| !names.split('|').any(has_capability);
    let missing: Vec<String> = needed.iter().filter(lacks).map(|names| names.replace('|', " or ")).collect();
    let all = needed.iter().map(|names| names.split('|').next().unwrap_or_default()).collect::<Vec<_>>().join(", ");
    match missing.is_empty() {
        true => Finding::new("capabilities", Grade::Good, all),
        false => Finding::new(
            "capabilities",
            Grade::Missing,
            format!("{} missing; run as root or grant it with `setcap`", missing.join(", ")),
        ),
    }
}

/// Checks that the release of the kernel is at least `major.minor`.
pub fn kernel_finding(major: u32, minor: u32, for_what: &str) -> Finding {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    match found >= (major, minor) {
        true => Finding::new("kernel", Grade::Good, format!("Linux {release}")),
        false => Finding::new("kernel", Grade::Missing, format!("Linux {release}; {for_what} needs {major}.{minor}")),
    }
}

/// Requirements on an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Frames must have Ethernet headers.
    pub ethernet: bool,
    /// The interface must have an IPv4 address.
    pub ipv4: bool,
}

/// Checks an interface against these requirements. The link is `None` if there is no such
/// interface.
pub fn interface_finding(name: &str, needs: Needs) -> (Finding, Option<Link>) {
    let link = match Link::query(name) {
        Ok(link) => link,
        Err(error) => {
            let detail = match error.raw_os_error() {
                Some(libc::ENODEV | libc::EINVAL | libc::ERANGE) => format!("no interface {name}"),
                _ => format!("{name}: {error}"),
            };
            return (Finding::new("interface", Grade::Missing, detail), None);
        }
    };
    let addresses: Vec<String> = link.ipv4.iter().map(ToString::to_string).collect();
    let what = format!("{}, MTU {}", if link.driver.is_empty() { "unknown driver" } else { &link.driver }, link.mtu);
    let (grade, detail) = match () {
        () if needs.ethernet && !link.is_ethernet => (Grade::Missing, format!("{what}; it is not Ethernet")),
        () if !link.is_up => (Grade::Missing, format!("{what}; it is down: `ip link set {name} up`")),
        () if needs.ipv4 && addresses.is_empty() => (Grade::Missing, format!("{what}; it has no IPv4 address")),
        () if !link.has_carrier => (Grade::Lesser, format!("{what}; no carrier")),
        () if addresses.is_empty() => (Grade::Good, what),
        () => (Grade::Good, format!("{what}, {}", addresses.join(", "))),
    };
    (Finding::new("interface", grade, detail), Some(link))
}
