//! Discovered participants and endpoints, as the application sees and influences them.

use crate::config::{Interface, Limits, Locators};
use crate::counters::Counters;
use crate::discovery::{
    BuiltinTopic, Call, Caution, OfferedType, Refusal, SilentParticipant, TypeAnswer, TypeCheck, TypeVerdict,
};
use crate::error::Error;
use crate::event::TypeRequestId;
use crate::participant::Participant;
use crate::security::SecurityLogEntry;
use crate::slots::ReaderHandle;
use crate::time::Instant;
use alloc::vec::Vec;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::type_lookup::{ContinuationPoint, EquivalenceId, UnionForm};
use takt_wire::{Guid, GuidPrefix, Locator, VendorId};
impl Participant {
    /// Returns the pairs that match here and may be refused by others, in no order, then those
    /// whose writers omit information for PRESENTATION. Visits each pair with compared types, and
    /// each writer matched with a reader.
    pub fn cautions(&self) -> impl Iterator<Item = Caution> {
        self.discovery
            .type_cautions(&self.ctx, &self.endpoints)
            .chain(self.discovery.presentation_cautions(&self.ctx, &self.endpoints))
    }

    /// Defers departures of participants and writers from now on until
    /// [`conclude_departure`](Self::conclude_departure). Without this call they take effect at
    /// once.
    pub fn defer_departures(&mut self) {
        self.discovery.departures.is_deferred = true;
    }

