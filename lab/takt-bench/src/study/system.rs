//! Systems that can be measured (`lab/peers/systems.toml`, `lab/peers/takt.toml`), and the paths of
//! their agents.
//!
//! `make -C lab/peers` produces an executable for each program that it can build. For each other
//! program it writes a text `NAME.missing` with the missing prerequisite and how to install it.

use super::file::{Kind, Site};
use super::parameter::{Value, Values};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Systems of the repository.
const TREE: [(&str, &str); 2] =
    [("lab/peers/takt.toml", include_str!("takt.toml")), ("lab/peers/systems.toml", include_str!("systems.toml"))];
/// Environment variable with the directory of the agents; it overrides the one that `make -C
/// lab/peers` filled.
const AGENTS: &str = "BENCH_AGENTS";

/// System in one configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Name in campaign files.
    pub name: String,
    /// Name in reports.
    pub title: String,
    /// Program that follows the agent contract: a name that `make -C lab/peers` builds, a path with
    /// a `/`, or `takt`: `takt perf agent`.
    pub program: String,
    /// `key=value` arguments.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Further arguments of the measuring and of the other process.
    #[serde(default)]
    pub sides: [Vec<String>; 2],
    /// Whether it needs two hosts with an Ethernet interface named `eth0`: a site other than
    /// loopback.
    #[serde(default)]
    pub link: bool,
    /// Whether it only plays the roles of workloads with a network of their own. Such a system is
    /// in no class.
    #[serde(default)]
    pub experiment: bool,
    /// Class of the system.
    pub class: Class,
    /// Kind of its configuration.
    pub profile: Profile,
    /// Document whose advice a tuned system follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// Whether its writer batches samples on its own, several in one packet.
    #[serde(default)]
    pub batches: bool,
    /// Transport of its samples: `udp`, `tcp`, `shm` and the like.
    pub transport: String,
    /// Whether its samples have a fixed size, so that each size needs processes of its own.
    #[serde(default)]
    pub fixed_size: bool,
    /// Only supported history; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// Supported notification modes; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<String>,
    /// Program of its broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<String>,
    /// Unsupported features, as `WORD: why`; lab/peers/README.md lists the words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

/// Class of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// DDS implementation.
    Dds,
    /// Other publish/subscribe middleware.
    Middleware,
    /// CORBA, SOAP, JMS, MQTT.
    Platform,
    /// Bare operating system.
    Limit,
}

/// Kind of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Default settings.
    Default,
    /// Settings that its documentation advises for the workload.
    Tuned,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Systems {
    system: Vec<System>,
}

/// Method to start an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Executable, with words before the role.
    Program {
        /// Path of the executable.
        path: PathBuf,
        /// Words before the role.
        prefix: Vec<String>,
    },
    /// Unavailable agent, with the reason.
    Missing(String),
}

/// Returns the systems of the repository, and those of further files.
///
/// # Errors
/// A file cannot be read or breaks a rule, or two systems have the same name.
pub fn systems(further: &[PathBuf]) -> Result<Vec<System>> {
    let mut systems = Vec::new();
    for (name, text) in TREE {
        systems.extend(parse(text).map_err(|why| Error::Usage(format!("{name}: {why}")))?);
    }
    for path in further {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| Error::os(&name, e))?;
        systems.extend(parse(&text).map_err(|why| Error::Usage(format!("{name}: {why}")))?);
    }
    let mut names = std::collections::BTreeSet::new();
    match systems.iter().find(|system| !names.insert(system.name.as_str())) {
        Some(twice) => Err(Error::Usage(format!("two systems are called {}", twice.name))),
        None => Ok(systems),
    }
}

fn parse(text: &str) -> Result<Vec<System>> {
    let Systems { system: systems } = toml::from_str(text).map_err(|e| Error::Usage(e.to_string()))?;
    systems.iter().try_for_each(check)?;
    Ok(systems)
}

