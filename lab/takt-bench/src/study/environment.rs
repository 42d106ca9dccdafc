//! Environment of a campaign: machine and kernel settings, as JSON.
//!
//! Values that the kernel does not report are `null`. Nothing is measured: this module only reads
//! `/proc` and `/sys`.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// Kernel settings that influence figures.
const SETTINGS: [&str; 20] = [
    "kernel.sched_rt_runtime_us",
    "kernel.sched_rt_period_us",
    "kernel.numa_balancing",
    "kernel.nmi_watchdog",
    "kernel.timer_migration",
    "net.core.rmem_max",
    "net.core.rmem_default",
    "net.core.wmem_max",
    "net.core.wmem_default",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.bpf_jit_enable",
    "net.ipv4.udp_mem",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.tcp_congestion_control",
    "vm.swappiness",
    "vm.overcommit_memory",
];

/// Kernel parameters that influence figures; a name that ends with `.` or `_` is a prefix.
const PARAMETERS: [&str; 22] = [
    "amd_pstate",
    "clocksource",
    "cpufreq.",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_",
    "iommu",
    "irqaffinity",
    "isolcpus",
    "mitigations",
    "nohz",
    "nohz_full",
    "nosmt",
    "preempt",
    "processor.",
    "rcu_nocbs",
    "skew_tick",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
];

/// Reads the current environment.
#[must_use]
pub fn capture() -> Value {
    json!({
        "kernel": read("/proc/sys/kernel/osrelease"),
        "kernel_build": read("/proc/sys/kernel/version"),
        "preemption": preemption(),
        "kernel_parameters": read("/proc/cmdline").map(|line| parameters(&line)),
        "distribution": distribution(),
        "processor": cpuinfo("model name"),
        "microcode": cpuinfo("microcode"),
        "processors": crate::machine::available_cpus(),
        "isolated": read("/sys/devices/system/cpu/isolated"),
        "threads_per_core_active": read("/sys/devices/system/cpu/smt/active"),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "boost": read("/sys/devices/system/cpu/cpufreq/boost"),
        "clock_source": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "hypervisor": cpuinfo("flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        "mitigations": mitigations(),
        "transparent_huge_pages": read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "memory_kib": field("/proc/meminfo", "MemTotal"),
        "swap_kib": field("/proc/meminfo", "SwapTotal"),
        "load": read("/proc/loadavg"),
        "settings": settings(),
        "limits": { "real_time_priority": limit("Max realtime priority"), "locked_memory": limit("Max locked memory") },
    })
}

/// Returns the [`PARAMETERS`] in a command line of the kernel.
fn parameters(line: &str) -> String {
    let of_the_kernel = line.split_whitespace().take_while(|word| *word != "--");
    let changes_figures = |word: &&str| {
        let name = word.split('=').next().unwrap_or(word);
        let begins = |known: &&str| known.ends_with(['.', '_']) && name.starts_with(*known);
        PARAMETERS.iter().any(|known| name == *known || begins(known))
    };
    of_the_kernel.filter(changes_figures).collect::<Vec<_>>().join(" ")
}

/// Returns the line `info` of an agent.
#[must_use]
pub fn info(text: &str) -> Option<Value> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()); // tidy-allow(dropped-cause): other lines are not of the contract
    lines.into_iter().find(|line| line["ev"] == "info")
}

/// Describes this program: version, profile, commit if it runs in its own checkout, and digest.
/// Computed once per process.
#[must_use]
pub fn build() -> String {
    static BUILD: OnceLock<String> = OnceLock::new();
    let find = || {
        let profile = if cfg!(debug_assertions) { "with debug assertions" } else { "release" };
        let digest = std::env::current_exe().map_or_else(|why| why.to_string(), |path| digest_of(&path));
        let commit = commit().map_or_else(String::new, |commit| format!(", commit {commit}"));
        format!("takt {} ({profile}{commit}, sha256 {digest})", env!("CARGO_PKG_VERSION"))
    };
    BUILD.get_or_init(find).clone()
}

/// Returns the first 12 hexadecimal digits of the SHA-256 of a file, or the reason why it cannot be
/// read.
#[must_use]
pub fn digest_of(path: &Path) -> String {
    match std::fs::read(path) {
        Ok(bytes) => Sha256::digest(&bytes).iter().take(6).fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        }),
        Err(why) => why.to_string(),
    }
}

/// Returns the commit of the working directory, if that is a checkout of Takt; `+` marks changed
/// files.
fn commit() -> Option<String> {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).output().ok()?; // tidy-allow(dropped-cause): documented
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let root = git(&["rev-parse", "--show-toplevel"])?;
    if !Path::new(&root).join("lab/peers/systems.toml").is_file() {
        return None;
    }
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let mark = if changed.is_empty() { "" } else { "+" };
    git(&["rev-parse", "--short=10", "HEAD"]).map(|commit| commit + mark)
}

fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?; // tidy-allow(dropped-cause): documented
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn field(path: &str, name: &str) -> Option<u64> {
    let text = read(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok() // tidy-allow(dropped-cause): documented
}

fn cpuinfo(name: &str) -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

fn preemption() -> Option<String> {
    let version = read("/proc/sys/kernel/version")?;
    version.split(' ').find(|word| word.starts_with("PREEMPT")).map(ToOwned::to_owned)
}

fn distribution() -> Option<String> {
    let text = read("/etc/os-release")?;
    let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

fn limit(name: &str) -> Option<String> {
    let text = read("/proc/self/limits")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next().map(ToOwned::to_owned)
}

fn mitigations() -> Value {
    let directory = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities");
    let entries = directory.into_iter().flatten().filter_map(std::result::Result::ok);
    let one = |entry: std::fs::DirEntry| {
        let text = read(&entry.path().display().to_string())?;
        Some((entry.file_name().to_string_lossy().into_owned(), Value::from(text)))
    };
    entries.filter_map(one).collect::<Map<_, _>>().into()
}

fn settings() -> Value {
    let one = |name: &&str| {
        let value = read(&format!("/proc/sys/{}", name.replace('.', "/")));
        ((*name).to_owned(), Value::from(value))
    };
    SETTINGS.iter().map(one).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_parameters_without_influence_are_left_out() {
        let line = "console=ttyS0 isolcpus=2,3 processor.max_cstate=1 root=/dev/vda quiet nosmt -- idle=poll";
        assert_eq!(parameters(line), "isolcpus=2,3 processor.max_cstate=1 nosmt");
    }

    #[test]
    fn this_machine_has_kernel_processors_and_memory() {
        let environment = capture();
        assert!(environment["kernel"].is_string());
        assert!(environment["memory_kib"].as_u64().unwrap() > 0);
        assert!(environment["processors"].as_u64().unwrap() > 0);
        assert_eq!(environment["settings"].as_object().unwrap().len(), SETTINGS.len());
    }

    #[test]
    fn build_names_version_and_digest() {
        let build = build();
        assert!(build.contains(env!("CARGO_PKG_VERSION")) && build.contains("sha256 "), "{build}");
        assert!(digest_of(Path::new("/nonexistent")).contains("No such file"));
    }
}
