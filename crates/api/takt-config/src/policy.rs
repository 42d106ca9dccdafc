//! Table of QoS policies: each field with its kind, its field in Takt's types and its description.
//! Readers, writers and the reference documentation use this table only.
//!
//! Element names are those of DDS-XML 1.0 §7.3.2. `data_representation`, `type_consistency` and
//! `property` are in its revision. `entity_name` and `data_tag` are specific to Takt.

use takt::qos::*;

use crate::value::{Kind, Value};

/// Kind of entity that has policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is the entity of its name")]
pub enum Entity {
    Participant,
    Publisher,
    Subscriber,
    Topic,
    DataWriter,
    DataReader,
}

impl Entity {
    /// All kinds of entities.
    pub const ALL: [Self; 6] =
        [Self::Participant, Self::Publisher, Self::Subscriber, Self::Topic, Self::DataWriter, Self::DataReader];

    /// Returns the name of the element that contains the policies.
    #[must_use]
    pub fn element(self) -> &'static str {
        match self {
            Self::Participant => "domain_participant_qos",
            Self::Publisher => "publisher_qos",
            Self::Subscriber => "subscriber_qos",
            Self::Topic => "topic_qos",
            Self::DataWriter => "datawriter_qos",
            Self::DataReader => "datareader_qos",
        }
    }

    /// Returns the entity of an element name, with or without `_qos`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let matches = |entity: &Self| entity.element() == name || entity.element().strip_suffix("_qos") == Some(name);
        Self::ALL.into_iter().find(matches)
    }

    /// Reports whether the policies may depend on the topic.
    #[must_use]
    pub fn has_topic(self) -> bool {
        matches!(self, Self::Topic | Self::DataWriter | Self::DataReader)
    }
}

/// Policies of one entity of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the policies of the entity of its name")]
pub enum EntityQos {
    Participant(DomainParticipantQos),
    Publisher(PublisherQos),
    Subscriber(SubscriberQos),
    Topic(TopicQos),
    DataWriter(DataWriterQos),
    DataReader(DataReaderQos),
}

impl EntityQos {
    /// Returns the policy of this type, or `None` if the entity has none.
    fn policy<P: Policy>(&self) -> Option<&P> {
        match self {
            Self::Participant(qos) => qos.policy(),
            Self::Publisher(qos) => qos.policy(),
            Self::Subscriber(qos) => qos.policy(),
            Self::Topic(qos) => qos.policy(),
            Self::DataWriter(qos) => qos.policy(),
            Self::DataReader(qos) => qos.policy(),
        }
    }

    /// As [`Self::policy`].
    fn policy_mut<P: Policy>(&mut self) -> Option<&mut P> {
        match self {
            Self::Participant(qos) => qos.policy_mut(),
            Self::Publisher(qos) => qos.policy_mut(),
            Self::Subscriber(qos) => qos.policy_mut(),
            Self::Topic(qos) => qos.policy_mut(),
            Self::DataWriter(qos) => qos.policy_mut(),
            Self::DataReader(qos) => qos.policy_mut(),
        }
    }

    /// Returns Takt's defaults.
    #[must_use]
    pub fn default_of(entity: Entity) -> Self {
        match entity {
            Entity::Participant => Self::Participant(DomainParticipantQos::default()),
            Entity::Publisher => Self::Publisher(PublisherQos::default()),
            Entity::Subscriber => Self::Subscriber(SubscriberQos::default()),
            Entity::Topic => Self::Topic(TopicQos::default()),
            Entity::DataWriter => Self::DataWriter(DataWriterQos::default()),
            Entity::DataReader => Self::DataReader(DataReaderQos::default()),
        }
    }
}

/// Field of a policy.
pub struct Field {
    /// Name of the policy's element.
    pub policy: &'static str,
    /// Name of the field's element within the policy.
    pub name: &'static str,
    /// Kind of the values.
    pub kind: Kind,
    /// Description for users.
    pub help: &'static str,
    get: fn(&EntityQos) -> Option<Value>,
    set: fn(&mut EntityQos, &Value),
}

