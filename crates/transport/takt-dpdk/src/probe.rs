//! Checks of what DPDK can drive at an interface, and of its memory. DPDK is not started, and
//! nothing is bound or opened.

use std::fs;
use std::path::Path;

use takt_transport::choice::probe::{Finding, Grade, Needs, capabilities_finding, interface_finding};

use crate::ffi;

/// DPDK drivers that work at an interface which the kernel keeps.
const INTERFACE_DRIVERS: [&str; 2] = ["net_af_packet", "net_af_xdp"];

/// Kernel drivers that leave a card to user space.
const USER_SPACE_DRIVERS: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// Returns the findings about DPDK.
pub(crate) fn findings(interface: &str) -> Vec<Finding> {
    let sys = Path::new("/sys");
    let (version, plugins) = ffi::library_info();
    let (of_interface, link) = interface_finding(interface, Needs { ethernet: true, ipv4: false });
    let mut findings = vec![
        Finding::new("library", Grade::Good, version),
        hugepages(sys),
        // As packet sockets need; AF_XDP needs more.
        capabilities_finding(&["CAP_NET_RAW"]),
        of_interface,
    ];
    if link.is_some() {
        findings.push(devices(interface, Path::new(&plugins)));
        findings.extend(card(sys, interface));
    }
    findings.push(cards(sys));
    findings
}

/// Returns the sorted names in a directory; empty if there is no such directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Checks the huge pages of each size, and how many are free.
fn hugepages(sys: &Path) -> Finding {
    let root = sys.join("kernel/mm/hugepages");
    let mut pages = Vec::new();
    let mut free_kib = 0;
    for name in names(&root) {
        let kib = name.strip_prefix("hugepages-").and_then(|size| size.strip_suffix("kB")?.parse::<u64>().ok()); // tidy-allow(dropped-cause): not a size.
        let count = |file: &str| fs::read_to_string(root.join(&name).join(file)).ok()?.trim().parse::<u64>().ok(); // tidy-allow(dropped-cause): not readable.
        if let (Some(kib), Some(all @ 1..), Some(free)) = (kib, count("nr_hugepages"), count("free_hugepages")) {
            pages.push(format!("{all} of {} MiB, {free} free", kib / 1024));
            free_kib += free * kib;
        }
    }
    let text = pages.join("; ");
    match (pages.is_empty(), free_kib) {
        (true, _) => Finding::new(
            "huge pages",
            Grade::Lesser,
            "none (`sysctl vm.nr_hugepages=128`); virtual devices need none with huge=no",
        ),
        (false, 0) => {
            Finding::new("huge pages", Grade::Lesser, format!("{text}; virtual devices need none with huge=no"))
        }
        _ => Finding::new("huge pages", Grade::Good, text),
    }
}

/// Lists the DPDK devices for the interface.
fn devices(interface: &str, plugins: &Path) -> Finding {
    let is_installed = |driver: &&str| plugins.join(format!("librte_{driver}.so")).exists();
    let devices: Vec<String> = INTERFACE_DRIVERS
        .into_iter()
        .filter(is_installed)
        .map(|driver| format!("{driver}0,iface={interface}"))
        .collect();
    if devices.is_empty() {
        let detail = format!("no driver for it in {}", plugins.display());
        return Finding::new("devices", Grade::Unknown, detail);
    }
    Finding::new("devices", Grade::Good, devices.join(" or "))
}

/// Checks the card of the interface.
fn card(sys: &Path, interface: &str) -> Option<Finding> {
    let device = fs::canonicalize(sys.join("class/net").join(interface).join("device")).ok()?; // tidy-allow(dropped-cause): a virtual one.
    let bus = fs::canonicalize(device.join("subsystem")).ok()?; // tidy-allow(dropped-cause): as above.
    if bus.file_name()? != "pci" {
        return None;
    }
    let address = device.file_name()?.to_string_lossy();
    let detail = format!("{address}; once bound to vfio-pci, it is driven by DPDK only and disappears from the kernel");
    Some(Finding::new("card", Grade::Unknown, detail))
}

