//! System model for the analysis, from measured times with a margin and from declared times.
//!
//! A critical sample passes two stages. In the thread that writes it, `write`, kernel and wake-up
//! are a delay. In the executor, its datagram is received and its callback called. All other
//! classes of jobs that the calibration saw arrive arbitrarily often, so each class delays by one
//! piece at most. Priorities are those of the executor.

use super::Plan;
use super::phase::{CRITICAL_PRIORITY, Observed, SLOW_PRIORITY};
use crate::error::{Error, Result};
use serde::Serialize;
use std::fmt::Write as _;
use takt::real_time::Priority;
use takt_calculus::system::Server;
use takt_calculus::{Arrivals, Flow, Resource, Stage, System};

/// Index of the critical flow.
pub const CRITICAL: usize = 0;
const WRITER: usize = 0;
const EXECUTOR: usize = 1;
const SEPARATE_EXECUTOR: usize = 2;
const RECEIVE: &str = "receive";
const CALLBACK: &str = "callback";
/// Prefix of the lock entries in the job statistics.
pub const LOCK: &str = "lock-";
/// Kind and priority of the long callback.
pub const SLOW_CALLBACK: (&str, i32) = (CALLBACK, SLOW_PRIORITY);

/// Declared maximum duration of a class of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Class {
    pub kind: &'static str,
    pub priority: i32,
    pub time_ns: u64,
}

/// Assumptions of the bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Declared {
    /// Maximum duration of one `write` call for a critical sample.
    pub write_ns: u64,
    /// Maximum delay of kernel and wake-up.
    pub delay_ns: u64,
    pub classes: Vec<Class>,
    /// Maximum wait of a job for the lock of the participant.
    pub lock_ns: u64,
}

impl Declared {
    /// Returns the longest job that receives, sends or runs timers at normal priority.
    fn normal_ns(&self) -> u64 {
        let is_served = |class: &&Class| class.priority == Priority::NORMAL.get() && class.kind != CALLBACK;
        self.classes.iter().filter(is_served).map(|class| class.time_ns).max().unwrap_or(0)
    }
}

/// System, and the times it is made from.
pub struct Model {
    pub system: System,
    pub declared: Declared,
}

/// Builds the system from the measured phases.
///
/// # Errors
/// A class has at least the priority of the critical one.
pub fn of(plan: &Plan, alone: &Observed, calibration: &Observed) -> Result<Model> {
    let with_margin = |time_ns: u64| (time_ns as f64 * plan.margin).ceil() as u64;
    let longest = |kind| alone.longest_ns(kind, CRITICAL_PRIORITY).max(calibration.longest_ns(kind, CRITICAL_PRIORITY));
    let own = |observed: &Observed| {
        let jobs = [RECEIVE, CALLBACK].map(|kind| observed.longest_ns(kind, CRITICAL_PRIORITY));
        jobs.iter().sum::<u64>() + observed.write_max_ns
    };
    let delay_ns = with_margin(alone.response_max_ns.saturating_sub(own(alone)));
    let write_ns = with_margin(alone.write_max_ns.max(calibration.write_max_ns));
    let callback_ns = plan.load.callback_us * 1000;
    let time_of = |kind: &'static str, priority: i32, max_ns: u64| match (kind, priority) {
        (RECEIVE | CALLBACK, CRITICAL_PRIORITY) => with_margin(longest(kind)),
        // Declared times need no margin.
        (CALLBACK, SLOW_PRIORITY) => callback_ns + with_margin(max_ns.saturating_sub(callback_ns)),
        _ => with_margin(max_ns),
    };
    let class = |class: &super::phase::Class| Class {
        kind: class.kind,
        priority: class.priority,
        time_ns: time_of(class.kind, class.priority, class.max_ns),
    };
    let (locks, jobs): (Vec<_>, Vec<_>) = calibration.classes.iter().partition(|class| class.kind.starts_with(LOCK));
    let lock_ns = locks.iter().map(|class| with_margin(class.max_ns) * 2).max().unwrap_or(0);
    let mut classes: Vec<Class> = jobs.into_iter().map(class).collect();
    let is_slow = |class: &Class| (class.kind, class.priority) == SLOW_CALLBACK;
    if callback_ns > 0 && !classes.iter().any(is_slow) {
        classes.push(Class { kind: CALLBACK, priority: SLOW_PRIORITY, time_ns: callback_ns });
    }
    let declared = Declared { write_ns, delay_ns, classes, lock_ns };
    Ok(Model { system: system(plan, &declared)?, declared })
}

