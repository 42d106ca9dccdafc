//! Access control of local and remote endpoints by governance and permissions (DDS-SEC 1.1 §8.8.7).

use takt_core::security::Protection;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::qos::DataTag;
use takt_wire::{EntityId, Guid};

use super::endpoints::protection;
use super::remotes::describe;
use super::{Plugin, Severity};
use crate::attributes::{EndpointAttributes, SecurityInfo};
use crate::documents::{Action, Permissions, Query};
use crate::error::{ErrorKind, Result, SecurityError};
use crate::identity::SubjectName;

/// Endpoint whose access is checked: a remote one that was announced, or a local one before its
/// announcement.
pub(super) struct Candidate<'a> {
    pub(super) guid: Guid,
    action: Action,
    topic_name: &'a str,
    partitions: &'a [String],
    data_tag: &'a DataTag,
    security_info: Option<takt_wire::discovery::SecurityInfo>,
}

impl<'a> From<&'a PublicationData> for Candidate<'a> {
    fn from(data: &'a PublicationData) -> Self {
        Self {
            guid: data.guid,
            action: Action::Publish,
            topic_name: &data.topic_name,
            partitions: &data.partition.names,
            data_tag: &data.qos.data_tag,
            security_info: data.security_info,
        }
    }
}

impl<'a> From<&'a SubscriptionData> for Candidate<'a> {
    fn from(data: &'a SubscriptionData) -> Self {
        Self {
            guid: data.guid,
            action: Action::Subscribe,
            topic_name: &data.topic_name,
            partitions: &data.partition.names,
            data_tag: &data.qos.data_tag,
            security_info: data.security_info,
        }
    }
}

impl Candidate<'_> {
    const fn name(&self) -> &'static str {
        match self.action {
            Action::Publish => "writer",
            _ => "reader",
        }
    }
}

impl Plugin {
    /// Admits a local endpoint, and generates its keys when it is new.
    pub(super) fn admit(&mut self, candidate: &Candidate<'_>) -> std::result::Result<Protection, String> {
        let id = candidate.guid.entity_id;
        let admitted = self
            .decide(&self.permissions, self.own_subject(), candidate)
            .and_then(|()| Ok(EndpointAttributes::of(self.access.domain_rule().topic_rule(candidate.topic_name)?)));
        let made = admitted.and_then(|attributes| {
            if !self.endpoints.contains_key(&id) {
                self.make_endpoint(id, attributes)?;
            }
            Ok(protection(&attributes))
        });
        made.map_err(|error| {
            let reason = format!("local {} {id}: {error}", candidate.name());
            self.log(Severity::Warning, reason.clone());
            reason
        })
    }

    /// Checks whether a local endpoint may be matched with a remote one.
    pub(super) fn check_match(
        &mut self,
        local: EntityId,
        candidate: &Candidate<'_>,
    ) -> std::result::Result<(), String> {
        self.try_check_match(local, candidate).map_err(|error| {
            let of = describe(candidate.guid.prefix, self.remotes.get(&candidate.guid.prefix));
            let reason = format!("remote {} {} of {of}: {error}", candidate.name(), candidate.guid.entity_id);
            self.log(Severity::Warning, reason.clone());
            reason
        })
    }

    fn try_check_match(&self, local: EntityId, candidate: &Candidate<'_>) -> Result<()> {
        let refused = |reason: String| Err(SecurityError::new(ErrorKind::Document, reason));
        let Some(endpoint) = self.endpoints.get(&local) else {
            return refused(format!("local endpoint {local} was not admitted"));
        };
        let own = endpoint.attributes.info();
        if candidate.guid.prefix != self.prefix {
            let session = self.remotes.get(&candidate.guid.prefix).and_then(|remote| remote.session());
            let Some(session) = session else {
                let is_open = self.attributes.allows_unauthenticated && own == EndpointAttributes::default().info();
                if is_open {
                    return own.check_endpoints(candidate.security_info.map(SecurityInfo::from));
                }
                return refused(format!(
                    "the participant is not authenticated, but topic \"{}\" is {}",
                    candidate.topic_name,
                    if self.attributes.allows_unauthenticated { "protected" } else { "for authenticated ones only" }
                ));
            };
            self.decide(&session.permissions, session.certificate.subject(), candidate)?;
        }
        own.check_endpoints(candidate.security_info.map(SecurityInfo::from))
    }

    fn decide(&self, permissions: &Permissions, subject: &SubjectName, candidate: &Candidate<'_>) -> Result<()> {
        let partitions: Vec<&str> = candidate.partitions.iter().map(String::as_str).collect();
        let data_tags: Vec<_> =
            candidate.data_tag.tags.iter().map(|tag| (tag.name.as_str(), tag.value.as_str())).collect();
        let query = Query {
            action: candidate.action,
            // [`AccessControl::decide`] replaces it by the domain of the participant.
            domain_id: 0,
            topic_name: candidate.topic_name,
            partitions: &partitions,
            data_tags: &data_tags,
        };
        let decision = self.access.decide(permissions, subject, query, self.wall())?;
        if !decision.is_allowed {
            return Err(SecurityError::new(ErrorKind::Document, decision.reason));
        }
        Ok(())
    }
}
