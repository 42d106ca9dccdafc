//! Typed access to bridges, ports, controllers and queues of Open vSwitch: its database
//! `Open_vSwitch` (ovs-vswitchd.conf.db(5)).
//!
//! A method returns when the database has the change. [`OpenVSwitch::wait_until_applied`] waits
//! until ovs-vswitchd has applied all changes. Methods that take a bridge or a port fail without a
//! change if it does not exist.

mod ports;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::operation::{Columns, Operation, columns, elements, equals, map, named_uuid, set, uuid, uuids};

pub use self::ports::{BridgePort, QosState};

const DATABASE: &str = "Open_vSwitch";
/// Root table with a single row, which lists the bridges and the configuration numbers.
const ROOT: &str = "Open_vSwitch";
/// Name of the QoS row within a transaction.
const QOS: &str = "qos";
/// Name of the monitor of applied configurations.
const APPLIED: &str = "applied";

/// Treatment of packets by a bridge without a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailMode {
    /// Forwards them as a learning Ethernet switch.
    Standalone,
    /// Drops them, unless flow entries match.
    Secure,
}

impl FailMode {
    fn word(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Secure => "secure",
        }
    }
}

/// Bridge to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Name of the bridge and of its local interface, at most 15 octets.
    pub name: String,
    /// Datapath type: `netdev` for user space, `system` for the kernel.
    pub datapath_type: String,
    /// Treatment of packets without a controller.
    pub fail_mode: FailMode,
    /// Offered OpenFlow versions, such as `OpenFlow13`.
    pub protocols: Vec<String>,
    /// OpenFlow datapath ID. `None` lets Open vSwitch derive it from the address of a port.
    pub datapath_id: Option<u64>,
}

/// QoS of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Qos {
    /// Open vSwitch does not change the queueing disciplines of the interface, not even when it
    /// starts.
    Noop,
    /// Open vSwitch creates an HTB with these classes.
    Htb {
        /// Rate of the port, in bit/s.
        max_rate: u64,
        /// Classes by OpenFlow queue number.
        queues: BTreeMap<u32, Queue>,
    },
}

/// Class of an HTB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Guaranteed rate, in bit/s. Open vSwitch gives at least 12 kbit/s.
    pub min_rate: Option<u64>,
    /// Maximum rate, in bit/s.
    pub max_rate: Option<u64>,
    /// Priority. Classes with a smaller number share the remaining rate first.
    pub priority: Option<u32>,
}

/// State of a bridge's controller in Open vSwitch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerState {
    /// Target of the connection, such as `tcp:127.0.0.1:6653`.
    pub target: String,
    /// Whether the OpenFlow connection is up.
    pub is_connected: bool,
    /// Role: `other`, `master` or `slave`. Empty before it is known.
    pub role: String,
}

/// State of an interface in Open vSwitch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceState {
    /// Name in the kernel.
    pub name: String,
    /// OpenFlow port number. `None` before the interface is open, and after a failure.
    pub ofport: Option<u32>,
    /// Reason why the interface could not be opened. Empty if there is none.
    pub error: String,
}

/// Database of an Open vSwitch.
#[derive(Debug)]
pub struct OpenVSwitch {
    connection: Connection,
}

impl OpenVSwitch {
    /// Connects to the socket of ovsdb-server. `timeout` applies to every call.
    ///
    /// # Errors
    /// Those of [`Connection::unix`] and [`new`](Self::new).
    pub fn unix(path: &Path, timeout: Duration) -> Result<Self> {
        Self::new(Connection::unix(path, timeout)?)
    }

    /// Creates the database client on a connection.
    ///
    /// # Errors
    /// The server has no database `Open_vSwitch`, and all errors of the connection.
    pub fn new(mut connection: Connection) -> Result<Self> {
        connection.monitor(APPLIED, DATABASE, &[(ROOT, &["cur_cfg"])])?;
        Ok(Self { connection })
    }

    /// Returns the connection, for operations without a method here.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Creates the single row of the root table, which a new database does not have.
    ///
    /// # Errors
    /// Same as [`Connection::transact`].
    pub fn initialize(&mut self) -> Result<()> {
        if self.connection.select(DATABASE, ROOT, &[], &["_uuid"])?.is_empty() {
            self.transact(&[Operation::insert(ROOT, "root", Columns::new())])?;
        }
        Ok(())
    }

