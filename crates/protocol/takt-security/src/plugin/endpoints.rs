//! Local endpoints with their keys, and the remote receivers that have receiver-specific keys.

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

/// Builtin endpoints with separate keys, as far as the governance protects them.
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

/// Entity id that owns the participant's key, and that receives as the participant itself.
pub(super) const PARTICIPANT: EntityId = EntityId::PARTICIPANT;

/// Master key with the receivers that have receiver-specific keys.
pub(super) struct MasterSealer {
    pub(super) sealer: Sealer,
    /// Receiver key id of this participant, and those of the remote receivers; `None` if origins
    /// are not authenticated.
    receivers: Option<(KeyId, HashMap<Guid, KeyId>)>,
}

/// Endpoint of this participant.
pub(super) struct LocalEndpoint {
    pub(super) attributes: EndpointAttributes,
    /// Sealer of its submessages.
    pub(super) submessage: Option<MasterSealer>,
    /// Sealer of its payloads, if the endpoint is a writer.
    pub(super) payload: Option<Sealer>,
    /// Key material in the tokens of a reader for which only payloads are protected.
    ///
    /// INTEROP(Fast DDS 2.9): a writer waits for tokens of such a reader. The key seals nothing.
    unused: Option<KeyMaterial>,
}

impl From<TransformError> for SecurityError {
    fn from(error: TransformError) -> Self {
        Self::new(ErrorKind::Library, error.to_string())
    }
}

impl MasterSealer {
    /// Generates a master key, and the material with which this participant opens its own content.
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

    /// Returns the material to send to a receiver. A receiver that already had one gets another
    /// receiver key.
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

    /// Returns the number of receiver-specific codes in its messages.
    pub(super) fn receiver_count(&self) -> usize {
        self.receivers.as_ref().map_or(0, |(_, all)| all.len() + 1)
    }

    /// Returns the receivers whose codes a message to `receiver` carries.
    pub(super) fn receivers_for(&self, receiver: Guid, own: GuidPrefix) -> Receivers {
        match &self.receivers {
            None => Receivers::All,
            Some((own_id, _)) if receiver.prefix == own => Receivers::One(*own_id),
            Some((_, all)) => all.get(&receiver).map_or(Receivers::None, |id| Receivers::One(*id)),
        }
    }
}

impl LocalEndpoint {
    /// Creates an endpoint with new keys, which are also added to the keyring.
    fn generate(
        id: EntityId,
        attributes: EndpointAttributes,
        own: GuidPrefix,
        blocks_per_session: u64,
        keyring: &mut Keyring,
    ) -> Result<Self> {
        let mut endpoint = Self { attributes, submessage: None, payload: None, unused: None };
        let mut insert = |material: KeyMaterial, uses: Uses| {
            let key = NewKey { sender: own, owner: id, receiver: id, material, uses, replays: Replays::Accepted };
            keyring.insert(key).map_err(|reason| SecurityError::new(ErrorKind::Library, reason))
        };
        if attributes.submessage.is_protected() {
            let (sealer, material) = MasterSealer::generate(attributes.submessage, blocks_per_session)?;
            endpoint.submessage = Some(sealer);
            insert(material, Uses::SUBMESSAGES)?;
        }
        if attributes.payload.is_protected() {
            let material = KeyMaterial::generate(attributes.payload.transform_kind(true))?;
            if id.is_writer() {
                let sealer = Sealer::new(material.clone())?.with_blocks_per_session(blocks_per_session);
                endpoint.payload = Some(sealer);
                insert(material, Uses::PAYLOADS)?;
            } else if endpoint.submessage.is_none() {
                endpoint.unused = Some(material);
            }
        }
        Ok(endpoint)
    }

    /// Reports whether key tokens are exchanged with matched endpoints.
    pub(super) const fn has_keys(&self) -> bool {
        self.attributes.submessage.is_protected() || self.attributes.payload.is_protected()
    }

    /// Returns the key materials for the tokens sent to a remote endpoint.
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
    /// Creates an endpoint and its keys.
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

    /// Creates the builtin endpoints that the governance protects.
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

    /// Creates the key of the participant, if whole messages are protected.
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

    /// Removes an endpoint, its keys, and the keys that remote endpoints sent to it.
    pub(super) fn remove_endpoint(&mut self, id: EntityId) {
        let remotes: Vec<_> = self.pairs.keys().filter(|(local, _)| *local == id).map(|(_, remote)| *remote).collect();
        for remote in remotes {
            self.end_pair(id, remote);
        }
        for remote in self.remotes.values_mut() {
            remote.early_tokens.retain(|early| early.pair.0 != id);
        }
        self.keyring.remove_owner(self.prefix, id);
        self.endpoints.remove(&id);
    }
}

/// Returns the protection of an endpoint with these attributes.
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
