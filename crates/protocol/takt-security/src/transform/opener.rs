//! Receiver side of one remote master key.
//!
//! An opener stores two sessions of each series, the current and the previous one: messages of both
//! may arrive while the sender changes sessions. An unknown session is derived, and stored when one
//! of its messages is authentic. A forged session id costs one derivation and one code
//! verification.

use std::cmp::Ordering;
use std::ops::Range;

use super::cipher::SessionCipher;
use super::header::CryptoHeader;
use super::layout::Postfix;
use super::replay::ReplayWindow;
use super::{Result, TransformError};
use crate::keys::{KeyMaterial, TransformKind, session_key, session_receiver_key};

/// Location of plain octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Whether the plain octets are in the memory given for decryption. Octets that are only signed
    /// stay in the message.
    pub(super) is_decrypted: bool,
    /// Range in that memory or in the message.
    pub(super) plain: Range<usize>,
    /// End of the protected octets.
    pub end: usize,
}

impl Opened {
    /// Returns the plain octets from the two buffers that were passed to the opener.
    pub fn plain<'a>(&self, protected: &'a [u8], memory: &'a [u8]) -> &'a [u8] {
        let octets = if self.is_decrypted { memory } else { protected };
        &octets[self.plain.clone()]
    }
}

struct Session {
    id: [u8; 4],
    common: SessionCipher,
    receiver: Option<SessionCipher>,
    window: ReplayWindow,
}

/// Treatment of replayed content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replays {
    /// Replayed content is opened again. For senders whose counters do not increase.
    Accepted,
    /// Replayed content is refused. The sender uses one session after another.
    Refused,
    /// Replayed content is refused. The sender uses two series of sessions with random initial ids.
    ///
    /// INTEROP(CycloneDDS 0.10): the writer and the reader of the volatile endpoints share one key,
    /// but have separate sessions.
    RefusedInTwoSeries,
}

/// Largest distance of a session id from the latest known one at which it belongs to the same
/// series.
const SESSIONS_MISSED_MAX: u32 = 1 << 16;

/// Sessions that follow one another, latest first.
#[derive(Default)]
struct Series([Option<Session>; 2]);

/// Sessions of an opener with their replay windows. Another opener of the same master key refuses
/// the same content with them.
#[derive(Clone, Debug)]
pub struct ReplayState(Vec<Vec<([u8; 4], ReplayWindow)>>);

/// Opener of content protected with one master key.
pub struct Opener {
    material: KeyMaterial,
    series: Vec<Series>,
    refuses_replays: bool,
}

/// Security fields before and after protected octets.
pub(super) struct Protection<'a> {
    pub(super) header: CryptoHeader,
    pub(super) code: super::cipher::Code,
    /// Receiver-specific codes, which payloads do not have.
    pub(super) postfix: Option<Postfix<'a>>,
}

impl Opener {
    /// Creates an opener for the material of a key token.
    ///
    /// # Errors
    /// The material is of kind none.
    pub fn new(material: KeyMaterial) -> Result<Self> {
        if material.kind() == TransformKind::None {
            return Err(TransformError::Malformed("key material of kind none"));
        }
        Ok(Self { material, series: vec![Series::default()], refuses_replays: false })
    }

    /// Sets the treatment of content that was opened before, or is too old for the replay window.
    #[must_use]
    pub fn with_replays(mut self, replays: Replays) -> Self {
        let count = if replays == Replays::RefusedInTwoSeries { 2 } else { 1 };
        self.series.resize_with(count, Series::default);
        self.refuses_replays = replays != Replays::Accepted;
        self
    }

    /// Returns the master key.
    pub const fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// Returns what was opened; `None` if replays are accepted.
    pub fn replay_state(&self) -> Option<ReplayState> {
        let state = |Series(known): &Series| {
            known.iter().flatten().map(|session| (session.id, session.window.clone())).collect()
        };
        self.refuses_replays.then(|| ReplayState(self.series.iter().map(state).collect()))
    }

    /// Refuses what another opener of this master key has opened.
    ///
    /// # Errors
    /// No session key can be derived.
    pub fn merge(&mut self, state: &ReplayState) -> Result<()> {
        for (Series(known), others) in self.series.iter_mut().zip(&state.0) {
            let mut sessions: Vec<Session> = known.iter_mut().filter_map(Option::take).collect();
            for (id, window) in others {
                match sessions.iter_mut().find(|session| session.id == *id) {
                    Some(session) => session.window.merge(window),
                    None => sessions.push(Session { window: window.clone(), ..Session::derive(&self.material, *id)? }),
                }
            }
            sessions.sort_by(|a, b| later_first(a.id, b.id));
            for (place, session) in known.iter_mut().zip(sessions) {
                *place = Some(session);
            }
        }
        Ok(())
    }

