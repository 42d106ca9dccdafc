//! Transports of a participant and their assignment to purposes. Each choice in the configuration
//! has a fallback order.
//!
//! | purpose | default |
//! |---|---|
//! | user data | UDP, plus shared memory |
//! | discovery | the transports for user data if they are UDP or TCP, else UDP |
//! | topics of a pattern | those of user data |
//! | extra | none |
//!
//! A transport that is configured for several purposes is opened once. Transports that remain
//! unused are closed again. [`TransportReport`] records every failure with its reason. A failure
//! also causes a warning if a fallback was taken.

use std::net::Ipv4Addr;

use takt_transport::choice::{self, Malformed, Opened, Request, TransportChoice, TransportSpec};
use takt_transport::shm::ShmConfig;
use takt_transport::tcp::TcpConfig;
use takt_transport::udp::UdpConfig;
use takt_transport::{Transport, TransportError, Warning};
use takt_wire::Locator;

use super::report::{Attempt, Decision, TransportReport};
use crate::runtime::roles::{Roles, Rule, TRANSPORTS_MAX, TransportSet};
use crate::{Error, Result};

/// Configured transports as written. `None` means not configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TransportConfig {
    pub(super) user_data: Option<Vec<String>>,
    pub(super) discovery: Option<Vec<String>>,
    /// One `PATTERN=LIST` for each entry.
    pub(super) topics: Option<Vec<String>>,
    pub(super) extra: Option<Vec<String>>,
}

impl TransportConfig {
    /// Reports whether any transport is configured.
    pub(super) fn is_set(&self) -> bool {
        let Self { user_data, discovery, topics, extra } = self;
        [user_data, discovery, topics, extra].into_iter().flatten().any(|list| !list.is_empty())
    }

    /// Returns this configuration, completed by `other` where this one is not set.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            user_data: self.user_data.or(other.user_data),
            discovery: self.discovery.or(other.discovery),
            topics: self.topics.or(other.topics),
            extra: self.extra.or(other.extra),
        }
    }

    fn parse(&self) -> Result<ParsedConfig> {
        let choice = |list: &Option<Vec<String>>| {
            let read = TransportChoice::parse_list(list.iter().flatten());
            read.map_err(|error| Error::bad_parameter_from(error.to_string(), error))
        };
        let mut topics = Vec::new();
        for text in self.topics.iter().flatten() {
            let text_of = |what: &str| format!("transports of topics: {text:?}: {what}");
            let invalid = |what: &str| Error::bad_parameter(text_of(what));
            let (pattern, list) = text.split_once('=').ok_or_else(|| invalid("expected PATTERN=TRANSPORTS"))?;
            if pattern.trim().is_empty() {
                return Err(invalid("expected a topic name pattern before the ="));
            }
            let choice: TransportChoice = list
                .parse()
                .map_err(|error: Malformed| Error::bad_parameter_from(text_of(&error.to_string()), error))?;
            topics.push((pattern.trim().to_owned(), choice));
        }
        let (user_data, discovery, extra) =
            (choice(&self.user_data)?, choice(&self.discovery)?, choice(&self.extra)?.alternatives);
        Ok(ParsedConfig { user_data, discovery, topics, extra: extra.concat() })
    }
}

/// Parsed transport configuration.
struct ParsedConfig {
    user_data: TransportChoice,
    discovery: TransportChoice,
    topics: Vec<(String, TransportChoice)>,
    extra: Vec<TransportSpec>,
}

/// Configurations with which transports are opened.
pub(super) struct Configs<'a> {
    pub(super) udp: &'a UdpConfig,
    pub(super) tcp: &'a TcpConfig,
    pub(super) shm: &'a ShmConfig,
}

/// Open transports of a participant and their roles.
pub(super) struct Assembly {
    pub(super) transports: Vec<Box<dyn Transport>>,
    pub(super) roles: Roles,
    pub(super) report: TransportReport,
    pub(super) warnings: Vec<Warning>,
}

/// Transports that are opened in addition because of other settings: TCP if it is configured,
/// shared memory unless it is disabled.
#[derive(Clone, Copy)]
pub(super) struct AdditionalTransports {
    pub(super) tcp: bool,
    pub(super) shm: bool,
}

