//! Private keys in a hardware token, accessed by PKCS#11 and named by a URI (RFC 7512).
//!
//! This module is the only one of the crate that does I/O: it loads the PKCS#11 library of the
//! token and calls it. Signing takes as long as the token needs, and blocks the handshake.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error as TokenError, RvError};
use cryptoki::mechanism::rsa::{PkcsMgfType, PkcsPssParams};
use cryptoki::mechanism::{Mechanism, MechanismType};
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::Slot;
use openssl::bn::BigNum;
use openssl::ecdsa::EcdsaSig;
use openssl::sha::sha256;

use super::KeyAlgorithm;
use super::uri::KeyUri;
use crate::error::{ErrorKind, Result, SecurityError};

/// Library used if neither the URI nor the environment names one: p11-kit, which finds the modules
/// configured on the system.
const MODULE: &str = "p11-kit-proxy.so";
/// Environment variable that names the library.
const MODULE_VARIABLE: &str = "PKCS11_MODULE_PATH";
/// Length in octets of one integer (r or s) of a P-256 signature.
const EC_PART_LEN: usize = 32;
/// Length in octets of the RSASSA-PSS salt: that of the digest (DDS-SEC 1.1 §9.3.2.5).
const SALT_LEN: u64 = 32;

/// Opened libraries by path. Each is opened once per process.
static MODULES: Mutex<Option<HashMap<PathBuf, Pkcs11>>> = Mutex::new(None);

/// Private key in a token.
pub(super) struct HardwareKey {
    /// Session with the token. The lock permits one signature at a time.
    session: Mutex<Session>,
    key: ObjectHandle,
    algorithm: KeyAlgorithm,
}

fn refused(reason: impl Into<String>) -> SecurityError {
    SecurityError::new(ErrorKind::Certificate, reason)
}

fn failed(what: &str) -> impl FnOnce(TokenError) -> SecurityError {
    move |cause| refused(format!("PKCS#11: {what}: {cause}"))
}

impl HardwareKey {
    /// Opens the key that a URI names. The PIN is taken from the URI, otherwise from `password`.
    ///
    /// # Errors
    /// The URI is malformed, the library cannot be loaded, no token or key matches or several do,
    /// or the PIN is refused.
    pub(super) fn open(uri: &str, password: Option<&str>) -> Result<Self> {
        let uri = KeyUri::parse(uri)?;
        let module = module(uri.module.clone())?;
        let slot = slot(&module, &uri)?;
        let session = module.open_ro_session(slot).map_err(failed("open a session"))?;
        if let Some(pin) = uri.pin()?.or_else(|| password.map(str::to_owned)) {
            match session.login(UserType::User, Some(&pin.into())) {
                Ok(()) | Err(TokenError::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => {}
                Err(cause) => return Err(failed("log in")(cause)),
            }
        }
        let key = find(&session, &uri)?;
        let algorithm = algorithm(&session, key)?;
        Ok(Self { session: Mutex::new(session), key, algorithm })
    }

    pub(super) const fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// Signs with RSASSA-PSS or ECDSA, with SHA-256, in the encoding of X.509.
    pub(super) fn sign(&self, octets: &[u8]) -> Result<Vec<u8>> {
        let digest = sha256(octets);
        let mechanism = match self.algorithm {
            KeyAlgorithm::EcP256 => Mechanism::Ecdsa,
            KeyAlgorithm::Rsa2048 => Mechanism::RsaPkcsPss(PkcsPssParams {
                hash_alg: MechanismType::SHA256,
                mgf: PkcsMgfType::MGF1_SHA256,
                s_len: SALT_LEN.into(),
            }),
        };
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let signature = session.sign(&mechanism, self.key, &digest).map_err(failed("sign"))?;
        match self.algorithm {
            KeyAlgorithm::Rsa2048 => Ok(signature),
            KeyAlgorithm::EcP256 => der(&signature),
        }
    }
}

/// Encodes an ECDSA signature, two integers of equal length, in DER.
fn der(signature: &[u8]) -> Result<Vec<u8>> {
    if signature.len() != 2 * EC_PART_LEN {
        return Err(refused(format!(
            "PKCS#11: a signature of {} octets, expected {}",
            signature.len(),
            2 * EC_PART_LEN
        )));
    }
    let (r, s) = signature.split_at(EC_PART_LEN);
    let (r, s) = (BigNum::from_slice(r)?, BigNum::from_slice(s)?);
    Ok(EcdsaSig::from_private_components(r, s)?.to_der()?)
}

fn module(named: Option<PathBuf>) -> Result<Pkcs11> {
    let of_environment = || std::env::var_os(MODULE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let path = named.or_else(of_environment).unwrap_or_else(|| MODULE.into());
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    let modules = modules.get_or_insert_default();
    if let Some(module) = modules.get(&path) {
        return Ok(module.clone());
    }
    let load = || {
        let module = Pkcs11::new(&path)?;
        match module.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
            Ok(()) | Err(TokenError::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => Ok(module),
            Err(cause) => Err(cause),
        }
    };
    let module = load().map_err(failed(&format!("load {}", path.display())))?;
    modules.insert(path, module.clone());
    Ok(module)
}

/// Returns the slot of the only token that matches the URI.
fn slot(module: &Pkcs11, uri: &KeyUri) -> Result<Slot> {
    let mut labels = Vec::new();
    let mut fitting = Vec::new();
    for slot in module.get_slots_with_initialized_token().map_err(failed("list tokens"))? {
        let info = module.get_token_info(slot).map_err(failed("ask a token"))?;
        labels.push(info.label().to_owned());
        let is_label = uri.token.as_deref().is_none_or(|label| label == info.label());
        let is_serial = uri.serial.as_deref().is_none_or(|serial| serial == info.serial_number());
        if is_label && is_serial {
            fitting.push(slot);
        }
    }
    match fitting[..] {
        [slot] => Ok(slot),
        [] => Err(refused(format!("PKCS#11: no token matches; available tokens: {labels:?}"))),
        _ => Err(refused(format!("PKCS#11: several tokens match; select one of {labels:?} by token= and serial="))),
    }
}

/// Returns the only private key that matches the URI.
fn find(session: &Session, uri: &KeyUri) -> Result<ObjectHandle> {
    let mut wanted = vec![Attribute::Class(ObjectClass::PRIVATE_KEY)];
    wanted.extend(uri.object.as_ref().map(|label| Attribute::Label(label.clone().into_bytes())));
    wanted.extend(uri.id.clone().map(Attribute::Id));
    let found = session.find_objects(&wanted).map_err(failed("find the key"))?;
    match found[..] {
        [key] => Ok(key),
        [] => Err(refused("PKCS#11: no such private key is visible in the token; it may need a PIN")),
        _ => Err(refused("PKCS#11: several private keys match; select one by object= or id=")),
    }
}

fn algorithm(session: &Session, key: ObjectHandle) -> Result<KeyAlgorithm> {
    let attributes = session.get_attributes(key, &[AttributeType::KeyType]).map_err(failed("get the key type"))?;
    match attributes.first() {
        Some(Attribute::KeyType(KeyType::EC)) => Ok(KeyAlgorithm::EcP256),
        Some(Attribute::KeyType(KeyType::RSA)) => Ok(KeyAlgorithm::Rsa2048),
        other => Err(refused(format!("PKCS#11: key of type {other:?}, expected RSA or EC"))),
    }
}
