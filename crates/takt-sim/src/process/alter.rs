//! Policies that change, writers that are suspended, and readers that are ignored, while all goes on.

use takt_core::Participant;
use takt_wire::Guid;

use super::spec::{reader_spec, writer_spec};
use super::{Endpoint, Moment, Process};
use crate::check::{Checker, Rule};
use crate::scenario::{Alteration, EndpointPlan, TopicPlan};

impl Process {
    /// Alters one of its endpoints, if that exists now.
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
            (Alteration::IgnoreReaders, Endpoint::Writer { handle, .. }) => {
                let readers = core.matched_subscriptions(handle).unwrap_or_default();
                ignore(core, clock, &readers, checker)
            }
            _ => {
                let Some(qos) = alteration.applied_to(&checker.qos_of(id)) else { return };
                let altered = EndpointPlan { qos, ..plan.0.clone() };
                checker.altered(id, qos);
                let now = clock.local();
                match *endpoint {
                    Endpoint::Writer { handle, .. } => {
                        let spec = writer_spec(&altered, plan.1);
                        let result = core.set_writer_qos(now, handle, spec.qos);
                        result.and_then(|()| core.set_publisher_qos(now, handle, &spec.publisher))
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
            checker.report(clock.now, Rule::Refused, format!("endpoint {id}: {alteration:?}: {error}"));
        }
    }
}

/// Ignores readers of others.
fn ignore(
    core: &mut Participant,
    clock: Moment<'_>,
    readers: &[Guid],
    checker: &mut Checker,
) -> Result<(), takt_core::Error> {
    let own = core.guid().prefix;
    for reader in readers.iter().filter(|reader| reader.prefix != own) {
        checker.ignores(own, *reader);
        core.ignore_subscription(clock.local(), *reader)?;
    }
    Ok(())
}
