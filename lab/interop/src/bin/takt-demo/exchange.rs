//! First part of the demo: data exchange with CycloneDDS on the loopback interface. A Takt
//! publisher sends to a CycloneDDS and a Takt subscriber, and a CycloneDDS publisher sends to Takt.
//! Every received sample is compared with the written one.

use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

use takt_interop::Result;
use takt_interop::network::Host;
use takt_interop::peer::{Batch, Endpoint, Kind, Options, Peer};
use takt_interop::programs::Program;

use crate::pair::Pair;

/// Duration in seconds.
const SECONDS: u64 = 3;
/// Samples per second of each publisher.
const RATE: u64 = 1000;
/// Payload of a sample in bytes.
pub const SIZE: usize = 256;
/// Maximum time between the write and the arrival of the last sample.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Polling interval of the received events.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// First sequence number of the warm-up samples, which are not evaluated.
pub const WARM_UP: u64 = 1 << 32;
/// Maximum number of warm-up samples. If samples still do not arrive, the evaluation shows the
/// error.
const WARM_UP_ATTEMPTS: u64 = 20;
/// Topics of the publisher on the left and of the publisher on the right.
const TOPICS: [&str; 2] = ["Forth", "Back"];

/// Runs this part and reports whether every sample of every pair arrived.
pub fn run() -> Result<bool> {
    let mut programs = Programs::start(&Host::loopback())?;
    let count = SECONDS * RATE;
    println!("{SECONDS} s of {RATE} samples/s of {SIZE} bytes from each publisher, reliable, every sample kept\n");
    let mut pairs = programs.run_exchange(count)?;
    print_table(&mut pairs, count);
    Ok(pairs.iter().all(|pair| pair.is_complete(count)))
}

/// The peer programs of this part.
struct Programs {
    takt_left: Peer,
    takt_right: Peer,
    cyclone: Peer,
}

impl Programs {
    fn start(host: &Host) -> Result<Self> {
        let start = |program, what: &str| {
            println!("  {:<16} {what}", Program::name(program));
            Peer::start(program, host, Options::default())
        };
        let started = Instant::now();
        let [forth, back] = TOPICS.map(|topic| Endpoint::new(topic, topic, Kind::Key));
        let mut takt_left = start(Program::Takt, "publishes Forth, subscribes to Back")?;
        let mut takt_right = start(Program::Takt, "subscribes to Forth")?;
        let mut cyclone = start(Program::Cyclone11, "subscribes to Forth, publishes Back")?;
        takt_left.writer(&forth)?;
        takt_left.reader(&back)?;
        takt_right.reader(&forth)?;
        cyclone.reader(&forth)?;
        cyclone.writer(&back)?;
        print!("waiting until they have found each other");
        flush();
        takt_left.matched("Forth", 2)?;
        takt_left.matched("Back", 1)?;
        takt_right.matched("Forth", 1)?;
        cyclone.matched("Forth", 1)?;
        cyclone.matched("Back", 1)?;
        println!(": {} ms since the first program was started", started.elapsed().as_millis());
        let mut programs = Self { takt_left, takt_right, cyclone };
        programs.warm_up()?;
        Ok(programs)
    }

    /// INTEROP(CycloneDDS 11.0.1): reports a match shortly before it delivers samples to the
    /// application. Each publisher therefore writes until all subscribers have received a sample.
    fn warm_up(&mut self) -> Result<()> {
        let mut is_waiting = [true; 3];
        for attempt in 0..WARM_UP_ATTEMPTS {
            let batch = Batch { first: WARM_UP + attempt, ..Batch::new(1, SIZE) };
            self.takt_left.write("Forth", &batch)?;
            self.cyclone.write("Back", &batch)?;
            let listeners =
                [(&mut self.cyclone, "Forth"), (&mut self.takt_right, "Forth"), (&mut self.takt_left, "Back")];
            for (is_waiting, (subscriber, topic)) in is_waiting.iter_mut().zip(listeners) {
                *is_waiting &= subscriber.sample_within(topic, POLL_INTERVAL).is_err();
            }
            if is_waiting == [false; 3] {
                break;
            }
        }
        Ok(())
    }

    /// Makes both publishers write, and evaluates the samples that arrive.
    fn run_exchange(&mut self, count: u64) -> Result<Vec<Pair>> {
        let mut pairs =
            vec![Pair::new("Takt -> CycloneDDS"), Pair::new("Takt -> Takt"), Pair::new("CycloneDDS -> Takt")];
        let batch = Batch { period_us: 1_000_000 / RATE, ..Batch::new(count, SIZE) };
        self.takt_left.write("Forth", &batch)?;
        self.cyclone.write("Back", &batch)?;
        let deadline = Instant::now() + Duration::from_micros(count * batch.period_us) + TIMEOUT;
        loop {
            pairs[0].take(self.cyclone.pending("Forth"));
            pairs[1].take(self.takt_right.pending("Forth"));
            pairs[2].take(self.takt_left.pending("Back"));
            let finished = pairs.iter().all(|pair| pair.received() >= count) || Instant::now() >= deadline;
            print_progress(&pairs, count, finished);
            if finished {
                return Ok(pairs);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

fn flush() {
    // A terminal that was closed needs no text.
    drop(stdout().flush());
}

/// Prints the progress: one line that is overwritten on a terminal, and only the last one
/// elsewhere.
fn print_progress(pairs: &[Pair], count: u64, last: bool) {
    let terminal = stdout().is_terminal();
    if !terminal && !last {
        return;
    }
    let shares = pairs.iter().map(|pair| format!("{} {:>3} %", pair.name, pair.received() * 100 / count));
    let line = shares.collect::<Vec<_>>().join("   ");
    print!("{}{line}{}", if terminal { "\r" } else { "" }, if last { "\n\n" } else { "" });
    flush();
}

fn print_table(pairs: &mut [Pair], count: u64) {
    println!(
        "{:<20} {:>7} {:>8} {:>5} {:>7} | {:>7} {:>7} {:>7} {:>7}",
        "pair", "written", "received", "lost", "wrong", "min us", "p50 us", "p99 us", "max us"
    );
    for pair in pairs {
        let [min, p50, p99, max] = pair.latencies_us();
        println!(
            "{:<20} {count:>7} {:>8} {:>5} {:>7} | {min:>7} {p50:>7} {p99:>7} {max:>7}",
            pair.name,
            pair.received(),
            count.saturating_sub(pair.received()),
            pair.wrong
        );
    }
    println!("latency: from write to take; wrong: repeated, out of order, or not the bytes that were written");
}
