//! Column of a campaign: an agent and its command line.

use crate::error::{Error, Result};
use crate::study::ssh;
use serde::Serialize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Agent that a campaign measures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Name in the table.
    pub name: String,
    /// Executable that follows the agent contract.
    pub program: PathBuf,
    /// Words between the executable and the role.
    pub prefix: Vec<String>,
    /// `key=value` arguments of this column.
    pub arguments: Vec<String>,
    /// Arguments of the first and of the second process alone.
    #[serde(skip)]
    pub arguments_by_side: [Vec<String>; 2],
    /// Whether both processes run on the first host, where a plan has two.
    #[serde(skip)]
    pub on_one_host: bool,
    /// Machine on which ssh starts the agent; `None`: this one.
    #[serde(skip)]
    pub host: Option<String>,
    /// Name of the column that this one is compared with; its own name for a baseline.
    pub baseline: String,
}

impl Column {
    /// Reads `NAME=PROGRAM[,KEY=VALUE]...`. The baseline is left empty.
    ///
    /// # Errors
    /// The text does not have that form.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parts = text.split(',');
        let head = parts.next().and_then(|head| head.split_once('='));
        let arguments: Vec<String> = parts.map(ToString::to_string).collect();
        match head {
            Some((name, program))
                if !name.is_empty() && !program.is_empty() && arguments.iter().all(|a| a.contains('=')) =>
            {
                Ok(Self { name: name.into(), program: program.into(), arguments, ..Self::default() })
            }
            _ => Err(Error::Usage(format!("{text} is not of the form NAME=PROGRAM[,KEY=VALUE]..."))),
        }
    }

    /// Returns the column with `baseline` as its baseline.
    #[must_use]
    pub fn compared_with(mut self, baseline: &str) -> Self {
        self.baseline = baseline.into();
        self
    }

    /// Explains why an agent ended before it printed the awaited line.
    pub(super) fn exit_reason(&self, awaited: &str, status: ExitStatus, words: &str) -> String {
        match (&self.host, status.code()) {
            (Some(host), Some(ssh::FAILED)) => ssh::explained(host, words),
            (Some(host), Some(ssh::NOT_FOUND)) => format!("{host} has no such program: {words}"),
            _ => {
                let place = self.host.as_ref().map_or_else(String::new, |host| format!(" on {host}"));
                let words = if words.is_empty() { String::new() } else { format!(": {words}") };
                format!("ended without \"{awaited}\"{place}, {status}{words}")
            }
        }
    }

    pub(super) fn failure(&self, what: impl Into<String>) -> Error {
        Error::Agent { column: self.name.clone(), what: what.into() }
    }
}

/// Returns a column for every executable file in `directory`, named like the file, in alphabetical
/// order.
///
/// # Errors
/// The directory cannot be read, or contains no executable file.
pub fn columns_in(directory: &Path) -> Result<Vec<Column>> {
    let failure = |e| Error::os(directory.display().to_string(), e);
    let mut columns = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failure)? {
        let path = entry.map_err(failure)?.path();
        let metadata = path.metadata().map_err(failure)?;
        let is_executable = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        if let (true, Some(name)) = (is_executable, path.file_name()) {
            columns.push(Column {
                name: name.to_string_lossy().into_owned(),
                program: path.clone(),
                ..Column::default()
            });
        }
    }
    if columns.is_empty() {
        return Err(Error::Usage(format!("no executable in {}", directory.display())));
    }
    columns.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_is_parsed_from_name_program_and_arguments() {
        let column = Column::parse("fast=/opt/agent,transport=udp,hist=1").unwrap();
        assert_eq!((column.name.as_str(), column.program.as_path()), ("fast", Path::new("/opt/agent")));
        assert_eq!(column.arguments, ["transport=udp", "hist=1"]);
        assert_eq!(column.compared_with("raw").baseline, "raw");
    }

    #[test]
    fn malformed_column_is_refused() {
        for wrong in ["", "x", "=/bin/x", "x=", "x=/bin/x,transport"] {
            let error = Column::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("NAME=PROGRAM"), "{wrong}: {error}");
        }
    }

    #[test]
    fn columns_in_a_directory_are_its_executables() {
        let directory = std::env::temp_dir().join(format!("takt-columns-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        for (name, mode) in [("b", 0o755), ("a", 0o700), ("readme", 0o644)] {
            let path = directory.join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        let names: Vec<String> = columns_in(&directory).unwrap().into_iter().map(|c| c.name).collect();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(names, ["a", "b"]);
        assert!(columns_in(&directory).is_err());
    }
}
