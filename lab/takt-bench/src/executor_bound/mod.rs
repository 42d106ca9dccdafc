//! Experiment that compares response times of an executor with the bound that the analysis computed
//! beforehand.
//!
//! One process uses the loopback interface, in a network namespace of its own if the process may
//! create one. An executor drives a participant with a critical reader, a reader of background
//! samples, and a reader with a long callback, while other participants join and leave. The
//! experiment has three phases, each with participants and executors of its own:
//!
//! | phase | load | result |
//! |---|---|---|
//! | alone | the critical topic | maximum delay of kernel and wake-up |
//! | calibration | all | maximum duration of each class of jobs |
//! | measurement | all | response times, from before `write` to the listener |
//!
//! From the first two phases, [`model`] builds a system for `takt-calculus`. Its bound is certified
//! and checked before the third phase begins.

pub mod cores;
mod environment;
mod model;
pub mod outcome;
mod phase;
mod secured;
mod writers;

use crate::error::{Error, Result};
use crate::isolation::load::LoadPlan;
use environment::Environment;
use outcome::Outcome;
use phase::PhasePlan;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use takt_calculus::{analyze, verify};

/// DDS domain ID of the first phase. Each phase has its own, so that late datagrams of one do not
/// reach the next.
const DOMAIN_FIRST: u32 = 70;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Length of each of the two phases before the measurement.
    pub calibration: Duration,
    /// Length of the measurement.
    pub measurement: Duration,
    /// Load of calibration and measurement. The duration of its callback counts as declared.
    pub load: LoadPlan,
    /// Minimum interval between two critical samples, ns.
    pub period_ns: u64,
    /// Factor by which all measured maximum times are multiplied.
    pub margin: f64,
    /// Whether messages are encrypted. Of three participants that join, one is admitted, one fails
    /// authentication, and one is refused by its permissions.
    pub secured: bool,
    /// Whether a separate executor calls the long callback.
    #[serde(rename = "aside")]
    pub separate_executor: bool,
    /// Cores of the writers and of the executor.
    pub cpus: [usize; 2],
    /// File for the executor's last jobs. If set, the measurement ends with the first sample above
    /// the bound.
    pub trace: Option<PathBuf>,
}

/// Runs the experiment. `progress` is called before every phase.
///
/// # Errors
/// The machine cannot run the experiment, the measured times have no bound, or a signal requested a
/// stop. Samples above the bound are not an error: [`Outcome::verdict`] reports them.
pub fn run(plan: &Plan, command: String, progress: &mut dyn FnMut(&str)) -> Result<Outcome> {
    if !(plan.margin.is_finite() && plan.margin >= 1.0) {
        return Err(Error::Usage(format!("margin {}: expected at least 1", plan.margin)));
    }
    let environment = Environment::enter();
    for missing in environment.missing() {
        progress(&missing);
    }
    let keys = plan.secured.then(secured::Keys::new).transpose()?.map(Arc::new);
    let load_before = crate::isolation::outcome::load_average();
    let of = |phase: u32, load: &LoadPlan, length: Duration, bound_ns: Option<u64>| PhasePlan {
        domain: DOMAIN_FIRST + phase,
        load: load.clone(),
        length,
        period_ns: plan.period_ns,
        separate_executor: plan.separate_executor,
        keys: keys.clone(),
        cpus: plan.cpus,
        is_real_time: environment.is_real_time(),
        bound_ns,
        trace: plan.trace.clone().filter(|_| bound_ns.is_some()),
    };
    progress(&format!("alone: the critical topic, {:?}", plan.calibration));
    let alone = phase::run(&of(0, &LoadPlan::default(), plan.calibration, None))?;
    progress(&format!("calibration: all load, {:?}", plan.calibration));
    let calibration = phase::run(&of(1, &plan.load, plan.calibration, None))?;

    let model = model::of(plan, &alone, &calibration)?;
    let toml = model::to_toml(&model.system);
    let refused = |why: &dyn std::fmt::Display| Error::NotKept { what: format!("no bound: {why}\n{toml}") };
    let certificate = analyze(&model.system).map_err(|why| refused(&why))?;
    verify(&certificate).map_err(|why| refused(&why))?;
    let bound_ns = certificate.flows[model::CRITICAL].bound_ns.ok_or_else(|| refused(&"the critical flow has none"))?;

    let microseconds = bound_ns as f64 * 1e-3;
    progress(&format!("measurement: all load, {:?}; the bound is {microseconds:.3} us", plan.measurement));
    let measurement = phase::run(&of(2, &plan.load, plan.measurement, Some(bound_ns)))?;
    Ok(Outcome {
        command,
        host: crate::report::Host::this(),
        load_average: [load_before, crate::isolation::outcome::load_average()],
        missing: environment.missing(),
        plan: plan.clone(),
        bound_ns,
        declared: model.declared,
        certificate,
        alone,
        calibration,
        measurement,
    })
}
