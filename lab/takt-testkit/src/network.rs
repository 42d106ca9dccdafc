//! Test network of hosts, each a network namespace with one interface, `eth0`, connected to one
//! bridge.
//!
//! Namespaces have no names: one lives as long as its threads, sockets and descriptors. Nothing
//! remains however a test ends.

use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::{not_run, require};

/// Network with its bridge.
pub struct Network {
    bridge: Host,
    hosts: AtomicU8,
    mtu: usize,
}

/// Host with its network namespace.
#[derive(Clone)]
pub struct Host {
    namespace: Arc<File>,
}

/// Checks that network namespaces can be created; otherwise reports that the test cannot run.
fn is_possible() -> Option<()> {
    require::network_namespaces().map_err(not_run).ok()
}

/// Moves this thread to a new namespace; returns its descriptor.
fn new_namespace() -> io::Result<File> {
    // SAFETY: no pointers; affects this thread only.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    File::open("/proc/thread-self/ns/net")
}

/// Moves this thread to a new namespace, which disappears with it. Panics without the privilege;
/// see [`require::network_namespaces`].
pub fn enter_new_namespace() {
    new_namespace().expect("the thread may create a namespace");
}

/// Runs `f` on a new thread, which may move to another namespace.
fn on_new_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(f).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Runs iproute2 commands, one per line, in this thread's namespace.
pub fn ip(lines: &str) {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("iproute2 is installed");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(lines.as_bytes()).expect("the program reads stdin");
    drop(stdin);
    let output = child.wait_with_output().expect("the process ends");
    assert!(output.status.success(), "ip {lines}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns a line for [`ip`] that lets an interface of this thread's namespace transmit
/// immediately, if both ends of its link are up.
///
/// The end that came up first drops frames until the kernel has handled its carrier change. The
/// kernel does this once a second for all interfaces of the machine. From Linux 6.8 on, a query of
/// an interface handles its change immediately.
fn activate(interface: &str) -> String {
    format!("link show dev {interface}\n")
}

impl Network {
    /// Creates an empty network with the default MTU. Without the required privileges it reports
    /// that the test cannot run, and returns `None`.
    pub fn new() -> Option<Self> {
        Self::of_mtu(1500)
    }

    /// Creates a network with this MTU.
    pub fn of_mtu(mtu: usize) -> Option<Self> {
        is_possible()?;
        let bridge = on_new_thread(|| {
            let namespace = new_namespace().expect("root may create a namespace");
            // Multicast is flooded: there is no querier for group membership.
            ip("link set lo up
                link add br0 type bridge mcast_snooping 0
                addr add 10.77.0.254/24 dev br0
                link set br0 up");
            namespace
        });
        Some(Self { bridge: Host::new(bridge), hosts: AtomicU8::new(0), mtu })
    }

    /// Adds a host, the `n`-th with the address 10.77.0.`n`. It resolves the addresses of others on
    /// demand, or has static entries for all hosts.
    pub fn host(&self, knows_all: bool) -> Host {
        let n = self.hosts.fetch_add(1, Ordering::Relaxed) + 1;
        let bridge = format!("/proc/{}/fd/{}", std::process::id(), self.bridge.namespace.as_raw_fd());
        let mtu = self.mtu;
        let namespace = on_new_thread(|| {
            let namespace = new_namespace().expect("the first one could be made");
            let others = (1..=12).filter(|other| knows_all && *other != n);
            let known =
                |other| format!("neigh add 10.77.0.{other} lladdr 02:00:00:00:00:{other:02x} nud permanent dev eth0\n");
            let known: String = others.map(known).collect();
            ip(&format!(
                "link set lo up
                 link add eth0 address 02:00:00:00:00:{n:02x} mtu {mtu} type veth peer name port{n} mtu {mtu}
                 link set port{n} netns {bridge}
                 addr add 10.77.0.{n}/24 brd 10.77.0.255 dev eth0
                 link set eth0 up
                 route add 224.0.0.0/4 dev eth0
                 {known}"
            ));
            namespace
        });
        let host = Host::new(namespace);
        self.bridge.run(|| {
            let [port, bridge] = [activate(&format!("port{n}")), activate("br0")];
            ip(&format!("link set port{n} master br0 up\n{port}{bridge}"));
        });
        host.run(|| ip(&activate("eth0")));
        let [here, there] =
            [&host, &self.bridge].map(|end| end.run(|| UdpSocket::bind("0.0.0.0:0").expect("a port is free")));
        answer(&here, &there, Ipv4Addr::new(10, 77, 0, 254));
        host
    }

    /// Returns the number of frames dropped between the bridge and its hosts.
    pub fn drops(&self) -> u64 {
        self.bridge.drops()
    }
}

/// Waits until both hosts reach each other at `address`: links need time to come up.
fn answer(here: &UdpSocket, there: &UdpSocket, address: Ipv4Addr) {
    let port = there.local_addr().expect("the socket is bound").port();
    let mut buffer = [0; 8];
    for socket in [here, there] {
        socket.set_read_timeout(Some(Duration::from_millis(10))).expect("a timeout");
    }
    for _ in 0..2000 {
        // The call fails as long as there is no link.
        drop(here.send_to(b"there?", (address, port)));
        if let Ok((_, from)) = there.recv_from(&mut buffer) {
            drop(there.send_to(b"here", from));
            if here.recv_from(&mut buffer).is_ok() {
                return;
            }
        }
    }
    panic!("the host does not reach {address}");
}

/// Guard that keeps its thread in the namespace of a host.
#[must_use]
pub struct NamespaceGuard {
    outside: File,
    /// Makes the guard neither `Send` nor `Sync`: it must be dropped on its thread.
    _this_thread: PhantomData<*const ()>,
}

impl Drop for NamespaceGuard {
    fn drop(&mut self) {
        move_to(&self.outside);
    }
}

/// Moves this thread to a network namespace.
fn move_to(namespace: &File) {
    // SAFETY: the descriptor refers to a network namespace; affects this thread only.
    let entered = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(entered, 0, "{}", io::Error::last_os_error());
}

impl Host {
    fn new(namespace: File) -> Self {
        Self { namespace: Arc::new(namespace) }
    }

    /// Runs a closure in the host's namespace, on a new thread.
    pub fn run<R: Send>(&self, function: impl FnOnce() -> R + Send) -> R {
        on_new_thread(|| {
            move_to(&self.namespace);
            function()
        })
    }

    /// Moves this thread to the host's namespace until the returned value is dropped.
    pub fn enter(&self) -> NamespaceGuard {
        let outside = File::open("/proc/thread-self/ns/net").expect("/proc is mounted");
        move_to(&self.namespace);
        NamespaceGuard { outside, _this_thread: PhantomData }
    }

    /// Limits what the host sends to this rate, in the notation of `tc(8)`, by a queue of 10 MB in
    /// which frames wait in order.
    pub fn limit_rate(&self, rate: &str) {
        let arguments = format!("qdisc replace dev eth0 root tbf rate {rate} burst 16kb limit 10mb");
        let output =
            self.run(|| Command::new("tc").args(arguments.split(' ')).output().expect("iproute2 is installed"));
        assert!(output.status.success(), "tc {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns the number of frames that the kernel counts as dropped at the host's interfaces,
    /// received and sent.
    pub fn drops(&self) -> u64 {
        let table = self.run(|| std::fs::read_to_string("/proc/thread-self/net/dev").expect("/proc is mounted"));
        // proc(5): the name, then octets, packets, errors, drops and four more figures for received
        // frames, then the same for sent ones.
        let figures =
            table.lines().filter_map(|line| line.split_once(':')).map(|(_, figures)| figures.split_whitespace());
        let drops = figures.flat_map(|line| line.enumerate().filter(|(at, _)| [3, 11].contains(at)));
        drops.map(|(_, figure)| figure.parse::<u64>().expect("a figure")).sum()
    }
}

/// Creates two hosts that are connected by one veth pair, with this number of queues in each
/// direction. Their addresses are 10.77.0.1 and 10.77.0.2, and fd77::1 and fd77::2; they have
/// static neighbor entries for each other. Without the required privileges it reports that the test
/// cannot run, and returns `None`.
pub fn veth_pair(queues: u32) -> Option<[Host; 2]> {
    is_possible()?;
    let hosts = [(); 2].map(|()| Host::new(on_new_thread(|| new_namespace().expect("root may create a namespace"))));
    create_veth_pair(&hosts, queues);
    Some(hosts)
}

/// Creates or replaces the veth pair between two hosts, which keep their addresses.
pub fn create_veth_pair(hosts: &[Host; 2], queues: u32) {
    let there = format!("/proc/{}/fd/{}", std::process::id(), hosts[1].namespace.as_raw_fd());
    hosts[0].run(|| {
        ip(&format!(
            "link add eth0 numtxqueues {queues} numrxqueues {queues} type veth peer name eth0 netns {there} \
             numtxqueues {queues} numrxqueues {queues}"
        ));
    });
    for (own, other, host) in [(1, 2, &hosts[0]), (2, 1, &hosts[1])] {
        host.run(|| {
            ip(&format!(
                "link set lo up
                 link set eth0 address 02:00:00:00:00:{own:02x}
                 addr add 10.77.0.{own}/24 brd 10.77.0.255 dev eth0
                 addr add fd77::{own}/64 dev eth0 nodad
                 link set eth0 up
                 route add 224.0.0.0/4 dev eth0
                 neigh add 10.77.0.{other} lladdr 02:00:00:00:00:{other:02x} nud permanent dev eth0
                 neigh add fd77::{other} lladdr 02:00:00:00:00:{other:02x} nud permanent dev eth0"
            ));
        });
    }
    hosts.iter().for_each(|host| host.run(|| ip(&activate("eth0"))));
    let [here, there] = hosts.each_ref().map(|host| host.run(|| UdpSocket::bind("0.0.0.0:0").expect("a port is free")));
    answer(&here, &there, Ipv4Addr::new(10, 77, 0, 2));
}
