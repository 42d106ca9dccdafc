//! Kills of `takt sdn run` during an overload: the switches keep forwarding, and the next run
//! restores the state of the previous one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use takt_lab::Lab;
use takt_lab::file::SWITCHES;
use takt_sdn::store::{Records, Store};
use takt_testkit::lab_text::{CLASSES, LabText, lab_name, network_text};
use takt_testkit::waiting::{self, until_some};
use takt_testkit::{not_run, overload, require};

use crate::process::Takt;
use crate::sdn_site::{self, Overload, RATE, RATE_BPS, packets, start, up};

/// Returns a lab whose bottleneck is the link between the switches.
fn two_switches() -> LabText {
    let text = LabText::controlled(&["west", "east"]).switch_priority(30).classes(CLASSES);
    let text = text.host("talker", "10.9.1.1/24", "west").host("flooder", "10.9.1.3/24", "west");
    text.link_of_rate("west", "east", RATE).host("listener", "10.9.1.2/24", "east")
}

/// Target of the flood: the discard port (RFC 863).
const LISTENER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 9, 1, 2)), 9);

/// Contracts with a period of 10 ms. A sample may wait for a processor on its way to the meter.
const CONTRACTS: &str = r#"
    [[contract]]
    topic = "P?ng"
    separation = "5ms"
    jitter = "50ms"
    size = 1000
    limit = "100ms"
"#;
/// Number of measured round trips, one each 10 ms. Round trips before them leave time for the
/// overload to begin.
const SAMPLES: u64 = 2500;
/// Number of measured round trips in a cluster. They last for two elections.
const SAMPLES_OF_CLUSTER: u64 = 5000;
const WARMUP: u64 = 500;

/// Lab with the files of its controller.
struct Site {
    lab: Lab,
    directory: PathBuf,
}

impl Site {
    fn up(test: &str) -> Self {
        let test = format!("cli-sdn-{test}");
        let directory = std::env::temp_dir().join(lab_name(&test));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("network.toml"), network_text(RATE_BPS)).unwrap();
        std::fs::write(directory.join("contracts.toml"), CONTRACTS).unwrap();
        Self { lab: up(&test, &two_switches()), directory }
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn start(&self, place: &str, line: &str) -> Takt {
        start(&self.lab, place, line)
    }

    fn controller(&self, options: &str) -> Takt {
        self.controller_at(6653, "control.sock", options)
    }

    fn controller_at(&self, port: u16, control: &str, options: &str) -> Takt {
        let files = format!("--network {} --contracts {}", self.path("network.toml"), self.path("contracts.toml"));
        let control = format!("--control {}", self.path(control));
        self.start(SWITCHES, &format!("sdn run --listen 127.0.0.1:{port} {files} {control} {options}"))
    }

    /// Returns the answer of a control socket to `takt sdn flows`, by topic and without counters.
    fn flows(&self, control: &str) -> BTreeMap<String, Value> {
        let mut answer = Takt::start(&format!("sdn flows --control {} --json", self.path(control))).json();
        let flows = answer["flows"].as_array_mut().unwrap().iter_mut();
        let without_counters = flows.map(|flow| {
            flow.as_object_mut().unwrap().remove("traffic").unwrap();
            (flow["topic"].as_str().unwrap().to_owned(), flow.clone())
        });
        without_counters.collect()
    }

    /// Returns the entries of admitted flows in both switches, each with its packet counter.
    fn entries(&self) -> BTreeMap<String, u64> {
        let mut entries = BTreeMap::new();
        for switch in ["west", "east"] {
            for line in sdn_site::entries(&self.lab, switch).lines().filter(|line| line.contains("priority=55000,")) {
                let entry = &line[line.find("priority=").unwrap()..];
                entries.insert(format!("{switch} {entry}"), packets(line));
            }
        }
        entries
    }

    /// Returns the present content of a controller's store. The file is copied, since the
    /// controller has it open.
    fn records(&self, store: &str) -> Option<Records> {
        let copy = self.directory.join("copy.redb");
        std::fs::copy(self.directory.join(store), &copy).ok()?;
        // A copy made during a transaction cannot always be read.
        Store::open(&copy).ok().map(|(_, records)| records)
    }

