//! Tests of the host table: learning, moves, conflicts and limits.
//!
//! By default a move is accepted after 10 s of silence, and a host is removed after 300 s.

use std::net::Ipv4Addr;

use super::*;

const A: HostId = HostId { vlan: 0, mac: MacAddress([2, 0, 0, 0, 0, 1]) };
const B: HostId = HostId { vlan: 0, mac: MacAddress([2, 0, 0, 0, 0, 2]) };
/// VLAN 5, with the bit that marks a tagged frame.
const VLAN_5: Vlan = 0x1005;
/// Two ports, of different switches.
const FIRST: PortRef = PortRef::new(1, 1);
const SECOND: PortRef = PortRef::new(2, 1);

fn second(n: u64) -> Instant {
    Instant(n * 1_000_000_000)
}

fn ip(n: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, n).into()
}

fn devices() -> Devices {
    Devices::new(Config::default())
}

fn up(_: PortRef) -> bool {
    true
}

fn down(_: PortRef) -> bool {
    false
}

#[test]
fn host_is_learned_once_and_stays() {
    let mut devices = devices();
    assert_eq!(devices.observe(second(0), FIRST, A, up), Sighting::New);
    assert_eq!(devices.observe(second(1), FIRST, A, up), Sighting::Known);
    assert_eq!(devices.get(A).map(|host| (host.at, host.last_seen)), Some((FIRST, second(1))));
}

#[test]
fn same_address_in_another_vlan_is_another_host() {
    let mut devices = devices();
    devices.observe(second(0), FIRST, A, up);
    assert_eq!(devices.observe(second(0), SECOND, HostId { vlan: VLAN_5, ..A }, up), Sighting::New);
    assert_eq!(devices.iter().count(), 2);
}

#[test]
fn interface_is_at_the_port_where_any_vlan_found_its_address_first() {
    let mut devices = devices();
    let tagged = HostId { vlan: VLAN_5, ..A };
    devices.observe(second(0), FIRST, tagged, up);
    devices.observe(second(1), SECOND, A, up);
    assert_eq!(devices.interface(A.mac), Some(FIRST), "the host without a tag was found later");
    assert_eq!(devices.interfaces().collect::<Vec<_>>(), [(A.mac, FIRST)]);
    devices.remove_port(FIRST);
    assert_eq!(devices.interface(A.mac), Some(SECOND));
    devices.remove_port(SECOND);
    assert_eq!(devices.interface(A.mac), None);
}

#[test]
fn address_belongs_to_the_first_claimant_across_vlans_until_it_is_silent() {
    let mut devices = devices();
    let tagged = HostId { vlan: VLAN_5, ..B };
    devices.observe(second(0), SECOND, tagged, up);
    devices.observe(second(1), FIRST, A, up);
    assert_eq!(devices.claim(second(2), A, ip(1), up), Claim::Accepted);
    assert_eq!(
        devices.claim(second(3), tagged, ip(1), up),
        Claim::Accepted,
        "another VLAN may use the same IP address"
    );
    devices.observe(second(9), SECOND, tagged, up);
    assert_eq!(
        devices.owner(second(9), ip(1), up),
        Some(A),
        "A claimed the address first, although it was found later"
    );
    assert_eq!(devices.owner(second(9), ip(1), |at| at != FIRST), Some(tagged));
    assert_eq!(devices.owner(second(12), ip(1), up), Some(tagged), "A is silent");
    assert_eq!(devices.owner(second(9), ip(2), up), None);
}

#[test]
fn move_is_accepted_only_if_the_old_port_is_down_or_the_host_is_silent() {
    let mut devices = devices();
    devices.observe(second(0), FIRST, A, up);
    assert_eq!(devices.observe(second(9), SECOND, A, up), Sighting::Spoofed { at: FIRST });
    assert_eq!(devices.get(A).map(|host| host.at), Some(FIRST));
    assert_eq!(devices.observe(second(9), SECOND, A, down), Sighting::Moved { from: FIRST });
    assert_eq!(devices.observe(second(18), FIRST, A, up), Sighting::Spoofed { at: SECOND });
    assert_eq!(devices.observe(second(19), FIRST, A, up), Sighting::Moved { from: SECOND });
}

