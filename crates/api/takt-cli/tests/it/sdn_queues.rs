//! `takt sdn queues` and `takt sdn measure` in labs whose ports have no classes.

use std::path::PathBuf;

use serde_json::Value;
use takt_lab::file::SWITCHES;
use takt_lab::{Check, Lab, Outcome, preflight};
use takt_netlink::traffic::{Discipline, ROOT};
use takt_netlink::{Netlink, interface_index};
use takt_sdn::model::SwitchModel;
use takt_testkit::lab_text::{LabText, lab_name, network_text};
use takt_testkit::{not_run, require};

use crate::process::Takt;
use crate::sdn_site::{RATE, RATE_BPS, entries, start};

/// Classes of the model `ovs-netdev`, with the class of control traffic.
const CLASSES: &str = r#"
[[classes]]
name = "first"
dscp = [46]
frames = 100
[[classes]]
name = "second"
dscp = [34]
frames = 100
[[classes]]
name = "third"
dscp = [26]
frames = 100
[[classes]]
name = "fourth"
dscp = [18]
frames = 100
[[classes]]
name = "control"
dscp = [48]
ether_types = [0x0806, 0x88cc]
frames = 100
[[classes]]
name = "other"
frames = 256
"#;

/// Two hosts at a switch whose ports have no classes, and a directory with the network file.
struct Site {
    lab: Lab,
    directory: PathBuf,
}

impl Site {
    /// Starts the lab, with a model file in addition to `network.toml` if there is one. Without
    /// root or Open vSwitch it reports the test as not run.
    fn up(test: &str, model: Option<&str>) -> Option<Self> {
        if let Err(why) = require::open_vswitch() {
            not_run(why);
            return None;
        }
        let text = LabText::of(&["s1"]).classes(CLASSES).host("left", "10.9.0.1/24", "s1");
        let text = text.host_of_rate("right", "10.9.0.2/24", "s1", RATE);
        let file = format!("switch_classes = false\n{}", text.text(test)).parse().unwrap();
        let lab = Lab::up(&file).unwrap_or_else(|why| panic!("{why}"));
        let directory = std::env::temp_dir().join(lab_name(test));
        std::fs::create_dir_all(&directory).unwrap();
        let mut network = network_text(RATE_BPS);
        if let Some(model) = model {
            std::fs::write(directory.join("model.toml"), model).unwrap();
            network = network.replace("ovs-netdev", "model.toml");
        }
        std::fs::write(directory.join("network.toml"), network).unwrap();
        Some(Self { lab, directory })
    }

    fn queues(&self, action: &str, options: &str) -> Takt {
        let network = self.directory.join("network.toml");
        let database = self.lab.directory().join("db.sock");
        let line = format!(
            "sdn queues {action} --network {} --ovsdb unix:{} {options}",
            network.display(),
            database.display()
        );
        start(&self.lab, SWITCHES, &line)
    }

    /// Returns one field of all ports.
    fn field(&self, action: &str, options: &str, key: &str) -> Vec<Value> {
        let answer = self.queues(action, &format!("{options} --json")).json();
        answer["ports"].as_array().unwrap().iter().map(|port| port[key].clone()).collect()
    }

    /// Returns the kinds and handles of the root queueing disciplines of a port.
    fn root(&self, interface: &str) -> Vec<(String, u32)> {
        let read = || Netlink::route()?.disciplines(interface_index(interface)?);
        let all = self.lab.namespace(SWITCHES).unwrap().run(read).unwrap().unwrap();
        let roots = all.into_iter().filter(|one| one.parent == ROOT && one.handle != 0);
        roots.map(|one| (one.kind, one.handle)).collect()
    }

    fn classes(&self) -> Check {
        let checks = self.lab.check_datagrams().unwrap();
        checks.into_iter().find(|check| check.name == preflight::CLASSES).unwrap()
    }

