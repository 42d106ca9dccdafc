//! Tests that a process is killed at any moment while it makes a lab, and that `down` leaves
//! nothing behind.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use takt_lab::{Error, Lab, Status};
use takt_testkit::{not_run, require};

use crate::bridges::BRIDGED;
use crate::support::{file, name, one_switch};

/// Variable with the lab's name, for the process that is killed.
const NAME: &str = "TAKT_TEST_LAB_NAME";
/// Variable with the rest of its file.
const TEXT: &str = "TAKT_TEST_LAB_TEXT";
/// Number of kills, spread over the duration of `up` and some time after it.
const KILLS: u32 = 24;

#[test]
#[ignore = "role: started by other tests"]
fn victim() {
    let text = format!("name = \"{}\"\n{}", std::env::var(NAME).expect("it is set"), one_switch());
    Lab::up(&text.parse().expect("valid file")).expect("success").keep().expect("it stays");
}

fn start(lab: &str) -> std::process::Child {
    Command::new(std::env::current_exe().expect("it runs"))
        .args(["--ignored", "--exact", "kill::victim", "--nocapture"])
        .env(NAME, lab)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is this program")
}

/// Returns the leftovers of a lab of this name on the machine.
fn leftovers(lab: &str) -> Vec<String> {
    let names = |directory: &str| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>()
    };
    let mut found = [names("/run/netns"), names("/run/takt/lab")].concat();
    let mounts = std::fs::read_to_string("/proc/mounts").expect("proc is mounted");
    found.extend(mounts.lines().map(str::to_owned));
    // Arguments of Open vSwitch contain the lab's directory; the victim has the name only in its
    // environment.
    let processes = names("/proc").into_iter().map(|process| Path::new(&process).join("cmdline"));
    found.extend(
        processes.filter_map(|path| std::fs::read(path).ok()).map(|line| String::from_utf8_lossy(&line).into_owned()),
    );
    found.retain(|one| one.contains(lab));
    found
}

/// Returns the settings while no lab has raised them: the file of former values exists while
/// they are raised.
fn usual_settings() -> [String; 2] {
    let saved_values = Path::new("/run/takt/lab/.buffers");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        let was_raised = saved_values.exists();
        let found = ["wmem_default", "rmem_default"]
            .map(|name| std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).expect("proc is mounted"));
        if !was_raised && !saved_values.exists() {
            return found;
        }
    }
    panic!("the note of the settings is left");
}

#[test]
fn down_leaves_nothing_after_up_was_killed_at_any_moment() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = name("kill");
    let begin = Instant::now();
    assert!(start(&lab).wait().expect("it ends").success(), "it is kept");
    let took = begin.elapsed();
    assert!(Status::read(&lab).expect("it is up").is_complete);
    Lab::down(&lab).expect("success");
    assert_eq!(leftovers(&lab), Vec::<String>::new());
    let usual = usual_settings();
    let mut states = [0; 3];
    for kill in 0..KILLS {
        let mut victim = start(&lab);
        let moment = took * kill / (KILLS - 2);
        // tidy-allow(sleep): the moment of the kill is the input of this test
        std::thread::sleep(moment);
        victim.kill().expect("it is a child of this process");
        victim.wait().expect("it was killed");
        let state = match Status::read(&lab) {
            Err(Error::LabNotFound(_)) => 0,
            Ok(status) => 1 + usize::from(status.is_complete),
            Err(error) => panic!("{error}"),
        };
        states[state] += 1;
        match Lab::down(&lab) {
            Ok(()) => {}
            // The process was killed before it had a record, or a lab of another test has removed
            // its lab already. The next lab removes leftovers.
            Err(Error::LabNotFound(_)) => Lab::remove_abandoned().expect("as root"),
            Err(error) => panic!("killed after {moment:?}: {error}"),
        }
        assert_eq!(leftovers(&lab), Vec::<String>::new(), "killed after {moment:?}");
    }
    assert_eq!(usual_settings(), usual);
    assert!(states[1] > 0, "no kill fell into the making of the lab: {states:?}");
}

#[test]
fn next_lab_removes_the_owned_lab_of_a_killed_process() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    kill_owner("owned", &one_switch());
}

#[test]
fn next_lab_removes_bridge_and_links_of_a_killed_process() {
    if let Err(why) = require::root().and_then(|()| require::network_namespaces()) {
        return not_run(why);
    }
    kill_owner("owned-bridge", BRIDGED);
}

/// Kills a process that owns a lab, and makes another lab of the same name.
fn kill_owner(test: &str, text: &str) {
    let lab = name(test);
    let mut owner = Command::new(std::env::current_exe().expect("it runs"))
        .args(["--ignored", "--exact", "kill::owner", "--nocapture"])
        .env(NAME, &lab)
        .env(TEXT, text)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is this program");
    let begin = Instant::now();
    while !Status::read(&lab).is_ok_and(|status| status.is_complete) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the lab is made");
        std::thread::yield_now();
    }
    let error = Lab::up(&file(test, text)).expect_err("it exists");
    assert!(matches!(&error, Error::LabExists(name) if *name == lab), "{error}");
    owner.kill().expect("it is a child of this process");
    owner.wait().expect("it was killed");
    assert_ne!(leftovers(&lab), Vec::<String>::new(), "nothing else removes it");
    let next = Lab::up(&file(test, text)).expect("the name is free");
    next.remove().expect("success");
    assert_eq!(leftovers(&lab), Vec::<String>::new());
}

#[test]
#[ignore = "role: started by other tests"]
fn owner() {
    let of = |variable| std::env::var(variable).expect("it is set");
    let text = format!("name = \"{}\"\n{}", of(NAME), of(TEXT));
    let _lab = Lab::up(&text.parse().expect("valid file")).expect("success");
    // Blocks until it is killed.
    std::io::stdin().read_line(&mut String::new()).expect("the other end is open");
}
