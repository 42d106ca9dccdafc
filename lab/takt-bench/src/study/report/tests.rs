//! Tests of reports with synthetic results.

use super::markdown::{chart, markdown};
use super::pool::pools;
use super::rendered_figure::{FigureContext, RenderedFigure};
use super::sample::{empty, latencies, measurement, of_systems, results};
use super::{csv::csv, forms, html::html, json::json, published, summary};
use crate::study::cell::{Measured, Outcome};
use crate::study::directory::Results;
use crate::study::file::Form;

/// Returns the rendered figure with this title.
fn render(results: &Results, title: &str) -> RenderedFigure {
    let found = results.header.campaign.workloads.iter().find_map(|workload| {
        let figure = workload.figures.iter().find(|figure| figure.title == title)?;
        let pools = pools(results, workload);
        Some(forms::render(&FigureContext::new(results, workload, figure, &pools)).unwrap())
    });
    found.unwrap_or_else(|| panic!("no figure {title}"))
}

fn column<'a>(exhibit: &'a RenderedFigure, name: &str) -> Vec<&'a str> {
    let at = exhibit.table.head.iter().position(|head| head == name);
    let at = at.unwrap_or_else(|| panic!("no {name} in {:?}", exhibit.table.head));
    exhibit.table.rows.iter().map(|row| row[at].as_str()).collect()
}

#[test]
fn line_chart_has_a_line_for_each_system_and_further_parameter() {
    let lines = render(&results(), "Lines");
    let names: Vec<&str> = lines.plots[0].legend.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names.len(), 6);
    assert_eq!(names[0], "One, reliability reliable");
    assert_eq!(names[5], "Three (batches), reliability best-effort");
    let styles: std::collections::BTreeSet<String> =
        lines.plots[0].legend.iter().map(|(style, _)| format!("{style:?}")).collect();
    assert_eq!(styles.len(), 6);
    assert_eq!(lines.table.rows.len(), 18);
    for part in ["mean half of the round trip, us", ">\nsize\n<", "4,096"] {
        assert!(lines.plots[0].svg.contains(part), "{part}");
    }
    assert!(lines.notes.iter().any(|note| note.contains("Round trips are halved")), "{:?}", lines.notes);
    // 60 us with two rounds of drift, and the tail: half of it.
    let value: f64 = column(&lines, "mean half of the round trip, us")[0].parse().unwrap();
    assert!((30.0..32.0).contains(&value), "{value}");
}

