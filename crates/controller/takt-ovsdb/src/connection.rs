//! Client connection on a socket: calls with a timeout, transactions, monitors.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Event};
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::operation::{Operation, failure, transaction};
use crate::{Limits, operation};

/// Byte stream whose reads and writes have a timeout.
pub trait Stream: Read + Write + Send {
    /// Sets the timeout. Longer reads and writes fail with `WouldBlock` or `TimedOut`.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn set_timeout(&self, timeout: Duration) -> io::Result<()>;
}

impl Stream for UnixStream {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))?;
        self.set_write_timeout(Some(timeout))
    }
}

impl Stream for TcpStream {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))?;
        self.set_write_timeout(Some(timeout))
    }
}

/// Connection to a server, see the [module](self). It is used by one thread at a time.
pub struct Connection {
    stream: Box<dyn Stream>,
    client: Client,
    limits: Limits,
    timeout: Duration,
    monitors: BTreeMap<String, Monitor>,
    /// Received octets that the client has not taken.
    received: Vec<u8>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("client", &self.client).field("timeout", &self.timeout).finish()
    }
}

impl Connection {
    /// Creates a connection on a stream. Every call ends after `timeout`, which is at least a
    /// microsecond.
    pub fn new(stream: Box<dyn Stream>, timeout: Duration, limits: Limits) -> Self {
        let client = Client::new(limits);
        Self { stream, client, limits, timeout, monitors: BTreeMap::new(), received: Vec::new() }
    }

