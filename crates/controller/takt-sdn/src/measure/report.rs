//! Model file of a measurement: each value with its range, or marked as assumed.

use std::fmt::Write;

use super::classes::{Class, Depths, Order, Range};
use super::forwarding::Cell;
use super::tables::{Count, Source};
use super::{LONG, METERED, Measured, SHORT, Settings};

/// Threshold in percent: if the depths for both frame lengths differ by less, the depth is a limit
/// in frames.
const ALIKE: u32 = 120;
/// Unit in ns to which the forwarding time is rounded up.
const ROUND_NS: u64 = 1000;

/// Returns the text of the file, which [`SwitchModel::parse`](crate::model::SwitchModel::parse)
/// reads.
pub fn model_text(measured: &Measured, settings: &Settings) -> String {
    let mut text = String::new();
    head(&mut text, measured, settings);
    limiter(&mut text, measured, settings);
    tables(&mut text, measured);
    for class in measured.classes.iter().filter(|class| !class.is_control) {
        queue(&mut text, "[[queue]]", class, settings);
    }
    for class in measured.classes.iter().filter(|class| class.is_control) {
        queue(&mut text, "[control]", class, settings);
    }
    text
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a String cannot fail");
    text.push('\n');
}

fn head(text: &mut String, measured: &Measured, settings: &Settings) {
    let [ingress, egress] = measured.ports;
    line(
        text,
        format_args!(
            "# Measured by takt sdn measure at switch {:016x}, from port {ingress} to port {egress}.",
            measured.datapath_id
        ),
    );
    line(text, format_args!("# The egress forwards {} bit/s with preamble, FCS and gap.", grouped(measured.rate_bps)));
    line(text, format_args!("name = {:?}", settings.name));
    let strict = measured.order.iter().filter(|order| order.is_strict()).count();
    let words =
        format!("{strict} of {} pairs of neighboring queues are served by strict priority", measured.order.len());
    line(text, format_args!("# Measured: {words}."));
    for Order { urgent_lost, other_lost } in &measured.order {
        let (urgent, other) = (100.0 * urgent_lost, 100.0 * other_lost);
        line(text, format_args!("#   at 95 % and 50 % of the egress {urgent:.1} % and {other:.1} % were lost"));
    }
    line(text, format_args!("scheduling = \"strict-priority\""));
    line(text, format_args!("# Measured, in ns. The minimum is not a lower bound: 0 is assumed."));
    for Cell { len, load, spread } in &measured.forwarding {
        let under =
            load.map_or("at rest".to_owned(), |(len, fps)| format!("under {fps} frames of {len} octets a second"));
        let [min, p50, p999, max] = [spread.min, spread.p50, spread.p999, spread.max].map(grouped);
        let (count, lost) = (spread.count, spread.lost);
        line(
            text,
            format_args!(
                "#   {len} octets {under}: min {min}, median {p50}, p99.9 {p999}, max {max} of {count}, {lost} lost"
            ),
        );
    }
    let most = |figure: fn(&Cell) -> u64| measured.forwarding.iter().map(figure).max().unwrap_or(0);
    let most = if settings.is_percentile { most(|cell| cell.spread.p999) } else { most(|cell| cell.spread.max) };
    let statistic = if settings.is_percentile { "99.9th percentile" } else { "maximum" };
    line(text, format_args!("# max is the greatest {statistic}."));
    let most = grouped(most.div_ceil(ROUND_NS) * ROUND_NS);
    line(text, format_args!("forwarding_ns = {{ min = 0, max = {most} }}"));
    line(text, format_args!("# Assumed: frames of this length pass; longer ones were not sent."));
    line(text, format_args!("foreign_frame_len = {}", settings.candidates.foreign_frame_len.max(LONG as u64)));
}

fn limiter(text: &mut String, measured: &Measured, settings: &Settings) {
    let Some(limiter) = &measured.meter else {
        line(text, format_args!("# Assumed: the switch accepts no meter."));
        line(text, format_args!("rate_limiter_ppm = {}", settings.candidates.rate_limiter_ppm));
        line(text, format_args!("rate_limiter_step_ns = {}", settings.candidates.rate_limiter_step_ns));
        return;
    };
    let super::meter::Limiter { rate_kbps, burst_kbit, mean_ppm, worst_ppm, step_ns, runs: [median, long], first_kbit } =
        limiter;
    line(
        text,
        format_args!(
            "# Measured: a meter of {rate_kbps} kbit/s passed {mean_ppm:+.0} ppm in 4.5 s, at worst {worst_ppm:+.0} ppm in 1 s beyond a step."
        ),
    );
    line(text, format_args!("# Before its first drop it passed {first_kbit} kbit of a burst of {burst_kbit} kbit."));
    // A difference of one frame per second is within the resolution. The file format allows at most
    // 1,000,000 ppm.
    let resolution = METERED as f64 * 8.0 / (f64::from(*rate_kbps) * 1000.0) * 1e6;
    let ppm = worst_ppm.max(*mean_ppm).clamp(resolution.min(1e6), 1e6).ceil() as u64;
    line(text, format_args!("# A frame in a second is {resolution:.0} ppm, the least that is written."));
    line(text, format_args!("rate_limiter_ppm = {}", grouped(ppm)));
    line(
        text,
        format_args!("# Measured: {median} frames of {METERED} octets pass in a row, {long} at the 99th percentile."),
    );
    line(text, format_args!("rate_limiter_step_ns = {}", grouped(*step_ns)));
}

