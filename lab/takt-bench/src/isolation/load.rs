//! Load inside the answering process: work that an executor must run after the critical topic.
//!
//! There are three independent kinds: samples of a background topic ([`flood`]), a long callback
//! ([`CallbackLoad`], triggered by [`flood`]), and participants that join and leave ([`crowd`]).

use super::crowd::{Crowd, CrowdSettings};
use super::network::{CROWD_ADDRESSES, INTERFACE};
use super::participant::{self, BACKGROUND, ParticipantPlan, SLOW};
use super::side::{CallbackListener, drive, lock};
use crate::agent::Lines;
use crate::error::{Error, Result};
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use crate::sequence::SequenceTracker;
use crate::signal::stopped;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use takt::{DataReader, DataWriter};

/// Interval between batches of samples.
pub(crate) const TICK: Duration = Duration::from_millis(1);
/// Payload size of a background sample, octets.
const SAMPLE_LEN: usize = 32;
/// Maximum time until readers are matched.
const MATCH_LIMIT: Duration = Duration::from_secs(20);

/// Additional load of the answering process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// Background samples per second, best effort.
    pub samples_hz: u32,
    /// Duration of a low-priority callback, us; 0: there is none.
    pub callback_us: u64,
    /// Number of such callbacks per second.
    pub callback_hz: u32,
    /// Number of simulated participants that are discovered, again and again.
    pub participants: usize,
}

impl LoadPlan {
    /// Reports whether there is no load.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.floods() && self.participants == 0
    }

    /// Reports whether samples are written.
    #[must_use]
    pub fn floods(&self) -> bool {
        self.samples_hz > 0 || (self.callback_us > 0 && self.callback_hz > 0)
    }
}

/// Settings of `flood`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloodPlan {
    /// Participant.
    pub participant: ParticipantPlan,
    /// Load that it writes.
    pub load: LoadPlan,
}

/// Settings of `crowd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrowdPlan {
    /// DDS domain ID.
    pub domain: u32,
    /// Address of the participant that discovers the crowd: the first one there.
    pub peer: Ipv4Addr,
    /// Number of participants.
    pub participants: usize,
}

/// Load at the answering process: readers whose callbacks count, or take long.
pub struct CallbackLoad {
    samples: Arc<Mutex<SequenceTracker>>,
    callbacks: Arc<AtomicU64>,
}

impl CallbackLoad {
    /// Counts the samples of `background`, and is busy for `callback_ns` with each sample of
    /// `slow`.
    ///
    /// # Errors
    /// A reader was deleted.
    pub fn on(background: &DataReader<Blob>, slow: &DataReader<Blob>, callback_ns: u64) -> Result<Self> {
        let load = Self { samples: Arc::default(), callbacks: Arc::default() };
        let samples = Arc::clone(&load.samples);
        background.set_listener(CallbackListener::boxed(move |sample| {
            if let Some((sequence, _)) = sample.marks() {
                lock(&samples).record(sequence);
            }
            Ok(())
        }))?;
        let callbacks = Arc::clone(&load.callbacks);
        slow.set_listener(CallbackListener::boxed(move |_| {
            let until = monotonic_ns() + callback_ns;
            while monotonic_ns() < until {
                std::hint::spin_loop();
            }
            callbacks.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(load)
    }

    /// Returns the numbers of background samples received, background samples lost, and slow
    /// callbacks.
    #[must_use]
    pub fn counts(&self) -> (u64, u64, u64) {
        let counts = lock(&self.samples).counts();
        (counts.received, counts.lost, self.callbacks.load(Ordering::Relaxed))
    }
}

/// Writer of background samples and of samples that trigger slow callbacks.
pub(crate) struct Flood {
    background: DataWriter<Blob>,
    slow: DataWriter<Blob>,
    load: LoadPlan,
    begin_ns: u64,
    written: u64,
    triggered: u64,
    batch: Vec<Blob>,
}

impl Flood {
    /// Creates the load; its rates count from now.
    pub(crate) fn begin(background: DataWriter<Blob>, slow: DataWriter<Blob>, load: LoadPlan) -> Self {
        Self { background, slow, load, begin_ns: monotonic_ns(), written: 0, triggered: 0, batch: Vec::new() }
    }

    /// Writes the samples that are due: background samples in one batch.
    pub(crate) fn write_due(&mut self) -> Result<()> {
        let elapsed_ns = monotonic_ns() - self.begin_ns;
        let due = |hz: u32| (u128::from(elapsed_ns) * u128::from(hz) / 1_000_000_000) as u64;
        self.batch.resize_with((due(self.load.samples_hz) - self.written) as usize, || Blob::filled(SAMPLE_LEN));
        for sample in &mut self.batch {
            self.written += 1;
            sample.mark(self.written, monotonic_ns());
        }
        // Best effort: samples without room are lost, and the receiving side counts them as lost.
        drop(self.background.write_batch(&self.batch));
        if self.load.callback_us > 0 && due(self.load.callback_hz) > self.triggered {
            self.triggered += 1;
            self.slow.write(&Blob::filled(SAMPLE_LEN))?;
        }
        Ok(())
    }

    /// Returns the numbers of background samples and of samples that triggered slow callbacks, up
    /// to now.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.written, self.triggered)
    }
}

/// Writes background samples, a batch each millisecond, and samples that trigger slow callbacks,
/// until it is stopped.
pub(super) fn flood(plan: &FloodPlan, lines: &mut Lines<'_>) -> Result<()> {
    let participant = participant::participant(&plan.participant)?;
    let background = participant::background_writer(&participant, BACKGROUND)?;
    let slow = participant::background_writer(&participant, SLOW)?;
    lines.ready()?;
    let since = monotonic_ns();
    while background.publication_matched_status()?.current_count == 0
        || slow.publication_matched_status()?.current_count == 0
    {
        if stopped() {
            return Err(Error::Stopped);
        }
        if monotonic_ns() - since > MATCH_LIMIT.as_nanos() as u64 {
            return Err(Error::NoAnswer {
                what: format!("no reader matches the writers of background samples within {MATCH_LIMIT:?}"),
            });
        }
        drive(&participant, TICK, false)?;
    }
    lines.write(&json!({"ev": "matched"}))?;
    let mut flood = Flood::begin(background, slow, plan.load.clone());
    while !stopped() {
        drive(&participant, TICK, false)?;
        flood.write_due()?;
    }
    Ok(())
}

/// Lets simulated participants join and leave continuously, until it is stopped.
pub(super) fn crowd(plan: &CrowdPlan, lines: &mut Lines<'_>) -> Result<()> {
    let settings = CrowdSettings { domain: plan.domain, interface: INTERFACE, own: &CROWD_ADDRESSES, peer: plan.peer };
    let mut crowd = Crowd::new(&settings, plan.participants)?;
    lines.ready()?;
    while !stopped() {
        crowd.step(TICK)?;
    }
    Ok(())
}
