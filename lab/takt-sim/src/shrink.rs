//! Reduction of a failing scenario: parts are omitted as long as the same rule is violated.

use std::fmt;
use std::str::FromStr;

use crate::check::Rule;
use crate::clock::{MILLISECOND, Nanos};
use crate::scenario::Scenario;
use crate::swarm;
use crate::timeline::Quiet;

/// Part to omit from a scenario. Indices refer to the complete scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omission {
    /// A process never starts.
    Process(usize),
    /// An endpoint of a process is never created.
    Endpoint(usize, usize),
    /// A fault never happens.
    Fault(usize),
    /// A process is neither killed nor stalled.
    Impairments(usize),
    /// The wall clock of a host is never set.
    Jumps(usize),
    /// The hostile host is absent.
    Hostile,
    /// The active time of the world ends earlier.
    After(Nanos),
}

impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(process) => write!(f, "p{process}"),
            Self::Endpoint(process, at) => write!(f, "e{process}.{at}"),
            Self::Fault(fault) => write!(f, "f{fault}"),
            Self::Impairments(process) => write!(f, "t{process}"),
            Self::Jumps(host) => write!(f, "j{host}"),
            Self::Hostile => write!(f, "h"),
            Self::After(nanos) => write!(f, "a{}", nanos / MILLISECOND),
        }
    }
}

impl FromStr for Omission {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is none of p1, e1.2, f1, t1, j1, h, a1000");
        let (kind, rest) = text.split_at_checked(1).ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        Ok(match kind {
            "p" => Self::Process(number(rest)?),
            "f" => Self::Fault(number(rest)?),
            "t" => Self::Impairments(number(rest)?),
            "j" => Self::Jumps(number(rest)?),
            "h" if rest.is_empty() => Self::Hostile,
            "a" => Self::After(number(rest)? as Nanos * MILLISECOND),
            "e" => {
                let (process, at) = rest.split_once('.').ok_or_else(wrong)?;
                Self::Endpoint(number(process)?, number(at)?)
            }
            _ => return Err(wrong()),
        })
    }
}

/// Returns the scenario without these parts. The remaining parts keep their indices and their
/// random numbers.
#[must_use]
pub fn without(scenario: &Scenario, omissions: &[Omission]) -> Scenario {
    let mut smaller = scenario.clone();
    for omission in omissions {
        match *omission {
            Omission::Process(process) => {
                // Without the discovery server no participant is discovered.
                let is_server = smaller.services.discovery_server == Some(process);
                if let Some(plan) = smaller.processes.get_mut(process).filter(|_| !is_server) {
                    plan.start = Nanos::MAX;
                    plan.ends.clear();
                }
            }
            Omission::Endpoint(process, at) => {
                let plan = smaller.processes.get_mut(process).and_then(|plan| plan.endpoints.get_mut(at));
                if let Some(plan) = plan {
                    plan.create = Nanos::MAX / 2;
                    plan.delete = None;
                }
            }
            Omission::Hostile => smaller.hostile = None,
            Omission::Fault(fault) => {
                if let Some(plan) = smaller.faults.get_mut(fault) {
                    plan.from = Nanos::MAX;
                }
            }
            Omission::Impairments(process) => {
                if let Some(plan) = smaller.processes.get_mut(process) {
                    plan.ends.clear();
                    plan.stalls.clear();
                }
            }
            Omission::Jumps(host) => {
                if let Some(plan) = smaller.hosts.get_mut(host) {
                    plan.wall_jumps.clear();
                }
            }
            Omission::After(active) => smaller.active = smaller.active.min(active),
        }
    }
    smaller
}

/// Returns the parts that can be omitted from a scenario that violates `rule`. Tries at most `runs`
/// runs.
#[must_use]
pub fn shrink(scenario: &Scenario, rule: Rule, runs: u32) -> Vec<Omission> {
    let mut omitted = Vec::new();
    let mut runs = runs;
    let mut still_fails = |omissions: &[Omission]| {
        runs = runs.saturating_sub(1);
        let report = swarm::run(&without(scenario, omissions), &mut Quiet);
        runs > 0 && report.violation.is_some_and(|violation| violation.rule == rule)
    };
    for candidate in candidates(scenario) {
        if is_part_of(candidate, &omitted) {
            continue;
        }
        let mut attempt = omitted.clone();
        attempt.push(candidate);
        if still_fails(&attempt) {
            omitted = attempt;
        }
    }
    let mut active = scenario.active;
    while active > MILLISECOND {
        let mut attempt = omitted.clone();
        attempt.push(Omission::After(active / 2));
        if !still_fails(&attempt) {
            break;
        }
        active /= 2;
        omitted.retain(|omission| !matches!(omission, Omission::After(_)));
        omitted.push(Omission::After(active));
    }
    omitted
}

/// Reports whether earlier omissions already remove this part.
fn is_part_of(candidate: Omission, omitted: &[Omission]) -> bool {
    match candidate {
        Omission::Endpoint(process, _) | Omission::Impairments(process) => {
            omitted.contains(&Omission::Process(process))
        }
        _ => false,
    }
}

/// Returns all parts that may be omitted, the largest first.
fn candidates(scenario: &Scenario) -> Vec<Omission> {
    let processes = || scenario.processes.iter().enumerate();
    let mut all: Vec<_> = processes().map(|(process, _)| Omission::Process(process)).collect();
    all.extend(scenario.hostile.map(|_| Omission::Hostile));
    all.extend((0..scenario.faults.len()).map(Omission::Fault));
    let troubled = processes().filter(|(_, plan)| !plan.ends.is_empty() || !plan.stalls.is_empty());
    all.extend(troubled.map(|(process, _)| Omission::Impairments(process)));
    let jumping = scenario.hosts.iter().enumerate().filter(|(_, plan)| !plan.wall_jumps.is_empty());
    all.extend(jumping.map(|(host, _)| Omission::Jumps(host)));
    all.extend(
        processes()
            .flat_map(|(process, plan)| (0..plan.endpoints.len()).map(move |at| Omission::Endpoint(process, at))),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omissions_round_trip_through_text() {
        let all = [
            Omission::Process(3),
            Omission::Endpoint(1, 22),
            Omission::Fault(0),
            Omission::Hostile,
            Omission::Impairments(7),
            Omission::Jumps(2),
            Omission::After(250 * MILLISECOND),
        ];
        for omission in all {
            assert_eq!(omission.to_string().parse(), Ok(omission));
        }
        for wrong in ["", "x1", "e1", "p", "pé", "f-1"] {
            assert!(wrong.parse::<Omission>().is_err(), "{wrong}");
        }
    }
}
