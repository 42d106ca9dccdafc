//! Tests of `takt security`: commands of the documentation page, accepted files, and detected
//! damage.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use takt_testkit::directory::Directory;
use takt_testkit::waiting::output;
use takt_testkit::{not_run, require};

use crate::process::Takt;

const PAGE: &str = include_str!("../../../../../docs/guide/security-tools.md");

/// Runs a command to its end; returns its standard output, standard error and exit code.
fn run(line: &str) -> (String, String, Option<i32>) {
    Takt::start(line).ending()
}

/// Returns the output of a command that must succeed.
pub(crate) fn done(line: &str) -> String {
    let (text, errors, code) = run(line);
    assert_eq!(code, Some(0), "{line}: {text}\n{errors}");
    text
}

/// Returns the error output of a command that must fail.
fn refused(line: &str, expected_code: i32) -> String {
    let (text, errors, code) = run(line);
    assert_eq!(code, Some(expected_code), "{line}: {text}\n{errors}");
    errors
}

/// Returns a keystore with a talker and a listener, and its path.
fn keystore() -> (Directory, String) {
    let directory = Directory::new("security");
    let keys = directory.text("keys");
    done(&format!("security init {keys}"));
    done(&format!("security participant {keys} talker --publish Square"));
    done(&format!("security participant {keys} listener --subscribe Square"));
    (directory, keys)
}

/// Returns the findings of a check as one text.
fn findings(place: &str, options: &str) -> (String, Option<i32>) {
    let (text, errors, code) = run(&format!("security check {place} --json {options}"));
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{errors}"));
    assert_eq!(report["is_valid"], code == Some(0), "{text}");
    (report["findings"].to_string(), code)
}

/// Returns whether the participant of an enclave may publish and subscribe, and the reason.
fn explained(enclave: &str, options: &str) -> (bool, bool, String) {
    let answer = Takt::start(&format!("security explain {enclave} --json {options}")).json();
    let of = |question: &str| {
        let answers = answer["answers"].as_array().unwrap();
        answers.iter().find(|one| one["question"] == question).is_some_and(|one| one["is_allowed"] == true)
    };
    (of("publish"), of("subscribe"), answer.to_string())
}

#[test]
fn commands_of_the_documentation_page_create_files_for_a_pair() {
    if let Err(why) = require::program("bash") {
        return not_run(why);
    }
    let directory = Directory::new("security-page");
    let blocks: Vec<&str> = PAGE.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let program = Path::new(env!("CARGO_BIN_EXE_takt")).parent().unwrap().display();
    let mut printed = String::new();
    for (number, lines) in blocks.iter().enumerate() {
        assert!(number > 0 || lines.lines().count() < 10, "{lines}");
        // The fixed date of a later block must not depend on the current date.
        let lines = lines.replace("--at 2027-06-30", "--days 30");
        let script = format!("set -e; PATH={program}:$PATH; {lines}");
        let made =
            output(Command::new("bash").args(["-c", &script]).current_dir(directory.path()).stdin(Stdio::null()));
        let text = String::from_utf8_lossy(&made.stdout).into_owned();
        assert!(made.status.success(), "{lines}: {text}{}", String::from_utf8_lossy(&made.stderr));
        printed = if number == 0 { text } else { printed };
    }
    let shown = PAGE.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    // Times differ in each run.
    let words = |line: &str| -> Vec<String> {
        line.split_whitespace().filter(|word| !word.starts_with("20")).map(str::to_owned).collect()
    };
    for line in shown.lines().filter(|line| !line.is_empty() && !line.starts_with("first to expire")) {
        assert!(printed.lines().any(|printed| words(printed) == words(line)), "{line}\n{printed}");
    }
}

