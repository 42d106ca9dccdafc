//! QoS rows of Open vSwitch ports, by OVSDB.

use takt_ovsdb::OpenVSwitch;
use takt_ovsdb::open_vswitch::{Qos, QosState};

use super::agent::State;
use super::{OWNER, QueueError, Target};

/// Returns the ports of all bridges that have an OpenFlow number and a kernel interface.
pub fn targets(database: &mut OpenVSwitch) -> Result<Vec<Target>, QueueError> {
    let ports = database.bridge_ports()?.into_iter().filter(|port| !port.is_virtual);
    let target = |port: takt_ovsdb::open_vswitch::BridgePort| {
        let (dpid, number) = (port.datapath_id?, port.ofport?);
        Some(Target { dpid, port: number, interface: port.interface, ovs_port: Some(port.port) })
    };
    Ok(ports.filter_map(target).collect())
}

fn is_own(row: &QosState) -> bool {
    row.owner.as_deref() == Some(OWNER)
}

/// Compares the row of a port with the wanted one.
pub fn state(database: &mut OpenVSwitch, port: &str, wanted: &Qos) -> Result<State, QueueError> {
    Ok(match database.qos(port)? {
        None => State::Missing,
        Some(row) if !is_own(&row) => State::Foreign(format!("a QoS row of the type {}", row.kind)),
        Some(row) if row.qos.as_ref() == Some(wanted) => State::AsWanted,
        Some(_) => State::Different,
    })
}

/// Reports whether a row makes Open vSwitch leave the discipline of the interface unchanged.
pub fn reservation(database: &mut OpenVSwitch, port: &str) -> Result<State, QueueError> {
    Ok(match database.qos(port)? {
        None => State::Missing,
        // Rows of any owner qualify, since this type has no settings.
        Some(row) if row.qos == Some(Qos::Noop) => State::AsWanted,
        Some(row) if is_own(&row) => State::Different,
        Some(row) => State::Foreign(format!("a QoS row of the type {}", row.kind)),
    })
}

/// Sets the row of a port, and waits until Open vSwitch has applied it.
pub fn make(database: &mut OpenVSwitch, port: &str, wanted: &Qos) -> Result<(), QueueError> {
    database.set_owned_qos(port, wanted, OWNER)?;
    Ok(database.wait_until_applied()?)
}

/// Removes the row of a port if this program owns it.
pub fn remove(database: &mut OpenVSwitch, port: &str) -> Result<bool, QueueError> {
    if !database.qos(port)?.is_some_and(|row| is_own(&row)) {
        return Ok(false);
    }
    database.clear_qos(port)?;
    database.wait_until_applied()?;
    Ok(true)
}
