//! Client side of JSON-RPC 1.0, sans-IO (RFC 7047 §4).
//!
//! `handle_bytes` takes input up to the end of one message, and `poll_transmit` returns output.
//! Requests may be pipelined, since replies carry their identifier. A reply without a request is
//! counted and dropped.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Limits;
use crate::error::{Error, Result};
use crate::stream::{MessageStream, StreamError};

/// Identifier of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

/// Message for the application.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Reply to a request: its result, or its error.
    Reply {
        /// Identifier of the request.
        id: RequestId,
        /// Result of the request. `Err` contains the member `error` of the reply.
        result: std::result::Result<Value, Value>,
    },
    /// Notification, such as `update` (RFC 7047 §4.1.6).
    Notification {
        /// Method of the notification.
        method: String,
        /// Parameters of the notification.
        params: Value,
    },
}

/// JSON-RPC client, see the [module](self).
#[derive(Debug)]
pub struct Client {
    limits: Limits,
    stream: MessageStream,
    out: Vec<u8>,
    last: u64,
    pending: BTreeSet<u64>,
    dropped: u64,
}

impl Client {
    /// Creates a client on a new connection.
    pub fn new(limits: Limits) -> Self {
        let stream = MessageStream::new(limits);
        Self { limits, stream, out: Vec::new(), last: 0, pending: BTreeSet::new(), dropped: 0 }
    }

    /// Queues a request for transmission.
    ///
    /// # Errors
    /// [`Error::RequestTooLong`].
    pub fn request(&mut self, method: &str, params: &Value) -> Result<RequestId> {
        let id = self.last + 1;
        let text = json!({ "method": method, "params": params, "id": id }).to_string();
        if text.len() > self.limits.message_len {
            let (len, limit) = (text.len(), self.limits.message_len);
            return Err(Error::RequestTooLong { method: method.to_owned(), len, limit });
        }
        self.last = id;
        self.pending.insert(id);
        self.out.extend(text.bytes());
        Ok(RequestId(id))
    }

    /// Cancels a request, so that its reply is dropped.
    pub fn forget(&mut self, id: RequestId) {
        self.pending.remove(&id.0);
    }

    /// Takes octets up to the end of the next message. Returns the number of octets taken, and the
    /// event of the message, if any.
    ///
    /// # Errors
    /// [`StreamError`]. The connection is unusable afterwards.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> std::result::Result<(usize, Option<Event>), StreamError> {
        let (consumed, message) = self.stream.handle_bytes(bytes)?;
        let event = message.map_or(Ok(None), |message| self.handle_message(message))?;
        Ok((consumed, event))
    }

    /// Returns the octets to be sent, in order.
    pub fn poll_transmit(&self) -> &[u8] {
        &self.out
    }

    /// Reports that the first `len` octets of the output were sent.
    pub fn transmitted(&mut self, len: usize) {
        self.out.drain(..len.min(self.out.len()));
    }

    /// Returns the number of dropped replies, which matched no request.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn handle_message(&mut self, mut message: Value) -> std::result::Result<Option<Event>, StreamError> {
        let id = message["id"].take();
        if let Value::String(method) = message["method"].take() {
            let params = message["params"].take();
            return match method.as_str() {
                // RFC 7047 §4.1.11: the reply contains the parameters of the request.
                "echo" if !id.is_null() => self.reply(&json!({ "result": params, "error": null, "id": id })),
                _ if id.is_null() => Ok(Some(Event::Notification { method, params })),
                _ => self.reply(&json!({ "result": null, "error": "unknown method", "id": id })),
            };
        }
        if message.get("result").is_none() && message.get("error").is_none() {
            return Err(StreamError::NoMessage { what: "neither method nor result nor error" });
        }
        let Some(id) = id.as_u64().filter(|id| self.pending.remove(id)) else {
            self.dropped += 1;
            return Ok(None);
        };
        let result = match message["error"].take() {
            Value::Null => Ok(message["result"].take()),
            error => Err(error),
        };
        Ok(Some(Event::Reply { id: RequestId(id), result }))
    }

    /// Queues a reply to a request of the server. The output is bounded: a server that does not
    /// read it makes the connection fail.
    fn reply(&mut self, message: &Value) -> std::result::Result<Option<Event>, StreamError> {
        let text = message.to_string();
        if self.out.len() + text.len() > 2 * self.limits.message_len {
            return Err(StreamError::TooLong { limit: self.limits.message_len });
        }
        self.out.extend(text.bytes());
        Ok(None)
    }
}
