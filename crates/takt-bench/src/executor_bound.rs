//! Whether an executor keeps the bound that the analysis computed for it beforehand.
//!
//! One process on the loopback interface, in a network namespace of its own where it may: an executor drives a participant with a critical
//! reader, one of background samples, and one whose callback takes long, while participants come and go. Three phases, each with
//! participants and executors of its own:
//!
//! | phase | load | gives |
//! |---|---|---|
//! | alone | the critical topic | what kernel and wake-up take at most |
//! | calibration | all of it | how long each class of jobs takes at most |
//! | measurement | all of it | response times, from before `write` to the listener |
//!
//! Of the first two [`model`] makes a system for `takt-calculus`, whose bound is certified and checked before the third begins.

pub mod cores;
mod model;
pub mod outcome;
mod phase;
mod secured;
mod surroundings;
mod writers;

use crate::error::{Error, Result};
use crate::isolation::load::LoadPlan;
use outcome::Outcome;
use phase::PhasePlan;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use surroundings::Surroundings;
use takt_calculus::{analyse, verify};

/// DDS domain of the first phase; each has its own, so that nothing late of one reaches the next.
const DOMAIN_FIRST: u32 = 70;

/// The experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Each of the two phases before the measurement.
    pub calibration: Duration,
    /// The measurement.
    pub measurement: Duration,
    /// Load of calibration and measurement; what the callback takes is what is declared of it.
    pub load: LoadPlan,
    /// From one critical sample to the next, at least, ns.
    pub period_ns: u64,
    /// What all longest times that were measured are multiplied with.
    pub margin: f64,
    /// Messages are encrypted, and of three participants that come one may take part, one cannot authenticate, and one may not.
    pub secured: bool,
    /// The long callback is called by an executor of its own.
    pub aside: bool,
    /// Cores of the writers and of the executor.
    pub cpus: [usize; 2],
    /// The measurement ends with the first sample above the bound, and the executor's last jobs are written here.
    pub trace: Option<PathBuf>,
}

/// Makes the experiment; `progress` hears of every phase before it begins.
///
/// # Errors
/// The machine cannot do it, the times that were measured have no bound, or a signal asked to stop. Samples above the bound are none:
/// [`Outcome::verdict`] tells of them.
pub fn run(plan: &Plan, command: String, progress: &mut dyn FnMut(&str)) -> Result<Outcome> {
    if !(plan.margin.is_finite() && plan.margin >= 1.0) {
        return Err(Error::Usage(format!("a margin of {}: it is 1 at least", plan.margin)));
    }
    let surroundings = Surroundings::enter();
    for missing in surroundings.missing() {
        progress(&missing);
    }
    let keys = plan.secured.then(secured::Keys::new).transpose()?.map(Arc::new);
    let load_before = crate::isolation::outcome::load_average();
    let of = |phase: u32, load: &LoadPlan, length: Duration, bound_ns: Option<u64>| PhasePlan {
        domain: DOMAIN_FIRST + phase,
        load: load.clone(),
        length,
        period_ns: plan.period_ns,
        aside: plan.aside,
        keys: keys.clone(),
        cpus: plan.cpus,
        is_real_time: surroundings.is_real_time(),
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
    let certificate = analyse(&model.system).map_err(|why| refused(&why))?;
    verify(&certificate).map_err(|why| refused(&why))?;
    let bound_ns = certificate.flows[model::CRITICAL].bound_ns.ok_or_else(|| refused(&"the critical flow has none"))?;

    let microseconds = bound_ns as f64 * 1e-3;
    progress(&format!("measurement: all load, {:?}; the bound is {microseconds:.3} us", plan.measurement));
    let measurement = phase::run(&of(2, &plan.load, plan.measurement, Some(bound_ns)))?;
    Ok(Outcome {
        command,
        host: crate::report::Host::this(),
        load_average: [load_before, crate::isolation::outcome::load_average()],
        missing: surroundings.missing(),
        plan: plan.clone(),
        bound_ns,
        declared: model.declared,
        certificate,
        alone,
        calibration,
        measurement,
    })
}
