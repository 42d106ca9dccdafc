//! Network namespaces of interface settings: the same name denotes another interface in each
//! namespace.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Directory in which ip-netns(8) keeps named namespaces.
const NAMED: &str = "/run/netns";

/// Returns the inode number of this thread's network namespace. `None` without `/proc`.
pub(crate) fn own() -> Option<u64> {
    number(Path::new("/proc/thread-self/ns/net"))
}

/// Reports whether the namespace with this number still exists: it has a name or a process.
pub(crate) fn is_there(wanted: u64) -> bool {
    let entries = |directory: &str| fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries(NAMED).any(|entry| number(&entry.path()) == Some(wanted));
    named || entries("/proc").any(|entry| number(&entry.path().join("ns/net")) == Some(wanted))
}

fn number(file: &Path) -> Option<u64> {
    fs::metadata(file).ok().map(|file| file.ino()) // tidy-allow(dropped-cause): no process, or not ours to see.
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_namespace_exists_and_an_unknown_number_does_not() {
        let own = own().expect("/proc is mounted");
        assert!(is_there(own));
        assert!(!is_there(1), "inode 1 is not a namespace");
    }
}
