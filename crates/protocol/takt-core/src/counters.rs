//! Counters of everything the participant does and drops. Nothing is dropped without a count.

/// Monotonic counters of one participant. All start at zero and wrap at 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams built for sending.
    pub datagrams_sent: u64,
    /// Datagrams that are no RTPS message.
    pub malformed_messages: u64,
    /// Submessages whose content breaks a rule of RTPS 2.5 §8.3.
    pub malformed_submessages: u64,
    /// Submessages of a kind that is unknown and therefore skipped.
    pub unknown_submessages: u64,
    /// Participants removed to make room for another one.
    pub participants_displaced: u64,
    /// Datagrams of a participant from an address that it has neither validated nor announced.
    pub foreign_datagrams: u64,
    /// Discovery samples that could not be parsed.
    pub malformed_discovery: u64,
    /// `DATA` and `DATA_FRAG` of writers that are not matched.
    pub unmatched_data: u64,
    /// Samples received more than once.
    pub duplicate_samples: u64,
    /// Samples beyond the reorder window. A reliable writer sends them again.
    pub out_of_window: u64,
    /// Fragments that contradict earlier fragments of their sample or exceed a limit.
    pub rejected_fragments: u64,
    /// Fragments received more than once.
    pub duplicate_fragments: u64,
    /// Samples rejected because the reader's history or memory was full.
    pub rejected_samples: u64,
    /// Contributions of single writers to coherent sets that were not presented, because a part of
    /// the set was missing or did not fit.
    pub dropped_coherent_sets: u64,
    /// Samples of writers that do not own the instance (OWNERSHIP EXCLUSIVE).
    pub outranked_samples: u64,
    /// Samples and disposals older than the latest of their instance (DESTINATION_ORDER
    /// BY_SOURCE_TIMESTAMP).
    pub outdated_samples: u64,
    /// Samples of TRANSIENT and PERSISTENT writers that were presented before, or came after a
    /// later one of their writer.
    pub repeated_samples: u64,
    /// Samples whose lifespan was over on arrival.
    pub expired_samples: u64,
    /// Samples that a content filter rejected.
    pub filtered_samples: u64,
    /// Samples that a writer did not send to a reliable reader, because the reader's filter rejects
    /// them.
    pub withheld_samples: u64,
    /// Samples that arrived through shared memory by reference.
    pub loaned_samples: u64,
    /// Samples whose key could not be read from the payload.
    pub undecodable_keys: u64,
    /// `HEARTBEAT`s received.
    pub heartbeats_received: u64,
    /// `HEARTBEAT`s sent, piggybacked ones included.
    pub heartbeats_sent: u64,
    /// `HEARTBEAT`s that were not sent, because with their protection they exceed the transport's
    /// frame.
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
    /// Reliable readers that blocked a writer's send window for other readers, and were excluded
    /// from it. They request what they miss.
    pub readers_excluded: u64,
    /// Reliable readers that stopped answering a writer's heartbeats.
    pub silent_readers: u64,
    /// Readers whose path turned out to have a smaller MTU than this host's interface.
    pub narrowed_paths: u64,
    /// Reader filters that a writer no longer applies, because they exceeded its budget of steps
    /// per write.
    pub dropped_filters: u64,
    /// Acknowledgments whose count or range is stale or impossible.
    pub stale_acknowledgments: u64,
    /// `HEARTBEAT`s that contradicted an earlier `GAP` or `HEARTBEAT` of their writer. The reader
    /// returned to the samples it had skipped.
    pub contradicted_gaps: u64,
    /// Announced remote locators that may not be sent to.
    pub refused_locators: u64,
    /// Participants, endpoints or other remote state refused because a limit of [`crate::Limits`]
    /// is reached.
    pub refused_remote_entities: u64,
    /// Local endpoints that could not be announced because the builtin history is full.
    pub refused_local_announcements: u64,
    /// Requests for types that were answered.
    pub type_requests_served: u64,
    /// Requests for types that were not answered, for lack of room or of a reader for the reply.
    pub refused_type_requests: u64,
    /// Type replies for which no request is pending.
    pub unsolicited_type_replies: u64,
    /// Remote participants whose address was validated: they receive what this participant sends.
    pub participants_validated: u64,
    /// Remote participants whose locators changed.
    pub participants_moved: u64,
    /// Wrong answers to challenges.
    pub wrong_answers: u64,
    /// Datagrams withheld from a participant with an unvalidated address that had not sent enough
    /// itself.
    pub withheld_datagrams: u64,
    /// Remote participants discovered, those that returned included.
    pub participants_discovered: u64,
    /// Participants without an entry in the list of static endpoints.
    pub unlisted_participants: u64,
    /// Introductions received from a discovery server, those of known participants included.
    pub introductions_received: u64,
    /// Introductions sent as a discovery server, each counted once for all its destinations.
    pub introductions_sent: u64,
    /// Announcements that were sent before their participant's farewell and arrived after it.
    pub stale_announcements: u64,
    /// Probes sent to multicast groups of user data.
    pub multicast_probes_sent: u64,
    /// Remote participants that did not answer multicast probes, and get all data by unicast.
    pub participants_unreachable_by_multicast: u64,
    /// Route changes between unicast and multicast that not all best-effort readers confirmed
    /// within 2 s. These readers may miss samples that were in transit.
    pub unconfirmed_route_changes: u64,
    /// Remote participants that were authenticated (DDS Security).
    pub participants_authenticated: u64,
    /// Remote participants that failed authentication or access control.
    pub participants_refused: u64,
    /// Protected messages without a known key, with a wrong authentication code, or replayed.
    pub unauthentic_messages: u64,
    /// Protected submessages without a known key, with a wrong authentication code, or replayed.
    pub unauthentic_submessages: u64,
    /// Protected payloads without a known key, with a wrong authentication code, or replayed.
    pub unauthentic_payloads: u64,
    /// Submessages with less protection than the governance requires.
    pub unprotected_submessages: u64,
    /// Unprotected announcements of participants or endpoints whose announcements must be
    /// protected.
    pub unprotected_announcements: u64,
    /// Messages that could not be protected and were not sent.
    pub unprotectable_messages: u64,
    /// Messages of the security plugins that did not fit into a queue.
    pub refused_security_messages: u64,
    /// Remote participants whose lease expired.
    pub leases_expired: u64,
    /// Remote participants on this host whose process ended without a farewell.
    pub local_peers_ended: u64,
}
