//! Events of the controller as JSON objects: `event` is the kind, `text` the sentence of the log,
//! and the other fields are the values in it. Reasons that the controller only knows as text are in
//! `reason`.
//!
//! A port is `{"datapath_id": hexadecimal, "port": number}`, a pair its text in `pair` and its GUIDs
//! in `writer` and `reader`.

use serde_json::{Map, Value, json};
use takt_sdn::controller::{Event, SlowStage, Target};
use takt_sdn::devices::HostId;
use takt_sdn::discovery::{self, Pair};
use takt_sdn::topology::{self, Role};
use takt_sdn::{PortRef, cluster};

/// Returns the object of an event.
pub fn object(event: &Event) -> Value {
    let mut object = Map::from_iter([field("event", kind(event)), field("text", event.to_string())]);
    object.extend(fields(event));
    Value::Object(object)
}

/// Returns the object of an event of the election.
pub fn election(event: &cluster::Event) -> Value {
    let (kind, fields) = match event {
        cluster::Event::Elected { generation, records } => {
            ("elected", vec![field("generation", *generation), field("records", records.len())])
        }
        cluster::Event::Follows { leader, generation } => {
            ("follows", vec![field("leader", leader.as_str()), field("generation", *generation)])
        }
        cluster::Event::Deposed(reason) => ("deposed", vec![field("reason", reason.as_str())]),
        cluster::Event::Unreachable(reason) => ("cluster-unreachable", vec![field("reason", reason.as_str())]),
    };
    let mut object = Map::from_iter([field("event", kind), field("text", event.to_string())]);
    object.extend(fields);
    Value::Object(object)
}

fn field(name: &str, value: impl Into<Value>) -> (String, Value) {
    (name.to_owned(), value.into())
}

fn fields(event: &Event) -> Vec<(String, Value)> {
    match event {
        Event::SwitchUp { dpid, ports } => vec![datapath(*dpid), field("ports", *ports)],
        Event::SwitchDown { dpid, why } => vec![datapath(*dpid), field("reason", why.as_str())],
        Event::ConnectionRefused { why } => vec![field("reason", why.as_str())],
        Event::Resynchronized { dpid, difference } => vec![
            datapath(*dpid),
            field("added", difference.added),
            field("changed", difference.changed),
            field("deleted", difference.deleted),
        ],
        Event::EntryRefused { dpid, entry, error } => {
            let [kind, id] = of_entry(entry);
            vec![datapath(*dpid), kind, id, field("reason", error.cause.to_string())]
        }
        Event::Topology(event) => of_topology(event),
        Event::Discovery(event) => of_discovery(event),
        Event::Admitted { pair, bound_ns } => with_pair(pair, [field("bound_ns", *bound_ns)]),
        Event::Restored { participants, hosts, pairs, unreadable } => vec![
            field("participants", *participants),
            field("hosts", *hosts),
            field("pairs", *pairs),
            field("unreadable_records", *unreadable),
        ],
        Event::BoundExceeded { pair, worst_ns, bound_ns, stage } => {
            let bounds = [field("worst_ns", *worst_ns), field("bound_ns", *bound_ns)];
            with_pair(pair, bounds.into_iter().chain(of_slow_stage(stage)))
        }
        Event::Refused { pair, reason } => with_pair(pair, [field("reason", reason.as_str())]),
        Event::Caution { pair, topic } => with_pair(pair, [field("topic", topic.as_str())]),
        Event::Protection { pair, protection } => with_pair(pair, [field("protection", protection.to_string())]),
        Event::SharedPort { participant, address, is_intercepted } => vec![
            field("participant", participant.to_string()),
            field("address", address.to_string()),
            field("is_intercepted", *is_intercepted),
        ],
        Event::ContractBroken { flow, pairs, dropped, frames } => {
            let pairs: Value = pairs.iter().map(ToString::to_string).collect();
            let counts = [field("dropped", *dropped), field("frames", *frames)];
            [field("flow", flow.as_str()), field("pairs", pairs)].into_iter().chain(counts).collect()
        }
        Event::Registration { id, topic, state, outcome } => {
            let id = field("id", id.to_string());
            vec![id, field("topic", topic.as_str()), field("state", json!(state)), of_outcome(outcome)]
        }
        Event::RegistrationGone { id, topic } => vec![field("id", id.to_string()), field("topic", topic.as_str())],
        Event::HostOverload { dpid, port, dropped } => {
            vec![datapath(*dpid), field("port", json!(port)), field("dropped", *dropped)]
        }
        Event::Tree(links) => {
            vec![field("links", links.iter().map(|(one, other)| json!([port(*one), port(*other)])).collect::<Value>())]
        }
        Event::HostFound { host, at } => vec![of_host("host", host), field("at", port(*at))],
        Event::HostMoved { host, from, to } => {
            vec![of_host("host", host), field("from", port(*from)), field("at", port(*to))]
        }
        Event::HostGone(host) => vec![of_host("host", host)],
        Event::AddressFound { host, address } => vec![of_host("host", host), field("address", address.to_string())],
        Event::Spoofed { host, owner, at } => {
            vec![of_host("host", host), field("owner", port(*owner)), field("at", port(*at))]
        }
        Event::AddressConflict { owner, claimed_by, at, address } => vec![
            of_host("host", owner),
            of_host("claimed_by", claimed_by),
            field("at", port(*at)),
            field("address", address.to_string()),
        ],
    }
}

