//! The client's half of JSON-RPC 1.0, sans-IO (RFC 7047 §4).
//!
//! `handle_bytes` takes input up to the end of one message; `poll_transmit` gives output. Requests may be pipelined: replies are
//! recognised by their identifier. A reply to no request is counted and dropped.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Limits;
use crate::error::{Error, Result};
use crate::stream::{MessageStream, StreamError};

/// The identifier of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

/// A message for the application.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The reply to a request: its result, or its error.
    Reply {
        /// The request.
        id: RequestId,
        /// `Err` holds the member `error` of the reply.
        result: std::result::Result<Value, Value>,
    },
    /// A notification, such as `update` (RFC 7047 §4.1.6).
    Notification {
        /// The method.
        method: String,
        /// The parameters.
        params: Value,
    },
}

/// See the [module](self).
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
    /// A client on a new connection.
    pub fn new(limits: Limits) -> Self {
        let stream = MessageStream::new(limits);
        Self { limits, stream, out: Vec::new(), last: 0, pending: BTreeSet::new(), dropped: 0 }
    }

    /// Puts a request into the output.
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

    /// Forgets a request: its reply will be dropped.
    pub fn forget(&mut self, id: RequestId) {
        self.pending.remove(&id.0);
    }

    /// Takes octets up to the end of the next message. Returns how many were taken, and the message's event if it has one.
    ///
    /// # Errors
    /// [`StreamError`]; the connection is unusable then.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> std::result::Result<(usize, Option<Event>), StreamError> {
        let (taken, message) = self.stream.handle_bytes(bytes)?;
        let event = message.map_or(Ok(None), |message| self.handle_message(message))?;
        Ok((taken, event))
    }

    /// Octets to be sent, in order.
    pub fn poll_transmit(&self) -> &[u8] {
        &self.out
    }

    /// The first `len` octets of the output were sent.
    pub fn transmitted(&mut self, len: usize) {
        self.out.drain(..len.min(self.out.len()));
    }

    /// Replies that no request waited for.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn handle_message(&mut self, mut message: Value) -> std::result::Result<Option<Event>, StreamError> {
        let id = message["id"].take();
        if let Value::String(method) = message["method"].take() {
            let params = message["params"].take();
            return match method.as_str() {
                // RFC 7047 §4.1.11: the reply has the parameters of the request.
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

    /// A reply to the server. Without reading it, a server cannot make the output grow: then the connection fails.
    fn reply(&mut self, message: &Value) -> std::result::Result<Option<Event>, StreamError> {
        let text = message.to_string();
        if self.out.len() + text.len() > 2 * self.limits.message_len {
            return Err(StreamError::TooLong { limit: self.limits.message_len });
        }
        self.out.extend(text.bytes());
        Ok(None)
    }
}
