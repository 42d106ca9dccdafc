//! What a wish takes.

use takt_host::{Facts, Plan, Wish};

use super::tree::Tree;

fn wish() -> Wish {
    Wish { cpus: vec![3], interface: Some("takt0".into()) }
}

fn plan(tree: &Tree) -> Plan {
    let machine = tree.machine();
    Plan::new(&machine, &Facts::of(&machine), &wish()).expect("it is possible")
}

fn changes(plan: &Plan) -> Vec<String> {
    plan.changes.iter().map(|change| format!("{} {} -> {}", change.knob, change.from, change.to)).collect()
}

#[test]
fn a_plan_has_what_is_not_so_yet() {
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
fn what_is_not_there_is_named_with_what_to_do_instead() {
    let tree = Tree::new("lacks");
    tree.remove("sys/kernel/realtime");
    tree.remove("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor");
    tree.forbid("proc/irq/9/smp_affinity_list");
    let plan = plan(&tree);
    assert!(changes(&plan).iter().all(|change| !change.contains("/irq/9/")), "{plan:?}");
    let lacks = plan.lacks;
    let of = |what: &str| {
        let found = lacks.iter().find(|lack| lack.what.contains(what));
        found.map(|lack| lack.instead.as_str()).unwrap_or_else(|| panic!("{what}: {lacks:?}"))
    };
    assert!(of("PREEMPT_RT").contains("linux-image-rt"));
    assert!(of("isolated processors").contains("isolcpus=3"));
    assert!(of("scaling_governor").contains("firmware"));
    assert!(of("/proc/irq/9/smp_affinity_list as \"0-2\"").contains("managed_irq"));
    assert!(of("nmi_watchdog").contains("nothing"));
    // No such interface of this machine.
    assert!(of("ethtool/takt0/rx-usecs").contains("driver"));
    assert!(lacks.iter().all(|lack| !lack.why.is_empty() && !lack.instead.is_empty()));
}

#[test]
fn without_processors_only_sockets_and_the_interface_are_planned() {
    let tree = Tree::new("small");
    let machine = tree.machine();
    let wish = Wish { cpus: Vec::new(), ..wish() };
    let plan = Plan::new(&machine, &Facts::of(&machine), &wish).expect("it is possible");
    assert!(changes(&plan).iter().all(|change| change.contains("/net/")), "{plan:?}");
    assert_eq!(plan.changes.len(), 4);
}

#[test]
fn what_cannot_be_is_refused() {
    let tree = Tree::new("impossible");
    let machine = tree.machine();
    let facts = Facts::of(&machine);
    let refused = |cpus: &[usize], interface: &str| {
        let wish = Wish { cpus: cpus.to_vec(), interface: Some(interface.into()) };
        Plan::new(&machine, &facts, &wish).expect_err("it is not possible").to_string()
    };
    assert_eq!(refused(&[4], "takt0"), "processor 4 is not online; there are 0-3");
    assert_eq!(refused(&[0, 1, 2, 3], "takt0"), "one processor at least must be left for all else");
    assert_eq!(refused(&[3], "takt9"), "there is no interface \"takt9\"");
}
