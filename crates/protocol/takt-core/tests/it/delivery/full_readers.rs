//! Relief of full readers: waiting changes of a group are released when a reader can hold no more
//! (DDS 1.4 §2.2.3.6, §2.2.3.19).

use crate::network::*;
use takt_core::*;
use takt_wire::qos::*;

const ORDERED: Presentation =
    Presentation { access_scope: AccessScope::Group, coherent_access: false, ordered_access: true };

/// Creates a writer of topic T for the given publisher.
fn writer(network: &mut Network, node: usize, publisher: PublisherHandle) -> WriterHandle {
    let mut spec = writer_spec("T", false, keep_all_writer());
    (spec.group, spec.publisher.presentation) = (Some(publisher), ORDERED);
    network.writer(node, spec)
}

/// Found by the simulation, seed 1151: the held changes of a reader wait for a writer of the same
/// publisher, for whose change there is no room. Another publisher without held changes was visited
/// first and was chosen for release.
#[test]
fn full_reader_continues_regardless_of_the_order_of_publishers() {
    let mut network = Network::new(3, 731);
    let subscriber = network.nodes[2].create_subscriber(ORDERED).expect("write accepted");
    let mut qos = keep_all_reader();
    qos.resource_limits.max_samples = Some(4);
    let mut spec = reader_spec("T", false, qos);
    (spec.group, spec.subscriber.presentation) = (Some(subscriber), ORDERED);
    let reader = network.reader(2, spec);
    let idle = network.nodes[0].create_publisher(ORDERED).expect("write accepted");
    let busy = network.nodes[1].create_publisher(ORDERED).expect("write accepted");
    let _silent = writer(&mut network, 0, idle);
    let (fast, slow) = (writer(&mut network, 1, busy), writer(&mut network, 1, busy));
    network.run(2_000);
    let matched = network.nodes[2].matched_publications(reader).expect("the reader exists");
    assert_eq!(matched.len(), 3);
    network.cut.push(1);
    network.write(1, slow, &payload(1, 12)).expect("write accepted");
    network.run(1);
    network.cut.clear();
    for number in 2..=5 {
        network.write(1, fast, &payload(number, 12)).expect("write accepted");
    }
    let mut taken = Vec::new();
    let all = network.run_until(2_000, |network| {
        let now = network.now;
        network.nodes[2].begin_access(subscriber).expect("it exists");
        taken.extend(network.take_all(2, reader).into_iter().map(|(_, bytes)| bytes));
        network.nodes[2].end_access(now, subscriber).expect("it has begun");
        taken.len() == 5
    });
    assert!(all, "{} of 5", taken.len());
    taken.sort();
    assert_eq!(taken, [1, 2, 3, 4, 5].map(|number| payload(number, 12)));
}
