//! Sample ranks and generation ranks in a collection of samples (DDS 1.4 §2.2.2.5.1.6 to
//! §2.2.2.5.1.8).
//!
//! While samples are collected, `sample_rank` holds the index of the next sample of the instance,
//! or zero. A backward pass over the collection then computes the ranks without a table of
//! instances.

use crate::cache::SampleInfo;

/// Item that has a [`SampleInfo`].
pub trait HasSampleInfo {
    /// Returns the information of the sample.
    fn info(&self) -> &SampleInfo;
    /// Returns the information of the sample, to set its ranks.
    fn info_mut(&mut self) -> &mut SampleInfo;
}

impl HasSampleInfo for SampleInfo {
    fn info(&self) -> &SampleInfo {
        self
    }

    fn info_mut(&mut self) -> &mut SampleInfo {
        self
    }
}

/// Links the sample at `at` to the one at `previous`, its predecessor of the same instance
/// ([`SampleRef::previous`](crate::SampleRef::previous)).
pub fn link(samples: &mut [impl HasSampleInfo], at: usize, previous: Option<u32>) {
    let Some(previous) = previous.map(|previous| previous as usize).filter(|previous| *previous < at) else { return };
    if samples[previous].info().instance_handle == samples[at].info().instance_handle {
        samples[previous].info_mut().sample_rank = u32::try_from(at).unwrap_or(0);
    }
}

/// Sets `sample_rank` and `generation_rank` once all samples are collected.
pub fn compute_ranks(samples: &mut [impl HasSampleInfo]) {
    for at in (0..samples.len()).rev() {
        let next = samples[at].info().sample_rank as usize;
        let Some(next) = samples.get(next).filter(|_| next > at).map(|next| *next.info()) else { continue };
        let info = samples[at].info_mut();
        info.sample_rank = next.sample_rank.saturating_add(1);
        info.generation_rank = next.generation_rank + next.generation().saturating_sub(info.generation());
    }
}
