//! Traits of policies and of QoS types, which the [table](super::POLICIES) implements.
//!
//! [`RequestedPolicy`] is the rule by which a writer offers and a reader requests a policy. The
//! module of the policy implements it.

use alloc::string::String;
use core::any::Any;

use super::{DataRepresentation, Durability, History, PolicyId, Reliability, WirePolicy};
use crate::compat::Incompatibility;
use crate::error::Malformed;
use crate::parameter::{Parameter, ParameterListBuilder};

/// Condition under which the parameter of a policy is in an announcement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Announcement {
    /// In every announcement of a writer or reader, because vendors have different defaults.
    Always,
    /// If the policy differs from the default.
    Changed,
}

/// Row of the table of policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PolicyInfo {
    /// Name of the field in QoS types, and of the element in profiles: `time_based_filter`.
    pub name: &'static str,
    /// Name in reports: that of the id, or a name of the same form.
    pub label: &'static str,
    /// Id that the OMG assigns, if any.
    pub id: Option<PolicyId>,
    /// Id of the parameter, if the policy is announced.
    pub pid: Option<u16>,
    /// Condition of the announcement.
    pub announcement: Option<Announcement>,
    /// True if an enabled entity may change the policy.
    pub is_changeable: bool,
    /// True if writers offer and readers request the policy.
    pub is_requested: bool,
}

impl PolicyInfo {
    pub(super) const fn new(name: &'static str, label: &'static str, pid: Option<u16>) -> Self {
        Self { name, label, id: None, pid, announcement: None, is_changeable: false, is_requested: false }
    }

    pub(super) const fn with_id(self, id: PolicyId) -> Self {
        Self { id: Some(id), ..self }
    }

    pub(super) const fn announced(self) -> Self {
        Self { announcement: Some(Announcement::Changed), ..self }
    }

    pub(super) const fn announced_always(self) -> Self {
        Self { announcement: Some(Announcement::Always), ..self }
    }

    pub(super) const fn changeable(self) -> Self {
        Self { is_changeable: true, ..self }
    }

    pub(super) const fn requested(self) -> Self {
        Self { is_requested: true, ..self }
    }
}

/// QoS policy.
pub trait Policy: Any + Clone + PartialEq {
    /// Row of the policy in the table.
    const INFO: PolicyInfo;

    /// Id of the parameter, if the policy is announced.
    const PARAMETER: Option<u16> = None;

    /// Replaces the policy by that of its parameter. Has no effect if it is not announced.
    fn accept(&mut self, _parameter: &Parameter<'_>) -> Result<(), Malformed> {
        Ok(())
    }

    /// Adds the parameter to an announcement if the policy differs from the value that an absent
    /// parameter implies. Has no effect if it is not announced.
    fn put_changed(&self, _absent: &Self, _list: &mut ParameterListBuilder) {}

    /// Reports whether the policy matches the same endpoints as `other`.
    fn has_terms_of(&self, _other: &Self) -> bool {
        true
    }

    /// Checks an offered policy. Returns `None` if it is compatible with the requested one.
    fn check(&self, _requested: &Self) -> Option<Incompatibility> {
        None
    }
}

/// QoS policy that writers offer and readers request (DDS 1.4 §2.2.3).
pub trait RequestedPolicy: Policy {
    /// Reports whether the offered policy is compatible with the requested one.
    fn offers(&self, requested: &Self) -> bool;

    /// Returns the offered value for reports.
    fn offered_text(&self) -> String;

    /// Returns the requested value for reports.
    fn requested_text(&self) -> String {
        self.offered_text()
    }

    /// Reports whether the policy matches the same endpoints as `other`.
    fn is_same_term(&self, other: &Self) -> bool {
        self == other
    }
}

/// Implements [`RequestedPolicy`] by the rule and the text.
macro_rules! requested_policy {
    ($($type:ty, |$offered:ident, $requested:ident| $rule:expr, |$policy:ident| $text:expr;)+) => {$(
        impl $crate::qos::RequestedPolicy for $type {
            fn offers(&self, requested: &Self) -> bool {
                let ($offered, $requested) = (self, requested);
                $rule
            }

            fn offered_text(&self) -> alloc::string::String {
                let $policy = self;
                $text
            }
        }
    )+};
}
pub(super) use requested_policy;

/// QoS of an entity: a set of policies.
pub trait PolicySet: Sized {
    /// Returns the policy of this type, or `None` if the entity has none.
    fn policy<P: Policy>(&self) -> Option<&P>;

    /// As [`Self::policy`].
    fn policy_mut<P: Policy>(&mut self) -> Option<&mut P>;

    /// Copies the selected policies that `other` has too.
    fn copy_from(&mut self, other: &impl PolicySet, is_selected: impl Fn(&PolicyInfo) -> bool);

    /// Returns the first of the policies that differs and that an enabled entity must not change.
    fn immutable_difference(&self, other: &Self) -> Option<PolicyInfo>;

    /// Reports whether the selected policies match the same endpoints as those of `other`.
    fn has_terms_of(&self, other: &Self, is_selected: impl Fn(&PolicyInfo) -> bool) -> bool;

    /// Stores the parameter if it is that of a policy of the entity; otherwise returns `false`.
    fn accept(&mut self, parameter: &Parameter<'_>) -> Result<bool, Malformed>;

    /// Adds the policies whose announcement is [`Announcement::Changed`] and that differ from the
    /// default.
    fn put_changed(&self, list: &mut ParameterListBuilder);

    /// Adds the policies to the announcement of a writer or reader.
    fn put(&self, list: &mut ParameterListBuilder) {
        put_always::<Reliability>(self, list);
        put_always::<Durability>(self, list);
        put_always::<History>(self, list);
        put_always::<DataRepresentation>(self, list);
        self.put_changed(list);
    }
}

/// Policies of an entity that decide about its matches, which compare equal if they match the same
/// endpoints.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a, Q> {
    qos: &'a Q,
    is_changeable: bool,
}

impl<'a, Q: PolicySet> Terms<'a, Q> {
    /// Returns the policies that an enabled entity may change.
    pub const fn changeable(qos: &'a Q) -> Self {
        Self { qos, is_changeable: true }
    }

    /// Returns the policies that an enabled entity must not change.
    pub const fn immutable(qos: &'a Q) -> Self {
        Self { qos, is_changeable: false }
    }
}

impl<Q: PolicySet> PartialEq for Terms<'_, Q> {
    fn eq(&self, other: &Self) -> bool {
        self.is_changeable == other.is_changeable
            && self.qos.has_terms_of(other.qos, |policy| policy.is_changeable == self.is_changeable)
    }
}

fn put_always<P: Policy + WirePolicy>(set: &impl PolicySet, list: &mut ParameterListBuilder) {
    if let Some(policy) = set.policy::<P>() {
        policy.put(list);
    }
}
