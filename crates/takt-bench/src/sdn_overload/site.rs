//! The network of the experiment, made by `takt-lab`: three hosts at a switch, with or without the controller.
//!
//! ```text
//! publisher ---- switch ==== subscriber
//! flooder   ----
//! ```
//!
//! The double link has the rate. The classes are those of the switch model `ovs-netdev`.

use super::Plan;
use crate::error::{Error, Result};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use takt_lab::file::SWITCHES;
use takt_lab::{Lab, LabFile};
use takt_sdn::contract::ContractFile;
use takt_sdn::controller::{Config, Event};
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_sdn::runtime::Runtime;

/// The host of the writer.
pub const PUBLISHER: &str = "publisher";
/// The host of the reader.
pub const SUBSCRIBER: &str = "subscriber";
/// The host of the overload.
pub const FLOODER: &str = "flooder";
/// The address of the reader's host.
pub const SUBSCRIBER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 2);
/// The topic of the pair.
pub const TOPIC: &str = "Overload";

/// The SCHED_FIFO priority of the switch, above that of the pair.
const SWITCH_PRIORITY: u8 = 30;
/// Octets that the serialised sample has besides its data: encapsulation header and length.
const SERIALIZED_MORE: usize = 8;
/// How long the controller may take until hosts may send.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);
/// How long the controller waits for octets at most.
const STEP: Duration = Duration::from_millis(50);
/// HEARTBEATs of a reliable writer besides its samples: CycloneDDS sends one each 20 ms at most.
const HEARTBEAT_NS: u64 = 20_000_000;
/// A sample may leave its host so late.
const JITTER_MS: u64 = 20;
/// What the network may take.
const LIMIT_MS: u64 = 50;

/// A network that is up, with a thread for its controller.
#[derive(Debug)]
pub struct Site {
    lab: Lab,
    name: String,
    controller: Option<Running>,
}

#[derive(Debug)]
struct Running {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    verdicts: Receiver<Verdict>,
}

enum Verdict {
    Settled,
    Admitted,
    Refused(String),
}

impl Site {
    /// Makes it.
    ///
    /// # Errors
    /// The machine cannot, or a check of the lab failed.
    pub fn new(plan: &Plan, is_controlled: bool) -> Result<Self> {
        let name = format!("overload-{}-{}", if is_controlled { "sdn" } else { "plain" }, std::process::id());
        let file: LabFile = network(plan, &name, is_controlled).parse().map_err(of_lab)?;
        let lab = Lab::up(&file).map_err(of_lab)?;
        let controller = is_controlled.then(|| Running::start(&lab, plan)).transpose()?;
        let mut site = Self { lab, name, controller };
        site.wait(SETTLE_LIMIT, |verdict| matches!(verdict, Verdict::Settled))?;
        Ok(site)
    }

    /// The path of a host's network namespace.
    pub fn namespace(&self, host: &str) -> String {
        format!("/run/netns/takt.{}.{host}", self.name)
    }

    /// Runs `f` on a host.
    ///
    /// # Errors
    /// Not root.
    pub fn run<R: Send>(&self, host: &str, f: impl FnOnce() -> R + Send) -> Result<R> {
        let namespace = self.lab.namespace(host).map_err(of_lab)?;
        namespace.run(f).map_err(|source| Error::os(format!("enter host {host}"), source))
    }

    /// Forgets verdicts of earlier pairs.
    pub fn begin(&mut self) {
        if let Some(controller) = &self.controller {
            while controller.verdicts.try_recv().is_ok() {}
        }
    }

    /// Waits until the controller has admitted a pair; without a controller there is nothing to wait for.
    ///
    /// # Errors
    /// It is refused, or nothing is decided in time.
    pub fn wait_until_admitted(&mut self, limit: Duration) -> Result<()> {
        self.wait(limit, |verdict| matches!(verdict, Verdict::Admitted))
    }

    fn wait(&mut self, limit: Duration, is_awaited: impl Fn(&Verdict) -> bool) -> Result<()> {
        let Some(controller) = &self.controller else { return Ok(()) };
        let end = Instant::now() + limit;
        // A pair is refused until the addresses of its hosts are known.
        let mut last = "no verdict".to_owned();
        loop {
            match controller.verdicts.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(verdict) if is_awaited(&verdict) => return Ok(()),
                Ok(Verdict::Refused(why)) => last = why,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let what = format!("the controller admits no pair within {limit:?}: {last}");
                    return Err(Error::NoAnswer { what });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::NoAnswer { what: "the controller has ended".to_owned() });
                }
            }
        }
    }
}

