//! Tests of plans: ports, rings, paths between hosts, limits.

use super::*;

const RING: &str = r#"
    name = "ring"
    [switches]
    a = { fail_mode = "secure" }
    b = { fail_mode = "secure" }
    c = { fail_mode = "secure" }
    [[links]]
    ends = ["a", "b"]
    [[links]]
    ends = ["b", "c"]
    [[links]]
    ends = ["c", "a"]
"#;

#[test]
fn ports_are_numbered_in_the_order_of_links() {
    let plan = Plan::new(&RING.parse().expect("valid file")).expect("success");
    let ports: Vec<_> = plan.ports().map(|(end, _)| end.name.as_str()).collect();
    assert_eq!(ports, ["a-1", "b-1", "b-2", "c-1", "c-2", "a-2"]);
    assert_eq!(plan.bridges.iter().map(|bridge| bridge.datapath_id).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn last_link_of_a_ring_closes_it_and_needs_secure_switches() {
    let plan = Plan::new(&RING.parse().expect("valid file")).expect("success");
    assert_eq!(plan.links.iter().map(|link| link.closes_ring).collect::<Vec<_>>(), [false, false, true]);
    let loose = RING.replace("c = { fail_mode = \"secure\" }", "c = {}");
    let error = Plan::new(&loose.parse().expect("valid file")).expect_err("the ring is refused");
    assert!(error.to_string().contains("c to a closes a ring"), "{error}");
}

#[test]
fn port_is_between_the_hosts_that_only_it_connects() {
    let text = r#"
        name = "ring"
        [hosts]
        left = { eth0 = ["10.7.0.1/24"] }
        right = { eth0 = ["10.7.0.2/24"] }
        [switches]
        s1 = { fail_mode = "secure" }
        s2 = { fail_mode = "secure" }
        s3 = { fail_mode = "secure" }
        [[links]]
        ends = ["s1", "s3"]
        [[links]]
        ends = ["s1", "s2"]
        [[links]]
        ends = ["s2", "s3"]
        [[links]]
        ends = ["left:eth0", "s1"]
        [[links]]
        ends = ["s3", "right:eth0"]
    "#;
    let plan = Plan::new(&text.parse().expect("valid file")).expect("success");
    let [left, right] = [&plan.links[3].ends[0], &plan.links[4].ends[1]];
    let between = |from, to| {
        let ports = plan.ports().map(|(port, _)| port).filter(|port| plan.is_between(port, from, to));
        ports.map(|port| port.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(between(left, right), ["s1-1", "s3-3"]);
    assert_eq!(between(right, left), ["s3-1", "s1-3"]);
}

#[test]
fn queues_beyond_the_largest_socket_are_refused() {
    let classes = "\n[[classes]]\nname = \"all\"\nframes = 200000\n";
    let limited = RING.replace("ends = [\"a\", \"b\"]", "ends = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"") + classes;
    let error = Plan::new(&limited.parse().expect("valid file")).expect_err("1.2 GB");
    assert!(error.to_string().contains("hold 1200000000 octets"), "{error}");
    assert!(Plan::new(&limited.replace("200000", "100000").parse().expect("valid file")).is_ok());
}

#[test]
fn equal_datapath_identifiers_are_refused() {
    let twice = RING.replace("a = {", "a = { datapath_id = 2,");
    let error = Plan::new(&twice.parse().expect("valid file")).expect_err("same datapath_id");
    assert!(error.to_string().contains("switches a and b have the same datapath_id 2"), "{error}");
}

#[test]
fn bridges_of_the_kernel_form_no_ring() {
    let bridges = RING.replace("fail_mode = \"secure\"", "kind = \"bridge\"");
    let error = Plan::new(&bridges.parse().expect("valid file")).expect_err("the ring is refused");
    assert!(error.to_string().contains("c to a closes a ring, in which a kernel bridge"), "{error}");
}

/// Two hosts at a kernel bridge, a third one at an Open vSwitch switch behind it, a fourth one
/// elsewhere.
const MIXED: &str = r#"
    name = "mixed"
    [[classes]]
    name = "all"
    frames = 100000
    [hosts]
    a = { eth0 = ["10.7.0.1/24", "fd07::1/64"] }
    b = { eth0 = ["10.7.0.2/24", "10.8.0.2/24"] }
    c = { eth0 = ["10.7.0.3/24"] }
    d = { eth0 = ["10.7.0.4/24"] }
    e = { eth0 = ["10.7.0.5/24"] }
    [switches]
    br = { kind = "bridge" }
    sw = {}
    [[links]]
    ends = ["a:eth0", "br"]
    rate = "1 Mbit/s"
    rate_at = "br"
    [[links]]
    ends = ["b:eth0", "br"]
    rate = "1 Mbit/s"
    [[links]]
    ends = ["br", "sw"]
    [[links]]
    ends = ["c:eth0", "sw"]
    [[links]]
    ends = ["d:eth0", "e:eth0"]
"#;

#[test]
fn neighbors_are_reachable_hosts_of_the_same_network() {
    let plan = Plan::new(&MIXED.parse().expect("valid file")).expect("success");
    let of = |host: &str| {
        let all = plan.neighbors();
        let own = all.into_iter().filter(|one| one.of.node == host);
        own.map(|one| (one.interface.node.clone(), one.address.ip.to_string())).collect::<Vec<_>>()
    };
    let pairs = |all: &[(&str, &str)]| {
        all.iter().map(|(host, address)| ((*host).to_owned(), (*address).to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(of("a"), pairs(&[("b", "10.7.0.2"), ("c", "10.7.0.3")]));
    assert_eq!(of("d"), pairs(&[("e", "10.7.0.5")]));
    let interface = |host: &str| plan.interfaces().find(|end| end.node == host).expect("a host of the file");
    assert!(plan.reaches(interface("a"), interface("c")) && !plan.reaches(interface("a"), interface("d")));
}

#[test]
fn each_end_has_its_rate_and_its_kind_of_switch() {
    let plan = Plan::new(&MIXED.parse().expect("valid file")).expect("success");
    let names = |all: Vec<&Interface>| all.iter().map(|end| format!("{} {}", end.node, end.name)).collect::<Vec<_>>();
    assert_eq!(names(plan.shaped().collect()), ["switches br-1", "b eth0", "switches br-2"]);
    assert_eq!(
        names(plan.kernel_ports().map(|(end, _)| end).collect()).join(" "),
        "switches br-1 switches br-2 switches br-3"
    );
    assert_eq!(names(plan.open_vswitch_ports().map(|(end, _)| end).collect()), ["switches sw-1", "switches sw-2"]);
    let file = MIXED.parse().expect("valid file");
    assert_eq!(plan.queue_memory(&file), 0, "queues of a bridge of the kernel are charged to the senders");
    assert_eq!((plan.bridges.len(), plan.kernel_bridges.len(), plan.bridges[0].datapath_id), (1, 1, 2));
}

#[test]
fn equal_hardware_addresses_are_refused() {
    let macs = "ends = [\"d:eth0\", \"e:eth0\"]\nmacs = [\"02:00:00:00:00:07\", \"02:00:00:00:00:01\"]";
    let text = MIXED.replace("ends = [\"d:eth0\", \"e:eth0\"]", macs);
    let error = Plan::new(&text.parse().expect("valid file")).expect_err("same MAC address");
    assert!(
        error.to_string().contains("eth0 of a and eth0 of e have the same MAC address 02:00:00:00:00:01"),
        "{error}"
    );
}

#[test]
fn switches_namespace_exists_only_with_switches() {
    assert_eq!(Plan::namespaces(&MIXED.parse().expect("valid file")).len(), 6);
    let wire =
        "name = \"wire\"\n[hosts]\na = { eth0 = [] }\nb = { eth0 = [] }\n[[links]]\nends = [\"a:eth0\", \"b:eth0\"]";
    assert_eq!(Plan::namespaces(&wire.parse().expect("valid file")).len(), 2);
}

#[test]
fn network_built_from_rust_types_is_checked_like_a_file() {
    let mut file: LabFile = MIXED.parse().expect("valid file");
    file.links[0].queues = Some(1000);
    let error = Plan::new(&file).expect_err("too many queues");
    assert!(error.to_string().contains("1 to 64 queues"), "{error}");
}
