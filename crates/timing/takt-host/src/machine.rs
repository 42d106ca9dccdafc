//! Machine on which settings are read and written.

use std::fs;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::ethtool::{driver, indirection, numbers, rules};
use crate::forbidden::why_forbidden;
use crate::setting::{ROOTS, Setting};
use crate::{route, tc};

/// This machine, or a directory tree that represents one.
#[derive(Debug, Clone)]
pub struct Machine {
    root: PathBuf,
}

impl Default for Machine {
    fn default() -> Self {
        Self { root: "/".into() }
    }
}

impl Machine {
    /// Returns a machine whose files are below `root`. Its network interfaces are those of this
    /// machine.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the path of a file of the machine.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Reads the value of a setting, without surrounding white space.
    ///
    /// # Errors
    /// `NotFound` if the kernel or driver does not have the setting, `Unsupported` if the driver
    /// says so, and other errors of the kernel.
    pub fn read(&self, setting: &Setting) -> io::Result<String> {
        let text = match setting {
            Setting::File(path) => {
                let mut text = String::new();
                self.open(path, fs::File::options().read(true))?.read_to_string(&mut text)?;
                text
            }
            Setting::Directory(path) => {
                let there = match self.open(path, fs::File::options().read(true)) {
                    Ok(_) => "there",
                    Err(error) if error.kind() == io::ErrorKind::NotFound => "none",
                    Err(error) => return Err(error),
                };
                there.to_owned()
            }
            Setting::Ethtool(interface, parameter) => numbers::read(&driver, interface, *parameter)?.to_string(),
            Setting::Rule(interface, place) => rules::read(&driver, interface, *place)?,
            Setting::Indirection(interface) => indirection::read(&driver, interface)?,
            Setting::Qdisc(interface) => tc::read(interface)?,
            Setting::Clsact(interface) => tc::read_clsact(interface)?,
            Setting::Steering(interface) => tc::steering::read(interface)?,
            Setting::Route(interface, groups) => route::read(interface, *groups)?,
        };
        Ok(setting.normal(&text))
    }

