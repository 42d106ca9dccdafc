//! Second part of the demo: real-time traffic under overload. `takt-lab` creates two switches, and
//! another host sends twice the rate of their links. One pair of CycloneDDS (unmodified) and one of
//! Takt run first without and then with the controller. The controller refuses a third pair.
//!
//! ```text
//! publisher ---- s1 ==== s2 ==== subscriber
//! flooder-1 ---- s1      s2 ---- flooder-2
//! ```

use std::path::Path;
use std::time::{Duration, Instant};

use takt_bench::sdn_overload::category::Category;
use takt_bench::sdn_overload::flood::Flood;
use takt_bench::sdn_overload::html;
use takt_bench::sdn_overload::outcome::{Cell, Run};
use takt_bench::sdn_overload::pair::{Pair, Program};
use takt_bench::sdn_overload::plot::{Axes, cumulative, normalised};
use takt_bench::sdn_overload::series::Series;
use takt_bench::sdn_overload::side::SidePlan;
use takt_bench::sdn_overload::site::{Site, SitePlan, Topology};
use takt_bench::sdn_overload::transit::{Capture, Transits, VendorId};
use takt_bench::sdn_overload::{Condition, contract};
use takt_interop::programs::{self, Program as Product};
use takt_interop::{Error, Result};

use crate::screen::{Row, Screen, key};

/// Duration in seconds of the measurement, once without and once with the controller.
const SECONDS: u64 = 12;
const PERIOD_NS: u64 = 5_000_000;
/// Payload of a sample in bytes, and the overhead of its serialization.
const SIZE: usize = 500;
const SERIALIZED_MORE: usize = 32;
/// Size in bytes of an overload frame.
const FRAME: usize = 1400;
const MEGABITS: u32 = 20;
/// Queue length of a link for other traffic, in frames: 146 ms.
const FRAMES: u32 = 256;
/// Latency bound of the contracts of both pairs. `UNSATISFIABLE_LIMIT` is that of the third
/// contract, which is shorter than the transmission of one overload frame.
const LIMIT: Duration = Duration::from_millis(20);
const UNSATISFIABLE_LIMIT: Duration = Duration::from_micros(100);
/// Topic of the CycloneDDS pair. The operator's file contains its contract.
const TOPIC: &str = "Cyclone";
/// Time limit of a verdict of the controller. `RUN_LIMIT` is that of the writers.
const VERDICT_LIMIT: Duration = Duration::from_secs(30);
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// Age up to which a missing sample is not yet drawn as lost.
const UNDER_WAY_NS: u64 = 1_000_000_000;
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Measurements without or with the controller.
struct Phase {
    series: Vec<Series>,
    bounds_ns: Vec<Option<u64>>,
    transits: Vec<Transits>,
}

impl Phase {
    /// Prints the longest network latency of a sample and its bound.
    fn print_transits(&self, programs: &[Program; 2]) {
        let ms = |ns: u64| format!("{:.2} ms", ns as f64 / 1e6);
        for ((program, transits), bound_ns) in programs.iter().zip(&self.transits).zip(&self.bounds_ns) {
            let seen = format!("  {:<14} {} in the network at most", program.name(), ms(transits.longest_ns()));
            let Some(bound_ns) = *bound_ns else {
                println!("{seen}");
                continue;
            };
            let (above, unexplained) = transits.above(bound_ns);
            let explained = match above {
                0 => String::new(),
                _ => {
                    format!(
                        "; {above} samples above it, {} of them by no more than processors stalled meanwhile",
                        above - unexplained
                    )
                }
            };
            println!("{seen}, bound {}{explained}", ms(bound_ns));
        }
    }
}

