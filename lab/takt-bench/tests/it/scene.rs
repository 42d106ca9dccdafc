//! Test scene: a directory with shell-script agents, a file of systems, and results.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use takt_bench::study::cell::{Measured, Measurement, Outcome};
use takt_bench::study::directory::Results;
use takt_bench::study::file::{Campaign, Length};
use takt_bench::study::run::{Progress, Request, run};
use takt_testkit::directory::Directory;

/// Directory with agents, and with the results of a campaign.
pub struct Scene {
    pub directory: Directory,
}

impl Scene {
    /// Creates a scene with these agents, and a system with the name of each.
    pub fn new(agents: &[(&str, &str)]) -> Self {
        let directory = Directory::with("campaign", agents);
        for (name, _) in agents {
            std::fs::set_permissions(directory.file(name), PermissionsExt::from_mode(0o755)).expect("own file");
        }
        let systems: String = agents.iter().map(|(name, _)| system(name, &directory.text(name))).collect();
        directory.write("systems.toml", &systems);
        Self { directory }
    }

    /// Adds a system to the file of systems.
    pub fn add_system(&self, name: &str, program: &str) {
        let systems = self.directory.read("systems.toml") + &system(name, program);
        self.directory.write("systems.toml", &systems);
    }

    /// Returns the request to run a campaign of this text, with results in the scene.
    pub fn request(&self, text: &str) -> Request {
        Request {
            campaign: Campaign::parse(text, Length::Normal).expect("the campaign is valid"),
            length: Length::Normal,
            directory: self.results(),
            resumes: false,
            keeps_raw: true,
            only: Vec::new(),
            systems: vec![self.directory.file("systems.toml")],
            command: vec!["takt".into()],
        }
    }

    pub fn results(&self) -> PathBuf {
        self.directory.file("results")
    }

    /// Runs a campaign of this text. Returns its results and the refused cells, with reasons.
    pub fn run(&self, text: &str) -> (Results, Vec<String>) {
        let mut refused = Vec::new();
        run(&self.request(text), &mut |progress| {
            if let Progress::Refused(one) = progress {
                refused.push(format!("{}: {}", one.cell, one.why));
            }
        })
        .expect("the campaign runs");
        (Results::read(&self.results()).expect("the results exist"), refused)
    }
}

/// Returns an entry of the file of systems.
pub fn system(name: &str, program: &str) -> String {
    format!(
        "[[system]]\nname = '{name}'\ntitle = '{name}'\nprogram = '{program}'\nclass = 'dds'\n\
         profile = 'default'\ntransport = 'udp'\nexcept = ['reliable: never reliable']\n"
    )
}

/// Returns the figures of a measurement; panics if it failed.
pub fn measured(measurement: &Measurement) -> &Measured {
    match &measurement.outcome {
        Outcome::Measured(measured) => measured,
        Outcome::Failed { why } => panic!("{}: {why}", measurement.cell),
    }
}