/// Opens the configured transports.
///
/// # Errors
/// [`Error::BadParameter`] for an invalid configuration, [`Error::Transport`] for a choice of which
/// no alternative opens.
pub(super) fn assemble(
    config: &TransportConfig,
    configs: &Configs<'_>,
    additional: AdditionalTransports,
) -> Result<Assembly> {
    let wanted = config.parse()?;
    let user_data = if wanted.user_data.is_empty() { plain("udp") } else { wanted.user_data };
    let general = [&user_data, &wanted.discovery, &plain("udp")].map(|choice| choice.alternatives.concat());
    let mut opener = Opener::new(configs, general.concat());
    let mut for_data = opener.open_choice("user data".to_owned(), &user_data)?;
    let mut for_discovery = match (wanted.discovery.is_empty(), opener.any(for_data, carries_ip)) {
        (true, true) => for_data,
        (true, false) => opener.open_choice("discovery".to_owned(), &plain("udp"))?,
        (false, _) => opener.open_choice("discovery".to_owned(), &wanted.discovery)?,
    };
    if !opener.any(for_discovery, |transport| carries_ip(transport) || carries_ethernet(transport)) {
        let what = format!("discovery by {}: only UDP, TCP and Ethernet carry discovery", wanted.discovery);
        return Err(Error::bad_parameter(what));
    }
    let mut rules = Vec::new();
    for (pattern, choice) in &wanted.topics {
        let transports = opener.open_choice(format!("topics {pattern}"), choice)?;
        rules.push(Rule { pattern: pattern.clone(), transports });
    }
    for spec in &wanted.extra {
        opener.open_optional("extra".to_owned(), spec)?;
    }
    if additional.tcp {
        let tcp = opener.get(&TransportSpec::named("tcp"))?.map_err(|refused| refused.into_error())?;
        (for_data, for_discovery) = (for_data.with(tcp), for_discovery.with(tcp));
    }
    if additional.shm
        && let Some(shm) = opener.open_optional("participants of this host".to_owned(), &TransportSpec::named("shm"))?
    {
        for_data = for_data.with(shm);
    }
    opener.finish(for_data, for_discovery, rules)
}

fn plain(name: &str) -> TransportChoice {
    TransportChoice { alternatives: vec![vec![TransportSpec::named(name)]] }
}

/// Reports whether a transport has an IP address for discovery, or sends to IP addresses. A
/// transport that serves a single network only need not reach any other.
fn carries_ip(transport: &dyn Transport) -> bool {
    const KINDS: [i32; 2] = [Locator::KIND_UDP_V4, Locator::KIND_TCP_V4];
    let udp = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
    transport.status().locators.metatraffic_unicast.iter().any(|own| KINDS.contains(&own.kind))
        || KINDS.iter().any(|kind| transport.reach(&Locator { kind: *kind, ..udp }).is_served())
}

/// Reports whether a transport sends to hardware addresses, by which participants of Takt, but of
/// no other vendor, are discovered.
fn carries_ethernet(transport: &dyn Transport) -> bool {
    transport.reach(&Locator::takt_ethernet([2, 0, 0, 0, 0, 1], 1)).is_served()
}

/// Reason why a transport did not open.
#[derive(Clone)]
struct Refused {
    spec: TransportSpec,
    kind: std::io::ErrorKind,
    reason: String,
}

impl Refused {
    fn into_error(self) -> Error {
        TransportError::new("open", self.spec, std::io::Error::new(self.kind, self.reason)).into()
    }
}

