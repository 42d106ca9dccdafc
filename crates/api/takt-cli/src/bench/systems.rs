//! `takt bench systems`: the systems that campaigns can measure, and what each lacks.

use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use takt_bench::Result;
use takt_bench::study::system::{self, Agent, System};

/// `takt bench systems`
#[derive(Args)]
pub struct Systems {
    /// Further file of systems; may be repeated
    #[arg(long, value_name = "FILE")]
    systems: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Systems {
    /// Lists the systems.
    ///
    /// # Errors
    /// A file of systems breaks a rule.
    pub fn run(&self) -> Result<()> {
        let systems = system::systems(&self.systems)?;
        if self.json {
            let one = |system: &System| json!({ "system": system, "missing": missing(system) });
            let list: Vec<_> = systems.iter().map(one).collect();
            println!("{}", json!(list));
            return Ok(());
        }
        let width = systems.iter().map(|system| system.name.len()).max().unwrap_or(0);
        for system in &systems {
            let state = missing(system).map_or_else(String::new, |why| format!("   MISSING: {why}"));
            println!("{:width$}  {}{state}", system.name, system.title);
        }
        Ok(())
    }
}

fn missing(system: &System) -> Option<String> {
    let agents = [Some(system.agent()), system.broker_agent()];
    agents.into_iter().flatten().find_map(|agent| match agent {
        Agent::Missing(why) => Some(why),
        Agent::Program { .. } => None,
    })
}
