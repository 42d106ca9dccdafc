//! Deliberate bugs, one at a time, for the checkers of the simulation to find.
//!
//! Without the feature `mutations` there are none: [`is_on`] is false when compiled. A protocol is only as well checked
//! as the bugs that its checkers would find, so each one here is a mistake that somebody could make.

macro_rules! mutations {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A deliberate bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Mutation {
            $($(#[$doc])* $name,)*
        }

        /// All deliberate bugs.
        #[cfg(feature = "mutations")]
        pub const ALL: &[Mutation] = &[$(Mutation::$name,)*];
    };
}

mutations! {
    /// A GAP is taken for sent, but is not.
    SkipGap,
    /// What is for a participant's endpoints goes to where they were.
    StayBehind,
    /// A GAP covers one sample too many.
    GapTooLong,
    /// What a reader asks for again is not sent.
    ForgetResend,
    /// The fragments that a reader asks for again are not sent.
    ForgetFragmentResend,
    /// The base of an acknowledgement is taken for acknowledged too.
    AcknowledgedOneTooMany,
    /// The fastest reader's acknowledgement frees a sample, not the slowest one's.
    FreedByTheFastest,
    /// A reader acknowledges the sample that it misses.
    AcknowledgeTooEarly,
    /// A reader asks for nothing but the first missing sample, and not for that one.
    AskForTheSecond,
    /// A reader asks for the fragment behind the missing one.
    FragmentBitmapOffByOne,
    /// A reader never asks for fragments.
    NoFragmentRequests,
    /// A sample is complete when one fragment is missing.
    CompleteTooEarly,
    /// The last fragment of a sample is written where the one before belongs.
    LastFragmentMisplaced,
    /// The number of fragments is rounded down.
    FragmentsRoundedDown,
    /// Every 64th sample takes the number of the one before.
    ReuseSequenceNumber,
    /// Heartbeats that come by timer are not sent.
    NoPeriodicHeartbeat,
    /// Heartbeats leave out the last sample.
    HeartbeatEndsEarly,
    /// Heartbeats leave out the first sample.
    HeartbeatBeginsLate,
    /// A late joiner gets no history.
    NoHistoryForLateJoiners,
    /// A reader does not apply its content filter.
    IgnoreFilter,
    /// A writer applies one reader's content filter to all that have one.
    FilterOfAnother,
    /// A full KEEP_ALL history drops its oldest sample.
    EvictUnacknowledged,
    /// KEEP_LAST at the reader keeps one more.
    KeepOneMore,
    /// KEEP_LAST at the writer keeps one less.
    KeepOneLess,
    /// The reader's max_samples is not looked at.
    IgnoreMaxSamples,
    /// A sample that finds no room at the reader is forgotten, though acknowledged.
    DropInsteadOfBlock,
    /// Room at the reader does not wake what waits for it.
    NeverUnblock,
    /// A reader takes a sample that it has had.
    TakeDuplicates,
    /// A best-effort reader takes a sample that was overtaken.
    TakeOvertaken,
    /// Samples behind a missing one are handed on at once.
    DeliverBehindGap,
    /// A repair for one reader is taken by all readers of the participant.
    TakeOthersRepairs,
    /// A writer that waits for room is not told of it.
    NeverTellOfSpace,
    /// A participant lives for ever.
    EndlessLease,
    /// Hearing of a participant does not renew its lease.
    LeaseNotRenewed,
    /// The deletion of an endpoint is not noticed.
    IgnoreDeletion,
    /// Partitions are not looked at.
    IgnorePartition,
    /// Topics match by the first letter.
    IgnoreTopic,
    /// RELIABILITY and DURABILITY are not looked at.
    IgnoreQos,
    /// Every heartbeat is answered, also one that wants no answer, and every acknowledgement with a heartbeat.
    ChatterBox,
    /// A new reader of a known participant is not matched.
    ForgetNewReader,
    /// The instance of a sample is that of the sample before.
    WrongInstance,
    /// A disposal is taken for no news.
    IgnoreDisposal,
    /// An instance that its last writer unregisters stays as it is.
    IgnoreUnregistration,
    /// An instance stays as it is when its writers have gone.
    ForgetGoneWriters,
    /// A farewell is not heard.
    IgnoreFarewell,
    /// Nobody says that AUTOMATIC writers live.
    NoAssertions,
    /// OWNERSHIP is not looked at.
    IgnoreOwnership,
    /// A missed deadline is not told.
    IgnoreDeadline,
    /// A sample does not begin a new deadline.
    DeadlineNotRenewed,
    /// A writer lives for ever, however short its lease.
    EndlessWriterLease,
    /// DESTINATION_ORDER is not looked at.
    IgnoreSourceOrder,
    /// The source time stamps of a writer run back when its wall clock is set back.
    SourceTimeRunsBack,
    /// TIME_BASED_FILTER is not looked at.
    IgnoreTimeBasedFilter,
    /// What TIME_BASED_FILTER keeps back of a reliable writer is never shown.
    ForgetHeldSample,
    /// The samples of an instance that is not alive stay.
    NeverPurge,
    /// The samples of an instance that came back to life go.
    PurgeTheLiving,
    /// What waits for others to share a datagram with waits for ever.
    ForgetBatch,
    /// LIFESPAN is not looked at.
    IgnoreLifespan,
    /// A reader's samples live from their arrival, a writer's from now.
    LifespanSinceArrival,
    /// Samples of the writer that have expired leave without making room.
    ExpiryMakesNoRoom,
    /// A participant may have as many endpoints as it likes.
    NoEndpointLimit,
    /// Changes of a coherent set of one writer are shown before it has ended.
    ShowBeforeTheEnd,
    /// A coherent set is shown though something of it is missing.
    IgnoreLostMember,
    /// A coherent set is shown when the first writer has ended it.
    ShowWithoutOthers,
    /// Of two changes of a publisher the later one is shown first.
    WrongGroupOrder,
}

#[cfg(feature = "mutations")]
static ACTIVE: core::sync::atomic::AtomicU8 = core::sync::atomic::AtomicU8::new(u8::MAX);

/// Switches one deliberate bug on in the whole process, or all of them off.
#[cfg(feature = "mutations")]
pub fn switch(mutation: Option<Mutation>) {
    ACTIVE.store(mutation.map_or(u8::MAX, |mutation| mutation as u8), core::sync::atomic::Ordering::Relaxed);
}

/// Whether this bug is on.
#[cfg(feature = "mutations")]
pub(crate) fn is_on(mutation: Mutation) -> bool {
    ACTIVE.load(core::sync::atomic::Ordering::Relaxed) == mutation as u8
}

/// Never.
#[cfg(not(feature = "mutations"))]
pub(crate) const fn is_on(_: Mutation) -> bool {
    false
}
