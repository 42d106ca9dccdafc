//! `takt perf --job-accounts`, `takt analyze --measured` and `takt perf --system`: one run measures
//! the times from which the bound of the next run is computed.

use crate::file::File;
use crate::process::Takt;

/// System file with a rate so low that times of a loaded machine are admissible as well.
const SYSTEM: &str = r#"
[[executor]]
name = "pub"

[[executor]]
name = "sub"

[[flow]]
name = "data"
topic = "Data"
min_separation = "60 s"
stages = [
    { on = "pub", priority = 40, time = "1 ms", delay = "1 ms" },
    { on = "sub", priority = 40, RECEIVE },
    { on = "sub", priority = 40, CALLBACK },
]
"#;

fn declared() -> String {
    SYSTEM.replace("RECEIVE", "time = \"9 ms\"").replace("CALLBACK", "time = \"9 ms\"")
}

fn measured() -> String {
    SYSTEM.replace("RECEIVE", "measured = \"receive\"").replace("CALLBACK", "measured = \"callback\"")
}

/// Runs a stream between two processes with a system file and returns the output of the receiver.
fn stream(domain: u32, system: &str, accounts: &str) -> String {
    let common = format!("--domain {domain} --best-effort --keep-last 100 --warmup 0 --system {system}");
    let sub = Takt::start(&format!("perf sub {common} --executor sub --samples 500 --job-accounts {accounts}"));
    let publish = Takt::start(&format!("perf pub {common} --executor pub --samples 600 --rate 250"));
    let (text, code) = publish.error_text();
    assert_eq!(code, Some(0), "{text}");
    let (text, code) = sub.error_text();
    assert_eq!(code, Some(0), "{text}");
    text
}

#[test]
fn times_of_one_run_give_the_bound_of_the_next() {
    let (first, second) = (File::new("declared.toml", &declared()), File::new("measured.toml", &measured()));
    let (accounts, certificate) = (File::new("sub-accounts.json", ""), File::new("measured.json", ""));
    let output = stream(215, &first.path(), &accounts.path());
    assert!(output.contains("above the bound of 38000.000 us"), "{output}");
    let line = format!(
        "analyze {} --measured {} --margin 2 --certificate {}",
        second.path(),
        accounts.path(),
        certificate.path()
    );
    let (text, errors, code) = Takt::start(&line).ending();
    assert!(code == Some(0) && text.contains("measured on sub: (receive "), "{text} {errors}");
    let text = std::fs::read_to_string(&certificate.0).expect("it was written");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["measured"][0]["margin_permille"], 2000);
    assert!(value["measured"][0]["jobs"][0]["count"].as_u64() >= Some(100), "{}", value["measured"]);
    let (text, status) = Takt::start(&format!("analyze --verify {}", certificate.path())).finish();
    assert!(status.success() && text.starts_with("proven: "), "{text}");

    let (output, code) = Takt::start(&format!("analyze {}", second.path())).error_text();
    assert!(code == Some(2) && output.contains("no job statistics of executor \"sub\""), "{output}");
    let (output, code) = Takt::start(&format!("perf pub --domain 215 --system {}", second.path())).error_text();
    assert!(code == Some(2) && output.contains("no job statistics of executor \"sub\""), "{output}");
}
