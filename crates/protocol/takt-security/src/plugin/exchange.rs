//! Exchange of key tokens of participants and matched endpoints over the volatile endpoints
//! (DDS-SEC 1.1 §8.8.9).

use takt_core::security::{SecurityChannel, SecurityMessage};
use takt_wire::{EntityId, Guid, GuidPrefix};

use super::endpoints::{MasterSealer, PARTICIPANT};
use super::keyring::{NewKey, Uses};
use super::remotes::{Session, describe};
use super::{Outgoing, Pair, Plugin, Severity, participant_guid};
use crate::attributes::EndpointAttributes;
use crate::documents::ProtectionKind;
use crate::error::{ErrorKind, Result, SecurityError};
use crate::keys::{KeyMaterial, TransformKind, key_materials, key_tokens};
use crate::message::{
    CLASS_PARTICIPANT_CRYPTO_TOKENS, CLASS_READER_CRYPTO_TOKENS, CLASS_RENEWAL, CLASS_RENEWAL_ACCEPTED,
    CLASS_WRITER_CRYPTO_TOKENS, GenericMessage, MessageIdentity,
};
use crate::token::Token;
use crate::transform::Replays;

fn refused(reason: impl Into<String>) -> SecurityError {
    SecurityError::new(ErrorKind::Malformed, reason)
}

impl Plugin {
    /// Sends the key of this participant to a remote participant.
    pub(super) fn send_participant_tokens(&mut self, prefix: GuidPrefix) -> Result<()> {
        let remote = participant_guid(prefix);
        let material = match &mut self.message {
            Some(sealer) => sealer.add_receiver(remote)?,
            None => KeyMaterial::generate(TransformKind::None)?,
        };
        self.receivers_max = self.receivers_max.max(self.message.as_ref().map_or(0, MasterSealer::receiver_count));
        self.pairs.entry((PARTICIPANT, remote)).or_default();
        self.send_volatile(CLASS_PARTICIPANT_CRYPTO_TOKENS, None, remote, key_tokens(&[&material]));
        Ok(())
    }

    /// Begins the key exchange of a matched pair. The remote endpoint gets tokens, and the tokens
    /// that it has already sent take effect.
    pub(super) fn begin_pair(&mut self, local: EntityId, remote: Guid) {
        let is_authenticated = self.remotes.get(&remote.prefix).is_some_and(|found| found.session().is_some());
        let Some(endpoint) = self.endpoints.get_mut(&local).filter(|endpoint| endpoint.has_keys()) else { return };
        if !is_authenticated {
            return;
        }
        let materials = endpoint.materials_for(remote);
        let count = endpoint.submessage.as_ref().map_or(0, MasterSealer::receiver_count);
        self.receivers_max = self.receivers_max.max(count);
        let pair = (local, remote);
        self.pairs.entry(pair).or_default();
        match materials {
            Ok(materials) => {
                let class = if local.is_writer() { CLASS_WRITER_CRYPTO_TOKENS } else { CLASS_READER_CRYPTO_TOKENS };
                let materials: Vec<&KeyMaterial> = materials.iter().collect();
                self.send_volatile(class, Some(pair), remote, key_tokens(&materials));
            }
            Err(error) => self.log(Severity::Error, format!("no key of {local} for {remote}: {error}")),
        }
        let early = self.remotes.get_mut(&remote.prefix).and_then(|found| found.take_early_tokens(pair));
        if let Some(materials) = early
            && let Err(error) = self.install(pair, materials)
        {
            self.refuse_tokens(remote.prefix, &error);
        }
    }

    /// Ends the key exchange of an unmatched pair. The remote tokens are kept for another match.
    pub(super) fn end_pair(&mut self, local: EntityId, remote: Guid) {
        let pair = (local, remote);
        self.outgoing.retain(|outgoing| outgoing.pair != Some(pair));
        let Some(materials) = self.pairs.remove(&pair) else { return };
        for material in &materials {
            self.keyring.remove(remote.prefix, material, local);
        }
        if let Some(sealer) = self.endpoints.get_mut(&local).and_then(|endpoint| endpoint.submessage.as_mut()) {
            sealer.remove_receiver(remote);
        }
        if !materials.is_empty() {
            self.store_early_tokens(pair, materials);
        }
    }

