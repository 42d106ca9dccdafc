//! Output lines that the suite's harness searches for. It matches them as text, so each blank
//! counts.
//!
//! After the creation of the first entity, digits in brackets may appear only in lines of samples.

use takt::InstanceState;
use takt::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, LivelinessLostStatus, MatchedStatus,
};

use crate::shape::ShapeType;

/// Returns the line of a written or received sample.
pub fn sample(topic: &str, shape: &ShapeType) -> String {
    let ShapeType { color, x, y, shapesize, additional_payload_size } = shape;
    let last = additional_payload_size.last().map(|last| format!(" {{{}}}", last.0));
    format!("{topic:<10} {color:<10} {x:03} {y:03} [{shapesize}]{}", last.unwrap_or_default())
}

/// Returns the line of an instance that is not alive; `None` if the instance is alive.
pub fn instance(topic: &str, color: &str, state: InstanceState) -> Option<String> {
    let state = match state {
        InstanceState::Alive => return None,
        InstanceState::NotAliveDisposed => "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
        InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
    };
    Some(format!("{topic:<10} {color:<10} {state}"))
}

/// Topic and type of a status line.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub topic: &'a str,
    pub type_name: &'a str,
}

impl Subject<'_> {
    fn status(&self, callback: &str, what: &str) -> String {
        format!("{callback}() topic: '{}'  type: '{}'{what}", self.topic, self.type_name)
    }

    pub fn inconsistent_topic(&self) -> String {
        self.status("on_inconsistent_topic", "")
    }

    pub fn offered_incompatible_qos(&self, status: &IncompatibleQosStatus) -> String {
        self.status("on_offered_incompatible_qos", &policy(status))
    }

    pub fn requested_incompatible_qos(&self, status: &IncompatibleQosStatus) -> String {
        self.status("on_requested_incompatible_qos", &policy(status))
    }

    pub fn publication_matched(&self, status: &MatchedStatus) -> String {
        self.status("on_publication_matched", &matched("readers", status))
    }

    pub fn subscription_matched(&self, status: &MatchedStatus) -> String {
        self.status("on_subscription_matched", &matched("writers", status))
    }

    pub fn offered_deadline_missed(&self, status: &DeadlineMissedStatus) -> String {
        self.status("on_offered_deadline_missed", &counts(status.total_count, status.total_count_change))
    }

    pub fn requested_deadline_missed(&self, status: &DeadlineMissedStatus) -> String {
        self.status("on_requested_deadline_missed", &counts(status.total_count, status.total_count_change))
    }

    pub fn liveliness_lost(&self, status: &LivelinessLostStatus) -> String {
        self.status("on_liveliness_lost", &counts(status.total_count.into(), status.total_count_change.into()))
    }

    pub fn liveliness_changed(&self, status: &LivelinessChangedStatus) -> String {
        let what = format!(" : (alive = {}, not_alive = {})", status.alive_count, status.not_alive_count);
        self.status("on_liveliness_changed", &what)
    }
}

fn policy(status: &IncompatibleQosStatus) -> String {
    let (id, name) = status.last_policy.map_or((0, "INVALID"), |policy| (policy.id(), policy.name()));
    format!(" : {id} ({name})")
}

fn matched(peers: &str, status: &MatchedStatus) -> String {
    format!(" : matched {peers} {} (change = {})", status.current_count, status.current_count_change)
}

fn counts(total: u64, change: u64) -> String {
    format!(" : (total = {total}, change = {change})")
}

#[cfg(test)]
mod tests {
    use takt::qos::PolicyId;
    use takt::xtypes::Uint8;

    use super::*;

    const SQUARE: Subject<'_> = Subject { topic: "Square", type_name: "ShapeType" };

    fn shape(payload: Vec<u8>) -> ShapeType {
        let payload = payload.into_iter().map(Uint8).collect();
        ShapeType { color: "BLUE".to_owned(), x: 7, y: 123, shapesize: 30, additional_payload_size: payload }
    }

    #[test]
    fn sample_line_has_fixed_columns_and_last_payload_octet() {
        assert_eq!(sample("Square", &shape(vec![])), "Square     BLUE       007 123 [30]");
        assert_eq!(sample("Square", &shape(vec![1, 255])), "Square     BLUE       007 123 [30] {255}");
        let long = sample("Square_filtered", &shape(vec![]));
        assert_eq!(long, "Square_filtered BLUE       007 123 [30]");
    }

    #[test]
    fn instance_line_exists_only_for_instances_not_alive() {
        assert_eq!(instance("Square", "RED", InstanceState::Alive), None);
        assert_eq!(
            instance("Square", "RED", InstanceState::NotAliveDisposed).as_deref(),
            Some("Square     RED        NOT_ALIVE_DISPOSED_INSTANCE_STATE")
        );
        assert_eq!(
            instance("Square", "RED", InstanceState::NotAliveNoWriters).as_deref(),
            Some("Square     RED        NOT_ALIVE_NO_WRITERS_INSTANCE_STATE")
        );
    }

    #[test]
    fn status_lines_match_the_suite() {
        let refused = IncompatibleQosStatus { last_policy: Some(PolicyId::Reliability), ..Default::default() };
        let matched = MatchedStatus { current_count: 2, current_count_change: -1, ..Default::default() };
        let missed = DeadlineMissedStatus { total_count: 5, total_count_change: 2, last_instance: None };
        let lost = LivelinessLostStatus { total_count: 3, total_count_change: 1 };
        let alive = LivelinessChangedStatus { alive_count: 1, not_alive_count: 2, ..Default::default() };
        let lines = [
            (SQUARE.inconsistent_topic(), "on_inconsistent_topic() topic: 'Square'  type: 'ShapeType'"),
            (
                SQUARE.offered_incompatible_qos(&refused),
                "on_offered_incompatible_qos() topic: 'Square'  type: 'ShapeType' : 11 (RELIABILITY)",
            ),
            (
                SQUARE.requested_incompatible_qos(&refused),
                "on_requested_incompatible_qos() topic: 'Square'  type: 'ShapeType' : 11 (RELIABILITY)",
            ),
            (
                SQUARE.publication_matched(&matched),
                "on_publication_matched() topic: 'Square'  type: 'ShapeType' : matched readers 2 (change = -1)",
            ),
            (
                SQUARE.subscription_matched(&matched),
                "on_subscription_matched() topic: 'Square'  type: 'ShapeType' : matched writers 2 (change = -1)",
            ),
            (
                SQUARE.offered_deadline_missed(&missed),
                "on_offered_deadline_missed() topic: 'Square'  type: 'ShapeType' : (total = 5, change = 2)",
            ),
            (
                SQUARE.requested_deadline_missed(&missed),
                "on_requested_deadline_missed() topic: 'Square'  type: 'ShapeType' : (total = 5, change = 2)",
            ),
            (
                SQUARE.liveliness_lost(&lost),
                "on_liveliness_lost() topic: 'Square'  type: 'ShapeType' : (total = 3, change = 1)",
            ),
            (
                SQUARE.liveliness_changed(&alive),
                "on_liveliness_changed() topic: 'Square'  type: 'ShapeType' : (alive = 1, not_alive = 2)",
            ),
        ];
        for (line, expected) in lines {
            assert_eq!(line, expected);
        }
    }
}
