//! Worlds in which all promises are kept, though a checker once thought otherwise.

use takt_sim::clock::MILLISECOND;
use takt_sim::scenario::QosPlan;

use crate::found::{RELIABLE, scenario, writer};
use crate::run;

/// A history of large samples whose memory is used up cannot take the next one, though a small one would still fit.
#[test]
fn room_for_a_small_sample_is_none_for_a_large_one() {
    let history = QosPlan { transient_local: true, ..RELIABLE };
    let report = run(&scenario(200_000, vec![vec![writer(history, MILLISECOND, 200)]]));
    assert!(report.written < 200, "there was room for all {}", report.written);
    assert_eq!(report.violation, None);
}