impl Running {
    fn start(lab: &Lab, plan: &Plan) -> Result<Self> {
        let failed = |what: &dyn std::fmt::Display| Error::Usage(format!("the controller's files: {what}"));
        let rate = 1_000_000 * u64::from(plan.megabits);
        let text = format!(
            "heartbeat_period_ns = {HEARTBEAT_NS}\n[[switch]]\ndatapath_id = \"*\"\nmodel = \"ovs-netdev\"\nrate_bps = {rate}\n"
        );
        let network = NetworkFile::parse("network.toml", &text, SwitchModel::built_in).map_err(|why| failed(&why))?;
        let size = plan.sizes.iter().max().copied().unwrap_or(0) + SERIALIZED_MORE;
        let text = format!(
            "[[contract]]\ntopic = \"{TOPIC}\"\nseparation = \"{}ns\"\njitter = \"{JITTER_MS}ms\"\nsize = {size}\nlimit = \"{LIMIT_MS}ms\"\n",
            plan.period_ns
        );
        let mut config = Config { network: Some(network), ..Config::default() };
        config.discovery.contracts = ContractFile::parse(&text).map_err(|why| failed(&why))?;
        let address = ([127, 0, 0, 1], 6653).into();
        let listen = || Runtime::listen(address, None, config);
        let listened = lab.namespace(SWITCHES).map_err(of_lab)?.run(listen).and_then(|listened| listened);
        let runtime = listened.map_err(|source| Error::os("start the controller", source))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let (sender, verdicts) = channel();
        let thread = std::thread::spawn(move || serve(runtime, &over, &sender));
        Ok(Self { is_over, thread: Some(thread), verdicts })
    }
}

/// Runs the controller, and passes its verdicts on.
fn serve(mut runtime: Runtime, is_over: &AtomicBool, verdicts: &Sender<Verdict>) {
    let mut was_settled = false;
    while !is_over.load(Ordering::Relaxed) {
        // The kernel refuses to wait: the controller ends, and the next verdict is missing.
        if runtime.run_once(STEP).is_err() {
            return;
        }
        while let Some(event) = runtime.poll_event() {
            let verdict = match event {
                Event::Admitted { .. } => Verdict::Admitted,
                Event::Refused { reason, .. } => Verdict::Refused(reason),
                _ => continue,
            };
            // The receiver is gone only when this thread is to end.
            let _ = verdicts.send(verdict);
        }
        let controller = runtime.controller();
        let is_settled = controller.is_settled() && controller.topology().edges().count() == 3;
        if is_settled && !was_settled {
            let _ = verdicts.send(Verdict::Settled);
        }
        was_settled |= is_settled;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by then.
            let _ = thread.join();
        }
    }
}

fn of_lab(error: takt_lab::Error) -> Error {
    Error::Usage(error.to_string())
}

fn network(plan: &Plan, name: &str, is_controlled: bool) -> String {
    let Plan { megabits, frames, .. } = plan;
    let classes =
        [46, 34, 26, 18].map(|dscp| format!("[[classes]]\nname = \"{dscp}\"\ndscp = [{dscp}]\nframes = 100\n"));
    let controller = if is_controlled { "controller = \"tcp:127.0.0.1:6653\"" } else { "" };
    format!(
        r#"
name = "{name}"
switch_priority = {SWITCH_PRIORITY}
{}
[[classes]]
name = "other"
frames = {frames}
[hosts.{PUBLISHER}]
eth0 = ["10.81.0.1/24"]
[hosts.{SUBSCRIBER}]
eth0 = ["{SUBSCRIBER_ADDRESS}/24"]
[hosts.{FLOODER}]
eth0 = ["10.81.0.3/24"]
[switches.s1]
{controller}
[[links]]
ends = ["{PUBLISHER}:eth0", "s1"]
[[links]]
ends = ["{FLOODER}:eth0", "s1"]
[[links]]
ends = ["s1", "{SUBSCRIBER}:eth0"]
rate = "{megabits} Mbit/s"
"#,
        classes.concat()
    )
}
