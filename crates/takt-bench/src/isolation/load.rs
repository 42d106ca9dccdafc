//! Load inside the process that answers: what an executor has to put behind the critical topic.
//!
//! Three kinds, each of use by itself: samples of a topic beside the critical one ([`flood`]), a callback that takes long
//! ([`Burden`], set off by [`flood`]), and participants that come and go ([`crowd`]).

use super::crowd::{Crowd, Place};
use super::network::{CROWD_ADDRESSES, INTERFACE};
use super::participant::{self, BACKGROUND, ParticipantPlan, SLOW};
use super::side::{Each, drive, lock};
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

/// Samples are written in batches this far apart.
pub(crate) const TICK: Duration = Duration::from_millis(1);
/// Payload of a background sample, octets.
const SAMPLE_LEN: usize = 32;
/// Until readers are found.
const MATCH_LIMIT: Duration = Duration::from_secs(20);

/// What is asked of the process that answers, beside answering.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// Background samples per second, best effort.
    pub samples_hz: u32,
    /// What a callback of low priority takes, us; 0: there is none.
    pub callback_us: u64,
    /// Such callbacks per second.
    pub callback_hz: u32,
    /// Simulated participants that are discovered, again and again.
    pub participants: usize,
}

impl LoadPlan {
    /// Whether there is anything to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.floods() && self.participants == 0
    }

    /// Whether there are samples to be written.
    #[must_use]
    pub fn floods(&self) -> bool {
        self.samples_hz > 0 || (self.callback_us > 0 && self.callback_hz > 0)
    }
}

/// What `flood` is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloodPlan {
    /// Its participant.
    pub participant: ParticipantPlan,
    /// What it writes.
    pub load: LoadPlan,
}

/// What `crowd` is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrowdPlan {
    /// DDS domain.
    pub domain: u32,
    /// Who is to discover them all: the first participant at this address.
    pub peer: Ipv4Addr,
    /// How many.
    pub participants: usize,
}

/// The part of the load that the answering process has: readers whose callbacks count, or take their time.
pub struct Burden {
    samples: Arc<Mutex<SequenceTracker>>,
    callbacks: Arc<AtomicU64>,
}

impl Burden {
    /// Counts what comes at `background`, and is busy for `callback_ns` with each sample of `slow`.
    ///
    /// # Errors
    /// A reader was deleted.
    pub fn on(background: &DataReader<Blob>, slow: &DataReader<Blob>, callback_ns: u64) -> Result<Self> {
        let burden = Self { samples: Arc::default(), callbacks: Arc::default() };
        let samples = Arc::clone(&burden.samples);
        background.set_listener(Each::boxed(move |sample| {
            if let Some((sequence, _)) = sample.marks() {
                lock(&samples).record(sequence);
            }
            Ok(())
        }))?;
        let callbacks = Arc::clone(&burden.callbacks);
        slow.set_listener(Each::boxed(move |_| {
            let until = monotonic_ns() + callback_ns;
            while monotonic_ns() < until {
                std::hint::spin_loop();
            }
            callbacks.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(burden)
    }

    /// Background samples that came, those that did not, and slow callbacks that were made.
    #[must_use]
    pub fn counts(&self) -> (u64, u64, u64) {
        let counts = lock(&self.samples).counts();
        (counts.received, counts.lost, self.callbacks.load(Ordering::Relaxed))
    }
}

/// What writes background samples, and what sets slow callbacks off.
pub(crate) struct Flood {
    background: DataWriter<Blob>,
    slow: DataWriter<Blob>,
    load: LoadPlan,
    begin_ns: u64,
    written: u64,
    set_off: u64,
    batch: Vec<Blob>,
}

impl Flood {
    /// Counts from now.
    pub(crate) fn begin(background: DataWriter<Blob>, slow: DataWriter<Blob>, load: LoadPlan) -> Self {
        Self { background, slow, load, begin_ns: monotonic_ns(), written: 0, set_off: 0, batch: Vec::new() }
    }

    /// Writes what is due by now: the samples in one batch.
    pub(crate) fn write_due(&mut self) -> Result<()> {
        let elapsed_ns = monotonic_ns() - self.begin_ns;
        let due = |hz: u32| (u128::from(elapsed_ns) * u128::from(hz) / 1_000_000_000) as u64;
        self.batch.resize_with((due(self.load.samples_hz) - self.written) as usize, || Blob::filled(SAMPLE_LEN));
        for sample in &mut self.batch {
            self.written += 1;
            sample.mark(self.written, monotonic_ns());
        }
        // Best effort: what there is no room for is lost, and shows as that where it does not arrive.
        drop(self.background.write_batch(&self.batch));
        if self.load.callback_us > 0 && due(self.load.callback_hz) > self.set_off {
            self.set_off += 1;
            self.slow.write(&Blob::filled(SAMPLE_LEN))?;
        }
        Ok(())
    }

    /// Background samples, and what set slow callbacks off, up to now.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.written, self.set_off)
    }
}

/// Writes background samples, a batch each millisecond, and what sets slow callbacks off, until it is stopped.
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
            return Err(Error::NoAnswer { what: "nobody reads the background samples".into() });
        }
        drive(&participant, TICK, false)?;
    }
    lines.say(&json!({"ev": "matched"}))?;
    let mut flood = Flood::begin(background, slow, plan.load.clone());
    while !stopped() {
        drive(&participant, TICK, false)?;
        flood.write_due()?;
    }
    Ok(())
}

/// Keeps simulated participants coming and going, until it is stopped.
pub(super) fn crowd(plan: &CrowdPlan, lines: &mut Lines<'_>) -> Result<()> {
    let place = Place { domain: plan.domain, interface: INTERFACE, own: &CROWD_ADDRESSES, peer: plan.peer };
    let mut crowd = Crowd::new(&place, plan.participants)?;
    lines.ready()?;
    while !stopped() {
        crowd.live(TICK)?;
    }
    Ok(())
}
