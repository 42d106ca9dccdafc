//! Tables of an isolation outcome, as text or as Markdown.
//!
//! Tables I and II combine all rounds. Comparisons are made within rounds
//! ([`effect`](super::effect)).

use super::countermeasure::{BASELINE, Configuration, ISOLATED};
use super::effect::Effect;
use super::outcome::{Figure, Outcome, Way};
use crate::stats::{Summary, median};
use std::fmt::Write;

/// Maximum ratio of the isolated round trip under interference to that without.
const OWN_FACTOR_MAX: f64 = 1.5;
/// Maximum ratio of the isolated round trip under interference to that of the baseline.
const BASELINE_FACTOR_MAX: f64 = 0.1;

/// Minimum share of the link rate, as median of rounds and in both directions, for a verdict.
const LINK_FILLED: f64 = 0.9;

/// Format of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Aligned columns for a terminal.
    Text,
    /// Markdown.
    Markdown,
}

/// Returns all tables of an outcome.
#[must_use]
pub fn tables(outcome: &Outcome, style: Style) -> String {
    let mut text = head(outcome, style);
    for (number, name) in [("I", BASELINE), ("II", ISOLATED)] {
        section(&mut text, style, &format!("Table {number}: {name}, us"));
        text.push_str(&grid(style, &LATENCY_HEAD, &latencies(outcome, name)));
    }
    section(&mut text, style, "Round trips: isolated under interference vs. isolated without and baseline with");
    text.push_str(&grid(style, &["payload", "figure", "to", "ratio [95 %]", "aim", ""], &verdicts(outcome)));
    if let Some(size) = outcome.plan.ablation {
        section(
            &mut text,
            style,
            &format!("Ablation: round trips under interference, {size} B, us (median of rounds)"),
        );
        text.push_str(&grid(style, &ABLATION_HEAD, &ablation(outcome, size)));
        let effects = ["measure", "median", "p99", "p99.9", "max"];
        section(&mut text, style, "Each measure alone, relative to the baseline: ratio [95 %] and Cliff's delta");
        text.push_str(&grid(style, &effects, &compared(outcome, size, true)));
        section(
            &mut text,
            style,
            "Each measure left out, relative to the isolated configuration: ratio [95 %] and Cliff's delta",
        );
        text.push_str(&grid(style, &effects, &compared(outcome, size, false)));
    }
    if !outcome.unavailable.is_empty() {
        section(&mut text, style, "Not available, and in no configuration above");
        let rows = outcome.unavailable.iter().map(|missing| vec![missing.measure.to_string(), missing.why.clone()]);
        text.push_str(&grid(style, &["measure", "why"], &rows.collect::<Vec<_>>()));
    }
    text
}

fn section(text: &mut String, style: Style, title: &str) {
    let mark = if style == Style::Markdown { "### " } else { "" };
    // Writing to a String cannot fail.
    let _ = write!(text, "\n{mark}{title}\n\n");
}

fn head(outcome: &Outcome, style: Style) -> String {
    let Outcome { version, command, machine, load_average, plan, .. } = outcome;
    let (open, close) = if style == Style::Markdown { ("`", "`") } else { ("", "") };
    let mut text = format!("{open}{command}{close}\n\n");
    let hz = 1e9 / plan.period_ns as f64;
    let load = &plan.load;
    let lines = [
        format!(
            "Takt {version}; {}; Linux {}; {} cores; {}",
            machine.processor, machine.kernel, machine.cpus, machine.iperf3
        ),
        format!("load average before {}, after {}", load_average[0], load_average[1]),
        format!(
            "{} rounds in an order from seed {}; {} pings in each cell after {}, {hz} Hz, open loop; cores {} and {}, priority {}{}",
            plan.rounds,
            plan.seed,
            plan.count,
            plan.warmup,
            plan.cpus[0],
            plan.cpus[1],
            plan.fifo,
            if plan.spins { ", spinning" } else { ", sleeping" }
        ),
        format!(
            "link of {} Mbit/s each way, queue of {} best-effort frames; iperf3: UDP both ways, {} flows, {} B, {} Mbit/s offered each way",
            plan.link.megabits,
            plan.link.frames,
            plan.interference.flows,
            if plan.interference.payload == 0 { "as many".into() } else { plan.interference.payload.to_string() },
            plan.interference.megabits
        ),
        if load.is_empty() {
            "no load within the process".into()
        } else {
            format!(
                "load within the process: {} samples/s, {} callbacks/s of {} us, {} participants that join and leave",
                load.samples_hz, load.callback_hz, load.callback_us, load.participants
            )
        },
        "one machine, one clock: uncertainty of one-way latencies 0; all measured from the due time of a ping".into(),
    ];
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
    text
}