    /// Creates a bridge with its local port.
    ///
    /// # Errors
    /// Those of [`Connection::transact`]. A `constraint violation` if the bridge exists.
    pub fn add_bridge(&mut self, bridge: &Bridge) -> Result<()> {
        let Bridge { name, datapath_type, fail_mode, protocols, datapath_id } = bridge;
        let mut row = columns([
            ("name", json!(name)),
            ("datapath_type", json!(datapath_type)),
            ("fail_mode", json!(fail_mode.word())),
            ("protocols", set(protocols.iter().map(|protocol| json!(protocol)))),
            ("ports", set([named_uuid("port")])),
        ]);
        if let Some(id) = datapath_id {
            row.insert("other_config".to_owned(), map([("datapath-id", format!("{id:016x}").as_str())]));
        }
        let local = columns([("name", json!(name)), ("type", json!("internal"))]);
        let port = columns([("name", json!(name)), ("interfaces", named_uuid("interface"))]);
        self.transact(&[
            Operation::insert("Interface", "interface", local),
            Operation::insert("Port", "port", port),
            Operation::insert("Bridge", "bridge", row),
            Operation::mutate(ROOT, &[], &[("bridges", "insert", set([named_uuid("bridge")]))]),
        ])
    }

    /// Removes a bridge with its ports.
    ///
    /// # Errors
    /// The bridge does not exist. Those of [`Connection::transact`].
    pub fn remove_bridge(&mut self, name: &str) -> Result<()> {
        let id = self.id_of("Bridge", name)?;
        self.transact(&[Operation::mutate(ROOT, &[], &[("bridges", "delete", set([uuid(&id)]))])])
    }

    /// Creates a port of a kernel interface, with an OpenFlow port number if one is given.
    ///
    /// With `qos`, the port has it from the start. Open vSwitch removes the queueing discipline of
    /// an interface that it takes without one.
    ///
    /// # Errors
    /// The bridge does not exist. Those of [`Connection::transact`].
    /// [`interfaces`](Self::interfaces) reports an interface that cannot be opened.
    pub fn add_port(&mut self, bridge: &str, interface: &str, ofport: Option<u32>, qos: Option<&Qos>) -> Result<()> {
        let bridge = self.id_of("Bridge", bridge)?;
        let mut row = columns([("name", json!(interface))]);
        if let Some(ofport) = ofport {
            row.insert("ofport_request".to_owned(), json!(ofport));
        }
        let mut port = columns([("name", json!(interface)), ("interfaces", named_uuid("interface"))]);
        let mut operations = vec![Operation::insert("Interface", "interface", row)];
        if let Some(qos) = qos {
            operations.extend(qos.insertions(None));
            port.insert("qos".to_owned(), named_uuid(QOS));
        }
        operations.push(Operation::insert("Port", "port", port));
        let to_bridge = [equals("_uuid", uuid(&bridge))];
        operations.push(Operation::mutate("Bridge", &to_bridge, &[("ports", "insert", set([named_uuid("port")]))]));
        self.transact(&operations)
    }

    /// Removes a port from its bridge, with its QoS.
    ///
    /// # Errors
    /// The port does not exist. Those of [`Connection::transact`].
    pub fn remove_port(&mut self, port: &str) -> Result<()> {
        let mut operations = self.without_qos(port)?;
        let id = self.id_of("Port", port)?;
        let of_port = [json!(["ports", "includes", set([uuid(&id)])])];
        operations.push(Operation::mutate("Bridge", &of_port, &[("ports", "delete", set([uuid(&id)]))]));
        self.transact(&operations)
    }

    /// Sets the treatment of packets by a bridge without a controller.
    ///
    /// # Errors
    /// The bridge does not exist. Those of [`Connection::transact`].
    pub fn set_fail_mode(&mut self, bridge: &str, mode: FailMode) -> Result<()> {
        self.update("Bridge", bridge, columns([("fail_mode", json!(mode.word()))]))
    }

