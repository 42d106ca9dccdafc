//! Campaigns: workloads, systems, parameters and repetitions of a TOML file, measured in interleaved rounds.
//!
//! | module | content |
//! |---|---|
//! | [`file`] | the campaign file |
//! | [`parameter`] | parameters of a workload and the keys of the agent contract that they become |
//! | [`system`] | systems that can be measured, and where their agents are |
//! | [`cell`] | what is measured, and one measurement of it |
//! | [`plan`] | jobs of a campaign, in the randomised order of their rounds |
//! | [`support`] | which cells a system can be measured in |
//! | [`survey`] | which agents there are, and what they say of themselves |
//! | [`site`] | where the processes run |
//! | [`losing`] | links that lose frames |
//! | [`ssh`] | two machines that ssh reaches |
//! | [`environment`] | the machine, as JSON |
//! | [`agents`] | one job: agents, their results, figures |
//! | [`experiments`] | workloads that make their own network and have their own processes |
//! | [`run`] | the rounds of a campaign |
//! | [`directory`] | results on disk: written after each job, read to resume, to report and to compare |
//! | [`report`] | reports of results: HTML, Markdown, CSV, JSON |
//! | [`compare`] | two results directories, cell by cell |
//! | [`explain`] | one cell with its commands, environment and rounds |

pub mod agents;
pub mod cell;
pub mod compare;
pub mod directory;
pub mod environment;
pub mod experiments;
pub mod explain;
pub mod file;
pub mod losing;
mod own_files;
pub mod parameter;
pub mod plan;
mod protection;
pub mod report;
pub mod run;
pub mod site;
pub mod ssh;
pub mod support;
pub mod survey;
pub mod system;
