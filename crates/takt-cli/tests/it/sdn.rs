//! `takt sdn run` between bridges of Open vSwitch: participants match and exchange samples through it.

use serde_json::json;
use takt_lab::file::SWITCHES;
use takt_lab::{Lab, LabFile};
use takt_testkit::{not_run, require};

use crate::process::Takt;

const TWO_SWITCHES: &str = r#"
    [hosts.left]
    eth0 = ["10.9.0.1/24"]
    [hosts.right]
    eth0 = ["10.9.0.2/24"]
    [switches.s1]
    controller = "tcp:127.0.0.1:6653"
    [switches.s2]
    controller = "tcp:127.0.0.1:6653"
    [[links]]
    ends = ["left:eth0", "s1"]
    [[links]]
    ends = ["s1", "s2"]
    [[links]]
    ends = ["s2", "right:eth0"]
"#;

/// Starts `takt` in a namespace of the lab.
fn start(lab: &Lab, place: &str, line: &str) -> Takt {
    lab.namespace(place).unwrap().run(|| Takt::start(line)).unwrap()
}

/// Reads what the controller writes until it has said all of this, in any order.
fn until(controller: &Takt, wanted: &[&str]) {
    let mut missing = wanted.to_vec();
    while !missing.is_empty() {
        let line = controller.line().unwrap_or_else(|| panic!("it does not say {missing:?}"));
        missing.retain(|wanted| !line.contains(wanted));
    }
}

#[test]
fn participants_match_and_exchange_samples_through_the_controller() {
    let programs = ["ovsdb-server", "ovs-vswitchd", "ovsdb-tool"];
    if let Err(why) = require::root()
        .and_then(|()| require::network_namespaces())
        .and_then(|()| programs.into_iter().try_for_each(require::program))
    {
        return not_run(why);
    }
    let name = format!("cli-sdn-{}", std::process::id());
    let file: LabFile = format!("name = \"{name}\"\n{TWO_SWITCHES}").parse().unwrap();
    let lab = Lab::up(&file).unwrap_or_else(|why| panic!("{why}"));
    let controller = start(&lab, SWITCHES, "sdn run --listen 127.0.0.1:6653");
    until(
        &controller,
        &["listening at 127.0.0.1:6653", "switch 0000000000000001 is up", "switch 0000000000000002 is up"],
    );
    until(&controller, &["floods follow 1 links"]);
    let options = "--transport udp --interface eth0 --domain 3 --samples 300 --warmup 20 --json";
    let pong = start(&lab, "right", &format!("perf pong {options}"));
    let report = start(&lab, "left", &format!("perf ping {options}")).json();
    assert_eq!(pong.json()["samples"]["sent"], json!(320));
    assert_eq!((&report["samples"]["received"], &report["samples"]["lost"]), (&json!(300), &json!(0)));
    let found = ["10.9.0.1:", "10.9.0.2:"].map(|address| format!("found, {address}"));
    until(&controller, &["without a contract", "has the address", &found[0], &found[1]]);
    controller.terminate();
    let complaint = controller.complaint().0;
    assert!(complaint.contains("2 switches, 1 links, 2 hosts"), "{complaint}");
    let discovery = complaint.rsplit(", ").next().and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    assert!(discovery.is_some_and(|count| count > 0), "discovery goes by the controller: {complaint}");
    lab.remove().unwrap();
}

const NETWORK: &str = r#"
    [[switch]]
    datapath_id = "*"
    model = "ovs-netdev"
    rate_bps = 1_000_000_000
"#;

const CONTRACTS: &str = r#"
    [[contract]]
    topic = "Square"
    separation = "5ms"
    size = 1000
    limit = "50ms"
"#;

#[test]
fn reliable_pair_with_a_contract_is_admitted_and_its_samples_arrive() {
    let programs = ["ovsdb-server", "ovs-vswitchd", "ovsdb-tool"];
    if let Err(why) = require::root()
        .and_then(|()| require::network_namespaces())
        .and_then(|()| programs.into_iter().try_for_each(require::program))
    {
        return not_run(why);
    }
    let directory = std::env::temp_dir().join(format!("takt-cli-sdn-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let [network, contracts] = ["network.toml", "contracts.toml"].map(|name| directory.join(name));
    std::fs::write(&network, NETWORK).unwrap();
    std::fs::write(&contracts, CONTRACTS).unwrap();
    let name = format!("cli-sdn-pair-{}", std::process::id());
    let file: LabFile = format!("name = \"{name}\"\n{TWO_SWITCHES}").parse().unwrap();
    let lab = Lab::up(&file).unwrap_or_else(|why| panic!("{why}"));
    let options = format!("--network {} --contracts {}", network.display(), contracts.display());
    let controller = start(&lab, SWITCHES, &format!("sdn run --listen 127.0.0.1:6653 {options}"));
    until(&controller, &["floods follow 1 links"]);
    let shared = "--type ShapeType --reliable --transport udp --interface eth0 --domain 4";
    let _reader = start(&lab, "right", &format!("sub Square {shared}"));
    let value = r#"{"color":"RED","x":10}"#;
    let publisher = start(&lab, "left", &format!("pub Square {value} {shared} --rate 50 --count 100"));
    until(&controller, &["found, with a contract", "is admitted: "]);
    let (_, status) = publisher.finish();
    assert!(status.success(), "{status}: all samples are acknowledged");
    controller.terminate();
    lab.remove().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}
