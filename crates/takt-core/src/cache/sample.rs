//! What the application sees of a sample (DDS 1.4 §2.2.2.5.1 and §2.2.2.5.5).

use alloc::vec::Vec;
use core::cmp::Ordering;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, Lent, SequenceNumber, Timestamp};

/// RTPS 2.5 §9.6.4.8: the key itself if it never exceeds 16 bytes, else its MD5.
pub type KeyHash = [u8; 16];

/// Identifies an instance of a topic within one reader or writer: its key hash. All zero without keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct InstanceHandle(pub KeyHash);

impl Ord for InstanceHandle {
    /// By octets, compared as one number: every sample looks its instance up.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        u128::from_be_bytes(self.0).cmp(&u128::from_be_bytes(other.0))
    }
}

impl PartialOrd for InstanceHandle {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The handle of a participant or endpoint as an instance of a builtin topic.
impl From<Guid> for InstanceHandle {
    fn from(guid: Guid) -> Self {
        Self(guid.to_bytes())
    }
}

impl InstanceHandle {
    /// `HANDLE_NIL`; also the only instance of a topic without keys.
    pub const NIL: Self = Self([0; 16]);
}

/// What a change does to its instance (RTPS 2.5 §8.2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// New data.
    Alive,
    /// The instance does not exist any more.
    Disposed,
    /// The writer no longer updates the instance.
    Unregistered,
    /// Both.
    DisposedUnregistered,
}

/// `NEW_VIEW_STATE` or `NOT_NEW_VIEW_STATE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewState {
    /// First sample of the instance since it was born.
    New,
    /// The application has seen this instance.
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
    /// Has a writer and is not disposed.
    Alive,
    /// A writer disposed it.
    NotAliveDisposed,
    /// No writer updates it any more.
    NotAliveNoWriters,
}

/// Everything known of a sample besides its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleInfo {
    /// Whether it was read before.
    pub sample_state: SampleState,
    /// Whether its instance was seen before the pass (or call) that returned the sample: the same for all samples of one
    /// instance that it returned.
    pub view_state: ViewState,
    /// The state of its instance now.
    pub instance_state: InstanceState,
    /// Which instance.
    pub instance_handle: InstanceHandle,
    /// Which writer.
    pub publication: Guid,
    /// The writer's count of its changes. Zero where the sample only tells that writers have gone.
    pub sequence_number: SequenceNumber,
    /// Who wrote it first and which change of that writer it is: the two above, unless a durability service passed it on.
    pub origin: SampleIdentity,
    /// When it was written, by the writer's wall clock.
    pub source_timestamp: Timestamp,
    /// When it arrived, by ours.
    pub reception_timestamp: Timestamp,
    /// How often the instance had come back from disposal when the sample arrived.
    pub disposed_generation_count: u32,
    /// How often it had come back from having no writer.
    pub no_writers_generation_count: u32,
    /// How many samples of the instance follow in the same collection; 0 where a sample is read alone.
    pub sample_rank: u32,
    /// How often the instance came back between this sample and the last of it in the same collection; 0 where a sample is
    /// read alone.
    pub generation_rank: u32,
    /// How often it came back between this sample and the last of it that the reader had when this one was read.
    pub absolute_generation_rank: u32,
    /// False if there are no data but only news of the instance.
    pub valid_data: bool,
}

impl SampleInfo {
    /// The writer, as an instance of the builtin topic DCPSPublication (`publication_handle`).
    #[must_use]
    pub fn publication_handle(&self) -> InstanceHandle {
        self.publication.into()
    }

    /// How often the instance had come back when the sample arrived (DDS 1.4 §2.2.2.5.1.5).
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.disposed_generation_count.wrapping_add(self.no_writers_generation_count)
    }
}

/// A sample in the reader's history, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRef<'a> {
    /// About the sample.
    pub info: SampleInfo,
    /// What the change does to its instance, whose state may be another one by now.
    pub kind: ChangeKind,
    /// The serialised data if `info.valid_data`, else the serialised key if it is known, else empty.
    /// Begins with the 4 bytes of the encapsulation header.
    pub payload: &'a [u8],
    /// The hold on the data, if another participant lends them and the call does not copy them.
    pub lent: Option<&'a Lent>,
    /// Which one of the samples that this pass returned before, counted from 0, was the last one of the same instance.
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
            /// All of them.
            pub const ANY: Self = Self(u8::MAX);

            /// Whether the state is in the set.
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
        /// First seen.
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

