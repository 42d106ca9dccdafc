//! Processes of Open vSwitch in the namespace of the switches: ovsdb-server, and ovs-vswitchd with
//! the datapath in user space.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use std::os::unix::process::CommandExt;
use takt_ovsdb::OpenVSwitch;
use takt_ovsdb::open_vswitch::{Bridge, FailMode, Qos};

use crate::error::{Error, Result};
use crate::file::SWITCHES;
use crate::first_frame;
use crate::namespace::Namespace;
use crate::plan::Plan;
use crate::process;
use crate::record::Record;

/// Maximum time for a process of Open vSwitch to answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Interval between two queries.
const PAUSE: Duration = Duration::from_millis(5);
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const PROTOCOLS: [&str; 4] = ["OpenFlow10", "OpenFlow13", "OpenFlow14", "OpenFlow15"];
/// Maximum pause between two attempts to reach a controller: the minimum that Open vSwitch
/// supports.
const BACKOFF: Duration = Duration::from_secs(1);

const SERVER: &str = "ovsdb-server";
const SWITCH: &str = "ovs-vswitchd";
const TOOL: &str = "ovsdb-tool";
const CONTROL: &str = "ovs-appctl";
/// Program of util-linux that sets the priority.
const CHRT: &str = "chrt";

/// Processes and database of Open vSwitch.
#[derive(Debug)]
pub struct Switches {
    namespace: Namespace,
    directory: PathBuf,
    priority: Option<u8>,
    server: Child,
    switch: Child,
    database: OpenVSwitch,
}

/// Returns the path of the database socket in a lab's directory.
pub fn socket(directory: &Path) -> PathBuf {
    directory.join("db.sock")
}

/// Connects to the database of a running lab.
pub fn database(directory: &Path) -> Result<OpenVSwitch> {
    Ok(OpenVSwitch::unix(&socket(directory), LIMIT)?)
}

/// Returns the ID of ovs-vswitchd of a lab that another process made; `None` if it does not run.
pub fn running(record: &Record) -> Option<u32> {
    let (_, name) = record.namespaces.iter().find(|(node, _)| node == SWITCHES)?;
    let (_namespace, inode) = Namespace::with_inode(name)?;
    let is_switch =
        |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|command| command.trim() == SWITCH);
    let mut pids = process::in_namespaces(&[inode]).into_iter().map(|process| process.pid);
    pids.find(is_switch).and_then(|pid| u32::try_from(pid).ok()) // tidy-allow(dropped-cause): ids are positive
}

/// Checks that Open vSwitch is installed.
pub fn check_installed() -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_installed = |name: &str| std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    match [SERVER, SWITCH, TOOL, CONTROL].into_iter().find(|name| !is_installed(name)) {
        Some(name) => Err(Error::NoProgram(name)),
        None if !Path::new(SCHEMA).exists() => Err(Error::NoProgram(SCHEMA)),
        None => Ok(()),
    }
}

impl Switches {
    /// Starts both processes, with an empty database; ovs-vswitchd has the SCHED_FIFO priority if
    /// one is given.
    pub fn start(namespace: &Namespace, directory: &Path, priority: Option<u8>) -> Result<Self> {
        let path = |name: &str| directory.join(name).display().to_string();
        let mut create = start(namespace, directory, TOOL, &["create", &path("conf.db"), SCHEMA])?;
        if !create.wait().map_err(Error::os("wait for ovsdb-tool"))?.success() {
            return Err(ended_error(directory, TOOL));
        }
        let remote = format!("--remote=punix:{}", socket(directory).display());
        let mut server = start(namespace, directory, SERVER, &[&path("conf.db"), &remote])?;
        let mut database = poll_until(directory, SERVER, &mut server, || {
            socket(directory).exists().then(|| OpenVSwitch::unix(&socket(directory), LIMIT))?.ok() // tidy-allow(dropped-cause): it is not yet listening
        })?;
        database.initialize()?;
        let switch = start_switch(namespace, directory, priority)?;
        Ok(Self { namespace: namespace.clone(), directory: directory.to_owned(), priority, server, switch, database })
    }

    /// Returns the process ID of ovs-vswitchd.
    pub fn pid(&self) -> u32 {
        self.switch.id()
    }

    /// Creates bridges and ports, without controllers. This crate configures the queueing
    /// disciplines of the ports.
    pub fn configure(&mut self, plan: &Plan) -> Result<()> {
        for bridge in &plan.bridges {
            self.database.add_bridge(&Bridge {
                name: bridge.name.clone(),
                datapath_type: "netdev".to_owned(),
                fail_mode: FailMode::Standalone,
                protocols: PROTOCOLS.map(str::to_owned).to_vec(),
                datapath_id: Some(bridge.datapath_id),
            })?;
        }
        for (interface, _) in plan.open_vswitch_ports() {
            let Some((bridge, port)) = &interface.port else { continue };
            self.database.add_port(bridge, &interface.name, Some(*port), Some(&Qos::Noop))?;
        }
        self.wait()
    }

    /// Removes the QoS row of a port.
    #[cfg(test)]
    pub fn clear_qos(&mut self, port: &str) -> Result<()> {
        self.database.clear_qos(port)?;
        self.wait()
    }

