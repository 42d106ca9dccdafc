//! `takt echo`, `sub`, `pub` and `type` in combination.

use crate::process::Takt;
use serde_json::{Value, json};

const VALUE: &str = r#"{"color":"RED","x":3,"y":-4,"shapesize":5}"#;

fn start(command: &str, domain: u32) -> Takt {
    Takt::start(&format!("{command} --interface lo --peer 127.0.0.1 --domain {domain}"))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn published_samples_are_echoed_with_a_learned_type() {
    let publisher = start(&format!("pub Square {VALUE} --type ShapeType --no-wait --count 0 --rate 20"), 200);
    let (text, status) = start("echo Square --json --count 3", 200).finish();
    assert!(status.success(), "{text}");
    let lines = lines(&text);
    assert_eq!(lines.len(), 3);
    for line in &lines {
        assert_eq!(
            (&line["type"], &line["state"], &line["valid"]),
            (&json!("ShapeType"), &json!("alive"), &json!(true))
        );
        assert_eq!(line["data"], serde_json::from_str::<Value>(VALUE).unwrap());
        assert!(line["source_timestamp_ns"].as_i64() > Some(0), "{line}");
    }
    let (text, status) = start("echo Square --count 1", 200).finish();
    assert!(status.success() && text.ends_with(VALUE), "members are in the order of the type: {text}");
    let (text, status) = start("type Square", 200).finish();
    assert!(status.success() && text.contains("@key string<128> color;"), "{text}");
    let raw = start("echo Square --raw --json --count 1", 200).json();
    let payload = raw["payload"].as_str().unwrap();
    assert!(payload.starts_with("00010000") && payload.contains("52454400"), "{payload}");
    publisher.terminate();
    let (text, code) = publisher.error_text();
    assert_eq!(code, Some(143), "a stream without end is ended by SIGTERM: {text}");
}

#[test]
fn publisher_learns_type_and_policies_from_a_reader() {
    let reader =
        start("sub Square --type ShapeType --reliable --transient-local --partition here --json --count 4", 201);
    let report = start(&format!("pub Square {VALUE} --json --count 2 --rate 100"), 201).json();
    assert_eq!(
        report,
        json!({ "topic": "Square", "type": "ShapeType", "written": 2, "readers": 1, "acknowledged": true })
    );
    let (_, code) = start(r#"pub Square {"color":"RED"} --dispose"#, 201).error_text();
    assert_eq!(code, Some(0));
    let (text, status) = reader.finish();
    assert!(status.success(), "{text}");
    let lines = lines(&text);
    assert_eq!(lines[0]["data"]["shapesize"], json!(5));
    // Two values, the end of the first publisher, and the dispose of the second one.
    assert_eq!(lines[2]["state"], json!("no_writers"));
    assert_eq!((&lines[3]["state"], &lines[3]["key"]["color"]), (&json!("disposed"), &json!("RED")));
}

/// `takt echo` learns the type from the publisher, in which it is built in.
#[test]
fn publisher_with_a_type_and_echo_without_one_match_in_either_order() {
    let publish = || start(&format!("pub Square {VALUE} --type ShapeType --json"), 221);
    let echo = || start("echo Square --json --count 1", 221);
    for echo_is_first in [true, false] {
        let (publisher, echo) = if echo_is_first {
            let echo = echo();
            echo.await_complaint("takt: looking for topic Square");
            (publish(), echo)
        } else {
            let publisher = publish();
            publisher.await_complaint("takt: looking for topic Square");
            (publisher, echo())
        };
        assert_eq!(echo.json()["data"], serde_json::from_str::<Value>(VALUE).unwrap());
        assert_eq!(publisher.json()["written"], json!(1));
    }
}

/// `takt echo` takes its policies from the first writer, even if it discovers a reader earlier.
#[test]
fn echo_gets_the_history_of_a_reliable_writer_in_either_order() {
    let reader = start("sub History --type ShapeType", 223);
    reader.await_complaint("takt: reading");
    for echo_is_first in [true, false] {
        let line = "pub History --type ShapeType --reliable --transient-local --keep-all --no-wait";
        let write = || {
            let mut writer =
                Takt::start_with_open_input(&format!("{line} --interface lo --peer 127.0.0.1 --domain 223"), &[]);
            writer.feed(&format!("{VALUE}\n").repeat(3));
            writer
        };
        let echo = || start("echo History --json --count 3", 223);
        let (writer, echo) = if echo_is_first {
            let echo = echo();
            echo.await_complaint("takt: topic History has 1 reader, waiting for a writer");
            (write(), echo)
        } else {
            let writer = write();
            let other = start("sub History --type ShapeType --reliable --transient-local --count 3", 223);
            assert!(other.finish().1.success());
            (writer, echo())
        };
        let (text, status) = echo.finish();
        assert!(status.success(), "{text}");
        let numbers: Vec<_> = lines(&text).iter().map(|line| line["sequence_number"].clone()).collect();
        assert_eq!(numbers, [1, 2, 3].map(|number| json!(number)), "echo is first: {echo_is_first}");
        writer.terminate();
        writer.error_text();
    }
}

#[test]
fn publisher_with_a_type_adopts_the_policies_of_a_later_reader() {
    let publisher = start(&format!("pub Square {VALUE} --type ShapeType --json"), 222);
    publisher.await_complaint("takt: looking for topic Square");
    let reader = start("sub Square --type ShapeType --reliable --transient-local --partition here --count 1", 222);
    let report = publisher.json();
    assert_eq!((&report["readers"], &report["acknowledged"]), (&json!(1), &json!(true)), "{report}");
    assert!(reader.finish().1.success());
    let reader = start("sub Square --type ShapeType --exclusive --count 1", 222);
    let report = start(&format!("pub Square {VALUE} --type ShapeType --exclusive --json"), 222).json();
    assert_eq!(report["readers"], json!(1), "{report}");
    assert!(reader.finish().1.success());
}

#[test]
fn values_can_come_from_standard_input() {
    let reader = start("sub Lines --type takt::Text --reliable --keep-all --json --count 3", 202);
    let input = "{\"text\":\"one\"}\n\n{\"text\":\"two\"}\n{}\n";
    let line = "pub Lines --interface lo --peer 127.0.0.1 --domain 202 --json";
    let report = Takt::start_with_input(line, input).json();
    assert_eq!(report["written"], json!(3));
    let (text, _) = reader.finish();
    let texts: Vec<Value> = lines(&text).into_iter().map(|line| line["data"]["text"].clone()).collect();
    assert_eq!(texts, [json!("one"), json!("two"), json!("")]);
}

#[test]
fn empty_standard_input_is_an_error_before_the_wait_for_a_reader() {
    for input in ["", "\n \n"] {
        let (text, code) = Takt::start_with_input("pub Lines --interface lo --domain 208", input).error_text();
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("standard input has no value; expected one JSON value per line"), "{text}");
    }
}

#[test]
fn invalid_value_is_reported_with_its_line_of_standard_input() {
    let line = "pub Lines --type takt::Text --no-wait --interface lo --domain 203";
    let (text, code) = Takt::start_with_input(line, "{}\n\n{\"text\":\"two\"}\n\nnonsense\n").error_text();
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("line 5: the value is not JSON"), "{text}");
}

