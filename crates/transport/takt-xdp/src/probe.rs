//! Checks of what an interface, the kernel and the process provide for AF_XDP. Nothing is attached,
//! loaded or bound.

use takt_transport::choice::probe::{
    Finding, Grade, Needs, capabilities_finding, has_capability, interface_finding, kernel_finding,
};

use crate::program::attach;
use crate::syscall;

/// Returns the findings about AF_XDP.
pub(crate) fn findings(interface: &str) -> Vec<Finding> {
    let mut findings = vec![
        // Links of XDP programs, which the kernel removes with the process.
        kernel_finding(5, 9, "AF_XDP"),
        capabilities_finding(&["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF|CAP_SYS_ADMIN"]),
        sockets(),
        memory(),
    ];
    let (finding, link) = interface_finding(interface, Needs { ethernet: true, ipv4: true });
    findings.push(finding);
    let Some(link) = link.filter(|link| link.is_ethernet) else { return findings };
    if link.has_xdp_program {
        let detail = "an XDP program is attached (`ip link`, `bpftool net`); it must be Takt's, or be removed";
        findings.push(Finding::new("program", Grade::Unknown, detail));
    }
    let queues = match link.rx_queues {
        1 => "one".to_owned(),
        count => format!("{count}; packets on queues other than the participant's arrive through kernel sockets"),
    };
    findings.push(Finding::new("queues", Grade::Good, queues));
    let finding = |what, is_supported, good: &str, lesser: &str| {
        let (grade, detail) = if is_supported { (Grade::Good, good) } else { (Grade::Lesser, lesser) };
        Finding::new(what, grade, detail)
    };
    match link.xdp {
        None => findings.push(Finding::new(
            "driver",
            Grade::Unknown,
            "kernels before 6.3 do not report the features of a driver",
        )),
        Some(xdp) => findings.extend([
            match attach::slows_other_traffic(&link.driver) {
                true if xdp.native => Finding::new("native", Grade::Lesser, kept_generic(interface)),
                _ => finding(
                    "native",
                    xdp.native,
                    "the driver runs the filter",
                    "the kernel's receive path runs the filter",
                ),
            },
            finding(
                "zero copy",
                xdp.zero_copy,
                "the driver uses the frames in place",
                "frames are copied by the kernel",
            ),
            finding(
                "large frames",
                xdp.several_parts,
                "the driver accepts a filter at MTUs above a page",
                "the driver refuses a filter at MTUs above a page",
            ),
        ]),
    }
    findings
}

/// Explains why the filter does not run in a driver that supports it, and how to change that.
fn kept_generic(interface: &str) -> String {
    format!(
        "the kernel's receive path runs the filter: in the driver it would slow TCP of other programs to {interface} \
         to a third; with mode=native, `ethtool -K {interface} gro on` and a larger MTU reduce the loss"
    )
}

fn sockets() -> Finding {
    let what = "AF_XDP";
    match syscall::xdp_socket() {
        Ok(_) => Finding::new(what, Grade::Good, "supported by the kernel"),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT) => {
                Finding::new(what, Grade::Missing, "the kernel was built without CONFIG_XDP_SOCKETS")
            }
            // Without CAP_NET_RAW, the answer is unknown.
            Some(libc::EPERM) => Finding::new(what, Grade::Unknown, "the check needs CAP_NET_RAW"),
            _ => Finding::new(what, Grade::Missing, error.to_string()),
        },
    }
}

/// Checks the limit of locked memory, which holds the frames: 10 MiB with the default numbers at an
/// MTU of 1500.
fn memory() -> Finding {
    const NEEDED: u64 = 10 << 20;
    let what = "memory";
    if has_capability("CAP_IPC_LOCK") {
        return Finding::new(what, Grade::Good, "unlimited with CAP_IPC_LOCK");
    }
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    match soft.map(|soft| (soft, soft.parse::<u64>())) {
        Some(("unlimited", _)) => Finding::new(what, Grade::Good, "locked memory is unlimited"),
        Some((_, Ok(bytes))) if bytes >= NEEDED => {
            Finding::new(what, Grade::Good, format!("{bytes} bytes may be locked, {NEEDED} are needed"))
        }
        Some((_, Ok(bytes))) => {
            let detail = format!("{bytes} bytes may be locked, {NEEDED} are needed: `ulimit -l`, or CAP_IPC_LOCK");
            Finding::new(what, Grade::Missing, detail)
        }
        _ => Finding::new(what, Grade::Unknown, "the limit of locked memory is unknown"),
    }
}
