//! Implementation of [`takt_core::security::Security`], the trait that a participant calls.

use takt_core::security::{
    AdmissionState, Announced, OpenedSubmessages, Protection, Security, SecurityChannel, SecurityEvent,
    SecurityLogEntry, SecurityMessage,
};
use takt_core::{Clocks, Instant};
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::{EntityId, Guid, GuidPrefix};

use super::access::Candidate;
use super::endpoints::protection;
use super::{Plugin, RECEIVERS_RESERVED, Severity};
use crate::attributes::EndpointAttributes;
use crate::documents::ProtectionKind;
use crate::keys::TransformKind;
use crate::transform::Form;

impl Plugin {
    /// Returns the number of receiver-specific codes for which room is reserved.
    fn codes(&self, kinds: impl IntoIterator<Item = ProtectionKind>) -> usize {
        let has_codes = kinds.into_iter().any(ProtectionKind::has_origin_authentication);
        if has_codes { self.receivers_max.max(RECEIVERS_RESERVED) } else { 0 }
    }
}

impl Security for Plugin {
    fn announced(&self) -> Announced {
        self.announced.clone()
    }

    fn set_participant_data(&mut self, octets: Vec<u8>) {
        if let Err(error) = self.local.set_participant_data(octets) {
            self.log(Severity::Error, error.to_string());
        }
    }

    fn protects_messages(&self) -> bool {
        self.message.is_some()
    }

    fn accepts_clear_discovery(&self) -> bool {
        self.accepts_clear_discovery
    }

    fn message_overhead(&self) -> usize {
        let Some(message) = &self.message else { return 0 };
        let codes = self.codes([self.attributes.rtps]);
        Form::Message.headroom(message.sealer.material().kind()) + Form::Message.tailroom(codes)
    }

    fn submessage_overhead(&self) -> usize {
        let topics = self.access.domain_rule().topic_rules.iter().map(|rule| rule.metadata_protection_kind);
        let codes = self.codes(topics.chain([self.attributes.discovery, self.attributes.liveliness]));
        // The volatile endpoints are always encrypted.
        Form::Submessage.headroom(TransformKind::Aes256Gcm) + Form::Submessage.tailroom(codes)
    }

    fn payload_overhead(&self, writer: EntityId) -> usize {
        let sealer = self.endpoints.get(&writer).and_then(|endpoint| endpoint.payload.as_ref());
        sealer.map_or(0, |sealer| Form::Payload.headroom(sealer.material().kind()) + Form::Payload.tailroom(0))
    }

    fn protects_discovery(&self, topic_name: &str) -> bool {
        let rule = self.access.domain_rule().topic_rule(topic_name);
        rule.is_ok_and(|rule| rule.enable_discovery_protection)
    }

    fn builtin_protection(&self, endpoint: EntityId) -> Protection {
        let attributes = EndpointAttributes::of_builtin(endpoint, &self.attributes);
        attributes.map_or_else(Protection::default, |attributes| protection(&attributes))
    }

    fn admit_writer(&mut self, now: Clocks, data: &PublicationData) -> Result<Protection, String> {
        self.now = now;
        self.admit(&Candidate::from(data))
    }

    fn admit_reader(&mut self, now: Clocks, data: &SubscriptionData) -> Result<Protection, String> {
        self.now = now;
        self.admit(&Candidate::from(data))
    }

    fn endpoint_deleted(&mut self, endpoint: EntityId) {
        self.remove_endpoint(endpoint);
    }

    fn participant_discovered(&mut self, now: Clocks, data: &ParticipantData) -> AdmissionState {
        self.now = now;
        self.discover(data)
    }

    fn participant_lost(&mut self, participant: GuidPrefix) {
        self.remove_remote(participant);
    }

    fn handle_message(&mut self, now: Clocks, channel: SecurityChannel, from: GuidPrefix, payload: &[u8]) {
        self.now = now;
        match channel {
            SecurityChannel::Stateless => self.handle_stateless(from, payload),
            SecurityChannel::Volatile => self.handle_volatile(from, payload),
        }
    }

    fn poll_message(&mut self, now: Clocks) -> Option<SecurityMessage> {
        self.now = now;
        // A replier has the key of the volatile endpoints only after the Final.
        self.poll_handshakes().or_else(|| self.outgoing.pop_front().map(|outgoing| outgoing.message))
    }

    fn poll_event(&mut self) -> Option<SecurityEvent> {
        self.events.pop_front()
    }

    fn has_log(&self) -> bool {
        !self.log.is_empty()
    }

    fn poll_log(&mut self) -> Option<SecurityLogEntry> {
        self.log.pop()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.is_rollover_due {
            return Some(self.now.at);
        }
        [self.handshake_due, self.renewal_due()].into_iter().flatten().chain([self.check_due]).min()
    }

    fn handle_timeout(&mut self, now: Clocks) {
        self.now = now;
        self.take_renewal();
        self.run_handshakes();
        self.send_next_renewal();
        self.prepare_rollovers();
        self.check_validity();
    }

    fn check_remote_writer(&mut self, now: Clocks, reader: EntityId, data: &PublicationData) -> Result<(), String> {
        self.now = now;
        self.check_match(reader, &Candidate::from(data))
    }

    fn check_remote_reader(&mut self, now: Clocks, writer: EntityId, data: &SubscriptionData) -> Result<(), String> {
        self.now = now;
        self.check_match(writer, &Candidate::from(data))
    }

    fn pair_matched(&mut self, local: EntityId, remote: Guid) {
        self.begin_pair(local, remote);
    }

    fn pair_unmatched(&mut self, local: EntityId, remote: Guid) {
        self.end_pair(local, remote);
    }

    fn protect(&mut self, message: &[u8], frame: &mut [u8]) -> Option<usize> {
        self.seal(message, frame)
    }

    fn open_message<'a>(&mut self, message: &'a [u8], memory: &'a mut [u8]) -> Option<&'a [u8]> {
        self.open_whole(message, memory).map(|opened| opened.plain(message, memory))
    }

    fn open_submessages<'a>(
        &mut self,
        sender: GuidPrefix,
        octets: &'a [u8],
        memory: &'a mut [u8],
    ) -> Option<OpenedSubmessages<'a>> {
        let (opened, sender) = self.open_parts(sender, octets, memory)?;
        Some(OpenedSubmessages { plain: opened.plain(octets, memory), sender })
    }

    fn open_payload<'a>(&mut self, writer: Guid, octets: &'a [u8], memory: &'a mut [u8]) -> Option<&'a [u8]> {
        self.open_content(writer, octets, memory).map(|opened| opened.plain(octets, memory))
    }
}
