//! The peer programs: which there are, how they are built, where they are.
//!
//! The ones in C and C++ are built by `interop/peers/Makefile` into the user's cache directory on first use; a build that
//! is up to date costs a few milliseconds. The Takt one comes with this crate.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::error::output_of;
use crate::{Error, Result};

/// A DDS product that can be told what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// Takt.
    Takt,
    /// Eclipse Cyclone DDS 0.10 from Debian.
    Cyclone10,
    /// Eclipse Cyclone DDS 11 from PyPI.
    Cyclone11,
    /// eProsima Fast DDS 2.9 from Debian.
    FastDds2,
    /// eProsima Fast DDS 3.2 from PyPI.
    FastDds3,
}

impl Program {
    /// Those of other vendors.
    pub const FOREIGN: [Self; 4] = [Self::Cyclone10, Self::Cyclone11, Self::FastDds2, Self::FastDds3];

    /// Product and version.
    pub fn name(self) -> &'static str {
        match self {
            Self::Takt => "Takt",
            Self::Cyclone10 => "CycloneDDS 0.10",
            Self::Cyclone11 => "CycloneDDS 11",
            Self::FastDds2 => "Fast DDS 2.9",
            Self::FastDds3 => "Fast DDS 3.2",
        }
    }

    /// Builds the program if need be; its path.
    pub fn executable(self) -> Result<PathBuf> {
        match self {
            Self::Takt => beside_this_program("takt-peer"),
            Self::Cyclone10 => make("cyclone10"),
            Self::Cyclone11 => make("cyclone11"),
            Self::FastDds2 => make("fastdds2"),
            Self::FastDds3 => make("fastdds3"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The `takt` command, which tests of the whole workspace build.
pub fn takt() -> Result<PathBuf> {
    beside_this_program("takt").map_err(|_| Error::Unavailable("takt is not built: cargo build -p takt-cli".to_owned()))
}

/// The command line tool that comes with CycloneDDS 11.
pub fn cyclonedds_tool() -> Result<PathBuf> {
    Program::Cyclone11.executable()?;
    let tool = cache_directory()?.join("venv").join("bin").join("cyclonedds");
    if tool.is_file() { Ok(tool) } else { Err(Error::Unavailable(format!("{} is not there", tool.display()))) }
}

/// The Python in which CycloneDDS 11 is installed.
pub fn cyclonedds_python() -> Result<PathBuf> {
    Program::Cyclone11.executable()?;
    let python = cache_directory()?.join("venv").join("bin").join("python");
    if python.is_file() { Ok(python) } else { Err(Error::Unavailable(format!("{} is not there", python.display()))) }
}

/// Cargo puts programs beside one another, and tests one directory deeper.
fn beside_this_program(name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe().map_err(Error::io("where is this program?"))?;
    let found = this.ancestors().skip(1).take(2).map(|directory| directory.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| Error::Unavailable(format!("{name} is not built: cargo build -p takt-interop --bins")))
}

fn make(target: &str) -> Result<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let out = cache_directory()?.join("peers");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    std::fs::create_dir_all(&out).map_err(Error::io(format!("create {}", out.display())))?;
    // Several test programs may want the same peer at once.
    let mut make = Command::new("flock");
    make.arg(out.join("lock")).args(["make", "--no-print-directory", "-C"]).arg(sources).arg(target);
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    output_of(&mut make).map_err(|error| Error::Unavailable(format!("peer program {target}: {error}")))?;
    Ok(out.join(format!("peer-{target}")))
}

/// Where the Makefile puts what it builds.
fn cache_directory() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let cache = cache.ok_or_else(|| Error::Unavailable("neither XDG_CACHE_HOME nor HOME is set".to_owned()))?;
    Ok(cache.join("takt"))
}
