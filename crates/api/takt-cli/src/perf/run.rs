//! `takt perf ping|pong|pub|sub`: one workload in this process, and its report.

use super::options::Run;
use crate::output::{note, outln};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use takt::status::LatencyExceededStatus;
use takt_bench::clock::{EchoServer, RemoteClock};
use takt_bench::link::{Idle, Link, Matched};
use takt_bench::machine::{Usage, monotonic_ns};
use takt_bench::report::{Configuration, Figures, Measured, Report};
use takt_bench::sequence::Counts;
use takt_bench::spec::Runtime;
use takt_bench::stats::Summary;
use takt_bench::workload::ping::{self, Ping};
use takt_bench::workload::subscribe::{self, SenderClock, Subscription};
use takt_bench::workload::{
    TOPIC_DATA, TOPIC_PING, TOPIC_PONG, Window, pong as ponging, publish as publishing, settle, wait_matched,
};
use takt_bench::{Error, Result};

/// Maximum time until the wanted endpoints match.
const MATCH_LIMIT: Duration = Duration::from_secs(30);
/// Time between two checks of the match.
const MATCH_STEP: Duration = Duration::from_millis(1);
/// Pause between the match and the first sample, since the remote side may match a little later.
const SETTLE: Duration = Duration::from_millis(300);
/// Time for retransmissions after the end of a stream.
const LINGER: Duration = Duration::from_millis(500);

/// Measures round trips.
pub fn ping(options: &Run) -> Result<()> {
    refuse_clocks(options.answer_clock.or(options.clock).is_some())?;
    let configuration = options.configuration("ping")?;
    let mut link = open(&configuration, Some(TOPIC_PING), Some(TOPIC_PONG))?;
    let mut ping = Ping::new(&mut *link, configuration.link.wants_listener())?;
    let wanted = Matched { readers: 1, writers: 1 };
    wait(ping.link(), wanted, "takt perf pong")?;
    let mut outcome = ping.run(ping::Plan {
        size: configuration.size.unwrap_or_default(),
        warmup: configuration.warmup,
        count: configuration.samples.unwrap_or_default(),
        period: configuration.rate_hz.map(|hz| Duration::from_secs_f64(1.0 / hz)),
        pauses: false,
        short_reply: false,
    })?;
    let received = outcome.latencies_ns.len() as u64;
    let size = configuration.size.unwrap_or_default() as u64;
    // Wall and CPU time include the warm-up. The rates include it as well, otherwise they would be
    // too low.
    let moved = received + configuration.warmup;
    let figures = Figures {
        measured: Measured::RoundTrip,
        latency: Summary::of(&mut outcome.latencies_ns),
        clock: None,
        samples: outcome.counts,
        refused: 0,
        moved: (moved, moved * size),
        wall_seconds: outcome.wall_seconds,
        usage: outcome.usage,
    };
    print(options, &*link, configuration, figures)
}

/// Answers round trips.
pub fn pong(options: &Run) -> Result<()> {
    refuse_clocks(options.answer_clock.or(options.clock).is_some())?;
    let configuration = options.configuration("pong")?;
    let mut link = open(&configuration, Some(TOPIC_PONG), Some(TOPIC_PING))?;
    let last = configuration.samples.map(|samples| samples + configuration.warmup);
    let (usage, started_ns) = (Usage::now(), monotonic_ns());
    let is_over = &mut |o: &ponging::Outcome| last.is_some_and(|last| o.echoed >= last);
    let outcome = ponging::run(&mut *link, configuration.link.wants_listener(), false, is_over)?;
    let figures = Figures {
        measured: Measured::Nothing,
        latency: None,
        clock: None,
        samples: Counts { sent: outcome.echoed, received: outcome.echoed + outcome.refused, ..Counts::default() },
        refused: outcome.refused,
        moved: (outcome.echoed, 0),
        wall_seconds: (monotonic_ns() - started_ns) as f64 * 1e-9,
        usage: Usage::now().since(&usage),
    };
    // The last answers may have to be retransmitted.
    settle(&mut *link, LINGER)?;
    print(options, &*link, configuration, figures)
}

/// Publishes a stream.
pub fn publish(options: &Run) -> Result<()> {
    refuse_clocks(options.clock.is_some())?;
    let configuration = options.configuration("pub")?;
    let _server = options.answer_clock.map(|address| EchoServer::start(address, monotonic_ns)).transpose()?;
    let mut link = open(&configuration, Some(TOPIC_DATA), None)?;
    let wanted = Matched { readers: options.readers, writers: 0 };
    wait(&mut *link, wanted, "takt perf sub")?;
    let plan = publishing::Plan {
        size: configuration.size.unwrap_or_default(),
        batch: configuration.link.batch,
        rate_hz: configuration.rate_hz,
        window: window(&configuration),
        tail: Duration::ZERO,
        retry_refused: configuration.link.reliable,
        is_planned: false,
    };
    let outcome = publishing::run(&mut *link, &plan)?;
    publishing::finish(&mut *link, plan.size, LINGER)?;
    let figures = Figures {
        measured: Measured::Nothing,
        latency: None,
        clock: None,
        samples: Counts { sent: outcome.written, ..Counts::default() },
        refused: outcome.refused,
        moved: (outcome.written, outcome.written * plan.size as u64),
        wall_seconds: outcome.wall_seconds,
        usage: outcome.usage,
    };
    print(options, &*link, configuration, figures)
}

