//! Kernel counters of a core over time: steal time, interrupt time, and the number of interrupts.

use std::fs;

use serde::Serialize;

use crate::machine::monotonic_ns;

/// Counters of one core, since boot or over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CoreCounters {
    /// Time for which another guest of the host had the core: `steal` of /proc/stat, in units of
    /// ticks.
    pub stolen_ns: u64,
    /// Time in hardware and soft interrupts: `irq` and `softirq` of /proc/stat, in units of ticks.
    pub interrupts_ns: u64,
    /// Number of hardware interrupts: /proc/interrupts.
    pub interrupts: u64,
    /// Number of soft interrupts: /proc/softirqs.
    pub soft_interrupts: u64,
}

impl CoreCounters {
    /// Reads the counters of a core since boot; 0 where the kernel provides none.
    pub fn of(cpu: usize) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let [irq, softirq, steal] = times(&read("/proc/stat"), cpu);
        Self {
            stolen_ns: steal,
            interrupts_ns: irq + softirq,
            interrupts: sum_of_column(&read("/proc/interrupts"), cpu),
            soft_interrupts: sum_of_column(&read("/proc/softirqs"), cpu),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            stolen_ns: self.stolen_ns.saturating_sub(before.stolen_ns),
            interrupts_ns: self.interrupts_ns.saturating_sub(before.interrupts_ns),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            soft_interrupts: self.soft_interrupts.saturating_sub(before.soft_interrupts),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            stolen_ns: self.stolen_ns + other.stolen_ns,
            interrupts_ns: self.interrupts_ns + other.interrupts_ns,
            interrupts: self.interrupts + other.interrupts,
            soft_interrupts: self.soft_interrupts + other.soft_interrupts,
        }
    }
}

/// Returns irq, softirq and steal of a core in nanoseconds.
fn times(stat: &str, cpu: usize) -> [u64; 3] {
    // SAFETY: takes no pointer.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1).unsigned_abs();
    let name = format!("cpu{cpu}");
    let mut lines = stat.lines().map(str::split_whitespace);
    let words = lines.find_map(|mut words| (words.next() == Some(name.as_str())).then_some(words));
    let ticks: Vec<u64> = words.into_iter().flatten().map(|word| word.parse().unwrap_or(0)).collect();
    [5, 6, 7].map(|place| ticks.get(place).copied().unwrap_or(0) * (1_000_000_000 / ticks_per_second))
}

/// Returns the sum of a core's column in a table whose first line names the cores.
fn sum_of_column(table: &str, cpu: usize) -> u64 {
    let mut lines = table.lines();
    let name = format!("CPU{cpu}");
    let Some(column) = lines.next().and_then(|heads| heads.split_whitespace().position(|head| head == name)) else {
        return 0;
    };
    let count = |line: &str| line.split_whitespace().nth(column + 1).and_then(|count| count.parse::<u64>().ok()); // tidy-allow(dropped-cause): lines without counts.
    lines.filter_map(count).sum()
}

/// Periodic observation of a core's counters.
pub struct CoreObserver {
    cpu: usize,
    last: CoreCounters,
    last_ns: u64,
    /// Start, end and counters of each interval.
    samples: Vec<(u64, u64, CoreCounters)>,
}

impl CoreObserver {
    /// Starts the observation of a core.
    pub fn begin(cpu: usize) -> Self {
        Self { cpu, last: CoreCounters::of(cpu), last_ns: monotonic_ns(), samples: Vec::new() }
    }

    /// Records the counters since the last sample.
    pub fn sample(&mut self) {
        let (now, now_ns) = (CoreCounters::of(self.cpu), monotonic_ns());
        self.samples.push((self.last_ns, now_ns, now.since(self.last)));
        (self.last, self.last_ns) = (now, now_ns);
    }

    /// Returns the counters from the sample before `from_ns` to the sample after `to_ns`.
    pub fn overlapping(&self, from_ns: u64, to_ns: u64) -> CoreCounters {
        let overlaps = |(from, to, _): &&(u64, u64, CoreCounters)| *from <= to_ns && from_ns <= *to;
        self.samples.iter().filter(overlaps).fold(CoreCounters::default(), |sum, (_, _, counted)| sum.plus(*counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_counters_are_read_from_the_column_of_the_core() {
        let stat = "cpu  1 2 3 4 5 6 7 8 9\ncpu0 1 2 3 4 5 6 7 21 0\ncpu1 1 2 3 4 5 8 9 34 0\n";
        assert_eq!(times(stat, 1).map(|ns| ns / times(stat, 0)[0].div_ceil(6)), [8, 9, 34]);
        assert_eq!(times(stat, 7), [0; 3]);
        let table =
            "            CPU0       CPU1\n  24:          1          3  IO-APIC\n NMI:   5   7  text\n ERR:  9\n";
        assert_eq!([0, 1, 2].map(|cpu| sum_of_column(table, cpu)), [1 + 5 + 9, 3 + 7, 0]);
    }

    #[test]
    fn counters_of_all_intervals_that_overlap_are_added() {
        let counted = |interrupts| CoreCounters { interrupts, ..CoreCounters::default() };
        let samples = vec![(0, 10, counted(1)), (10, 20, counted(2)), (20, 30, counted(4))];
        let observer = CoreObserver { cpu: 0, last: CoreCounters::default(), last_ns: 30, samples };
        assert_eq!(
            [(3, 4), (5, 15), (21, 99), (40, 50)].map(|(from, to)| observer.overlapping(from, to).interrupts),
            [1, 3, 4, 0]
        );
    }
}
