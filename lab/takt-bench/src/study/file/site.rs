//! Table `[site]` of a campaign file: the hosts of the processes.

use super::{Form, Kind, Workload};
use crate::error::{Error, Result};
use crate::study::report::value::Value;
use crate::wire::hardware_address;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use takt_lab::LabFile;
use takt_lab::file::{Mac, Rate};

/// Interface of the hosts of a network given by rate, queue and switch.
pub const INTERFACE: &str = "eth0";
/// Hosts of a network given by rate, queue and switch.
const HOSTS: [(&str, Ipv4Addr); 2] = [("a", Ipv4Addr::new(10, 79, 0, 1)), ("b", Ipv4Addr::new(10, 79, 0, 2))];
/// Default queue length at each end of a rate-limited link, frames.
const QUEUE: u32 = 1000;

/// Hosts and network of the processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub enum Site {
    /// Loopback interface of a network namespace, one host.
    #[default]
    Loopback,
    /// Two hosts at the ends of one link without a rate limit.
    Link,
    /// Two hosts of a network of `takt lab`.
    Lab(LabSite),
    /// Two machines reached by ssh.
    Ssh(SshSite),
}

/// Network of `takt lab`: a file, or a rate-limited link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LabSite {
    /// Lab file, relative to the campaign file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Text of the lab file, only in results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Hosts of the measuring and of the answering process; optional for a file with two hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Without a file: rate of the link, such as `1 Gbit/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Without a file: queue length at the rate limit of the link, frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// Without a file: switch between the hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Switch>,
}

/// Switch between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// Bridge of the kernel.
    Bridge,
    /// Bridge of Open vSwitch.
    OpenVswitch,
}

/// Two machines reached by ssh.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SshSite {
    /// `USER@HOST` of the measuring and of the answering process.
    pub hosts: [String; 2],
    /// Addresses in the measured network.
    pub addresses: [Ipv4Addr; 2],
    /// Interfaces in the measured network.
    pub interfaces: [String; 2],
    /// Path of `takt` on both machines.
    pub program: PathBuf,
    /// Directory of the agents of other systems on both machines, as `make -C lab/peers` fills it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<PathBuf>,
    /// Further options of ssh.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Processor that the processes of each machine are bound to.
    #[serde(default = "processors")]
    pub processors: [usize; 2],
    /// Relation of the hosts' clocks; `None`: the hosts do not share `CLOCK_MONOTONIC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
}

fn processors() -> [usize; 2] {
    [0, 1]
}

/// Relation of the clocks of two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// One clock: the hosts are namespaces of one machine.
    Same,
}

impl Site {
    /// Reads the files that the site names, relative to `directory`.
    ///
    /// # Errors
    /// A file cannot be read or breaks a rule.
    pub fn read(&mut self, directory: &Path) -> Result<()> {
        if let Self::Lab(LabSite { file: Some(file), network: network @ None, .. }) = self {
            let path = directory.join(&*file);
            let text = std::fs::read_to_string(&path).map_err(|e| Error::os(path.display().to_string(), e))?;
            *network = Some(text);
        }
        self.check()
    }

