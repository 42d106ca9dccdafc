//! Network namespace with a pair of interfaces that have four queues each. It requires root.

use std::process::{Command, Output};

use takt_testkit::{not_run, require};

/// Network namespace, see the [module](self). Dropping the value removes it.
pub struct Namespace(String);

pub const FOUR_QUEUES: [&str; 4] = ["numtxqueues", "4", "numrxqueues", "4"];

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{program}: {e}"))
}

impl Namespace {
    /// Creates the namespace with `takt0` and `takt1`, up and with addresses. Without the privilege
    /// it reports the test as not run and returns `None`.
    pub fn new(name: &str) -> Option<Self> {
        let name = format!("takt-{name}-{}", std::process::id());
        require::network_namespaces().map_err(not_run).ok()?;
        let made = run("ip", &["netns", "add", &name]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let own = Self(name);
        let pair =
            [&["link", "add", "takt0"][..], &FOUR_QUEUES, &["type", "veth", "peer", "name", "takt1"], &FOUR_QUEUES];
        let added = run("ip", &[&["-n", &own.0], &pair.concat()[..]].concat());
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        // Without IPv6, the kernel sends no frames of its own.
        own.sh(
            "echo 1 > /proc/sys/net/ipv6/conf/takt0/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/takt1/disable_ipv6",
        );
        own.sh("ip link set lo up; ip link set takt0 up; ip link set takt1 up; ip address add 10.77.0.1/24 dev takt0");
        Some(own)
    }

    /// Checks with tc whether this kernel has a kind of discipline. The error names what is
    /// missing.
    pub fn has_kind(&self, kind: &str) -> Result<(), String> {
        let settings = match kind {
            "mqprio" => "mqprio num_tc 1 map 0 queues 4@0 hw 0",
            "taprio" => {
                "taprio num_tc 1 map 0 queues 4@0 base-time 0 sched-entry S 1 1000000 clockid CLOCK_TAI flags 0"
            }
            "etf" => "etf clockid CLOCK_TAI delta 1000",
            _ => panic!("{kind}"),
        };
        let line = format!("tc qdisc add dev takt1 root handle 9: {settings} && tc qdisc del dev takt1 root");
        let output = run("ip", &["netns", "exec", &self.0, "sh", "-c", &line]);
        let text = String::from_utf8_lossy(&output.stderr);
        let is_unknown = text.contains("Specified qdisc kind is unknown") || text.contains("qdisc not found");
        assert!(output.status.success() || is_unknown, "{line}: {text}");
        if is_unknown {
            return Err(format!("this kernel has no {kind} (CONFIG_NET_SCH_{})", kind.to_uppercase()));
        }
        Ok(())
    }

    /// Runs a command line in the namespace and asserts that it succeeds.
    pub fn sh(&self, line: &str) -> String {
        let output = run("ip", &["netns", "exec", &self.0, "sh", "-c", line]);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a test of this program in the namespace.
    pub fn test(&self, name: &str, variables: &[(&str, String)]) -> Output {
        let own = std::env::current_exe().expect("a program has a path");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(own).args(["--ignored", "--exact", name, "--nocapture"]);
        for (name, value) in variables {
            command.env(name, value);
        }
        command.output().expect("ip can be run")
    }

    /// Returns all settings of the first interface that could be changed, as the usual tools print
    /// them.
    pub fn dump(&self) -> String {
        self.sh(
            "tc -d qdisc show dev takt0 | sed 's/direct_packets_stat [0-9]*//' | sort; tc -d class show dev takt0 | sort; \
             tc filter show dev takt0 egress; tc filter show dev takt0 ingress; ip route show table all; \
             grep -r . /sys/class/net/takt0/queues 2>/dev/null | grep -v -e inflight -e byte_queue | sort; \
             grep . /sys/class/net/takt0/napi_defer_hard_irqs /sys/class/net/takt0/gro_flush_timeout /sys/class/net/takt0/threaded; \
             ethtool -l takt0; ethtool -k takt0",
        )
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run("ip", &["netns", "delete", &self.0]);
    }
}