impl Field {
    /// Returns the path `policy.field`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}.{}", self.policy, self.name)
    }

    /// Returns the value in these policies, or `None` if the entity has no such policy.
    #[must_use]
    pub fn get(&self, qos: &EntityQos) -> Option<Value> {
        (self.get)(qos)
    }

    /// Reports whether entities of this kind have the policy.
    #[must_use]
    pub fn is_of(&self, entity: Entity) -> bool {
        self.get(&EntityQos::default_of(entity)).is_some()
    }

    /// Sets the field to a value of its kind.
    pub(crate) fn set(&self, qos: &mut EntityQos, value: &Value) {
        (self.set)(qos, value);
    }
}

/// Returns the field of a path `policy.field`, or all fields of a policy by its name.
#[must_use]
pub fn find(name: &str) -> Vec<&'static Field> {
    FIELDS.iter().filter(|field| field.policy == name || field.path() == name).collect()
}

const NATURAL: Kind = Kind::Int { min: 1, max: i32::MAX as i64 };
const INTEGER: Kind = Kind::Int { min: i32::MIN as i64, max: i32::MAX as i64 };

/// Builds the rows of the table:
/// `Policy { field: kind, read => value, write => place = what, help; }`.
macro_rules! fields {
    ($($policy:ident {
        $($name:ident: $kind:expr, $p:ident => $get:expr, $pattern:pat => $set:expr, $help:literal;)+
    })+) => {
        &[$($(Field {
            policy: $policy::INFO.name,
            name: stringify!($name),
            kind: $kind,
            help: $help,
            get: |qos| qos.policy::<$policy>().map(|$p| $get),
            set: |qos, value| {
                if let (Some($p), $pattern) = (qos.policy_mut::<$policy>(), value) {
                    $set
                }
            },
        },)+)+]
    };
}

/// Maps the kinds of one policy to words and back.
macro_rules! words {
    ($table:ident, $kind:ident: $type:ty, $suffix:literal, $($word:literal = $value:expr),+ $(,)?) => {
        const $table: &[(&str, $type)] = &[$(($word, $value)),+];
        const $kind: Kind = Kind::Word { words: &[$($word),+], suffix: $suffix };
    };
}

words!(DURABILITY, DURABILITY_KIND: Durability, "_DURABILITY_QOS",
    "VOLATILE" = Durability::Volatile, "TRANSIENT_LOCAL" = Durability::TransientLocal,
    "TRANSIENT" = Durability::Transient, "PERSISTENT" = Durability::Persistent);
words!(SCOPE, SCOPE_KIND: AccessScope, "_PRESENTATION_QOS",
    "INSTANCE" = AccessScope::Instance, "TOPIC" = AccessScope::Topic, "GROUP" = AccessScope::Group);
words!(OWNERSHIP, OWNERSHIP_KIND: Ownership, "_OWNERSHIP_QOS",
    "SHARED" = Ownership::Shared, "EXCLUSIVE" = Ownership::Exclusive);
words!(LIVELINESS, LIVELINESS_KIND: LivelinessKind, "_LIVELINESS_QOS",
    "AUTOMATIC" = LivelinessKind::Automatic, "MANUAL_BY_PARTICIPANT" = LivelinessKind::ManualByParticipant,
    "MANUAL_BY_TOPIC" = LivelinessKind::ManualByTopic);
words!(RELIABILITY, RELIABILITY_KIND: ReliabilityKind, "_RELIABILITY_QOS",
    "BEST_EFFORT" = ReliabilityKind::BestEffort, "RELIABLE" = ReliabilityKind::Reliable);
words!(ORDER, ORDER_KIND: DestinationOrder, "_DESTINATIONORDER_QOS",
    "BY_RECEPTION_TIMESTAMP" = DestinationOrder::ByReceptionTimestamp,
    "BY_SOURCE_TIMESTAMP" = DestinationOrder::BySourceTimestamp);
words!(COERCION, COERCION_KIND: TypeConsistencyKind, "_TYPE_COERCION",
    "DISALLOW" = TypeConsistencyKind::DisallowTypeCoercion, "ALLOW" = TypeConsistencyKind::AllowTypeCoercion);

