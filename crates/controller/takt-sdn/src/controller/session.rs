//! Session of one switch connection: handshake, reading of the switch's state, and outstanding
//! changes.

use std::collections::BTreeMap;
use std::time::Duration;

use takt_openflow::bundle::bundle_flags::{ATOMIC, ORDERED};
use takt_openflow::cause::{BadRequest, Cause, ErrorMessage};
use takt_openflow::channel::{
    Controller as Channel, ControllerConfig, Failure, Instant, OperationId, Outcome, SendError,
};
use takt_openflow::group::GroupDesc;
use takt_openflow::meter::{MeterConfig, MeterStats};
use takt_openflow::multipart::{FlowRequest, FlowStats, MultipartRequest, QueueRequest, ReplyBody, RequestBody};
use takt_openflow::port::{Port, PortStats};
use takt_openflow::queue::QueueStats;
use takt_openflow::switch::{ControllerRole, RoleMessage};
use takt_openflow::value::{GROUP_ALL, METER_ALL, PortNo, QUEUE_ALL};
use takt_openflow::{Message, Version, Versions};

use super::sync::{Change, Difference, Sync, Tables, Target};

/// Number of consecutive failed changes after which the connection is closed.
const FAILURES_MAX: usize = 32;

/// Purpose of an operation of the channel.
enum Pending {
    Role,
    Ports,
    Flows,
    Groups,
    Meters,
    Change { change: Change, is_bundle: bool },
}

/// Kind of requested counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Poll {
    Ports,
    Queues,
    Meters,
}

/// Reply to a request for counters.
pub(super) enum Polled {
    /// Counters of ports.
    Ports(Vec<PortStats>),
    /// Counters of queues.
    Queues(Vec<QueueStats>),
    /// Counters of meters.
    Meters(Vec<MeterStats>),
    /// The switch refused the request, sent another reply, or did not answer in time.
    Failed,
}

/// State of a switch that has been read so far.
#[derive(Default)]
struct Reading {
    ports: Option<Vec<Port>>,
    flows: Option<Vec<FlowStats>>,
    groups: Option<Vec<GroupDesc>>,
    meters: Option<Vec<MeterConfig>>,
}

/// Result of progress in a session.
pub(super) enum Progress {
    /// The state of the switch has been read.
    Read {
        /// Its ports.
        ports: Vec<Port>,
        /// Its tables.
        tables: Tables,
    },
    /// The switch refused parts of a change.
    Refused(Vec<(Target, ErrorMessage)>),
    /// A change was executed.
    Changed,
    /// The switch returned counters.
    Polled(Polled),
    /// The switch granted the requested role, or refused it for a reason.
    Role(Result<(), String>),
    /// The connection is unusable.
    Failed(String),
}

/// Session of one connection.
pub(super) struct Session {
    pub channel: Channel,
    /// Datapath id, after the handshake.
    pub dpid: Option<u64>,
    /// Whether the switch has sent octets that have not been read yet.
    pub is_behind: bool,
    /// Whether the switch has meters.
    pub has_meters: bool,
    has_bundles: bool,
    is_read: bool,
    reading: Reading,
    operations: BTreeMap<OperationId, Pending>,
    /// Outstanding requests for counters. Changes do not wait for them.
    polls: BTreeMap<OperationId, Poll>,
    has_queue_counters: bool,
    failures: usize,
    timeout: Duration,
}

impl Session {
    pub fn new(now: Instant, timeout: Duration) -> Self {
        let versions = Versions::of(&[Version::V1_3, Version::V1_4]);
        Self {
            channel: Channel::new(now, ControllerConfig { versions, ..ControllerConfig::default() }),
            dpid: None,
            is_behind: false,
            has_meters: true,
            has_bundles: true,
            is_read: false,
            reading: Reading::default(),
            operations: BTreeMap::new(),
            polls: BTreeMap::new(),
            has_queue_counters: true,
            failures: 0,
            timeout,
        }
    }

    /// Reports whether the state of the switch is known and no change is outstanding.
    pub fn is_idle(&self) -> bool {
        self.is_read && self.operations.is_empty()
    }

    /// Requests a role; nothing else is sent before the switch answers.
    pub fn request(&mut self, now: Instant, role: ControllerRole, generation: u64) -> Result<(), SendError> {
        let request = Message::RoleRequest(RoleMessage { role, short_id: 0, generation });
        let operation = self.channel.request(now, self.timeout, &request)?;
        self.operations.insert(operation, Pending::Role);
        Ok(())
    }

    /// Requests ports, rules, groups and meters of the switch.
    pub fn read(&mut self, now: Instant) -> Result<(), SendError> {
        self.is_read = false;
        self.reading = Reading::default();
        for (body, pending) in [
            (RequestBody::PortDesc(PortNo::ANY), Pending::Ports),
            (RequestBody::Flow(FlowRequest::default()), Pending::Flows),
            (RequestBody::GroupDesc(GROUP_ALL), Pending::Groups),
            (RequestBody::MeterConfig(METER_ALL), Pending::Meters),
        ] {
            let request = Message::MultipartRequest(MultipartRequest::new(body));
            let operation = self.channel.request(now, self.timeout, &request)?;
            self.operations.insert(operation, pending);
        }
        Ok(())
    }

    /// Requests the counters of ports, queues and meters that the switch has, unless a request is
    /// outstanding. Reports whether it was sent.
    pub fn poll(&mut self, now: Instant, has_queues: bool) -> Result<bool, SendError> {
        if !self.polls.is_empty() || !self.is_read {
            return Ok(false);
        }
        let queues = QueueRequest { port: PortNo::ANY, queue: QUEUE_ALL };
        for (body, poll, is_wanted) in [
            (RequestBody::Port(PortNo::ANY), Poll::Ports, true),
            (RequestBody::Queue(queues), Poll::Queues, has_queues && self.has_queue_counters),
            (RequestBody::Meter(METER_ALL), Poll::Meters, self.has_meters),
        ] {
            if is_wanted {
                let request = Message::MultipartRequest(MultipartRequest::new(body));
                let operation = self.channel.request(now, self.timeout, &request)?;
                self.polls.insert(operation, poll);
            }
        }
        Ok(true)
    }

