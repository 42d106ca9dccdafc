//! Gains of a value relative to a baseline: positive is better, whichever direction of the value is
//! better.

use super::super::pool::Pool;
use super::super::rendered_figure::{FigureContext, RenderedFigure, Table};
use super::super::value::{Value, number};
use super::bars::{Bar, groups, plot};
use super::t_test::differs_in_batching;
use crate::error::Result;
use crate::statistics::Interval;
use crate::study::cell::Better;
use crate::study::parameter::Values;

/// Values of a figure that names no value.
const VALUES: [&str; 10] = [
    "mean",
    "p99.9",
    "max",
    "pdv",
    "received_hz",
    "megabits_per_second",
    "megabytes_per_second",
    "writer_cpu_us",
    "reader_cpu_us",
    "resident_kib",
];

pub fn render(scene: &FigureContext<'_>) -> Result<RenderedFigure> {
    let mut table = Table::new(&["system", "value", "baseline", "here", "gain, %", "95 % interval, %", "remarks"]);
    let Some(baseline) = scene.figure.baseline.as_deref() else {
        return Ok(RenderedFigure {
            table,
            notes: vec!["The figure names no baseline.".into()],
            ..RenderedFigure::default()
        });
    };
    let values: Vec<Value> = match &scene.figure.value {
        Some(_) => vec![scene.value.clone()],
        None => VALUES.iter().map(|name| Value::named(name)).collect(),
    };
    let mut bars: Vec<Bar> = Vec::new();
    for value in &values {
        for (group, pools) in groups(scene) {
            let mut of_group = Vec::new();
            for pool in pools.into_iter().filter(|pool| pool.cell.system != baseline) {
                let Some(base) = scene.pools.iter().find(|base| is_base(base, pool, baseline)) else { continue };
                let Some((gain, interval)) = gain(pool, base, value) else { continue };
                let differs = differs_in_batching(pool, base);
                let dagger = if differs { " †" } else { "" };
                let (low, high) = interval.map_or((gain, gain), |interval| (interval.low, interval.high));
                table.rows.push(row(scene, pool, base, value, (gain, interval)));
                of_group.push(Bar {
                    name: format!("{}{dagger}{}", scene.name(pool), if pool.disturbed() > 0 { " *" } else { "" }),
                    value: Some((gain, low.min(gain), high.max(gain))),
                    text: format!("{gain:+.1} %"),
                    color: scene.line_style(pool, 0).color,
                });
            }
            let heading = [group.clone(), (values.len() > 1).then(|| scene.title(value))];
            let heading = heading.into_iter().flatten().collect::<Vec<_>>().join(", ");
            if !heading.is_empty() && !of_group.is_empty() {
                bars.push(Bar { name: heading, value: None, text: String::new(), color: 0 });
            }
            bars.append(&mut of_group);
        }
    }
    let title = match values.as_slice() {
        [one] => format!("gain of {}, %", scene.title(one)),
        _ => "gain, %".to_owned(),
    };
    let mut notes = vec![format!(
        "Relative to {baseline}; positive is better. Error bars: 95 % interval by bootstrap over rounds; none for one round."
    )];
    if table.rows.iter().any(|row| row[6].contains('†')) {
        notes.push("† Only one of the two batches: the gain does not compare like with like.".into());
    }
    let plot = plot(scene, &title, &bars)?;
    if plot.is_none() {
        notes.push(format!("No cell can be compared with {baseline}: it was not measured, or has no such value."));
    }
    Ok(RenderedFigure { plots: plot.into_iter().collect(), table, notes })
}

/// Returns the gain of a cell relative to the baseline of the figure, as text; `None` if it has
/// none.
#[must_use]
pub fn gain_of(scene: &FigureContext<'_>, pool: &Pool<'_>) -> Option<String> {
    let baseline = scene.figure.baseline.as_deref()?;
    let base = scene.pools.iter().find(|base| is_base(base, pool, baseline))?;
    gain(pool, base, &scene.value).map(|(gain, _)| format!("{gain:+.1} %"))
}

fn row(
    scene: &FigureContext<'_>,
    pool: &Pool<'_>,
    base: &Pool<'_>,
    value: &Value,
    (gain, interval): (f64, Option<Interval>),
) -> Vec<String> {
    let of = |pool: &Pool<'_>| pool.estimate(value).map_or(f64::NAN, |one| one.value * scene.factor(value));
    let mut remarks = pool.remarks();
    if differs_in_batching(pool, base) {
        remarks.push("† batching differs".into());
    }
    if base.disturbed() > 0 {
        remarks.push("* baseline disturbed".into());
    }
    vec![
        scene.full_name(pool),
        scene.title(value),
        number(of(base)),
        number(of(pool)),
        format!("{gain:+.1}"),
        interval.map_or_else(|| "one round".into(), |one| format!("{:+.1} to {:+.1}", one.low, one.high)),
        remarks.join("; "),
    ]
}

fn is_base(base: &Pool<'_>, pool: &Pool<'_>, baseline: &str) -> bool {
    let values: (&Values, &Values) = (&base.cell.values, &pool.cell.values);
    base.cell.system == baseline && values.0 == values.1
}

/// Returns the gain in percent, with its interval.
fn gain(pool: &Pool<'_>, base: &Pool<'_>, value: &Value) -> Option<(f64, Option<Interval>)> {
    let (ratio, interval) = pool.ratio(base, value)?;
    let of = |ratio: f64| match value.better() {
        Better::Lower => (1.0 - ratio) * 100.0,
        Better::Higher => (ratio - 1.0) * 100.0,
    };
    let interval = interval.map(|one| {
        let (one, other) = (of(one.low), of(one.high));
        Interval { low: one.min(other), high: one.max(other) }
    });
    Some((of(ratio), interval))
}