/// Kind of HISTORY. The depth is a separate field.
const HISTORY_KIND: Kind = Kind::Word { words: &["KEEP_LAST", "KEEP_ALL"], suffix: "_HISTORY_QOS" };
const REPRESENTATIONS: &[(&str, i16)] =
    &[("XCDR", DataRepresentation::XCDR1), ("XML", DataRepresentation::XML), ("XCDR2", DataRepresentation::XCDR2)];
const REPRESENTATION_KIND: Kind = Kind::Words { words: &["XCDR", "XML", "XCDR2"], suffix: "_DATA_REPRESENTATION" };

/// All fields, in the order of DDS 1.4 §2.2.3. A kind precedes the fields that depend on it.
pub const FIELDS: &[Field] = fields! {
    UserData {
        value: Kind::Octets, p => Value::Octets(p.0.clone()), Value::Octets(v) => p.0 = v.clone(),
            "octets announced with the entity";
    }
    TopicData {
        value: Kind::Octets, p => Value::Octets(p.0.clone()), Value::Octets(v) => p.0 = v.clone(),
            "octets announced with the endpoints of the topic";
    }
    GroupData {
        value: Kind::Octets, p => Value::Octets(p.0.clone()), Value::Octets(v) => p.0 = v.clone(),
            "octets announced with the endpoints of the publisher or subscriber";
    }
    Durability {
        kind: DURABILITY_KIND, p => word(DURABILITY, *p), Value::Word(w) => *p = of_word(DURABILITY, w),
            "whether late-joining readers receive earlier samples, and from where";
    }
    DurabilityService {
        service_cleanup_delay: Kind::Duration, p => Value::Duration(p.service_cleanup_delay),
            Value::Duration(v) => p.service_cleanup_delay = *v,
            "delay until the durability service may purge a disposed instance without writers";
        history_kind: HISTORY_KIND, p => history_kind(p.history),
            Value::Word(w) => p.history = with_kind(p.history, w), "history kind of the durability service";
        history_depth: NATURAL, p => history_depth(p.history),
            Value::Int(v) => p.history = with_depth(p.history, *v), "history depth of the durability service";
        max_samples: Kind::Length, p => Value::Length(p.resource_limits.max_samples),
            Value::Length(v) => p.resource_limits.max_samples = *v, "samples that the durability service keeps";
        max_instances: Kind::Length, p => Value::Length(p.resource_limits.max_instances),
            Value::Length(v) => p.resource_limits.max_instances = *v, "instances that the durability service keeps";
        max_samples_per_instance: Kind::Length,
            p => Value::Length(p.resource_limits.max_samples_per_instance),
            Value::Length(v) => p.resource_limits.max_samples_per_instance = *v,
            "samples that the durability service keeps of each instance";
    }
    Presentation {
        access_scope: SCOPE_KIND, p => word(SCOPE, p.access_scope),
            Value::Word(w) => p.access_scope = of_word(SCOPE, w), "scope of coherent and ordered access";
        coherent_access: Kind::Bool, p => Value::Bool(p.coherent_access),
            Value::Bool(v) => p.coherent_access = *v, "a coherent set of changes becomes visible at once";
        ordered_access: Kind::Bool, p => Value::Bool(p.ordered_access),
            Value::Bool(v) => p.ordered_access = *v, "changes are visible in the order in which they were made";
    }
    Deadline {
        period: Kind::Duration, p => Value::Duration(p.period), Value::Duration(v) => p.period = *v,
            "maximum time between two updates of an instance";
    }
    LatencyBudget {
        duration: Kind::Duration, p => Value::Duration(p.duration), Value::Duration(v) => p.duration = *v,
            "acceptable latency of a sample, a hint";
    }
    Ownership {
        kind: OWNERSHIP_KIND, p => word(OWNERSHIP, *p), Value::Word(w) => *p = of_word(OWNERSHIP, w),
            "whether several writers may update one instance";
    }
    OwnershipStrength {
        value: INTEGER, p => Value::Int(p.0.into()), Value::Int(v) => p.0 = int(*v),
            "the writer with the highest strength owns an exclusive instance";
    }
    Liveliness {
        kind: LIVELINESS_KIND, p => word(LIVELINESS, p.kind), Value::Word(w) => p.kind = of_word(LIVELINESS, w),
            "whether the middleware or the application asserts liveliness";
        lease_duration: Kind::Duration, p => Value::Duration(p.lease_duration),
            Value::Duration(v) => p.lease_duration = *v, "time for which one assertion of liveliness is valid";
    }
    TimeBasedFilter {
        minimum_separation: Kind::Duration, p => Value::Duration(p.minimum_separation),
            Value::Duration(v) => p.minimum_separation = *v, "minimum time between two samples of an instance";
    }
    Partition {
        name: Kind::Texts, p => Value::Texts(p.names.clone()), Value::Texts(v) => p.names = v.clone(),
            "partitions, with wildcards; an empty list is the partition with the empty name";
    }
    Reliability {
        kind: RELIABILITY_KIND, p => word(RELIABILITY, p.kind),
            Value::Word(w) => p.kind = of_word(RELIABILITY, w), "whether lost samples are sent again";
        max_blocking_time: Kind::Duration, p => Value::Duration(p.max_blocking_time),
            Value::Duration(v) => p.max_blocking_time = *v, "how long a write may block while the history or the queue of an interface is full";
    }
    TransportPriority {
        value: INTEGER, p => Value::Int(p.0.into()), Value::Int(v) => p.0 = int(*v),
            "priority for the transport, a hint: higher is more urgent";
    }
    Lifespan {
        duration: Kind::Duration, p => Value::Duration(p.duration), Value::Duration(v) => p.duration = *v,
            "time after its source timestamp for which a sample is valid";
    }
    DestinationOrder {
        kind: ORDER_KIND, p => word(ORDER, *p), Value::Word(w) => *p = of_word(ORDER, w),
            "the timestamp that orders updates of an instance";
    }
    History {
        kind: HISTORY_KIND, p => history_kind(*p), Value::Word(w) => *p = with_kind(*p, w),
            "samples of each instance that are kept";
        depth: NATURAL, p => history_depth(*p), Value::Int(v) => *p = with_depth(*p, *v),
            "samples of each instance that KEEP_LAST keeps";
    }
    ResourceLimits {
        max_samples: Kind::Length, p => Value::Length(p.max_samples),
            Value::Length(v) => p.max_samples = *v, "maximum number of samples of all instances";
        max_instances: Kind::Length, p => Value::Length(p.max_instances),
            Value::Length(v) => p.max_instances = *v, "instances";
        max_samples_per_instance: Kind::Length, p => Value::Length(p.max_samples_per_instance),
            Value::Length(v) => p.max_samples_per_instance = *v, "maximum number of samples of each instance";
    }
    EntityFactory {
        autoenable_created_entities: Kind::Bool, p => Value::Bool(p.autoenable_created_entities),
            Value::Bool(v) => p.autoenable_created_entities = *v, "contained entities are enabled on creation";
    }
    WriterDataLifecycle {
        autodispose_unregistered_instances: Kind::Bool,
            p => Value::Bool(p.autodispose_unregistered_instances),
            Value::Bool(v) => p.autodispose_unregistered_instances = *v, "unregistering an instance also disposes it";
    }
    ReaderDataLifecycle {
        autopurge_nowriter_samples_delay: Kind::Duration,
            p => Value::Duration(p.autopurge_nowriter_samples_delay),
            Value::Duration(v) => p.autopurge_nowriter_samples_delay = *v,
            "time until an instance without writers is purged";
        autopurge_disposed_samples_delay: Kind::Duration,
            p => Value::Duration(p.autopurge_disposed_samples_delay),
            Value::Duration(v) => p.autopurge_disposed_samples_delay = *v, "time until a disposed instance is purged";
    }
    DataRepresentation {
        value: REPRESENTATION_KIND, p => representations(p), Value::Words(v) => p.0 = ids(v),
            "encodings that a writer offers (it uses the first) and a reader accepts; an empty list means XCDR";
    }
    TypeConsistency {
        kind: COERCION_KIND, p => word(COERCION, p.kind),
            Value::Word(w) => *p = TypeConsistency::of(of_word(COERCION, w)),
            "whether the writer's type may differ; also sets the defaults of the other fields";
        ignore_sequence_bounds: Kind::Bool, p => Value::Bool(p.ignore_sequence_bounds),
            Value::Bool(v) => p.ignore_sequence_bounds = *v, "sequence bounds are ignored";
        ignore_string_bounds: Kind::Bool, p => Value::Bool(p.ignore_string_bounds),
            Value::Bool(v) => p.ignore_string_bounds = *v, "string bounds are ignored";
        ignore_member_names: Kind::Bool, p => Value::Bool(p.ignore_member_names),
            Value::Bool(v) => p.ignore_member_names = *v, "member names may differ if the member ids are equal";
        prevent_type_widening: Kind::Bool, p => Value::Bool(p.prevent_type_widening),
            Value::Bool(v) => p.prevent_type_widening = *v, "the writer's type must not have additional members";
        force_type_validation: Kind::Bool, p => Value::Bool(p.force_type_validation),
            Value::Bool(v) => p.force_type_validation = *v, "endpoints without type information do not match";
    }
    DataTag {
        value: Kind::Properties, p => tags(p), Value::Properties(v) => p.tags = of_tags(v),
            "name and value pairs, announced if propagate is true (DDS Security)";
    }
    Property {
        value: Kind::Properties, p => properties(p), Value::Properties(v) => p.entries = of_properties(v),
            "name and value pairs, announced if propagate is true";
    }
    EntityName {
        name: Kind::Text, p => Value::Text(p.0.clone()), Value::Text(v) => p.0 = v.clone(),
            "the name that tools show";
    }
};

