//! Bounds on the output of a participant at one moment, regardless of its input: well-formed
//! messages, without repetition.
//!
//! While no time passes and no call is made, a participant sends each submessage once to each
//! requester. Its output is therefore bounded by its state, and no datagram causes endless output.

use std::collections::BTreeMap;
use takt_core::{Instant, Participant};
use takt_wire::message::*;
use takt_wire::{EntityId, GuidPrefix, Locator};

/// Maximum number of datagrams at one moment: more than all histories of a session have samples and
/// fragments, for all possible requesters.
const MAX_DATAGRAMS: usize = 20_000;

/// Submessage with its destination; the last two fields are the sequence number and the fragment.
type Statement = (GuidPrefix, Vec<Locator>, EntityId, EntityId, u8, i64, u32);

/// Sends all pending datagrams, and passes each to `keep`.
pub fn drain(node: &mut Participant, now: Instant, frame: &mut [u8], mut keep: impl FnMut(&[u8])) {
    let mut statements = BTreeMap::new();
    let mut datagrams = 0;
    while let Some(transmit) = node.poll_transmit(now, frame) {
        datagrams += 1;
        assert!(datagrams < MAX_DATAGRAMS, "poll_transmit comes to an end");
        assert!(!transmit.destinations.is_empty());
        let (len, destinations) = (transmit.len, transmit.destinations.to_vec());
        note(&frame[..len], &destinations, &mut statements);
        keep(&frame[..len]);
    }
}

fn note(datagram: &[u8], destinations: &[Locator], statements: &mut BTreeMap<Statement, u32>) {
    let message = MessageView::parse(datagram).expect("what we send is a message");
    let mut to = GuidPrefix::default();
    for submessage in message.submessages() {
        let (reader, writer, kind, sn, number) = match submessage.expect("what we send is well formed") {
            Submessage::InfoDestination(prefix) => {
                to = prefix;
                continue;
            }
            // Answers to a challenge are not counted, and are unrelated to the others.
            Submessage::AckNack(nack) if nack.count == 0 => (nack.reader, nack.writer, 1, 0, 0),
            Submessage::AckNack(nack) => (nack.reader, nack.writer, 0, 0, 0),
            Submessage::NackFrag(nack) => (nack.reader, nack.writer, 2, nack.sn.0, nack.fragments.base()),
            Submessage::Data(data) => (data.reader, data.writer, 3, data.sn.0, 0),
            Submessage::DataFrag(data) => (data.reader, data.writer, 4, data.sn.0, data.fragment_starting_num),
            Submessage::Gap(gap) => (gap.reader, gap.writer, 5, gap.gap_start.0, 0),
            _ => continue,
        };
        let statement = (to, destinations.to_vec(), reader, writer, kind, sn, number);
        let times = statements.entry(statement).or_insert(0);
        *times += 1;
        // Once unsolicited, and a second time for a reader that has lost it.
        let most = if kind < 3 { 1 } else { 2 };
        assert!(*times <= most, "{to:?} receives {kind}, {sn}/{number} from {writer:?} to {reader:?} {times} times");
    }
}
