//! [`QosProvider`]: QoS policies by profile name.

use std::collections::BTreeMap;
use std::path::Path;

use takt::qos::{DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos};
use takt_wire::compat::fnmatch;

use crate::error::{ConfigError, Origin, Result};
use crate::library::{self, Profile, Setting};
use crate::policy::{Entity, EntityQos, FIELDS, Field};
use crate::tree::{FILE_BYTES_MAX, Format, Node, did_you_mean};
use crate::value::Value;
use crate::{toml_tree, xml};

/// QoS profiles from files.
///
/// # Examples
/// ```
/// use takt_config::{Format, QosProvider};
///
/// let text = r#"
///     [qos_library.Robots.Telemetry.datawriter_qos]
///     reliability.kind = "RELIABLE"
///     history = { kind = "KEEP_LAST", depth = 5 }
/// "#;
/// let profiles = QosProvider::from_text("robots.toml", text, Format::Toml)?;
/// let qos = profiles.datawriter_qos("Robots::Telemetry", "Position")?;
/// assert_eq!(qos.history, takt::qos::History::KeepLast(5));
/// # Ok::<(), takt_config::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct QosProvider {
    profiles: Vec<Profile>,
}

/// Effective value of a field, with its origin.
#[derive(Clone, Debug)]
pub struct Effective {
    /// Index into [`FIELDS`].
    index: usize,
    /// Effective value.
    pub value: Value,
    /// Position and profile that set the value. `None` for the default.
    pub origin: Option<(Origin, String)>,
}

impl Effective {
    /// Returns the field.
    #[must_use]
    pub fn field(&self) -> &'static Field {
        &FIELDS[self.index]
    }
}

impl QosProvider {
    /// Creates a provider without profiles.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the profiles of a file. The ending of its name selects XML or TOML.
    ///
    /// # Errors
    /// The file is invalid; the error says what is wrong, and where.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let mut provider = Self::new();
        provider.add_file(path)?;
        Ok(provider)
    }

    /// Reads the profiles of a text. `source` is its name in errors.
    ///
    /// # Errors
    /// The text is invalid; the error says what is wrong, and where.
    pub fn from_text(source: &str, text: &str, format: Format) -> Result<Self> {
        let mut provider = Self::new();
        provider.add_text(source, text, format)?;
        Ok(provider)
    }

    /// Adds the profiles of another file, which may inherit from existing profiles.
    ///
    /// # Errors
    /// The file is invalid; the error says what is wrong, and where. No profile of the file is
    /// added.
    pub fn add_file(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let (source, text, format) = read_file(path.as_ref())?;
        self.add_text(&source, &text, format)
    }

    /// Adds the profiles of a text.
    ///
    /// # Errors
    /// The text is invalid; the error says what is wrong, and where. No profile of the text is
    /// added.
    pub fn add_text(&mut self, source: &str, text: &str, format: Format) -> Result<()> {
        let root = parse(source, text, format)?;
        if let (Format::Toml, Some(other)) = (format, root.children().iter().find(|child| child.name != "qos_library"))
        {
            let origin = Origin { source: source.to_owned(), line: other.line };
            return Err(ConfigError::new(origin, other.name.clone(), "unknown key; expected qos_library"));
        }
        self.add_root(source, format, &root)
    }

    pub(crate) fn add_root(&mut self, source: &str, format: Format, root: &Node) -> Result<()> {
        library::read(&mut self.profiles, source, format, root)
    }

    /// Returns the names of all profiles in the form `library::profile`, in the order in which they
    /// were read.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().map(|profile| profile.name.as_str())
    }

    /// Returns the name of the profile with `is_default_qos`.
    #[must_use]
    pub fn default_profile(&self) -> Option<&str> {
        self.profiles.iter().find(|profile| profile.is_default).map(|profile| profile.name.as_str())
    }

    /// Returns the policies of a participant. The profile is named `library::profile`. The empty
    /// name selects the default profile.
    ///
    /// # Errors
    /// The profile does not exist.
    pub fn participant_qos(&self, profile: &str) -> Result<DomainParticipantQos> {
        match self.qos(profile, Entity::Participant, "")? {
            EntityQos::Participant(qos) => Ok(qos),
            _ => unreachable!("the policies belong to the requested entity"),
        }
    }

    /// Returns the policies of a publisher. Profile and errors are those of
    /// [`participant_qos`](Self::participant_qos).
    ///
    /// # Errors
    /// The profile does not exist.
    pub fn publisher_qos(&self, profile: &str) -> Result<PublisherQos> {
        match self.qos(profile, Entity::Publisher, "")? {
            EntityQos::Publisher(qos) => Ok(qos),
            _ => unreachable!("the policies belong to the requested entity"),
        }
    }

    /// Returns the policies of a subscriber. Profile and errors are those of
    /// [`participant_qos`](Self::participant_qos).
    ///
    /// # Errors
    /// The profile does not exist.
    pub fn subscriber_qos(&self, profile: &str) -> Result<SubscriberQos> {
        match self.qos(profile, Entity::Subscriber, "")? {
            EntityQos::Subscriber(qos) => Ok(qos),
            _ => unreachable!("the policies belong to the requested entity"),
        }
    }

    /// Returns the policies of a topic of this name. Profile and errors are those of
    /// [`participant_qos`](Self::participant_qos).
    ///
    /// # Errors
    /// The profile does not exist.
    pub fn topic_qos(&self, profile: &str, topic: &str) -> Result<TopicQos> {
        match self.qos(profile, Entity::Topic, topic)? {
            EntityQos::Topic(qos) => Ok(qos),
            _ => unreachable!("the policies belong to the requested entity"),
        }
    }

    /// Returns the policies of a writer of this topic. Profile and errors are those of
    /// [`participant_qos`](Self::participant_qos).
    ///
    /// # Errors
    /// The profile does not exist.
    pub fn datawriter_qos(&self, profile: &str, topic: &str) -> Result<DataWriterQos> {
        match self.qos(profile, Entity::DataWriter, topic)? {
            EntityQos::DataWriter(qos) => Ok(qos),
            _ => unreachable!("the policies belong to the requested entity"),
        }
    }

    /// Returns the policies of a reader of this topic. Profile and errors are those of
    /// [`participant_qos`](Self::participant_qos).
    ///
    /// # Errors
    /// The profile does not exist.
    pub fn datareader_qos(&self, profile: &str, topic: &str) -> Result<DataReaderQos> {
        match self.qos(profile, Entity::DataReader, topic)? {
            EntityQos::DataReader(qos) => Ok(qos),
            _ => unreachable!("the policies belong to the requested entity"),
        }
    }

    /// Returns every field of an entity's policies, with its origin.
    ///
    /// # Errors
    /// The profile does not exist.
    pub fn explain(&self, profile: &str, entity: Entity, topic: &str) -> Result<Vec<Effective>> {
        let settings = self.settings(profile, entity, topic)?;
        let qos = apply(entity, &settings);
        let effective = |(index, field): (usize, &Field)| {
            let value = field.get(&qos)?;
            let origin = settings.get(&index).map(|(setting, profile)| (setting.origin.clone(), (*profile).to_owned()));
            Some(Effective { index, value, origin })
        };
        Ok(FIELDS.iter().enumerate().filter_map(effective).collect())
    }

    fn qos(&self, profile: &str, entity: Entity, topic: &str) -> Result<EntityQos> {
        Ok(apply(entity, &self.settings(profile, entity, topic)?))
    }

    /// Returns the values that the profile sets, or else inherits.
    fn settings(&self, profile: &str, entity: Entity, topic: &str) -> Result<BTreeMap<usize, (&Setting, &str)>> {
        let target = self.find(profile)?;
        // Base profiles precede derived ones. One pass in that order therefore resolves each
        // profile once.
        let mut resolved: Vec<BTreeMap<usize, (&Setting, &str)>> = Vec::with_capacity(target + 1);
        for profile in &self.profiles[..=target] {
            let mut settings = profile.base.map_or_else(BTreeMap::new, |base| resolved[base].clone());
            if let Some(block) = profile.block(entity, topic) {
                settings.extend(block.base.iter().flat_map(|base| resolved[*base].clone()));
                settings.extend(block.settings.iter().map(|set| (set.field, (set, profile.name.as_str()))));
            }
            resolved.push(settings);
        }
        Ok(resolved.pop().expect("the target is there"))
    }

    fn find(&self, name: &str) -> Result<usize> {
        let is_wanted = |profile: &Profile| if name.is_empty() { profile.is_default } else { profile.name == name };
        self.profiles.iter().position(is_wanted).ok_or_else(|| {
            let known: Vec<&str> = self.profiles().collect();
            let what = match name {
                "" => "no profile sets is_default_qos".to_owned(),
                _ if known.is_empty() => "no such profile; no profiles are defined".to_owned(),
                _ => format!(
                    "no such profile; defined profiles: {}{}",
                    known.join(", "),
                    did_you_mean(name, self.profiles())
                ),
            };
            ConfigError::new(Origin { source: "QoS profiles".to_owned(), line: 0 }, name, what)
        })
    }
}

