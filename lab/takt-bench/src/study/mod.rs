//! Campaigns: workloads, systems, parameters and repetitions of a TOML file, measured in
//! interleaved rounds.
//!
//! | module | content |
//! |---|---|
//! | [`file`] | campaign file |
//! | [`parameter`] | parameters of a workload and the keys of the agent contract that they become |
//! | [`system`] | measurable systems, and paths of their agents |
//! | [`cell`] | cell of a campaign, and one measurement of it |
//! | [`plan`] | jobs of a campaign, in the randomized order of their rounds |
//! | [`support`] | cells that a system supports |
//! | [`agent_survey`] | available agents and their capabilities |
//! | [`site`] | hosts and networks of the processes |
//! | [`lossy_links`] | links with frame loss |
//! | [`ssh`] | two machines reached by ssh |
//! | [`environment`] | environment of the machine, as JSON |
//! | [`agents`] | execution of one job: agents, their results, figures |
//! | [`experiments`] | workloads with a network and processes of their own |
//! | [`run`] | rounds of a campaign |
//! | [`directory`] | results on disk: written after each job, read to resume, to report and to compare |
//! | [`report`] | reports: HTML, Markdown, CSV, JSON |
//! | [`compare`] | comparison of two results directories, cell by cell |
//! | [`explain`] | explanation of one cell: commands, environment, rounds |

pub mod agent_survey;
pub mod agents;
pub mod cell;
pub mod compare;
pub mod directory;
pub mod environment;
pub mod experiments;
pub mod explain;
pub mod file;
pub mod lossy_links;
pub mod parameter;
mod per_host_files;
pub mod plan;
mod protection;
pub mod report;
pub mod run;
pub mod site;
pub mod ssh;
pub mod support;
pub mod system;