    /// Checks the content of `octets` in the range `plain`, and decrypts it to the same range of
    /// `memory` if it is encrypted. The plain content must also pass `check`; otherwise the replay
    /// window remains unchanged.
    pub(super) fn open(
        &mut self,
        protection: &Protection<'_>,
        octets: &[u8],
        memory: &mut [u8],
        (plain, end): (Range<usize>, usize),
        check: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<Opened> {
        let is_decrypted = protection.header.kind.is_encrypted();
        let content = octets.get(plain.clone()).ok_or(TransformError::BufferTooSmall)?;
        let memory = match is_decrypted {
            true => memory.get_mut(plain.clone()).ok_or(TransformError::BufferTooSmall)?,
            false => &mut [],
        };
        self.open_content(protection, content, memory, check)?;
        Ok(Opened { is_decrypted, plain, end })
    }

    fn open_content(
        &mut self,
        protection: &Protection<'_>,
        content: &[u8],
        memory: &mut [u8],
        check: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let header = &protection.header;
        if header.kind != self.material.kind() || header.key_id != self.material.sender_key_id() {
            return Err(TransformError::WrongKey);
        }
        let receiver_code = self.receiver_code(protection)?;
        let refuses_replays = self.refuses_replays;
        match self.known(header.session_id) {
            Some(session) => {
                check(session.open(protection, receiver_code, content, memory)?)?;
                session.accept(refuses_replays, header.counter)
            }
            None => self.open_in_new_session(protection, receiver_code, content, memory, check),
        }
    }

    fn known(&mut self, id: [u8; 4]) -> Option<&mut Session> {
        let mut sessions = self.series.iter_mut().flat_map(|series| &mut series.0).flatten();
        sessions.find(|session| session.id == id)
    }

    fn open_in_new_session(
        &mut self,
        protection: &Protection<'_>,
        receiver_code: Option<super::cipher::Code>,
        content: &[u8],
        memory: &mut [u8],
        check: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let id = protection.header.session_id;
        let series = self.series_of(id).ok_or(TransformError::Replay)?;
        let mut session = Session::derive(&self.material, id)?;
        check(session.open(protection, receiver_code, content, memory)?)?;
        session.accept(self.refuses_replays, protection.header.counter)?;
        let Series(known) = &mut self.series[series];
        known.swap(0, 1);
        known[0] = Some(session);
        Ok(())
    }

    /// Returns the series that an unknown session continues or begins. `None` if the session may be
    /// a discarded one, whose messages could be replays.
    fn series_of(&self, id: [u8; 4]) -> Option<usize> {
        if !self.refuses_replays {
            return Some(0);
        }
        let missed = |series: &Series| {
            let latest = series.0[0].as_ref()?;
            Some(u32::from_be_bytes(id).wrapping_sub(u32::from_be_bytes(latest.id)))
        };
        let follows = |series: &Series| missed(series).is_some_and(|missed| missed <= SESSIONS_MISSED_MAX);
        let is_unused = |series: &Series| series.0[0].is_none();
        self.series.iter().position(follows).or_else(|| self.series.iter().position(is_unused))
    }

    /// Returns the code for this receiver, if the material has a receiver-specific key.
    fn receiver_code(&self, protection: &Protection<'_>) -> Result<Option<super::cipher::Code>> {
        match (self.material.receiver_key_id(), &protection.postfix) {
            (Some(key_id), Some(postfix)) => {
                postfix.receiver_code(key_id).map(Some).ok_or(TransformError::ReceiverCode)
            }
            _ => Ok(None),
        }
    }
}

/// Orders the ids of sessions that follow one another. Ids wrap around.
fn later_first(a: [u8; 4], b: [u8; 4]) -> Ordering {
    let distance = u32::from_be_bytes(a).wrapping_sub(u32::from_be_bytes(b));
    if distance == 0 {
        Ordering::Equal
    } else if distance < 1 << 31 {
        Ordering::Less
    } else {
        Ordering::Greater
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

    /// Returns the plain content.
    fn open<'a>(
        &mut self,
        protection: &Protection<'_>,
        receiver_code: Option<super::cipher::Code>,
        content: &'a [u8],
        memory: &'a mut [u8],
    ) -> Result<&'a [u8]> {
        let nonce = protection.header.nonce();
        if let (Some(receiver), Some(code)) = (&mut self.receiver, receiver_code) {
            let checked = receiver.verify(&nonce, &protection.code, &code);
            checked.map_err(|_| TransformError::ReceiverCode)?;
        }
        if protection.header.kind.is_encrypted() {
            self.common.decrypt(&nonce, content, &protection.code, memory)?;
            Ok(memory)
        } else {
            self.common.verify(&nonce, content, &protection.code)?;
            Ok(content)
        }
    }

    fn accept(&mut self, refuses_replays: bool, counter: u64) -> Result<()> {
        if refuses_replays && !self.window.accept(counter) {
            return Err(TransformError::Replay);
        }
        Ok(())
    }
}
