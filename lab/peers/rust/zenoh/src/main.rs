//! Bench agent for Zenoh: peers that discover one another by multicast, without a router.
mod complex;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agent::{Notify, Options, Received, Sink, System, Written};
use complex::{Complex, Item};
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::sample::Sample;
use zenoh::{Config, Session, Wait};

const RECEIVE_MAX: usize = 256;
const SCOUTING_PORT: u32 = 7500;

struct Zenoh {
    session: Session,
    writer: Option<Publisher<'static>>,
    reads: Option<String>,
    queue: Option<Subscriber<FifoChannelHandler<Sample>>>,
    listener: Mutex<Option<Subscriber<()>>>,
    complex: bool,
    wanted: usize,
}

fn text(error: zenoh::Error) -> String {
    format!("zenoh: {error}")
}

fn key(topic: &str) -> String {
    format!("bench/{topic}")
}

fn config(options: &Options) -> String {
    let link = if options.transport == "udp" { "udp" } else { "tcp" };
    let shared = options.transport == "shm";
    let unicast = match options.transport.as_str() {
        "lowlatency" => "unicast: { lowlatency: true, qos: { enabled: false } },",
        _ => "",
    };
    format!(
        r#"{{
          mode: "peer",
          listen: {{ endpoints: ["{link}/{}:0"] }},
          scouting: {{ multicast: {{ interface: "{}", address: "224.0.0.224:{}" }} }},
          transport: {{ {unicast} shared_memory: {{ enabled: {shared} }} }},
        }}"#,
        options.addr,
        options.iface,
        SCOUTING_PORT + options.domain
    )
}

fn deliver(sink: Sink, sample: &Sample, complex: bool) {
    let octets = sample.payload().to_bytes();
    if !complex {
        sink.deliver::<Complex>(Received::Octets(&octets));
    } else if let Some(sample) = Complex::decode(&octets) {
        sink.deliver(Received::Complex(&sample, sample.first_number()));
    }
}

impl System for Zenoh {
    const PEER: &std::ffi::CStr = c"zenoh";
    const VERSION: &std::ffi::CStr = c"1.10.2";
    const TRANSPORTS: &std::ffi::CStr = c"default,udp,shm,lowlatency";
    const NOTIFIES: &std::ffi::CStr = c"listener,waitset,poll";
    const TYPES: &std::ffi::CStr = c"octets,complex";
    type Complex = Complex;

    fn check(options: &Options) -> Result<(), String> {
        if options.depth.is_some() {
            return Err("Zenoh queues samples in order: hist=all alone".into());
        }
        if options.transport == "udp" && options.reliable {
            return Err("links of Zenoh over UDP are best effort: rel=besteffort alone".into());
        }
        options.require_multicast()
    }

    fn open(options: &Options, writes: Option<&str>, reads: Option<&str>) -> Result<Self, String> {
        let config = Config::from_json5(&config(options)).map_err(text)?;
        let session = zenoh::open(config).wait().map_err(text)?;
        let writer = match writes {
            None => None,
            Some(topic) => {
                let (congestion, reliability) = if options.reliable {
                    (CongestionControl::Block, Reliability::Reliable)
                } else {
                    (CongestionControl::Drop, Reliability::BestEffort)
                };
                let publisher = session
                    .declare_publisher(key(topic))
                    .congestion_control(congestion)
                    .reliability(reliability)
                    .express(options.transport == "lowlatency");
                Some(publisher.wait().map_err(text)?)
            }
        };
        // `listen` declares the reader of roles with a handler.
        let handled = !matches!(options.role.as_str(), "idle" | "disc");
        let queue = match reads {
            Some(topic) if options.notify != Notify::Listener || !handled => {
                let subscriber = session.declare_subscriber(key(topic));
                let queue = FifoChannel::new(RECEIVE_MAX);
                Some(subscriber.with(queue).wait().map_err(text)?)
            }
            _ => None,
        };
        let (reads, complex) = (reads.map(key), options.complex);
        let wanted = if options.role == "pub" || !handled { options.n } else { 1 };
        Ok(Zenoh { session, writer, reads, queue, listener: Mutex::default(), complex, wanted })
    }

    fn close(self: Box<Self>) {
        // A thread of Zenoh may still be in the listener.
        let _ = Box::leak(self).session.close().wait();
    }

    /// Returns the number of matching readers. Zenoh only reports whether any reader matches; for
    /// more than one, connected peers are counted.
    fn matched_readers(&self) -> usize {
        let Some(writer) = &self.writer else { return 0 };
        if !writer.matching_status().wait().is_ok_and(|status| status.matching()) {
            return 0;
        }
        self.matched_writers().min(self.wanted)
    }

    fn matched_writers(&self) -> usize {
        self.session.info().peers_zid().wait().count()
    }

    fn write(&self, data: &[u8]) -> Written {
        let Some(writer) = &self.writer else { return Written::Refused };
        Written::of(writer.put(data).wait().is_ok())
    }

    fn receive(&self, sink: Sink, timeout: Duration) {
        let Some(queue) = &self.queue else { return };
        let first = if timeout.is_zero() { queue.try_recv() } else { queue.recv_timeout(timeout) };
        let Ok(Some(first)) = first else { return };
        deliver(sink, &first, self.complex);
        for _ in 1..RECEIVE_MAX {
            let Ok(Some(next)) = queue.try_recv() else { return };
            deliver(sink, &next, self.complex);
        }
    }

    fn listen(&self, sink: Sink) -> Result<(), String> {
        let Some(key) = &self.reads else { return Err("zenoh: no reader".into()) };
        let complex = self.complex;
        // The kit allows one thread at a time.
        let sink = Mutex::new(sink);
        let callback = move |sample: Sample| {
            let sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
            deliver(*sink, &sample, complex);
        };
        let subscriber = self.session.declare_subscriber(key).callback(callback).wait().map_err(text)?;
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(subscriber);
        Ok(())
    }

    fn complex_new(groups: Vec<Vec<(String, i32)>>) -> Option<Complex> {
        let item = |(name, number)| Item { name, number };
        let group = |items: Vec<_>| items.into_iter().map(item).collect();
        Some(Complex { groups: groups.into_iter().map(group).collect() })
    }

    fn complex_set_number(sample: &mut Complex, number: i32) {
        if let Some(item) = sample.groups.first_mut().and_then(|group| group.first_mut()) {
            item.number = number;
        }
    }

    fn complex_write(&self, sample: &Complex) -> Written {
        let Some(writer) = &self.writer else { return Written::Refused };
        Written::of(writer.put(sample.encode()).wait().is_ok())
    }
}

fn main() {
    agent::run::<Zenoh>()
}
