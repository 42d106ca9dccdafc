//! How much of what a peer announces is kept. What goes beyond is refused or cut, as said below.

use alloc::string::String;
use alloc::vec::Vec;

use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::locator::Locator;
use crate::parameter::PARAMETER_LEN_MAX;

/// Octets of a name (topic, type, partition, domain tag). A longer one is malformed.
///
/// DEVIATION(RTPS 2.5 §9.6.3): the bound of `string<256>` holds for names that the specification does not bound, too.
pub const NAME_LEN_MAX: usize = 256;
/// Locators kept of each kind of list; further ones are ignored.
pub const LOCATORS_MAX: usize = 8;
/// Partitions of a publisher or subscriber; more are malformed.
pub const PARTITIONS_MAX: usize = 64;
/// Properties kept of a participant; further ones are ignored.
pub const PROPERTIES_MAX: usize = 64;
/// Encodings in a data representation list; more are malformed.
pub const REPRESENTATIONS_MAX: usize = 16;
/// Parameters of a content filter (`%0` to `%99`); more are malformed.
pub const FILTER_PARAMETERS_MAX: usize = 100;
/// Octets of user, topic or group data; the parameter's 16-bit length leaves no more.
pub const OPAQUE_LEN_MAX: usize = PARAMETER_LEN_MAX - 4;

/// Reads a name.
pub(crate) fn parse_name(value: &mut Cursor<'_>) -> Result<String, Malformed> {
    let at = value.malformed("name is longer than 256 octets");
    let name = value.string()?;
    if name.len() > NAME_LEN_MAX { Err(at) } else { Ok(String::from(name)) }
}

/// Adds a locator to a list, if it leads somewhere, is not there yet, and there is room.
pub(crate) fn keep_locator(list: &mut Vec<Locator>, locator: Locator) {
    if list.len() < LOCATORS_MAX && locator.is_usable() && !list.contains(&locator) {
        list.push(locator);
    }
}