/// Returns the systems that a workload names, in the order of the list, each once.
///
/// # Errors
/// A name is unknown.
pub fn selected<'a>(names: &[String], systems: &'a [System]) -> Result<Vec<&'a System>> {
    let mut selected: Vec<&System> = Vec::new();
    for name in names {
        let found: Vec<&System> = systems.iter().filter(|system| system.is_called(name)).collect();
        if found.is_empty() {
            let known: Vec<&str> = systems.iter().map(|system| system.name.as_str()).collect();
            return Err(Error::Usage(format!("no system is called {name}; expected one of {}", known.join(", "))));
        }
        for system in found {
            if !selected.iter().any(|one| one.name == system.name) {
                selected.push(system);
            }
        }
    }
    Ok(selected)
}

impl System {
    /// Program name of Takt's agent.
    pub const TAKT: &str = "takt";

    fn is_called(&self, name: &str) -> bool {
        let class = match self.class {
            Class::Dds => "@dds",
            Class::Middleware => "@middleware",
            Class::Platform => "@platform",
            Class::Limit => "@limit",
        };
        self.name == name || (class == name && !self.experiment)
    }

    /// Returns the reason for which it does not support a workload with these values; `None` if it
    /// does.
    #[must_use]
    pub fn refusal(&self, site: &Site, kind: Kind, values: &Values) -> Option<String> {
        if self.experiment != kind.is_experiment() {
            let own = if self.experiment {
                "it supports only isolation and sdn-overload"
            } else {
                "it does not support isolation and sdn-overload"
            };
            return Some(own.into());
        }
        if self.link && !site.has_ethernet() {
            return Some("it needs a link between two hosts, with interfaces called eth0".into());
        }
        let text = |key: &str| values.get(key).map(ToString::to_string);
        let number = |key: &str| match values.get(key) {
            Some(Value::Number(number)) => *number,
            _ => 0,
        };
        if let Some(notify) = text("notify")
            && !self.notify.is_empty()
            && notify != "auto"
            && !self.notify.contains(&notify)
        {
            return Some(format!("it has no notification by {notify}"));
        }
        self.except.iter().find_map(|exception| {
            let (word, why) = exception.split_once(':').unwrap_or((exception, "not supported"));
            let is_meant = match word.trim() {
                // Limits are measured anyway; their reports show the losses.
                "reliable" => self.class != Class::Limit && text("reliability").is_none_or(|value| value == "reliable"),
                "besteffort" => text("reliability").is_some_and(|value| value == "best-effort"),
                "complex" => text("type").is_some_and(|value| value == "complex"),
                "ack" => text("reply").is_some_and(|value| value == "ack"),
                "open-loop" => number("period-us") > 0,
                "fan-out" => number("readers") > 1,
                "multicast" | "broadcast" => text("delivery").is_some_and(|value| value == word.trim()),
                "stream" => matches!(kind, Kind::Stream | Kind::BothWays),
                "both-ways" => kind == Kind::BothWays,
                "idle" | "disc" => kind == Kind::Idle,
                word => is_above(word, number("size")),
            };
            is_meant.then(|| why.trim().to_owned())
        })
    }

    /// Returns the arguments that follow those of the cell.
    pub fn last_arguments(&self) -> impl Iterator<Item = String> + '_ {
        let is_lossy = self.class == Class::Limit && self.except.iter().any(|word| word.starts_with("reliable:"));
        let history = self.history.iter().map(|history| format!("hist={history}"));
        history.chain(is_lossy.then(|| "rel=besteffort".to_owned())).chain(self.arguments.iter().cloned())
    }

    /// Returns its agent.
    #[must_use]
    pub fn agent(&self) -> Agent {
        if self.program == Self::TAKT && self.transport == DPDK && !has_transport(DPDK) {
            let how =
                "this build has no DPDK: apt-get install dpdk-dev, cargo build --release -p takt-cli --features dpdk";
            return Agent::Missing(how.into());
        }
        self.program(&self.program)
    }

    /// Returns its broker, if it has one.
    #[must_use]
    pub fn broker_agent(&self) -> Option<Agent> {
        self.broker.as_deref().map(|program| self.program(program))
    }

    fn program(&self, program: &str) -> Agent {
        if program == System::TAKT {
            return match std::env::current_exe() {
                Ok(path) => Agent::Program { path, prefix: vec!["perf".into(), "agent".into()] },
                Err(why) => Agent::Missing(format!("the path of this program is unknown: {why}")),
            };
        }
        if program.contains('/') {
            let path = PathBuf::from(program);
            let missing = || Agent::Missing(format!("{program} does not exist"));
            return if path.is_file() { Agent::Program { path, prefix: Vec::new() } } else { missing() };
        }
        match agents_directory() {
            Some(directory) => in_directory(&directory, program),
            None => Agent::Missing("no agents are built: make -C lab/peers".into()),
        }
    }
}

