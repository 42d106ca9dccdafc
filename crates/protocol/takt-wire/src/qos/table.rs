//! Table of the QoS policies: names, ids, announcement, changeability, entities and defaults.
//!
//! The table is the list of DDS 1.4 §2.2.3 with the ids of DDS 1.4 §2.3.3, and the policies of
//! XTypes 1.3 §7.6.3 and of DDS Security. It defines the QoS types of the entities, [`PolicyId`],
//! the parameters of announcements, the checks of offered and requested policies, and those of
//! changes. The module of a policy has its values, its wire form and its rule of compatibility.

use alloc::vec::Vec;
use core::any::Any;

use super::*;
use crate::compat::Incompatibility;
use crate::discovery::{PublicationData, SubscriptionData};

/// Defines the QoS type of one entity.
macro_rules! entity_qos {
    ($(#[$meta:meta])* $qos:ident { $($name:ident: $type:ident = $default:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $qos {
            $(#[doc = concat!("See [`", stringify!($type), "`].")] pub $name: $type,)+
        }

        impl Default for $qos {
            fn default() -> Self {
                Self { $($name: $type::$default(),)+ }
            }
        }

        impl PolicySet for $qos {
            fn policy<P: Policy>(&self) -> Option<&P> {
                $(if let Some(policy) = (&self.$name as &dyn Any).downcast_ref() {
                    return Some(policy);
                })+
                None
            }

            fn policy_mut<P: Policy>(&mut self) -> Option<&mut P> {
                $(if (&self.$name as &dyn Any).is::<P>() {
                    return (&mut self.$name as &mut dyn Any).downcast_mut();
                })+
                None
            }

            fn copy_from(&mut self, other: &impl PolicySet, is_selected: impl Fn(&PolicyInfo) -> bool) {
                $(if is_selected(&$type::INFO) && let Some(policy) = other.policy::<$type>() {
                    self.$name.clone_from(policy);
                })+
            }

            fn immutable_difference(&self, other: &Self) -> Option<PolicyInfo> {
                $(if !$type::INFO.is_changeable && self.$name != other.$name {
                    return Some($type::INFO);
                })+
                None
            }

            fn has_terms_of(&self, other: &Self, is_selected: impl Fn(&PolicyInfo) -> bool) -> bool {
                $((!is_selected(&$type::INFO) || self.$name.has_terms_of(&other.$name)) &&)+ true
            }

            fn accept(&mut self, parameter: &Parameter<'_>) -> Result<bool, Malformed> {
                $(if $type::PARAMETER == Some(parameter.pid) {
                    return self.$name.accept(parameter).map(|()| true);
                })+
                Ok(false)
            }

            fn put_changed(&self, list: &mut ParameterListBuilder) {
                let absent = Self::default();
                $(if $type::INFO.announcement == Some(Announcement::Changed) {
                    self.$name.put_changed(&absent.$name, list);
                })+
            }
        }
    };
}

/// Defines the methods of [`Policy`] that a property of a row implies.
macro_rules! policy_methods {
    (announced) => {
        const PARAMETER: Option<u16> = Some(<Self as WirePolicy>::PID);

        fn accept(&mut self, parameter: &Parameter<'_>) -> Result<(), Malformed> {
            *self = Self::from_parameter(parameter)?;
            Ok(())
        }

        fn put_changed(&self, absent: &Self, list: &mut ParameterListBuilder) {
            self.put_unless(absent, list);
        }
    };
    (announced_always) => {
        policy_methods!(announced);
    };
    (requested) => {
        fn has_terms_of(&self, other: &Self) -> bool {
            self.is_same_term(other)
        }

        fn check(&self, requested: &Self) -> Option<Incompatibility> {
            (!self.offers(requested)).then(|| Incompatibility {
                policy: Self::INFO.id.unwrap_or(PolicyId::Invalid),
                offered: self.offered_text(),
                requested: requested.requested_text(),
            })
        }
    };
    (changeable) => {};
}

/// Reads the rows of the table. An entity that has the policy is followed by the function that
/// returns its default.
macro_rules! policies {
    ($(
        $name:ident: $type:ident, $label:literal $(, $id:ident = $number:literal)?;
        $($property:ident)*;
        $(participant($participant:ident))? $(publisher($publisher:ident))? $(subscriber($subscriber:ident))?
        $(topic($topic:ident))? $(writer($writer:ident))? $(reader($reader:ident))?;
    )+) => {
        /// QoS policies with the ids that the OMG assigns (DDS 1.4 §2.3.3, XTypes 1.3 §7.6.3).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u32)]
        #[allow(missing_docs, reason = "each is the id of the policy of its name")]
        pub enum PolicyId {
            Invalid = 0,
            $($($id = $number,)?)+
        }

        impl PolicyId {
            /// All policies, by ascending id.
            pub const ALL: [Self; [$($(Self::$id,)?)+].len()] = ascending([$($(Self::$id,)?)+]);

            /// Returns the id.
            pub const fn id(self) -> u32 {
                self as u32
            }

            /// Returns the name of the OMG's constant without the suffix `_QOS_POLICY_ID`.
            pub const fn name(self) -> &'static str {
                match self {
                    Self::Invalid => "INVALID",
                    $($(Self::$id => $label,)?)+
                }
            }
        }

        /// All policies, in the order of their parameters in announcements.
        pub const POLICIES: &[PolicyInfo] = &[$($type::INFO,)+];

        $(impl Policy for $type {
            const INFO: PolicyInfo = PolicyInfo::new(stringify!($name), $label, Self::PARAMETER)
                $(.with_id(PolicyId::$id))? $(.$property())*;

            $(policy_methods!($property);)*
        })+

        entity_qos! {
            /// QoS policies of a participant.
            DomainParticipantQos { $($($name: $type = $participant,)?)+ }
        }
        entity_qos! {
            /// QoS policies of a publisher.
            PublisherQos { $($($name: $type = $publisher,)?)+ }
        }
        entity_qos! {
            /// QoS policies of a subscriber.
            SubscriberQos { $($($name: $type = $subscriber,)?)+ }
        }
        entity_qos! {
            /// QoS policies of a topic, which its endpoints may copy.
            TopicQos { $($($name: $type = $topic,)?)+ }
        }
        entity_qos! {
            /// QoS policies of a writer. The default is RELIABLE and offers XCDR1.
            DataWriterQos { $($($name: $type = $writer,)?)+ }
        }
        entity_qos! {
            /// QoS policies of a reader. The default is BEST_EFFORT and accepts XCDR1 and XCDR2.
            DataReaderQos { $($($name: $type = $reader,)?)+ }
        }

        /// Returns the policies in which `offered` falls short of `requested`, by ascending id.
        pub(crate) fn incompatibilities(offered: &PublicationData, requested: &SubscriptionData) -> Vec<Incompatibility> {
            let mut found = Vec::new();
            $(if $type::INFO.is_requested
                && let (Some(offered), Some(requested)) = (offered.policy::<$type>(), requested.policy::<$type>())
            {
                found.extend(offered.check(requested));
            })+
            found.sort_by_key(|incompatibility: &Incompatibility| incompatibility.policy);
            found
        }
    };
}

