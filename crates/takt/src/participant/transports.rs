//! Which transports a participant has, and what goes by which: chosen by configuration, each choice with a fallback order.
//!
//! | for | by default |
//! |---|---|
//! | user data | UDP, and shared memory beside it |
//! | discovery | what carries the user data, if that is UDP or TCP; else UDP |
//! | topics of a pattern | as other user data |
//! | extra | nothing |
//!
//! A transport that is asked for in several places is opened once. What is open and used nowhere in the end is closed again.
//! Every refusal is kept with its reason ([`TransportReport`]), and is a warning where something else was taken instead.

use std::net::Ipv4Addr;

use takt_transport::choice::{self, Opened, Request, TransportChoice, TransportSpec};
use takt_transport::shm::ShmConfig;
use takt_transport::tcp::TcpConfig;
use takt_transport::udp::UdpConfig;
use takt_transport::{Transport, TransportError, Warning};
use takt_wire::Locator;

use super::report::{Attempt, Decision, TransportReport};
use crate::runtime::roles::{Roles, Rule, Set, TRANSPORTS_MAX};
use crate::{Error, Result};

/// What was asked for, as it was written. `None` is left open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TransportConfig {
    pub(super) user_data: Option<Vec<String>>,
    pub(super) discovery: Option<Vec<String>>,
    /// `PATTERN=LIST` each.
    pub(super) topics: Option<Vec<String>>,
    pub(super) extra: Option<Vec<String>>,
}

impl TransportConfig {
    /// Whether anything was asked for.
    pub(super) fn is_set(&self) -> bool {
        let Self { user_data, discovery, topics, extra } = self;
        [user_data, discovery, topics, extra].into_iter().flatten().any(|list| !list.is_empty())
    }

    /// The same, with what `other` says where this says nothing.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            user_data: self.user_data.or(other.user_data),
            discovery: self.discovery.or(other.discovery),
            topics: self.topics.or(other.topics),
            extra: self.extra.or(other.extra),
        }
    }

    fn understood(&self) -> Result<Wanted> {
        let choice = |list: &Option<Vec<String>>| {
            let read = TransportChoice::of(list.iter().flatten());
            read.map_err(|error| Error::BadParameter { what: error.to_string() })
        };
        let mut topics = Vec::new();
        for text in self.topics.iter().flatten() {
            let wrong = |what: &str| Error::BadParameter { what: format!("transports of topics: {text:?}: {what}") };
            let (pattern, list) = text.split_once('=').ok_or_else(|| wrong("PATTERN=TRANSPORTS is expected"))?;
            if pattern.trim().is_empty() {
                return Err(wrong("a pattern of topic names is expected before the ="));
            }
            let choice: TransportChoice = list.parse().map_err(|error| wrong(&format!("{error}")))?;
            topics.push((pattern.trim().to_owned(), choice));
        }
        let (user_data, discovery, extra) =
            (choice(&self.user_data)?, choice(&self.discovery)?, choice(&self.extra)?.alternatives);
        Ok(Wanted { user_data, discovery, topics, extra: extra.concat() })
    }
}

/// What was asked for, understood.
struct Wanted {
    user_data: TransportChoice,
    discovery: TransportChoice,
    topics: Vec<(String, TransportChoice)>,
    extra: Vec<TransportSpec>,
}

/// What transports are opened with.
pub(super) struct Configs<'a> {
    pub(super) udp: &'a UdpConfig,
    pub(super) tcp: &'a TcpConfig,
    pub(super) shm: &'a ShmConfig,
}

/// The participant's transports, and who is for what.
pub(super) struct Assembly {
    pub(super) transports: Vec<Box<dyn Transport>>,
    pub(super) roles: Roles,
    pub(super) report: TransportReport,
    pub(super) warnings: Vec<Warning>,
}

/// What belongs to every participant that says so elsewhere: TCP that was configured, shared memory unless it is off.
#[derive(Clone, Copy)]
pub(super) struct Beside {
    pub(super) tcp: bool,
    pub(super) shm: bool,
}

