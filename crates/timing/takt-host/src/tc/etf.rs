//! `etf`: frames leave at the launch time that their sender set with `SO_TXTIME`, the earliest
//! first (tc-etf(8)).
//!
//! Its text is `clock tai delta 300000 offload off deadline off skip_sock_check off`:
//! - `delta` is the time by which a frame is passed on before its launch time, in nanoseconds.
//! - With `offload`, the card holds the frame until then.
//! - With `deadline`, the time is a deadline and the frame may leave earlier.
//! - With `skip_sock_check`, frames of sockets without launch times are accepted, for
//!   [`taprio`](super::taprio) with `flags 1`.
//!
//! Frames without a launch time, or whose launch time has passed, are dropped and counted.

use takt_netlink::{find, number, put};

use super::words::{CLOCKS, Words, clock};

const PARAMETERS: u16 = 1;
/// Names of the flags, from the lowest bit.
const FLAGS: [&str; 3] = ["deadline", "offload", "skip_sock_check"];
/// Order of the flags in the text.
const ORDER: [usize; 3] = [1, 0, 2];

pub(crate) fn to_text(octets: &[u8]) -> Option<String> {
    let parameters = find(octets, PARAMETERS)?;
    let at = |at: usize| number(parameters.get(at..)?);
    let (delta, clock, flags) = (at(0)?.cast_signed(), clock(at(4)?.cast_signed()), at(8)?);
    let switches = ORDER.map(|bit| format!(" {} {}", FLAGS[bit], if flags >> bit & 1 == 1 { "on" } else { "off" }));
    Some(format!("clock {clock} delta {delta}{}", switches.concat()))
}

pub(crate) fn from_text(words: &[&str]) -> Option<Vec<u8>> {
    let mut words = Words(words);
    let name = words.optional("clock")?;
    let (clock, _) = CLOCKS.iter().find(|(_, known)| *known == name)?;
    let delta: i32 = words.number("delta")?;
    let mut flags = 0_u32;
    for bit in ORDER {
        flags |= u32::from(words.switch(FLAGS[bit])?) << bit;
    }
    let mut octets = Vec::new();
    put(&mut octets, PARAMETERS, &[delta.to_ne_bytes(), clock.to_ne_bytes(), flags.to_ne_bytes()].concat());
    words.is_over().then_some(octets)
}
