//! Texts of network descriptions for `takt_lab` and the controller of `takt-sdn`: hosts with one
//! interface, Open vSwitch bridges, links.

use std::fmt::Write;

/// Traffic classes of `takt_lab` for the model `ovs-netdev`, most urgent first, except that `other`
/// comes last.
pub const CLASSES: &str = r#"
[[classes]]
name = "first"
dscp = [46]
frames = 100
[[classes]]
name = "second"
dscp = [34]
frames = 100
[[classes]]
name = "third"
dscp = [26]
frames = 100
[[classes]]
name = "fourth"
dscp = [18]
frames = 100
[[classes]]
name = "other"
frames = 256
"#;

/// One urgent class and the remaining traffic.
pub const TWO_CLASSES: &str = r#"
[[classes]]
name = "urgent"
dscp = [46]
frames = 64
[[classes]]
name = "other"
frames = 256
"#;

/// Address of the controller, in the namespace of the switches.
const CONTROLLER: &str = "tcp:127.0.0.1:6653";

/// Network description. Switch ports are numbered from 1, in the order of the calls of
/// [`host`](Self::host) and [`link`](Self::link).
#[derive(Clone, Debug, Default)]
pub struct LabText {
    settings: String,
    classes: String,
    hosts: String,
    switches: String,
    links: String,
}

impl LabText {
    /// Creates a network of these switches, which connect to a controller at TCP port 6653 of their
    /// namespace.
    pub fn controlled(switches: &[&str]) -> Self {
        Self::default().add_switches(switches, &format!("controller = \"{CONTROLLER}\"\n"))
    }

    /// Creates a network of these switches, which forward without a controller.
    pub fn of(switches: &[&str]) -> Self {
        Self::default().add_switches(switches, "")
    }

    fn add_switches(mut self, switches: &[&str], settings: &str) -> Self {
        switches.iter().for_each(|name| append(&mut self.switches, format_args!("[switches.{name}]\n{settings}")));
        self
    }

    /// Sets the real-time priority of the switches, above everything else on the machine. A switch
    /// that waits for a processor would pass to its meters, in one burst, frames that arrived one
    /// by one.
    pub fn switch_priority(mut self, priority: u8) -> Self {
        append(&mut self.settings, format_args!("switch_priority = {priority}\n"));
        self
    }

    /// Sets the classes of links with a rate.
    pub fn classes(mut self, classes: &str) -> Self {
        self.classes = classes.to_owned();
        self
    }

    /// Adds a host with the interface `eth0`, its addresses, separated by spaces, and a link to a
    /// switch.
    pub fn host(self, name: &str, addresses: &str, switch: &str) -> Self {
        self.add_host(name, addresses).link(&format!("{name}:eth0"), switch)
    }

    /// Adds a host to which the switch sends frames at this rate.
    pub fn host_of_rate(self, name: &str, addresses: &str, switch: &str, rate: &str) -> Self {
        self.add_host(name, addresses).link_of_rate(switch, &format!("{name}:eth0"), rate)
    }

    fn add_host(mut self, name: &str, addresses: &str) -> Self {
        let addresses: Vec<&str> = addresses.split_whitespace().collect();
        append(&mut self.hosts, format_args!("[hosts.{name}]\neth0 = {addresses:?}\n"));
        self
    }

    /// Adds a link between two ends, each a switch or `HOST:eth0`.
    pub fn link(mut self, one: &str, other: &str) -> Self {
        append(&mut self.links, format_args!("[[links]]\nends = [\"{one}\", \"{other}\"]\n"));
        self
    }

    /// Adds a link with a rate, such as `20 Mbit/s`.
    pub fn link_of_rate(self, one: &str, other: &str, rate: &str) -> Self {
        let mut text = self.link(one, other);
        append(&mut text.links, format_args!("rate = \"{rate}\"\n"));
        text
    }

    /// Returns the file without a name.
    pub fn body(&self) -> String {
        [&self.settings, &self.classes, &self.hosts, &self.switches, &self.links].map(String::as_str).concat()
    }

    /// Returns the file of a lab named after the test and this process.
    pub fn text(&self, test: &str) -> String {
        format!("name = \"{}\"\n{}", lab_name(test), self.body())
    }
}

/// Returns the name of the lab of a test of this process.
pub fn lab_name(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

fn append(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("writing to a String cannot fail");
}

/// Returns the network description for the controller: all switches have the classes of [`CLASSES`]
/// and ports of this rate.
pub fn network_text(rate_bps: u64) -> String {
    format!("[[switch]]\ndatapath_id = \"*\"\nmodel = \"ovs-netdev\"\nrate_bps = {rate_bps}\n")
}

#[cfg(test)]
mod tests {
    use super::LabText;

    #[test]
    fn parts_appear_in_file_order() {
        let text = LabText::controlled(&["s1"])
            .host("left", "10.7.0.1/24 fd07::1/64", "s1")
            .host_of_rate("right", "10.7.0.2/24", "s1", "20 Mbit/s")
            .classes("[[classes]]\nname = \"all\"\nframes = 9\n")
            .switch_priority(30);
        let expected = "switch_priority = 30\n\
             [[classes]]\nname = \"all\"\nframes = 9\n\
             [hosts.left]\neth0 = [\"10.7.0.1/24\", \"fd07::1/64\"]\n\
             [hosts.right]\neth0 = [\"10.7.0.2/24\"]\n\
             [switches.s1]\ncontroller = \"tcp:127.0.0.1:6653\"\n\
             [[links]]\nends = [\"left:eth0\", \"s1\"]\n\
             [[links]]\nends = [\"s1\", \"right:eth0\"]\nrate = \"20 Mbit/s\"\n";
        assert_eq!(text.body(), expected);
        assert_eq!(text.text("x"), format!("name = \"x-{}\"\n{expected}", std::process::id()));
    }
}
