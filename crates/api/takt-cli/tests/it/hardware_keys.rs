//! Private keys in a PKCS#11 token: SoftHSM stores them, and the participant's files refer to them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use takt_testkit::directory::Directory;
use takt_testkit::waiting::output;
use takt_testkit::{not_run, require};

use crate::process::Takt;

const LIBRARY: &str = "/usr/lib/softhsm/libsofthsm2.so";
const VALUE: &str = r#"{"color":"RED","x":3,"y":-4,"shapesize":5}"#;

/// Keystore whose talker has its key in a token.
struct Site {
    directory: Directory,
}

impl Site {
    /// Creates the keystore. Without SoftHSM it reports the test as not run and returns `None`.
    fn new(init: &str) -> Option<Self> {
        if let Err(why) = require::program("softhsm2-util") {
            not_run(why);
            return None;
        }
        let site = Self { directory: Directory::new("hardware-keys") };
        fs::create_dir(site.directory.path().join("tokens")).unwrap();
        let tokens = site.directory.text("tokens");
        let configuration = format!("directories.tokendir = {tokens}\nobjectstore.backend = file\nlog.level = ERROR\n");
        fs::write(site.directory.path().join("softhsm2.conf"), configuration).unwrap();
        let keys = site.directory.text("keys");
        site.takt(&format!("security init {keys} --domain 0-230 {init}"));
        site.takt(&format!("security participant {keys} talker --publish Square"));
        site.takt(&format!("security participant {keys} listener --subscribe Square"));
        let enclave = site.directory.path().join("keys/enclaves/talker");
        site.softhsm("--init-token --free --label takt --so-pin 12345678 --pin 5678");
        let key = enclave.join("key.pem");
        site.softhsm(&format!("--import {} --token takt --label talker --id 01 --pin 5678", key.display()));
        fs::remove_file(key).unwrap();
        site.name_key("pin-value=5678");
        Some(site)
    }

    /// Writes the file that refers to the key.
    fn name_key(&self, pin: &str) {
        let uri = format!("pkcs11:token=takt;object=talker;id=%01;type=private?module-path={LIBRARY}&{pin}\n");
        let path = self.directory.path().join("keys/enclaves/talker/key.p11");
        fs::write(&path, uri).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn softhsm(&self, words: &str) {
        let configuration = self.directory.text("softhsm2.conf");
        let mut command = Command::new("softhsm2-util");
        let made = output(command.args(words.split(' ')).env("SOFTHSM2_CONF", configuration));
        assert!(made.status.success(), "{words}: {}", String::from_utf8_lossy(&made.stderr));
    }

    fn start(&self, line: &str, enclave: Option<&str>) -> Takt {
        let mut environment = vec![("SOFTHSM2_CONF", self.directory.text("softhsm2.conf"))];
        environment
            .extend(enclave.map(|name| ("TAKT_SECURITY", self.directory.text(&format!("keys/enclaves/{name}")))));
        Takt::start_in(line, &environment)
    }

    fn takt(&self, line: &str) -> String {
        let (text, errors, code) = self.start(line, None).ending();
        assert_eq!(code, Some(0), "{line}: {text}{errors}");
        text
    }
}

#[test]
fn participant_with_its_key_in_a_token_publishes() {
    for init in ["", "--rsa"] {
        let Some(site) = Site::new(init) else { return };
        assert!(site.takt(&format!("security check {}", site.directory.text("keys"))).contains("0 findings"));
        let options = format!("--interface lo --peer 127.0.0.1 --domain {}", takt_testkit::domain::domain());
        let listener = site.start(
            &format!("sub Square --type ShapeType --reliable --transient-local --json --count 1 {options}"),
            Some("listener"),
        );
        let talker =
            site.start(&format!("pub Square {VALUE} --type ShapeType --json --count 1 {options}"), Some("talker"));
        assert_eq!(talker.json()["acknowledged"], true, "{init}");
        let (text, status) = listener.finish();
        assert!(status.success() && text.contains("RED"), "{init}: {text}");
    }
}

#[test]
fn key_that_the_token_does_not_show_is_an_error() {
    let Some(site) = Site::new("") else { return };
    let enclave = site.directory.text("keys/enclaves/talker");
    let refused = |expected: &str| {
        let (text, errors, code) = site.start(&format!("security check {enclave}"), None).ending();
        assert_eq!(code, Some(1), "{text}{errors}");
        assert!(text.contains(expected), "{expected}: {text}");
    };
    site.name_key("pin-value=0000");
    refused("log in");
    // A token hides private objects until the user has logged in.
    site.name_key("");
    refused("it may need a PIN");
    fs::write(Path::new(&enclave).join("key.p11"), format!("pkcs11:token=other?module-path={LIBRARY}")).unwrap();
    refused("no token matches; available tokens: [\"takt\"]");
    fs::write(Path::new(&enclave).join("key.p11"), "pkcs11:token=takt?module-path=/nowhere.so").unwrap();
    refused("load /nowhere.so");
}
