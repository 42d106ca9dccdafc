//! AES in Galois/Counter Mode (GCM) with the key of one session.
//!
//! `ring` encrypts and decrypts, since a call takes a third of the time of the same call to OpenSSL
//! for a short message. OpenSSL computes the authentication code (GMAC) of long plain octets:
//! `ring` processes additional data block by block.

use openssl::cipher::{Cipher, CipherRef};
use openssl::cipher_ctx::CipherCtx;
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, UnboundKey};

use super::{Result, TransformError};
use crate::keys::{Key, TransformKind};

/// Length in octets of an authentication code.
pub(super) const CODE_LEN: usize = 16;
/// Length in octets of a nonce: session id and counter.
pub(super) const NONCE_LEN: usize = 12;

/// Number of octets from which on OpenSSL computes the code of authenticated plain octets.
const LONG: usize = 512;

pub(super) type Code = [u8; CODE_LEN];
pub(super) type Nonce = [u8; NONCE_LEN];

/// Cipher contexts that are keyed once. Later only the nonce changes, which allocates no memory.
pub(super) struct SessionCipher {
    key: LessSafeKey,
    long: CipherCtx,
}

impl SessionCipher {
    pub(super) fn encrypting(kind: TransformKind, key: &Key) -> Result<Self> {
        let mut long = CipherCtx::new()?;
        long.encrypt_init(Some(openssl_cipher(kind)), Some(key.octets(kind)), None)?;
        Self::with(kind, key, long)
    }

    pub(super) fn decrypting(kind: TransformKind, key: &Key) -> Result<Self> {
        let mut long = CipherCtx::new()?;
        long.decrypt_init(Some(openssl_cipher(kind)), Some(key.octets(kind)), None)?;
        Self::with(kind, key, long)
    }

    fn with(kind: TransformKind, key: &Key, long: CipherCtx) -> Result<Self> {
        let algorithm = if kind.key_len() == 16 { &AES_128_GCM } else { &AES_256_GCM };
        let key = UnboundKey::new(algorithm, key.octets(kind)).map_err(|_| TransformError::Library)?;
        Ok(Self { key: LessSafeKey::new(key), long })
    }

    /// Computes the authentication code of plain octets. Requires an encrypting context.
    pub(super) fn sign(&mut self, nonce: &Nonce, octets: &[u8]) -> Result<Code> {
        if octets.len() < LONG {
            return self.seal(nonce, octets, &mut []);
        }
        self.long.encrypt_init(None, None, Some(nonce))?;
        self.long.cipher_update(octets, None)?;
        self.long.cipher_final(&mut [])?;
        let mut code = [0; CODE_LEN];
        self.long.tag(&mut code)?;
        Ok(code)
    }

    /// Encrypts in place.
    pub(super) fn encrypt(&mut self, nonce: &Nonce, octets: &mut [u8]) -> Result<Code> {
        self.seal(nonce, &[], octets)
    }

    fn seal(&self, nonce: &Nonce, clear: &[u8], octets: &mut [u8]) -> Result<Code> {
        let sealed = self.key.seal_in_place_separate_tag(ring_nonce(nonce), Aad::from(clear), octets);
        let code = sealed.map_err(|_| TransformError::Library)?;
        code.as_ref().try_into().map_err(|_| TransformError::Library)
    }

    /// Verifies the code of plain octets. Requires a decrypting context.
    pub(super) fn verify(&mut self, nonce: &Nonce, octets: &[u8], code: &Code) -> Result<()> {
        if octets.len() < LONG {
            return self.open(nonce, octets, &mut [], code);
        }
        self.long.decrypt_init(None, None, Some(nonce))?;
        self.long.cipher_update(octets, None)?;
        self.long.set_tag(code)?;
        self.long.cipher_final(&mut []).map(|_| ()).map_err(|_| TransformError::Authentication)
    }

    /// Decrypts into memory of the same length and verifies the code. If the code is wrong, the
    /// content of the memory is undefined.
    pub(super) fn decrypt(&mut self, nonce: &Nonce, octets: &[u8], code: &Code, memory: &mut [u8]) -> Result<()> {
        memory.copy_from_slice(octets);
        self.open(nonce, &[], memory, code)
    }

    fn open(&self, nonce: &Nonce, clear: &[u8], octets: &mut [u8], code: &Code) -> Result<()> {
        let code = (*code).into();
        let opened = self.key.open_in_place_separate_tag(ring_nonce(nonce), Aad::from(clear), code, octets, 0..);
        opened.map(|_| ()).map_err(|_| TransformError::Authentication)
    }
}

fn openssl_cipher(kind: TransformKind) -> &'static CipherRef {
    if kind.key_len() == 16 { Cipher::aes_128_gcm() } else { Cipher::aes_256_gcm() }
}

fn ring_nonce(nonce: &Nonce) -> ring::aead::Nonce {
    ring::aead::Nonce::assume_unique_for_key(*nonce)
}
