//! Benchmark of strict priority: one-way latency of urgent datagrams through a switch, with and
//! without a flood of twice the rate of the shared link.
//!
//! `chrt --fifo 20 cargo bench -p takt-lab --bench strict_priority` as root prints a table for
//! docs/guide/lab.md. Sender, receiver and flood are threads of one process, so that they share one
//! clock; each has its sockets in the namespace of its host. A datagram of 1,400 octets is sent
//! each 5 ms.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use takt_lab::{Lab, LabFile, Namespace};

const PERIOD: Duration = Duration::from_millis(5);
const SAMPLES: u64 = 2000;
const PAYLOAD: usize = 1400;
/// Length of a phase with flood, and of one without.
const FLOOD_HALF: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(1);
const SILENCE: Duration = Duration::from_secs(2);
const LISTENER: &str = "10.7.0.3";
const EXPEDITED: i32 = 46 << 2;

/// Conditions of a measurement.
#[derive(Clone, Copy)]
struct Cell {
    name: &'static str,
    is_marked: bool,
    /// Host of the flood.
    flood: Option<&'static str>,
}

const CELLS: [Cell; 4] = [
    Cell { name: "no flood", is_marked: true, flood: None },
    Cell { name: "flood, not marked", is_marked: false, flood: Some("noise") },
    Cell { name: "flood, DSCP 46", is_marked: true, flood: Some("noise") },
    Cell { name: "flood from the same host, DSCP 46", is_marked: true, flood: Some("talker") },
];

fn main() {
    println!("| link | case | lost of {SAMPLES} | median us | p99 us | p99.9 us | max us |");
    println!("|---|---|---|---|---|---|---|");
    for megabits in [10, 20, 100] {
        let lab = match Lab::up(&network(megabits)) {
            Ok(lab) => lab,
            Err(why) => {
                eprintln!("strict_priority: {why}");
                std::process::exit(1);
            }
        };
        for cell in CELLS {
            let mut latencies = measure(&lab, cell, megabits);
            latencies.sort_unstable();
            let lost = SAMPLES - latencies.len() as u64;
            let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize] / 1000;
            let name = cell.name;
            let [median, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(at);
            println!("| {megabits} Mbit/s | {name} | {lost} | {median} | {p99} | {p999} | {max} |");
        }
    }
}

fn network(megabits: u64) -> LabFile {
    let text = format!(
        r#"
        name = "strict-priority-{}"
        [[classes]]
        name = "urgent"
        dscp = [46]
        frames = 64
        [[classes]]
        name = "other"
        frames = 256
        [hosts.talker]
        eth0 = ["10.7.0.1/24"]
        [hosts.noise]
        eth0 = ["10.7.0.2/24"]
        [hosts.listener]
        eth0 = ["{LISTENER}/24"]
        [switches.s1]
        [[links]]
        ends = ["talker:eth0", "s1"]
        [[links]]
        ends = ["noise:eth0", "s1"]
        [[links]]
        ends = ["s1", "listener:eth0"]
        rate = "{megabits} Mbit/s"
        "#,
        std::process::id()
    );
    text.parse().expect("success")
}

fn socket(host: &Namespace, address: &str) -> UdpSocket {
    host.run(|| UdpSocket::bind(address)).expect("root").expect("the port is free")
}

/// Returns the latencies of the datagrams that arrived, in ns.
fn measure(lab: &Lab, cell: Cell, megabits: u64) -> Vec<u64> {
    let host = |name: &str| lab.namespace(name).expect("a host of the file").clone();
    let receiver = socket(&host("listener"), &format!("{LISTENER}:7001"));
    let sender = socket(&host("talker"), "0.0.0.0:0");
    if cell.is_marked {
        setsockopt(&sender, sockopt::Ipv4Tos, &EXPEDITED).expect("any process may");
    }
    let sink = socket(&host("listener"), &format!("{LISTENER}:7002"));
    let begin = Instant::now();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if let Some(name) = cell.flood {
            let noise = socket(&host(name), "0.0.0.0:0");
            let (is_over, begin) = (&is_over, &begin);
            scope.spawn(move || flood(&noise, megabits, is_over, begin));
        }
        let latencies = scope.spawn(|| receive(&receiver, &begin));
        for number in 0..SAMPLES {
            wait_until(&begin, PERIOD * number as u32);
            let mut datagram = [0; PAYLOAD];
            datagram[..8].copy_from_slice(&(begin.elapsed().as_nanos() as u64).to_ne_bytes());
            sender.send_to(&datagram, format!("{LISTENER}:7001")).expect("there is a route");
        }
        let latencies = latencies.join().expect("it receives");
        is_over.store(true, Ordering::Relaxed);
        drop(sink);
        latencies
    })
}

/// Receives until no datagram has arrived for [`SILENCE`].
fn receive(receiver: &UdpSocket, begin: &Instant) -> Vec<u64> {
    receiver.set_read_timeout(Some(SILENCE)).expect("a timeout");
    let (mut latencies, mut datagram) = (Vec::new(), [0; PAYLOAD]);
    while receiver.recv(&mut datagram).is_ok() {
        let sent = u64::from_ne_bytes(*datagram.first_chunk().expect("it is longer"));
        latencies.push((begin.elapsed().as_nanos() as u64).saturating_sub(sent));
    }
    latencies
}

/// Sends twice the rate of the link, for one second of two.
fn flood(noise: &UdpSocket, megabits: u64, is_over: &AtomicBool, begin: &Instant) {
    let bits_per_ns = 2.0 * megabits as f64 / 1000.0;
    while !is_over.load(Ordering::Relaxed) {
        let start = begin.elapsed();
        let mut sent = 0.0;
        while begin.elapsed() - start < FLOOD_HALF && !is_over.load(Ordering::Relaxed) {
            let due = (begin.elapsed() - start).as_nanos() as f64 * bits_per_ns;
            while sent < due {
                // A full queue of the sender ends this tick.
                if noise.send_to(&[0; PAYLOAD], format!("{LISTENER}:7002")).is_err() {
                    break;
                }
                sent += 8.0 * PAYLOAD as f64;
            }
            // tidy-allow(sleep): the workload has a rate
            std::thread::sleep(TICK);
        }
        wait_until(begin, start + 2 * FLOOD_HALF);
    }
}

fn wait_until(begin: &Instant, moment: Duration) {
    // tidy-allow(sleep): the workload has a period
    std::thread::sleep(moment.saturating_sub(begin.elapsed()));
}
