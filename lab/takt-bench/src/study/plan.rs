//! Jobs of a campaign, in the randomized order of their rounds.
//!
//! A job is the work of one start of the processes: all sizes of a round trip, otherwise one cell.
//! Each round has every job once, in an order derived from the seed and the round. So no system
//! always follows the same other system, and drift of the machine favors none.

use super::cell::Cell;
use super::file::{CELLS_MAX, Campaign, Workload};
use super::parameter::{Value, Values};
use super::support::{self, Roles};
use super::system::{System, selected};
use crate::error::{Error, Result};

/// Work of one start of the processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Index of the workload in the campaign.
    pub workload: usize,
    /// System to measure.
    pub system: System,
    /// Cells, in the order of measurement.
    pub cells: Vec<Cell>,
}

/// Cell that its system does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Refused cell.
    pub cell: Cell,
    /// Reason of the refusal.
    pub why: String,
}

/// Returns the systems that any workload names, each once.
///
/// # Errors
/// A system is unknown.
pub fn wanted(campaign: &Campaign, systems: &[System]) -> Result<Vec<System>> {
    let mut wanted: Vec<System> = Vec::new();
    for workload in &campaign.workloads {
        for system in selected(&workload.systems, systems)? {
            if wanted.iter().all(|one| one.name != system.name) {
                wanted.push(system.clone());
            }
        }
    }
    Ok(wanted)
}

/// Returns all jobs of a round in the order of the file, and the refused cells.
///
/// # Errors
/// A system is unknown, or there are too many cells.
pub fn jobs(campaign: &Campaign, systems: &[System], roles: &Roles) -> Result<(Vec<Job>, Vec<Refused>)> {
    let (mut jobs, mut refused): (Vec<Job>, Vec<Refused>) = (Vec::new(), Vec::new());
    let mut count = 0;
    for (index, workload) in campaign.workloads.iter().enumerate() {
        for system in selected(&workload.systems, systems)? {
            for values in workload.combinations() {
                count += 1;
                if count > CELLS_MAX {
                    return Err(Error::Usage(format!("the campaign has more than {CELLS_MAX} cells")));
                }
                let refusal = support::refusal(&campaign.site, workload, system, &values, roles);
                let cell = Cell { workload: workload.name.clone(), system: system.name.clone(), values };
                match refusal {
                    Some(refusal) => refused.push(Refused { cell, why: refusal.why().to_owned() }),
                    None => add(&mut jobs, index, workload, system, cell),
                }
            }
        }
    }
    Ok((jobs, refused))
}

fn add(jobs: &mut Vec<Job>, index: usize, workload: &Workload, system: &System, cell: Cell) {
    let within = workload.kind.within_a_job().filter(|name| *name != "size" || !system.fixed_size);
    let joins = |job: &&mut Job| {
        let is_of = job.workload == index && job.system.name == system.name;
        let same =
            |name: &str| job.cells.iter().all(|other| without(name, &other.values).eq(without(name, &cell.values)));
        is_of && within.is_some_and(same)
    };
    match jobs.iter_mut().rev().find(joins) {
        Some(job) => job.cells.push(cell),
        None => jobs.push(Job { workload: index, system: system.clone(), cells: vec![cell] }),
    }
}

fn without<'a>(left_out: &'a str, values: &'a Values) -> impl Iterator<Item = (&'a String, &'a Value)> {
    values.iter().filter(move |(name, _)| *name != left_out)
}

