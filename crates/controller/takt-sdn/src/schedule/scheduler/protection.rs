//! Backup paths of admitted flows, each reserved and proved together with the primary path.
//!
//! The analysis contains a protected flow once per path, with all its frames on each. The real
//! traffic is less, since each frame uses one path. The bounds therefore hold for any set of failed
//! links, while frames from before a failure are under way, and when a link returns. Ports that
//! several paths share count the flow once per path. A port has one class for all paths: that of
//! the primary path if it uses the port, otherwise the lowest at which all flows keep their limits.
//! A protected flow keeps its classes.

use std::collections::{BTreeMap, BTreeSet};

use takt_calculus::network::{Flow, FlowId, Hop, Refused as Fault};

use super::{Scheduler, flows};
use crate::PortRef;
use crate::model::{Egress, Snapshot, Tables};
use crate::schedule::decision::{Reason, Refused, RequestId, Route};
use crate::schedule::detours::detours;
use crate::schedule::placement::{PlacedBundle, reason, route_of};
use crate::schedule::route::Tree;
use crate::schedule::table_use;

/// Maximum number of placements of backup paths that a decision tries.
pub const TRIALS_MAX: usize = 24;

/// A complete path, and the index of the port of the primary path whose link it avoids.
pub(in crate::schedule) type Detour = (usize, Tree);

/// Backup paths of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::schedule) struct BackupPaths {
    pub(in crate::schedule) paths: Vec<Detour>,
    pub(in crate::schedule) needs: BTreeMap<u64, Tables>,
    /// Whether no frame may take the paths any more. They are counted until
    /// [`Scheduler::release_backup_paths`].
    is_retired: bool,
}

/// Extent of the protection of a flow's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    /// Number of links between switches that have a detour.
    pub links: usize,
    /// Number of links between switches.
    pub total: usize,
}

/// A backup path of a protected flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupPath {
    /// Index of the hop of the primary path whose link it avoids: it leaves the primary path at
    /// that switch.
    pub at: usize,
    /// All its hops, from the source.
    pub route: Route,
}

impl Scheduler {
    /// Gives the requests of an entry backup paths around all links of their path that have a
    /// detour. All limits of admitted flows hold with them. An error changes nothing.
    ///
    /// # Errors
    /// The flow that does not fit. Requests with several receivers, or with separate flows for
    /// ACKNACKs, are refused ([`Reason::NoBackupPath`]).
    pub fn protect(&mut self, snapshot: &Snapshot, id: RequestId) -> Result<Coverage, Refused> {
        let bundle = self.single_bundle(id).filter(|bundle| bundle.backups.paths.is_empty()).cloned();
        let name = bundle.as_ref().and_then(|bundle| bundle.streams.first()).map(|stream| stream.name.clone());
        let name = name.unwrap_or_default();
        let refuse = |reason| Refused { flow: name.clone(), reason };
        let bundle = bundle.ok_or_else(|| refuse(Reason::NoBackupPath))?;
        let of = links_of(&bundle.tree);
        let paths = detours(snapshot, &bundle.tree.ports);
        let paths: Vec<Detour> =
            paths.into_iter().map(|(at, ports)| (at, Tree { ports, branches: Vec::new() })).collect();
        let coverage = Coverage { links: paths.len(), total: of };
        if of == 0 {
            return Ok(coverage);
        }
        if paths.is_empty() {
            return Err(refuse(Reason::NoBackupPath));
        }
        let mut classes = self.classes_of(&bundle);
        let fixed: BTreeSet<usize> = classes.keys().copied().collect();
        let mut hops = Vec::new();
        for (_, path) in &paths {
            let own = path.ports.iter().map(|port| self.hop(snapshot, *port)).collect::<Option<Vec<Hop>>>();
            hops.push(own.ok_or_else(|| refuse(Reason::NoRoute))?);
        }
        for hop in hops.iter().flatten() {
            if let Some(why) = self.control.refused.get(&hop.port) {
                return Err(refuse(reason(&self.network, &self.ports, "control traffic", why.clone())));
            }
            classes.entry(hop.port).or_insert(hop.class);
        }
        let needs = backup_needs(snapshot, &bundle.tree, &paths);
        self.table_use.reserve(snapshot, &needs).map_err(|table_full| refuse(Reason::TableFull(table_full)))?;
        let placed = self.place_backup_paths(snapshot, (&bundle, &paths, &hops), classes, &fixed);
        let ids = placed.map_err(|fault| {
            self.table_use.release(&needs);
            refuse(reason(&self.network, &self.ports, &format!("a second way of {name}"), fault))
        })?;
        self.owners.extend(ids.iter().map(|flow| (*flow, (id, 0))));
        if let Some(bundle) = self.entries.get_mut(&id).and_then(|entry| entry.bundles.first_mut()) {
            bundle.ids.extend(ids);
            bundle.backups = BackupPaths { paths, needs, is_retired: false };
        }
        Ok(coverage)
    }

