//! What is wished for, the changes that make it so, and what cannot be had.

use std::io;

use serde::{Deserialize, Serialize};

use crate::ethtool::Parameter;
use crate::facts::{Facts, InterfaceFacts, list};
use crate::knob::Knob;
use crate::machine::Machine;

/// Room for what comes at once at a socket, in octets: a sample of some megabytes.
const SOCKET_BUFFER: u64 = 8 << 20;

/// What real-time traffic is to have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// Processors that nothing else is to use; empty: nothing is kept away from any.
    pub cpus: Vec<usize>,
    /// The interface that it comes and goes by.
    pub interface: Option<String>,
}

/// One knob that is to be another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Which one.
    pub knob: Knob,
    /// What it is now, for who reads the plan.
    pub from: String,
    /// What it is to be.
    pub to: String,
    /// What for.
    pub why: String,
}

/// Something that this machine does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lack {
    /// What it is.
    pub what: String,
    /// What the kernel or the driver said.
    pub why: String,
    /// What can be done instead.
    pub instead: String,
}

/// Changes in the order in which they are made. As JSON it can be kept, compared and edited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What is to be another.
    pub changes: Vec<Change>,
    /// What cannot be had.
    #[serde(default)]
    pub lacks: Vec<Lack>,
}

/// A wish that no machine like this can fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impossible(pub String);

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Impossible {}

impl Plan {
    /// The changes that a wish takes. Looks at the machine and changes nothing.
    ///
    /// # Errors
    /// Processors or an interface that are not there, or no processor left for all else.
    pub fn new(machine: &Machine, facts: &Facts, wish: &Wish) -> Result<Self, Impossible> {
        if let Some(cpu) = wish.cpus.iter().find(|cpu| !facts.cpus.contains(cpu)) {
            return Err(Impossible(format!("processor {cpu} is not online; there are {}", list(&facts.cpus))));
        }
        let others: Vec<usize> = facts.cpus.iter().copied().filter(|cpu| !wish.cpus.contains(cpu)).collect();
        if others.is_empty() {
            return Err(Impossible("one processor at least must be left for all else".into()));
        }
        let interface = match &wish.interface {
            Some(name) => {
                let found = facts.interface(name);
                Some(found.ok_or_else(|| Impossible(format!("there is no interface {name:?}")))?)
            }
            None => None,
        };
        let mut planner = Planner { machine, plan: Self::default() };
        planner.sockets();
        if !wish.cpus.is_empty() {
            planner.kernel(facts, &wish.cpus);
            wish.cpus.iter().for_each(|cpu| planner.processor(*cpu));
            planner.keep_away(facts, &wish.cpus, &others, interface);
        }
        if let Some(interface) = interface {
            planner.interface(interface);
        }
        Ok(planner.plan)
    }
}

struct Planner<'a> {
    machine: &'a Machine,
    plan: Plan,
}

