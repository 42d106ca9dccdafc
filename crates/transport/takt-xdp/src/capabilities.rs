//! Capabilities that opening a transport needs and running does not.
//!
//! | | attaching the filter | a table of ports | an AF_XDP socket |
//! |---|---|---|---|
//! | CAP_NET_ADMIN | yes | | |
//! | CAP_BPF | yes | yes, unless the machine allows unprivileged maps (`kernel.unprivileged_bpf_disabled` is 0) | |
//! | CAP_NET_RAW | | | yes |
//!
//! Participants that join an existing filter need none for attaching. Later changes, including
//! flows and addresses, are written to the filter through open descriptors. Only an interface that
//! was deleted and created again needs all of them again.

use std::io;

use crate::syscall;

/// CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF by their numbers in `linux/capability.h`.
const DROPPED: [u32; 3] = [12, 13, 39];

/// Drops CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF permanently: from the effective, permitted and
/// inheritable capabilities of the calling thread, and of threads and children that it starts
/// later. Other threads keep theirs, so call it in the thread that has opened the transports,
/// before it starts others (such as those of a participant). Other capabilities are unchanged.
///
/// Call it when all transports are open. Afterwards, an interface that is deleted and created again
/// is served by the kernel's sockets alone, with a warning; the highest socket priority is 6.
///
/// # Errors
/// The capabilities are still present afterwards, which no kernel is known to cause.
pub fn drop_capabilities() -> io::Result<()> {
    let mut sets = syscall::capabilities()?;
    for capability in DROPPED {
        sets.iter_mut().for_each(|set| *set &= !(1 << capability));
    }
    syscall::set_capabilities(sets)?;
    let still = syscall::capabilities()?;
    match DROPPED.iter().all(|capability| still.iter().all(|set| set & 1 << capability == 0)) {
        true => Ok(()),
        false => Err(io::Error::other("the kernel kept capabilities that were dropped")),
    }
}

/// Names the missing capabilities, if the error is about permission.
pub(crate) fn name_missing(names: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            io::Error::new(io::ErrorKind::PermissionDenied, format!("{error}: {names} required"))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_capabilities_are_gone_and_others_stay() {
        // Concerns this thread alone.
        let before = syscall::capabilities().expect("the capabilities are readable");
        drop_capabilities().expect("dropping capabilities is always permitted");
        let after = syscall::capabilities().expect("the capabilities are readable");
        let mask = DROPPED.iter().fold(0, |mask, capability| mask | 1 << capability);
        assert_eq!(after, before.map(|set| set & !mask));
        drop_capabilities().expect("none of them is no error");
    }

    #[test]
    fn other_threads_keep_their_capabilities() {
        let before = syscall::capabilities().expect("the capabilities are readable");
        let of_child = std::thread::spawn(|| {
            drop_capabilities().expect("dropping capabilities is always permitted");
            std::thread::spawn(|| syscall::capabilities().expect("readable")).join().expect("the thread ends")
        });
        let mask = DROPPED.iter().fold(0, |mask, capability| mask | 1 << capability);
        assert_eq!(of_child.join().expect("ended"), before.map(|set| set & !mask), "its children have its own");
        assert_eq!(syscall::capabilities().expect("the capabilities are readable"), before);
    }
}
