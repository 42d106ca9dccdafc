//! State of a lab that another process made.

use serde::Serialize;
use takt_netlink::interface_index;

use crate::error::Result;
use crate::file::SWITCHES;
use crate::lab::{check_root, host_not_found};
use crate::namespace::Namespace;
use crate::open_vswitch;
use crate::process::{self, Process};
use crate::record::Record;

/// State of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Name of the lab.
    pub name: String,
    /// Whether the lab is complete. If not, a process is making it, or was killed while it did.
    pub is_complete: bool,
    /// Whether the process that makes it, or made it, runs.
    pub has_builder: bool,
    /// Hosts, and `switches`.
    #[serde(rename = "places")]
    pub nodes: Vec<NodeStatus>,
    /// Switches.
    pub switches: Vec<SwitchStatus>,
}

/// Namespace of a host, or of the switches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    /// Name of the host, or `switches`.
    pub name: String,
    /// Name of the namespace for `ip netns`.
    pub namespace: String,
    /// Whether the namespace exists.
    #[serde(rename = "is_there")]
    pub exists: bool,
    /// IDs of the processes in it.
    pub processes: Vec<i32>,
}

/// State of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SwitchStatus {
    /// Name of the switch.
    pub name: String,
    /// Whether the switch exists: Open vSwitch answers and has it, or the kernel has the bridge.
    #[serde(rename = "is_there")]
    pub exists: bool,
    /// Controllers, and whether each is connected.
    pub controllers: Vec<(String, bool)>,
}

impl Status {
    /// Returns the names of all labs of this machine.
    pub fn names() -> Vec<String> {
        Record::names()
    }

    /// Reads the state of a lab.
    ///
    /// # Errors
    /// No lab of that name exists, or the caller is not root.
    pub fn read(name: &str) -> Result<Self> {
        check_root()?;
        let record = Record::read(name)?;
        let node = |(name, namespace): &(String, String)| {
            let found = Namespace::with_inode(namespace);
            let inodes: Vec<_> = found.iter().map(|(_, inode)| *inode).collect();
            let processes = process::in_namespaces(&inodes).iter().map(|process| process.pid).collect();
            NodeStatus { name: name.clone(), namespace: namespace.clone(), exists: found.is_some(), processes }
        };
        // Without an answer of Open vSwitch, its switches count as missing.
        let mut database = open_vswitch::database(&Record::directory(name)).ok(); // tidy-allow(dropped-cause): exists says it
        let switch = |name: &String| {
            let controllers = database.as_mut().and_then(|database| database.controllers(name).ok()); // tidy-allow(dropped-cause): as above
            let pairs = |all: Vec<takt_ovsdb::open_vswitch::ControllerState>| {
                all.into_iter().map(|one| (one.target, one.is_connected)).collect()
            };
            let exists = controllers.is_some();
            SwitchStatus { name: name.clone(), exists, controllers: controllers.map(pairs).unwrap_or_default() }
        };
        let switches = record.namespaces.iter().find(|(node, _)| node == SWITCHES);
        let switches = switches.and_then(|(_, name)| Namespace::open(name).ok()); // tidy-allow(dropped-cause): exists says it
        let bridge = |name: &String| {
            let is_in = |namespace: &Namespace| namespace.run(|| interface_index(name).is_ok()).unwrap_or(false);
            let exists = switches.as_ref().is_some_and(is_in);
            SwitchStatus { name: name.clone(), exists, controllers: Vec::new() }
        };
        Ok(Self {
            name: record.name.clone(),
            is_complete: record.is_complete,
            has_builder: Process::of(record.builder.pid) == Some(record.builder),
            nodes: record.namespaces.iter().map(node).collect(),
            switches: record.switches.iter().map(switch).chain(record.bridges.iter().map(bridge)).collect(),
        })
    }

    /// Opens the namespace of a host of a running lab.
    ///
    /// # Errors
    /// There is no such lab or host, or its namespace is gone.
    pub fn namespace(name: &str, node: &str) -> Result<Namespace> {
        check_root()?;
        let record = Record::read(name)?;
        let found = record.namespaces.iter().find(|(known, _)| known == node);
        let (_, namespace) = found.ok_or_else(|| host_not_found(&record, node))?;
        Namespace::open(namespace).map_err(crate::Error::os(format!("open the network namespace {namespace}")))
    }
}
