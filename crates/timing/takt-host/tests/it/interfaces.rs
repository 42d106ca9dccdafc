//! Settings of a real interface in a network namespace of its own: they are applied, interrupted by
//! a kill at every step, and restored according to the usual tools.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use takt_host::apply::{apply_watched, revert_watched};
use takt_host::{Change, Journal, Machine, Plan, verify};

use super::namespace::Namespace;

const ACTOR: &str = "interfaces::the_actor";
const DO: &str = "TAKT_TEST_HOST_DO";
const AT: &str = "TAKT_TEST_HOST_AT";

/// Role that the tests start within their namespaces: applies or reverts a plan, and is killed at a
/// step; not a test.
#[test]
#[ignore = "role: started by other tests"]
fn the_actor() {
    let (Some(what), Some(at)) = (std::env::var_os(DO), std::env::var_os(AT)) else { return };
    let directory = PathBuf::from(what);
    let mut left: u32 = at.to_str().and_then(|at| at.parse().ok()).expect("a number");
    let mut after_step = || {
        left = left.wrapping_sub(1);
        if left == 0 {
            let own = std::process::id().to_string();
            Command::new("kill").args(["-9", &own]).status().expect("it can be run");
            std::thread::park();
        }
    };
    let machine = Machine::default();
    let mut journal = Journal::open(directory.join("journal")).expect("not locked");
    match fs::read_to_string(directory.join("plan")) {
        Ok(plan) => {
            let plan: Plan = serde_json::from_str(&plan).expect("a plan");
            apply_watched(&machine, &plan, &mut journal, &mut after_step).unwrap_or_else(|why| panic!("{why}"));
            let differ = verify(&machine, &plan);
            assert!(differ.is_empty(), "{differ:?}");
        }
        Err(_) => {
            let failures = revert_watched(&machine, journal, &mut after_step).expect("the journal can be ended");
            assert!(failures.is_empty(), "{failures:?}");
        }
    }
}

