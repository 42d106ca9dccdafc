//! Keystore in the layout of SROS2: both authorities, the governance document, and the enclaves of
//! all participants.
//!
//! ```text
//! public/    identity_ca.cert.pem  permissions_ca.cert.pem  crl.pem  revoked/
//! private/   identity_ca.key.pem  permissions_ca.key.pem
//! enclaves/  governance.xml  governance.p7s  NAME/
//! ```

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use takt_bench::{Error, Result};
use takt_security::documents::{DomainSet, Governance};
use takt_security::identity::{Authority, UnixSeconds};
use takt_security::tools::Issuer;

use super::enclave::{Enclave, GOVERNANCE, IDENTITY_CA, PERMISSIONS_CA, REVOCATION_LIST, authority, governance};
use super::files::{Readers, os_error, read, read_optional, write};
use super::key_refused;

/// Private key of the identity CA.
pub const IDENTITY_CA_KEY: &str = "identity_ca.key.pem";
/// Private key of the permissions CA.
pub const PERMISSIONS_CA_KEY: &str = "permissions_ca.key.pem";
/// Unsigned governance document.
pub const GOVERNANCE_XML: &str = "governance.xml";
/// Maximum length of an enclave's name, in octets. The name is the common name of a certificate
/// (RFC 5280).
const NAME_LEN_MAX: usize = 64;

/// Directory with authorities and enclaves.
#[derive(Clone, Debug)]
pub struct Keystore(PathBuf);

impl Keystore {
    /// Returns the keystore at a path, which need not exist.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Returns the existing keystore at a path.
    ///
    /// # Errors
    /// A certificate of an authority is missing.
    pub fn existing(path: &Path) -> Result<Self> {
        let keystore = Self::at(path);
        let missing = [IDENTITY_CA, PERMISSIONS_CA].map(|name| keystore.public(name));
        match missing.into_iter().find(|path| !path.is_file()) {
            None => Ok(keystore),
            Some(missing) => {
                let (path, missing) = (path.display(), missing.display());
                Err(Error::Usage(format!(
                    "{path} is not a keystore: {missing} is missing; `takt security init {path}` creates one"
                )))
            }
        }
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file that participants may read.
    pub fn public(&self, name: &str) -> PathBuf {
        self.0.join("public").join(name)
    }

    /// Returns the path of a file that only the owner of the keystore may read.
    pub fn private(&self, name: &str) -> PathBuf {
        self.0.join("private").join(name)
    }

    /// Returns the directory of all enclaves.
    pub fn enclaves(&self) -> PathBuf {
        self.0.join("enclaves")
    }

    /// Returns the directory of revoked certificates.
    pub fn revoked(&self) -> PathBuf {
        self.public("revoked")
    }

    /// Returns the path of the governance document, signed or unsigned.
    pub fn governance_file(&self, name: &str) -> PathBuf {
        self.enclaves().join(name)
    }

    /// Returns the enclave of a name, which need not exist.
    pub fn enclave(&self, name: &str) -> Enclave {
        Enclave::at(self.enclaves().join(name.trim_start_matches('/')))
    }

    /// Returns the name of an enclave: its path below the directory of all enclaves.
    pub fn name_of(&self, enclave: &Enclave) -> String {
        let path = enclave.path();
        path.strip_prefix(self.enclaves()).unwrap_or(path).display().to_string()
    }

    /// Returns all enclaves, sorted by name.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn all_enclaves(&self) -> Result<Vec<Enclave>> {
        let (mut found, mut directories) = (Vec::new(), vec![self.enclaves()]);
        while let Some(directory) = directories.pop() {
            for entry in entries(&directory)? {
                // A link to a directory is not followed, since it may form a cycle.
                if entry.is_dir() && !entry.is_symlink() {
                    directories.push(entry);
                }
            }
            found.extend(Some(Enclave::at(directory)).filter(Enclave::exists));
        }
        found.sort_by(|one, other| one.path().cmp(other.path()));
        Ok(found)
    }

    /// Returns the revoked certificates in PEM.
    ///
    /// # Errors
    /// A certificate cannot be read.
    pub fn revoked_certificates(&self) -> Result<Vec<Vec<u8>>> {
        let directory = self.revoked();
        if !directory.is_dir() {
            return Ok(Vec::new());
        }
        let is_certificate = |path: &PathBuf| path.extension() == Some(OsStr::new("pem"));
        entries(&directory)?.into_iter().filter(is_certificate).map(|path| read(&path)).collect()
    }

    /// Reads the identity CA with its private key.
    ///
    /// # Errors
    /// A file is missing or not accepted, or the key is that of another certificate.
    pub fn identity_issuer(&self) -> Result<Issuer> {
        self.issuer(IDENTITY_CA, IDENTITY_CA_KEY)
    }

