//! Sender side of one master key: sessions, counters, and receiver-specific codes.

use openssl::rand::rand_bytes;

use super::cipher::{Code, SessionCipher};
use super::header::CryptoHeader;
use super::layout::{FOOTER_LEN, Form, RECEIVER_CODE_LEN, SUBMESSAGE_HEADER_LEN, be32, put_submessage_header};
use super::{Result, TransformError};
use crate::keys::{KeyId, KeyMaterial, TransformKind, session_key, session_receiver_key};

/// Default number of 16-octet blocks that one session key protects; see
/// [`Sealer::with_blocks_per_session`]. A message counts as at least one block.
pub const BLOCKS_PER_SESSION: u64 = 1 << 32;
/// Maximum number of receivers with receiver-specific codes: the footer must fit into a submessage.
pub const RECEIVERS_MAX: usize = 1_024;

const BLOCK_LEN: u64 = 16;

/// Receivers of a message, if origins are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receivers {
    /// All added receivers.
    All,
    /// Receiver with this key id; no code is written if it was not added.
    One(KeyId),
    /// No receivers: a receiver that requires a code refuses the message.
    None,
}

struct Session {
    id: [u8; 4],
    common: SessionCipher,
    /// Ciphers in the order of the sealer's receivers.
    receivers: Vec<SessionCipher>,
}

/// Sealer of content with one master key.
pub struct Sealer {
    material: KeyMaterial,
    receivers: Vec<KeyMaterial>,
    session: Session,
    /// Next session, if it was prepared.
    next: Option<Session>,
    /// Counter of the last message.
    counter: u64,
    blocks_left: u64,
    blocks_per_session: u64,
    sessions_left: u32,
}

impl Sealer {
    /// Creates a sealer in its first session. Session ids and counters start at random values,
    /// because the two directions of the volatile endpoints share one key.
    ///
    /// # Errors
    /// The material is of kind none, or OpenSSL fails.
    pub fn new(material: KeyMaterial) -> Result<Self> {
        if material.kind() == TransformKind::None {
            return Err(TransformError::Malformed("key material of kind none"));
        }
        let (mut id, mut counter) = ([0; 4], [0; 8]);
        rand_bytes(&mut id)?;
        rand_bytes(&mut counter)?;
        Ok(Self {
            session: Session::derive(&material, &[], id)?,
            material,
            receivers: Vec::new(),
            next: None,
            counter: u64::from_ne_bytes(counter),
            blocks_left: BLOCKS_PER_SESSION,
            blocks_per_session: BLOCKS_PER_SESSION,
            sessions_left: u32::MAX,
        })
    }

    /// Sets the number of blocks that one session key protects; at least 1.
    #[must_use]
    pub fn with_blocks_per_session(mut self, blocks: u64) -> Self {
        self.blocks_per_session = blocks.max(1);
        self.blocks_left = self.blocks_per_session;
        self
    }

    /// Returns the master key.
    pub const fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// Returns the id of the current session, by which reflected messages of this sealer are
    /// recognized.
    pub const fn session_id(&self) -> [u8; 4] {
        self.session.id
    }

    /// Adds a receiver with receiver-specific codes. `material` is the key material that was sent
    /// to it.
    ///
    /// # Errors
    /// The material has no receiver-specific key, there are too many receivers, or OpenSSL fails.
    pub fn add_receiver(&mut self, material: KeyMaterial) -> Result<()> {
        if material.receiver_key_id().is_none() || material.kind() != self.material.kind() {
            return Err(TransformError::Malformed("key material without the key of a receiver, or of another kind"));
        }
        if self.receivers.len() == RECEIVERS_MAX {
            return Err(TransformError::TooManyReceivers);
        }
        let cipher = Session::receiver(&material, self.session.id)?;
        if let Some(next) = &mut self.next {
            next.receivers.push(Session::receiver(&material, next.id)?);
        }
        self.session.receivers.push(cipher);
        self.receivers.push(material);
        Ok(())
    }

    /// Removes the receiver with this key id.
    pub fn remove_receiver(&mut self, key_id: KeyId) {
        if let Some(index) = self.position(key_id) {
            self.receivers.swap_remove(index);
            self.session.receivers.swap_remove(index);
            if let Some(next) = &mut self.next {
                next.receivers.swap_remove(index);
            }
        }
    }

    /// Returns the octets that this sealer needs after the plain octets for all of its receivers.
    pub fn tailroom(&self, form: Form) -> usize {
        form.tailroom(self.receivers.len())
    }

    /// Reports whether the session is nearly exhausted and the next one is not prepared.
    pub fn is_rollover_due(&self) -> bool {
        self.next.is_none() && self.blocks_left < self.blocks_per_session / 4
    }

