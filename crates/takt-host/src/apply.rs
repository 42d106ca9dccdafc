//! All changes of a plan or none; and back.

use std::fmt;
use std::io;

use crate::journal::{Former, Journal};
use crate::knob::Knob;
use crate::machine::Machine;
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
    let mut done: Vec<Former> = Vec::new();
    for change in &plan.changes {
        let fail = |why| Failure { knob: change.knob.clone(), wanted: change.to.clone(), why };
        let now = match machine.read(&change.knob) {
            Ok(now) if now == change.to => continue,
            Ok(now) => now,
            Err(why) => return Err(NotApplied::Change(fail(why), take_back(machine, done))),
        };
        if let Err(why) = journal.note(&change.knob, &now) {
            take_back(machine, done);
            return Err(NotApplied::Journal(why));
        }
        done.push(Former { knob: change.knob.clone(), value: now });
        if let Err(why) = machine.write(&change.knob, &change.to) {
            return Err(NotApplied::Change(fail(why), take_back(machine, done)));
        }
    }
    Ok(())
}

/// Restores values, the last one first. Returns what could not be.
fn take_back(machine: &Machine, formers: Vec<Former>) -> Vec<Failure> {
    let restore = |former: Former| restore(machine, &former).err();
    formers.into_iter().rev().filter_map(restore).collect()
}

fn restore(machine: &Machine, former: &Former) -> Result<(), Failure> {
    let fail = |why| Failure { knob: former.knob.clone(), wanted: former.value.clone(), why };
    match machine.read(&former.knob) {
        Ok(now) if now == former.value => Ok(()),
        Ok(_) => machine.write(&former.knob, &former.value).map_err(fail),
        // Its interface is gone, and all of its settings with it.
        Err(why) if matches!(why.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => Ok(()),
        Err(why) => Err(fail(why)),
    }
}

/// Restores everything that the journal says, the last change first, and ends it. What fails stays in the journal.
///
/// # Errors
/// The journal cannot be ended.
pub fn revert(machine: &Machine, journal: Journal) -> io::Result<Vec<Failure>> {
    let mut left = Vec::new();
    let mut failures = Vec::new();
    for former in journal.formers().iter().rev() {
        if let Err(failure) = restore(machine, former) {
            left.insert(0, former.clone());
            failures.push(failure);
        }
    }
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
