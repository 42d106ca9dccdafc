//! `takt transport ls` and `takt transport probe`.

use crate::process::Takt;
use serde_json::Value;
use std::collections::BTreeMap;

/// Grade and text of each finding, by its subject.
type Findings = BTreeMap<String, (String, String)>;

/// Parses the text output of `takt transport probe`: a verdict for each transport, followed by a
/// line for each finding.
fn read(text: &str) -> BTreeMap<String, (bool, Findings)> {
    let mut transports = BTreeMap::new();
    let mut last = String::new();
    for line in text.lines() {
        match line.strip_prefix("  ") {
            None => {
                let (transport, verdict) = line.rsplit_once(": ").unwrap();
                let is_usable = match verdict {
                    "can be used" => true,
                    "cannot be used" => false,
                    other => panic!("{other}"),
                };
                last = transport.to_owned();
                assert!(transports.insert(last.clone(), (is_usable, Findings::new())).is_none(), "{text}");
            }
            Some(finding) => {
                let (grade, rest) = finding.split_at(8);
                let (what, detail) = rest.split_at(14);
                let (_, findings): &mut (bool, Findings) = transports.get_mut(&last).unwrap();
                findings.insert(what.trim().to_owned(), (grade.trim().to_owned(), detail.to_owned()));
            }
        }
    }
    transports
}

fn detail<'a>(findings: &'a Findings, what: &str, grade: &str) -> &'a str {
    let (found, detail) = &findings[what];
    assert_eq!(found, grade, "{what}: {detail}");
    detail
}

#[test]
fn all_transports_are_listed_with_their_requirements() {
    let (text, status) = Takt::start("transport ls").finish();
    assert!(status.success());
    let lines: Vec<&str> = text.lines().collect();
    for form in ["udp or udp:IFACE", "packet:IFACE[/vlan=ID][/qdisc=bypass]"] {
        let at = lines.iter().position(|line| *line == form).unwrap_or_else(|| panic!("{form}: {text}"));
        assert!(lines[at + 1].starts_with("    ") && lines[at + 2].starts_with("    requires: "), "{text}");
    }
    let json = Takt::start("transport ls --json").json();
    let names: Vec<&str> =
        json["transports"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.starts_with(&["udp", "tcp", "shm", "daemon", "packet", "xdp", "xdp-ethernet"]), "{names:?}");
    let has_dpdk = cfg!(feature = "dpdk");
    assert_eq!(names.contains(&"dpdk"), has_dpdk);
    assert_eq!(lines.last() == Some(&"not in this build: dpdk, dpdk-ethernet"), !has_dpdk, "{text}");
}

#[test]
fn transport_is_usable_if_no_finding_is_missing() {
    let (text, status) = Takt::start("transport probe lo").finish();
    assert!(status.success(), "{text}");
    let transports = read(&text);
    let (is_usable, findings) = &transports["udp:lo"];
    assert!(*is_usable && detail(findings, "interface", "good").contains("127.0.0.1"), "{text}");
    let (is_usable, findings) = &transports["packet:lo"];
    assert!(!is_usable && detail(findings, "interface", "missing").ends_with("it is not Ethernet"), "{text}");
    for (transport, (is_usable, findings)) in &transports {
        let is_missing = findings.values().any(|(grade, _)| grade == "missing");
        assert_eq!(*is_usable, !is_missing, "{transport}: {text}");
    }
    let json = Takt::start("transport probe lo --json").json();
    assert_eq!(json["interface"], "lo");
    let named = |entry: &Value| (entry["transport"].as_str().unwrap().to_owned(), entry["usable"].as_bool().unwrap());
    let as_json: Vec<(String, bool)> = json["transports"].as_array().unwrap().iter().map(named).collect();
    let as_text: BTreeMap<String, bool> =
        transports.into_iter().map(|(name, (is_usable, _))| (name, is_usable)).collect();
    assert_eq!(as_json.into_iter().collect::<BTreeMap<_, _>>(), as_text);
}

#[test]
fn missing_interface_is_usable_by_no_transport() {
    let (text, status) = Takt::start("transport probe nowhere0").finish();
    assert_eq!(status.code(), Some(1));
    for (transport, (is_usable, findings)) in read(&text) {
        assert!(!is_usable, "{transport}");
        assert_eq!(detail(&findings, "interface", "missing"), "no interface nowhere0");
    }
    let (why, _) = Takt::start("transport probe nowhere0").error_text();
    assert_eq!(why, "takt: probe nowhere0: no transport supports this interface");
}

#[test]
fn missing_capabilities_are_named() {
    let (text, status) = Takt::start_without_privileges("transport probe lo").finish();
    assert!(status.success(), "udp takes none: {text}");
    let transports = read(&text);
    assert!(transports["udp:lo"].0, "{text}");
    let of = |transport: &str| detail(&transports[transport].1, "capabilities", "missing");
    assert_eq!(of("packet:lo"), "CAP_NET_RAW missing; run as root or grant it with `setcap`");
    assert!(of("xdp:lo").starts_with("CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF or CAP_SYS_ADMIN missing"), "{text}");
}

#[cfg(feature = "dpdk")]
#[test]
fn probe_of_dpdk_names_library_huge_pages_and_devices() {
    let json = Takt::start("transport probe lo --json").json();
    let judged = json["transports"].as_array().unwrap().iter().find(|judged| judged["name"] == "dpdk").unwrap();
    assert_eq!(judged["transport"], "dpdk:net_af_packet0,iface=lo/address=A.B.C.D");
    let of = |what: &str| {
        let findings = judged["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["what"] == what).unwrap_or_else(|| panic!("{what}: {judged}"))
    };
    assert!(of("library")["detail"].as_str().unwrap().starts_with("DPDK "), "{judged}");
    assert!(of("huge pages")["detail"].as_str().unwrap().contains("huge=no") || of("huge pages")["grade"] == "good");
    assert!(of("devices")["detail"].as_str().unwrap().contains("net_af_packet0,iface=lo"), "{judged}");
    assert_eq!(of("interface")["grade"], "missing", "it is not Ethernet");
}