const LATENCY_HEAD: [&str; 14] = [
    "payload",
    "interf.",
    "latency",
    "min",
    "mean",
    "median",
    "p99",
    "p99.9",
    "p99.99",
    "max",
    "stdev",
    "variance",
    "lost",
    "link Mbit/s",
];

fn latencies(outcome: &Outcome, name: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for size in &outcome.plan.sizes {
        for interfered in [false, true] {
            let sum = |of: &dyn Fn(&super::outcome::Cell) -> u64| -> u64 {
                outcome.of(name, *size, interfered).map(of).sum()
            };
            let sent = sum(&|cell| cell.sent);
            for (way, words) in [(Way::OneWay, "one way"), (Way::RoundTrip, "round trip"), (Way::Lateness, "(late by)")]
            {
                let lost = match way {
                    Way::OneWay => format!("{} of {sent}", sum(&|cell| cell.lost_one_way)),
                    Way::RoundTrip => format!("{} of {sent}", sum(&|cell| cell.lost_round_trip)),
                    Way::Lateness => String::new(),
                };
                let mut row = vec![format!("{size} B"), if interfered { "on" } else { "off" }.into(), words.into()];
                row.extend(summary_fields(outcome.summary(name, *size, interfered, way).as_ref()));
                row.extend([lost, link(outcome, name, *size, interfered)]);
                rows.push(row);
            }
        }
    }
    rows
}

fn summary_fields(summary: Option<&Summary>) -> Vec<String> {
    let Some(Summary { min, mean, p50, p99, p999, p9999, max, stdev, .. }) = summary else {
        return vec!["-".into(); 9];
    };
    let figures = [*min, *mean, *p50, *p99, *p999, *p9999, *max, *stdev, stdev * stdev];
    figures.iter().map(|figure| microseconds(*figure)).collect()
}

fn microseconds(figure: f64) -> String {
    if figure < 100.0 { format!("{figure:.1}") } else { format!("{figure:.0}") }
}

/// Returns the rates over the link, to the first and to the second host.
fn link(outcome: &Outcome, name: &str, size: usize, interfered: bool) -> String {
    let rates =
        |side: usize| -> Vec<f64> { outcome.of(name, size, interfered).map(|cell| cell.link_megabits[side]).collect() };
    format!("{:.0}, {:.0}", median(&rates(0)), median(&rates(1)))
}

fn verdicts(outcome: &Outcome) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for size in &outcome.plan.sizes {
        let others = [
            ((ISOLATED, false), "itself, quiet", OWN_FACTOR_MAX),
            ((BASELINE, true), "baseline, interference", BASELINE_FACTOR_MAX),
        ];
        for (to, words, aim) in others {
            for figure in [Figure::P999, Figure::Max] {
                let effect = outcome.effect((ISOLATED, true), to, *size, figure);
                let verdict = match &effect {
                    Some(_) if !is_filled(outcome, *size) => "link not filled",
                    Some(effect) if effect.ratio <= aim => "reached",
                    Some(_) => "not reached",
                    None => "not measured",
                };
                let ratio = effect.as_ref().map_or("-".into(), ratio_text);
                let row =
                    [format!("{size} B"), figure.name().into(), words.into(), ratio, format!("{aim}"), verdict.into()];
                rows.push(row.to_vec());
            }
        }
    }
    rows
}

/// Reports whether the interference filled the link: without that, a verdict proves nothing.
fn is_filled(outcome: &Outcome, size: usize) -> bool {
    let least = LINK_FILLED * f64::from(outcome.plan.link.megabits);
    [BASELINE, ISOLATED].iter().all(|name| {
        (0..2).all(|side| {
            let rates: Vec<f64> = outcome.of(name, size, true).map(|cell| cell.link_megabits[side]).collect();
            rates.is_empty() || median(&rates) >= least
        })
    })
}

