//! `takt host` on a real interface, in a network namespace of its own; root's.

use std::process::{Command, Output};

/// A namespace with a pair of interfaces of two queues. Gone with its handle.
struct Namespace(String);

impl Namespace {
    fn new() -> Option<Self> {
        let name = format!("takt-host-{}", std::process::id());
        if !run("ip", &["netns", "add", &name]).status.success() {
            return None;
        }
        let own = Self(name);
        let queues = ["numtxqueues", "2", "numrxqueues", "2"];
        let pair =
            [&["link", "add", "takt0"][..], &queues, &["type", "veth", "peer", "name", "takt1"], &queues].concat();
        let added = run("ip", &[&["-n", &own.0], &pair[..]].concat());
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        Some(own)
    }

    /// Runs a program within; its output, if it succeeds.
    fn within(&self, line: &[&str]) -> Result<String, String> {
        let output = run("ip", &[&["netns", "exec", &self.0], line].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn takt(&self, line: &str) -> Result<String, String> {
        let takt = env!("CARGO_BIN_EXE_takt");
        self.within(&[&[takt][..], &line.split(' ').collect::<Vec<_>>()].concat())
    }

    /// All settings of the interface that could be touched.
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
fn an_interface_is_tuned_and_restored() {
    let Some(namespace) = Namespace::new() else {
        return eprintln!("no right to make network namespaces");
    };
    namespace.within(&["sh", "-c", "echo 1 > /sys/class/net/takt0/queues/rx-1/rps_cpus"]).expect("root may");
    let directory = std::env::temp_dir();
    let file = |name: &str| directory.join(format!("{}-{name}", namespace.0)).display().to_string();
    let (plan, journal) = (file("plan.json"), file("journal"));

    let before = namespace.dump();
    let text = namespace.takt("host plan --interface takt0").expect("it is there");
    assert!(text.contains("\"knob\": \"/sys/class/net/takt0/queues/rx-1/rps_cpus\""), "{text}");
    assert!(text.contains("ethtool/takt0/rx-usecs"), "what the driver lacks is named: {text}");
    assert!(!text.contains("a queue of takt0"), "it has two");
    // The machine's own limits are not to be touched by a test.
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let changes = value["changes"].as_array_mut().expect("a list");
    changes.retain(|change| change["knob"].as_str().is_some_and(|knob| knob.contains("takt0")));
    std::fs::write(&plan, value.to_string()).expect("the temporary directory can be written");

    let complaint = namespace.takt(&format!("host verify {plan}")).expect_err("not yet");
    assert!(complaint.contains("it is \"1\""), "{complaint}");
    namespace.takt(&format!("host apply {plan} --journal {journal}")).expect("root may");
    namespace.takt(&format!("host apply {plan} --journal {journal}")).expect("twice is as once");
    namespace.takt(&format!("host verify {plan}")).expect("it is so now");
    assert_ne!(namespace.dump(), before);
    let said = namespace.takt(&format!("host revert --journal {journal}")).expect("it can be taken back");
    assert_eq!(said, "1 settings are as they were");
    assert_eq!(namespace.dump(), before);
    assert_eq!(
        namespace.takt(&format!("host revert --journal {journal}")).as_deref(),
        Ok("0 settings are as they were")
    );
    std::fs::remove_file(plan).expect("it was written");
}

#[test]
fn the_doctor_names_what_mends() {
    let takt = env!("CARGO_BIN_EXE_takt");
    let output = run(takt, &["doctor", "--interface", "lo"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("a queue of lo for real-time traffic alone"), "{text}");
    assert!(text.contains("    -> AF_XDP"), "{text}");
    let output = run(takt, &["doctor", "--interface", "nothing0"]);
    assert_eq!(output.status.code(), Some(2));
}