impl Profile {
    /// Returns the policies for an entity: the first block whose filter matches, otherwise the
    /// block without a filter (DDS-XML 1.0 §7.3.2.4.3).
    fn block(&self, entity: Entity, topic: &str) -> Option<&library::Block> {
        let of_entity = || self.blocks.iter().filter(|block| block.entity == entity);
        let fits = |block: &&library::Block| block.topic_filter.as_deref().is_some_and(|filter| fnmatch(filter, topic));
        of_entity().find(fits).or_else(|| of_entity().find(|block| block.topic_filter.is_none()))
    }
}

/// Sets the fields in the order of the table, so that a field follows those on which it depends.
fn apply(entity: Entity, settings: &BTreeMap<usize, (&Setting, &str)>) -> EntityQos {
    let mut qos = EntityQos::default_of(entity);
    for (index, (setting, _)) in settings {
        FIELDS[*index].set(&mut qos, &setting.value);
    }
    qos
}

pub(crate) fn parse(source: &str, text: &str, format: Format) -> Result<Node> {
    match format {
        Format::Xml => xml::parse(source, text),
        Format::Toml => toml_tree::parse(source, text),
    }
}

/// Returns name, text and format of a file. Reads at most the longest permitted configuration.
pub(crate) fn read_file(path: &Path) -> Result<(String, String, Format)> {
    let source = path.display().to_string();
    let refuse = || {
        let origin = Origin { source: source.clone(), line: 0 };
        ConfigError::new(origin, "", "the name must end in .xml or .toml")
    };
    let format = Format::of_name(&source).ok_or_else(refuse)?;
    let text = read_text(path)?;
    Ok((source, text, format))
}

/// Reads a file up to one byte more than [`FILE_BYTES_MAX`]; parsers refuse longer texts.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    use std::io::Read;

    let refuse = |error: std::io::Error| {
        ConfigError::new(Origin { source: path.display().to_string(), line: 0 }, "", error.to_string())
    };
    let mut text = String::new();
    let limit = u64::try_from(FILE_BYTES_MAX + 1).expect("a small number");
    std::fs::File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text)).map_err(refuse)?;
    Ok(text)
}
