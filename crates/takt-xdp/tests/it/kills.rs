//! A process that is killed leaves nothing on the interface: no program, no queue that is busy.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use takt_xdp::{XdpConfig, XdpTransport};

use super::network::{Host, Network};

/// Says to the copy of this program that it is to be killed.
const VICTIM: &str = "TAKT_XDP_VICTIM";

/// Rounds; all of them take the same queue of the same interface.
const ROUNDS: usize = 20;

/// What the copy does: open, say so, and wait for its end. For anyone else there is nothing to do.
#[test]
fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let opened = XdpTransport::open(&XdpConfig::new(0, "eth0"));
    println!("\nvictim: {}", opened.as_ref().map_or_else(ToString::to_string, |_| "open".to_owned()));
    assert!(opened.is_ok());
    loop {
        std::thread::park();
    }
}

/// Starts a victim on the host; what it says.
fn victim_on(host: &Host) -> (Child, String) {
    let mut child = host.run(|| {
        Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "kills::victim", "--nocapture"])
            .env(VICTIM, "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program can be started")
    });
    let said = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut lines = said.lines().map_while(Result::ok);
    let line = lines.find_map(|line| line.strip_prefix("victim: ").map(str::to_owned));
    (child, line.expect("it says how it went"))
}

/// What `ip` says of the host's interface.
fn interface(host: &Host) -> String {
    let shown = host.run(|| Command::new("ip").args(["link", "show", "eth0"]).output());
    String::from_utf8(shown.expect("iproute2 is installed").stdout).expect("text")
}

#[test]
fn nothing_is_left_of_a_process_that_was_killed() {
    let Some(network) = Network::new() else { return };
    let host = network.host(true);
    if let Err(why) = host.run(|| XdpTransport::open(&XdpConfig::new(0, "eth0"))) {
        return eprintln!("not tested: {why}");
    }
    for round in 0..ROUNDS {
        let (mut child, said) = victim_on(&host);
        assert_eq!(said, "open", "round {round}");
        assert!(interface(&host).contains("xdp"), "the program is there");
        child.kill().expect("it lives");
        child.wait().expect("it ends");
        assert!(!interface(&host).contains("xdp"), "round {round}: {}", interface(&host));
    }
    host.run(|| XdpTransport::open(&XdpConfig::new(0, "eth0"))).expect("nothing is taken");
}
