//! Supported cells of a system: exclusions of its entry, and the roles of its agent.

use super::file::{Kind, Site, Workload};
use super::parameter::Values;
use super::system::System;
use serde_json::Value;
use std::collections::BTreeMap;

/// Roles of an agent whose `info` does not list any.
const ROLES: [&str; 7] = ["info", "ping", "pong", "pub", "sub", "idle", "disc"];

/// Role of a durability service, which keeps samples without their writer.
pub const SERVICE: &str = "keep";

/// Roles of agents by system, for those whose `info` lists them.
pub type Roles = BTreeMap<String, Vec<String>>;

/// Reason for which a cell is not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The entry of the system excludes it.
    Excluded(String),
    /// Its agent lacks a role.
    Unsupported(String),
}

impl Refusal {
    /// Returns the reason.
    #[must_use]
    pub fn why(&self) -> &str {
        let (Self::Excluded(why) | Self::Unsupported(why)) = self;
        why
    }
}

/// Returns the roles that an `info` lists, separated by commas.
#[must_use]
pub fn roles_of(info: &Value) -> Option<Vec<String>> {
    Some(info["roles"].as_str()?.split(',').map(|role| role.trim().to_owned()).collect())
}

/// Reports whether samples must outlive their writer.
#[must_use]
pub fn needs_service(values: &Values) -> bool {
    values.get("durability").is_some_and(|value| ["transient", "persistent"].contains(&value.to_string().as_str()))
}

/// Returns the reason for which a system is not measured in a cell; `None` if it is measured.
#[must_use]
pub fn refusal(site: &Site, workload: &Workload, system: &System, values: &Values, roles: &Roles) -> Option<Refusal> {
    workload.demands(values).iter().find_map(|values| refusal_of(site, workload.kind, system, values, roles))
}

fn refusal_of(site: &Site, kind: Kind, system: &System, values: &Values, roles: &Roles) -> Option<Refusal> {
    if let Some(why) = system.refusal(site, kind, values) {
        return Some(Refusal::Excluded(why));
    }
    let has = |role: &&str| match roles.get(&system.name) {
        Some(roles) => roles.iter().any(|one| one == role),
        None => ROLES.contains(role),
    };
    let needed = kind.roles().iter().chain(needs_service(values).then_some(&SERVICE));
    let missing: Vec<&str> = needed.filter(|role| !has(role)).copied().collect();
    let why = || format!("unsupported: its agent has no role {}", missing.join(", "));
    (!missing.is_empty()).then(|| Refusal::Unsupported(why()))
}
