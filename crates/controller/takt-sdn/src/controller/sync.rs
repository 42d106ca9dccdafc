//! Synchronization of a switch: its actual and wanted tables, and the messages that turn one into
//! the other.
//!
//! The actual tables are read from the switch ([`Sync::read`]) and updated by its acknowledgments.
//! They are never assumed: after a failure or a lost reply they are read again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use takt_openflow::flow::{FlowCommand, FlowMod, FlowRemoved};
use takt_openflow::flow_match::Match;
use takt_openflow::group::{BucketProperty, GroupCommand, GroupDesc, GroupMod};
use takt_openflow::meter::{MeterCommand, MeterConfig, MeterMod};
use takt_openflow::multipart::FlowStats;
use takt_openflow::oxm::Oxm;
use takt_openflow::value::PortNo;
use takt_openflow::{Message, Version};

use crate::admission::Presence;
use crate::forwarding::rules::Kind;
use crate::rules::Entry;

/// Identity of a rule in a switch: table, priority and match, whose fields are in the order of
/// their numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    table: u8,
    priority: u16,
    /// Encoded match.
    matching: Vec<u8>,
}

fn sorted(matching: &Match) -> Match {
    match matching {
        Match::Oxm(fields) => {
            let mut fields = fields.clone();
            fields.sort_by_key(|field| {
                let header = field.header();
                (header.class, header.field)
            });
            Match::Oxm(fields)
        }
        standard => standard.clone(),
    }
}

/// Returns the fields of a match; none for the fixed match of OpenFlow 1.0.
pub fn fields(matching: &Match) -> &[Oxm] {
    match matching {
        Match::Oxm(fields) => fields,
        Match::Standard(_) => &[],
    }
}

impl FlowKey {
    fn new(table: u8, priority: u16, matching: &Match) -> Self {
        let only = FlowMod { matching: sorted(matching), ..FlowMod::default() };
        // A match that cannot be encoded in 1.3 was never installed by this controller.
        let matching = Message::FlowMod(only).encode(Version::V1_3, 0).unwrap_or_default();
        Self { table, priority, matching }
    }

    /// Returns the key of a rule.
    pub fn of(flow: &FlowMod) -> Self {
        Self::new(flow.table, flow.priority, &flow.matching)
    }

    /// Returns the key of a rule that a switch has removed.
    pub fn of_removed(removed: &FlowRemoved) -> Self {
        Self::new(removed.table, removed.priority, &removed.matching)
    }
}

/// Entry that a message of a change is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Target {
    /// A rule.
    Flow(FlowKey),
    /// A group.
    Group(u32),
    /// A meter.
    Meter(u32),
}

/// Rules, groups and meters, as messages that add them.
#[derive(Clone, Default, Debug)]
pub struct Tables {
    /// Rules.
    pub flows: BTreeMap<FlowKey, FlowMod>,
    /// Groups.
    pub groups: BTreeMap<u32, GroupMod>,
    /// Meters.
    pub meters: BTreeMap<u32, MeterMod>,
}

impl Tables {
    /// Converts the tables that a switch reports.
    pub fn of_switch(flows: Vec<FlowStats>, groups: Vec<GroupDesc>, meters: Vec<MeterConfig>) -> Self {
        let flow = |stats: FlowStats| FlowMod {
            cookie: stats.cookie,
            table: stats.table,
            priority: stats.priority,
            idle_timeout: stats.idle_timeout,
            hard_timeout: stats.hard_timeout,
            flags: stats.flags,
            importance: stats.importance,
            matching: sorted(&stats.matching),
            instructions: stats.instructions,
            ..FlowMod::default()
        };
        let group = |desc: GroupDesc| {
            let mut group = GroupMod::add(desc.group, desc.kind, desc.buckets);
            // Up to 1.4, a bucket always has its properties; only a watched port is meaningful.
            let is_watched = |property: &BucketProperty| match property {
                BucketProperty::WatchPort(port) => *port != PortNo::ANY,
                _ => false,
            };
            group.buckets.iter_mut().for_each(|bucket| bucket.properties.retain(is_watched));
            group
        };
        let meter = |config: MeterConfig| MeterMod {
            command: MeterCommand::Add,
            flags: config.flags,
            meter: config.meter,
            bands: config.bands,
        };
        Self {
            flows: flows.into_iter().map(flow).map(|flow| (FlowKey::of(&flow), flow)).collect(),
            groups: groups.into_iter().map(group).map(|group| (group.group, group)).collect(),
            meters: meters.into_iter().map(meter).map(|meter| (meter.meter, meter)).collect(),
        }
    }