    /// Reads the permissions CA with its private key.
    ///
    /// # Errors
    /// Same as [`Self::identity_issuer`].
    pub fn permissions_issuer(&self) -> Result<Issuer> {
        self.issuer(PERMISSIONS_CA, PERMISSIONS_CA_KEY)
    }

    fn issuer(&self, certificate: &str, key: &str) -> Result<Issuer> {
        let (certificate, path) = (read(&self.public(certificate))?, self.private(key));
        let key = read(&path)?;
        Issuer::from_pem(&certificate, &key, None).map_err(|error| key_refused(&path, &key, error))
    }

    /// Reads the permissions CA.
    ///
    /// # Errors
    /// The certificate of the CA is missing or not accepted.
    pub fn permissions_authority(&self) -> Result<Authority> {
        authority(&self.public(PERMISSIONS_CA))
    }

    /// Reads the signed governance document.
    ///
    /// # Errors
    /// The document is missing, not signed by the permissions CA, or malformed.
    pub fn governance(&self, now: UnixSeconds) -> Result<Governance> {
        governance(&self.governance_file(GOVERNANCE), &self.permissions_authority()?, now)
    }

    /// Returns the domains for which the governance document has rules.
    ///
    /// # Errors
    /// Same as [`Self::governance`].
    pub fn domains(&self, now: UnixSeconds) -> Result<DomainSet> {
        let governance = self.governance(now)?;
        Ok(DomainSet(governance.domain_rules.into_iter().flat_map(|rule| rule.domains.0).collect()))
    }

    /// Copies the files that all participants share to an enclave: the certificates of both
    /// authorities, the governance document and, if there is one, the revocation list.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn copy_common_files(&self, enclave: &Enclave) -> Result<()> {
        for (name, path) in self.common_files() {
            if let Some(content) = read_optional(&path)? {
                write(&enclave.file(name), &content, Readers::All)?;
            }
        }
        Ok(())
    }

    /// Returns the files that all participants share, as pairs of name in the enclave and path in
    /// the keystore.
    pub fn common_files(&self) -> [(&'static str, PathBuf); 4] {
        [
            (IDENTITY_CA, self.public(IDENTITY_CA)),
            (PERMISSIONS_CA, self.public(PERMISSIONS_CA)),
            (GOVERNANCE, self.governance_file(GOVERNANCE)),
            (REVOCATION_LIST, self.public(REVOCATION_LIST)),
        ]
    }
}

/// Returns the paths in a directory, sorted by name, without hidden files.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(directory).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut paths: Vec<PathBuf> =
        listed.map_err(|source| os_error(directory, source))?.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| !path.file_name().unwrap_or_default().to_string_lossy().starts_with('.'));
    paths.sort();
    Ok(paths)
}

/// Parses the name of an enclave.
pub fn parse_name(text: &str) -> std::result::Result<String, String> {
    let is_part = |part: &str| {
        let is_character = |octet: u8| octet.is_ascii_alphanumeric() || b"_-.".contains(&octet);
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_character)
    };
    let relative = text.strip_prefix('/').unwrap_or(text);
    if text.len() <= NAME_LEN_MAX && relative.split('/').all(is_part) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected a name of at most {NAME_LEN_MAX} letters, digits, '_', '-' and '.', \
         or several that are separated by '/'; a name may not begin with '.'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_testkit::directory::Directory;

    #[test]
    fn names_stay_below_the_directory_of_enclaves() {
        for name in ["talker", "/demo/talker", "a.b-c_1"] {
            assert_eq!(parse_name(name).as_deref(), Ok(name));
        }
        for name in ["", "/", "..", "a/../b", "a//b", "/a/", "a b", ".hidden", "a\n", &"x".repeat(65)] {
            assert!(parse_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn enclaves_below_other_enclaves_are_found() {
        let files = ["a/cert.pem", "a/b/cert.pem", "c/d/cert.pem", "c/key.pem"];
        let files = files.map(|name| format!("enclaves/{name}"));
        let files = files.each_ref().map(|name| (name.as_str(), ""));
        let directory = Directory::with("security-keystore", &files);
        let keystore = Keystore::at(directory.path());
        let found = keystore.all_enclaves().expect("the directory is readable");
        let names: Vec<String> = found.iter().map(|enclave| keystore.name_of(enclave)).collect();
        assert_eq!(names, ["a", "a/b", "c/d"]);
        assert_eq!(keystore.name_of(&keystore.enclave("/c/d")), "c/d");
    }

    #[test]
    fn directory_without_authorities_is_no_keystore() {
        let directory = Directory::new("security-keystore");
        let error = Keystore::existing(directory.path()).expect_err("the directory is empty").to_string();
        assert!(error.contains("is not a keystore: ") && error.contains("takt security init"), "{error}");
    }
}
