//! Tests of simulated switches that connect to the runtime over TCP and TLS, on loopback.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use takt_openflow::channel::Instant;
use takt_sdn::controller::{Config, Event};
use takt_sdn::runtime::{Identity, IdentityFiles, Runtime};
use takt_testkit::waiting::LIMIT;

use crate::switch::SimulatedSwitch;

/// A connection of either kind.
trait Octets: Read + Write {}
impl<T: Read + Write> Octets for T {}

/// A certificate authority with its files, which are removed when it is dropped.
struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Drop for Authority {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).expect("the test created the directory");
    }
}

impl Authority {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("takt-sdn-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for temporary files");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("the names are valid");
        params.distinguished_name.push(DnType::CommonName, format!("Authority {name}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signed");
        std::fs::write(directory.join("authorities.pem"), certificate.pem()).expect("written");
        Self { directory, issuer: Issuer::new(params, key) }
    }

    fn certify(&self, name: &str) -> IdentityFiles {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
        params.distinguished_name.push(DnType::CommonName, name.to_owned());
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        let file = |suffix: &str| self.directory.join(format!("{name}.{suffix}"));
        std::fs::write(file("pem"), certificate.pem()).expect("written");
        std::fs::write(file("key"), key.serialize_pem()).expect("written");
        let authorities = self.directory.join("authorities.pem");
        IdentityFiles { certificate: file("pem"), key: file("key"), authorities }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let file = self.directory.join("authorities.pem");
        roots.add(CertificateDer::from_pem_file(file).expect("a certificate")).expect("an authority");
        roots
    }
}

fn runtime(identity: Option<Identity>) -> Runtime {
    let address = "127.0.0.1:0".parse().expect("a valid address");
    Runtime::listen(address, identity, Config::default()).expect("a port is free")
}

fn connected(runtime: &Runtime) -> TcpStream {
    let socket = TcpStream::connect(runtime.address().expect("the runtime listens")).expect("the runtime listens");
    socket.set_nonblocking(true).expect("a socket");
    socket
}

/// Opens a TLS connection of a switch with these files, or without a certificate.
fn encrypted(
    runtime: &Runtime,
    trusted: &Authority,
    own: Option<&IdentityFiles>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("TLS 1.3").with_root_certificates(trusted.roots());
    let config = match own {
        None => builder.with_no_client_auth(),
        Some(files) => {
            let chain = vec![CertificateDer::from_pem_file(&files.certificate).expect("a certificate")];
            let key = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
            builder.with_client_auth_cert(chain, key).expect("certificate and key match")
        }
    };
    let name = "127.0.0.1".try_into().expect("an address");
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a configuration"), connected(runtime))
}

fn is_blocked(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Exchanges octets between a switch and the runtime until a wanted event; `None` if the connection
/// ends before.
fn until(
    runtime: &mut Runtime,
    stream: &mut dyn Octets,
    switch: &mut SimulatedSwitch,
    is_wanted: impl Fn(&Event) -> bool,
) -> Option<Event> {
    let begin = Clock::now();
    let mut buffer = [0; 16 << 10];
    let mut is_ended = false;
    while begin.elapsed() < LIMIT {
        runtime.run_once(Duration::from_millis(1)).expect("the runtime can wait");
        while let Some(event) = runtime.poll_event() {
            if is_wanted(&event) {
                return Some(event);
            }
        }
        if is_ended {
            return None;
        }
        let now = Instant(begin.elapsed().as_nanos() as u64);
        match stream.read(&mut buffer) {
            Ok(0) => is_ended = true,
            Ok(len) => assert_eq!(switch.handle_bytes(now, &buffer[..len]).0, len),
            Err(error) if is_blocked(&error) => {}
            Err(_) => is_ended = true,
        }
        match stream.write(switch.poll_transmit()) {
            Ok(len) => switch.transmitted(len),
            Err(error) if is_blocked(&error) => {}
            Err(_) => is_ended = true,
        }
        // The next read reports a broken connection.
        let _ = stream.flush();
    }
    panic!("nothing happens");
}

fn switch() -> SimulatedSwitch {
    let mut switch = SimulatedSwitch::new(7, 4);
    switch.connect(Instant(0));
    switch
}

fn is_up(event: &Event) -> bool {
    matches!(event, Event::SwitchUp { dpid: 7, .. })
}

#[test]
fn switch_connects_over_tcp_and_leaves() {
    let mut runtime = runtime(None);
    let mut stream = connected(&runtime);
    assert!(until(&mut runtime, &mut stream, &mut switch(), is_up).is_some());
    assert_eq!(runtime.peers().count(), 1);
    drop(stream);
    let mut ended = io::Cursor::new(Vec::new());
    let is_down = |event: &Event| matches!(event, Event::SwitchDown { dpid: 7, .. });
    while until(&mut runtime, &mut ended, &mut switch(), is_down).is_none() {}
    assert_eq!(runtime.peers().count(), 0);
}

#[test]
fn switch_with_a_certificate_that_is_trusted_connects_over_tls() {
    let authority = Authority::new("trusted");
    let identity = Identity::load(&authority.certify("controller")).expect("its files");
    let mut runtime = runtime(Some(identity));
    let files = authority.certify("switch");
    let mut stream = encrypted(&runtime, &authority, Some(&files));
    let mut switch = switch();
    assert!(until(&mut runtime, &mut stream, &mut switch, is_up).is_some());
    assert!(!switch.rules.is_empty() || until(&mut runtime, &mut stream, &mut switch, |_| true).is_some());
}

#[test]
fn switch_without_a_trusted_certificate_is_refused() {
    let (authority, other) = (Authority::new("own"), Authority::new("other"));
    let identity = Identity::load(&authority.certify("controller")).expect("its files");
    let mut runtime = runtime(Some(identity));
    let foreign = other.certify("switch");
    for own in [None, Some(&foreign)] {
        let mut stream = encrypted(&runtime, &authority, own);
        assert!(until(&mut runtime, &mut stream, &mut switch(), is_up).is_none());
    }
    // Plain OpenFlow is not accepted instead of TLS.
    let mut stream = connected(&runtime);
    assert!(until(&mut runtime, &mut stream, &mut switch(), is_up).is_none());
}

#[test]
fn invalid_identity_files_are_named_in_the_error() {
    let authority = Authority::new("files");
    let files = authority.certify("controller");
    let missing = IdentityFiles { key: files.authorities.clone(), ..files.clone() };
    let error = Identity::load(&missing).expect_err("no key in it").to_string();
    assert!(error.contains("authorities.pem"), "{error}");
    std::fs::write(&files.authorities, "nothing").expect("written");
    assert!(Identity::load(&files).expect_err("no certificate").to_string().contains("no certificate in PEM"));
}

#[test]
fn connection_that_sends_no_openflow_is_closed() {
    let mut runtime = runtime(None);
    let mut stream = connected(&runtime);
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("the write succeeds");
    let mut unused = SimulatedSwitch::new(1, 1);
    let refused = |event: &Event| matches!(event, Event::ConnectionRefused { .. });
    assert!(until(&mut runtime, &mut stream, &mut unused, refused).is_some());
}
