//! The reference documentation agrees with the tables, and shown policies and settings can be read
//! again.

use std::path::Path;

use takt_config::{Entity, Format, QosProvider, Settings, reference, show};

#[test]
fn reference_documentation_is_generated_from_the_tables() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    for (name, expected) in
        [("reference/qos.md", reference::policies()), ("reference/settings.md", reference::settings())]
    {
        let found = std::fs::read_to_string(docs.join(name)).unwrap_or_default();
        assert!(found == expected, "docs/{name} is stale: cargo run -p takt-config --example reference");
    }
}

const PROFILE: &str = r#"
[qos_library."L.1".P.datawriter_qos]
reliability = { kind = "BEST_EFFORT", max_blocking_time = "1500 us" }
history = { kind = "KEEP_LAST", depth = 4 }
deadline.period = "20 ms"
user_data.value = [1, 255]
data_representation.value = ["XCDR2", "XCDR"]
resource_limits.max_samples = 99
[qos_library."L.1".P.publisher_qos]
partition.name = ["a<b", "c\"d", "", "e\\f"]
[qos_library."L.1".P.domain_participant_qos]
property.value = [{ name = "k", value = "<v>", propagate = true }, { name = "l" }]
entity_name.name = "x & y"
[qos_library."L.1".P.datareader_qos]
type_consistency = { kind = "DISALLOW", ignore_member_names = true }
"#;

#[test]
fn shown_policies_round_trip() {
    let profiles = QosProvider::from_text("p.toml", PROFILE, Format::Toml).unwrap_or_else(|error| panic!("{error}"));
    for entity in Entity::ALL {
        let before = profiles.explain("L.1::P", entity, "T").expect("there");
        for format in [Format::Toml, Format::Xml] {
            let text = show::policies("L.1::P", entity, &before, format);
            let again =
                QosProvider::from_text("again", &text, format).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let after = again.explain("L.1::P", entity, "T").expect("there");
            let values = |fields: &[takt_config::Effective]| {
                fields.iter().map(|one| (one.field().path(), one.value.clone())).collect::<Vec<_>>()
            };
            assert_eq!(values(&after), values(&before), "{text}");
        }
    }
}

#[test]
fn origins_are_shown_as_comments() {
    let profiles = QosProvider::from_text("p.toml", PROFILE, Format::Toml).expect("well-formed");
    let fields = profiles.explain("L.1::P", Entity::DataWriter, "T").expect("there");
    let toml = show::policies("L.1::P", Entity::DataWriter, &fields, Format::Toml);
    let line = toml.lines().find(|line| line.starts_with("deadline.period")).expect("every field is shown");
    assert!(line.starts_with("deadline.period = \"20 ms\"  ") && line.ends_with("# p.toml:5, L.1::P"), "{line}");
    assert!(toml.contains("# default"), "{toml}");
    let xml = show::policies("L.1::P", Entity::DataWriter, &fields, Format::Xml);
    assert!(xml.contains("<sec>0</sec><nanosec>20000000</nanosec></period>"), "{xml}");
    assert!(xml.contains("<kind>BEST_EFFORT_RELIABILITY_QOS</kind>"), "{xml}");
}

#[test]
fn shown_settings_round_trip() {
    let text =
        "[participant]\ndomain = 5\nname = \"a\\\"b\"\n[network]\ninterfaces = [\"lo\", \"eth1\"]\nmulticast = false\n";
    let mut settings = Settings::new();
    settings.add_text("s.toml", text, Format::Toml).expect("well-formed");
    let shown = show::settings(settings.explain());
    assert!(shown.contains("interfaces = [\"lo\", \"eth1\"]") && shown.contains("# s.toml:5\n"), "{shown}");
    let mut again = Settings::new();
    again.add_text("again.toml", &shown, Format::Toml).unwrap_or_else(|error| panic!("{error}\n{shown}"));
    let values = |settings: &Settings| settings.explain().map(|one| one.value).collect::<Vec<_>>();
    assert_eq!(values(&again), values(&settings));
}
