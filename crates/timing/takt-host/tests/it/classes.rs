//! Priority-selected queues, gate schedules and launch times: the planned disciplines, and their
//! effect on frames.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::Command;

use takt_host::plan::schedule::LaunchTime;
use takt_host::{Change, Facts, Journal, Machine, Plan, Request, apply, revert, verify};
use takt_testkit::not_run;
use takt_testkit::waiting::until;

use super::namespace::Namespace;
use super::steering::{Packets, set_tos};

const ACTOR: &str = "classes::the_actor";
const WHAT: &str = "TAKT_TEST_HOST_CLASSES";

/// Number of frames of each kind.
const COUNT: usize = 40;

/// Role that other tests start within a namespace; not a test.
#[test]
#[ignore = "role: started by other tests"]
fn the_actor() {
    match std::env::var(WHAT).as_deref() {
        Ok("priority") => marked_by_priority(),
        Ok("closed") => behind_a_closed_gate(),
        Ok("times") => with_launch_times(),
        Ok("assist") => with_scheduled_launch_times(),
        Ok(plan) => planned(plan),
        Err(_) => {}
    }
}

fn request(more: Request) -> Request {
    Request { interface: Some("takt0".into()), ..more }
}

/// Returns the changes of a plan that concern the interface.
fn plan(request: &Request) -> Plan {
    let machine = Machine::default();
    let mut plan = Plan::new(&machine, &Facts::of(&machine), request).expect("valid request");
    plan.changes.retain(|change| change.setting.to_string().contains("takt0"));
    plan
}

fn tree(plan: &Plan) -> &str {
    plan.changes
        .iter()
        .find(|change| change.setting.to_string() == "qdisc/takt0")
        .map(|change| &*change.to)
        .expect("a tree")
}

/// Returns a plan with one tree.
fn of_tree(tree: &str) -> Plan {
    let setting = "qdisc/takt0".parse().expect("a setting");
    let change = Change { setting, from: String::new(), to: tree.to_owned(), why: String::new() };
    Plan { changes: vec![change], missing_features: Vec::new() }
}

/// Applies a plan, runs a function, and reverts the plan.
fn with(plan: &Plan, then: impl FnOnce()) {
    let path = std::env::temp_dir().join(format!("takt-host-classes-{}", std::process::id()));
    let mut journal = Journal::open(path).expect("not locked");
    let machine = Machine::default();
    apply(&machine, plan, &mut journal).unwrap_or_else(|why| panic!("{why}"));
    let differ = verify(&machine, plan);
    assert!(differ.is_empty(), "{differ:?}");
    then();
    let failures = revert(&machine, journal).expect("the journal can be ended");
    assert!(failures.is_empty(), "{failures:?}");
}

