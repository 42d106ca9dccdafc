//! Where a change stands among those of its writer and of its publisher (RTPS 2.5 §8.7.5, §8.7.6; DDS 1.4 §2.2.3.6).
//!
//! A *coherent set* is what one writer changes between `begin_coherent_changes` and `end_coherent_changes`, a *group set*
//! what all writers of a publisher change meanwhile. A set is named by the number of its first change. Changes of a
//! publisher whose PRESENTATION has the scope GROUP also have a *group sequence number*, which counts those of all its
//! writers. Zero stands for none of these.

use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::inline_qos::InlineQos;
use takt_wire::qos::{AccessScope, Presentation};
use takt_wire::{EntityId, SequenceNumber};

/// The place of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the first change of its coherent set.
    pub(crate) set: SequenceNumber,
    /// The group sequence number of the first change of its group set.
    pub(crate) group_set: SequenceNumber,
    /// Its group sequence number.
    pub(crate) gsn: SequenceNumber,
    /// It changes nothing, but ends the set.
    pub(crate) ends: bool,
    /// At a reader: it has arrived and is not for this reader.
    pub(crate) absorbed: bool,
    /// At a reader: it is the last one of what its writer adds to its set, of which nothing is missing.
    pub(crate) closes: bool,
}

impl Place {
    /// What inline QoS says of the place. `is_empty`: the change has neither payload, key nor status.
    ///
    /// A set ends with the first change that is not of it. One without any content is there for that alone.
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

    /// Whether it is a member of a coherent set.
    pub(crate) fn is_member(&self) -> bool {
        self.set.is_valid() && !self.ends
    }
}

/// What a writer leaves out that offers the scope GROUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupLack {
    /// Which publisher it is of.
    Publisher,
    /// Group sequence numbers of its changes.
    Numbers,
    /// How far the publisher has counted.
    Heartbeats,
}

impl GroupLack {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Publisher => {
                "the writer offers PRESENTATION with access_scope GROUP and announces no PID_GROUP_ENTITYID: its coherent sets are \
                 shown writer by writer, and its changes in the order of each writer alone"
            }
            Self::Numbers => {
                "the writer offers PRESENTATION with access_scope GROUP and sends no PID_GROUP_SEQ_NUM or PID_GROUP_COHERENT_SET: \
                 its coherent sets are shown writer by writer, and its changes in the order of each writer alone"
            }
            Self::Heartbeats => {
                "the writer offers PRESENTATION with access_scope GROUP and sends no group information in its HEARTBEATs: changes \
                 of the other writers of its publisher wait until it has answered an ACKNACK, and a set may be shown without it"
            }
        }
    }
}

/// What a writer and a reader announce that match and will not do all of PRESENTATION: the reader asks for coherent or ordered
/// access with the scope GROUP, and the writer does not announce its publisher.
#[must_use]
pub fn presentation_caution(writer: &PublicationData, reader: &SubscriptionData) -> Option<&'static str> {
    announced_lack(writer, &reader.presentation).map(GroupLack::text)
}

/// See [`presentation_caution`].
pub(crate) fn announced_lack(writer: &PublicationData, requested: &Presentation) -> Option<GroupLack> {
    let wants = is_of_group(requested) && (requested.coherent_access || requested.ordered_access);
    let lacks = is_of_group(&writer.presentation) && writer.group_entity_id == EntityId::UNKNOWN;
    (wants && lacks).then_some(GroupLack::Publisher)
}

/// Whether changes of a publisher have group sequence numbers, and readers of a subscriber look at them.
pub(crate) fn is_of_group(presentation: &Presentation) -> bool {
    presentation.access_scope == AccessScope::Group
}

/// Whether a publisher of such a PRESENTATION has anything to say about the place of its changes.
pub(crate) fn matters(presentation: &Presentation) -> bool {
    presentation.coherent_access || is_of_group(presentation)
}
