//! Queueing disciplines of an interface in this thread's network namespace, by netlink.

use takt_netlink::strict_priority::{HANDLE, StrictPriority, class};
use takt_netlink::traffic::ROOT;
use takt_netlink::{Netlink, interface_index};

use super::agent::State;
use super::{QueueError, Target};

/// Counters of a class's queue since its creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that have left the queue.
    pub sent: u64,
    /// Frames that the queue dropped.
    pub dropped: u64,
    /// Frames in the queue.
    pub waiting: u64,
}

fn open(target: &Target) -> Result<(Netlink, i32), QueueError> {
    let failed = || QueueError::os(format!("read the disciplines of {target}"));
    Ok((Netlink::route().map_err(failed())?, interface_index(&target.interface).map_err(failed())?))
}

/// Compares the discipline of an interface with the wanted one.
pub fn state(target: &Target, wanted: &StrictPriority) -> Result<State, QueueError> {
    let failed = || QueueError::os(format!("read the disciplines of {target}"));
    let (mut netlink, index) = open(target)?;
    let all = netlink.disciplines(index).map_err(failed())?;
    let Some(root) = all.iter().find(|one| one.parent == ROOT && one.handle != 0) else { return Ok(State::Missing) };
    if root.kind != "htb" || root.handle != HANDLE {
        return Ok(State::Foreign(format!("{} {:x}:", root.kind, root.handle >> 16)));
    }
    let found = netlink.strict_priority(index).map_err(failed())?;
    Ok(if found.as_ref() == Some(&sorted(wanted)) { State::AsWanted } else { State::Different })
}

/// Reports whether an agent created the discipline of an interface.
pub fn is_own(target: &Target) -> Result<bool, QueueError> {
    let (mut netlink, index) = open(target)?;
    let all = netlink.disciplines(index).map_err(QueueError::os(format!("read the disciplines of {target}")))?;
    Ok(all.iter().any(|one| one.parent == ROOT && one.kind == "htb" && one.handle == HANDLE))
}

/// Sorts the filters, since the kernel lists them in its own order.
fn sorted(wanted: &StrictPriority) -> StrictPriority {
    let mut sorted = wanted.clone();
    for class in &mut sorted.classes {
        class.dscp.sort_unstable();
        class.ether_types.sort_unstable();
    }
    sorted
}

/// Creates the classes, in place of the root discipline.
pub fn make(target: &Target, wanted: &StrictPriority) -> Result<(), QueueError> {
    remove(target)?;
    let (mut netlink, index) = open(target)?;
    netlink.add_strict_priority(index, wanted).map_err(QueueError::os(format!("create the queues of {target}")))
}

/// Removes the root discipline; the kernel then installs its default.
pub fn remove(target: &Target) -> Result<(), QueueError> {
    let (mut netlink, index) = open(target)?;
    let failed = || QueueError::os(format!("remove the discipline of {target}"));
    let all = netlink.disciplines(index).map_err(failed())?;
    if !all.iter().any(|one| one.parent == ROOT && one.handle != 0) {
        return Ok(());
    }
    netlink.remove_discipline(index, ROOT).map_err(failed())
}

/// Returns the counters of each class.
pub fn counters(target: &Target, classes: usize) -> Result<Vec<Counters>, QueueError> {
    let (mut netlink, index) = open(target)?;
    let all = netlink.disciplines(index).map_err(QueueError::os(format!("read the disciplines of {target}")))?;
    let of = |index: usize| {
        let queue = all.iter().find(|one| one.parent == class(index));
        queue.map_or(Counters::default(), |queue| Counters {
            sent: queue.frames,
            dropped: queue.drops.into(),
            waiting: queue.waiting.into(),
        })
    };
    Ok((0..classes).map(of).collect())
}
