//! Limits on the announced data that discovery keeps. Data beyond a limit is malformed or ignored,
//! as each constant says.

use alloc::string::String;
use alloc::vec::Vec;

use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::locator::Locator;
use crate::parameter::PARAMETER_LEN_MAX;

/// Maximum length of a name (topic, type, partition, domain tag), in octets. A longer one is
/// malformed.
///
/// DEVIATION(RTPS 2.5 §9.6.3): the bound of `string<256>` also holds for names that the
/// specification does not bound.
pub const NAME_LEN_MAX: usize = 256;
/// Maximum number of locators kept of each kind of list; further ones are ignored.
pub const LOCATORS_MAX: usize = 8;
/// Maximum number of partitions of a publisher or subscriber; more are malformed.
pub const PARTITIONS_MAX: usize = 64;
/// Maximum number of properties kept of a participant; further ones are ignored.
pub const PROPERTIES_MAX: usize = 64;
/// Maximum number of encodings in a data representation list; more are malformed.
pub const REPRESENTATIONS_MAX: usize = 16;
/// Maximum number of parameters of a content filter (`%0` to `%99`); more are malformed.
pub const FILTER_PARAMETERS_MAX: usize = 100;
/// Maximum length of user, topic or group data in octets, given by the parameter's 16-bit length.
pub const OPAQUE_LEN_MAX: usize = PARAMETER_LEN_MAX - 4;

/// Reads a name.
pub(crate) fn parse_name(value: &mut Cursor<'_>) -> Result<String, Malformed> {
    let at = value.malformed("name is longer than 256 octets");
    let name = value.string()?;
    if name.len() > NAME_LEN_MAX { Err(at) } else { Ok(String::from(name)) }
}

/// Adds a usable locator to a list if it is not a duplicate and the list has room.
pub(crate) fn keep_locator(list: &mut Vec<Locator>, locator: Locator) {
    if list.len() < LOCATORS_MAX && locator.is_usable() && !list.contains(&locator) {
        list.push(locator);
    }
}
