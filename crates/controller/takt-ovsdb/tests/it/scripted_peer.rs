//! Tests of a connection to a peer that follows a script.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};
use takt_ovsdb::stream::MessageStream;
use takt_ovsdb::{Connection, Error, Limits, Operation};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for messages that must not arrive.
const SHORT: Duration = Duration::from_millis(50);

/// Peer side of the connection. It reads messages of the client and writes texts.
struct Peer<S> {
    socket: S,
    stream: MessageStream,
    received: Vec<u8>,
}

impl<S: Read + Write> Peer<S> {
    fn new(socket: S) -> Self {
        Self { socket, stream: MessageStream::new(Limits::default()), received: Vec::new() }
    }

    fn read(&mut self) -> Value {
        let mut buffer = [0; 4096];
        loop {
            let (consumed, message) = self.stream.handle_bytes(&self.received).expect("the client sends JSON");
            self.received.drain(..consumed);
            if let Some(message) = message {
                return message;
            }
            let len = self.socket.read(&mut buffer).expect("the client sends");
            assert!(len > 0, "the client closed the connection");
            self.received.extend(&buffer[..len]);
        }
    }

    fn write(&mut self, message: &Value) {
        self.socket.write_all(message.to_string().as_bytes()).expect("the client reads");
    }

    /// Answers the next request with a result.
    fn answer(&mut self, result: &Value) -> Value {
        let request = self.read();
        self.write(&json!({ "id": request["id"], "result": result, "error": null }));
        request
    }
}

/// Runs a client connected to a script.
fn run<R>(timeout: Duration, script: impl FnOnce(Peer<UnixStream>) + Send, client: impl FnOnce(Connection) -> R) -> R {
    let (own, other) = UnixStream::pair().expect("a pair of sockets");
    let limits = Limits { rows: 2, ..Limits::default() };
    std::thread::scope(|scope| {
        let script = scope.spawn(|| script(Peer::new(other)));
        let result = client(Connection::new(Box::new(own), timeout, limits));
        script.join().expect("the script completes");
        result
    })
}

#[test]
fn echo_of_the_server_is_answered_while_a_call_waits() {
    let script = |mut peer: Peer<UnixStream>| {
        let request = peer.read();
        peer.write(&json!({ "id": "echo", "method": "echo", "params": ["x"] }));
        assert_eq!(peer.read(), json!({ "id": "echo", "result": ["x"], "error": null }));
        peer.write(&json!({ "id": request["id"], "result": ["Open_vSwitch"], "error": null }));
    };
    let found = run(TIMEOUT, script, |mut connection| connection.call("list_dbs", &json!([])));
    assert_eq!(found.expect("the call is answered"), json!(["Open_vSwitch"]));
}

#[test]
fn failed_transaction_names_the_operation_that_failed() {
    let script = |mut peer: Peer<UnixStream>| {
        let failed = json!({ "error": "constraint violation", "details": "twice" });
        let request = peer.answer(&json!([{ "count": 1 }, failed, null]));
        assert_eq!(request["params"][0], "D");
        peer.answer(&json!([{ "count": 1 }, {}, {}, { "error": "referential integrity violation" }]));
    };
    let operations = [Operation::delete("A", &[]), Operation::delete("B", &[]), Operation::comment("note")];
    run(TIMEOUT, script, |mut connection| {
        let error = connection.transact("D", &operations).expect_err("one operation failed");
        let text = "OVSDB: the transaction was not applied: operation 1 (delete B): constraint violation: twice";
        assert_eq!(error.to_string(), text);
        let error = connection.transact("D", &operations).expect_err("the commit failed");
        let text = "OVSDB: the transaction was not applied: commit: referential integrity violation";
        assert_eq!(error.to_string(), text);
    });
}

#[test]
fn results_that_are_not_one_for_each_operation_are_refused() {
    let script = |mut peer: Peer<UnixStream>| {
        peer.answer(&json!([{}]));
        peer.answer(&json!({}));
    };
    run(TIMEOUT, script, |mut connection| {
        for expected in ["2 results", "an array"] {
            let error = connection.transact("D", &[Operation::abort(), Operation::abort()]).expect_err("not whole");
            assert!(error.to_string().contains(expected), "{error}");
        }
    });
}