#[test]
fn keystore_has_sros2_files_and_private_keys_are_readable_by_owner_only() {
    let (directory, keys) = keystore();
    for name in [
        "public/identity_ca.cert.pem",
        "public/permissions_ca.cert.pem",
        "private/identity_ca.key.pem",
        "private/permissions_ca.key.pem",
        "enclaves/governance.xml",
        "enclaves/governance.p7s",
        "enclaves/talker/cert.pem",
        "enclaves/talker/key.pem",
        "enclaves/talker/identity_ca.cert.pem",
        "enclaves/talker/permissions_ca.cert.pem",
        "enclaves/talker/governance.p7s",
        "enclaves/talker/permissions.xml",
        "enclaves/talker/permissions.p7s",
    ] {
        let metadata =
            fs::metadata(directory.file("keys").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let is_private = metadata.permissions().mode() & 0o077 == 0;
        assert_eq!(is_private, name.ends_with("key.pem"), "{name}");
    }
    let mode = fs::metadata(directory.file("keys/private")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(!directory.file("keys/public/crl.pem").exists(), "nothing is revoked");
    let text = done(&format!("security check {keys}"));
    assert!(text.starts_with("2 enclaves, 0 findings, 0 warnings\nfirst to expire: "), "{text}");
}

#[test]
fn existing_files_are_not_overwritten() {
    let (directory, keys) = keystore();
    let certificate = directory.read("keys/enclaves/talker/cert.pem");
    let text = refused(&format!("security init {keys}"), 2);
    assert!(text.contains("a keystore is never overwritten"), "{text}");
    let text = refused(&format!("security participant {keys} talker --publish Other"), 2);
    assert!(text.contains("talker exists; takt security grant changes its rules"), "{text}");
    assert_eq!(directory.read("keys/enclaves/talker/cert.pem"), certificate);
    let text = refused(&format!("security participant {} talker", directory.path().display()), 2);
    assert!(text.contains("is not a keystore"), "{text}");
    let text = refused(&format!("security participant {keys} ../talker"), 2);
    assert!(text.contains("expected a name"), "{text}");
    let text = refused(&format!("security grant {keys} nobody --publish Square"), 2);
    assert!(text.contains("nobody is not an enclave"), "{text}");
}

#[test]
fn files_are_accepted_by_openssl() {
    if let Err(why) = require::program("openssl") {
        return not_run(why);
    }
    for options in ["", "--rsa"] {
        let directory = Directory::new("security-openssl");
        let keys = directory.text("keys");
        done(&format!("security init {keys} {options}"));
        done(&format!("security participant {keys} /robot/arm --publish Square"));
        done(&format!("security participant {keys} other"));
        done(&format!("security revoke {keys} other"));
        let openssl = |arguments: &str| {
            let made = output(Command::new("openssl").args(arguments.split(' ')).current_dir(&keys));
            let text = String::from_utf8_lossy(&made.stdout).into_owned() + &String::from_utf8_lossy(&made.stderr);
            (made.status.success(), text)
        };
        for name in ["governance", "robot/arm/permissions"] {
            let (is_verified, text) = openssl(&format!(
                "cms -verify -text -in enclaves/{name}.p7s -CAfile public/permissions_ca.cert.pem -purpose any"
            ));
            let document = directory.read(&format!("keys/enclaves/{name}.xml"));
            assert!(is_verified && text.replace("\r\n", "\n").starts_with(&document), "{name}: {text}");
        }
        let verify = "verify -x509_strict -crl_check -CRLfile public/crl.pem -CAfile public/identity_ca.cert.pem";
        let (is_valid, text) = openssl(&format!("{verify} enclaves/robot/arm/cert.pem"));
        assert!(is_valid, "{text}");
        let (is_valid, text) = openssl(&format!("{verify} enclaves/other/cert.pem"));
        assert!(!is_valid && text.contains("certificate revoked"), "{text}");
        let (_, text) = openssl("x509 -noout -subject -text -in enclaves/robot/arm/cert.pem");
        let key = if options.is_empty() { "prime256v1" } else { "2048 bit" };
        assert!(text.contains("CN = /robot/arm") && text.contains(key), "{text}");
    }
}

#[test]
fn participant_may_do_what_its_options_say_and_nothing_else() {
    let (_directory, keys) = keystore();
    let (talker, listener) = (format!("{keys}/enclaves/talker"), format!("{keys}/enclaves/listener"));
    let (publish, subscribe, text) = explained(&talker, "--topic Square");
    assert!(publish && !subscribe && text.contains("the allow_rule in line"), "{text}");
    assert_eq!((explained(&listener, "--topic Square").0, explained(&listener, "--topic Square").1), (false, true));
    let (publish, _, text) = explained(&talker, "--topic Square --partition left");
    assert!(!publish && text.contains("its default, since no rule applies"), "{text}");
    assert!(!explained(&talker, "--topic Circle").0);
    let text = refused(&format!("security explain {talker} --topic Square --domain 7"), 1);
    assert!(text.contains("governance has no domain_rule for domain 7"), "{text}");
    done(&format!("security participant {keys} silent"));
    let (publish, subscribe, text) = explained(&format!("{keys}/enclaves/silent"), "--topic Square");
    assert!(!publish && !subscribe && text.contains("has an allow_rule for domain 0"), "{text}");
    let text = done(&format!("security explain {talker} --topic Square --publish"));
    assert!(!text.contains("subscribe"), "{text}");
    assert!(text.ends_with("A host without a key can neither read nor forge samples."), "{text}");
}

#[test]
fn granted_and_denied_topics_apply_in_their_order() {
    let (_directory, keys) = keystore();
    let talker = format!("{keys}/enclaves/talker");
    let may_publish = |options: &str| explained(&talker, options).0;
    done(&format!("security grant {keys} talker --publish Cam* --partition left"));
    assert!(may_publish("--topic Camera --partition left") && !may_publish("--topic Camera"));
    assert!(may_publish("--topic Square"), "earlier rules stay");
    done(&format!("security grant {keys} talker --deny-publish Camera2"));
    assert!(may_publish("--topic Camera1 --partition left") && !may_publish("--topic Camera2 --partition left"));
    let (_, errors, code) = run(&format!("security grant {keys} talker --publish Camera2"));
    assert!(code == Some(0) && errors.contains("warning: grant \"talker\" denies publish"), "{errors}");
    done(&format!("security grant {keys} talker --replace --publish Circle"));
    assert!(may_publish("--topic Circle") && !may_publish("--topic Square"));
    let text = refused(&format!("security grant {keys} talker --partition left"), 2);
    assert!(text.contains("nothing to change"), "{text}");
    assert_eq!(findings(&keys, "").1, Some(0));
}

#[test]
fn edited_document_is_signed_when_valid_and_its_error_reported_otherwise() {
    let (directory, keys) = keystore();
    let governance = directory.read("keys/enclaves/governance.xml");
    let sign = format!("security sign {keys} {keys}/enclaves/governance.xml");
    directory.write("keys/enclaves/governance.xml", &governance.replacen(">SIGN<", ">SIGNED<", 1));
    let text = refused(&sign, 1);
    let line = governance.lines().position(|line| line.contains(">SIGN<")).unwrap() + 1;
    let expected = format!("governance.xml: governance: line {line}: <rtps_protection_kind> is \"SIGNED\"");
    assert!(text.contains(&expected), "{text}");
    directory.write("keys/enclaves/governance.xml", &governance.replacen(">SIGN<", ">ENCRYPT<", 1));
    let (text, code) = findings(&keys, "");
    assert!(code == Some(0) && text.contains("governance.xml differs from"), "{text}");
    let text = done(&sign);
    assert!(text.ends_with("copied to 2 enclaves"), "{text}");
    assert_eq!(findings(&keys, ""), ("[]".to_owned(), Some(0)));
    let text = done(&format!("security explain {keys}/enclaves/talker --topic Square"));
    assert!(text.contains("rtps        ENCRYPT"), "{text}");
    // Permissions of another participant are not accepted.
    let permissions = directory.read("keys/enclaves/talker/permissions.xml");
    directory.write("keys/enclaves/talker/permissions.xml", &permissions.replace("CN=talker", "CN=bob"));
    let text = refused(&format!("security sign {keys} {keys}/enclaves/talker/permissions.xml"), 1);
    assert!(text.contains("no grant for \"CN=talker\""), "{text}");
    let text = refused(&format!("security grant {keys} talker --publish Circle"), 1);
    assert!(text.contains("permissions.xml: differs from the signed permissions.p7s"), "{text}");
    directory.write("empty.xml", "<dds><permissions></permissions></dds>");
    let text = refused(&format!("security sign {keys} {}", directory.text("empty.xml")), 1);
    assert!(text.contains("the element <grant> is missing"), "{text}");
}

#[test]
fn check_reports_every_kind_of_damage() {
    let other = keystore();
    let foreign = |name: &str| other.0.read(&format!("keys/enclaves/talker/{name}"));
    type Damage<'a> = &'a dyn Fn(&Directory, &Path);
    let damages: [(Damage<'_>, &str); 9] = [
        (&|_, talker| drop(fs::remove_file(talker.join("permissions.p7s"))), "permissions.p7s: No such file"),
        (&|_, talker| drop(fs::copy(talker.join("../listener/key.pem"), talker.join("key.pem"))), "does not belong"),
        (
            &|_, talker| fs::write(talker.join("cert.pem"), foreign("cert.pem")).unwrap(),
            "certificate of \\\"CN=talker\\\": ",
        ),
        (&|_, talker| fs::write(talker.join("governance.p7s"), foreign("governance.p7s")).unwrap(), "signature"),
        (
            &|_, talker| drop(fs::copy(talker.join("../listener/permissions.p7s"), talker.join("permissions.p7s"))),
            "permissions have no grant for",
        ),
        (
            &|_, talker| {
                let path = talker.join("permissions.p7s");
                fs::write(&path, fs::read_to_string(&path).unwrap().replace("Square", "Circle")).unwrap();
            },
            "signature",
        ),
        (
            &|_, talker| fs::set_permissions(talker.join("key.pem"), fs::Permissions::from_mode(0o644)).unwrap(),
            "chmod 600",
        ),
        (
            &|_, talker| fs::write(talker.join("identity_ca.cert.pem"), foreign("identity_ca.cert.pem")).unwrap(),
            "identity_ca.cert.pem differs from ",
        ),
        (
            &|directory, _| {
                let key = other.0.read("keys/private/identity_ca.key.pem");
                directory.write("keys/private/identity_ca.key.pem", &key);
            },
            "the private key does not belong to the certificate",
        ),
    ];
    for (number, (damage, expected)) in damages.into_iter().enumerate() {
        let (directory, keys) = keystore();
        damage(&directory, &directory.file("keys/enclaves/talker"));
        let (text, code) = findings(&keys, "");
        assert!(code == Some(1) && text.contains(expected), "damage {number}: {text}");
    }
    let (directory, keys) = keystore();
    directory.write("keys/enclaves/talker/cert.pem", "none");
    let (text, code) = findings(&keys, "");
    assert!(code == Some(1) && text.contains("talker --renew"), "{text}");
    done(&format!("security participant {keys} talker --renew"));
    assert_eq!(findings(&keys, ""), ("[]".to_owned(), Some(0)));
    directory.write("keys/private/permissions_ca.key.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
    let text = refused(&format!("security grant {keys} talker --publish Circle"), 1);
    assert!(text.contains("permissions_ca.key.pem: the private key is encrypted"), "{text}");
    let text = refused("security check nowhere", 2);
    assert!(text.contains("nowhere is not a keystore"), "{text}");
}

#[test]
fn expiry_is_a_warning_before_and_an_error_after_the_date() {
    let (_directory, keys) = keystore();
    done(&format!("security participant {keys} short --publish Square --days 5"));
    let (text, code) = findings(&keys, "--days 4");
    assert!(code == Some(0) && text == "[]", "{text}");
    let (text, code) = findings(&keys, "");
    assert!(code == Some(0) && text.contains("certificate of \\\"CN=short\\\" expires at"), "{text}");
    assert!(text.contains("takt security participant") && text.contains("short --renew"), "{text}");
    let (text, code) = findings(&keys, "--at 2100-01-01");
    assert!(code == Some(1) && text.contains("expired"), "{text}");
    let (publish, _, text) = explained(&format!("{keys}/enclaves/short"), "--topic Square");
    assert!(publish, "{text}");
    done(&format!("security participant {keys} short --renew"));
    assert_eq!(findings(&keys, ""), ("[]".to_owned(), Some(0)));
    assert!(explained(&format!("{keys}/enclaves/short"), "--topic Square").0, "rules stay");
    // Permissions that expire before their certificate are extended alone.
    done(&format!("security grant {keys} short --days 5"));
    let (text, code) = findings(&keys, "");
    assert!(code == Some(0) && text.contains("short --days 365") && !text.contains("--renew"), "{text}");
    done(&format!("security grant {keys} short --days 365"));
    assert_eq!(findings(&keys, ""), ("[]".to_owned(), Some(0)));
}

#[test]
fn revoked_participant_is_refused_until_it_is_renewed() {
    let (directory, keys) = keystore();
    let text = refused(&format!("security revoke {keys}"), 2);
    assert!(text.contains("no certificate is revoked"), "{text}");
    let text = done(&format!("security revoke {keys} talker --days 3"));
    assert!(text.contains("revoked \"CN=talker\"") && text.contains("crl.pem has 1 certificate"), "{text}");
    let talker = format!("{keys}/enclaves/talker");
    let (text, code) = findings(&talker, "");
    assert!(code == Some(1) && text.contains("revoked"), "{text}");
    let text = done(&format!("security explain {talker} --topic Square"));
    assert!(text.contains("authenticate  denied   certificate of \"CN=talker\": revoked"), "{text}");
    let (text, code) = findings(&keys, "");
    assert!(code == Some(0) && text.contains("its certificate is revoked"), "{text}");
    assert!(text.contains("revocation list of \\\"CN=Takt Identity CA\\\" expires at"), "{text}");
    done(&format!("security participant {keys} talker --renew"));
    let text = done(&format!("security revoke {keys}"));
    assert!(text.contains("crl.pem has 1 certificate,"), "{text}");
    assert_eq!(findings(&keys, ""), ("[]".to_owned(), Some(0)));
    fs::remove_file(directory.file("keys/enclaves/listener/crl.pem")).expect("it was written");
    let (text, code) = findings(&keys, "");
    assert!(code == Some(1) && text.contains("listener/crl.pem differs from "), "{text}");
}

#[test]
fn enclave_is_usable_without_its_keystore() {
    let (directory, keys) = keystore();
    fs::rename(format!("{keys}/enclaves/talker"), directory.file("deployed")).expect("it can be moved");
    let deployed = directory.text("deployed");
    assert_eq!(findings(&deployed, ""), ("[]".to_owned(), Some(0)));
    assert!(explained(&deployed, "--topic Square").0);
    fs::remove_file(directory.file("deployed/key.pem")).expect("it was written");
    let (text, code) = findings(&deployed, "");
    assert!(code == Some(1) && text.contains("copy it from there"), "{text}");
}

/// SROS2 has one authority for both purposes, and links to the common files.
#[test]
fn keystore_with_one_authority_and_links_is_accepted_with_a_warning() {
    let (directory, keys) = keystore();
    for (place, end) in [("public", "cert.pem"), ("private", "key.pem")] {
        let path = directory.file(&format!("keys/{place}/permissions_ca.{end}"));
        fs::remove_file(&path).expect("it was written");
        symlink(format!("identity_ca.{end}"), path).expect("a link");
    }
    done(&format!("security sign {keys} {keys}/enclaves/governance.xml"));
    done(&format!("security participant {keys} robot --publish Square"));
    let link = directory.file("keys/enclaves/robot/governance.p7s");
    fs::remove_file(&link).expect("it was written");
    symlink("../governance.p7s", link).expect("a link");
    let robot = format!("{keys}/enclaves/robot");
    let (text, code) = findings(&robot, "");
    assert!(code == Some(0) && text.contains("identities and permissions have the same authority"), "{text}");
    done(&format!("security grant {keys} robot --subscribe Circle"));
    assert!(explained(&robot, "--topic Circle").1);
}

/// Returns the file with the description of two executors that docs/guide/analysis.md shows under
/// "Protection".
fn protected_system(directory: &Directory) -> String {
    let page = include_str!("../../../../../docs/guide/analysis.md");
    let (_, section) = page.split_once("## Protection\n").expect("there is such a section");
    let (_, example) = section.split_once("```toml\n").expect("it has an example");
    let (example, _) = example.split_once("```").expect("it ends");
    // Measured times grow with other load of the machine.
    let example = example.replace("min_separation = \"1 ms\"", "min_separation = \"60 s\"");
    directory.write("system.toml", &example).display().to_string()
}

#[test]
fn measured_protection_is_included_in_the_bounds_and_the_certificate() {
    let directory = Directory::new("security-measure");
    let system = protected_system(&directory);
    for name in ["pub.json", "sub.json"] {
        let path = directory.path().join(name);
        let shown = done(&format!("security measure --each 1 --output {}", path.display()));
        assert_eq!(shown.lines().count(), 1 + 2 * 9 + 4 * 7, "{shown}");
        let file: Value = serde_json::from_str(&fs::read_to_string(&path).expect("it was written")).expect("JSON");
        let costs = file["costs"].as_array().expect("a list");
        assert_eq!(costs.len(), 2 * (2 * 9 + 4 * 7));
        for cost in costs {
            let [count, p50, max] = ["count", "p50_ns", "max_ns"].map(|key| cost[key].as_u64().expect("a number"));
            assert!(count >= 100 && p50 > 0 && p50 <= max, "{cost}");
        }
    }
    let analyzed: Value = serde_json::from_str(&done(&format!("analyze {system} --json"))).expect("JSON");
    let measured = analyzed["measured"].as_array().expect("a list");
    assert_eq!(measured.len(), 2, "{measured:?}");
    let added: u64 = measured
        .iter()
        .map(|time| {
            let max_ns = time["jobs"][0]["max_ns"].as_u64().expect("a number");
            (max_ns * time["margin_permille"].as_u64().expect("a number")).div_ceil(1_000)
        })
        .sum();
    assert_eq!(analyzed["flows"][0]["bound_ns"], 55_000 + added, "the declared times, and what protection adds");
    let certificate = directory.path().join("system.json").display().to_string();
    let shown = done(&format!("analyze {system} --certificate {certificate}"));
    assert!(shown.contains("seal data-encrypt of 64 octets and seal rtps-sign of 192 octets"), "{shown}");
    assert!(done(&format!("analyze --verify {certificate}")).starts_with("proven: 1 flows"));
}

#[test]
fn unmeasured_protection_is_refused() {
    let directory = Directory::new("security-unmeasured");
    let system = protected_system(&directory);
    let missing = refused(&format!("analyze {system}"), 2);
    assert!(missing.contains("pub.json"), "{missing}");
    for name in ["pub.json", "sub.json"] {
        let machine = r#"{"host": "h", "kernel": "k", "processor": "p"}"#;
        let text = format!(r#"{{"version": "1", "machine": {machine}, "costs": []}}"#);
        directory.write(name, &text);
    }
    let text = fs::read_to_string(&system).expect("it was written");
    for (find, replace, expected) in [
        ("", "", "seal data-encrypt of 64 octets: the largest measured size is 0"),
        ("data-encrypt", "data", "unknown protection \"data\"; expected data-sign, data-encrypt"),
        ("protection = \"pub.json\"", "", "executor \"pub\" has no `protection = FILE`"),
        ("time = \"20 us\"", "measured = \"transmit\"", "measured times already include seal and open"),
    ] {
        let file = directory.write("changed.toml", &text.replace(find, replace)).display().to_string();
        let error = refused(&format!("analyze {file}"), 2);
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

/// Returns the properties that name the files of an enclave.
fn properties(enclave: &Path) -> Vec<(&'static str, String)> {
    let files = [
        ("dds.sec.auth.identity_ca", "identity_ca.cert.pem"),
        ("dds.sec.auth.identity_certificate", "cert.pem"),
        ("dds.sec.auth.private_key", "key.pem"),
        ("dds.sec.access.permissions_ca", "permissions_ca.cert.pem"),
        ("dds.sec.access.governance", "governance.p7s"),
        ("dds.sec.access.permissions", "permissions.p7s"),
    ];
    files.map(|(name, file)| (name, format!("file:{}", enclave.join(file).display()))).to_vec()
}

/// Returns a profile with these properties in DDS-XML 1.0.
fn xml_profile(properties: &[(&str, String)]) -> String {
    let elements: String = properties
        .iter()
        .map(|(name, value)| format!("<element><name>{name}</name><value>{value}</value></element>"))
        .collect();
    format!(
        "<dds><qos_library name=\"L\"><qos_profile name=\"P\" is_default_qos=\"true\"><domain_participant_qos>\
         <property><value>{elements}</value></property></domain_participant_qos></qos_profile></qos_library></dds>"
    )
}

/// Returns a profile with these properties in TOML.
fn toml_profile(properties: &[(&str, String)]) -> String {
    let pairs = properties.iter().map(|(name, value)| format!("{{ name = {name:?}, value = {value:?} }}"));
    let pairs = pairs.collect::<Vec<_>>().join(", ");
    format!("[qos_library.L.P]\nis_default_qos = true\ndomain_participant_qos.property.value = [{pairs}]\n")
}

#[test]
fn properties_of_profiles_secure_participants() {
    let directory = Directory::new("security-profiles");
    let keys = directory.text("keys");
    done(&format!("security init {keys} --domain 226"));
    done(&format!("security participant {keys} talker --publish Square"));
    done(&format!("security participant {keys} listener --subscribe Square"));
    let of = |name: &str| properties(&directory.path().join("keys/enclaves").join(name));
    let talker = directory.write("talker.toml", &toml_profile(&of("talker"))).display().to_string();
    let listener = directory.write("listener.xml", &xml_profile(&of("listener"))).display().to_string();
    let place = "--interface lo --peer 127.0.0.1 --domain 226";
    let value = r#"{"color":"RED","x":3,"y":-4,"shapesize":5}"#;
    let publisher =
        Takt::start(&format!("pub Square {value} --type ShapeType --count 0 --rate 20 --config {talker} {place}"));
    let sample =
        Takt::start(&format!("sub Square --type ShapeType --json --count 1 --timeout 60 --config {listener} {place}"))
            .json();
    assert_eq!(sample["data"]["x"], 3, "{sample}");
    publisher.terminate();
    publisher.finish();

    let error = refused(&format!("pub Square {value} --type ShapeType --config {listener} {place}"), 1);
    assert!(error.contains("Square"), "the listener may not publish: {error}");
    let mut unknown = of("talker");
    unknown[5].0 = "dds.sec.access.permission";
    for text in [("unknown.toml", toml_profile(&unknown)), ("unknown.xml", xml_profile(&unknown))] {
        let file = directory.write(text.0, &text.1).display().to_string();
        let (_, error, code) = run(&format!("ls --wait 0.1 --config {file} {place}"));
        assert!(code != Some(0) && error.contains("dds.sec.access.permission"), "{error}");
    }
}
