//! Samples as the application sees them (DDS 1.4 §2.2.2.5.1 and §2.2.2.5.5).

use alloc::vec::Vec;
use core::cmp::Ordering;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber, SharedPayload, Timestamp};

/// Key hash (RTPS 2.5 §9.6.4.8): the key itself if it never exceeds 16 bytes, else its MD5.
pub type KeyHash = [u8; 16];

/// Handle of an instance within one reader or writer: its key hash. All zero without keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct InstanceHandle(pub KeyHash);

impl Ord for InstanceHandle {
    /// Compares the octets as one number, because every sample looks its instance up.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        u128::from_be_bytes(self.0).cmp(&u128::from_be_bytes(other.0))
    }
}

impl PartialOrd for InstanceHandle {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Handle of a participant or endpoint as an instance of a builtin topic.
impl From<Guid> for InstanceHandle {
    fn from(guid: Guid) -> Self {
        Self(guid.to_bytes())
    }
}

impl InstanceHandle {
    /// `HANDLE_NIL`; also the only instance of a topic without keys.
    pub const NIL: Self = Self([0; 16]);
}

/// Effect of a change on its instance (RTPS 2.5 §8.2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// New data.
    Alive,
    /// The instance no longer exists.
    Disposed,
    /// The writer no longer updates the instance.
    Unregistered,
    /// The writer disposes and unregisters the instance.
    DisposedUnregistered,
}

/// `NEW_VIEW_STATE` or `NOT_NEW_VIEW_STATE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewState {
    /// First samples of the instance since it was created or became alive again.
    New,
    /// The application has seen the instance.
    NotNew,
}

/// `READ_SAMPLE_STATE` or `NOT_READ_SAMPLE_STATE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleState {
    /// Read before.
    Read,
    /// Never read.
    NotRead,
}

/// State of an instance (DDS 1.4 §2.2.2.5.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// The instance has a writer and is not disposed.
    Alive,
    /// A writer disposed the instance.
    NotAliveDisposed,
    /// No writer updates the instance any more.
    NotAliveNoWriters,
}

/// Metadata of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleInfo {
    /// Whether the sample was read before.
    pub sample_state: SampleState,
    /// Whether its instance was seen before the pass (or call) that returned the sample. Equal for
    /// all samples of an instance that the pass returned.
    pub view_state: ViewState,
    /// Present state of its instance.
    pub instance_state: InstanceState,
    /// Instance of the sample.
    pub instance_handle: InstanceHandle,
    /// GUID of the writer.
    pub publication: Guid,
    /// Sequence number of the change. Zero for a sample that only reports unmatched writers.
    pub sequence_number: SequenceNumber,
    /// Original writer and its sequence number. Equal to `publication` and `sequence_number` unless
    /// a durability service relayed the sample.
    pub origin: SampleIdentity,
    /// Time of the write, by the writer's wall clock.
    pub source_timestamp: Timestamp,
    /// Time of arrival, by the reader's wall clock.
    pub reception_timestamp: Timestamp,
    /// Number of times the instance had become alive again after a disposal, as of the sample's
    /// arrival.
    pub disposed_generation_count: u32,
    /// Number of times it had become alive again after having no writer.
    pub no_writers_generation_count: u32,
    /// Number of later samples of the instance in the same collection; 0 for a sample read alone.
    pub sample_rank: u32,
    /// Number of times the instance became alive again between this sample and its last one in the
    /// same collection; 0 for a sample read alone.
    pub generation_rank: u32,
    /// Number of times it became alive again between this sample and the last one that the reader
    /// had when this one was read.
    pub absolute_generation_rank: u32,
    /// False if the sample has no data and only reports a change of the instance state.
    pub valid_data: bool,
}

impl SampleInfo {
    /// Returns the writer as an instance of the builtin topic DCPSPublication
    /// (`publication_handle`).
    #[must_use]
    pub fn publication_handle(&self) -> InstanceHandle {
        self.publication.into()
    }

