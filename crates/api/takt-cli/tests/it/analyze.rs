//! `takt analyze`: the example of docs/guide/analysis.md, exceeded limits, and certificates.

use crate::file::File;
use crate::process::Takt;

/// Returns the first code block of this language in docs/guide/analysis.md.
fn example(language: &str) -> String {
    let page = include_str!("../../../../../docs/guide/analysis.md");
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("one exists");
    rest.split_once("```").expect("it ends").0.to_owned()
}

fn output(line: &str) -> String {
    let (text, status) = Takt::start(line).finish();
    assert!(status.success(), "{line}: {text}");
    text
}

fn error_text(line: &str) -> (String, i32) {
    let (text, code) = Takt::start(line).error_text();
    (text, code.expect("not by a signal"))
}

#[test]
fn document_shows_the_printed_report() {
    let system = File::new("document.toml", &example("toml"));
    let shown = example("text");
    let (_, shown) = shown.split_once('\n').expect("the command stands first");
    let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(lines(&output(&format!("analyze {}", system.path()))), lines(shown));
}

#[test]
fn certificate_is_proven_and_a_changed_one_is_refused() {
    let system = File::new("proven.toml", &example("toml"));
    let certificate = File::new("proven.json", "");
    output(&format!("analyze {} --certificate {}", system.path(), certificate.path()));
    let output_text = output(&format!("analyze --verify {}", certificate.path()));
    assert_eq!(output_text, "proven: 4 flows over 3 resources, 1 limits kept");
    let text = std::fs::read_to_string(&certificate.0).expect("it was written");
    for (from, to) in [("\"piece_ns\": 35000", "\"piece_ns\": 35001"), ("\"limit_ns\": 200000", "\"limit_ns\": 100000")]
    {
        assert!(text.contains(from), "{from}");
        let changed = File::new("changed.json", &text.replace(from, to));
        let (output_text, code) = error_text(&format!("analyze --verify {}", changed.path()));
        assert!(code == 1 && output_text.contains("flow 0"), "{output_text}");
    }
    let (output_text, code) = error_text(&format!("analyze --verify {}", system.path()));
    assert!(code == 1 && output_text.contains("line 1"), "{output_text}");
}

#[test]
fn flow_that_exceeds_its_limit_is_named() {
    let tight = File::new("tight.toml", &example("toml").replace("limit = \"200 us\"", "limit = \"120 us\""));
    let (output_text, code) = error_text(&format!("analyze {}", tight.path()));
    assert!(
        code == 1 && output_text.contains("flows that exceed their limits: steering; camera is the first"),
        "{output_text}"
    );
    let flooded = File::new("flooded.toml", &example("toml").replace("priority = 0,", "priority = 7,"));
    let (output_text, code) = error_text(&format!("analyze {}", flooded.path()));
    assert!(code == 1 && output_text.contains("no bound for steering on controller.eth0"), "{output_text}");
}

#[test]
fn what_if_reports_headroom_and_shortest_periods() {
    let system = File::new("what-if.toml", &example("toml"));
    let text = output(&format!("analyze {} --what-if --json", system.path()));
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["flows"][0]["bound_ns"], 171_432);
    assert_eq!(value["flows"][0]["is_kept"], true);
    let permille = value["headroom_permille"].as_u64().expect("it fits");
    assert!(permille > 1000 && permille < 1200, "{permille}");
    let shortest = value["flows"][0]["shortest_period_ns"].as_u64().expect("it fits");
    assert!(shortest < 1_000_000, "{shortest}");
}

#[test]
fn invalid_system_file_is_refused_with_the_reason() {
    for (from, to, why) in [
        ("time = \"35 us\"", "time = \"35\"", "a number and one of ns, us, ms, s"),
        ("on = \"actuator\", priority = 46", "on = \"nobody\", priority = 46", "unknown executor or link \"nobody\""),
        ("limit =", "limits =", "unknown field `limits`"),
        ("name = \"actuator\"", "name = \"controller\"", "two executors or links are named \"controller\""),
        ("burst = 20", "burst = 0", "a burst of 0"),
        ("sample = 64", "time = \"1 us\", sample = 64", "either sample, or time and pieces"),
        ("rate = \"1 Gbit/s\"", "rate = \"0 Gbit/s\"", "a link without rate"),
        ("time = \"35 us\"", "measured = \"receive\"", "no job statistics of executor \"actuator\""),
        (
            "stages = [{ on = \"actuator\"",
            "topic = \"Log\"\nstages = [{ on = \"controller.eth0\"",
            "topic \"Log\" has no stage on an executor",
        ),
        ("time_min = \"8 us\"", "time_min = \"80 us\"", "is shorter than"),
        ("min_separation = \"1 ms\"", "min_separation = \"0 ms\"", "its period is 0"),
    ] {
        assert!(example("toml").contains(from), "{from}");
        let wrong = File::new("wrong.toml", &example("toml").replace(from, to));
        let (output_text, code) = error_text(&format!("analyze {}", wrong.path()));
        assert!((code == 1 || code == 2) && output_text.contains(why), "{to}: {output_text}");
    }
}