fn ratio_text(effect: &Effect) -> String {
    let digits = |value: f64| if value < 1.0 { format!("{value:.3}") } else { format!("{value:.2}") };
    match effect.interval {
        Some((low, high)) => format!("{} [{}, {}]", digits(effect.ratio), digits(low), digits(high)),
        None => format!("{} [-]", digits(effect.ratio)),
    }
}

const ABLATION_HEAD: [&str; 8] =
    ["configuration", "median", "p99", "p99.9", "max", "max of all", "lost", "link Mbit/s"];

fn ablation(outcome: &Outcome, size: usize) -> Vec<Vec<String>> {
    let here = outcome.available();
    let ends = [Configuration::baseline(), Configuration::isolated(here)];
    let configurations = ends.into_iter().chain(Configuration::ablation(here));
    let rows = configurations.map(|configuration| {
        let name = configuration.name.as_str();
        let mut row = vec![name.to_owned()];
        row.extend(Figure::ALL.map(|figure| microseconds(outcome.median((name, true), size, figure))));
        let whole = outcome.summary(name, size, true, Way::RoundTrip);
        row.push(whole.map_or("-".into(), |summary| microseconds(summary.max)));
        let (lost, sent) = outcome
            .of(name, size, true)
            .fold((0, 0), |(lost, sent), cell| (lost + cell.lost_round_trip, sent + cell.sent));
        row.extend([format!("{lost} of {sent}"), link(outcome, name, size, true)]);
        row
    });
    rows.collect()
}

/// Compares each measure alone with the baseline, or the isolated configuration without each
/// measure with the complete one.
fn compared(outcome: &Outcome, size: usize, alone: bool) -> Vec<Vec<String>> {
    let here = outcome.available();
    let rows = here.iter().map(|measure| {
        let (configuration, to) = if alone {
            (Configuration::alone(measure), BASELINE)
        } else {
            (Configuration::without(here, measure), ISOLATED)
        };
        let mut row = vec![measure.to_string()];
        row.extend(Figure::ALL.map(|figure| {
            match outcome.effect((&configuration.name, true), (to, true), size, figure) {
                Some(effect) => format!("{} {:+.2}", ratio_text(&effect), effect.delta),
                None => "-".into(),
            }
        }));
        row
    });
    rows.collect()
}

