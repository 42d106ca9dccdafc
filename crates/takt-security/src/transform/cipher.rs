//! AES in Galois/counter mode with the key of one session.

use openssl::cipher::{Cipher, CipherRef};
use openssl::cipher_ctx::CipherCtx;

use super::{Result, TransformError};
use crate::keys::{Key, TransformKind};

/// Octets of an authentication code.
pub(super) const CODE_LEN: usize = 16;
/// Session id and counter.
pub(super) const NONCE_LEN: usize = 12;

pub(super) type Code = [u8; CODE_LEN];
pub(super) type Nonce = [u8; NONCE_LEN];

/// A context that is keyed once; only the nonce changes afterwards, which takes no memory.
pub(super) struct SessionCipher(CipherCtx);

fn cipher(kind: TransformKind) -> &'static CipherRef {
    if kind.key_len() == 16 { Cipher::aes_128_gcm() } else { Cipher::aes_256_gcm() }
}

impl SessionCipher {
    pub(super) fn encrypting(kind: TransformKind, key: &Key) -> Result<Self> {
        let mut context = CipherCtx::new()?;
        context.encrypt_init(Some(cipher(kind)), Some(key.octets(kind)), None)?;
        Ok(Self(context))
    }

    pub(super) fn decrypting(kind: TransformKind, key: &Key) -> Result<Self> {
        let mut context = CipherCtx::new()?;
        context.decrypt_init(Some(cipher(kind)), Some(key.octets(kind)), None)?;
        Ok(Self(context))
    }

    /// The code of octets that stay as they are. Needs an encrypting context.
    pub(super) fn sign(&mut self, nonce: &Nonce, octets: &[u8]) -> Result<Code> {
        self.0.encrypt_init(None, None, Some(nonce))?;
        self.0.cipher_update(octets, None)?;
        self.code()
    }

    /// Encrypts in place. Needs an encrypting context.
    pub(super) fn encrypt(&mut self, nonce: &Nonce, octets: &mut [u8]) -> Result<Code> {
        self.0.encrypt_init(None, None, Some(nonce))?;
        let len = octets.len();
        self.0.cipher_update_inplace(octets, len)?;
        self.code()
    }

    fn code(&mut self) -> Result<Code> {
        self.0.cipher_final(&mut [])?;
        let mut code = [0; CODE_LEN];
        self.0.tag(&mut code)?;
        Ok(code)
    }

    /// Checks the code of octets in the clear. Needs a decrypting context.
    pub(super) fn verify(&mut self, nonce: &Nonce, octets: &[u8], code: &Code) -> Result<()> {
        self.0.decrypt_init(None, None, Some(nonce))?;
        self.0.cipher_update(octets, None)?;
        self.check(code)
    }

    /// Decrypts in place and checks the code. Needs a decrypting context.
    pub(super) fn decrypt(&mut self, nonce: &Nonce, octets: &mut [u8], code: &Code) -> Result<()> {
        self.0.decrypt_init(None, None, Some(nonce))?;
        let len = octets.len();
        self.0.cipher_update_inplace(octets, len)?;
        self.check(code)
    }

    fn check(&mut self, code: &Code) -> Result<()> {
        self.0.set_tag(code)?;
        self.0.cipher_final(&mut []).map(|_| ()).map_err(|_| TransformError::Authentication)
    }
}
