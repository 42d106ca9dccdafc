//! Local endpoints with their keys, and which remote ones have codes of their own.

use std::collections::HashMap;

use takt_core::security::Protection;
use takt_wire::{EntityId, Guid, GuidPrefix};

use super::Plugin;
use super::keyring::{Keyring, NewKey, Uses};
use crate::attributes::EndpointAttributes;
use crate::documents::ProtectionKind;
use crate::error::{ErrorKind, Result, SecurityError};
use crate::keys::{KeyId, KeyMaterial};
use crate::transform::{Receivers, Replays, Sealer, TransformError};

/// Builtin endpoints that have keys of their own, as far as the governance protects them.
const SECURE_BUILTIN: [EntityId; 8] = [
    EntityId::SEDP_PUB_SECURE_WRITER,
    EntityId::SEDP_PUB_SECURE_READER,
    EntityId::SEDP_SUB_SECURE_WRITER,
    EntityId::SEDP_SUB_SECURE_READER,
    EntityId::P2P_MESSAGE_SECURE_WRITER,
    EntityId::P2P_MESSAGE_SECURE_READER,
    EntityId::SPDP_SECURE_WRITER,
    EntityId::SPDP_SECURE_READER,
];

/// The entity that a participant's key is of, and its own receiver.
pub(super) const PARTICIPANT: EntityId = EntityId::PARTICIPANT;

/// A master key with the receivers that have codes of their own.
pub(super) struct MasterSealer {
    pub(super) sealer: Sealer,
    /// The code of this participant and those of the others; none if origins are not authenticated.
    receivers: Option<(KeyId, HashMap<Guid, KeyId>)>,
}

/// An endpoint of this participant.
pub(super) struct LocalEndpoint {
    pub(super) attributes: EndpointAttributes,
    /// Its submessages are sealed with this.
    pub(super) submessage: Option<MasterSealer>,
    /// Its payloads are sealed with this, if it is a writer.
    pub(super) payload: Option<Sealer>,
    /// What the tokens of a reader have whose payloads alone are protected.
    ///
    /// INTEROP(Fast DDS 2.9): a writer waits for tokens of such a reader. Nothing is sealed with
    /// their key.
    unused: Option<KeyMaterial>,
}

impl From<TransformError> for SecurityError {
    fn from(error: TransformError) -> Self {
        Self::new(ErrorKind::Library, error.to_string())
    }
}

impl MasterSealer {
    /// A new master key, and what opens it for this participant itself.
    pub(super) fn generate(kind: ProtectionKind, blocks_per_session: u64) -> Result<(Self, KeyMaterial)> {
        let material = KeyMaterial::generate(kind.transform_kind(true))?;
        let mut sealer = Sealer::new(material.clone())?.with_blocks_per_session(blocks_per_session);
        if !kind.has_origin_authentication() {
            return Ok((Self { sealer, receivers: None }, material));
        }
        let own = material.for_receiver()?;
        let receivers = own.receiver_key_id().map(|id| (id, HashMap::new()));
        sealer.add_receiver(own.clone())?;
        Ok((Self { sealer, receivers }, own))
    }

    /// The material to send to a receiver. One that had some before gets another code.
    pub(super) fn add_receiver(&mut self, receiver: Guid) -> Result<KeyMaterial> {
        self.remove_receiver(receiver);
        let Some((_, all)) = &mut self.receivers else { return Ok(self.sealer.material().clone()) };
        let material = self.sealer.material().for_receiver()?;
        self.sealer.add_receiver(material.clone())?;
        if let Some(id) = material.receiver_key_id() {
            all.insert(receiver, id);
        }
        Ok(material)
    }

    pub(super) fn remove_receiver(&mut self, receiver: Guid) {
        if let Some((_, all)) = &mut self.receivers
            && let Some(id) = all.remove(&receiver)
        {
            self.sealer.remove_receiver(id);
        }
    }

    pub(super) fn remove_receivers_of(&mut self, participant: GuidPrefix) {
        let Some((_, all)) = &mut self.receivers else { return };
        let sealer = &mut self.sealer;
        all.retain(|guid, id| {
            let stays = guid.prefix != participant;
            if !stays {
                sealer.remove_receiver(*id);
            }
            stays
        });
    }

    /// Codes in its messages.
    pub(super) fn receiver_count(&self) -> usize {
        self.receivers.as_ref().map_or(0, |(_, all)| all.len() + 1)
    }

    /// Whose codes a message to one receiver has.
    pub(super) fn receivers_for(&self, receiver: Guid, own: GuidPrefix) -> Receivers {
        match &self.receivers {
            None => Receivers::All,
            Some((own_id, _)) if receiver.prefix == own => Receivers::One(*own_id),
            Some((_, all)) => all.get(&receiver).map_or(Receivers::None, |id| Receivers::One(*id)),
        }
    }
}

