//! List of all endpoints, which all participants share in worlds with static endpoints.

use takt_core::StaticParticipant;
use takt_wire::EntityId;
use takt_wire::discovery::{PublicationData, SubscriptionData};

use super::spec::{reader_spec, writer_spec};
use crate::scenario::{ProcessPlan, Role, Scenario};

/// Returns the ENTITY_NAME of a process.
pub(super) fn name(process: usize) -> String {
    format!("process{process}")
}

/// Returns the endpoints that processes create at their start.
pub(super) fn all(scenario: &Scenario) -> Vec<StaticParticipant> {
    let plans = scenario.processes.iter().enumerate();
    plans.map(|(index, plan)| participant(scenario, index, plan)).collect()
}

fn participant(scenario: &Scenario, index: usize, plan: &ProcessPlan) -> StaticParticipant {
    let mut found = StaticParticipant { name: name(index), ..StaticParticipant::default() };
    let presentation = scenario.presentation.unwrap_or_default();
    for (at, plan) in plan.endpoints.iter().enumerate().filter(|(_, plan)| plan.create == 0) {
        let topic = &scenario.topics[plan.topic];
        let (key, keyed) = (at as u32 + 1, topic.instances > 0);
        match plan.role {
            Role::Writer { .. } => {
                let spec = writer_spec(plan, topic);
                let mut data = PublicationData {
                    topic_name: spec.topic_name,
                    type_name: spec.type_name,
                    qos: spec.qos,
                    presentation,
                    partition: spec.publisher.partition,
                    ..PublicationData::default()
                };
                data.guid.entity_id = EntityId::user_writer(key, keyed);
                found.publications.push(data);
            }
            Role::Reader { .. } => {
                let spec = reader_spec(plan, topic);
                let mut data = SubscriptionData {
                    topic_name: spec.topic_name,
                    type_name: spec.type_name,
                    qos: spec.qos,
                    presentation,
                    partition: spec.subscriber.partition,
                    content_filter: spec.content_filter.map(|filter| filter.property),
                    ..SubscriptionData::default()
                };
                data.guid.entity_id = EntityId::user_reader(key, keyed);
                found.subscriptions.push(data);
            }
        }
    }
    found
}
