//! `takt ps`, `hz`, `bw`, `delay`, `ls --watch`, `echo 'PATTERN'`, `--field`, completions and
//! manual pages.

use crate::process::Takt;
use serde_json::{Value, json};

const VALUE: &str = r#"{"color":"RED","x":3,"y":-4,"shapesize":5}"#;

fn start(command: &str, domain: u32) -> Takt {
    Takt::start(&format!("{command} --interface lo --peer 127.0.0.1 --domain {domain}"))
}

/// Starts a publisher of 20 samples a second.
fn publisher(topic: &str, domain: u32) -> Takt {
    start(&format!("pub {topic} {VALUE} --type ShapeType --no-wait --count 0 --rate 20"), domain)
}

#[test]
fn rate_bandwidth_and_delay_are_measured_without_the_type() {
    let publisher = publisher("Square", 224);
    let rate = start("hz Square --every 0.2 --count 10 --json", 224);
    let bandwidth = start("bw Square --every 0.2 --count 10", 224);
    let (text, status) = start("delay Square --every 0.2 --count 5 --json", 224).finish();
    assert!(status.success(), "{text}");
    let delay: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(delay["delay_us"].as_f64() > Some(0.0) && delay["samples"] == json!(5), "{delay}");
    let (text, status) = rate.finish();
    assert!(status.success(), "{text}");
    let rate: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(rate["rate_hz"].as_f64() > Some(0.0) && rate["samples"] == json!(10), "{rate}");
    let (text, status) = bandwidth.finish();
    // Encapsulation, the string RED, three integers of four bytes, and alignment.
    assert!(status.success() && text.contains("size min 24.0, mean 24.0, max 24.0"), "{text}");
    publisher.terminate();
    let (text, code) = start("hz Nothing --timeout 1", 224).error_text();
    assert!(code == Some(3) && text.contains("topic Nothing has no writer"), "{text}");
}

#[test]
fn processes_are_listed_with_their_endpoints() {
    let publisher = publisher("Square", 225);
    let id = publisher.id().to_string();
    let listing = start("ps --json", 225).json();
    let rows = listing["participants"].as_array().unwrap();
    let row = rows.iter().find(|row| row["pid"] == json!(id)).unwrap_or_else(|| panic!("{listing}"));
    assert_eq!((&row["topics"], &row["writers"], &row["vendor"]), (&json!(1), &json!(1), &json!("01.7a (Takt)")));
    let (text, status) = start("ps", 225).finish();
    assert!(status.success() && text.starts_with("HOST ") && text.contains(&id), "{text}");
    publisher.terminate();
}

#[test]
fn watched_list_is_printed_again_when_the_domain_changes() {
    let watch = start("ls --watch --wait 0.5", 229);
    watch.expect_line(&["domain 229: no participants"]);
    let publisher = publisher("Square", 229);
    watch.expect_line(&["domain 229: 1 participant", "topic Square: 1 writer, no reader"]);
    publisher.terminate();
    watch.expect_line(&["domain 229: no participants"]);
    watch.terminate();
    assert_eq!(watch.error_text().1, Some(143));
}

#[test]
fn pattern_echoes_every_matching_topic_with_its_name() {
    let publishers = ["SquareA", "SquareB", "Circle"].map(|topic| publisher(topic, 231));
    let echo = start("echo Square* --json", 231);
    let mut seen = [false; 2];
    while seen != [true; 2] {
        let line: Value = serde_json::from_str(&echo.line().expect("samples arrive")).unwrap();
        assert_eq!(line["data"], serde_json::from_str::<Value>(VALUE).unwrap());
        match line["topic"].as_str() {
            Some("SquareA") => seen[0] = true,
            Some("SquareB") => seen[1] = true,
            _ => panic!("{line}"),
        }
    }
    let (text, status) = start("echo Circ?e --count 1 --field y", 231).finish();
    assert!(status.success());
    assert_eq!(text, "Circle -4");
    publishers.iter().for_each(Takt::terminate);
    let (text, code) = start("echo * --raw", 231).error_text();
    assert!(code == Some(2) && text.contains("not for a pattern"), "{text}");
}

#[test]
fn one_member_is_printed_and_an_unknown_one_is_refused() {
    let publisher = publisher("Square", 228);
    let (text, status) = start("echo Square --count 1 --field shapesize", 228).finish();
    assert_eq!((text.as_str(), status.success()), ("5", true));
    let line = start("echo Square --count 1 --field color --json", 228).json();
    assert_eq!(line["data"], json!("RED"));
    let (text, code) = start("echo Square --count 1 --field size", 228).error_text();
    assert!(code == Some(2) && text.contains("type ShapeType: the sample has no member size"), "{text}");
    publisher.terminate();
}

#[test]
fn completions_and_manual_pages_cover_the_commands() {
    let (text, status) = Takt::start("completions bash").finish();
    assert!(status.success() && text.contains("takt__subcmd__echo") && text.contains("--field"), "{text}");
    let directory = std::env::temp_dir().join(format!("takt-man-{}", std::process::id()));
    let (_, status) = Takt::start(&format!("man {}", directory.display())).finish();
    assert!(status.success());
    let page = std::fs::read_to_string(directory.join("takt-echo.1")).unwrap();
    std::fs::remove_dir_all(directory).unwrap();
    assert!(page.contains("\\-\\-field") && page.contains("takt echo Square"), "{page}");
}