/// Lists the network cards that are left to user space.
fn cards(sys: &Path) -> Finding {
    let root = sys.join("bus/pci/devices");
    let is_free = |address: &String| {
        let device = root.join(address);
        let class = fs::read_to_string(device.join("class")).unwrap_or_default();
        let driver = fs::canonicalize(device.join("driver")).unwrap_or_default();
        let driver = driver.file_name().unwrap_or_default().to_string_lossy();
        class.starts_with("0x02") && USER_SPACE_DRIVERS.contains(&&*driver)
    };
    let free: Vec<String> = names(&root).into_iter().filter(is_free).collect();
    match free.is_empty() {
        true => Finding::new("free cards", Grade::Lesser, "none is bound to vfio-pci (`dpdk-devbind.py --status`)"),
        false => Finding::new("free cards", Grade::Good, free.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// Test directory like `/sys`, removed on drop.
    struct Sys(PathBuf);

    impl Sys {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("takt-dpdk-sys-{}-{name}", std::process::id()));
            fs::create_dir_all(&root).expect("a directory");
            Self(fs::canonicalize(root).expect("the directory exists"))
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("the path has a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        }

        fn link(&self, path: &str, to: &str) {
            fs::create_dir_all(self.0.join(to)).expect("a directory");
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("the path has a parent")).expect("a directory");
            symlink(self.0.join(to), path).expect("a link");
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("the test created the directory");
        }
    }

    fn grade_and_detail(finding: &Finding) -> (Grade, &str) {
        (finding.grade, finding.detail.as_str())
    }

    #[test]
    fn huge_pages_are_counted_by_size() {
        let sys = Sys::new("pages");
        assert!(hugepages(&sys.0).detail.starts_with("none (`sysctl"));
        let page = |size: &str, all: u32, free: u32| {
            sys.file(&format!("kernel/mm/hugepages/hugepages-{size}kB/nr_hugepages"), &format!("{all}\n"));
            sys.file(&format!("kernel/mm/hugepages/hugepages-{size}kB/free_hugepages"), &format!("{free}\n"));
        };
        page("1048576", 0, 0);
        page("2048", 64, 0);
        let full = "64 of 2 MiB, 0 free; virtual devices need none with huge=no";
        assert_eq!(grade_and_detail(&hugepages(&sys.0)), (Grade::Lesser, full));
        page("2048", 64, 60);
        page("1048576", 1, 1);
        assert_eq!(grade_and_detail(&hugepages(&sys.0)), (Grade::Good, "1 of 1024 MiB, 1 free; 64 of 2 MiB, 60 free"));
    }

    #[test]
    fn cards_left_to_user_space_are_listed() {
        let sys = Sys::new("cards");
        assert_eq!(cards(&sys.0).grade, Grade::Lesser);
        for (address, class, driver) in [
            ("0000:03:00.0", "0x020000\n", "vfio-pci"),
            ("0000:04:00.0", "0x020000\n", "ixgbe"),
            ("0000:05:00.0", "0x010802\n", "vfio-pci"),
        ] {
            sys.file(&format!("bus/pci/devices/{address}/class"), class);
            sys.link(&format!("bus/pci/devices/{address}/driver"), &format!("bus/pci/drivers/{driver}"));
        }
        assert_eq!(grade_and_detail(&cards(&sys.0)), (Grade::Good, "0000:03:00.0"));
    }

    #[test]
    fn card_is_named_by_its_address_and_virtual_interface_has_none() {
        let sys = Sys::new("card");
        sys.file("class/net/veth0/mtu", "1500");
        sys.link("devices/0000:03:00.0/subsystem", "bus/pci");
        sys.link("devices/virtio0/subsystem", "bus/virtio");
        sys.link("class/net/eth0/device", "devices/0000:03:00.0");
        sys.link("class/net/eth1/device", "devices/virtio0");
        let found = card(&sys.0, "eth0").expect("a card");
        assert!(found.detail.starts_with("0000:03:00.0; once bound to vfio-pci"), "{found:?}");
        assert_eq!((card(&sys.0, "veth0"), card(&sys.0, "eth1")), (None, None));
    }

    #[test]
    fn devices_with_installed_drivers_are_listed() {
        let plugins = Sys::new("plugins");
        assert_eq!(devices("eth0", &plugins.0).grade, Grade::Unknown);
        plugins.file("librte_net_af_packet.so", "");
        assert_eq!(grade_and_detail(&devices("eth0", &plugins.0)), (Grade::Good, "net_af_packet0,iface=eth0"));
        plugins.file("librte_net_af_xdp.so", "");
        let both = "net_af_packet0,iface=eth0 or net_af_xdp0,iface=eth0";
        assert_eq!(grade_and_detail(&devices("eth0", &plugins.0)), (Grade::Good, both));
    }
}
