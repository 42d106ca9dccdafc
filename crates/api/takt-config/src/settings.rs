//! [`Settings`]: a participant's settings from files and the environment, each with its origin.
//!
//! The environment takes precedence over files, and a later file over an earlier one. Nothing is
//! applied implicitly: an application requests [`Settings::from_environment`] and the builder.

use std::collections::BTreeMap;
use std::path::Path;

use takt::DomainParticipantBuilder;
use takt::qos::{DomainParticipantQos, EntityName};

use crate::error::{ConfigError, Origin, Result};
use crate::provider::{QosProvider, parse, read_file};
use crate::setting::{self, Plan, Setting};
use crate::tree::{Format, Node, Place, did_you_mean, listing};
use crate::value::{Kind, Value};

/// Environment variable that names configuration files, separated by commas.
pub const TAKT_CONFIG: &str = "TAKT_CONFIG";

/// Settings of a participant, and QoS profiles.
///
/// # Examples
/// ```
/// use takt_config::{Format, Settings};
///
/// let mut settings = Settings::new();
/// settings.add_text("camera.toml", "[participant]\ndomain = 7\nname = \"camera\"\n", Format::Toml)?;
/// let builder = settings.participant()?;
/// # Ok::<(), takt_config::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Values by the path of the setting.
    values: BTreeMap<String, (Value, Origin)>,
    profiles: QosProvider,
}

/// Setting with its value and origin.
#[derive(Clone)]
pub struct EffectiveSetting {
    /// Setting that the value belongs to.
    pub setting: &'static Setting,
    /// Value. `None` for the default.
    pub value: Option<Value>,
    /// Position that set the value. `None` for the default.
    pub origin: Option<Origin>,
}

impl Settings {
    /// Creates settings with all defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the environment: the files that `TAKT_CONFIG` names, and the variables of the table.
    ///
    /// # Errors
    /// A file or a variable is invalid; the error says what is wrong, and where.
    pub fn from_environment() -> Result<Self> {
        let variable = |name: &str| std::env::var_os(name).map(|text| text.to_string_lossy().into_owned());
        let mut settings = Self::new();
        for file in variable(TAKT_CONFIG).iter().flat_map(|files| files.split(',')).map(str::trim) {
            if !file.is_empty() {
                settings.add_file(file)?;
            }
        }
        settings.add_environment(variable)?;
        Ok(settings)
    }

    /// Adds a file: settings and profiles in TOML, or profiles in XML.
    ///
    /// # Errors
    /// The file is invalid; the error says what is wrong, and where. Nothing of the file is added.
    pub fn add_file(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let (source, text, format) = read_file(path.as_ref())?;
        self.add_text(&source, &text, format)
    }

    /// Adds a text. `source` is its name in errors.
    ///
    /// # Errors
    /// The text is invalid; the error says what is wrong, and where. Nothing of the text is added.
    pub fn add_text(&mut self, source: &str, text: &str, format: Format) -> Result<()> {
        let root = parse(source, text, format)?;
        let mut changed = self.clone();
        if format == Format::Toml {
            changed.add_tables(&root, Place { source, path: "", format })?;
        }
        changed.profiles.add_root(source, format, &root)?;
        *self = changed;
        Ok(())
    }

    fn add_tables(&mut self, root: &Node, place: Place<'_>) -> Result<()> {
        for table in root.children().iter().filter(|table| table.name != "qos_library") {
            if !setting::all().any(|setting| setting.table == table.name) {
                let mut known: Vec<&str> = setting::all().map(|setting| setting.table).collect();
                known.dedup();
                known.push("qos_library");
                let meant = did_you_mean(&table.name, known.iter().copied());
                let what = format!("unknown table; expected {}{meant}", listing(&known));
                return Err(table.error(place, what));
            }
            table.check_no_text(place)?;
            table.check_attributes(place, &[])?;
            for node in table.children() {
                let is_named = |setting: &&Setting| setting.table == table.name && setting.key == node.name;
                let Some(setting) = setting::all().find(is_named) else {
                    let of_table = setting::all().filter(|setting| setting.table == table.name);
                    let known: Vec<&str> = of_table.map(|setting| setting.key).collect();
                    return Err(table.unknown_child(place, node, &known));
                };
                let path = table.below(place);
                let value = setting.kind.parse(node, Place { path: &path, ..place })?;
                self.values.insert(setting.path(), (value, node.origin(place)));
            }
        }
        Ok(())
    }