policies! {
    presentation: Presentation, "PRESENTATION", Presentation = 3;
        announced requested; publisher(default) subscriber(default);
    partition: Partition, "PARTITION", Partition = 10;
        announced changeable; publisher(default) subscriber(default);
    topic_data: TopicData, "TOPICDATA", TopicData = 18;
        announced changeable; topic(default);
    group_data: GroupData, "GROUPDATA", GroupData = 19;
        announced changeable; publisher(default) subscriber(default);
    durability: Durability, "DURABILITY", Durability = 2;
        announced_always requested; topic(default) writer(default) reader(default);
    durability_service: DurabilityService, "DURABILITYSERVICE", DurabilityService = 22;
        announced; topic(default) writer(default);
    deadline: Deadline, "DEADLINE", Deadline = 4;
        announced changeable requested; topic(default) writer(default) reader(default);
    latency_budget: LatencyBudget, "LATENCYBUDGET", LatencyBudget = 5;
        announced changeable requested; topic(default) writer(default) reader(default);
    liveliness: Liveliness, "LIVELINESS", Liveliness = 8;
        announced requested; topic(default) writer(default) reader(default);
    reliability: Reliability, "RELIABILITY", Reliability = 11;
        announced_always requested; topic(default) writer(reliable) reader(default);
    destination_order: DestinationOrder, "DESTINATIONORDER", DestinationOrder = 12;
        announced requested; topic(default) writer(default) reader(default);
    history: History, "HISTORY", History = 13;
        announced_always; topic(default) writer(default) reader(default);
    resource_limits: ResourceLimits, "RESOURCELIMITS", ResourceLimits = 14;
        announced; topic(default) writer(default) reader(default);
    transport_priority: TransportPriority, "TRANSPORTPRIORITY", TransportPriority = 20;
        announced changeable; topic(default) writer(default);
    lifespan: Lifespan, "LIFESPAN", Lifespan = 21;
        announced changeable; topic(default) writer(default);
    user_data: UserData, "USERDATA", UserData = 1;
        announced changeable; participant(default) writer(default) reader(default);
    ownership: Ownership, "OWNERSHIP", Ownership = 6;
        announced requested; topic(default) writer(default) reader(default);
    ownership_strength: OwnershipStrength, "OWNERSHIPSTRENGTH", OwnershipStrength = 7;
        announced changeable; writer(default);
    time_based_filter: TimeBasedFilter, "TIMEBASEDFILTER", TimeBasedFilter = 9;
        announced changeable; reader(default);
    entity_factory: EntityFactory, "ENTITYFACTORY", EntityFactory = 15;
        changeable; participant(default) publisher(default) subscriber(default);
    writer_data_lifecycle: WriterDataLifecycle, "WRITERDATALIFECYCLE", WriterDataLifecycle = 16;
        changeable; writer(default);
    reader_data_lifecycle: ReaderDataLifecycle, "READERDATALIFECYCLE", ReaderDataLifecycle = 17;
        changeable; reader(default);
    data_representation: DataRepresentation, "DATAREPRESENTATION", DataRepresentation = 23;
        announced_always requested; topic(default) writer(xcdr1) reader(any_xcdr);
    type_consistency: TypeConsistency, "TYPECONSISTENCYENFORCEMENT", TypeConsistencyEnforcement = 24;
        announced; reader(default);
    property: Property, "PROPERTY";
        announced changeable; participant(default) writer(default) reader(default);
    data_tag: DataTag, "DATA_TAG";
        announced; writer(default) reader(default);
    entity_name: EntityName, "ENTITY_NAME";
        announced; participant(default) writer(default) reader(default);
}

/// Sorts the policies by id.
const fn ascending<const N: usize>(mut policies: [PolicyId; N]) -> [PolicyId; N] {
    let mut sorted = 1;
    while sorted < N {
        let mut at = sorted;
        while at > 0 && policies[at - 1].id() > policies[at].id() {
            policies.swap(at - 1, at);
            at -= 1;
        }
        sorted += 1;
    }
    policies
}

impl DataWriterQos {
    /// Copies the policies of the topic (`copy_from_topic_qos`); the other policies stay unchanged.
    pub fn copy_from_topic(&mut self, topic: &TopicQos) {
        self.copy_from(topic, |_| true);
    }
}

impl DataReaderQos {
    /// Copies the policies of the topic (`copy_from_topic_qos`); the other policies stay unchanged.
    /// DATA_REPRESENTATION is not copied: a reader keeps its own list of accepted encodings.
    pub fn copy_from_topic(&mut self, topic: &TopicQos) {
        self.copy_from(topic, |policy| *policy != DataRepresentation::INFO);
    }
}