    fn targets(&self) -> impl Iterator<Item = Target> {
        let flows = self.flows.keys().cloned().map(Target::Flow);
        let groups = self.groups.keys().copied().map(Target::Group);
        flows.chain(groups).chain(self.meters.keys().copied().map(Target::Meter))
    }

    fn copy(&mut self, from: &Self, target: &Target) {
        fn copy<K: Ord + Clone, V: Clone>(into: &mut BTreeMap<K, V>, from: &BTreeMap<K, V>, key: &K) {
            match from.get(key) {
                Some(value) => into.insert(key.clone(), value.clone()),
                None => into.remove(key),
            };
        }
        match target {
            Target::Flow(key) => copy(&mut self.flows, &from.flows, key),
            Target::Group(group) => copy(&mut self.groups, &from.groups, group),
            Target::Meter(meter) => copy(&mut self.meters, &from.meters, meter),
        }
    }
}

/// Messages of a change, each with its target.
#[derive(Debug, Default)]
pub struct Change {
    /// Messages of the change.
    pub messages: Vec<Message>,
    /// Target of each message.
    pub targets: Vec<Target>,
    /// Entries after all messages are executed; deleted entries are missing.
    after: Tables,
}

/// Numbers of entries that a change adds, modifies and deletes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Difference {
    /// Number of entries that are missing in the switch.
    pub added: usize,
    /// Number of entries that differ in the switch.
    pub changed: usize,
    /// Number of entries that only the switch has.
    pub deleted: usize,
}

/// Maximum number of messages of one change: a switch builds a bundle in its memory.
const MESSAGES_MAX: usize = 512;

/// Synchronization state of the tables of one switch.
#[derive(Default, Debug)]
pub struct Sync {
    wanted: Tables,
    actual: Tables,
    dirty: BTreeSet<Target>,
    /// Targets of messages that the switch has not acknowledged.
    under_way: BTreeSet<Target>,
    /// Targets that the switch refuses; not tried again until another entry is wanted.
    refused: BTreeSet<Target>,
    /// Whether entries of the switch must not be changed or deleted, and entries that depend on the
    /// topology must not be added.
    pub is_held: bool,
    version: u64,
}

/// Last version of any switch: a switch that disconnects and returns has another version than
/// before.
static LAST_VERSION: AtomicU64 = AtomicU64::new(0);

impl Sync {
    /// Sets the tables that were read from the switch.
    pub fn read(&mut self, actual: Tables) {
        self.change_version();
        self.actual = actual;
        self.under_way.clear();
        self.dirty.extend(self.wanted.targets());
        self.dirty.extend(self.actual.targets());
    }

    /// Returns the tables of the switch, as far as known.
    pub fn actual(&self) -> &Tables {
        &self.actual
    }

    /// Returns the presence of a rule with its meter and group in the switch.
    pub fn presence(&self, entry: &Entry) -> Presence {
        let group = &entry.group;
        let group_as_wanted = |group: &GroupMod| {
            self.state(&Target::Group(group.group), self.actual.groups.get(&group.group) == Some(group))
        };
        match (self.presence_with_meter(entry), group.as_ref().map(group_as_wanted)) {
            (Presence::Same, Some(of_group)) | (_, Some(of_group @ Presence::Refused)) => of_group,
            (of_rule, _) => of_rule,
        }
    }

    /// Returns the presence of a meter or group in the switch.
    fn state(&self, target: &Target, is_same: bool) -> Presence {
        if self.refused.contains(target) {
            Presence::Refused
        } else if is_same && !self.under_way.contains(target) {
            Presence::Same
        } else {
            Presence::Other
        }
    }

