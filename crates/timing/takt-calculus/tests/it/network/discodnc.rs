//! Comparison of bounds with DiscoDNC, the network calculator of Schmitt and Bondorf (Maven
//! Central, LGPL-2.1).
//!
//! DiscoDNC computes with token buckets and rate-latency servers in a fluid model. Takt counts
//! frames: its arrivals are staircase curves below the token bucket, and switches store and
//! forward. The models agree where the staircase touches the token bucket at the critical time.
//! Elsewhere, Takt's bound is smaller, if the servers of DiscoDNC have the latency of a packetizer.
//! `make setup` installs the library.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use takt_calculus::Arrivals;
use takt_calculus::link::frame_time_ns;
use takt_calculus::network::{Admission, Depth, Flow, Frames, Hop, Port, check};
use takt_testkit::{not_run, require, waiting};

use super::oracle::{CASES, FOREIGN_LEN, RATE_BPS, bound, flow, frame_ns};
use crate::random::Random;

const LIBRARIES: [&str; 2] = ["discodnc-2.4.3-lkn.jar", "commons-math3-3.6.1.jar"];
const FRAME_LEN: u64 = 1514;
/// Rate at which an octet takes one nanosecond: rounding errors of a frame are below that.
const OCTET_BPS: u64 = 8_000_000_000;

/// Both bounds of a flow in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    total_ns: f64,
    separated_ns: f64,
}

/// Networks in the input format of `tests/oracle/Bounds.java`.
#[derive(Default)]
struct Query {
    text: String,
    flows: usize,
}

fn per_ns(rate_bps: u64) -> f64 {
    rate_bps as f64 / 1e9
}

fn octets(len: u64) -> u64 {
    frame_time_ns(len, OCTET_BPS).expect("a rate")
}

/// Returns the burst in bits and the rate in bits per nanosecond of a flow's token bucket.
fn bucket(flow: &Flow) -> (f64, f64) {
    let event: u64 = flow.frames.iter().map(|frames| octets(frames.len) * frames.count * 8).sum();
    let Arrivals { period_ns, jitter_ns, .. } = flow.arrivals;
    (event as f64 * (1.0 + jitter_ns as f64 / period_ns as f64), event as f64 / period_ns as f64)
}

impl Query {
    /// Adds a server with a latency for each class.
    fn server(&mut self, rate_bps: u64, latencies_ns: &[f64]) {
        write!(self.text, "server {}", per_ns(rate_bps)).expect("writing to a String cannot fail");
        latencies_ns.iter().for_each(|ns| write!(self.text, " {ns}").expect("writing to a String cannot fail"));
        self.text.push('\n');
    }

    /// Adds a flow whose ports are servers. Its class is that of its first hop.
    fn flow(&mut self, flow: &Flow) {
        let (burst, rate) = bucket(flow);
        write!(self.text, "flow {} {burst} {rate}", flow.hops[0].class).expect("writing to a String cannot fail");
        flow.hops.iter().for_each(|hop| write!(self.text, " {}", hop.port).expect("writing to a String cannot fail"));
        self.text.push('\n');
        self.flows += 1;
    }

    fn end(&mut self) {
        self.text.push_str("end\n");
    }

    /// Computes the bounds of all flows, in their order.
    fn run(self, libraries: &str) -> Vec<Bounds> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/Bounds.java");
        let mut command = Command::new("java");
        command.args(["-cp", libraries]).arg(program).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("java is installed");
        let mut input = child.stdin.take().expect("stdin is piped");
        let writer = std::thread::spawn(move || input.write_all(self.text.as_bytes()));
        let output = child.wait_with_output().expect("the process ends");
        waiting::join("the input is written", writer).expect("java reads the input");
        assert!(output.status.success(), "java ends with {}", output.status);
        let number = |word: &str| word.parse::<f64>().expect("a number");
        let answers = String::from_utf8(output.stdout).expect("the output is UTF-8");
        let answers = answers.lines().map(|line| line.split_once(' ').expect("two numbers"));
        let bounds: Vec<Bounds> = answers
            .map(|(total, separated)| Bounds { total_ns: number(total), separated_ns: number(separated) })
            .collect();
        assert_eq!(bounds.len(), self.flows);
        bounds
    }
}