/// Formats rows below a head, aligned.
fn grid(style: Style, head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|f| f.chars().count()).max();
    let widths: Vec<usize> = (0..head.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let fields: Vec<String> = line.iter().zip(&widths).map(|(field, width)| format!("{field:<width$}")).collect();
        match style {
            Style::Text => text.push_str(fields.join("  ").trim_end()),
            Style::Markdown => {
                let _ = write!(text, "| {} |", fields.join(" | "));
            }
        }
        text.push('\n');
        if number == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            match style {
                Style::Text => text.push_str(&rules.join("  ")),
                Style::Markdown => {
                    let _ = write!(text, "|-{}-|", rules.join("-|-"));
                }
            }
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::countermeasure::{Countermeasure, UnavailableMeasure};
    use super::super::interference::InterferencePlan;
    use super::super::load::LoadPlan;
    use super::super::network::LinkPlan;
    use super::super::outcome::{Cell, Machine};
    use super::super::{Outcome, Plan};
    use super::*;

    fn plan() -> Plan {
        Plan {
            sizes: vec![64],
            ablation: Some(64),
            rounds: 3,
            count: 10,
            warmup: 0,
            period_ns: 500_000,
            cpus: [0, 1],
            fifo: 80,
            spins: false,
            link: LinkPlan { megabits: 100, frames: 256 },
            interference: InterferencePlan { flows: 50, payload: 0, megabits: 100 },
            load: LoadPlan::default(),
            seed: 5,
        }
    }

    /// Returns a cell with ten round trips of `us` us.
    fn cell(configuration: &str, interfered: bool, round: usize, us: u64) -> Cell {
        Cell {
            configuration: configuration.into(),
            size: 64,
            interfered,
            round,
            one_way: vec![(us * 500, 10)],
            round_trip: vec![(us * 1000, 9)],
            sent: 10,
            lost_round_trip: 1,
            link_megabits: [99.0, 98.0],
            ..Cell::default()
        }
    }

    /// Returns an outcome in which only AF_XDP and FIFO are available. A round trip takes 100 us
    /// with both, 80 without interference, and 5,000 with none.
    fn outcome() -> Outcome {
        let machine = Machine { kernel: "6".into(), processor: "A".into(), cpus: 2, iperf3: "iperf 3".into() };
        let missing =
            Countermeasure::ALL.into_iter().filter(|m| !matches!(m, Countermeasure::AfXdp | Countermeasure::Fifo));
        let unavailable = missing.map(|measure| UnavailableMeasure { measure, why: "no".into() }).collect();
        let cells = (0..3).flat_map(|round| {
            [
                cell(BASELINE, false, round, 200),
                cell(BASELINE, true, round, 5_000),
                cell(ISOLATED, false, round, 80),
                cell(ISOLATED, true, round, 100),
                cell("alone-af-xdp", true, round, 2_500),
                cell("without-af-xdp", true, round, 400),
            ]
        });
        Outcome {
            version: "0".into(),
            command: "takt bench isolation".into(),
            machine,
            load_average: ["1".into(), "2".into()],
            plan: plan(),
            unavailable,
            cells: cells.collect(),
        }
    }

    #[test]
    fn bounds_are_judged_by_the_ratio_within_rounds() {
        let rows = verdicts(&outcome());
        assert_eq!(rows.len(), 4);
        let words = |row: usize| rows[row][3..].join(" ");
        assert_eq!(words(0), "1.25 [1.25, 1.25] 1.5 reached");
        assert_eq!(words(2), "0.020 [0.020, 0.020] 0.1 reached");
        let mut slow = outcome();
        slow.cells.retain(|cell| cell.configuration != BASELINE || !cell.interfered);
        for cell in slow.cells.iter_mut().filter(|cell| cell.configuration == ISOLATED && cell.interfered) {
            cell.round_trip = vec![(160_000, 9)];
        }
        let rows = verdicts(&slow);
        assert!(rows[0][5] == "not reached" && rows[2][5] == "not measured", "{rows:?}");
        let mut idle = outcome();
        idle.cells.iter_mut().for_each(|cell| cell.link_megabits[1] = 60.0);
        assert!(verdicts(&idle).iter().all(|row| row[5] == "link not filled"), "no interference, no verdict");
    }

    #[test]
    fn rows_show_latencies_and_losses() {
        let rows = latencies(&outcome(), BASELINE);
        assert_eq!(rows.len(), 6);
        let interfered = &rows[4];
        assert_eq!(interfered[1..3], ["on", "round trip"]);
        assert_eq!(interfered[12..], ["3 of 30", "99, 98"]);
        assert_eq!(rows[3][12], "0 of 30", "no one-way loss");
        assert_eq!(rows[5][3], "-", "no lateness was recorded");
    }

    #[test]
    fn ablation_compares_alone_with_baseline_and_without_with_isolated() {
        let outcome = outcome();
        assert_eq!(compared(&outcome, 64, true)[0][..2], ["af-xdp", "0.500 [0.500, 0.500] -1.00"]);
        assert_eq!(compared(&outcome, 64, false)[0][..2], ["af-xdp", "4.00 [4.00, 4.00] +1.00"]);
        assert_eq!(compared(&outcome, 64, true)[1][..2], ["fifo", "-"], "the cell was not measured");
        assert_eq!(ablation(&outcome, 64).len(), 6);
    }

    #[test]
    fn unavailable_measures_are_listed_in_both_styles() {
        let (text, markdown) = (tables(&outcome(), Style::Text), tables(&outcome(), Style::Markdown));
        assert!(text.contains("\nNot available") && text.contains("\ncoalescing"), "{text}");
        assert!(markdown.contains("\n### Not available") && markdown.contains("\n| coalescing"), "{markdown}");
        let json = outcome().to_json().unwrap();
        assert_eq!(Outcome::parse(&json).unwrap(), outcome(), "a file has all of it");
    }
}