    /// Checks the rules of a site.
    ///
    /// # Errors
    /// Names the first broken rule.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Loopback | Self::Link => Ok(()),
            Self::Lab(lab) => lab.check(),
            Self::Ssh(ssh) => ssh.check(),
        }
    }

    /// Checks whether a workload can be measured at the site.
    ///
    /// # Errors
    /// It cannot; the error says what to change.
    pub fn check_workload(&self, workload: &Workload) -> Result<()> {
        if workload.kind.needs_switch() && !self.has_switch() {
            let text = "a link can be taken down, or lose frames, only at a site of the kind lab with a switch";
            return Err(Error::Usage(text.into()));
        }
        if workload.kind == Kind::RoundTrip || self.has_one_clock() {
            return Ok(());
        }
        let is_latency = |form: Form, value: Option<&str>| match form {
            Form::Series | Form::Histogram | Form::Ecdf | Form::Statistics | Form::Percentiles => true,
            _ => value.is_some_and(|value| Value::named(value).is_latency()),
        };
        match workload.figures.iter().find(|figure| is_latency(figure.form, figure.value.as_deref())) {
            Some(figure) => Err(Error::Usage(format!(
                "figure {:?} shows one-way latencies, and the two hosts of ssh have two clocks; measure round trips, or state \
                 clock = \"same\" in [site] if both are namespaces of one machine",
                figure.title
            ))),
            None => Ok(()),
        }
    }

    /// Reports whether the site has a switch. For a lab file, this is known after the file has been
    /// read.
    fn has_switch(&self) -> bool {
        match self {
            Self::Lab(lab) if lab.file.is_some() && lab.network.is_none() => true,
            Self::Lab(lab) => lab.network("bench").is_ok_and(|network| !network.switches.is_empty()),
            _ => false,
        }
    }

    /// Reports whether the times of both ends are of one clock.
    #[must_use]
    pub fn has_one_clock(&self) -> bool {
        !matches!(self, Self::Ssh(SshSite { clock: None, .. }))
    }

    /// Reports whether both ends have an Ethernet interface named `eth0`.
    #[must_use]
    pub fn has_ethernet(&self) -> bool {
        match self {
            Self::Loopback => false,
            Self::Link => true,
            Self::Lab(lab) => lab.ends().is_ok_and(|ends| ends.iter().all(|(_, interface, _)| interface == INTERFACE)),
            Self::Ssh(ssh) => ssh.interfaces.iter().all(|interface| interface == INTERFACE),
        }
    }
}

impl LabSite {
    fn check(&self) -> Result<()> {
        if self.file.is_some() && (self.rate.is_some() || self.queue.is_some() || self.switch.is_some()) {
            return Err(Error::Usage("[site] has a file: set rate, queue and switch in that file".into()));
        }
        if self.file.is_some() && self.network.is_none() {
            // The campaign was not read from a file, so there is nothing to check yet.
            return Ok(());
        }
        if let Some(rate) = &self.rate {
            Rate::try_from(rate.clone()).map_err(|why| Error::Usage(format!("rate of [site]: {why}")))?;
        }
        if self.queue.is_some() && self.rate.is_none() {
            return Err(Error::Usage("queue of [site] needs a rate: without one, no frames wait".into()));
        }
        self.ends().map(drop)
    }

    /// Returns the network as a file of `takt lab`.
    ///
    /// # Errors
    /// The text describes no network.
    pub fn network(&self, name: &str) -> Result<LabFile> {
        let mut text = self.network.clone().unwrap_or_else(|| self.own_network());
        let table: toml::Table = text.parse().map_err(|why: toml::de::Error| Error::Usage(why.to_string()))?;
        if !table.contains_key("name") {
            text = format!("name = \"{name}\"\n{text}");
        }
        // The lab of a campaign has a name of its own, so that a lab made from the same file may
        // exist at the same time.
        Ok(LabFile { name: name.into(), ..text.parse()? })
    }

    /// Returns the lab text of two hosts with a rate-limited link, through a switch if there is
    /// one.
    fn own_network(&self) -> String {
        let queue = self.queue.unwrap_or(QUEUE);
        let mut text = format!("static_neighbors = true\n[[classes]]\nname = \"all\"\nframes = {queue}\n");
        for (host, address) in HOSTS {
            text += &format!("[hosts.{host}]\n{INTERFACE} = [\"{address}/24\"]\n");
        }
        let rate = self.rate.as_ref().map_or_else(String::new, |rate| format!("rate = \"{rate}\"\n"));
        // Programs without IP expect these hardware addresses.
        let mac = |address: Ipv4Addr| Mac(hardware_address(address));
        let [(a, one), (b, other)] = HOSTS;
        let Some(switch) = self.switch else {
            return text
                + &format!(
                    "[[links]]\nends = [\"{a}:{INTERFACE}\", \"{b}:{INTERFACE}\"]\nmacs = [\"{}\", \"{}\"]\n\
                     offloads = [\"checksum\", \"segmentation\"]\n{rate}",
                    mac(one),
                    mac(other)
                );
        };
        let (kind, offloads) = match switch {
            Switch::Bridge => ("bridge", "offloads = [\"checksum\", \"segmentation\"]\n"),
            Switch::OpenVswitch => ("open-vswitch", ""),
        };
        text += &format!("[switches.switch]\nkind = \"{kind}\"\n");
        // The limit is at the switch port, so that it also applies to transports that bypass the
        // stack of a host.
        let rate = if rate.is_empty() { rate } else { format!("{rate}rate_at = \"switch\"\n") };
        for (number, (host, address)) in (1..).zip(HOSTS) {
            text += &format!(
                "[[links]]\nends = [\"{host}:{INTERFACE}\", \"switch\"]\n\
                 macs = [\"{}\", \"02:00:0a:4f:ff:{number:02x}\"]\n{offloads}{rate}",
                mac(address)
            );
        }
        text
    }

