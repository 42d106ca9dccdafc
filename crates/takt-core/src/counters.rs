//! Everything the participant drops or does is counted here; nothing is lost in silence.

/// Monotonic counters of one participant. All start at zero and wrap at 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Datagrams handed in.
    pub datagrams_received: u64,
    /// Datagrams built.
    pub datagrams_sent: u64,
    /// Datagrams that are no RTPS message.
    pub malformed_messages: u64,
    /// Submessages whose content breaks a rule of RTPS 2.5 §8.3.
    pub malformed_submessages: u64,
    /// Submessages of a kind that is unknown and therefore skipped.
    pub unknown_submessages: u64,
    /// Participants that were forgotten since another one needed their place.
    pub participants_displaced: u64,
    /// Datagrams in the name of a participant from an address that it has neither proven nor announced.
    pub foreign_datagrams: u64,
    /// Discovery samples that could not be parsed.
    pub malformed_discovery: u64,
    /// `DATA` and `DATA_FRAG` of writers that are not matched.
    pub unmatched_data: u64,
    /// Samples that arrived again.
    pub duplicate_samples: u64,
    /// Samples beyond the reorder window; a reliable writer will send them again.
    pub out_of_window: u64,
    /// Fragments that contradict earlier fragments of their sample or exceed a limit.
    pub rejected_fragments: u64,
    /// Fragments that arrived again.
    pub duplicate_fragments: u64,
    /// Samples turned away because the reader's history or memory was full.
    pub rejected_samples: u64,
    /// Parts of coherent sets, each what one writer adds, that were not shown since something of the set was missing or found
    /// no room.
    pub dropped_coherent_sets: u64,
    /// Samples of writers that a stronger one outranks (OWNERSHIP EXCLUSIVE).
    pub outranked_samples: u64,
    /// Samples and disposals that a later one of their instance overtook (DESTINATION_ORDER BY_SOURCE_TIMESTAMP).
    pub outdated_samples: u64,
    /// Samples of TRANSIENT and PERSISTENT writers that were shown before, or came after a later one of their writer.
    pub repeated_samples: u64,
    /// Samples that arrived when their lifespan was over.
    pub expired_samples: u64,
    /// Samples that a content filter kept out of a history.
    pub filtered_samples: u64,
    /// Samples that a writer did not send to a reliable reader, since the reader's filter rejects them.
    pub withheld_samples: u64,
    /// Samples that arrived through shared memory by reference.
    pub lent_samples: u64,
    /// Samples whose key could not be read from the payload.
    pub undecodable_keys: u64,
    /// `HEARTBEAT`s received.
    pub heartbeats_received: u64,
    /// `HEARTBEAT`s sent, piggybacked ones included.
    pub heartbeats_sent: u64,
    /// `HEARTBEAT`s that were not sent, since with their protection they are longer than the transport's frame.
    pub heartbeats_without_room: u64,
    /// `ACKNACK`s received.
    pub acknacks_received: u64,
    /// `ACKNACK`s sent.
    pub acknacks_sent: u64,
    /// `NACK_FRAG`s received.
    pub nack_frags_received: u64,
    /// `NACK_FRAG`s sent.
    pub nack_frags_sent: u64,
    /// `GAP`s received.
    pub gaps_received: u64,
    /// `GAP`s sent.
    pub gaps_sent: u64,
    /// `DATA` sent, repairs included.
    pub data_sent: u64,
    /// `DATA_FRAG` sent, repairs included.
    pub data_frags_sent: u64,
    /// `DATA` and `DATA_FRAG` sent again on request.
    pub repairs_sent: u64,
    /// Reliable readers that kept a writer's send window closed for others, and were left to fetch what they miss.
    pub readers_left_behind: u64,
    /// Reliable readers that became silent: they do not answer a writer's heartbeats.
    pub silent_readers: u64,
    /// Readers whose path turned out to take shorter datagrams than this host's interface.
    pub narrowed_paths: u64,
    /// Filters of readers that a writer no longer applies, since they exceeded its budget of steps a write.
    pub dropped_filters: u64,
    /// Acknowledgements whose count or range is stale or impossible.
    pub stale_acknowledgements: u64,
    /// `HEARTBEAT`s that contradicted an earlier `GAP` or `HEARTBEAT` of their writer: the reader went back to what it had skipped.
    pub contradicted_gaps: u64,
    /// Remote locators that were announced but may not be sent to.
    pub refused_locators: u64,
    /// Participants, endpoints or other remote state refused because a limit of [`crate::Limits`] is reached.
    pub refused_remote_entities: u64,
    /// Local endpoints that could not be announced because the builtin history is full.
    pub refused_local_announcements: u64,
    /// Requests for types that were answered.
    pub type_requests_served: u64,
    /// Requests for types that were not, for want of room or of a reader for the answer.
    pub refused_type_requests: u64,
    /// Answers about types that nobody here waits for.
    pub unsolicited_type_replies: u64,
    /// Remote participants that have proven that they receive what we send.
    pub participants_validated: u64,
    /// Remote participants that can be reached elsewhere now.
    pub participants_moved: u64,
    /// Answers to challenges that were wrong.
    pub wrong_answers: u64,
    /// Datagrams that were not sent to a participant because it had not proven that it receives them, and had not sent
    /// enough itself.
    pub withheld_datagrams: u64,
    /// Remote participants that appeared, those that came back included.
    pub participants_discovered: u64,
    /// Participants whose static endpoints are not known.
    pub unlisted_participants: u64,
    /// Participants that a discovery server has introduced to us, those that were known included.
    pub introductions_received: u64,
    /// Introductions that we have sent as a discovery server, each to all whom it concerned.
    pub introductions_sent: u64,
    /// Announcements that arrived after their participant's farewell, though sent before it.
    pub stale_announcements: u64,
    /// Questions to multicast groups of user data, who receives what is sent there.
    pub multicast_questions_sent: u64,
    /// Remote participants that have answered none of them for a while, and get all by unicast.
    pub multicast_deaf_participants: u64,
    /// Changes of a route between unicast and a multicast group that not all best-effort readers had confirmed after 2 s: they may miss
    /// samples that were under way.
    pub unconfirmed_route_changes: u64,
    /// Remote participants that have proven who they are (DDS Security).
    pub participants_authenticated: u64,
    /// Remote participants that did not, or may not take part.
    pub participants_refused: u64,
    /// Protected messages without a key, with a wrong code, or that were repeated.
    pub unauthentic_messages: u64,
    /// Protected submessages without a key, with a wrong code, or that were repeated.
    pub unauthentic_submessages: u64,
    /// Protected payloads without a key, with a wrong code, or that were repeated.
    pub unauthentic_payloads: u64,
    /// Submessages that were less protected than the governance wants.
    pub unprotected_submessages: u64,
    /// Announcements in the name of a participant or endpoint whose announcements have to be protected, and that were not.
    pub unprotected_announcements: u64,
    /// Messages that could not be protected, and were not sent.
    pub unprotectable_messages: u64,
    /// Messages of the security plugins that found no room.
    pub refused_security_messages: u64,
    /// Remote participants whose lease ran out.
    pub leases_expired: u64,
    /// Remote participants on this host whose process ended without a farewell.
    pub neighbours_ended: u64,
}
