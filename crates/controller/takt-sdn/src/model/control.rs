//! Control traffic of the controller: allowances per cause and port, in the control class of the
//! switch model.
//!
//! The controller sends within an [`Allowance`] for each [`Cause`] and port; frames beyond it are
//! sent in the lowest class. The scheduler treats the allowances as flows of the class, so that the
//! control class keeps a bound below all admitted flows.

use takt_calculus::Arrivals;
use takt_calculus::network::{Flow, Frames, Hop};

/// Maximum time in ns that frames wait in the class: LLDP is rejected after 500 ms, and ARP is
/// repeated after 1 s.
const LIMIT_NS: u64 = 250_000_000;
/// Maximum time in ns between the transmission by the controller and the queue of the port. A
/// connection that stalls for longer releases a larger burst than the analysis assumes.
const CHANNEL_NS: u64 = 50_000_000;
/// Share of a port's rate for learning and for discovery each, in ppm.
const SHARE_PPM: u64 = 20_000;
/// Minimum period for any port rate, so that the burst after a stalled connection fits into the
/// queues of the built-in models.
const PERIOD_NS_MIN: u64 = 2_500_000;
/// Duration of a burst of each cause on the link.
const BURST_NS: u64 = 20_000_000;
const BURSTS: [u64; 2] = [4, 20];
/// Preamble, FCS and interframe gap in octets.
const OVERHEAD: u64 = 24;
/// Upper bound of the length of the controller's LLDP frames.
const PROBE_LEN: u64 = 256;
/// Period of quick probes: 100 ms.
const PROBE_PERIOD_NS: u64 = 100_000_000;

/// Cause of a frame that the controller sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// LLDP.
    Probe,
    /// ARP, neighbor discovery, IGMP and MLD.
    Learning,
    /// DDS discovery.
    Discovery,
}

/// Traffic that the controller may send out of a port in the class of control traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Interval in ns between two frames in the long run.
    pub period_ns: u64,
    /// Burst in frames.
    pub burst: u64,
    /// Maximum length of a frame in octets, without FCS.
    pub frame_len: u64,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 3] = [Self::Probe, Self::Learning, Self::Discovery];

    const fn name(self) -> &'static str {
        match self {
            Self::Probe => "LLDP",
            Self::Learning => "ARP and neighbor discovery",
            Self::Discovery => "DDS discovery",
        }
    }
}

impl Allowance {
    /// Returns the allowance of a port with this rate; `foreign_frame_len` is the length of the
    /// longest frame without a contract.
    pub fn of(cause: Cause, rate_bps: u64, foreign_frame_len: u64) -> Self {
        if cause == Cause::Probe {
            return Self { period_ns: PROBE_PERIOD_NS, burst: 2, frame_len: PROBE_LEN };
        }
        let frame_ns = (foreign_frame_len + OVERHEAD).saturating_mul(8_000_000_000).div_ceil(rate_bps.max(1)).max(1);
        let [least, most] = BURSTS;
        Self {
            period_ns: frame_ns.saturating_mul(1_000_000 / SHARE_PPM).max(PERIOD_NS_MIN),
            burst: (BURST_NS / frame_ns).clamp(least, most),
            frame_len: foreign_frame_len,
        }
    }

    /// Returns the flow for the analysis, in a queue of the port named `port`.
    pub fn flow(self, cause: Cause, port: &str, hop: Hop) -> Flow {
        let bursts = Arrivals::bursts(self.period_ns, self.burst);
        Flow {
            name: format!("control traffic ({}) of {port}", cause.name()),
            arrivals: Arrivals { jitter_ns: bursts.jitter_ns.saturating_add(CHANNEL_NS), ..bursts },
            frames: vec![Frames { len: self.frame_len, count: 1 }],
            hops: vec![hop],
            branches: Vec::new(),
            limit_ns: LIMIT_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use takt_calculus::network::{Admission, Port};

    use super::*;
    use crate::model::SwitchModel;

    #[test]
    fn allowance_is_a_share_of_the_rate() {
        let of = |rate_bps| Allowance::of(Cause::Discovery, rate_bps, 1514);
        // A frame occupies a link of 20 Mbit/s for 615.2 us.
        assert_eq!(of(20_000_000), Allowance { period_ns: 30_760_000, burst: 20, frame_len: 1514 });
        assert_eq!(of(1_000_000).burst, 4);
        assert_eq!(of(1_000_000_000), Allowance { period_ns: PERIOD_NS_MIN, burst: 20, frame_len: 1514 });
        assert!(of(0).period_ns > 0, "a rate of 0 does not panic");
    }

    #[test]
    fn control_traffic_fits_into_the_queues_of_the_built_in_models_at_any_rate() {
        for (name, _) in SwitchModel::BUILT_IN {
            let model = SwitchModel::built_in(name).expect("the model is built in");
            let depth = model.control.expect("the model has the class").depth;
            for rate_bps in [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 100_000_000_000] {
                let port = Port {
                    name: "port".into(),
                    rate_bps,
                    foreign_frame_len: model.foreign_frame_len,
                    classes: vec![depth],
                    delay_ns: 0,
                    delay_ns_min: 0,
                };
                let mut network = Admission::new(vec![port]).expect("the port is valid");
                for cause in Cause::ALL {
                    let allowance = Allowance::of(cause, rate_bps, model.foreign_frame_len);
                    let admitted = network.admit(allowance.flow(cause, "port", Hop { port: 0, class: 0 }));
                    assert!(admitted.is_ok(), "{name} at {rate_bps} bit/s: {admitted:?}");
                }
            }
        }
    }
}
