//! Contracts of endpoints: minimum separation and maximum length of a writer's samples, and
//! contradictions between matched endpoints.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::qos::*;

fn spec(contract: Contract, deadline_ms: Option<u64>) -> WriterSpec {
    let period = deadline_ms.map_or(Duration::INFINITE, Duration::from_millis);
    let mut qos = DataWriterQos { deadline: Deadline { period }, ..keep_all_writer() };
    contract.put_into_writer(&mut qos);
    writer_spec("T", true, qos)
}

fn paced(ms: u64, early_write: EarlyWrite) -> Contract {
    Contract { minimum_separation: Some(Duration::from_millis(ms)), early_write, ..Contract::default() }
}

#[test]
fn early_sample_blocks_until_its_minimum_separation() {
    let mut network = Network::new(1, 420);
    let writer = network.writer(0, spec(paced(100, EarlyWrite::Wait), None));
    network.write(0, writer, &payload(1, 20)).expect("the first one");
    network.run(50);
    assert_eq!(network.write(0, writer, &payload(2, 20)), Err(WriteError::WouldBlock));
    network.write_key(0, writer, ChangeKind::Disposed, hash(1), &[]).expect("the end of an instance is not a sample");
    let begin = network.now;
    network.events(0);
    assert!(network.run_until(1_000, |network| network.events(0).contains(&Event::WriterSpace(writer))));
    assert_eq!(network.now.since(begin).as_millis(), 50);
    network.write(0, writer, &payload(2, 20)).expect("its time has come");
    assert_eq!(network.write(0, writer, &payload(3, 20)), Err(WriteError::WouldBlock));
    let free = keep_all_writer();
    network.nodes[0].set_writer_qos(network.now, writer, free).expect("it may change");
    network.run(100);
    for number in 3..10 {
        network.write(0, writer, &payload(number, 20)).expect("it offers no contract");
    }
}

#[test]
fn early_sample_is_refused_when_the_contract_requires_it() {
    let mut network = Network::new(1, 421);
    let writer = network.writer(0, spec(paced(100, EarlyWrite::Refuse), None));
    network.write(0, writer, &payload(1, 20)).expect("the first one");
    let refused = network.write(0, writer, &payload(2, 20));
    assert!(matches!(refused, Err(WriteError::Refused(Error::PreconditionNotMet { .. }))), "{refused:?}");
    network.run(100);
    network.write(0, writer, &payload(2, 20)).expect("its time has come");
}

#[test]
fn sample_longer_than_the_contract_is_refused() {
    let mut network = Network::new(1, 422);
    let writer = network.writer(0, spec(Contract { max_sample_bytes: Some(20), ..Contract::default() }, None));
    network.write(0, writer, &payload(1, 20)).expect("as long as it may be");
    let refused = network.write(0, writer, &payload(1, 21));
    assert_eq!(refused, Err(WriteError::Refused(Error::OutOfResources { limit: "rt.max_bytes", value: 20 })));
}

#[test]
fn separation_longer_than_the_deadline_is_refused() {
    let mut network = Network::new(1, 423);
    let slow = spec(paced(101, EarlyWrite::Wait), Some(100));
    let refused = network.nodes[0].create_writer(network.now, slow);
    assert!(matches!(refused, Err(Error::InconsistentPolicy { .. })), "{refused:?}");
    network.writer(0, spec(paced(100, EarlyWrite::Wait), Some(100)));
}

#[test]
fn contradicting_contracts_match_and_are_reported_on_both_sides() {
    let mut network = Network::new(2, 424);
    let writer = network.writer(0, spec(Contract { max_sample_bytes: Some(1_000), ..Contract::default() }, None));
    let mut qos = keep_all_reader();
    Contract { max_sample_bytes: Some(999), ..Contract::default() }.put_into_reader(&mut qos);
    let reader = network.reader(1, reader_spec("T", true, qos));
    network.await_match((0, writer), (1, reader));
    let from = network.nodes[0].writer_guid(writer).expect("the writer exists");
    let to = network.nodes[1].reader_guid(reader).expect("the reader exists");
    for node in &network.nodes {
        let found = node.contradictions();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0, found[0].1, found[0].2.len()), (from, to, 1));
    }
    let announced = network.nodes[1].publication_data(from).expect("it is known");
    let contract = Contract::of(&announced.qos.user_data, &announced.qos.property);
    assert_eq!(contract.max_sample_bytes, Some(1_000), "each reader that discovers the writer can read it");
}
