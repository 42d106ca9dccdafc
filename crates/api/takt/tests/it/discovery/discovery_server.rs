//! Discovery servers in a network without multicast, in a network namespace of the test, which
//! requires root.

use std::net::SocketAddr;

use crate::support::*;
use takt::qos::*;
use takt::*;
use takt_testkit::network::{enter_new_namespace, ip};
use takt_testkit::{not_run, require};

/// Runs a test in a network namespace without multicast.
fn without_multicast(test: impl FnOnce() + Send + 'static) {
    if let Err(reason) = require::network_namespaces() {
        return not_run(reason);
    }
    let thread = std::thread::spawn(move || {
        enter_new_namespace();
        for arguments in [
            "link add takt0 type veth peer name takt1",
            "link set takt0 multicast off",
            "addr add 10.78.1.1/24 dev takt0",
        ] {
            ip(arguments);
        }
        ip("link set takt0 up");
        ip("link set takt1 up");
        ip("link set lo up");
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 78, 1, 1], port))
}

fn server(own: u16, other: u16) -> DiscoveryServer {
    let server = DiscoveryServer::builder(0, address(own)).other_servers([address(other).to_string()]).build();
    let server = server.expect("the port is free");
    assert_eq!(server.addresses().expect("open"), [address(own)]);
    server
}

fn client(ports: &[u16]) -> DomainParticipant {
    let builder = DomainParticipant::builder(0).peers([""; 0]).runtime(Runtime::Inline);
    let servers = ports.iter().map(|port| address(*port).to_string());
    builder.discovery_servers(servers).build().expect("participant")
}

#[test]
fn clients_of_different_servers_discover_each_other() {
    without_multicast(|| {
        let (first, second) = (server(7500, 7501), server(7501, 7500));
        let (left, right, other) = (client(&[7500]), client(&[7501]), client(&[7500, 7501]));
        let writer = create_writer::<Blob>(&left, "Topic", reliable_writer(History::KeepAll));
        let reader = create_reader::<Blob>(&right, "Topic", reliable_reader(History::KeepAll));
        let _other = create_reader::<Blob>(&other, "Another topic", reliable_reader(History::KeepAll));
        let all = [&left, &right, &other];
        wait_until(&all, "a match", || !writer.matched_subscriptions().expect("open").is_empty());
        writer.write(&Blob::new(1, 10)).expect("room");
        wait_until(&all, "a sample", || !reader.take(1).expect("open").is_empty());
        // Both servers know all three clients. The first two clients do not know the one with
        // another topic.
        let known = |server: &DiscoveryServer| server.participant().discovered_participants().expect("open").len();
        wait_until(&all, "all known", || known(&first) == 4 && known(&second) == 4);
        let prefix = other.guid().prefix;
        let knows = |of: &DomainParticipant| {
            of.discovered_participants().expect("open").iter().any(|data| data.guid.prefix == prefix)
        };
        assert!(!knows(&left) && !knows(&right));
    });
}
