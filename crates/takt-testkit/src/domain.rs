//! DDS domains of the host's loopback: each test has one of its own while it runs, whatever else runs at the same time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Well-known ports (RTPS 2.5 §9.6.2) outside 32768 to 60999, from which the kernel takes ports for sockets that name none. The
/// domains between are left to tests that name theirs on a command line, and those from 228 on to programs with one such test.
const DOMAINS: [std::ops::Range<u32>; 2] = [1..100, 216..228];

/// No test waits longer than this for a domain.
const PATIENCE: Duration = Duration::from_secs(60);

/// A domain that no other test uses, of this process or another: tests that run at the same time would discover each other on
/// loopback. It is the test's own until its thread ends.
///
/// # Panics
///
/// If other tests of this network namespace have all domains for 60 s.
pub fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let all: Vec<u32> = DOMAINS.into_iter().flatten().collect();
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let at = std::process::id().wrapping_mul(29).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let domain = all[at as usize % all.len()];
        if !has(domain) && reserve(domain) {
            return domain;
        }
    }
    panic!("other tests have all domains");
}

/// Waits until no other test has this domain, and reserves it until the calling thread ends. The thread may claim it again.
///
/// # Panics
///
/// If another test of this network namespace has it for 60 s.
pub fn claim(domain: u32) {
    let deadline = Instant::now() + PATIENCE;
    while !has(domain) && !reserve(domain) {
        assert!(Instant::now() < deadline, "another test has domain {domain}");
        std::thread::yield_now();
    }
}

thread_local! {
    /// A bound name reserves a domain in this network namespace, for no longer than the process lives.
    static RESERVED: RefCell<BTreeMap<u32, UnixListener>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether this thread has reserved the domain.
fn has(domain: u32) -> bool {
    RESERVED.with_borrow(|reserved| reserved.contains_key(&domain))
}

/// Reserves the domain for this thread; `false` if another one has it.
fn reserve(domain: u32) -> bool {
    let name = SocketAddr::from_abstract_name(format!("takt-test-domain-{domain}")).expect("a short name");
    let Ok(socket) = UnixListener::bind_addr(&name) else { return false };
    RESERVED.with_borrow_mut(|reserved| reserved.insert(domain, socket));
    true
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::{DOMAINS, claim, domain, reserve};
    use crate::waiting::{join, receive};

    /// Whether a thread of its own can reserve the domain now.
    fn is_free(domain: u32) -> bool {
        std::thread::spawn(move || reserve(domain)).join().expect("no panic")
    }

    #[test]
    fn domain_is_of_one_thread_until_it_ends() {
        let (tell, told) = mpsc::channel();
        let (let_go, wait) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send([domain(), domain()]).expect("the test waits");
            wait.recv().expect_err("nothing is sent");
        });
        let [one, other] = receive("two domains are free", &told);
        assert_ne!(one, other);
        assert!([one, other].iter().all(|domain| DOMAINS.iter().any(|range| range.contains(domain))), "{one} {other}");
        assert!(!is_free(one) && !is_free(other));
        drop(let_go);
        join("the domains are let go", thread);
        // It waits where a process that another test starts has the socket until it runs its program.
        claim(one);
        claim(one);
        assert!(!is_free(one));
    }
}
