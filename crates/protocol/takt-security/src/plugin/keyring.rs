//! Openers of remote keys and of this participant's own keys, by sender and key id of a crypto
//! header.
//!
//! A key belongs to one endpoint or participant of its sender, and opens one kind of content. With
//! origin authentication the sender gives each local receiver a receiver-specific key. The key then
//! has one opener per local receiver. Content opens if one of them finds its code, since all of
//! them belong to this participant.
//!
//! A sender keeps its keys when it authenticates again, or when an endpoint is matched again. The
//! replay windows of removed keys are therefore kept, so that recorded content does not open a
//! second time.

use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use takt_wire::{EntityId, GuidPrefix};

use crate::keys::{KeyId, KeyMaterial};
use crate::transform::{Opener, ReplayState, Replays, TransformError};

/// Kinds of content that a key opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    pub(super) messages: bool,
    pub(super) submessages: bool,
    pub(super) payloads: bool,
}

impl Uses {
    pub(super) const MESSAGES: Self = Self { messages: true, submessages: false, payloads: false };
    pub(super) const SUBMESSAGES: Self = Self { messages: false, submessages: true, payloads: false };
    pub(super) const PAYLOADS: Self = Self { messages: false, submessages: false, payloads: true };

    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            messages: self.messages || other.messages,
            submessages: self.submessages || other.submessages,
            payloads: self.payloads || other.payloads,
        }
    }

    const fn has(self, all: Self) -> bool {
        (self.messages || !all.messages) && (self.submessages || !all.submessages) && (self.payloads || !all.payloads)
    }
}

/// Reason for which content was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenError {
    UnknownKey,
    /// The key belongs to another endpoint, or is for another kind of content.
    Misused,
    /// This participant sealed the content.
    Reflected,
    Transform(TransformError),
}

impl From<TransformError> for OpenError {
    fn from(error: TransformError) -> Self {
        Self::Transform(error)
    }
}

/// Key to be added to the keyring.
pub(super) struct NewKey {
    pub(super) sender: GuidPrefix,
    /// Entity of the sender that owns the key.
    pub(super) owner: EntityId,
    /// Local entity to which the key was sent.
    pub(super) receiver: EntityId,
    pub(super) material: KeyMaterial,
    pub(super) uses: Uses,
    pub(super) replays: Replays,
}

struct Slot {
    opener: Opener,
    /// Local entities to which the key was sent.
    receivers: Vec<EntityId>,
}

struct Key {
    owner: EntityId,
    uses: Uses,
    slots: Vec<Slot>,
}

/// Maximum number of removed keys whose replay windows are kept: the latest ones. Each takes up to
/// 400 octets.
const REMOVED_KEYS_MAX: usize = 1_024;

/// Replay windows of a removed key.
struct Removed {
    sender: GuidPrefix,
    /// Digest of the master key.
    digest: [u8; 32],
    state: ReplayState,
}

/// Sender and key id in a crypto header. Hashed as one number, since an array is hashed with its
/// length first and takes several times as long.
#[derive(Clone, Copy, PartialEq, Eq)]
struct KeyName {
    sender: GuidPrefix,
    id: KeyId,
}

impl Hash for KeyName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut octets = [0; 16];
        let (sender, id) = octets.split_at_mut(self.sender.0.len());
        sender.copy_from_slice(&self.sender.0);
        id.copy_from_slice(&self.id);
        state.write_u128(u128::from_ne_bytes(octets));
    }
}

/// Keys of all senders.
#[derive(Default)]
pub(super) struct Keyring {
    keys: HashMap<KeyName, Key>,
    removed: VecDeque<Removed>,
}

impl Keyring {
    /// Adds a key. A key that is already present keeps its replay window.
    ///
    /// # Errors
    /// Another entity of the sender has a key with this id, or the material is of kind none.
    pub(super) fn insert(&mut self, new: NewKey) -> Result<(), String> {
        let id = new.material.sender_key_id();
        let name = KeyName { sender: new.sender, id };
        let key = self.keys.entry(name).or_insert(Key { owner: new.owner, uses: new.uses, slots: Vec::new() });
        if key.owner != new.owner {
            return Err(format!("key id {id:02x?} of {} is that of {}", new.owner, key.owner));
        }
        key.uses = key.uses.and(new.uses);
        if let Some(slot) = key.slots.iter_mut().find(|slot| *slot.opener.material() == new.material) {
            if !slot.receivers.contains(&new.receiver) {
                slot.receivers.push(new.receiver);
            }
            return Ok(());
        }
        let digest = new.material.digest();
        let opener = Opener::new(new.material).and_then(|opener| {
            let mut opener = opener.with_replays(new.replays);
            let removed =
                self.removed.iter().filter(|removed| removed.sender == new.sender && removed.digest == digest);
            let present = key.slots.iter().filter(|slot| slot.opener.material().digest() == digest);
            let present = present.filter_map(|slot| slot.opener.replay_state());
            for state in removed.map(|removed| removed.state.clone()).chain(present) {
                opener.merge(&state)?;
            }
            Ok(opener)
        });
        match opener.map_err(|error| error.to_string()) {
            Ok(opener) => {
                key.slots.push(Slot { opener, receivers: vec![new.receiver] });
                Ok(())
            }
            Err(error) => {
                if key.slots.is_empty() {
                    self.keys.remove(&name);
                }
                Err(error)
            }
        }
    }

