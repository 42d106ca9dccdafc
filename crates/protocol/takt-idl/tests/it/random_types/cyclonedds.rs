//! Bindings to CycloneDDS 0.10.2 for tests: its IDL compiler, and encoding and decoding by its
//! library.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use takt_testkit::{require, waiting};
use takt_xtypes::type_object::TypeInformation;

use crate::support::hex;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/random_types/cyclonedds.c");

/// Compiler and library, with a directory for their output.
pub struct CycloneDds {
    directory: PathBuf,
}

/// Type compiled by CycloneDDS.
pub struct PeerType {
    /// Type information; `None` if idlc generated none.
    pub information: Option<TypeInformation>,
    name: String,
}

/// Result of the library for a value.
pub struct Answer {
    pub little: Vec<u8>,
    pub big: Vec<u8>,
    pub key_hash: Vec<u8>,
}

impl CycloneDds {
    /// # Errors
    /// Fails with the name of a missing program.
    pub fn new(name: &str) -> Result<Self, String> {
        require::program("idlc")?;
        require::program("cc")?;
        require::file("/usr/include/dds/ddsi/ddsi_cdrstream.h")?;
        let directory = std::env::temp_dir().join(format!("takt-types-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the temporary directory can be written");
        let peer = Self { directory };
        let output = peer.run(Command::new("cc").args(["-O1", "-c", PROGRAM, "-o", "program.o"]));
        output.unwrap_or_else(|error| panic!("the program for CycloneDDS is not compiled: {error}"));
        Ok(peer)
    }

    /// Compiles the type with this name in a file. Type information of a recursive type is left
    /// out, since idlc allocates memory without limit for it.
    ///
    /// # Errors
    /// Fails with the output of idlc.
    pub fn compile(&self, text: &str, name: &str, is_recursive: bool) -> Result<PeerType, String> {
        std::fs::write(self.directory.join("types.idl"), text).expect("the directory is there");
        let leaves_out = is_recursive.then_some("-t");
        self.run(Command::new("idlc").args(leaves_out).args(["-f", "case-sensitive", "types.idl"]))?;
        let code = std::fs::read_to_string(self.directory.join("types.c")).expect("idlc writes it");
        let name = name.replace("::", "_");
        let start = format!("#define TYPE_INFO_CDR_{name} (unsigned char []){{");
        let information = code.split_once(&start).map(|(_, rest)| {
            let (bytes, _) = rest.split_once('}').expect("it ends");
            let digits: String = bytes.split("0x").skip(1).map(|byte| &byte[..2]).collect();
            TypeInformation::parse(&hex(&digits)).expect("type information")
        });
        Ok(PeerType { information, name })
    }

    /// Passes values to the library: XCDR version and little-endian body of each. Returns the
    /// lowest version that it supports for the type, and the results.
    ///
    /// # Errors
    /// Fails with the output of the C compiler, or the exit status of the program.
    pub fn values(&self, of: &PeerType, values: &[(u8, Vec<u8>)]) -> Result<(u8, Vec<Option<Answer>>), String> {
        let symbol = format!("-Wl,--defsym=topic_type={}_desc", of.name);
        self.run(Command::new("cc").args(["-O0", "types.c", "program.o", &symbol, "-o", "program", "-lddsc"]))?;
        let mut process = Command::new(self.directory.join("program"));
        let mut process =
            process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program is compiled");
        let mut input = process.stdin.take().expect("it is piped");
        let text: String = values.iter().map(|(version, body)| format!("{version} {}\n", to_hex(body))).collect();
        let writer = std::thread::spawn(move || {
            // If the program exits early, its error is reported later.
            let _ = input.write_all(text.as_bytes());
        });
        let output = process.wait_with_output().expect("it was started");
        waiting::join("values are written", writer);
        let text = String::from_utf8_lossy(&output.stdout);
        let answers: Vec<Option<Answer>> = text.lines().skip(1).map(answer).collect();
        if !output.status.success() || answers.len() != values.len() {
            return Err(format!("{} after {} values of {}", output.status, answers.len(), values.len()));
        }
        let lowest = text.lines().next().and_then(|line| line.parse().ok());
        Ok((lowest.expect("the program prints it"), answers))
    }

    fn run(&self, command: &mut Command) -> Result<String, String> {
        let output = waiting::output(command.current_dir(&self.directory).stdin(Stdio::null()));
        let output_text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let path = format!("{}/", self.directory.display());
        let output_text = output_text.replace(&path, "");
        if output.status.success() { Ok(output_text) } else { Err(format!("{}: {output_text}", output.status)) }
    }
}

impl Drop for CycloneDds {
    fn drop(&mut self) {
        // A file left in the temporary directory is no test failure.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn answer(line: &str) -> Option<Answer> {
    let fields: Vec<&str> = line.split(' ').collect();
    let bytes = |field: &str| if field == "-" { Vec::new() } else { hex(field) };
    match fields[..] {
        [little, big, key] => Some(Answer { little: bytes(little), big: bytes(big), key_hash: bytes(key) }),
        _ => None,
    }
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
