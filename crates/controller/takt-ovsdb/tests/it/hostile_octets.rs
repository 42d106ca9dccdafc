//! Hostile octets of a server: truncated, damaged, too long, too deep.

use serde_json::json;
use takt_ovsdb::stream::{MessageStream, StreamError};
use takt_ovsdb::{Client, Event, Limits, Monitor};

const LIMITS: Limits = Limits { message_len: 1000, depth: 8, rows: 10 };

const UPDATE: &str = r#" {"method":"update","id":null,"params":["m",{"T\"}{\\":{"u":{"new":{"a":["set",[1,2]]}}}}]}"#;

fn whole(bytes: &[u8]) -> Result<Vec<serde_json::Value>, StreamError> {
    let mut stream = MessageStream::new(LIMITS);
    let (mut rest, mut messages) = (bytes, Vec::new());
    while !rest.is_empty() {
        let (consumed, message) = stream.handle_bytes(rest)?;
        messages.extend(message);
        rest = &rest[consumed..];
    }
    Ok(messages)
}

#[test]
fn messages_are_the_same_for_any_fragments() {
    let twice = format!("{UPDATE}\n{UPDATE}");
    let expected = whole(twice.as_bytes()).expect("two messages");
    assert_eq!(expected.len(), 2);
    for cut in 0..twice.len() {
        let mut stream = MessageStream::new(LIMITS);
        let mut messages = Vec::new();
        for part in [&twice.as_bytes()[..cut], &twice.as_bytes()[cut..]] {
            let mut rest = part;
            while !rest.is_empty() {
                let (consumed, message) = stream.handle_bytes(rest).expect("the message is complete");
                messages.extend(message);
                rest = &rest[consumed..];
            }
        }
        assert_eq!(messages, expected, "cut at {cut}");
    }
}

#[test]
fn truncated_message_is_not_returned() {
    for len in 0..UPDATE.len() {
        assert_eq!(whole(&UPDATE.as_bytes()[..len]).expect("a prefix"), Vec::<serde_json::Value>::new());
    }
}

#[test]
fn damaged_octets_cause_errors_or_other_messages_but_no_panic() {
    for at in 0..UPDATE.len() {
        for octet in 0..=u8::MAX {
            let mut bytes = UPDATE.as_bytes().to_vec();
            bytes[at] = octet;
            let mut client = Client::new(LIMITS);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let Ok((consumed, event)) = client.handle_bytes(rest) else { break };
                if let Some(Event::Notification { params, .. }) = event {
                    // The damaged update is either applied or refused.
                    let _ = Monitor::default().apply(&params[1], LIMITS.rows);
                }
                rest = &rest[consumed..];
            }
        }
    }
}

#[test]
fn message_beyond_the_length_limit_is_refused_before_it_ends() {
    let long = format!("{{\"method\":\"{}", "x".repeat(2000));
    assert!(matches!(whole(long.as_bytes()), Err(StreamError::TooLong { limit: 1000 })));
}

#[test]
fn message_beyond_the_depth_limit_is_refused_before_it_ends() {
    let deep = format!("{{\"params\":{}", "[".repeat(8));
    assert!(matches!(whole(deep.as_bytes()), Err(StreamError::TooDeep { limit: 8 })));
}

#[test]
fn octets_outside_an_object_are_refused() {
    for (text, octet) in [("[1]", b'['), ("7", b'7'), ("{}x", b'x'), ("}", b'}')] {
        let found = whole(text.as_bytes());
        assert!(matches!(found, Err(StreamError::NoObject { found }) if found == octet), "{text}: {found:?}");
    }
}

#[test]
fn mismatched_brackets_are_refused() {
    for text in ["{]", "{\"a\":[}}", "{\"a\" 1}", "{\"a\":\"\u{1}\"}"] {
        assert!(matches!(whole(text.as_bytes()), Err(StreamError::Malformed(_))), "{text}");
    }
}

#[test]
fn object_that_is_no_message_is_refused() {
    let error = Client::new(LIMITS).handle_bytes(b"{\"id\":1}").expect_err("neither request nor reply");
    assert!(error.to_string().contains("neither method nor result nor error"), "{error}");
}

#[test]
fn reply_to_no_request_is_counted_and_dropped() {
    let mut client = Client::new(LIMITS);
    for reply in [r#"{"id":5,"result":{},"error":null}"#, r#"{"id":"x","result":1,"error":null}"#] {
        assert_eq!(client.handle_bytes(reply.as_bytes()).expect("a message").1, None);
    }
    assert_eq!(client.dropped(), 2);
}

#[test]
fn unread_echo_replies_are_bounded() {
    let mut client = Client::new(LIMITS);
    let echo = br#"{"id":"echo","method":"echo","params":["0123456789"]}"#;
    let refused = (0..1000).find(|_| client.handle_bytes(echo).is_err()).expect("the output is bounded");
    assert!(refused > 10 && client.poll_transmit().len() <= 2 * LIMITS.message_len);
}

#[test]
fn request_beyond_the_length_limit_is_refused_and_not_sent() {
    let mut client = Client::new(LIMITS);
    let error = client.request("transact", &json!(["x".repeat(1000)])).expect_err("the text is too long");
    assert!(error.to_string().contains("exceeds Limits::message_len (1000)"), "{error}");
    assert!(client.poll_transmit().is_empty());
}

#[test]
fn update_beyond_the_row_limit_is_refused() {
    let rows: serde_json::Map<_, _> = (0..11).map(|row| (row.to_string(), json!({ "new": {} }))).collect();
    let mut monitor = Monitor::default();
    let error = monitor.apply(&json!({ "T": rows }), LIMITS.rows).expect_err("eleven rows exceed the limit");
    assert!(error.to_string().contains("Limits::rows (10)"), "{error}");
}
