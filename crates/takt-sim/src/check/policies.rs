//! Policies that decide which samples of all that arrive an application sees, and when.

use takt_core::SampleInfo;
use takt_wire::Timestamp;

use super::{Checker, EndpointId, Rule};
use crate::clock::Nanos;

/// A lifespan as long as this is longer than it takes to deliver a sample where nothing goes wrong.
const LIFESPAN_ENOUGH: Nanos = 6 * super::progress::HEARTBEAT_PERIOD;

impl Checker {
    /// Whether no sample of the writer expires before the reader has taken it.
    pub(super) fn lives_long_enough(&self, writer: EndpointId, reader: EndpointId) -> bool {
        let certain = || self.calm && self.light && self.steady && self.take_period(reader) == 0;
        self.endpoints[writer as usize].qos.lifespan.is_none_or(|lifespan| lifespan >= LIFESPAN_ENOUGH && certain())
    }

    /// A sample was taken when the reader's wall clock showed `wall`: was it of use still?
    pub(super) fn judge_lifespan(
        &self,
        wall: Timestamp,
        writer: EndpointId,
        info: &SampleInfo,
    ) -> Result<(), (Rule, String)> {
        let Some(lifespan) = self.endpoints[writer as usize].qos.lifespan else { return Ok(()) };
        let age = wall.to_nanos() - info.source_timestamp.to_nanos();
        if age >= lifespan as i64 {
            return Err((
                Rule::Lifespan,
                format!("writer {writer}: a sample of {age} ns, the lifespan is {lifespan} ns"),
            ));
        }
        Ok(())
    }
}
