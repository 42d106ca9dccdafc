//! Which network namespace settings of interfaces belong to: one name means another interface in each.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where ip-netns(8) keeps namespaces that have a name.
const NAMED: &str = "/run/netns";

/// The number of this thread's; `None` without `/proc`.
pub(crate) fn own() -> Option<u64> {
    number(Path::new("/proc/thread-self/ns/net"))
}

/// Whether there is still one of that number: with a name, or with a process in it.
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
    fn the_own_one_is_there_and_no_other_number() {
        let own = own().expect("there is /proc");
        assert!(is_there(own));
        assert!(!is_there(1), "the first inode is none of a namespace");
    }
}
