//! `takt security export`: the configuration with which an unchanged program of another vendor
//! loads an enclave.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use takt_bench::Result;
use takt_security::tools::escape;

use super::enclave::{
    CERTIFICATE, Enclave, GOVERNANCE, IDENTITY_CA, KEY, KEY_URI, PERMISSIONS, PERMISSIONS_CA, REVOCATION_LIST,
};
use super::files::read;
use super::refused;
use crate::output::out;

const EXAMPLES: &str = "\
Examples:
  takt security export keys/enclaves/listener --for cyclonedds
  takt security export keys/enclaves/listener --for fastdds
Write the output to a file, and set CYCLONEDDS_URI (file:///PATH) or FASTRTPS_DEFAULT_PROFILES_FILE (PATH) to it.";

/// Directory in which Debian installs the plugins of CycloneDDS, in a subdirectory for each
/// architecture.
const LIBRARIES: &str = "/usr/lib";
const PLUGINS: &str = "libddsc0debian";

/// `takt security export`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Export {
    /// Enclave of the participant
    #[arg(value_name = "ENCLAVE")]
    enclave: PathBuf,
    /// Product that reads the configuration
    #[arg(long = "for", value_enum, value_name = "VENDOR")]
    vendor: Vendor,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Vendor {
    /// CycloneDDS 0.10
    Cyclonedds,
    /// Fast DDS 2.9, for participants with the default profile
    Fastdds,
}

impl Export {
    /// Prints the configuration.
    ///
    /// # Errors
    /// The directory is no enclave.
    pub fn run(&self) -> Result<()> {
        let enclave = Enclave::at(&self.enclave).existing()?;
        let path = fs::canonicalize(enclave.path()).map_err(|why| refused(enclave.path(), why))?;
        let uri = enclave.file(KEY_URI);
        let key_uri = if uri.exists() { Some(String::from_utf8_lossy(&read(&uri)?).trim().to_owned()) } else { None };
        let has_revocation_list = enclave.file(REVOCATION_LIST).exists();
        let files = Files { path: &path, has_revocation_list, key_uri };
        match self.vendor {
            Vendor::Cyclonedds if files.key_uri.is_some() => {
                Err(refused(&uri, "CycloneDDS 0.10 reads private keys only from files"))
            }
            Vendor::Cyclonedds => out!("{}", cyclonedds(&files, &plugins(Path::new(LIBRARIES)))),
            Vendor::Fastdds => out!("{}", fast_dds(&files)),
        }
    }
}

struct Files<'a> {
    path: &'a Path,
    has_revocation_list: bool,
    /// URI of a private key in a token.
    key_uri: Option<String>,
}

impl Files<'_> {
    fn text(&self, file: &str) -> String {
        escape(&self.path.join(file).display().to_string())
    }
}

/// Returns the prefix of the plugin names: a directory, or an empty text if the loader finds them
/// without one.
fn plugins(libraries: &Path) -> String {
    let directories = fs::read_dir(libraries).into_iter().flatten().flatten();
    let mut found = directories.map(|entry| entry.path().join(PLUGINS)).filter(|path| path.is_dir());
    found.next().map_or_else(String::new, |path| format!("{}/lib", path.display()))
}

