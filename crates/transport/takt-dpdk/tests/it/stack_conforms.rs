//! Conformance of the stack over frames in memory, without a tag and with one.

use std::cell::Cell;
use std::net::Ipv4Addr;

use takt_dpdk::{UdpStack, UdpStackConfig};
use takt_packet::VlanTag;

use super::memory::{Memory, MemoryPort, mac};

/// Returns a function that opens stacks at one switch, which know each other's hardware addresses.
fn opener(vlan: Option<VlanTag>) -> impl Fn() -> UdpStack<MemoryPort> {
    let (memory, count) = (Memory::default(), Cell::new(0));
    move || {
        count.set(count.get() + 1);
        let config = UdpStackConfig {
            vlan,
            neighbors: (1..12).map(|n| (Ipv4Addr::new(10, 77, 0, n), mac(n))).collect(),
            ..UdpStackConfig::new(0, Ipv4Addr::new(10, 77, 0, count.get()), 24)
        };
        UdpStack::new(&config, memory.port()).expect("the address is valid")
    }
}

macro_rules! conforms {
    ($module:ident, $vlan:expr, $($name:ident)*) => {
        mod $module {
            use super::*;

            $(
                #[test]
                fn $name() {
                    takt_transport::conformance::$name(opener($vlan));
                }
            )*
        }
    };
    ([] $($realm:literal $name:ident,)*) => {
        conforms!(plain, None, $($name)*);
        conforms!(tagged, Some(VlanTag { pcp: 5, dei: false, vid: 7 }), $($name)*);
    };
}

takt_transport::conformance_cases!(all [conforms] []);