/// Which samples a read or take wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Remove what is returned.
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

/// The instances that a read or take is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Instances {
    /// All of them.
    #[default]
    Any,
    /// This one.
    Only(InstanceHandle),
    /// The first one behind a handle, or of all, that has samples in the states asked for. Handles are in a total order, so the
    /// one named need not be known (any more).
    After(Option<InstanceHandle>),
}

impl Selector {
    /// All samples, leaving them.
    pub const READ: Self = Self {
        take: false,
        sample_states: SampleStates::ANY,
        view_states: ViewStates::ANY,
        instance_states: InstanceStates::ANY,
        instance: Instances::Any,
    };
    /// All samples, removing them.
    pub const TAKE: Self = Self { take: true, ..Self::READ };

    /// Only samples in these states.
    #[must_use]
    pub const fn in_states(self, samples: SampleStates, views: ViewStates, instances: InstanceStates) -> Self {
        Self { sample_states: samples, view_states: views, instance_states: instances, ..self }
    }

    /// Only samples of one instance.
    #[must_use]
    pub const fn of(self, instance: InstanceHandle) -> Self {
        Self { instance: Instances::Only(instance), ..self }
    }

    /// Only samples of the instance that comes next; see [`Instances::After`].
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

/// Where a pass over a reader's samples stands. Start each pass with the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCursor {
    /// Position in order of arrival after which the pass continues.
    pub(crate) after: u64,
    /// The entry returned last, if it is still there.
    pub(crate) entry: u32,
    /// Which pass this is; zero before it begins.
    pub(crate) pass: u64,
    /// The instance that it has come to, where it goes by instances.
    pub(crate) instance: Option<InstanceHandle>,
    /// How many samples it has returned.
    pub(crate) returned: u32,
}

impl ReadCursor {
    /// The pass has asked for a sample already.
    pub(crate) fn has_begun(&self) -> bool {
        self.pass != 0
    }

    /// The sample returned last does not count: the caller has no use for it.
    pub fn reject_last(&mut self) {
        self.returned = self.returned.saturating_sub(1);
    }
}

/// Which samples a QueryCondition is about, by their content (DDS 1.4 §2.2.2.5.9); the type's own code.
pub trait SampleQuery {
    /// Whether it wants a sample with this payload, or one without data.
    fn meets(&self, payload: Option<&[u8]>) -> bool;

    /// The order of two payloads; of a sample without data it is empty.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
}

/// A sample in the order of a query, to be read while nothing else is done with its reader.
#[derive(Clone, Copy, Debug)]
pub struct OrderedSample {
    pub(crate) entry: u32,
    pub(crate) arrival: u64,
}

/// Reads the key of a serialised sample; the type's own code, so that the core need not know types.
pub trait KeyExtractor: Send {
    /// The key hash of `payload`, which begins with its encapsulation header and holds only the key members
    /// if `key_only`. `None` if it cannot be decoded. Should not allocate once warm.
    ///
    /// It is the handle of the instance, so it must not depend on the representation of the payload: XTypes 1.3 §7.6.8 takes
    /// PLAIN_CDR2 for all.
    fn key_hash(&mut self, payload: &[u8], key_only: bool) -> Option<KeyHash>;

    /// The key hash in XCDR1, which some writers announce instead; of a short key, too, its MD5 if `is_digest`. Called once for
    /// each new instance. `None` if it cannot be decoded or is never announced.
    fn key_hash_in_xcdr1(&mut self, _payload: &[u8], _key_only: bool, _is_digest: bool) -> Option<KeyHash> {
        None
    }

    /// The key hash of a change whose payload cannot be decoded and that announces none. `None`: it is dropped.
    fn unknown_key_hash(&self) -> Option<KeyHash> {
        None
    }

    /// Appends the serialised key (with encapsulation header) of `payload` to `key`; false if it cannot be
    /// decoded. Called once for each new instance.
    fn serialize_key(&mut self, payload: &[u8], key_only: bool, key: &mut Vec<u8>) -> bool;
}
