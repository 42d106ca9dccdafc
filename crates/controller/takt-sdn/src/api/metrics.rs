//! Metrics of the controller in the Prometheus text format, version 0.0.4.

use std::fmt::{Display, Write};

use super::ApiCounters;
use crate::view::{COUNTERS, Decision, EndpointKind, Port, ProtectionState, State, Switch, SwitchState, Traffic, View};

/// Content type of the metrics.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Text of metrics under construction.
struct Page(String);

/// A label with its value.
type Label<'a> = (&'a str, &'a str);

impl Page {
    fn describe(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP takt_sdn_{name} {help}\n# TYPE takt_sdn_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[Label<'_>], value: impl Display) {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "takt_sdn_{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.describe(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.describe(name, "counter", help);
        self.sample(name, &[], value);
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn ratio(ppm: u64) -> f64 {
    ppm as f64 / 1e6
}

/// Renders the metrics of a state.
pub fn render(view: &View, api: &ApiCounters) -> String {
    let mut page = Page(String::new());
    page.gauge("uptime_seconds", "Time since the start of the controller.", seconds(view.time_ns));
    page.gauge("settled", "Whether every connected switch has its intended tables.", u8::from(view.is_settled));
    page.gauge("links", "Links between switches.", view.links.len());
    page.gauge("hosts", "Hosts.", view.hosts.len());
    page.gauge("participants", "DDS participants.", view.participants.len());
    page.describe("endpoints", "gauge", "DDS writers and readers.");
    for (kind, name) in [(EndpointKind::Writer, "writer"), (EndpointKind::Reader, "reader")] {
        let count = view.endpoints.iter().filter(|endpoint| endpoint.kind == kind).count();
        page.sample("endpoints", &[("kind", name)], count);
    }
    page.describe("pairs", "gauge", "Matched pairs of writer and reader, by decision.");
    for decision in Decision::ALL {
        let count = view.pairs.iter().filter(|pair| pair.decision == decision).count();
        page.sample("pairs", &[("decision", decision.name())], count);
    }
    switches(&mut page, view);
    ports(&mut page, view);
    sent_by_ports(&mut page, view);
    flows(&mut page, view);
    sent_by_flows(&mut page, view);
    registrations(&mut page, view);
    for counter in COUNTERS {
        let value = view.counters.get(counter.name).copied().unwrap_or_default();
        page.counter(&format!("{}_total", counter.name), counter.help, value);
    }
    for (name, help, value) in api.values() {
        page.counter(&format!("api_{name}_total"), help, value);
    }
    page.0
}

fn switches(page: &mut Page, view: &View) {
    page.describe("switches", "gauge", "Switches, by state.");
    for state in [SwitchState::Disconnected, SwitchState::Adopting, SwitchState::Changing, SwitchState::Settled] {
        let count = view.switches.iter().filter(|switch| switch.state == state).count();
        page.sample("switches", &[("state", state.name())], count);
    }
    page.describe("table_entries", "gauge", "Flow entries, groups and meters of a switch.");
    for switch in &view.switches {
        let tables = [("flow", switch.flow_entries), ("group", switch.groups), ("meter", switch.meters)];
        for (table, count) in tables {
            page.sample("table_entries", &[("datapath_id", &switch.datapath_id), ("table", table)], count);
        }
    }
}

fn ports(page: &mut Page, view: &View) {
    let ports = || view.switches.iter().flat_map(|switch| switch.ports.iter().map(move |port| (switch, port)));
    page.describe("port_admitted_ratio", "gauge", "Share of the rate of a port that admitted flows may use.");
    for (switch, port) in ports() {
        if let Some(ppm) = port.admitted_ppm {
            let number = port.number.to_string();
            page.sample("port_admitted_ratio", &[("datapath_id", &switch.datapath_id), ("port", &number)], ratio(ppm));
        }
    }
    page.describe(
        "host_packets_dropped_total",
        "counter",
        "Dropped packets that exceed the limit of the hosts at a port.",
    );
    for (switch, port) in ports() {
        if let Some(limit) = &port.host_limit {
            let number = port.number.to_string();
            let labels = [("datapath_id", switch.datapath_id.as_str()), ("port", &number)];
            page.sample("host_packets_dropped_total", &labels, limit.packets_dropped);
        }
    }
    page.describe("queue_bound_seconds", "gauge", "Delay budget of frames of admitted flows in a queue.");
    for (switch, port) in ports() {
        for queue in &port.queues {
            let (number, class) = (port.number.to_string(), queue.class.to_string());
            let labels = [("datapath_id", switch.datapath_id.as_str()), ("port", &number), ("class", &class)];
            page.sample("queue_bound_seconds", &labels, seconds(queue.budget_ns));
        }
    }
}

/// Selects the value of a counter of frames.
type Value = fn(&Traffic) -> Option<u64>;

/// Names and values of the counters of frames.
const COUNTED: [(&str, Value); 3] =
    [("frames", |it| it.frames), ("octets", |it| it.octets), ("dropped_frames", |it| it.dropped)];

fn sent_by_ports(page: &mut Page, view: &View) {
    let ports = || view.switches.iter().flat_map(|switch| switch.ports.iter().map(move |port| (switch, port)));
    let labels = |switch: &Switch, port: &Port| (switch.datapath_id.clone(), port.number.to_string());
    for (what, value) in COUNTED {
        let name = format!("port_{what}_total");
        page.describe(&name, "counter", "Frames of a port by direction, counted by its switch.");
        for (switch, port) in ports() {
            let Some(traffic) = &port.traffic else { continue };
            let (dpid, number) = labels(switch, port);
            for (direction, own) in [("sent", &traffic.sent), ("received", &traffic.received)] {
                if let Some(value) = value(own) {
                    let labels = [("datapath_id", dpid.as_str()), ("port", &number), ("direction", direction)];
                    page.sample(&name, &labels, value);
                }
            }
        }
    }
    page.describe("port_sent_ratio", "gauge", "Utilization of a port in the last interval, as a share of its rate.");
    for (switch, port) in ports() {
        if let Some(ppm) = port.traffic.and_then(|traffic| traffic.sent_ppm) {
            let (dpid, number) = labels(switch, port);
            page.sample("port_sent_ratio", &[("datapath_id", &dpid), ("port", &number)], ratio(ppm));
        }
    }
    for (what, value) in COUNTED {
        let name = format!("queue_{what}_total");
        page.describe(&name, "counter", "Frames of a queue, counted by its switch.");
        for (switch, port) in ports() {
            for queue in &port.queues {
                let Some(value) = queue.traffic.as_ref().and_then(value) else { continue };
                let ((dpid, number), class) = (labels(switch, port), queue.class.to_string());
                page.sample(&name, &[("datapath_id", &dpid), ("port", &number), ("class", &class)], value);
            }
        }
    }
}

/// Writes the counters of flows. Pairs that share a flow have the same values, since they share a
/// meter.
fn sent_by_flows(page: &mut Page, view: &View) {
    let flows = || view.pairs.iter().filter_map(|pair| Some((pair, pair.traffic.as_ref()?)));
    for (what, value) in COUNTED {
        let name = format!("flow_{what}_total");
        page.describe(&name, "counter", "Frames at the meter of an admitted pair, by kind.");
        for (pair, traffic) in flows() {
            let answers = traffic.answers.as_ref().map(|answers| ("answers", answers));
            for (kind, own) in [("samples", &traffic.samples)].into_iter().chain(answers) {
                if let Some(value) = value(own) {
                    let labels = [("topic", pair.topic.as_str()), ("writer", &pair.writer), ("reader", &pair.reader)];
                    let labels: Vec<Label<'_>> = labels.into_iter().chain([("kind", kind)]).collect();
                    page.sample(&name, &labels, value);
                }
            }
        }
    }
    page.describe("flow_protected_links", "gauge", "Links on the path of an admitted pair, with and without a detour.");
    for (pair, own) in view.pairs.iter().filter_map(|pair| Some((pair, pair.protection.as_ref()?))) {
        for (detour, count) in [("yes", own.links), ("no", own.of.saturating_sub(own.links))] {
            let labels = [("topic", pair.topic.as_str()), ("writer", &pair.writer), ("reader", &pair.reader)];
            let labels: Vec<Label<'_>> = labels.into_iter().chain([("detour", detour)]).collect();
            page.sample("flow_protected_links", &labels, count);
        }
    }
    page.describe("flow_unprotected", "gauge", "Whether an admitted pair that requests second ways has none.");
    for (pair, own) in view.pairs.iter().filter_map(|pair| Some((pair, pair.protection.as_ref()?))) {
        let labels = [("topic", pair.topic.as_str()), ("writer", &pair.writer), ("reader", &pair.reader)];
        let has_none = !matches!(own.state, ProtectionState::Protected | ProtectionState::Partly);
        page.sample("flow_unprotected", &labels, u8::from(has_none));
    }
    page.describe("flow_contract_broken", "gauge", "Whether the meter of an admitted pair drops samples.");
    for (pair, traffic) in flows() {
        let labels = [("topic", pair.topic.as_str()), ("writer", &pair.writer), ("reader", &pair.reader)];
        page.sample("flow_contract_broken", &labels, u8::from(traffic.breaks_contract));
    }
}

fn registrations(page: &mut Page, view: &View) {
    page.describe("registrations", "gauge", "Registered pairs, by state.");
    let states = || view.pairs.iter().filter_map(|pair| Some(pair.registration.as_ref()?.state));
    for state in State::ALL {
        page.sample("registrations", &[("state", state.name())], states().filter(|own| *own == state).count());
    }
}

fn flows(page: &mut Page, view: &View) {
    let with_contract = || view.pairs.iter().filter_map(|pair| Some((pair, pair.contract.as_ref()?)));
    page.describe("flow_bound_seconds", "gauge", "Proven latency bound of an admitted pair in the network.");
    for (pair, _) in with_contract() {
        if let Some(bound_ns) = pair.bound_ns {
            let labels = [("topic", pair.topic.as_str()), ("writer", &pair.writer), ("reader", &pair.reader)];
            page.sample("flow_bound_seconds", &labels, seconds(bound_ns));
        }
    }
    page.describe("flow_limit_seconds", "gauge", "Latency limit of a sample in the contract of a pair.");
    for (pair, contract) in with_contract() {
        let labels = [("topic", pair.topic.as_str()), ("writer", &pair.writer), ("reader", &pair.reader)];
        page.sample("flow_limit_seconds", &labels, seconds(contract.limit_ns));
    }
}
