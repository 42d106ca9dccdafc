//! Networks of the SDN overload experiment, created by `takt-lab`.
//!
//! ```text
//! publisher ---- s1 ==== s2 ==== s3 ==== subscriber        a row of one switch or more; one flooder at each switch
//!   flooder ---- s1      |        |
//!                       flooder  flooder
//!
//! publisher ---- s1 ========= s3 ==== subscriber            a ring; one flooder at s1
//!   flooder ---- s1 == s2 == s3
//! ```
//!
//! Double links are rate-limited. The traffic classes are those of the switch model `ovs-netdev`.

use crate::error::{Error, Result};
use crate::signal::stopped;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
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

/// Host of the writer.
pub const PUBLISHER: &str = "publisher";
/// Hosts of the readers.
pub const SUBSCRIBERS: [&str; 2] = ["subscriber", "subscriber-2"];
/// Address of the writer's host.
pub const PUBLISHER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 1);
/// Address of the first reader's host.
pub const SUBSCRIBER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 2);
/// Topic of the pair.
pub const TOPIC: &str = "Overload";
/// Maximum number of switches of a row.
pub const SWITCHES_MAX: u8 = 5;

/// SCHED_FIFO priority of the switch, above that of the pair.
const SWITCH_PRIORITY: u8 = 30;
/// Maximum time for the controller to enable the hosts' traffic.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);
/// Maximum wait of the controller for octets, and interval at which a wait for a verdict checks for
/// a stop.
const STEP: Duration = Duration::from_millis(50);
/// Minimum interval of HEARTBEATs that a reliable writer sends apart from samples: CycloneDDS sends
/// at most one each 20 ms.
const HEARTBEAT_NS: u64 = 20_000_000;
/// Queue length of a class of admitted flows, or of the controller, frames.
const CLASS_FRAMES: u32 = 100;

/// Topology of the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Row of this number of switches.
    Row(u8),
    /// Ring of three switches, whose direct link from writer to reader can fail.
    Ring,
}

/// Settings of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePlan {
    /// Prefix of the lab name; the process ID follows.
    pub name: String,
    /// Topology of the switches.
    pub topology: Topology,
    /// Number of readers' hosts, 1 or 2.
    pub readers: usize,
    /// Rate of the links between switches and to the readers, Mbit/s.
    pub megabits: u32,
    /// Queue length of traffic without admission, frames.
    pub frames: u32,
    /// Contract file of the controller; `None`: there is no controller.
    pub contracts: Option<String>,
}

/// Running network, with a thread for its controller.
#[derive(Debug)]
pub struct Site {
    lab: Lab,
    name: String,
    plan: SitePlan,
    controller: Option<Running>,
}

#[derive(Debug)]
struct Running {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    verdicts: Receiver<Verdict>,
}

/// Decision of the controller on a pair with a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Hosts can send; concerns no pair.
    TrafficEnabled,
    /// Admitted, with a bound of the time from host to host, ns.
    Admitted(u64),
    /// Refused, with the reason.
    Refused(String),
}

impl SitePlan {
    /// Returns the number of switches.
    fn switches(&self) -> u8 {
        match self.topology {
            Topology::Row(count) => count.clamp(1, SWITCHES_MAX),
            Topology::Ring => 3,
        }
    }

    /// Returns the overload hosts: in a row one at each switch, so that each link is overloaded
    /// separately.
    #[must_use]
    pub fn flooders(&self) -> Vec<String> {
        let count = if self.topology == Topology::Ring { 1 } else { self.switches() };
        (1..=count).map(|number| format!("flooder-{number}")).collect()
    }

    /// Returns the hosts with their addresses.
    fn hosts(&self) -> Vec<(String, Ipv4Addr)> {
        let address = |last| Ipv4Addr::new(10, 81, 0, last);
        let readers =
            SUBSCRIBERS[..self.readers].iter().zip(2..).map(|(name, last)| ((*name).to_owned(), address(last)));
        let flooders = self.flooders().into_iter().zip(10..).map(|(name, last)| (name, address(last)));
        std::iter::once((PUBLISHER.to_owned(), PUBLISHER_ADDRESS)).chain(readers).chain(flooders).collect()
    }

    /// Returns the rate-limited links between switches, then the others.
    fn links(&self) -> Vec<(String, String, bool)> {
        let last = self.switches();
        let mut links: Vec<_> = (1..last).map(|n| (format!("s{n}"), format!("s{}", n + 1), true)).collect();
        if self.topology == Topology::Ring {
            links.insert(0, ("s1".to_owned(), "s3".to_owned(), true));
        }
        links.push((format!("{PUBLISHER}:eth0"), "s1".to_owned(), false));
        let flooders = self.flooders().into_iter().zip(1..);
        links.extend(flooders.map(|(name, switch)| (format!("{name}:eth0"), format!("s{switch}"), false)));
        let readers = SUBSCRIBERS[..self.readers].iter();
        links.extend(readers.map(|name| (format!("s{last}"), format!("{name}:eth0"), true)));
        links
    }