/// Returns kind and number of an entry of a switch.
fn of_entry(entry: &Target) -> [(String, Value); 2] {
    let (kind, id) = match entry {
        Target::Flow(_) => ("flow", Value::Null),
        Target::Group(id) => ("group", json!(id)),
        Target::Meter(id) => ("meter", json!(id)),
    };
    [field("entry", kind), field("entry_id", id)]
}

/// Returns the latency bound of an admitted registration, or the reason of a refusal.
fn of_outcome(outcome: &Result<u64, String>) -> (String, Value) {
    match outcome {
        Ok(bound_ns) => field("bound_ns", *bound_ns),
        Err(reason) => field("reason", reason.as_str()),
    }
}

/// Returns the stage that exceeded its share of a latency bound, with the times of the writer.
fn of_slow_stage(stage: &SlowStage) -> [(String, Value); 4] {
    let (kind, times) = match stage {
        SlowStage::Writer { took_ns, bound_ns } => ("writer", [json!(took_ns), json!(bound_ns)]),
        SlowStage::BehindWrite => ("behind-write", [Value::Null, Value::Null]),
        SlowStage::Unknown => ("unknown", [Value::Null, Value::Null]),
    };
    let [took, bound] = times;
    [
        field("stage", stage.to_string()),
        field("slow_stage", kind),
        field("write_ns", took),
        field("write_bound_ns", bound),
    ]
}

fn of_topology(event: &topology::Event) -> Vec<(String, Value)> {
    match event {
        topology::Event::Role(at, role) => {
            let (role, peer) = match role {
                Role::Down => ("down", Value::Null),
                Role::Probing => ("probing", Value::Null),
                Role::Edge => ("edge", Value::Null),
                Role::Link(peer) => ("link", port(*peer)),
            };
            vec![field("change", "role"), field("at", port(*at)), field("role", role), field("peer", peer)]
        }
        topology::Event::LinkFound(one, other) => {
            vec![field("change", "link-found"), field("ends", json!([port(*one), port(*other)]))]
        }
        topology::Event::LinkLost(one, other, loss) => {
            let ends = field("ends", json!([port(*one), port(*other)]));
            vec![field("change", "link-lost"), ends, field("loss", word(loss))]
        }
        topology::Event::ProbeRefused { at, from, why } => {
            let from = field("from", from.map_or(Value::Null, port));
            vec![field("change", "probe-refused"), field("at", port(*at)), from, field("refusal", word(why))]
        }
    }
}

fn of_discovery(event: &discovery::Event) -> Vec<(String, Value)> {
    use discovery::Event as Discovery;
    let change = |name: &str| field("change", name);
    let participant = |prefix: &dyn ToString| field("participant", prefix.to_string());
    match event {
        Discovery::ParticipantFound { participant: prefix, label, port: at, source } => vec![
            change("participant-found"),
            participant(prefix),
            field("label", label.as_str()),
            field("at", port(*at)),
            field("source", source.to_string()),
        ],
        Discovery::LatencyReported { participant: prefix } => vec![change("latency-reported"), participant(prefix)],
        Discovery::ParticipantGone { participant: prefix } => vec![change("participant-gone"), participant(prefix)],
        Discovery::PairFound { pair, contract } => {
            let missing = contract.as_ref().err().map_or(Value::Null, |missing| json!(missing.to_string()));
            let has_contract = field("has_contract", contract.is_ok());
            with_pair(pair, [change("pair-found"), has_contract, field("reason", missing)])
        }
        Discovery::CompanionFound { pair } => with_pair(pair, [change("companion-found")]),
        Discovery::PairDenied { pair, reason } => {
            with_pair(pair, [change("pair-denied"), field("reason", reason.as_str())])
        }
        Discovery::PairGone { pair } => with_pair(pair, [change("pair-gone")]),
        Discovery::VerdictMissed { pair } => with_pair(pair, [change("verdict-missed")]),
        Discovery::Forged { participant: prefix, port: at, source, what } => vec![
            change("forged"),
            participant(prefix),
            field("at", port(*at)),
            field("source", source.to_string()),
            field("forgery", word(what)),
        ],
        Discovery::LimitReached { participant: prefix, limit } => {
            vec![change("limit-reached"), participant(prefix), field("limit", word(limit))]
        }
        Discovery::Opaque { participant: prefix } => vec![change("opaque"), participant(prefix)],
    }
}

