//! The receiver's side of one remote master key.
//!
//! It knows two sessions, the current one and the one before: messages of both may arrive while
//! the sender changes over. A session that is not known is derived, and becomes known when a
//! message of it is authentic. A forged session id costs one derivation and one code.

use std::ops::Range;

use super::cipher::SessionCipher;
use super::header::CryptoHeader;
use super::layout::Postfix;
use super::replay::ReplayWindow;
use super::{Result, TransformError};
use crate::keys::{KeyMaterial, TransformKind, session_key, session_receiver_key};

/// Plain octets inside a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Where they stand.
    pub plain: Range<usize>,
    /// Where the protected octets ended.
    pub end: usize,
}

struct Session {
    id: [u8; 4],
    common: SessionCipher,
    receiver: Option<SessionCipher>,
    window: ReplayWindow,
}

/// Opens what one master key protects.
pub struct Opener {
    material: KeyMaterial,
    /// The latest first.
    sessions: [Option<Session>; 2],
    has_window: bool,
}

/// What was found in front of and behind protected octets.
pub(super) struct Protection<'a> {
    pub(super) header: CryptoHeader,
    pub(super) code: super::cipher::Code,
    /// Codes for receivers, which payloads do not have.
    pub(super) postfix: Option<Postfix<'a>>,
}

impl Opener {
    /// An opener for the material in a key token.
    ///
    /// # Errors
    /// The material is of kind none.
    pub fn new(material: KeyMaterial) -> Result<Self> {
        if material.kind() == TransformKind::None {
            return Err(TransformError::Malformed("key material of kind none"));
        }
        Ok(Self { material, sessions: [None, None], has_window: false })
    }

    /// Refuses submessages and messages that were seen before; for senders that count.
    #[must_use]
    pub fn with_replay_window(mut self) -> Self {
        self.has_window = true;
        self
    }

    /// The master key.
    pub const fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// Checks and opens `content`, which stays in its place. It is as it was after an error that
    /// says that the key does not fit: [`TransformError::WrongKey`] and
    /// [`TransformError::ReceiverCode`]. The plain content has to pass `check` as well; what does not
    /// leaves the replay window as it was.
    pub(super) fn open(
        &mut self,
        protection: &Protection<'_>,
        content: &mut [u8],
        check: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let header = &protection.header;
        if header.kind != self.material.kind() || header.key_id != self.material.sender_key_id() {
            return Err(TransformError::WrongKey);
        }
        let receiver_code = self.receiver_code(protection)?;
        match self.known(header.session_id) {
            Some(session) => {
                let has_window = self.has_window;
                let session = self.sessions[session].as_mut().ok_or(TransformError::Library)?;
                session.open(protection, receiver_code, content)?;
                check(content)?;
                session.accept(has_window && protection.postfix.is_some(), header.counter)
            }
            None => self.open_in_new_session(protection, receiver_code, content, check),
        }
    }

    fn known(&self, id: [u8; 4]) -> Option<usize> {
        self.sessions.iter().position(|session| session.as_ref().is_some_and(|session| session.id == id))
    }

    fn open_in_new_session(
        &mut self,
        protection: &Protection<'_>,
        receiver_code: Option<super::cipher::Code>,
        content: &mut [u8],
        check: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let id = protection.header.session_id;
        let is_newer = self.sessions[0]
            .as_ref()
            .is_none_or(|current| u32::from_be_bytes(id).wrapping_sub(u32::from_be_bytes(current.id)) < 1 << 31);
        let is_payload = protection.postfix.is_none();
        // Otherwise the messages of sessions that were forgotten could be repeated. A payload may
        // be old: it is protected once, and sent again when a reader asks for it.
        if self.has_window && !is_newer && !is_payload {
            return Err(TransformError::Replay);
        }
        let mut session = Session::derive(&self.material, id)?;
        session.open(protection, receiver_code, content)?;
        check(content)?;
        session.accept(self.has_window && !is_payload, protection.header.counter)?;
        if is_newer || !self.has_window {
            self.sessions.swap(0, 1);
            self.sessions[0] = Some(session);
        }
        Ok(())
    }

    /// The code for this receiver, if the material has a key for it.
    fn receiver_code(&self, protection: &Protection<'_>) -> Result<Option<super::cipher::Code>> {
        match (self.material.receiver_key_id(), &protection.postfix) {
            (Some(key_id), Some(postfix)) => {
                postfix.receiver_code(key_id).map(Some).ok_or(TransformError::ReceiverCode)
            }
            _ => Ok(None),
        }
    }
}

impl Session {
    fn derive(material: &KeyMaterial, id: [u8; 4]) -> Result<Self> {
        let kind = material.kind();
        let common = SessionCipher::decrypting(kind, &session_key(material, id)?)?;
        let receiver = match material.receiver_key_id() {
            Some(_) => Some(SessionCipher::decrypting(kind, &session_receiver_key(material, id)?)?),
            None => None,
        };
        Ok(Self { id, common, receiver, window: ReplayWindow::default() })
    }

    fn open(
        &mut self,
        protection: &Protection<'_>,
        receiver_code: Option<super::cipher::Code>,
        content: &mut [u8],
    ) -> Result<()> {
        let nonce = protection.header.nonce();
        if let (Some(receiver), Some(code)) = (&mut self.receiver, receiver_code) {
            let checked = receiver.verify(&nonce, &protection.code, &code);
            checked.map_err(|_| TransformError::ReceiverCode)?;
        }
        if protection.header.kind.is_encrypted() {
            self.common.decrypt(&nonce, content, &protection.code)
        } else {
            self.common.verify(&nonce, content, &protection.code)
        }
    }

    fn accept(&mut self, has_window: bool, counter: u64) -> Result<()> {
        if has_window && !self.window.accept(counter) {
            return Err(TransformError::Replay);
        }
        Ok(())
    }
}
