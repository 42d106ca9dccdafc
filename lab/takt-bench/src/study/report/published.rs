//! Table of the publication's values with the measured values of cells whose names and parameters
//! agree.

use super::forms::gain_of;
use super::pool::Pool;
use super::rendered_figure::{FigureContext, Table};
use super::value::{Value as Estimated, optional};
use crate::study::file::{Form, Published};
use crate::study::parameter::Value;

/// Maximum number of cells of a row.
const HERE_MAX: usize = 4;

/// Returns the table of a figure; `None` if the publication has no values for it.
#[must_use]
pub fn table(scene: &FigureContext<'_>) -> Option<Table> {
    let published = &scene.figure.published;
    if published.is_empty() {
        return None;
    }
    let mut table = Table::new(&["publication", "at", "published"]);
    // The pairs of a t-test are in its own table.
    let has_here = scene.figure.form != Form::TTest;
    if has_here {
        table.head.push(title(scene));
    }
    for one in published {
        let mut row = vec![one.system.clone(), one.at.clone(), one.value.clone()];
        if has_here {
            row.push(measured_values(scene, one));
        }
        table.rows.push(row);
    }
    Some(table)
}

/// Returns the title of the column of measured values.
fn title(scene: &FigureContext<'_>) -> String {
    match scene.figure.form {
        Form::Statistics if scene.is_halved() => "here: half of the round trip".into(),
        Form::Statistics => "here: latency".into(),
        Form::Gains => format!("here: gain of {}", scene.title(&scene.value)),
        _ => format!("here: {}", scene.title(&scene.value)),
    }
}

/// Returns the measured values of the cells that correspond to a value of the publication.
fn measured_values(scene: &FigureContext<'_>, one: &Published) -> String {
    let cells: Vec<_> = scene.pools.iter().filter(|pool| is_meant(scene, one, pool)).collect();
    let text = |pool: &&&Pool<'_>| format!("{}: {}", scene.name(pool), value(scene, pool));
    let texts: Vec<String> = cells.iter().take(HERE_MAX).map(text).collect();
    match cells.len() {
        0 => "not measured".into(),
        few if few <= HERE_MAX => texts.join("; "),
        many => format!("{}; and {} more", texts.join("; "), many - HERE_MAX),
    }
}

/// Returns the value of a cell in the form of the figure.
fn value(scene: &FigureContext<'_>, pool: &Pool<'_>) -> String {
    let of = |value: &Estimated| optional(pool.estimate(value).map(|one| one.value * scene.factor(value)));
    match scene.figure.form {
        Form::Statistics => {
            let [min, max, mean, stdev] =
                [Estimated::Min, Estimated::Max, Estimated::Mean, Estimated::Deviation].map(|value| of(&value));
            format!("min {min}, max {max}, mean {mean}, stdev {stdev} us")
        }
        Form::Gains => gain_of(scene, pool).unwrap_or_else(|| "n/a".into()),
        _ => of(&scene.value),
    }
}

/// Reports whether a cell corresponds to a value of the publication: the system matches, and each
/// part of `at` that is a parameter value.
fn is_meant(scene: &FigureContext<'_>, one: &Published, pool: &Pool<'_>) -> bool {
    let (name, title) = (letters(&one.system), letters(&pool.title()));
    let is_system = match one.here.as_slice() {
        // An experiment has only one system; the publication names its configurations.
        _ if scene.workload.kind.is_experiment() => true,
        [] => !name.is_empty() && (title.starts_with(&name) || letters(&pool.cell.system).starts_with(&name)),
        names => names.contains(&pool.cell.system),
    };
    is_system && one.at.split(',').all(|part| is_at(scene, part.trim(), pool))
}

fn is_at(scene: &FigureContext<'_>, part: &str, pool: &Pool<'_>) -> bool {
    let first = part.split_whitespace().next().unwrap_or_default();
    let is = |value: &Value| match value {
        Value::Number(number) => first.replace(',', "").parse() == Ok(*number),
        Value::Text(text) => letters(text) == letters(part),
    };
    // Words that are no parameter value do not restrict the cells.
    let is_known = scene.workload.parameters.0.values().flatten().any(is);
    let is_number = first.chars().next().is_some_and(|letter| letter.is_ascii_digit());
    if is_known || is_number { pool.cell.values.values().any(is) } else { true }
}

fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}
