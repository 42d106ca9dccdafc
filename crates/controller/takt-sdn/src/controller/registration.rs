//! Registrations in the controller: accepted, renewed, removed or expired, and admitted like
//! discovered pairs.
//!
//! The addresses are checked again against isolation and discovery when filters or discovery
//! addresses change, and whenever a refused registration is tried again. A registration that has
//! become forbidden is withdrawn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::from_slice;
use takt_openflow::channel::Instant;

use super::{ClusterRole, Controller, Event};
use crate::admission::{Admission, Application, End, Outcome};
use crate::discovery::Pair;
use crate::isolation::passes_to;
use crate::model::HostId;
use crate::registration::{
    Budget, CHANGES_AT_ONCE, CHANGES_PER_SECOND, Owner, REGISTRATIONS_MAX, Registration, RegistrationError,
    RegistrationId, Socket, State, number_of, pair_of,
};
use crate::rules::Selector;
use crate::schedule::PairStages;
use crate::store::{Records, of_kind, record};
use crate::view::LogEntry;

/// A registration with its decision.
#[derive(Debug)]
pub(super) struct Entry {
    writer: u64,
    pub(super) owner: Owner,
    pub(super) registration: Registration,
    pub(super) until: Instant,
    /// Bound, or the reason of the refusal.
    outcome: Option<Result<u64, String>>,
    /// Whether the registration was admitted before it was refused.
    was_admitted: bool,
}

/// All registrations, by number.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    entries: BTreeMap<u64, Entry>,
    last: u64,
    budgets: BTreeMap<Owner, Budget>,
    /// Whether filters or discovery addresses have changed since the registrations were checked.
    pub(super) are_stale: bool,
}

#[derive(Serialize, Deserialize)]
struct RegistrationRecord {
    writer: u64,
    owner: Owner,
    registration: Registration,
}

impl Registrations {
    pub(super) fn get(&self, pair: Pair) -> Option<&Entry> {
        self.entries.get(&number_of(pair)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (RegistrationId, Pair, &Entry)> {
        self.entries.iter().map(|(number, entry)| (RegistrationId(*number), pair_of(*number, entry.writer), entry))
    }

    /// Returns the time at which the first lease expires.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.entries.values().map(|entry| entry.until).min()
    }

    pub(super) fn records(&self, into: &mut Records) {
        for (number, Entry { writer, owner, registration, .. }) in &self.entries {
            let (writer, owner, registration) = (*writer, owner.clone(), registration.clone());
            // Numbers have a fixed length, so that the keys are in numerical order.
            let key = format!("registration/{number:020}");
            record(into, key, &RegistrationRecord { writer, owner, registration });
        }
    }

    /// Restores registrations of an earlier run, whose leases start again. Returns the number of
    /// unreadable records.
    pub(super) fn restore(&mut self, now: Instant, records: &Records) -> usize {
        let mut unreadable = 0;
        for (key, value) in of_kind(records, "registration") {
            let number = key.parse::<u64>().ok(); // tidy-allow(dropped-cause): unreadable records are counted.
            let read = from_slice::<RegistrationRecord>(value).ok(); // tidy-allow(dropped-cause): unreadable records are counted.
            match number.zip(read).filter(|(_, read)| read.registration.check().is_ok()) {
                Some((number, RegistrationRecord { writer, owner, registration })) => {
                    let until = now.after(registration.lease());
                    let entry = Entry { writer, owner, registration, until, outcome: None, was_admitted: false };
                    self.entries.insert(number, entry);
                    self.last = self.last.max(number);
                }
                None => unreadable += 1,
            }
        }
        unreadable
    }

    /// Returns the registration of an owner for the same endpoints.
    fn find(&mut self, owner: &Owner, wanted: &Registration) -> Option<(u64, &mut Entry)> {
        let mut own = self.entries.iter_mut().filter(|(_, entry)| entry.owner == *owner);
        own.find(|(_, entry)| entry.registration.has_names_of(wanted)).map(|(number, entry)| (*number, entry))
    }

    /// Returns a number for a new registration, and the number of its writer.
    fn numbers(&mut self, owner: &Owner, wanted: &Registration) -> (u64, u64) {
        self.last += 1;
        let is_of_writer = |entry: &&Entry| {
            (&entry.owner, &entry.registration.writer, &entry.registration.topic)
                == (owner, &wanted.writer, &wanted.topic)
        };
        let writer = self.entries.values().find(is_of_writer).map_or(self.last, |entry| entry.writer);
        (self.last, writer)
    }

    /// Consumes one change of an owner's budget.
    fn take_change(&mut self, now: Instant, owner: &Owner) -> Result<(), RegistrationError> {
        let budget = self.budgets.entry(owner.clone()).or_insert_with(|| Budget::new(now.0));
        if budget.take(now.0) {
            return Ok(());
        }
        Err(RegistrationError::Limit(format!(
            "{owner} exceeds {CHANGES_PER_SECOND} changes a second or {CHANGES_AT_ONCE} at once; wait, and renew \
             instead of registering again"
        )))
    }
}

impl Entry {
    /// Returns the decision, without regard to entries that are not in force yet.
    fn state(&self) -> State {
        match &self.outcome {
            None => State::Waiting,
            Some(Ok(_)) => State::Admitted,
            Some(Err(_)) if self.was_admitted => State::Withdrawn,
            Some(Err(_)) => State::Refused,
        }
    }

