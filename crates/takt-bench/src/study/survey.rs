//! Which agents there are, and what their `info` says.

use super::directory::Missing;
use super::environment::{digest_of, info};
use super::site::Place;
use super::support::{Roles, roles_of};
use super::system::{Agent, System};
use serde_json::{Map, Value};
use std::process::Command;

/// The systems of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Those whose agent there is.
    pub systems: Vec<System>,
    /// The others.
    pub missing: Vec<Missing>,
    /// Roles of agents that name them.
    pub roles: Roles,
    /// Versions by system: text of their `info`, and digest of the program.
    pub versions: Map<String, Value>,
}

impl Survey {
    /// Asks each agent.
    #[must_use]
    pub fn of(systems: &[System], place: &Place) -> Self {
        let mut survey = Self::default();
        for system in systems {
            match found(system, place) {
                Err(why) => survey.missing.push(Missing { system: system.name.clone(), why }),
                Ok((info, digest)) => {
                    let version = info["version"].as_str().unwrap_or("not told");
                    survey.versions.insert(system.name.clone(), format!("{version}{digest}").into());
                    survey.roles.extend(roles_of(&info).map(|roles| (system.name.clone(), roles)));
                    survey.systems.push(system.clone());
                }
            }
        }
        survey
    }
}

/// What the agent of a system says of itself, and the digest of its program. An agent that says nothing fails later, in its own words.
fn found(system: &System, place: &Place) -> Result<(Value, String), String> {
    if let Some(ssh) = &place.ssh {
        return Ok((ssh.info(system)?, String::new()));
    }
    if let Some(Agent::Missing(why)) = system.broker_agent() {
        return Err(why);
    }
    match system.agent() {
        Agent::Missing(why) => Err(why),
        Agent::Program { path, prefix } => {
            let output = Command::new(&path).args(&prefix).arg("info").args(&system.arguments).output();
            let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            Ok((info(&text).unwrap_or_default(), format!(" (sha256 {})", digest_of(&path))))
        }
    }
}
