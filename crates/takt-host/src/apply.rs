//! All changes of a plan or none; and back.

use std::fmt;
use std::io;

use crate::journal::{Former, Journal};
use crate::knob::Knob;
use crate::machine::Machine;
use crate::namespace;
use crate::plan::{Change, Plan};

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
    /// The journal cannot be written, so nothing was changed any further. What this call had changed before is as it was, but
    /// for what is listed.
    Journal(io::Error, Vec<Failure>),
    /// A change failed. What this call had changed before is as it was, but for what is listed.
    Change(Failure, Vec<Failure>),
}

impl fmt::Display for NotApplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(why, _) => write!(f, "the journal cannot be written: {why}")?,
            Self::Change(failure, _) => write!(f, "{failure}")?,
        }
        let (Self::Journal(_, left) | Self::Change(_, left)) = self;
        f.write_str("; what was changed before is as it was")?;
        left.iter().try_for_each(|failure| write!(f, "\nbut {failure}"))
    }
}

impl std::error::Error for NotApplied {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Journal(why, _) => Some(why),
            Self::Change(failure, _) => Some(failure),
        }
    }
}

/// Makes all changes of a plan, in order, what was there first going into the journal. If one fails, those before it are taken back,
/// and the journal is as it was before. Knobs that have their value already are left alone.
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
    let before = journal.formers().to_vec();
    let mut done: Vec<Former> = Vec::new();
    for change in &plan.changes {
        if let Err(why) = make(machine, change, journal, &mut done, after_step) {
            let left = take_back(machine, journal, &before, &done);
            return Err(match why {
                NotMade::Journal(why) => NotApplied::Journal(why, left),
                NotMade::Change(why) => {
                    let failure = Failure { knob: change.knob.clone(), wanted: change.to.clone(), why };
                    NotApplied::Change(failure, left)
                }
            });
        }
    }
    Ok(())
}

enum NotMade {
    Journal(io::Error),
    Change(io::Error),
}

/// Makes one change. What was there before goes into the journal and to the end of `done`.
fn make(
    machine: &Machine,
    change: &Change,
    journal: &mut Journal,
    done: &mut Vec<Former>,
    after_step: &mut dyn FnMut(),
) -> Result<(), NotMade> {
    let now = machine.read(&change.knob).map_err(NotMade::Change)?;
    if now == change.to {
        return Ok(());
    }
    let reset = machine.reset_by(&change.knob, [&now, &change.to]);
    let mut formers: Vec<Former> = reset.iter().map(|(knob, value)| Former::new(knob, value, None)).collect();
    formers.push(Former::new(&change.knob, &now, Some(&change.knob.normal(&change.to))));
    journal.note(&formers).map_err(NotMade::Journal)?;
    done.extend(formers);
    after_step();
    machine.write(&change.knob, &change.to).map_err(NotMade::Change)?;
    // What was reset has another value from now on, unless it is gone.
    let is_now = |(knob, value): &(Knob, String)| {
        let now = machine.read(knob).ok()?; // tidy-allow(dropped-cause): what cannot be read is restored in any case
        Some(Former::new(knob, value, Some(&now)))
    };
    let formers: Vec<Former> = reset.iter().filter_map(is_now).collect();
    if !formers.is_empty() {
        journal.note(&formers).map_err(NotMade::Journal)?;
    }
    after_step();
    Ok(())
}