    /// Sets the controllers of a bridge, such as `tcp:127.0.0.1:6653`. An empty list removes them.
    ///
    /// The connections are out-of-band, so that Open vSwitch adds no flow entries for them. A lost
    /// connection is retried after at most `backoff`, which is at least a second.
    ///
    /// # Errors
    /// The bridge does not exist. Those of [`Connection::transact`].
    pub fn set_controllers(&mut self, bridge: &str, targets: &[&str], backoff: Duration) -> Result<()> {
        let id = self.id_of("Bridge", bridge)?;
        let row = |target: &&str| {
            columns([
                ("target", json!(target)),
                ("connection_mode", json!("out-of-band")),
                ("max_backoff", json!(u64::try_from(backoff.as_millis()).unwrap_or(u64::MAX).clamp(1000, 1 << 31))),
            ])
        };
        let name = |index: usize| format!("controller{index}");
        let rows = targets.iter().enumerate();
        let mut operations: Vec<_> =
            rows.map(|(index, target)| Operation::insert("Controller", &name(index), row(target))).collect();
        let controllers = set((0..targets.len()).map(|index| named_uuid(&name(index))));
        operations.push(Operation::update(
            "Bridge",
            &[equals("_uuid", uuid(&id))],
            columns([("controller", controllers)]),
        ));
        self.transact(&operations)
    }

    /// Returns the controllers of a bridge.
    ///
    /// # Errors
    /// The bridge does not exist. Those of [`Connection::transact`].
    pub fn controllers(&mut self, bridge: &str) -> Result<Vec<ControllerState>> {
        let rows = self.connection.select(DATABASE, "Bridge", &[equals("name", json!(bridge))], &["controller"])?;
        let row = rows.first().ok_or_else(|| missing("Bridge", bridge))?;
        let ids: Vec<_> = uuids(&row["controller"]).map(str::to_owned).collect();
        let mut controllers = Vec::new();
        for id in ids {
            let of_id = [equals("_uuid", uuid(&id))];
            let rows = self.connection.select(DATABASE, "Controller", &of_id, &["target", "is_connected", "role"])?;
            controllers.extend(rows.iter().map(|row| ControllerState {
                target: text(&row["target"]),
                is_connected: row["is_connected"] == true,
                role: text(&row["role"]),
            }));
        }
        Ok(controllers)
    }

    /// Sets the QoS of a port and replaces an existing one.
    ///
    /// # Errors
    /// The port does not exist. Those of [`Connection::transact`].
    pub fn set_qos(&mut self, port: &str, qos: &Qos) -> Result<()> {
        self.put_qos(port, qos, None)
    }

    /// Removes the QoS of a port. Open vSwitch then removes the discipline of the kernel.
    ///
    /// # Errors
    /// The port does not exist. Those of [`Connection::transact`].
    pub fn clear_qos(&mut self, port: &str) -> Result<()> {
        let operations = self.without_qos(port)?;
        self.transact(&operations)
    }

    /// Returns the names of bridges with their ports, including the local port.
    ///
    /// # Errors
    /// Same as [`Connection::transact`].
    pub fn bridges(&mut self) -> Result<BTreeMap<String, Vec<String>>> {
        let names: BTreeMap<String, String> = self
            .connection
            .select(DATABASE, "Port", &[], &["_uuid", "name"])?
            .iter()
            .flat_map(|row| uuids(&row["_uuid"]).map(|id| (id.to_owned(), text(&row["name"]))).collect::<Vec<_>>())
            .collect();
        let rows = self.connection.select(DATABASE, "Bridge", &[], &["name", "ports"])?;
        let ports = |row: &Columns| {
            let mut ports: Vec<_> = uuids(&row["ports"]).filter_map(|id| names.get(id).cloned()).collect();
            ports.sort();
            ports
        };
        Ok(rows.iter().map(|row| (text(&row["name"]), ports(row))).collect())
    }

    /// Returns the interfaces of all bridges.
    ///
    /// # Errors
    /// Same as [`Connection::transact`].
    pub fn interfaces(&mut self) -> Result<Vec<InterfaceState>> {
        let rows = self.connection.select(DATABASE, "Interface", &[], &["name", "ofport", "error"])?;
        let number = |value: &Value| elements(value).first().and_then(Value::as_i64);
        let state = |row: &Columns| InterfaceState {
            name: text(&row["name"]),
            // -1 means that the interface could not be opened.
            ofport: number(&row["ofport"]).and_then(|port| u32::try_from(port).ok()), // tidy-allow(dropped-cause): documented
            error: text(&row["error"]),
        };
        Ok(rows.iter().map(state).collect())
    }