impl LocalEndpoint {
    /// An endpoint with new keys; those go to the keyring as well.
    fn generate(
        id: EntityId,
        attributes: EndpointAttributes,
        own: GuidPrefix,
        blocks_per_session: u64,
        keyring: &mut Keyring,
    ) -> Result<Self> {
        let mut endpoint = Self { attributes, submessage: None, payload: None, unused: None };
        let mut keep = |material: KeyMaterial, uses: Uses| {
            let key = NewKey { sender: own, owner: id, receiver: id, material, uses, replays: Replays::Accepted };
            keyring.insert(key).map_err(|reason| SecurityError::new(ErrorKind::Library, reason))
        };
        if attributes.submessage.is_protected() {
            let (sealer, material) = MasterSealer::generate(attributes.submessage, blocks_per_session)?;
            endpoint.submessage = Some(sealer);
            keep(material, Uses::SUBMESSAGES)?;
        }
        if attributes.payload.is_protected() {
            let material = KeyMaterial::generate(attributes.payload.transform_kind(true))?;
            if id.is_writer() {
                let sealer = Sealer::new(material.clone())?.with_blocks_per_session(blocks_per_session);
                endpoint.payload = Some(sealer);
                keep(material, Uses::PAYLOADS)?;
            } else if endpoint.submessage.is_none() {
                endpoint.unused = Some(material);
            }
        }
        Ok(endpoint)
    }

    /// Are key tokens exchanged with endpoints that it is matched with?
    pub(super) const fn has_keys(&self) -> bool {
        self.attributes.submessage.is_protected() || self.attributes.payload.is_protected()
    }

    /// The materials for the tokens that a remote endpoint gets.
    pub(super) fn materials_for(&mut self, remote: Guid) -> Result<Vec<KeyMaterial>> {
        let mut materials = Vec::with_capacity(2);
        if let Some(sealer) = &mut self.submessage {
            materials.push(sealer.add_receiver(remote)?);
        }
        materials.extend(self.payload.as_ref().map(|sealer| sealer.material().clone()));
        materials.extend(self.unused.clone());
        Ok(materials)
    }

    pub(super) fn sealers(&mut self) -> impl Iterator<Item = &mut Sealer> {
        let submessage = self.submessage.as_mut().map(|sealer| &mut sealer.sealer);
        submessage.into_iter().chain(self.payload.as_mut())
    }
}

impl Plugin {
    /// Makes an endpoint and its keys.
    pub(super) fn make_endpoint(&mut self, id: EntityId, attributes: EndpointAttributes) -> Result<()> {
        let made = LocalEndpoint::generate(id, attributes, self.prefix, self.blocks_per_session, &mut self.keyring);
        match made {
            Ok(endpoint) => {
                let count = endpoint.submessage.as_ref().map_or(0, MasterSealer::receiver_count);
                self.receivers_max = self.receivers_max.max(count);
                self.endpoints.insert(id, endpoint);
                Ok(())
            }
            Err(error) => {
                self.keyring.remove_owner(self.prefix, id);
                Err(error)
            }
        }
    }

    /// Makes the builtin endpoints that the governance protects.
    pub(super) fn make_builtin_endpoints(&mut self) -> Result<()> {
        for id in SECURE_BUILTIN {
            if let Some(attributes) = EndpointAttributes::of_builtin(id, &self.attributes)
                && attributes.submessage.is_protected()
            {
                self.make_endpoint(id, attributes)?;
            }
        }
        Ok(())
    }

    /// Makes the key of the participant, if messages are protected as a whole.
    pub(super) fn make_message_key(&mut self) -> Result<()> {
        if !self.attributes.rtps.is_protected() {
            return Ok(());
        }
        let (sealer, material) = MasterSealer::generate(self.attributes.rtps, self.blocks_per_session)?;
        self.receivers_max = self.receivers_max.max(sealer.receiver_count());
        self.message = Some(sealer);
        let key = NewKey {
            sender: self.prefix,
            owner: PARTICIPANT,
            receiver: PARTICIPANT,
            material,
            uses: Uses::MESSAGES,
            replays: Replays::Accepted,
        };
        self.keyring.insert(key).map_err(|reason| SecurityError::new(ErrorKind::Library, reason))
    }

    /// Removes an endpoint, its keys, and those that others sent to it.
    pub(super) fn remove_endpoint(&mut self, id: EntityId) {
        let remotes: Vec<_> = self.pairs.keys().filter(|(local, _)| *local == id).map(|(_, remote)| *remote).collect();
        for remote in remotes {
            self.end_pair(id, remote);
        }
        for remote in self.remotes.values_mut() {
            remote.parked.retain(|parked| parked.pair.0 != id);
        }
        self.keyring.remove_owner(self.prefix, id);
        self.endpoints.remove(&id);
    }
}

/// How an endpoint with these attributes is protected.
pub(super) fn protection(attributes: &EndpointAttributes) -> Protection {
    Protection {
        info: attributes.info().into(),
        discovery: attributes.is_discovery_protected,
        liveliness: attributes.is_liveliness_protected,
        submessage: attributes.submessage.is_protected(),
        payload: attributes.payload.is_protected(),
        key: attributes.payload.is_encrypted(),
    }
}
