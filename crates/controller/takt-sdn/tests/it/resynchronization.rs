//! Tests of resynchronization: the state of a switch is read and corrected to the wanted one.

use std::collections::BTreeMap;
use std::time::Duration;

use takt_openflow::flow::FlowMod;
use takt_openflow::group::{GroupMod, GroupType};
use takt_openflow::meter::MeterMod;
use takt_sdn::controller::Event;

use crate::fabric::{Fabric, line, port, ring};

const SECOND: Duration = Duration::from_secs(1);

type Tables = (Vec<String>, BTreeMap<u32, GroupMod>, BTreeMap<u32, MeterMod>);

fn with_hosts(mut fabric: Fabric) -> Fabric {
    let dpids: Vec<u64> = fabric.switches.keys().copied().collect();
    for dpid in dpids {
        fabric.host(port(dpid, 5));
    }
    fabric.settle();
    all_talk(&mut fabric);
    fabric
}

/// Sends from every host to every other, and checks that each frame arrives once.
fn all_talk(fabric: &mut Fabric) {
    let count = fabric.hosts.len();
    for from in 0..count {
        let frame = fabric.broadcast(from, &[from as u8]);
        fabric.send_from(from, frame.clone());
        let expected: Vec<usize> = (0..count).map(|to| usize::from(to != from)).collect();
        assert_eq!(fabric.received(&frame), expected);
    }
    for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))).filter(|(a, b)| a != b) {
        let frame = fabric.udp(from, to, 4000, &[from as u8, to as u8]);
        fabric.send_from(from, frame.clone());
        let expected: Vec<usize> = (0..count).map(|host| usize::from(host == to)).collect();
        assert_eq!(fabric.received(&frame), expected);
    }
}

fn tables(fabric: &Fabric, dpid: u64) -> Tables {
    let switch = &fabric.switches[&dpid];
    let mut rules: Vec<String> = switch.rules.iter().map(|rule| format!("{:?}", rule.flow)).collect();
    rules.sort();
    (rules, switch.groups.clone(), switch.meters.clone())
}

#[test]
fn foreign_and_missing_entries_are_corrected_when_a_switch_connects_again() {
    let mut fabric = with_hosts(Fabric::new(3, &ring()));
    let good = tables(&fabric, 2);
    fabric.disconnect(2);
    let switch = fabric.switch(2);
    let mut rules = std::mem::take(&mut switch.rules);
    // Some rules are lost, one is changed, and one that passes everything is added.
    rules.drain(..5);
    rules[0].flow.instructions.clear();
    let mut foreign = rules[0].clone();
    foreign.flow = FlowMod { priority: 65_000, cookie: 7, ..FlowMod::default() };
    rules.push(foreign);
    switch.rules = rules;
    switch.groups.insert(9, GroupMod::add(9, GroupType::All, vec![]));
    switch.groups.values_mut().next().expect("the switch has a group").buckets.clear();
    switch.meters.clear();
    fabric.events.clear();
    fabric.connect(2);
    assert!(fabric.controller.is_settled());
    assert_eq!(tables(&fabric, 2), good);
    let corrected = |event: &&Event| matches!(event, Event::Resynchronized { dpid: 2, .. });
    assert!(fabric.events.iter().any(|event| corrected(&event)));
    all_talk(&mut fabric);
}

#[test]
fn switch_with_the_wanted_tables_is_not_changed() {
    let mut fabric = with_hosts(Fabric::new(3, &ring()));
    fabric.disconnect(3);
    fabric.events.clear();
    fabric.connect(3);
    assert!(!fabric.events.iter().any(|event| matches!(event, Event::Resynchronized { .. })), "{:?}", fabric.events);
}

#[test]
fn externally_deleted_rule_is_restored() {
    let mut fabric = with_hosts(Fabric::new(2, &line(2)));
    let good = tables(&fabric, 1);
    fabric.switch(1).delete_notified(|flow| flow.priority == 20_000);
    fabric.run();
    assert_eq!(tables(&fabric, 1), good);
}

#[test]
fn restarted_controller_takes_over_without_a_lost_frame() {
    let mut fabric = with_hosts(Fabric::new(3, &ring()));
    fabric.restart_controller();
    // Rules in use continue to forward before the controller has learned anything.
    for step in 0..80 {
        for (from, to) in [(0, 2), (2, 1), (1, 0)] {
            let frame = fabric.udp(from, to, 4000, &[step, 77]);
            fabric.send_from(from, frame.clone());
            let expected: Vec<usize> = (0..3).map(|host| usize::from(host == to)).collect();
            assert_eq!(fabric.received(&frame), expected, "step {step}, {from} to {to}");
            let frame = fabric.broadcast(from, &[step, 78]);
            fabric.send_from(from, frame.clone());
            let expected: Vec<usize> = (0..3).map(|host| usize::from(host != from)).collect();
            assert_eq!(fabric.received(&frame), expected, "step {step}, from {from} to all");
        }
        fabric.pass(SECOND / 10);
    }
    assert!(fabric.controller.is_settled());
    assert_eq!(fabric.links().len(), 3);
    assert_eq!(fabric.controller.devices().iter().count(), 3, "hosts are taken from the rules");
    all_talk(&mut fabric);
}

#[test]
fn ring_has_no_loop_while_a_switch_forwards_without_its_controller() {
    for lost in 1..=3 {
        let mut fabric = with_hosts(Fabric::new(3, &ring()));
        fabric.disconnect(lost);
        // While one switch has no controller, each of the other links fails and returns.
        for (a, b) in ring() {
            if [a.dpid, b.dpid].contains(&lost) {
                continue;
            }
            fabric.pass(8 * SECOND);
            fabric.set_cable(a, b, false);
            fabric.pass(2 * SECOND);
            fabric.set_cable(a, b, true);
            fabric.pass(2 * SECOND);
        }
        for from in 0..3 {
            let frame = fabric.broadcast(from, &[from as u8, 99]);
            fabric.send_from(from, frame.clone());
            assert!(fabric.received(&frame).iter().all(|count| *count <= 1), "lost {lost}, from {from}");
        }
        fabric.connect(lost);
        fabric.settle();
        all_talk(&mut fabric);
    }
}

#[test]
fn refused_entry_is_omitted_and_reported() {
    let mut fabric = Fabric::new(1, &[]);
    fabric.disconnect(1);
    let switch = fabric.switch(1);
    switch.rules.clear();
    switch.has_fragments = false;
    fabric.host(port(1, 5));
    fabric.host(port(1, 6));
    fabric.connect(1);
    fabric.settle();
    let refused = fabric.events.iter().filter(|event| matches!(event, Event::EntryRefused { dpid: 1, .. })).count();
    assert_eq!(refused, 2, "fragments of both versions of IP: {:?}", fabric.events);
    all_talk(&mut fabric);
}

#[test]
fn full_table_leaves_frames_to_the_controller() {
    let mut fabric = Fabric::new(1, &[]);
    let dpid = 1;
    for port_number in 1..=8 {
        fabric.host(port(dpid, port_number));
    }
    fabric.settle();
    fabric.switch(dpid).room = fabric.switches[&dpid].rules.len() + 3;
    all_talk(&mut fabric);
    assert!(fabric.events.iter().any(|event| matches!(event, Event::EntryRefused { .. })));
}