    /// Admits the streams of a bundle on backup paths, in the lowest classes at which all flows
    /// keep their limits.
    fn place_backup_paths(
        &mut self,
        snapshot: &Snapshot,
        (bundle, paths, hops): (&PlacedBundle, &[Detour], &[Vec<Hop>]),
        mut classes: BTreeMap<usize, usize>,
        fixed: &BTreeSet<usize>,
    ) -> Result<Vec<FlowId>, Fault> {
        let most = classes.clone();
        for _ in 0..TRIALS_MAX {
            let classed = |hops: &Vec<Hop>| hops.iter().map(|hop| Hop { class: classes[&hop.port], ..*hop }).collect();
            let wanted = paths.iter().zip(hops.iter().map(classed).collect::<Vec<Vec<Hop>>>());
            let wanted: Vec<Flow> =
                wanted.flat_map(|((_, path), hops)| backup_flows(snapshot, bundle, path, &hops)).collect();
            self.trials += 1;
            let fault = match self.network.admit_all(wanted) {
                Ok(admitted) => return Ok(admitted.into_iter().map(|(id, _)| id).collect()),
                Err(fault) => fault,
            };
            let named = match fault {
                Fault::ExceedsLimit { flow, hop, .. } if self.network.flow(flow).is_none() => hop.port,
                Fault::Queue { hop, .. } if classes.get(&hop.port) == Some(&hop.class) => hop.port,
                _ => return Err(fault),
            };
            let can_rise = |port: &usize| !fixed.contains(port) && classes[port] > 0;
            let least = || classes.keys().copied().filter(can_rise).min_by_key(|port| most[port] - classes[port]);
            let risen = Some(named).filter(|port| classes.contains_key(port) && can_rise(port)).or_else(least);
            let Some(class) = risen.and_then(|port| classes.get_mut(&port)) else { return Err(fault) };
            *class -= 1;
        }
        Err(Fault::TooManyPorts)
    }

    /// Returns the extent of an entry's protection; `None` if it has no backup path that frames may
    /// take.
    pub fn coverage(&self, id: RequestId) -> Option<Coverage> {
        let bundle = self.single_bundle(id).filter(|bundle| !bundle.backups.is_retired)?;
        let links = bundle.backups.paths.len();
        (links > 0).then(|| Coverage { links, total: links_of(&bundle.tree) })
    }

    /// Returns the backup paths of the first request of an entry, without retired ones.
    pub fn backup_paths(&self, snapshot: &Snapshot, id: RequestId) -> Vec<BackupPath> {
        let Some(bundle) = self.single_bundle(id).filter(|bundle| !bundle.backups.is_retired) else {
            return Vec::new();
        };
        let Some(stream) = bundle.streams.first() else { return Vec::new() };
        let firsts = bundle.ids.iter().step_by(bundle.streams.len()).skip(1);
        let path = |((at, _), flow): (&Detour, &FlowId)| BackupPath {
            at: *at,
            route: route_of(&self.network, &self.ports, snapshot, *flow, stream),
        };
        bundle.backups.paths.iter().zip(firsts).map(path).collect()
    }

    /// Continues a protected entry with a failed port on one of its intact paths: the shortest one
    /// that it may already use. All paths are counted until
    /// [`release_backup_paths`](Self::release_backup_paths). Reports whether there is such a path;
    /// if not, nothing has changed.
    pub fn fall_back(&mut self, snapshot: &Snapshot, id: RequestId) -> bool {
        let is_whole = |tree: &Tree| !tree.ports.iter().any(|port| self.is_gone(snapshot, port));
        let Some(bundle) = self.single_bundle(id).filter(|bundle| self.has_backup_paths(bundle)) else { return false };
        let is_first_whole = is_whole(&bundle.tree);
        let whole = bundle.backups.paths.iter().enumerate().filter(|(_, (_, path))| is_whole(path));
        let shortest = whole.min_by_key(|(_, (at, path))| (path.ports.len(), std::cmp::Reverse(*at))).map(|(n, _)| n);
        let chosen = if is_first_whole { None } else { shortest };
        if !is_first_whole && chosen.is_none() {
            return false;
        }
        let bundle = self.entries.get_mut(&id).and_then(|entry| entry.bundles.first_mut());
        let Some(bundle) = bundle else { return false };
        if let Some(n) = chosen {
            let (at, path) = bundle.backups.paths.remove(n);
            let streams = bundle.streams.len();
            let first = bundle.ids.drain(..streams).collect::<Vec<FlowId>>();
            let own = bundle.ids.drain(n * streams..(n + 1) * streams).collect::<Vec<FlowId>>();
            bundle.backups.paths.insert(0, (at, std::mem::replace(&mut bundle.tree, path)));
            bundle.ids.splice(0..0, own.into_iter().chain(first));
        }
        bundle.backups.is_retired = true;
        true
    }

