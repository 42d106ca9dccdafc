//! Tests that entries of admitted flows select the queue of the switch model by the method of the
//! model.

use takt_openflow::action::Action;
use takt_openflow::instruction::Instruction;
use takt_openflow::oxm::Oxm;
use takt_sdn::controller::Config;
use takt_sdn::model::{NetworkFile, QueueSelection, SwitchModel};

use crate::admission::{NETWORK, Site};
use crate::fabric::line;

/// Method by which a model's queues are selected.
#[derive(Clone, Copy, Debug)]
enum Kind {
    SetQueue,
    Dscp,
    Both,
}

fn model(kind: Kind) -> SwitchModel {
    let mut model = SwitchModel::built_in("generic-hardware").unwrap_or_else(|error| panic!("{error}"));
    for queue in model.queues.iter_mut().chain(&mut model.control) {
        let QueueSelection { set_queue, dscp } = queue.selection;
        queue.selection = match kind {
            Kind::SetQueue => QueueSelection { set_queue, dscp: None },
            Kind::Dscp => QueueSelection { set_queue: None, dscp },
            Kind::Both => queue.selection,
        };
    }
    model
}

/// Returns the queue and the DSCP of the frame at each output of an entry; a frame arrives with
/// DSCP 63 and without a queue.
fn marks(instructions: &[Instruction]) -> Vec<QueueSelection> {
    let actions = instructions.iter().filter_map(|instruction| match instruction {
        Instruction::ApplyActions(actions) => Some(actions),
        _ => None,
    });
    let (mut selection, mut outputs) = (QueueSelection { set_queue: None, dscp: Some(63) }, Vec::new());
    for action in actions.flatten() {
        match action {
            Action::SetField(Oxm::IpDscp(dscp)) => selection.dscp = Some(*dscp),
            Action::SetQueue(queue) => selection.set_queue = Some(*queue),
            Action::Output { .. } => outputs.push(selection),
            other => panic!("flow entries have no {other:?}"),
        }
    }
    outputs
}

#[test]
fn entries_of_admitted_flows_use_only_the_queue_selection_of_the_model() {
    for kind in [Kind::SetQueue, Kind::Dscp, Kind::Both] {
        let of_model = model(kind);
        let text = NETWORK.replace("ovs-netdev", "the-model");
        let network = NetworkFile::parse("network.toml", &text, |_| Ok(of_model.clone()));
        let network = Some(network.unwrap_or_else(|error| panic!("{error}")));
        let mut site = Site::with(Config { network, ..Config::default() }, 2, &line(2));
        let (pair, _, _) = site.pair(0, "Camera", 0);
        site.run(1_000);
        assert!(site.is_admitted(pair), "{kind:?}: {:?}", site.fabric.events);
        for dpid in [1, 2] {
            let entries = site.entries(dpid);
            assert!(!entries.is_empty(), "{kind:?}: switch {dpid} has the flow");
            for mark in entries.iter().flat_map(|entry| marks(&entry.instructions)) {
                // A class without a DSCP gets 0, so that a DSCP set by the host is no admission.
                let is_of = |queue: &takt_sdn::model::Queue| {
                    (queue.selection.set_queue, queue.selection.dscp.unwrap_or(0))
                        == (mark.set_queue, mark.dscp.unwrap_or(63))
                };
                assert!(of_model.queues.iter().any(is_of), "{kind:?} at switch {dpid}: {mark:?}");
            }
        }
    }
}