/// Directory for a plan and a journal. Dropping the value removes it.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("takt-host-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary directory can be written");
        Self(path)
    }

    fn journal(&self) -> PathBuf {
        self.0.join("journal")
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn run_actor(namespace: &Namespace, directory: &Path, at: u32) -> Output {
    namespace.test(ACTOR, &[(DO, directory.display().to_string()), (AT, at.to_string())])
}

/// Reports whether the role completed and was not killed.
fn is_done(output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    let is_killed = output.status.signal() == Some(9);
    assert!(is_killed || output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(is_killed || text.contains("1 passed"), "it was run: {text}");
    !is_killed
}

/// Applies changes, with a kill at a step if that step occurs.
fn apply(namespace: &Namespace, files: &Files, changes: &[(&str, &str)], at: u32) -> bool {
    let change = |(setting, to): &(&str, &str)| Change {
        setting: setting.parse().unwrap_or_else(|why| panic!("{why}")),
        from: String::new(),
        to: (*to).to_owned(),
        why: String::new(),
    };
    let plan = Plan { changes: changes.iter().map(change).collect(), missing_features: Vec::new() };
    let path = files.0.join("plan");
    fs::write(&path, serde_json::to_string(&plan).expect("it can be written")).expect("writable");
    let is_done = is_done(&run_actor(namespace, &files.0, at));
    fs::remove_file(path).expect("it was written");
    is_done
}

/// Reverts, with a kill at a step if that step occurs.
fn revert(namespace: &Namespace, files: &Files, at: u32) -> bool {
    is_done(&run_actor(namespace, &files.0, at))
}

const NEVER: u32 = u32::MAX;

const QUEUES: [(&str, &str); 10] = [
    ("/sys/class/net/takt0/napi_defer_hard_irqs", "2"),
    ("/sys/class/net/takt0/gro_flush_timeout", "200000"),
    ("/sys/class/net/takt0/queues/rx-1/rps_cpus", "0"),
    (
        "qdisc/takt0",
        "qdisc mq 1: root; qdisc pfifo 10: parent 1:1 limit 1000; qdisc pfifo 11: parent 1:2 limit 1000; \
         qdisc pfifo 12: parent 1:3 limit 1000; qdisc pfifo 13: parent 1:4 limit 50",
    ),
    ("/sys/class/net/takt0/queues/tx-1/xps_cpus", "0"),
    ("/sys/class/net/takt0/queues/tx-2/xps_cpus", "1"),
    ("clsact/takt0", "clsact"),
    ("steer/takt0", "queue 3 of 4 dscp 46,34 pcp 5"),
    ("route/takt0/239.255.0.0/16", "here"),
    ("ethtool/takt0/gro", "1"),
];

const PRIORITIES: [(&str, &str); 6] = [
    ("ethtool/takt0/tx-channels", "2"),
    (
        "qdisc/takt0",
        "qdisc htb 1: root default 20 r2q 10 direct_qlen 1000; \
         class htb 1:1 root rate 12500000 ceil 12500000 burst_ticks 2000 cburst_ticks 2000 quantum 1514 prio 0 overhead 24; \
         class htb 1:10 parent 1:1 rate 1000 ceil 12500000 burst_ticks 25000000 cburst_ticks 2000 quantum 1514 prio 0 overhead 24; \
         qdisc pfifo 10: parent 1:10 limit 100",
    ),
    ("clsact/takt0", "clsact"),
    ("steer/takt0", "class 1:10 dscp 46"),
    ("/sys/class/net/takt0/queues/rx-1/rps_cpus", "2"),
    ("/sys/class/net/takt0/gro_flush_timeout", "0"),
];

/// Priority-selected queues. Their creation resets the assignment of processors to queues, which
/// the plan does not mention.
const CLASSES: [(&str, &str); 4] = [
    ("/sys/class/net/takt0/gro_flush_timeout", "200000"),
    (
        "qdisc/takt0",
        "qdisc mqprio 1: root map 0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0 queues 3@0,1@3 hw 0; qdisc pfifo 10: parent 1:1 limit 1000; \
         qdisc pfifo 11: parent 1:2 limit 1000; qdisc pfifo 12: parent 1:3 limit 1000; qdisc pfifo 13: parent 1:4 limit 50",
    ),
    ("clsact/takt0", "clsact"),
    ("steer/takt0", "priority 5 dscp 46,34 pcp 5"),
];

/// Gate schedule, and frames with launch times.
const GATES: [(&str, &str); 3] = [
    (
        "qdisc/takt0",
        "qdisc taprio 1: root map 1,1,1,1,1,0,1,1,1,1,1,1,1,1,1,1 queues 1@0,3@1 clock tai flags 1 txtime_delay 400000 base_time 7 \
         cycle 1000000 extension 5 entries S:1:300000,S:0:50000,S:2:650000; \
         qdisc etf 10: parent 1:1 clock tai delta 200000 offload off deadline off skip_sock_check on; \
         qdisc etf 11: parent 1:2 clock tai delta 200000 offload off deadline on skip_sock_check on; \
         qdisc pfifo 12: parent 1:3 limit 1000; qdisc pfifo 13: parent 1:4 limit 50",
    ),
    ("clsact/takt0", "clsact"),
    ("steer/takt0", "priority 5 dscp 46"),
];

/// Existing classes of another program, with assignments of processors to queues.
const FORMER_CLASSES: &str = "\
    tc qdisc add dev takt0 root handle 6: mqprio num_tc 3 map 0 0 1 1 2 2 0 0 queues 1@0 1@1 2@2 hw 0; \
    tc qdisc replace dev takt0 parent 6:2 handle 62: pfifo limit 77; \
    echo 1 > /sys/class/net/takt0/queues/tx-1/xps_cpus; echo 2 > /sys/class/net/takt0/queues/tx-2/xps_cpus; \
    echo 3 > /sys/class/net/takt0/queues/tx-3/xps_rxqs";

/// Existing gate schedule of another program that starts in some hundred years. Until then the
/// kernel reports it as pending.
const FORMER_GATES: &str = "\
    tc qdisc add dev takt0 root handle 5: taprio num_tc 2 map 0 1 queues 2@0 2@2 base-time 5000000000000000000 cycle-time 900000 \
    cycle-time-extension 77 sched-entry S 1 400000 sched-entry S 2 300000 clockid CLOCK_MONOTONIC flags 0; \
    tc qdisc replace dev takt0 parent 5:3 handle 53: etf clockid CLOCK_TAI delta 4000 deadline_mode";

/// Settings and their new values.
type Changes = &'static [(&'static str, &'static str)];

/// Returns possible former configurations and the plans, as far as this kernel supports their
/// disciplines.
fn former_values_and_plans(namespace: &Namespace) -> (Vec<&'static str>, Vec<Changes>) {
    let (mut former_values, mut plans) = (vec!["true", FORMER], vec![&QUEUES[..], &PRIORITIES]);
    if namespace.has_kind("mqprio").is_ok() {
        former_values.push(FORMER_CLASSES);
        plans.push(&CLASSES);
    }
    if namespace.has_kind("taprio").is_ok() && namespace.has_kind("etf").is_ok() {
        former_values.push(FORMER_GATES);
        plans.push(&GATES);
    }
    (former_values, plans)
}

/// Removes all configuration from the interface.
const NEVER_SET: &str = "tc qdisc del dev takt0 root 2> /dev/null; \
    for i in 0 1 2 3; do echo 0 > /sys/class/net/takt0/queues/tx-$i/xps_cpus; echo 0 > /sys/class/net/takt0/queues/tx-$i/xps_rxqs; done; true";

/// Existing configuration of another program: a tree with classes of different link layers and
/// leaves of several kinds.
const FORMER: &str = "\
    echo 1 > /sys/class/net/takt0/queues/rx-1/rps_cpus; echo 1 > /sys/class/net/takt0/queues/tx-1/xps_cpus; \
    echo 7000 > /sys/class/net/takt0/gro_flush_timeout; \
    tc qdisc add dev takt0 root handle 7: htb default 30 r2q 20; \
    tc class add dev takt0 parent 7: classid 7:1 htb rate 50mbit burst 3000 cburst 4000 quantum 3000; \
    tc class add dev takt0 parent 7:1 classid 7:20 htb rate 5mbit ceil 40mbit prio 3 burst 2000 quantum 1600 overhead 18 mpu 64; \
    tc class add dev takt0 parent 7:1 classid 7:30 htb rate 6mbit ceil 40mbit prio 5 burst 2000 quantum 1600 linklayer atm; \
    tc qdisc add dev takt0 parent 7:20 handle 72: pfifo limit 77; \
    tc qdisc add dev takt0 parent 7:30 handle 73: tbf rate 3mbit burst 5000 latency 50ms";

#[test]
fn kill_at_any_step_of_apply_or_revert_can_be_reverted() {
    let Some(namespace) = Namespace::new("steps") else { return };
    let files = Files::new("steps");
    let (former_values, plans) = former_values_and_plans(&namespace);
    for former in former_values {
        namespace.sh(NEVER_SET);
        namespace.sh(&format!("set -e; {former}"));
        let before = namespace.dump();
        for changes in plans.iter().copied() {
            let mut steps = 0;
            while !apply(&namespace, &files, changes, steps + 1) {
                steps += 1;
                assert!(files.journal().exists(), "step {steps}");
                assert!(revert(&namespace, &files, NEVER));
                assert_eq!(namespace.dump(), before, "killed at step {steps} of {changes:?}");
            }
            assert!(steps as usize > changes.len(), "{steps}: a change has two steps, unless it is so already");
            assert_ne!(namespace.dump(), before);
            // All changes are applied. The revert is killed one step later each time.
            let mut kills = 0;
            while !revert(&namespace, &files, 1 + kills) {
                kills += 1;
            }
            assert_eq!(namespace.dump(), before, "of {changes:?}");
            assert!(kills > 2 && !files.journal().exists());
        }
    }
}

#[test]
fn two_successive_plans_are_reverted_to_the_beginning() {
    let Some(namespace) = Namespace::new("twice") else { return };
    let files = Files::new("twice");
    let (former_values, all) = former_values_and_plans(&namespace);
    for former in former_values {
        namespace.sh(NEVER_SET);
        namespace.sh(&format!("set -e; {former}"));
        let before = namespace.dump();
        // With fewer queues, the queues of the other plans would not exist.
        let all: Vec<_> =
            all.iter().map(|plan| if *plan == &PRIORITIES[..] { &PRIORITIES[1..] } else { plan }).collect();
        for plans in all.iter().flat_map(|one| all.iter().map(|other| [*one, *other])) {
            assert!(plans.iter().all(|changes| apply(&namespace, &files, changes, NEVER)));
            assert!(revert(&namespace, &files, NEVER));
            assert_eq!(namespace.dump(), before, "{plans:?} after {former}");
        }
    }
}

/// A tree that could not be restored is not replaced, and a failed change reverts the previous
/// ones.
#[test]
fn tree_that_cannot_be_restored_is_not_changed() {
    let Some(namespace) = Namespace::new("foreign") else { return };
    let files = Files::new("foreign");
    namespace.sh("tc qdisc add dev takt0 root handle 7: htb");
    namespace.sh("tc class add dev takt0 parent 7: classid 7:1 htb rate 50mbit quantum 1600");
    namespace.sh("tc filter add dev takt0 parent 7: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 7:1");
    let before = namespace.dump();
    let plan = |changes: &[(&str, &str)]| {
        let change =
            |(setting, to): &(&str, &str)| serde_json::json!({"knob": setting, "from": "", "to": to, "why": ""});
        let changes: Vec<_> = changes.iter().map(change).collect();
        fs::write(files.0.join("plan"), serde_json::json!({ "changes": changes }).to_string()).expect("writable");
        let output = run_actor(&namespace, &files.0, NEVER);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
    };
    let text = plan(&[QUEUES[0], QUEUES[3]]);
    assert!(text.contains("7: has filters, which cannot be restored afterwards"), "{text}");
    assert_eq!(namespace.dump(), before);
    namespace.sh("tc qdisc del dev takt0 root");
    let before = namespace.dump();
    let text = plan(&[QUEUES[0], ("qdisc/takt0", "qdisc mq 1: root; qdisc pfifo 10: parent 1:9 limit 1")]);
    assert!(text.contains("qdisc pfifo 10: parent 1:9 limit 1: "), "the kernel's reason is told: {text}");
    assert_eq!(namespace.dump(), before, "half a tree is taken back too");
    let text = plan(&[("clsact/takt0", "clsact"), ("steer/takt0", "queue 9 of 4 dscp 46")]);
    assert!(text.contains("is not a steering"), "{text}");
    assert_eq!(namespace.dump(), before);
    namespace.sh("ip route add 239.1.0.0/16 dev takt1");
    let before = namespace.dump();
    let text = plan(&[QUEUES[0], ("route/takt0/239.1.0.0/16", "here")]);
    assert!(text.contains("route/takt0/239.1.0.0/16 is not \"here\""), "{text}");
    assert_eq!(namespace.dump(), before);
}

/// Filters that another program added to clsact meanwhile are not removed with it.
#[test]
fn filters_added_by_others_are_kept_and_reported() {
    let Some(namespace) = Namespace::new("others") else { return };
    let files = Files::new("others");
    assert!(apply(&namespace, &files, &[("clsact/takt0", "clsact"), ("steer/takt0", "queue 0 of 4 dscp 46")], NEVER));
    namespace.sh("tc filter add dev takt0 ingress protocol ip u32 match ip dsfield 0xb8 0xfc flowid 7:1");
    let output = run_actor(&namespace, &files.0, NEVER);
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("another program has added filters"), "{text}");
    assert!(files.journal().exists(), "what is not restored stays noted");
    namespace.sh("tc filter del dev takt0 ingress");
    assert!(revert(&namespace, &files, NEVER));
    assert!(!namespace.sh("tc qdisc show dev takt0").contains("clsact"));
}

/// A tree that another program derived from the applied one does not prevent restoring the former
/// tree.
#[test]
fn manual_additions_to_an_applied_tree_are_removed_with_it() {
    let Some(namespace) = Namespace::new("onto") else { return };
    let files = Files::new("onto");
    namespace.sh(FORMER);
    let before = namespace.dump();
    assert!(apply(&namespace, &files, &PRIORITIES[1..2], NEVER));
    namespace.sh("tc filter add dev takt0 parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:10");
    assert!(revert(&namespace, &files, NEVER));
    assert_eq!(namespace.dump(), before);
}

/// An interface of the same name in another namespace is not the one that was changed.
#[test]
fn change_in_another_namespace_is_reverted_in_that_namespace() {
    let (Some(first), Some(second)) = (Namespace::new("first"), Namespace::new("second")) else { return };
    let files = Files::new("elsewhere");
    let before = [first.dump(), second.dump()];
    assert!(apply(&first, &files, &QUEUES, NEVER));
    let after = first.dump();
    let output = run_actor(&second, &files.0, NEVER);
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("it belongs to network namespace"), "{text}");
    assert_eq!([first.dump(), second.dump()], [after, before[1].clone()]);
    // The same plan is applied in the second namespace. One journal has both, and each is restored
    // in its namespace.
    assert!(apply(&second, &files, &QUEUES[..2], NEVER));
    assert!(!run_actor(&second, &files.0, NEVER).status.success(), "the first is still to be restored");
    assert!(revert(&first, &files, NEVER));
    assert_eq!([first.dump(), second.dump()], before);
    // The settings of a removed namespace no longer exist.
    assert!(apply(&first, &files, &QUEUES, NEVER));
    drop(first);
    assert!(revert(&second, &files, NEVER));
    assert!(!files.journal().exists());
}