/// Reports whether this program supports such a transport.
fn has_transport(name: &str) -> bool {
    takt::transport::choice::factories().iter().any(|factory| factory.name() == name)
}

/// Reports whether the word is `above N` and the size exceeds N.
fn is_above(word: &str, size: u64) -> bool {
    let limit = word.strip_prefix("above ").and_then(|number| number.parse().ok());
    limit.is_some_and(|limit: u64| size > limit)
}

/// Name of the transport that is only in some builds.
const DPDK: &str = "dpdk";

/// Words of `except` other than `above N`.
const EXCEPTIONS: [&str; 12] = [
    "reliable",
    "besteffort",
    "complex",
    "ack",
    "open-loop",
    "fan-out",
    "multicast",
    "broadcast",
    "stream",
    "both-ways",
    "idle",
    "disc",
];

fn check(system: &System) -> Result<()> {
    let word = |exception: &String| exception.split(':').next().unwrap_or_default().trim().to_owned();
    let is_known = |word: &String| EXCEPTIONS.contains(&word.as_str()) || is_above(word, u64::MAX);
    match system.except.iter().map(word).find(|word| !is_known(word)) {
        Some(word) => {
            let known = EXCEPTIONS.join(", ");
            Err(Error::Usage(format!("{}: except has {word:?}; expected {known}, above N", system.name)))
        }
        None => Ok(()),
    }
}

fn in_directory(directory: &Path, program: &str) -> Agent {
    let path = directory.join(program);
    if path.is_file() {
        return Agent::Program { path, prefix: Vec::new() };
    }
    let text = std::fs::read_to_string(directory.join(format!("{program}.missing"))).unwrap_or_default();
    let why = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let not_built = || format!("{} is not built: make -C lab/peers", path.display());
    Agent::Missing(if why.is_empty() { not_built() } else { why })
}

/// Returns the name of a program in a command for another machine: `takt`, or `$BENCH_AGENTS/NAME`.
pub(super) fn portable(program: &Path) -> String {
    if std::env::current_exe().is_ok_and(|own| own == program) {
        return System::TAKT.to_owned();
    }
    let of_agents = agents_directory().and_then(|agents| Some(program.strip_prefix(agents).ok()?.to_owned()));
    of_agents.map_or_else(|| program.display().to_string(), |name| format!("${AGENTS}/{}", name.display()))
}

/// Returns the directory that `make -C lab/peers` filled: given by `BENCH_AGENTS`, or by the
/// Makefile.
fn agents_directory() -> Option<PathBuf> {
    static DIRECTORY: std::sync::OnceLock<Option<PathBuf>> = std::sync::OnceLock::new();
    DIRECTORY.get_or_init(find_agents_directory).clone()
}

fn find_agents_directory() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(AGENTS) {
        return Some(path.into());
    }
    let here = std::env::current_dir().ok()?;
    let makefile = |above: &Path| above.join("lab/peers/Makefile").is_file();
    let root = here.ancestors().find(|above| makefile(above))?;
    let output =
        std::process::Command::new("make").args(["-s", "-C"]).arg(root.join("lab/peers")).arg("paths").output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    text.lines().next().map(PathBuf::from).filter(|path| path.is_dir())
}

#[cfg(test)]
mod tests {
    use super::super::parameter::Value;
    use super::*;

    fn system() -> System {
        let text = "[[system]]\nname = 'x'\ntitle = 'X'\nprogram = 'x'\nclass = 'dds'\nprofile = 'default'\n\
                    transport = 'udp'\nnotify = ['listener']\n\
                    except = ['complex: no such type', 'idle: it has no idle state', 'above 64: too long',\n\
                    'reliable: it loses', 'broadcast: it has none']";
        parse(text).unwrap().remove(0)
    }