    fn down(self) {
        self.lab.remove().unwrap();
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

#[test]
fn queues_are_created_once_read_back_survive_a_restart_and_are_reverted() {
    let Some(mut site) = Site::up("cli-queues", None) else { return };
    let made = site.lab.checks().iter().find(|check| check.name == preflight::CLASSES).unwrap();
    assert_eq!(made.outcome, Outcome::NotMeasured, "{made:?}");
    assert_eq!(site.classes().outcome, Outcome::Failed, "the port has no classes");
    assert_eq!(site.field("plan", "", "state"), ["no queues", "no queues"]);
    assert_eq!(site.root("s1-2"), [], "a plan changes nothing");
    assert_eq!(site.field("apply", "", "change"), ["made", "made"]);
    assert_eq!(site.classes().outcome, Outcome::Passed, "{:?}", site.classes());
    let kept = || site.lab.check().unwrap();
    assert!(kept().iter().all(|check| check.outcome == Outcome::Passed), "{:?}", kept());
    assert_eq!(site.field("apply", "", "change"), ["unchanged", "unchanged"]);
    assert_eq!(site.field("plan", "", "state"), ["queues of the model", "queues of the model"]);
    let shown = site.field("show", "", "classes");
    let sent = |place: usize| shown[1][place]["sent"].as_u64().unwrap();
    assert!((0..6).all(|place| sent(place) > 0), "the check sent datagrams of every class: {shown:?}");
    assert_eq!(site.field("apply", "--rest-frames 99", "change"), ["replaced", "replaced"]);
    assert_eq!(site.field("plan", "", "state"), ["different queues of takt", "different queues of takt"]);
    site.lab.restart_switches().unwrap();
    assert_eq!(site.field("plan", "--rest-frames 99", "state"), ["queues of the model", "queues of the model"]);
    assert_eq!(site.field("revert", "", "change"), ["removed", "removed"]);
    assert_eq!(site.root("s1-2"), []);
    assert_eq!(site.classes().outcome, Outcome::Failed, "they are gone");
    assert_eq!(site.field("revert", "", "change"), ["unchanged", "unchanged"]);
    site.down();
}

#[test]
fn queueing_discipline_of_another_program_is_kept_unless_replace_is_given() {
    let Some(site) = Site::up("cli-queues-foreign", None) else { return };
    let make = || {
        let pfifo = Discipline::Pfifo { frames: 7 };
        Netlink::route()?.add_discipline(interface_index("s1-2")?, 0x0007_0000, ROOT, pfifo)
    };
    site.lab.namespace(SWITCHES).unwrap().run(make).unwrap().unwrap();
    let foreign = [("pfifo".to_owned(), 0x0007_0000)];
    let (text, code) = site.queues("apply", "").error_text();
    assert!(
        text.contains("s1-2 (port 2 of switch 0000000000000001): pfifo 7:") && text.contains("--replace"),
        "{text}"
    );
    assert_eq!((code, site.root("s1-1"), site.root("s1-2")), (Some(1), Vec::new(), foreign.to_vec()));
    assert_eq!(site.field("revert", "", "change"), ["unchanged", "unchanged"]);
    assert_eq!(site.root("s1-2"), foreign, "revert removes what apply made");
    assert_eq!(site.field("apply", "--replace", "change"), ["made", "replaced"]);
    assert_eq!(site.classes().outcome, Outcome::Passed, "{:?}", site.classes());
    site.down();
}

#[test]
fn open_vswitch_rows_become_classes_with_the_priorities_of_the_model() {
    let (_, hardware) = SwitchModel::BUILT_IN.iter().find(|(name, _)| *name == "generic-hardware").unwrap();
    let Some(site) = Site::up("cli-queues-ovsdb", Some(hardware)) else { return };
    let mut database = site.lab.database().unwrap();
    // For each port the lab has a QoS row that keeps Open vSwitch from changing its queueing
    // disciplines.
    let (text, code) = site.queues("apply", "--by ovsdb").error_text();
    assert!(text.contains("a QoS row of the type linux-noop") && code == Some(1), "{text}");
    ["s1-1", "s1-2"].iter().for_each(|port| database.clear_qos(port).unwrap());
    assert_eq!(site.field("apply", "--by ovsdb", "change"), ["made", "made"]);
    let read = || Netlink::route()?.htb_classes(interface_index("s1-2")?);
    let classes = site.lab.namespace(SWITCHES).unwrap().run(read).unwrap().unwrap();
    // Queue n is the class n + 1 of the kernel, and 1:fffe is the class of the port.
    let queue = |number: u32| classes.iter().find(|class| class.class == 0x0001_0000 | (number + 1)).unwrap();
    for (number, priority) in [(7, 0), (6, 1), (5, 2), (4, 3), (3, 4), (0, 5)] {
        assert_eq!((queue(number).priority, queue(number).ceiling), (priority, 2_500_000), "queue {number}");
    }
    assert_eq!(site.field("apply", "--by ovsdb", "change"), ["unchanged", "unchanged"]);
    assert_eq!(site.field("revert", "", "change"), ["removed", "removed"]);
    assert_eq!(database.qos("s1-2").unwrap(), None);
    site.down();
}

#[test]
fn queues_without_a_port_or_a_database_report_what_is_missing() {
    let directory = std::env::temp_dir().join(lab_name("cli-queues-none"));
    std::fs::create_dir_all(&directory).unwrap();
    let network = directory.join("network.toml");
    std::fs::write(&network, network_text(RATE_BPS)).unwrap();
    for (options, word) in [
        ("", "no port of this host"),
        ("--by ovsdb", "--by ovsdb requires --ovsdb"),
        ("--ovsdb unix:/nowhere/db.sock", "connect to /nowhere/db.sock"),
        ("--ovsdb tcp:192.0.2.1:6640", "is another host"),
        ("--port 0000000000000001:2=takt-none0", "takt-none0 (port 2 of switch 0000000000000001)"),
    ] {
        let (text, code) =
            Takt::start(&format!("sdn queues plan --network {} {options}", network.display())).error_text();
        assert!(text.contains(word) && code != Some(0), "{options}: {text}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Measures with probes in the namespaces of a site's hosts.
fn measure(site: &Site, options: &str) -> Takt {
    let switch = site.lab.directory().join("s1.mgmt");
    let name = site.lab.name();
    let probes = format!("--from takt.{name}.left/eth0 --to takt.{name}.right/eth0");
    Takt::start(&format!("sdn measure --switch unix:{} {probes} --samples 200 {options}", switch.display()))
}

#[test]
fn measured_model_has_the_configured_queues_and_the_switch_is_restored() {
    let Some(site) = Site::up("cli-measure", None) else { return };
    let before = entries(&site.lab, "s1").lines().count();
    // On a port without queues, no frame takes precedence. The measurement leaves nothing in the
    // switch.
    let (text, code) = measure(&site, &format!("--rate {RATE_BPS}")).error_text();
    assert!(text.contains("takt sdn queues apply") && code == Some(1), "{text}");
    assert_eq!(entries(&site.lab, "s1").lines().count(), before);
    site.field("apply", "", "change");
    let file = site.directory.join("measured.toml");
    let (text, status) = measure(&site, &format!("--name seen --output {}", file.display())).finish();
    assert!(status.success(), "{text}");
    let text = std::fs::read_to_string(&file).unwrap();
    let model = SwitchModel::parse("measured.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let marks = |queue: &takt_sdn::model::Queue| (queue.selection.set_queue, queue.selection.dscp);
    let found: Vec<_> = model.queues.iter().chain(&model.control).map(marks).collect();
    assert_eq!(found, [46, 34, 26, 18, 48].map(|dscp| (None, Some(dscp))), "{text}");
    assert!(text.contains("4 of 4 pairs of neighboring queues are served by strict priority"), "{text}");
    // The measured depth never exceeds the capacity of the queues.
    for queue in model.queues.iter().chain(&model.control) {
        assert!((10..=100).contains(&queue.depth.frames), "{text}");
    }
    assert_eq!(model.tables.flow_entries, 1_000_000, "{text}");
    assert_eq!(entries(&site.lab, "s1").lines().count(), before, "nothing stays");
    site.down();
}

#[test]
fn interrupted_measurement_leaves_nothing_in_the_switch() {
    let Some(site) = Site::up("cli-measure-stop", None) else { return };
    site.field("apply", "", "change");
    let before = entries(&site.lab, "s1").lines().count();
    let measuring = measure(&site, "");
    measuring.await_complaint("probes are at ports 1 and 2");
    assert!(entries(&site.lab, "s1").lines().count() > before, "it has its entries");
    measuring.terminate();
    assert_eq!(measuring.error_text().1, Some(143));
    assert_eq!(entries(&site.lab, "s1").lines().count(), before);
    site.down();
}
