//! Command `cargo xtask sim`: simulates one seed or many.
//!
//! Exit codes: 0 no violation, 1 a violation, 2 an error of the command line or the machine.

use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use takt_sim::capture::{Capture, Link};
use takt_sim::check::Violation;
use takt_sim::clock::SECOND;
use takt_sim::discovery::{self, DiscoveryRun, Outcome, Traffic};
use takt_sim::scenario::{Focus, Scenario, Size};
use takt_sim::shrink::{Omission, shrink, without};
use takt_sim::speed::{Measurement, measure};
use takt_sim::swarm::{self, Tally};
use takt_sim::timeline::{Both, Lines, Quiet, Timeline};
use takt_sim::world::Report;

const USAGE: &str = "\
Usage: cargo xtask sim --seed S [--without LIST] [--timeline FILE] [--large] [--hostile] [--exact]
                       [--secured] [--show]
                       [--pcap FILE [--link LINK]]
       cargo xtask sim --speed N [--runs R]
       cargo xtask sim --matrix
       cargo xtask sim --discovery N [--endpoints M] [--topics T]
       cargo xtask sim --swarm [--from S] [--seeds N] [--minutes M] [--large] [--hostile]
                       [--exact] [--secured] [--keep-going | --no-shrink]

Runs Takt in a simulated world that a seed decides.

  --seed S         run this one, twice, and compare the two runs
  --without LIST   leave these parts out: p1 a process, e1.2 an endpoint, f1 a fault, t1 a process's
                   crashes and stalls, j1 a host's clock jumps, h the hostile host, a1000 what comes after
                   1000 ms
  --timeline FILE  write a line for each thing that happens
  --pcap FILE      capture the frames as they leave their ports, at simulated time
  --link LINK      only those of one link and direction: host:3:up, host:3:down, switch:0:1 (default: all)
  --show           print the scenario
  --speed N        simulated time per processor time, for N participants that write 100 samples a second each
  --matrix         write docs/reference/fault-matrix.md: throughput and recovery under all combinations of faults
  --discovery N    what it costs that N participants find each other
  --endpoints M    endpoints of each (default: 10), half of them writers
  --topics T       topics that all share (default: N)
  --runs R         measure so often (default: 5)
  --swarm          run one seed after another until time, seeds or a broken promise end it
  --from S         the first seed (default: 0)
  --seeds N        at most so many
  --minutes M      at most so long (default: 1)
  --large          only worlds of 20 hosts and 50 topics or more
  --hostile        a hostile host in every world; otherwise in one small world of ten
  --exact          only worlds in which nothing goes wrong, so that promises about time are exact; otherwise one in four
  --secured        only domains under DDS Security; otherwise one world in forty
  --keep-going     go on after a broken promise
  --no-shrink      do not make a failing world smaller

`cargo xtask sim --teeth` runs worlds with deliberate bugs; `cargo xtask --help` has its options.
";

/// Maximum number of runs for shrinking a scenario.
const SHRINKING_RUNS: u32 = 400;

#[derive(Default)]
struct Options {
    seed: Option<u64>,
    without: Vec<Omission>,
    timeline: Option<String>,
    pcap: Option<String>,
    link: Option<Link>,
    swarm: bool,
    matrix: bool,
    speed: Option<usize>,
    discovery: Option<usize>,
    endpoints: Option<usize>,
    topics: Option<usize>,
    runs: Option<usize>,
    from: u64,
    seeds: Option<u64>,
    minutes: Option<f64>,
    large: bool,
    hostile: bool,
    exact: bool,
    secured: bool,
    show: bool,
    keep_going: bool,
    no_shrink: bool,
}