    /// Removes `receiver` from the receivers of a key.
    pub(super) fn remove(&mut self, sender: GuidPrefix, material: &KeyMaterial, receiver: EntityId) {
        let name = KeyName { sender, id: material.sender_key_id() };
        let Some(key) = self.keys.get_mut(&name) else { return };
        for slot in key.slots.iter_mut().filter(|slot| slot.opener.material() == material) {
            slot.receivers.retain(|one| *one != receiver);
        }
        let (gone, kept): (Vec<_>, Vec<_>) = key.slots.drain(..).partition(|slot| slot.receivers.is_empty());
        key.slots = kept;
        if key.slots.is_empty() {
            self.keys.remove(&name);
        }
        gone.iter().for_each(|slot| self.keep_windows(sender, slot));
    }

    /// Keeps the replay windows of a removed key, also for its other openers.
    fn keep_windows(&mut self, sender: GuidPrefix, slot: &Slot) {
        let Some(state) = slot.opener.replay_state() else { return };
        let digest = slot.opener.material().digest();
        let others = self.keys.get_mut(&KeyName { sender, id: slot.opener.material().sender_key_id() });
        for other in others.into_iter().flat_map(|key| &mut key.slots) {
            if other.opener.material().digest() == digest {
                // A session key was derived before, so it can be derived again.
                let _ = other.opener.merge(&state); // tidy-allow(dropped-cause): cannot fail
            }
        }
        if self.removed.len() >= REMOVED_KEYS_MAX {
            self.removed.pop_front();
        }
        self.removed.push_back(Removed { sender, digest, state });
    }

    /// Removes keys, whose replay windows are kept.
    fn remove_where(&mut self, is_removed: impl Fn(GuidPrefix, &Key) -> bool) {
        let removed: Vec<_> = self.keys.extract_if(|name, key| is_removed(name.sender, key)).collect();
        for (name, key) in removed {
            key.slots.iter().for_each(|slot| self.keep_windows(name.sender, slot));
        }
    }

    /// Removes all keys with this id: used to replace the key of the volatile endpoints.
    pub(super) fn remove_id(&mut self, sender: GuidPrefix, id: KeyId) {
        self.keys.remove(&KeyName { sender, id });
    }

    /// Removes the keys of an entity of a sender.
    pub(super) fn remove_owner(&mut self, sender: GuidPrefix, owner: EntityId) {
        self.remove_where(|prefix, key| prefix == sender && key.owner == owner);
    }

    /// Removes the keys of a participant.
    pub(super) fn remove_sender(&mut self, sender: GuidPrefix) {
        self.remove_where(|prefix, _| prefix == sender);
    }

    /// Opens content with the key that its header names. `owner` is the entity that must own the
    /// key, if it is known.
    pub(super) fn open<T>(
        &mut self,
        (sender, id): (GuidPrefix, KeyId),
        uses: Uses,
        owner: Option<EntityId>,
        mut open: impl FnMut(&mut Opener) -> Result<T, TransformError>,
    ) -> Result<(T, EntityId), OpenError> {
        let key = self.keys.get_mut(&KeyName { sender, id }).ok_or(OpenError::UnknownKey)?;
        if !key.uses.has(uses) || owner.is_some_and(|owner| owner != key.owner) {
            return Err(OpenError::Misused);
        }
        let mut result = Err(OpenError::UnknownKey);
        for slot in &mut key.slots {
            result = open(&mut slot.opener).map(|opened| (opened, key.owner)).map_err(OpenError::from);
            // The content remains unchanged if a receiver-specific code is missing or wrong.
            if !matches!(result, Err(OpenError::Transform(TransformError::ReceiverCode))) {
                break;
            }
        }
        result
    }

    /// Returns the number of keys of a sender.
    #[cfg(test)]
    pub(super) fn count(&self, sender: GuidPrefix) -> usize {
        self.keys.iter().filter(|(name, _)| name.sender == sender).map(|(_, key)| key.slots.len()).sum()
    }
}
