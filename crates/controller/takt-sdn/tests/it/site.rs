//! Support for tests with bridges of Open vSwitch: a lab, and the controller of its switches on a
//! socket.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use takt_lab::Lab;
use takt_lab::file::SWITCHES;
use takt_sdn::api::controller_client::ControllerClient;
use takt_sdn::controller::{Config, Event};
use takt_sdn::runtime::Runtime;
use takt_testkit::lab_text::LabText;
use takt_testkit::waiting::{join, until, until_ok, until_some};

/// Starts a lab with the name of its test.
pub fn up(test: &str, network: &LabText) -> Lab {
    let file = network.text(&format!("sdn-{test}")).parse().expect("a network");
    Lab::up(&file).unwrap_or_else(|why| panic!("{why}"))
}

/// Opens a socket on a host.
pub fn socket(lab: &Lab, host: &str, address: SocketAddr) -> UdpSocket {
    let namespace = lab.namespace(host).expect("the lab file has the host");
    namespace.run(|| UdpSocket::bind(address)).expect("root").expect("the port is free")
}

/// A controller on a thread of its own, which ends when the value is dropped.
pub struct Running {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Event>>>,
    state: Arc<std::sync::Mutex<State>>,
    /// Client of the controller, as used by the API.
    pub questions: ControllerClient,
    /// Number of packets to hosts with limits that meters dropped.
    host_excess: Arc<AtomicU64>,
}

/// State that the thread exports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    pub links: usize,
    pub tree: usize,
    pub edges: usize,
    pub is_settled: bool,
}

impl State {
    /// Returns the state in which all flow entries are installed, with these numbers of links,
    /// links in the tree, and hosts.
    pub fn settled(links: usize, tree: usize, edges: usize) -> Self {
        Self { links, tree, edges, is_settled: true }
    }
}

impl Running {
    pub fn start(lab: &Lab, config: Config) -> Self {
        let address = "127.0.0.1:6653".parse().expect("a valid address");
        let listen = || {
            until_some("the port of the controller is free", || match Runtime::listen(address, None, config.clone()) {
                Ok(runtime) => Some(runtime),
                // A process spawned by another test inherits the previous controller's socket until
                // it executes its program.
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => None,
                Err(error) => panic!("{error}"),
            })
        };
        let mut runtime = lab.namespace(SWITCHES).expect("the lab has switches").run(listen).expect("root");
        let questions = runtime.client();
        let is_over = Arc::new(AtomicBool::new(false));
        let state = Arc::new(std::sync::Mutex::new(State::default()));
        let host_excess = Arc::new(AtomicU64::new(0));
        let (over, shown, excess) = (Arc::clone(&is_over), Arc::clone(&state), Arc::clone(&host_excess));
        let thread = std::thread::spawn(move || {
            let mut events = Vec::new();
            while !over.load(Ordering::Relaxed) {
                runtime.run_once(Duration::from_millis(20)).expect("the runtime can wait");
                events.extend(std::iter::from_fn(|| runtime.poll_event()));
                let controller = runtime.controller();
                excess.store(controller.counters().host_excess, Ordering::Relaxed);
                *shown.lock().expect("no panic") = State {
                    links: controller.topology().links().count(),
                    tree: controller.tree().len(),
                    edges: controller.topology().edges().count(),
                    is_settled: controller.is_settled(),
                };
            }
            events
        });
        Self { is_over, thread: Some(thread), state, questions, host_excess }
    }

    /// Waits until the controller has this state.
    pub fn wait(&self, what: &str, expected: State) {
        until_ok(&format!("{what}: {expected:?}"), || {
            let state = *self.state.lock().expect("no panic");
            if state == expected { Ok(()) } else { Err(state) }
        });
    }

    /// Waits until the controller has read drops of host meters.
    pub fn wait_for_excess(&self) {
        until("meters dropped packets to hosts", || self.host_excess.load(Ordering::Relaxed) > 0);
    }

    /// Suspends the controller for a while, as if its machine had been suspended.
    pub fn suspend(&self, span: Duration) {
        let _state = self.state.lock().expect("no panic");
        // tidy-allow(sleep): the duration of the suspension.
        std::thread::sleep(span);
    }

    pub fn stop(mut self) -> Vec<Event> {
        self.is_over.store(true, Ordering::Relaxed);
        join("the controller ends", self.thread.take().expect("the thread runs"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