/// Fields of DDS-XML that are accepted without effect: Takt reserves memory according to the limits
/// when an endpoint is created.
pub const WITHOUT_EFFECT: &[(&str, &str)] =
    &[("resource_limits", "initial_samples"), ("resource_limits", "initial_instances")];

fn word<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> Value {
    let found = table.iter().find(|(_, known)| *known == value);
    Value::Word(found.map_or("", |(word, _)| word))
}

fn of_word<T: Copy>(table: &[(&str, T)], word: &str) -> T {
    let found = table.iter().find(|(known, _)| *known == word);
    found.expect("a value of this kind is a word of its table").1
}

fn history_kind(history: History) -> Value {
    Value::Word(if history == History::KeepAll { "KEEP_ALL" } else { "KEEP_LAST" })
}

fn history_depth(history: History) -> Value {
    match history {
        History::KeepLast(depth) => Value::Int(depth.into()),
        History::KeepAll => Value::Int(1),
    }
}

fn with_kind(history: History, word: &str) -> History {
    match (word, history) {
        ("KEEP_ALL", _) => History::KeepAll,
        (_, History::KeepAll) => History::KeepLast(1),
        (_, keep_last) => keep_last,
    }
}

/// Sets the depth, which KEEP_ALL does not have.
fn with_depth(history: History, depth: i64) -> History {
    match history {
        History::KeepAll => History::KeepAll,
        History::KeepLast(_) => History::KeepLast(u32::try_from(depth).unwrap_or(u32::MAX)),
    }
}

