//! The peer programs: which there are, how they are built, where they are.
//!
//! The ones in C and C++ are built by `interop/peers/Makefile` into the user's cache directory on first use; a build that
//! is up to date costs a few milliseconds. The Takt one comes with this crate.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
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
    let tool = paths()?.environment.join("bin").join("cyclonedds");
    if tool.is_file() { Ok(tool) } else { Err(Error::Unavailable(format!("{} is not there", tool.display()))) }
}

/// The Python in which CycloneDDS 11 is installed.
pub fn cyclonedds_python() -> Result<PathBuf> {
    Program::Cyclone11.executable()?;
    let python = paths()?.environment.join("bin").join("python");
    if python.is_file() { Ok(python) } else { Err(Error::Unavailable(format!("{} is not there", python.display()))) }
}

/// Cargo puts programs beside one another, and tests one directory deeper.
fn beside_this_program(name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe().map_err(Error::io("where is this program?"))?;
    let found = this.ancestors().skip(1).take(2).map(|directory| directory.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| Error::Unavailable(format!("{name} is not built: cargo build -p takt-interop --bins")))
}

/// Builds a program once in a process: without a network, an attempt to fetch what it needs takes a minute.
fn make(target: &'static str) -> Result<PathBuf> {
    static MADE: Mutex<BTreeMap<&str, std::result::Result<PathBuf, String>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = made.get(target) {
        return known.clone().map_err(Error::Unavailable);
    }
    let result = match make_now(target) {
        Ok(program) => Ok(program),
        Err(Error::Unavailable(why)) => Err(why),
        Err(error) => return Err(error),
    };
    made.insert(target, result.clone());
    result.map_err(Error::Unavailable)
}

fn make_now(target: &str) -> Result<PathBuf> {
    let out = paths()?.programs;
    std::fs::create_dir_all(&out).map_err(Error::io(format!("create {}", out.display())))?;
    // Several test programs may want the same peer at once.
    let mut make = Command::new("flock");
    make.arg(out.join("lock")).args(["make", "--no-print-directory", "-C"]).arg(SOURCES).arg(target);
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    output_of(&mut make).map_err(|error| Error::Unavailable(format!("peer program {target}: {error}")))?;
    Ok(out.join(format!("peer-{target}")))
}

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");

/// Directories of the Makefile, which names them by the versions of what is in them.
struct Paths {
    programs: PathBuf,
    /// The virtual environment of Python.
    environment: PathBuf,
}

fn paths() -> Result<Paths> {
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "-s", "-C", SOURCES, "paths"]).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let text = output_of(&mut make).map_err(|error| Error::Unavailable(format!("peer programs: {error}")))?;
    match text.lines().collect::<Vec<_>>()[..] {
        [programs, environment] => Ok(Paths { programs: programs.into(), environment: environment.into() }),
        _ => Err(Error::Unavailable(format!("peer programs: not the two paths of the Makefile: {text}"))),
    }
}
