//! Terminal display of the second part: one line per pair, with a strip of latencies and losses.

use std::io::{IsTerminal, Write, stdout};

use takt_bench::sdn_overload::series::Arrival;

/// Time in nanoseconds that one mark of a strip represents.
const STEP_NS: u64 = 500_000_000;
/// Upper latency bound of each mark but the last, in steps of a factor of about 3.
const MARKS: [(i64, char); 7] = [
    (300_000, '▁'),
    (1_000_000, '▂'),
    (3_000_000, '▃'),
    (10_000_000, '▄'),
    (30_000_000, '▅'),
    (100_000_000, '▆'),
    (i64::MAX, '█'),
];
/// Mark of a step with lost samples.
const LOST: char = '×';

/// State of a pair at a point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    name: String,
    received: u64,
    lost: u64,
    worst_ns: i64,
    strip: String,
}

impl Row {
    /// Evaluates the arrivals of the first `due` samples.
    pub fn new(name: &str, arrivals: &[Arrival], due: u64, period_ns: u64) -> Self {
        let per_step = STEP_NS / period_ns;
        let steps = usize::try_from(due.div_ceil(per_step)).unwrap_or(0);
        let mut worst = vec![0_i64; steps];
        let mut counts = vec![0_u64; steps];
        let of_due: Vec<&Arrival> = arrivals.iter().filter(|arrival| arrival.0 < due).collect();
        for Arrival(number, written, at) in &of_due {
            // The index is in range, since the number is below `due`.
            let step = (number / per_step) as usize;
            worst[step] = worst[step].max(at - written);
            counts[step] += 1;
        }
        let expected = |step: usize| per_step.min(due.saturating_sub(step as u64 * per_step));
        let mark = |step: usize| match counts[step] < expected(step) {
            true => LOST,
            false => MARKS.iter().find(|(most, _)| worst[step] <= *most).map_or('█', |(_, mark)| *mark),
        };
        let received = of_due.len() as u64;
        Self {
            name: name.to_owned(),
            received,
            lost: due.saturating_sub(received),
            worst_ns: worst.iter().copied().max().unwrap_or(0),
            strip: (0..steps).map(mark).collect(),
        }
    }
}

/// Returns the legend of a strip.
pub fn key() -> String {
    format!(
        "one mark each {} s: {LOST} samples lost, {} at most 0.3 ms late, {} at most 10 ms, {} more than 100 ms",
        STEP_NS as f64 / 1e9,
        MARKS[0].1,
        MARKS[3].1,
        MARKS[6].1
    )
}

/// A table that is overwritten on a terminal. Elsewhere only its last state is written.
#[derive(Debug, Default)]
pub struct Screen {
    lines: usize,
}

impl Screen {
    /// Draws the state.
    pub fn draw(&mut self, rows: &[Row], is_last: bool) {
        let is_terminal = stdout().is_terminal();
        if !is_terminal && !is_last {
            return;
        }
        let mut text = String::new();
        if is_terminal && self.lines > 0 {
            text.push_str(&format!("\x1b[{}A", self.lines));
        }
        let erase = if is_terminal { "\x1b[K" } else { "" };
        text.push_str(&format!("  {:<14} {:>8} {:>6} {:>9}{erase}\n", "pair", "received", "lost", "worst"));
        for Row { name, received, lost, worst_ns, strip } in rows {
            let worst = format!("{:.1} ms", *worst_ns as f64 / 1e6);
            text.push_str(&format!("  {name:<14} {received:>8} {lost:>6} {worst:>9}  {strip}{erase}\n"));
        }
        self.lines = rows.len() + 1;
        print!("{text}");
        // A terminal that was closed needs no text.
        drop(stdout().flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 5_000_000;

    #[test]
    fn strip_marks_losses_and_latencies_of_each_step() {
        // 100 samples per step: all of the first are fast, one of the second is late, one of the
        // third is missing.
        let late = |number: u64| if number == 150 { 146_000_000 } else { 200_000 };
        let arrivals: Vec<_> = (0..300).filter(|number| *number != 250).map(|n| Arrival(n, 0, late(n))).collect();
        let row = Row::new("one", &arrivals, 300, PERIOD_NS);
        assert_eq!((row.strip.as_str(), row.received, row.lost, row.worst_ns), ("▁█×", 299, 1, 146_000_000));
        // Samples that are not due are ignored.
        let row = Row::new("one", &arrivals, 120, PERIOD_NS);
        assert_eq!((row.strip.as_str(), row.received, row.lost), ("▁▁", 120, 0));
    }
}