    /// Returns host, interface and address of the measuring and of the answering end.
    ///
    /// # Errors
    /// A network or host is missing, or the hosts share no network.
    pub fn ends(&self) -> Result<[(String, String, Ipv4Addr); 2]> {
        let file = self.network("bench")?;
        let named: Vec<&String> =
            if self.hosts.is_empty() { file.hosts.keys().collect() } else { self.hosts.iter().collect() };
        let known = || file.hosts.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let [one, other] = named.as_slice() else {
            let text = format!("hosts of [site] must name the measuring and the replying host, two of {}", known());
            return Err(Error::Usage(text));
        };
        let interfaces = |host: &str| {
            let found = file.hosts.get(host);
            found.ok_or_else(|| Error::Usage(format!("the network of [site] has no host {host}; expected {}", known())))
        };
        let flat = |host: &str| -> Result<Vec<_>> {
            let all = interfaces(host)?.iter();
            Ok(all.flat_map(|(name, addresses)| addresses.iter().map(|one| (name.clone(), *one))).collect())
        };
        let others = flat(other)?;
        let pair = flat(one)?.into_iter().find_map(|one| Some((one.clone(), shared(&one.1, &others)?)));
        let Some(((first, std::net::IpAddr::V4(own)), (second, std::net::IpAddr::V4(far)))) =
            pair.map(|(one, other)| ((one.0, one.1.ip), (other.0, other.1.ip)))
        else {
            return Err(Error::Usage(format!("{one} and {other} of [site] share no IPv4 network")));
        };
        Ok([((*one).clone(), first, own), ((*other).clone(), second, far)])
    }
}

type Addressed = (String, takt_lab::file::Address);

/// Returns the first of these addresses in the IPv4 network of `one`.
fn shared(one: &takt_lab::file::Address, others: &[Addressed]) -> Option<Addressed> {
    others.iter().find(|(_, other)| one.ip.is_ipv4() && one.shares_network(*other)).cloned()
}

