//! Numbers that a driver keeps for an interface (linux/ethtool.h: `ethtool_coalesce`, `ethtool_channels`, `ethtool_value`).

use std::fmt;
use std::io;

use super::{Driver, command, get, put};

/// A structure of ethtool: the commands that get and set it. Both stand in front of 32-bit numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Structure {
    get: u32,
    set: u32,
}

const COALESCE: Structure = Structure { get: 0x0e, set: 0x0f };
const CHANNELS: Structure = Structure { get: 0x3c, set: 0x3d };
const RECEIVE_OFFLOAD: Structure = Structure { get: 0x2b, set: 0x2c };
const FLAGS: Structure = Structure { get: 0x25, set: 0x26 };

/// One of [`PARAMETERS`], by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameter(usize);

const ALL: u32 = u32::MAX;

/// Names, the structure that each is in, which number of it, and which bits of that.
const PARAMETERS: [(&str, Structure, usize, u32); 11] = [
    ("rx-usecs", COALESCE, 1, ALL),
    ("rx-frames", COALESCE, 2, ALL),
    ("tx-usecs", COALESCE, 5, ALL),
    ("tx-frames", COALESCE, 6, ALL),
    ("adaptive-rx", COALESCE, 10, ALL),
    ("adaptive-tx", COALESCE, 11, ALL),
    ("rx-channels", CHANNELS, 5, ALL),
    ("tx-channels", CHANNELS, 6, ALL),
    ("combined-channels", CHANNELS, 8, ALL),
    ("gro", RECEIVE_OFFLOAD, 1, ALL),
    ("ntuple", FLAGS, 1, 1 << 27),
];

impl Parameter {
    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        PARAMETERS.iter().position(|(known, ..)| *known == name).map(Self)
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PARAMETERS[self.0].0)
    }
}

/// What an interface has.
pub(crate) fn read(driver: &Driver<'_>, interface: &str, parameter: Parameter) -> io::Result<u32> {
    let (_, structure, index, mask) = PARAMETERS[parameter.0];
    let mut octets = command(structure.get, 0);
    driver(interface, &mut octets)?;
    Ok((get(&octets, 4 * index) & mask) >> mask.trailing_zeros())
}

/// The most that the driver has, for numbers of queues.
pub(crate) fn read_max(driver: &Driver<'_>, interface: &str, parameter: Parameter) -> io::Result<u32> {
    let (_, structure, index, _) = PARAMETERS[parameter.0];
    debug_assert_eq!(structure, CHANNELS, "only these have a maximum, four numbers before");
    let mut octets = command(structure.get, 0);
    driver(interface, &mut octets)?;
    Ok(get(&octets, 4 * (index - 4)))
}

/// Changes one number, and leaves the others of its structure as they are.
pub(crate) fn write(driver: &Driver<'_>, interface: &str, parameter: Parameter, value: u32) -> io::Result<()> {
    let (_, structure, index, mask) = PARAMETERS[parameter.0];
    let mut octets = command(structure.get, 0);
    driver(interface, &mut octets)?;
    let now = get(&octets, 4 * index);
    let wanted = now & !mask | (value << mask.trailing_zeros()) & mask;
    if wanted == now {
        return Ok(());
    }
    put(&mut octets, 0, structure.set);
    put(&mut octets, 4 * index, wanted);
    driver(interface, &mut octets)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn one_number_is_changed_and_the_others_are_left() {
        let flags = Cell::new(1_u32 << 15);
        let driver = |_: &str, octets: &mut [u8]| {
            match get(octets, 0) {
                0x25 => put(octets, 4, flags.get()),
                0x26 => flags.set(get(octets, 4)),
                _ => return Err(io::ErrorKind::Unsupported.into()),
            }
            Ok(())
        };
        let ntuple = Parameter::named("ntuple").expect("it stands in the table");
        assert_eq!(read(&driver, "eth0", ntuple).expect("it can be"), 0);
        write(&driver, "eth0", ntuple, 1).expect("it can be");
        assert_eq!((read(&driver, "eth0", ntuple).expect("it can be"), flags.get()), (1, 1 << 27 | 1 << 15));
        let other = Parameter::named("rx-usecs").expect("it stands in the table");
        assert_eq!(read(&driver, "eth0", other).map_err(|e| e.kind()), Err(io::ErrorKind::Unsupported));
    }
}