    /// Returns how often the instance had become alive again when the sample arrived
    /// (DDS 1.4 §2.2.2.5.1.5).
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.disposed_generation_count.wrapping_add(self.no_writers_generation_count)
    }
}

/// Borrowed sample in the reader's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRef<'a> {
    /// Metadata of the sample.
    pub info: SampleInfo,
    /// Effect of the change on its instance, whose state may have changed since.
    pub kind: ChangeKind,
    /// Serialized data if `info.valid_data`, else the serialized key if it is known, else empty.
    /// Begins with the 4 bytes of the encapsulation header.
    pub payload: &'a [u8],
    /// Loan of the data, if another participant owns them and the call does not copy them.
    pub loan: Option<&'a SharedPayload>,
    /// Index, counted from 0, of the previous sample of the same instance among those that this
    /// pass returned.
    pub previous: Option<u32>,
}

/// A set of states, as the masks of DDS 1.4 §2.2.2.5.1.
macro_rules! state_mask {
    ($(#[$doc:meta])* $mask:ident of $state:ident { $($(#[$item:meta])* $name:ident = $variant:ident),* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $mask(u8);

        impl $mask {
            $($(#[$item])* pub const $name: Self = Self(1 << $state::$variant as u8);)*
            /// All states.
            pub const ANY: Self = Self(u8::MAX);

            /// Reports whether the state is in the set.
            #[must_use]
            pub const fn contains(self, state: $state) -> bool {
                self.0 & (1 << state as u8) != 0
            }
        }

        impl core::ops::BitOr for $mask {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    };
}

state_mask! {
    /// Sample states.
    SampleStates of SampleState {
        /// Read before.
        READ = Read,
        /// Never read.
        NOT_READ = NotRead
    }
}

state_mask! {
    /// View states.
    ViewStates of ViewState {
        /// Not seen before.
        NEW = New,
        /// Seen before.
        NOT_NEW = NotNew
    }
}

state_mask! {
    /// Instance states.
    InstanceStates of InstanceState {
        /// With a writer, not disposed.
        ALIVE = Alive,
        /// Disposed.
        NOT_ALIVE_DISPOSED = NotAliveDisposed,
        /// Without a writer.
        NOT_ALIVE_NO_WRITERS = NotAliveNoWriters
    }
}

/// Filter of a read or take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Remove the returned samples.
    pub take: bool,
    /// Only samples in one of these states.
    pub sample_states: SampleStates,
    /// Only samples of instances in one of these view states.
    pub view_states: ViewStates,
    /// Only samples of instances in one of these states.
    pub instance_states: InstanceStates,
    /// Only samples of these instances.
    pub instance: Instances,
}

/// Instances of a read or take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Instances {
    /// All instances.
    #[default]
    Any,
    /// Instance with this handle.
    Only(InstanceHandle),
    /// First instance after a handle, or the first of all, with samples in the requested states.
    /// Handles have a total order, so the reader need not know the given one.
    After(Option<InstanceHandle>),
}

impl Selector {
    /// Reads all samples, without removing them.
    pub const READ: Self = Self {
        take: false,
        sample_states: SampleStates::ANY,
        view_states: ViewStates::ANY,
        instance_states: InstanceStates::ANY,
        instance: Instances::Any,
    };
    /// Takes all samples.
    pub const TAKE: Self = Self { take: true, ..Self::READ };

    /// Restricts the selector to samples in these states.
    #[must_use]
    pub const fn in_states(self, samples: SampleStates, views: ViewStates, instances: InstanceStates) -> Self {
        Self { sample_states: samples, view_states: views, instance_states: instances, ..self }
    }

    /// Restricts the selector to samples of one instance.
    #[must_use]
    pub const fn of(self, instance: InstanceHandle) -> Self {
        Self { instance: Instances::Only(instance), ..self }
    }

    /// Restricts the selector to samples of the next instance; see [`Instances::After`].
    #[must_use]
    pub const fn after(self, previous: Option<InstanceHandle>) -> Self {
        Self { instance: Instances::After(previous), ..self }
    }

    pub(super) fn wants(
        &self,
        (sample, view, instance): (SampleState, ViewState, InstanceState),
        handle: InstanceHandle,
    ) -> bool {
        self.sample_states.contains(sample)
            && self.view_states.contains(view)
            && self.instance_states.contains(instance)
            && match self.instance {
                Instances::Any | Instances::After(None) => true,
                Instances::Only(only) => handle == only,
                Instances::After(Some(previous)) => handle > previous,
            }
    }
}

/// Position of a pass over a reader's samples. Start each pass with a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCursor {
    /// Position in order of arrival after which the pass continues.
    pub(crate) after: u64,
    /// Entry returned last, if it still exists.
    pub(crate) entry: u32,
    /// Number of the pass; zero before it begins.
    pub(crate) pass: u64,
    /// Present instance, if the pass iterates over instances.
    pub(crate) instance: Option<InstanceHandle>,
    /// Number of returned samples.
    pub(crate) returned: u32,
    /// Payloads that other participants loan are not copied.
    pub(crate) keeps_loans: bool,
}

impl ReadCursor {
    /// Returns the position of a pass without copies of loaned payloads: the payload of a loaned
    /// sample is empty, and [`SampleRef::loan`] locates it.
    #[must_use]
    pub fn of_loans() -> Self {
        Self { keeps_loans: true, ..Self::default() }
    }

    /// Reports whether the pass has requested a sample already.
    pub(crate) fn has_begun(&self) -> bool {
        self.pass != 0
    }

    /// Excludes the sample returned last from the count, because the caller does not use it.
    pub fn reject_last(&mut self) {
        self.returned = self.returned.saturating_sub(1);
    }
}

/// Content query of a QueryCondition (DDS 1.4 §2.2.2.5.9). The implementation knows the type.
pub trait SampleQuery {
    /// Reports whether a sample with this payload, or one without data, matches.
    fn matches(&self, payload: Option<&[u8]>) -> bool;

    /// Compares two payloads; that of a sample without data is empty.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
}

/// Sample in the order of a query. It is valid until the next other operation on its reader.
#[derive(Clone, Copy, Debug)]
pub struct OrderedSample {
    pub(crate) entry: u32,
    pub(crate) arrival: u64,
}

/// Extracts the key of a serialized sample. The implementation knows the type, so the core need
/// not.
pub trait KeyExtractor: Send {
    /// Returns the key hash of `payload`, which begins with its encapsulation header and holds only
    /// the key members if `key_only`. `None` if it cannot be decoded. Should not allocate after the
    /// first calls.
    ///
    /// The hash is the handle of the instance, so it must not depend on the representation of the
    /// payload: XTypes 1.3 §7.6.8 uses PLAIN_CDR2 for all.
    fn key_hash(&mut self, payload: &[u8], key_only: bool) -> Option<KeyHash>;

    /// Returns the key hash in XCDR1, which some writers announce instead. If `is_digest`, it is
    /// the MD5 even of a short key. Called once for each new instance. `None` if it cannot be
    /// decoded or is never announced.
    fn key_hash_in_xcdr1(&mut self, _payload: &[u8], _key_only: bool, _is_digest: bool) -> Option<KeyHash> {
        None
    }

    /// Returns the key hash of a change whose payload cannot be decoded and that announces none.
    /// `None`: the change is dropped.
    fn unknown_key_hash(&self) -> Option<KeyHash> {
        None
    }

    /// Appends the serialized key (with encapsulation header) of `payload` to `key`. Returns false
    /// if it cannot be decoded. Called once for each new instance.
    fn serialize_key(&mut self, payload: &[u8], key_only: bool, key: &mut Vec<u8>) -> bool;
}
