//! `takt bench report`: the results of a campaign as a page, as tables and as files for other
//! programs.

use super::write_file;
use crate::output::out;
use clap::Args;
use std::path::PathBuf;
use takt_bench::study::directory::Results;
use takt_bench::study::report::{
    csv::csv,
    html::html,
    json::json,
    markdown::{chart, markdown},
};
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Without an option it prints the tables as Markdown. The HTML page is self-contained, without scripts.

Examples:
  takt bench report results/paper-b
  takt bench report results/paper-b --html report.html
  takt bench report results/paper-b --markdown report.md --csv tables --json report.json
  takt bench report docs/results/performance --markdown docs/performance.md --chart docs/performance.svg
docs/guide/bench-report.md defines the statistics.";

/// `takt bench report`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Report {
    /// Results directory of takt bench run
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Write an HTML page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write the first plot as SVG to the directory of the Markdown file, which shows it first
    #[arg(long, value_name = "FILE", requires = "markdown")]
    chart: Option<PathBuf>,
    /// Write measurements.csv and percentiles.csv to this directory
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Write pooled results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Report {
    /// Writes the files. Without an option for a file, prints the tables.
    ///
    /// # Errors
    /// The directory has no results, or a file cannot be written.
    pub fn run(&self) -> Result<()> {
        let results = Results::read(&self.directory)?;
        if let Some(path) = &self.html {
            write_file(path, &html(&results)?)?;
        }
        if let Some(path) = &self.markdown {
            let name = self.chart.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
            write_file(path, &markdown(&results, name.as_deref())?)?;
        }
        if let Some(path) = &self.chart {
            let chart = chart(&results)?
                .ok_or_else(|| Error::Usage("the first figure of the campaign has no plot; omit --chart".into()))?;
            write_file(path, &chart)?;
        }
        if let Some(directory) = &self.csv {
            std::fs::create_dir_all(directory).map_err(|e| Error::os(directory.display().to_string(), e))?;
            let files = csv(&results);
            write_file(&directory.join("measurements.csv"), &files.measurements)?;
            write_file(&directory.join("percentiles.csv"), &files.percentiles)?;
        }
        if let Some(path) = &self.json {
            write_file(path, &json(&results)?)?;
        }
        let is_requested = self.html.is_some() || self.markdown.is_some() || self.csv.is_some() || self.json.is_some();
        if is_requested { Ok(()) } else { out!("{}", markdown(&results, None)?) }
    }
}
