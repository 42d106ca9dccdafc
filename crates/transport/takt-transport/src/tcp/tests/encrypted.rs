//! Tests of TLS: admission of certificates, and exchange of messages.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::*;

/// Test certificate authority, with its files in a temporary directory.
struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("takt-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for temporary files");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("the names are valid");
        params.distinguished_name.push(DnType::CommonName, format!("Authority {name}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signed");
        std::fs::write(directory.join("ca.pem"), certificate.pem()).expect("written");
        Self { directory, issuer: Issuer::new(params, key) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Issues a certificate for this name, and the settings of its holder.
    fn certify(&self, name: &str) -> TlsConfig {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        let (certificate_file, key_file) = (self.file(&format!("{name}.pem")), self.file(&format!("{name}.key")));
        std::fs::write(&certificate_file, certificate.pem()).expect("written");
        std::fs::write(&key_file, key.serialize_pem()).expect("written");
        TlsConfig { ca: self.file("ca.pem"), certificate: certificate_file, key: key_file }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).expect("the test owns the directory");
    }
}

fn with(config: TcpConfig, tls: TlsConfig) -> TcpTransport {
    open(&TcpConfig { tls: Some(tls), ..config })
}

#[test]
fn small_and_large_messages_are_exchanged() {
    let ours = Authority::new("exchange");
    let (mut a, mut b) =
        (with(without_listener(), ours.certify("a.test")), with(listener(), ours.certify("127.0.0.1")));
    let at_b = listener_locator(&b);
    send(&mut a, 1, b"early", at_b);
    let (text, at_a) = receive(&mut [&mut a, &mut b]);
    assert_eq!(text, b"early", "messages sent before the handshake arrive");
    for len in [1, 1000, 16_384, 16_385, MESSAGE_MAX - framing::HEADER] {
        let text: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        // More than the queue of one side takes at once.
        for _ in 0..10 {
            send(&mut b, 2, &text, at_a);
        }
        for _ in 0..10 {
            assert_eq!(receive(&mut [&mut b, &mut a]).0, text);
        }
        send(&mut a, 1, &text, at_b);
        assert_eq!(receive(&mut [&mut a, &mut b]).0, text);
    }
    let counts = a.status().stats.connections;
    assert_eq!((counts.opened, counts.lost, b.status().stats.connections.lost), (1, 0, 0));
}

#[test]
fn lost_connection_is_reopened() {
    let ours = Authority::new("anew");
    let (mut a, mut b) =
        (with(without_listener(), ours.certify("a.test")), with(listener(), ours.certify("127.0.0.1")));
    let at_b = listener_locator(&b);
    send(&mut a, 1, b"first", at_b);
    let (_, at_a) = receive(&mut [&mut a, &mut b]);
    send(&mut b, 2, b"answer", at_a);
    receive(&mut [&mut b, &mut a]);
    let token = b.connections.iter().next().expect("a connection is open").token;
    b.close(token, Instant::now());
    until_counted(&mut a, |counts| counts.opened == 2);
    send(&mut a, 1, b"again", at_b);
    assert_eq!(receive(&mut [&mut a, &mut b]), (b"again".to_vec(), at_a));
}

/// Asserts that no message passes, and that the connecting side keeps trying.
fn assert_refused(a: &mut TcpTransport, b: &mut TcpTransport) {
    let at_b = listener_locator(b);
    drive_until(&mut [a, b], |all| {
        send(all[0], 1, b"let me in", at_b);
        all.iter_mut().for_each(|one| assert_eq!(receive_with_source(one), None, "no message is delivered"));
        // The attempts reach the listener and are refused.
        let has_connected = all[1].status().stats.connections.opened > 0;
        (has_connected && all[0].status().stats.connections.failed >= 3).then_some(())
    });
    assert_eq!((a.status().stats.datagrams_in, b.status().stats.datagrams_in), (0, 0));
}

#[test]
fn unknown_authorities_are_refused_on_both_sides() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let mixed = |name: &str| TlsConfig { ca: theirs.file("ca.pem"), ..ours.certify(name) };
    // B trusts its own authority alone, which has not signed A.
    let untrusted = TlsConfig { ca: ours.file("ca.pem"), ..theirs.certify("a.test") };
    assert_refused(&mut with(without_listener(), untrusted), &mut with(listener(), ours.certify("127.0.0.1")));
    // A trusts another authority than the one that has signed B.
    assert_refused(&mut with(without_listener(), mixed("a.test")), &mut with(listener(), ours.certify("127.0.0.1")));
    // A peer without TLS, on either side.
    assert_refused(&mut open(&without_listener()), &mut with(listener(), ours.certify("127.0.0.1")));
    let timeout = Duration::from_millis(50);
    let a = TcpConfig { open_timeout: timeout, ..without_listener() };
    assert_refused(&mut with(a, ours.certify("a.test")), &mut open(&listener()));
}

