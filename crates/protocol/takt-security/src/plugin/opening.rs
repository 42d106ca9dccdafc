//! Opening of received messages, submessages and payloads.

use takt_wire::message::HEADER_LEN;
use takt_wire::{EntityId, Guid, GuidPrefix};

use super::Plugin;
use super::endpoints::PARTICIPANT;
use super::keyring::{OpenError, Uses};
use crate::keys::KeyId;
use crate::transform::{CryptoHeader, Opened, Opener, TransformError, peek_message, peek_payload, peek_submessage};

/// Key id of the key of the volatile endpoints.
const VOLATILE_KEY: KeyId = [0; 4];
/// Offset of the GUID prefix in the RTPS header.
const PREFIX_AT: usize = 8;

impl Plugin {
    fn count_opened<T>(&mut self, opened: Result<T, OpenError>) -> Option<T> {
        match opened {
            Ok(opened) => {
                self.counters.opened += 1;
                Some(opened)
            }
            Err(error) => {
                self.counters.count_open(error);
                None
            }
        }
    }

    /// Opens a message that is protected as a whole.
    pub(super) fn open_whole(&mut self, message: &[u8], memory: &mut [u8]) -> Option<Opened> {
        let opened = self.try_open_whole(message, memory);
        self.count_opened(opened)
    }

    fn try_open_whole(&mut self, message: &[u8], memory: &mut [u8]) -> Result<Opened, OpenError> {
        let header = peek_message(message)?;
        let prefix = message.get(PREFIX_AT..HEADER_LEN).and_then(|octets| octets.first_chunk()).copied();
        let sender = GuidPrefix(prefix.ok_or(TransformError::Malformed("message is truncated"))?);
        let id = (sender, header.key_id);
        let open = |opener: &mut Opener| opener.open_message(message, memory);
        self.keyring.open(id, Uses::MESSAGES, Some(PARTICIPANT), open).map(|(opened, _)| opened)
    }

    /// Opens `octets`, which consist of protected submessages. Returns the endpoint whose key
    /// opened them.
    pub(super) fn open_parts(
        &mut self,
        sender: GuidPrefix,
        octets: &[u8],
        memory: &mut [u8],
    ) -> Option<(Opened, EntityId)> {
        let opened = self.try_open_parts(sender, octets, memory);
        self.count_opened(opened)
    }

    fn try_open_parts(
        &mut self,
        sender: GuidPrefix,
        octets: &[u8],
        memory: &mut [u8],
    ) -> Result<(Opened, EntityId), OpenError> {
        let header = peek_submessage(octets)?;
        if self.is_reflected(sender, &header) {
            return Err(OpenError::Reflected);
        }
        let id = (sender, header.key_id);
        let open = |opener: &mut Opener| opener.open_submessage(octets, memory);
        let (opened, owner) = self.keyring.open(id, Uses::SUBMESSAGES, None, open)?;
        if opened.end != octets.len() {
            return Err(TransformError::Malformed("octets after the postfix").into());
        }
        Ok((opened, owner))
    }

    /// Reports whether this participant sealed the content itself. Both directions of the volatile
    /// endpoints share the key. Each side has separate sessions, whose ids start at random values.
    fn is_reflected(&self, sender: GuidPrefix, header: &CryptoHeader) -> bool {
        let session = || self.remotes.get(&sender).and_then(|remote| remote.session());
        header.key_id == VOLATILE_KEY && session().is_some_and(|found| found.volatile.session_id() == header.session_id)
    }

    /// Opens the payload of a writer.
    pub(super) fn open_content(&mut self, writer: Guid, octets: &[u8], memory: &mut [u8]) -> Option<Opened> {
        let opened = peek_payload(octets).map_err(OpenError::from).and_then(|header| {
            let id = (writer.prefix, header.key_id);
            let open = |opener: &mut Opener| opener.open_payload(octets, memory);
            self.keyring.open(id, Uses::PAYLOADS, Some(writer.entity_id), open).map(|(opened, _)| opened)
        });
        self.count_opened(opened)
    }
}
