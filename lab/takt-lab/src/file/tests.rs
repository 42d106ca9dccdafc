//! Tests of lab files, valid and invalid ones.

use super::*;

const FILE: &str = r#"
name = "two"
[[classes]]
name = "urgent"
dscp = [46, 34]
frames = 64
[[classes]]
name = "other"
frames = 256
[hosts.left]
eth0 = ["10.7.0.1/24", "fd07::1/64"]
[hosts.right]
eth0 = ["10.7.0.2/24"]
[switches.s1]
controller = "tcp:127.0.0.1:6653"
[[links]]
ends = ["left:eth0", "s1"]
[[links]]
ends = ["s1", "right:eth0"]
rate = "100 Mbit/s"
"#;

fn error(text: &str) -> String {
    text.parse::<LabFile>().expect_err("not a network file").to_string()
}

#[test]
fn file_is_read_with_its_defaults() {
    let file: LabFile = FILE.parse().expect("valid file");
    assert_eq!(file.links[1].rate, Some(Rate(100_000_000)));
    assert_eq!((file.links[0].rate, file.links[0].mtu), (None, 1500));
    assert_eq!(file.links[0].ends[0].to_string(), "left:eth0");
    assert_eq!(file.hosts["left"]["eth0"][1].to_string(), "fd07::1/64");
    assert_eq!(file.switches["s1"].fail_mode, None);
}

