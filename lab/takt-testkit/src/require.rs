//! Preconditions of tests. Each check queries the kernel or the file system without any code of
//! Takt; the error names the missing precondition.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

/// Checks that the effective user is root.
pub fn root() -> Result<(), String> {
    // SAFETY: no pointers; the call cannot fail.
    match unsafe { libc::geteuid() } {
        0 => Ok(()),
        user => Err(format!("not root (user {user})")),
    }
}

/// Checks that this process may create network namespaces, and that iproute2 is installed. The
/// kernel is queried once per process, since it removes namespaces with a delay.
pub fn network_namespaces() -> Result<(), String> {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    let query = || {
        unshared(libc::CLONE_NEWNET).map_err(|why| format!("cannot create a network namespace: {why}"))?;
        program("ip")
    };
    ANSWER.get_or_init(query).clone()
}

/// Checks that this process may create mount namespaces, and mount in them.
pub fn mount_namespaces() -> Result<(), String> {
    unshared(libc::CLONE_NEWNS).map_err(|why| format!("cannot create a mount namespace: {why}"))?;
    program("unshare").and_then(|()| program("mount"))
}

/// Checks that this process may create time namespaces.
pub fn time_namespaces() -> Result<(), String> {
    unshared(libc::CLONE_NEWTIME).map_err(|why| format!("cannot create a time namespace: {why}"))
}

/// Moves a new thread to new namespaces of this kind, and ends it.
fn unshared(kind: i32) -> io::Result<()> {
    let attempt = std::thread::spawn(move || {
        // SAFETY: no pointers; affects this thread only.
        match unsafe { libc::unshare(kind) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    });
    attempt.join().expect("the thread does not panic")
}

/// Checks that the kernel supports AF_XDP and this process may open such a socket.
pub fn af_xdp() -> Result<(), String> {
    socket(libc::AF_XDP, libc::SOCK_RAW, 0).map(drop).map_err(|why| format!("cannot open an AF_XDP socket: {why}"))
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let descriptor = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Checks that the kernel release is at least this one.
pub fn kernel(major: u32, minor: u32) -> Result<(), String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_err(|why| format!("the kernel's release cannot be read: {why}"))?;
    let release = release.trim();
    if is_at_least(release, major, minor) {
        Ok(())
    } else {
        Err(format!("Linux {release} is older than {major}.{minor}"))
    }
}

fn is_at_least(release: &str, major: u32, minor: u32) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

/// Checks for root, network namespaces, and Open vSwitch.
pub fn open_vswitch() -> Result<(), String> {
    root()?;
    network_namespaces()?;
    ["ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovsdb-tool"].into_iter().try_for_each(program)
}

/// Checks that a program of this name is in `PATH`.
pub fn program(name: &str) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    if is_there { Ok(()) } else { Err(format!("{name} is not installed")) }
}

/// Checks that a file or device of this path exists.
pub fn file(path: &str) -> Result<(), String> {
    if Path::new(path).exists() { Ok(()) } else { Err(format!("{path} does not exist")) }
}

#[cfg(test)]
mod tests {
    use super::{is_at_least, program};

    #[test]
    fn kernel_releases_compare_numerically() {
        for (release, major, minor, expected) in [
            ("6.18.44-fc-v595", 6, 6, true),
            ("6.6.0", 6, 6, true),
            ("6.5.13", 6, 6, false),
            ("5.19.0-1-amd64", 6, 0, false),
            ("10.0", 6, 6, true),
            ("6", 6, 1, false),
            ("", 2, 6, false),
        ] {
            assert_eq!(is_at_least(release, major, minor), expected, "{release} >= {major}.{minor}");
        }
    }

    #[test]
    fn error_names_the_missing_program() {
        assert_eq!(program("sh"), Ok(()));
        assert_eq!(program("takt-no-such-program"), Err("takt-no-such-program is not installed".to_owned()));
    }
}