struct Opener<'a> {
    configs: &'a Configs<'a>,
    /// Transports that serve all endpoints or discovery, so that they need multicast groups. All
    /// other transports are addressed by unicast only.
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

    /// Returns the index of a transport; opens it on the first call.
    fn get(&mut self, spec: &TransportSpec) -> Result<std::result::Result<usize, Refused>> {
        if let Some(index) = self.open.iter().position(|(known, _)| known == spec) {
            return Ok(Ok(index));
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
            None => Err(request.error("this program has no such transport: its crate is not registered")),
        };
        Ok(match opened {
            Ok(opened) => {
                self.open.push((spec.clone(), opened));
                Ok(self.open.len() - 1)
            }
            Err(error) => {
                // The code that prints a refusal adds operation and target. Keep them in the text
                // only if they differ.
                let is_whole = error.op == "open" && error.target == spec.to_string();
                let reason = if is_whole { error.source.to_string() } else { error.to_string() };
                let refused = Refused { spec: spec.clone(), kind: error.source.kind(), reason };
                self.refused.push(refused.clone());
                Err(refused)
            }
        })
    }

    /// Returns the first alternative whose transports all open. Earlier failures cause a warning.
    fn open_choice(&mut self, purpose: String, choice: &TransportChoice) -> Result<TransportSet> {
        let mut attempts: Vec<Attempt> = Vec::new();
        let mut chosen = None;
        let mut last = None;
        for alternative in &choice.alternatives {
            let transports = alternative.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
            if chosen.is_some() {
                attempts.push(Attempt::untried(transports));
                continue;
            }
            let mut set = TransportSet::default();
            let mut refusal = None;
            for spec in alternative {
                match self.get(spec)? {
                    Ok(index) => set = set.with(index),
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
                    attempts.push(Attempt::refused(transports, refused.reason.clone()));
                    last = Some(refused);
                }
            }
        }
        let refusals = attempts.iter().filter_map(|attempt| Some((&attempt.transports, attempt.refusal()?)));
        let refusals: Vec<String> = refusals.map(|(transports, reason)| format!("{transports}: {reason}")).collect();
        let Some(set) = chosen else {
            let kind = last.map_or(std::io::ErrorKind::InvalidInput, |refused| refused.kind);
            let source = std::io::Error::new(kind, refusals.join("; "));
            return Err(TransportError::new("find a transport for", purpose, source).into());
        };
        if !refusals.is_empty() {
            let taken = attempts.iter().find(|attempt| attempt.is_open()).map(|attempt| &attempt.transports);
            let taken = taken.map_or("", String::as_str);
            let what = format!("{purpose} by {taken}; other transports were refused: {}", refusals.join("; "));
            let remedy = "run `takt transport probe` to check the interface".into();
            self.warnings.push(Warning { what, remedy });
        }
        self.report.decisions.push(Decision { purpose, attempts });
        Ok(set)
    }

    /// Opens an optional transport. A failure causes a warning.
    fn open_optional(&mut self, purpose: String, spec: &TransportSpec) -> Result<Option<usize>> {
        let (index, attempt) = match self.get(spec)? {
            Ok(index) => {
                self.report.kept.push(spec.to_string());
                (Some(index), Attempt::open(spec.to_string(), self.detail(TransportSet::default().with(index))))
            }
            Err(refused) => {
                let what = format!("{purpose}: transport {spec} is unavailable: {}", refused.reason);
                let remedy = match spec.name.as_str() {
                    "shm" => "use Linux 5.14 or later, and permit Unix sockets and memfd_create".into(),
                    _ => "run `takt transport probe` to check the interface".into(),
                };
                self.warnings.push(Warning { what, remedy });
                (None, Attempt::refused(spec.to_string(), refused.reason))
            }
        };
        self.report.decisions.push(Decision { purpose, attempts: vec![attempt] });
        Ok(index)
    }

    fn detail(&self, set: TransportSet) -> String {
        let details = self.open.iter().enumerate().filter(|(index, _)| set.has(*index));
        let details = details.map(|(_, (_, opened))| opened.detail.as_str()).filter(|detail| !detail.is_empty());
        details.collect::<Vec<_>>().join("; ")
    }

    fn any(&self, set: TransportSet, predicate: impl Fn(&dyn Transport) -> bool) -> bool {
        let mut members = self.open.iter().enumerate().filter(|(index, _)| set.has(*index));
        members.any(|(_, (_, opened))| predicate(opened.transport.as_ref()))
    }

    /// Keeps the transports in use and closes the others.
    fn finish(self, user_data: TransportSet, discovery: TransportSet, mut rules: Vec<Rule>) -> Result<Assembly> {
        let is_kept = |spec: &TransportSpec| self.report.kept.contains(&spec.to_string());
        let mut used = rules.iter().fold(user_data.or(discovery), |used, rule| used.or(rule.transports));
        for (index, _) in self.open.iter().enumerate().filter(|(_, (spec, _))| is_kept(spec)) {
            used = used.with(index);
        }
        let (user_data, discovery) = (user_data.intersection(used), discovery.intersection(used));
        rules.iter_mut().for_each(|rule| rule.transports = rule.transports.intersection(used));
        let Self { open, report, warnings, .. } = self;
        let kept = open.into_iter().enumerate().filter(|(index, _)| used.has(*index)).map(|(_, open)| open);
        let (specs, opened): (Vec<_>, Vec<_>) = kept.unzip();
        let transports = opened.into_iter().map(|opened| opened.transport).collect();
        let roles = Roles { user_data, discovery, rules, specs };
        Ok(Assembly { transports, roles, report, warnings })
    }
}
