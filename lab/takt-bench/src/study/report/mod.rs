//! Reports of results: HTML, Markdown, CSV, JSON.
//!
//! | module | content |
//! |---|---|
//! | [`value`] | statistics of latencies and figures by name |
//! | [`pool`] | measurements of a cell over all rounds |
//! | [`rendered_figure`] | parts of a report: plots and tables |
//! | [`forms`] | forms of figures |
//! | [`published`] | values of the publication next to the measured ones |
//! | [`faults`] | cells that failed, were refused, are missing or were disturbed |
//! | [`html`], [`markdown`], [`csv`], [`json`] | formats |
//!
//! docs/guide/bench-report.md defines the statistics.

#[cfg(test)]
mod browser_tests;
pub mod csv;
pub mod faults;
pub mod forms;
pub mod head;
pub mod html;
pub mod json;
pub mod markdown;
pub mod pool;
pub mod published;
pub mod rendered_figure;
#[cfg(test)]
pub mod sample;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod value;