#[test]
fn call_without_an_answer_ends_at_the_timeout_and_its_late_answer_is_dropped() {
    let script = |mut peer: Peer<UnixStream>| {
        let late = peer.read();
        let second = peer.read();
        peer.write(&json!({ "id": late["id"], "result": "late", "error": null }));
        peer.write(&json!({ "id": second["id"], "result": "second", "error": null }));
    };
    run(SHORT, script, |mut connection| {
        let error = connection.call("first", &json!([])).expect_err("the call times out");
        assert!(matches!(&error, Error::Timeout { what, .. } if what == "first"), "{error}");
        connection.set_timeout(TIMEOUT);
        assert_eq!(connection.call("second", &json!([])).expect("the call is answered"), "second");
    });
}

#[test]
fn refused_call_has_the_error_text_of_the_server() {
    let script = |mut peer: Peer<UnixStream>| {
        let request = peer.read();
        peer.write(
            &json!({ "id": request["id"], "result": null, "error": { "error": "unknown database", "details": "X" } }),
        );
    };
    let error = run(TIMEOUT, script, |mut connection| connection.call("monitor", &json!([]))).expect_err("refused");
    assert_eq!(error.to_string(), "OVSDB: the server refused monitor: unknown database: X");
}

#[test]
fn monitor_applies_insertions_changes_and_deletions() {
    let update = |change: Value| json!({ "id": null, "method": "update", "params": ["m", { "T": { "1": change } }] });
    let script = |mut peer: Peer<UnixStream>| {
        let request = peer.answer(&json!({ "T": { "0": { "new": { "a": 0 } } } }));
        assert_eq!(request["params"], json!(["D", "m", { "T": { "columns": ["a"] } }]));
        peer.write(&update(json!({ "new": { "a": 1 } })));
        peer.write(&update(json!({ "new": { "a": 2 }, "old": { "a": 1 } })));
        peer.write(&json!({ "id": null, "method": "update", "params": ["other", {}] }));
        peer.write(&update(json!({ "old": { "a": 2 } })));
        peer.answer(&json!({}));
    };
    run(TIMEOUT, script, |mut connection| {
        let monitor = connection.monitor("m", "D", &[("T", &["a"])]).expect("the monitor starts");
        assert_eq!(monitor.table("T")["0"]["a"], 0);
        for (a, rows) in [(Some(1), 2), (Some(2), 2), (None, 1)] {
            let is_wanted =
                |monitor: &takt_ovsdb::Monitor| monitor.table("T").get("1").map(|row| row["a"].as_i64()) == a.map(Some);
            connection.wait("m", "the row", is_wanted).expect("the update arrives");
            assert_eq!(connection.monitored("m").map(takt_ovsdb::Monitor::rows), Some(rows));
        }
        connection.cancel_monitor("m").expect("the monitor is canceled");
        assert_eq!(connection.monitored("m"), None);
    });
}

#[test]
fn monitor_with_too_many_rows_is_an_error() {
    let script = |mut peer: Peer<UnixStream>| {
        peer.answer(&json!({ "T": { "0": { "new": {} }, "1": { "new": {} }, "2": { "new": {} } } }));
    };
    let error = run(TIMEOUT, script, |mut connection| connection.monitor("m", "D", &[]).map(drop)).expect_err("three");
    assert!(matches!(error, Error::TooManyRows { limit: 2 }), "{error}");
}

#[test]
fn closed_connection_names_the_call_that_waited() {
    let script = |mut peer: Peer<UnixStream>| drop(peer.read());
    let error = run(TIMEOUT, script, |mut connection| connection.call("list_dbs", &json!([]))).expect_err("closed");
    assert!(matches!(&error, Error::Closed { method } if method == "list_dbs"), "{error}");
}

#[test]
fn calls_work_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("the socket is bound");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (socket, _) = listener.accept().expect("the client connects");
            Peer::<TcpStream>::new(socket).answer(&json!(7));
        });
        let mut connection = Connection::tcp(address, TIMEOUT).expect("the server listens");
        assert_eq!(connection.call("any", &json!([])).expect("the call is answered"), 7);
    });
}