    /// Adds the settings of environment variables. `variable` returns the value of a variable.
    ///
    /// # Errors
    /// A variable is invalid; the error names it and the expected value.
    pub fn add_environment(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<()> {
        let mut values = Vec::new();
        for setting in setting::all() {
            let Some(text) = variable(setting.variable) else { continue };
            let text = match (setting.kind, text.trim()) {
                (Kind::Bool, "on" | "yes") => "true".to_owned(),
                (Kind::Bool, "off" | "no") => "false".to_owned(),
                _ => text,
            };
            let origin = Origin { source: setting.variable.to_owned(), line: 0 };
            let value = setting.kind.parse_text(&text).map_err(|what| ConfigError::new(origin.clone(), "", what))?;
            values.push((setting.path(), (value, origin)));
        }
        self.values.extend(values);
        Ok(())
    }

    /// Sets one setting, such as `participant.domain`, from the text that its environment variable
    /// would have. `source` is the origin in errors. The value takes precedence over those set
    /// earlier.
    ///
    /// # Errors
    /// The setting does not exist, or the text is none of its values.
    pub fn set(&mut self, path: &str, text: &str, source: &str) -> Result<()> {
        let origin = Origin { source: source.to_owned(), line: 0 };
        let Some(setting) = setting::all().find(|setting| setting.path() == path) else {
            return Err(ConfigError::new(origin, path, "no such setting".to_owned()));
        };
        let value = setting.kind.parse_text(text).map_err(|what| ConfigError::new(origin.clone(), "", what))?;
        self.values.insert(setting.path(), (value, origin));
        Ok(())
    }

    /// Resets settings to their defaults. Each path is a setting, such as `participant.name`, or a
    /// whole table, such as `real_time`. The policies of profiles remain.
    pub fn clear(&mut self, paths: &[&str]) {
        let is_cleared = |setting: &str| {
            let table = setting.split_once('.').map_or(setting, |(table, _)| table);
            paths.contains(&setting) || paths.contains(&table)
        };
        self.values.retain(|setting, _| !is_cleared(setting));
    }

    /// Returns the value of a setting by its path. `None` if it has its default.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<&Value> {
        self.values.get(path).map(|(value, _)| value)
    }

    /// Returns the profiles that were read.
    #[must_use]
    pub fn profiles(&self) -> &QosProvider {
        &self.profiles
    }

    /// Returns the builder of a participant with these settings. Later calls on the builder take
    /// precedence.
    ///
    /// # Errors
    /// The participant's profile does not exist, or the TCP settings contradict each other.
    pub fn participant(&self) -> Result<DomainParticipantBuilder> {
        let mut plan = Plan::default();
        for setting in setting::all() {
            if let Some((value, _)) = self.values.get(&setting.path()) {
                (setting.apply)(&mut plan, value);
            }
        }
        plan.check().map_err(|(path, what)| {
            let origin = self.values.get(path).map(|(_, origin)| origin.clone());
            // A missing setting has no position.
            let origin = origin.unwrap_or(Origin { source: "settings".to_owned(), line: 0 });
            ConfigError::new(origin, path, what)
        })?;
        Ok(plan.builder().qos(self.participant_qos()?))
    }

    /// Returns the policies of [`participant`](Self::participant): those of the profile, and the
    /// name.
    ///
    /// # Errors
    /// The participant's profile does not exist.
    pub fn participant_qos(&self) -> Result<DomainParticipantQos> {
        let text = |path| match self.value(path) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let mut qos = match text("participant.qos_profile").or_else(|| self.profiles.default_profile()) {
            None => DomainParticipantQos::default(),
            Some(profile) => self.profiles.participant_qos(profile)?,
        };
        if let Some(name) = text("participant.name") {
            qos.entity_name = EntityName(name.to_owned());
        }
        Ok(qos)
    }

