//! Disciplines of an interface of this thread's network namespace, by netlink.

use takt_netlink::strict_priority::{HANDLE, StrictPriority, class};
use takt_netlink::traffic::ROOT;
use takt_netlink::{Netlink, interface_index};

use super::agent::State;
use super::{QueueError, Target};

/// Counters of a class's queue since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that have left it.
    pub sent: u64,
    /// Frames that it dropped.
    pub dropped: u64,
    /// Frames that wait in it.
    pub waiting: u64,
}

fn open(target: &Target) -> Result<(Netlink, i32), QueueError> {
    let failed = || QueueError::os(format!("look at the disciplines of {target}"));
    Ok((Netlink::route().map_err(failed())?, interface_index(&target.interface).map_err(failed())?))
}

/// What an interface has, compared with what it is to have.
pub fn state(target: &Target, wanted: &StrictPriority) -> Result<State, QueueError> {
    let failed = || QueueError::os(format!("look at the disciplines of {target}"));
    let (mut netlink, index) = open(target)?;
    let all = netlink.disciplines(index).map_err(failed())?;
    let Some(root) = all.iter().find(|one| one.parent == ROOT && one.handle != 0) else { return Ok(State::Missing) };
    if root.kind != "htb" || root.handle != HANDLE {
        return Ok(State::Foreign(format!("{} {:x}:", root.kind, root.handle >> 16)));
    }
    let found = netlink.strict_priority(index).map_err(failed())?;
    Ok(if found.as_ref() == Some(&sorted(wanted)) { State::AsWanted } else { State::Different })
}

/// Whether an agent made the discipline of an interface.
pub fn is_own(target: &Target) -> Result<bool, QueueError> {
    let (mut netlink, index) = open(target)?;
    let all = netlink.disciplines(index).map_err(QueueError::os(format!("look at the disciplines of {target}")))?;
    Ok(all.iter().any(|one| one.parent == ROOT && one.kind == "htb" && one.handle == HANDLE))
}

/// The kernel's list of filters has no order of ours.
fn sorted(wanted: &StrictPriority) -> StrictPriority {
    let mut sorted = wanted.clone();
    for class in &mut sorted.classes {
        class.dscp.sort_unstable();
        class.ether_types.sort_unstable();
    }
    sorted
}

/// Makes the classes, in place of what is at the root.
pub fn make(target: &Target, wanted: &StrictPriority) -> Result<(), QueueError> {
    remove(target)?;
    let (mut netlink, index) = open(target)?;
    netlink.add_strict_priority(index, wanted).map_err(QueueError::os(format!("make the queues of {target}")))
}

/// Removes what is at the root; the kernel has its own discipline there then.
pub fn remove(target: &Target) -> Result<(), QueueError> {
    let (mut netlink, index) = open(target)?;
    let failed = || QueueError::os(format!("remove the discipline of {target}"));
    let all = netlink.disciplines(index).map_err(failed())?;
    if !all.iter().any(|one| one.parent == ROOT && one.handle != 0) {
        return Ok(());
    }
    netlink.remove_discipline(index, ROOT).map_err(failed())
}

/// The counters of each class.
pub fn counters(target: &Target, classes: usize) -> Result<Vec<Counters>, QueueError> {
    let (mut netlink, index) = open(target)?;
    let all = netlink.disciplines(index).map_err(QueueError::os(format!("look at the disciplines of {target}")))?;
    let of = |place: usize| {
        let queue = all.iter().find(|one| one.parent == class(place));
        queue.map_or(Counters::default(), |queue| Counters {
            sent: queue.frames,
            dropped: queue.drops.into(),
            waiting: queue.waiting.into(),
        })
    };
    Ok((0..classes).map(of).collect())
}