/// Builds the system. The two jobs of a critical sample, receive and callback, are two pieces, each
/// as long as the longer of both. Between them, the server of normal work may run.
fn system(plan: &Plan, declared: &Declared) -> Result<System> {
    let stage = |resource, priority: i32, piece_ns, delay_ns| Stage {
        resource,
        priority,
        piece_ns,
        piece_ns_min: 0,
        pieces: 1,
        delay_ns,
        delay_ns_min: 0,
    };
    let is_critical = |class: &&Class| class.priority == CRITICAL_PRIORITY && [RECEIVE, CALLBACK].contains(&class.kind);
    let piece_ns = declared.classes.iter().filter(is_critical).map(|class| class.time_ns).max().unwrap_or(0);
    // A period passes between the end of a `write` call and the next call, so a call never waits
    // for its predecessor: to the system it is a delay.
    let stages = vec![
        stage(WRITER, CRITICAL_PRIORITY, 0, declared.write_ns + declared.delay_ns),
        Stage { pieces: 2, ..stage(EXECUTOR, CRITICAL_PRIORITY, piece_ns, 0) },
    ];
    let arrivals = Some(Arrivals::sporadic(plan.period_ns));
    let mut flows = vec![Flow { name: "critical".into(), arrivals, stages, limit_ns: None }];
    for class in declared.classes.iter().filter(|class| !is_critical(class)) {
        let Class { kind, priority, time_ns } = *class;
        if priority >= CRITICAL_PRIORITY {
            return Err(Error::NotKept { what: format!("no bound: {kind} jobs have the priority {priority}") });
        }
        let is_separate = plan.separate_executor && (kind, priority) == SLOW_CALLBACK;
        let on = if is_separate { SEPARATE_EXECUTOR } else { EXECUTOR };
        let stages = vec![stage(on, priority, time_ns, 0)];
        flows.push(Flow { name: format!("{kind} {priority}"), arrivals: None, stages, limit_ns: None });
    }
    let names = ["writer", "executor", "aside"].into_iter().take(if plan.separate_executor { 3 } else { 2 });
    let mut resources: Vec<_> = names.map(Resource::new).collect();
    let (period_ns, piece_ns) = (Priority::NORMAL_SERVER_PERIOD.as_nanos() as u64, declared.normal_ns());
    let server = Server { priority: Priority::NORMAL.get(), period_ns, piece_ns };
    resources[EXECUTOR] = Resource { lock_ns: declared.lock_ns, server: Some(server), ..Resource::new("executor") };
    Ok(System { resources, flows })
}

/// Formats a system of executors as `takt analyze` reads it.
#[must_use]
pub fn to_toml(system: &System) -> String {
    let mut text = String::new();
    for resource in &system.resources {
        writeln!(text, "[[executor]]\nname = \"{}\"", resource.name).expect("writing to a String cannot fail");
        let normal_ns = resource.server.map_or(0, |server| server.piece_ns);
        write!(text, "lock = \"{} ns\"\nnormal = \"{normal_ns} ns\"\n\n", resource.lock_ns)
            .expect("writing to a String cannot fail");
    }
    for flow in &system.flows {
        write!(text, "[[flow]]\nname = \"{}\"\n", flow.name).expect("writing to a String cannot fail");
        if let Some(arrivals) = flow.arrivals {
            writeln!(text, "min_separation = \"{} ns\"", arrivals.period_ns).expect("writing to a String cannot fail");
        }
        text.push_str("stages = [\n");
        for Stage { resource, priority, piece_ns, pieces, delay_ns, .. } in &flow.stages {
            let on = &system.resources[*resource].name;
            let times = format!("time = \"{piece_ns} ns\", pieces = {pieces}, delay = \"{delay_ns} ns\"");
            writeln!(text, "    {{ on = \"{on}\", priority = {priority}, {times} }},").expect("infallible");
        }
        text.push_str("]\n\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::load::LoadPlan;
    use std::time::Duration;

    fn plan(separate_executor: bool) -> Plan {
        let load = LoadPlan { callback_us: 5_000, ..LoadPlan::default() };
        let (calibration, measurement) = (Duration::ZERO, Duration::ZERO);
        let (period_ns, margin, cpus, trace) = (1_000_000, 1.5, [0, 1], None);
        Plan { calibration, measurement, load, period_ns, margin, secured: false, separate_executor, cpus, trace }
    }

    fn declared(further: &[(&'static str, i32, u64)]) -> Declared {
        let usual = [(RECEIVE, 46, 20_000), (CALLBACK, 46, 10_000), (RECEIVE, 0, 900_000), (CALLBACK, -10, 5_000_000)];
        let class = |&(kind, priority, time_ns): &(&'static str, i32, u64)| Class { kind, priority, time_ns };
        let classes = usual.iter().chain(further).map(class).collect();
        Declared { write_ns: 40_000, delay_ns: 60_000, classes, lock_ns: 0 }
    }

    fn bound_ns(plan: &Plan, declared: &Declared) -> u64 {
        let certificate = takt_calculus::analyze(&system(plan, declared).unwrap()).unwrap();
        takt_calculus::verify(&certificate).unwrap();
        certificate.flows[CRITICAL].bound_ns.unwrap()
    }

    #[test]
    fn bound_includes_one_lower_priority_job_and_no_callback_of_another_executor() {
        let (served, own) = (900_000, 2 * 20_000);
        // Normal work has a higher priority than the long callback: what is due before it begins
        // runs first. The server waits for its period before it runs work that arrives meanwhile.
        assert_eq!(bound_ns(&plan(false), &declared(&[])), 100_000 + 5_000_000 + own);
        assert_eq!(bound_ns(&plan(true), &declared(&[])), 100_000 + 900_000 + own);
        let longer = declared(&[("callback", -20, 10_500_000)]);
        assert_eq!(bound_ns(&plan(false), &longer), 100_000 + 10_500_000 + served + own, "a turn of the server");
        let locked = Declared { lock_ns: 1_000, ..declared(&[]) };
        assert_eq!(bound_ns(&plan(false), &locked), 100_000 + 5_000_000 + own + 3 * 1_000, "each job waits");
    }

    #[test]
    fn jobs_of_critical_priority_have_no_bound() {
        let refused = system(&plan(false), &declared(&[("transmit", 46, 1)])).unwrap_err();
        assert_eq!(refused.to_string(), "no bound: transmit jobs have the priority 46");
    }
}
