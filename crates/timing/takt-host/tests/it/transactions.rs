//! Transactions: a plan is applied completely or not at all, and reverted after any interruption.

use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use takt_host::apply::ApplyError;
use takt_host::{Change, Facts, Journal, Plan, Request, apply, revert, verify};

use takt_testkit::waiting::{lines, receive};
use takt_testkit::{not_run, require};

use super::tree::Tree;

fn plan(tree: &Tree) -> Plan {
    let machine = tree.machine();
    let request = Request { cpus: vec![3], interface: Some("takt0".into()), ..Request::default() };
    Plan::new(&machine, &Facts::of(&machine), &request).expect("valid request")
}

fn change(setting: &str, to: &str) -> Change {
    Change { setting: setting.parse().expect("a setting"), from: String::new(), to: to.into(), why: String::new() }
}

fn reverted(tree: &Tree) {
    let failures = revert(&tree.machine(), tree.journal()).expect("the journal can be ended");
    assert!(failures.is_empty(), "{failures:?}");
    assert!(!tree.journal_path().exists());
}

#[test]
fn applied_plan_is_in_effect_and_can_be_reverted() {
    let tree = Tree::new("apply");
    let (before, plan) = (tree.dump(), plan(&tree));
    assert_eq!(verify(&tree.machine(), &plan).len(), plan.changes.len());
    apply(&tree.machine(), &plan, &mut tree.journal()).expect("it can be applied");
    assert!(verify(&tree.machine(), &plan).is_empty());
    assert_eq!(tree.read("proc/irq/40/smp_affinity_list"), "3");
    reverted(&tree);
    assert_eq!(tree.dump(), before);
}

#[test]
fn plan_applied_twice_is_reverted_to_the_beginning() {
    let tree = Tree::new("twice");
    let before = tree.dump();
    apply(&tree.machine(), &plan(&tree), &mut tree.journal()).expect("it can be applied");
    // Another request is applied, after a setting was changed by hand.
    tree.write("proc/sys/vm/stat_interval", "60\n");
    let other = Plan { changes: vec![change("/proc/sys/vm/stat_interval", "30")], ..plan(&tree) };
    apply(&tree.machine(), &other, &mut tree.journal()).expect("it can be applied");
    reverted(&tree);
    assert_eq!(tree.dump(), before);
}

#[test]
fn failed_change_reverts_the_previous_ones() {
    let tree = Tree::new("fails");
    let (before, mut plan) = (tree.dump(), plan(&tree));
    plan.changes.push(change("/proc/sys/net/ipv4/nothing", "1"));
    let why = apply(&tree.machine(), &plan, &mut tree.journal()).expect_err("the file does not exist");
    let ApplyError::Change(failure, left) = &why else { panic!("{why}") };
    assert_eq!((failure.why.kind(), left.len()), (ErrorKind::NotFound, 0), "{why}");
    assert!(why.to_string().starts_with("/proc/sys/net/ipv4/nothing is not \"1\": "), "{why}");
    assert_eq!(tree.dump(), before);
    reverted(&tree);
    assert_eq!(tree.dump(), before);
}

#[test]
fn only_one_process_at_a_time_opens_the_journal() {
    let tree = Tree::new("alone");
    let journal = tree.journal();
    let refused = Journal::open(tree.journal_path()).map(drop).expect_err("the journal is locked");
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    drop(journal);
    drop(tree.journal());
}

#[test]
fn incomplete_last_line_is_ignored() {
    let tree = Tree::new("torn");
    let before = tree.dump();
    apply(&tree.machine(), &plan(&tree), &mut tree.journal()).expect("it can be applied");
    let whole = std::fs::read(tree.journal_path()).expect("it was written");
    let recorded = tree.journal().former_values().len();
    std::fs::write(tree.journal_path(), [&whole[..], b"{\"knob\":\"/proc/sys/vm/st"].concat()).expect("success");
    assert_eq!(tree.journal().former_values().len(), recorded);
    std::fs::write(tree.journal_path(), [&whole[..], b"nonsense\n"].concat()).expect("success");
    let refused = Journal::open(tree.journal_path()).map(drop).expect_err("a whole line");
    assert_eq!(refused.kind(), ErrorKind::InvalidData);
    std::fs::write(tree.journal_path(), whole).expect("success");
    reverted(&tree);
    assert_eq!(tree.dump(), before);
}

