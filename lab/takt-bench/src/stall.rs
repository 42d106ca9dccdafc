//! Processor stalls: times in which a processor does not run a thread of the highest priority,
//! because of a hypervisor, interrupts or the kernel.
//!
//! On each processor, a thread of the highest real-time priority wakes up each 500 us. Its lateness
//! is the stall; a stall counts from the thread's last reading of the clock.

use crate::machine::{available_cpus, bind_to_cpu, set_fifo};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// SCHED_FIFO priority above all other threads.
const FIFO: u8 = 99;
/// Interval between two readings of the clock.
const STEP: Duration = Duration::from_micros(500);
/// Minimum lateness of a wake-up that counts as a stall.
const STALL_NS_MIN: i64 = 100_000;

/// Interval in which a processor ran no thread of this system; ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Latest possible beginning.
    pub from_ns: i64,
    /// End.
    pub to_ns: i64,
}

/// Observation of all processors until it is dropped.
#[derive(Debug)]
pub struct StallObserver {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Stall>>>,
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

impl StallObserver {
    /// Starts the observation. Without the right to real-time priorities it records the waits of
    /// ordinary threads.
    #[must_use]
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let observe = |cpu: usize| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || observe_processor(cpu, &is_over))
        };
        Self { threads: (0..available_cpus()).map(observe).collect(), is_over }
    }

    /// Stops the observation and returns the stalls of all processors.
    #[must_use]
    pub fn stop(mut self) -> Vec<Stall> {
        self.is_over.store(true, Ordering::Relaxed);
        // The panic of a thread has been printed already.
        self.threads.drain(..).filter_map(|thread| thread.join().ok()).flatten().collect() // tidy-allow(dropped-cause): see above
    }
}

impl Drop for StallObserver {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn observe_processor(cpu: usize, is_over: &AtomicBool) -> Vec<Stall> {
    // If either call fails, stalls are longer than those of a bound real-time thread.
    drop(bind_to_cpu(cpu));
    drop(set_fifo(FIFO));
    let step_ns = i64::try_from(STEP.as_nanos()).unwrap_or(i64::MAX);
    let mut stalls = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let due_ns = now_ns() + step_ns;
        std::thread::sleep(STEP);
        let to_ns = now_ns();
        if to_ns - due_ns >= STALL_NS_MIN {
            // The stall began after the last reading of the clock, so perhaps before the wake-up
            // was due.
            stalls.push(Stall { from_ns: due_ns - step_ns, to_ns });
        }
    }
    stalls
}

/// Returns the stalled time between two times, ns, summed over all processors.
#[must_use]
pub fn stalled_ns(stalls: &[Stall], from_ns: i64, to_ns: i64) -> u64 {
    let within = |stall: &Stall| stall.to_ns.min(to_ns) - stall.from_ns.max(from_ns);
    stalls.iter().filter_map(|stall| u64::try_from(within(stall)).ok()).sum() // tidy-allow(dropped-cause): it is elsewhere
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_of_a_stall_within_the_interval_counts() {
        let stalls = [(100, 200), (150, 400), (900, 950)].map(|(from_ns, to_ns)| Stall { from_ns, to_ns });
        assert_eq!(stalled_ns(&stalls, 180, 300), 20 + 120);
        assert_eq!(stalled_ns(&stalls, 400, 900), 0);
        assert_eq!(stalled_ns(&stalls, 0, 1000), 100 + 250 + 50);
    }

    #[test]
    fn observer_covers_each_processor_and_ends() {
        let observer = StallObserver::start();
        assert_eq!(observer.threads.len(), available_cpus());
        let end = now_ns() + 20_000_000;
        while now_ns() < end {
            std::thread::yield_now();
        }
        let stalls = observer.stop();
        assert!(stalls.iter().all(|stall| stall.to_ns - stall.from_ns >= STALL_NS_MIN), "{stalls:?}");
    }
}
