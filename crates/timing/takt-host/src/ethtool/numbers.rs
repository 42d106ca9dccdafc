//! Numeric driver parameters of an interface: by ioctl (linux/ethtool.h: `ethtool_channels`,
//! `ethtool_value`), and interrupt coalescing by netlink ([`coalescing`]).

use std::fmt;
use std::io;

use super::coalescing::{self, Value};
use super::{Driver, command, get, put};

/// Commands that get and set a structure of ethtool. The structure consists of the command and
/// 32-bit numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Structure {
    get: u32,
    set: u32,
}

const CHANNELS: Structure = Structure { get: 0x3c, set: 0x3d };
const RECEIVE_OFFLOAD: Structure = Structure { get: 0x2b, set: 0x2c };
const FLAGS: Structure = Structure { get: 0x25, set: 0x26 };

/// Index of a parameter in [`PARAMETERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameter(usize);

/// Location of a parameter.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// In a structure: the index of the number, and the mask of its bits.
    Structure(Structure, usize, u32),
    /// Attribute of interrupt coalescing.
    Coalescing(Value),
}

const fn number(structure: Structure, index: usize) -> Place {
    Place::Structure(structure, index, u32::MAX)
}

const fn coalescing(attribute: u16, is_switch: bool) -> Place {
    Place::Coalescing(Value { attribute, is_switch })
}

/// Names and locations of the parameters.
const PARAMETERS: [(&str, Place); 11] = [
    ("rx-usecs", coalescing(2, false)),
    ("rx-frames", coalescing(3, false)),
    ("tx-usecs", coalescing(6, false)),
    ("tx-frames", coalescing(7, false)),
    ("adaptive-rx", coalescing(11, true)),
    ("adaptive-tx", coalescing(12, true)),
    ("rx-channels", number(CHANNELS, 5)),
    ("tx-channels", number(CHANNELS, 6)),
    ("combined-channels", number(CHANNELS, 8)),
    ("gro", number(RECEIVE_OFFLOAD, 1)),
    ("ntuple", Place::Structure(FLAGS, 1, 1 << 27)),
];

impl Parameter {
    /// Returns the parameter of this name.
    pub fn named(name: &str) -> Option<Self> {
        PARAMETERS.iter().position(|(known, ..)| *known == name).map(Self)
    }

    /// Reports whether the parameter is a number of queues.
    pub(crate) fn is_number_of_queues(self) -> bool {
        matches!(PARAMETERS[self.0].1, Place::Structure(CHANNELS, ..))
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PARAMETERS[self.0].0)
    }
}

/// Reads a parameter of an interface.
pub(crate) fn read(driver: &Driver<'_>, interface: &str, parameter: Parameter) -> io::Result<u32> {
    let (structure, index, mask) = match PARAMETERS[parameter.0].1 {
        Place::Structure(structure, index, mask) => (structure, index, mask),
        Place::Coalescing(value) => return coalescing::read(interface, value),
    };
    let mut octets = command(structure.get, 0);
    driver(interface, &mut octets)?;
    Ok((get(&octets, 4 * index) & mask) >> mask.trailing_zeros())
}

/// Reads the maximum that the driver supports, for numbers of queues.
pub(crate) fn read_max(driver: &Driver<'_>, interface: &str, parameter: Parameter) -> io::Result<u32> {
    let Place::Structure(structure @ CHANNELS, index, _) = PARAMETERS[parameter.0].1 else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "only queue counts have a maximum"));
    };
    // The maximum precedes the number by four numbers.
    let mut octets = command(structure.get, 0);
    driver(interface, &mut octets)?;
    Ok(get(&octets, 4 * (index - 4)))
}

/// Changes one number without changing the others of its structure.
pub(crate) fn write(driver: &Driver<'_>, interface: &str, parameter: Parameter, value: u32) -> io::Result<()> {
    let (structure, index, mask) = match PARAMETERS[parameter.0].1 {
        Place::Structure(structure, index, mask) => (structure, index, mask),
        Place::Coalescing(wanted) => return coalescing::write(interface, wanted, value),
    };
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
    fn one_number_is_changed_and_the_others_are_kept() {
        let flags = Cell::new(1_u32 << 15);
        let driver = |_: &str, octets: &mut [u8]| {
            match get(octets, 0) {
                0x25 => put(octets, 4, flags.get()),
                0x26 => flags.set(get(octets, 4)),
                _ => return Err(io::ErrorKind::Unsupported.into()),
            }
            Ok(())
        };
        let ntuple = Parameter::named("ntuple").expect("a known parameter");
        assert_eq!(read(&driver, "eth0", ntuple).expect("success"), 0);
        write(&driver, "eth0", ntuple, 1).expect("success");
        assert_eq!((read(&driver, "eth0", ntuple).expect("success"), flags.get()), (1, 1 << 27 | 1 << 15));
        let other = Parameter::named("rx-channels").expect("a known parameter");
        assert_eq!(read(&driver, "eth0", other).map_err(|e| e.kind()), Err(io::ErrorKind::Unsupported));
    }
}
