//! Table capacities of switches for rules: flow entries, groups and meters.

use std::collections::{BTreeMap, BTreeSet};

use super::route::Tree;
use crate::PortRef;
use crate::model::{Egress, Snapshot, Tables};

/// Table entries of switches that flows use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TableUse {
    used: BTreeMap<u64, Tables>,
}

/// Error of a switch without table capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFull {
    /// Datapath id of the switch.
    pub dpid: u64,
    /// Name of the table.
    pub table: &'static str,
    /// Capacity of the table.
    pub capacity: u32,
}

const NONE: Tables = Tables { flow_entries: 0, groups: 0, meters: 0 };

/// Returns the rules of a flow: an entry in each switch, a group where frames are copied, a meter
/// in the first switch.
pub(super) fn needs(tree: &Tree) -> BTreeMap<u64, Tables> {
    let mut needs: BTreeMap<u64, Tables> = BTreeMap::new();
    let mut copying = BTreeSet::new();
    for port in &tree.ports {
        let Egress::Switch(PortRef { dpid, .. }) = *port else { continue };
        let is_first = needs.is_empty();
        let used = needs.entry(dpid).or_insert(NONE);
        if used.flow_entries > 0 && copying.insert(dpid) {
            used.groups += 1;
        }
        used.flow_entries = 1;
        used.meters += u32::from(is_first);
    }
    needs
}

impl TableUse {
    /// Reserves table entries. An error names the full table and changes nothing.
    pub(super) fn reserve(&mut self, snapshot: &Snapshot, needs: &BTreeMap<u64, Tables>) -> Result<(), TableFull> {
        for (dpid, need) in needs {
            let most = snapshot.switch(*dpid).map_or(NONE, |model| model.tables);
            let used = self.used.get(dpid).copied().unwrap_or(NONE);
            let tables = [
                ("flow entries", used.flow_entries, need.flow_entries, most.flow_entries),
                ("groups", used.groups, need.groups, most.groups),
                ("meters", used.meters, need.meters, most.meters),
            ];
            let full = tables.into_iter().find(|(_, used, need, most)| used.saturating_add(*need) > *most);
            if let Some((table, _, _, most)) = full {
                return Err(TableFull { dpid: *dpid, table, capacity: most });
            }
        }
        for (dpid, need) in needs {
            let used = self.used.entry(*dpid).or_insert(NONE);
            used.flow_entries += need.flow_entries;
            used.groups += need.groups;
            used.meters += need.meters;
        }
        Ok(())
    }

    /// Releases reserved table entries.
    pub(super) fn release(&mut self, needs: &BTreeMap<u64, Tables>) {
        for (dpid, need) in needs {
            let Some(used) = self.used.get_mut(dpid) else { continue };
            used.flow_entries = used.flow_entries.saturating_sub(need.flow_entries);
            used.groups = used.groups.saturating_sub(need.groups);
            used.meters = used.meters.saturating_sub(need.meters);
        }
    }
}
