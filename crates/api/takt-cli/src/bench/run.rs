//! `takt bench run`: measures campaigns.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use takt_bench::study::cell::Disturbance;
use takt_bench::study::directory::Results;
use takt_bench::study::file::{Campaign, Length};
use takt_bench::study::plan::Job;
use takt_bench::study::run::{self, Progress, Request};
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt bench run lab/campaigns/paper-b.toml --quick               a short measurement of each figure
  takt bench run lab/campaigns/paper-b.toml --only takt-udp       only one system
  takt bench run --resume results/paper-b-1764200000              resume after a crash or a reboot
  takt bench run lab/campaigns/paper-a.toml --paper --keep-raw    with the durations of the publication

Progress goes to standard error. The last line on standard output is the results directory.";

/// `takt bench run`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    /// Campaign files
    #[arg(required_unless_present = "resume")]
    files: Vec<PathBuf>,
    /// Short measurement of each figure
    #[arg(long, conflicts_with = "paper")]
    quick: bool,
    /// Measure with the durations of the publication
    #[arg(long)]
    paper: bool,
    /// Directory in which each campaign creates its results directory
    #[arg(long, default_value = "results", value_name = "DIR")]
    out: PathBuf,
    /// Resume the campaign of this results directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["files", "quick", "paper"])]
    resume: Option<PathBuf>,
    /// Measure only this system, or the systems of this class (@dds); may be repeated
    #[arg(long, value_name = "SYSTEM")]
    only: Vec<String>,
    /// Further file of systems, in the format of lab/peers/systems.toml; may be repeated
    #[arg(long, value_name = "FILE")]
    systems: Vec<PathBuf>,
    /// Write every latency to files in raw/
    #[arg(long)]
    keep_raw: bool,
}

impl Run {
    /// Measures the campaigns one after the other.
    ///
    /// # Errors
    /// A campaign could not be measured.
    pub fn run(&self) -> Result<()> {
        for request in self.requests()? {
            eprintln!("{}: results in {}", request.campaign.title, request.directory.display());
            run::run(&request, &mut print_progress)?;
            println!("{}", request.directory.display());
        }
        Ok(())
    }

    fn requests(&self) -> Result<Vec<Request>> {
        let request = |campaign, length, directory, resumes| Request {
            campaign,
            length,
            directory,
            resumes,
            keeps_raw: self.keep_raw,
            only: self.only.clone(),
            systems: self.systems.clone(),
            command: std::iter::once("takt".to_owned()).chain(std::env::args().skip(1)).collect(),
        };
        if let Some(directory) = &self.resume {
            let header = Results::read(directory)?.header;
            return Ok(vec![request(header.campaign, header.length, directory.clone(), true)]);
        }
        let length = match (self.quick, self.paper) {
            (true, _) => Length::Quick,
            (_, true) => Length::Paper,
            _ => Length::Normal,
        };
        let mut requests = Vec::new();
        for file in &self.files {
            let campaign = Campaign::read(file, length)?;
            let directory = run::directory_name(&self.out, &campaign);
            if requests.iter().any(|other: &Request| other.directory == directory) {
                return Err(Error::Usage(format!(
                    "two campaigns have the name {} and the same results directory; rename one",
                    campaign.name
                )));
            }
            requests.push(request(campaign, length, directory, false));
        }
        Ok(requests)
    }
}

fn print_progress(progress: Progress<'_>) {
    match progress {
        Progress::Missing(missing) => eprintln!("not measured: {}: {}", missing.system, missing.why),
        Progress::Refused(refusal) => eprintln!("not measured: {}: {}", refusal.cell, refusal.why),
        Progress::Place(why) => eprintln!("note: {why}"),
        Progress::Job { job, round, done: (done, all), remaining: left } => {
            let left = left.map_or_else(String::new, |left| format!(", {} left", span(left)));
            eprintln!("[{}/{all}{left}] round {}: {}", done + 1, round + 1, title(job));
        }
        Progress::Disturbed(Disturbance { foreign, steal, .. }) => {
            let (foreign, steal) = (100.0 * foreign, 100.0 * steal);
            eprintln!(
                "  disturbed: other processes used {foreign:.0} %, the hypervisor {steal:.0} % of the CPU; repeating"
            );
        }
        Progress::Failed(why) => eprintln!("  failed: {why}"),
    }
}

fn title(job: &Job) -> String {
    match job.cells.as_slice() {
        [cell] => cell.to_string(),
        cells => format!("{} and {} other cells", cells[0], cells.len() - 1),
    }
}

fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_estimates_are_rounded_up_to_readable_units() {
        let texts = [0, 59, 60, 61, 3599, 3600, 7265].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(texts, ["0 s", "59 s", "1 min", "2 min", "60 min", "1 h 00 min", "2 h 01 min"]);
    }
}
