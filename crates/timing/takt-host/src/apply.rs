//! Application of a plan as a transaction, and its reversal.

use std::fmt;
use std::io;

use crate::journal::{FormerValue, Journal};
use crate::machine::Machine;
use crate::namespace;
use crate::plan::{Change, Plan};
use crate::setting::Setting;

/// Setting that does not have its wanted value.
#[derive(Debug)]
pub struct Failure {
    /// Affected setting.
    pub setting: Setting,
    /// Wanted value.
    pub wanted: String,
    /// Reason why the setting does not have it.
    pub why: io::Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not {:?}: {}", self.setting, self.wanted, self.why)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// Reason why a plan was not applied.
#[derive(Debug)]
pub enum ApplyError {
    /// The journal cannot be written, so that no further change was made. Earlier changes of this
    /// call were reverted, except those listed.
    Journal(io::Error, Vec<Failure>),
    /// A change failed. Earlier changes of this call were reverted, except those listed.
    Change(Failure, Vec<Failure>),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(why, _) => write!(f, "the journal cannot be written: {why}")?,
            Self::Change(failure, _) => write!(f, "{failure}")?,
        }
        let (Self::Journal(_, left) | Self::Change(_, left)) = self;
        f.write_str("; earlier changes were reverted")?;
        left.iter().try_for_each(|failure| write!(f, "\nnot reverted: {failure}"))
    }
}

impl std::error::Error for ApplyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Journal(why, _) => Some(why),
            Self::Change(failure, _) => Some(failure),
        }
    }
}

/// Makes all changes of a plan in order, after recording the present values in the journal.
///
/// If a change fails, the previous changes are reverted and the journal is as before. Settings that
/// already have their value are not touched.
///
/// # Errors
/// The change that failed, and the changes that could not be reverted.
pub fn apply(machine: &Machine, plan: &Plan, journal: &mut Journal) -> Result<(), ApplyError> {
    apply_watched(machine, plan, journal, &mut || {})
}

/// Like [`apply`], but calls `after_step` after each journal record and after each change. Tests
/// interrupt it there.
///
/// # Errors
/// Same as [`apply`].
pub fn apply_watched(
    machine: &Machine,
    plan: &Plan,
    journal: &mut Journal,
    after_step: &mut dyn FnMut(),
) -> Result<(), ApplyError> {
    let before = journal.former_values().to_vec();
    let mut done: Vec<FormerValue> = Vec::new();
    for change in &plan.changes {
        if let Err(why) = make(machine, change, journal, &mut done, after_step) {
            let left = roll_back(machine, journal, &before, &done);
            return Err(match why {
                ChangeError::Journal(why) => ApplyError::Journal(why, left),
                ChangeError::Change(why) => {
                    let failure = Failure { setting: change.setting.clone(), wanted: change.to.clone(), why };
                    ApplyError::Change(failure, left)
                }
            });
        }
    }
    Ok(())
}

enum ChangeError {
    Journal(io::Error),
    Change(io::Error),
}

/// Makes one change. Appends the former values to the journal and to `done`.
fn make(
    machine: &Machine,
    change: &Change,
    journal: &mut Journal,
    done: &mut Vec<FormerValue>,
    after_step: &mut dyn FnMut(),
) -> Result<(), ChangeError> {
    let now = machine.read(&change.setting).map_err(ChangeError::Change)?;
    if now == change.to {
        return Ok(());
    }
    let reset = machine.reset_by(&change.setting, [&now, &change.to]);
    let mut former_values: Vec<FormerValue> =
        reset.iter().map(|(setting, value)| FormerValue::new(setting, value, None)).collect();
    former_values.push(FormerValue::new(&change.setting, &now, Some(&change.setting.normal(&change.to))));
    journal.record(&former_values).map_err(ChangeError::Journal)?;
    done.extend(former_values);
    after_step();
    machine.write(&change.setting, &change.to).map_err(ChangeError::Change)?;
    // Settings that were reset have another value from now on, unless they no longer exist.
    let is_now = |(setting, value): &(Setting, String)| {
        let now = machine.read(setting).ok()?; // tidy-allow(dropped-cause): what cannot be read is restored in any case
        Some(FormerValue::new(setting, value, Some(&now)))
    };
    let former_values: Vec<FormerValue> = reset.iter().filter_map(is_now).collect();
    if !former_values.is_empty() {
        journal.record(&former_values).map_err(ChangeError::Journal)?;
    }
    after_step();
    Ok(())
}

/// Restores the changes of this `apply` in reverse order and removes their journal entries. Returns
/// those that could not be restored, whose entries remain.
fn roll_back(machine: &Machine, journal: &mut Journal, before: &[FormerValue], done: &[FormerValue]) -> Vec<Failure> {
    let failures = restore_all(machine, done, &mut || {});
    let has_failed = |former: &FormerValue| failures.iter().any(|(left, _)| left.is_of_same_setting(former));
    let restored: Vec<FormerValue> = done.iter().filter(|former| !has_failed(former)).cloned().collect();
    let (recorded_before, new): (Vec<FormerValue>, Vec<FormerValue>) =
        restored.into_iter().partition(|former| before.iter().any(|recorded| recorded.is_of_same_setting(former)));
    // A value that an earlier call set is in effect again.
    let is_again = |recorded: &&FormerValue| recorded_before.iter().any(|former| recorded.is_of_same_setting(former));
    let again: Vec<FormerValue> = before.iter().filter(is_again).cloned().collect();
    // If the journal cannot be written, these entries remain. A later revert finds nothing to do
    // for them.
    let removed = journal.remove(&new).and_then(|()| journal.record(&again));
    let mut failures: Vec<Failure> = failures.into_iter().map(|(_, failure)| failure).collect();
    if let (Err(why), Some(former)) = (removed, done.last()) {
        let why =
            io::Error::new(why.kind(), format!("the value is restored, but its entry remains in the journal: {why}"));
        failures.push(Failure { setting: former.setting.clone(), wanted: former.value.clone(), why });
    }
    failures
}