/// Returns the tags as properties, which are always propagated.
fn tags(policy: &DataTag) -> Value {
    Value::Properties(policy.tags.iter().map(|tag| (tag.name.clone(), tag.value.clone(), true)).collect())
}

fn of_tags(pairs: &[(String, String, bool)]) -> Vec<Tag> {
    pairs.iter().map(|(name, value, _)| Tag::new(name, value)).collect()
}

fn properties(policy: &Property) -> Value {
    let pair = |entry: &PropertyEntry| (entry.name.clone(), entry.value.clone(), entry.propagate);
    Value::Properties(policy.entries.iter().map(pair).collect())
}

fn of_properties(pairs: &[(String, String, bool)]) -> Vec<PropertyEntry> {
    let entry = |(name, value, propagate): &(String, String, bool)| PropertyEntry {
        name: name.clone(),
        value: value.clone(),
        propagate: *propagate,
    };
    pairs.iter().map(entry).collect()
}

fn int(value: i64) -> i32 {
    i32::try_from(value).expect("the kind has the bounds of i32")
}

fn representations(policy: &DataRepresentation) -> Value {
    let name = |id: &i16| REPRESENTATIONS.iter().find(|(_, known)| known == id).map(|(word, _)| *word);
    Value::Words(policy.0.iter().filter_map(name).collect())
}