impl SshSite {
    fn check(&self) -> Result<()> {
        let is_option = |host: &&String| host.is_empty() || host.starts_with('-');
        if let Some(host) = self.hosts.iter().find(is_option) {
            return Err(Error::Usage(format!("hosts of [site] has {host:?}: USER@HOST is expected")));
        }
        if !self.program.is_absolute() || self.agents.as_ref().is_some_and(|agents| !agents.is_absolute()) {
            return Err(Error::Usage("program and agents of [site] must be absolute paths on both hosts".into()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Campaign, Length};
    use super::*;

    fn parse(site: &str, more: &str) -> Result<Campaign> {
        let text = format!(
            "name = 'x'\ntitle = 'x'\nrounds = 1\n[site]\n{site}\n[[workload]]\nname = 'w'\nkind = 'stream'\nsystems = ['a']\n{more}"
        );
        Campaign::parse(&text, Length::Normal)
    }

    fn lab(site: &str) -> Result<LabSite> {
        match parse(&format!("kind = 'lab'\n{site}"), "")?.site {
            Site::Lab(lab) => Ok(lab),
            site => panic!("{site:?}"),
        }
    }

    const SSH: &str = "kind = 'ssh'\nhosts = ['u@a', 'u@b']\naddresses = ['10.0.0.1', '10.0.0.2']\n\
                       interfaces = ['eth0', 'eth0']\nprogram = '/usr/bin/takt'";

    #[test]
    fn site_with_rate_queue_and_switch_limits_the_rate_at_the_switch() {
        let site = lab("rate = '1 Gbit/s'\nqueue = 500\nswitch = 'bridge'").expect("the site is valid");
        let file = site.network("bench-1").expect("the site is valid");
        let plan = takt_lab::plan::Plan::new(&file).expect("the plan is valid");
        let shaped: Vec<_> = plan.shaped().map(|end| (end.name.clone(), end.rate)).collect();
        assert_eq!(
            shaped,
            [("switch-1".to_owned(), Some(1_000_000_000)), ("switch-2".to_owned(), Some(1_000_000_000))]
        );
        assert_eq!((file.name.as_str(), file.classes[0].frames), ("bench-1", 500));
        assert!(Site::Lab(site).has_ethernet());
        let direct = lab("").expect("the site is valid").network("bench-1").expect("the site is valid");
        assert_eq!((direct.links.len(), direct.switches.len()), (1, 0));
    }

    #[test]
    fn hosts_of_a_file_are_found_by_their_common_network() {
        let network = "[hosts.x]\nleft = ['10.1.0.1/24']\nright = ['10.2.0.1/24']\n[hosts.y]\neth9 = ['10.2.0.2/24']\n\
                       [hosts.z]\neth0 = ['10.1.0.3/24']\n[[links]]\nends = ['x:right', 'y:eth9']\n\
                       [[links]]\nends = ['x:left', 'z:eth0']";
        let of = |hosts: &[&str]| {
            let hosts = hosts.iter().map(ToString::to_string).collect();
            let site =
                LabSite { file: Some("n.toml".into()), network: Some(network.into()), hosts, ..LabSite::default() };
            site.ends()
        };
        let [one, other] = of(&["y", "x"]).expect("the hosts share a network");
        assert_eq!(one, ("y".into(), "eth9".into(), Ipv4Addr::new(10, 2, 0, 2)));
        assert_eq!(other, ("x".into(), "right".into(), Ipv4Addr::new(10, 2, 0, 1)));
        assert!(of(&[]).expect_err("three hosts").to_string().contains("of x, y, z"));
        assert!(of(&["y", "z"]).expect_err("no network").to_string().contains("share no IPv4 network"));
        assert!(of(&["y", "q"]).expect_err("no host").to_string().contains("no host q"));
    }

    #[test]
    fn site_errors_name_the_broken_rule() {
        let cases = [
            ("kind = 'lab'\nrate = 'fast'".to_owned(), "is not a rate"),
            ("kind = 'lab'\nqueue = 5".into(), "needs a rate"),
            ("kind = 'lab'\ncolour = 5".into(), "colour"),
            ("kind = 'lab'\nfile = 'x.toml'\nrate = '1 Gbit/s'".into(), "in that file"),
            (SSH.replace("'u@a'", "'-oProxyCommand=x'"), "USER@HOST"),
            (SSH.replace("/usr/bin/takt", "takt"), "absolute"),
        ];
        for (site, expected) in cases {
            let error = parse(&site, "").expect_err(&site).to_string();
            assert!(error.contains(expected), "{site}: {error}");
        }
    }

    #[test]
    fn one_way_latencies_of_two_clocks_are_refused_and_rates_are_not() {
        let figure = |value: &str| format!("[[workload.figure]]\nform = 'bars'\ntitle = 'F'\nvalue = '{value}'");
        let error = parse(SSH, &figure("p99")).expect_err("two clocks").to_string();
        assert!(error.contains("clock = \"same\"") && error.contains("workload w"), "{error}");
        parse(SSH, &figure("received_hz")).expect("rates need no clock");
        parse(&format!("{SSH}\nclock = 'same'"), &figure("p99")).expect("one clock");
    }
}
