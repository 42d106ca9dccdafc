//! `takt config`: checks configuration files, shows the effective settings, and explains single
//! keys.

use crate::output::{note, out, outln};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use takt_bench::{Error, Result};
use takt_config::policy::{EntityQos, FIELDS, Field, find};
use takt_config::{Entity, Format, Settings, setting, show, similar};

use crate::domain::{read, refused};

const EXAMPLES: &str = "\
Examples:
  takt config check robots.xml takt.toml
  takt config show takt.toml                                     settings of the file and of the environment
  takt config show robots.xml --profile Robots::Telemetry --entity datawriter --topic Pose
  takt config show robots.xml --profile Robots::Telemetry --as toml
  takt config explain history.depth
  takt config explain network.peers takt.toml
  takt config convert cyclonedds.xml > takt.toml                 reports elements without equivalent on standard error";

/// `takt config`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// Check files in order, and print their contents or errors
    Check {
        /// Files in XML or TOML; profiles may inherit from profiles of earlier files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print settings, or the policies of a profile, each with its source
    Show(Show),
    /// Convert XML of CycloneDDS, Fast DDS or Connext to TOML
    Convert {
        /// XML file of CycloneDDS, Fast DDS or Connext
        file: PathBuf,
        /// Exit with code 1 if an element has no equivalent
        #[arg(long)]
        strict: bool,
    },
    /// Explain a setting or a field of a policy, and print its value
    Explain {
        /// Setting, variable, policy or field, such as network.peers, TAKT_PEERS, reliability.kind
        key: String,
        #[command(flatten)]
        sources: Sources,
    },
}

#[derive(Args, Clone, Debug)]
struct Show {
    #[command(flatten)]
    sources: Sources,
    /// Print the policies of this profile (library::profile) instead of settings
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Print only policies of this kind of entity
    #[arg(long, value_enum, requires = "profile")]
    entity: Option<EntityName>,
    /// Print the policies for endpoints of this topic
    #[arg(long, value_name = "NAME", requires = "profile", default_value = "")]
    topic: String,
    /// Output format
    #[arg(long = "as", value_enum, requires = "profile", default_value = "toml")]
    form: Form,
}

