//! `takt security revoke`: writes a revocation list of the identity CA to the keystore and to each
//! enclave.

use std::path::PathBuf;

use clap::Args;
use takt_bench::{Error, Result};
use takt_security::documents::format_date_time;
use takt_security::identity::Certificate;

use super::enclave::{CERTIFICATE, IDENTITY_CA, REVOCATION_LIST};
use super::failed;
use super::files::{Readers, make_directory, read, write};
use super::keystore::{Keystore, parse_name};
use super::time::{DAYS_MAX, days, validity};
use crate::finding::count;
use crate::output::outln;

const EXAMPLES: &str = "\
Examples:
  takt security revoke keys talker
  takt security revoke keys talker listener
  takt security revoke keys --days 90      renews the list with another validity

Each participant reads crl.pem of its enclave: copy it to all hosts. After the list has expired, participants refuse all
certificates of the identity CA. takt security participant DIR NAME --renew replaces a revoked certificate.";

/// Octets of a fingerprint in a file name.
const NAME_OCTETS: usize = 8;

/// `takt security revoke`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Revoke {
    /// Directory of the keystore
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Names of enclaves [default: renew the list with the already revoked certificates]
    #[arg(value_name = "NAME", value_parser = parse_name)]
    names: Vec<String>,
    /// Validity of the list in days [default: that of the identity CA]
    #[arg(long, value_name = "DAYS", value_parser = days())]
    days: Option<u32>,
}

impl Revoke {
    /// Revokes the certificates.
    ///
    /// # Errors
    /// An enclave does not exist, there is nothing to revoke, the private key is missing, or a file
    /// cannot be written.
    pub fn run(&self) -> Result<()> {
        let keystore = Keystore::existing(&self.directory)?;
        let issuer = keystore.identity_issuer()?;
        let mut certificates = keystore.revoked_certificates()?;
        let mut added = Vec::new();
        for name in &self.names {
            let enclave = keystore.enclave(name).existing()?;
            let pem = read(&enclave.file(CERTIFICATE))?;
            let certificate = enclave.certificate()?;
            if !certificates.contains(&pem) {
                let path = keystore.revoked().join(file_name(&certificate.fingerprint().map_err(failed)?));
                added.push((path, certificate));
                certificates.push(pem);
            }
        }
        if certificates.is_empty() {
            return Err(Error::Usage("no certificate is revoked yet; name at least one enclave".to_owned()));
        }
        let authority = Certificate::from_pem(&read(&keystore.public(IDENTITY_CA))?).map_err(failed)?;
        let mut validity = validity(self.days.unwrap_or(DAYS_MAX));
        validity.not_after = validity.not_after.min(authority.not_after());
        let all: Vec<&[u8]> = certificates.iter().map(Vec::as_slice).collect();
        let list = issuer.revoke(&all, validity).map_err(failed)?;
        make_directory(&keystore.revoked(), Readers::All)?;
        added.iter().try_for_each(|(path, certificate)| write(path, certificate.pem(), Readers::All))?;
        write(&keystore.public(REVOCATION_LIST), &list, Readers::All)?;
        let enclaves = keystore.all_enclaves()?;
        enclaves.iter().try_for_each(|enclave| keystore.copy_common_files(enclave))?;
        added.iter().try_for_each(|(_, certificate)| outln!("revoked \"{}\"", certificate.subject()))?;
        let until = format_date_time(validity.not_after);
        outln!("{REVOCATION_LIST} has {}, valid until {until}", count(all.len(), "certificate"))?;
        outln!("  copied to {}; copy it to the hosts of all participants", count(enclaves.len(), "enclave"))
    }
}

fn file_name(fingerprint: &[u8; 32]) -> String {
    let digits: String = fingerprint[..NAME_OCTETS].iter().map(|octet| format!("{octet:02x}")).collect();
    digits + ".cert.pem"
}
