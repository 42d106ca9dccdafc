//! Properties `dds.sec.*` of a participant (DDS-SEC 1.1 §9.3.1, §9.4.1).

use std::path::{Path, PathBuf};

use super::SecurityConfig;
use crate::qos::Property;
use crate::{Error, Result};

const IDENTITY_CA: &str = "dds.sec.auth.identity_ca";
const CERTIFICATE: &str = "dds.sec.auth.identity_certificate";
const PRIVATE_KEY: &str = "dds.sec.auth.private_key";
const PASSWORD: &str = "dds.sec.auth.password";
const PERMISSIONS_CA: &str = "dds.sec.access.permissions_ca";
const GOVERNANCE: &str = "dds.sec.access.governance";
const PERMISSIONS: &str = "dds.sec.access.permissions";
/// Takt-specific: a revocation list. May occur several times.
const REVOCATION_LIST: &str = "dds.sec.auth.takt.crl";
/// Takt-specific: [`SecurityConfig::accepts_clear_discovery`], `true` or `false`.
const CLEAR_DISCOVERY: &str = "dds.sec.crypto.takt.accept_clear_discovery";
/// Takt-specific: [`SecurityConfig::has_replay_window`], `true` or `false`.
const REPLAY_WINDOW: &str = "dds.sec.crypto.takt.replay_window";

/// Takt-specific: [`SecurityConfig::distributes_log`], `true` or `false`.
const DISTRIBUTE_LOG: &str = "dds.sec.log.takt.distribute";

/// Prefix of all security properties.
const PREFIX: &str = "dds.sec.";

pub(super) fn read(properties: &Property) -> Result<Option<SecurityConfig>> {
    if !properties.entries.iter().any(|entry| entry.name.starts_with(PREFIX)) {
        return Ok(None);
    }
    let known = [
        IDENTITY_CA,
        CERTIFICATE,
        PRIVATE_KEY,
        PASSWORD,
        PERMISSIONS_CA,
        GOVERNANCE,
        PERMISSIONS,
        REVOCATION_LIST,
        CLEAR_DISCOVERY,
        REPLAY_WINDOW,
        DISTRIBUTE_LOG,
    ];
    let names = properties.entries.iter().map(|entry| entry.name.as_str());
    if let Some(name) = names.filter(|name| name.starts_with(PREFIX)).find(|name| !known.contains(name)) {
        let what = format!("property \"{name}\" is unknown; expected one of {}", known.join(", "));
        return Err(Error::bad_parameter(what));
    }
    let uri = |name: &str| {
        let missing = || Error::bad_parameter(format!("property \"{name}\" is missing; DDS Security needs it"));
        properties.get(name).ok_or_else(missing)
    };
    let value = |name: &str| super::uri::read(name, uri(name)?);
    let switch = |name: &str, default: bool| match properties.get(name) {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => {
            Err(Error::bad_parameter(format!("property \"{name}\" is \"{other}\"; expected \"true\" or \"false\"")))
        }
    };
    let lists = properties.entries.iter().filter(|entry| entry.name == REVOCATION_LIST);
    Ok(Some(SecurityConfig {
        identity_ca: value(IDENTITY_CA)?,
        certificate: value(CERTIFICATE)?,
        private_key: super::uri::read_key(PRIVATE_KEY, uri(PRIVATE_KEY)?)?,
        password: properties.get(PASSWORD).map(str::to_owned),
        permissions_ca: value(PERMISSIONS_CA)?,
        governance: value(GOVERNANCE)?,
        permissions: value(PERMISSIONS)?,
        revocation_lists: lists.map(|entry| super::uri::read(&entry.name, &entry.value)).collect::<Result<_>>()?,
        accepts_clear_discovery: switch(CLEAR_DISCOVERY, false)?,
        has_replay_window: switch(REPLAY_WINDOW, true)?,
        distributes_log: switch(DISTRIBUTE_LOG, false)?,
    }))
}

/// Returns the files that the properties name.
pub(super) fn files(properties: &Property) -> Vec<PathBuf> {
    let all = properties.entries.iter().filter(|entry| entry.name.starts_with(PREFIX));
    all.filter_map(|entry| super::uri::file(&entry.value).map(Path::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::PropertyEntry;

    fn properties(all: &[(&str, &str)]) -> Property {
        all.iter().map(|(name, value)| PropertyEntry::local(*name, *value)).collect()
    }

    const ALL: [(&str, &str); 7] = [
        (IDENTITY_CA, "data:,ca"),
        (CERTIFICATE, "data:,certificate"),
        (PRIVATE_KEY, "data:,key"),
        (PASSWORD, "secret"),
        (PERMISSIONS_CA, "data:,permissions ca"),
        (GOVERNANCE, "data:,governance"),
        (PERMISSIONS, "data:,permissions"),
    ];

    #[test]
    fn properties_configure_all_documents() {
        let config = read(&properties(&ALL)).expect("all is there").expect("there are some");
        assert_eq!((&config.identity_ca[..], &config.private_key[..]), (&b"ca"[..], &b"key"[..]));
        assert_eq!(config.password.as_deref(), Some("secret"));
        assert!(config.revocation_lists.is_empty());
        assert_eq!(read(&properties(&[("other", "data:,x")])).expect("none is needed"), None);
    }

    #[test]
    fn error_names_the_missing_property() {
        for left_out in [IDENTITY_CA, CERTIFICATE, PRIVATE_KEY, PERMISSIONS_CA, GOVERNANCE, PERMISSIONS] {
            let rest: Vec<_> = ALL.into_iter().filter(|(name, _)| *name != left_out).collect();
            let error = read(&properties(&rest)).expect_err("one is missing").to_string();
            assert!(error.contains(left_out), "{error}");
        }
    }

    #[test]
    fn switches_accept_only_true_or_false() {
        let with = |all: &[(&str, &str)]| read(&properties(&[&ALL[..], all].concat()));
        let switches = |all: &[(&str, &str)]| {
            let config = with(all).expect("all is there").expect("there are some");
            (config.accepts_clear_discovery, config.has_replay_window, config.distributes_log)
        };
        assert_eq!(switches(&[]), (false, true, false));
        assert_eq!(switches(&[(CLEAR_DISCOVERY, "true"), (REPLAY_WINDOW, "false")]), (true, false, false));
        assert_eq!(switches(&[(DISTRIBUTE_LOG, "true")]), (false, true, true));
        let error = with(&[(CLEAR_DISCOVERY, "yes")]).expect_err("neither").to_string();
        assert!(error.contains(CLEAR_DISCOVERY) && error.contains("\"yes\""), "{error}");
    }

    #[test]
    fn misspelled_property_is_an_error() {
        let mut all = ALL.to_vec();
        all.push(("dds.sec.auth.identity", "data:,x"));
        let error = read(&properties(&all)).expect_err("the property is unknown").to_string();
        assert!(error.contains("\"dds.sec.auth.identity\" is unknown"), "{error}");
    }
}
