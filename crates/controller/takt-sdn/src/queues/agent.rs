//! Agent for the queues of ports: their actual and wanted state.

use std::fmt;
use std::sync::Arc;

use takt_ovsdb::OpenVSwitch;
use takt_ovsdb::open_vswitch::Qos;

use super::{Counters, Method, QueueError, Target, Wanted, database, kernel, wanted};
use crate::PortRef;
use crate::model::{NetworkFile, SwitchModel};

/// State of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The port has only the kernel's default discipline.
    Missing,
    /// The port has the queues of the model.
    AsWanted,
    /// The port has queues that an agent created with other settings.
    Different,
    /// The port has a discipline that another program created.
    Foreign(String),
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no queues"),
            Self::AsWanted => f.write_str("queues of the model"),
            Self::Different => f.write_str("different queues of takt"),
            Self::Foreign(kind) => write!(f, "queues of another program: {kind}"),
        }
    }
}

/// Change of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing changed.
    None,
    /// Queues were created.
    Made,
    /// Queues were replaced.
    Replaced,
    /// Queues were removed.
    Removed,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "unchanged",
            Self::Made => "made",
            Self::Replaced => "replaced",
            Self::Removed => "removed",
        })
    }
}

/// A port of a switch in the network file.
#[derive(Debug, Clone)]
pub struct Port {
    /// Identity of the port.
    pub target: Target,
    /// Model of its switch.
    pub model: Arc<SwitchModel>,
    /// Rate in bit/s.
    pub rate_bps: u64,
    /// Wanted queues.
    pub wanted: Wanted,
    /// Actual state.
    pub state: State,
}

/// Agent for the queues of ports. See the [module](self).
#[derive(Debug)]
pub struct Agent {
    network: NetworkFile,
    by: Method,
    rest_frames: u32,
    database: Option<OpenVSwitch>,
    targets: Vec<Target>,
}

impl Agent {
    /// Creates an agent for the named ports and those of the database. [`Method::Ovsdb`] requires a
    /// database.
    ///
    /// # Errors
    /// The database does not answer; [`QueueError::NoPort`].
    pub fn new(
        network: NetworkFile,
        by: Method,
        rest_frames: u32,
        named: Vec<Target>,
        mut database: Option<OpenVSwitch>,
    ) -> Result<Self, QueueError> {
        let mut targets = named;
        if let Some(database) = &mut database {
            let found = database::targets(database)?;
            // A port that is also named is found in the database by its interface.
            targets.retain(|named| !found.iter().any(|found| found.interface == named.interface));
            targets.extend(found);
        }
        targets.retain(|target| network.describe(PortRef::new(target.dpid, target.port)).is_some());
        targets.sort();
        if targets.is_empty() {
            return Err(QueueError::NoPort);
        }
        Ok(Self { network, by, rest_frames, database, targets })
    }

    /// Returns the ports with their state. Changes nothing.
    ///
    /// # Errors
    /// [`QueueError::Model`]; the kernel or the database does not answer.
    pub fn ports(&mut self) -> Result<Vec<Port>, QueueError> {
        let mut ports = Vec::new();
        for target in self.targets.clone() {
            let Some((model, rate_bps)) = self.network.describe(PortRef::new(target.dpid, target.port)) else {
                continue;
            };
            let wanted = wanted(self.by, &model, rate_bps, self.rest_frames)?;
            let state = self.state(&target, &wanted)?;
            ports.push(Port { target, model, rate_bps, wanted, state });
        }
        Ok(ports)
    }

    fn state(&mut self, target: &Target, wanted: &Wanted) -> Result<State, QueueError> {
        match wanted {
            Wanted::Tree(tree) => {
                let of_kernel = kernel::state(target, tree)?;
                let Some((database, port)) = self.database.as_mut().zip(target.ovs_port.as_deref()) else {
                    return Ok(of_kernel);
                };
                // Without the row, Open vSwitch removes the tree when it starts. With another row,
                // the discipline belongs to Open vSwitch.
                Ok(match database::reservation(database, port)? {
                    State::AsWanted => of_kernel,
                    State::Missing if of_kernel == State::AsWanted => State::Different,
                    State::Missing => of_kernel,
                    other => other,
                })
            }
            Wanted::Qos(qos) => {
                let Some((database, port)) = self.database.as_mut().zip(target.ovs_port.as_deref()) else {
                    return Err(QueueError::NoPort);
                };
                database::state(database, port, qos)
            }
        }
    }