    /// Removes all keys that were exchanged with a participant.
    pub(super) fn remove_keys_of(&mut self, prefix: GuidPrefix) {
        self.keyring.remove_sender(prefix);
        self.pairs.retain(|(_, remote), _| remote.prefix != prefix);
        self.outgoing.retain(|outgoing| outgoing.message.to != prefix);
        let sealers = self.endpoints.values_mut().filter_map(|endpoint| endpoint.submessage.as_mut());
        for sealer in sealers.chain(self.message.as_mut()) {
            sealer.remove_receivers_of(prefix);
        }
        if let Some(remote) = self.remotes.get_mut(&prefix) {
            remote.early_tokens.clear();
        }
    }

    /// Sends tokens of a pair, or of the participant itself, to a remote participant.
    pub(super) fn send_volatile(&mut self, class_id: &str, pair: Option<Pair>, remote: Guid, tokens: Vec<Token<'_>>) {
        self.sequence_number += 1;
        let source = Guid::new(self.prefix, EntityId::VOLATILE_MESSAGE_WRITER);
        let message = GenericMessage {
            identity: MessageIdentity { source, sequence_number: self.sequence_number },
            destination_participant: remote.participant(),
            destination_endpoint: pair.map_or(Guid::UNKNOWN, |(_, remote)| remote),
            source_endpoint: pair.map_or(Guid::UNKNOWN, |(local, _)| Guid::new(self.prefix, local)),
            class_id,
            tokens,
            ..GenericMessage::default()
        };
        let payload = message.to_payload();
        let message = SecurityMessage { to: remote.prefix, channel: SecurityChannel::Volatile, payload };
        self.outgoing.push_back(Outgoing { pair, message });
    }

    /// Handles a message of the volatile endpoints.
    pub(super) fn handle_volatile(&mut self, from: GuidPrefix, payload: &[u8]) {
        if let Err(error) = self.try_handle_volatile(from, payload) {
            self.refuse_tokens(from, &error);
        }
    }

    fn refuse_tokens(&mut self, from: GuidPrefix, error: &SecurityError) {
        self.counters.key_messages_refused += 1;
        let text = format!("message of the volatile channel of {}: {error}", describe(from, self.remotes.get(&from)));
        self.log(Severity::Warning, text);
    }

    fn try_handle_volatile(&mut self, from: GuidPrefix, payload: &[u8]) -> Result<()> {
        let message = GenericMessage::parse(payload)?;
        if self.remotes.get(&from).and_then(|remote| remote.session()).is_none() {
            return Err(refused("it is not authenticated"));
        }
        let source = message.identity.source;
        if source.prefix != from {
            return Err(refused(format!("its source {source} belongs to another participant")));
        }
        let (destination, own) = (message.destination_participant, participant_guid(self.prefix));
        if destination != own && destination != Guid::UNKNOWN {
            return Err(refused(format!("its destination is {destination}, this participant is {own}")));
        }
        match message.class_id {
            CLASS_RENEWAL => return self.handle_renewal(from, &message.tokens),
            CLASS_RENEWAL_ACCEPTED => {
                self.renewals.mark_done(from);
                return Ok(());
            }
            _ => {}
        }
        let materials = key_materials(&message.tokens)?;
        let (remote, local) = (message.source_endpoint, message.destination_endpoint);
        let is_writer = match message.class_id {
            CLASS_PARTICIPANT_CRYPTO_TOKENS => {
                return self.install_participant_key(from, materials);
            }
            CLASS_WRITER_CRYPTO_TOKENS => true,
            CLASS_READER_CRYPTO_TOKENS => false,
            other => return Err(refused(format!("unknown message class \"{other}\""))),
        };
        if remote.prefix != from || local.prefix != self.prefix {
            return Err(refused(format!("tokens of {remote} for {local}")));
        }
        let ids = (remote.entity_id, local.entity_id);
        let fits =
            if is_writer { ids.0.is_writer() && ids.1.is_reader() } else { ids.0.is_reader() && ids.1.is_writer() };
        if !fits || !(1..=2).contains(&materials.len()) {
            return Err(refused(format!("{} tokens of {remote} for {local} in {}", materials.len(), message.class_id)));
        }
        let pair = (local.entity_id, remote);
        if self.pairs.contains_key(&pair) {
            return self.install(pair, materials);
        }
        self.store_early_tokens(pair, materials);
        Ok(())
    }

    fn store_early_tokens(&mut self, pair: Pair, materials: Vec<KeyMaterial>) {
        let displaced =
            self.remotes.get_mut(&pair.1.prefix).is_some_and(|remote| remote.store_early_tokens(pair, materials));
        self.counters.key_tokens_displaced += u64::from(displaced);
    }

