//! Tests with bridges of Open vSwitch, hosts in network namespaces, and the controller on a socket.

use std::net::{Ipv6Addr, UdpSocket};
use std::time::Duration;

use takt_lab::Lab;
use takt_sdn::controller::{Config, Event};
use takt_sdn::topology;
use takt_testkit::lab_text::LabText;
use takt_testkit::waiting::until;
use takt_testkit::{not_run, require};

use crate::site::{self, Running, State, up};

/// Returns a ring of three switches, each with a host.
fn ring() -> LabText {
    let text = LabText::controlled(&["s1", "s2", "s3"]).link("s1", "s2").link("s2", "s3").link("s3", "s1");
    let text = text.host("h1", "10.8.0.1/24 fd08::1/64", "s1").host("h2", "10.8.0.2/24 fd08::2/64", "s2");
    text.host("h3", "10.8.0.3/24 fd08::3/64", "s3")
}

fn socket(lab: &Lab, host: &str) -> UdpSocket {
    let socket = site::socket(lab, host, (Ipv6Addr::UNSPECIFIED, 7000).into());
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    socket
}

/// Sends from one host to the other until a datagram arrives. Late copies of earlier datagrams are
/// ignored.
fn reaches(from: &UdpSocket, to: &UdpSocket, address: &str, number: u32) {
    let mut buffer = [0; 64];
    until(&format!("{address} is reached"), || {
        from.send_to(&number.to_be_bytes(), address).expect("a route exists");
        while let Ok((len, _)) = to.recv_from(&mut buffer) {
            if buffer[..len] == number.to_be_bytes() {
                return true;
            }
        }
        false
    });
}

#[test]
fn hosts_reach_each_other_over_a_ring_whose_links_fail() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("ring", &ring());
    let running = Running::start(&lab, Config::default());
    running.wait("three switches in a ring", State::settled(3, 2, 3));
    let sockets = ["h1", "h2", "h3"].map(|host| socket(&lab, host));
    let mut number = 0;
    let mut all_reach = || {
        for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
            for prefix in ["10.8.0.", "fd08::"] {
                number += 1;
                let address = format!("{prefix}{}", to + 1);
                let address =
                    if prefix.contains(':') { format!("[{address}]:7000") } else { format!("{address}:7000") };
                reaches(&sockets[from], &sockets[to], &address, number);
            }
        }
    };
    all_reach();
    for link in 0..3 {
        lab.set_link(link, false).expect("root");
        running.wait("one link failed", State::settled(2, 2, 3));
        all_reach();
        lab.set_link(link, true).expect("root");
        running.wait("the link came back", State::settled(3, 2, 3));
        all_reach();
    }
    let events = running.stop();
    let refused = events
        .iter()
        .filter(|event| matches!(event, Event::EntryRefused { .. } | Event::SwitchDown { .. } | Event::Spoofed { .. }));
    assert_eq!(refused.count(), 0, "{events:?}");
    lab.remove().expect("the lab can be removed");
}

#[test]
fn switch_with_the_wanted_tables_is_not_changed_by_a_new_controller() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("again", &ring());
    let running = Running::start(&lab, Config::default());
    running.wait("a first run", State::settled(3, 2, 3));
    running.stop();
    let running = Running::start(&lab, Config::default());
    running.wait("a second run", State::settled(3, 2, 3));
    let sockets = ["h1", "h2"].map(|host| socket(&lab, host));
    reaches(&sockets[0], &sockets[1], "10.8.0.2:7000", 1);
    let events = running.stop();
    let changed = events.iter().filter_map(|event| match event {
        Event::Resynchronized { difference, .. } => Some(difference.changed + difference.deleted),
        _ => None,
    });
    assert_eq!(changed.sum::<usize>(), 0, "{events:?}");
    lab.remove().expect("the lab can be removed");
}

#[test]
fn suspended_controller_keeps_switches_and_links() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("still", &ring());
    let running = Running::start(&lab, Config::default());
    let all = State::settled(3, 2, 3);
    running.wait("three switches in a ring", all);
    // Longer than the silence after which a link is lost.
    running.suspend(Duration::from_millis(4500));
    let sockets = ["h1", "h2"].map(|host| socket(&lab, host));
    reaches(&sockets[0], &sockets[1], "10.8.0.2:7000", 1);
    running.wait("forwarding continues", all);
    let events = running.stop();
    let is_loss =
        |event: &&Event| matches!(event, Event::Topology(topology::Event::LinkLost(..)) | Event::SwitchDown { .. });
    assert_eq!(events.iter().filter(is_loss).count(), 0, "{events:?}");
    lab.remove().expect("the lab can be removed");
}