fn tables(text: &mut String, measured: &Measured) {
    let capacities = &measured.tables;
    line(text, format_args!("\n[tables]"));
    for (key, Count { count, source }) in
        [("flow_entries", capacities.flow_entries), ("groups", capacities.groups), ("meters", capacities.meters)]
    {
        let how = match source {
            Source::Reported => "reported by the switch",
            Source::Refused => "measured: it refuses a further one",
            Source::Cap => "measured: so many were added, and none was refused",
        };
        line(text, format_args!("{key} = {} # {how}", grouped(count.into())));
    }
}

fn queue(text: &mut String, table: &str, class: &Class, settings: &Settings) {
    line(text, format_args!("\n{table}"));
    line(text, format_args!("# Measured: SET_QUEUE {}, DSCP {}.", class.by_set_queue, class.by_dscp));
    if let Some(number) = class.selection.set_queue {
        line(text, format_args!("set_queue = {number}"));
    }
    if let Some(dscp) = class.selection.dscp {
        line(text, format_args!("dscp = {dscp}"));
    }
    let Some(Depths { long, short }) = class.depths else {
        line(text, format_args!("# Assumed."));
        return line(text, format_args!("frames = {}", settings.candidates.queues[0].depth.frames.clamp(1, 1_000_000)));
    };
    let words = |range: Range| {
        let more = if range.is_at_least { ", none was lost" } else { "" };
        format!("{} to {} (lower quartile {}){more}", range.min, range.max, range.lower_quartile)
    };
    line(text, format_args!("# Measured: {} frames of {LONG} octets, {} of {SHORT}.", words(long), words(short)));
    if u64::from(short.lower_quartile) * 100 <= u64::from(long.lower_quartile) * u64::from(ALIKE) {
        return line(
            text,
            format_args!("frames = {}", grouped(long.lower_quartile.min(short.lower_quartile).max(1).into())),
        );
    }
    line(text, format_args!("octets = {}", grouped((u64::from(long.lower_quartile) * LONG as u64).max(1))));
    line(text, format_args!("frames = {}", grouped(short.lower_quartile.max(1).into())));
}

/// Formats a number with an underscore between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::classes::Effect;
    use super::super::forwarding::Spread;
    use super::super::meter::Limiter;
    use super::super::tables::Capacities;
    use super::*;
    use crate::model::{QueueSelection, SwitchModel};

    fn measured() -> (Measured, Settings) {
        let candidates = SwitchModel::built_in("generic-hardware").unwrap_or_else(|error| panic!("{error}"));
        let settings = Settings {
            name: "seen".to_owned(),
            candidates,
            samples: 10,
            load_fps: 5000,
            rate_bps: None,
            cable_bps: None,
            is_percentile: true,
            meter_kbps: None,
            table_cap: 10,
        };
        let spread = Spread { count: 10, lost: 0, min: 31_000, p50: 40_000, p999: 81_001, max: 912_345 };
        let range = |quartile, max| Range { min: 1, lower_quartile: quartile, max, is_at_least: false };
        let class = |dscp, long, short, is_control| Class {
            selection: QueueSelection { set_queue: None, dscp: Some(dscp) },
            by_set_queue: Effect::None,
            by_dscp: Effect::First,
            is_control,
            depths: Some(Depths { long: range(long, long + 1), short: range(short, short + 2) }),
        };
        let count = |count, source| Count { count, source };
        let measured = Measured {
            datapath_id: 7,
            ports: [1, 2],
            rate_bps: 20_000_000,
            forwarding: vec![Cell { len: 60, load: Some((1514, 5000)), spread }],
            classes: vec![class(46, 99, 100, false), class(34, 40, 240, false), class(48, 98, 98, true)],
            order: vec![Order { urgent_lost: 0.0, other_lost: 0.8 }, Order { urgent_lost: 0.3, other_lost: 0.3 }],
            meter: Some(Limiter {
                rate_kbps: 10_000,
                burst_kbit: 100,
                mean_ppm: -120.0,
                worst_ppm: 1_234.2,
                step_ns: 1_000_000,
                runs: [5, 6],
                first_kbit: 150,
            }),
            tables: Capacities {
                flow_entries: count(1_000_000, Source::Reported),
                groups: count(256, Source::Refused),
                meters: count(10, Source::Cap),
            },
        };
        (measured, settings)
    }

    #[test]
    fn measurement_file_parses_as_a_model_with_its_values() {
        let (measured, settings) = measured();
        let text = model_text(&measured, &settings);
        let model = SwitchModel::parse("seen.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((model.name.as_str(), model.forwarding_ns_min, model.forwarding_ns), ("seen", 0, 82_000));
        assert_eq!((model.rate_limiter_ppm, model.rate_limiter_step_ns), (1235, 1_000_000));
        assert_eq!((model.tables.flow_entries, model.tables.groups, model.tables.meters), (1_000_000, 256, 10));
        let depths: Vec<_> = model.queues.iter().map(|queue| (queue.depth.octets, queue.depth.frames)).collect();
        // The lower quartile is used; the second queue has its limit in octets.
        assert_eq!(depths, [(u64::MAX, 99), (40 * 1514, 240)]);
        assert_eq!(model.control.map(|queue| (queue.selection.dscp, queue.depth.frames)), Some((Some(48), 98)));
        assert!(
            text.contains("1 of 2 pairs of neighboring queues") && text.contains("SET_QUEUE has no effect"),
            "{text}"
        );
    }

    #[test]
    fn values_that_cannot_be_measured_are_marked_as_assumed() {
        let (mut measured, mut settings) = measured();
        measured.meter = None;
        measured.classes[0].depths = None;
        settings.is_percentile = false;
        let text = model_text(&measured, &settings);
        let model = SwitchModel::parse("seen.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((model.rate_limiter_ppm, model.forwarding_ns), (20_000, 913_000));
        assert!(
            text.contains("# Assumed: the switch accepts no meter") && text.matches("# Assumed").count() == 3,
            "{text}"
        );
    }
}
