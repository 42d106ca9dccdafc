//! Enclave: the directory with all files that one participant loads, with the file names of SROS2.

use std::path::{Path, PathBuf};

use takt_bench::{Error, Result};
use takt_security::documents::{Governance, Permissions, verify};
use takt_security::identity::{Authority, Certificate, PrivateKey, UnixSeconds};
pub use takt_security::tools::enclave::{
    CERTIFICATE, GOVERNANCE, IDENTITY_CA, KEY, KEY_URI, PERMISSIONS, PERMISSIONS_CA, REVOCATION_LIST,
};

use super::files::{read, read_optional};
use super::{key_refused, refused};

/// Unsigned permissions document. Participants do not read it.
pub const PERMISSIONS_XML: &str = "permissions.xml";
/// Directory of one participant.
#[derive(Clone, Debug)]
pub struct Enclave(PathBuf);

impl Enclave {
    /// Returns the enclave at a path, which need not exist.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the enclave if it exists.
    ///
    /// # Errors
    /// The directory has no certificate.
    pub fn existing(self) -> Result<Self> {
        if self.exists() {
            return Ok(self);
        }
        Err(Error::Usage(format!("{} is not an enclave: the file {CERTIFICATE} is missing", self.0.display())))
    }

    /// Reports whether the enclave has a certificate.
    pub fn exists(&self) -> bool {
        self.file(CERTIFICATE).is_file()
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in the enclave.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Reads the certificate of the participant.
    ///
    /// # Errors
    /// The certificate is missing or not accepted.
    pub fn certificate(&self) -> Result<Certificate> {
        let path = self.file(CERTIFICATE);
        Certificate::from_pem(&read(&path)?).map_err(|error| refused(&path, error))
    }

    /// Returns the path of the file with the participant's private key, or with the URI of a key in
    /// a token.
    pub fn key_file(&self) -> PathBuf {
        let uri = self.file(KEY_URI);
        if uri.exists() { uri } else { self.file(KEY) }
    }

    /// Reads the private key of the participant.
    ///
    /// # Errors
    /// The key is missing, encrypted or not accepted.
    pub fn key(&self) -> Result<PrivateKey> {
        let path = self.key_file();
        let pem = read(&path)?;
        PrivateKey::read(&pem, None).map_err(|error| key_refused(&path, &pem, error))
    }

    /// Reads the identity CA and its revocation list.
    ///
    /// # Errors
    /// The certificate of the CA is missing or not accepted, or the list is from another authority.
    pub fn identity_authority(&self) -> Result<Authority> {
        let mut authority = authority(&self.file(IDENTITY_CA))?;
        let path = self.file(REVOCATION_LIST);
        if let Some(list) = read_optional(&path)? {
            authority.add_revocation_list(&list).map_err(|error| refused(&path, error))?;
        }
        Ok(authority)
    }

    /// Reads the permissions CA.
    ///
    /// # Errors
    /// The certificate of the CA is missing or not accepted.
    pub fn permissions_authority(&self) -> Result<Authority> {
        authority(&self.file(PERMISSIONS_CA))
    }

    /// Reads the governance document.
    ///
    /// # Errors
    /// The document is missing, not signed by the authority, or malformed.
    pub fn governance(&self, authority: &Authority, now: UnixSeconds) -> Result<Governance> {
        governance(&self.file(GOVERNANCE), authority, now)
    }

    /// Reads the permissions document.
    ///
    /// # Errors
    /// Same as [`Self::governance`].
    pub fn permissions(&self, authority: &Authority, now: UnixSeconds) -> Result<Permissions> {
        let path = self.file(PERMISSIONS);
        let text = signed_text(&path, authority, now)?;
        Permissions::parse(&text).map_err(|error| refused(&path, error))
    }
}

/// Reads the authority of a certificate file.
///
/// # Errors
/// The file is missing or not accepted.
pub fn authority(path: &Path) -> Result<Authority> {
    Authority::from_pem(&read(path)?).map_err(|error| refused(path, error))
}

/// Reads a governance document.
///
/// # Errors
/// The document is missing, not signed by the authority, or malformed.
pub fn governance(path: &Path, authority: &Authority, now: UnixSeconds) -> Result<Governance> {
    let text = signed_text(path, authority, now)?;
    Governance::parse(&text).map_err(|error| refused(path, error))
}

/// Returns the text of a signed document.
///
/// # Errors
/// The document is missing, or not signed by the authority.
pub fn signed_text(path: &Path, authority: &Authority, now: UnixSeconds) -> Result<String> {
    verify(&read(path)?, authority, now).map_err(|error| refused(path, error))
}

/// Reports whether a document equals the signed text, apart from line ends.
pub fn is_same_text<'a>(document: &'a str, signed: &'a str) -> bool {
    let lines = |text: &'a str| text.trim_end().lines();
    lines(document).eq(lines(signed))
}

#[cfg(test)]
mod tests {
    use super::is_same_text;

    #[test]
    fn texts_that_differ_only_in_line_ends_are_the_same() {
        assert!(is_same_text("<dds>\n</dds>", "<dds>\r\n</dds>\r\n"));
        assert!(!is_same_text("<dds>\n</dds>", "<dds></dds>"));
    }
}