/// Receives a stream and reports loss and latency.
pub fn subscribe(options: &Run) -> Result<()> {
    refuse_clocks(options.answer_clock.is_some())?;
    let configuration = options.configuration("sub")?;
    let clock = options.clock.map(RemoteClock::of).transpose()?.map(Arc::new);
    let mut link = open(&configuration, None, Some(TOPIC_DATA))?;
    let plan = subscribe::Plan { window: window(&configuration), ..subscribe::Plan::default() };
    let listen = configuration.link.wants_listener();
    let sender_clock = clock.clone().map(|clock| -> SenderClock { Box::new(move |now_ns| clock.offset(now_ns)) });
    let outcome = Subscription::new(&mut *link, plan, listen, sender_clock)?.run()?;
    let uncertainty =
        clock.zip(outcome.uncertainty_ns).map(|(clock, uncertainty_ns)| clock.uncertainty(uncertainty_ns));
    if uncertainty.as_ref().is_some_and(|uncertainty| uncertainty.restarts > 0) {
        note!(
            "a clock was stepped during the measurement, or drifts by more than 100 ppm: the latencies are not valid"
        );
    }
    let figures = Figures {
        measured: Measured::OneWay,
        latency: outcome.latency,
        clock: uncertainty,
        samples: outcome.counts,
        refused: 0,
        moved: (outcome.arrivals, outcome.bytes),
        wall_seconds: outcome.wall_seconds,
        usage: outcome.usage,
    };
    print(options, &*link, configuration, figures)
}

/// Refuses `--clock` and `--answer-clock` where they make no sense. Round trips use one clock, and
/// only the receiving side of a stream measures.
fn refuse_clocks(are_wrong: bool) -> Result<()> {
    if are_wrong {
        return Err(Error::Usage("--answer-clock is valid only for pub, --clock only for sub".into()));
    }
    Ok(())
}

fn window(configuration: &Configuration) -> Window {
    Window { skip_samples: configuration.warmup, samples_max: configuration.samples, ..Window::default() }
}

fn open(configuration: &Configuration, write: Option<&str>, read: Option<&str>) -> Result<Box<dyn Link>> {
    let (link, scheduling) = (&configuration.link, &configuration.scheduling);
    if scheduling.cpu.is_some() && scheduling.fifo.is_some() {
        refuse_starvation(link.runtime, link.idle)?;
    }
    scheduling.apply()?;
    configuration.link.open(write, read)
}

/// Refuses two threads on one core of which one spins with a real-time priority, since the other
/// never runs.
pub fn refuse_starvation(runtime: Runtime, idle: Idle) -> Result<()> {
    match (runtime, idle) {
        (Runtime::Shared, Idle::Spin) => Err(Error::Usage(
            "with --runtime shared, --spin and --fifo on one core the receive thread never yields to the application"
                .into(),
        )),
        _ => Ok(()),
    }
}

fn wait(link: &mut dyn Link, wanted: Matched, other: &str) -> Result<()> {
    note!("waiting for {other}");
    wait_matched(link, wanted, MATCH_LIMIT, MATCH_STEP)?;
    settle(link, SETTLE)
}

fn print(options: &Run, link: &dyn Link, configuration: Configuration, figures: Figures) -> Result<()> {
    let report = Report::new(configuration, figures)?;
    if options.json {
        outln!("{}", report.to_json()?)?;
    } else {
        outln!("{report}")?;
    }
    if let Some(path) = &options.job_accounts {
        let failure = |error| Error::os(path.display().to_string(), error);
        link.write_job_statistics(&mut File::create(path).map_err(failure)?)?;
    }
    if let Some(status) = link.latency_status()? {
        note!("{}", latency(&status));
    }
    Ok(())
}

/// Formats how many samples exceeded the bound and the limit.
fn latency(status: &LatencyExceededStatus) -> String {
    let microseconds = |ns: u128| format!("{}.{:03} us", ns / 1000, ns % 1000);
    let exceeding = |what: &str, maximum: Option<Duration>, count: u64| {
        maximum.map_or(String::new(), |maximum| {
            format!(", {count} above the {what} of {}", microseconds(maximum.as_nanos()))
        })
    };
    let (count, worst) = (status.ages.count(), microseconds(status.ages.max_ns().into()));
    let bound = exceeding("bound", status.bound, status.above_bound_count);
    format!("{count} samples, maximum age {worst}{bound}{}", exceeding("limit", status.limit, status.total_count))
}
