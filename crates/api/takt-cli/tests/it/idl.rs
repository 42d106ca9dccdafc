//! `takt pub`, `echo`, `sub` and `type` with a type that only an IDL file defines.

use crate::process::Takt;
use serde_json::{Value, json};
use takt_testkit::directory::Directory;

const ROBOTS: &str = r#"#include "mode.idl"
module robots {
  const long MOST = 4;
  @final @nested struct Pose { double x; double y; };
  @final struct State {
    @key unsigned long robot;
    Mode mode;
    Pose pose;
    sequence<octet, MOST> blob;
    @optional string<16> note;
  };
  @mutable union Command switch (Mode) { case IDLE: @id(1) long idle_for; default: @id(2) Pose target; };
};
"#;
const MODE: &str = "module robots { @final enum Mode { IDLE, MOVING }; };\n";

fn robots(name: &str) -> (Directory, String) {
    let directory = Directory::with(&format!("cli-idl-{name}"), &[("robots.idl", ROBOTS), ("lib/mode.idl", MODE)]);
    let options = format!("--idl {} -I {}", directory.text("robots.idl"), directory.text("lib"));
    (directory, options)
}

fn start(command: &str, domain: u32) -> Takt {
    Takt::start(&format!("{command} --interface lo --peer 127.0.0.1 --domain {domain}"))
}

#[test]
fn publisher_and_reader_exchange_samples_of_a_type_from_a_file() {
    let domain = takt_testkit::domain::domain();
    let (_directory, idl) = robots("exchange");
    let value = r#"{"robot":7,"mode":"MOVING","pose":{"x":1.5,"y":-2.25},"blob":[1,2,255],"note":"here"}"#;
    let publisher =
        start(&format!("pub RobotState {value} {idl} --type robots::State --no-wait --count 0 --rate 20"), domain);
    for reader in ["echo RobotState", "sub RobotState --reliable"] {
        let line = start(&format!("{reader} {idl} --type robots::State --json --count 1"), domain).json();
        assert_eq!((&line["type"], &line["data"]), (&json!("robots::State"), &serde_json::from_str(value).unwrap()));
    }
    // The publisher provides the type, so that readers need no file.
    let learned = start("echo RobotState --json --count 1", domain).json();
    assert_eq!(learned["data"], serde_json::from_str::<Value>(value).unwrap());
    let (learned, _) = start("type RobotState", domain).finish();
    let (read, _) = Takt::start(&format!("type {idl} --type robots::State")).finish();
    assert_eq!(learned, read);
    publisher.terminate();
    publisher.error_text();
}

#[test]
fn file_whose_type_differs_from_that_of_the_topic_is_reported() {
    let domain = takt_testkit::domain::domain();
    let (_directory, idl) = robots("other");
    let publisher = start("pub Text {\"text\":\"x\"} --type takt::Text --no-wait --count 0 --rate 20", domain);
    let echo = start(&format!("echo Text {idl} --type robots::State --timeout 1"), domain);
    echo.await_complaint("takt: warning: topic Text has the type takt::Text; robots::State does not match");
    let (_, code) = echo.error_text();
    assert_eq!(code, Some(3));
    publisher.terminate();
    publisher.error_text();
}