    fn down(self) {
        self.lab.remove().unwrap();
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

fn admitted(records: &Records) -> Vec<(&String, &Vec<u8>)> {
    records.iter().filter(|(key, _)| key.starts_with("admitted/")).collect()
}

fn is_running(takt: &Takt) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", takt.id())).unwrap_or_default();
    text.rsplit(") ").next().is_some_and(|rest| !rest.starts_with('Z') && !rest.is_empty())
}

/// Starts participants that exchange samples with contracts in both directions.
fn round_trips(site: &Site, domain: u32, samples: u64) -> [Takt; 2] {
    let options = format!("--transport udp --interface eth0 --domain {domain} --best-effort --size 64 --json");
    let counts = format!("--samples {samples} --warmup {WARMUP}");
    let pong = site.start("listener", &format!("perf pong {options} {counts}"));
    let ping = site.start("talker", &format!("perf ping {options} {counts} --rate 100"));
    [ping, pong]
}

/// Asserts that the entries were kept: an entry that was deleted meanwhile would count its packets
/// from 0.
fn assert_kept(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) {
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert_eq!(before.len(), 4, "two pairs in two switches: {before:?}");
    for (entry, packets) in after {
        assert!(*packets > before[entry], "{entry}: {} packets, then {packets}", before[entry]);
    }
}

fn assert_no_loss(ping: Takt, pong: Takt, samples: u64) {
    let report = ping.json();
    assert_eq!((&report["samples"]["received"], &report["samples"]["lost"]), (&json!(samples), &json!(0)), "{report}");
    assert_eq!(pong.json()["samples"]["sent"], json!(samples + WARMUP));
}

#[test]
fn killed_controller_loses_no_sample_of_admitted_pairs_and_its_successor_has_its_state() {
    let _lock = overload::lock();
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let site = Site::up("kill");
    let store = format!("--store {}", site.path("controller.redb"));
    let controller = site.controller(&store);
    controller.expect_line(&["is up with", "is up with", "flooding uses 1 links"]);
    let [ping, pong] = round_trips(&site, 5, SAMPLES);
    controller.expect_line(&["is admitted: ", "is admitted: "]);
    let overload = Overload::start(&site.lab, "flooder", "listener", LISTENER);
    overload.reach();
    let records = until_some("the store has both pairs", || {
        site.records("controller.redb").filter(|all| admitted(all).len() == 2)
    });
    let (flows, entries) = (site.flows("control.sock"), site.entries());
    controller.signal("KILL");
    drop(controller);
    let successor = site.controller(&store);
    successor.expect_line(&[", 2 admitted pairs", "is admitted: ", "is admitted: "]);
    assert_eq!(site.flows("control.sock"), flows);
    assert_kept(&entries, &site.entries());
    let kept = until_some("the store has the state of before", || site.records("controller.redb"));
    assert_eq!(admitted(&kept), admitted(&records));
    assert!(is_running(&ping), "samples go on");
    assert_no_loss(ping, pong, SAMPLES);
    overload.end();
    site.down();
}

/// Single-member etcd in the namespace of the switches. Dropping the value kills it.
struct Etcd(Child);

impl Etcd {
    fn start(site: &Site) -> Self {
        let mut command = Command::new("etcd");
        let [clients, peers] = [2379, 2380].map(|port| format!("http://127.0.0.1:{port}"));
        command.args(["--data-dir", &site.path("etcd"), "--log-level", "error"]);
        command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("default={peers}")]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(site.lab.namespace(SWITCHES).unwrap().run(|| command.spawn()).unwrap().unwrap())
    }