    fn presence_with_meter(&self, Entry { flow, key, meter, .. }: &Entry) -> Presence {
        let refuses = |meter: &MeterMod| self.refused.contains(&Target::Meter(meter.meter));
        let has = |meter: &MeterMod| self.actual.meters.get(&meter.meter) == Some(meter);
        let is_open = |meter: &MeterMod| self.under_way.contains(&Target::Meter(meter.meter));
        let is_among =
            |targets: &BTreeSet<Target>| !targets.is_empty() && targets.contains(&Target::Flow(FlowKey::clone(key)));
        match self.actual.flows.get(&**key) {
            _ if is_among(&self.refused) => Presence::Refused,
            // The switch may have either the old or the new entry.
            _ if is_among(&self.under_way) || meter.as_ref().is_some_and(is_open) => Presence::Other,
            None => Presence::Absent,
            Some(_) if meter.as_ref().is_some_and(refuses) => Presence::Refused,
            Some(actual) if is_same_flow(actual, flow) && meter.as_ref().is_none_or(has) => Presence::Same,
            Some(_) => Presence::Other,
        }
    }

    /// Adds a rule to the wanted ones.
    pub fn want(&mut self, flow: FlowMod) {
        let key = FlowKey::of(&flow);
        if self.wanted.flows.get(&key) != Some(&flow) {
            self.touch(Target::Flow(key.clone()));
            self.wanted.flows.insert(key, flow);
        }
    }

    /// Removes a rule from the wanted ones.
    pub fn drop_flow(&mut self, key: &FlowKey) {
        if self.wanted.flows.remove(key).is_some() {
            self.touch(Target::Flow(key.clone()));
        }
    }

    /// Replaces the wanted rules with a cookie.
    pub fn want_all(&mut self, cookie: u64, flows: Vec<FlowMod>) {
        let keys: BTreeSet<FlowKey> = flows.iter().map(FlowKey::of).collect();
        let old = self.wanted.flows.iter().filter(|(key, flow)| flow.cookie == cookie && !keys.contains(key));
        let old: Vec<FlowKey> = old.map(|(key, _)| key.clone()).collect();
        old.iter().for_each(|key| self.drop_flow(key));
        flows.into_iter().for_each(|flow| self.want(flow));
    }

    /// Adds a group to the wanted ones.
    pub fn want_group(&mut self, group: GroupMod) {
        if self.wanted.groups.get(&group.group) != Some(&group) {
            self.touch(Target::Group(group.group));
            self.wanted.groups.insert(group.group, group);
        }
    }

    /// Replaces the wanted groups within a range.
    pub fn want_groups_within(&mut self, range: &Range<u32>, groups: &BTreeMap<u32, GroupMod>) {
        let known = self.wanted.groups.range(range.clone()).map(|(group, _)| *group);
        let removed: Vec<u32> = known.filter(|group| !groups.contains_key(group)).collect();
        removed.into_iter().for_each(|group| self.drop_group(group));
        groups.values().for_each(|group| self.want_group(group.clone()));
    }

    /// Removes a group from the wanted ones.
    pub fn drop_group(&mut self, group: u32) {
        if self.wanted.groups.remove(&group).is_some() {
            self.touch(Target::Group(group));
        }
    }

    /// Replaces the wanted meters.
    pub fn want_meters(&mut self, meters: Vec<MeterMod>) {
        let meters: BTreeMap<u32, MeterMod> = meters.into_iter().map(|meter| (meter.meter, meter)).collect();
        let all: BTreeSet<u32> = meters.keys().chain(self.wanted.meters.keys()).copied().collect();
        for meter in all {
            if meters.get(&meter) != self.wanted.meters.get(&meter) {
                self.touch(Target::Meter(meter));
            }
        }
        self.wanted.meters = meters;
    }