#[test]
fn bars_are_grouped_and_have_their_values() {
    let bars = render(&results(), "Bars");
    let svg = &bars.plots[0].svg;
    assert_eq!(bars.plots.len(), 1);
    for part in ["size 16:", "size 4096:", "Two &lt;2&gt;", "Three (batches) *"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    assert_eq!(svg.matches("opacity=\"0.75\"").count(), 9);
    let rates = render(&results(), "Rates");
    assert_eq!(column(&rates, "samples taken by the slowest reader, 1/s"), ["101,000", "201,000", "301,000"]);
    assert!(rates.plots[0].svg.contains("301,000"));
}

#[test]
fn series_have_a_histogram_and_a_line_between_rounds() {
    let series = render(&results(), "Series");
    assert_eq!(series.plots.len(), 3);
    assert!(series.plots[0].svg.contains("share of samples") && series.plots[0].svg.contains(">\nsample\n<"));
    assert_eq!(series.plots[2].name, "Three (batches) *");
    assert_eq!(column(&series, "samples"), ["6000", "6000", "4000"]);
    assert_eq!(series.plots[0].svg.matches("<polygon").count(), 3, "one area a round");
}

#[test]
fn distributions_have_a_curve_for_each_cell_and_percentiles_that_samples_support() {
    for title in ["Histogram", "Ecdf"] {
        let found = render(&results(), title);
        assert_eq!((found.plots.len(), found.plots[0].legend.len()), (1, 3), "{title}");
        assert_eq!(column(&found, "p99.99, us"), ["n/a"; 3], "6,000 samples");
        assert!(column(&found, "p99.9, us").iter().all(|value| *value != "n/a"));
    }
    let many = render(&of_systems(20), "Ecdf");
    assert_eq!(many.plots.len(), 3);
    assert_eq!(many.plots[2].name, "Ecdf, part 3");
}

#[test]
fn heat_maps_have_a_value_for_each_cell() {
    let maps = render(&results(), "Heat map");
    assert_eq!(maps.plots.len(), 3);
    for map in &maps.plots {
        assert_eq!(map.svg.matches("<rect").count(), 6, "{}", map.name);
        assert!(map.svg.contains("best-effort") && map.svg.contains(">\n4096\n<"));
    }
}

#[test]
fn gains_are_positive_when_better_and_mark_unequal_batching() {
    let rates = render(&results(), "Gains of rates");
    assert_eq!(column(&rates, "gain, %"), ["-49.8", "+49.8"]);
    let remarks = column(&rates, "remarks");
    assert!(!remarks[0].contains('†') && remarks[1].contains("† batching differs"), "{remarks:?}");
    assert!(rates.plots[0].svg.contains("Three (batches) †"));
    assert!(rates.notes.iter().any(|note| note.starts_with('†')));
    let latencies = render(&results(), "Gains");
    let gains = column(&latencies, "gain, %");
    assert!(gains[0].starts_with('+') && gains[1].starts_with('-'), "One is faster than Two, Three slower: {gains:?}");
    assert!(!column(&latencies, "95 % interval, %")[0].contains("one round"));
}

#[test]
fn t_test_covers_samples_and_rounds_of_each_pair() {
    let tests = render(&results(), "Tests");
    assert_eq!(tests.table.rows.len(), 3 * 3 * 2);
    assert_eq!(column(&tests, "unit of observation")[..2], ["samples (means)", "rounds"]);
    assert_eq!(column(&tests, "n")[..2], ["6000 / 6000", "3 / 3"]);
    assert_eq!(column(&tests, "p")[0], "< 2.2e-16");
    assert_eq!((column(&tests, "at")[0], column(&tests, "first")[0]), ("size 16", "One"));
    let remarks = column(&tests, "remarks");
    assert!(remarks[2].contains("† batching differs") && remarks[2].contains("* Three disturbed"), "{remarks:?}");
}

#[test]
fn t_test_with_a_baseline_has_only_pairs_with_it() {
    let mut results = results();
    let figures = &mut results.header.campaign.workloads[0].figures;
    figures.iter_mut().find(|figure| figure.title == "Tests").unwrap().baseline = Some("two".into());
    let tests = render(&results, "Tests");
    assert_eq!(tests.table.rows.len(), 2 * 3 * 2);
    assert!(column(&tests, "first").iter().all(|name| *name == "Two <2>"));
    assert_eq!(column(&tests, "second")[0], "One");
}

/// Returns the measured column next to the values of a publication.
fn measured_column(results: &Results, title: &str) -> Vec<String> {
    let workloads = &results.header.campaign.workloads;
    let has_it = |workload: &&crate::study::file::Workload| workload.figures.iter().any(|one| one.title == title);
    let workload = workloads.iter().find(has_it).unwrap();
    let figure = workload.figures.iter().find(|figure| figure.title == title).unwrap();
    let pools = pools(results, workload);
    let table = published::table(&FigureContext::new(results, workload, figure, &pools)).unwrap();
    table.rows.into_iter().map(|row| row[3].clone()).collect()
}

#[test]
fn values_next_to_a_publication_have_the_form_of_its_figure() {
    let results = results();
    let gains = measured_column(&results, "Gains");
    assert!(gains[0].starts_with("One: +") && gains[0].ends_with(" %"), "{gains:?}");
    assert_eq!(gains[1], "not measured");
    let statistics = measured_column(&results, "Statistics");
    let parts = ["One, size 16: min ", ", max ", ", mean ", ", stdev ", " us"];
    assert!(parts.iter().all(|part| statistics[0].contains(part)), "{statistics:?}");
}

#[test]
fn percentiles_have_intervals_and_none_where_samples_are_too_few() {
    let percentiles = render(&results(), "Percentiles");
    let median = column(&percentiles, "p50, us")[0];
    assert!(median.contains('[') && median.contains(']'), "{median}");
    assert_eq!(column(&percentiles, "p99.9999, us"), ["n/a"; 3]);
    assert_eq!(column(&render(&results(), "Statistics"), "samples")[0], "6000");
    assert_eq!(column(&render(&results(), "Table"), "rounds"), ["3", "3", "3"]);
}

#[test]
fn page_is_complete_escaped_and_self_contained() {
    let page = html(&results()).unwrap();
    for part in [
        "<title>Round trips &amp; streams &lt;synthetic&gt;</title>",
        "A caption &lt;of&gt; lines.",
        "ended with &lt;code&gt; 3",
        "it is not built: make &lt;all&gt;",
        "foreign 40 %",
        "<dt>build</dt><dd>0.1.0 (abc), release</dd>",
        "cpu.model",
        "A &amp; B",
        "Skip to content",
        "<td>147 us</td><td>One, reliability reliable: ",
        "<td>not measured</td>",
        "prefers-color-scheme: dark",
        "@media print",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let outside = ["<script", "src=", "@import", "url(", "<link", "NaN"].iter().find(|word| page.contains(**word));
    assert_eq!(outside, None);
    let drawings = page.matches("role=\"img\"").count();
    assert_eq!((drawings, page.matches("<desc id=").count()), (13, 13));
    let ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(ids.len(), ids.iter().collect::<std::collections::BTreeSet<_>>().len(), "ids are unique");
}

#[test]
fn results_without_measurements_say_so_in_each_figure() {
    let empty = empty(&[("one", "One", false)]);
    let page = html(&empty).unwrap();
    assert_eq!(page.matches("No cell of this figure was measured.").count(), 13);
    assert!(page.contains("not measured") && !page.contains("role=\"img\""));
    assert!(markdown(&empty, None).unwrap().contains("No cell of this figure was measured."));
    assert_eq!(csv(&empty).measurements.lines().count(), 1);
}

#[test]
fn workload_without_figures_has_a_table_of_all() {
    let mut plain = results();
    plain.header.campaign.workloads[1].figures.clear();
    assert!(html(&plain).unwrap().contains(">All figures</h3>"));
    assert!(markdown(&plain, None).unwrap().contains("### All figures"));
}

#[test]
fn single_round_has_no_interval_and_a_note() {
    let mut one = results();
    one.measurements.retain(|measurement| measurement.round == 0);
    let lines = render(&one, "Lines");
    assert_eq!(column(&lines, "95 % interval")[0], "one round");
    assert!(column(&lines, "remarks")[0].contains("one round"));
    let tests = render(&one, "Tests");
    assert!(column(&tests, "unit of observation").iter().all(|unit| *unit == "samples (means)"));
}

#[test]
fn zero_and_non_finite_values_are_not_drawn() {
    let mut odd = results();
    for measurement in odd.measurements.iter_mut().filter(|one| one.cell.workload == "rate") {
        let value = match measurement.cell.system.as_str() {
            "one" => 0.0,
            "two" => f64::NAN,
            _ => f64::INFINITY,
        };
        let figures = [("received_hz".to_owned(), value)].into();
        measurement.outcome = Outcome::Measured(Box::new(Measured { figures, latency: None, ..Measured::default() }));
    }
    let cell = odd.measurements[0].cell.clone();
    odd.measurements.push(latencies(&cell, 0, 0, 10));
    let rates = render(&odd, "Rates");
    assert_eq!(column(&rates, "samples taken by the slowest reader, 1/s"), ["0", "n/a", "n/a"]);
    let page = html(&odd).unwrap();
    let svgs: String = page.split("<svg").skip(1).filter_map(|rest| rest.split("</svg>").next()).collect();
    assert!(!svgs.contains("NaN") && !svgs.contains("inf"));
    assert!(json(&odd).is_ok());
}

#[test]
fn failed_cells_are_listed_and_in_no_figure() {
    let mut failed = results();
    for one in failed.measurements.iter_mut().filter(|one| one.cell.system == "two") {
        *one = measurement(&one.cell.clone(), one.round, Outcome::Failed { why: "no match".into() });
    }
    let lines = render(&failed, "Lines");
    assert_eq!(lines.plots[0].legend.len(), 4);
    assert!(html(&failed).unwrap().contains("no match"));
    let gains = render(&failed, "Gains");
    assert!(gains.plots.is_empty() && gains.notes.iter().any(|note| note.contains("No cell can be compared with two")));
}

/// Returns the legend key of a line style.
fn style_of(style: crate::page::chart::LineStyle) -> String {
    crate::page::chart::legend_key(style, true)
}

#[test]
fn forty_systems_are_drawn_with_distinct_line_styles() {
    let many = of_systems(40);
    let bars = render(&many, "Bars");
    assert_eq!(bars.plots[0].svg.matches("opacity=\"0.75\"").count(), 120);
    let lines = render(&many, "Lines");
    assert_eq!(lines.plots.iter().map(|plot| plot.legend.len()).collect::<Vec<_>>(), [10; 8]);
    for plot in &lines.plots {
        let styles: std::collections::BTreeSet<String> =
            plot.legend.iter().map(|(style, _)| style_of(*style)).collect();
        assert_eq!(styles.len(), 10, "{}", plot.name);
    }
    let styles: std::collections::BTreeSet<String> =
        render(&many, "Ecdf").plots[0].legend.iter().map(|(style, _)| style_of(*style)).collect();
    assert_eq!(styles.len(), 8);
    let page = html(&many).unwrap();
    assert!(page.len() < 8 << 20, "{}", page.len());
}

#[test]
fn markdown_has_all_tables_and_no_page() {
    let text = markdown(&results(), Some("chart.svg")).unwrap();
    for part in ["# Round trips & streams \\<synthetic>", "### Percentiles", "| Two \\<2> |", "## rate", "| 147 us |"] {
        assert!(text.contains(part), "{part}");
    }
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(next) = lines.peek().filter(|next| line.starts_with('|') && next.starts_with('|')) {
            assert_eq!(columns(line), columns(next), "{line}\n{next}");
        }
    }
    assert!(!text.contains("<svg"));
}

#[test]
fn markdown_begins_with_the_chart_and_the_summary() {
    let text = markdown(&results(), Some("chart.svg")).unwrap();
    let mut lines = text.lines().filter(|line| !line.is_empty()).skip(1);
    assert_eq!(lines.next(), Some("![Lines](chart.svg)"));
    assert!(lines.next().is_some_and(|line| line.starts_with("| what | value | measured | best of the others |")));
    lines.next();
    let row = |line: Option<&str>| -> Vec<String> {
        line.unwrap_or_default().split(" | ").map(|field| field.trim_matches(['|', ' ']).to_owned()).collect()
    };
    let trip = row(lines.next());
    assert_eq!(trip[..2], ["Round trip of 16 B", "p50 latency, us"]);
    // The lower latency is better; the higher rate is better.
    assert!(trip[2].ends_with(", Two \\<2>") && trip[3].ends_with(", One") && trip[5].ends_with(", One"), "{trip:?}");
    let rate = row(lines.next());
    assert!(rate[3].ends_with(", Three") && rate[4].starts_with("0.33"), "{rate:?}");
}

#[test]
fn summary_row_names_missing_measurements() {
    let mut none = results();
    none.measurements.clear();
    let table = summary::table(&none).unwrap();
    assert_eq!(table.rows[0][2..], ["not measured", "not measured", "not measured", "not measured"]);
}

#[test]
fn chart_is_a_standalone_svg() {
    let chart = chart(&results()).unwrap().unwrap();
    assert!(chart.starts_with("<svg") && chart.contains("xmlns=") && chart.ends_with("</svg>\n"), "{chart}");
    assert!(chart.contains("<title id=\"chart-t\">"));
}

#[test]
fn csv_has_a_row_for_each_measurement_and_for_each_cell() {
    let mut odd = results();
    odd.measurements[1].outcome = Outcome::Failed { why: "a, \"b\"".into() };
    let files = csv(&odd);
    assert_eq!(files.measurements.lines().count(), 1 + odd.measurements.len());
    assert!(files.measurements.starts_with("workload,system,reliability,size,round,turn,at,outcome,why,disturbed"));
    assert!(files.measurements.contains("failed,\"a, \"\"b\"\"\",false"), "{}", files.measurements);
    assert_eq!(files.percentiles.lines().count(), 1 + 18);
    let first: Vec<&str> = files.percentiles.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(first.last(), Some(&""), "no p99.9999 of 4,000 samples");
}

#[test]
fn json_has_values_with_rounds_and_intervals() {
    let text = json(&results()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cells = value["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 21);
    assert_eq!(cells[0]["cell"], "rtt/one/reliability=reliable,size=16");
    assert_eq!(cells[0]["statistics"]["mean_us"]["rounds"].as_array().unwrap().len(), 3);
    assert!(cells[0]["statistics"]["mean_us"]["interval"]["low"].is_number());
    assert!(cells[0]["statistics"].get("p99.9999_us").is_none());
}

#[test]
fn sample_has_each_form() {
    let campaign = results().header.campaign;
    let forms: Vec<Form> = campaign.workloads.iter().flat_map(|one| one.figures.iter().map(|one| one.form)).collect();
    let all = [
        Form::Lines,
        Form::Bars,
        Form::Series,
        Form::Histogram,
        Form::Ecdf,
        Form::HeatMap,
        Form::Gains,
        Form::Statistics,
        Form::TTest,
        Form::Percentiles,
        Form::Table,
    ];
    assert!(all.iter().all(|form| forms.contains(form)));
}