    /// Writes a setting and reads it back.
    ///
    /// # Errors
    /// Those of [`read`](Self::read), and a value that was accepted but did not take effect.
    pub fn write(&self, setting: &Setting, value: &str) -> io::Result<()> {
        match setting {
            Setting::File(path) if setting.is_list_of_controllers() => {
                for change in controller_changes(&self.read(setting)?, value) {
                    self.write_file(path, &change)?;
                }
            }
            Setting::File(path) => self.write_file(path, value)?,
            Setting::Directory(path) => {
                let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
                let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                    return Err(invalid("the path of a directory must end with a name"));
                };
                let parent = self.open(parent, fs::File::options().read(true))?;
                // The open directory is used, since its path may lead elsewhere by now.
                let within = descriptor_path(&parent).join(name);
                match value {
                    "there" => fs::create_dir(within)?,
                    "none" => fs::remove_dir(within)?,
                    _ => return Err(invalid("the value of a directory must be there or none")),
                }
            }
            Setting::Ethtool(interface, parameter) => {
                let wrong = |e| io::Error::new(io::ErrorKind::InvalidInput, e);
                numbers::write(&driver, interface, *parameter, value.parse().map_err(wrong)?)?;
            }
            Setting::Rule(interface, place) => rules::write(&driver, interface, *place, value)?,
            Setting::Indirection(interface) => indirection::write(&driver, interface, value)?,
            Setting::Qdisc(interface) => tc::write(interface, value)?,
            Setting::Clsact(interface) => tc::write_clsact(interface, value)?,
            Setting::Steering(interface) => tc::steering::write(interface, value)?,
            Setting::Route(interface, groups) => route::write(interface, *groups, value)?,
        }
        let found = self.read(setting)?;
        if found != setting.normal(value) {
            return Err(io::Error::other(format!("the value after writing is {found:?}")));
        }
        Ok(())
    }

    /// Returns the other settings with a nonempty value that a change of this setting resets.
    ///
    /// A change of traffic classes resets the assignment of transmit queues to processors and
    /// receive queues. A change of the number of queues also resets the settings of removed queues,
    /// and their classes.
    pub(crate) fn reset_by(&self, setting: &Setting, values: [&str; 2]) -> Vec<(Setting, String)> {
        let (interface, tree) = match setting {
            Setting::Qdisc(interface) if values.iter().any(|tree| tc::has_classes(tree)) => (interface, None),
            Setting::Ethtool(interface, parameter) if parameter.is_number_of_queues() => {
                (interface, Some(Setting::Qdisc(interface.clone())))
            }
            _ => return Vec::new(),
        };
        let base = format!("/sys/class/net/{interface}/queues");
        let files = self.names(&base).into_iter().flat_map(|queue| {
            let of_queue: &[&str] = match (&tree, queue.starts_with("tx-")) {
                (_, true) => &["xps_cpus", "xps_rxqs"],
                (Some(_), false) => &["rps_cpus"],
                (None, false) => &[],
            };
            of_queue.iter().map(|file| Setting::file(format!("{base}/{queue}/{file}"))).collect::<Vec<_>>()
        });
        let is_something = |setting: &Setting, value: &str| match setting {
            Setting::Qdisc(_) => tc::has_classes(value),
            _ => value != "0",
        };
        let value = |setting: Setting| {
            let value = self.read(&setting).ok().filter(|value| is_something(&setting, value))?; // tidy-allow(dropped-cause): what cannot be read is not reset
            Some((setting, value))
        };
        files.chain(tree.clone()).filter_map(value).collect()
    }

    /// Opens a file or directory below one of [`ROOTS`]. Symbolic links are followed as long as
    /// they do not leave it.
    ///
    /// # Errors
    /// `PermissionDenied` for a path outside, and other errors of the kernel.
    fn open(&self, path: &Path, options: &mut fs::OpenOptions) -> io::Result<fs::File> {
        let outside = |target: &Path| {
            let what = format!("the path leads to {}, outside {}", target.display(), ROOTS.join(", "));
            io::Error::new(io::ErrorKind::PermissionDenied, what)
        };
        let root = ROOTS.iter().find(|root| path.starts_with(root)).ok_or_else(|| outside(path))?;
        let root = fs::canonicalize(self.path(root))?;
        let target = fs::canonicalize(self.path(path))?;
        if !target.starts_with(&root) {
            return Err(outside(&target));
        }
        let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&target)?;
        // Links may have changed meanwhile, so that the opened file counts.
        let opened = fs::read_link(descriptor_path(&file))?;
        if opened.starts_with(&root) { Ok(file) } else { Err(outside(&opened)) }
    }

    fn write_file(&self, path: &Path, value: &str) -> io::Result<()> {
        // The file belongs to the kernel and is neither truncated nor created. An empty value would
        // cause no write call.
        let mut file = self.open(path, fs::File::options().write(true))?;
        let opened = fs::read_link(descriptor_path(&file))?;
        let root = fs::canonicalize(&self.root)?;
        let opened = Path::new("/").join(opened.strip_prefix(root).unwrap_or(&opened));
        if let Some(why) = [path, &opened].into_iter().find_map(why_forbidden) {
            let what = format!("a plan may not set {}: {why}", opened.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        io::Write::write_all(&mut file, if value.is_empty() { "\n" } else { value }.as_bytes())?;
        if self.root != Path::new("/") {
            file.set_len(value.len() as u64)?;
        }
        Ok(())
    }

    /// Reports whether the kernel allows changes, according to the file mode. An interrupt that the
    /// driver placed itself is read-only.
    pub(crate) fn is_settable(&self, setting: &Setting) -> bool {
        match setting {
            Setting::File(path) => {
                fs::metadata(self.path(path)).is_ok_and(|file| file.permissions().mode() & 0o222 != 0)
            }
            _ => true,
        }
    }

    /// Returns the names in a directory, sorted by their trailing numbers. Empty if the directory
    /// does not exist.
    pub(crate) fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_key(|name| {
            let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
            (head.to_owned(), name[head.len()..].parse::<u64>().unwrap_or(0), name.clone())
        });
        names
    }
}

/// Returns the path in `/proc` of an open file.
fn descriptor_path(file: &fs::File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Returns the writes that turn one controller list into another.
fn controller_changes(now: &str, wanted: &str) -> Vec<String> {
    let [now, wanted] = [now, wanted].map(|list| list.split_whitespace().collect::<Vec<_>>());
    let added = wanted.iter().filter(|one| !now.contains(one)).map(|one| format!("+{one}"));
    let removed = now.iter().filter(|one| !wanted.contains(one)).map(|one| format!("-{one}"));
    added.chain(removed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_added_and_removed_one_by_one() {
        assert_eq!(controller_changes("cpu memory", "cpu cpuset"), ["+cpuset", "-memory"]);
        assert_eq!(controller_changes("cpu", "cpu"), [""; 0]);
    }
}
