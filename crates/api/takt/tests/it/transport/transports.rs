//! Transports selected by name: fallback, reported reasons, and assignment to purposes.

use crate::support::*;
use takt::qos::*;
use takt::*;

fn report(participant: &DomainParticipant) -> Vec<String> {
    participant.diagnostics().transport_report().to_string().lines().map(str::to_owned).collect()
}

fn warnings(participant: &DomainParticipant) -> String {
    participant.diagnostics().warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn first_transport_that_opens_is_used_and_failures_are_reported() {
    let builder = on_loopback(domain(), Runtime::Inline);
    let list = ["dpdk:nowhere0", "udp:nowhere0", "udp:lo", "tcp"];
    let participant = builder.shared_memory(false).user_data_transports(list).build().expect("the third opens");
    let report = report(&participant);
    assert_eq!(report.len(), 5, "{report:?}");
    assert_eq!((report[0].as_str(), report[3].as_str()), ("user data", "  udp:lo: open"));
    assert!(report[1].starts_with("  dpdk:nowhere0: refused, this program has no such transport"), "{report:?}");
    assert!(report[2].starts_with("  udp:nowhere0: refused, ") && report[2].contains("nowhere0"), "{report:?}");
    assert_eq!(report[4], "  tcp: not needed");
    let warnings = warnings(&participant);
    assert!(
        warnings.contains("user data by udp:lo; other transports were refused: dpdk:nowhere0: this program"),
        "{warnings}"
    );
    assert_eq!(participant.diagnostics().transport_stats().expect("open").len(), 1, "discovery goes by the same one");
}

#[test]
fn choice_without_an_available_transport_is_an_error_with_all_reasons() {
    let builder = on_loopback(domain(), Runtime::Inline).user_data_transports(["packet:x|udp:nowhere0"]);
    let error = builder.build().expect_err("nothing opens").to_string();
    assert!(error.starts_with("transport: find a transport for user data: packet:x: "), "{error}");
    assert!(error.contains("; udp:nowhere0: "), "{error}");
}

#[test]
fn unused_transports_are_closed() {
    let builder = on_loopback(domain(), Runtime::Inline).shared_memory(false);
    let builder = builder.user_data_transports(["shm+udp:lo+udp:nowhere0", "udp"]);
    let participant = builder.build().expect("udp opens");
    let names: Vec<&str> =
        participant.diagnostics().transport_stats().expect("open").iter().map(|traffic| traffic.name).collect();
    assert_eq!(names, ["udp"]);
}

#[test]
fn invalid_transport_configuration_error_names_the_text() {
    let refusal = |builder: DomainParticipantBuilder| builder.build().expect_err("refused").to_string();
    let builder = || on_loopback(domain(), Runtime::Inline);
    let message = refusal(builder().user_data_transports(["udp", "pigeon"]));
    assert!(message.contains("transport \"pigeon\": unknown transport \"pigeon\"; expected one of udp"), "{message}");
    let message = refusal(builder().topic_transports("", "udp"));
    assert!(message.contains("transports of topics: \"=udp\": expected a topic name pattern"), "{message}");
    let message = refusal(builder().topic_transports("A*", "udp:"));
    assert!(message.contains("\"A*=udp:\": transport \"udp:\": expected an interface"), "{message}");
    let message = refusal(builder().discovery_transports(["shm"]));
    assert!(message.contains("discovery by shm: only UDP, TCP and Ethernet carry discovery"), "{message}");
    let participant = builder().build().expect("udp");
    let message = create(&participant, "Topic", Some("udp")).map(drop).expect_err("nothing by name").to_string();
    assert!(message.contains("property takt.transport: udp is not open"), "{message}");
}

fn create(participant: &DomainParticipant, topic: &str, property: Option<&str>) -> Result<DataWriter<Shape>> {
    let topic = participant.create_topic::<Shape>(topic, TopicQos::default())?;
    let mut qos = reliable_writer(History::KeepAll);
    qos.property.entries.extend(property.map(|value| PropertyEntry::local(TRANSPORT_PROPERTY, value)));
    participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)
}

#[test]
fn transports_by_name_are_ignored_with_a_warning_for_servers_and_custom_transports() {
    let domain = domain();
    let config = transport::udp::UdpConfig {
        interfaces: transport::udp::InterfaceSelection::Named(vec!["lo".into()]),
        ..transport::udp::UdpConfig::new(domain)
    };
    let udp = transport::udp::UdpTransport::open(&config).expect("loopback");
    let builder = on_loopback(domain, Runtime::Inline).transport(Box::new(udp)).user_data_transports(["shm"]);
    let participant = builder.build().expect("it has its own");
    assert!(report(&participant).is_empty());
    assert!(warnings(&participant).contains("transports are selected by name, but"), "{}", warnings(&participant));
}