#[test]
fn certificate_must_name_the_host_connected_to() {
    let ours = Authority::new("names");
    let host = || ours.certify("b.test");
    // The certificate of the address that is connected to contains only a name.
    assert_refused(&mut with(without_listener(), ours.certify("a.test")), &mut with(listener(), host()));
    for (name, is_right) in [("b.test", true), ("c.test", false)] {
        let mut b = with(listener(), host());
        let names = [(address(listener_locator(&b)), name.to_owned())].into();
        let mut a = with(TcpConfig { names, ..without_listener() }, ours.certify("a.test"));
        if is_right {
            send(&mut a, 1, b"by name", listener_locator(&b));
            assert_eq!(receive(&mut [&mut a, &mut b]).0, b"by name");
        } else {
            assert_refused(&mut a, &mut b);
        }
    }
}

#[test]
fn unusable_files_are_named_in_the_error() {
    let ours = Authority::new("files");
    let valid = ours.certify("127.0.0.1");
    std::fs::write(ours.file("empty.pem"), "").expect("written");
    let (empty, missing) = (ours.file("empty.pem"), ours.file("gone.pem"));
    let other = ours.certify("other.test").key;
    for (bad, file, what) in [
        (TlsConfig { ca: missing.clone(), ..valid.clone() }, &missing, "read the certificates"),
        (TlsConfig { ca: empty.clone(), ..valid.clone() }, &empty, "no certificate in PEM format"),
        (TlsConfig { certificate: empty.clone(), ..valid.clone() }, &empty, "no certificate in PEM format"),
        (TlsConfig { key: missing.clone(), ..valid.clone() }, &missing, "read the key"),
        (TlsConfig { key: other.clone(), ..valid.clone() }, &other, "with its certificate"),
    ] {
        let config = TcpConfig { tls: Some(bad), ..listener() };
        let error = TcpTransport::open(&config).map(drop).expect_err("the configuration is refused").to_string();
        assert!(error.contains(what) && error.contains(&file.display().to_string()), "{error}");
    }
}

#[test]
fn hostile_bytes_close_the_connection() {
    let ours = Authority::new("hostile");
    let config = TcpConfig { open_timeout: Duration::from_millis(100), ..listener() };
    let mut b = with(config, ours.certify("127.0.0.1"));
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0, 1, 0], &[0xff; 4096]] {
        let mut malicious = TcpStream::connect(address(listener_locator(&b))).expect("the peer listens");
        malicious.write_all(bytes).expect("the write succeeds");
        drive_until(&mut [&mut b], |all| {
            assert_eq!(receive_with_source(all[0]), None);
            (all[0].status().stats.connections.opened > 0 && all[0].connections.len() == 0).then_some(())
        });
    }
    assert_eq!(b.status().stats.datagrams_in, 0);
}

#[test]
fn connection_with_another_certificate_does_not_take_over_a_participant() {
    let ours = Authority::new("binding");
    let mut b = with(listener(), ours.certify("127.0.0.1"));
    let at_b = listener_locator(&b);
    let mut a = with(without_listener(), ours.certify("a.test"));
    send(&mut a, 1, b"it is me", at_b);
    let (_, at_a) = receive(&mut [&mut a, &mut b]);
    // From the same address, signed by the same authority, with the prefix of A.
    let mut impostor = with(without_listener(), ours.certify("c.test"));
    send(&mut impostor, 1, b"it is me", at_b);
    drive_until(&mut [&mut impostor, &mut b], |all| {
        all.iter_mut().for_each(|one| assert_eq!(receive_with_source(one), None));
        (all[1].status().stats.connections.wrong_certificate >= 1).then_some(())
    });
    send(&mut b, 2, b"for a", at_a);
    assert_eq!(receive(&mut [&mut impostor, &mut b, &mut a]).0, b"for a");
    // It cannot send with the prefix of A on its own connection either.
    let mut other = with(without_listener(), ours.certify("d.test"));
    send(&mut other, 4, b"I am D", at_b);
    assert_eq!(receive(&mut [&mut other, &mut b]).0, b"I am D");
    let before = b.status().stats.connections.wrong_certificate;
    send(&mut other, 1, b"A says", at_b);
    send(&mut other, 4, b"D says", at_b);
    assert_eq!(receive(&mut [&mut other, &mut b]).0, b"D says");
    assert!(b.status().stats.connections.wrong_certificate > before);
    // The participant itself may connect again.
    let token = a.connections.iter().next().expect("a connection is open").token;
    a.close(token, Instant::now());
    drive_until(&mut [&mut a, &mut b], |all| {
        send(all[0], 1, b"again", at_b);
        assert_eq!(receive_with_source(all[0]), None);
        receive_with_source(all[1]).filter(|(text, from)| text == b"again" && *from == at_a)
    });
}