impl Planner<'_> {
    /// Has a knob set, if it is there and is not so already.
    fn set(&mut self, knob: Knob, to: &str, why: &str, instead: &str) {
        match self.machine.read(&knob) {
            Ok(from) if from == to => {}
            Ok(_) if !self.machine.is_settable(&knob) => {
                self.lack(&format!("{knob} as {to:?}"), "the kernel lets nobody set it", instead);
            }
            Ok(from) => self.plan.changes.push(Change { knob, from, to: to.to_owned(), why: why.to_owned() }),
            Err(error) => self.lack(&knob.to_string(), &absence(&error), instead),
        }
    }

    fn lack(&mut self, what: &str, why: &str, instead: &str) {
        self.plan.lacks.push(Lack { what: what.into(), why: why.into(), instead: instead.into() });
    }

    fn sockets(&mut self) {
        for name in ["rmem_max", "wmem_max"] {
            let knob = Knob::file(format!("/proc/sys/net/core/{name}"));
            let now = self.machine.read(&knob).ok().and_then(|now| now.parse::<u64>().ok()); // tidy-allow(dropped-cause): `set` says why.
            if now.is_none_or(|now| now < SOCKET_BUFFER) {
                let instead = "set it in the first network namespace: it is the whole machine's";
                self.set(knob, &SOCKET_BUFFER.to_string(), "what comes at once finds room", instead);
            }
        }
    }

    fn kernel(&mut self, facts: &Facts, cpus: &[usize]) {
        if !facts.is_preempt_rt {
            let instead = "install a kernel with PREEMPT_RT (Debian: linux-image-rt-amd64); without it what the kernel does for others delays by milliseconds";
            self.lack("PREEMPT_RT", "/sys/kernel/realtime is not 1", instead);
        }
        let shared: Vec<usize> = cpus.iter().copied().filter(|cpu| !facts.isolated.contains(cpu)).collect();
        if !shared.is_empty() {
            let cpus = list(&shared);
            let instead =
                format!("boot with isolcpus={cpus} nohz_full={cpus} rcu_nocbs={cpus}, or keep others away by cpusets");
            self.lack("isolated processors", &format!("the scheduler uses {cpus} for all"), &instead);
        }
        let instead = "nothing: this kernel has it not";
        self.set(Knob::file("/proc/sys/vm/stat_interval"), "120", "counters are gathered seldom", instead);
        self.set(Knob::file("/proc/sys/kernel/nmi_watchdog"), "0", "no watchdog interrupts", instead);
    }

    fn processor(&mut self, cpu: usize) {
        let base = format!("/sys/devices/system/cpu/cpu{cpu}");
        let governor = Knob::file(format!("{base}/cpufreq/scaling_governor"));
        let instead =
            "its frequency is not in this kernel's hands: ask the firmware, or the host of the virtual machine";
        self.set(governor, "performance", "its clock does not slow down", instead);
        let idle = format!("{base}/cpuidle");
        let states = self.machine.names(&idle);
        if states.is_empty() {
            let instead = "hold /dev/cpu_dma_latency: ProcessSettings::cpu_latency of a participant";
            self.lack(&idle, "there are no sleep states to switch off", instead);
        }
        for state in states {
            let takes = self.machine.read(&Knob::file(format!("{idle}/{state}/latency")));
            if takes.is_ok_and(|takes| takes != "0") {
                let knob = Knob::file(format!("{idle}/{state}/disable"));
                self.set(knob, "1", "it need not be woken", "hold /dev/cpu_dma_latency");
            }
        }
    }

    /// Sends interrupts and the kernel's own work to the other processors; those of the interface to the first of ours.
    fn keep_away(&mut self, facts: &Facts, cpus: &[usize], others: &[usize], interface: Option<&InterfaceFacts>) {
        let mask = others.iter().fold(0_u128, |mask, cpu| if *cpu < 128 { mask | 1 << cpu } else { mask });
        let work = Knob::file("/sys/devices/virtual/workqueue/cpumask");
        self.set(
            work,
            &format!("{mask:x}"),
            "the kernel's own work is done elsewhere",
            "nothing: this kernel has it not",
        );
        let managed = "the driver has placed it: boot with isolcpus=managed_irq, and the processors";
        let own = interface.map_or(&[][..], |interface| &interface.interrupts);
        for interrupt in &facts.interrupts {
            let knob = Knob::file(format!("/proc/irq/{interrupt}/smp_affinity_list"));
            let Ok(now) = self.machine.read(&knob) else { continue };
            let goes_to = crate::facts::numbers(&now);
            if own.contains(interrupt) {
                self.set(knob, &list(&cpus[..1]), "its frames are handled where they are waited for", managed);
            } else if goes_to.iter().any(|cpu| cpus.contains(cpu)) {
                self.set(knob, &list(others), "it interrupts others", managed);
            }
        }
    }

    fn interface(&mut self, facts: &InterfaceFacts) {
        let name = &facts.name;
        let base = format!("/sys/class/net/{name}");
        let none = "nothing: the driver raises an interrupt for each frame, or polls";
        for parameter in ["adaptive-rx", "adaptive-tx", "rx-usecs", "tx-usecs"] {
            let parameter = Parameter::named(parameter).expect("it stands in the table");
            self.set(Knob::Ethtool(name.clone(), parameter), "0", "a frame is told of at once", none);
        }
        let instead = "nothing: this kernel has it not";
        for file in ["napi_defer_hard_irqs", "gro_flush_timeout"] {
            self.set(Knob::file(format!("{base}/{file}")), "0", "a frame is told of at once", instead);
        }
        for queue in 0..facts.rx_queues {
            let knob = Knob::file(format!("{base}/queues/rx-{queue}/rps_cpus"));
            self.set(knob, "0", "frames are handled where the interrupt came", instead);
        }
        if facts.rx_queues < 2 {
            let instead =
                "AF_XDP for real-time traffic (docs/xdp.md), and a priority qdisc (HTB, or prio) for what leaves";
            self.lack(&format!("a queue of {name} for real-time traffic alone"), "it has one queue", instead);
        }
    }
}

/// Why a knob is not there, for people.
fn absence(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "this kernel, driver or machine has it not".into(),
        Some(libc::EOPNOTSUPP) => "the driver has it not".into(),
        _ => error.to_string(),
    }
}
