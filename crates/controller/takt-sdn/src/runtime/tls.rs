//! Mutual TLS 1.3 (RFC 8446): the controller's certificate, and the authorities of switch
//! certificates.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, version};

/// Files in PEM format.
#[derive(Clone, Debug)]
pub struct IdentityFiles {
    /// Certificate of the controller, followed by intermediate certificates.
    pub certificate: PathBuf,
    /// Private key of the controller.
    pub key: PathBuf,
    /// Authorities that sign certificates of switches.
    pub authorities: PathBuf,
}

/// TLS identity of the controller: its certificate and the trusted authorities.
#[derive(Clone, Debug)]
pub struct Identity(Arc<ServerConfig>);

/// Error of an unusable file.
#[derive(Debug)]
pub struct IdentityError {
    file: PathBuf,
    why: String,
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use {}: {}", self.file.display(), self.why)
    }
}

impl std::error::Error for IdentityError {}

fn unusable(file: &Path) -> impl Fn(String) -> IdentityError {
    move |why| IdentityError { file: file.to_owned(), why }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let failed = |error: rustls::pki_types::pem::Error| unusable(file)(error.to_string());
    let all = CertificateDer::pem_file_iter(file).map_err(failed)?;
    let all: Vec<CertificateDer<'static>> = all.collect::<Result<_, _>>().map_err(failed)?;
    if all.is_empty() { Err(unusable(file)("no certificate in PEM format".to_owned())) } else { Ok(all) }
}

impl Identity {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or certificate and key do not match.
    pub fn load(files: &IdentityFiles) -> Result<Self, IdentityError> {
        let of_authorities = unusable(&files.authorities);
        let of_key = unusable(&files.key);
        let mut roots = RootCertStore::empty();
        for authority in certificates(&files.authorities)? {
            roots.add(authority).map_err(|error| of_authorities(error.to_string()))?;
        }
        let chain = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| of_key(error.to_string()))?;
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| of_authorities(error.to_string()))?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| of_key(error.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|error| of_key(error.to_string()))?;
        Ok(Self(Arc::new(config)))
    }

    pub(super) fn accept(&self) -> std::io::Result<ServerConnection> {
        ServerConnection::new(Arc::clone(&self.0)).map_err(std::io::Error::other)
    }
}