/// Returns the order of jobs in a round, as indices in the list of jobs.
#[must_use]
pub fn order(jobs: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..jobs).collect();
    let mut random = fastrand::Rng::with_seed(seed ^ (u64::from(round) << 32));
    random.shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::super::file::Length;
    use super::*;
    use crate::study::file::Kind;

    fn campaign() -> Campaign {
        let text = "name = 'x'\ntitle = 'x'\nrounds = 1\n[[workload]]\nname = 'rtt'\nkind = 'round-trip'\n\
                    systems = ['a', 'b']\nparameters = { size = [16, 64], reliability = ['reliable', 'best-effort'] }\n\
                    [[workload]]\nname = 'rate'\nkind = 'stream'\nsystems = ['a']\nparameters = { size = [16, 64] }";
        Campaign::parse(text, Length::Normal).unwrap()
    }

    fn system(name: &str, fixed_size: bool, except: &[&str]) -> System {
        let value = serde_json::json!({
            "name": name, "title": name, "program": name, "class": "dds", "profile": "default", "transport": "udp",
            "fixed_size": fixed_size, "except": except,
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn sizes_of_a_round_trip_share_a_job_unless_the_size_is_fixed() {
        let systems = [system("a", false, &[]), system("b", true, &[])];
        let (jobs, refusals) = jobs(&campaign(), &systems, &Roles::new()).unwrap();
        let of = |workload: usize, name: &str| {
            let of = jobs.iter().filter(|job| job.workload == workload && job.system.name == name);
            of.map(|job| job.cells.len()).collect::<Vec<_>>()
        };
        assert_eq!((of(0, "a"), of(0, "b"), of(1, "a")), (vec![2, 2], vec![1; 4], vec![1, 1]));
        assert_eq!(refusals, []);
        assert!(jobs[0].cells.iter().all(|cell| cell.values["reliability"].to_string() == "reliable"));
    }

    #[test]
    fn unsupported_cells_are_listed_and_not_run() {
        let systems = [system("a", false, &["stream: it has no topics"]), system("b", false, &[])];
        let (jobs, refusals) = jobs(&campaign(), &systems, &Roles::new()).unwrap();
        assert!(jobs.iter().all(|job| job.workload == 0));
        assert_eq!(refusals.len(), 2);
        assert_eq!(refusals[0].why, "it has no topics");
    }

    #[test]
    fn rounds_have_every_job_once_in_orders_of_their_own() {
        let first = order(20, 7, 0);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        assert_eq!(first, order(20, 7, 0));
        assert_ne!(first, order(20, 7, 1));
        assert_ne!(first, order(20, 8, 0));
    }

    /// Returns the campaign files below `lab/campaigns`.
    fn files_of_the_tree() -> Vec<std::path::PathBuf> {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../campaigns");
        let files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() >= 5, "{files:?}");
        files
    }

    #[test]
    fn campaigns_of_the_repository_have_jobs_in_each_length() {
        let systems = super::super::system::systems(&[]).unwrap();
        let all: Vec<String> = crate::agent::ROLES.map(str::to_owned).into();
        let roles = systems.iter().map(|system| (system.name.clone(), all.clone())).collect();
        for file in files_of_the_tree() {
            for length in [Length::Quick, Length::Normal, Length::Paper] {
                let campaign = Campaign::read(&file, length).unwrap();
                assert!(!jobs(&campaign, &systems, &roles).unwrap().0.is_empty(), "{}", file.display());
            }
        }
    }

    #[test]
    fn every_system_has_a_round_trip_of_two_sizes_in_some_quick_campaign() {
        let systems = super::super::system::systems(&[]).unwrap();
        let mut measured = std::collections::BTreeSet::new();
        for file in files_of_the_tree() {
            let campaign = Campaign::read(&file, Length::Quick).unwrap();
            for job in jobs(&campaign, &systems, &Roles::new()).unwrap().0 {
                let is_round_trip = campaign.workloads[job.workload].kind == Kind::RoundTrip;
                let sizes = job.cells.iter().filter(|_| is_round_trip).map(|cell| cell.values["size"].to_string());
                measured.extend(sizes.map(|size| (job.system.name.clone(), size)));
            }
        }
        for system in systems.iter().filter(|system| !system.experiment) {
            for size in [64, 16_384] {
                let limit = |word: &String| word.strip_prefix("above ")?.split(':').next()?.parse::<u64>().ok();
                let is_possible = system.except.iter().filter_map(limit).all(|limit| size <= limit);
                let has_cell = measured.contains(&(system.name.clone(), size.to_string()));
                assert!(has_cell || !is_possible, "{}, {size} B", system.name);
            }
        }
    }
}
