//! Sources of included files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::limits::MAX_TEXT_LEN;

/// Source of files.
pub(crate) trait Files {
    /// Returns the path and the text of the file of an `#include`; `None` if its path is in `once`.
    /// `from` is the path of the including file.
    fn include(&mut self, name: &str, from: &str, once: &BTreeSet<String>) -> Result<Option<(String, String)>, String>;
}

/// File system: searches the directory of the including file first, then the given directories in
/// order.
pub(crate) struct FileSystem<'a> {
    pub directories: &'a [PathBuf],
}

/// Source without files.
pub(crate) struct NoFiles;

impl Files for FileSystem<'_> {
    fn include(&mut self, name: &str, from: &str, once: &BTreeSet<String>) -> Result<Option<(String, String)>, String> {
        let parent = Path::new(from).parent().unwrap_or(Path::new(""));
        let places = std::iter::once(parent).chain(self.directories.iter().map(PathBuf::as_path));
        for path in places.map(|directory| directory.join(name)) {
            let shown = path.display().to_string();
            if once.contains(&shown) {
                return Ok(None);
            }
            // Reading a pipe could block forever.
            if path.metadata().is_ok_and(|data| !data.is_file()) {
                return Err(format!("cannot read {shown}: it is not a regular file"));
            }
            match read(&path) {
                Ok(text) => return Ok(Some((shown, text))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {shown}: {error}")),
            }
        }
        let count = self.directories.len();
        Err(format!(
            "include file {name} not found in {} or the {count} include directories (-I)",
            directory_name(parent)
        ))
    }
}

fn directory_name(directory: &Path) -> String {
    if directory.as_os_str().is_empty() { "the current directory".to_owned() } else { directory.display().to_string() }
}

impl Files for NoFiles {
    fn include(&mut self, name: &str, _: &str, _: &BTreeSet<String>) -> Result<Option<(String, String)>, String> {
        Err(format!("cannot include {name}: this IDL text is not from a file"))
    }
}

/// Reads the text of a file. Octets that are not UTF-8 are replaced, since comments may have any
/// encoding.
///
/// # Errors
/// Fails if the file cannot be read, or is longer than [`MAX_TEXT_LEN`].
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_TEXT_LEN as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_TEXT_LEN {
        return Err(io::Error::other(format!("it is longer than {MAX_TEXT_LEN} octets")));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_with_pragma_once_is_not_read_again() {
        let mut files = FileSystem { directories: &[] };
        let once = BTreeSet::from(["/nowhere/a.idl".to_owned()]);
        assert_eq!(files.include("a.idl", "/nowhere/main.idl", &once), Ok(None));
        files.include("b.idl", "/nowhere/main.idl", &once).expect_err("no such file");
    }

    #[test]
    fn device_or_pipe_is_not_included() {
        let mut files = FileSystem { directories: &[] };
        let error = files.include("null", "/dev/main.idl", &BTreeSet::new()).expect_err("it is a device");
        assert_eq!(error, "cannot read /dev/null: it is not a regular file");
    }
}
