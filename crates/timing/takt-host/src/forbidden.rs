//! Settings that a plan must not name, because the kernel runs the program that they name or loads
//! code from them. With such a setting, the author of a plan would run code as root on the machine
//! that applies it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

const PROGRAM: &str = "it names a program that the kernel runs";
const CODE: &str = "the kernel loads code or rules from it";
const DEVICE: &str = "it is the memory or the configuration of a device";

/// Forbidden files and directories, with the effect of their content. A directory includes
/// everything below it.
const PATHS: [(&str, &str); 15] = [
    ("/proc/sys/kernel/core_pattern", PROGRAM),
    ("/proc/sys/kernel/modprobe", PROGRAM),
    ("/proc/sys/kernel/hotplug", PROGRAM),
    ("/proc/sys/kernel/poweroff_cmd", PROGRAM),
    ("/proc/sys/kernel/usermodehelper", PROGRAM),
    ("/proc/sys/fs/binfmt_misc", PROGRAM),
    ("/sys/kernel/uevent_helper", PROGRAM),
    ("/sys/class/firmware", CODE),
    ("/sys/module/firmware_class", CODE),
    ("/sys/firmware", CODE),
    ("/sys/kernel/config", CODE),
    ("/sys/kernel/debug", CODE),
    ("/sys/kernel/security", CODE),
    ("/sys/kernel/tracing", CODE),
    ("/sys/fs/bpf", CODE),
];

/// Forbidden file names in any directory.
const NAMES: [(&str, &str); 3] = [("release_agent", PROGRAM), ("config", DEVICE), ("rom", DEVICE)];

/// Returns why a file must not be set, given its path as written or after resolving links. `None`
/// if it may be set.
pub(crate) fn why_forbidden(path: &Path) -> Option<&'static str> {
    // `//` and `/./` in a path name the same file.
    let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let by_path = PATHS.iter().find(|(forbidden, _)| path.starts_with(forbidden));
    let by_name = NAMES.iter().find(|(forbidden, _)| name == *forbidden);
    let of_device = path.starts_with("/sys") && name.starts_with("resource");
    by_path.or(by_name).map(|(_, why)| *why).or(of_device.then_some(DEVICE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_run_code_are_forbidden_in_any_spelling() {
        for path in [
            "/proc/sys/kernel/core_pattern",
            "/proc/sys//kernel/./core_pattern",
            "/proc/sys/kernel/modprobe",
            "/proc/sys/kernel/hotplug",
            "/proc/sys/kernel/poweroff_cmd",
            "/proc/sys/fs/binfmt_misc/register",
            "/sys/kernel/uevent_helper",
            "/sys/fs/cgroup/memory/release_agent",
            "/sys/kernel/debug/tracing/kprobe_events",
            "/sys/module/firmware_class/parameters/path",
            "/sys/bus/pci/devices/0000:00:1f.2/resource0",
            "/sys/devices/pci0000:00/0000:00:1f.2/config",
        ] {
            assert!(why_forbidden(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "/proc/sys/kernel/core_uses_pid",
            "/proc/sys/kernel/sched_rt_runtime_us",
            "/proc/sys/net/core/rmem_max",
            "/proc/irq/24/smp_affinity",
            "/sys/fs/cgroup/takt/cpuset.cpus",
            "/sys/module/pcie_aspm/parameters/policy",
        ] {
            assert_eq!(why_forbidden(Path::new(path)), None, "{path}");
        }
    }
}
