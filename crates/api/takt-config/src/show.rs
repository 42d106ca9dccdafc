//! Output of policies and settings as files that can be read again, with a comment on the origin of
//! each value.

use crate::provider::Effective;
use crate::settings::EffectiveSetting;
use crate::toml_tree::quote;
use crate::tree::Format;
use crate::value::{Kind, Value, show_duration};
use crate::xml::escape;
use crate::{Entity, Origin};

/// Column at which comments begin, unless the line is longer.
const COMMENT_COLUMN: usize = 64;
/// Infinite duration in DDS-XML.
const INFINITE: (&str, &str) = ("DURATION_INFINITE_SEC", "DURATION_INFINITE_NSEC");

/// Formats the policies of one entity as a profile of this name (`library::profile`).
#[must_use]
pub fn policies(profile: &str, entity: Entity, fields: &[Effective], format: Format) -> String {
    let (library, name) = profile.split_once("::").unwrap_or(("Library", profile));
    match format {
        Format::Toml => {
            let mut text = format!("[qos_library.{}.{}.{}]\n", key(library), key(name), entity.element());
            for effective in fields.iter().filter(|effective| is_written(effective)) {
                let line = format!("{} = {}", effective.field().path(), toml_value(&effective.value));
                commented(&mut text, &line, "#", &origin(effective), "");
            }
            text
        }
        Format::Xml => {
            let mut text = format!("<qos_library name=\"{}\">\n", escape(library));
            text.push_str(&format!("  <qos_profile name=\"{}\">\n    <{}>\n", escape(name), entity.element()));
            xml_policies(&mut text, fields);
            text.push_str(&format!("    </{}>\n  </qos_profile>\n</qos_library>\n", entity.element()));
            text
        }
    }
}

/// Formats settings as TOML. Settings with their defaults are comments.
#[must_use]
pub fn settings(settings: impl Iterator<Item = EffectiveSetting>) -> String {
    let mut text = String::new();
    let mut table = "";
    for EffectiveSetting { setting, value, origin } in settings {
        if setting.table != table {
            table = setting.table;
            text.push_str(if text.is_empty() { "" } else { "\n" });
            text.push_str(&format!("[{table}]\n"));
        }
        match (value, origin) {
            (Some(value), Some(origin)) => {
                commented(
                    &mut text,
                    &format!("{} = {}", setting.key, toml_value(&value)),
                    "#",
                    &origin.to_string(),
                    "",
                );
            }
            _ => text.push_str(&format!("# {}: {}\n", setting.key, (setting.default)())),
        }
    }
    text
}

/// Reports whether a value is written. KEEP_ALL has no depth, and an empty text is omitted.
fn is_written(effective: &Effective) -> bool {
    effective.origin.is_some() || !matches!(&effective.value, Value::Text(text) if text.is_empty())
}

fn origin(effective: &Effective) -> String {
    let source = |(origin, profile): &(Origin, String)| format!("{origin}, {profile}");
    effective.origin.as_ref().map_or_else(|| "default".to_owned(), source)
}

fn commented(text: &mut String, line: &str, open: &str, comment: &str, close: &str) {
    text.push_str(&format!("{line:<COMMENT_COLUMN$} {open} {comment}{close}\n"));
}

/// Formats a TOML key, without quotes if possible.
pub(crate) fn key(name: &str) -> String {
    let is_bare_key = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_bare_key { name.to_owned() } else { quote(name) }
}

/// Formats a value as TOML.
pub(crate) fn toml_value(value: &Value) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    match value {
        Value::Bool(_) | Value::Int(_) | Value::Length(Some(_)) => value.to_string(),
        Value::Length(None) | Value::Word(_) | Value::Text(_) => quote(&value.to_string()),
        Value::Duration(duration) => quote(&show_duration(*duration)),
        Value::Words(words) => list(words.iter().map(|word| quote(word)).collect()),
        Value::Texts(texts) => list(texts.iter().map(|text| quote(text)).collect()),
        Value::Octets(octets) => list(octets.iter().map(ToString::to_string).collect()),
        Value::Properties(pairs) => list(
            pairs
                .iter()
                .map(|(name, value, propagate)| {
                    format!("{{ name = {}, value = {}, propagate = {propagate} }}", quote(name), quote(value))
                })
                .collect(),
        ),
    }
}

fn xml_policies(text: &mut String, fields: &[Effective]) {
    let mut policy = "";
    for effective in fields.iter().filter(|effective| is_written(effective)) {
        let field = effective.field();
        if field.policy != policy {
            if !policy.is_empty() {
                text.push_str(&format!("      </{policy}>\n"));
            }
            policy = field.policy;
            text.push_str(&format!("      <{policy}>\n"));
        }
        let line = format!("        <{0}>{1}</{0}>", field.name, xml_value(field.kind, &effective.value));
        // Two dashes would end the comment.
        commented(text, &line, "<!--", &origin(effective).replace("--", "- -"), " -->");
    }
    if !policy.is_empty() {
        text.push_str(&format!("      </{policy}>\n"));
    }
}

/// Formats a value as specified in DDS-XML 1.0 §7.2.
fn xml_value(kind: Kind, value: &Value) -> String {
    let suffix = match kind {
        Kind::Word { suffix, .. } | Kind::Words { suffix, .. } => suffix,
        _ => "",
    };
    let element = |text: &str| format!("<element>{}</element>", escape(text));
    match value {
        Value::Duration(duration) => {
            let (seconds, nanos) = duration.as_nanos().map_or_else(
                || (INFINITE.0.to_owned(), INFINITE.1.to_owned()),
                |nanos| ((nanos / 1_000_000_000).to_string(), (nanos % 1_000_000_000).to_string()),
            );
            format!("<sec>{seconds}</sec><nanosec>{nanos}</nanosec>")
        }
        Value::Word(word) => format!("{word}{suffix}"),
        Value::Words(words) => words.iter().map(|word| element(&format!("{word}{suffix}"))).collect(),
        Value::Texts(texts) => texts.iter().map(|text| element(text)).collect(),
        Value::Properties(pairs) => pairs
            .iter()
            .map(|(name, value, propagate)| {
                let (name, value) = (escape(name), escape(value));
                format!(
                    "<element><name>{name}</name><value>{value}</value><propagate>{propagate}</propagate></element>"
                )
            })
            .collect(),
        value => escape(&value.to_string()),
    }
}