/// Returns the class path, or the name of what is missing.
fn libraries() -> Result<String, String> {
    require::program("java")?;
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let directory = cache.ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("takt/jars");
    let paths = LIBRARIES.map(|name| directory.join(name));
    match paths.iter().find(|path| !path.is_file()) {
        Some(_) => Err("DiscoDNC is not installed; run: make -C crates/timing/takt-calculus/tests/oracle".into()),
        None => Ok(paths.map(|path| path.to_string_lossy().into_owned()).join(":")),
    }
}

/// Returns the length of the longest frame below a class at one port, including frames without
/// contract.
fn blocking_len(flows: &[Flow], port: usize, class: usize, foreign_len: u64) -> u64 {
    let hops = flows.iter().flat_map(|flow| flow.hops.iter().map(move |hop| (flow, hop)));
    let lower = hops.filter(|(_, hop)| hop.port == port && hop.class > class);
    lower.flat_map(|(flow, _)| &flow.frames).map(|frames| frames.len).fold(foreign_len, u64::max)
}

#[test]
fn bound_of_one_class_at_one_port_equals_discodnc_for_bursts_of_whole_events() {
    let libraries = match libraries() {
        Ok(libraries) => libraries,
        Err(why) => return not_run(why),
    };
    let (mut query, mut ours) = (Query::default(), Vec::new());
    for seed in 0..CASES {
        let mut random = Random(seed);
        let mut flows: Vec<Flow> = (0..random.between(1, 9)).map(|_| flow(&mut random, 0)).collect();
        for flow in &mut flows {
            // The staircase touches the token bucket at time zero: the burst consists of whole
            // events.
            flow.arrivals.jitter_ns -= flow.arrivals.jitter_ns % flow.arrivals.period_ns;
        }
        let Some(own) = bound(&flows) else { continue };
        ours.push((seed, own, query.flows + flows.len() - 1));
        query.server(RATE_BPS, &[frame_ns(FOREIGN_LEN) as f64]);
        flows.iter().for_each(|flow| query.flow(flow));
        query.end();
    }
    let bounds = query.run(&libraries);
    for (seed, own, at) in &ours {
        // Frame times at this rate are whole nanoseconds.
        let difference = (*own as f64 - bounds[*at].total_ns).abs();
        assert!(difference < 1.0, "seed {seed}: {own} and {:?}", bounds[*at]);
    }
    assert!(ours.len() as u64 > CASES / 2, "{}", ours.len());
}

#[test]
fn bound_of_several_classes_at_one_port_is_at_most_that_of_discodnc() {
    let libraries = match libraries() {
        Ok(libraries) => libraries,
        Err(why) => return not_run(why),
    };
    let (mut query, mut ours) = (Query::default(), Vec::new());
    for seed in 0..CASES {
        let mut random = Random(seed);
        let wanted = random.between(2, 9);
        let flows: Vec<Flow> = (0..wanted)
            .map(|_| {
                let class = random.between(0, 3) as usize;
                flow(&mut random, class)
            })
            .collect();
        let Some(own) = bound(&flows) else { continue };
        let is_urgent = flows[flows.len() - 1].hops[0].class == 0;
        ours.push((seed, own, is_urgent, query.flows + flows.len() - 1));
        let latency = |class| frame_ns(blocking_len(&flows, 0, class, FOREIGN_LEN)) as f64;
        query.server(RATE_BPS, &[0, 1, 2, 3].map(latency));
        flows.iter().for_each(|flow| query.flow(flow));
        query.end();
    }
    let bounds = query.run(&libraries);
    let mut ratios = Vec::new();
    for (seed, own, _, at) in &ours {
        let theirs_ns = bounds[*at].total_ns;
        assert!(*own as f64 <= theirs_ns + 1.0, "seed {seed}: {own} > {theirs_ns}");
        ratios.push(*own as f64 / theirs_ns);
    }
    print_ratios("flows in several classes at one port", ratios);
    assert!(ours.len() as u64 > CASES / 2, "{}", ours.len());
    assert!(ours.iter().any(|(_, _, is_urgent, _)| *is_urgent));
}