    /// Derives the keys of the next session in advance. Otherwise the first message of the session
    /// derives them.
    ///
    /// # Errors
    /// Every session is exhausted, or OpenSSL fails.
    pub fn prepare_rollover(&mut self) -> Result<()> {
        if self.next.is_none() {
            self.next = Some(self.following()?);
        }
        Ok(())
    }

    fn following(&self) -> Result<Session> {
        if self.sessions_left == 0 {
            return Err(TransformError::KeyExhausted);
        }
        let id = u32::from_be_bytes(self.session.id).wrapping_add(1).to_be_bytes();
        Session::derive(&self.material, &self.receivers, id)
    }

    /// Returns the header of the next message of `len` octets, in a new session if the current one
    /// is exhausted.
    pub(super) fn begin(&mut self, len: usize) -> Result<CryptoHeader> {
        let blocks = (len as u64).div_ceil(BLOCK_LEN).max(1);
        if blocks > self.blocks_left && self.blocks_left < self.blocks_per_session {
            self.session = match self.next.take() {
                Some(next) => next,
                None => self.following()?,
            };
            self.sessions_left -= 1;
            self.blocks_left = self.blocks_per_session;
        }
        // A message with more blocks than a session permits uses up a whole session.
        self.blocks_left = self.blocks_left.saturating_sub(blocks);
        self.counter = self.counter.wrapping_add(1);
        let key_id = self.material.sender_key_id();
        Ok(CryptoHeader { kind: self.material.kind(), key_id, session_id: self.session.id, counter: self.counter })
    }

    /// Encrypts or signs the octets, depending on the kind of the key.
    pub(super) fn protect(&mut self, header: &CryptoHeader, octets: &mut [u8]) -> Result<Code> {
        let nonce = header.nonce();
        if header.kind.is_encrypted() {
            self.session.common.encrypt(&nonce, octets)
        } else {
            self.session.common.sign(&nonce, octets)
        }
    }

    /// Returns the length of the postfix submessage for these receivers.
    pub(super) fn postfix_len(&self, receivers: Receivers) -> usize {
        SUBMESSAGE_HEADER_LEN + FOOTER_LEN + self.selected(receivers).len() * RECEIVER_CODE_LEN
    }

    /// Writes the postfix submessage at the start of `at`, which has room for it.
    pub(super) fn put_postfix(
        &mut self,
        at: &mut [u8],
        id: u8,
        header: &CryptoHeader,
        code: Code,
        receivers: Receivers,
    ) -> Result<()> {
        let selected = self.selected(receivers);
        let codes_len = selected.len() * RECEIVER_CODE_LEN;
        put_submessage_header(at, id, FOOTER_LEN + codes_len);
        let footer = &mut at[SUBMESSAGE_HEADER_LEN..];
        put_footer(footer, code, selected.len());
        let codes = footer[FOOTER_LEN..].chunks_exact_mut(RECEIVER_CODE_LEN);
        let nonce = header.nonce();
        for (index, entry) in selected.zip(codes) {
            entry[..4].copy_from_slice(&self.receivers[index].receiver_key_id().unwrap_or_default());
            entry[4..].copy_from_slice(&self.session.receivers[index].sign(&nonce, &code)?);
        }
        Ok(())
    }

    fn selected(&self, receivers: Receivers) -> std::ops::Range<usize> {
        match receivers {
            Receivers::All => 0..self.receivers.len(),
            Receivers::One(key_id) => self.position(key_id).map_or(0..0, |index| index..index + 1),
            Receivers::None => 0..0,
        }
    }

    fn position(&self, key_id: KeyId) -> Option<usize> {
        self.receivers.iter().position(|receiver| receiver.receiver_key_id() == Some(key_id))
    }
}

/// Writes the common code and the count of receiver-specific codes.
pub(super) fn put_footer(at: &mut [u8], code: Code, receiver_count: usize) {
    let (common, count) = at[..FOOTER_LEN].split_at_mut(code.len());
    common.copy_from_slice(&code);
    count.copy_from_slice(&be32(receiver_count));
}

impl Session {
    fn derive(material: &KeyMaterial, receivers: &[KeyMaterial], id: [u8; 4]) -> Result<Self> {
        let common = SessionCipher::encrypting(material.kind(), &session_key(material, id)?)?;
        let receivers = receivers.iter().map(|receiver| Self::receiver(receiver, id)).collect::<Result<_>>()?;
        Ok(Self { id, common, receivers })
    }

    fn receiver(material: &KeyMaterial, id: [u8; 4]) -> Result<SessionCipher> {
        SessionCipher::encrypting(material.kind(), &session_receiver_key(material, id)?)
    }
}