#[test]
fn lab_without_a_name_has_the_name_of_its_file() {
    let directory = std::env::temp_dir().join(format!("takt-lab-file-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("the directory for temporary files can be written");
    let path = directory.join("fabric.toml");
    std::fs::write(&path, FILE.replace("name = \"two\"", "")).expect("it can be written");
    assert_eq!(LabFile::read(&path).expect("valid file").name, "fabric");
    std::fs::write(&path, FILE.replace("frames = 64", "frames = 0")).expect("it can be written");
    let error = LabFile::read(&path).expect_err("no frames").to_string();
    assert!(error.contains("fabric.toml") && error.contains("class \"urgent\": 0 frames"), "{error}");
    std::fs::remove_dir_all(directory).expect("it was made here");
    assert!(LabFile::read(&path).expect_err("it is gone").to_string().contains("fabric.toml"));
}

#[test]
fn error_names_each_mistake() {
    for (right, wrong, expected) in [
        ("name = \"two\"", "name = \"../x\"", "lab \"../x\": expected 1 to 32 of a-z"),
        ("name = \"two\"", "name = \"two\"\nswitch_priority = 100", "switch_priority is 100"),
        ("frames = 64", "frame = 64", "unknown field `frame`"),
        ("dscp = [46, 34]", "dscp = [46, 64]", "DSCP 64 exceeds 63"),
        ("dscp = [46, 34]", "dscp = [46, 46]", "belongs to two classes"),
        ("dscp = [46, 34]", "", "every class except the last needs dscp"),
        ("frames = 256", "frames = 256\ndscp = [1]", "the last is for all other frames"),
        ("frames = 64", "frames = 64\nether_types = [0x0800]", "EtherType 0x0800 is not valid, is that of IP"),
        ("frames = 64", "frames = 64\nether_types = [0x0806, 0x0806]", "or belongs to two classes"),
        ("frames = 256", "frames = 256\nether_types = [0x0806]", "the last class cannot have ether_types"),
        ("hosts.left", "hosts.switches", "host switches has the name of a switch"),
        ("hosts.left", "hosts.s1", "host s1 has the name of a switch"),
        ("10.7.0.1/24", "10.7.0.1", "is not an address with a prefix length"),
        ("10.7.0.1/24", "10.7.0.1/33", "is not an address with a prefix length"),
        ("10.7.0.1/24", "239.0.0.1/24", "is not an address with a prefix length"),
        ("left:eth0", "left:eth1", "left:eth1 is neither in [hosts]"),
        ("\"s1\", \"right:eth0\"", "\"s2\", \"right:eth0\"", "s2 is neither in [hosts]"),
        ("\"s1\", \"right:eth0\"", "\"s1\", \"left:eth0\"", "left:eth0 has two links"),
        ("\"s1\", \"right:eth0\"", "\"s1\", \"s1\"", "both ends are on the same switch"),
        ("[hosts.left]", "[hosts.left]\neth9 = []", "interface left:eth9 has no link"),
        ("100 Mbit/s", "100 Mbit", "is not a rate"),
        ("100 Mbit/s", "99999999999999999999 Mbit/s", "is not a rate"),
        ("100 Mbit/s", "1 kbit/s", "expected a rate from 64 kbit/s"),
        ("rate =", "delay = \"1 ms\"\nrate =", "unknown field `delay`"),
        ("rate =", "mtu = 100\nrate =", "expected an MTU from 576"),
        ("[switches.s1]", "[switches.a-long-name]\n[switches.s1]", "switch \"a-long-name\": expected 1 to 10 of a-z"),
    ] {
        assert!(FILE.contains(right), "{right}");
        let found = error(&FILE.replacen(right, wrong, 1));
        assert!(found.contains(expected), "{wrong}: {found}");
    }
    let without =
        FILE.replace(&FILE[FILE.find("[[classes]]").expect("classes")..FILE.find("[hosts.left]").expect("a host")], "");
    assert!(error(&without).contains("link s1 to right:eth0 has a rate, but the file has no [[classes]]"));
}

/// Two hosts at a bridge of the kernel, with all settings of links and classes.
const BRIDGED: &str = r#"
name = "bridged"
static_neighbors = true
[[classes]]
name = "late"
by_priority = true
frames = 100
ceiling = "20 Mbit/s"
[[classes]]
name = "other"
frames = 256
drop_from = "tail"
[hosts.left]
eth0 = ["10.7.0.1/24"]
[hosts.right]
eth0 = ["10.7.0.2/24"]
[switches.s1]
kind = "bridge"
[[links]]
ends = ["left:eth0", "s1"]
rate = "100 Mbit/s"
rate_at = "s1"
queues = 4
macs = ["02:00:0a:07:00:01", "02:00:0a:07:01:01"]
offloads = ["checksum", "segmentation"]
[[links]]
ends = ["right:eth0", "s1"]
"#;

#[test]
fn bridge_of_the_kernel_and_its_links_are_read() {
    let file: LabFile = BRIDGED.parse().expect("valid file");
    assert_eq!(file.switches["s1"].kind, SwitchKind::Bridge);
    assert!(file.static_neighbors && file.classes[0].by_priority);
    assert_eq!((file.classes[0].ceiling, file.classes[1].ceiling), (Some(Rate(20_000_000)), None));
    assert_eq!([0, 1].map(|index: usize| file.classes[index].drop_from), [DropFrom::Head, DropFrom::Tail]);
    let [first, second] = &file.links[..] else { panic!("two links") };
    assert_eq!((first.rate_at.clone(), first.queues), (Some(End::Switch("s1".to_owned())), Some(4)));
    assert_eq!(first.macs.map(|macs| macs[0].to_string()), Some("02:00:0a:07:00:01".to_owned()));
    assert_eq!(first.offloads, [Offload::Checksum, Offload::Segmentation]);
    assert_eq!((second.queues, second.macs, &second.rate_at), (None, None, &None));
    assert_eq!(FILE.parse::<LabFile>().expect("valid file").switches["s1"].kind, SwitchKind::OpenVswitch);
}

#[test]
fn error_names_each_mistake_of_bridges_and_links() {
    for (right, wrong, expected) in [
        ("kind = \"bridge\"", "kind = \"hub\"", "unknown variant `hub`"),
        ("kind = \"bridge\"", "kind = \"bridge\"\ndatapath_id = 7", "a kernel bridge has no controller"),
        ("kind = \"bridge\"", "kind = \"bridge\"\nfail_mode = \"secure\"", "use kind = \"open-vswitch\""),
        ("kind = \"bridge\"", "", "Open vSwitch at s1 forwards frames without checksums"),
        ("\"checksum\", \"segmentation\"", "\"segmentation\"", "add checksum to the offloads"),
        ("\"checksum\", \"segmentation\"", "\"magic\"", "unknown variant `magic`"),
        ("rate_at = \"s1\"", "rate_at = \"right:eth0\"", "rate_at is right:eth0, which is not an end of the link"),
        ("rate = \"100 Mbit/s\"", "", "rate_at requires a rate"),
        ("queues = 4", "queues = 0", "expected 1 to 64 queues"),
        ("queues = 4", "queues = 65", "expected 1 to 64 queues"),
        ("02:00:0a:07:00:01", "03:00:0a:07:00:01", "is not a unicast MAC address"),
        ("02:00:0a:07:00:01", "02:00:0a:07:00", "is not a unicast MAC address"),
        ("02:00:0a:07:00:01", "2:0:a:7:0:1", "is not a unicast MAC address"),
        ("02:00:0a:07:00:01", "00:00:00:00:00:00", "is not a unicast MAC address"),
        ("by_priority = true", "", "every class except the last needs dscp or by_priority"),
        ("frames = 256", "frames = 256\nby_priority = true", "the last is for all other frames"),
        ("\"20 Mbit/s\"", "\"200 Mbit/s\"", "the ceiling of class \"late\" exceeds the rate"),
        ("\"20 Mbit/s\"", "\"1 kbit/s\"", "expected a ceiling from 64 kbit/s"),
        ("\"tail\"", "\"middle\"", "unknown variant `middle`"),
    ] {
        assert!(BRIDGED.contains(right), "{right}");
        let found = error(&BRIDGED.replacen(right, wrong, 1));
        assert!(found.contains(expected), "{wrong}: {found}");
    }
    let tail = BRIDGED.replace("kind = \"bridge\"", "").replace("offloads", "# offloads");
    assert!(error(&tail).contains("class \"other\" drops from the tail, so Open vSwitch at s1"));
    assert!(tail.replace("rate_at = \"s1\"", "rate_at = \"left:eth0\"").parse::<LabFile>().is_ok());
}

#[test]
fn networks_are_compared_by_their_prefix() {
    let address = |text: &str| Address::try_from(text.to_owned()).expect("an address");
    assert!(address("10.7.0.1/24").shares_network(address("10.7.0.200/24")));
    assert!(!address("10.7.0.1/24").shares_network(address("10.7.1.1/24")));
    assert!(!address("10.7.0.1/24").shares_network(address("10.7.0.2/16")));
    assert!(address("fd07::1/64").shares_network(address("fd07::ffff/64")));
    assert!(!address("fd07::1/64").shares_network(address("10.7.0.1/24")));
}