fn print_ratios(what: &str, mut ratios: Vec<f64>) {
    ratios.sort_by(f64::total_cmp);
    let at = |percent: usize| ratios[(ratios.len() - 1) * percent / 100];
    println!("{} {what}; bound over DiscoDNC's: median {:.3}, 10th percentile {:.3}", ratios.len(), at(50), at(10));
}

fn ports(random: &mut Random, count: usize, classes: usize) -> Vec<Port> {
    let port = |n| {
        let delay_ns = random.between(0, 20_000);
        Port {
            name: format!("port {n}"),
            rate_bps: [10_000_000, 100_000_000, 1_000_000_000][random.between(0, 2) as usize],
            foreign_frame_len: random.between(60, FRAME_LEN),
            classes: vec![Depth::UNLIMITED; classes],
            delay_ns,
            delay_ns_min: random.between(0, delay_ns),
        }
    };
    (0..count).map(port).collect()
}

/// Returns a flow that uses `share` thousandths of the slowest of its ports.
fn flow_through(random: &mut Random, ports: &[Port], route: Vec<usize>, class: usize, share: u64) -> Flow {
    let mut frames = vec![Frames { len: random.between(60, FRAME_LEN), count: 1 }];
    if random.one_in(4) {
        frames.push(Frames { len: FRAME_LEN, count: random.between(1, 6) });
    }
    let time = |port: &Port| {
        let each = frames.iter().map(|frames| frame_time_ns(frames.len, port.rate_bps).expect("a rate") * frames.count);
        each.sum::<u64>()
    };
    let longest_ns = route.iter().map(|port| time(&ports[*port])).max().expect("a way");
    let period_ns = longest_ns * 1000 / share;
    let jitter_ns = if random.one_in(3) { random.between(0, 2 * period_ns) } else { 0 };
    Flow {
        name: "flow".into(),
        arrivals: Arrivals { period_ns, jitter_ns, distance_ns: 0 },
        frames,
        hops: route.into_iter().map(|port| Hop { port, class }).collect(),
        branches: vec![],
        limit_ns: u64::MAX,
    }
}

fn longest_len(flow: &Flow) -> u64 {
    flow.frames.iter().map(|frames| frames.len).max().expect("the flow has frames")
}

/// Other flows pass one port each, so their bursts are those of their sources. Both analyses then
/// leave the same service.
#[test]
fn separated_flow_bound_of_a_tandem_equals_discodnc() {
    let libraries = match libraries() {
        Ok(libraries) => libraries,
        Err(why) => return not_run(why),
    };
    let (mut query, mut ours) = (Query::default(), Vec::new());
    for seed in 0..CASES {
        let mut random = Random(seed);
        let count = random.between(1, 6) as usize;
        let ports = ports(&mut random, count, 1);
        let share = random.between(20, 300);
        let own = flow_through(&mut random, &ports, (0..count).collect(), 0, share);
        let mut network = Admission::new(ports.clone()).expect("the ports are valid");
        let mut flows = vec![own.clone()];
        for port in 0..count {
            for _ in 0..random.between(0, 3) {
                flows.push(flow_through(&mut random, &ports, vec![port], 0, 150));
            }
        }
        let mut slowest = f64::MAX;
        for (at, port) in ports.iter().enumerate() {
            let others = flows[1..].iter().filter(|flow| flow.hops[0].port == at).map(|flow| bucket(flow).1);
            let left = per_ns(port.rate_bps) - others.sum::<f64>();
            slowest = slowest.min(left);
            // Switches store and forward.
            let whole_ns = if at + 1 < count { (8 * octets(longest_len(&own))) as f64 / left } else { 0.0 };
            let blocking_ns = frame_time_ns(port.foreign_frame_len, port.rate_bps).expect("a rate");
            query.server(port.rate_bps, &[(blocking_ns + port.delay_ns) as f64 + whole_ns]);
        }
        let at = query.flows;
        flows.iter().for_each(|flow| query.flow(flow));
        query.end();
        let admitted = network.admit_all(flows).expect("no port has more than a share of its rate");
        let separated_ns = admitted[0].1.separated_ns.expect("the flow is bounded");
        // The burst is rounded to whole octets, the service of each port to whole nanoseconds;
        // rates are in units of 2^-32.
        ours.push((seed, at, separated_ns as f64, 8.0 / slowest + 4.0 * count as f64));
    }
    let bounds = query.run(&libraries);
    for (seed, at, own_ns, rounded_ns) in ours {
        let theirs_ns = bounds[at].separated_ns;
        let more_ns = own_ns - theirs_ns;
        assert!((-1.0..rounded_ns + theirs_ns * 1e-6).contains(&more_ns), "seed {seed}: {own_ns} and {theirs_ns}");
    }
}

