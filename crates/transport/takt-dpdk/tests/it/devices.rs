//! DPDK's virtual devices, connected so that all ports of one bench reach each other.
//!
//! A process has one DPDK environment, with room for 32 ports, so tests with devices run one at a
//! time.

use std::cell::Cell;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use takt_dpdk::{DpdkConfig, DpdkPort};
use takt_packet::MacAddress;
use takt_testkit::{not_run, require};

use super::network::{Host, Network, ip};
use super::switch::Switch;

/// Kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// Rings within this process; the far ends are at the test's own switch.
    Ring,
    /// Shared memory, as between processes; the far ends are at the test's own switch.
    Memif,
    /// Packet sockets at virtual links of the kernel's bridge.
    Packet,
    /// AF_XDP at the same links.
    Xdp,
    /// Interfaces that the device creates, at the kernel's bridge.
    Tap,
}

/// Source of ports that all reach each other.
pub struct Bench {
    device: Device,
    switch: Option<Switch>,
    count: Cell<u8>,
}

/// Returns a device name that is unique in this process.
pub fn unique_name(driver: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{driver}{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the configuration of all devices of this process: the arguments of the environment have
/// to be the same.
pub fn config(device: &str) -> DpdkConfig {
    let mut config = DpdkConfig::for_trial(device);
    let memory = config.eal.iter().position(|argument| argument == "-m").expect("the arguments contain -m");
    config.eal[memory + 1] = "1536".into();
    config
}

/// Returns the hardware address of the `n`-th port.
pub fn mac(n: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 1, n])
}

/// Waits until this test may use devices.
pub fn lock_devices() -> MutexGuard<'static, ()> {
    static DEVICES: Mutex<()> = Mutex::new(());
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of ports of a bench with devices at the kernel's bridge.
const LINKS: u8 = 6;

/// Makes a host with a bridge and this number of links to it: `v1` and so on.
fn host(links: u8) -> Host {
    let host = Network::new().expect("namespaces can be made").host(false);
    host.run(|| {
        ip("link add hub type bridge mcast_snooping 0
            link set hub up");
        for n in 1..=links {
            ip(&format!(
                "link add v{n} type veth peer name p{n}
                 link set p{n} master hub up
                 link set v{n} address {} up",
                mac(n)
            ));
        }
        (1..=links).for_each(|n| wait_for_link(&format!("p{n}")));
    });
    host
}

/// Returns the host that tests with packet sockets share, since links need time to come up.
fn shared_host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| host(LINKS))
}

/// Character device by which processes create interfaces.
pub const TUN: &str = "/dev/net/tun";

/// Reports whether tests that take longer, or print driver messages, are requested.
fn are_long_tests_requested() -> Result<(), String> {
    match std::env::var_os("TAKT_TEST_LONG") {
        Some(_) => Ok(()),
        None => Err("at full length only (TAKT_TEST_LONG=1)".to_owned()),
    }
}

/// Checks what a device requires of the machine, and of the time.
fn check_requirements(device: Device) -> Result<(), String> {
    match device {
        Device::Ring | Device::Memif => Ok(()),
        Device::Packet => require::network_namespaces(),
        Device::Xdp => {
            are_long_tests_requested().and_then(|()| require::network_namespaces()).and_then(|()| require::af_xdp())
        }
        Device::Tap => {
            are_long_tests_requested().and_then(|()| require::network_namespaces()).and_then(|()| require::file(TUN))
        }
    }
}

/// Runs `test` with a bench, in a network namespace where the devices need one. If they are not
/// available, reports that the test cannot run.
pub fn with_bench(device: Device, test: impl FnOnce(&Bench) + Send) {
    if let Err(why) = check_requirements(device) {
        return not_run(why);
    }
    let _guard = lock_devices();
    let takes_links = matches!(device, Device::Packet | Device::Xdp | Device::Tap);
    // Made where it is used: its resources belong to the namespace of the thread.
    let run = || test(&Bench { device, switch: (!takes_links).then(Switch::new), count: Cell::new(0) });
    let own = match device {
        Device::Ring | Device::Memif => return run(),
        Device::Packet => None,
        // AF_XDP of DPDK 22.11 leaves its program on a link; a tap has the address that a link
        // would have.
        Device::Xdp => Some(host(LINKS)),
        Device::Tap => Some(host(0)),
    };
    own.as_ref().unwrap_or_else(|| shared_host()).run(run);
}

impl Bench {
    /// Opens the next port: the `n`-th, with the address [`mac`]`(n)`.
    pub fn port(&self) -> (u8, DpdkPort) {
        let n = self.count.get() + 1;
        self.count.set(n);
        let own = |device: &str| DpdkConfig { mac: Some(mac(n)), ..config(device) };
        let far = |device: &str| DpdkConfig { promiscuous: true, ..config(device) };
        let open = |config: &DpdkConfig| DpdkPort::open(config).expect("a virtual device");
        let port = match self.device {
            Device::Ring => {
                let [near, end] = DpdkPort::ring_pair(&own(&unique_name("ring")), &far("")).expect("rings");
                self.switch_to(end);
                near
            }
            Device::Memif => {
                let [name, other] = ["net_memif", "net_memif"].map(unique_name);
                let socket = format!("id={n},socket=takt-{}-{name}", std::process::id());
                let mut end = open(&far(&format!("{other},role=server,{socket}")));
                let mut near = open(&own(&format!("{name},role=client,{socket}")));
                while !(near.check_link() & end.check_link()) {
                    std::thread::yield_now();
                }
                self.switch_to(end);
                near
            }
            Device::Packet => open(&config(&format!("{},iface=v{n}", unique_name("net_af_packet")))),
            Device::Xdp => open(&config(&format!("{},iface=v{n},force_copy=1", unique_name("net_af_xdp")))),
            Device::Tap => {
                let port = open(&own(&format!("{},iface=t{n}", unique_name("net_tap"))));
                ip(&format!("link set t{n} master hub up"));
                wait_for_link(&format!("t{n}"));
                port
            }
        };
        (n, port)
    }

    fn switch_to(&self, end: DpdkPort) {
        self.switch.as_ref().expect("the bench has a switch").add(end);
    }
}

/// Waits until an interface of the bridge forwards frames, because links need time to come up.
fn wait_for_link(name: &str) {
    for _ in 0..2000 {
        let shown = Command::new("bridge").args(["link", "show", "dev", name]).output().expect("iproute2 is installed");
        if String::from_utf8_lossy(&shown.stdout).contains("state forwarding") {
            return;
        }
    }
    panic!("{name} stays down");
}
