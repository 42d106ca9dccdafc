//! `takt host` on a real interface in a network namespace of its own. The tests require root.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use takt_testkit::{not_run, require};

/// Namespace with a pair of interfaces that have two queues each. It is removed when the value is
/// dropped.
struct Namespace(String);

impl Namespace {
    /// Creates the namespace. Without the privilege it reports the test as not run and returns
    /// `None`.
    fn new() -> Option<Self> {
        require::network_namespaces().map_err(not_run).ok()?;
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("takt-host-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let made = run("ip", &["netns", "add", &name]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let own = Self(name);
        let queues = ["numtxqueues", "2", "numrxqueues", "2"];
        let pair =
            [&["link", "add", "takt0"][..], &queues, &["type", "veth", "peer", "name", "takt1"], &queues].concat();
        let added = run("ip", &[&["-n", &own.0], &pair[..]].concat());
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        Some(own)
    }

    /// Runs a program in the namespace and returns its output if it succeeds.
    fn within(&self, line: &[&str]) -> Result<String, String> {
        let output = run("ip", &[&["netns", "exec", &self.0], line].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn takt(&self, line: &str) -> Result<String, String> {
        let takt = env!("CARGO_BIN_EXE_takt");
        self.within(&[&[takt][..], &line.split(' ').collect::<Vec<_>>()].concat())
    }

    /// Returns all settings of the interface that the command could change.
    fn dump(&self) -> String {
        let files = "grep -r . /sys/class/net/takt0/queues /sys/class/net/takt0/napi_defer_hard_irqs /sys/class/net/takt0/gro_flush_timeout";
        let sorted = format!(
            "{files} 2>/dev/null | grep -v -e inflight -e byte_queue | sort; sysctl net.core.rmem_max net.core.wmem_max"
        );
        self.within(&["sh", "-c", &sorted]).expect("it can be read")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run("ip", &["netns", "delete", &self.0]);
    }
}

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{program}: {e}"))
}

#[test]
fn interface_is_tuned_and_restored() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.within(&["sh", "-c", "echo 1 > /sys/class/net/takt0/queues/rx-1/rps_cpus"]).expect("as root");
    let directory = std::env::temp_dir();
    let file = |name: &str| directory.join(format!("{}-{name}", namespace.0)).display().to_string();
    let (plan, journal) = (file("plan.json"), file("journal"));

    let before = namespace.dump();
    let text = namespace.takt("host plan --interface takt0").expect("it exists");
    assert!(text.contains("\"knob\": \"/sys/class/net/takt0/queues/rx-1/rps_cpus\""), "{text}");
    assert!(text.contains("ethtool/takt0/rx-usecs"), "what the driver lacks is named: {text}");
    assert!(!text.contains("a queue of takt0"), "it has two");
    // A test must not change the limits of the machine itself.
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let changes = value["changes"].as_array_mut().expect("a list");
    changes.retain(|change| change["knob"].as_str().is_some_and(|knob| knob.contains("takt0")));
    std::fs::write(&plan, value.to_string()).expect("the temporary directory can be written");

    let error_text = namespace.takt(&format!("host verify {plan}")).expect_err("not yet");
    assert!(error_text.contains("the value is \"1\""), "{error_text}");
    namespace.takt(&format!("host apply {plan} --journal {journal}")).expect("as root");
    namespace.takt(&format!("host apply {plan} --journal {journal}")).expect("idempotent");
    namespace.takt(&format!("host verify {plan}")).expect("as planned");
    assert_ne!(namespace.dump(), before);
    let output = namespace.takt(&format!("host revert --journal {journal}")).expect("success");
    assert_eq!(output, "1 settings restored");
    assert_eq!(namespace.dump(), before);
    assert_eq!(namespace.takt(&format!("host revert --journal {journal}")).as_deref(), Ok("0 settings restored"));
    std::fs::remove_file(plan).expect("it was written");
}

/// Runs `takt host` as a user without write access to read-only files.
fn unprivileged(arguments: &[&str]) -> Output {
    let takt = env!("CARGO_BIN_EXE_takt");
    if require::root().is_err() {
        return run(takt, &[&["host"], arguments].concat());
    }
    // Root without the capabilities that override file permissions.
    let bounded = ["--bounding-set", "-dac_override,-dac_read_search", takt, "host"];
    run("setpriv", &[&bounded, arguments].concat())
}

#[test]
fn apply_without_permission_reports_that_it_needs_root() {
    if let Err(why) = require::program("setpriv") {
        return not_run(why);
    }
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("writable");
    };
    let directory = std::env::temp_dir().join(format!("takt-host-unprivileged-{}", std::process::id()));
    let (file_of_setting, locked) = (directory.join("proc/sys/net/core/rmem_max"), directory.join("locked"));
    std::fs::create_dir_all(file_of_setting.parent().expect("it has one"))
        .expect("the temporary directory can be written");
    std::fs::create_dir(&locked).expect("likewise");
    std::fs::write(&file_of_setting, "1\n").expect("likewise");
    let plan = directory.join("plan.json");
    let change = r#"{"knob": "/proc/sys/net/core/rmem_max", "from": "1", "to": "2", "why": "a test"}"#;
    std::fs::write(&plan, format!(r#"{{"changes": [{change}], "lacks": []}}"#)).expect("likewise");
    set_mode(&file_of_setting, 0o444);
    set_mode(&locked, 0o555);
    let [root, plan] = [&directory, &plan].map(|path| path.display().to_string());
    for (journal, named) in
        [(directory.join("journal"), "/proc/sys/net/core/rmem_max"), (locked.join("journal"), "the journal")]
    {
        let journal = journal.display().to_string();
        let output = unprivileged(&["--root", &root, "--journal", &journal, "apply", &plan]);
        let error_text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error_text}");
        assert!(error_text.contains(named) && error_text.contains("Permission denied"), "{error_text}");
        assert!(error_text.contains("need root"), "{error_text}");
        assert_eq!(std::fs::read_to_string(&file_of_setting).expect("it exists"), "1\n");
    }
    set_mode(&locked, 0o755);
    std::fs::remove_dir_all(&directory).expect("writable");
}

/// Plans and reverts queues for marked frames, and repeats that with the command that the doctor
/// suggests.
#[test]
fn marked_frames_get_a_queue_that_revert_removes() {
    let Some(namespace) = Namespace::new() else { return };
    let directory = std::env::temp_dir();
    let file = |name: &str| directory.join(format!("{}-{name}", namespace.0)).display().to_string();
    let (plan, journal) = (file("plan.json"), file("journal"));
    let up = "for i in takt0 takt1; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; ip link set $i up; done; \
        ip address add 10.78.0.1/24 dev takt0";
    namespace.within(&["sh", "-c", up]).expect("as root");
    let tree = || {
        namespace.within(&[
            "sh",
            "-c",
            "tc qdisc show dev takt0; tc filter show dev takt0 egress | sed 's/ id [0-9]*//'",
        ])
    };
    let before = tree();
    let request = "--interface takt0 --queue 1 --dscp 46,34";
    let text = namespace.takt(&format!("host plan {request}")).expect("it exists");
    for missing in ["mqprio", "taprio", "rules of takt0 that steer received frames to queue 1"] {
        assert!(text.contains(missing), "{text}");
    }
    std::fs::write(&plan, &text).expect("the temporary directory can be written");
    namespace.takt(&format!("host apply {plan} --journal {journal}")).expect("as root");
    let after = tree().expect("it can be read");
    assert!(after.contains("qdisc mq 1: root") && after.contains("queue 1 of 2 dscp 46,34"), "{after}");
    namespace.takt(&format!("host verify {plan}")).expect("as planned");
    let report = namespace.takt(&format!("host verify {plan} --measure")).expect("as planned");
    let counts = "takt0: queue 1 of 2 dscp 46,34: 64 of 64 marked frames and 0 of 32 others";
    assert!(report.ends_with(counts), "{report}");
    // The kernel now selects the queue by processor. Everything else still agrees with the plan.
    namespace.within(&["sh", "-c", "echo 3 > /sys/class/net/takt0/queues/tx-0/xps_cpus"]).expect("as root");
    let error_text = namespace.takt(&format!("host verify {plan} --measure")).expect_err("another queue");
    assert!(error_text.contains("marked frames of takt0 leave through a different queue"), "{error_text}");
    namespace.within(&["sh", "-c", "echo 0 > /sys/class/net/takt0/queues/tx-0/xps_cpus"]).expect("as root");
    namespace.within(&["tc", "filter", "del", "dev", "takt0", "egress"]).expect("as root");
    let error_text = namespace.takt(&format!("host verify {plan}")).expect_err("the filter was removed");
    assert!(
        error_text.contains("steer/takt0 is not \"queue 1 of 2 dscp 46,34\": the value is \"none\""),
        "{error_text}"
    );
    namespace.takt(&format!("host revert --journal {journal}")).expect("success");
    assert_eq!(tree(), before);
    std::fs::remove_file(plan).expect("it was written");

    let takt = env!("CARGO_BIN_EXE_takt");
    let line = format!("netns exec {} {takt} doctor {request} --no-network --json", namespace.0);
    let output = run("ip", &line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(1), "there are findings");
    let findings: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    for finding in findings.iter().filter(|finding| finding["what"].as_str().is_some_and(|what| what.contains("takt0")))
    {
        let Some(command) = finding["mend"].as_str().filter(|_| finding["is_command"] == true) else { continue };
        let command = command.replace("takt host apply -", &format!("{takt} host apply - --journal {journal}"));
        namespace.within(&["sh", "-c", &command]).unwrap_or_else(|why| panic!("{command}: {why}"));
    }
    assert_eq!(tree().expect("it can be read"), after, "the commands do what the plan does");
    std::fs::remove_file(journal).expect("some entries exist");
}

/// The first plan creates a missing queue and the second assigns it. One revert undoes both.
#[test]
fn missing_queue_is_created_before_it_is_assigned() {
    let Some(namespace) = Namespace::new() else { return };
    let directory = std::env::temp_dir();
    let file = |name: &str| directory.join(format!("{}-{name}", namespace.0)).display().to_string();
    let (plan, journal) = (file("plan.json"), file("journal"));
    namespace.within(&["sh", "-c", "ip link set takt0 up; ethtool -L takt0 rx 1 tx 1"]).expect("as root");
    let there =
        || namespace.within(&["sh", "-c", "ethtool -l takt0; tc qdisc show dev takt0; ls /sys/class/net/takt0/queues"]);
    let before = there();
    let apply = || {
        let text = namespace.takt("host plan --interface takt0 --queue 1 --dscp 46").expect("it exists");
        std::fs::write(&plan, &text).expect("the temporary directory can be written");
        namespace.takt(&format!("host apply {plan} --journal {journal}")).expect("as root");
        text
    };
    let first = apply();
    assert!(
        first.contains("ethtool/takt0/tx-channels") && first.contains("apply this plan, then plan again"),
        "{first}"
    );
    assert!(!first.contains("steer/takt0"), "{first}");
    let second = apply();
    assert!(second.contains("queue 1 of 2 dscp 46") && !second.contains("channels"), "{second}");
    namespace.takt(&format!("host verify {plan}")).expect("as planned");
    namespace.takt(&format!("host revert --journal {journal}")).expect("success");
    assert_eq!(there(), before);
    // A queue that the driver cannot create is named with an alternative.
    let text = namespace.takt("host plan --interface takt0 --queue 2 --dscp 46").expect("it exists");
    assert!(text.contains("queue 2 of takt0") && text.contains("1 transmit queues and 1 receive queues"), "{text}");
    std::fs::remove_file(plan).expect("it was written");
}

#[test]
fn doctor_names_the_remedies() {
    let takt = env!("CARGO_BIN_EXE_takt");
    let output = run(takt, &["doctor", "--interface", "lo", "--no-network"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("hint: a queue of lo only for real-time traffic"), "{text}");
    assert!(text.contains("    -> AF_XDP"), "{text}");
    assert!(!text.contains("-> nothing"), "{text}");
    // Hints do not make the command fail.
    let matters = text.lines().any(|line| !line.starts_with([' ', 'h']) && !line.contains("finding"));
    assert_eq!(output.status.code(), Some(i32::from(matters)), "{text}");
    let output = run(takt, &["doctor", "--interface", "nothing0"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn findings_in_json_mark_those_whose_remedy_is_a_command() {
    let output = run(env!("CARGO_BIN_EXE_takt"), &["doctor", "--interface", "lo", "--no-network", "--json"]);
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = findings.as_array().expect("a list");
    for finding in findings {
        assert!(finding["is_command"].is_boolean() && finding["matters"].is_boolean(), "{finding}");
        assert!(["what", "why", "mend"].iter().all(|key| finding[key].as_str().is_some_and(|text| !text.is_empty())));
    }
    assert!(findings.iter().any(|finding| finding["is_command"] == false), "lo has one queue: {findings:?}");
}

#[test]
fn inspection_includes_the_clock() {
    let output = run(env!("CARGO_BIN_EXE_takt"), &["host", "inspect"]);
    let there: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(there["clock"]["source"].is_string(), "{there}");
    let loopback = there["interfaces"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "lo"));
    assert_eq!(loopback.map(|lo| &lo["has_rules"]), Some(&serde_json::Value::Bool(false)), "{there}");
}

#[test]
fn contradictory_options_are_refused() {
    for (line, why) in [
        ("host plan --interface lo --dscp 46", "marks require a queue"),
        ("host plan --interface lo --queue 1", "a queue requires marks"),
        ("host plan --dscp 46 --line-rate 100Mbit", "require --interface"),
        ("host plan --interface lo --line-rate 1kbit --dscp 46", "expected a line rate from"),
        ("host plan --interface lo --line-rate 100 --dscp 46", "expected a rate such as 100Mbit"),
        ("host plan --interface lo --groups 10.0.0.0/8", "not a range of multicast groups"),
    ] {
        let output = run(env!("CARGO_BIN_EXE_takt"), &line.split(' ').collect::<Vec<_>>());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(why), "{line}: {errors}");
    }
}