fn set<T: Copy>(socket: &UdpSocket, option: i32, value: &T) {
    let (address, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the address is of `len` initialized octets.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, address, len) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Creates a socket as Takt does for a TRANSPORT_PRIORITY: with the DSCP, and then its upper three
/// bits as the priority.
fn socket(transport_priority: i32) -> UdpSocket {
    let socket = UdpSocket::bind("10.77.0.1:0").expect("the address is there");
    set_tos(&socket, transport_priority << 2);
    set(&socket, libc::SO_PRIORITY, &(transport_priority >> 3));
    socket
}

fn send(transport_priority: i32) {
    for port in 0..COUNT {
        socket(transport_priority).send_to(&[0; 40], ("10.77.0.2", 9000 + port as u16)).expect("a route exists");
    }
}

/// Returns the number of frames that a leaf has sent, dropped and queued.
fn counted(handle: &str) -> [u64; 3] {
    let output =
        Command::new("tc").args(["-j", "-s", "qdisc", "show", "dev", "takt0"]).output().expect("tc can be run");
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let leaf = all.as_array().and_then(|all| all.iter().find(|one| one["handle"] == handle));
    let leaf = leaf.unwrap_or_else(|| panic!("{handle}: {all}"));
    ["packets", "drops", "qlen"].map(|name| leaf[name].as_u64().expect("a number"))
}

/// Runs a role in a namespace, if the kernel has the necessary disciplines.
fn within(what: &str, kinds: &[&str]) {
    let Some(namespace) = Namespace::new(&format!("classes-{what}")) else { return };
    if let Err(why) = kinds.iter().try_for_each(|kind| namespace.has_kind(kind)) {
        return not_run(why);
    }
    run_actor(&namespace, what);
}

fn run_actor(namespace: &Namespace, what: &str) {
    namespace.sh("ip neighbour add 10.77.0.2 lladdr 02:00:00:00:00:02 dev takt0");
    let output = namespace.test(ACTOR, &[(WHAT, what.to_owned())]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "it was run: {text}");
}

/// Without a program at clsact, the priority that Takt's sockets set is sufficient.
fn marked_by_priority() {
    let marks = request(Request { queue: Some(3), dscp: vec![46], ..Request::default() });
    with(&of_tree(tree(&plan(&marks))), || {
        send(46);
        assert_eq!(counted("13:"), [COUNT as u64, 0, 0], "all marked ones");
        [0, 10, 34].iter().for_each(|priority| send(*priority));
        assert_eq!(counted("13:"), [COUNT as u64, 0, 0], "and no others");
        let others: u64 = ["10:", "11:", "12:"].iter().map(|leaf| counted(leaf)[0]).sum();
        assert_eq!(others, 3 * COUNT as u64);
    });
}

#[test]
fn socket_priority_selects_the_reserved_queue() {
    within("priority", &["mqprio"]);
}

/// Waits until tc reports the gate schedule as started. All gates are open before that.
fn wait_for_schedule() {
    until("the time table begins", || {
        let output = Command::new("tc").args(["qdisc", "show", "dev", "takt0"]).output().expect("tc can be run");
        // A pending schedule is listed in addition to the active one.
        String::from_utf8_lossy(&output.stdout).matches("base-time").count() == 1
    });
}

/// A gate that never opens for marked frames holds them and passes all others. A gate that opens
/// passes marked frames too.
fn behind_a_closed_gate() {
    let marks = |gates: &[&str]| {
        let gates = gates.iter().map(|gate| gate.parse().expect("a gate")).collect();
        request(Request { queue: Some(3), dscp: vec![46], gates, ..Request::default() })
    };
    let other_end = Packets::at(c"takt1", libc::ETH_P_IP as u16);
    with(&plan(&marks(&["others:90ms", "none:10ms"])), || {
        wait_for_schedule();
        send(46);
        send(0);
        (0..COUNT).for_each(|_| assert_eq!(other_end.receive()[15] >> 2, 0, "only these leave"));
        assert_eq!(counted("13:"), [0, 0, COUNT as u64], "they wait");
    });
    with(&plan(&marks(&["others:50ms", "marked:50ms"])), || {
        wait_for_schedule();
        send(46);
        (0..COUNT).for_each(|_| assert_eq!(other_end.receive()[15] >> 2, 46));
        assert_eq!(counted("13:"), [COUNT as u64, 0, 0]);
    });
}

#[test]
fn closed_gate_holds_marked_frames() {
    within("closed", &["taprio"]);
}

/// Returns a TAI time in nanoseconds, relative to now.
fn tai(from_now: u64) -> u64 {
    // SAFETY: all-zero is a valid value of this C structure.
    let mut now: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives during the call.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_TAI, &raw mut now) }, 0);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64 + from_now
}

#[repr(C)]
#[derive(Clone, Copy)]
struct TxTime {
    clock: libc::clockid_t,
    flags: u32,
}