    /// Checks that this user and this machine can create the network.
    ///
    /// # Errors
    /// Names the missing prerequisite.
    pub fn check_possible(&self) -> Result<()> {
        let file: LabFile = self.file(&self.name).parse()?;
        Ok(Lab::check_possible(&file)?)
    }

    fn file(&self, name: &str) -> String {
        let mut text = format!("name = \"{name}\"\nswitch_priority = {SWITCH_PRIORITY}\n");
        let mut add = |line: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{line}");
        };
        for dscp in [46, 34, 26, 18] {
            add(format!("[[classes]]\nname = \"{dscp}\"\ndscp = [{dscp}]\nframes = {CLASS_FRAMES}"));
        }
        // Traffic of the controller: discovery, ARP, LLDP.
        add(format!(
            "[[classes]]\nname = \"control\"\ndscp = [48]\nether_types = [0x0806, 0x88cc]\nframes = {CLASS_FRAMES}"
        ));
        add(format!("[[classes]]\nname = \"other\"\nframes = {}", self.frames));
        for (host, address) in self.hosts() {
            add(format!("[hosts.{host}]\neth0 = [\"{address}/24\"]"));
        }
        for number in 1..=self.switches() {
            add(format!("[switches.s{number}]"));
            if self.contracts.is_some() {
                add("controller = \"tcp:127.0.0.1:6653\"".to_owned());
            }
        }
        for (one, other, has_rate) in self.links() {
            add(format!("[[links]]\nends = [\"{one}\", \"{other}\"]"));
            if has_rate {
                add(format!("rate = \"{} Mbit/s\"", self.megabits));
            }
        }
        text
    }
}

impl Site {
    /// Creates the network.
    ///
    /// # Errors
    /// The machine cannot create it, or a check of the lab failed.
    pub fn new(plan: SitePlan) -> Result<Self> {
        if stopped() {
            return Err(Error::Stopped);
        }
        let name = format!("{}-{}", plan.name, std::process::id());
        let file: LabFile = plan.file(&name).parse()?;
        let lab = Lab::up(&file)?;
        let controller = plan.contracts.as_deref().map(|contracts| Running::start(&lab, &plan, contracts));
        let mut site = Self { lab, name, controller: controller.transpose()?, plan };
        if site.controller.is_some() {
            site.wait(SETTLE_LIMIT, |verdict| *verdict == Verdict::TrafficEnabled)?;
        }
        Ok(site)
    }

    /// Returns the settings of the network.
    #[must_use]
    pub fn plan(&self) -> &SitePlan {
        &self.plan
    }

    /// Returns the path of a host's network namespace.
    #[must_use]
    pub fn namespace(&self, host: &str) -> String {
        format!("/run/netns/takt.{}.{host}", self.name)
    }

    /// Runs `f` on a host.
    ///
    /// # Errors
    /// The user is not root.
    pub fn run<R: Send>(&self, host: &str, f: impl FnOnce() -> R + Send) -> Result<R> {
        let namespace = self.lab.namespace(host)?;
        namespace.run(f).map_err(|source| Error::os(format!("enter host {host}"), source))
    }

    /// Sets the direct link of a ring up or down.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn set_direct_link(&self, is_up: bool) -> Result<()> {
        Ok(self.lab.set_link(0, is_up)?)
    }

    /// Drops verdicts on earlier pairs.
    pub fn clear_verdicts(&mut self) {
        if let Some(controller) = &self.controller {
            while controller.verdicts.try_recv().is_ok() {}
        }
    }

    /// Waits until the controller has admitted `pairs` pairs. Returns the largest of their bounds,
    /// ns; `None` without a controller.
    ///
    /// # Errors
    /// A pair is refused, or not decided in time.
    pub fn wait_until_admitted(&mut self, pairs: usize, limit: Duration) -> Result<Option<u64>> {
        if self.controller.is_none() {
            return Ok(None);
        }
        let mut bound_ns = 0;
        for _ in 0..pairs {
            if let Verdict::Admitted(bound) = self.wait(limit, |verdict| matches!(verdict, Verdict::Admitted(_)))? {
                bound_ns = bound_ns.max(bound);
            }
        }
        Ok(Some(bound_ns))
    }

    /// Waits until the controller has refused a pair by proof, and returns the reason.
    ///
    /// # Errors
    /// It has not in time, or there is no controller.
    pub fn wait_until_refused(&mut self, limit: Duration) -> Result<String> {
        let is_proven =
            |verdict: &Verdict| matches!(verdict, Verdict::Refused(why) if why.contains("would take up to"));
        match self.wait(limit, is_proven)? {
            Verdict::Refused(why) => Ok(why),
            Verdict::TrafficEnabled | Verdict::Admitted(_) => {
                Err(Error::NoAnswer { what: "the verdict of the controller is not a refusal".to_owned() })
            }
        }
    }

    fn wait(&mut self, limit: Duration, is_awaited: impl Fn(&Verdict) -> bool) -> Result<Verdict> {
        let ended = || Error::NoAnswer { what: "the controller has ended".to_owned() };
        let controller = self.controller.as_ref().ok_or_else(ended)?;
        let end = Instant::now() + limit;
        // The controller refuses a pair until it knows the addresses of its hosts.
        let mut last = "no verdict".to_owned();
        loop {
            if stopped() {
                return Err(Error::Stopped);
            }
            let left = end.saturating_duration_since(Instant::now());
            match controller.verdicts.recv_timeout(left.min(STEP)) {
                Ok(verdict) if is_awaited(&verdict) => return Ok(verdict),
                Ok(Verdict::Refused(why)) => last = why,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                Err(RecvTimeoutError::Timeout) => {
                    let what = format!(
                        "the controller has not reached the expected decision within {limit:?}; its last one: {last}"
                    );
                    return Err(Error::NoAnswer { what });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            }
        }
    }
}