/// Opens what was asked for.
///
/// # Errors
/// [`Error::BadParameter`] for what cannot be understood, [`Error::Transport`] for a choice of which nothing opens.
pub(super) fn assemble(config: &TransportConfig, configs: &Configs<'_>, beside: Beside) -> Result<Assembly> {
    let wanted = config.understood()?;
    let user_data = if wanted.user_data.is_empty() { plain("udp") } else { wanted.user_data };
    let general = [&user_data, &wanted.discovery, &plain("udp")].map(|choice| choice.alternatives.concat());
    let mut opener = Opener::new(configs, general.concat());
    let mut for_data = opener.choose("user data".to_owned(), &user_data)?;
    let mut for_discovery = match (wanted.discovery.is_empty(), opener.any(for_data, carries_ip)) {
        (true, true) => for_data,
        (true, false) => opener.choose("discovery".to_owned(), &plain("udp"))?,
        (false, _) => opener.choose("discovery".to_owned(), &wanted.discovery)?,
    };
    if !opener.any(for_discovery, |transport| carries_ip(transport) || carries_ethernet(transport)) {
        let what = format!("discovery by {}: it has to go by UDP, TCP or Ethernet", wanted.discovery);
        return Err(Error::BadParameter { what });
    }
    let mut rules = Vec::new();
    for (pattern, choice) in &wanted.topics {
        let transports = opener.choose(format!("topics {pattern}"), choice)?;
        rules.push(Rule { pattern: pattern.clone(), transports });
    }
    for spec in &wanted.extra {
        opener.offer("extra".to_owned(), spec)?;
    }
    if beside.tcp {
        let tcp = opener.get(&TransportSpec::named("tcp"))?.map_err(|refused| refused.into_error())?;
        (for_data, for_discovery) = (for_data.with(tcp), for_discovery.with(tcp));
    }
    if beside.shm
        && let Some(shm) = opener.offer("participants of this host".to_owned(), &TransportSpec::named("shm"))?
    {
        for_data = for_data.with(shm);
    }
    opener.finish(for_data, for_discovery, rules)
}

fn plain(name: &str) -> TransportChoice {
    TransportChoice { alternatives: vec![vec![TransportSpec::named(name)]] }
}

/// Whether a transport has an address of IP, or sends to such, by which others are found. What has an address of one network only need
/// not reach any other.
fn carries_ip(transport: &dyn Transport) -> bool {
    const KINDS: [i32; 2] = [Locator::KIND_UDP_V4, Locator::KIND_TCP_V4];
    let udp = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
    transport.locators().metatraffic_unicast.iter().any(|own| KINDS.contains(&own.kind))
        || KINDS.iter().any(|kind| transport.serves(&Locator { kind: *kind, ..udp }))
}

/// Whether a transport sends to hardware addresses, by which Takt's others are found, and nobody else's.
fn carries_ethernet(transport: &dyn Transport) -> bool {
    transport.serves(&Locator::takt_ethernet([2, 0, 0, 0, 0, 1], 1))
}

/// Why a transport did not open.
#[derive(Clone)]
struct Refused {
    spec: TransportSpec,
    kind: std::io::ErrorKind,
    why: String,
}

impl Refused {
    fn into_error(self) -> Error {
        TransportError::new("open", self.spec, std::io::Error::new(self.kind, self.why)).into()
    }
}

struct Opener<'a> {
    configs: &'a Configs<'a>,
    /// What may be for all endpoints, or for discovery. Others are reached by unicast, and so need no groups.
    general: Vec<TransportSpec>,
    open: Vec<(TransportSpec, Opened)>,
    refused: Vec<Refused>,
    report: TransportReport,
    warnings: Vec<Warning>,
}

impl<'a> Opener<'a> {
    fn new(configs: &'a Configs<'a>, general: Vec<TransportSpec>) -> Self {
        let (report, warnings) = (TransportReport::default(), Vec::new());
        Self { configs, general, open: Vec::new(), refused: Vec::new(), report, warnings }
    }

    /// The place of a transport; opens it if nobody has tried before.
    fn get(&mut self, spec: &TransportSpec) -> Result<std::result::Result<usize, Refused>> {
        if let Some(place) = self.open.iter().position(|(known, _)| known == spec) {
            return Ok(Ok(place));
        }
        if let Some(refused) = self.refused.iter().find(|refused| refused.spec == *spec) {
            return Ok(Err(refused.clone()));
        }
        if self.open.len() == TRANSPORTS_MAX {
            return Err(Error::OutOfResources { limit: "transports", value: TRANSPORTS_MAX as u64 });
        }
        let Configs { udp, tcp, shm } = *self.configs;
        let udp = UdpConfig { multicast: udp.multicast && self.general.contains(spec), ..udp.clone() };
        let request = Request { spec, udp: &udp, tcp, shm };
        let opened = match choice::factories().iter().find(|factory| factory.name() == spec.name) {
            Some(factory) => factory.open(&request),
            None => Err(request.refused("this program has no such transport: the crate that has it is not registered")),
        };
        Ok(match opened {
            Ok(opened) => {
                self.open.push((spec.clone(), opened));
                Ok(self.open.len() - 1)
            }
            Err(error) => {
                // What was tried and on what is said by whoever shows it, unless it is something else than the whole.
                let is_whole = error.op == "open" && error.target == spec.to_string();
                let why = if is_whole { error.source.to_string() } else { error.to_string() };
                let refused = Refused { spec: spec.clone(), kind: error.source.kind(), why };
                self.refused.push(refused.clone());
                Err(refused)
            }
        })
    }

