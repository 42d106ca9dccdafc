//! Comparison with the CycloneDDS compiler, if installed: type identifiers of the same file are
//! equal.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use takt_testkit::not_run;
use takt_xtypes::type_object::TypeInformation;

use crate::support::{hex, information};

const TEXT: &str = include_str!("../idl/vehicle.idl");
const NAMES: [&str; 7] = [
    "fleet::ByName",
    "fleet::Limited",
    "fleet::Header",
    "fleet::Vehicle",
    "fleet::Hashed",
    "fleet::Selected",
    "fleet::Truck",
];

/// Compiles a file with idlc; returns `None` without idlc. INTEROP(CycloneDDS 0.10.2): idlc does
/// not terminate on a recursive struct, so the file has none.
fn through_idlc() -> Option<String> {
    let directory: PathBuf = std::env::temp_dir().join(format!("takt-idl-{}-idlc", std::process::id()));
    std::fs::create_dir_all(&directory).expect("the temporary directory can be written");
    std::fs::write(directory.join("vehicle.idl"), TEXT).expect("the directory is there");
    let mut command = Command::new("idlc");
    let output = match command.current_dir(&directory).arg("vehicle.idl").stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("idlc: {error}"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let code = std::fs::read_to_string(directory.join("vehicle.c")).expect("idlc writes it");
    // A file left in the temporary directory is no test failure.
    let _ = std::fs::remove_dir_all(&directory);
    Some(code)
}

#[test]
fn cyclonedds_compiler_generates_the_same_types() {
    let Some(code) = through_idlc() else { return not_run("idlc of CycloneDDS is not installed") };
    for name in NAMES {
        let start = format!("#define TYPE_INFO_CDR_{} (unsigned char []){{", name.replace("::", "_"));
        let (_, rest) = code.split_once(&start).unwrap_or_else(|| panic!("no {start} in\n{code}"));
        let (bytes, _) = rest.split_once('}').expect("it ends");
        let digits: String = bytes.split("0x").skip(1).map(|byte| &byte[..2]).collect();
        let theirs = TypeInformation::parse(&hex(&digits)).expect("type information");
        let ours = information(TEXT, name);
        assert_eq!(ours.minimal.type_id, theirs.minimal.type_id, "minimal form of {name}");
        assert_eq!(ours.complete.type_id, theirs.complete.type_id, "complete form of {name}");
    }
}
