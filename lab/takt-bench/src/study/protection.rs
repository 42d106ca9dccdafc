//! DDS Security files for the agents of a job, given by the parameter `protection`.

use super::parameter::Values;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// Name of the parameter.
pub(super) const PROTECTION: &str = "protection";
/// Value for no security.
const NONE: &str = "none";

/// Enclave directories of both ends; dropping the value removes them.
#[derive(Debug)]
pub(super) struct Enclaves {
    directory: PathBuf,
}

impl Enclaves {
    /// Creates the enclaves that a cell requires; `None` without protection.
    ///
    /// # Errors
    /// This build has no security, or files cannot be written.
    pub fn of(values: &Values) -> Result<Option<Self>> {
        let protection = values.get(PROTECTION).map(ToString::to_string).filter(|protection| protection != NONE);
        let Some(protection) = protection else { return Ok(None) };
        let enclaves = Self { directory: std::env::temp_dir().join(format!("takt-bench-{}", std::process::id())) };
        make::fill(&protection, &[enclaves.of_side(0), enclaves.of_side(1)])?;
        Ok(Some(enclaves))
    }

    fn of_side(&self, side: usize) -> PathBuf {
        self.directory.join(side.to_string())
    }

    /// Returns the key of the contract for agents at an end.
    pub fn argument(&self, side: usize) -> String {
        format!("security={}", self.of_side(side).display())
    }
}

impl Drop for Enclaves {
    fn drop(&mut self) {
        if let Err(why) = std::fs::remove_dir_all(&self.directory) {
            eprintln!("{}: {why}", self.directory.display());
        }
    }
}

#[cfg(not(feature = "security"))]
mod make {
    use super::{Error, PROTECTION, Path, Result};

    pub(super) fn fill(protection: &str, _directories: &[impl AsRef<Path>]) -> Result<()> {
        Err(Error::Usage(format!("{PROTECTION} = {protection}: this build has no DDS Security (feature security)")))
    }
}

#[cfg(feature = "security")]
mod make {
    use super::{Error, PROTECTION, Path, Result};
    use crate::keys::{Authorities, Protections};
    use std::fs;
    use takt_security::documents::{BasicProtectionKind, ProtectionKind};

    fn protections(word: &str) -> Result<Protections> {
        let (rtps, metadata, data) = match word {
            "rtps-sign" => (Some(ProtectionKind::Sign), None, None),
            "rtps-encrypt" => (Some(ProtectionKind::Encrypt), None, None),
            "metadata-sign" => (None, Some(ProtectionKind::Sign), None),
            "metadata-encrypt" => (None, Some(ProtectionKind::Encrypt), None),
            "data-encrypt" => (None, None, Some(BasicProtectionKind::Encrypt)),
            other => return Err(Error::Usage(format!("unknown {PROTECTION} {other}"))),
        };
        Ok(Protections { rtps, metadata, data })
    }

    pub(super) fn fill(protection: &str, directories: &[impl AsRef<Path>]) -> Result<()> {
        let authorities = Authorities::new(protections(protection)?)?;
        for (side, directory) in directories.iter().enumerate() {
            let directory = directory.as_ref();
            let os = |why| Error::os(directory.display().to_string(), why);
            fs::create_dir_all(directory).map_err(os)?;
            for (file, octets) in authorities.enclave(&format!("side {side}"))? {
                fs::write(directory.join(file), octets).map_err(os)?;
            }
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "security"))]
mod tests {
    use super::*;
    use crate::study::parameter::{Value, words_of};

    #[test]
    fn enclave_files_of_both_ends_exist_until_dropped() {
        for protection in words_of(PROTECTION) {
            let values = Values::from([(PROTECTION.to_owned(), Value::Text(protection.to_owned()))]);
            let Some(enclaves) = Enclaves::of(&values).unwrap() else {
                assert_eq!(protection, NONE);
                continue;
            };
            for side in [0, 1] {
                takt::SecurityConfig::from_enclave(enclaves.of_side(side).display().to_string()).unwrap();
                assert_eq!(enclaves.argument(side), format!("security={}", enclaves.of_side(side).display()));
            }
            let directory = enclaves.directory.clone();
            drop(enclaves);
            assert!(!directory.exists());
        }
        assert!(Enclaves::of(&Values::new()).unwrap().is_none());
    }
}
