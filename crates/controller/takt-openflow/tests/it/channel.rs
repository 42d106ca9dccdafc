//! Controller and switch connected to each other: handshake, requests, transactions, bundles,
//! multipart, echo, end of the connection.

use std::time::Duration;

use takt_openflow::action::Action;
use takt_openflow::bundle::bundle_flags::{ATOMIC, ORDERED};
use takt_openflow::cause::{BadRequest, BundleFailed, Cause, FlowModFailed};
use takt_openflow::channel::{
    CloseReason, Controller, ControllerConfig, Event, Instant, Limits, Outcome, SendError, SwitchEvent,
};
use takt_openflow::flow::FlowMod;
use takt_openflow::instruction::Instruction;
use takt_openflow::multipart::{FlowRequest, FlowStats, MORE, MultipartRequest, ReplyBody, RequestBody};
use takt_openflow::oxm::Oxm;
use takt_openflow::packet::{PacketIn, PacketInReason};
use takt_openflow::statistic::FlowCounters;
use takt_openflow::switch::{AsyncConfig, ControllerRole, RoleMessage};
use takt_openflow::value::{NO_BUFFER, PortNo};
use takt_openflow::{EncodeError, Message, Version, Versions};

use crate::pair::{Pair, TIMEOUT, controller_of};

const SINCE_1_3: [Version; 3] = [Version::V1_3, Version::V1_4, Version::V1_5];

fn flow(priority: u16) -> Message {
    let apply = Instruction::ApplyActions(vec![Action::output(PortNo(1))]);
    Message::FlowMod(FlowMod { priority, instructions: vec![apply], ..FlowMod::default() })
}

fn packet_in(reason: PacketInReason) -> Message {
    let fields = vec![Oxm::InPort(PortNo(1))];
    Message::PacketIn(PacketIn {
        buffer: NO_BUFFER,
        total_len: 4,
        reason,
        table: 0,
        cookie: 0,
        fields,
        data: vec![1; 4],
    })
}

fn only(mut events: Vec<Event>) -> Event {
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0)
}

fn outcome(pair: &mut Pair) -> Outcome {
    match only(pair.controller_events()) {
        Event::Completed { outcome, .. } => outcome,
        other => panic!("expected an outcome, got {other:?}"),
    }
}

#[test]
fn handshake_selects_the_highest_common_version_for_any_fragments() {
    for seed in 1..50 {
        for version in Version::ALL {
            let pair = Pair::up(seed, version);
            assert_eq!((pair.controller.version(), pair.switch.version()), (Some(version), Some(version)));
            assert_eq!(pair.switch.switch_config().miss_send_len, 0xffff);
        }
    }
    let mut pair = Pair::new(3, Versions::of(&[Version::V1_0, Version::V1_3]), Versions::ALL, Limits::default());
    pair.run();
    assert_eq!(pair.switch.version(), Some(Version::V1_3));
}

