//! Directory tree that represents a machine.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use takt_host::{Journal, Machine};

/// Tree with four processors, an interface with two queues, and some interrupts. Dropping the value
/// removes it.
pub struct Tree(PathBuf);

const FILES: [(&str, &str); 26] = [
    ("proc/sys/kernel/osrelease", "6.18.0\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("proc/sys/net/core/rmem_max", "212992\n"),
    ("proc/sys/net/core/wmem_max", "16777216\n"),
    ("proc/sys/vm/stat_interval", "1\n"),
    ("sys/devices/virtual/workqueue/cpumask", "f\n"),
    ("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpu3/cpuidle/state0/latency", "0\n"),
    ("sys/devices/system/cpu/cpu3/cpuidle/state0/disable", "0\n"),
    ("sys/devices/system/cpu/cpu3/cpuidle/state1/latency", "2\n"),
    ("sys/devices/system/cpu/cpu3/cpuidle/state1/disable", "0\n"),
    ("sys/devices/system/cpu/cpu3/cpuidle/state10/latency", "200\n"),
    ("sys/devices/system/cpu/cpu3/cpuidle/state10/disable", "0\n"),
    ("proc/irq/default_smp_affinity", "f\n"),
    ("proc/irq/9/smp_affinity_list", "0-3\n"),
    ("proc/irq/40/smp_affinity_list", "0\n"),
    ("proc/irq/41/smp_affinity_list", "1\n"),
    ("sys/class/net/takt0/device/msi_irqs/40", ""),
    ("sys/class/net/takt0/queues/rx-0/rps_cpus", "0000000f\n"),
    ("sys/class/net/takt0/queues/rx-1/rps_cpus", "00000000\n"),
    ("sys/class/net/takt0/queues/tx-0/xps_cpus", "3\n"),
    ("sys/class/net/takt0/napi_defer_hard_irqs", "2\n"),
    ("sys/class/net/takt0/gro_flush_timeout", "200000\n"),
    ("sys/class/net/lo/queues/rx-0/rps_cpus", "0\n"),
    ("sys/kernel/realtime", "1\n"),
];

impl Tree {
    pub fn new(name: &str) -> Self {
        let tree = Self(std::env::temp_dir().join(format!("takt-host-{}-{name}", std::process::id())));
        FILES.iter().for_each(|(path, text)| tree.write(path, text));
        tree
    }

    pub fn root(&self) -> &Path {
        &self.0
    }

    pub fn machine(&self) -> Machine {
        Machine::below(&self.0)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("the temporary directory can be written");
        fs::write(path, text).expect("as above");
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.0.join(path)).expect("it exists");
    }

    /// Makes a file read-only.
    pub fn forbid(&self, path: &str) {
        fs::set_permissions(self.0.join(path), fs::Permissions::from_mode(0o444)).expect("it exists");
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.join(path)).expect("it exists").trim().to_owned()
    }

    pub fn journal_path(&self) -> PathBuf {
        self.0.join("run/host.journal")
    }

    pub fn journal(&self) -> Journal {
        Journal::open(self.journal_path()).expect("not locked")
    }

    /// Returns the content of all files in the form of the kernel, without surrounding white space.
    pub fn dump(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let mut directories = vec![self.0.join("proc"), self.0.join("sys")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).expect("it exists") {
                let path = entry.expect("it exists").path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    let text = fs::read_to_string(&path).expect("text");
                    all.insert(path, text.trim().trim_start_matches('0').to_owned());
                }
            }
        }
        all
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