    /// Replaces the wanted meters outside a range.
    pub fn want_meters_outside(&mut self, others: &Range<u32>, meters: Vec<MeterMod>) {
        let is_removed = |meter: &u32| !others.contains(meter) && !meters.iter().any(|own| own.meter == *meter);
        let removed: Vec<u32> = self.wanted.meters.keys().copied().filter(is_removed).collect();
        removed.into_iter().for_each(|meter| self.drop_meter(meter));
        meters.into_iter().for_each(|meter| self.want_meter(meter));
    }

    /// Adds a meter to the wanted ones.
    pub fn want_meter(&mut self, meter: MeterMod) {
        if self.wanted.meters.get(&meter.meter) != Some(&meter) {
            self.touch(Target::Meter(meter.meter));
            self.wanted.meters.insert(meter.meter, meter);
        }
    }

    /// Removes a meter from the wanted ones.
    pub fn drop_meter(&mut self, meter: u32) {
        if self.wanted.meters.remove(&meter).is_some() {
            self.touch(Target::Meter(meter));
        }
    }

    /// Returns a version that changes whenever the [`presence`](Self::presence) of an entry may
    /// have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn change_version(&mut self) {
        self.version = LAST_VERSION.fetch_add(1, Ordering::Relaxed) + 1;
    }

    fn touch(&mut self, target: Target) {
        self.change_version();
        self.refused.remove(&target);
        self.dirty.insert(target);
    }

    /// Records that the switch removed a rule. Returns the rule if it was wanted; it is installed
    /// again unless it is dropped.
    pub fn removed(&mut self, key: &FlowKey) -> Option<FlowMod> {
        self.change_version();
        self.actual.flows.remove(key);
        let wanted = self.wanted.flows.get(key)?.clone();
        self.dirty.insert(Target::Flow(key.clone()));
        Some(wanted)
    }

    /// Records that the switch refused an entry.
    pub fn refuse(&mut self, target: Target) {
        self.change_version();
        self.dirty.remove(&target);
        self.refused.insert(target);
    }

    /// Returns the number of entries that the switch refuses.
    pub fn refused_len(&self) -> usize {
        self.refused.len()
    }

    /// Reports whether no change is pending.
    pub fn is_in_sync(&self) -> bool {
        self.dirty.is_empty() && !self.is_held
    }

    /// Returns the pending changes of meters, which must precede rules that refer to them.
    pub fn next_meters(&mut self) -> Option<(Change, Difference)> {
        self.next(|target| matches!(target, Target::Meter(_)))
    }

    /// Returns the pending changes of groups and rules: first deletions of rules, then groups, then
    /// additions.
    pub fn next_rules(&mut self) -> Option<(Change, Difference)> {
        self.next(|target| !matches!(target, Target::Meter(_)))
    }

    fn next(&mut self, is_chosen: impl Fn(&Target) -> bool) -> Option<(Change, Difference)> {
        let mut chosen: Vec<Target> = self.dirty.iter().filter(|target| is_chosen(target)).cloned().collect();
        // If one change has no room for all, groups precede the rules that refer to them when
        // added, and follow them when deleted.
        chosen.sort_by_key(|target| !matches!(target, Target::Group(group) if self.wanted.groups.contains_key(group)));
        let mut difference = Difference::default();
        let mut ordered: Vec<(u8, Message, Target)> = Vec::new();
        for target in chosen {
            if ordered.len() >= MESSAGES_MAX {
                break;
            }
            if self.refused.contains(&target) {
                self.dirty.remove(&target);
                continue;
            }
            let Some((order, message)) = self.message(&target, &mut difference) else { continue };
            self.dirty.remove(&target);
            ordered.extend(message.map(|message| (order, message, target)));
        }
        if ordered.is_empty() {
            return None;
        }
        self.change_version();
        ordered.sort_by_key(|(order, ..)| *order);
        let mut change = Change::default();
        for (_, message, target) in ordered {
            self.under_way.insert(target.clone());
            change.after.copy(&self.wanted, &target);
            change.messages.push(message);
            change.targets.push(target);
        }
        Some((change, difference))
    }

    /// Returns the message that turns an entry into the wanted one with its position in the order.
    /// There is no message if the entry is in place; the result is `None` while the entry must stay
    /// unchanged.
    fn message(&self, target: &Target, difference: &mut Difference) -> Option<(u8, Option<Message>)> {
        let (has, wants, is_same) = match target {
            Target::Flow(key) => {
                let (has, wants) = (self.actual.flows.get(key), self.wanted.flows.get(key));
                (has.is_some(), wants.is_some(), has.zip(wants).is_some_and(|(has, wants)| is_same_flow(has, wants)))
            }
            Target::Group(group) => {
                let (has, wants) = (self.actual.groups.get(group), self.wanted.groups.get(group));
                (has.is_some(), wants.is_some(), has == wants)
            }
            Target::Meter(meter) => {
                let (has, wants) = (self.actual.meters.get(meter), self.wanted.meters.get(meter));
                (has.is_some(), wants.is_some(), has == wants)
            }
        };
        if is_same || (!has && !wants) {
            return Some((0, None));
        }
        if self.is_held && (has || !self.is_base(target)) {
            return None;
        }
        match (has, wants) {
            (true, true) => difference.changed += 1,
            (true, false) => difference.deleted += 1,
            _ => difference.added += 1,
        }
        Some(match target {
            Target::Flow(key) => match self.wanted.flows.get(key) {
                // An addition replaces a rule with the same match and priority.
                Some(flow) => (2, Some(Message::FlowMod(flow.clone()))),
                None => (0, self.actual.flows.get(key).map(deletion)),
            },
            Target::Group(group) => {
                let command = if has { GroupCommand::Modify } else { GroupCommand::Add };
                match self.wanted.groups.get(group) {
                    Some(wanted) => (1, Some(Message::GroupMod(GroupMod { command, ..wanted.clone() }))),
                    // Sent after the additions, since a replaced rule may refer to the group until
                    // then.
                    None => (3, self.actual.groups.get(group).map(deleted_group)),
                }
            }
            Target::Meter(meter) => {
                let command = if has { MeterCommand::Modify } else { MeterCommand::Add };
                match self.wanted.meters.get(meter) {
                    Some(wanted) => (1, Some(Message::MeterMod(MeterMod { command, ..wanted.clone() }))),
                    None => (3, self.actual.meters.get(meter).map(deleted_meter)),
                }
            }
        })
    }

    /// Reports whether an entry depends neither on links nor on hosts.
    fn is_base(&self, target: &Target) -> bool {
        match target {
            Target::Flow(key) => {
                let kinds = [Kind::Base.cookie(), Kind::Isolation.cookie()];
                self.wanted.flows.get(key).is_some_and(|flow| kinds.contains(&flow.cookie))
            }
            // A missing group is created empty or with the wanted buckets; only a base rule refers
            // to it.
            Target::Group(_) | Target::Meter(_) => true,
        }
    }

    /// Updates the tables after the switch has executed a change.
    pub fn applied(&mut self, change: Change) {
        self.change_version();
        for target in &change.targets {
            self.under_way.remove(target);
            self.actual.copy(&change.after, target);
        }
    }
}

/// Reports whether two rules have the same effect. Counters and flags that only exist in a FLOW_MOD
/// are ignored.
fn is_same_flow(a: &FlowMod, b: &FlowMod) -> bool {
    (a.cookie, a.idle_timeout, a.hard_timeout, &a.instructions)
        == (b.cookie, b.idle_timeout, b.hard_timeout, &b.instructions)
}

fn deletion(flow: &FlowMod) -> Message {
    let FlowMod { table, priority, matching, .. } = flow.clone();
    let command = FlowCommand::DeleteStrict;
    Message::FlowMod(FlowMod { command, table, priority, matching, ..FlowMod::default() })
}

fn deleted_group(group: &GroupMod) -> Message {
    let (command, buckets) = (GroupCommand::Delete, Vec::new());
    Message::GroupMod(GroupMod { command, buckets, ..group.clone() })
}

fn deleted_meter(meter: &MeterMod) -> Message {
    Message::MeterMod(MeterMod { command: MeterCommand::Delete, flags: 0, meter: meter.meter, bands: Vec::new() })
}