/// Sources of a configuration: files and the environment.
#[derive(Args, Clone, Debug)]
struct Sources {
    /// Files in XML or TOML [default: those of `TAKT_CONFIG`]
    files: Vec<PathBuf>,
    /// Ignore the environment
    #[arg(long)]
    no_environment: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Form {
    Toml,
    Xml,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
#[value(rename_all = "snake_case")]
enum EntityName {
    DomainParticipant,
    Publisher,
    Subscriber,
    Topic,
    Datawriter,
    Datareader,
}

impl EntityName {
    fn entity(self) -> Entity {
        match self {
            Self::DomainParticipant => Entity::Participant,
            Self::Publisher => Entity::Publisher,
            Self::Subscriber => Entity::Subscriber,
            Self::Topic => Entity::Topic,
            Self::Datawriter => Entity::DataWriter,
            Self::Datareader => Entity::DataReader,
        }
    }
}

impl Config {
    /// Runs the command and prints its result.
    ///
    /// # Errors
    /// A file, a variable or a name is invalid; the error says what is wrong.
    pub fn run(&self) -> Result<()> {
        match &self.command {
            Command::Check { files } => check(files),
            Command::Show(show) => show.run(),
            Command::Explain { key, sources } => explain(key, sources),
            Command::Convert { file, strict } => convert(file, *strict),
        }
    }
}

/// Prints the converted file, and each omission to standard error.
fn convert(file: &Path, is_strict: bool) -> Result<()> {
    let converted = takt_config::convert_file(file).map_err(refused)?;
    let vendor = converted.vendor;
    out!("{}", converted.toml)?;
    converted.omissions.iter().for_each(|omission| note!("{omission}"));
    match converted.omissions.len() {
        0 => Ok(()),
        count if is_strict => Err(Error::NotKept { what: format!("elements of {vendor} without equivalent: {count}") }),
        count => {
            note!("elements of {vendor} without equivalent: {count}");
            Ok(())
        }
    }
}

fn check(files: &[PathBuf]) -> Result<()> {
    let mut settings = Settings::new();
    for file in files {
        settings.add_file(file).map_err(refused)?;
    }
    drop(settings.participant().map_err(refused)?);
    let count = settings.explain().filter(|setting| setting.value.is_some()).count();
    outln!("settings: {count}")?;
    outln!("profiles: {}", settings.profiles().profiles().count())?;
    for profile in settings.profiles().profiles() {
        let is_default = settings.profiles().default_profile() == Some(profile);
        outln!("  {profile}{}", if is_default { " (default)" } else { "" })?;
    }
    Ok(())
}

impl Sources {
    fn read(&self) -> Result<Settings> {
        if self.files.is_empty() && !self.no_environment {
            return Settings::from_environment().map_err(refused);
        }
        read(&self.files, !self.no_environment)
    }
}

impl Show {
    fn run(&self) -> Result<()> {
        let settings = self.sources.read()?;
        let Some(profile) = &self.profile else {
            out!("{}", show::settings(settings.explain()))?;
            return Ok(());
        };
        let format = match self.form {
            Form::Toml => Format::Toml,
            Form::Xml => Format::Xml,
        };
        let entities = self.entity.map_or_else(|| Entity::ALL.to_vec(), |name| vec![name.entity()]);
        for (number, entity) in entities.into_iter().enumerate() {
            let fields = settings.profiles().explain(profile, entity, &self.topic).map_err(refused)?;
            out!("{}", if number > 0 { "\n" } else { "" })?;
            out!("{}", show::policies(profile, entity, &fields, format))?;
        }
        Ok(())
    }
}

fn explain(key: &str, sources: &Sources) -> Result<()> {
    let settings = sources.read()?;
    if let Some(found) = settings.explain().find(|one| one.setting.path() == key || one.setting.variable == key) {
        let setting = found.setting;
        outln!("{}: {}", setting.path(), setting.help)?;
        outln!("  value     {}", setting.kind.expected())?;
        outln!("  default   {}", (setting.default)())?;
        outln!("  variable  {}", setting.variable)?;
        if let (Some(value), Some(origin)) = (found.value, found.origin) {
            outln!("  is        {value}, by {origin}")?;
        }
        return Ok(());
    }
    let fields = find(key);
    for field in &fields {
        explain_field(field)?;
    }
    if fields.is_empty() {
        let paths: Vec<String> =
            setting::all().map(|setting| setting.path()).chain(FIELDS.iter().map(Field::path)).collect();
        // A setting may be given without its table.
        let of_table = paths.iter().find(|path| path.split_once('.').is_some_and(|(_, name)| name == key));
        let meant = of_table.map(String::as_str).or_else(|| similar(key, paths.iter().map(String::as_str)));
        let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        let what = format!("no setting or policy has the name {key}; `takt config show` lists the settings{meant}");
        return Err(Error::Usage(what));
    }
    Ok(())
}

fn explain_field(field: &Field) -> Result<()> {
    outln!("{}: {}", field.path(), field.help)?;
    outln!("  value     {}", field.kind.expected())?;
    for entity in Entity::ALL {
        if let Some(default) = field.get(&EntityQos::default_of(entity)) {
            outln!("  default   {default} ({})", entity.element())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entity_names_are_those_of_their_xml_elements() {
        for name in EntityName::value_variants() {
            let word = name.to_possible_value().expect("no setting is hidden");
            assert_eq!(Entity::of_name(word.get_name()), Some(name.entity()));
        }
    }

    #[test]
    fn every_setting_can_be_explained_by_its_environment_variable() {
        let sources = Sources { files: Vec::new(), no_environment: true };
        for setting in setting::all() {
            assert!(explain(setting.variable, &sources).is_ok(), "{}", setting.variable);
        }
        assert!(matches!(explain("nothing", &sources), Err(Error::Usage(_))));
        let error = explain("domain", &sources).expect_err("the output has a table").to_string();
        assert!(error.ends_with("did you mean participant.domain?"), "{error}");
    }
}
