//! Source of a topic's type if it is not learned: a built-in type, an IDL file or a ROS 2 message.

use super::library;
use crate::domain::Domain;
use crate::output::note;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use takt::DomainParticipant;
use takt::dynamic::DynamicTypeSupport;
use takt::xtypes::Extensibility;
use takt::xtypes::type_object::TypeRegistry;
use takt_bench::{Error, Result};
use takt_idl::{Idl, Options, ros2};

/// Built-in type, or type of a file.
#[derive(Args, Clone, Debug)]
pub struct TypeSource {
    /// Built-in type: ShapeType, takt::Text; with --idl a type of the file [default: as announced by endpoints]
    #[arg(long = "type", value_name = "NAME")]
    pub type_name: Option<String>,
    #[command(flatten)]
    pub file: TypeFile,
}

/// File that defines the type.
#[derive(Args, Clone, Debug)]
pub struct TypeFile {
    /// Read the type from an IDL file
    #[arg(long, value_name = "FILE", group = "source")]
    idl: Option<PathBuf>,
    /// Use the type of this ROS 2 message, such as std_msgs/msg/String, and the topic name of ROS 2
    #[arg(long, value_name = "MESSAGE", group = "source", conflicts_with = "type_name")]
    msg: Option<String>,
    /// Include directory of --idl, or directory of ROS 2 messages, in addition to AMENT_PREFIX_PATH; may be repeated
    #[arg(short = 'I', long = "include", value_name = "DIRECTORY", requires = "source")]
    include: Vec<PathBuf>,
    /// Extensibility of types without annotation in the file
    #[arg(long, value_name = "KIND", value_enum, default_value = "appendable", requires = "idl")]
    default_extensibility: Kind,
}

/// Extensibility of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Final,
    Appendable,
    Mutable,
}

impl From<Kind> for Extensibility {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Final => Self::Final,
            Kind::Appendable => Self::Appendable,
            Kind::Mutable => Self::Mutable,
        }
    }
}

impl TypeSource {
    /// Reports whether a type or a file is named.
    pub fn is_given(&self) -> bool {
        self.type_name.is_some() || self.file.idl.is_some() || self.file.msg.is_some()
    }

    /// Returns the type, or `None` if it has to be learned.
    ///
    /// # Errors
    /// There is no such type, or the file cannot be read.
    pub fn load(&self) -> Result<Option<DynamicTypeSupport>> {
        let name = self.type_name.as_deref();
        match self.file.load(name)? {
            Some(type_) => Ok(Some(type_)),
            None => name.map(library::find).transpose(),
        }
    }
}

impl TypeFile {
    /// Returns the name of the DDS topic. With `--msg`, that is the mapped name of the ROS 2 topic.
    pub fn topic(&self, topic: &str) -> String {
        if self.msg.is_some() { ros2::topic_name(topic) } else { topic.to_owned() }
    }

    /// Joins the domain of the topic, which with `--msg` may be the domain of ROS 2.
    ///
    /// # Errors
    /// The configuration is wrong, or the domain cannot be joined.
    pub fn join(&self, domain: &Domain, name: &str) -> Result<DomainParticipant> {
        if self.msg.is_some() { domain.join_ros2(name) } else { domain.join(name) }
    }

    /// Returns the type hash of the message of `--msg`.
    ///
    /// # Errors
    /// The message cannot be read.
    pub fn type_hash(&self) -> Result<Option<String>> {
        let hash = |message: &String| ros2::type_hash(&self.read_message(message)?, message).map_err(usage);
        self.msg.as_ref().map(hash).transpose()
    }

    /// Returns the type of this name, or the only type that topics are likely to have. `None`
    /// without a file.
    ///
    /// # Errors
    /// The file cannot be read, or does not have the type.
    pub fn load(&self, name: Option<&str>) -> Result<Option<DynamicTypeSupport>> {
        if let Some(message) = &self.msg {
            let name = ros2::type_name(message).map_err(usage)?;
            return type_of(&self.read_message(message)?, &name).map(Some);
        }
        let Some(path) = &self.idl else { return Ok(None) };
        let options =
            Options { include: self.include.clone(), default_extensibility: self.default_extensibility.into() };
        let idl = Idl::read(path, &options).map_err(usage)?;
        idl.warnings().iter().for_each(|warning| note!("takt: warning: {warning}"));
        let name = match name {
            Some(name) => name,
            None => only(path, &idl)?,
        };
        type_of(&idl, name).map(Some)
    }

    /// Reads a ROS 2 message from the given directories and those of an installation.
    fn read_message(&self, message: &str) -> Result<Idl> {
        let installed = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
        let installed = std::env::split_paths(&installed).filter(|path| !path.as_os_str().is_empty());
        let directories: Vec<PathBuf> = self.include.iter().cloned().chain(installed).collect();
        ros2::read(message, &directories).map_err(usage)
    }
}

fn type_of(idl: &Idl, name: &str) -> Result<DynamicTypeSupport> {
    let mut types = TypeRegistry::new();
    let information = idl.type_information(name, &mut types).map_err(usage)?;
    Ok(DynamicTypeSupport::new(information, types)?)
}

/// Returns the only type of a file that topics are likely to have: no other type contains it.
fn only<'a>(path: &Path, idl: &'a Idl) -> Result<&'a str> {
    match idl.topic_type_names()[..] {
        [name] => Ok(name),
        [] if idl.type_names().is_empty() => Err(Error::Usage(format!(
            "{} has no struct and no union: the type of a topic must be one of them",
            path.display()
        ))),
        [] => Err(Error::Usage(format!(
            "{}: every type is contained in another one; select one with --type NAME: {}",
            path.display(),
            idl.type_names().join(", ")
        ))),
        ref names => Err(Error::Usage(format!(
            "{} has {} possible topic types; select one with --type NAME: {}",
            path.display(),
            names.len(),
            names.join(", ")
        ))),
    }
}

fn usage(error: takt_idl::Diagnostic) -> Error {
    Error::Usage(error.to_string())
}
