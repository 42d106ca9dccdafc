//! `takt perf agent`: the line protocol of benchmark drivers.

use crate::process::Takt;
use serde_json::{Value, json};

fn agent(role: &str, keys: &str) -> Takt {
    Takt::start(&format!("perf agent {role} iface=lo unknown=key {keys}"))
}

fn has_numbers(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value[key].is_number(), "{key} in {value}");
    }
}

fn end(agent: Takt) {
    agent.terminate();
    let (rest, status) = agent.finish();
    assert!(status.success(), "{status}: {rest}");
    assert_eq!(rest, "");
}

#[test]
fn info_event_describes_the_agent() {
    let agent = Takt::start("perf agent info");
    let info = agent.event("info");
    assert_eq!((&info["peer"], &info["fixed_size"]), (&json!("takt"), &json!(false)));
    assert_eq!(info["notifies"], "listener,waitset,poll");
    let (rest, status) = agent.finish();
    assert!(rest.is_empty() && status.success());
}

/// Checks round trips without loss in up to five attempts. The agent gives up a round trip after a
/// second, which happens on a loaded machine. A defect would lose round trips in every attempt.
fn round_trips(keys: &str) {
    const ATTEMPTS: usize = 5;
    let lost: Vec<u64> = (0..ATTEMPTS).map(|_| attempt(keys)).take_while(|lost| *lost > 0).collect();
    assert!(lost.len() < ATTEMPTS, "lost in each attempt: {lost:?}");
}

/// Runs 100 round trips for each of two sizes and returns how many were given up.
fn attempt(keys: &str) -> u64 {
    let out = std::env::temp_dir().join(format!("takt-it-{}-{}.bin", std::process::id(), keys.len()));
    let (mut got, mut lost) = (0, 0);
    let pong = agent("pong", keys);
    pong.event("ready");
    let ping = agent("ping", &format!("{keys} sizes=16,1024 warmup=10 count=100 out={}", out.display()));
    ping.event("ready");
    for size in [16, 1024] {
        let result = ping.event("result");
        assert_eq!((&result["role"], &result["size"]), (&json!("ping"), &json!(size)));
        let [of_size, given_up] = ["got", "lost"].map(|key| result[key].as_u64().unwrap());
        assert!(of_size <= 100 && of_size + given_up >= 100, "{result}");
        (got, lost) = (got + of_size, lost + given_up);
        has_numbers(&result, &["cpu_s", "wall_s", "nvcsw", "nivcsw", "listening"]);
    }
    ping.event("done");
    let (_, status) = ping.finish();
    assert!(status.success());
    end(pong);
    let bytes = std::fs::read(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    let times = bytes.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap()));
    assert_eq!(bytes.len() as u64, got * 8);
    assert!(times.into_iter().all(|ns| ns > 500 && ns < 10_000_000_000));
    lost
}

#[test]
fn round_trips_complete_by_default() {
    round_trips("domain=121");
}

#[test]
fn round_trips_complete_when_spinning() {
    round_trips("domain=122 transport=spin notify=poll");
}

#[test]
fn round_trips_of_nested_samples_with_short_replies_complete() {
    round_trips("domain=127 type=complex reply=ack");
}

#[test]
fn best_effort_round_trips_with_a_receive_thread_complete() {
    round_trips("domain=123 transport=shared rel=besteffort hist=1");
}

#[test]
fn reliable_stream_arrives_without_loss() {
    let keys = "domain=124 size=100 warm_s=0.1 secs=0.3";
    let sub = agent("sub", &format!("{keys} id=3 touch=1"));
    sub.event("ready");
    let publisher = agent("pub", &format!("{keys} n=1 rate=2000"));
    publisher.event("ready");
    let sent = publisher.event("result");
    assert_eq!(sent["role"], "pub");
    has_numbers(&sent, &["n", "wall_s", "cpu_s", "fails", "total"]);
    let received = sub.event("result");
    assert_eq!((&received["role"], &received["id"]), (&json!("sub"), &json!(3)));
    has_numbers(&received, &["n", "bytes", "wall_s", "cpu_s", "span", "total"]);
    assert_eq!(received["n"], received["span"], "reliable: nothing lost");
    assert_eq!(received["bytes"].as_u64(), received["n"].as_u64().map(|n| n * 100));
    publisher.event("done");
    assert!(publisher.finish().1.success());
    end(sub);
}

#[test]
fn two_agents_report_their_discovery_times() {
    let first = agent("disc", "domain=125 id=0");
    let second = agent("disc", "domain=125 id=1 t0=1");
    for agent in [&first, &second] {
        agent.event("ready");
        let matched = agent.event("matched");
        has_numbers(&matched, &["main_ms", "init_ms", "match_ms"]);
    }
    end(first);
    end(second);
}

#[test]
fn idle_agents_report_their_usage_alone_and_matched() {
    let alone = agent("idle", "domain=126 n=0 warm_s=0 secs=0.1");
    alone.event("ready");
    has_numbers(&alone.event("result"), &["cpu_s", "wall_s", "nvcsw", "resident_kib"]);
    end(alone);
    let first = agent("idle", "domain=127 id=0 n=1 warm_s=0.1 secs=0.2");
    let second = agent("idle", "domain=127 id=1 n=1 warm_s=0.1 secs=0.2");
    for agent in [&first, &second] {
        agent.event("ready");
        agent.event("matched");
        assert_eq!(agent.event("result")["role"], "idle");
    }
    end(first);
    end(second);
}

#[test]
fn reader_with_a_content_filter_takes_its_share_of_a_stream() {
    let keys = "domain=128 type=numbered pass_percent=10 size=100 warm_s=0.1 secs=0.5";
    let pick = agent("pick", keys);
    pick.event("ready");
    let load = agent("load", &format!("{keys} n=1 rate=2000"));
    load.event("ready");
    load.event("matched");
    let sent = load.event("result");
    let received = pick.event("result");
    let [taken, span] = ["n", "span"].map(|key| received[key].as_u64().expect("a number"));
    assert!(taken > 0 && sent["n"].as_u64() > Some(taken), "{sent} {received}");
    assert_eq!(10 * taken, span, "each tenth sample passes, and none is lost: {received}");
    load.event("done");
    assert!(load.finish().1.success());
    end(pick);
    let (text, status) = agent("pick", "domain=128 type=octets").finish();
    assert!(!status.success() && text.contains("pass_percent=10 type=numbered"), "{text}");
}

#[test]
fn samples_of_a_deleted_writer_come_from_the_durability_service() {
    for (domain, kind) in [(129, "transient"), (130, "persistent")] {
        let keys = format!("domain={domain} durability={kind} count=50 size=100");
        let keep = agent("keep", &keys);
        keep.event("ready");
        let hold = agent("hold", &keys);
        hold.event("ready");
        end(hold);
        let join = agent("join", &keys);
        join.event("ready");
        let result = join.event("result");
        assert_eq!(result["n"], 50, "{kind}: {result}");
        join.terminate();
        assert!(join.finish().1.success());
        end(keep);
    }
}
