//! Role `keep`: the durability service of a domain, so that samples outlive their writer.

use super::Lines;
use super::options::Options;
use crate::dds::setup;
use crate::error::{Error, Result};
use crate::signal::stopped;
use crate::spec::Durability;
use std::path::PathBuf;
use takt::{DomainParticipantBuilder, INTEREST_PROPERTY};
use takt_durability::Service;

/// Directory of the store; dropping the value removes it.
struct Store(PathBuf);

impl Drop for Store {
    fn drop(&mut self) {
        // The directory is below the directory for temporary files, so a leftover does no harm.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Runs the durability service until a signal arrives. With `durability=persistent`, its store is
/// below the directory for temporary files.
pub(super) fn keep(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    let name = || std::env::temp_dir().join(format!("takt-agent-keep-{}", std::process::id()));
    let store = (options.link.durability == Durability::Persistent).then(|| Store(name()));
    let settings =
        takt_durability::Options { store: store.as_ref().map(|store| store.0.clone()), ..Default::default() };
    let mut service = Service::with_participants(builder(options)?, builder(options)?, settings).map_err(failure)?;
    lines.ready()?;
    while !stopped() {
        service.step().map_err(failure)?;
    }
    Ok(())
}

/// Returns the builder of a participant that receives the announcements of all endpoints, also from
/// a discovery server.
fn builder(options: &Options) -> Result<DomainParticipantBuilder> {
    let mut qos = takt::qos::DomainParticipantQos::default();
    qos.property.set(INTEREST_PROPERTY, "all", true);
    Ok(setup::builder(&options.link)?.qos(qos))
}

fn failure(error: takt_durability::Error) -> Error {
    match error {
        takt_durability::Error::Dds(error) => Error::Dds(error),
        error => Error::os("durability", std::io::Error::other(error)),
    }
}