    /// Returns every setting, with its origin.
    pub fn explain(&self) -> impl Iterator<Item = EffectiveSetting> {
        setting::all().map(|setting| {
            let (value, origin) = self.values.get(&setting.path()).cloned().unzip();
            EffectiveSetting { setting, value, origin }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[participant]\ndomain = 7\nname = \"camera\"\nidle = \"spin\"\n\n[network]\ninterfaces = [\"lo\"]\n\
        \n[limits]\nmax_participants = 9\n\n[udp]\nport_base = 7500\n\
        [qos_library.L.P]\nis_default_qos = true\ndomain_participant_qos.user_data.value = [1, 2]\n";

    fn read(text: &str) -> Settings {
        let mut settings = Settings::new();
        settings.add_text("f.toml", text, Format::Toml).expect("well-formed");
        settings
    }

    fn refusal(text: &str) -> String {
        Settings::new().add_text("f.toml", text, Format::Toml).expect_err("refused").to_string()
    }

    fn shown(settings: &Settings, path: &str) -> (Option<String>, Option<String>) {
        let found = settings.explain().find(|effective| effective.setting.path() == path).expect("a setting");
        (found.value.map(|value| value.to_string()), found.origin.map(|origin| origin.to_string()))
    }

    #[test]
    fn environment_takes_precedence_over_files() {
        let mut settings = read(FILE);
        let variable = |name: &str| (name == "TAKT_DOMAIN").then(|| "11".to_owned());
        settings.add_environment(variable).expect("well-formed");
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(shown(&settings, "participant.domain"), (some("11"), some("TAKT_DOMAIN")));
        assert_eq!(shown(&settings, "participant.name"), (some("camera"), some("f.toml:3")));
        assert_eq!(shown(&settings, "participant.runtime"), (None, None));
        settings.add_text("g.toml", "[participant]\nname = \"radar\"\n", Format::Toml).expect("well-formed");
        assert_eq!(shown(&settings, "participant.name"), (some("radar"), some("g.toml:2")));
    }

    #[test]
    fn settings_are_set_from_text_and_cleared_by_path_or_table() {
        let mut settings = read(FILE);
        settings.set("participant.domain", "11", "--domain").expect("a domain");
        settings.set("network.peers", "a, b", "--peer").expect("a list");
        assert_eq!(shown(&settings, "participant.domain"), (Some("11".to_owned()), Some("--domain".to_owned())));
        let message = settings.set("participant.domain", "x", "--domain").expect_err("refused").to_string();
        assert_eq!(message, "--domain: found \"x\"; expected a number from 0 to 232");
        let message = settings.set("participant.speed", "1", "--speed").expect_err("refused").to_string();
        assert_eq!(message, "--speed: participant.speed: no such setting");
        settings.clear(&["participant.name", "network"]);
        assert!(settings.value("participant.name").is_none() && settings.value("network.peers").is_none());
        assert_eq!(settings.value("udp.port_base"), Some(&Value::Int(7500)));
        assert_eq!(settings.participant_qos().expect("the default profile").user_data.0, [1, 2]);
    }

    #[test]
    fn unknown_or_invalid_settings_are_errors_with_their_position() {
        let message = refusal("[participant]\ndomain = 233\n");
        assert_eq!(message, "f.toml:2: participant.domain: found \"233\"; expected a number from 0 to 232");
        let message = refusal("[participant]\nspeed = 1\n");
        assert!(
            message.starts_with("f.toml:2: participant.speed: unknown element; expected domain, name,"),
            "{message}"
        );
        let message = refusal("[radio]\n");
        assert_eq!(
            message,
            "f.toml:1: radio: unknown table; expected participant, network, transport, udp, shared_memory, tcp, capture, real_time, limits or qos_library"
        );
        let message = Settings::new().add_environment(|_| Some("?".to_owned())).expect_err("refused").to_string();
        assert_eq!(message, "TAKT_DOMAIN: found \"?\"; expected a number from 0 to 232");
        let message =
            read("[participant]\nqos_profile = \"A::B\"\n").participant().map(drop).expect_err("none").to_string();
        assert!(message.contains("A::B: no such profile"), "{message}");
    }

    #[test]
    fn peers_that_are_no_host_are_refused_with_their_position() {
        let refusal = |text| read(text).participant().map(drop).expect_err("refused").to_string();
        let message = refusal("[network]\npeers = [\"10.0.0.7\", \"10.0.0.999\"]\n");
        assert!(message.starts_with("f.toml:2: network.peers: found \"10.0.0.999\"; expected a host"), "{message}");
        let message = refusal("[network]\ndiscovery_servers = [\"1.2.3:7400\"]\n");
        assert!(message.starts_with("f.toml:2: network.discovery_servers: "), "{message}");
        let text =
            "[network]\npeers = [\"robot7\", \"10.0.0.7#0-9\", \"tcp/10.0.0.7:7400\", \"::1\", \"[::1]:7400\"]\n";
        assert!(read(text).participant().is_ok());
    }

    #[test]
    fn contradictory_tcp_settings_are_refused() {
        let refusal = |text| read(text).participant().map(drop).expect_err("refused").to_string();
        let message = refusal("[tcp]\nlisten = [\"0.0.0.0:7400\", \"7400\"]\n");
        assert!(message.starts_with("f.toml:2: tcp.listen: found \"7400\"; expected ADDRESS:PORT"), "{message}");
        let message = refusal("[tcp]\nca = \"ca.pem\"\nkey = \"key.pem\"\n");
        assert!(message.contains("tcp.certificate: TLS needs ca, certificate and key"), "{message}");
        let all = "[tcp]\nlisten = [\"127.0.0.1:0\"]\nca = \"no\"\ncertificate = \"such\"\nkey = \"file\"\n";
        // The error names the missing file or, without takt's feature `tls`, says that TLS is not
        // available.
        let error = read(all).participant().expect("well-formed").build().map(drop).expect_err("no files").to_string();
        assert!(["no", "such", "file"].iter().any(|file| error.contains(&format!(" {file}:"))), "{error}");
        let text = "[tcp]\nlisten = [\"127.0.0.1:0\"]\n[network]\nudp = false\ninterfaces = [\"lo\"]\n";
        let participant = read(text).participant().expect("well-formed").build().expect("loopback");
        let transports = participant.diagnostics().transport_stats().expect("open");
        assert_eq!(transports.iter().map(|traffic| traffic.name).collect::<Vec<_>>(), ["tcp"]);
    }

    #[test]
    fn shared_memory_has_bounds_and_can_be_disabled() {
        let transports = |text| {
            let participant = read(text).participant().expect("well-formed").build().expect("loopback");
            participant
                .diagnostics()
                .transport_stats()
                .expect("open")
                .iter()
                .map(|traffic| traffic.name)
                .collect::<Vec<_>>()
        };
        let text = "[network]\ninterfaces = [\"lo\"]\n[shared_memory]\nsegment_bytes = 65536\nsegment_slots = 65536\n";
        assert_eq!(transports(text), ["udp", "shm"]);
        assert_eq!(transports("[network]\ninterfaces = [\"lo\"]\nshared_memory = false\n"), ["udp"]);
        let refused = "[shared_memory]\nsegment_bytes = 65535\n";
        let message = Settings::new().add_text("f.toml", refused, Format::Toml).expect_err("refused").to_string();
        assert!(message.starts_with("f.toml:2: shared_memory.segment_bytes"), "{message}");
        assert!(message.contains("a number from 65536 to 16106127360"), "{message}");
    }

    #[test]
    fn real_time_settings_are_applied_or_refused() {
        let build = |text: &str| {
            let text = format!("[network]\ninterfaces = [\"lo\"]\n[real_time]\n{text}");
            read(&text)
                .participant()
                .map_err(|error| error.to_string())?
                .build()
                .map(drop)
                .map_err(|error| error.to_string())
        };
        assert_eq!(build("cpus = [\"0\"]\ntimer_slack = \"1 us\"\n"), Ok(()));
        let message = build("cpus = [\"one\"]\n").expect_err("no number");
        assert!(message.starts_with("f.toml:4: real_time.cpus: found \"one\"; expected the number"), "{message}");
        let message = build("cpus = [\"1023\"]\nfifo = 10\n").expect_err("no such processor");
        assert!(message.starts_with("real time: run on the processors [1023]"), "{message}");
    }

    #[test]
    fn transports_are_tried_in_order() {
        let text = "[network]\ninterfaces = [\"lo\"]\nshared_memory = false\n[transport]\n\
            user_data = [\"dpdk:x\", \"udp:lo\"]\ndiscovery = [\"udp\"]\ntopics = [\"A*=udp:lo\", \"B=shm|udp\"]\nextra = [\"packet:x\"]\n";
        let participant = read(text).participant().expect("well-formed").build().expect("loopback");
        let report = participant.diagnostics().transport_report().to_string();
        let lines: Vec<&str> = report.lines().map(|line| line.split(", ").next().unwrap_or_default()).collect();
        assert_eq!(
            lines,
            [
                "user data",
                "  dpdk:x: refused",
                "  udp:lo: open",
                "discovery",
                "  udp: open",
                "topics A*",
                "  udp:lo: open",
                "topics B",
                "  shm: open",
                "  udp: not needed",
                "extra",
                "  packet:x: refused"
            ]
        );
        let names: Vec<_> =
            participant.diagnostics().transport_stats().expect("open").iter().map(|traffic| traffic.name).collect();
        assert_eq!(names, ["udp", "udp", "shm"]);
    }

    #[test]
    fn invalid_transports_are_reported_with_their_position() {
        let refusal = |text| read(text).participant().map(drop).expect_err("refused").to_string();
        let message = refusal("[transport]\n\nuser_data = [\"udp\", \"xpd:eth0\"]\n");
        assert!(
            message.starts_with("f.toml:3: transport.user_data: transport \"xpd:eth0\": unknown transport \"xpd\""),
            "{message}"
        );
        let message = refusal("[transport]\ntopics = [\"udp\"]\n");
        assert!(
            message.starts_with("f.toml:2: transport.topics: found \"udp\"; expected PATTERN=TRANSPORTS"),
            "{message}"
        );
        let message = refusal("[transport]\ntopics = [\"A=udp/x\"]\n");
        assert!(message.contains("transport \"udp/x\": found \"x\"; expected KEY=VALUE"), "{message}");
    }

    #[test]
    fn invalid_file_adds_nothing() {
        let mut settings = Settings::new();
        let text = "[participant]\ndomain = 3\n[qos_library.L.P.writer_qos]\n";
        assert!(settings.add_text("f.toml", text, Format::Toml).is_err());
        assert_eq!(shown(&settings, "participant.domain"), (None, None));
    }
}
