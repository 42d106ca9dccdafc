//! Master keys and their serialized form, `KeyMaterial_AES_GCM_GMAC` (DDS-SEC 1.1 §9.5.2.1.1).

use std::fmt;

use openssl::rand::rand_bytes;
use openssl::sha::Sha256;
use takt_wire::{Cursor, Endianness};

use crate::cdr::CdrWriter;
use crate::error::{ErrorKind, Result, SecurityError};

/// Length in octets of the longest key.
pub const KEY_LEN_MAX: usize = 32;

/// Maximum length in octets of key material of kind none.
const NONE_LEN_MAX: usize = 44;

/// Id of a key on the wire. The sender chooses it at random; zero means no key.
pub type KeyId = [u8; 4];

/// Cryptographic transformation for which a key is used (`CryptoTransformKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransformKind {
    /// No protection.
    None,
    /// Authentication with a 128-bit key.
    Aes128Gmac,
    /// Encryption with a 128-bit key.
    Aes128Gcm,
    /// Authentication with a 256-bit key.
    Aes256Gmac,
    /// Encryption with a 256-bit key.
    Aes256Gcm,
}

impl TransformKind {
    /// Kinds other than none.
    pub const PROTECTING: [Self; 4] = [Self::Aes128Gmac, Self::Aes128Gcm, Self::Aes256Gmac, Self::Aes256Gcm];

    /// Returns the four octets of the wire form.
    pub const fn to_octets(self) -> [u8; 4] {
        [0, 0, 0, self as u8]
    }

    /// Returns the kind of a wire form.
    pub const fn from_octets(octets: [u8; 4]) -> Option<Self> {
        match octets {
            [0, 0, 0, 0] => Some(Self::None),
            [0, 0, 0, 1] => Some(Self::Aes128Gmac),
            [0, 0, 0, 2] => Some(Self::Aes128Gcm),
            [0, 0, 0, 3] => Some(Self::Aes256Gmac),
            [0, 0, 0, 4] => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// Returns the key length in octets.
    pub const fn key_len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Aes128Gmac | Self::Aes128Gcm => 16,
            Self::Aes256Gmac | Self::Aes256Gcm => 32,
        }
    }

    /// Reports whether the kind encrypts.
    pub const fn is_encrypted(self) -> bool {
        matches!(self, Self::Aes128Gcm | Self::Aes256Gcm)
    }
}

/// Key octets, overwritten on drop.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key([u8; KEY_LEN_MAX]);

impl Key {
    pub(crate) fn new(octets: &[u8]) -> Self {
        let mut key = [0; KEY_LEN_MAX];
        key[..octets.len()].copy_from_slice(octets);
        Self(key)
    }

    pub(crate) fn random(len: usize) -> Result<Self> {
        let mut key = Self([0; KEY_LEN_MAX]);
        rand_bytes(&mut key.0[..len])?;
        Ok(key)
    }

    pub(crate) fn octets(&self, kind: TransformKind) -> &[u8] {
        &self.0[..kind.key_len()]
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.fill(0);
        // Prevents the compiler from eliding the write.
        std::hint::black_box(&self.0);
    }
}

/// Master key, with the receiver-specific key if origins are authenticated.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMaterial {
    pub(super) kind: TransformKind,
    pub(super) salt: Key,
    pub(super) sender_key_id: KeyId,
    pub(super) sender_key: Key,
    pub(super) receiver_key_id: KeyId,
    pub(super) receiver_key: Key,
}

impl KeyMaterial {
    /// Generates a random master key without a receiver-specific key.
    ///
    /// # Errors
    /// OpenSSL provides no random numbers.
    pub fn generate(kind: TransformKind) -> Result<Self> {
        let len = kind.key_len();
        let sender_key_id = if len == 0 { [0; 4] } else { random_key_id()? };
        Ok(Self {
            kind,
            salt: Key::random(len)?,
            sender_key_id,
            sender_key: Key::random(len)?,
            receiver_key_id: [0; 4],
            receiver_key: Key::new(&[]),
        })
    }

