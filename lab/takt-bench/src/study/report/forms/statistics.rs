//! Tables of latencies: minimum, mean, maximum and deviation; percentiles with their intervals.

use super::super::rendered_figure::{FigureContext, RenderedFigure, Table};
use super::super::value::{PERCENTILES, Value, number, optional, percent};
use super::table::{head_of_cells, row_of_cell};

pub fn statistics(scene: &FigureContext<'_>) -> RenderedFigure {
    let columns = [Value::Min, Value::Mean, Value::Max, Value::Deviation, Value::Variation];
    let mut table = Table::new(&head_of_cells(scene));
    table.head.extend(
        [
            "samples",
            "rounds",
            "min, us",
            "mean, us",
            "max, us",
            "stdev, us",
            "PDV, us",
            "mean of rounds, us",
            "remarks",
        ]
        .map(str::to_owned),
    );
    for pool in &scene.pools {
        let Some(mean) = pool.estimate(&Value::Mean) else { continue };
        let factor = scene.factor(&Value::Mean);
        let (low, high) = mean.rounds.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
        let mut row = row_of_cell(scene, pool);
        row.extend([pool.distribution().count().to_string(), pool.rounds.len().to_string()]);
        row.extend(columns.iter().map(|value| optional(pool.estimate(value).map(|one| one.value * factor))));
        row.push(format!("{} to {}", number(low * factor), number(high * factor)));
        row.push(pool.remarks().join("; "));
        table.rows.push(row);
    }
    let notes = vec![
        "Of all samples of all rounds; stdev is that of a sample. PDV: p99.9 minus the minimum. n/a: too few samples."
            .into(),
    ];
    RenderedFigure { table, notes, ..RenderedFigure::default() }
}

pub fn percentiles(scene: &FigureContext<'_>) -> RenderedFigure {
    let mut table = Table::new(&head_of_cells(scene));
    table.head.push("samples".into());
    table.head.extend(PERCENTILES.map(|p| format!("p{}, us", percent(p))));
    table.head.extend(["biggest, us".to_owned(), "remarks".to_owned()]);
    for pool in scene.pools.iter().filter(|pool| pool.distribution().count() > 0) {
        let factor = scene.factor(&Value::Mean);
        let of = |value: &Value| match pool.estimate(value) {
            None => "n/a".to_owned(),
            Some(estimate) => match estimate.interval.map(|interval| interval.scaled(factor)) {
                None => number(estimate.value * factor),
                Some(one) => {
                    format!("{} [{}, {}]", number(estimate.value * factor), number(one.low), number(one.high))
                }
            },
        };
        let mut row = row_of_cell(scene, pool);
        row.push(pool.distribution().count().to_string());
        row.extend(PERCENTILES.map(|p| of(&Value::Quantile(p))));
        row.push(optional(pool.estimate(&Value::Max).map(|one| one.value * factor)));
        row.push(pool.remarks().join("; "));
        table.rows.push(row);
    }
    let notes = vec![
        "In brackets: 95 % interval by bootstrap over rounds; none for one round. n/a: less than one sample is expected above the percentile. \
         p99.9999 is the value that one sample of a million exceeds."
            .into(),
    ];
    RenderedFigure { table, notes, ..RenderedFigure::default() }
}
