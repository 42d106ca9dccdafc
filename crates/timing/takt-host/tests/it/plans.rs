//! Plans for requests, made from directory trees that represent a machine.

use takt_host::{Facts, Plan, Request};

use super::tree::Tree;

fn request() -> Request {
    Request { cpus: vec![3], interface: Some("takt0".into()), ..Request::default() }
}

fn plan(tree: &Tree) -> Plan {
    let machine = tree.machine();
    Plan::new(&machine, &Facts::of(&machine), &request()).expect("valid request")
}

fn changes(plan: &Plan) -> Vec<String> {
    plan.changes.iter().map(|change| format!("{} {} -> {}", change.setting, change.from, change.to)).collect()
}

#[test]
fn plan_has_only_changes_that_are_needed() {
    let tree = Tree::new("plan");
    let plan = plan(&tree);
    assert_eq!(
        changes(&plan),
        [
            "/proc/sys/net/core/rmem_max 212992 -> 8388608",
            "/proc/sys/vm/stat_interval 1 -> 120",
            "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor powersave -> performance",
            "/sys/devices/system/cpu/cpu3/cpuidle/state1/disable 0 -> 1",
            "/sys/devices/system/cpu/cpu3/cpuidle/state10/disable 0 -> 1",
            "/sys/devices/virtual/workqueue/cpumask f -> 7",
            "/proc/irq/9/smp_affinity_list 0-3 -> 0-2",
            "/proc/irq/40/smp_affinity_list 0 -> 3",
            "/sys/class/net/takt0/napi_defer_hard_irqs 2 -> 0",
            "/sys/class/net/takt0/gro_flush_timeout 200000 -> 0",
            "/sys/class/net/takt0/queues/rx-0/rps_cpus f -> 0",
        ]
    );
    let text = serde_json::to_string_pretty(&plan).expect("it can be written");
    assert_eq!(serde_json::from_str::<Plan>(&text).expect("it can be read"), plan);
}

#[test]
fn missing_features_are_reported_with_an_alternative() {
    let tree = Tree::new("lacks");
    tree.remove("sys/kernel/realtime");
    tree.remove("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor");
    tree.forbid("proc/irq/9/smp_affinity_list");
    let plan = plan(&tree);
    assert!(changes(&plan).iter().all(|change| !change.contains("/irq/9/")), "{plan:?}");
    let missing_features = plan.missing_features;
    let of = |what: &str| {
        let found = missing_features.iter().find(|feature| feature.what.contains(what));
        found.map(|feature| feature.alternative.as_str()).unwrap_or_else(|| panic!("{what}: {missing_features:?}"))
    };
    assert!(of("PREEMPT_RT").contains("linux-image-rt"));
    assert!(of("isolated processors").contains("isolcpus=3"));
    assert!(of("scaling_governor").contains("firmware"));
    assert!(of("/proc/irq/9/smp_affinity_list as \"0-2\"").contains("managed_irq"));
    assert!(of("nmi_watchdog").contains("nothing"));
    // This machine has no such interface.
    assert!(of("ethtool/takt0/rx-usecs").contains("driver"));
    assert!(missing_features.iter().all(|feature| !feature.why.is_empty() && !feature.alternative.is_empty()));
}

#[test]
fn without_processors_only_sockets_and_the_interface_are_planned() {
    let tree = Tree::new("small");
    let machine = tree.machine();
    let request = Request { cpus: Vec::new(), ..request() };
    let plan = Plan::new(&machine, &Facts::of(&machine), &request).expect("valid request");
    assert!(changes(&plan).iter().all(|change| change.contains("/net/")), "{plan:?}");
    assert_eq!(plan.changes.len(), 4);
}

#[test]
fn impossible_requests_are_refused() {
    let tree = Tree::new("impossible");
    let machine = tree.machine();
    let facts = Facts::of(&machine);
    let refused = |cpus: &[usize], interface: &str| {
        let request = Request { cpus: cpus.to_vec(), interface: Some(interface.into()), ..Request::default() };
        Plan::new(&machine, &facts, &request).expect_err("invalid request").to_string()
    };
    assert_eq!(refused(&[4], "takt0"), "processor 4 is not online; the online processors are 0-3");
    assert_eq!(refused(&[0, 1, 2, 3], "takt0"), "at least one processor must remain for other threads");
    assert_eq!(refused(&[3], "takt9"), "interface \"takt9\" does not exist");
}

