//! Invalid files: the message names file, line, element and the expected value.

use takt_config::{Format, PROFILES_MAX, QosProvider};

fn xml(profile: &str) -> String {
    let text = format!("<qos_library name=\"L\">\n<qos_profile name=\"P\">\n{profile}\n</qos_profile>\n</qos_library>");
    refusal(&text, Format::Xml)
}

fn writer(policies: &str) -> String {
    xml(&format!("<datawriter_qos>{policies}</datawriter_qos>"))
}

fn toml(text: &str) -> String {
    refusal(text, Format::Toml)
}

fn refusal(text: &str, format: Format) -> String {
    match QosProvider::from_text("f", text, format) {
        Ok(provider) => panic!("accepted: {:?}", provider.profiles().collect::<Vec<_>>()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn unknown_elements_are_errors_at_every_level() {
    let path = "qos_library/qos_profile/datawriter_qos";
    let message = writer("<reliability><kind>RELIABLE</kind><speed>3</speed></reliability>");
    assert_eq!(message, format!("f:3: {path}/reliability/speed: unknown element; expected kind or max_blocking_time"));
    let message = writer("\n<time_based_filter/>");
    assert!(
        message.starts_with(&format!("f:4: {path}/time_based_filter: unknown element; expected user_data, ")),
        "{message}"
    );
    let message = xml("<writer_qos/>");
    assert!(
        message.starts_with("f:3: qos_library/qos_profile/writer_qos: unknown element; expected domain_"),
        "{message}"
    );
    let message = refusal("<qos_library name='L'>\n<types/></qos_library>", Format::Xml);
    assert!(message.starts_with("f:2: qos_library/types: unknown element; expected qos_profile"), "{message}");
    let message = refusal("<dds>\n\n<types/></dds>", Format::Xml);
    assert_eq!(message, "f:3: dds/types: unknown element; expected qos_library");
    assert_eq!(refusal("<other/>", Format::Xml), "f:1: other: unknown element; expected qos_library or dds");
    assert_eq!(toml("[profiles]"), "f:1: profiles: unknown key; expected qos_library");
    let message = toml("[qos_library.L.P.datawriter_qos]\nreliability.kind = \"RELIABLE\"\nspeed.kind = 3");
    assert!(message.starts_with("f:3: qos_library.L.P.datawriter_qos.speed: unknown element"), "{message}");
}

#[test]
fn unknown_attributes_are_errors() {
    let message = xml("<datawriter_qos colour='red'/>");
    assert!(message.contains("unknown attribute \"colour\"; expected name, base_name or topic_filter"), "{message}");
    let message = xml("<publisher_qos topic_filter='*'/>");
    assert!(message.contains("unknown attribute \"topic_filter\"; expected name or base_name"), "{message}");
    let message = writer("<history depth='3'/>");
    assert!(message.contains("history: unknown attribute \"depth\"; expected none"), "{message}");
}

#[test]
fn invalid_values_name_the_expected_form() {
    let cases = [
        ("<reliability><kind>SOMETIMES</kind></reliability>", "found \"SOMETIMES\"; expected BEST_EFFORT or RELIABLE"),
        ("<history><depth>0</depth></history>", "found \"0\"; expected a number from 1 to 2147483647"),
        ("<history><depth/></history>", "found \"\"; expected a number from 1 to 2147483647"),
        ("<resource_limits><max_samples>-1</max_samples></resource_limits>", "a number from 1, or LENGTH_UNLIMITED"),
        ("<resource_limits><initial_samples>x</initial_samples></resource_limits>", "a number from 1"),
        ("<deadline><period>5</period></deadline>", "found \"5\"; expected elements sec and nanosec"),
        ("<deadline><period/></deadline>", "expected elements sec and nanosec"),
        (
            "<deadline><period><sec>x</sec></period></deadline>",
            "found \"x\"; expected a number or DURATION_INFINITE_SEC",
        ),
        ("<deadline><period><sec>1</sec><nanosec>1000000000</nanosec></period></deadline>", "DURATION_INFINITE_NSEC"),
        ("<deadline><period><sec>1</sec><sec>2</sec></period></deadline>", "sec: given twice"),
        ("<deadline><period><ms>1</ms></period></deadline>", "unknown element; expected sec or nanosec"),
        ("<user_data><value>1, 256</value></user_data>", "octets from 0 to 255"),
        ("<user_data><valueB64>!</valueB64></user_data>", "invalid Base64"),
        ("<user_data><value>1</value><valueB64>AA==</valueB64></user_data>", "valueB64: given twice"),
        ("<ownership_strength><value>99999999999</value></ownership_strength>", "a number from -2147483648"),
        (
            "<writer_data_lifecycle><autodispose_unregistered_instances>yes</autodispose_unregistered_instances></writer_data_lifecycle>",
            "true or false",
        ),
        ("<data_representation><value><element>JSON</element></value></data_representation>", "XCDR, XML or XCDR2"),
        (
            "<data_representation><value><item>XCDR</item></value></data_representation>",
            "unknown element; expected element",
        ),
        ("<history><kind><b/></kind></history>", "found elements; expected KEEP_LAST or KEEP_ALL"),
        ("<history>KEEP_ALL</history>", "found \"KEEP_ALL\"; expected elements"),
    ];
    for (policies, expected) in cases {
        let message = writer(policies);
        assert!(message.contains(expected) && message.starts_with("f:3: "), "{policies}\n{message}");
    }
    let message = toml("[qos_library.L.P.datawriter_qos]\ndeadline.period = 5");
    assert!(message.contains("found \"5\"; expected a duration such as \"250 ms\""), "{message}");
}

#[test]
fn repeated_elements_are_errors() {
    let message = writer("<history><depth>1</depth></history><history><depth>2</depth></history>");
    assert!(message.contains("history/depth: given twice"), "{message}");
    let message = xml("<datawriter_qos/><datawriter_qos/>");
    assert!(message.contains("datawriter_qos: given twice for the same topics"), "{message}");
    let twice = "<qos_library name='L'>\n<qos_profile name='P'/>\n<qos_profile name='P'/></qos_library>";
    assert_eq!(refusal(twice, Format::Xml), "f:3: qos_library/qos_profile: L::P is already defined in f:2");
    let defaults = "<qos_library name='L'><qos_profile name='P' is_default_qos='1'/>\n<qos_profile name='Q' is_default_qos='true'/></qos_library>";
    assert!(refusal(defaults, Format::Xml).contains("the default profile is already L::P, defined in f:1"));
}

#[test]
fn base_profile_must_precede_the_derived_profile() {
    let forward = "<qos_library name='L'><qos_profile name='P' base_name='Q'/>\n<qos_profile name='Q'/></qos_library>";
    assert!(refusal(forward, Format::Xml).contains("base_name \"Q\" is not a profile defined before this one"));
    let itself = "<qos_library name='L'><qos_profile name='P' base_name='L::P'/></qos_library>";
    assert!(refusal(itself, Format::Xml).contains("is not a profile defined before"));
}

#[test]
fn invalid_names_are_refused() {
    for name in ["", "a b", "a::b", &"x".repeat(256)] {
        let text = format!("<qos_library name=\"{name}\"/>");
        assert!(refusal(&text, Format::Xml).contains("a name must have 1 to 255 letters"), "{name}");
    }
    assert!(refusal("<qos_library/>", Format::Xml).contains("the attribute name is missing"));
    assert!(xml("<datawriter_qos topic_filter=' '/>").contains("topic_filter is empty"));
}

#[test]
fn number_of_profiles_is_bounded() {
    let profiles = |count: usize| {
        let each: String = (0..count).map(|number| format!("<qos_profile name=\"P{number}\"/>")).collect();
        QosProvider::from_text("f", &format!("<qos_library name=\"L\">{each}</qos_library>"), Format::Xml)
    };
    assert_eq!(profiles(PROFILES_MAX).map(|provider| provider.profiles().count()), Ok(PROFILES_MAX));
    assert!(profiles(PROFILES_MAX + 1).expect_err("one too many").to_string().contains("more than 1024 profiles"));
}

#[test]
fn missing_profiles_and_files_are_errors() {
    let empty = QosProvider::new();
    assert!(empty.topic_qos("L::P", "T").expect_err("none").to_string().contains("L::P: no such profile"));
    assert!(empty.topic_qos("", "T").expect_err("none").to_string().contains("no profile sets is_default_qos"));
    let message = QosProvider::from_file("nowhere.xml").expect_err("no file").to_string();
    assert!(message.starts_with("nowhere.xml: "), "{message}");
    let message = QosProvider::from_file("Cargo.lock").expect_err("neither").to_string();
    assert!(message.contains("must end in .xml or .toml"), "{message}");
}

/// No text makes the readers panic: every prefix of a valid text, and every valid text with one
/// octet changed.
#[test]
fn broken_files_are_errors_without_a_panic() {
    let texts = [
        (
            "<qos_library name='L'><qos_profile name='P' base_name='Q'><datawriter_qos topic_filter='a*'><deadline><period><sec>1</sec><nanosec>5</nanosec></period></deadline><user_data><value>1,0x2</value></user_data></datawriter_qos></qos_profile></qos_library>",
            Format::Xml,
        ),
        (
            "[qos_library.L.P]\nbase_name='Q'\n[[qos_library.L.P.datawriter_qos]]\ntopic_filter='a'\ndeadline.period='1.5 s'\nuser_data.value=[1,0x2]\npartition={name=['a']}\n",
            Format::Toml,
        ),
    ];
    let mut refused = 0;
    for (text, format) in texts {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            refused += usize::from(QosProvider::from_text("f", &text[..end], format).is_err());
            for replacement in ["<", ">", "[", "]", "\"", "=", "\u{0}", "é", "9"] {
                let changed = format!("{}{replacement}{}", &text[..end], &text[end + 1..]);
                refused += usize::from(QosProvider::from_text("f", &changed, format).is_err());
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn misspelled_name_is_reported_with_a_suggestion() {
    let message = writer("<histroy/>");
    assert!(message.ends_with("; did you mean history?"), "{message}");
    let message = refusal(
        "<qos_library name='L'><qos_profile name='Telemetry'/><qos_profile name='P' base_name='Telemetri'/></qos_library>",
        Format::Xml,
    );
    let expected = "base_name \"Telemetri\" is not a profile defined before this one; did you mean L::Telemetry?";
    assert!(message.ends_with(expected), "{message}");
    let provider = QosProvider::from_text("f", "[qos_library.L.Telemetry]", Format::Toml).expect("a profile");
    let message = provider.topic_qos("L::Telemetri", "T").expect_err("no such profile").to_string();
    assert!(
        message.ends_with("no such profile; defined profiles: L::Telemetry; did you mean L::Telemetry?"),
        "{message}"
    );
}

#[test]
fn files_of_other_implementations_are_recognized() {
    for (text, whose) in [
        ("<CycloneDDS><Domain/></CycloneDDS>", "a configuration of CycloneDDS"),
        ("<profiles/>", "a configuration of Fast DDS"),
        ("<dds xmlns='http://www.eprosima.com'><profiles/></dds>", "a configuration of Fast DDS"),
        ("<dds version='7.1.0'><qos_library name='L'/></dds>", "a configuration of Connext"),
    ] {
        let message = refusal(text, Format::Xml);
        assert!(message.starts_with("f:1: ") && message.contains(whose), "{message}");
    }
}