    /// Gives each port the queues of its model, and verifies them. After an error, queues that this
    /// call created on ports without queues are removed.
    ///
    /// # Errors
    /// [`QueueError::Foreign`] if a port has a discipline that no agent created, unless it may be
    /// replaced; all errors of [`ports`](Self::ports).
    pub fn apply(&mut self, may_replace: bool) -> Result<Vec<(Port, Change)>, QueueError> {
        let ports = self.ports()?;
        let foreign = ports.iter().filter_map(|port| match &port.state {
            State::Foreign(kind) => Some((port.target.clone(), kind.clone())),
            _ => None,
        });
        let foreign: Vec<_> = foreign.collect();
        if !may_replace && !foreign.is_empty() {
            return Err(QueueError::Foreign(foreign));
        }
        let mut done: Vec<(Port, Change)> = Vec::new();
        for port in ports {
            let change = match port.state {
                State::AsWanted => Change::None,
                State::Missing => Change::Made,
                State::Different | State::Foreign(_) => Change::Replaced,
            };
            if change != Change::None
                && let Err(error) = self.make(&port)
            {
                let made = done.iter().filter(|(_, change)| *change == Change::Made).map(|(port, _)| port);
                for port in made.chain((change == Change::Made).then_some(&port)) {
                    // The first error is reported.
                    drop(self.remove(&port.target));
                }
                return Err(error);
            }
            done.push((Port { state: State::AsWanted, ..port }, change));
        }
        Ok(done)
    }

    fn make(&mut self, port: &Port) -> Result<(), QueueError> {
        let Port { target, wanted, .. } = port;
        let mut row = self.database.as_mut().zip(target.ovs_port.as_deref());
        match wanted {
            Wanted::Tree(tree) => {
                // The row comes first, since Open vSwitch may remove a discipline while it changes
                // its own.
                if let Some((database, port)) = &mut row
                    && database::reservation(database, port)? != State::AsWanted
                {
                    database::make(database, port, &Qos::Noop)?;
                }
                kernel::make(target, tree)?;
            }
            Wanted::Qos(qos) => {
                let Some((database, port)) = row else { return Err(QueueError::NoPort) };
                database::make(database, port, qos)?;
            }
        }
        match self.state(target, wanted)? {
            State::AsWanted => Ok(()),
            _ => Err(QueueError::NotAsMade(target.clone())),
        }
    }

    /// Removes everything that agents created, trees of the kernel and rows of the database,
    /// independent of the method of this agent. Other disciplines stay.
    ///
    /// # Errors
    /// The kernel or the database does not answer.
    pub fn revert(&mut self) -> Result<Vec<(Target, Change)>, QueueError> {
        let mut done = Vec::new();
        for target in self.targets.clone() {
            let change = if self.remove(&target)? { Change::Removed } else { Change::None };
            done.push((target, change));
        }
        Ok(done)
    }

    fn remove(&mut self, target: &Target) -> Result<bool, QueueError> {
        let is_tree = kernel::is_own(target)?;
        if is_tree {
            kernel::remove(target)?;
        }
        let row = self.database.as_mut().zip(target.ovs_port.as_deref());
        let is_row = row.map_or(Ok(false), |(database, port)| database::remove(database, port))?;
        Ok(is_tree || is_row)
    }

    /// Returns the counters of each class of a port, in the order of its tree; empty for queues
    /// that Open vSwitch created.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn counters(&self, port: &Port) -> Result<Vec<Counters>, QueueError> {
        match &port.wanted {
            Wanted::Tree(tree) => kernel::counters(&port.target, tree.classes.len()),
            Wanted::Qos(_) => Ok(Vec::new()),
        }
    }
}