fn cyclonedds(files: &Files<'_>, plugins: &str) -> String {
    let library = |file: &str, name: &str| {
        let end = if plugins.is_empty() { "" } else { ".so" };
        format!(
            "        <Library path=\"{plugins}dds_security_{file}{end}\" initFunction=\"init_{name}\" \
             finalizeFunction=\"finalize_{name}\"/>\n"
        )
    };
    let element = |name: &str, file: &str| format!("        <{name}>file:{}</{name}>\n", files.text(file));
    let revoked = if files.has_revocation_list { element("CRL", REVOCATION_LIST) } else { String::new() };
    let authentication = [
        library("auth", "authentication"),
        element("IdentityCA", IDENTITY_CA),
        element("IdentityCertificate", CERTIFICATE),
        element("PrivateKey", KEY),
        revoked,
    ];
    let access_control = [
        library("ac", "access_control"),
        element("PermissionsCA", PERMISSIONS_CA),
        element("Governance", GOVERNANCE),
        element("Permissions", PERMISSIONS),
    ];
    format!(
        "<CycloneDDS>\n  <Domain>\n    <Security>\n\
         \x20     <Authentication>\n{}      </Authentication>\n\
         \x20     <AccessControl>\n{}      </AccessControl>\n\
         \x20     <Cryptographic>\n{}      </Cryptographic>\n\
         \x20   </Security>\n  </Domain>\n</CycloneDDS>\n",
        authentication.concat(),
        access_control.concat(),
        library("crypto", "crypto"),
    )
}

fn fast_dds(files: &Files<'_>) -> String {
    const AUTHENTICATION: &str = "dds.sec.auth.builtin.PKI-DH.";
    const ACCESS: &str = "dds.sec.access.builtin.Access-Permissions.";
    let property =
        |name: &str, value: &str| format!("          <property><name>{name}</name><value>{value}</value></property>\n");
    let file = |plugin: &str, name: &str, file: &str| {
        property(&format!("{plugin}{name}"), &format!("file://{}", files.text(file)))
    };
    let private_key = match &files.key_uri {
        Some(uri) => property(&format!("{AUTHENTICATION}private_key"), &escape(uri)),
        None => file(AUTHENTICATION, "private_key", KEY),
    };
    let revoked = match files.has_revocation_list {
        true => file(AUTHENTICATION, "identity_crl", REVOCATION_LIST),
        false => String::new(),
    };
    let properties = [
        property("dds.sec.auth.plugin", "builtin.PKI-DH"),
        file(AUTHENTICATION, "identity_ca", IDENTITY_CA),
        file(AUTHENTICATION, "identity_certificate", CERTIFICATE),
        private_key,
        revoked,
        property("dds.sec.access.plugin", "builtin.Access-Permissions"),
        file(ACCESS, "permissions_ca", PERMISSIONS_CA),
        file(ACCESS, "governance", GOVERNANCE),
        file(ACCESS, "permissions", PERMISSIONS),
        property("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC"),
    ];
    format!(
        "<profiles xmlns=\"http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles\">\n\
         \x20 <participant profile_name=\"secured\" is_default_profile=\"true\">\n    <rtps>\n\
         \x20     <propertiesPolicy>\n        <properties>\n{}        </properties>\n      </propertiesPolicy>\n\
         \x20   </rtps>\n  </participant>\n</profiles>\n",
        properties.concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files<'static> {
        Files { path: Path::new("/keys/a&b"), has_revocation_list: true, key_uri: None }
    }

    #[test]
    fn paths_are_escaped_and_a_revocation_list_is_named() {
        let cyclonedds = cyclonedds(&files(), "");
        assert!(cyclonedds.contains("path=\"dds_security_auth\" initFunction=\"init_authentication\""), "{cyclonedds}");
        assert!(cyclonedds.contains("<PrivateKey>file:/keys/a&amp;b/key.pem</PrivateKey>"), "{cyclonedds}");
        assert!(cyclonedds.contains("<CRL>file:/keys/a&amp;b/crl.pem</CRL>"), "{cyclonedds}");
        let fast_dds = fast_dds(&files());
        assert!(fast_dds.contains("identity_crl</name><value>file:///keys/a&amp;b/crl.pem</value>"), "{fast_dds}");
    }

    #[test]
    fn plugins_are_those_of_debian_or_left_to_the_loader() {
        let directory = takt_testkit::directory::Directory::new("plugins");
        assert_eq!(plugins(directory.path()), "");
        let of_debian = directory.path().join("some-linux-gnu").join(PLUGINS);
        fs::create_dir_all(&of_debian).unwrap();
        assert_eq!(plugins(directory.path()), format!("{}/lib", of_debian.display()));
    }
}
