//! Generator of the reference documentation `docs/reference/qos.md` and
//! `docs/reference/settings.md` from the tables. A test compares the files.

use takt::qos::POLICIES;

use crate::policy::{Entity, EntityQos, FIELDS, Field, WITHOUT_EFFECT};
use crate::setting::{self, Setting};
use crate::value::Value;

const NOTE: &str = "<!-- Written by `cargo run -p takt-config --example reference`. Do not edit. -->\n\n";

/// Returns `docs/reference/qos.md`: every field of every policy.
#[must_use]
pub fn policies() -> String {
    let mut text = format!("{NOTE}# QoS policies in profiles\n\n");
    text.push_str(
        "Every element that [profiles](../guide/configuration.md) may have, in XML and in TOML. The column *default* \
         applies to the entities in the column *of*.\n\nIn XML, words may have the suffixes of the OMG, such as \
         `RELIABLE_RELIABILITY_QOS`, or omit them, as here. A duration is `<sec>` and `<nanosec>` in XML, and a text \
         such as `\"250 ms\"` in TOML.\n",
    );
    let mut policy = "";
    for field in FIELDS {
        if field.policy != policy {
            policy = field.policy;
            text.push_str(&format!(
                "\n## {policy}\n\n{}\n\n| field | value | default | of | meaning |\n|---|---|---|---|---|\n",
                properties(field)
            ));
        }
        for (default, entities) in defaults(field) {
            let (name, expected, help) = (field.name, cell(&field.kind.expected()), field.help);
            text.push_str(&format!("| `{name}` | {expected} | {default} | {entities} | {help} |\n"));
        }
    }
    let ignored: Vec<String> = WITHOUT_EFFECT.iter().map(|(policy, field)| format!("`{policy}.{field}`")).collect();
    text.push_str(&format!(
        "\nAccepted without effect, because memory is reserved when an endpoint is created: {}.\n",
        ignored.join(", ")
    ));
    text
}

/// Returns sentences on the announcement, changes and matches of a policy.
fn properties(policy: &Field) -> String {
    let info = POLICIES.iter().find(|info| info.name == policy.policy).expect("every policy is a row of the table");
    let announced = info.pid.map_or("not announced".to_owned(), |pid| format!("announced as parameter 0x{pid:04x}"));
    let change = if info.is_changeable { "An" } else { "No" };
    let is_of_endpoints = policy.is_of(Entity::DataWriter) || policy.is_of(Entity::DataReader);
    let entity = if is_of_endpoints { "writer or reader" } else { "entity" };
    let requested = if info.is_requested { " Writers offer it, and readers request it." } else { "" };
    format!("`{}`, {announced}. {change} enabled {entity} may change it.{requested}", info.label)
}

/// Returns the defaults of a field, each with the entities that have it.
fn defaults(field: &Field) -> Vec<(String, String)> {
    let mut groups: Vec<(Value, Vec<&str>)> = Vec::new();
    for entity in Entity::ALL {
        let Some(value) = field.get(&EntityQos::default_of(entity)) else { continue };
        let name = entity.element().strip_suffix("_qos").unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, names)) => names.push(name),
            None => groups.push((value, vec![name])),
        }
    }
    groups.into_iter().map(|(value, names)| (shown(&value.to_string()), names.join(", "))).collect()
}

/// Returns `docs/reference/settings.md`: every setting of a participant.
#[must_use]
pub fn settings() -> String {
    let mut text = format!("{NOTE}# Settings of a participant\n\n");
    text.push_str(
        "Settings of [configuration files](../guide/configuration.md) in TOML, other than QoS profiles, and the environment \
         variables that override them. Lists are separated by commas in the environment.\n",
    );
    let mut table = "";
    for setting in setting::all() {
        let Setting { key, variable, help, .. } = setting;
        if setting.table != table {
            table = setting.table;
            text.push_str(&format!(
                "\n## \\[{table}\\]\n\n| key | variable | value | default | meaning |\n|---|---|---|---|---|\n"
            ));
        }
        let (expected, default) = (cell(&setting.kind.expected()), (setting.default)());
        text.push_str(&format!("| `{key}` | `{variable}` | {expected} | {default} | {help} |\n"));
    }
    text
}

fn shown(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { text.to_owned() }
}

/// Escapes a text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
