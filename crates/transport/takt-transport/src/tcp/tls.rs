//! TLS 1.3 on a connection (RFC 8446) with mutual authentication.
//!
//! The connecting side also verifies that the certificate belongs to the host: it must contain the
//! configured name, else the address. The accepting side verifies that a trusted authority signed
//! the certificate. Messages sent before the end of the handshake wait in the queue of the
//! connection. Encryption allocates.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection, version};

use super::buffer::Buffer;
use super::config::TlsConfig;
use super::stream::{Progress, progress_of, retry_interrupted};
use crate::TransportError;

/// Minimum room for a read: the octets that one read of the socket can decrypt to.
const READ_LEN: usize = 32 << 10;
/// Maximum content of one record (RFC 8446 §5.1).
const RECORD: usize = 16 << 10;

/// Own certificate and trusted authorities.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Identity {
    pub(super) fn load(config: &TlsConfig) -> Result<Self, TransportError> {
        let mut roots = RootCertStore::empty();
        for ca in certificates(&config.ca)? {
            roots.add(ca).map_err(|error| unusable("trust the certificates of", &config.ca, error))?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(&config.certificate)?;
        let key = || {
            PrivateKeyDer::from_pem_file(&config.key).map_err(|error| unusable("read the key of", &config.key, error))
        };
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let versions = &[&version::TLS13];
        let of_key = |error| unusable("use, with its certificate, the key of", &config.key, error);
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(of_key)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key()?)
            .map_err(of_key)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|error| unusable("trust the certificates of", &config.ca, error))?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(of_key)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key()?)
            .map_err(of_key)?;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    /// Makes the connecting side, to `peer`, whose certificate must contain `name` or else its
    /// address.
    pub(super) fn connect(&self, socket: TcpStream, peer: SocketAddr, name: Option<&str>) -> io::Result<TlsStream> {
        let name = match name {
            Some(name) => ServerName::try_from(name.to_owned()).map_err(io::Error::other)?,
            None => ServerName::IpAddress(peer.ip().into()),
        };
        let tls = ClientConnection::new(Arc::clone(&self.client), name).map_err(io::Error::other)?;
        Ok(TlsStream { socket, tls: tls.into() })
    }

    /// Makes the accepting side.
    pub(super) fn accept(&self, socket: TcpStream) -> io::Result<TlsStream> {
        let tls = ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        Ok(TlsStream { socket, tls: tls.into() })
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    let failed = |error| unusable("read the certificates of", file, error);
    let all: Vec<_> = CertificateDer::pem_file_iter(file).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    if all.is_empty() {
        return Err(unusable("read the certificates of", file, "no certificate in PEM format"));
    }
    Ok(all)
}

fn unusable(op: &'static str, file: &Path, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TransportError {
    TransportError::new(op, file.display(), io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Encrypted stream.
#[derive(Debug)]
pub(super) struct TlsStream {
    socket: TcpStream,
    tls: Connection,
}

impl TlsStream {
    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Returns the certificate of the peer, in DER; none before the handshake is over.
    pub(super) fn certificate(&self) -> Option<&[u8]> {
        self.tls.peer_certificates()?.first().map(AsRef::as_ref)
    }

    /// Reads as [`Stream::read_into`](super::stream::Stream::read_into) does.
    pub(super) fn read_into(&mut self, buffer: &mut Buffer) -> io::Result<Progress> {
        while buffer.free() >= READ_LEN {
            match retry_interrupted(|| self.tls.read_tls(&mut self.socket)) {
                Ok(0) => return Ok(Progress::Ended),
                Ok(_) => {}
                Err(error) => return progress_of(error),
            }
            if let Err(error) = self.tls.process_new_packets() {
                // The peer receives the alert, if that is possible at once.
                let _ = self.tls.write_tls(&mut self.socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            loop {
                match self.tls.reader().read(buffer.space()) {
                    Ok(0) => return Ok(Progress::Ended),
                    Ok(len) => buffer.filled(len),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(Progress::Done)
    }

    /// Writes as [`Stream::write_from`](super::stream::Stream::write_from) does. During the
    /// handshake, it writes only the handshake messages.
    pub(super) fn write_from(&mut self, buffer: &mut Buffer) -> io::Result<Progress> {
        loop {
            while self.tls.wants_write() {
                match retry_interrupted(|| self.tls.write_tls(&mut self.socket)) {
                    Ok(_) => {}
                    Err(error) => return progress_of(error),
                }
            }
            if self.tls.is_handshaking() || buffer.is_empty() {
                return Ok(Progress::Done);
            }
            let record = buffer.data().len().min(RECORD);
            let len = self.tls.writer().write(&buffer.data()[..record])?;
            buffer.consume(len);
        }
    }

    /// Sends a close notification, if that is possible at once.
    pub(super) fn send_close_notify(&mut self) {
        self.tls.send_close_notify();
        let _ = self.tls.write_tls(&mut self.socket);
    }
}