    /// Returns the latest refused matches with their reasons, oldest first; at most
    /// [`crate::Limits::max_refusals`]. Refusals by the OpenFlow controller end with a match.
    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.discovery.refusals.iter()
    }

    /// Returns the total number of refused matches; [`refusals`](Self::refusals) returns the latest
    /// of them.
    #[must_use]
    pub fn refusals_total(&self) -> u64 {
        self.discovery.refusals_total
    }

    /// Returns the destinations of announcements: multicast groups and peers.
    #[must_use]
    pub fn peers(&self) -> &[Locator] {
        &self.discovery.initial_peers
    }

    /// Returns the participants known now.
    #[must_use]
    pub fn discovered_participants(&self) -> Vec<ParticipantData> {
        self.discovery.remotes.iter().map(|(_, remote)| (*remote.data).clone()).collect()
    }

    /// Returns the discovery data of a remote participant.
    #[must_use]
    pub fn participant_data(&self, guid: Guid) -> Option<&ParticipantData> {
        let index = *self.discovery.remote_by_prefix.get(&guid.prefix)?;
        self.discovery.remotes.get(index).map(|remote| &*remote.data)
    }

    /// Returns the limits of this participant.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.ctx.limits
    }

    /// Returns the counters of this participant.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.ctx.counters
    }

    /// Enables type checks: pairs with different type information wait for
    /// [`Participant::set_type_verdict`].
    pub fn check_types(&mut self) {
        self.discovery.type_checks.is_on = true;
    }

    /// Returns the next pair whose types have to be compared.
    pub fn poll_type_check(&mut self) -> Option<TypeCheck> {
        self.discovery.type_checks.poll()
    }

    /// Returns the definition of a type that was offered here.
    #[must_use]
    pub fn offered_type(&self, id: &EquivalenceId) -> Option<&[u8]> {
        self.discovery.type_lookup.definition(id)
    }

    /// Cancels a request. To be called for each request whose reply is no longer needed.
    pub fn cancel_type_request(&mut self, request: TypeRequestId) {
        self.discovery.type_lookup.cancel(request);
    }

    /// Returns the next entry of the log of the security plugins: refusals and decisions with their
    /// reasons. The last 256 are kept.
    pub fn poll_security_log(&mut self) -> Option<SecurityLogEntry> {
        self.ctx.security.as_mut()?.poll_log()
    }

    /// Schedules the plugin after another thread has stored new documents for it.
    pub fn renew_security(&mut self, now: Instant) {
        self.ctx.await_security_message(now);
    }

    /// Adds peers: the participant announces itself to them, and accepts that remote endpoints are
    /// located there.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] beyond [`crate::MAX_PEERS`]; no peer is added then.
    pub fn add_peers(&mut self, now: Instant, peers: &[Locator]) -> Result<(), Error> {
        self.discovery.add_peers(now, &mut self.ctx, peers)
    }

    /// Removes peers from the destinations of announcements. Known participants stay known until
    /// they leave or their lease ends.
    pub fn remove_peers(&mut self, peers: &[Locator]) {
        self.discovery.remove_peers(&mut self.ctx, peers);
    }

    /// Asserts all writers whose liveliness is `MANUAL_BY_PARTICIPANT` (DDS 1.4 §2.2.2.2.1.18).
    pub fn assert_liveliness(&mut self, now: Instant) {
        self.discovery.assert_liveliness(&mut Call::new(now, &mut self.ctx, &mut self.endpoints));
    }

    /// Makes the oldest waiting departure take effect. Call it after all datagrams were received
    /// that had arrived when the departure was received. Takes the steps of a farewell.
    pub fn conclude_departure(&mut self, now: Instant) {
        self.discovery.conclude_departure(&mut Call::new(now, &mut self.ctx, &mut self.endpoints));
    }

    /// Reports whether a departure waits.
    #[must_use]
    pub fn has_departures(&self) -> bool {
        self.discovery.has_departures()
    }

    /// Creates a reader of a builtin topic, filled with the entities known now. The reader is
    /// neither matched nor announced.
    pub fn create_builtin_reader(&mut self, now: Instant, topic: BuiltinTopic) -> ReaderHandle {
        self.discovery.create_builtin_reader(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), topic)
    }

    /// Handles a change of this host's interfaces or their addresses. Announces the new locators to
    /// all known participants and to all groups and peers, and chooses new paths to known
    /// participants. If nothing has changed, a link may have returned, so an announcement follows
    /// soon. Returns whether anything has changed. Takes steps for each remote participant, each
    /// remote endpoint and each match.
    pub fn handle_interfaces(&mut self, now: Instant, interfaces: Vec<Interface>, locators: Locators) -> bool {
        self.discovery.handle_interfaces(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), interfaces, locators)
    }

    /// Sets whether datagrams reach this locator. Answers [`crate::Event::LocalPeerAnnounced`], and
    /// reports later changes. Endpoints that only this path connects are matched. Takes steps for
    /// each remote participant, and for each endpoint and each match of that one.
    pub fn handle_local_peer(&mut self, now: Instant, locator: &Locator, is_reached: bool) {
        self.discovery.handle_local_peer(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), locator, is_reached);
    }

    /// Handles the end of the process at a [confirmed](Self::handle_local_peer) locator, after all
    /// its datagrams were received. The participant is lost as at the end of its lease.
    /// Announcements still in transit do not rediscover it. Takes steps for each remote
    /// participant, and for each endpoint and each match of that one.
    pub fn handle_local_peer_end(&mut self, now: Instant, locator: &Locator) {
        self.discovery.handle_local_peer_end(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), locator);
    }

    /// Ignores a participant and all its entities, now and if it returns with the same GUID.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if 65,536 entities are ignored already.
    pub fn ignore_participant(&mut self, now: Instant, participant: GuidPrefix) -> Result<(), Error> {
        self.discovery.ignore_participant(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), participant)
    }

    /// Ignores a remote writer.
    ///
    /// # Errors
    /// As [`Self::ignore_participant`].
    pub fn ignore_publication(&mut self, now: Instant, writer: Guid) -> Result<(), Error> {
        self.discovery.ignore_publication(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), writer)
    }

    /// Ignores a remote reader.
    ///
    /// # Errors
    /// As [`Self::ignore_participant`].
    pub fn ignore_subscription(&mut self, now: Instant, reader: Guid) -> Result<(), Error> {
        self.discovery.ignore_subscription(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), reader)
    }

    /// Ignores all remote writers and readers of a topic.
    ///
    /// # Errors
    /// As [`Self::ignore_participant`].
    pub fn ignore_topic(&mut self, now: Instant, topic_name: &str) -> Result<(), Error> {
        self.discovery.ignore_topic(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), topic_name)
    }

    /// Reports whether a participant is authenticated (DDS-SEC 1.1 §8.3).
    #[must_use]
    pub fn is_authenticated(&self, prefix: GuidPrefix) -> bool {
        self.discovery.is_authenticated(prefix)
    }

    /// Returns the refused participants with the reasons: they could not authenticate, their
    /// documents do not allow participation, or have expired.
    pub fn refused_participants(&self) -> impl Iterator<Item = (Guid, &str)> {
        self.discovery.refused_participants()
    }

    /// Reports whether a participant with a validated address is at the host of `locator`.
    #[must_use]
    pub fn knows_participant_at(&self, locator: &Locator) -> bool {
        self.discovery.knows_participant_at(locator)
    }

    /// Returns the participants that announce themselves and have not answered for two
    /// seconds, so that none of their endpoints is known. Visits each known
    /// participant.
    pub fn silent_participants(&self) -> impl Iterator<Item = SilentParticipant> {
        self.discovery.silent_participants()
    }

    /// Offers a type to remote participants. Offering an identifier again has no effect.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if there are too many types, or if this one does not fit into a
    /// reply.
    pub fn offer_type(&mut self, offered: OfferedType) -> Result<(), Error> {
        self.discovery.type_lookup.offer(offered)
    }

    /// Requests the types that some types refer to, directly or indirectly. To continue, pass the
    /// continuation point of the previous reply. Otherwise as [`Self::request_types`].
    ///
    /// # Errors
    /// As [`Self::request_types`].
    pub fn request_type_dependencies(
        &mut self,
        now: Instant,
        participant: GuidPrefix,
        type_ids: &[EquivalenceId],
        from: ContinuationPoint,
    ) -> Result<TypeRequestId, Error> {
        self.discovery.request_type_dependencies(
            &mut Call::new(now, &mut self.ctx, &mut self.endpoints),
            participant,
            type_ids,
            from,
        )
    }

    /// Requests types from a participant. [`crate::Event::TypeAnswer`] reports the reply, which may
    /// lack some types. Some servers answer only one of the two forms of request.
    ///
    /// # Errors
    /// [`Error::BadParameter`] if the participant serves no types or too many are requested,
    /// [`Error::OutOfResources`] if too many requests wait.
    pub fn request_types(
        &mut self,
        now: Instant,
        participant: GuidPrefix,
        type_ids: &[EquivalenceId],
        form: UnionForm,
    ) -> Result<TypeRequestId, Error> {
        self.discovery.request_types(
            &mut Call::new(now, &mut self.ctx, &mut self.endpoints),
            participant,
            type_ids,
            form,
        )
    }

    /// Reports whether a participant is known and announces that it serves types.
    #[must_use]
    pub fn serves_types(&self, participant: GuidPrefix) -> bool {
        self.discovery.serves_types(participant)
    }

    /// Takes the reply to a request, once.
    pub fn take_type_answer(&mut self, request: TypeRequestId) -> Option<TypeAnswer> {
        self.discovery.type_lookup.take_answer(request)
    }

    /// Returns the discovery data of a remote or local writer.
    #[must_use]
    pub fn publication(&self, guid: Guid) -> Option<&PublicationData> {
        self.discovery.publication(&self.ctx, &self.endpoints, guid)
    }

    /// Sets the verdict on a pair, and matches it if nothing else forbids that. Has no effect if
    /// the pair is no longer pending.
    pub fn set_type_verdict(&mut self, now: Instant, check: TypeCheck, verdict: TypeVerdict) {
        self.discovery.set_type_verdict(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), check, verdict);
    }

    /// Returns the discovery data of a remote or local reader. Visits each local reader.
    #[must_use]
    pub fn subscription(&self, guid: Guid) -> Option<&SubscriptionData> {
        self.discovery.subscription(&self.ctx, &self.endpoints, guid)
    }

    /// Returns the configured discovery servers ([`Config::servers`](crate::Config::servers)) that
    /// do not answer: no participant that claims to be a server is known at their address. Right
    /// after the start these are all servers. Visits each remote participant once for each
    /// server.
    pub fn silent_servers(&self) -> Vec<Locator> {
        self.discovery.silent_servers()
    }

    /// Returns the vendor of a participant, the local one included; [`VendorId::UNKNOWN`] if it is
    /// not known.
    #[must_use]
    pub fn vendor_of(&self, prefix: GuidPrefix) -> VendorId {
        self.discovery.vendor_of(&self.ctx, prefix)
    }
}
