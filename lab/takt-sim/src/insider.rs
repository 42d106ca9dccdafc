//! Insider attack: a participant with a valid identity that violates its permissions.
//!
//! The insider has the shipped security plugins. If they refuse an endpoint, it requests the same
//! endpoint on a topic that its permissions allow, and announces the endpoint on the refused topic.
//! Only the other participants can then refuse it.

use takt_core::security::{
    AdmissionState, Announced, OpenedSubmessages, Protection, Security, SecurityChannel, SecurityEvent,
    SecurityLogEntry, SecurityMessage,
};
use takt_core::{Clocks, Instant};
use takt_security::Plugin;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::{EntityId, Guid, GuidPrefix};

/// Topic that all permissions allow, and that has no endpoints.
pub const COMMON_TOPIC: &str = "common";

/// Security plugins of an insider.
#[derive(Debug)]
pub struct Insider(pub Plugin);

impl Security for Insider {
    fn admit_writer(&mut self, now: Clocks, data: &PublicationData) -> Result<Protection, String> {
        let claimed = || PublicationData { topic_name: COMMON_TOPIC.to_owned(), ..data.clone() };
        self.0.admit_writer(now, data).or_else(|_| self.0.admit_writer(now, &claimed()))
    }

    fn admit_reader(&mut self, now: Clocks, data: &SubscriptionData) -> Result<Protection, String> {
        let claimed = || SubscriptionData { topic_name: COMMON_TOPIC.to_owned(), ..data.clone() };
        self.0.admit_reader(now, data).or_else(|_| self.0.admit_reader(now, &claimed()))
    }

    fn announced(&self) -> Announced {
        self.0.announced()
    }

    fn set_participant_data(&mut self, octets: Vec<u8>) {
        self.0.set_participant_data(octets);
    }

    fn protects_messages(&self) -> bool {
        self.0.protects_messages()
    }

    fn accepts_clear_discovery(&self) -> bool {
        self.0.accepts_clear_discovery()
    }

    fn message_overhead(&self) -> usize {
        self.0.message_overhead()
    }

    fn submessage_overhead(&self) -> usize {
        self.0.submessage_overhead()
    }

    fn payload_overhead(&self, writer: EntityId) -> usize {
        self.0.payload_overhead(writer)
    }

    fn protects_discovery(&self, topic_name: &str) -> bool {
        self.0.protects_discovery(topic_name)
    }

    fn builtin_protection(&self, endpoint: EntityId) -> Protection {
        self.0.builtin_protection(endpoint)
    }

    fn endpoint_deleted(&mut self, endpoint: EntityId) {
        self.0.endpoint_deleted(endpoint);
    }

    fn participant_discovered(&mut self, now: Clocks, data: &ParticipantData) -> AdmissionState {
        self.0.participant_discovered(now, data)
    }

    fn participant_lost(&mut self, participant: GuidPrefix) {
        self.0.participant_lost(participant);
    }

    fn handle_message(&mut self, now: Clocks, channel: SecurityChannel, from: GuidPrefix, payload: &[u8]) {
        self.0.handle_message(now, channel, from, payload);
    }

    fn poll_message(&mut self, now: Clocks) -> Option<SecurityMessage> {
        self.0.poll_message(now)
    }

    fn poll_event(&mut self) -> Option<SecurityEvent> {
        self.0.poll_event()
    }

    fn has_log(&self) -> bool {
        self.0.has_log()
    }

    fn poll_log(&mut self) -> Option<SecurityLogEntry> {
        self.0.poll_log()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Clocks) {
        self.0.handle_timeout(now);
    }

    fn check_remote_writer(&mut self, now: Clocks, reader: EntityId, data: &PublicationData) -> Result<(), String> {
        self.0.check_remote_writer(now, reader, data)
    }

    fn check_remote_reader(&mut self, now: Clocks, writer: EntityId, data: &SubscriptionData) -> Result<(), String> {
        self.0.check_remote_reader(now, writer, data)
    }

    fn pair_matched(&mut self, local: EntityId, remote: Guid) {
        self.0.pair_matched(local, remote);
    }

    fn pair_unmatched(&mut self, local: EntityId, remote: Guid) {
        self.0.pair_unmatched(local, remote);
    }

    fn protect(&mut self, message: &[u8], frame: &mut [u8]) -> Option<usize> {
        self.0.protect(message, frame)
    }

    fn open_message<'a>(&mut self, message: &'a [u8], memory: &'a mut [u8]) -> Option<&'a [u8]> {
        self.0.open_message(message, memory)
    }

    fn open_submessages<'a>(
        &mut self,
        sender: GuidPrefix,
        octets: &'a [u8],
        memory: &'a mut [u8],
    ) -> Option<OpenedSubmessages<'a>> {
        self.0.open_submessages(sender, octets, memory)
    }

    fn open_payload<'a>(&mut self, writer: Guid, octets: &'a [u8], memory: &'a mut [u8]) -> Option<&'a [u8]> {
        self.0.open_payload(writer, octets, memory)
    }
}
