//! DDS domains for tests on the host's loopback: each test has exclusive use of its domain while it
//! runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Domain ids whose well-known ports (RTPS 2.5 §9.6.2) are outside 32768 to 60999, the range of
/// ephemeral ports. The ids between are for tests that name theirs on a command line, and those
/// from 228 on for programs with one such test.
const DOMAINS: [std::ops::Range<u32>; 2] = [1..100, 216..228];

/// Maximum wait for a domain.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a domain that no other test of this or another process uses: concurrent tests would
/// otherwise discover each other on loopback. It is reserved until the calling thread ends.
///
/// # Panics
///
/// Other tests of this network namespace occupy all domains for 60 s.
pub fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let all: Vec<u32> = DOMAINS.into_iter().flatten().collect();
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        let at = std::process::id().wrapping_mul(29).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let domain = all[at as usize % all.len()];
        if !has(domain) && reserve(domain) {
            return domain;
        }
    }
    panic!("other tests use all domains");
}

/// Waits until no other test uses this domain, and reserves it until the calling thread ends. The
/// thread may claim it again.
///
/// # Panics
///
/// Another test of this network namespace occupies it for 60 s.
pub fn claim(domain: u32) {
    let deadline = Instant::now() + TIMEOUT;
    while !has(domain) && !reserve(domain) {
        assert!(Instant::now() < deadline, "another test uses domain {domain}");
        std::thread::yield_now();
    }
}

thread_local! {
    /// Bound socket names, each of which reserves a domain in this network namespace, at most until
    /// the process ends.
    static RESERVED: RefCell<BTreeMap<u32, UnixListener>> = const { RefCell::new(BTreeMap::new()) };
}

/// Reports whether this thread has reserved the domain.
fn has(domain: u32) -> bool {
    RESERVED.with_borrow(|reserved| reserved.contains_key(&domain))
}

/// Reserves the domain for this thread; returns `false` if another one has it.
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

    /// Reports whether a new thread can reserve the domain.
    fn is_free(domain: u32) -> bool {
        std::thread::spawn(move || reserve(domain)).join().expect("no panic")
    }

    #[test]
    fn domain_is_reserved_until_its_thread_ends() {
        let (sender, receiver) = mpsc::channel();
        let (release, wait) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            sender.send([domain(), domain()]).expect("the test waits");
            wait.recv().expect_err("nothing is sent");
        });
        let [one, other] = receive("two domains are free", &receiver);
        assert_ne!(one, other);
        assert!([one, other].iter().all(|domain| DOMAINS.iter().any(|range| range.contains(domain))), "{one} {other}");
        assert!(!is_free(one) && !is_free(other));
        drop(release);
        join("the domains are released", thread);
        // Claiming waits while a process started by another test holds the inherited socket until
        // it executes its program.
        claim(one);
        claim(one);
        assert!(!is_free(one));
    }
}