    pub(super) fn reason(&self) -> Option<&str> {
        self.outcome.as_ref().and_then(|outcome| outcome.as_ref().err()).map(String::as_str)
    }
}

impl Controller {
    /// Accepts a registration, or renews the lease of an identical one. Returns its id and whether
    /// it is new. [`Self::registration`] returns the decision.
    ///
    /// # Errors
    /// The registration is malformed, belongs to another owner, exceeds a limit, or uses forbidden
    /// addresses or ports.
    pub fn register(
        &mut self,
        now: Instant,
        owner: &Owner,
        wanted: Registration,
    ) -> Result<(RegistrationId, bool), RegistrationError> {
        self.now = now;
        self.require_leader()?;
        wanted.check()?;
        self.end_registrations(now);
        if let Some((number, known)) = self.registrations.find(owner, &wanted) {
            if !known.registration.is_same(&wanted) {
                let what = format!("registration {number} has these endpoints with other values; remove it first");
                return Err(RegistrationError::Conflict(what));
            }
            (known.until, known.registration) = (now.after(wanted.lease()), wanted);
            self.changes += 1;
            return Ok((RegistrationId(number), false));
        }
        if self.registrations.entries.len() >= REGISTRATIONS_MAX {
            return Err(RegistrationError::Limit(format!("the limit of {REGISTRATIONS_MAX} registrations is reached")));
        }
        self.registrations.take_change(now, owner)?;
        self.check_addresses(&wanted)?;
        self.admission.iter().try_for_each(|admission| self.check_owners(admission, owner, &wanted))?;
        let (number, writer) = self.registrations.numbers(owner, &wanted);
        let until = now.after(wanted.lease());
        let entry =
            Entry { writer, owner: owner.clone(), registration: wanted, until, outcome: None, was_admitted: false };
        self.registrations.entries.insert(number, entry);
        self.changes += 1;
        if let Some(mut admission) = self.admission.take() {
            let pair = pair_of(number, writer);
            match &mut self.restoration {
                Some(restoration) => _ = restoration.deferred.insert(pair),
                None => self.apply(&mut admission, pair),
            }
            self.admission = Some(admission);
        }
        self.process_pending(now);
        Ok((RegistrationId(number), true))
    }

    /// Removes a registration. An operator may remove those of others.
    ///
    /// # Errors
    /// The registration does not exist, it belongs to another owner, or the owner makes too many
    /// changes.
    pub fn unregister(&mut self, now: Instant, owner: &Owner, id: RegistrationId) -> Result<(), RegistrationError> {
        self.now = now;
        self.require_leader()?;
        let entry = self.registrations.entries.get(&id.0).ok_or(RegistrationError::Unknown)?;
        if entry.owner != *owner && *owner != Owner::Operator {
            return Err(RegistrationError::NotOwner(id));
        }
        self.registrations.take_change(now, owner)?;
        self.end_registration(id);
        self.process_pending(now);
        Ok(())
    }

