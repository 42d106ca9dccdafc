//! Ports of bridges with their OpenFlow numbers, and their QoS in the database with its owner.
//!
//! An owner is a text in `external_ids` of a QoS row. It distinguishes the rows of one program from
//! those of others.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{DATABASE, OpenVSwitch, Qos, Queue, missing, text};
use crate::error::Result;
use crate::operation::{Columns, Operation, columns, elements, equals, named_uuid, uuid, uuids};

/// Key of the owner in `external_ids`.
pub(super) const OWNER: &str = "takt-owner";

/// Interface of a bridge's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgePort {
    /// Name of the bridge.
    pub bridge: String,
    /// OpenFlow datapath ID of the bridge. `None` before Open vSwitch has chosen one.
    pub datapath_id: Option<u64>,
    /// Name of the port, which has the QoS.
    pub port: String,
    /// Kernel interface. A bond has several.
    pub interface: String,
    /// OpenFlow port number. `None` if the interface cannot be opened.
    pub ofport: Option<u32>,
    /// Whether the interface is the local one of the bridge, or is no kernel interface.
    pub is_virtual: bool,
}

/// QoS of a port in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QosState {
    /// Type of the row, such as `linux-htb`.
    pub kind: String,
    /// Owner that [`OpenVSwitch::set_owned_qos`] wrote.
    pub owner: Option<String>,
    /// QoS settings. `None` if they are of another type, or have no form in this crate.
    pub qos: Option<Qos>,
}

impl OpenVSwitch {
    /// Returns the interfaces of all ports of all bridges, by bridge and port.
    ///
    /// # Errors
    /// Same as [`Connection::transact`](crate::Connection::transact).
    pub fn bridge_ports(&mut self) -> Result<Vec<BridgePort>> {
        let interfaces = self.by_id("Interface", &["_uuid", "name", "ofport", "type"])?;
        let ports = self.by_id("Port", &["_uuid", "name", "interfaces"])?;
        let bridges = self.connection.select(DATABASE, "Bridge", &[], &["name", "datapath_id", "ports"])?;
        let mut found = Vec::new();
        for bridge in &bridges {
            let datapath_id = u64::from_str_radix(&text(&bridge["datapath_id"]), 16).ok(); // tidy-allow(dropped-cause): documented
            for port in uuids(&bridge["ports"]).filter_map(|id| ports.get(id)) {
                for interface in uuids(&port["interfaces"]).filter_map(|id| interfaces.get(id)) {
                    let number = elements(&interface["ofport"]).first().and_then(Value::as_i64);
                    let kind = text(&interface["type"]);
                    found.push(BridgePort {
                        bridge: text(&bridge["name"]),
                        datapath_id,
                        port: text(&port["name"]),
                        interface: text(&interface["name"]),
                        ofport: number.and_then(|number| u32::try_from(number).ok()), // tidy-allow(dropped-cause): documented
                        is_virtual: !kind.is_empty() && kind != "system",
                    });
                }
            }
        }
        found.sort_by(|a, b| (&a.bridge, a.ofport, &a.interface).cmp(&(&b.bridge, b.ofport, &b.interface)));
        Ok(found)
    }

    fn by_id(&mut self, table: &str, columns: &[&str]) -> Result<BTreeMap<String, Columns>> {
        let rows = self.connection.select(DATABASE, table, &[], columns)?;
        let id = |row: &Columns| uuids(&row["_uuid"]).next().map(str::to_owned);
        Ok(rows.into_iter().filter_map(|row| Some((id(&row)?, row))).collect())
    }

    /// Returns the QoS of a port in the database. `None` if it has none.
    ///
    /// # Errors
    /// The port does not exist. Those of [`Connection::transact`](crate::Connection::transact).
    pub fn qos(&mut self, port: &str) -> Result<Option<QosState>> {
        let of_port = [equals("name", json!(port))];
        let rows = self.connection.select(DATABASE, "Port", &of_port, &["qos"])?;
        let row = rows.first().ok_or_else(|| missing("Port", port))?;
        let Some(id) = uuids(&row["qos"]).next().map(str::to_owned) else { return Ok(None) };
        let wanted = ["type", "other_config", "external_ids", "queues"];
        let rows = self.connection.select(DATABASE, "QoS", &[equals("_uuid", uuid(&id))], &wanted)?;
        let Some(row) = rows.first() else { return Ok(None) };
        let kind = text(&row["type"]);
        let owner = texts(&row["external_ids"]).remove(OWNER);
        let qos = match kind.as_str() {
            "linux-noop" => Some(Qos::Noop),
            "linux-htb" => self.htb(row)?,
            _ => None,
        };
        Ok(Some(QosState { kind, owner, qos }))
    }

    fn htb(&mut self, row: &Columns) -> Result<Option<Qos>> {
        let Some(max_rate) = number(&texts(&row["other_config"]), "max-rate") else { return Ok(None) };
        let mut queues = BTreeMap::new();
        for pair in row["queues"][1].as_array().into_iter().flatten() {
            let (queue_id, id) = (pair[0].as_u64(), uuids(&pair[1]).next());
            let Some((queue_id, id)) = queue_id.and_then(|queue_id| u32::try_from(queue_id).ok()).zip(id) else {
                return Ok(None);
            }; // tidy-allow(dropped-cause): documented
            let of_id = [equals("_uuid", uuid(id))];
            let rows = self.connection.select(DATABASE, "Queue", &of_id, &["other_config"])?;
            let settings = rows.first().map(|row| texts(&row["other_config"])).unwrap_or_default();
            let priority = number(&settings, "priority").and_then(|priority| u32::try_from(priority).ok()); // tidy-allow(dropped-cause): documented
            let (min_rate, max_rate) = (number(&settings, "min-rate"), number(&settings, "max-rate"));
            queues.insert(queue_id, Queue { min_rate, max_rate, priority });
        }
        Ok(Some(Qos::Htb { max_rate, queues }))
    }

    /// Sets the QoS of a port with an owner and replaces an existing one.
    ///
    /// # Errors
    /// The port does not exist. Those of [`Connection::transact`](crate::Connection::transact).
    pub fn set_owned_qos(&mut self, port: &str, qos: &Qos, owner: &str) -> Result<()> {
        self.put_qos(port, qos, Some(owner))
    }

    pub(super) fn put_qos(&mut self, port: &str, qos: &Qos, owner: Option<&str>) -> Result<()> {
        let mut operations = self.without_qos(port)?;
        operations.extend(qos.insertions(owner));
        let of_port = [equals("name", json!(port))];
        operations.push(Operation::update("Port", &of_port, columns([("qos", named_uuid(super::QOS))])));
        self.transact(&operations)
    }
}

/// Returns the pairs of a map of texts (RFC 7047 §5.1, `<map>`).
fn texts(value: &Value) -> BTreeMap<String, String> {
    let pairs = value[1].as_array().into_iter().flatten();
    pairs.filter_map(|pair| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()))).collect()
}

fn number(texts: &BTreeMap<String, String>, key: &str) -> Option<u64> {
    texts.get(key)?.parse().ok() // tidy-allow(dropped-cause): a setting of another form is none
}