    /// Returns the same master key with a random receiver-specific key.
    ///
    /// # Errors
    /// OpenSSL provides no random numbers.
    pub fn for_receiver(&self) -> Result<Self> {
        let receiver_key = Key::random(self.kind.key_len())?;
        Ok(Self { receiver_key_id: random_key_id()?, receiver_key, ..self.clone() })
    }

    /// Returns the transformation for which the key is used.
    pub const fn kind(&self) -> TransformKind {
        self.kind
    }

    /// Returns the key id in the crypto header of messages protected by the key.
    pub const fn sender_key_id(&self) -> KeyId {
        self.sender_key_id
    }

    /// Returns a digest of the master key without its receiver-specific key. It outlives the key
    /// where a replay window does.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(&self.sender_key_id);
        digest.update(self.salt.octets(self.kind));
        digest.update(self.sender_key.octets(self.kind));
        digest.finish()
    }

    /// Returns the key id of the receiver-specific MAC, if there is one.
    pub fn receiver_key_id(&self) -> Option<KeyId> {
        (self.receiver_key_id != [0; 4]).then_some(self.receiver_key_id)
    }

    /// Parses the value of a key token.
    ///
    /// # Errors
    /// The kind is unknown, a key has the wrong length or is zero, or octets are missing or left
    /// over.
    pub fn parse(octets: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(octets, Endianness::Big);
        let kind_octets = cursor.array()?;
        let Some(kind) = TransformKind::from_octets(kind_octets) else {
            let reason = format!("key material with transformation kind {kind_octets:02x?}, expected 0 to 4");
            return Err(SecurityError::new(ErrorKind::Malformed, reason));
        };
        let salt = key(&mut cursor, kind.key_len())?;
        let sender_key_id = cursor.array()?;
        let sender_key = key(&mut cursor, kind.key_len())?;
        let receiver_key_id = cursor.array()?;
        let has_receiver = receiver_key_id != [0; 4];
        let receiver_key = key(&mut cursor, if has_receiver { kind.key_len() } else { 0 })?;
        // INTEROP(Fast DDS 2.9): material of kind none has 44 octets of zero instead of 24.
        let is_padded = kind == TransformKind::None
            && octets.len() <= NONE_LEN_MAX
            && cursor.rest().iter().all(|octet| *octet == 0);
        if !cursor.is_empty() && !is_padded {
            let reason = format!("key material with {} trailing octets", cursor.remaining());
            return Err(SecurityError::new(ErrorKind::Malformed, reason));
        }
        Ok(Self { kind, salt, sender_key_id, sender_key, receiver_key_id, receiver_key })
    }

    /// Serializes the value of a key token.
    pub fn to_octets(&self) -> Vec<u8> {
        let mut writer = CdrWriter::new(Endianness::Big);
        writer.raw(&self.kind.to_octets());
        writer.octet_sequence(self.salt.octets(self.kind));
        writer.raw(&self.sender_key_id);
        writer.octet_sequence(self.sender_key.octets(self.kind));
        writer.raw(&self.receiver_key_id);
        let has_receiver = self.receiver_key_id().is_some();
        writer.octet_sequence(if has_receiver { self.receiver_key.octets(self.kind) } else { &[] });
        writer.into_octets()
    }
}

impl fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyMaterial({:?}, {:02x?}, {:02x?})", self.kind, self.sender_key_id, self.receiver_key_id)
    }
}

fn random_key_id() -> Result<KeyId> {
    let mut id = [0; 4];
    while id == [0; 4] {
        rand_bytes(&mut id)?;
    }
    Ok(id)
}

fn key(cursor: &mut Cursor<'_>, len: usize) -> Result<Key> {
    let found = cursor.count(1)?;
    let octets = cursor.bytes(found)?;
    if found != len || (len > 0 && octets.iter().all(|octet| *octet == 0)) {
        let reason = format!("key of {found} octets, expected {len} that are not all zero");
        return Err(SecurityError::new(ErrorKind::Malformed, reason));
    }
    Ok(Key::new(octets))
}
