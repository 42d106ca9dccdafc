//! Bench agent: a process that runs one workload for a driver (docs/reference/bench-agents.md).
//!
//! An agent is called as `<program> <role> [key=value ...]`. It prints one JSON object per line and
//! ends at SIGTERM. [`ROLES`] lists the roles. Unknown keys are ignored, so that one command line
//! fits the agents of all middleware. Durations are in seconds, `t0` and `period_ns` in
//! nanoseconds. The role `ping` appends its round-trip times to the file `out`: u64 nanoseconds,
//! little endian.

mod architecture;
mod crowd;
mod keep;
mod late;
pub mod options;
pub(crate) mod roles;

use crate::error::{Error, Result};
use options::Options;
use serde_json::{Value, json};
use std::io::Write;

/// Name that the agent reports in `info`.
const PEER: &str = "takt";

/// Roles of the agent.
pub(crate) const ROLES: [&str; 16] = [
    "info", "ping", "pong", "pub", "sub", "idle", "disc", "load", "crowd", "seek", "mesh", "hold", "join", "pick",
    "keep", "broker",
];

/// Writer of the agent's JSON lines.
pub(crate) struct Lines<'a>(&'a mut dyn Write);

impl<'a> Lines<'a> {
    /// Creates a writer of lines to `out`.
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self(out)
    }

    /// Writes one line and flushes it.
    pub(crate) fn write(&mut self, value: &Value) -> Result<()> {
        writeln!(self.0, "{value}").and_then(|()| self.0.flush()).map_err(|e| Error::os("write a line", e))
    }

    /// Writes the line `ready`: peers can discover the agent from now on.
    pub(crate) fn ready(&mut self) -> Result<()> {
        self.write(&json!({"ev": "ready"}))
    }
}

/// Runs `role` with `arguments` (`key=value`) and writes the lines to `out`. A failure is reported
/// as a line too.
///
/// # Errors
/// The role is unknown, an argument is wrong, or the workload failed.
pub fn run(role: &str, arguments: &[String], out: &mut dyn Write) -> Result<()> {
    let mut lines = Lines::new(out);
    let result = run_role(role, arguments, &mut lines);
    if let Err(error) = &result {
        lines.write(&json!({"ev": "error", "what": error.to_string()}))?;
    }
    result
}

fn run_role(role: &str, arguments: &[String], lines: &mut Lines<'_>) -> Result<()> {
    let mut options = Options::parse(arguments)?;
    let measures = !matches!(role, "info" | "broker");
    if options.starts_daemon && measures {
        architecture::start_daemon(&options)?;
        options.use_daemon(&architecture::daemon_name(options.link.domain));
    }
    match role {
        "info" => lines.write(&json!({
            "ev": "info", "peer": PEER, "version": env!("CARGO_PKG_VERSION"),
            "transports": options::TRANSPORTS.join(","), "notifies": "listener,waitset,poll", "types": "octets,complex,numbered",
            "fixed_size": false, "roles": roles_of(&options).join(","),
        })),
        "ping" => roles::ping(&options, lines),
        "pong" => roles::pong(&options, lines),
        "pub" => roles::publish(&options, lines, false),
        "load" => roles::publish(&options, lines, true),
        "sub" => roles::subscribe(&options, lines),
        "pick" => roles::pick(&options, lines),
        "idle" => roles::discover(&options, lines, true),
        "disc" => roles::discover(&options, lines, false),
        "crowd" => crowd::crowd(&options, lines),
        "seek" => crowd::discover(&options, lines),
        "mesh" => crowd::mesh(&options, lines),
        "hold" => late::hold(options, lines),
        "join" => late::join(options, lines),
        "keep" => keep::keep(&options, lines),
        "broker" => architecture::serve_discovery(&options, lines),
        _ => Err(Error::Usage(format!("unknown role {role}; expected one of {}", ROLES.join(", ")))),
    }
}