    /// Returns the decision on a registration.
    pub fn registration(&self, id: RegistrationId) -> Option<State> {
        let entry = self.registrations.entries.get(&id.0)?;
        Some(self.registration_state(pair_of(id.0, entry.writer), entry))
    }

    pub(super) fn registration_state(&self, pair: Pair, entry: &Entry) -> State {
        let progress = self.admission.as_ref().and_then(|admission| admission.progress(pair));
        match (entry.state(), progress) {
            (State::Admitted, Some(progress)) if !progress.is_in_force => State::Installing,
            // It is tried again, and fits.
            (State::Waiting | State::Refused | State::Withdrawn, Some(_)) => State::Installing,
            (state, _) => state,
        }
    }

    fn require_leader(&self) -> Result<(), RegistrationError> {
        match self.cluster_role {
            ClusterRole::Standby { .. } => Err(RegistrationError::Standby),
            _ if self.admission.is_none() => Err(RegistrationError::NoNetwork),
            _ => Ok(()),
        }
    }

    /// Checks that isolation and discovery permit the addresses and ports of a registration.
    fn check_addresses(&self, wanted: &Registration) -> Result<(), RegistrationError> {
        for Socket { source, destination } in wanted.sockets() {
            if !passes_to(&self.filters, source, destination) {
                let what = format!("isolation: the policy denies datagrams from {source} to {destination}");
                return Err(RegistrationError::Denied(what));
            }
            let is_metatraffic = self.metatraffic.values().flatten().any(|address| *address == destination);
            if is_metatraffic || self.discovery_ports.contains(&destination.port()) {
                return Err(RegistrationError::Conflict(format!(
                    "discovery uses {destination}, and rules for samples would let it bypass the controller; give samples a port of their own"
                )));
            }
        }
        Ok(())
    }

    /// Checks that no pair of another owner uses the addresses and ports.
    fn check_owners(
        &self,
        admission: &Admission,
        owner: &Owner,
        wanted: &Registration,
    ) -> Result<(), RegistrationError> {
        for Socket { source, destination } in wanted.sockets() {
            let Some(host) = self.devices.by_address(0, source) else { continue };
            let selector = Selector {
                vlan: 0,
                sender: super::admission::model_host(host.mac),
                source,
                destination: destination.ip(),
                port: destination.port(),
            };
            let is_own = |pair: &Pair| self.registrations.get(*pair).is_some_and(|entry| entry.owner == *owner);
            let mut pairs = admission.sharers(&selector).chain(admission.uncontracted_at(&selector));
            if let Some(other) = pairs.find(|pair| !is_own(pair)) {
                let of = match self.registrations.get(other) {
                    Some(entry) => format!("a registration of {}", entry.owner),
                    None => format!("pair {other}"),
                };
                let what = format!("datagrams from {source} to {destination} belong to {of}");
                return Err(RegistrationError::Conflict(what));
            }
        }
        Ok(())
    }