/// Restores values in reverse order, in two passes.
///
/// Restoring one value may reset another that was restored before, as a tree of queueing
/// disciplines does with the queues of processors. Returns the values that could not be restored.
fn restore_all(
    machine: &Machine,
    former_values: &[FormerValue],
    after_step: &mut dyn FnMut(),
) -> Vec<(FormerValue, Failure)> {
    let mut failures = Vec::new();
    for _ in 0..2 {
        failures.clear();
        for former in former_values.iter().rev() {
            if let Err(failure) = restore(machine, former) {
                failures.insert(0, (former.clone(), failure));
            }
            after_step();
        }
    }
    failures
}

fn restore(machine: &Machine, former: &FormerValue) -> Result<(), Failure> {
    let fail = |why| Failure { setting: former.setting.clone(), wanted: former.value.clone(), why };
    match former.namespace {
        Some(inode) if former.namespace != namespace::own() => {
            // The namespace no longer exists, nor do its settings.
            if !namespace::is_there(inode) {
                return Ok(());
            }
            return Err(fail(io::Error::other(format!(
                "it belongs to network namespace net:[{inode}]: run the command there"
            ))));
        }
        _ => {}
    }
    match machine.read(&former.setting) {
        Ok(now) if now == former.value => Ok(()),
        // The interface no longer exists, nor do its settings.
        Err(why) if matches!(takt_netlink::code(&why), Some(libc::ENOENT | libc::ENODEV)) => Ok(()),
        // An unreadable present value, such as a tree with filters, differs from the former value.
        Ok(_) | Err(_) => machine.write(&former.setting, &former.value).map_err(fail),
    }
}

/// Restores all values in the journal in reverse order and ends the journal.
///
/// A setting with neither its former value nor the value that [`apply`] set was changed by another
/// program. It is not touched, is returned as a failure, and its entry is removed. Settings that
/// could not be restored remain in the journal.
///
/// # Errors
/// The journal cannot be written, so that nothing was restored, or the journal cannot be ended.
pub fn revert(machine: &Machine, journal: Journal) -> io::Result<Vec<Failure>> {
    revert_watched(machine, journal, &mut || {})
}

/// Like [`revert`], but calls `after_step` after each setting. Tests interrupt it there.
///
/// # Errors
/// Same as [`revert`].
pub fn revert_watched(
    machine: &Machine,
    mut journal: Journal,
    after_step: &mut dyn FnMut(),
) -> io::Result<Vec<Failure>> {
    let foreign: Vec<(FormerValue, Failure)> = journal
        .former_values()
        .iter()
        .filter_map(|former| Some((former.clone(), changed_since(machine, former)?)))
        .collect();
    let (foreign, mut left): (Vec<FormerValue>, Vec<Failure>) = foreign.into_iter().unzip();
    if !foreign.is_empty() {
        journal.remove(&foreign)?;
    }
    let recorded = journal.former_values().to_vec();
    // From here on, an intermediate value was set by this call or by one that was killed.
    let own = recorded.iter().filter(|former| !is_elsewhere(former));
    let restoring: Vec<FormerValue> = own.map(|former| FormerValue { set: None, ..former.clone() }).collect();
    if !restoring.is_empty() {
        journal.record(&restoring)?;
    }
    let failures = restore_all(machine, &recorded, after_step);
    let (remaining, failures): (Vec<FormerValue>, Vec<Failure>) = failures.into_iter().unzip();
    journal.keep(remaining.into_iter().map(|former| with_present_value(machine, former)).collect())?;
    left.extend(failures);
    Ok(left)
}

/// Reports whether a setting belongs to another network namespace.
fn is_elsewhere(former: &FormerValue) -> bool {
    former.namespace.is_some() && former.namespace != namespace::own()
}

/// Returns a setting that could not be restored, with its present value. A later call overwrites no
/// other value.
fn with_present_value(machine: &Machine, former: FormerValue) -> FormerValue {
    let now = if is_elsewhere(&former) { None } else { machine.read(&former.setting).ok() }; // tidy-allow(dropped-cause): the failure is returned
    FormerValue { set: now.or_else(|| former.set.clone()), ..former }
}

/// Returns why a setting is not touched: it has a value that `apply` did not set. `None` for a
/// setting that cannot be read or is of another namespace.
fn changed_since(machine: &Machine, former: &FormerValue) -> Option<Failure> {
    let set = former.set.as_ref().filter(|_| !is_elsewhere(former))?;
    let now = machine.read(&former.setting).ok()?; // tidy-allow(dropped-cause): what cannot be read is restored in any case
    if now == *set || now == former.value {
        return None;
    }
    let why = io::Error::other(format!("the value {now:?} is not the one that apply set ({set:?}): not reverted"));
    Some(Failure { setting: former.setting.clone(), wanted: former.value.clone(), why })
}

/// Returns the settings of a plan that do not have their planned values.
pub fn verify(machine: &Machine, plan: &Plan) -> Vec<Failure> {
    let differs = |change: &crate::Change| {
        let why = match machine.read(&change.setting) {
            Ok(now) if now == change.to => return None,
            Ok(now) => io::Error::other(format!("the value is {now:?}")),
            Err(why) => why,
        };
        Some(Failure { setting: change.setting.clone(), wanted: change.to.clone(), why })
    };
    plan.changes.iter().filter_map(differs).collect()
}