#[test]
fn type_of_a_file_is_printed_as_idl_rust_and_json() {
    let (directory, idl) = robots("print");
    let (text, status) = Takt::start(&format!("type {idl} --type robots::State")).finish();
    assert!(status.success(), "{text}");
    for line in
        ["@final enum Mode {", "@key unsigned long robot;", "sequence<octet, 4> blob;", "@optional string<16> note;"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    // The printed file defines the same type.
    let again = Directory::with("cli-idl-again", &[("robots.idl", &text)]);
    let (printed, _) = Takt::start(&format!("type --idl {}", again.text("robots.idl"))).finish();
    assert_eq!(printed, text);
    let (rust, _) = Takt::start(&format!("type {idl} --type robots::State --rust")).finish();
    assert!(rust.contains("#[dds(name = \"robots::State\"") && rust.contains("pub struct State"), "{rust}");
    let report = Takt::start(&format!("type {idl} --type robots::Command --json")).json();
    assert_eq!(report["type"], json!("robots::Command"));
    drop(directory);
}

#[test]
fn extensibility_of_types_without_annotation_is_an_option() {
    let directory = Directory::with("cli-idl-default", &[("t.idl", "struct T { long a; };")]);
    for (option, expected) in [("", "@appendable struct T"), ("--default-extensibility final", "@final struct T")] {
        let (text, _) = Takt::start(&format!("type --idl {} {option}", directory.text("t.idl"))).finish();
        assert!(text.starts_with(expected), "{option}: {text}");
    }
}

#[test]
fn mistake_in_a_file_is_reported_with_its_position_and_exit_code_2() {
    let (directory, idl) = robots("wrong");
    let broken = Directory::with(
        "broken",
        &[("b.idl", "struct T {\n  lang a;\n};"), ("p.idl", "#pragma x\nstruct T { long a; };")],
    );
    for (line, hint) in [
        (format!("type --idl {}", broken.text("b.idl")), "b.idl:2:3: 'lang' is not defined before this".to_owned()),
        (format!("pub T {{}} --idl {}", broken.text("b.idl")), "b.idl:2:3: 'lang'".to_owned()),
        (format!("type --idl {}", broken.text("no.idl")), "no.idl:1:1: cannot read the file".to_owned()),
        (
            format!("type {idl}"),
            "2 possible topic types; select one with --type NAME: robots::State, robots::Command".to_owned(),
        ),
        (format!("echo T {idl} --type State"), "no type State; defined types: robots::Pose, robots::State".to_owned()),
        (
            format!("type --idl {}", directory.text("robots.idl")),
            "robots.idl:1:1: include file mode.idl not found in".to_owned(),
        ),
        (
            format!("pub T {{\"robot\":-1}} {idl} --type robots::State"),
            "the value is not a valid robots::State: robot".to_owned(),
        ),
        ("echo T --include lib".to_owned(), "--idl".to_owned()),
        (format!("type Square {idl}"), "cannot be used with".to_owned()),
        (format!("echo T {idl} --raw"), "cannot be used with".to_owned()),
    ] {
        let (text, code) = Takt::start(&line).error_text();
        assert_eq!(code, Some(2), "{line}: {text}");
        assert!(text.contains(&hint), "{line}: {text}");
    }
    let (text, code) = Takt::start(&format!("type --idl {}", broken.text("p.idl"))).error_text();
    assert!(code == Some(0) && text.contains("warning: ") && text.contains("#pragma x has no effect"), "{text}");
}

#[test]
fn ros2_messages_are_published_and_echoed_by_their_ros2_names() {
    let domain = takt_testkit::domain::domain();
    let files = [
        ("a/share/std_msgs/msg/Header.msg", "builtin_interfaces/Time stamp\nstring frame_id\n"),
        ("b/share/builtin_interfaces/msg/Time.msg", "int32 sec\nuint32 nanosec\n"),
        ("c/demo/msg/Reading.msg", "uint8 KIND=1\nstd_msgs/Header header\nfloat64[] values\n"),
    ];
    let directory = Directory::with("cli-idl-ros", &files);
    let installed = [("AMENT_PREFIX_PATH", format!("{}:{}", directory.text("a"), directory.text("b")))];
    let message = format!("--msg demo/msg/Reading -I {}", directory.text("c"));
    let network = format!("--interface lo --peer 127.0.0.1 --domain {domain}");
    let value = r#"{"header":{"stamp":{"sec":5,"nanosec":6},"frame_id":"map"},"values":[1.5,-2.0]}"#;
    let publisher = Takt::start_in(
        &format!("pub /lidar {value} {message} {network} --reliable --no-wait --count 0 --rate 20"),
        &installed,
    );
    for topic in ["/lidar", "lidar", "rt/lidar"] {
        let line = Takt::start_in(&format!("echo {topic} {message} {network} --json --count 1"), &installed).json();
        assert_eq!((&line["topic"], &line["type"]), (&json!("rt/lidar"), &json!("demo::msg::dds_::Reading_")));
        assert_eq!(line["data"], serde_json::from_str::<Value>(value).unwrap());
    }
    publisher.terminate();
    publisher.error_text();
    let (text, status) = Takt::start_in(&format!("type {message}"), &installed).finish();
    assert!(status.success() && text.contains("std_msgs::msg::dds_::Header_ header;"), "{text}");
    for (line, hint) in [
        (format!("type {message}"), "no std_msgs/msg/Header.msg below "),
        ("type --msg Reading".to_owned(), "expected PACKAGE/msg/NAME, found 'Reading'"),
        (format!("echo /lidar {message} --idl a.idl"), "cannot be used with"),
        (format!("echo /lidar {message} --type T"), "cannot be used with"),
    ] {
        let (text, code) = Takt::start_in(&line, &[("AMENT_PREFIX_PATH", String::new())]).error_text();
        assert_eq!(code, Some(2), "{line}: {text}");
        assert!(text.contains(hint), "{line}: {text}");
    }
}

/// ROS_DOMAIN_ID applies to ROS 2 topics only, and only if no setting of Takt names a domain.
#[test]
fn ros2_messages_use_the_ros2_domain() {
    let (domain, other) = (takt_testkit::domain::domain(), takt_testkit::domain::domain());
    let directory = Directory::with("cli-idl-ros-domain", &[("std_msgs/msg/String.msg", "string data\n")]);
    let message = format!("--msg std_msgs/msg/String -I {}", directory.text(""));
    let network = "--interface lo --peer 127.0.0.1";
    let publisher = Takt::start(&format!(
        r#"pub rt/chatter {{"data":"x"}} {message} {network} --domain {domain} --reliable --no-wait --count 0 --rate 20"#
    ));
    let ros2 = ("ROS_DOMAIN_ID", domain.to_string());
    let line = format!("echo /chatter {message} {network} --json --count 1");
    let (text, code) = Takt::start_in(&line, std::slice::from_ref(&ros2)).error_text();
    assert!(code == Some(0) && text.contains(&format!("domain {domain} of ROS_DOMAIN_ID")), "{text}");
    for (line, variables) in [
        (line.clone(), vec![ros2.clone(), ("TAKT_DOMAIN", other.to_string())]),
        (format!("{line} --domain {other}"), vec![ros2.clone()]),
        (format!("echo rt/chatter {network} --json --count 1"), vec![ros2.clone()]),
    ] {
        let (text, code) = Takt::start_in(&format!("{line} --timeout 0.3"), &variables).error_text();
        assert!(code != Some(0) && !text.contains("ROS_DOMAIN_ID"), "{line}: {text}");
    }
    let (text, code) = Takt::start_in(&line, &[("ROS_DOMAIN_ID", "many".to_owned())]).error_text();
    assert!(code == Some(1) && text.contains("ROS_DOMAIN_ID: found \"many\""), "{text}");
    publisher.terminate();
    publisher.error_text();
}

#[test]
fn type_of_a_message_has_the_ros2_type_hash() {
    let hash = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";
    let directory = Directory::with("cli-idl-ros-hash", &[("std_msgs/msg/String.msg", "string data\n")]);
    let line = format!("type --msg std_msgs/msg/String -I {}", directory.text(""));
    let (text, status) = Takt::start(&line).finish();
    assert!(status.success() && text.starts_with(&format!("// {hash}\nmodule std_msgs {{")), "{text}");
    let report = Takt::start(&format!("{line} --json")).json();
    assert_eq!(report["type_hash"], hash);
}

#[test]
fn file_without_a_struct_or_a_union_is_refused() {
    let directory = Directory::with("cli-idl-enumeration", &[("mode.idl", MODE)]);
    let (text, code) = Takt::start(&format!("type --idl {}", directory.text("mode.idl"))).error_text();
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("mode.idl has no struct and no union"), "{text}");
}
