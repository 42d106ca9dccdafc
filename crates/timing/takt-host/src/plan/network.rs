//! Planned settings of sockets and of the interface for real-time traffic.

use super::{Planner, Request};
use crate::ethtool::Parameter;
use crate::facts::{Facts, InterfaceFacts};
use crate::setting::Setting;

/// Buffer for a burst at a socket, in octets: a sample of some megabytes.
const SOCKET_BUFFER: u64 = 8 << 20;

/// Settings while sockets poll: the number of consecutive deferred interrupts, and the time of each
/// deferral in nanoseconds.
const DEFERRED: (&str, &str) = ("2", "200000");

const UNAVAILABLE: &str = "nothing: not supported by this kernel";

impl Planner<'_> {
    pub(super) fn sockets(&mut self, busy_poll_us: Option<u32>) {
        let machines = "set it in the initial network namespace, since it is global";
        for name in ["rmem_max", "wmem_max"] {
            let setting = Setting::file(format!("/proc/sys/net/core/{name}"));
            let now = self.machine.read(&setting).ok().and_then(|now| now.parse::<u64>().ok()); // tidy-allow(dropped-cause): `set` says why.
            if now.is_none_or(|now| now < SOCKET_BUFFER) {
                self.set(setting, &SOCKET_BUFFER.to_string(), "the buffers hold bursts", machines);
            }
        }
        if let Some(time) = busy_poll_us {
            for (name, what) in [("busy_read", "a receiving socket"), ("busy_poll", "poll and epoll")] {
                let setting = Setting::file(format!("/proc/sys/net/core/{name}"));
                self.set(setting, &time.to_string(), &format!("{what} polls the driver before it sleeps"), machines);
            }
        }
    }

    pub(super) fn interface(&mut self, facts: &InterfaceFacts, machine: &Facts, request: &Request, others: &[usize]) {
        let name = &facts.name;
        let base = format!("/sys/class/net/{name}");
        let none = "nothing: the driver raises an interrupt per frame, or polls";
        for parameter in ["adaptive-rx", "adaptive-tx", "rx-usecs", "tx-usecs"] {
            let parameter = Parameter::named(parameter).expect("a known parameter");
            self.set(Setting::Ethtool(name.clone(), parameter), "0", "each frame raises an interrupt at once", none);
        }
        let (deferred, why) = match request.busy_poll_us {
            Some(_) => (DEFERRED, "interrupts are deferred while sockets poll"),
            None => (("0", "0"), "each frame raises an interrupt at once"),
        };
        for (file, to) in [("napi_defer_hard_irqs", deferred.0), ("gro_flush_timeout", deferred.1)] {
            self.set(Setting::file(format!("{base}/{file}")), to, why, UNAVAILABLE);
        }
        if !machine.is_preempt_rt {
            // With PREEMPT_RT, a thread with a real-time priority may be preferable.
            let why = "the softirq processes frames, without the wakeup of a thread";
            self.set(Setting::file(format!("{base}/threaded")), "0", why, UNAVAILABLE);
        }
        for queue in 0..facts.rx_queues {
            let setting = Setting::file(format!("{base}/queues/rx-{queue}/rps_cpus"));
            self.set(setting, "0", "the processor that receives the interrupt processes the frames", UNAVAILABLE);
        }
        if facts.rx_queues < 2 {
            let alternative = "AF_XDP (docs/guide/xdp.md); for egress, marked frames first: --dscp 46 --line-rate RATE";
            self.add_missing_feature(
                &format!("a queue of {name} only for real-time traffic"),
                "the interface has one queue",
                alternative,
            );
        }
        self.traffic(facts, request, others);
        for groups in &request.groups {
            let setting = Setting::Route(name.clone(), *groups);
            if self.machine.read(&setting).is_ok_and(|route| route == "elsewhere") {
                let alternative = "remove that route, or configure the interface in each program";
                self.add_missing_feature(
                    &format!("{setting} as \"here\""),
                    "the route uses another interface",
                    alternative,
                );
            } else {
                self.set(setting, "here", "programs without a configured interface send through this one", UNAVAILABLE);
            }
        }
    }
}
