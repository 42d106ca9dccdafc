//! Synchronization quality of this host's clock.
//!
//! The kernel keeps a bound of the clock error if the disciplining program reports it
//! (`adjtimex(2)`; RFC 5905 calls it the maximum error). chrony reports more and takes precedence
//! if it runs. Clocks of network cards (`/dev/ptpN`) are compared with the system clock, since PTP
//! disciplines them first.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;

use serde::Serialize;

use crate::machine::Machine;

/// Source of the reported synchronization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// chrony, by `chronyc tracking`.
    Chrony,
    /// The kernel, with the error that the disciplining program reported.
    Kernel,
    /// No source: the clock is not synchronized.
    #[serde(rename = "nobody")]
    None,
}

/// Clock of a network card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CardClock {
    /// Path of the device, `/dev/ptpN`.
    pub device: String,
    /// System clock minus card clock. `None` if the card clock cannot be read.
    pub offset_ns: Option<i64>,
    /// Uncertainty of the offset: half of the duration of the read.
    pub uncertainty_ns: Option<u64>,
}

/// Accuracy of `CLOCK_REALTIME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClockQuality {
    /// Source of the accuracy.
    pub source: Source,
    /// Maximum clock error. `None` if it is unbounded.
    pub offset_uncertainty_ns: Option<u64>,
    /// Clocks of network cards.
    pub cards: Vec<CardClock>,
}

impl ClockQuality {
    /// Queries chrony and the kernel.
    pub fn now() -> Self {
        let chrony = chrony();
        let kernel = || kernel().filter(|timex| timex.status & libc::STA_UNSYNC == 0).map(|timex| timex.maxerror);
        let (source, offset_uncertainty_ns) = match chrony {
            Some(uncertainty_ns) => (Source::Chrony, Some(uncertainty_ns)),
            None => match kernel() {
                Some(microseconds) => (Source::Kernel, Some(microseconds.unsigned_abs().saturating_mul(1000))),
                None => (Source::None, None),
            },
        };
        let devices = Machine::default().names("/dev").into_iter().filter(|name| name.starts_with("ptp"));
        let devices = devices.filter(|name| name[3..].parse::<u32>().is_ok());
        Self { source, offset_uncertainty_ns, cards: devices.map(|name| card(format!("/dev/{name}"))).collect() }
    }
}

/// Returns the kernel's data on its clock.
fn kernel() -> Option<libc::timex> {
    // SAFETY: all-zero is a valid value of this C structure, and requests no change.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives during the call.
    (unsafe { libc::adjtimex(&raw mut timex) } >= 0).then_some(timex)
}

/// Returns the maximum clock error that chrony reports.
fn chrony() -> Option<u64> {
    let output = Command::new("chronyc").args(["-c", "tracking"]).output().ok()?; // tidy-allow(dropped-cause): then it is not there
    output.status.success().then(|| chrony_uncertainty(&String::from_utf8_lossy(&output.stdout))).flatten()
}

/// Parses a line of `chronyc -c tracking`. The error is the sum of the remaining correction, the
/// root dispersion and half of the root delay, in seconds.
///
/// Returns `None` if the clock is not synchronized (stratum 0, or no leap state).
fn chrony_uncertainty(line: &str) -> Option<u64> {
    let fields: Vec<_> = line.trim().split(',').collect();
    let number = |index: usize| fields.get(index)?.parse::<f64>().ok().filter(|number| number.is_finite()); // tidy-allow(dropped-cause): then it says nothing
    if fields.last() == Some(&"Not synchronised") || number(2)? == 0.0 {
        return None;
    }
    let seconds = number(4)?.abs() + number(10)?.abs() / 2.0 + number(11)?.abs();
    // The conversion saturates at 2^64 ns.
    Some((seconds * 1e9).ceil() as u64)
}

/// `PTP_SYS_OFFSET` of linux/ptp_clock.h: `_IOW('=', 5, struct ptp_sys_offset)`.
const PTP_SYS_OFFSET: libc::Ioctl = 0x4340_3d05;
const SAMPLES_MAX: usize = 25;
const SAMPLES: usize = 9;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PtpTime {
    seconds: i64,
    nanoseconds: u32,
    reserved: u32,
}

impl PtpTime {
    fn ns(self) -> i64 {
        self.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(self.nanoseconds))
    }
}

/// Timestamps that alternate between the system clock and the card clock. The first and the last
/// are of the system clock.
#[repr(C)]
struct PtpOffsets {
    samples: u32,
    reserved: [u32; 3],
    times: [PtpTime; 2 * SAMPLES_MAX + 1],
}

const _: () =
    assert!(size_of::<PtpOffsets>() == (PTP_SYS_OFFSET >> 16 & 0x3fff) as usize, "the ioctl number contains the size");

fn card(device: String) -> CardClock {
    let offset = card_times(&device).map(|times| card_offset(&times)).unwrap_or_default();
    let (offset_ns, uncertainty_ns) = offset.unzip();
    CardClock { device, offset_ns, uncertainty_ns }
}

fn card_times(device: &str) -> io::Result<Vec<i64>> {
    let file = File::open(device)?;
    let samples = u32::try_from(SAMPLES).expect("a few");
    let mut offsets = PtpOffsets { samples, reserved: [0; 3], times: [PtpTime::default(); 2 * SAMPLES_MAX + 1] };
    // SAFETY: the structure is as long as the command says, and lives during the call.
    if unsafe { libc::ioctl(file.as_raw_fd(), PTP_SYS_OFFSET, &raw mut offsets) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(offsets.times[..=2 * SAMPLES].iter().map(|time| time.ns()).collect())
}

/// Returns offset and uncertainty of the sample with the shortest read.
fn card_offset(times: &[i64]) -> Option<(i64, u64)> {
    let triples = times.windows(3).step_by(2);
    let quickest = triples.min_by_key(|triple| triple[2].saturating_sub(triple[0]))?;
    let took = quickest[2].abs_diff(quickest[0]);
    let middle = quickest[0].saturating_add((took / 2).cast_signed());
    Some((middle.saturating_sub(quickest[1]), took.div_ceil(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_read_of_a_card_clock_counts() {
        let times = [1000, 5, 1400, 6, 1500, 7, 2500];
        assert_eq!(card_offset(&times), Some((1444, 50)), "1400, 6, 1500");
        assert_eq!(card_offset(&times[..2]), None);
    }

    #[test]
    fn error_terms_of_chrony_are_added() {
        let line = "C0A80001,192.168.0.1,3,1763800000.123456789,-0.000010000,0.000001,0.000002,-12.3,0.01,0.05,0.000400000,0.000030000,64.2,Normal\n";
        assert_eq!(chrony_uncertainty(line), Some(240_000), "10 us, half of 400 us, 30 us");
        assert_eq!(chrony_uncertainty(&line.replace("Normal", "Not synchronised")), None);
        assert_eq!(chrony_uncertainty(&line.replace(",3,", ",0,")), None);
        assert_eq!(chrony_uncertainty("506 Cannot talk to daemon"), None);
    }

    #[test]
    fn kernel_reports_its_clock() {
        let timex = kernel().expect("any user may call adjtimex");
        let quality = ClockQuality::now();
        let is_synchronized = timex.status & libc::STA_UNSYNC == 0 || quality.source == Source::Chrony;
        assert_eq!(quality.offset_uncertainty_ns.is_some(), is_synchronized, "{quality:?}");
        assert_eq!(quality.source == Source::None, !is_synchronized, "{quality:?}");
    }
}
