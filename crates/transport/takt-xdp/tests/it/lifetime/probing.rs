//! Tests of the findings at an interface, and that probing leaves nothing there.

use std::process::Command;

use takt_transport::choice::factories;
use takt_transport::choice::probe::{Finding, Grade};

use super::permissions::{NET_RAW, keep_only};
use crate::network::{Host, ip, wire};

fn findings(host: &Host, name: &'static str, interface: &str, capabilities: Option<&[u32]>) -> Vec<Finding> {
    takt_xdp::register();
    let factory = factories().into_iter().find(|factory| factory.name() == name).expect("the factory is registered");
    host.run(|| {
        if let Some(capabilities) = capabilities {
            keep_only(capabilities);
        }
        factory.probe(interface)
    })
}

/// Returns grade and text of one finding; `None` if there is none.
fn found<'a>(findings: &'a [Finding], what: &str) -> Option<(Grade, &'a str)> {
    let finding = findings.iter().find(|finding| finding.what == what)?;
    Some((finding.grade, finding.detail.as_str()))
}

/// Returns the output of `ip` for the interface.
fn shown(host: &Host, interface: &str) -> String {
    let output = host.run(|| Command::new("ip").args(["-d", "link", "show", interface]).output());
    String::from_utf8_lossy(&output.expect("iproute2 is installed").stdout).into_owned()
}

#[test]
fn veth_pair_is_reported_generic_with_two_queues_and_without_zero_copy() {
    let Some([here, _there]) = wire(2) else { return };
    let before = shown(&here, "eth0");
    let all = findings(&here, "xdp", "eth0", None);
    assert_eq!(found(&all, "AF_XDP"), Some((Grade::Good, "supported by the kernel")));
    assert_eq!(found(&all, "capabilities"), Some((Grade::Good, "CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF")));
    let interface = found(&all, "interface").expect("the check is reported");
    assert!(interface.0 == Grade::Good && interface.1.starts_with("veth, MTU 1500, 10."), "{interface:?}");
    let queues = found(&all, "queues").expect("the queues are reported");
    assert!(queues.0 == Grade::Good && queues.1.starts_with("2; "), "{queues:?}");
    // Kernels below 6.3 do not report it.
    if found(&all, "driver").is_none() {
        let native = found(&all, "native").expect("the check is reported");
        assert!(native.0 == Grade::Lesser && native.1.contains("`ethtool -K eth0 gro on`"), "{native:?}");
        assert_eq!(found(&all, "zero copy"), Some((Grade::Lesser, "frames are copied by the kernel")));
    }
    assert_eq!(found(&all, "program"), None);
    assert_eq!(shown(&here, "eth0"), before, "nothing is left");
}

#[test]
fn attached_program_is_found() {
    let Some([here, _there]) = wire(1) else { return };
    let xdp = here.run(|| takt_xdp::XdpTransport::open(&takt_xdp::XdpConfig::new(0, "eth0"))).expect("opened");
    assert_eq!(found(&findings(&here, "xdp", "eth0", None), "program").map(|it| it.0), Some(Grade::Unknown));
    drop(xdp);
}

#[test]
fn unsuitable_interface_is_reported_with_the_reason() {
    let Some([here, _there]) = wire(1) else { return };
    let interface = |name| {
        let all = findings(&here, "xdp", name, None);
        found(&all, "interface").map(|(grade, detail)| (grade, detail.to_owned())).expect("the check is reported")
    };
    assert_eq!(interface("nowhere0"), (Grade::Missing, "no interface nowhere0".to_owned()));
    let (grade, detail) = interface("lo");
    assert!(grade == Grade::Missing && detail.ends_with("it is not Ethernet"), "{detail}");
    here.run(|| ip("addr flush dev eth0"));
    let (grade, detail) = interface("eth0");
    assert!(grade == Grade::Missing && detail.ends_with("it has no IPv4 address"), "{detail}");
    let packet = findings(&here, "packet", "eth0", None);
    assert_eq!(found(&packet, "interface").map(|it| it.0), Some(Grade::Good), "frames need none");
    here.run(|| ip("link set eth0 down"));
    let (grade, detail) = interface("eth0");
    assert!(grade == Grade::Missing && detail.ends_with("it is down: `ip link set eth0 up`"), "{detail}");
}

#[test]
fn missing_capabilities_are_named() {
    let Some([here, _there]) = wire(1) else { return };
    let finding_with_only = |name, capabilities: &[u32]| {
        let all = findings(&here, name, "eth0", Some(capabilities));
        found(&all, "capabilities").map(|(grade, detail)| (grade, detail.to_owned())).expect("the check is reported")
    };
    let (grade, detail) = finding_with_only("xdp", &[]);
    assert_eq!(grade, Grade::Missing);
    assert!(detail.starts_with("CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF or CAP_SYS_ADMIN missing"), "{detail}");
    let (_, detail) = finding_with_only("xdp", &[NET_RAW]);
    assert!(detail.starts_with("CAP_NET_ADMIN, CAP_BPF or CAP_SYS_ADMIN missing"), "{detail}");
    assert!(finding_with_only("packet", &[]).1.starts_with("CAP_NET_RAW missing"));
    assert_eq!(finding_with_only("packet", &[NET_RAW]), (Grade::Good, "CAP_NET_RAW".to_owned()));
    let all = findings(&here, "xdp", "eth0", Some(&[]));
    assert_eq!(found(&all, "AF_XDP"), Some((Grade::Unknown, "the check needs CAP_NET_RAW")));
}
