//! Pool of test networks, each used by one test at a time.
//!
//! The kernel needs longer to make and remove a host than most tests run. A test that passed leaves
//! its network, without any transport, to the next one; the network of a failed test is not reused.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::network::{Host, Network, is_possible};

/// Network with its hosts, which know each other's hardware addresses.
struct NetworkState {
    mtu: usize,
    network: Network,
    hosts: Mutex<Vec<Host>>,
}

/// Networks that no test uses.
static IDLE: Mutex<Vec<Arc<NetworkState>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Network of one test. Its transports must be dropped before it.
pub struct TestNetwork(Arc<NetworkState>);

impl TestNetwork {
    /// Takes an idle network of this MTU, or makes one; `None` if the test cannot run, which is
    /// reported.
    pub fn of_mtu(mtu: usize) -> Option<Self> {
        is_possible(mtu)?;
        let mut idle = lock(&IDLE);
        let found = idle.iter().position(|state| state.mtu == mtu).map(|at| idle.swap_remove(at));
        drop(idle);
        let new = || Some(Arc::new(NetworkState { mtu, network: Network::of_mtu(mtu)?, hosts: Mutex::default() }));
        found.or_else(new).map(Self)
    }

    /// Returns the `n`-th host, from 0 to 11.
    pub fn host(&self, n: usize) -> Host {
        let mut hosts = lock(&self.0.hosts);
        while hosts.len() <= n {
            hosts.push(self.0.network.host(true));
        }
        hosts[n].clone()
    }
}

impl Drop for TestNetwork {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            lock(&IDLE).push(Arc::clone(&self.0));
        }
    }
}
