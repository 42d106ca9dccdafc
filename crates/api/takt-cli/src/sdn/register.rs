//! `takt sdn register` and `unregister`: registration of pairs that discovery does not show, over
//! the control socket of a running controller.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use clap::Args;
use takt_bench::report::to_json;
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_sdn::api::control::Client;
use takt_sdn::registration::{LEASE_DEFAULT_S, OVERHEAD_DEFAULT, Registration, State};
use takt_sdn::view::Pair;

use super::show::{QueryOptions, failure, nanos, parsed, span};
use super::text;
use crate::output::{note, outln};

/// Path of the registrations in the API.
const PATH: &str = "/v1/registrations";
/// Longest time until a signal is noticed.
const PAUSE: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  takt sdn register Camera --writer robot --reader desk --from 10.0.0.1 --to 10.0.0.2 --port 7421 --separation 5ms --size 1000 --limit 10ms
                                   admits a best-effort pair for 60 s
  takt sdn register Arm --writer desk --reader robot --from 10.0.0.2 --to 10.0.0.1 --port 7421 --answer-port 7413 --separation 5ms --size 100 --limit 10ms --hold
                                   admits a reliable pair until the command stops
  takt sdn unregister 1            removes a registration before its lease expires";

/// `takt sdn register`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Register {
    /// Topic name, only displayed
    topic: String,
    /// Writer: its GUID or any name
    #[arg(long, value_name = "NAME")]
    writer: String,
    /// Reader: its GUID or any name
    #[arg(long, value_name = "NAME")]
    reader: String,
    /// Source address of the writer
    #[arg(long, value_name = "ADDRESS")]
    from: IpAddr,
    /// Address at which the reader receives
    #[arg(long, value_name = "ADDRESS")]
    to: IpAddr,
    /// UDP port at which the reader receives samples
    #[arg(long, value_name = "PORT")]
    port: u16,
    /// UDP port at which the writer of a reliable pair receives ACKNACKs
    #[arg(long, value_name = "PORT")]
    answer_port: Option<u16>,
    /// Multicast group and UDP port to which the writer may also send samples
    #[arg(long, value_name = "ADDRESS:PORT")]
    group: Option<SocketAddr>,
    /// Minimum separation of two samples, such as 5ms
    #[arg(long, value_name = "TIME", value_parser = span)]
    separation: Duration,
    /// Maximum delay of a sample before the interface of its host [default: one separation]
    #[arg(long, value_name = "TIME", value_parser = span)]
    jitter: Option<Duration>,
    /// Maximum size of a serialized sample, in octets
    #[arg(long, value_name = "OCTETS")]
    size: u32,
    /// Maximum latency from write to delivery, such as 2ms
    #[arg(long, value_name = "TIME", value_parser = span)]
    limit: Duration,
    /// Flows of higher importance stay admitted if not all are possible
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    importance: i32,
    /// Reserve second paths, for delivery when a link fails
    #[arg(long)]
    protected: bool,
    /// Octets that DDS Security adds to each datagram
    #[arg(long, value_name = "OCTETS", default_value_t = OVERHEAD_DEFAULT)]
    overhead: u32,
    /// Lease in seconds; the same command renews it
    #[arg(long, value_name = "SECONDS", default_value_t = LEASE_DEFAULT_S)]
    lease: u32,
    /// Renew the lease until a signal arrives, then remove the registration
    #[arg(long)]
    hold: bool,
    #[command(flatten)]
    query: QueryOptions,
}

/// `takt sdn unregister`
#[derive(Args)]
pub struct Unregister {
    /// ID of the registration, as in `takt sdn explain`
    id: u64,
    #[command(flatten)]
    query: QueryOptions,
}

impl Register {
    fn registration(&self) -> Registration {
        Registration {
            topic: self.topic.clone(),
            writer: self.writer.clone(),
            reader: self.reader.clone(),
            from: self.from,
            to: self.to,
            port: self.port,
            answer_port: self.answer_port,
            group: self.group,
            separation_ns: nanos(self.separation),
            jitter_ns: self.jitter.map(nanos),
            size: self.size,
            limit_ns: nanos(self.limit),
            importance: self.importance,
            protected: self.protected,
            overhead: self.overhead,
            lease_s: self.lease,
        }
    }

    /// Reports whether the command runs until a signal arrives and then removes the registration.
    pub fn is_held(&self) -> bool {
        self.hold
    }

    /// Registers the pair. Fails if it is refused.
    pub fn run(self) -> Result<()> {
        let body = to_json(&self.registration())?;
        let client = Client::find(self.query.control.as_deref()).map_err(failure)?;
        let pair = self.register(&client, &body)?;
        self.show(&pair)?;
        if self.hold {
            return self.hold(&client, &body, pair);
        }
        match state(&pair) {
            Some(State::Refused | State::Withdrawn) => Err(Error::NotKept { what: "the pair is refused".to_owned() }),
            _ => Ok(()),
        }
    }

    fn register(&self, client: &Client, body: &str) -> Result<Pair> {
        parsed(&client.post(PATH, body.as_bytes()).map_err(failure)?)
    }

    /// Renews the lease until a signal arrives, also while the controller does not answer. Prints
    /// decisions that changed.
    fn hold(&self, client: &Client, body: &str, mut pair: Pair) -> Result<()> {
        while !stopped() {
            self.pause();
            if stopped() {
                break;
            }
            match self.register(client, body) {
                Ok(now) => {
                    if state(&now) != state(&pair) {
                        self.show(&now)?;
                    }
                    pair = now;
                }
                Err(why) => note!("takt: warning: the lease is not renewed: {why}; retrying"),
            }
        }
        if let Some(registration) = &pair.registration {
            client.delete(&format!("{PATH}/{}", registration.id)).map_err(failure)?;
            note!("registration {} removed", registration.id);
        }
        Ok(())
    }

    /// Waits for a third of the lease, or for a signal.
    fn pause(&self) {
        let until = Instant::now() + Duration::from_secs(self.lease.into()) / 3;
        while !stopped() && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
    }

    fn show(&self, pair: &Pair) -> Result<()> {
        if self.query.json { outln!("{}", to_json(pair)?) } else { text::registered(pair) }
    }
}

fn state(pair: &Pair) -> Option<State> {
    pair.registration.as_ref().map(|registration| registration.state)
}

impl Unregister {
    /// Removes the registration.
    pub fn run(self) -> Result<()> {
        let client = Client::find(self.query.control.as_deref()).map_err(failure)?;
        let pair: Pair = parsed(&client.delete(&format!("{PATH}/{}", self.id)).map_err(failure)?)?;
        if self.query.json {
            return outln!("{}", to_json(&pair)?);
        }
        outln!("registration {} ({}) removed", self.id, pair.topic.escape_debug())
    }
}