/// Restores what this `apply` has changed, the last change first, and ends the notes of it. Returns what could not be restored: that
/// stays noted.
fn take_back(machine: &Machine, journal: &mut Journal, before: &[Former], done: &[Former]) -> Vec<Failure> {
    let failures = restore_all(machine, done, &mut || {});
    let is_left = |former: &Former| failures.iter().any(|(left, _)| left.is_of_same_knob(former));
    let restored: Vec<Former> = done.iter().filter(|former| !is_left(former)).cloned().collect();
    let (noted_before, new): (Vec<Former>, Vec<Former>) =
        restored.into_iter().partition(|former| before.iter().any(|noted| noted.is_of_same_knob(former)));
    // What an earlier call has set has that value again.
    let is_again = |noted: &&Former| noted_before.iter().any(|former| noted.is_of_same_knob(former));
    let again: Vec<Former> = before.iter().filter(is_again).cloned().collect();
    // If the journal cannot be written these notes stay, and a later revert finds nothing to do for them.
    let forgotten = journal.forget(&new).and_then(|()| journal.note(&again));
    let mut failures: Vec<Failure> = failures.into_iter().map(|(_, failure)| failure).collect();
    if let (Err(why), Some(former)) = (forgotten, done.last()) {
        let why = io::Error::new(why.kind(), format!("it is, but its note stays in the journal: {why}"));
        failures.push(Failure { knob: former.knob.clone(), wanted: former.value.clone(), why });
    }
    failures
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

/// Restores everything that the journal says, the last change first, and ends it. A knob that has neither its former value nor the one
/// that [`apply`] set was changed by something else since: it is left as it is, is among what is returned, and its note ends. What
/// fails stays in the journal.
///
/// # Errors
/// The journal cannot be written: nothing was restored, or the journal cannot be ended.
pub fn revert(machine: &Machine, journal: Journal) -> io::Result<Vec<Failure>> {
    revert_watched(machine, journal, &mut || {})
}

/// As [`revert`], and calls back after every knob. For tests that end it there.
///
/// # Errors
/// As of [`revert`].
pub fn revert_watched(
    machine: &Machine,
    mut journal: Journal,
    after_step: &mut dyn FnMut(),
) -> io::Result<Vec<Failure>> {
    let foreign: Vec<(Former, Failure)> =
        journal.formers().iter().filter_map(|former| Some((former.clone(), changed_since(machine, former)?))).collect();
    let (foreign, mut left): (Vec<Former>, Vec<Failure>) = foreign.into_iter().unzip();
    if !foreign.is_empty() {
        journal.forget(&foreign)?;
    }
    let noted = journal.formers().to_vec();
    // From here on, values between the two are of this call, or of one that was killed.
    let own = noted.iter().filter(|former| !is_elsewhere(former));
    let restoring: Vec<Former> = own.map(|former| Former { set: None, ..former.clone() }).collect();
    if !restoring.is_empty() {
        journal.note(&restoring)?;
    }
    let failures = restore_all(machine, &noted, after_step);
    let (remaining, failures): (Vec<Former>, Vec<Failure>) = failures.into_iter().unzip();
    journal.keep(remaining.into_iter().map(|former| left_at(machine, former)).collect())?;
    left.extend(failures);
    Ok(left)
}

/// Whether a knob is of another network namespace.
fn is_elsewhere(former: &Former) -> bool {
    former.namespace.is_some() && former.namespace != namespace::own()
}

/// A knob that could not be restored, with the value that it was left at: a later call replaces no other one.
fn left_at(machine: &Machine, former: Former) -> Former {
    let now = if is_elsewhere(&former) { None } else { machine.read(&former.knob).ok() }; // tidy-allow(dropped-cause): the failure is returned
    Former { set: now.or_else(|| former.set.clone()), ..former }
}

/// Why a knob is left as it is, if it has a value that `apply` did not set. What cannot be read, or is of another namespace, is none.
fn changed_since(machine: &Machine, former: &Former) -> Option<Failure> {
    let set = former.set.as_ref().filter(|_| !is_elsewhere(former))?;
    let now = machine.read(&former.knob).ok()?; // tidy-allow(dropped-cause): what cannot be read is restored in any case
    if now == *set || now == former.value {
        return None;
    }
    let why = io::Error::other(format!("it is {now:?}, which apply did not set (that was {set:?}): left as it is"));
    Some(Failure { knob: former.knob.clone(), wanted: former.value.clone(), why })
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
