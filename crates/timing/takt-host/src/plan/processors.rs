//! Planned processors for real-time threads only, and kernel work that is moved off them.

use super::{Planner, Request};
use crate::facts::{Facts, InterfaceFacts, list, mask, numbers};
use crate::setting::Setting;

/// Mount point of control groups, version 2.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Control group of the real-time processors.
const CONTROL_GROUP: &str = "/sys/fs/cgroup/takt";

impl Planner<'_> {
    pub(super) fn kernel(&mut self, facts: &Facts, request: &Request) {
        if !facts.is_preempt_rt {
            let alternative = "install a kernel with PREEMPT_RT (Debian: linux-image-rt-amd64); other kernels delay threads by milliseconds";
            self.add_missing_feature("PREEMPT_RT", "/sys/kernel/realtime is not 1", alternative);
        }
        let shared = |known: &[usize]| -> Vec<usize> {
            request.cpus.iter().copied().filter(|cpu| !known.contains(cpu)).collect()
        };
        if request.has_control_group {
            self.control_group(&request.cpus);
        } else if let shared @ [_, ..] = &*shared(&facts.isolated) {
            let cpus = list(shared);
            let alternative =
                format!("boot with isolcpus={cpus} nohz_full={cpus} rcu_nocbs={cpus}, or plan with --control-group");
            self.add_missing_feature(
                "isolated processors",
                &format!("the scheduler uses {cpus} for all threads"),
                &alternative,
            );
        }
        if let ticking @ [_, ..] = &*shared(&facts.without_tick) {
            let cpus = list(ticking);
            let alternative = format!("boot with nohz_full={cpus} rcu_nocbs={cpus}");
            self.add_missing_feature("processors without tick", &format!("the timer interrupts {cpus}"), &alternative);
        }
        let alternative = "nothing: not supported by this kernel";
        self.set(
            Setting::file("/proc/sys/vm/stat_interval"),
            "120",
            "the kernel updates its counters less often",
            alternative,
        );
        self.set(Setting::file("/proc/sys/kernel/nmi_watchdog"), "0", "no watchdog interrupts", alternative);
    }

    /// Plans a control group with exclusive processors.
    fn control_group(&mut self, cpus: &[usize]) {
        let file = |name: &str| Setting::file(format!("{CONTROL_GROUP}/{name}"));
        let controllers = self.machine.read(&Setting::file(format!("{CONTROL_GROUPS}/cgroup.controllers")));
        if !controllers.is_ok_and(|names| names.split(' ').any(|name| name == "cpuset")) {
            let cpus = list(cpus);
            let alternative = format!("boot with cgroup_no_v1=cpuset if cgroup v1 has cpuset, or with isolcpus={cpus}");
            return self.add_missing_feature(
                "cpuset control groups",
                "cgroup v2 has no cpuset controller here",
                &alternative,
            );
        }
        let delegated = Setting::file(format!("{CONTROL_GROUPS}/cgroup.subtree_control"));
        let now = self.machine.read(&delegated).unwrap_or_default();
        let mut names: Vec<_> = now.split_whitespace().collect();
        if !names.contains(&"cpuset") {
            names.push("cpuset");
            names.sort_unstable();
            self.set(
                delegated,
                &names.join(" "),
                "control groups can reserve processors",
                "nothing: not supported by this kernel",
            );
        }
        let group = Setting::Directory(CONTROL_GROUP.into());
        let whose = format!("only programs started in {CONTROL_GROUP} (cgroup.procs) use them");
        let settings = [("cpuset.cpus", "", list(cpus)), ("cpuset.cpus.partition", "member", "isolated".to_owned())];
        if self.machine.read(&group).is_ok_and(|there| there == "there") {
            for (name, _, to) in settings {
                self.set(file(name), &to, &whose, "isolcpus");
            }
        } else {
            self.change(group, "none", "there", "the control group reserves the processors");
            for (name, from, to) in settings {
                self.change(file(name), from, &to, &whose);
            }
        }
    }

    pub(super) fn processor(&mut self, cpu: usize) {
        let base = format!("/sys/devices/system/cpu/cpu{cpu}");
        let governor = Setting::file(format!("{base}/cpufreq/scaling_governor"));
        let alternative = "configure the frequency in the firmware, or on the host of the virtual machine";
        self.set(governor, "performance", "the processor keeps its maximum frequency", alternative);
        let idle = format!("{base}/cpuidle");
        let states = self.machine.names(&idle);
        if states.is_empty() {
            let alternative = "set ProcessSettings::cpu_latency of a participant, which holds /dev/cpu_dma_latency";
            self.add_missing_feature(&idle, "no sleep state can be disabled", alternative);
        }
        for state in states {
            let latency = self.machine.read(&Setting::file(format!("{idle}/{state}/latency")));
            if latency.is_ok_and(|latency| latency != "0") {
                let setting = Setting::file(format!("{idle}/{state}/disable"));
                self.set(setting, "1", "no wakeup latency of the sleep state", "hold /dev/cpu_dma_latency");
            }
        }
    }

    /// Moves interrupts and kernel work to the other processors. Interrupts of the interface, or of
    /// its queue, go to the first real-time processor.
    pub(super) fn keep_away(
        &mut self,
        facts: &Facts,
        request: &Request,
        others: &[usize],
        interface: Option<&InterfaceFacts>,
    ) {
        let work = Setting::file("/sys/devices/virtual/workqueue/cpumask");
        self.set(work, &mask(others), "kernel work runs on other processors", "nothing: not supported by this kernel");
        let managed = "the driver controls its affinity: boot with isolcpus=managed_irq, and the processors";
        let own = interface.map(|interface| self.own_interrupts(interface, request.queue)).unwrap_or_default();
        for interrupt in &facts.interrupts {
            let setting = Setting::file(format!("/proc/irq/{interrupt}/smp_affinity_list"));
            let Ok(now) = self.machine.read(&setting) else { continue };
            let present = numbers(&now);
            if own.contains(interrupt) {
                self.set(
                    setting,
                    &list(&request.cpus[..1]),
                    "the processor of the receiving thread processes its frames",
                    managed,
                );
            } else if present.iter().any(|cpu| request.cpus.contains(cpu)) {
                self.set(setting, &list(others), "it interrupts other processors", managed);
            }
        }
    }

    /// Returns the interrupts of real-time traffic: those of the queue if their names identify it,
    /// otherwise all of the interface.
    fn own_interrupts(&self, interface: &InterfaceFacts, queue: Option<u32>) -> Vec<u32> {
        let name = |interrupt: &u32| self.machine.read(&Setting::file(format!("/sys/kernel/irq/{interrupt}/actions")));
        let is_of_queue =
            |interrupt: &u32| queue.is_some() && name(interrupt).is_ok_and(|name| queue_of(&name) == queue);
        let of_queue: Vec<u32> = interface.interrupts.iter().copied().filter(is_of_queue).collect();
        if of_queue.is_empty() { interface.interrupts.clone() } else { of_queue }
    }
}

/// Returns the queue of an interrupt by the name that the driver gives it: `eth0-TxRx-3`,
/// `virtio1-input.3`, `mlx5_comp3@pci:0000:01:00.0`.
fn queue_of(name: &str) -> Option<u32> {
    let name = name.split('@').next()?;
    let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
    // A name that ends with the number of the interface belongs to the whole interface.
    let is_queue = ["-", ".", "comp"].iter().any(|end| head.ends_with(end));
    name[head.len()..].parse().ok().filter(|_| is_queue) // tidy-allow(dropped-cause): no number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_assigned_to_queues_by_their_names() {
        for (name, queue) in [
            ("eth0-TxRx-3", Some(3)),
            ("i40e-eth0-TxRx-12", Some(12)),
            ("virtio1-input.0", Some(0)),
            ("virtio1-output.7", Some(7)),
            ("mlx5_comp3@pci:0000:01:00.0", Some(3)),
            ("mlx5_async0@pci:0000:01:00.0", None),
            ("virtio1-config", None),
            ("eth0", None),
            ("", None),
        ] {
            assert_eq!(queue_of(name), queue, "{name}");
        }
    }
}
