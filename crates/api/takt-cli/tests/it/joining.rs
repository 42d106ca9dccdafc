//! Commands join the network of a configuration: TLS over TCP, another port base, another domain.

use crate::file::File;
use crate::process::Takt;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::json;
use std::fmt::Write as _;
use takt::qos::{DataWriterQos, Durability, PublisherQos, TopicQos};
use takt::{DataWriter, DdsType, DomainParticipant};
use takt_config::{Format, Settings};

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Number")]
struct Number {
    number: u32,
}

/// Creates a certificate for 127.0.0.1 from a new authority. Returns the files of `tcp.ca`,
/// `certificate` and `key`, which exist as long as the values.
fn certificate() -> [File; 3] {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.distinguished_name.push(DnType::CommonName, "Authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
    let files = [("ca", authority_certificate.pem()), ("certificate", certificate.pem()), ("key", key.serialize_pem())];
    files.map(|(name, text)| File::new(&format!("joining-{name}.pem"), &text))
}

/// Creates a participant of the configuration. Its writer keeps the number 7 for late joiners.
fn program(configuration: &str, topic: &str) -> (DomainParticipant, DataWriter<Number>) {
    let mut settings = Settings::new();
    settings.add_text("program.toml", configuration, Format::Toml).unwrap();
    let participant = settings.participant().unwrap().build().unwrap();
    let topic = participant.create_topic::<Number>(topic, TopicQos::default()).unwrap();
    let qos = DataWriterQos { durability: Durability::TransientLocal, ..DataWriterQos::default() };
    let writer = participant.create_publisher(PublisherQos::default()).unwrap().create_datawriter(&topic, qos).unwrap();
    writer.write(&Number { number: 7 }).unwrap();
    (participant, writer)
}

#[test]
fn commands_join_a_tls_network_by_its_configuration() {
    let [ca, certificate, key] = certificate();
    let mut text = "[participant]\ndomain = 207\nname = \"program\"\nruntime = \"shared\"\n\
        [network]\nudp = false\npeers = [\"tcp/127.0.0.1:17521\"]\n[tcp]\nlisten = [\"127.0.0.1:17521\"]\n"
        .to_owned();
    for (name, file) in [("ca", &ca), ("certificate", &certificate), ("key", &key)] {
        writeln!(text, "{name} = {:?}", file.path()).unwrap();
    }
    let _program = program(&text, "Secret");
    let file = File::new("joining-tls.toml", &text);
    let environment = [("TAKT_CONFIG", file.path().to_owned())];
    let sample = Takt::start_in("echo Secret --count 1 --json --timeout 30", &environment).json();
    assert_eq!(sample["data"], json!({ "number": 7 }));
    let catalogue = Takt::start(&format!("ls --json --config {}", file.path())).json();
    assert_eq!((&catalogue["domain"], &catalogue["participants"][0]["name"]), (&json!(207), &json!("program")));
    assert_eq!(catalogue["topics"][0]["name"], json!("Secret"));
}

#[test]
fn ports_and_domain_of_options_override_environment_and_environment_overrides_file() {
    let text = "[participant]\ndomain = 208\n[network]\ninterfaces = [\"lo\"]\npeers = [\"127.0.0.1\"]\n[udp]\nport_base = 7900\n";
    let _program = program(text, "Elsewhere");
    let file = File::new("joining-ports.toml", text);
    let sample = Takt::start(&format!("echo Elsewhere --count 1 --json --timeout 30 --config {}", file.path())).json();
    assert_eq!(sample["data"], json!({ "number": 7 }));
    let config = ("TAKT_CONFIG", file.path().to_owned());
    let domain = ("TAKT_DOMAIN", "209".to_owned());
    let of_variable = Takt::start_in("ls --json --wait 0.1", &[config.clone(), domain.clone()]).json();
    assert_eq!(of_variable["domain"], json!(209));
    let of_option = Takt::start_in("ls --json --wait 0.1 --domain 210", &[config, domain]).json();
    assert_eq!(of_option["domain"], json!(210));
}

#[test]
fn missing_configuration_is_an_error_of_every_command_that_joins() {
    let environment = [("TAKT_CONFIG", "/nosuch.toml".to_owned())];
    for line in [
        "ls --wait 0.1",
        "echo Square --timeout 0.1",
        "sub Square --type ShapeType --timeout 0.1",
        "pub Square {} --type ShapeType --timeout 0.1",
        "type Square --timeout 0.1",
        "durability",
        "discovery-server --listen 127.0.0.1:17522",
        "perf ping --samples 1",
    ] {
        let (text, code) = Takt::start_in(line, &environment).error_text();
        assert_eq!(code, Some(1), "{line}: {text}");
        assert!(text.contains("takt: configuration: /nosuch.toml: No such file or directory"), "{line}: {text}");
    }
}

#[test]
fn interfaces_are_separated_by_commas() {
    let catalogue = Takt::start("ls --json --wait 0.1 --domain 211 --interface lo,127.0.0.1").json();
    assert_eq!(catalogue["domain"], json!(211));
    let (text, code) = Takt::start("ls --domain 211 --interface lo,nowhere0").error_text();
    assert!(code == Some(1) && text.contains("network interface nowhere0"), "{text}");
}

#[test]
fn misspelled_variable_is_reported_by_every_command() {
    let environment = [("TAKT_DOMIAN", "212".to_owned())];
    for line in ["ls --domain 211 --wait 0.1", "config show", "analyze nowhere.toml"] {
        let (text, _) = Takt::start_in(line, &environment).error_text();
        assert!(
            text.contains("takt: warning: TAKT_DOMIAN is set, but no such setting exists; did you mean TAKT_DOMAIN"),
            "{line}: {text}"
        );
    }
}