#[test]
fn content_filter_selects_samples() {
    let publisher = |x: i32, domain| {
        let value = format!(r#"{{"color":"C{x}","x":{x}}}"#);
        start(&format!("pub Square {value} --type ShapeType --no-wait --count 0 --rate 50"), domain)
    };
    let publishers = [publisher(1, 206), publisher(7, 206)];
    let find_both = start("echo Square --json --count 40", 206);
    let filtered = start("echo Square --json --count 10 --filter x>%0 --parameter 1", 206);
    let (text, status) = filtered.finish();
    assert!(status.success(), "{text}");
    assert!(lines(&text).iter().all(|line| line["data"]["x"] == json!(7)), "{text}");
    let (text, _) = find_both.finish();
    assert!(lines(&text).iter().any(|line| line["data"]["x"] == json!(1)), "both were there: {text}");
    for (filter, error_text) in [("speed>1", "ShapeType has no member 'speed'"), ("x>%0", "parameter %0 has no value")]
    {
        let (text, code) = start(&format!("sub Square --type ShapeType --filter {filter}"), 206).error_text();
        assert!(code != Some(0) && text.contains(error_text), "{text}");
    }
    publishers.iter().for_each(Takt::terminate);
}

#[test]
fn errors_are_reported_with_the_exit_code_of_their_kind() {
    for (line, expected, hint) in [
        ("echo Nothing --timeout 0.2", 3, "topic Nothing has no writer or reader"),
        ("type Nothing --timeout 0.2", 3, "topic Nothing has no writer or reader"),
        ("pub Nothing {} --type ShapeType --timeout 0.2", 3, "topic Nothing has no reader"),
        ("sub Nothing --type ShapeType --timeout 0.2", 3, "0 samples of topic Nothing"),
        ("sub Square --type Sphere", 2, "no built-in type Sphere; the built-in types are ShapeType"),
        (r#"pub Square {"colour":"RED"} --type ShapeType"#, 2, "no member \"colour\""),
        (r#"pub Square {"x":1e99} --type ShapeType"#, 2, "the value is not a valid ShapeType: x"),
        ("pub Square {x} --type ShapeType", 2, "the value is not JSON"),
        ("pub Square {} --rate 0", 2, "at least 1e-9"),
        ("pub Square {} --rate 1e-20", 2, "at least 1e-9"),
        ("pub Square {} --rate inf", 2, "expected a rate in samples per second"),
        ("pub Square {} --type ShapeType --timeout 1e19", 2, "from 0 to 1e9"),
        ("type Square --timeout 1e19", 2, "from 0 to 1e9"),
        ("echo Square --timeout 1e19", 2, "from 0 to 1e9"),
        ("sub Square --reliable --best-effort", 2, "cannot be used with"),
    ] {
        let (text, code) = start(line, 203).error_text();
        assert_eq!(code, Some(expected), "{line}: {text}");
        assert!(text.contains(hint), "{line}: {text}");
    }
}

#[test]
fn reader_that_does_not_match_is_reported_with_the_reason() {
    let reader = start("sub Square --type ShapeType --reliable", 204);
    reader.await_complaint("takt: reading");
    let (text, code) = start(&format!("pub Square {VALUE} --best-effort --timeout 3"), 204).error_text();
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("RELIABILITY") && text.contains("1 reader of topic Square found, but none"), "{text}");
}

#[test]
fn best_effort_writer_reports_no_acknowledgment() {
    let reader = start("sub Square --type ShapeType", 214);
    reader.await_complaint("takt: reading");
    let report = start(&format!("pub Square {VALUE} --best-effort --json"), 214).json();
    assert_eq!((&report["written"], &report["acknowledged"]), (&json!(1), &Value::Null), "{report}");
}

#[test]
fn best_effort_reader_acknowledges_nothing_and_receives_the_only_sample() {
    for _ in 0..5 {
        let reader = start("sub Square --type ShapeType --json --count 1 --timeout 20", 215);
        reader.await_complaint("takt: reading");
        let report = start(&format!("pub Square {VALUE} --reliable --json"), 215).json();
        assert_eq!((&report["written"], &report["acknowledged"]), (&json!(1), &Value::Null), "{report}");
        let (text, status) = reader.finish();
        assert!(status.success() && lines(&text).len() == 1, "{text}");
    }
}

#[test]
fn signal_ends_waiting_commands() {
    for (signal, expected) in [("TERM", 143), ("INT", 130)] {
        let waiting = start("echo Square", 205);
        waiting.await_complaint("takt: looking for topic");
        waiting.signal(signal);
        let (text, code) = waiting.error_text();
        assert_eq!(code, Some(expected), "{text}");
    }
}

#[test]
fn help_has_examples_for_every_command() {
    for command in ["echo", "sub", "pub", "type"] {
        let (text, status) = Takt::start(&format!("{command} --help")).finish();
        assert!(status.success() && text.contains(&format!("takt {command} ")), "{text}");
    }
}
