//! Survey of the available agents and of their `info` lines.

use super::directory::Missing;
use super::environment::{digest_of, info};
use super::site::CampaignSite;
use super::support::{Roles, roles_of};
use super::system::{Agent, System};
use serde_json::{Map, Value};
use std::process::Command;

/// Available and missing systems of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Systems whose agent is available.
    pub systems: Vec<System>,
    /// Systems that are not available, with reasons.
    pub missing: Vec<Missing>,
    /// Roles of agents whose `info` lists them.
    pub roles: Roles,
    /// Versions by system: text of their `info`, and digest of the program.
    pub versions: Map<String, Value>,
}

impl Survey {
    /// Queries each agent.
    #[must_use]
    pub fn of(systems: &[System], place: &CampaignSite) -> Self {
        let mut survey = Self::default();
        for system in systems {
            match query_agent(system, place) {
                Err(why) => survey.missing.push(Missing { system: system.name.clone(), why }),
                Ok((info, digest)) => {
                    let version = info["version"].as_str().unwrap_or("not reported");
                    survey.versions.insert(system.name.clone(), format!("{version}{digest}").into());
                    survey.roles.extend(roles_of(&info).map(|roles| (system.name.clone(), roles)));
                    survey.systems.push(system.clone());
                }
            }
        }
        survey
    }
}

/// Returns the `info` of a system's agent and the digest of its program. An agent without an `info`
/// fails later, with its own error.
fn query_agent(system: &System, place: &CampaignSite) -> Result<(Value, String), String> {
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
