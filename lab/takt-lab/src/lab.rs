//! Running network: creation, use and removal.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use crate::buffers::{self, RaisedBufferSizes};
use crate::error::{Error, Result};
use crate::file::{LabFile, SWITCHES};
use crate::namespace::Namespace;
use crate::open_vswitch::{self, Switches};
use crate::plan::Plan;
use crate::preflight::{self, Check, Outcome, RECEIVE_OCTETS, SEND_OCTETS};
use crate::process::{self, Process};
use crate::record::{Claim, Record};
use crate::wiring::{self, Namespaces};

/// Running lab. Dropping it removes the network, unless it is [kept](Self::keep).
#[derive(Debug)]
pub struct Lab {
    file: LabFile,
    plan: Plan,
    record: Record,
    directory: PathBuf,
    pub(crate) namespaces: Namespaces,
    pub(crate) switches: Option<Switches>,
    checks: Vec<Check>,
}

/// Checks that the caller is root.
pub(crate) fn check_root() -> Result<()> {
    if geteuid().is_root() { Ok(()) } else { Err(Error::NotRoot) }
}

impl Lab {
    /// Checks that this user and this machine can create a network: root, and Open vSwitch if the
    /// network has switches of that kind. Changes nothing.
    ///
    /// # Errors
    /// The file does not describe a valid network, or a prerequisite is missing; the error names
    /// it.
    pub fn check_possible(file: &LabFile) -> Result<()> {
        let plan = Plan::new(file)?;
        check_root()?;
        if plan.bridges.is_empty() { Ok(()) } else { open_vswitch::check_installed() }
    }

    /// Creates a network, and checks it. First removes labs that were owned by processes that were
    /// killed.
    ///
    /// # Errors
    /// The file does not describe a valid network, the machine cannot create it, a lab of that name
    /// exists, or a check failed. In each case the partial network is removed.
    pub fn up(file: &LabFile) -> Result<Self> {
        Self::check_possible(file)?;
        let plan = Plan::new(file)?;
        Self::remove_abandoned()?;
        let record = Record {
            name: file.name.clone(),
            builder: Process::own(),
            is_complete: false,
            is_owned: true,
            namespaces: Plan::namespaces(file).into_iter().collect(),
            switches: plan.bridges.iter().map(|bridge| bridge.name.clone()).collect(),
            bridges: plan.kernel_bridges.clone(),
        };
        let directory = record.create()?;
        let mut lab = Self {
            file: file.clone(),
            plan,
            record,
            directory,
            namespaces: Namespaces::new(),
            switches: None,
            checks: Vec::new(),
        };
        lab.make()?;
        Ok(lab)
    }

    fn make(&mut self) -> Result<()> {
        for (node, name) in &self.record.namespaces {
            let made = Namespace::create(name).map_err(Error::os(format!("create the network namespace {name}")))?;
            self.namespaces.insert(node.clone(), made);
        }
        wiring::add_bridges(&self.namespaces, &self.plan)?;
        for link in &self.plan.links {
            wiring::create_link(&self.namespaces, link, &self.plan, &self.file)?;
            if link.closes_ring {
                self.set_planned_link(link, false)?;
            }
        }
        wiring::process_carriers(&self.namespaces, &self.plan)?;
        if self.file.static_neighbors {
            wiring::add_static_neighbors(&self.namespaces, &self.plan)?;
        }
        if !self.plan.bridges.is_empty() {
            self.start_switches()?;
        }
        self.checks = self.check_datagrams()?;
        self.checks.extend(self.check()?);
        if !self.file.switch_classes {
            preflight::expect_no_classes(&mut self.checks);
        }
        let failed: Vec<_> = self.checks.iter().filter(|check| check.outcome == Outcome::Failed).cloned().collect();
        if !failed.is_empty() {
            return Err(Error::Preflight(failed));
        }
        self.connect()?;
        self.record.is_complete = true;
        self.record.update()
    }

    fn start_switches(&mut self) -> Result<()> {
        let raised = self.raise_buffers()?;
        let namespace = self.namespace(SWITCHES)?.clone();
        let switches = self.switches.insert(Switches::start(&namespace, &self.directory, self.file.switch_priority)?);
        switches.configure(&self.plan)?;
        // The disciplines are checked after a restart, which they must survive.
        switches.restart(&self.plan)?;
        restore_buffers(raised)
    }

    /// Raises the buffer sizes of new sockets above the contents of all queues.
    fn raise_buffers(&self) -> Result<RaisedBufferSizes> {
        let queues = self.plan.queue_memory(&self.file);
        let raised = RaisedBufferSizes::new(SEND_OCTETS.max(2 * queues), RECEIVE_OCTETS);
        raised.map_err(Error::os("raise net.core.wmem_default and rmem_default"))
    }