/// In networks without cycles, flows that DiscoDNC proves are admitted, except for at most one in a
/// hundred. Behind a queue, Takt counts the budget of the whole queue as jitter of a flow; DiscoDNC
/// counts the service that the other flows leave.
#[test]
fn flows_with_discodnc_bounds_as_limits_are_admitted_with_rare_exceptions() {
    let libraries = match libraries() {
        Ok(libraries) => libraries,
        Err(why) => return not_run(why),
    };
    let (mut query, mut networks) = (Query::default(), Vec::new());
    for seed in 0..CASES / 2 {
        let mut random = Random(seed);
        let (count, classes) = (random.between(2, 8) as usize, random.between(1, 3) as usize);
        let ports = ports(&mut random, count, classes);
        let flows: Vec<Flow> = (0..random.between(2, 12))
            .map(|_| {
                let route: Vec<usize> = (0..count).filter(|_| random.one_in(2)).collect();
                let route = if route.is_empty() { vec![0] } else { route };
                let class = random.between(0, classes as u64 - 1) as usize;
                let share = random.between(5, 70);
                flow_through(&mut random, &ports, route, class, share)
            })
            .collect();
        for (at, port) in ports.iter().enumerate() {
            let time = |len| frame_time_ns(len, port.rate_bps).expect("a rate") as f64;
            let latency = |class| {
                let of_class = flows.iter().filter(|flow| flow.hops.contains(&Hop { port: at, class }));
                let longest = of_class.map(longest_len).max().map_or(0.0, time);
                time(blocking_len(&flows, at, class, port.foreign_frame_len)) + longest + port.delay_ns as f64
            };
            query.server(port.rate_bps, &(0..classes).map(latency).collect::<Vec<f64>>());
        }
        let first = query.flows;
        flows.iter().for_each(|flow| query.flow(flow));
        query.end();
        networks.push((seed, ports, flows, first));
    }
    let bounds = query.run(&libraries);
    let (mut admitted, mut refused) = (0, Vec::new());
    for (seed, ports, flows, first) in networks {
        let mut network = Admission::new(ports).expect("the ports are valid");
        for (at, mut flow) in flows.into_iter().enumerate() {
            let Bounds { total_ns, separated_ns } = bounds[first + at];
            flow.limit_ns = total_ns.min(separated_ns).ceil() as u64;
            match network.admit(flow) {
                Ok(_) => admitted += 1,
                Err(why) => refused.push(format!("seed {seed}, flow {at}: {why}")),
            }
        }
        assert_eq!(check(&network.certificate()), Ok(()), "seed {seed}");
    }
    println!("{admitted} flows admitted with the bounds of DiscoDNC as limits; refused: {refused:#?}");
    assert!(admitted > 1000 && refused.len() * 100 < admitted, "{refused:#?}");
}
