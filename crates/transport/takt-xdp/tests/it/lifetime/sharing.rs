//! Tests of several participants, in several processes, at one interface.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use takt_transport::{Receive, Scan, Transport, readiness};
use takt_xdp::{Mode, Queues, XdpConfig, XdpTransport};

use super::process_kills::{self, Copy, await_detached, config, interface};
use crate::datagrams::{TIMEOUT, message, receive, user};
use crate::network::{Host, wire};

/// Number of ports of a peer, which are random: so many that each of ten queues is used, except
/// once in a million times.
const FLOWS: usize = 132;

fn open(host: &Host, config: &XdpConfig) -> Result<XdpTransport, String> {
    host.run(|| XdpTransport::open(config)).map_err(|why| why.to_string())
}

/// Opens as soon as the resources of another transport are free. The kernel frees a queue later
/// than its socket, much later on a busy machine. A child of another test has copies of all sockets
/// until `exec`.
fn open_when_free(host: &Host, config: &XdpConfig) -> XdpTransport {
    let since = Instant::now();
    loop {
        match open(host, config) {
            Ok(xdp) => return xdp,
            Err(why) => assert!(since.elapsed() < TIMEOUT, "{why}"),
        }
        // tidy-allow(sleep): interval between two checks of the condition.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Role of a copy of this program: occupies a queue until it is killed. Does nothing in the test
/// itself.
#[test]
#[ignore = "role: started by other tests"]
fn occupant() {
    if process_kills::round().is_none() {
        return;
    }
    let _transport = process_kills::open();
    loop {
        std::thread::park();
    }
}

/// Starts a copy of this program that occupies a queue.
fn occupant_on(host: &Host, round: usize) -> Copy {
    let copy = Copy::start(host, "lifetime::sharing::occupant", round);
    assert_eq!(copy.next_line(), "open", "round {round}");
    copy
}

/// Opens kernel sockets of a peer that sends from many ports.
fn peers(host: &Host) -> Vec<UdpSocket> {
    host.run(|| (0..FLOWS).map(|_| UdpSocket::bind("10.77.0.2:0").expect("a port is free")).collect())
}

/// Sends one distinct datagram from each socket of the peer, and receives all. Returns how many
/// arrived by AF_XDP.
fn send_and_receive_all(xdp: &mut XdpTransport, peers: &[UdpSocket]) -> u64 {
    let to = user(xdp).socket_addr().expect("an address of UDP");
    let before = xdp.counters().datagrams_in;
    for (n, peer) in peers.iter().enumerate() {
        assert_eq!(peer.send_to(&message(n, 100), to).expect("the datagram is sent"), 100);
    }
    let received: BTreeSet<Vec<u8>> = peers.iter().map(|_| receive(xdp)).collect();
    assert_eq!(received, (0..peers.len()).map(|n| message(n, 100)).collect(), "no loss and no duplicate");
    xdp.counters().datagrams_in - before
}

#[test]
fn each_participant_gets_its_datagrams_at_any_queue() {
    for mode in [Mode::Native, Mode::Generic] {
        // One more than there are participants: in generic mode, no frame arrives at the last queue
        // of a wire.
        let Some([here, there]) = wire(4) else { return };
        let in_mode = |domain_id| XdpConfig { mode: Some(mode), ..config(domain_id) };
        // Of one domain, and of another with different rules and frames; the third accepts any
        // mode.
        let other = XdpConfig { rtps_only: false, rx_frames: 64, mode: None, ..config(7) };
        let mut all = Vec::new();
        for (config, queue) in [(in_mode(0), 0), (in_mode(0), 1), (other, 2)] {
            let xdp = open(&here, &config).expect("AF_XDP can be opened");
            let report = xdp.report();
            assert_eq!((&report.queues[..], report.is_joined, report.mode), (&[queue][..], queue > 0, mode));
            all.push(xdp);
        }
        let peers = peers(&there);
        for xdp in &mut all {
            let by_af_xdp = send_and_receive_all(xdp, &peers);
            assert!(0 < by_af_xdp && by_af_xdp < FLOWS as u64, "{by_af_xdp} arrived through the own queue");
        }
        for xdp in &mut all {
            assert!(xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none(), "not for this participant");
            let counters = xdp.counters();
            assert_eq!((counters.closed, counters.kernel_drops), (0, 0), "{counters:?}");
        }
    }
}

#[test]
fn participant_without_a_free_queue_is_refused_until_one_is_free() {
    let Some([here, _there]) = wire(2) else { return };
    let first = open(&here, &config(0)).expect("AF_XDP can be opened");
    let second = open(&here, &config(0)).expect("two queues exist");
    let why = open(&here, &config(0)).expect_err("no third queue exists");
    assert!(why.contains("eth0") && why.contains("queues [0, 1] are taken"), "{why}");
    drop(first);
    let third = open_when_free(&here, &config(0));
    assert_eq!((&third.report().queues[..], third.report().is_joined), (&[0][..], true));
    let why = open(&here, &XdpConfig { queues: Queues::These(vec![1]), ..config(0) }).expect_err("the queue is in use");
    assert!(why.contains("queue 1 is taken"), "{why}");
    drop((second, third));
    await_detached(&here);
}

#[test]
fn incompatible_requests_are_refused_with_the_reason() {
    let Some([here, _there]) = wire(4) else { return };
    let config = |domain_id| XdpConfig { mode: None, ..config(domain_id) };
    let first = open(&here, &XdpConfig { mode: Some(Mode::Generic), ..config(0) }).expect("AF_XDP can be opened");
    let why = open(&here, &XdpConfig { mode: Some(Mode::Native), ..config(0) }).expect_err("the other mode");
    assert!(why.contains("runs in generic mode for other participants"), "{why}");
    for (queues, what) in [
        (Queues::These(vec![4]), "no queue 4: it has 4"),
        (Queues::These(vec![1, 1]), "twice"),
        (Queues::These(Vec::new()), "no queue"),
        (Queues::Free(5), "it has 4"),
        (Queues::All, "are taken"),
    ] {
        let why = open(&here, &XdpConfig { queues: queues.clone(), ..config(0) }).expect_err("the queues are refused");
        assert!(why.contains(what), "{queues:?}: {why}");
    }
    assert!(open(&here, &XdpConfig { vlan: Some(4095), ..config(0) }).expect_err("no such VLAN").contains("4095"));
    // Refused participants have left nothing behind. A queue that the kernel frees late is taken
    // last.
    let rest = open(&here, &XdpConfig { queues: Queues::Free(3), ..config(0) }).expect("three are free");
    let mut queues = rest.report().queues.clone();
    queues.sort_unstable();
    assert_eq!(queues, [1, 2, 3]);
    drop((first, rest));
    open(&here, &XdpConfig { mode: Some(Mode::Native), ..config(0) }).expect("this transport is again the first one");
}

#[test]
fn silent_owner_of_the_name_is_not_waited_for_forever() {
    let Some([here, _there]) = wire(2) else { return };
    drop(open(&here, &config(0)).expect("AF_XDP can be opened"));
    let index = here.run(|| std::fs::read_to_string("/proc/thread-self/net/if_inet6").expect("IPv6 can be used"));
    let of_eth0 = index.lines().find(|line| line.ends_with("eth0")).expect("eth0 has an IPv6 address");
    let index = u32::from_str_radix(of_eth0.split_whitespace().nth(1).expect("an index"), 16).expect("a number");
    let listener = here.run(|| {
        use std::os::linux::net::SocketAddrExt;
        let name = std::os::unix::net::SocketAddr::from_abstract_name(format!("takt-xdp-1/{index}"));
        std::os::unix::net::UnixListener::bind_addr(&name.expect("a name")).expect("the name is not in use")
    });
    let why = open(&here, &config(0)).expect_err("no process answers");
    assert!(why.contains("does not answer"), "{why}");
    drop(listener);
    open_when_free(&here, &config(0));
}

#[test]
fn end_of_the_first_participant_does_not_affect_the_others() {
    let Some([here, there]) = wire(2) else { return };
    drop(open(&here, &config(0)).expect("AF_XDP can be opened"));
    let peers = peers(&there);
    let mut first = occupant_on(&here, 0);
    let mut second = open(&here, &config(0)).expect("two queues exist");
    assert!(second.report().is_joined);
    assert!(send_and_receive_all(&mut second, &peers) > 0);
    for round in 0..10 {
        first.kill();
        assert!(interface(&here).contains("xdp"), "the program is the second one's as well");
        assert!(send_and_receive_all(&mut second, &peers) > 0, "round {round}: the second one continues");
        // A new participant is served by the second one, and gets the queue of the killed one.
        first = occupant_on(&here, round);
        assert!(send_and_receive_all(&mut second, &peers) > 0, "round {round}");
    }
    drop(second);
    assert!(interface(&here).contains("xdp"), "only the other transport owns it now");
    first.kill();
    await_detached(&here);
}

#[test]
fn processes_come_and_go_and_leave_nothing() {
    let Some([here, there]) = wire(10) else { return };
    let mut persistent = open(&here, &config(0)).expect("AF_XDP can be opened");
    let peers = peers(&there);
    let mut children = Vec::new();
    for round in 0..24 {
        children.push(occupant_on(&here, round));
        if children.len() == 8 {
            // Not always the oldest.
            children.remove(round * 5 % 8).kill();
        }
        if round == 12 {
            drop(persistent);
            persistent = open(&here, &config(0)).expect("its own queue is free");
        }
        assert!(send_and_receive_all(&mut persistent, &peers) > 0, "round {round}");
    }
    drop(persistent);
    drop(children);
    await_detached(&here);
    let all = open(&here, &XdpConfig { queues: Queues::All, rx_frames: 64, ..config(0) }).expect("all queues are free");
    assert_eq!((all.report().queues.len(), all.report().is_joined), (10, false));
}

#[test]
fn process_killed_at_any_moment_leaves_nothing() {
    let Some([here, there]) = wire(3) else { return };
    let mut persistent = open(&here, &config(0)).expect("AF_XDP can be opened");
    let peers = peers(&there);
    for round in 0..30_u32 {
        // From the first moment to long after everything is open.
        let (since, uptime) = (Instant::now(), Duration::from_micros(u64::from(round * 7919 % 30) * 2500));
        let mut one = Copy::start(&here, "lifetime::sharing::occupant", round as usize);
        while since.elapsed() < uptime {
            std::hint::spin_loop();
        }
        one.kill();
        if round % 3 == 0 {
            // New participants can be the first ones now.
            drop(persistent);
            let mut first = Copy::start(&here, "lifetime::sharing::occupant", round as usize);
            while since.elapsed() < 2 * uptime {
                std::hint::spin_loop();
            }
            first.kill();
            persistent = open(&here, &config(0)).unwrap_or_else(|why| panic!("round {round}: {why}"));
        }
        assert!(send_and_receive_all(&mut persistent, &peers) > 0, "round {round}");
    }
    drop(persistent);
    await_detached(&here);
    let all = open(&here, &XdpConfig { queues: Queues::All, ..config(0) }).expect("all queues are free");
    assert_eq!((all.report().queues.len(), all.report().is_joined), (3, false));
}

#[test]
fn another_user_cannot_join() {
    let Some([here, _there]) = wire(2) else { return };
    let _first = open(&here, &config(0)).expect("AF_XDP can be opened");
    let why = here.run(|| {
        // SAFETY: no pointers. The C library's function would change all threads; the system call
        // changes this one, which ends.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, 65_534, -1) }, 0, "root can be anyone");
        XdpTransport::open(&config(0)).expect_err("the filter belongs to root").to_string()
    });
    assert!(why.contains("another user"), "{why}");
}

#[test]
fn owner_of_the_name_keeps_nothing_of_ended_participants() {
    let Some([here, _there]) = wire(2) else { return };
    let first = open(&here, &config(0)).expect("AF_XDP can be opened");
    // If it had kept their connections, it could not wait for all of them any more: 64 is the
    // maximum.
    for round in 0..70 {
        let second = open_when_free(&here, &config(0));
        assert!(second.report().is_joined, "round {round}");
    }
    drop(first);
    await_detached(&here);
}

/// A datagram at the second queue also wakes a waiting thread.
#[test]
fn datagram_at_any_queue_wakes_a_waiting_thread() {
    let Some([here, there]) = wire(4) else { return };
    let mut xdp = open(&here, &XdpConfig { queues: Queues::All, ..config(0) }).expect("AF_XDP can be opened");
    let to = user(&xdp).socket_addr().expect("an address of UDP");
    for peer in peers(&there) {
        while xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
        peer.send_to(&message(1, 50), to).expect("the datagram is sent");
        assert!(
            readiness::wait(xdp.status().descriptors, Some(TIMEOUT)).expect("wait succeeds"),
            "no wake-up occurred"
        );
        assert_eq!(receive(&mut xdp), message(1, 50));
    }
    assert_eq!(xdp.counters().datagrams_in, FLOWS as u64, "the transport owns all queues");
}