impl Running {
    fn start(lab: &Lab, plan: &SitePlan, contracts: &str) -> Result<Self> {
        let failed = |what: &dyn std::fmt::Display| Error::Usage(format!("the controller's files: {what}"));
        let rate = 1_000_000 * u64::from(plan.megabits);
        let text = format!(
            "heartbeat_period_ns = {HEARTBEAT_NS}\n[[switch]]\ndatapath_id = \"*\"\nmodel = \"ovs-netdev\"\nrate_bps = {rate}\n"
        );
        let network = NetworkFile::parse("network.toml", &text, SwitchModel::built_in).map_err(|why| failed(&why))?;
        let mut config = Config { network: Some(network), ..Config::default() };
        config.discovery.contracts = ContractFile::parse(contracts).map_err(|why| failed(&why))?;
        let address = ([127, 0, 0, 1], 6653).into();
        let listen = || Runtime::listen(address, None, config);
        let listened = lab.namespace(SWITCHES)?.run(listen).and_then(|listened| listened);
        let runtime = listened.map_err(|source| Error::os("start the controller", source))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let (sender, verdicts) = channel();
        let hosts = plan.hosts().len();
        let thread = std::thread::spawn(move || serve(runtime, hosts, &over, &sender));
        Ok(Self { is_over, thread: Some(thread), verdicts })
    }
}

/// Runs the controller, and forwards its verdicts.
fn serve(mut runtime: Runtime, hosts: usize, is_over: &AtomicBool, verdicts: &Sender<Verdict>) {
    let mut was_settled = false;
    while !is_over.load(Ordering::Relaxed) {
        // If the kernel refuses to wait, the controller ends, and the experiment fails for lack of
        // a verdict.
        if runtime.run_once(STEP).is_err() {
            return;
        }
        while let Some(event) = runtime.poll_event() {
            let verdict = match event {
                Event::Admitted { bound_ns, .. } => Verdict::Admitted(bound_ns),
                Event::Refused { reason, .. } => Verdict::Refused(reason),
                _ => continue,
            };
            // The receiver is gone only when this thread is about to end.
            let _ = verdicts.send(verdict);
        }
        let controller = runtime.controller();
        let is_settled = controller.is_settled() && controller.topology().edges().count() == hosts;
        if is_settled && !was_settled {
            let _ = verdicts.send(Verdict::TrafficEnabled);
        }
        was_settled |= is_settled;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(topology: Topology) -> SitePlan {
        let (name, contracts) = ("overload".to_owned(), Some(String::new()));
        SitePlan { name, topology, readers: 2, megabits: 20, frames: 256, contracts }
    }

    #[test]
    fn networks_of_all_topologies_are_valid_lab_files() {
        for topology in [Topology::Row(1), Topology::Row(SWITCHES_MAX), Topology::Ring] {
            let plan = plan(topology);
            let file: LabFile = plan.file("overload-1").parse().expect("the lab file is valid");
            assert_eq!(file.hosts.len(), plan.hosts().len(), "{topology:?}");
            takt_lab::plan::Plan::new(&file).expect("the plan is valid");
        }
    }

    #[test]
    fn row_has_a_flooder_at_each_switch_and_a_ring_one() {
        assert_eq!(plan(Topology::Row(3)).flooders().len(), 3);
        assert_eq!(plan(Topology::Ring).flooders(), ["flooder-1"]);
        assert_eq!(plan(Topology::Ring).links()[0], ("s1".to_owned(), "s3".to_owned(), true));
    }
}
