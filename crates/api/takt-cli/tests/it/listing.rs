//! `takt ls`: endpoints of other processes, and reasons for mismatches.

use crate::process::Takt;
use serde_json::{Value, json};

fn list(options: &str) -> Value {
    Takt::start(&format!("ls --interface lo --peer 127.0.0.1 --json {options}")).json()
}

fn topic<'a>(catalogue: &'a Value, name: &str) -> &'a Value {
    let topics = catalogue["topics"].as_array().unwrap();
    topics.iter().find(|t| t["name"] == name).unwrap_or_else(|| panic!("no {name} in {catalogue}"))
}

#[test]
fn matching_endpoints_are_listed() {
    let agents = ["id=0", "id=1"].map(|id| Takt::start(&format!("perf agent disc iface=lo domain=180 {id}")));
    for agent in &agents {
        agent.event("ready");
        agent.event("matched");
    }
    let catalogue = list("--domain 180");
    let participants = catalogue["participants"].as_array().unwrap();
    assert_eq!(participants.len(), 2, "{catalogue}");
    assert!(participants.iter().all(|p| p["name"] == "takt-bench" && p["host"].is_string()));
    let pids: Vec<&str> = participants.iter().filter_map(|p| p["pid"].as_str()).collect();
    assert!(agents.iter().all(|agent| pids.contains(&agent.id().to_string().as_str())), "{catalogue}");
    for name in ["Ping", "Pong"] {
        let topic = topic(&catalogue, name);
        assert_eq!(topic["writers"][0]["type_name"], "Blob");
        assert_eq!(topic["writers"][0]["policies"], json!({ "reliability": "RELIABLE", "durability": "VOLATILE" }));
        assert_eq!(topic["writers"][0]["participant"], "takt-bench");
        assert_eq!(topic["pairs"].as_array().unwrap().len(), 1);
        assert_eq!(topic["pairs"][0]["matched"], json!(true));
    }
}

#[test]
fn mismatched_pair_is_listed_with_its_reason() {
    let writer = Takt::start("perf agent idle iface=lo domain=181 n=0 id=0 rel=besteffort secs=600");
    let reader = Takt::start("perf agent idle iface=lo domain=181 n=0 id=1 rel=reliable secs=600");
    writer.event("ready");
    reader.event("ready");
    let catalogue = list("--domain 181");
    let pair = &topic(&catalogue, "Ping")["pairs"][0];
    assert_eq!(pair["matched"], json!(false), "{catalogue}");
    let reason = pair["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("RELIABILITY: the writer offers BEST_EFFORT"), "{reason}");
    // In the other direction, a reliable writer matches a best-effort reader.
    assert_eq!(topic(&catalogue, "Pong")["pairs"][0]["matched"], json!(true));
}

#[test]
fn empty_domain_is_no_failure() {
    let (text, status) = Takt::start("ls --interface lo --domain 182 --wait 0.1").finish();
    assert!(status.success());
    assert!(text.starts_with("domain 182: no participants"), "{text}");
}