/// Restarts the program with a fixed `mmap` threshold of glibc, so that large blocks are mapped and
/// returned to the kernel when freed. By default glibc raises the threshold to the size of a freed
/// block. Histories are large and hardly touched. A mapped history occupies only the touched pages.
/// In reused heap memory it must be cleared, which occupies all of it: gigabytes instead of some
/// hundred megabytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn map_histories() {
    use std::os::unix::process::CommandExt;
    // The default threshold of glibc in octets, which glibc does not raise once it is set.
    let (name, value) = ("MALLOC_MMAP_THRESHOLD_", "131072");
    if std::env::var_os(name).is_none()
        && let Ok(program) = std::env::current_exe()
    {
        let arguments = std::env::args_os().skip(1);
        let error = std::process::Command::new(program).args(arguments).env(name, value).exec();
        eprintln!("sim: takes more memory than it needs, since it cannot start again: {error}");
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn map_histories() {}

fn main() -> ExitCode {
    map_histories();
    let options = match parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("sim: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let outcome = match options.seed {
        Some(seed) => replay(seed, &options),
        None if options.speed.is_some() => Ok(speed(options.speed.unwrap_or(1), options.runs.unwrap_or(5).max(1))),
        None if options.discovery.is_some() => measure_discovery(&options),
        None if options.matrix => matrix(),
        None => Ok(swarm(&options)),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("sim: {error}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
            text.parse().map_err(|_| format!("'{text}' is no number"))
        }
        match argument.as_str() {
            "--seed" => options.seed = Some(number(&value()?)?),
            "--without" => options.without = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--timeline" => options.timeline = Some(value()?),
            "--pcap" => options.pcap = Some(value()?),
            "--link" => options.link = Some(value()?.parse()?),
            "--swarm" => options.swarm = true,
            "--matrix" => options.matrix = true,
            "--discovery" => options.discovery = Some(number(&value()?)?),
            "--endpoints" => options.endpoints = Some(number(&value()?)?),
            "--topics" => options.topics = Some(number(&value()?)?),
            "--speed" => options.speed = Some(number(&value()?)?),
            "--runs" => options.runs = Some(number(&value()?)?),
            "--from" => options.from = number(&value()?)?,
            "--seeds" => options.seeds = Some(number(&value()?)?),
            "--minutes" => options.minutes = Some(number(&value()?)?),
            "--large" => options.large = true,
            "--hostile" => options.hostile = true,
            "--exact" => options.exact = true,
            "--secured" => options.secured = true,
            "--show" => options.show = true,
            "--keep-going" => options.keep_going = true,
            "--no-shrink" => options.no_shrink = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("'{argument}' is unknown")),
        }
    }
    let modes = [options.seed.is_some(), options.speed.is_some(), options.discovery.is_some()];
    let modes = [options.swarm, options.matrix].into_iter().chain(modes);
    if modes.filter(|chosen| *chosen).count() != 1 {
        return Err("one of --seed, --swarm, --matrix, --speed and --discovery is needed".to_owned());
    }
    Ok(Some(options))
}

fn scenario(seed: u64, options: &Options) -> Scenario {
    let whole = if options.exact {
        Scenario::exact(seed)
    } else if options.secured {
        Scenario::focused_on(Focus::Secured, seed)
    } else if options.large {
        Scenario::within(seed, &Size::LARGE)
    } else {
        Scenario::of_seed(seed)
    };
    let whole = if options.hostile { whole.with_hostile() } else { whole };
    without(&whole, &options.without)
}

fn replay(seed: u64, options: &Options) -> Result<bool, String> {
    let scenario = scenario(seed, options);
    if options.show {
        println!("{scenario:#?}");
    }
    let first = record(&scenario, options)?;
    let second = swarm::run(&scenario, &mut Quiet);
    println!(
        "seed {seed}: {} processes on {} hosts, {:.3} s, {} written, {} taken, {:?}, digest {:016x}",
        scenario.processes.len(),
        scenario.hosts.len(),
        first.simulated as f64 / SECOND as f64,
        first.written,
        first.taken,
        first.network,
        first.digest
    );
    if first != second {
        println!("two runs differ: digest {:016x} and {:016x}", first.digest, second.digest);
        return Ok(false);
    }
    if let Some(violation) = &first.violation {
        println!("{violation}");
    }
    Ok(first.violation.is_none())
}

/// Runs a scenario, with a timeline and a capture if requested.
fn record(scenario: &Scenario, options: &Options) -> Result<Report, String> {
    let mut lines = match &options.timeline {
        None => None,
        Some(path) => {
            let file = File::create(path).map_err(|error| format!("cannot write {path}: {error}"))?;
            Some(Lines::new(BufWriter::new(file)))
        }
    };
    let mut capture = match &options.pcap {
        None => None,
        Some(path) => {
            let link = options.link.unwrap_or(Link::All);
            Some(Capture::create(path.as_ref(), link).map_err(|error| error.to_string())?)
        }
    };
    let (mut no_lines, mut no_capture) = (Quiet, Quiet);
    let printed: &mut dyn Timeline = lines.as_mut().map_or(&mut no_lines, |lines| lines);
    let captured: &mut dyn Timeline = capture.as_mut().map_or(&mut no_capture, |capture| capture);
    let report = swarm::run(scenario, &mut Both(printed, captured));
    if lines.is_some_and(|lines| lines.failed()) {
        return Err("cannot write all of the timeline".to_owned());
    }
    if let Some(mut capture) = capture {
        let frames = capture.finish().map_err(|error| format!("cannot write all of the capture: {error}"))?;
        println!("{frames} frames captured");
    }
    Ok(report)
}

/// Prints the median, the minimum and the maximum of some measurements.
fn speed(participants: usize, runs: usize) -> bool {
    let measured: Result<Vec<_>, _> = (0..runs).map(|_| measure(participants)).collect();
    let measured = match measured {
        Ok(measured) => measured,
        Err(violation) => {
            println!("{violation}");
            return false;
        }
    };
    let spread = |what: &str, value: fn(&Measurement) -> f64, digits: usize| {
        let mut values: Vec<_> = measured.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        let (least, median, most) = (values[0], values[values.len() / 2], values[values.len() - 1]);
        println!("  {what}: {median:.digits$} ({least:.digits$} to {most:.digits$})");
    };
    println!("{participants} participants, {runs} runs, by processor time of one core:");
    spread("participant-seconds per second, the whole run", |m| m.whole, 0);
    spread("participant-seconds per second while writing", |m| m.steady, 0);
    spread("share of announcements in that, %", |m| m.announcements * 100.0, 0);
    spread("seconds until all know all", |m| m.discovery, 2);
    true
}

