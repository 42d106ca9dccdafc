//! Examples that consist of one program: each runs and prints the expected lines.

use takt::prelude::*;

use crate::{Program, domain_0, output};

#[derive(DdsType, Clone, Debug, Default)]
#[dds(name = "std_msgs::msg::dds_::String_", extensibility = "final")]
struct RosString {
    data: String,
}

/// Returns the lines that an example prints.
fn lines(program: &str) -> Vec<String> {
    let _domain = domain_0();
    let [out, errors] = output(program, &[]);
    assert_eq!(errors, "", "{program}");
    out.lines().map(str::to_owned).collect()
}

#[test]
fn keyed_instances_end_one_by_one() {
    let printed = lines(env!("CARGO_BIN_EXE_keyed_instances"));
    let expected =
        ["sensor 1: 20 degrees", "sensor 2: 30 degrees", "sensor 1: 20.5 degrees", "sensor 2: NotAliveDisposed"];
    assert_eq!(printed, expected);
}

#[test]
fn request_gets_its_reply() {
    assert_eq!(lines(env!("CARGO_BIN_EXE_request_reply")), ["request 1: 5", "request 2: 60"]);
}

#[test]
fn stream_yields_samples_in_order() {
    let printed = lines(env!("CARGO_BIN_EXE_async_stream"));
    let expected = ["Reading { celsius: 20.0 }", "Reading { celsius: 21.0 }", "Reading { celsius: 22.0 }"];
    assert_eq!(printed, expected);
}

#[test]
fn content_filter_passes_what_its_parameter_says() {
    let printed = lines(env!("CARGO_BIN_EXE_content_filter"));
    assert_eq!(printed, ["Reading { sensor: 2, celsius: 30.0 }", "Reading { sensor: 3, celsius: 20.0 }"]);
}

#[test]
fn coherent_set_becomes_visible_at_once() {
    let printed = lines(env!("CARGO_BIN_EXE_coherent_set"));
    let expected =
        ["visible before the end of the set: false", "visible after it: true", "1 sample of the arm, 1 of the hand"];
    assert_eq!(printed, expected);
}

#[test]
fn loan_is_the_memory_of_the_writer() {
    assert_eq!(lines(env!("CARGO_BIN_EXE_loans")), ["1048576 octets, the same memory: true"]);
}

#[test]
fn profile_of_a_file_configures_writer_and_reader() {
    let printed = lines(env!("CARGO_BIN_EXE_qos_from_file"));
    assert_eq!(printed, ["writer: KeepLast(8), TransientLocal", "Reading { celsius: 21.5 }"]);
}

#[test]
fn discovery_server_introduces_two_participants() {
    assert_eq!(lines(env!("CARGO_BIN_EXE_discovery_server")), ["Reading { celsius: 21.5 }"]);
}

#[test]
fn late_joiner_gets_the_history_of_the_writer() {
    let printed = lines(env!("CARGO_BIN_EXE_late_joiner"));
    assert_eq!(printed, [3, 4, 5].map(|number| format!("Waypoint {{ number: {number} }}")));
}

#[test]
fn two_topics_go_by_two_transports() {
    let printed = lines(env!("CARGO_BIN_EXE_two_transports"));
    assert_eq!(printed, ["Camera by shm: 1000 octets", "Log by udp: 1000 octets"]);
}

#[test]
fn control_loop_runs_and_reports_skipped_and_late_commands() {
    let printed = lines(env!("CARGO_BIN_EXE_control_loop"));
    assert!(printed[0].contains(" runs, the longest took "), "{printed:?}");
    assert!(printed[1].starts_with("skipped commands: "), "{printed:?}");
    assert!(printed[2].starts_with("late commands: "), "{printed:?}");
}

#[test]
fn talker_is_heard_on_the_topic_of_ros_2() {
    let _domain = domain_0();
    let participant = DomainParticipant::builder(0).interfaces(["lo"]).build().expect("a participant");
    let qos = DataReaderQos::reliable().keep_all();
    let reader = participant.reader_with::<RosString>("rt/chatter", qos).expect("a reader");
    let mut talker = Program::start(env!("CARGO_BIN_EXE_ros2_talker"), &["2"]);
    for expected in ["hello 1", "hello 2"] {
        assert_eq!(talker.next_line(), expected);
        let sample = reader.recv_timeout(secs(30)).expect("it is reliable");
        assert_eq!(sample.data.expect("data").data, expected);
    }
    talker.finish();
}