#[test]
fn control_group_has_its_processors_exclusively() {
    let tree = Tree::new("group");
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n");
    tree.write("sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
    let machine = tree.machine();
    let request = Request { has_control_group: true, ..request() };
    let planned = |tree: &Tree| {
        let plan = Plan::new(&tree.machine(), &Facts::of(&machine), &request).expect("valid request");
        let mut changes = changes(&plan);
        changes.retain(|change| change.contains("cgroup"));
        (changes, plan.missing_features.into_iter().find(|feature| feature.what.contains("control groups")))
    };
    let group = [
        "/sys/fs/cgroup/cgroup.subtree_control cpu -> cpu cpuset",
        "/sys/fs/cgroup/takt/ none -> there",
        "/sys/fs/cgroup/takt/cpuset.cpus  -> 3",
        "/sys/fs/cgroup/takt/cpuset.cpus.partition member -> isolated",
    ];
    assert_eq!(planned(&tree), (group.map(str::to_owned).to_vec(), None));
    // The group exists with another processor.
    tree.write("sys/fs/cgroup/cgroup.subtree_control", "cpuset cpu\n");
    tree.write("sys/fs/cgroup/takt/cpuset.cpus", "1\n");
    tree.write("sys/fs/cgroup/takt/cpuset.cpus.partition", "isolated\n");
    assert_eq!(planned(&tree).0, ["/sys/fs/cgroup/takt/cpuset.cpus 1 -> 3"]);
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpu io\n");
    let (changes, feature) = planned(&tree);
    assert!(changes.is_empty());
    assert!(feature.expect("it is named").alternative.contains("cgroup_no_v1=cpuset"));
}

#[test]
fn sockets_poll_for_the_requested_time() {
    let tree = Tree::new("poll");
    tree.write("proc/sys/net/core/busy_read", "0\n");
    tree.write("proc/sys/net/core/busy_poll", "50\n");
    tree.write("sys/class/net/takt0/threaded", "1\n");
    let machine = tree.machine();
    let request = Request { busy_poll_us: Some(50), cpus: Vec::new(), ..request() };
    let plan = Plan::new(&machine, &Facts::of(&machine), &request).expect("valid request");
    // The tree has PREEMPT_RT, where a driver thread may be preferable, and its interrupts are
    // already deferred.
    assert_eq!(
        changes(&plan),
        [
            "/proc/sys/net/core/rmem_max 212992 -> 8388608",
            "/proc/sys/net/core/busy_read 0 -> 50",
            "/sys/class/net/takt0/queues/rx-0/rps_cpus f -> 0",
        ]
    );
    tree.remove("sys/kernel/realtime");
    let plan = Plan::new(&machine, &Facts::of(&machine), &request).expect("valid request");
    assert!(changes(&plan).contains(&"/sys/class/net/takt0/threaded 1 -> 0".to_owned()), "{plan:?}");
}

/// Of the interrupts of an interface, only those of the queue move to the real-time processor.
#[test]
fn only_interrupts_of_the_queue_move_to_the_real_time_processor() {
    let tree = Tree::new("interrupts");
    tree.write("sys/class/net/takt0/device/msi_irqs/41", "");
    tree.write("sys/kernel/irq/40/actions", "takt0-TxRx-0\n");
    tree.write("sys/kernel/irq/41/actions", "takt0-TxRx-1\n");
    tree.write("proc/irq/40/smp_affinity_list", "3\n");
    tree.write("sys/class/net/takt0/queues/tx-1/xps_cpus", "0\n");
    let machine = tree.machine();
    let request = Request { queue: Some(1), ..request() };
    let plan = Plan::new(&machine, &Facts::of(&machine), &request).expect("valid request");
    let changes = changes(&plan);
    let of = |start: &str| changes.iter().filter(|change| change.starts_with(start)).cloned().collect::<Vec<_>>();
    assert_eq!(of("/proc/irq/4"), ["/proc/irq/40/smp_affinity_list 3 -> 0-2", "/proc/irq/41/smp_affinity_list 1 -> 3"]);
    assert_eq!(
        of("/sys/class/net/takt0/queues/tx"),
        ["/sys/class/net/takt0/queues/tx-0/xps_cpus 3 -> 7", "/sys/class/net/takt0/queues/tx-1/xps_cpus 0 -> 8"]
    );
    assert!(plan.missing_features.iter().any(|feature| feature.what.contains("rules of takt0")), "{plan:?}");
}

#[test]
fn contradictory_requests_are_refused() {
    let tree = Tree::new("contradictions");
    let machine = tree.machine();
    let facts = Facts::of(&machine);
    let none = Request::default();
    let on = |request: Request| Request { interface: Some("takt0".into()), ..request };
    for (request, why) in [
        (Request { queue: Some(1), cpus: vec![3], ..none.clone() }, "require --interface"),
        (Request { has_control_group: true, ..none.clone() }, "a control group requires processors"),
        (on(Request { dscp: vec![64], queue: Some(1), ..none.clone() }), "the maximum DSCP is 63"),
        (on(Request { dscp: vec![46], ..none.clone() }), "marks require a queue"),
        (on(Request { queue: Some(1), ..none.clone() }), "a queue requires marks"),
        (on(Request { line_rate_bits: Some(1_000_000), ..none.clone() }), "a line rate requires marks"),
        (on(Request { line_rate_bits: Some(1), dscp: vec![46], ..none }), "expected a line rate from"),
    ] {
        let refused = Plan::new(&machine, &facts, &request).expect_err("contradictory").to_string();
        assert!(refused.contains(why), "{refused}");
    }
}
