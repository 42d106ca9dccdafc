//! Routes of multicast groups over an interface, in the main IPv4 table.
//!
//! A program that selects no interface sends to a group by its route, otherwise by the default
//! route. Without either, sending fails.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::str::FromStr;

use takt_netlink::{NEW, Netlink, find, interface_index, number, put};

const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
const DESTINATION: u16 = 1;
const BY: u16 = 4;
/// Route protocol of administrators (`RTPROT_STATIC`).
const PROTOCOL_STATIC: u8 = 4;
const SCOPE_LINK: u8 = 253;
const SCOPE_ANY: u8 = 255;
const MAIN: u8 = 254;
const UNICAST: u8 = 1;

/// Multicast groups with a common prefix: `239.255.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Groups {
    address: Ipv4Addr,
    len: u8,
}

/// Error of a text that names no multicast groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidGroups(String);

impl fmt::Display for InvalidGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a range of multicast groups such as 239.255.0.0/16", self.0)
    }
}

impl std::error::Error for InvalidGroups {}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl FromStr for Groups {
    type Err = InvalidGroups;

    fn from_str(text: &str) -> Result<Self, InvalidGroups> {
        let parse = || {
            let (address, len) = text.split_once('/').unwrap_or((text, "32"));
            let address: Ipv4Addr = address.parse().ok()?; // tidy-allow(dropped-cause): the error names the text
            let len: u8 = len.parse().ok().filter(|len| (4..=32).contains(len))?; // tidy-allow(dropped-cause): as above
            let is_whole = address.to_bits().checked_shl(u32::from(len)).unwrap_or(0) == 0;
            (address.is_multicast() && is_whole).then_some(Self { address, len })
        };
        parse().ok_or_else(|| InvalidGroups(text.to_owned()))
    }
}

fn message(groups: Groups, scope: u8) -> Vec<u8> {
    let mut body = vec![libc::AF_INET as u8, groups.len, 0, 0, MAIN, PROTOCOL_STATIC, scope, UNICAST, 0, 0, 0, 0];
    put(&mut body, DESTINATION, &groups.address.octets());
    body
}

/// Returns the indices of the interfaces to which groups are routed.
fn routed_interfaces(groups: Groups) -> io::Result<Vec<u32>> {
    let routes = Netlink::route()?.dump(GET_ROUTE, &message(groups, SCOPE_ANY))?;
    let by = |route: &Vec<u8>| {
        let [family, len, _, _, table, _, _, kind] = *route.first_chunk()?;
        let attributes = route.get(12..)?;
        let is_it = (i32::from(family), len, table, kind) == (libc::AF_INET, groups.len, MAIN, UNICAST)
            && find(attributes, DESTINATION) == Some(&groups.address.octets());
        is_it.then(|| find(attributes, BY).and_then(number)).flatten()
    };
    Ok(routes.iter().filter_map(by).collect())
}

/// Returns `here` if groups are routed over the interface, `elsewhere` if only over others, `none`
/// if there is no route.
pub(crate) fn read(interface: &str, groups: Groups) -> io::Result<String> {
    let index = interface_index(interface)?.cast_unsigned();
    let interfaces = routed_interfaces(groups)?;
    let state = if interfaces.contains(&index) {
        "here"
    } else if interfaces.is_empty() {
        "none"
    } else {
        "elsewhere"
    };
    Ok(state.to_owned())
}

/// Adds or removes the route.
pub(crate) fn write(interface: &str, groups: Groups, state: &str) -> io::Result<()> {
    let index = interface_index(interface)?;
    let is_present = read(interface, groups)? == "here";
    let mut body = message(groups, SCOPE_LINK);
    put(&mut body, BY, &index.to_ne_bytes());
    match state {
        "here" if !is_present => Netlink::route()?.request(NEW_ROUTE, NEW, &body),
        "none" | "elsewhere" if is_present => Netlink::route()?.request(DELETE_ROUTE, 0, &body),
        "here" | "none" | "elsewhere" => Ok(()),
        other => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{other:?} is not valid; expected here or none")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multicast_groups_are_parsed_from_text() {
        for text in ["239.255.0.0/16", "224.0.0.0/4", "239.255.0.1/32"] {
            assert_eq!(text.parse::<Groups>().map(|groups| groups.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("239.255.0.1".parse::<Groups>().map(|groups| groups.to_string()), Ok("239.255.0.1/32".to_owned()));
        for text in ["", "10.0.0.0/8", "239.255.0.1/16", "239.0.0.0/3", "239.0.0.0/33", "ff02::1/128"] {
            assert_eq!(text.parse::<Groups>(), Err(InvalidGroups(text.to_owned())));
        }
    }
}