    /// The first alternative of which all transports open. What was refused before is a warning.
    fn choose(&mut self, purpose: String, choice: &TransportChoice) -> Result<Set> {
        let mut attempts: Vec<Attempt> = Vec::new();
        let mut chosen = None;
        let mut last = None;
        for alternative in &choice.alternatives {
            let transports = alternative.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
            if chosen.is_some() {
                attempts.push(Attempt::untried(transports));
                continue;
            }
            let mut set = Set::default();
            let mut refusal = None;
            for spec in alternative {
                match self.get(spec)? {
                    Ok(place) => set = set.with(place),
                    Err(refused) => {
                        refusal = Some(refused);
                        break;
                    }
                }
            }
            match refusal {
                None => {
                    attempts.push(Attempt::open(transports, self.detail(set)));
                    chosen = Some(set);
                }
                Some(refused) => {
                    attempts.push(Attempt::refused(transports, refused.why.clone()));
                    last = Some(refused);
                }
            }
        }
        let refusals = attempts.iter().filter_map(|attempt| Some((&attempt.transports, attempt.refusal()?)));
        let refusals: Vec<String> = refusals.map(|(transports, why)| format!("{transports}: {why}")).collect();
        let Some(set) = chosen else {
            let kind = last.map_or(std::io::ErrorKind::InvalidInput, |refused| refused.kind);
            let source = std::io::Error::new(kind, refusals.join("; "));
            return Err(TransportError::new("find a transport for", purpose, source).into());
        };
        if !refusals.is_empty() {
            let taken = attempts.iter().find(|attempt| attempt.is_open()).map(|attempt| &attempt.transports);
            let taken = taken.map_or("", String::as_str);
            let what = format!("{purpose} by {taken}, since others were refused: {}", refusals.join("; "));
            let remedy = "see what `takt transport probe` says of the interface".into();
            self.warnings.push(Warning { what, remedy });
        }
        self.report.decisions.push(Decision { purpose, attempts });
        Ok(set)
    }

    /// Opens a transport that one can do without.
    fn offer(&mut self, purpose: String, spec: &TransportSpec) -> Result<Option<usize>> {
        let (place, attempt) = match self.get(spec)? {
            Ok(place) => {
                self.report.kept.push(spec.to_string());
                (Some(place), Attempt::open(spec.to_string(), self.detail(Set::default().with(place))))
            }
            Err(refused) => {
                let what = format!("{purpose}: no {spec}: {}", refused.why);
                let remedy = match spec.name.as_str() {
                    "shm" => "use Linux 5.14 or later, and permit Unix sockets and memfd_create".into(),
                    _ => "see what `takt transport probe` says of the interface".into(),
                };
                self.warnings.push(Warning { what, remedy });
                (None, Attempt::refused(spec.to_string(), refused.why))
            }
        };
        self.report.decisions.push(Decision { purpose, attempts: vec![attempt] });
        Ok(place)
    }

    fn detail(&self, set: Set) -> String {
        let details = self.open.iter().enumerate().filter(|(place, _)| set.has(*place));
        let details = details.map(|(_, (_, opened))| opened.detail.as_str()).filter(|detail| !detail.is_empty());
        details.collect::<Vec<_>>().join("; ")
    }

    fn any(&self, set: Set, does: impl Fn(&dyn Transport) -> bool) -> bool {
        let mut members = self.open.iter().enumerate().filter(|(place, _)| set.has(*place));
        members.any(|(_, (_, opened))| does(opened.transport.as_ref()))
    }

    /// Keeps what is used.
    fn finish(self, user_data: Set, discovery: Set, mut rules: Vec<Rule>) -> Result<Assembly> {
        let is_kept = |spec: &TransportSpec| self.report.kept.contains(&spec.to_string());
        let mut used = rules.iter().fold(user_data.or(discovery), |used, rule| used.or(rule.transports));
        for (place, _) in self.open.iter().enumerate().filter(|(_, (spec, _))| is_kept(spec)) {
            used = used.with(place);
        }
        let (user_data, discovery) = (user_data.among(used), discovery.among(used));
        rules.iter_mut().for_each(|rule| rule.transports = rule.transports.among(used));
        let Self { open, report, warnings, .. } = self;
        let kept = open.into_iter().enumerate().filter(|(place, _)| used.has(*place)).map(|(_, open)| open);
        let (specs, opened): (Vec<_>, Vec<_>) = kept.unzip();
        let transports = opened.into_iter().map(|opened| opened.transport).collect();
        let roles = Roles { user_data, discovery, rules, specs };
        Ok(Assembly { transports, roles, report, warnings })
    }
}
