//! Writers of a GROUP that say nothing of their group, as those of some vendors do (RTPS 2.5 §8.3.8.6.2).

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::builder::DataEmit;
use takt_wire::inline_qos::InlineQosBuilder;
use takt_wire::message::Payload;
use takt_wire::qos::*;
use takt_wire::{EntityId, SequenceNumber};

#[test]
fn coherent_sets_without_group_information_are_shown_as_of_scope_topic() {
    let now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("the configuration is good");
    let presentation = Presentation { access_scope: AccessScope::Group, coherent_access: true, ordered_access: false };
    let subscriber = node.create_subscriber(presentation).expect("there is room");
    let mut spec = reader_spec("T", false, keep_all_reader());
    (spec.group, spec.subscriber.presentation) = (Some(subscriber), presentation);
    let reader = node.create_reader(now, spec).expect("the reader is good");
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    let mut publication = puppet.publication(1, true);
    publication.presentation = presentation;
    publication.group_entity_id = EntityId::user_publisher(1);
    puppet.publish(&mut node, now, &publication);
    let writer = EntityId::user_writer(1, false);
    let bytes = payload(1, 20);
    let mut taken = Vec::new();
    let mut shown_after = Vec::new();
    let mut heartbeats = 0;
    for first in [1, 4] {
        let mut inline = InlineQosBuilder::<32>::new();
        inline.coherent_set(SequenceNumber(first)).expect("it fits");
        let member = inline.finish().expect("it fits").to_vec();
        puppet.say(&mut node, now, |message| {
            for sn in [first, first + 1] {
                let emit = DataEmit { inline_qos: Some(&member), ..data(writer, sn, Payload::Data(&bytes)) };
                message.data(&emit).expect("it fits");
            }
            message.data(&data(writer, first + 2, Payload::None)).expect("it fits");
        });
        for _ in 0..4 {
            let heartbeat = puppet.heartbeat(writer, 1, first + 2);
            puppet.say(&mut node, now, |message| message.heartbeat(&heartbeat).expect("it fits"));
            heartbeats += 1;
            let mut cursor = ReadCursor::default();
            while let Some(sample) = node.read_next(now, reader, Selector::TAKE, &mut cursor).expect("it lives") {
                taken.push(sample.info.sequence_number.0);
                shown_after.push(heartbeats);
            }
        }
    }
    assert_eq!(taken, [1, 2, 4, 5]);
    assert_eq!(shown_after, [3, 3, 5, 5], "the third HEARTBEAT without group information decides");
    assert_eq!(node.counters().writers_without_group_information, 1);
}