    /// Handles the end of a request for counters.
    fn polled(&mut self, poll: Poll, outcome: Outcome) -> Option<Progress> {
        Some(Progress::Polled(match (poll, outcome) {
            // The end of the connection itself reports lost operations.
            (_, Outcome::Lost(_)) => return None,
            (Poll::Ports, Outcome::Multipart(ReplyBody::Port(ports))) => Polled::Ports(ports),
            (Poll::Queues, Outcome::Multipart(ReplyBody::Queue(queues))) => Polled::Queues(queues),
            (Poll::Meters, Outcome::Multipart(ReplyBody::Meter(meters))) => Polled::Meters(meters),
            (Poll::Queues, Outcome::Failed(_)) => {
                self.has_queue_counters = false;
                Polled::Failed
            }
            _ => Polled::Failed,
        }))
    }

    /// Sends the next part of the difference, if no change is outstanding. Returns its size.
    pub fn change(&mut self, now: Instant, sync: &mut Sync) -> Result<Option<Difference>, SendError> {
        if !self.is_idle() {
            return Ok(None);
        }
        let (change, difference, is_bundle) = match sync.next_meters() {
            Some((change, difference)) => (change, difference, false),
            None => match sync.next_rules() {
                Some((change, difference)) => (change, difference, self.has_bundles),
                None => return Ok(None),
            },
        };
        let operation = if is_bundle {
            self.channel.bundle(now, self.timeout, ATOMIC | ORDERED, change.messages.clone())?
        } else {
            self.channel.transaction(now, self.timeout, &change.messages)?
        };
        self.operations.insert(operation, Pending::Change { change, is_bundle });
        Ok(Some(difference))
    }

    /// Handles the end of an operation.
    pub fn completed(&mut self, operation: OperationId, outcome: Outcome, sync: Option<&mut Sync>) -> Option<Progress> {
        if let Some(poll) = self.polls.remove(&operation) {
            return self.polled(poll, outcome);
        }
        let pending = self.operations.remove(&operation)?;
        match (pending, outcome) {
            // The end of the connection itself reports lost operations.
            (_, Outcome::Lost(_)) => None,
            (Pending::Role, Outcome::Reply(_)) => Some(Progress::Role(Ok(()))),
            (Pending::Role, Outcome::Failed(failures)) => {
                let why = failures.first().map_or_else(String::new, |failure| failure.error.cause.to_string());
                Some(Progress::Role(Err(why)))
            }
            (Pending::Ports, Outcome::Multipart(ReplyBody::PortDesc(ports))) => {
                self.reading.ports = Some(ports);
                self.end_reading()
            }
            (Pending::Flows, Outcome::Multipart(ReplyBody::Flow(flows))) => {
                self.reading.flows = Some(flows);
                self.end_reading()
            }
            (Pending::Groups, Outcome::Multipart(ReplyBody::GroupDesc(groups))) => {
                self.reading.groups = Some(groups);
                self.end_reading()
            }
            (Pending::Meters, Outcome::Multipart(ReplyBody::MeterConfig(meters))) => {
                self.reading.meters = Some(meters);
                self.end_reading()
            }
            (Pending::Meters, Outcome::Failed(_)) => {
                self.has_meters = false;
                self.reading.meters = Some(Vec::new());
                self.end_reading()
            }
            (Pending::Change { change, .. }, Outcome::Done) => {
                self.failures = 0;
                sync?.applied(change);
                Some(Progress::Changed)
            }
            (Pending::Change { change, is_bundle }, Outcome::Failed(failures)) => {
                Some(self.refused(change, is_bundle, failures, sync?))
            }
            (_, outcome) => Some(Progress::Failed(format!("the switch did not execute the request: {outcome:?}"))),
        }
    }

    fn refused(&mut self, change: Change, is_bundle: bool, failures: Vec<Failure>, sync: &mut Sync) -> Progress {
        self.failures += 1;
        let is_slave = |failure: &Failure| failure.error.cause == Cause::BadRequest(BadRequest::IsSlave);
        if failures.iter().any(is_slave) {
            return Progress::Failed("another controller is master of the switch".to_owned());
        }
        let named = |failure: Failure| Some((change.targets.get(failure.message?)?.clone(), failure.error));
        let first = failures.first().map(|failure| failure.error.cause);
        let refused: Vec<(Target, ErrorMessage)> = failures.into_iter().filter_map(named).collect();
        if refused.is_empty() && is_bundle {
            self.has_bundles = false;
        } else if refused.is_empty() || self.failures > FAILURES_MAX {
            let why = first.map_or_else(String::new, |cause| cause.to_string());
            return Progress::Failed(format!("the switch refuses changes: {why}"));
        }
        for (target, _) in &refused {
            sync.refuse(target.clone());
        }
        // The tables are read again to find out which messages of a transaction were executed.
        self.is_read = false;
        Progress::Refused(refused)
    }

    fn end_reading(&mut self) -> Option<Progress> {
        let Reading { ports: Some(_), flows: Some(_), groups: Some(_), meters: Some(_) } = &self.reading else {
            return None;
        };
        let Reading { ports, flows, groups, meters } = std::mem::take(&mut self.reading);
        self.is_read = true;
        let tables = Tables::of_switch(flows?, groups?, meters?);
        Some(Progress::Read { ports: ports?, tables })
    }
}