    fn connect(&mut self) -> Result<()> {
        if let Some(switches) = &mut self.switches {
            switches.connect(&self.plan)?;
        }
        for link in self.plan.links.iter().filter(|link| link.closes_ring) {
            self.set_planned_link(link, true)?;
        }
        Ok(())
    }

    fn set_planned_link(&self, link: &crate::plan::LinkPlan, is_up: bool) -> Result<()> {
        for end in &link.ends {
            let failed = Error::os(format!("set {} up or down", end.name));
            wiring::at(&self.namespaces, end, |netlink, index| netlink.set_up(index, is_up)).map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the name of the lab.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Returns the file that the lab was made from.
    pub fn file(&self) -> &LabFile {
        &self.file
    }

    /// Returns the plan: interfaces, OpenFlow ports and links.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the directory with the sockets and logs of Open vSwitch: `db.sock`, `SWITCH.mgmt`.
    pub fn directory(&self) -> &std::path::Path {
        &self.directory
    }

    /// Returns the namespace of a host, or with [`SWITCHES`] that of the switches.
    ///
    /// # Errors
    /// There is no host of that name.
    pub fn namespace(&self, node: &str) -> Result<&Namespace> {
        self.namespaces.get(node).ok_or_else(|| host_not_found(&self.record, node))
    }

    /// Returns the name of a host's namespace for `ip netns`, or with [`SWITCHES`] of that of the
    /// switches.
    ///
    /// # Errors
    /// There is no host of that name.
    pub fn namespace_name(&self, node: &str) -> Result<&str> {
        let found = self.record.namespaces.iter().find(|(known, _)| known == node);
        found.map(|(_, name)| name.as_str()).ok_or_else(|| host_not_found(&self.record, node))
    }

    /// Returns the results of the checks at the creation.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Checks the sockets of Open vSwitch and the disciplines of all links now.
    ///
    /// # Errors
    /// The kernel does not report them.
    pub fn check(&self) -> Result<Vec<Check>> {
        let queues = self.plan.queue_memory(&self.file);
        let pid = self.switches.as_ref().map(Switches::pid);
        let mut checks = preflight::sockets(&self.namespaces, &self.plan, pid, queues)?;
        checks.extend(preflight::disciplines(&self.namespaces, &self.plan, &self.file.classes)?);
        checks.extend(preflight::bridges(&self.namespaces, &self.plan)?);
        Ok(checks)
    }

    /// Sends datagrams of every class between hosts, as at the creation. The switches must forward.
    ///
    /// # Errors
    /// A socket cannot be opened, or the kernel's counters cannot be read.
    pub fn check_datagrams(&self) -> Result<Vec<Check>> {
        preflight::datagrams(&self.namespaces, &self.plan, &self.file.classes)
    }

    /// Makes all checks in a lab that another process made from this file. The switches must
    /// forward.
    ///
    /// # Errors
    /// The lab is not up or was made from another file, the caller is not root, or the kernel does
    /// not report a state.
    pub fn check_running(file: &LabFile) -> Result<Vec<Check>> {
        check_root()?;
        let plan = Plan::new(file)?;
        let record = Record::read(&file.name)?;
        let wanted = Plan::namespaces(file);
        if record.namespaces.iter().cloned().collect::<std::collections::BTreeMap<_, _>>() != wanted {
            return Err(Error::File(format!(
                "lab {} was created from another file with different hosts; use that file, or recreate the lab",
                file.name
            )));
        }
        let mut namespaces = Namespaces::new();
        for (node, name) in wanted {
            let failed = Error::os(format!("open the network namespace {name}"));
            namespaces.insert(node, Namespace::open(&name).map_err(failed)?);
        }
        let mut checks = preflight::datagrams(&namespaces, &plan, &file.classes)?;
        let pid = open_vswitch::running(&record);
        checks.extend(preflight::sockets(&namespaces, &plan, pid, plan.queue_memory(file))?);
        checks.extend(preflight::disciplines(&namespaces, &plan, &file.classes)?);
        checks.extend(preflight::bridges(&namespaces, &plan)?);
        Ok(checks)
    }

    /// Connects to the database of Open vSwitch.
    ///
    /// # Errors
    /// ovsdb-server does not answer.
    pub fn database(&self) -> Result<takt_ovsdb::OpenVSwitch> {
        open_vswitch::database(&self.directory)
    }

    /// Kills ovs-vswitchd, like a crash, and starts it again. Its flow entries are lost.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart_switches(&mut self) -> Result<()> {
        let raised = self.raise_buffers()?;
        if let Some(switches) = &mut self.switches {
            switches.restart(&self.plan)?;
        }
        restore_buffers(raised)
    }

    /// Sets both ends of a link up or down, by its index in the file.
    ///
    /// # Errors
    /// There is no such link, or the kernel refuses.
    pub fn set_link(&self, index: usize, is_up: bool) -> Result<()> {
        let link = self.plan.links.get(index);
        let missing = || Error::File(format!("lab {} has no link {index}", self.file.name));
        self.set_planned_link(link.ok_or_else(missing)?, is_up)
    }

    /// Waits until every switch is connected to its controller. Returns false if one is not
    /// connected in time.
    ///
    /// # Errors
    /// ovsdb-server does not answer.
    pub fn wait_for_controllers(&mut self, limit: Duration) -> Result<bool> {
        let mut database = self.database()?;
        let begin = Instant::now();
        loop {
            let mut are_connected = true;
            for bridge in self.plan.bridges.iter().filter(|bridge| bridge.controller.is_some()) {
                are_connected &= database.controllers(&bridge.name)?.iter().all(|one| one.is_connected);
            }
            if are_connected || begin.elapsed() > limit {
                return Ok(are_connected);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Leaves the lab up when this value is dropped, and when this process ends.
    /// [`down`](Self::down) removes it.
    ///
    /// # Errors
    /// The record cannot be written; the lab is removed then.
    pub fn keep(mut self) -> Result<()> {
        self.record.is_owned = false;
        self.record.update()?;
        // The processes of Open vSwitch continue without this one.
        self.switches = None;
        self.record.name.clear();
        Ok(())
    }

    /// Removes a complete or partial lab, also of another process: processes in its namespaces,
    /// namespaces, files.
    ///
    /// # Errors
    /// No lab of that name exists, another process is making it, or a part cannot be removed.
    /// Remaining parts stay on record.
    pub fn down(name: &str) -> Result<()> {
        check_root()?;
        let claim = Record::claim(name)?.ok_or_else(|| Error::LabNotFound(name.to_owned()))?;
        let Record { is_complete, builder, .. } = claim.record;
        if !is_complete && builder != Process::own() && builder.is_alive() {
            return Err(Error::Building { lab: name.to_owned(), pid: builder.pid });
        }
        remove(claim)?;
        Record::remove_drafts()
    }

    /// Removes the labs whose owner was killed while it made or used them, and restores the
    /// machine's settings if such a process left them changed. [`up`](Self::up) calls it first.
    ///
    /// # Errors
    /// A part cannot be removed, or the caller is not root.
    pub fn remove_abandoned() -> Result<()> {
        check_root()?;
        Record::remove_drafts()?;
        let is_abandoned = |record: &Record| record.is_owned && !record.builder.is_alive();
        for name in Record::names_of_directories() {
            match Record::read(&name) {
                Ok(record) if !is_abandoned(&record) => continue,
                // Another process removes the lab; the claim below waits for it.
                Ok(_) | Err(Error::LabNotFound(_)) => {}
                Err(error) => return Err(error),
            }
            // By then, another lab may have the name.
            if let Some(claim) = Record::claim(&name)?.filter(|claim| is_abandoned(&claim.record)) {
                remove(claim)?;
            }
        }
        buffers::restore_abandoned().map_err(Error::os("restore net.core.wmem_default and rmem_default"))
    }

    /// Removes this lab and reports failures, which a drop does not.
    ///
    /// # Errors
    /// Those of [`down`](Self::down).
    pub fn remove(mut self) -> Result<()> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<()> {
        if self.record.name.is_empty() {
            return Ok(());
        }
        // Children of this process must be waited for.
        if let Some(mut switches) = self.switches.take() {
            switches.stop()?;
        }
        self.namespaces.clear();
        if let Some(claim) = Record::claim(&self.record.name)? {
            remove(claim)?;
        }
        self.record.name.clear();
        Ok(())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // `remove` reports failures. After a failure here the record still exists, and `takt lab
        // down` finds it.
        drop(self.take_down());
    }
}

fn restore_buffers(raised: RaisedBufferSizes) -> Result<()> {
    raised.restore().map_err(Error::os("restore net.core.wmem_default and rmem_default"))
}

pub(crate) fn host_not_found(record: &Record, host: &str) -> Error {
    let hosts: Vec<_> = record.namespaces.iter().map(|(node, _)| node.as_str()).collect();
    Error::NoHost { lab: record.name.clone(), host: host.to_owned(), hosts: hosts.join(", ") }
}

fn remove(Claim { record, .. }: Claim) -> Result<()> {
    buffers::restore_abandoned().map_err(Error::os("restore net.core.wmem_default and rmem_default"))?;
    let (_namespaces, inodes): (Vec<_>, Vec<_>) =
        record.namespaces.iter().filter_map(|(_, name)| Namespace::with_inode(name)).unzip();
    process::end_all(&inodes).map_err(Error::os(format!("end the processes of lab {}", record.name)))?;
    for (_, name) in &record.namespaces {
        Namespace::remove(name).map_err(Error::os(format!("remove the network namespace {name}")))?;
    }
    Record::remove(&record.name)
}
