//! Output of a timing analysis, as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use takt_calculus::{Certificate, MeasuredTime, System, advice};
use takt_config::system::percent;

/// Changes of the system under which all limits are still kept.
pub struct WhatIf {
    /// Factor, in thousandths, by which all times may grow. `None` if the limits are not kept at
    /// present.
    headroom_permille: Option<u64>,
    /// Shortest period of each flow.
    shortest_period_ns: Vec<Option<u64>>,
}

impl WhatIf {
    pub fn of(system: &System) -> Self {
        let shortest = |at| advice::shortest_period_ns(system, at);
        Self {
            headroom_permille: advice::headroom_permille(system),
            shortest_period_ns: (0..system.flows.len()).map(shortest).collect(),
        }
    }
}

pub fn table(certificate: &Certificate, what_if: Option<&WhatIf>) -> String {
    let system = &certificate.system;
    let mut text = format!("{:<24} {:>12} {:>12} {:>12}  longest stage\n", "flow", "bound", "limit", "slack");
    for (at, (flow, claim)) in system.flows.iter().zip(&certificate.flows).enumerate() {
        let bound = claim.bound_ns.map_or("none".to_owned(), microseconds);
        let limit = flow.limit_ns.map_or("-".to_owned(), microseconds);
        let slack = claim.bound_ns.zip(flow.limit_ns).map_or("-".to_owned(), |(bound, limit)| {
            let sign = if bound > limit { "-" } else { "" };
            format!("{sign}{}", microseconds(bound.abs_diff(limit)))
        });
        let binding = advice::binding_stage(certificate, at).map_or(String::new(), |(stage, time_ns)| {
            format!("{} ({})", system.resources[flow.stages[stage].resource].name, microseconds(time_ns))
        });
        let line = format!("{:<24} {bound:>12} {limit:>12} {slack:>12}  {binding}", flow.name);
        writeln!(text, "{}", line.trim_end()).expect("writing to a String cannot fail");
    }
    for (at, resource) in system.resources.iter().enumerate() {
        let used = advice::utilization_ppm(system, at).map_or("up to 100 % (unbounded arrivals)".to_owned(), percent);
        writeln!(text, "{:<24} used {used}", resource.name).expect("writing to a String cannot fail");
    }
    for time in &certificate.measured {
        writeln!(text, "{}", measured(system, time)).expect("writing to a String cannot fail");
    }
    let Some(what_if) = what_if else { return text };
    match what_if.headroom_permille {
        Some(permille) => {
            let factor = format!("{}.{:03}", permille / 1000, permille % 1000);
            writeln!(text, "all limits are kept if all times grow by a factor of {factor}")
                .expect("writing to a String cannot fail");
        }
        None => text.push_str("limits are not kept\n"),
    }
    for (flow, shortest) in system.flows.iter().zip(&what_if.shortest_period_ns) {
        if let Some(shortest) = shortest {
            writeln!(text, "{:<24} shortest period {}", flow.name, microseconds(*shortest))
                .expect("writing to a String cannot fail");
        }
    }
    text
}

/// Returns a line that says on which measurements a time is based.
fn measured(system: &System, time: &MeasuredTime) -> String {
    let flow = &system.flows[time.flow];
    let on = &system.resources[flow.stages[time.stage].resource].name;
    let jobs = time.jobs.iter().map(|job| format!("{} {} of {}", job.name, microseconds(job.max_ns), job.count));
    let (jobs, sum) = (jobs.collect::<Vec<_>>().join(" + "), microseconds(time.time_ns()));
    let margin = format!("{}.{:03}", time.margin_permille / 1000, time.margin_permille % 1000);
    format!("{:<24} measured on {on}: ({jobs}) times {margin} = {sum}; {}", flow.name, time.from.join("; "))
}

pub fn json(certificate: &Certificate, what_if: Option<&WhatIf>) -> Value {
    let system = &certificate.system;
    let flow = |at: usize| {
        let (flow, claim) = (&system.flows[at], &certificate.flows[at]);
        let stages = flow.stages.iter().zip(&claim.stages).map(|(stage, claim)| {
            json!({"on": system.resources[stage.resource].name, "response_ns": claim.response_ns, "delay_ns": stage.delay_ns})
        });
        json!({
            "name": flow.name,
            "bound_ns": claim.bound_ns,
            "limit_ns": flow.limit_ns,
            "is_kept": flow.limit_ns.map(|limit| claim.bound_ns.is_some_and(|bound| bound <= limit)),
            "stages": stages.collect::<Vec<_>>(),
            "shortest_period_ns": what_if.and_then(|what_if| what_if.shortest_period_ns[at]),
        })
    };
    let resource =
        |at: usize| json!({"name": system.resources[at].name, "used_ppm": advice::utilization_ppm(system, at)});
    json!({
        "flows": (0..system.flows.len()).map(flow).collect::<Vec<_>>(),
        "resources": (0..system.resources.len()).map(resource).collect::<Vec<_>>(),
        "measured": certificate.measured,
        "headroom_permille": what_if.and_then(|what_if| what_if.headroom_permille),
    })
}

fn microseconds(time_ns: u64) -> String {
    format!("{}.{:03} us", time_ns / 1000, time_ns % 1000)
}