/// Sends one datagram with a launch time.
fn send_at(socket: &UdpSocket, payload: &[u8], time: u64) {
    let to = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: 9000_u16.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([10, 77, 0, 2]) },
        sin_zero: [0; 8],
    };
    let mut control = [0_u64; 3];
    // SAFETY: all-zero is a valid value of these C structures. All addresses are of values that
    // live during the call, with their lengths. The buffer has room for the one control message of
    // 8 octets.
    unsafe {
        let mut part = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_name = (&raw const to).cast_mut().cast();
        message.msg_namelen = size_of_val(&to) as libc::socklen_t;
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control));
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        ((*header).cmsg_level, (*header).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_TXTIME);
        (*header).cmsg_len = libc::CMSG_LEN(8) as usize;
        libc::CMSG_DATA(header).cast::<u64>().write_unaligned(time);
        let sent = libc::sendmsg(socket.as_raw_fd(), &raw const message, 0);
        assert_eq!(sent, payload.len() as isize, "{}", std::io::Error::last_os_error());
    }
}

/// Frames leave in the order of their launch times. Frames without one do not leave.
fn with_launch_times() {
    // The lead time is so long that no processor is late, which would drop frames.
    let launch_time = Some(LaunchTime { delta_ns: 900_000_000, is_assigned_by_schedule: false });
    let marks = request(Request { queue: Some(3), dscp: vec![46], launch_time, ..Request::default() });
    let other_end = Packets::at(c"takt1", libc::ETH_P_IP as u16);
    with(&plan(&marks), || {
        send(46);
        assert_eq!(counted("13:"), [0, COUNT as u64, 0], "without times");
        let socket = socket(46);
        set(&socket, libc::SO_TXTIME, &TxTime { clock: libc::CLOCK_TAI, flags: 0 });
        let soon = tai(2_000_000_000);
        for number in (0..COUNT as u8).rev() {
            send_at(&socket, &[number; 40], soon + u64::from(number) * 1_000_000);
        }
        // Ethernet, IPv4 and UDP headers have 42 octets.
        let order: Vec<_> = (0..COUNT).map(|_| other_end.receive()[42]).collect();
        assert_eq!(order, (0..COUNT as u8).collect::<Vec<_>>());
        send(0);
        (0..COUNT).for_each(|_| assert_eq!(other_end.receive()[15] >> 2, 0, "others have their queues"));
    });
}

#[test]
fn frames_leave_in_the_order_of_their_launch_times() {
    within("times", &["mqprio", "etf"]);
}

/// Frames without a launch time receive one from the gate schedule, and leave.
fn with_scheduled_launch_times() {
    let launch_time = Some(LaunchTime { delta_ns: 900_000_000, is_assigned_by_schedule: true });
    let gates = ["marked:5ms", "others:5ms"].map(|gate| gate.parse().expect("a gate")).to_vec();
    let marks = request(Request { queue: Some(3), dscp: vec![46], launch_time, gates, ..Request::default() });
    let other_end = Packets::at(c"takt1", libc::ETH_P_IP as u16);
    with(&plan(&marks), || {
        for dscp in [46, 0] {
            send(dscp);
            (0..COUNT).for_each(|_| assert_eq!(i32::from(other_end.receive()[15] >> 2), dscp));
        }
        assert_eq!(counted("13:"), [COUNT as u64, 0, 0]);
    });
}