#[test]
fn both_ends_report_that_no_version_is_common() {
    let (new, old) = (Versions::of(&[Version::V1_5]), Versions::of(&[Version::V1_0]));
    let mut pair = Pair::new(1, new, old, Limits::default());
    pair.run();
    let down = only(pair.controller_events());
    let Event::Down(reason) = &down else { panic!("{down:?}") };
    assert_eq!(reason.to_string(), "no common version: bitmap 0x40 here, 0x2 there");
    let reason = match pair.switch.poll_event() {
        Some(SwitchEvent::Down(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert!(matches!(reason, CloseReason::NoCommonVersion { .. }), "{reason}");
    assert_eq!(pair.switch.poll_event(), None);
}

#[test]
fn hello_failed_of_the_peer_is_reported_as_its_reason() {
    let mut controller = controller_of(Versions::ALL, Limits::default());
    let refusal = [&[6, 1, 0, 15, 0, 0, 0, 1, 0, 0, 0, 1][..], b"no."].concat();
    assert_eq!(controller.handle_bytes(Instant(0), &refusal), refusal.len());
    let Some(Event::Down(CloseReason::Refused(error))) = controller.poll_event() else { panic!("not refused") };
    assert_eq!((error.to_string(), error.data), ("HelloFailed: permission denied".to_owned(), b"no.".to_vec()));
    assert_eq!(controller.poll_event(), None);
}

#[test]
fn first_message_other_than_hello_ends_the_connection() {
    let mut controller = controller_of(Versions::ALL, Limits::default());
    controller.handle_bytes(Instant(0), &[4, 5, 0, 8, 0, 0, 0, 1]);
    assert_eq!(controller.poll_event(), Some(Event::Down(CloseReason::NoHello { kind: 5 })));
    let mut controller = controller_of(Versions::ALL, Limits::default());
    controller.handle_bytes(Instant(0), &[4, 0, 0, 12, 0, 0, 0, 1, 0, 1, 0, 3]);
    assert!(matches!(controller.poll_event(), Some(Event::Down(CloseReason::MalformedHello(_)))));
}

#[test]
fn foreign_versions_and_short_lengths_end_the_connection() {
    for (octets, text) in [
        (&[5u8, 5, 0, 8, 0, 0, 0, 1][..], "message has the wire version 5, the channel has 4 (OpenFlow 1.3)"),
        (&[4, 5, 0, 7, 0, 0, 0, 1], "message of 7 octets is shorter than its header of 8"),
    ] {
        let mut pair = Pair::up(1, Version::V1_3);
        pair.controller.request(pair.now, TIMEOUT, &Message::BarrierRequest).expect("the send buffer has space");
        pair.controller.handle_bytes(pair.now, octets);
        let events = pair.controller_events();
        assert!(matches!(&events[0], Event::Completed { outcome: Outcome::Lost(_), .. }), "{events:?}");
        let Event::Down(down) = &events[1] else { panic!("{events:?}") };
        assert_eq!(down.to_string(), text);
        assert_eq!(pair.controller.send(&flow(1)), Err(SendError::NotConnected));
    }
}

#[test]
fn malformed_message_is_answered_with_an_error_and_the_channel_continues() {
    let mut pair = Pair::up(1, Version::V1_3);
    let mut octets = flow(1).encode(Version::V1_3, 77).expect("the version can encode it");
    octets[25] = 9;
    pair.switch.handle_bytes(pair.now, &octets);
    pair.switch.handle_bytes(pair.now, &[4, 99, 0, 8, 0, 0, 0, 78]);
    for (xid, code) in [(77, BadRequest::BadLen), (78, BadRequest::BadType)] {
        let event = pair.switch.poll_event();
        assert!(matches!(event, Some(SwitchEvent::Malformed { xid: found, .. }) if found == xid), "{event:?}");
        pair.run();
        let Event::Error { xid: found, error } = pair.controller.poll_event().expect("an error") else { panic!() };
        assert_eq!((found, error.cause), (xid, Cause::BadRequest(code)));
    }
    assert_eq!(pair.switch.counters().malformed, 2);
    pair.controller.transaction(pair.now, TIMEOUT, &[flow(2)]).expect("the send buffer has space");
    pair.run();
    pair.answer_barriers();
    assert_eq!(outcome(&mut pair), Outcome::Done);
}

#[test]
fn transaction_names_the_messages_that_failed() {
    for version in Version::ALL {
        for seed in 1..20 {
            let mut pair = Pair::up(seed, version);
            let flows: Vec<Message> = (0..9).map(flow).collect();
            pair.controller.transaction(pair.now, TIMEOUT, &flows).expect("the send buffer has space");
            pair.run();
            let mut asked = 0;
            while let Some(event) = pair.switch.poll_event() {
                let SwitchEvent::Request(request) = event else { panic!("{event:?}") };
                if request.message == Message::BarrierRequest {
                    pair.switch.reply(request.xid, &Message::BarrierReply).expect("the send buffer has space");
                } else if [2, 5].contains(&asked) {
                    pair.switch.refuse(&request, Cause::FlowModFailed(FlowModFailed::TableFull));
                }
                asked += 1;
            }
            pair.run();
            let Outcome::Failed(failures) = outcome(&mut pair) else { panic!("the outcome is not a failure") };
            assert_eq!(failures.iter().map(|failure| failure.message).collect::<Vec<_>>(), [Some(2), Some(5)]);
            for failure in failures {
                assert_eq!(failure.error.cause, Cause::FlowModFailed(FlowModFailed::TableFull));
                assert_eq!(failure.error.data.len(), 64, "the first octets of the message");
            }
        }
    }
}

#[test]
fn request_without_an_answer_ends_at_its_deadline_and_a_late_reply_is_counted() {
    let mut pair = Pair::up(1, Version::V1_3);
    let id = pair.controller.request(pair.now, Duration::from_secs(1), &Message::BarrierRequest).expect("room");
    pair.run();
    let deadline = pair.now.after(Duration::from_secs(1));
    assert_eq!(pair.controller.poll_timeout(), Some(deadline));
    pair.pass(Duration::from_secs(1));
    let expected = Event::Completed { operation: id, outcome: Outcome::TimedOut(vec![]) };
    assert_eq!(only(pair.controller_events()), expected);
    pair.answer_barriers();
    assert_eq!(pair.controller_events(), vec![]);
    assert_eq!(pair.controller.counters().unmatched, 1);
}

#[test]
fn reply_of_another_type_is_the_outcome() {
    let mut pair = Pair::up(1, Version::V1_3);
    let role = RoleMessage { role: ControllerRole::Master, short_id: 0, generation: 1 };
    pair.controller.request(pair.now, TIMEOUT, &Message::RoleRequest(role)).expect("the send buffer has space");
    pair.run();
    let Some(SwitchEvent::Request(request)) = pair.switch.poll_event() else { panic!("a request") };
    assert_eq!(request.message, Message::RoleRequest(role));
    pair.switch.reply(request.xid, &Message::BarrierReply).expect("the send buffer has space");
    pair.run();
    assert_eq!(outcome(&mut pair), Outcome::Unexpected(Message::BarrierReply));
}

#[test]
fn malformed_reply_is_the_outcome() {
    let mut pair = Pair::up(1, Version::V1_3);
    pair.controller.request(pair.now, TIMEOUT, &Message::GetConfigRequest).expect("the send buffer has space");
    let xid = pair.controller.poll_transmit()[4..8].to_vec();
    pair.controller.handle_bytes(pair.now, &[&[4, 8, 0, 9][..], &xid, &[0]].concat());
    assert!(matches!(outcome(&mut pair), Outcome::Malformed(_)));
}

#[test]
fn messages_without_a_reply_are_refused_as_requests() {
    let mut pair = Pair::up(1, Version::V1_3);
    assert_eq!(pair.controller.request(pair.now, TIMEOUT, &flow(1)), Err(SendError::NoReply));
}

#[test]
fn bundle_is_committed_after_it_is_filled() {
    for version in SINCE_1_3 {
        for seed in 1..20 {
            let mut pair = Pair::up(seed, version);
            let flows: Vec<Message> = (0..5).map(flow).collect();
            pair.controller.bundle(pair.now, TIMEOUT, ATOMIC | ORDERED, flows.clone()).expect("enough space");
            pair.run();
            let Some(SwitchEvent::Commit { xid, bundle }) = pair.switch.poll_event() else { panic!("a commit") };
            let messages: Vec<Message> = bundle.messages.iter().map(|request| request.message.clone()).collect();
            assert_eq!((messages, bundle.flags), (flows, ATOMIC | ORDERED));
            assert_eq!(pair.controller_events(), vec![], "no reply arrives before the commit");
            pair.switch.committed(xid, &bundle).expect("the send buffer has space");
            pair.run();
            assert_eq!(outcome(&mut pair), Outcome::Done);
        }
    }
}

#[test]
fn bundle_that_cannot_be_filled_is_discarded() {
    for version in SINCE_1_3 {
        let mut pair = Pair::up(5, version);
        let messages = vec![flow(1), Message::BarrierRequest, flow(2)];
        pair.controller.bundle(pair.now, TIMEOUT, ATOMIC, messages).expect("the send buffer has space");
        pair.run();
        assert_eq!(pair.switch.poll_event(), None, "nothing is committed");
        let Outcome::Failed(failures) = outcome(&mut pair) else { panic!("the outcome is not a failure") };
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].message, Some(1));
        assert_eq!(failures[0].error.cause, Cause::BundleFailed(BundleFailed::MsgUnsup));
    }
}

#[test]
fn failed_commit_names_the_message_and_the_bundle() {
    let mut pair = Pair::up(5, Version::V1_3);
    pair.controller.bundle(pair.now, TIMEOUT, ATOMIC, vec![flow(1), flow(2)]).expect("the send buffer has space");
    pair.run();
    let Some(SwitchEvent::Commit { xid, bundle }) = pair.switch.poll_event() else { panic!("a commit") };
    pair.switch.commit_failed(xid, &bundle, 1, Cause::FlowModFailed(FlowModFailed::Overlap));
    pair.run();
    let Outcome::Failed(failures) = outcome(&mut pair) else { panic!("the outcome is not a failure") };
    let causes: Vec<_> = failures.iter().map(|failure| (failure.message, failure.error.cause)).collect();
    let overlap = Cause::FlowModFailed(FlowModFailed::Overlap);
    assert_eq!(causes, [(Some(1), overlap), (None, Cause::BundleFailed(BundleFailed::MsgFailed))]);
}

#[test]
fn switch_limits_bundles_and_their_messages() {
    let limits = Limits { bundles: 1, bundle_messages: 2, ..Limits::default() };
    let mut pair = Pair::new(1, Versions::of(&[Version::V1_4]), Versions::ALL, limits);
    pair.run();
    pair.answer_barriers();
    pair.controller_events();
    pair.controller.bundle(pair.now, TIMEOUT, ATOMIC, (0..4).map(flow).collect()).expect("the send buffer has space");
    pair.run();
    let Outcome::Failed(failures) = outcome(&mut pair) else { panic!("the outcome is not a failure") };
    let causes: Vec<_> = failures.iter().map(|failure| (failure.message, failure.error.cause)).collect();
    let too_many = Cause::BundleFailed(BundleFailed::MsgTooMany);
    assert_eq!(causes, [(Some(2), too_many), (Some(3), too_many)]);
    for _ in 0..2 {
        pair.controller.bundle(pair.now, TIMEOUT, ATOMIC, vec![flow(1)]).expect("the send buffer has space");
    }
    pair.run();
    let Outcome::Failed(failures) = outcome(&mut pair) else { panic!("the second bundle does not fit") };
    assert_eq!(failures[0].error.cause, Cause::BundleFailed(BundleFailed::OutOfBundles));
}

#[test]
fn bundles_are_refused_in_1_0() {
    let mut pair = Pair::up(1, Version::V1_0);
    let refused = pair.controller.bundle(pair.now, TIMEOUT, ATOMIC, vec![flow(1)]);
    assert!(matches!(refused, Err(SendError::Encode(EncodeError::NotInVersion { .. }))), "{refused:?}");
    assert!(pair.controller.poll_transmit().is_empty());
}

fn stats(count: u16, version: Version) -> ReplyBody {
    let fixed = FlowCounters::default();
    let counters = if version == Version::V1_5 { FlowCounters::Extensible(vec![]) } else { fixed };
    let flow = |priority| FlowStats {
        table: 0,
        counters: counters.clone(),
        priority,
        idle_timeout: 0,
        hard_timeout: 0,
        flags: 0,
        importance: 0,
        cookie: 0,
        matching: Default::default(),
        instructions: vec![],
    };
    ReplyBody::Flow((0..count).map(flow).collect())
}

#[test]
fn multipart_reply_is_reassembled_in_order() {
    for version in SINCE_1_3 {
        let mut pair = Pair::up(9, version);
        let request = Message::MultipartRequest(MultipartRequest::new(RequestBody::Flow(FlowRequest::default())));
        pair.controller.request(pair.now, TIMEOUT, &request).expect("the send buffer has space");
        pair.run();
        let Some(SwitchEvent::Request(request)) = pair.switch.poll_event() else { panic!("a request") };
        pair.switch.reply_multipart(request.xid, stats(5000, version)).expect("the send buffer has space");
        assert!(pair.switch.poll_transmit().len() > 2 * 65_535, "several parts");
        pair.run();
        assert_eq!(outcome(&mut pair), Outcome::Multipart(stats(5000, version)));
    }
}

#[test]
fn multipart_reply_beyond_the_limit_is_too_large() {
    let limits = Limits { multipart_bytes: 100_000, ..Limits::default() };
    let mut pair = Pair::new(1, Versions::of(&[Version::V1_3]), Versions::ALL, limits);
    pair.run();
    pair.answer_barriers();
    pair.controller_events();
    let request = Message::MultipartRequest(MultipartRequest::new(RequestBody::Flow(FlowRequest::default())));
    pair.controller.request(pair.now, TIMEOUT, &request).expect("the send buffer has space");
    pair.run();
    let Some(SwitchEvent::Request(request)) = pair.switch.poll_event() else { panic!("a request") };
    pair.switch.reply_multipart(request.xid, stats(5000, Version::V1_3)).expect("the send buffer has space");
    pair.run();
    assert_eq!(outcome(&mut pair), Outcome::TooLarge { limit: 100_000 });
    assert!(pair.controller.counters().unmatched > 0, "later parts complete nothing");
}

#[test]
fn silent_peer_is_probed_and_then_disconnected() {
    let mut pair = Pair::up(1, Version::V1_3);
    pair.pass(Duration::from_secs(5));
    assert_eq!((pair.controller.counters().echoes, pair.switch.counters().echoes), (1, 1), "one each");
    assert_eq!(pair.controller_events(), vec![]);
    let pending = pair.controller.request(pair.now, Duration::from_secs(60), &Message::BarrierRequest).expect("room");
    // From now on, no octets reach the switch.
    let echo_due = pair.controller.poll_timeout().expect("an echo is due");
    pair.controller.handle_timeout(echo_due);
    let deadline = pair.controller.poll_timeout().expect("its answer is due");
    assert_eq!(deadline, echo_due.after(Duration::from_secs(5)));
    pair.controller.handle_timeout(deadline);
    let lost = Event::Completed { operation: pending, outcome: Outcome::Lost(vec![]) };
    assert_eq!(pair.controller_events(), vec![lost, Event::Down(CloseReason::PeerSilent)]);
    assert_eq!(pair.controller.poll_timeout(), None);
}

#[test]
fn handshake_ends_at_its_deadline() {
    let mut controller = controller_of(Versions::ALL, Limits::default());
    let deadline = controller.poll_timeout().expect("the handshake has a deadline");
    assert_eq!(deadline, Instant(0).after(Duration::from_secs(10)));
    controller.handle_timeout(deadline);
    assert_eq!(controller.poll_event(), Some(Event::Down(CloseReason::HandshakeTimedOut)));
    controller.close();
    assert_eq!(controller.poll_event(), None, "the end is reported once");
}

#[test]
fn asynchronous_messages_follow_role_and_masks() {
    for version in SINCE_1_3 {
        let asynchronous = Some(AsyncConfig::new([0b010, 0b001], [0b111, 0], [0, 0]));
        let config = ControllerConfig { versions: Versions::of(&[version]), asynchronous, ..Default::default() };
        let mut pair = Pair::new(2, Versions::ALL, Versions::ALL, Limits::default());
        pair.controller = Controller::new(Instant(0), config);
        pair.run();
        pair.answer_barriers();
        pair.controller_events();
        assert_eq!(pair.switch.notify(&packet_in(PacketInReason::ACTION)), Ok(true));
        assert_eq!(pair.switch.notify(&packet_in(PacketInReason::NO_MATCH)), Ok(false));
        pair.run();
        assert!(matches!(only(pair.controller_events()), Event::Message { .. }));
        pair.switch.set_role(ControllerRole::Slave);
        assert_eq!(pair.switch.notify(&packet_in(PacketInReason::NO_MATCH)), Ok(true));
        pair.controller.transaction(pair.now, TIMEOUT, &[flow(1)]).expect("the send buffer has space");
        pair.run();
        pair.answer_barriers();
        let events = pair.controller_events();
        let Event::Completed { outcome: Outcome::Failed(failures), .. } = &events[1] else { panic!("{events:?}") };
        assert_eq!(failures[0].error.cause, Cause::BadRequest(BadRequest::IsSlave));
    }
}

#[test]
fn full_transmit_queue_refuses_messages_until_it_is_transmitted() {
    let limits = Limits { transmit_bytes: 1000, ..Limits::default() };
    let mut pair = Pair::new(1, Versions::of(&[Version::V1_3]), Versions::ALL, limits);
    pair.run();
    pair.answer_barriers();
    pair.controller_events();
    let flows: Vec<Message> = (0..10).map(flow).collect();
    pair.controller.transaction(pair.now, TIMEOUT, &flows).expect("808 octets");
    let before = pair.controller.poll_transmit().to_vec();
    assert_eq!(before.len(), 808);
    let refused = pair.controller.transaction(pair.now, TIMEOUT, &flows);
    assert_eq!(refused, Err(SendError::OutOfRoom { needed: 808, free: 192 }));
    assert_eq!(pair.controller.poll_transmit(), before);
    pair.run();
    pair.controller.transaction(pair.now, TIMEOUT, &flows).expect("the send buffer has space again");
}

#[test]
fn messages_beyond_the_in_flight_limit_are_refused() {
    let limits = Limits { in_flight: 3, ..Limits::default() };
    let mut pair = Pair::new(1, Versions::of(&[Version::V1_3]), Versions::ALL, limits);
    pair.run();
    pair.answer_barriers();
    pair.controller_events();
    pair.controller.transaction(pair.now, TIMEOUT, &[flow(1)]).expect("two messages");
    let refused = pair.controller.transaction(pair.now, TIMEOUT, &[flow(1)]);
    assert_eq!(refused, Err(SendError::TooManyInFlight { limit: 3 }));
    pair.run();
    pair.answer_barriers();
    assert_eq!(outcome(&mut pair), Outcome::Done);
    pair.controller.transaction(pair.now, TIMEOUT, &[flow(1)]).expect("the first has ended");
}

#[test]
fn full_event_queue_stops_reception_without_loss() {
    let limits = Limits { events: 2, ..Limits::default() };
    let mut pair = Pair::new(1, Versions::of(&[Version::V1_3]), Versions::ALL, limits);
    pair.run();
    pair.answer_barriers();
    pair.controller_events();
    for _ in 0..20 {
        pair.switch.notify(&packet_in(PacketInReason::NO_MATCH)).expect("the send buffer has space");
    }
    let mut count = 0;
    loop {
        pair.run();
        let events = pair.controller_events();
        assert!(events.len() <= 2);
        if events.is_empty() {
            break;
        }
        count += events.len();
    }
    assert_eq!(count, 20);
}

#[test]
fn echo_requests_are_answered_only_while_the_transmit_queue_is_not_full() {
    let limits = Limits { transmit_bytes: 1000, ..Limits::default() };
    let mut pair = Pair::new(1, Versions::of(&[Version::V1_3]), Versions::ALL, limits);
    pair.run();
    pair.answer_barriers();
    let echo = Message::EchoRequest(vec![7; 60_000]).encode(Version::V1_3, 5).expect("the message can be encoded");
    let flood = echo.repeat(10);
    let consumed = pair.switch.handle_bytes(pair.now, &flood);
    assert!(pair.switch.poll_transmit().len() <= 1000 + 65_535, "{}", pair.switch.poll_transmit().len());
    assert!(consumed < flood.len());
    let answered = pair.switch.poll_transmit().len();
    pair.switch.transmitted(answered);
    assert!(pair.switch.handle_bytes(pair.now, &flood[consumed..]) > 0);
}

#[test]
fn operations_in_flight_are_reported_lost_once_when_the_connection_ends() {
    let mut pair = Pair::up(1, Version::V1_4);
    let first = pair.controller.transaction(pair.now, TIMEOUT, &[flow(1), flow(2)]).expect("room");
    let second = pair.controller.bundle(pair.now, TIMEOUT, ATOMIC, vec![flow(3)]).expect("room");
    pair.run();
    let Some(SwitchEvent::Request(request)) = pair.switch.poll_event() else { panic!("a request") };
    pair.switch.refuse(&request, Cause::FlowModFailed(FlowModFailed::Overlap));
    pair.run();
    pair.controller.handle_disconnect();
    let events = pair.controller_events();
    let Event::Completed { operation, outcome: Outcome::Lost(failures) } = &events[0] else { panic!("{events:?}") };
    assert_eq!((*operation, failures.len(), failures[0].message), (first, 1, Some(0)));
    let lost = Event::Completed { operation: second, outcome: Outcome::Lost(vec![]) };
    assert_eq!(events[1..], [lost, Event::Down(CloseReason::PeerClosed)]);
    pair.controller.handle_disconnect();
    assert_eq!(pair.controller_events(), vec![]);
}

#[test]
fn bundle_past_its_deadline_is_discarded() {
    let mut pair = Pair::up(1, Version::V1_4);
    pair.controller.bundle(pair.now, Duration::from_secs(1), ATOMIC, vec![flow(1)]).expect("the send buffer has space");
    let deadline = pair.now.after(Duration::from_secs(1));
    pair.controller.handle_timeout(deadline);
    assert_eq!(outcome(&mut pair), Outcome::TimedOut(vec![]));
    // The switch receives the bundle, its close and the discard. It commits nothing, and its
    // replies match no request.
    pair.run();
    assert_eq!(pair.switch.poll_event(), None);
    assert_eq!(pair.controller_events(), vec![]);
    assert_eq!(pair.controller.counters().unmatched, 3, "the bundle was opened, closed and discarded");
}

#[test]
fn multipart_request_has_one_transaction_id_and_one_reply() {
    let mut pair = Pair::up(4, Version::V1_3);
    let part = || MultipartRequest::new(RequestBody::TableFeatures(vec![]));
    let parts = vec![part(), part(), part()];
    pair.controller.request_in_parts(pair.now, TIMEOUT, parts).expect("the send buffer has space");
    pair.run();
    let mut flags = Vec::new();
    let mut xids = Vec::new();
    while let Some(event) = pair.switch.poll_event() {
        let SwitchEvent::Request(request) = event else { panic!("{event:?}") };
        let Message::MultipartRequest(part) = request.message else { panic!("a part") };
        flags.push(part.flags);
        xids.push(request.xid);
    }
    assert_eq!(flags, [MORE, MORE, 0]);
    assert!(xids.iter().all(|xid| *xid == xids[0]));
    pair.switch.reply_multipart(xids[0], ReplyBody::TableFeatures(vec![])).expect("the send buffer has space");
    pair.run();
    assert_eq!(outcome(&mut pair), Outcome::Multipart(ReplyBody::TableFeatures(vec![])));
}