/// Measures the mutual discovery of participants and prints its cost.
fn measure_discovery(options: &Options) -> Result<bool, String> {
    let participants = options.discovery.unwrap_or(2).max(2);
    let (endpoints, topics) = (options.endpoints.unwrap_or(10), options.topics.unwrap_or(participants).max(1));
    let run = DiscoveryRun { participants, endpoints, topics };
    let outcome = match discovery::measure(&run) {
        Ok(Some(outcome)) => outcome,
        Ok(None) => return Err("not all have found each other".to_owned()),
        Err(violation) => return Err(violation.to_string()),
    };
    let (count, pairs) = (participants as f64, (participants * (participants - 1)) as f64);
    let Outcome { time, discovery_traffic: finding, quiet_per_second: quiet, matches, submessages } = outcome;
    println!("{participants} participants with {endpoints} endpoints each, {topics} topics, {matches} matches:");
    println!("  all found {:.2} s after the last start", time as f64 / SECOND as f64);
    let per = |what: &str, by: f64, traffic: &Traffic| {
        let [sent, sent_octets] = [traffic.sent, traffic.sent_octets].map(|value| value as f64 / by);
        let [received, received_octets] = [traffic.received, traffic.received_octets].map(|value| value as f64 / by);
        println!(
            "  {what}: {sent:.1} datagrams of {sent_octets:.0} octets sent, {received:.1} of {received_octets:.0} received"
        );
    };
    per("per participant until then", count, &finding);
    per("per ordered pair until then", pairs, &finding);
    println!(
        "  per ordered pair until then: {:.1} DATA, {:.1} of them repairs, {:.1} HEARTBEAT, {:.1} ACKNACK",
        submessages.data as f64 / pairs,
        submessages.repairs as f64 / pairs,
        submessages.heartbeats as f64 / pairs,
        submessages.acknacks as f64 / pairs
    );
    per("per participant and second afterwards", count, &quiet);
    Ok(true)
}

fn matrix() -> Result<bool, String> {
    match takt_sim::matrix::page() {
        Ok(page) => {
            let path = takt_sim::matrix::DOCUMENT;
            std::fs::write(path, page).map_err(|error| format!("cannot write {path}: {error}"))?;
            println!("wrote {path}");
            Ok(true)
        }
        Err(broken) => {
            broken.iter().for_each(|text| println!("{text}"));
            Ok(false)
        }
    }
}

fn swarm(options: &Options) -> bool {
    // A violation is reported in one line, so the message of its panic is suppressed.
    std::panic::set_hook(Box::new(|_| {}));
    let start = Instant::now();
    let minutes = options.minutes.unwrap_or(if options.seeds.is_some() { f64::INFINITY } else { 1.0 });
    let mut tally = Tally::default();
    let mut broken = 0_u64;
    let last = options.seeds.map_or(u64::MAX, |seeds| options.from.saturating_add(seeds));
    for seed in options.from..last {
        if start.elapsed().as_secs_f64() > minutes * 60.0 {
            break;
        }
        let scenario = scenario(seed, options);
        let report = swarm::run(&scenario, &mut Quiet);
        tally.add(&report);
        if let Some(violation) = report.violation {
            broken += 1;
            report_violation(seed, &scenario, &violation, options);
            if !options.keep_going {
                break;
            }
        }
    }
    summarize(&tally, broken, start.elapsed());
    broken == 0
}

fn report_violation(seed: u64, scenario: &Scenario, violation: &Violation, options: &Options) {
    println!("seed {seed}: {violation}");
    if options.keep_going || options.no_shrink {
        return;
    }
    let omissions = shrink(scenario, violation.rule, SHRINKING_RUNS);
    let report = swarm::run(&without(scenario, &omissions), &mut Quiet);
    if let Some(violation) = report.violation {
        println!("smaller: {violation}");
    }
    let list: Vec<_> = omissions.iter().map(ToString::to_string).collect();
    let large = if options.large { " --large" } else { "" };
    let hostile = if options.hostile { " --hostile" } else { "" };
    let exact = if options.exact { " --exact" } else { "" };
    let secured = if options.secured { " --secured" } else { "" };
    println!(
        "replay:  cargo xtask sim --seed {seed}{large}{hostile}{exact}{secured} --without {} --timeline sim.txt",
        list.join(",")
    );
}

fn summarize(tally: &Tally, broken: u64, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    println!(
        "{} seeds, {broken} broken: {:.0} s simulated, {:.0} participant-seconds, {} samples written, {} taken, \
         {} sets, {} frames, in {seconds:.1} s ({:.0} participant-seconds per second)",
        tally.runs,
        tally.simulated as f64 / SECOND as f64,
        tally.participant_time as f64 / SECOND as f64,
        tally.written,
        tally.taken,
        tally.sets,
        tally.frames,
        tally.participant_time as f64 / SECOND as f64 / seconds,
    );
}
