//! A participant built from settings, as a remote participant discovers it.

use std::time::{Duration, Instant};

use takt::DomainParticipant;
use takt_config::{Format, Settings};
use takt_testkit::domain::domain;

#[test]
fn participant_has_its_configured_settings() {
    let domain = domain();
    // Discovery port of the sixth participant (RTPS 2.5 §9.6.2).
    let observer_port = 7400 + 250 * domain + 10 + 2 * 5;
    let observer = build(&format!(
        "[participant]\ndomain = {domain}\nindex = 5\n[network]\ninterfaces = [\"lo\"]\nmulticast = false\n"
    ));
    let text = format!(
        "[participant]\ndomain = {domain}\nname = \"camera\"\nindex = 3\nlease_duration = \"7 s\"\nruntime = \"inline\"\n\
         announcement_period = \"100 ms\"\n[network]\ninterfaces = [\"lo\"]\npeers = [\"127.0.0.1:{observer_port}\"]\n\
         multicast = false\nshared_memory = false\n[udp]\nport_base = 7500\nd3 = 21\n[qos_library.L.P]\nis_default_qos = true\n\
         domain_participant_qos.user_data.value = [1, 2]\n"
    );
    let subject = build(&text);
    assert_eq!((subject.domain_id(), subject.qos().entity_name.0.as_str()), (domain, "camera"));

    let deadline = Instant::now() + Duration::from_secs(60);
    let seen = loop {
        assert!(Instant::now() < deadline, "the participant was not found");
        // The participant answers only while the application's thread drives it.
        subject.spin_once(Duration::from_millis(20)).expect("inline");
        let found = observer.discovered_participants().expect("open");
        if let Some(seen) = found.into_iter().find(|found| found.guid == subject.guid()) {
            break seen;
        }
    };
    assert_eq!(seen.lease_duration, takt::Duration::from_secs(7));
    assert_eq!((seen.entity_name.0.as_str(), seen.user_data.0.as_slice()), ("camera", &[1, 2][..]));
    let base = 7500 + 250 * domain + 2 * 3;
    let ports = |locators: &[takt::Locator]| locators.iter().map(|locator| locator.port).collect::<Vec<_>>();
    assert_eq!(ports(&seen.metatraffic_unicast), [base + 10]);
    assert_eq!(ports(&seen.default_unicast), [base + 21]);
}

fn build(text: &str) -> DomainParticipant {
    let mut settings = Settings::new();
    settings.add_text("s.toml", text, Format::Toml).unwrap_or_else(|error| panic!("{error}"));
    settings.participant().expect("its profile is there").build().expect("loopback is always there")
}

/// A participant warns of unknown `TAKT_` variables. `takt` therefore has the names of all
/// settings.
#[test]
fn participants_know_the_variable_of_every_setting() {
    let mut known: Vec<String> = takt::variables_of_settings().into_iter().map(str::to_owned).collect();
    let mut settings: Vec<String> =
        Settings::new().explain().map(|setting| setting.setting.variable.to_owned()).collect();
    settings.push(takt_config::TAKT_CONFIG.to_owned());
    known.sort_unstable();
    settings.sort_unstable();
    settings.dedup();
    assert_eq!(known, settings);
}
