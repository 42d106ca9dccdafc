//! Consistency of message views for arbitrary bytes, and round trips of written messages.

use takt_wire::inline_qos::InlineQos;
use takt_wire::message::*;
use takt_wire::{DataEmit, DataFragEmit, MessageBuilder};

/// Parses a datagram, accesses all fields, and writes the parsed submessages into another datagram.
pub fn run(datagram: &[u8]) {
    let Ok(message) = MessageView::parse(datagram) else { return };
    let mut frame = vec![0; 2 * datagram.len() + 64];
    let mut builder = MessageBuilder::new(&mut frame, &message.header()).expect("the header fits");
    let (mut seen, mut errors) = (0, 0);
    for submessage in message.submessages() {
        seen += 1;
        match submessage {
            Ok(submessage) => write(&mut builder, &submessage),
            Err(error) => {
                assert!(error.offset <= datagram.len(), "{error} in {} bytes", datagram.len());
                errors += 1;
            }
        }
        assert!(4 * seen <= datagram.len(), "a submessage has at least four bytes");
    }
    assert!(errors <= seen);
    let len = builder.len();
    let again = MessageView::parse(&frame[..len]).expect("what we write is a message");
    assert_eq!(again.header(), message.header());
    for submessage in again.submessages() {
        submessage.expect("what we write is well formed");
    }
}

fn write(builder: &mut MessageBuilder<'_>, submessage: &Submessage<'_>) {
    // A parameter list is copied unchanged, so the byte order must be that of the message.
    let result = match submessage {
        Submessage::Heartbeat(heartbeat) => builder.heartbeat(heartbeat),
        Submessage::HeartbeatFrag(heartbeat) => builder.heartbeat_frag(heartbeat),
        Submessage::AckNack(acknack) => {
            acknack.reader_sn_state.iter().for_each(|sn| assert!(acknack.reader_sn_state.contains(sn)));
            builder.acknack(acknack)
        }
        Submessage::NackFrag(nack) => {
            nack.fragments.iter().for_each(|number| assert!(nack.fragments.contains(number)));
            builder.nack_frag(nack)
        }
        Submessage::Gap(gap) => {
            assert!(gap.gap_start <= gap.gap_list.base());
            builder.gap(gap)
        }
        Submessage::InfoTimestamp(timestamp) => builder.info_timestamp(*timestamp),
        Submessage::InfoDestination(prefix) => builder.info_destination(*prefix),
        Submessage::Data(data) => {
            assert!(data.sn.is_valid());
            look_at(data.inline_qos);
            let (reader, writer, sn, payload) = (data.reader, data.writer, data.sn, data.payload);
            builder.data(&DataEmit { reader, writer, sn, inline_qos: None, payload })
        }
        Submessage::DataFrag(data) => {
            let end = u64::from(data.payload_offset()) + data.payload.len() as u64;
            assert!(end <= u64::from(data.sample_size));
            look_at(data.inline_qos);
            builder.data_frag(&DataFragEmit {
                reader: data.reader,
                writer: data.writer,
                sn: data.sn,
                fragment_starting_num: data.fragment_starting_num,
                fragments_in_submessage: data.fragments_in_submessage,
                fragment_size: data.fragment_size,
                sample_size: data.sample_size,
                inline_qos: None,
                key: data.key,
                payload: data.payload,
            })
        }
        Submessage::InfoReply(reply) => {
            let multicast = reply.multicast.map_or(0, Iterator::count);
            std::hint::black_box(reply.unicast.count() + multicast);
            return;
        }
        Submessage::InfoSource(_) | Submessage::HeaderExtension(_) | Submessage::Pad | Submessage::Unknown { .. } => {
            return;
        }
    };
    result.expect("it takes no more room than it did");
}

fn look_at(list: Option<takt_wire::parameter::ParameterList<'_>>) {
    let Some(list) = list else { return };
    let count = list.iter().inspect(|parameter| assert!(parameter.value.len() <= 0xffff)).count();
    std::hint::black_box(count);
    if let Ok(inline) = InlineQos::parse(list) {
        std::hint::black_box(inline.directed_write.iter().count());
    }
}
