//! Type checks: with different type information the match waits for a verdict; without type
//! information, names decide.

use crate::network::*;
use takt_core::*;
use takt_wire::qos::{DataReaderQos, TypeConsistency};

/// Writer of the first participant and reader of the second, with their type information.
struct Pair {
    network: Network,
    writer: WriterHandle,
    reader: ReaderHandle,
}

fn pair(seed: u64, infos: [Option<&[u8]>; 2], force: bool, checks: bool) -> Pair {
    let mut network = Network::new(2, seed);
    if checks {
        network.nodes.iter_mut().for_each(Participant::check_types);
    }
    let now = network.now;
    let [of_writer, of_reader] = infos.map(|info| info.map(<[u8]>::to_vec));
    let spec = WriterSpec { type_information: of_writer, ..writer_spec("Topic", false, keep_all_writer()) };
    let writer = network.nodes[0].create_writer(now, spec).expect("writer");
    let type_consistency = TypeConsistency { force_type_validation: force, ..TypeConsistency::default() };
    let qos = DataReaderQos { type_consistency, ..keep_all_reader() };
    let spec = ReaderSpec { type_information: of_reader, ..reader_spec("Topic", false, qos) };
    let reader = network.nodes[1].create_reader(now, spec).expect("reader");
    network.run(5_000);
    Pair { network, writer, reader }
}

impl Pair {
    fn matched(&mut self) -> [bool; 2] {
        let writer = self.network.nodes[0].publication_matched_status(self.writer).expect("open");
        let reader = self.network.nodes[1].subscription_matched_status(self.reader).expect("open");
        [writer.current_count == 1, reader.current_count == 1]
    }

    /// Returns the pending type check of each participant, once.
    fn checks(&mut self) -> [Option<TypeCheck>; 2] {
        [0, 1].map(|node| {
            let notified = self.network.events(node).contains(&Event::TypeChecks);
            let check = self.network.nodes[node].poll_type_check();
            assert_eq!(notified, check.is_some());
            assert_eq!(self.network.nodes[node].poll_type_check(), None, "once");
            check
        })
    }

    fn set_verdicts(&mut self, verdict: &TypeVerdict) {
        let now = self.network.now;
        for (node, check) in self.checks().into_iter().enumerate() {
            let check = check.expect("the pair waits");
            self.network.nodes[node].set_type_verdict(now, check, verdict.clone());
            // A second verdict comes too late.
            let late = TypeVerdict::Incompatible { reason: "late".into() };
            self.network.nodes[node].set_type_verdict(now, check, late);
        }
        self.network.run(1_000);
    }

    fn refusals(&self) -> Vec<String> {
        let refusals = self.network.nodes.iter().flat_map(Participant::refusals);
        let reason = |text: String| text.split_once("do not match: ").expect("the form of a refusal").1.to_owned();
        refusals.map(|refusal| reason(refusal.to_string())).collect()
    }
}

const A: Option<&[u8]> = Some(b"one type");
const B: Option<&[u8]> = Some(b"another type");

#[test]
fn equal_type_information_matches_without_a_check() {
    let mut pair = pair(1, [A, A], true, true);
    assert_eq!(pair.matched(), [true, true]);
    assert_eq!(pair.checks(), [None, None]);
}

#[test]
fn pair_matches_after_the_verdict() {
    let mut pair = pair(2, [A, B], false, true);
    assert_eq!((pair.matched(), pair.refusals().len()), ([false, false], 0), "it waits");
    pair.set_verdicts(&TypeVerdict::Compatible);
    assert_eq!((pair.matched(), pair.refusals().len()), ([true, true], 0));
}

#[test]
fn negative_verdict_is_an_inconsistent_topic_on_both_sides() {
    let mut pair = pair(3, [A, B], false, true);
    pair.set_verdicts(&TypeVerdict::Incompatible { reason: "member 'x'".into() });
    assert_eq!(pair.matched(), [false, false]);
    assert_eq!(pair.refusals(), ["their types differ: member 'x'"; 2]);
    let [writer, reader] = [0, 1].map(|node| pair.network.events(node));
    assert!(writer.contains(&Event::WriterInconsistentTopic(pair.writer)), "{writer:?}");
    assert!(reader.contains(&Event::ReaderInconsistentTopic(pair.reader)), "{reader:?}");
}

#[test]
fn type_names_decide_without_checks_or_without_type_information() {
    for (infos, checks) in [([A, B], false), ([None, B], true), ([A, None], true), ([None, None], true)] {
        let mut pair = pair(4, infos, false, checks);
        assert_eq!(pair.matched(), [true, true], "{infos:?} {checks}");
        assert_eq!(pair.checks(), [None, None], "{infos:?} {checks}");
    }
}

#[test]
fn forced_type_validation_refuses_missing_type_information() {
    for (infos, side) in [([None, B], "writer"), ([A, None], "reader"), ([None, None], "writer")] {
        let mut pair = pair(5, infos, true, true);
        assert_eq!(pair.matched(), [false, false], "{infos:?}");
        let reason = format!("their types differ: force_type_validation is set, but the {side} announces no type");
        assert_eq!(pair.refusals(), [reason.as_str(); 2]);
    }
}

#[test]
fn verdict_is_removed_with_the_endpoint_and_kept_for_changes() {
    let mut pair = pair(6, [A, B], false, true);
    let [of_writer, of_reader] = pair.checks().map(|check| check.expect("the pair waits"));
    assert_eq!(of_writer, of_reader, "both mean the same pair");
    // The reader is deleted before a verdict: the check at the writer's side is no longer pending.
    let now = pair.network.now;
    pair.network.nodes[1].delete_reader(now, pair.reader).expect("it is there");
    pair.network.run(1_000);
    for node in 0..2 {
        pair.network.nodes[node].set_type_verdict(now, of_writer, TypeVerdict::Compatible);
    }
    pair.network.run(1_000);
    let status = pair.network.nodes[0].publication_matched_status(pair.writer).expect("open");
    assert_eq!(status.total_count, 0);
    assert!(pair.network.nodes[0].publication(of_writer.writer).is_some());
    assert!(pair.network.nodes[0].subscription(of_writer.reader).is_none());
}
