//! The capabilities that opening takes and running does not.
//!
//! | | attaching the filter | a table in it | an AF_XDP socket |
//! |---|---|---|---|
//! | CAP_NET_ADMIN | yes | | |
//! | CAP_BPF | yes | yes, but where the machine lets everyone make maps (`kernel.unprivileged_bpf_disabled` is 0) | |
//! | CAP_NET_RAW | | | yes |
//!
//! Who joins others needs none for attaching. What comes later, flows and addresses that change among it, is told to the filter
//! through descriptors that are there already. Only an interface that was made anew takes all of it again.

use std::io;

use crate::syscall;

/// CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF by their numbers in `linux/capability.h`.
const DROPPED: [u32; 3] = [12, 13, 39];

/// Drops CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF for good: from the effective, permitted and inheritable capabilities of the calling
/// thread, and of threads and children that it starts from now on. Other threads keep theirs: call it in the one that has
/// opened the transports, before it starts others (a participant with threads of its own, among them). Other capabilities stay.
///
/// To be called when all transports are open. What does not work without them any more: an interface that is deleted and made anew
/// is left to the kernel's sockets from then on, with a warning; the highest socket priority is 6.
///
/// An error if they are there still, which no kernel has been seen to do.
pub fn drop_capabilities() -> io::Result<()> {
    let mut sets = syscall::capabilities()?;
    for capability in DROPPED {
        sets.iter_mut().for_each(|set| *set &= !(1 << capability));
    }
    syscall::set_capabilities(sets)?;
    let still = syscall::capabilities()?;
    match DROPPED.iter().all(|capability| still.iter().all(|set| set & 1 << capability == 0)) {
        true => Ok(()),
        false => Err(io::Error::other("the kernel has kept capabilities that were dropped")),
    }
}

/// Names what is lacking, if that is what the error is about.
pub(crate) fn lacking(names: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            io::Error::new(io::ErrorKind::PermissionDenied, format!("{error}: it takes {names}"))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_gone_and_nothing_else() {
        // Of this thread alone.
        let before = syscall::capabilities().expect("they can be read");
        drop_capabilities().expect("fewer are always possible");
        let after = syscall::capabilities().expect("they can be read");
        let mask = DROPPED.iter().fold(0, |mask, capability| mask | 1 << capability);
        assert_eq!(after, before.map(|set| set & !mask));
        drop_capabilities().expect("none of them is no error");
    }

    #[test]
    fn other_threads_keep_theirs() {
        let before = syscall::capabilities().expect("they can be read");
        let of_child = std::thread::spawn(|| {
            drop_capabilities().expect("fewer are always possible");
            std::thread::spawn(|| syscall::capabilities().expect("they can be read")).join().expect("it ends")
        });
        let mask = DROPPED.iter().fold(0, |mask, capability| mask | 1 << capability);
        assert_eq!(of_child.join().expect("it ends"), before.map(|set| set & !mask), "its children have its own");
        assert_eq!(syscall::capabilities().expect("they can be read"), before);
    }
}