    /// Connects to a Unix domain socket, such as `/run/openvswitch/db.sock`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn unix(path: &Path, timeout: Duration) -> Result<Self> {
        let failed = |source| Error::Io { action: format!("connect to {}", path.display()), source };
        let stream = UnixStream::connect(path).map_err(failed)?;
        Ok(Self::new(Box::new(stream), timeout, Limits::default()))
    }

    /// Connects over TCP, within the timeout.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn tcp(address: SocketAddr, timeout: Duration) -> Result<Self> {
        let failed = |source| Error::Io { action: format!("connect to {address}"), source };
        let stream = TcpStream::connect_timeout(&address, timeout).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(Self::new(Box::new(stream), timeout, Limits::default()))
    }

    /// Sets the timeout of later calls.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Calls a method and returns its result.
    ///
    /// # Errors
    /// [`Error::Refused`] if the server refuses the call, and all errors of the connection.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let deadline = Instant::now() + self.timeout;
        let request = self.client.request(method, params)?;
        self.send(method)?;
        loop {
            let event = match self.receive(method, deadline) {
                Err(error) => {
                    self.client.forget(request);
                    return Err(error);
                }
                Ok(event) => event,
            };
            match event {
                Event::Reply { id, result } if id == request => {
                    return result.map_err(|error| Error::Refused { method: method.to_owned(), error: words(&error) });
                }
                Event::Reply { .. } => {}
                Event::Notification { method, params } => self.handle_notification(&method, &params)?,
            }
        }
    }

    /// Executes all operations, or none, and returns their results.
    ///
    /// # Errors
    /// [`Error::Transaction`] names the operation that failed.
    pub fn transact(&mut self, database: &str, operations: &[Operation]) -> Result<Vec<Value>> {
        let result = self.call("transact", &transaction(database, operations))?;
        let Value::Array(results) = result else {
            return Err(Error::Unexpected { expected: "an array of results of transact".to_owned() });
        };
        if let Some(failure) = failure(operations, &results) {
            return Err(Error::Transaction(failure));
        }
        if results.len() != operations.len() {
            let expected = format!("{} results of transact, got {}", operations.len(), results.len());
            return Err(Error::Unexpected { expected });
        }
        Ok(results)
    }

    /// Returns the rows that meet all conditions.
    ///
    /// # Errors
    /// Same as [`transact`](Self::transact).
    pub fn select(
        &mut self,
        database: &str,
        table: &str,
        conditions: &[Value],
        columns: &[&str],
    ) -> Result<Vec<operation::Columns>> {
        let results = self.transact(database, &[Operation::select(table, conditions, columns)])?;
        let rows = results[0]["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(rows.iter().filter_map(|row| row.as_object().cloned()).collect())
    }

    /// Monitors columns of tables under a name chosen by the caller. Returns after the initial
    /// state has arrived.
    ///
    /// # Errors
    /// Those of [`call`](Self::call), and [`Error::TooManyRows`].
    pub fn monitor(&mut self, name: &str, database: &str, tables: &[(&str, &[&str])]) -> Result<&Monitor> {
        let requests = tables.iter().map(|(table, columns)| ((*table).to_owned(), json!({ "columns": columns })));
        let requests: serde_json::Map<_, _> = requests.collect();
        let initial = self.call("monitor", &json!([database, name, requests]))?;
        let mut monitor = Monitor::default();
        monitor.apply(&initial, self.limits.rows)?;
        self.monitors.insert(name.to_owned(), monitor);
        Ok(&self.monitors[name])
    }

    /// Ends a monitor (RFC 7047 §4.1.7).
    ///
    /// # Errors
    /// Same as [`call`](Self::call).
    pub fn cancel_monitor(&mut self, name: &str) -> Result<()> {
        self.monitors.remove(name);
        self.call("monitor_cancel", &json!([name])).map(drop)
    }

    /// Returns the copy of a monitor as of the last call of this connection.
    pub fn monitored(&self, name: &str) -> Option<&Monitor> {
        self.monitors.get(name)
    }

    /// Receives updates until `is_wanted` accepts a monitor's copy. `what` describes that state in
    /// the error.
    ///
    /// # Errors
    /// [`Error::Timeout`], and all errors of the connection.
    pub fn wait(&mut self, name: &str, what: &str, is_wanted: impl Fn(&Monitor) -> bool) -> Result<()> {
        let deadline = Instant::now() + self.timeout;
        while !self.monitors.get(name).is_some_and(&is_wanted) {
            if let Event::Notification { method, params } = self.receive(what, deadline)? {
                self.handle_notification(&method, &params)?;
            }
        }
        Ok(())
    }

    fn handle_notification(&mut self, method: &str, params: &Value) -> Result<()> {
        let Some(monitor) = params[0].as_str().and_then(|name| self.monitors.get_mut(name)) else { return Ok(()) };
        if method != "update" {
            return Ok(());
        }
        monitor.apply(&params[1], self.limits.rows)
    }

    fn send(&mut self, method: &str) -> Result<()> {
        let failed = |source| Error::Io { action: format!("send {method}"), source };
        self.stream.set_timeout(self.timeout).map_err(failed)?;
        let len = self.client.poll_transmit().len();
        self.stream.write_all(self.client.poll_transmit()).map_err(failed)?;
        self.client.transmitted(len);
        Ok(())
    }

    /// Returns the next event. Requests of the server are answered meanwhile.
    fn receive(&mut self, awaited: &str, deadline: Instant) -> Result<Event> {
        let failed = |source| Error::Io { action: format!("receive {awaited}"), source };
        let mut buffer = [0; 8192];
        loop {
            while !self.received.is_empty() {
                let (consumed, event) = self.client.handle_bytes(&self.received)?;
                self.received.drain(..consumed);
                if !self.client.poll_transmit().is_empty() {
                    self.send("a reply")?;
                }
                if let Some(event) = event {
                    return Ok(event);
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Timeout { what: awaited.to_owned(), after: self.timeout });
            }
            self.stream.set_timeout(left).map_err(failed)?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Error::Closed { method: awaited.to_owned() }),
                Ok(len) => self.received.extend(&buffer[..len]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

/// Formats a JSON-RPC error: a string without quotes, other values as JSON.
fn words(error: &Value) -> String {
    match (error, error["error"].as_str()) {
        (Value::String(text), _) => text.clone(),
        (_, Some(text)) => format!("{text}: {}", error["details"].as_str().unwrap_or_default()),
        _ => error.to_string(),
    }
}
