//! Position of a change among those of its writer and of its publisher (RTPS 2.5 §8.7.5, §8.7.6;
//! DDS 1.4 §2.2.3.6).
//!
//! A *coherent set* contains the changes of one writer between `begin_coherent_changes` and
//! `end_coherent_changes`. A *group set* contains the changes of all writers of a publisher in that
//! time. A set is identified by the number of its first change. If the PRESENTATION of a publisher
//! has the scope GROUP, its changes also have a *group sequence number*, which counts the changes
//! of all its writers. Zero stands for the absence of each of these.

use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::inline_qos::InlineQos;
use takt_wire::qos::{AccessScope, Presentation};
use takt_wire::{EntityId, SequenceNumber};

/// Position of a change in its sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetPosition {
    /// Number of the first change of its coherent set.
    pub(crate) set: SequenceNumber,
    /// Group sequence number of the first change of its group set.
    pub(crate) group_set: SequenceNumber,
    /// Group sequence number of the change.
    pub(crate) gsn: SequenceNumber,
    /// The change has no content and only ends its set.
    pub(crate) ends: bool,
    /// At a reader: the change has arrived and is irrelevant to this reader.
    pub(crate) absorbed: bool,
    /// At a reader: the change is the last of its writer's contribution to the set, of which
    /// nothing is missing.
    pub(crate) closes: bool,
}

impl SetPosition {
    /// Reads the position from the inline QoS. `is_empty`: the change has neither payload, key nor
    /// status.
    ///
    /// A set ends with the first change outside it. An empty change serves only that purpose.
    pub(crate) fn of(inline: &InlineQos<'_>, is_empty: bool) -> Self {
        let number = |number: Option<SequenceNumber>| number.filter(|number| number.is_valid()).unwrap_or_default();
        Self {
            set: if is_empty { SequenceNumber::ZERO } else { number(inline.coherent_set) },
            group_set: number(inline.group_coherent_set),
            gsn: number(inline.group_seq_num),
            ends: is_empty,
            ..Self::default()
        }
    }

    /// Reports whether the change is a member of a coherent set.
    pub(crate) fn is_member(&self) -> bool {
        self.set.is_valid() && !self.ends
    }
}

/// Information that a writer omits although it offers the scope GROUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingGroupInfo {
    /// Entity ID of its publisher.
    Publisher,
    /// Group sequence numbers of its changes.
    Numbers,
    /// Group information in its HEARTBEATs: the last group sequence number of the publisher.
    Heartbeats,
}

impl MissingGroupInfo {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Publisher => {
                "the writer offers PRESENTATION with access_scope GROUP and announces no PID_GROUP_ENTITYID: its coherent sets are \
                 presented writer by writer, and its changes are ordered only within each writer"
            }
            Self::Numbers => {
                "the writer offers PRESENTATION with access_scope GROUP and sends no PID_GROUP_SEQ_NUM or PID_GROUP_COHERENT_SET: \
                 its coherent sets are presented writer by writer, and its changes are ordered only within each writer"
            }
            Self::Heartbeats => {
                "the writer offers PRESENTATION with access_scope GROUP and sends no group information in its HEARTBEATs: changes \
                 of the other writers of its publisher wait until it has answered an ACKNACK, and a set may be presented without it"
            }
        }
    }
}

/// Returns a warning about a matched pair that cannot provide all of PRESENTATION. The reader
/// requests coherent or ordered access with the scope GROUP, and the writer does not announce its
/// publisher.
#[must_use]
pub fn presentation_caution(writer: &PublicationData, reader: &SubscriptionData) -> Option<&'static str> {
    missing_group_info(writer, &reader.presentation).map(MissingGroupInfo::text)
}

/// Returns the reason behind [`presentation_caution`].
pub(crate) fn missing_group_info(writer: &PublicationData, requested: &Presentation) -> Option<MissingGroupInfo> {
    let wants = is_of_group(requested) && (requested.coherent_access || requested.ordered_access);
    let lacks = is_of_group(&writer.presentation) && writer.group_entity_id == EntityId::UNKNOWN;
    (wants && lacks).then_some(MissingGroupInfo::Publisher)
}

/// Reports whether changes of a publisher have group sequence numbers, and readers of a subscriber
/// use them.
pub(crate) fn is_of_group(presentation: &Presentation) -> bool {
    presentation.access_scope == AccessScope::Group
}

/// Reports whether a publisher with this PRESENTATION sends the positions of its changes.
pub(crate) fn uses_positions(presentation: &Presentation) -> bool {
    presentation.coherent_access || is_of_group(presentation)
}