fn ids(words: &[&'static str]) -> Vec<i16> {
    words.iter().map(|word| of_word(REPRESENTATIONS, word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a value of the field's kind that differs from the default.
    fn other_value(field: &Field, default: &Value) -> Value {
        match field.kind {
            Kind::Bool => Value::Bool(*default == Value::Bool(false)),
            Kind::Int { .. } => Value::Int(7),
            Kind::Length => Value::Length(Some(7)),
            Kind::Duration => Value::Duration(takt::Duration::from_millis(7)),
            Kind::Word { words, .. } => {
                Value::Word(words.iter().find(|word| Value::Word(word) != *default).expect("two words"))
            }
            Kind::Words { words, .. } => Value::Words(vec![words[1]]),
            Kind::Octets => Value::Octets(vec![7]),
            Kind::Text => Value::Text("x".to_owned()),
            Kind::Texts => Value::Texts(vec!["x".to_owned()]),
            Kind::Properties => Value::Properties(vec![("a".to_owned(), "b".to_owned(), true)]),
        }
    }

    #[test]
    fn every_field_is_set_in_its_own_entities_only() {
        for field in FIELDS {
            let owners: Vec<Entity> = Entity::ALL.into_iter().filter(|entity| field.is_of(*entity)).collect();
            assert!(!owners.is_empty(), "{} belongs to no entity", field.path());
            for entity in owners {
                let default = EntityQos::default_of(entity);
                let before = field.get(&default).expect("it has the field");
                let value = other_value(field, &before);
                let mut qos = default.clone();
                field.set(&mut qos, &value);
                assert_eq!(field.get(&qos), Some(value), "{} of {entity:?}", field.path());
                assert_ne!(qos, default, "{} of {entity:?}", field.path());
                if field.path() != "type_consistency.kind" {
                    field.set(&mut qos, &before);
                    assert_eq!(qos, default, "{} of {entity:?} changes more than itself", field.path());
                }
            }
        }
    }

    #[test]
    fn every_default_round_trips_through_text() {
        for entity in Entity::ALL {
            let qos = EntityQos::default_of(entity);
            for field in FIELDS.iter().filter(|field| field.is_of(entity) && field.kind != Kind::Properties) {
                let value = field.get(&qos).expect("it has the field");
                assert_eq!(field.kind.parse_text(&value.to_string()), Ok(value), "{}", field.path());
            }
        }
    }

    #[test]
    fn every_policy_of_an_entity_has_fields() {
        for policy in POLICIES {
            assert!(FIELDS.iter().any(|field| field.policy == policy.name), "{} has no field", policy.name);
        }
    }

    #[test]
    fn depth_does_not_change_keep_all() {
        assert_eq!(with_depth(History::KeepAll, 5), History::KeepAll);
        assert_eq!(with_depth(with_kind(History::KeepAll, "KEEP_LAST"), 5), History::KeepLast(5));
        assert_eq!(with_kind(History::KeepLast(5), "KEEP_LAST"), History::KeepLast(5));
    }

    #[test]
    fn fields_are_found_by_path_and_by_policy() {
        assert_eq!(find("reliability").len(), 2);
        assert_eq!(find("history.depth").len(), 1);
        assert!(find("nothing").is_empty());
        assert_eq!(Entity::of_name("datawriter"), Some(Entity::DataWriter));
        assert_eq!(Entity::of_name("topic_qos"), Some(Entity::Topic));
        assert_eq!(Entity::of_name("writer"), None);
    }
}