#[test]
fn directories_are_created_and_removed() {
    let tree = Tree::new("directory");
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpuset\n");
    let group = tree.root().join("sys/fs/cgroup/takt");
    let plan = Plan { changes: vec![change("/sys/fs/cgroup/takt/", "there")], missing_features: Vec::new() };
    apply(&tree.machine(), &plan, &mut tree.journal()).expect("success");
    assert!(group.is_dir() && verify(&tree.machine(), &plan).is_empty());
    // A group with processes remains, and so does its journal entry.
    std::fs::write(group.join("process"), "").expect("writable");
    let failures = revert(&tree.machine(), tree.journal()).expect("the journal can be kept");
    assert_eq!((failures.len(), tree.journal_path().exists()), (1, true));
    std::fs::remove_file(group.join("process")).expect("it exists");
    reverted(&tree);
    assert!(!group.exists());
}

/// A removed interface has no settings to restore.
#[test]
fn settings_that_no_longer_exist_are_skipped() {
    let tree = Tree::new("gone");
    apply(&tree.machine(), &plan(&tree), &mut tree.journal()).expect("it can be applied");
    tree.remove("sys/class/net/takt0/queues/rx-0/rps_cpus");
    reverted(&tree);
    assert_eq!(tree.read("proc/sys/vm/stat_interval"), "1");
}

/// Time limit of the attempts.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The test is also the program that is killed. It applies and reverts in a loop, and prints a line
/// before each.
#[test]
fn apply_killed_at_any_moment_can_be_reverted() {
    if let Some(root) = std::env::var_os("TAKT_TEST_HOST_ROOT") {
        let machine = takt_host::Machine::below(&root);
        let path = std::path::Path::new(&root).join("run/host.journal");
        loop {
            let request = Request { cpus: vec![3], interface: Some("takt0".into()), ..Request::default() };
            let plan = Plan::new(&machine, &Facts::of(&machine), &request).expect("valid request");
            let mut journal = Journal::open(&path).expect("not locked");
            println!("applying");
            apply(&machine, &plan, &mut journal).expect("it can be applied");
            revert(&machine, journal).expect("the journal can be ended");
        }
    }
    let tree = Tree::new("killed");
    let before = tree.dump();
    let mut half_done = 0;
    let since = Instant::now();
    // On a loaded machine, much time may pass between two system calls of the process to be killed.
    for round in 0.. {
        if round >= 40 && half_done > 0 {
            break;
        }
        assert!(since.elapsed() < TIMEOUT, "it was never killed in the middle");
        let mut applying = Command::new("/proc/self/exe");
        applying.args(["--exact", "transactions::apply_killed_at_any_moment_can_be_reverted", "--nocapture"]);
        applying.env("TAKT_TEST_HOST_ROOT", tree.root()).stdout(Stdio::piped());
        let mut applying = applying.spawn().expect("this program can be run");
        let output = lines(applying.stdout.take().expect("it is piped"));
        while !receive("the plan is applied", &output).contains("applying") {}
        // Each round kills at a different moment.
        let printed = Instant::now();
        while printed.elapsed() < Duration::from_micros(97 * (round % 40)) {
            std::hint::spin_loop();
        }
        applying.kill().expect("it runs");
        applying.wait().expect("it has ended");
        half_done += usize::from(tree.dump() != before);
        revert(&tree.machine(), tree.journal()).expect("the journal can be ended");
        assert_eq!(tree.dump(), before, "round {round}");
    }
}

/// Returns a plan with these changes only.
fn plan_of(changes: &[(&str, &str)]) -> Plan {
    Plan { changes: changes.iter().map(|(setting, to)| change(setting, to)).collect(), missing_features: Vec::new() }
}

