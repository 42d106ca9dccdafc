//! Figures of the publication, and ours where names and parameters agree.

use super::exhibit::{Scene, Table};
use super::pool::Pool;
use super::value::number;
use crate::study::file::Published;
use crate::study::parameter::Value;

/// Cells that a row has at most.
const HERE_MAX: usize = 4;

/// The table of a figure. `None` if the publication has no figures for it.
#[must_use]
pub fn table(scene: &Scene<'_>) -> Option<Table> {
    let published = &scene.figure.published;
    if published.is_empty() {
        return None;
    }
    let mut table = Table::new(&["publication", "at", "published", &format!("here: {}", scene.title(&scene.value))]);
    for one in published {
        let here: Vec<String> = scene
            .pools
            .iter()
            .filter(|pool| is_meant(scene, one, pool))
            .filter_map(|pool| {
                let value = pool.estimate(&scene.value)?.value * scene.factor(&scene.value);
                Some(format!("{}: {}", scene.full_name(pool), number(value)))
            })
            .collect();
        let text = match here.len() {
            0 => "no cell of this name".to_owned(),
            few if few <= HERE_MAX => here.join("; "),
            many => format!("{}; and {} more", here[..HERE_MAX].join("; "), many - HERE_MAX),
        };
        table.rows.push(vec![one.system.clone(), one.at.clone(), one.value.clone(), text]);
    }
    Some(table)
}

/// Whether a cell is what the publication names: its system, and each part of `at` that is a value of a parameter.
fn is_meant(scene: &Scene<'_>, one: &Published, pool: &Pool<'_>) -> bool {
    let (name, title) = (letters(&one.system), letters(&pool.title()));
    let is_system = !name.is_empty() && (title.starts_with(&name) || letters(&pool.cell.system).starts_with(&name));
    is_system && one.at.split(',').all(|part| is_at(scene, part.trim(), pool))
}

fn is_at(scene: &Scene<'_>, part: &str, pool: &Pool<'_>) -> bool {
    let first = part.split_whitespace().next().unwrap_or_default();
    let is = |value: &Value| match value {
        Value::Number(number) => first.replace(',', "").parse() == Ok(*number),
        Value::Text(text) => letters(text) == letters(part),
    };
    // Words that no parameter has say nothing of a cell.
    let is_known = scene.workload.parameters.0.values().flatten().any(is);
    let is_number = first.chars().next().is_some_and(|letter| letter.is_ascii_digit());
    if is_known || is_number { pool.cell.values.values().any(is) } else { true }
}

fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}