    #[test]
    fn systems_of_the_repository_have_unique_names() {
        let systems = systems(&[]).unwrap();
        assert!(systems.iter().any(|system| system.program == System::TAKT));
        for system in &systems {
            let document =
                system.document.is_some() || system.profile == Profile::Default || system.class == Class::Limit;
            assert!(document || system.program == System::TAKT, "{}: tuned by which document?", system.name);
        }
    }

    #[test]
    fn names_and_classes_select_each_system_once() {
        let systems = [System { name: "a".into(), ..system() }, System { name: "b".into(), ..system() }];
        let names = |list: &[&str]| {
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            selected(&list, &systems).map(|found| found.iter().map(|s| s.name.clone()).collect::<Vec<_>>())
        };
        assert_eq!(names(&["b", "@dds"]).unwrap(), ["b", "a"]);
        assert!(names(&["c"]).unwrap_err().to_string().contains("expected one of a, b"));
    }

    #[test]
    fn refusals_give_the_reason_of_the_exception() {
        let values = |name: &str, value: &str| Values::from([(name.into(), Value::Text(value.into()))]);
        let refusal = |kind, values: &Values| system().refusal(&Site::Loopback, kind, values);
        let linked = System { link: true, ..system() };
        assert!(linked.refusal(&Site::Loopback, Kind::RoundTrip, &Values::new()).unwrap().contains("link"));
        assert_eq!(linked.refusal(&Site::Link, Kind::RoundTrip, &values("reliability", "best-effort")), None);
        assert_eq!(refusal(Kind::RoundTrip, &values("type", "complex")).unwrap(), "no such type");
        let best_effort = values("reliability", "best-effort");
        assert_eq!(refusal(Kind::RoundTrip, &best_effort), None);
        assert_eq!(refusal(Kind::RoundTrip, &values("type", "octets")).unwrap(), "it loses", "reliable is the default");
        let delivered = |by: &str| best_effort.clone().into_iter().chain(values("delivery", by)).collect();
        assert_eq!(refusal(Kind::Stream, &delivered("multicast")), None);
        assert_eq!(refusal(Kind::Stream, &delivered("broadcast")).unwrap(), "it has none");
        let sized = |size| Values::from([("size".into(), Value::Number(size))]);
        let of_size = |size| refusal(Kind::Stream, &best_effort.clone().into_iter().chain(sized(size)).collect());
        assert_eq!((of_size(64), of_size(65).unwrap().as_str()), (None, "too long"));
        assert_eq!(refusal(Kind::Idle, &best_effort).unwrap(), "it has no idle state");
        assert!(refusal(Kind::Stream, &values("notify", "waitset")).unwrap().contains("waitset"));
        let limit = System { class: Class::Limit, ..system() };
        assert_eq!(limit.refusal(&Site::Loopback, Kind::RoundTrip, &values("reliability", "reliable")), None);
        assert!(limit.last_arguments().any(|argument| argument == "rel=besteffort"));
        assert!(!system().last_arguments().any(|argument| argument == "rel=besteffort"));
    }

    #[test]
    fn exceptions_of_unknown_words_are_refused() {
        let text = "[[system]]\nname = 'x'\ntitle = 'X'\nprogram = 'x'\nclass = 'dds'\nprofile = 'default'\n\
                    transport = 'udp'\nexcept = ['singing: it cannot']";
        assert!(parse(text).unwrap_err().to_string().contains("singing"));
    }

    #[test]
    fn missing_program_reports_the_missing_prerequisite() {
        let files = [("there", ""), ("gone.missing", "OpenDDS is not installed:\nset DDS_ROOT\n")];
        let directory = takt_testkit::directory::Directory::with("agents", &files);
        let directory = directory.path();
        let path = directory.join("there");
        assert_eq!(in_directory(directory, "there"), Agent::Program { path, prefix: Vec::new() });
        let why = "OpenDDS is not installed: set DDS_ROOT".to_owned();
        assert_eq!(in_directory(directory, "gone"), Agent::Missing(why));
        let Agent::Missing(why) = in_directory(directory, "unknown") else { panic!("expected a missing agent") };
        assert!(why.contains("make -C lab/peers"), "{why}");
    }
}