#[test]
fn revert_keeps_and_reports_values_changed_by_others() {
    let tree = Tree::new("since");
    let plan = plan_of(&[("/proc/sys/vm/stat_interval", "120"), ("/proc/sys/net/core/rmem_max", "1000000")]);
    apply(&tree.machine(), &plan, &mut tree.journal()).expect("it can be applied");
    tree.write("proc/sys/vm/stat_interval", "60\n");
    let left = revert(&tree.machine(), tree.journal()).expect("the journal can be ended");
    let texts: Vec<String> = left.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "/proc/sys/vm/stat_interval is not \"1\": the value \"60\" is not the one that apply set (\"120\"): not reverted"
        ]
    );
    assert_eq!(tree.read("proc/sys/vm/stat_interval"), "60");
    assert_eq!(tree.read("proc/sys/net/core/rmem_max"), "212992");
    assert!(!tree.journal_path().exists());
}

#[test]
fn failed_revert_keeps_values_changed_before_the_next_attempt() {
    let tree = Tree::new("again");
    let setting = "proc/sys/vm/stat_interval";
    apply(&tree.machine(), &plan_of(&[("/proc/sys/vm/stat_interval", "30")]), &mut tree.journal())
        .expect("it can be set");
    // The setting cannot be restored while a directory has its path.
    tree.remove(setting);
    std::fs::create_dir(tree.root().join(setting)).expect("the location is free");
    let failures = revert(&tree.machine(), tree.journal()).expect("the journal can be kept");
    assert_eq!((failures.len(), tree.journal_path().exists()), (1, true));
    std::fs::remove_dir(tree.root().join(setting)).expect("it is empty");
    tree.write(setting, "60\n");
    let left = revert(&tree.machine(), tree.journal()).expect("the journal can be ended");
    assert_eq!((left.len(), tree.read(setting).trim()), (1, "60"), "{left:?}");
    assert!(!tree.journal_path().exists());
}

#[test]
fn reverted_apply_leaves_no_journal_entries() {
    let tree = Tree::new("notes");
    let plan = plan_of(&[("/proc/sys/vm/stat_interval", "120"), ("/proc/sys/net/ipv4/nothing", "1")]);
    apply(&tree.machine(), &plan, &mut tree.journal()).expect_err("the file does not exist");
    assert_eq!(tree.journal().former_values(), []);
    // An administrator sets a value that was never applied.
    tree.write("proc/sys/vm/stat_interval", "60\n");
    reverted(&tree);
    assert_eq!(tree.read("proc/sys/vm/stat_interval"), "60");

    // A value that an earlier apply set is still its own after a later one was reverted.
    tree.write("proc/sys/vm/stat_interval", "1\n");
    apply(&tree.machine(), &plan_of(&[("/proc/sys/vm/stat_interval", "30")]), &mut tree.journal()).expect("success");
    apply(&tree.machine(), &plan, &mut tree.journal()).expect_err("the file does not exist");
    assert_eq!(tree.read("proc/sys/vm/stat_interval"), "30");
    reverted(&tree);
    assert_eq!(tree.read("proc/sys/vm/stat_interval"), "1");
}

#[test]
fn links_that_leave_their_root_are_not_followed() {
    use std::os::unix::fs::symlink;
    let tree = Tree::new("links");
    tree.write("etc/secret", "old\n");
    tree.write("sys/devices/pci/value", "old\n");
    symlink(tree.root().join("etc"), tree.root().join("sys/outside")).expect("writable");
    symlink("../../etc/secret", tree.root().join("sys/kernel/file")).expect("writable");
    symlink("../devices/pci", tree.root().join("sys/kernel/inside")).expect("writable");
    for (setting, to) in [("/sys/outside/secret", "new"), ("/sys/kernel/file", "new"), ("/sys/outside/group/", "there")]
    {
        let why = apply(&tree.machine(), &plan_of(&[(setting, to)]), &mut tree.journal()).expect_err(setting);
        let ApplyError::Change(failure, left) = &why else { panic!("{why}") };
        assert_eq!((failure.why.kind(), left.len()), (ErrorKind::PermissionDenied, 0), "{why}");
        assert!(failure.why.to_string().contains("outside /proc/sys, /proc/irq, /sys"), "{why}");
    }
    assert_eq!(tree.read("etc/secret"), "old");
    assert!(!tree.root().join("etc/group").exists());
    apply(&tree.machine(), &plan_of(&[("/sys/kernel/inside/value", "new")]), &mut tree.journal()).expect("it is below");
    assert_eq!(tree.read("sys/devices/pci/value"), "new");
}

