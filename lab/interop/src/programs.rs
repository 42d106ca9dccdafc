//! Build and location of the peer programs.
//!
//! `lab/interop/peers/Makefile` builds the programs in C and C++ into the user's cache directory on
//! first use. A build that is up to date costs a few milliseconds. The Takt program is a binary of
//! this crate.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::error::output_of;
use crate::{Error, Result};

/// A DDS product with a peer program.
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
    /// Programs of other vendors.
    pub const FOREIGN: [Self; 4] = [Self::Cyclone10, Self::Cyclone11, Self::FastDds2, Self::FastDds3];

    /// Returns product and version.
    pub fn name(self) -> &'static str {
        match self {
            Self::Takt => "Takt",
            Self::Cyclone10 => "CycloneDDS 0.10",
            Self::Cyclone11 => "CycloneDDS 11",
            Self::FastDds2 => "Fast DDS 2.9",
            Self::FastDds3 => "Fast DDS 3.2",
        }
    }

    /// Builds the program if necessary and returns its path.
    pub fn executable(self) -> Result<PathBuf> {
        match self {
            Self::Takt => find_sibling_program("takt-peer"),
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

/// Returns the path of the `takt` command, which tests of the whole workspace build.
pub fn takt() -> Result<PathBuf> {
    find_sibling_program("takt")
        .map_err(|_| Error::Unavailable("takt is not built: cargo build -p takt-cli".to_owned()))
}

/// Returns the path of the command-line tool of CycloneDDS 11.
pub fn cyclonedds_tool() -> Result<PathBuf> {
    Program::Cyclone11.executable()?;
    let tool = paths()?.environment.join("bin").join("cyclonedds");
    if tool.is_file() { Ok(tool) } else { Err(Error::Unavailable(format!("{} is not there", tool.display()))) }
}

/// Returns the path of the Python interpreter in whose environment CycloneDDS 11 is installed.
pub fn cyclonedds_python() -> Result<PathBuf> {
    Program::Cyclone11.executable()?;
    let python = paths()?.environment.join("bin").join("python");
    if python.is_file() { Ok(python) } else { Err(Error::Unavailable(format!("{} is not there", python.display()))) }
}

/// Searches the directory of this executable and its parent, since Cargo puts tests one directory
/// below programs.
fn find_sibling_program(name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe().map_err(Error::io("where is this program?"))?;
    let found = this.ancestors().skip(1).take(2).map(|directory| directory.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| Error::Unavailable(format!("{name} is not built: cargo build -p takt-interop --bins")))
}

/// Builds a program once per process. Without a network, each attempt to fetch its dependencies
/// takes a minute.
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
    // Several test programs may build the same peer at the same time.
    let mut make = Command::new("flock");
    make.arg(out.join("lock")).args(["make", "--no-print-directory", "-C"]).arg(SOURCES).arg(target);
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    output_of(&mut make).map_err(|error| Error::Unavailable(format!("peer program {target}: {error}")))?;
    Ok(out.join(format!("peer-{target}")))
}

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");

/// Directories of the Makefile, whose names contain the versions of their content.
struct Paths {
    programs: PathBuf,
    /// Python virtual environment.
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
