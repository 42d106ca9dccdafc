//! Alterations at run time: changed policies, suspended writers, and ignored entities.

use takt_core::Participant;

use super::spec::{reader_filter, reader_spec, topic_name, writer_spec};
use super::{Endpoint, Moment, Process};
use crate::check::{Checker, Ignored, Rule};
use crate::scenario::{Alteration, EndpointPlan, TopicPlan};

impl Process {
    /// Alters an endpoint of the process, if it exists.
    pub fn alter(
        &mut self,
        at: usize,
        alteration: Alteration,
        plan: (&EndpointPlan, &TopicPlan),
        clock: Moment<'_>,
        checker: &mut Checker,
    ) {
        let (Some(core), Some(Some(endpoint))) = (&mut self.core, self.endpoints.get(at)) else { return };
        let id = endpoint.id();
        let result = match (alteration, *endpoint) {
            (Alteration::Suspended(is_suspended), Endpoint::Writer { handle, .. }) => {
                checker.suspended(id, is_suspended);
                core.suspend_writer(handle, is_suspended)
            }
            (
                Alteration::IgnoreReaders
                | Alteration::IgnoreWriters
                | Alteration::IgnoreParticipant
                | Alteration::IgnoreTopic,
                _,
            ) => ignore(core, alteration, (endpoint, plan.0.topic), clock, checker),
            _ => {
                let Some(qos) = alteration.applied_to(&checker.qos_of(id)) else { return };
                let has_filter = qos.filter != checker.qos_of(id).filter;
                let altered = EndpointPlan { qos, ..plan.0.clone() };
                checker.altered(id, qos);
                let now = clock.local();
                match *endpoint {
                    Endpoint::Writer { handle, .. } => {
                        let spec = writer_spec(&altered, plan.1);
                        let result = core.set_writer_qos(now, handle, spec.qos);
                        result.and_then(|()| core.set_publisher_qos(now, handle, &spec.publisher))
                    }
                    Endpoint::Reader { handle, .. } if has_filter => {
                        core.set_content_filter(now, handle, qos.filter.map(reader_filter))
                    }
                    Endpoint::Reader { handle, .. } => {
                        let spec = reader_spec(&altered, plan.1);
                        let result = core.set_reader_qos(now, handle, spec.qos);
                        result.and_then(|()| core.set_subscriber_qos(now, handle, &spec.subscriber))
                    }
                }
            }
        };
        if let Err(error) = result {
            checker.report(clock.now, Rule::CallFailed, format!("endpoint {id}: {alteration:?}: {error}"));
        }
    }
}

/// Ignores the remote endpoints matched with an endpoint, the participant of the first of them, or
/// all remote endpoints of its topic.
fn ignore(
    core: &mut Participant,
    alteration: Alteration,
    (endpoint, topic): (&Endpoint, usize),
    clock: Moment<'_>,
    checker: &mut Checker,
) -> Result<(), takt_core::Error> {
    let (now, own) = (clock.local(), core.guid().prefix);
    let (peers, is_writer) = match *endpoint {
        Endpoint::Writer { handle, .. } => (core.matched_subscriptions(handle)?, true),
        Endpoint::Reader { handle, .. } => (core.matched_publications(handle)?, false),
    };
    let mut others = peers.into_iter().filter(|peer| peer.prefix != own);
    match alteration {
        Alteration::IgnoreTopic => {
            checker.ignores(own, Ignored::Topic(topic));
            core.ignore_topic(now, &topic_name(topic))
        }
        Alteration::IgnoreParticipant => others.next().map_or(Ok(()), |peer| {
            checker.ignores(own, Ignored::Participant(peer.prefix));
            core.ignore_participant(now, peer.prefix)
        }),
        _ => others.try_for_each(|peer| {
            checker.ignores(own, Ignored::Endpoint(peer));
            if is_writer { core.ignore_subscription(now, peer) } else { core.ignore_publication(now, peer) }
        }),
    }
}