fn with_pair(pair: &Pair, more: impl IntoIterator<Item = (String, Value)>) -> Vec<(String, Value)> {
    let ends = [field("writer", pair.writer.to_string()), field("reader", pair.reader.to_string())];
    [field("pair", pair.to_string())].into_iter().chain(ends).chain(more).collect()
}

fn datapath(dpid: u64) -> (String, Value) {
    field("datapath_id", format!("{dpid:016x}"))
}

fn port(port: PortRef) -> Value {
    json!({ "datapath_id": format!("{:016x}", port.dpid), "port": port.port })
}

fn of_host(name: &str, host: &HostId) -> (String, Value) {
    field(name, json!({ "mac": host.mac.to_string(), "vlan_id": host.vlan & 0x0fff }))
}

/// Returns the name of a variant without fields, in lower case with hyphens.
fn word(variant: &impl std::fmt::Debug) -> String {
    let mut word = String::new();
    for c in format!("{variant:?}").chars() {
        if c.is_ascii_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}

/// Returns the event as one word, for programs.
fn kind(event: &Event) -> &'static str {
    match event {
        Event::SwitchUp { .. } => "switch-up",
        Event::SwitchDown { .. } => "switch-down",
        Event::ConnectionRefused { .. } => "connection-refused",
        // JSON output keeps the spelling of earlier versions.
        Event::Resynchronized { .. } => "resynchronised",
        Event::EntryRefused { .. } => "entry-refused",
        Event::Topology(_) => "topology",
        Event::Discovery(_) => "discovery",
        Event::Admitted { .. } => "admitted",
        Event::BoundExceeded { .. } => "bound-exceeded",
        Event::Refused { .. } => "refused",
        Event::Restored { .. } => "restored",
        Event::ContractBroken { .. } => "contract-broken",
        Event::Registration { .. } => "registration",
        Event::RegistrationGone { .. } => "registration-gone",
        Event::Tree(_) => "tree",
        Event::HostFound { .. } => "host-found",
        Event::HostMoved { .. } => "host-moved",
        Event::HostGone(_) => "host-gone",
        Event::AddressFound { .. } => "address-found",
        Event::Spoofed { .. } => "spoofed",
        Event::AddressConflict { .. } => "address-conflict",
        Event::Caution { .. } => "caution",
        Event::Protection { .. } => "protection",
        Event::SharedPort { .. } => "shared-port",
        Event::HostOverload { .. } => "host-overload",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_an_event_are_fields() {
        let up = object(&Event::SwitchUp { dpid: 0x2a, ports: 4 });
        assert_eq!(
            (&up["event"], &up["datapath_id"], &up["ports"]),
            (&json!("switch-up"), &json!("000000000000002a"), &json!(4))
        );
        let (one, other) = (PortRef::new(1, 2), PortRef::new(3, 4));
        let lost = object(&Event::Topology(topology::Event::LinkLost(one, other, topology::LinkLoss::PortDown)));
        assert_eq!((&lost["change"], &lost["loss"]), (&json!("link-lost"), &json!("port-down")));
        assert_eq!(lost["ends"][1], json!({ "datapath_id": "0000000000000003", "port": 4 }));
        let follows = election(&cluster::Event::Follows { leader: "b".into(), generation: 7 });
        assert_eq!(
            (&follows["event"], &follows["leader"], &follows["generation"]),
            (&json!("follows"), &json!("b"), &json!(7))
        );
    }

    #[test]
    fn variant_becomes_a_word_with_hyphens() {
        assert_eq!(word(&discovery::Limit::ParticipantsPerAddress), "participants-per-address");
    }
}
