//! A real network: bridges of Open vSwitch, hosts in network namespaces, the controller on a socket.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use takt_lab::file::SWITCHES;
use takt_lab::{Lab, LabFile};
use takt_sdn::controller::{Config, Event};
use takt_sdn::runtime::Runtime;
use takt_testkit::{not_run, require};

const PATIENCE: Duration = Duration::from_secs(60);

/// A ring of three switches, each with a host.
const RING: &str = r#"
    [hosts.h1]
    eth0 = ["10.8.0.1/24", "fd08::1/64"]
    [hosts.h2]
    eth0 = ["10.8.0.2/24", "fd08::2/64"]
    [hosts.h3]
    eth0 = ["10.8.0.3/24", "fd08::3/64"]
    [switches.s1]
    controller = "tcp:127.0.0.1:6653"
    [switches.s2]
    controller = "tcp:127.0.0.1:6653"
    [switches.s3]
    controller = "tcp:127.0.0.1:6653"
    [[links]]
    ends = ["s1", "s2"]
    [[links]]
    ends = ["s2", "s3"]
    [[links]]
    ends = ["s3", "s1"]
    [[links]]
    ends = ["h1:eth0", "s1"]
    [[links]]
    ends = ["h2:eth0", "s2"]
    [[links]]
    ends = ["h3:eth0", "s3"]
"#;

fn lab(test: &str) -> Lab {
    let file: LabFile = format!("name = \"sdn-{test}-{}\"\n{RING}", std::process::id()).parse().expect("a network");
    Lab::up(&file).unwrap_or_else(|why| panic!("{why}"))
}

/// A controller on a thread of its own.
pub struct Running {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Event>>>,
    state: Arc<std::sync::Mutex<State>>,
}

/// What the thread shows.
#[derive(Clone, Copy, Default)]
pub struct State {
    pub links: usize,
    pub tree: usize,
    pub edges: usize,
    pub is_settled: bool,
}

impl Running {
    pub fn start(lab: &Lab, config: Config) -> Self {
        let address = "127.0.0.1:6653".parse().expect("an address");
        let begin = Instant::now();
        let listen = || loop {
            match Runtime::listen(address, None, config.clone()) {
                Ok(runtime) => return runtime,
                // A process that another test starts has the socket of the controller before until it runs its program.
                Err(error) if begin.elapsed() < PATIENCE && error.kind() == std::io::ErrorKind::AddrInUse => {}
                Err(error) => panic!("{error}"),
            }
        };
        let mut runtime = lab.namespace(SWITCHES).expect("it has switches").run(listen).expect("root");
        let is_over = Arc::new(AtomicBool::new(false));
        let state = Arc::new(std::sync::Mutex::new(State::default()));
        let (over, shown) = (Arc::clone(&is_over), Arc::clone(&state));
        let thread = std::thread::spawn(move || {
            let mut events = Vec::new();
            while !over.load(Ordering::Relaxed) {
                runtime.run_once(Duration::from_millis(20)).expect("it can wait");
                events.extend(std::iter::from_fn(|| runtime.poll_event()));
                let controller = runtime.controller();
                *shown.lock().expect("no panic") = State {
                    links: controller.topology().links().count(),
                    tree: controller.tree().len(),
                    edges: controller.topology().edges().count(),
                    is_settled: controller.is_settled(),
                };
            }
            events
        });
        Self { is_over, thread: Some(thread), state }
    }

    pub fn wait(&self, what: &str, is_reached: impl Fn(&State) -> bool) {
        let begin = Instant::now();
        loop {
            let state = *self.state.lock().expect("no panic");
            if is_reached(&state) {
                return;
            }
            let State { links, tree, edges, is_settled } = state;
            assert!(
                begin.elapsed() < PATIENCE,
                "{what}: {links} links, {tree} in the tree, {edges} edges, {is_settled}"
            );
            // tidy-allow(sleep): between two looks at the condition that it waits for.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn stop(mut self) -> Vec<Event> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().expect("it runs").join().expect("no panic")
    }
}

fn socket(lab: &Lab, host: &str) -> UdpSocket {
    let namespace = lab.namespace(host).expect("a host of the file");
    let socket = namespace.run(|| UdpSocket::bind("[::]:7000")).expect("root").expect("the port is free");
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    socket
}

/// Sends from one to the other until it arrives. Late copies of earlier datagrams are passed over.
fn reaches(from: &UdpSocket, to: &UdpSocket, address: &str, number: u32) -> Duration {
    let begin = Instant::now();
    let mut buffer = [0; 64];
    while begin.elapsed() < PATIENCE {
        from.send_to(&number.to_be_bytes(), address).expect("there is a route");
        while let Ok((len, _)) = to.recv_from(&mut buffer) {
            if buffer[..len] == number.to_be_bytes() {
                return begin.elapsed();
            }
        }
    }
    panic!("{address} is not reached");
}

#[test]
fn hosts_reach_each_other_over_a_ring_whose_links_fail() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = lab("ring");
    let running = Running::start(&lab, Config::default());
    running.wait("three switches in a ring", |state| {
        (state.links, state.tree, state.edges, state.is_settled) == (3, 2, 3, true)
    });
    let sockets = ["h1", "h2", "h3"].map(|host| socket(&lab, host));
    let mut number = 0;
    let mut all_reach = || {
        for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
            for prefix in ["10.8.0.", "fd08::"] {
                number += 1;
                let address = format!("{prefix}{}", to + 1);
                let address =
                    if prefix.contains(':') { format!("[{address}]:7000") } else { format!("{address}:7000") };
                reaches(&sockets[from], &sockets[to], &address, number);
            }
        }
    };
    all_reach();
    for link in 0..3 {
        lab.set_link(link, false).expect("root");
        running.wait("one link failed", |state| (state.links, state.tree, state.is_settled) == (2, 2, true));
        all_reach();
        lab.set_link(link, true).expect("root");
        running.wait("it came back", |state| (state.links, state.tree, state.is_settled) == (3, 2, true));
        all_reach();
    }
    let events = running.stop();
    let refused = events
        .iter()
        .filter(|event| matches!(event, Event::EntryRefused { .. } | Event::SwitchDown { .. } | Event::Spoofed { .. }));
    assert_eq!(refused.count(), 0, "{events:?}");
    lab.remove().expect("it can be taken down");
}

#[test]
fn switch_that_already_is_as_wanted_is_not_changed_by_a_new_controller() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = lab("again");
    let running = Running::start(&lab, Config::default());
    running.wait("a first run", |state| (state.links, state.tree, state.edges, state.is_settled) == (3, 2, 3, true));
    running.stop();
    let running = Running::start(&lab, Config::default());
    running.wait("a second run", |state| (state.links, state.tree, state.edges, state.is_settled) == (3, 2, 3, true));
    let sockets = ["h1", "h2"].map(|host| socket(&lab, host));
    reaches(&sockets[0], &sockets[1], "10.8.0.2:7000", 1);
    let events = running.stop();
    let changed = events.iter().filter_map(|event| match event {
        Event::Resynchronised { difference, .. } => Some(difference.changed + difference.deleted),
        _ => None,
    });
    assert_eq!(changed.sum::<usize>(), 0, "{events:?}");
    lab.remove().expect("it can be taken down");
}
