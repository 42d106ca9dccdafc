//! What the core tells its driver.

use crate::discovery::TypeRequestId;
use crate::slots::{ReaderHandle, WriterHandle};
use takt_wire::{Guid, Locator};

/// Something the application may want to know. Taken with [`crate::Participant::poll_event`].
///
/// Events about one endpoint are merged: until it is polled, the same event is queued once.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The reader has new samples.
    DataAvailable(ReaderHandle),
    /// All that one of the reader's writers had when they were matched has been delivered.
    HistoryComplete(ReaderHandle),
    /// The writer's publication-matched status changed.
    PublicationMatched(WriterHandle),
    /// The reader's subscription-matched status changed.
    SubscriptionMatched(ReaderHandle),
    /// A reader asks for more than the writer offers.
    OfferedIncompatibleQos(WriterHandle),
    /// A writer offers less than the reader asks for.
    RequestedIncompatibleQos(ReaderHandle),
    /// An instance of the writer was not written within DEADLINE.
    OfferedDeadlineMissed(WriterHandle),
    /// An instance of the reader got no sample within DEADLINE.
    RequestedDeadlineMissed(ReaderHandle),
    /// The application did not assert the writer within its LIVELINESS lease.
    LivelinessLost(WriterHandle),
    /// Samples will never arrive.
    SampleLost(ReaderHandle),
    /// A matched writer came to life or stopped showing itself.
    LivelinessChanged(ReaderHandle),
    /// A sample found no room.
    SampleRejected(ReaderHandle),
    /// A sample was older than the reader's E2E_LATENCY, or its computed bound, when it could be read.
    LatencyExceeded(ReaderHandle),
    /// A remote writer of the reader's topic has another type.
    ReaderInconsistentTopic(ReaderHandle),
    /// A remote reader of the writer's topic has another type.
    WriterInconsistentTopic(WriterHandle),
    /// A matched reliable reader of the writer does not answer its heartbeats, or answers them again; see
    /// [`crate::Participant::silent_readers`].
    ReaderSilent(WriterHandle),
    /// Long datagrams of the writer do not arrive at a reader that answers short ones: a network on the way has a smaller MTU than
    /// this host's interface. The writer sends datagrams of 1,452 octets at most from now on.
    PathNarrowed(WriterHandle),
    /// A `write` that would have blocked may be tried again.
    WriterSpace(WriterHandle),
    /// Samples of the writer were acknowledged.
    Acknowledged(WriterHandle),
    /// A request for types is answered; see [`crate::Participant::take_type_answer`].
    TypeAnswer(TypeRequestId),
    /// The types of some pairs are to be compared; see [`crate::Participant::poll_type_check`].
    TypeChecks,
    /// Matches were refused; see [`crate::Participant::refusals`].
    PairsRefused,
    /// Matches were made that others may refuse; see [`crate::Participant::cautions`].
    PairsCautioned,
    /// A participant announces itself and does not answer; see [`crate::Participant::silent_participants`].
    ParticipantSilent(Guid),
    /// A participant on this host that something is to be exchanged with announces a locator that no network leads to; see
    /// [`crate::Participant::handle_neighbour`].
    NeighbourAnnounced(Locator),
    /// A participant may not take part, or not in what is protected; see [`crate::Participant::refused_participants`].
    ParticipantRefused(Guid),
    /// The security plugins have something to tell; see [`crate::Participant::poll_security_log`].
    SecurityLogged,
    /// A remote participant appeared.
    ParticipantDiscovered(Guid),
    /// A remote participant left, its lease ran out, or its process on this host ended.
    ParticipantLost(Guid),
}
