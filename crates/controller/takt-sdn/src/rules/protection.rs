//! Entries of the backup paths of a flow, and FAST_FAILOVER groups where they branch off the
//! primary path.
//!
//! The entry at a branching switch sends frames to a group with two buckets: the port of the
//! primary path, and that of the backup path, each with its class. Each bucket is live as long as
//! its port is (OF 1.3.5 §5.6.1). The switch fails over and back without the controller. Frames of
//! a backup path match entries of their own in later switches: they arrive at ports where no frames
//! of the primary path do.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use takt_openflow::action::Action;
use takt_openflow::group::{Bucket, BucketProperty, GroupMod, GroupType};
use takt_openflow::instruction::Instruction;
use takt_openflow::value::PortNo;

use super::{Entry, Selector, actions, entry_of, matching};
use crate::PortRef;
use crate::controller::FlowKey;
use crate::forwarding::rules::meter;
use crate::model::{Egress, QueueSelection, Snapshot};
use crate::schedule::BackupPath;

/// Range of the groups of flows. The group of a flow in each switch is the first number plus the
/// number of the flow's meter.
pub const GROUPS: Range<u32> = 0x544c_0000..0x544c_0000 + meter::HOSTS;

/// Frames that leave a switch on a backup path.
struct BackupStart {
    input: PortRef,
    out: u32,
    selection: QueueSelection,
}

impl BackupStart {
    /// Returns the output actions. Only the reserved port sends frames out of their ingress port
    /// (OF 1.3.5 §4.5).
    fn actions(&self) -> Vec<Action> {
        let mut actions = actions([(self.out, self.selection)].into());
        if self.out == self.input.port {
            actions.pop();
            actions.push(Action::output(PortNo::IN_PORT));
        }
        actions
    }
}

/// Returns the start of hop `n` of a backup path; `None` if the path does not match `snapshot`.
fn backup_start(snapshot: &Snapshot, path: &BackupPath, n: usize) -> Option<BackupStart> {
    let hop = path.route.hops.get(n)?;
    let before = path.route.hops.get(n.checked_sub(1)?)?;
    match (snapshot.link(before.port)?.back, hop.port) {
        (Egress::Switch(input), Egress::Switch(out)) => {
            Some(BackupStart { input, out: out.port, selection: hop.selection? })
        }
        _ => None,
    }
}

/// Adds backup paths to the entries of the primary path. Their own entries come first, those
/// nearest to the receiver at the start. `meter` is that of the flow. Returns `None` if a path does
/// not match `snapshot`.
pub fn protect(
    snapshot: &Snapshot,
    first: Vec<Entry>,
    backup_paths: &[BackupPath],
    selector: &Selector,
    meter: u32,
) -> Option<Vec<Entry>> {
    let mut first = first;
    let mut inputs = BTreeSet::new();
    // Keyed by the number of remaining hops.
    let mut own: Vec<(usize, Entry)> = Vec::new();
    for path in backup_paths {
        let branch = backup_start(snapshot, path, path.at)?;
        // A switch is on the primary path once. Without its entry, no frame arrives there.
        let Some(entry) = first.iter_mut().find(|entry| entry.dpid == branch.input.dpid) else { continue };
        send_to_group(entry, &branch, GROUPS.start.checked_add(meter)?);
        for n in path.at + 1..path.route.hops.len() {
            let further = backup_start(snapshot, path, n)?;
            if inputs.insert(further.input) {
                let matching = matching(selector, further.input.port);
                let flow = entry_of(matching, vec![Instruction::ApplyActions(further.actions())]);
                let key = Arc::new(FlowKey::of(&flow));
                let dpid = further.input.dpid;
                own.push((
                    path.route.hops.len() - n,
                    Entry { dpid, flow, key, meter: None, group: None, is_branch: false },
                ));
            }
        }
    }
    own.sort_by_key(|(left, _)| *left);
    Some(own.into_iter().map(|(_, entry)| entry).chain(first).collect())
}

/// Makes an entry of the primary path send to a group whose first bucket has the entry's actions.
fn send_to_group(entry: &mut Entry, second: &BackupStart, group: u32) {
    for instruction in &mut entry.flow.instructions {
        let Instruction::ApplyActions(actions) = instruction else { continue };
        let first = std::mem::replace(actions, vec![Action::Group(group)]);
        let port = first.iter().rev().find_map(|action| match action {
            Action::Output { port, .. } => Some(*port),
            _ => None,
        });
        let bucket =
            |port: PortNo, actions| Bucket { id: 0, actions, properties: vec![BucketProperty::WatchPort(port)] };
        let buckets = port.map(|port| bucket(port, first)).into_iter();
        let buckets = buckets.chain([bucket(PortNo(second.out), second.actions())]).collect();
        entry.group = Some(GroupMod::add(group, GroupType::FastFailover, buckets));
    }
}