#[test]
fn link_to_a_setting_that_runs_code_is_not_followed() {
    let tree = Tree::new("code");
    tree.write("proc/sys/kernel/core_pattern", "core\n");
    std::os::unix::fs::symlink("core_pattern", tree.root().join("proc/sys/kernel/harmless")).expect("writable");
    let plan = plan_of(&[("/proc/sys/kernel/harmless", "|/tmp/program")]);
    let why = apply(&tree.machine(), &plan, &mut tree.journal()).expect_err("forbidden file");
    let ApplyError::Change(failure, left) = &why else { panic!("{why}") };
    assert_eq!((failure.why.kind(), left.len()), (ErrorKind::PermissionDenied, 0), "{why}");
    let text = failure.why.to_string();
    assert!(text.contains("a plan may not set /proc/sys/kernel/core_pattern"), "{text}");
    assert_eq!(tree.read("proc/sys/kernel/core_pattern"), "core");
}

/// Environment variable of the process that has its own mount namespace.
const INSIDE: &str = "TAKT_TEST_FULL_JOURNAL";

#[test]
fn journal_on_a_full_disk_refuses_changes_and_stays_whole() {
    if std::env::var_os(INSIDE).is_some() {
        return fill_journal();
    }
    if let Err(why) = require::mount_namespaces() {
        return not_run(why);
    }
    let mut inside = Command::new("unshare");
    inside.arg("--mount").arg(std::env::current_exe().expect("this program")).env(INSIDE, "1");
    inside.args(["--exact", "transactions::journal_on_a_full_disk_refuses_changes_and_stays_whole", "--nocapture"]);
    let ended = inside.output().expect("it can be run");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()));
}

fn fill_journal() {
    let tree = Tree::new("full");
    let disk = tree.root().join("run");
    std::fs::create_dir_all(&disk).expect("writable");
    // One page, which some forty entries fill.
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4k", "none"]).arg(&disk).status();
    assert!(mounted.expect("it can be run").success());
    let setting = |n: u32| format!("/proc/sys/net/core/knob_{n}");
    (0..100).for_each(|n| tree.write(&setting(n)[1..], "0\n"));
    let before = tree.dump();
    let mut journal = tree.journal();
    let mut recorded = 0;
    let why = loop {
        match apply(&tree.machine(), &plan_of(&[(&setting(recorded), "1")]), &mut journal) {
            Ok(()) => recorded += 1,
            Err(why) => break why,
        }
    };
    let ApplyError::Journal(_, left) = &why else { panic!("{why}") };
    assert_eq!(left.len(), 0, "{why}");
    assert_eq!(tree.read(&setting(recorded)[1..]), "0");
    // The same journal continues after space is available. No line follows an incomplete one.
    let remounted = Command::new("mount").args(["-o", "remount,size=64k"]).arg(&disk).status();
    assert!(remounted.expect("it can be run").success());
    apply(&tree.machine(), &plan_of(&[(&setting(99), "1")]), &mut journal).expect("there is space");
    drop(journal);
    assert_eq!(tree.journal().former_values().len(), recorded as usize + 1);
    reverted(&tree);
    assert_eq!(tree.dump(), before);
    assert!(Command::new("umount").arg(&disk).status().expect("it can be run").success());
}

#[test]
fn failures_to_revert_are_reported_if_the_journal_cannot_be_written() {
    let why = std::io::Error::from(ErrorKind::StorageFull);
    let left = takt_host::apply::Failure {
        setting: "/proc/sys/vm/stat_interval".parse().expect("a setting"),
        wanted: "1".to_owned(),
        why: ErrorKind::PermissionDenied.into(),
    };
    let text = ApplyError::Journal(why, vec![left]).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("the journal cannot be written: no storage space"), "{text}");
    assert_eq!(lines[1], "not reverted: /proc/sys/vm/stat_interval is not \"1\": permission denied");
}