/// Returns the roles that the transport supports: plain sockets have no discovery and keep no
/// samples.
fn roles_of(options: &Options) -> Vec<&'static str> {
    let needs_middleware = ["crowd", "seek", "mesh", "hold", "join", "pick", "keep", "broker"];
    let is_plain = options.link.is_plain();
    ROLES.into_iter().filter(|role| !is_plain || !needs_middleware.contains(role)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(role: &str, arguments: &[&str]) -> (Result<()>, Vec<Value>) {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let mut out = Vec::new();
        let result = run(role, &arguments, &mut out);
        let text = String::from_utf8(out).unwrap();
        let lines = text.lines().map(|l| serde_json::from_str(l).unwrap());
        (result, lines.collect())
    }

    #[test]
    fn info_lists_transports_and_supported_roles() {
        let (result, lines) = lines_of("info", &[]);
        result.unwrap();
        assert_eq!(lines.len(), 1);
        assert_eq!((&lines[0]["ev"], &lines[0]["peer"]), (&json!("info"), &json!("takt")));
        let transports = lines[0]["transports"].as_str().unwrap();
        assert!(transports.starts_with("default,"));
        assert_eq!(lines[0]["fixed_size"], json!(false));
        assert!(lines[0]["roles"].as_str().unwrap().ends_with("load,crowd,seek,mesh,hold,join,pick,keep,broker"));
        let (_, lines) = lines_of("info", &["transport=raw"]);
        assert!(lines[0]["roles"].as_str().unwrap().ends_with("disc,load"), "plain sockets discover nothing");
    }

    #[test]
    fn unknown_role_and_wrong_argument_write_an_error_line() {
        for (role, argument) in [("dance", "size=16"), ("info", "size=big")] {
            let (result, lines) = lines_of(role, &[argument]);
            assert!(result.is_err());
            assert_eq!(lines[0]["ev"], json!("error"));
        }
    }

    #[test]
    fn missing_security_files_are_an_error() {
        let (result, _) = lines_of("pong", &["security=/nowhere", "iface=lo"]);
        assert!(result.unwrap_err().to_string().contains("/nowhere"));
    }

    /// Runs both sides of the contract over plain sockets, in two threads.
    #[test]
    fn a_pair_of_raw_agents_measures_round_trips() {
        let out = std::env::temp_dir().join(format!("takt-agent-test-{}.bin", std::process::id()));
        let common = ["transport=raw", "domain=228", "iface=lo"];
        let echo =
            crate::spec::LinkSpec { transport: crate::spec::Transport::RawUdp, domain: 228, ..Default::default() };
        let (is_open, opened) = std::sync::mpsc::channel();
        let echoing = std::thread::spawn(move || {
            let mut pong = echo.open(Some("Pong"), Some("Ping")).unwrap();
            is_open.send(()).unwrap();
            let sum = 30 + 30;
            crate::workload::pong::run(&mut *pong, true, false, &mut |o| o.echoed >= sum).unwrap()
        });
        opened.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        let out_key = format!("out={}", out.display());
        let mut arguments = common.to_vec();
        arguments.extend(["sizes=16,1000", "warmup=10", "count=20", &out_key]);
        let (result, lines) = lines_of("ping", &arguments);
        result.unwrap();
        assert_eq!(echoing.join().unwrap().refused, 0);
        let events: Vec<&str> = lines.iter().map(|l| l["ev"].as_str().unwrap()).collect();
        assert_eq!(events, ["ready", "result", "result", "done"]);
        assert_eq!((&lines[1]["size"], &lines[2]["size"]), (&json!(16), &json!(1000)));
        for line in &lines[1..3] {
            assert_eq!((&line["got"], &line["lost"]), (&json!(20), &json!(0)));
            assert_eq!((&line["role"], &line["listening"]), (&json!("ping"), &json!(0)));
            for key in ["cpu_s", "wall_s", "nvcsw", "nivcsw"] {
                assert!(line[key].is_number(), "{key}");
            }
        }
        let recorded = std::fs::read(&out).unwrap();
        std::fs::remove_file(&out).unwrap();
        assert_eq!(recorded.len(), 2 * 20 * 8);
    }
}
