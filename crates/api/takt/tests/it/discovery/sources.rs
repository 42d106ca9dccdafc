//! Source address validation: messages of a participant are accepted only from its addresses, at
//! user data ports and discovery ports alike.

use std::net::UdpSocket;

use crate::support::*;
use takt::qos::*;
use takt::*;
use takt_testkit::network::veth_pair;

/// Builds a GAP of all samples up to 2^40, with the writer's GUID and for any reader
/// (RTPS 2.5 §9.4.5.5).
fn gap(writer: Guid) -> Vec<u8> {
    let mut message = b"RTPS\x02\x05\x01\x7a".to_vec();
    let guid = writer.to_bytes();
    message.extend(&guid[..12]);
    message.extend([0x08, 0x01, 28, 0, 0, 0, 0, 0]);
    message.extend(&guid[12..]);
    message.extend([[0u32, 1], [1 << 8, 0]].concat().into_iter().flat_map(u32::to_le_bytes));
    message.extend([0; 4]);
    message
}

#[test]
fn gap_from_another_address_is_dropped_at_the_port_of_user_data() {
    let Some([left, right]) = veth_pair(1) else { return };
    let publisher = left.run(|| DomainParticipant::builder(0).build().expect("participant"));
    let subscriber = right.run(|| DomainParticipant::builder(0).build().expect("participant"));
    let pair = Pair::<Blob>::between(
        publisher,
        subscriber,
        reliable_writer(History::KeepAll),
        reliable_reader(History::KeepAll),
    );
    let target = pair.publisher.discovered_participants().expect("open")[0].default_unicast[0].to_string();
    let target = target.strip_prefix("udp/").expect("UDP").to_owned();
    let message = gap(pair.writer.guid());
    // The reader's host does not own an address of the writer.
    right.run(|| UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(&message, target)).expect("sent"));
    let foreign = || pair.subscriber.diagnostics().counters().expect("open").foreign_datagrams;
    pair.wait_until("the forged message", || foreign() == 1);
    pair.writer.write(&Blob::new(1, 10)).expect("room");
    pair.wait_until("the sample", || !pair.reader.read(1).expect("open").is_empty());
    assert_eq!(pair.subscriber.diagnostics().counters().expect("open").contradicted_gaps, 0);
}
