//! Shell commands that change a setting manually.

use takt_host::Setting;

/// Returns the command as one shell line.
pub(super) fn command(setting: &Setting, to: &str) -> String {
    match setting {
        Setting::File(path) => match path.strip_prefix("/proc/sys") {
            Ok(name) => format!("sysctl -w {}={to}", name.display().to_string().replace('/', ".")),
            Err(_) => format!("echo {to} > {}", path.display()),
        },
        Setting::Directory(path) => format!("mkdir {}", path.display()),
        Setting::Ethtool(interface, parameter) => parameter_command(interface, &parameter.to_string(), to),
        Setting::Rule(interface, place) => {
            rule_command(interface, *place, to).unwrap_or_else(|| plan_command(setting, to))
        }
        Setting::Clsact(interface) => format!("tc qdisc add dev {interface} clsact"),
        Setting::Route(interface, groups) => format!("ip route add {groups} dev {interface}"),
        // These take more than one `tc` command, or a program.
        Setting::Indirection(_) | Setting::Qdisc(_) | Setting::Steering(_) => plan_command(setting, to),
    }
}

fn parameter_command(interface: &str, parameter: &str, to: &str) -> String {
    let switch = if to == "0" { "off" } else { "on" };
    match (parameter, parameter.strip_suffix("-channels")) {
        (_, Some(queues)) => format!("ethtool -L {interface} {queues} {to}"),
        ("ntuple" | "gro", _) => format!("ethtool -K {interface} {parameter} {switch}"),
        ("adaptive-rx" | "adaptive-tx", _) => format!("ethtool -C {interface} {parameter} {switch}"),
        _ => format!("ethtool -C {interface} {parameter} {to}"),
    }
}

fn rule_command(interface: &str, place: u32, rule: &str) -> Option<String> {
    let what = match *rule.split(' ').collect::<Vec<_>>() {
        [flow @ ("udp4" | "udp6"), "dscp", dscp, "queue", queue] => {
            let field = if flow == "udp4" { "tos" } else { "tclass" };
            let dscp = dscp.parse::<u8>().ok()?; // tidy-allow(dropped-cause): the plan is a command too
            format!("{flow} {field} {:#x} action {queue}", dscp << 2)
        }
        ["vlan", "pcp", pcp, "queue", queue] => {
            let pcp = pcp.parse::<u16>().ok()?; // tidy-allow(dropped-cause): as above
            format!("ether vlan {:#x} m 0x1fff action {queue}", pcp << 13)
        }
        _ => return None,
    };
    Some(format!("ethtool -N {interface} flow-type {what} loc {place}"))
}

/// Returns the command that applies a plan of this one change.
fn plan_command(setting: &Setting, to: &str) -> String {
    let change = serde_json::json!({ "knob": setting.to_string(), "from": "", "to": to, "why": "" });
    let plan = serde_json::json!({ "changes": [change] });
    format!("echo '{plan}' | takt host apply -")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_command() {
        let of = |setting: &str, to: &str| command(&setting.parse().expect("a valid setting"), to);
        assert_eq!(of("/proc/sys/vm/stat_interval", "120"), "sysctl -w vm.stat_interval=120");
        assert_eq!(of("/sys/class/net/eth0/threaded", "0"), "echo 0 > /sys/class/net/eth0/threaded");
        assert_eq!(of("ethtool/eth0/combined-channels", "4"), "ethtool -L eth0 combined 4");
        assert_eq!(of("ethtool/eth0/adaptive-rx", "0"), "ethtool -C eth0 adaptive-rx off");
        assert_eq!(of("ethtool/eth0/ntuple", "1"), "ethtool -K eth0 ntuple on");
        assert_eq!(of("rule/eth0/5", "udp4 dscp 46 queue 3"), "ethtool -N eth0 flow-type udp4 tos 0xb8 action 3 loc 5");
        assert_eq!(
            of("rule/eth0/5", "vlan pcp 5 queue 3"),
            "ethtool -N eth0 flow-type ether vlan 0xa000 m 0x1fff action 3 loc 5"
        );
        assert_eq!(of("route/eth0/239.255.0.0/16", "here"), "ip route add 239.255.0.0/16 dev eth0");
        let plan = of("qdisc/eth0", "qdisc mq 1: root");
        let json = plan.strip_prefix("echo '").and_then(|rest| rest.strip_suffix("' | takt host apply -"));
        let plan: takt_host::Plan = serde_json::from_str(json.expect("quoted")).expect("a valid plan");
        assert_eq!(plan.changes[0].to, "qdisc mq 1: root");
    }
}