    /// Waits until ovs-vswitchd has applied the database and opened all interfaces.
    fn wait(&mut self) -> Result<()> {
        self.database.wait_until_applied()?;
        for state in self.database.interfaces()? {
            if !state.error.is_empty() {
                return Err(Error::Port { interface: state.name, why: state.error });
            }
        }
        Ok(())
    }

    /// Sets the controllers of the switches, and the fail modes given by the file.
    pub fn connect(&mut self, plan: &Plan) -> Result<()> {
        for bridge in &plan.bridges {
            self.database.set_fail_mode(&bridge.name, bridge.fail_mode)?;
            if bridge.fail_mode == FailMode::Secure {
                // A secure bridge that never had a controller would keep the flow entry by which it
                // forwarded everything.
                let nowhere = format!("unix:{}", self.directory.join("nowhere").display());
                let targets = [bridge.controller.as_ref().unwrap_or(&nowhere).as_str()];
                self.database.set_controllers(&bridge.name, &targets, BACKOFF)?;
                self.database.wait_until_applied()?;
            }
            let targets: Vec<_> = bridge.controller.iter().map(String::as_str).collect();
            self.database.set_controllers(&bridge.name, &targets, BACKOFF)?;
        }
        self.database.wait_until_applied()?;
        self.purge()
    }

    /// Deletes the cached flows of the datapath. They forward by deleted flow entries until a
    /// revalidator finds them, up to 500 ms later.
    fn purge(&self) -> Result<()> {
        let target = self.directory.join(format!("{SWITCH}.{}.ctl", self.switch.id()));
        let target = target.display().to_string();
        let mut purge = start(&self.namespace, &self.directory, CONTROL, &["--target", &target, "revalidator/purge"])?;
        match purge.wait().map_err(Error::os("wait for ovs-appctl"))?.success() {
            true => Ok(()),
            false => Err(ended_error(&self.directory, CONTROL)),
        }
    }

    /// Kills ovs-vswitchd and starts it again. Returns when the new process has applied the
    /// configuration and opened all its sockets.
    pub fn restart(&mut self, plan: &Plan) -> Result<()> {
        let failed = || Error::os("end ovs-vswitchd");
        self.switch.kill().map_err(failed())?;
        self.switch.wait().map_err(failed())?;
        self.switch = start_switch(&self.namespace, &self.directory, self.priority)?;
        self.wait()?;
        let first = plan.open_vswitch_ports().find_map(|(interface, _)| interface.port.as_ref());
        let Some((bridge, port)) = first else { return Ok(()) };
        let path = self.directory.join(format!("{bridge}.mgmt"));
        first_frame::send(&path, *port).map_err(Error::os(format!("send a frame through switch {bridge}")))
    }

    /// Ends both processes.
    pub fn stop(&mut self) -> Result<()> {
        for process in [&mut self.switch, &mut self.server] {
            process.kill().and_then(|()| process.wait()).map_err(Error::os("end a process of Open vSwitch"))?;
        }
        Ok(())
    }
}

fn start_switch(namespace: &Namespace, directory: &Path, priority: Option<u8>) -> Result<Child> {
    let mut command = match priority {
        None => Command::new(SWITCH),
        Some(priority) => {
            // chrt becomes ovs-vswitchd, which keeps the process ID and whose threads have the
            // priority.
            let mut command = Command::new(CHRT);
            command.args(["--fifo", &priority.to_string(), SWITCH]);
            command
        }
    };
    command.args(["--disable-system", &format!("unix:{}", socket(directory).display())]);
    launch(namespace, directory, SWITCH, command)
}

fn start(namespace: &Namespace, directory: &Path, program: &'static str, arguments: &[&str]) -> Result<Child> {
    let mut command = Command::new(program);
    command.args(arguments);
    launch(namespace, directory, program, command)
}

/// Starts a program of Open vSwitch, which logs to the file of its name.
fn launch(namespace: &Namespace, directory: &Path, program: &'static str, mut command: Command) -> Result<Child> {
    let failed = || Error::os(format!("start {program}"));
    let log = File::options().append(true).create(true).open(log(directory, program)).map_err(failed())?;
    let also = log.try_clone().map_err(failed())?;
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, directory);
    }
    // A process group of its own, so that signals of the terminal only reach the program that uses
    // the lab.
    command.stdin(Stdio::null()).stdout(log).stderr(also).process_group(0);
    namespace.run(|| command.spawn()).and_then(|child| child).map_err(failed())
}

fn log(directory: &Path, program: &str) -> PathBuf {
    directory.join(format!("{program}.log"))
}

/// Calls `poll` until it returns a value or the process has ended.
fn poll_until<T>(
    directory: &Path,
    program: &'static str,
    process: &mut Child,
    mut poll: impl FnMut() -> Option<T>,
) -> Result<T> {
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        if let Some(value) = poll() {
            return Ok(value);
        }
        if process.try_wait().map_err(Error::os(format!("wait for {program}")))?.is_some() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Err(ended_error(directory, program))
}

fn ended_error(directory: &Path, program: &'static str) -> Error {
    let text = std::fs::read_to_string(log(directory, program)).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    Error::SwitchEnded { program, log: lines[lines.len().saturating_sub(3)..].join("; ") }
}
