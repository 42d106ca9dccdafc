//! Named network namespaces, compatible with `ip netns`: files below `/run/netns` where the
//! namespace is mounted.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use takt_netlink::{Netlink, interface_index};

/// Directory in which iproute2 keeps the names.
pub const DIRECTORY: &str = "/run/netns";
/// Path of the calling thread's namespace.
const OWN: &str = "/proc/thread-self/ns/net";

/// Network namespace. It exists until its name is removed, and then as long as a process, a socket
/// or a value of this type uses it.
#[derive(Clone, Debug)]
pub struct Namespace {
    file: Arc<File>,
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Makes the directory a shared mount point, as `ip netns add` does if it is none, under the same
/// lock (flock(2)). Otherwise the first `ip netns add` of the machine would mount the directory
/// over itself, and names mounted before could not be removed any more.
fn share_directory() -> io::Result<()> {
    fs::create_dir_all(DIRECTORY)?;
    let directory = File::open(DIRECTORY)?;
    directory.lock()?;
    let share = || mount(None::<&str>, DIRECTORY, None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
    match share() {
        // EINVAL: the directory is no mount point.
        Err(nix::Error::EINVAL) => {
            mount(Some(DIRECTORY), DIRECTORY, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)?;
            Ok(share()?)
        }
        shared => Ok(shared?),
    }
}

/// Runs `f` on a separate thread, which may move to another namespace.
fn on_own_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(f).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

impl Namespace {
    /// Creates a namespace, with its loopback interface up.
    ///
    /// # Errors
    /// A namespace of that name exists, or the caller is not root.
    pub fn create(name: &str) -> io::Result<Self> {
        let path = path(name);
        share_directory()?;
        File::create_new(&path)?;
        on_own_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            mount(Some(OWN), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
            Netlink::route()?.set_up(interface_index("lo")?, true)
        })?;
        Self::open(name)
    }

    /// Opens a namespace.
    ///
    /// # Errors
    /// No namespace of that name exists.
    pub fn open(name: &str) -> io::Result<Self> {
        Ok(Self { file: Arc::new(File::open(path(name))?) })
    }

    /// Removes the name, and with it the namespace if nothing uses it. Does nothing if the name
    /// does not exist.
    pub(crate) fn remove(name: &str) -> io::Result<()> {
        let path = path(name);
        match umount2(&path, MntFlags::MNT_DETACH) {
            // EINVAL: the process was killed between creating the file and mounting.
            Ok(()) | Err(nix::Error::EINVAL) => {}
            Err(nix::Error::ENOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Opens a namespace with the inode that identifies it, also in `/proc/PID/ns/net`; `None` if
    /// none is mounted. The kernel may reuse the inode once this namespace is gone, so the value
    /// keeps it alive.
    pub(crate) fn with_inode(name: &str) -> Option<(Self, u64)> {
        let namespace = Self::open(name).ok()?; // tidy-allow(dropped-cause): documented
        let inode = |file: fs::Metadata| (file.dev(), file.ino());
        let (own, found) = (fs::metadata(OWN).map(inode).ok()?, namespace.file.metadata().map(inode).ok()?); // tidy-allow(dropped-cause): documented
        (own.0 == found.0).then_some((namespace, found.1))
    }

    /// Runs `f` in the namespace, on a separate thread. Sockets that it opens, and processes that
    /// it starts, stay in the namespace.
    ///
    /// # Errors
    /// The caller is not root.
    pub fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> io::Result<R> {
        on_own_thread(|| {
            setns(&*self.file, CloneFlags::CLONE_NEWNET)?;
            Ok(f())
        })
    }

    /// Like [`run`](Self::run), with the `/sys` of the namespace: its interfaces are in
    /// `/sys/class/net`.
    ///
    /// # Errors
    /// The caller is not root.
    pub fn run_with_sys<R: Send>(&self, f: impl FnOnce() -> R + Send) -> io::Result<R> {
        on_own_thread(|| {
            self.enter_with_sys()?;
            Ok(f())
        })
    }

    /// Replaces this process by a program in the namespace. Its `/sys` shows the interfaces of the
    /// namespace.
    ///
    /// # Errors
    /// Returns only on failure: the caller is not root, or the program cannot be started.
    pub fn exec(&self, command: &mut Command) -> io::Error {
        match self.enter_with_sys() {
            Ok(()) => command.exec(),
            Err(error) => error,
        }
    }

    /// Moves the calling thread to the namespace, and to a mount namespace of its own whose `/sys`
    /// is that of the network namespace. The names of namespaces are unmounted there, since these
    /// mounts would keep removed namespaces alive.
    fn enter_with_sys(&self) -> io::Result<()> {
        setns(&*self.file, CloneFlags::CLONE_NEWNET)?;
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)?;
        for entry in fs::read_dir(DIRECTORY)?.flatten() {
            // EINVAL: nothing is mounted there.
            umount2(&entry.path(), MntFlags::MNT_DETACH).or_else(|error| match error {
                nix::Error::EINVAL | nix::Error::ENOENT => Ok(()),
                error => Err(error),
            })?;
        }
        mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_testkit::{not_run, require};

    #[test]
    fn namespace_is_removed_after_iproute2_created_its_first_one() {
        for missing in [require::network_namespaces(), require::mount_namespaces(), require::program("ip")] {
            if let Err(why) = missing {
                return not_run(why);
            }
        }
        // Simulates a machine without named namespaces: this thread and its children have a /run of
        // their own.
        unshare(CloneFlags::CLONE_NEWNS).expect("root");
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).expect("root");
        mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), None::<&str>).expect("root");
        Namespace::create("one").expect("root");
        let added = Command::new("ip").args(["netns", "add", "two"]).status().expect("it is installed");
        assert!(added.success(), "{added}");
        Namespace::remove("one").expect("its mount is found");
        Namespace::remove("two").expect("its mount is found");
        let left: Vec<_> = fs::read_dir(DIRECTORY).expect("it exists").flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