/// Runs this part. Reports whether samples were lost without the controller and none with it.
pub fn run(page: &Path) -> Result<bool> {
    let programs = programs()?;
    println!(
        "publisher and subscriber at two switches, links of {MEGABITS} Mbit/s, and {} Mbit/s from another host, one second on, one second off.\n\
         A pair of CycloneDDS, unmodified, and a pair of Takt: {SIZE} B each 5 ms, best effort.\n{}\n",
        2 * MEGABITS,
        key()
    );
    println!("without the controller");
    let plain = run_pairs(&programs, &mut site(false)?)?;
    println!("\nwith the controller");
    let mut site = site(true)?;
    let kept = run_pairs(&programs, &mut site)?;
    let refusal = refuse(&programs[1], &mut site)?;
    drop(site);
    println!(
        "\n  third pair: it asked for {:.1} ms and is refused: it {refusal}\n",
        UNSATISFIABLE_LIMIT.as_secs_f64() * 1e3
    );
    for ((program, without), with) in programs.iter().zip(&plain.series).zip(&kept.series) {
        let lost = |series: &Series| series.sent - series.received();
        println!(
            "  {:<14} {} samples lost without the controller, {} with it",
            program.name(),
            lost(without),
            lost(with)
        );
    }
    std::fs::write(page, picture(&programs, [&plain, &kept], &refusal)?)
        .map_err(|source| Error::Io { op: format!("write {}", page.display()), source })?;
    println!("\nthe picture: {}", page.display());
    let are_lost =
        |phase: &Phase| phase.series.iter().map(|series| series.received() < series.sent).collect::<Vec<_>>();
    Ok(are_lost(&plain) == [true; 2] && are_lost(&kept) == [false; 2])
}

/// Returns the programs of CycloneDDS and Takt.
fn programs() -> Result<[Program; 2]> {
    let takt = programs::takt()?;
    let cyclone = Product::Cyclone11.executable()?;
    Ok([Program::peer("CycloneDDS", cyclone), Program::takt(takt, &["bench", "side"])])
}

fn site(is_controlled: bool) -> Result<Site> {
    let plan = SitePlan {
        name: "demo".to_owned(),
        topology: Topology::Row(2),
        readers: 1,
        megabits: MEGABITS,
        frames: FRAMES,
        contracts: is_controlled.then(|| contract(TOPIC, PERIOD_NS, SIZE + SERIALIZED_MORE, LIMIT)),
    };
    Site::new(plan).map_err(|why| {
        Error::Unavailable(format!(
            "no network with switches can be made: {why}\nit needs root (sudo make demo) and Open vSwitch (apt install openvswitch-switch)"
        ))
    })
}

/// Returns the plan of a pair: CycloneDDS, Takt, or the third one.
fn plan(place: u32, limit: Option<Duration>) -> SidePlan {
    SidePlan {
        domain: 1 + place,
        topic: [TOPIC, "Takt", "Third"][place as usize % 3].to_owned(),
        category: Category::BestEffort,
        size: SIZE,
        period_ns: PERIOD_NS,
        count: SECONDS * 1_000_000_000 / PERIOD_NS,
        readers: 1,
        limit_ns: limit.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)),
    }
}

/// Runs both pairs under the overload.
fn run_pairs(programs: &[Program; 2], site: &mut Site) -> Result<Phase> {
    let mut pairs = Vec::new();
    let mut bounds_ns = Vec::new();
    for (program, place) in programs.iter().zip(0..) {
        site.clear_verdicts();
        let mut pair = Pair::start(program, site, plan(place, (place == 1).then_some(LIMIT))).map_err(of_bench)?;
        pair.wait_until_matched().map_err(of_bench)?;
        let bound_ns = site.wait_until_admitted(1, VERDICT_LIMIT).map_err(of_bench)?;
        if let Some(bound_ns) = bound_ns {
            println!("  {}: admitted, bound {:.2} ms", program.name(), bound_ns as f64 / 1e6);
        }
        bounds_ns.push(bound_ns);
        pairs.push(pair);
    }
    let flood = Flood::start(site, FRAME).map_err(of_bench)?;
    let capture = Capture::start(site).map_err(of_bench)?;
    let begun = Instant::now();
    for pair in &mut pairs {
        pair.begin().map_err(of_bench)?;
    }
    let count = plan(0, None).count;
    let mut screen = Screen::default();
    loop {
        let since = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let due = (since.saturating_sub(UNDER_WAY_NS) / PERIOD_NS).min(count);
        let mut rows = Vec::new();
        for (pair, program) in pairs.iter_mut().zip(programs) {
            let arrivals = pair.arrivals().map_err(of_bench)?;
            rows.push(Row::new(program.name(), &arrivals[0], due, PERIOD_NS));
        }
        screen.draw(&rows, due == count);
        if due == count {
            break;
        }
        // Redraw interval of the table.
        std::thread::sleep(POLL_INTERVAL); // tidy-allow(sleep): see above
    }
    drop(flood);
    let mut seen = capture.stop().map_err(of_bench)?.pop().unwrap_or_default();
    let transits = [VendorId::CYCLONE, VendorId::TAKT].map(|vendor| seen.remove(&vendor).unwrap_or_default()).into();
    let series = pairs.into_iter().map(|pair| pair.finish(RUN_LIMIT).map_err(of_bench));
    let series: Vec<Vec<Series>> = series.collect::<Result<_>>()?;
    let phase = Phase { series: series.into_iter().flatten().collect(), bounds_ns, transits };
    phase.print_transits(programs);
    Ok(phase)
}