#[test]
fn host_whose_frames_a_rule_forwards_is_not_silent() {
    let mut devices = devices();
    devices.observe(second(0), FIRST, A, up);
    devices.set_active(second(0), A, true);
    assert_eq!(devices.observe(second(100), SECOND, A, up), Sighting::Spoofed { at: FIRST });
    assert_eq!(devices.handle_timeout(second(1000)), []);
    devices.set_active(second(1000), A, false);
    assert_eq!(devices.observe(second(1009), SECOND, A, up), Sighting::Spoofed { at: FIRST });
    assert_eq!(devices.observe(second(1010), SECOND, A, up), Sighting::Moved { from: FIRST });
}

#[test]
fn address_of_another_host_is_a_conflict_until_that_host_is_silent() {
    let mut devices = devices();
    devices.observe(second(0), FIRST, A, up);
    devices.observe(second(5), SECOND, B, up);
    for n in 1..=3 {
        assert_eq!(devices.claim(second(5), A, ip(n), up), Claim::Accepted);
    }
    assert_eq!(devices.claim(second(6), B, ip(2), up), Claim::Conflict { owner: A });
    assert_eq!(devices.by_address(0, ip(2)), Some(A));
    assert_eq!(devices.claim(second(10), B, ip(2), up), Claim::Accepted);
    assert_eq!(devices.by_address(0, ip(2)), Some(B));
    assert_eq!(devices.get(A).map(|host| host.addresses.len()), Some(2));
    assert_eq!(devices.claim(second(10), B, Ipv4Addr::UNSPECIFIED.into(), up), Claim::Accepted);
    assert_eq!(devices.by_address(0, Ipv4Addr::UNSPECIFIED.into()), None, "an ARP probe claims no address");
}

#[test]
fn multicast_and_zero_addresses_are_no_hosts() {
    let mut devices = devices();
    for mac in [MacAddress::BROADCAST, MacAddress([1, 0, 0x5e, 0, 0, 1]), MacAddress::default()] {
        assert_eq!(devices.observe(second(0), FIRST, HostId { vlan: 0, mac }, up), Sighting::NotAHost);
    }
}

#[test]
fn silent_hosts_and_hosts_of_a_removed_port_are_removed_with_their_addresses() {
    let mut devices = devices();
    devices.observe(second(0), FIRST, A, up);
    devices.observe(second(10), SECOND, B, up);
    devices.claim(second(10), A, ip(1), up);
    devices.claim(second(10), B, ip(2), up);
    assert_eq!(devices.handle_timeout(second(300)), [A]);
    assert_eq!((devices.by_address(0, ip(1)), devices.by_address(0, ip(2))), (None, Some(B)));
    assert_eq!(devices.remove_port(SECOND), [B]);
    assert_eq!((devices.iter().count(), devices.by_address(0, ip(2))), (0, None));
}

#[test]
fn hosts_and_addresses_are_bounded() {
    let config = Config { hosts: 5, hosts_of_port: 3, addresses: 2, ..Config::default() };
    let mut devices = Devices::new(config);
    let id = |n: u8| HostId { vlan: 0, mac: MacAddress([2, 0, 0, 0, 1, n]) };
    let new = |devices: &mut Devices, at, n| devices.observe(second(0), at, id(n), up) == Sighting::New;
    assert_eq!((0..5).filter(|n| new(&mut devices, FIRST, *n)).count(), 3);
    assert_eq!((10..15).filter(|n| new(&mut devices, SECOND, *n)).count(), 2);
    assert_eq!(
        devices.observe(second(20), FIRST, id(10), up),
        Sighting::Full,
        "a known host may not move to a full port either"
    );
    let claims: Vec<Claim> = (1..=3).map(|n| devices.claim(second(0), id(0), ip(n), up)).collect();
    assert_eq!(claims, [Claim::Accepted, Claim::Accepted, Claim::Full]);
    assert_eq!(devices.claim(second(0), id(99), ip(9), up), Claim::Full);
}
