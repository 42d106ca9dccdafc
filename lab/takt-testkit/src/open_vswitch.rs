//! Open vSwitch for one test: a database and a switch with a separate directory, in the namespace
//! of the starting thread.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Database and switch processes, ended by their ids on drop. A test first checks
/// [`open_vswitch`](crate::require::open_vswitch).
pub struct OpenVSwitch {
    directory: PathBuf,
    processes: Vec<Child>,
}

impl OpenVSwitch {
    /// Starts `ovsdb-server` with an empty database, and `ovs-vswitchd` without a kernel datapath.
    pub fn start() -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("takt-test-ovs-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the directory for temporary files can be written");
        let mut started = Self { directory, processes: Vec::new() };
        let file = started.path("conf.db");
        let schema = "/usr/share/openvswitch/vswitch.ovsschema";
        let created = started.command("ovsdb-tool").arg("create").arg(&file).arg(schema).status();
        assert!(created.expect("the program is installed").success());
        let socket = started.database().display().to_string();
        started.spawn("ovsdb-server", &[&file.display().to_string(), &format!("--remote=punix:{socket}")]);
        started.spawn("ovs-vswitchd", &["--disable-system", &format!("unix:{socket}")]);
        started
    }

    /// Returns the path of one of their files, such as the socket of a bridge, `s1.mgmt`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns the socket of the database.
    pub fn database(&self) -> PathBuf {
        self.path("db.sock")
    }

    /// Runs `ovs-vsctl` with these words, and returns its output without quotes. It waits up to a
    /// minute for the database, and for the switch to apply the configuration, unless a word
    /// disables that.
    pub fn vsctl(&self, words: &[&str]) -> String {
        let database = format!("--db=unix:{}", self.database().display());
        let mut command = self.command("ovs-vsctl");
        command.stdout(Stdio::piped()).args(["--retry", "--timeout=60", &database]).args(words);
        let output = command.output().expect("the program is installed");
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).expect("UTF-8").trim().replace('"', "")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(variable, &self.directory);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn spawn(&mut self, program: &str, arguments: &[&str]) {
        let child = self.command(program).args(arguments).spawn();
        self.processes.push(child.expect("the program is installed"));
    }
}

impl Drop for OpenVSwitch {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            process.kill().expect("the process is a child");
            process.wait().expect("the process was killed");
        }
        std::fs::remove_dir_all(&self.directory).expect("the test created the directory");
    }
}