/// Starts a pair that requests more than the network has, and returns why the controller refuses
/// it.
fn refuse(takt: &Program, site: &mut Site) -> Result<String> {
    site.clear_verdicts();
    let _pair = Pair::start(takt, site, plan(2, Some(UNSATISFIABLE_LIMIT))).map_err(of_bench)?;
    let reason = site.wait_until_refused(VERDICT_LIMIT).map_err(of_bench)?;
    // The reason begins with the GUIDs of writer and reader.
    Ok(reason.find("would take").map_or(reason.as_str(), |at| &reason[at..]).to_owned())
}

fn of_bench(error: takt_bench::Error) -> Error {
    Error::Peer { peer: "the second act".to_owned(), what: error.to_string() }
}

/// Returns the HTML page.
fn picture(programs: &[Program; 2], phases: [&Phase; 2], refusal: &str) -> Result<String> {
    let conditions = [Condition::Overload(FRAME), Condition::Controlled(FRAME)];
    let cells = |place: usize| {
        let cell = |(phase, condition): (&&Phase, Condition)| {
            let run = Run {
                program: programs[place].name().to_owned(),
                category: Category::BestEffort,
                size: SIZE,
                condition,
                reader: 1,
                megabits: MEGABITS,
                bound_ns: phase.bounds_ns[place],
                flooded: None,
            };
            Cell::new(run, phase.series[place].clone(), &phase.transits[place])
        };
        phases.iter().zip(conditions).map(cell).collect::<Vec<_>>()
    };
    let name = |cell: &Cell| match cell.run.condition {
        Condition::Controlled(_) => ("with the controller".to_owned(), 0),
        _ => ("without the controller".to_owned(), 1),
    };
    let mut body = format!(
        "<p>Two switches, links of {MEGABITS} Mbit/s, {} Mbit/s from another host, one second on, one second off. A sample of {SIZE} B each \
         5 ms, best effort.</p>\n",
        2 * MEGABITS
    );
    for (place, program) in programs.iter().enumerate() {
        let cells = cells(place);
        body.push_str(&format!("<h2>{}</h2>\n", takt_bench::page::escape(program.name())));
        let updates = Axes { x: "time (s)", y: "updates received" };
        let latency = Axes { x: "sequence number", y: "normalized latency (ms)" };
        let lines: Vec<_> = cells.iter().map(|cell| cumulative(name(cell), &cell.series)).collect();
        body.push_str(&html::figure(updates, &lines, "Cumulative updates against time").map_err(of_bench)?);
        let lines: Vec<_> = cells.iter().map(|cell| normalised(name(cell), &cell.series)).collect();
        let caption = "Normalized latency of each update; gaps are updates that were lost";
        body.push_str(&html::figure(latency, &lines, caption).map_err(of_bench)?);
        body.push_str(&html::runs(cells.iter()));
    }
    body.push_str(&format!(
        "<h2>A third pair</h2>\n<p>It asked for {:.1} ms and was refused: it {}</p>\n",
        UNSATISFIABLE_LIMIT.as_secs_f64() * 1e3,
        takt_bench::page::escape(refusal)
    ));
    Ok(takt_bench::page::page("The network keeps the promise", &body))
}