/// Checks the plan of a request on this machine.
fn planned(what: &str) {
    let has_kinds = what == "plan-with";
    let plan_of = |more: Request| plan(&request(Request { dscp: vec![46, 48], pcp: vec![6], ..more }));
    let missing = |plan: &Plan, what: &str| {
        let found = plan.missing_features.iter().find(|feature| feature.what.starts_with(what));
        found.map(|feature| format!("{}: {}", feature.why, feature.alternative))
    };
    let steering = |plan: &Plan| {
        let change = plan.changes.iter().find(|change| change.setting.to_string() == "steer/takt0");
        change.map(|change| change.to.clone()).expect("marks")
    };
    let last = plan_of(Request { queue: Some(3), ..Request::default() });
    let gates = vec!["marked:300us".parse().expect("a gate"), "others:700us".parse().expect("a gate")];
    let launch_time = Some(LaunchTime { delta_ns: 300_000, is_assigned_by_schedule: false });
    let timed = plan_of(Request { queue: Some(3), gates, launch_time, ..Request::default() });
    if !has_kinds {
        assert!(tree(&last).starts_with("qdisc mq 1: root; qdisc pfifo 10:"), "{last:?}");
        assert_eq!(steering(&last), "queue 3 of 4 dscp 46,48 pcp 6");
        for (kind, alternative) in
            [("mqprio", "mq with a program"), ("taprio", "--line-rate"), ("etf", "a timer of the sender")]
        {
            let feature = missing(&timed, &format!("the discipline {kind}"))
                .or_else(|| missing(&last, &format!("the discipline {kind}")))
                .unwrap_or_else(|| panic!("{kind}: {timed:?}"));
            assert!(
                feature.contains(&format!("CONFIG_NET_SCH_{}", kind.to_uppercase())) && feature.contains(alternative),
                "{feature}"
            );
        }
        assert_eq!(tree(&timed), tree(&last), "nothing is planned that is not there");
        return;
    }
    let map = "map 0,0,0,0,0,1,1,0,0,0,0,0,0,0,0,0 queues 3@0,1@3";
    assert!(tree(&last).starts_with(&format!("qdisc mqprio 1: root {map} hw 0; qdisc pfifo 10: ")), "{last:?}");
    assert_eq!(steering(&last), "priority 6 dscp 46,48 pcp 6");
    let table = "clock tai flags 0 base_time 0 cycle 1000000 entries S:2:300000,S:1:700000";
    assert!(tree(&timed).starts_with(&format!("qdisc taprio 1: root {map} {table}; ")), "{timed:?}");
    assert!(tree(&timed).contains("qdisc etf 13: parent 1:4 clock tai delta 300000 "), "{timed:?}");
    // If classes are not possible, the plan has none and reports why.
    let middle = plan_of(Request { queue: Some(1), ..Request::default() });
    assert!(tree(&middle).starts_with("qdisc mq 1: root; "), "{middle:?}");
    assert!(
        missing(&middle, "mqprio for queue 1").is_some_and(|why| why.contains("in a row: --queue 3")),
        "{middle:?}"
    );
    let low = plan(&request(Request { queue: Some(3), dscp: vec![7, 46], ..Request::default() }));
    assert!(tree(&low).starts_with("qdisc mq 1: root; "), "{low:?}");
    assert!(missing(&low, "mqprio for queue 3").is_some_and(|why| why.contains("a DSCP below 8")), "{low:?}");
    // The veth device has no hardware queues. The plan reports the kernel's reason and an
    // alternative.
    let card = plan_of(Request { queue: Some(3), has_offload: true, ..Request::default() });
    let path = std::env::temp_dir().join(format!("takt-host-card-{}", std::process::id()));
    let mut journal = Journal::open(path).expect("not locked");
    let why = apply(&Machine::default(), &card, &mut journal).expect_err("not supported by the card").to_string();
    assert!(why.contains("hw 1 mode channel") && why.contains("a plan without --offload"), "{why}");
    revert(&Machine::default(), journal).expect("the journal can be ended");
}

#[test]
fn plan_has_classes_if_the_kernel_supports_them() {
    let Some(namespace) = Namespace::new("classes-plan") else { return };
    let kinds = ["mqprio", "taprio", "etf"].map(|kind| namespace.has_kind(kind));
    match kinds.each_ref().map(Result::is_ok) {
        [true, true, true] => run_actor(&namespace, "plan-with"),
        [false, false, false] => run_actor(&namespace, "plan-without"),
        _ => not_run(format!("this kernel has some of mqprio, taprio and etf only: {kinds:?}")),
    }
}

#[test]
fn frames_without_a_launch_time_receive_one_from_the_gate_schedule() {
    within("assist", &["taprio", "etf"]);
}