    /// Removes the paths of an entry that no frame takes any more and whose last frames have
    /// drained.
    pub fn release_backup_paths(&mut self, snapshot: &Snapshot, id: RequestId) {
        let Self { network, entries, owners, table_use: tables, full, .. } = self;
        let bundle = entries.get_mut(&id).and_then(|entry| entry.bundles.first_mut());
        let Some(bundle) = bundle.filter(|bundle| bundle.backups.is_retired) else { return };
        let removed: Vec<FlowId> = bundle.ids.drain(bundle.streams.len()..).collect();
        let flows = network.remove_all(&removed);
        full.remove(flows.iter().flat_map(|flow| &flow.hops).map(|hop| &hop.port));
        removed.iter().for_each(|flow| _ = owners.remove(flow));
        tables.release(&bundle.needs);
        tables.release(&bundle.backups.needs);
        (bundle.backups, bundle.needs) = (BackupPaths::default(), table_use::needs(&bundle.tree));
        // The entry used at least as much capacity before.
        let _ = tables.reserve(snapshot, &bundle.needs);
    }

    /// Reports whether frames of a bundle may take a backup path.
    pub(in crate::schedule) fn has_backup_paths(&self, bundle: &PlacedBundle) -> bool {
        !bundle.backups.paths.is_empty() && !bundle.backups.is_retired
    }

    /// Iterates over the ports that frames of a bundle may use.
    pub(super) fn ports_of<'a>(&self, bundle: &'a PlacedBundle) -> impl Iterator<Item = &'a Egress> {
        let backups = bundle.backups.paths.iter().filter(|_| !bundle.backups.is_retired);
        bundle.tree.ports.iter().chain(backups.flat_map(|(_, path)| &path.ports))
    }

    /// Returns the class of a bundle at each port of its primary path.
    fn classes_of(&self, bundle: &PlacedBundle) -> BTreeMap<usize, usize> {
        let flow = bundle.ids.first().and_then(|flow| self.network.flow(*flow));
        flow.into_iter().flat_map(|flow| &flow.hops).map(|hop| (hop.port, hop.class)).collect()
    }

    /// Returns the bundle of an entry with exactly one bundle and one receiver.
    fn single_bundle(&self, id: RequestId) -> Option<&PlacedBundle> {
        match self.entries.get(&id)?.bundles.as_slice() {
            [bundle] => Some(bundle).filter(|bundle| bundle.tree.branches.is_empty()),
            _ => None,
        }
    }
}

/// Returns the streams of a bundle on a backup path.
fn backup_flows(snapshot: &Snapshot, bundle: &PlacedBundle, path: &Tree, hops: &[Hop]) -> Vec<Flow> {
    name_backup_flows(flows(snapshot, &bundle.streams, path, hops))
}

/// Gives flows on a backup path names that differ from those on the primary path.
pub(super) fn name_backup_flows(flows: Vec<Flow>) -> Vec<Flow> {
    flows.into_iter().map(|flow| Flow { name: format!("{}, second way", flow.name), ..flow }).collect()
}

/// Returns the number of links between switches on a path.
fn links_of(tree: &Tree) -> usize {
    let switches = tree.ports.iter().filter(|port| matches!(port, Egress::Switch(_))).count();
    switches.saturating_sub(1)
}

/// Returns the table entries for detours: an entry for each port where their frames arrive, and a
/// group where they leave the primary path.
fn backup_needs(snapshot: &Snapshot, first: &Tree, paths: &[Detour]) -> BTreeMap<u64, Tables> {
    let mut needs: BTreeMap<u64, Tables> = BTreeMap::new();
    let mut inputs = BTreeSet::new();
    let none = Tables { flow_entries: 0, groups: 0, meters: 0 };
    for (at, path) in paths {
        if let Egress::Switch(PortRef { dpid, .. }) = first.ports[*at] {
            needs.entry(dpid).or_insert(none).groups += 1;
        }
        for port in &path.ports[*at..path.ports.len() - 1] {
            let input = snapshot.link(*port).map(|link| link.back);
            if let Some(Egress::Switch(input)) = input.filter(|input| inputs.insert(*input)) {
                needs.entry(input.dpid).or_insert(none).flow_entries += 1;
            }
        }
    }
    needs
}