    /// Returns the admission request of a registration, or its importance and the reason why it
    /// cannot be decided; `None` if it has ended.
    pub(super) fn registered_application(
        &self,
        admission: &Admission,
        pair: Pair,
    ) -> Option<Result<Application, (i32, String)>> {
        let Entry { owner, registration, .. } = self.registrations.get(pair)?;
        let importance = registration.importance;
        let build = || {
            self.check_addresses(registration).map_err(|error| error.to_string())?;
            let end = |what: &str, address| {
                let unknown = || format!("the host of the {what}, {address}, is not known");
                let host = self.devices.by_address(0, address).ok_or_else(unknown)?;
                let at = self.devices.get(host).ok_or_else(unknown)?.at;
                if self.switches.get(&at.dpid).is_none_or(|switch| !switch.has_meters) {
                    return Err(format!("switch {:016x} has no meters", at.dpid));
                }
                let host: HostId = super::admission::model_host(host.mac);
                Ok(End { host, vlan: 0, address, trailer_len: registration.overhead.into() })
            };
            let (writer, reader) = (end("writer", registration.from)?, end("reader", registration.to)?);
            if writer.host == reader.host {
                return Err("writer and reader are on one host, so that no switch carries their samples".to_owned());
            }
            self.check_owners(admission, owner, registration).map_err(|error| error.to_string())?;
            let number = number_of(pair).unwrap_or_default();
            Ok(Application {
                pair,
                name: format!("{} (registration {number})", registration.topic.escape_debug()),
                contract: registration.contract(),
                writer,
                reader,
                data_port: registration.port,
                answer_port: registration.answer_port,
                has_reliable_writer: registration.answer_port.is_some(),
                announces_groups: registration.group.is_some(),
                // The vendor is unknown, so bandwidth for path probes is reserved.
                probes_paths: true,
                groups: registration.group.into_iter().collect(),
                stages: PairStages::default(),
            })
        };
        Some(build().map_err(|reason| (importance, reason)))
    }

    /// Applies the decision on a registration.
    pub(super) fn update_registration(&mut self, now: Instant, outcome: Outcome) {
        let (pair, outcome) = match outcome {
            Outcome::Admitted { pair, bound_ns } => (pair, Ok(bound_ns)),
            Outcome::Refused { pair, reason } => (pair, Err(reason)),
            Outcome::Caution { pair, topic } => return self.push(Event::Caution { pair, topic }),
            Outcome::Protection { pair, protection } => return self.push(Event::Protection { pair, protection }),
            Outcome::Free { .. } => return,
        };
        let Some(number) = number_of(pair) else { return };
        let Some(entry) = self.registrations.entries.get_mut(&number) else { return };
        if entry.outcome.as_ref() == Some(&outcome) {
            return;
        }
        entry.was_admitted = outcome.is_ok() || entry.was_admitted;
        entry.outcome = Some(outcome.clone());
        let (state, Registration { topic, writer, reader, .. }) = (entry.state(), entry.registration.clone());
        let entry = LogEntry::new(now.0, (writer, reader), Some(topic.clone()), outcome.clone());
        self.decisions.push(entry);
        self.push(Event::Registration { id: RegistrationId(number), topic, state, outcome });
    }

    /// Ends registrations whose lease has expired, and withdraws those that isolation or discovery
    /// now forbid.
    pub(super) fn update_registrations(&mut self, now: Instant) {
        self.end_registrations(now);
        if !std::mem::take(&mut self.registrations.are_stale) {
            return;
        }
        let forbidden = self.registrations.iter().filter_map(|(_, pair, entry)| {
            let error = self.check_addresses(&entry.registration).err()?;
            Some((pair, entry.registration.importance, error.to_string()))
        });
        let forbidden: Vec<_> = forbidden.collect();
        let Some(admission) = &mut self.admission else { return };
        for (pair, importance, reason) in forbidden {
            admission.remove_pair(pair);
            admission.refuse(pair, importance, reason);
        }
        admission.retry();
    }

    fn end_registrations(&mut self, now: Instant) {
        let over = self.registrations.entries.iter().filter(|(_, entry)| now >= entry.until);
        let over: Vec<RegistrationId> = over.map(|(number, _)| RegistrationId(*number)).collect();
        for id in over {
            self.counters.registrations_expired += 1;
            self.end_registration(id);
        }
    }

    fn end_registration(&mut self, id: RegistrationId) {
        let Some(entry) = self.registrations.entries.remove(&id.0) else { return };
        self.remove_pair(pair_of(id.0, entry.writer));
        self.push(Event::RegistrationGone { id, topic: entry.registration.topic });
    }

    /// Returns the registered pairs that are to be decided after a restart.
    pub(super) fn registered_pairs(&self) -> impl Iterator<Item = Pair> {
        self.registrations.iter().map(|(_, pair, _)| pair)
    }
}

/// Reports whether a pair belongs to a registration, and is not known to discovery.
pub(super) fn is_registered(pair: Pair) -> bool {
    number_of(pair).is_some()
}