    /// Installs the key of a remote participant for its messages.
    fn install_participant_key(&mut self, from: GuidPrefix, materials: Vec<KeyMaterial>) -> Result<()> {
        let Some(material) = materials.into_iter().next().filter(|_| self.attributes.rtps.is_protected()) else {
            return Ok(());
        };
        check_kind(&material, self.attributes.rtps)?;
        self.replace((PARTICIPANT, participant_guid(from)), vec![(material, Uses::MESSAGES)])
    }

    /// Installs the keys of a remote endpoint for a pair.
    fn install(&mut self, pair: Pair, materials: Vec<KeyMaterial>) -> Result<()> {
        let Some(endpoint) = self.endpoints.get(&pair.0) else { return Ok(()) };
        let is_writer = pair.1.entity_id.is_writer();
        let keys = usable(&endpoint.attributes, is_writer, materials)
            .map_err(|error| error.context(&format!("of {} for {}", pair.1, pair.0)))?;
        self.replace(pair, keys)
    }

    /// Replaces the keys of a pair. Keys that remain keep their replay windows.
    fn replace(&mut self, pair: Pair, keys: Vec<(KeyMaterial, Uses)>) -> Result<()> {
        let (local, remote) = pair;
        let sender = remote.prefix;
        let counts = self.remotes.get(&sender).and_then(|remote| remote.session()).is_some_and(Session::counts);
        let refuses = counts && self.has_replay_windows;
        let replays = if refuses { Replays::Refused } else { Replays::Accepted };
        let before = self.pairs.insert(pair, Vec::new()).unwrap_or_default();
        for material in before.iter().filter(|material| keys.iter().all(|(new, _)| new != *material)) {
            self.keyring.remove(sender, material, local);
        }
        for (material, uses) in keys {
            if material.sender_key_id() == [0; 4] {
                return Err(refused("a key has the id zero, which is reserved for the volatile channel"));
            }
            let (owner, receiver) = (remote.entity_id, local);
            let key = NewKey { sender, owner, receiver, material: material.clone(), uses, replays };
            self.keyring.insert(key).map_err(refused)?;
            if let Some(installed) = self.pairs.get_mut(&pair) {
                installed.push(material);
            }
        }
        Ok(())
    }
}

/// Returns the key materials that a local endpoint can use, with their uses.
fn usable(
    attributes: &EndpointAttributes,
    is_writer: bool,
    materials: Vec<KeyMaterial>,
) -> Result<Vec<(KeyMaterial, Uses)>> {
    let payload = if is_writer { attributes.payload } else { ProtectionKind::None };
    let is_alone = materials.len() == 1;
    let mut materials = materials.into_iter();
    let (Some(first), last) = (materials.next(), materials.next()) else { return Ok(Vec::new()) };
    let checked = |material: KeyMaterial, kind: ProtectionKind, uses: Uses| {
        check_kind(&material, kind).map(|()| (material, uses))
    };
    match (attributes.submessage.is_protected(), payload.is_protected()) {
        (false, false) => Ok(Vec::new()),
        (true, false) => Ok(vec![checked(first, attributes.submessage, Uses::SUBMESSAGES)?]),
        (false, true) => Ok(vec![checked(last.unwrap_or(first), payload, Uses::PAYLOADS)?]),
        (true, true) if is_alone => {
            check_kind(&first, payload)?;
            Ok(vec![checked(first, attributes.submessage, Uses::SUBMESSAGES.and(Uses::PAYLOADS))?])
        }
        (true, true) => {
            let mut keys = vec![checked(first, attributes.submessage, Uses::SUBMESSAGES)?];
            if let Some(last) = last {
                keys.push(checked(last, payload, Uses::PAYLOADS)?);
            }
            Ok(keys)
        }
    }
}

/// Checks that a key protects as much as the governance requires.
fn check_kind(material: &KeyMaterial, kind: ProtectionKind) -> Result<()> {
    let found = material.kind();
    if found == TransformKind::None || found.is_encrypted() != kind.is_encrypted() {
        return Err(refused(format!("key of kind {found:?}, the governance requires {}", kind.name())));
    }
    if kind.has_origin_authentication() && material.receiver_key_id().is_none() {
        return Err(refused(format!("key without a receiver-specific key, the governance requires {}", kind.name())));
    }
    Ok(())
}
