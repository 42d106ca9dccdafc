//! Files of keystores: bounded reads, and writes that replace a file atomically.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use takt_bench::{Error, Result};

use super::refused;

/// Maximum length of a file, in octets. The security library has stricter limits for each kind.
const FILE_LEN_MAX: u64 = 1 << 20;

/// Users that may read a file.
#[derive(Clone, Copy)]
pub enum Readers {
    /// All users.
    All,
    /// The owner of the file.
    Owner,
}

/// Returns the error of a failed system call on a path.
pub fn os_error(path: &Path, source: std::io::Error) -> Error {
    Error::os(path.display().to_string(), source)
}

/// Reads a file.
///
/// # Errors
/// The file cannot be read, or is too long.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_LEN_MAX + 1).read_to_end(&mut content));
    let len = read.map_err(|source| os_error(path, source))?;
    if len as u64 > FILE_LEN_MAX {
        return Err(refused(path, format_args!("the file exceeds {FILE_LEN_MAX} octets")));
    }
    Ok(content)
}

/// Reads a text file.
///
/// # Errors
/// Same as [`read`], or the file is not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|error| refused(path, error))
}

/// Reads a file that may be missing.
///
/// # Errors
/// The file exists and cannot be read.
pub fn read_optional(path: &Path) -> Result<Option<Vec<u8>>> {
    if path.exists() { read(path).map(Some) } else { Ok(None) }
}

/// Writes a temporary file in the same directory and renames it. A concurrent reader sees the old
/// content or the new one.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, content: &[u8], readers: Readers) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mode = match readers {
        Readers::All => 0o644,
        Readers::Owner => 0o600,
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary);
    let written = file.and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()));
    written.and_then(|()| fs::rename(&temporary, path)).map_err(|source| {
        drop(fs::remove_file(&temporary));
        os_error(path, source)
    })
}

/// Creates a directory and its parents.
///
/// # Errors
/// A directory cannot be created.
pub fn make_directory(path: &Path, readers: Readers) -> Result<()> {
    let mode = match readers {
        Readers::All => 0o755,
        Readers::Owner => 0o700,
    };
    DirBuilder::new().recursive(true).mode(mode).create(path).map_err(|source| os_error(path, source))
}

/// Reports whether users other than the owner may read or write a file.
///
/// # Errors
/// The file does not exist.
pub fn is_open_to_others(path: &Path) -> Result<bool> {
    let metadata = fs::metadata(path).map_err(|source| os_error(path, source))?;
    Ok(metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_testkit::directory::Directory;

    #[test]
    fn written_file_replaces_the_old_one_with_its_mode() {
        let directory = Directory::with("security-files", &[("key.pem", "old")]);
        let path = directory.file("key.pem");
        write(&path, b"new", Readers::Owner).expect("the directory is writable");
        assert_eq!(directory.read("key.pem"), "new");
        assert!(!is_open_to_others(&path).expect("the file exists"));
        write(&path, b"open", Readers::All).expect("the directory is writable");
        assert!(is_open_to_others(&path).expect("the file exists"));
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1, "no temporary file remains");
    }

    #[test]
    fn file_that_is_too_long_is_refused() {
        let directory = Directory::with("security-files", &[("long", &"x".repeat((1 << 20) + 1))]);
        let error = read(&directory.file("long")).expect_err("too long").to_string();
        assert!(error.ends_with("long: the file exceeds 1048576 octets"), "{error}");
        assert_eq!(read_optional(&directory.file("none")).expect("the file may be missing"), None);
    }
}
