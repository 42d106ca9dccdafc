//! Events that the core reports to its driver.

use crate::slots::{ReaderHandle, WriterHandle};
use takt_wire::{Guid, Locator};

/// Identifier of a request for types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeRequestId(pub(crate) i64);

/// Event for the application, taken with [`crate::Participant::poll_event`].
///
/// Events of one endpoint are merged: until it is polled, the same event is queued once.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The reader has new samples.
    DataAvailable(ReaderHandle),
    /// One of the reader's writers has delivered its whole history as of the match.
    HistoryComplete(ReaderHandle),
    /// The writer's publication-matched status changed.
    PublicationMatched(WriterHandle),
    /// The reader's subscription-matched status changed.
    SubscriptionMatched(ReaderHandle),
    /// A reader requests more than the writer offers.
    OfferedIncompatibleQos(WriterHandle),
    /// A writer offers less than the reader requests.
    RequestedIncompatibleQos(ReaderHandle),
    /// An instance of the writer was not written within DEADLINE.
    OfferedDeadlineMissed(WriterHandle),
    /// An instance of the reader got no sample within DEADLINE.
    RequestedDeadlineMissed(ReaderHandle),
    /// The application did not assert the writer within its LIVELINESS lease.
    LivelinessLost(WriterHandle),
    /// Samples will never arrive.
    SampleLost(ReaderHandle),
    /// A matched writer became alive or not alive.
    LivelinessChanged(ReaderHandle),
    /// A sample was rejected.
    SampleRejected(ReaderHandle),
    /// A sample was older than the reader's E2E_LATENCY, or than its computed bound, when it became
    /// readable.
    LatencyExceeded(ReaderHandle),
    /// A remote writer of the reader's topic has another type.
    ReaderInconsistentTopic(ReaderHandle),
    /// A remote reader of the writer's topic has another type.
    WriterInconsistentTopic(WriterHandle),
    /// A matched reliable reader stopped or resumed answering the writer's heartbeats; see
    /// [`crate::Participant::silent_readers`].
    ReaderSilent(WriterHandle),
    /// Long datagrams of the writer do not arrive at a reader that answers short ones: a network on
    /// the path has a smaller MTU than this host's interface. From now on the writer sends
    /// datagrams of at most 1,452 octets.
    PathNarrowed(WriterHandle),
    /// A `write` that would have blocked may be retried, or all fragments of a
    /// [blocked](crate::Participant::is_writer_blocked) writer have been sent.
    WriterSpace(WriterHandle),
    /// Samples of the writer were acknowledged.
    Acknowledged(WriterHandle),
    /// A request for types is answered; see [`crate::Participant::take_type_answer`].
    TypeAnswer(TypeRequestId),
    /// Types of some endpoint pairs have to be compared; see
    /// [`crate::Participant::poll_type_check`].
    TypeChecks,
    /// Matches were refused; see [`crate::Participant::refusals`].
    PairsRefused,
    /// Matches were made that other implementations may refuse; see
    /// [`crate::Participant::cautions`].
    PairsCautioned,
    /// A participant announces itself and does not answer; see
    /// [`crate::Participant::silent_participants`].
    ParticipantSilent(Guid),
    /// A participant on this host with matching endpoints announces a locator that no network leads
    /// to; see [`crate::Participant::handle_local_peer`].
    LocalPeerAnnounced(Locator),
    /// A participant may not join, or not access protected topics; see
    /// [`crate::Participant::refused_participants`].
    ParticipantRefused(Guid),
    /// The security plugins have logged something; see [`crate::Participant::poll_security_log`].
    SecurityLogged,
    /// A remote participant appeared.
    ParticipantDiscovered(Guid),
    /// A remote participant left, its lease expired, or its process on this host ended.
    ParticipantLost(Guid),
}
