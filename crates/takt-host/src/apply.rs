//! All changes of a plan or none; and back.

use std::fmt;
use std::io;

use crate::journal::{Former, Journal};
use crate::knob::Knob;
use crate::machine::Machine;
use crate::namespace;
use crate::plan::Plan;

/// A knob that is not as it should be.
#[derive(Debug)]
pub struct Failure {
    /// Which one.
    pub knob: Knob,
    /// What it should be.
    pub wanted: String,
    /// Why it is not.
    pub why: io::Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be {:?}: {}", self.knob, self.wanted, self.why)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// Why a plan was not applied.
#[derive(Debug)]
pub enum NotApplied {
    /// The journal cannot be kept, so nothing was changed any further.
    Journal(io::Error),
    /// A change failed. What this call had changed before is as it was, but for what is listed.
    Change(Failure, Vec<Failure>),
}

impl fmt::Display for NotApplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(why) => write!(f, "the journal cannot be written: {why}"),
            Self::Change(failure, left) => {
                write!(f, "{failure}; what was changed before is as it was")?;
                left.iter().try_for_each(|failure| write!(f, "\nbut {failure}"))
            }
        }
    }
}

impl std::error::Error for NotApplied {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Journal(why) => Some(why),
            Self::Change(failure, _) => Some(failure),
        }
    }
}

/// Makes all changes of a plan, in order, what was there first going into the journal. If one fails, those before it are taken back.
/// Knobs that have their value already are left alone.
///
/// # Errors
/// What was not possible, and what could not be taken back either.
pub fn apply(machine: &Machine, plan: &Plan, journal: &mut Journal) -> Result<(), NotApplied> {
    apply_watched(machine, plan, journal, &mut || {})
}

/// As [`apply`], and calls back after every step: a knob noted, a knob set. For tests that end it there.
///
/// # Errors
/// As of [`apply`].
pub fn apply_watched(
    machine: &Machine,
    plan: &Plan,
    journal: &mut Journal,
    after_step: &mut dyn FnMut(),
) -> Result<(), NotApplied> {
    let mut done: Vec<Former> = Vec::new();
    for change in &plan.changes {
        let fail = |why| Failure { knob: change.knob.clone(), wanted: change.to.clone(), why };
        let now = match machine.read(&change.knob) {
            Ok(now) if now == change.to => continue,
            Ok(now) => now,
            Err(why) => return Err(NotApplied::Change(fail(why), take_back(machine, &done))),
        };
        let mut touched = machine.reset_by(&change.knob, [&now, &change.to]);
        touched.push((change.knob.clone(), now));
        for (knob, value) in touched {
            if let Err(why) = journal.note(&knob, &value) {
                take_back(machine, &done);
                return Err(NotApplied::Journal(why));
            }
            done.push(Former::new(&knob, &value));
        }
        after_step();
        if let Err(why) = machine.write(&change.knob, &change.to) {
            return Err(NotApplied::Change(fail(why), take_back(machine, &done)));
        }
        after_step();
    }
    Ok(())
}

/// Restores values, the last one first. Returns what could not be.
fn take_back(machine: &Machine, formers: &[Former]) -> Vec<Failure> {
    restore_all(machine, formers, &mut || {}).into_iter().map(|(_, failure)| failure).collect()
}

/// Restores values, the last one first, and looks at all a second time: to restore one may reset another that was restored before, as a
/// tree of queueing disciplines does with the queues of processors. Returns what could not be.
fn restore_all(machine: &Machine, formers: &[Former], after_step: &mut dyn FnMut()) -> Vec<(Former, Failure)> {
    let mut failures = Vec::new();
    for _ in 0..2 {
        failures.clear();
        for former in formers.iter().rev() {
            if let Err(failure) = restore(machine, former) {
                failures.insert(0, (former.clone(), failure));
            }
            after_step();
        }
    }
    failures
}

fn restore(machine: &Machine, former: &Former) -> Result<(), Failure> {
    let fail = |why| Failure { knob: former.knob.clone(), wanted: former.value.clone(), why };
    match former.namespace {
        Some(noted) if former.namespace != namespace::own() => {
            // It is gone, and all of its settings with it.
            if !namespace::is_there(noted) {
                return Ok(());
            }
            return Err(fail(io::Error::other(format!(
                "it is of another network namespace, net:[{noted}]: revert there"
            ))));
        }
        _ => {}
    }
    match machine.read(&former.knob) {
        Ok(now) if now == former.value => Ok(()),
        // Its interface is gone, and all of its settings with it.
        Err(why) if matches!(takt_netlink::code(&why), Some(libc::ENOENT | libc::ENODEV)) => Ok(()),
        // What is there now may be such as cannot be read, as a tree with filters: that is not what is to be there.
        Ok(_) | Err(_) => machine.write(&former.knob, &former.value).map_err(fail),
    }
}

/// Restores everything that the journal says, the last change first, and ends it. What fails stays in the journal.
///
/// # Errors
/// The journal cannot be ended.
pub fn revert(machine: &Machine, journal: Journal) -> io::Result<Vec<Failure>> {
    revert_watched(machine, journal, &mut || {})
}

/// As [`revert`], and calls back after every knob. For tests that end it there.
///
/// # Errors
/// As of [`revert`].
pub fn revert_watched(machine: &Machine, journal: Journal, after_step: &mut dyn FnMut()) -> io::Result<Vec<Failure>> {
    let failures = restore_all(machine, journal.formers(), after_step);
    let (left, failures) = failures.into_iter().unzip();
    journal.keep(left)?;
    Ok(failures)
}

/// What of a plan is not so on the machine.
pub fn verify(machine: &Machine, plan: &Plan) -> Vec<Failure> {
    let differs = |change: &crate::Change| {
        let why = match machine.read(&change.knob) {
            Ok(now) if now == change.to => return None,
            Ok(now) => io::Error::other(format!("it is {now:?}")),
            Err(why) => why,
        };
        Some(Failure { knob: change.knob.clone(), wanted: change.to.clone(), why })
    };
    plan.changes.iter().filter_map(differs).collect()
}