    /// Waits until ovs-vswitchd has applied all present changes of the database.
    ///
    /// # Errors
    /// [`Error::Timeout`] if ovs-vswitchd does not run. Those of [`Connection::transact`].
    pub fn wait_until_applied(&mut self) -> Result<()> {
        let operations = [
            Operation::mutate(ROOT, &[], &[("next_cfg", "+=", json!(1))]),
            Operation::select(ROOT, &[], &["next_cfg"]),
        ];
        let results = self.connection.transact(DATABASE, &operations)?;
        let wanted = results[1]["rows"][0]["next_cfg"].as_i64();
        let wanted =
            wanted.ok_or_else(|| Error::Unexpected { expected: "a number next_cfg of Open_vSwitch".to_owned() })?;
        self.connection.wait(APPLIED, "ovs-vswitchd's application of the configuration", |monitor| {
            let mut rows = monitor.table(ROOT).values();
            rows.any(|row| row.get("cur_cfg").and_then(Value::as_i64).is_some_and(|current| current >= wanted))
        })
    }

    fn transact(&mut self, operations: &[Operation]) -> Result<()> {
        self.connection.transact(DATABASE, operations).map(drop)
    }

    fn update(&mut self, table: &str, name: &str, row: Columns) -> Result<()> {
        let id = self.id_of(table, name)?;
        self.transact(&[Operation::update(table, &[equals("_uuid", uuid(&id))], row)])
    }

    fn id_of(&mut self, table: &str, name: &str) -> Result<String> {
        let rows = self.connection.select(DATABASE, table, &[equals("name", json!(name))], &["_uuid"])?;
        let id = rows.first().and_then(|row| uuids(&row["_uuid"]).next());
        id.map(str::to_owned).ok_or_else(|| missing(table, name))
    }

    /// Returns operations that remove the QoS of a port. Its rows and those of its queues are in
    /// root tables, so that they would remain otherwise.
    fn without_qos(&mut self, port: &str) -> Result<Vec<Operation>> {
        let of_port = [equals("name", json!(port))];
        let rows = self.connection.select(DATABASE, "Port", &of_port, &["qos"])?;
        let row = rows.first().ok_or_else(|| missing("Port", port))?;
        let mut operations = vec![Operation::update("Port", &of_port, columns([("qos", set([]))]))];
        let ids: Vec<_> = uuids(&row["qos"]).map(str::to_owned).collect();
        for id in ids {
            let of_id = [equals("_uuid", uuid(&id))];
            let queues = self.connection.select(DATABASE, "QoS", &of_id, &["queues"])?;
            let pairs = queues.iter().filter_map(|row| row["queues"][1].as_array()).flatten();
            let queues: Vec<_> = pairs.flat_map(|pair| uuids(&pair[1])).map(str::to_owned).collect();
            operations.push(Operation::delete("QoS", &of_id));
            operations.extend(queues.iter().map(|id| Operation::delete("Queue", &[equals("_uuid", uuid(id))])));
        }
        Ok(operations)
    }
}

impl Qos {
    /// Returns operations that insert the rows. The QoS row is named [`QOS`].
    fn insertions(&self, owner: Option<&str>) -> Vec<Operation> {
        let owner = ("external_ids", map(owner.map(|owner| (ports::OWNER, owner))));
        let Self::Htb { max_rate, queues } = self else {
            return vec![Operation::insert("QoS", QOS, columns([("type", json!("linux-noop")), owner]))];
        };
        let name = |number: &u32| format!("queue{number}");
        let row = |queue: &Queue| columns([("other_config", queue.settings())]);
        let mut operations: Vec<_> =
            queues.iter().map(|(number, queue)| Operation::insert("Queue", &name(number), row(queue))).collect();
        let by_number: Vec<_> = queues.keys().map(|number| json!([number, named_uuid(&name(number))])).collect();
        let row = columns([
            ("type", json!("linux-htb")),
            ("other_config", map([("max-rate", max_rate.to_string().as_str())])),
            ("queues", json!(["map", by_number])),
            owner,
        ]);
        operations.push(Operation::insert("QoS", QOS, row));
        operations
    }
}

impl Queue {
    fn settings(&self) -> Value {
        let settings =
            [("min-rate", self.min_rate), ("max-rate", self.max_rate), ("priority", self.priority.map(u64::from))];
        let texts: Vec<_> =
            settings.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?.to_string()))).collect();
        map(texts.iter().map(|(name, value)| (*name, value.as_str())))
    }
}

fn missing(table: &str, name: &str) -> Error {
    Error::Unexpected { expected: format!("a row {name:?} in the table {table}, found none") }
}

/// Returns the text of a column, or an empty text for an optional column that is not set.
fn text(value: &Value) -> String {
    elements(value).first().and_then(Value::as_str).unwrap_or_default().to_owned()
}