    /// Returns the keys of the records of admitted pairs.
    fn admitted(site: &Site) -> Vec<String> {
        let mut command = Command::new("etcdctl");
        command.args(["get", "--prefix", "--keys-only", "takt-sdn/records/admitted/"]).env("ETCDCTL_API", "3");
        let output = site.lab.namespace(SWITCHES).unwrap().run(|| waiting::output(&mut command)).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // The process has already ended if the test could not start it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a lab whose switches know two controllers, with etcd. A missing program is an error.
fn cluster(test: &str) -> Result<(Site, Etcd), String> {
    require::open_vswitch()?;
    ["etcd", "etcdctl"].into_iter().try_for_each(require::program)?;
    let site = Site::up(test);
    for switch in ["west", "east"] {
        let database = format!("--db=unix:{}", site.lab.directory().join("db.sock").display());
        let controllers = ["tcp:127.0.0.1:6653", "tcp:127.0.0.1:6654"];
        let mut command = Command::new("ovs-vsctl");
        let output = waiting::output(command.arg(database).args(["set-controller", switch]).args(controllers));
        assert!(output.status.success(), "{output:?}");
    }
    let etcd = Etcd::start(&site);
    Ok((site, etcd))
}

const CLUSTER: &str = "--cluster etcd:http://127.0.0.1:2379";
const LEADS: &str = "this controller is leader";
const STANDS_BY: &str = "this controller is standby";
const TAKES_OVER: [&str; 4] = [LEADS, ", 2 admitted pairs", "is admitted: ", "is admitted: "];

/// Starts two controllers of a cluster. The first one leads.
fn leader_and_standby(site: &Site) -> (Takt, Takt) {
    let first = site.controller_at(6653, "first.sock", CLUSTER);
    first.expect_line(&[LEADS, "is up with", "is up with", "flooding uses 1 links"]);
    let second = site.controller_at(6654, "second.sock", CLUSTER);
    second.expect_line(&[STANDS_BY]);
    (first, second)
}

#[test]
fn standby_takes_over_from_a_killed_leader_without_loss_and_back_again() {
    let _lock = overload::lock();
    let (site, _etcd) = match cluster("cluster") {
        Ok(made) => made,
        Err(why) => return not_run(why),
    };
    let (first, second) = leader_and_standby(&site);
    let [ping, pong] = round_trips(&site, 6, SAMPLES_OF_CLUSTER);
    first.expect_line(&["is admitted: ", "is admitted: "]);
    let overload = Overload::start(&site.lab, "flooder", "listener", LISTENER);
    overload.reach();
    let keys = until_some("etcd has both pairs", || Some(Etcd::admitted(&site)).filter(|keys| keys.len() == 2));
    let (flows, entries) = (site.flows("first.sock"), site.entries());
    let has_all = |control: &str, before: &BTreeMap<String, u64>| {
        assert_eq!(site.flows(control), flows);
        let entries = site.entries();
        assert_kept(before, &entries);
        assert_eq!(Etcd::admitted(&site), keys);
        entries
    };
    first.signal("KILL");
    drop(first);
    second.expect_line(&TAKES_OVER);
    let entries = has_all("second.sock", &entries);
    let first = site.controller_at(6653, "first.sock", CLUSTER);
    first.expect_line(&[STANDS_BY]);
    second.signal("KILL");
    drop(second);
    first.expect_line(&TAKES_OVER);
    has_all("first.sock", &entries);
    assert!(is_running(&ping), "samples go on");
    assert_no_loss(ping, pong, SAMPLES_OF_CLUSTER);
    overload.end();
    site.down();
}

/// SIGSTOP suspends the leader for longer than its lease. After SIGCONT it detects that its lease
/// has expired, and changes nothing.
#[test]
fn leader_that_was_stopped_past_its_lease_steps_down_and_changes_nothing() {
    let _lock = overload::lock();
    let (site, _etcd) = match cluster("stopped") {
        Ok(made) => made,
        Err(why) => return not_run(why),
    };
    let (first, second) = leader_and_standby(&site);
    let _pair = round_trips(&site, 7, SAMPLES_OF_CLUSTER);
    first.expect_line(&["is admitted: ", "is admitted: "]);
    until_some("etcd has both pairs", || Some(Etcd::admitted(&site)).filter(|keys| keys.len() == 2));
    let (flows, entries) = (site.flows("first.sock"), site.entries());
    first.signal("STOP");
    second.expect_line(&TAKES_OVER);
    first.signal("CONT");
    first.expect_line(&["this controller is no longer leader", STANDS_BY]);
    assert_eq!(site.flows("second.sock"), flows);
    assert_kept(&entries, &site.entries());
    assert_eq!(Etcd::admitted(&site).len(), 2);
    site.down();
}
