//! `takt config`: valid files, invalid files, and the settings that are shown.

use crate::file::File;
use crate::process::Takt;

const XML: &str = "<qos_library name='Robots'>
 <qos_profile name='Telemetry' is_default_qos='true'>
  <datawriter_qos topic_filter='Fast*'>
   <history><kind>KEEP_LAST_HISTORY_QOS</kind><depth>5</depth></history>
  </datawriter_qos>
 </qos_profile>
</qos_library>";

fn output(line: &str) -> String {
    let (text, status) = Takt::start(line).finish();
    assert!(status.success(), "{line}: {text}");
    text
}

#[test]
fn profiles_of_valid_files_are_counted() {
    let xml = File::new("good.xml", XML);
    let toml =
        File::new("good.toml", "[participant]\ndomain = 7\n[qos_library.More.P]\nbase_name = \"Robots::Telemetry\"\n");
    let text = output(&format!("config check {} {}", xml.path(), toml.path()));
    assert_eq!(text, "settings: 1\nprofiles: 2\n  Robots::Telemetry (default)\n  More::P");
}

#[test]
fn invalid_files_fail_with_file_line_element_and_the_expected_value() {
    let file = File::new("wrong.xml", &XML.replace("<depth>5", "<depth>five"));
    let (text, code) = Takt::start(&format!("config check {}", file.path())).error_text();
    assert_eq!(code, Some(1), "{text}");
    let place = format!("{}:4: qos_library/qos_profile/datawriter_qos/history/depth: ", file.path());
    assert!(text.contains(&format!("{place}found \"five\"; expected a number from 1 to 2147483647")), "{text}");
    let (text, code) = Takt::start("config check nowhere.toml").error_text();
    assert!(code == Some(1) && text.contains("nowhere.toml: "), "{text}");
}

#[test]
fn policies_are_shown_with_their_origin_in_both_forms() {
    let file = File::new("shown.xml", XML);
    let line = format!("config show {} --profile Robots::Telemetry --entity datawriter --topic FastPose", file.path());
    let text = output(&line);
    assert!(text.starts_with("[qos_library.Robots.Telemetry.datawriter_qos]\n"), "{text}");
    let depth = text.lines().find(|line| line.starts_with("history.depth = 5")).expect("it is shown");
    assert!(depth.ends_with(&format!("# {}:4, Robots::Telemetry", file.path())), "{depth}");
    let text = output(&format!("{line} --as xml"));
    assert!(text.contains("<kind>KEEP_LAST_HISTORY_QOS</kind>") && text.contains("<!-- default -->"), "{text}");
    let text = output(&line.replace("FastPose", "Other"));
    assert!(text.contains("history.depth = 1"), "{text}");
}

#[test]
fn settings_are_shown_and_explained() {
    let file = File::new("settings.toml", "[network]\npeers = [\"192.0.2.9\"]\n");
    let text = output(&format!("config show {} --no-environment", file.path()));
    assert!(text.contains("peers = [\"192.0.2.9\"]") && text.contains("# multicast: true;"), "{text}");
    let text = output(&format!("config explain TAKT_PEERS {} --no-environment", file.path()));
    assert!(text.starts_with("network.peers: "), "{text}");
    assert!(text.contains(&format!("is        192.0.2.9, by {}:2", file.path())), "{text}");
    let text = output("config explain reliability --no-environment");
    assert!(text.contains("reliability.kind: ") && text.contains("default   RELIABLE (datawriter_qos)"), "{text}");
    let (text, code) = Takt::start("config explain speed --no-environment").error_text();
    assert!(code == Some(2) && text.contains("no setting or policy has the name speed"), "{text}");
}

#[test]
fn vendor_file_is_converted_and_omissions_go_to_standard_error() {
    let file = File::new(
        "cyclonedds.xml",
        "<CycloneDDS><Domain Id='7'>\n<General><FragmentSize>1000B</FragmentSize></General>\n</Domain></CycloneDDS>",
    );
    let (text, errors, code) = Takt::start(&format!("config convert {}", file.path())).ending();
    assert_eq!(code, Some(0), "{errors}");
    let converted = File::new("converted.toml", &text);
    assert_eq!(output(&format!("config check {}", converted.path())), "settings: 1\nprofiles: 0");
    let place = format!("{}:2: CycloneDDS/Domain/General/FragmentSize: not converted: ", file.path());
    assert!(errors.contains(&place), "{errors}");
    let (text, code) = Takt::start(&format!("config convert --strict {}", file.path())).error_text();
    assert!(code == Some(1) && text.contains("elements of CycloneDDS without equivalent: 1"), "{text}");
    let (text, code) = Takt::start(&format!("config check {}", file.path())).error_text();
    assert!(code == Some(1) && text.contains("`takt config convert FILE`"), "{text}");
}
