//! Interrupt coalescing of a network card: it is read and set as by ethtool, and restored.

use std::process::Command;

use takt_host::{Change, Journal, Machine, Plan, apply, revert, verify};
use takt_testkit::{not_run, require};

/// Environment variable with the name of a network card that the test may change.
const CARD: &str = "TAKT_TEST_HOST_CARD";

/// Simulated card (netdevsim), or a card that the test may change. Dropping the value removes a
/// simulated card.
struct Card {
    name: String,
    is_made: bool,
}

/// Returns the number of the simulated device, which is the process ID.
fn number() -> u32 {
    std::process::id()
}

impl Card {
    fn new() -> Option<Self> {
        if let Ok(name) = std::env::var(CARD) {
            return Some(Self { name, is_made: false });
        }
        let new_device = "/sys/bus/netdevsim/new_device";
        if require::root().and_then(|()| require::file(new_device)).is_err() {
            not_run(format!("no simulated card (netdevsim) can be made, and {CARD} names none"));
            return None;
        }
        std::fs::write(new_device, format!("{} 1 4", number())).expect("root can create a device");
        let directory = format!("/sys/bus/netdevsim/devices/netdevsim{}/net", number());
        let name = std::fs::read_dir(directory).expect("it was made").flatten().next().expect("it has a port");
        Some(Self { name: name.file_name().into_string().expect("ASCII"), is_made: true })
    }

    /// Returns the settings as ethtool prints them.
    fn shown(&self) -> String {
        let output = Command::new("ethtool").args(["-c", &self.name]).output().expect("ethtool can be run");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn value(&self, name: &str) -> String {
        let text = self.shown();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).trim().to_owned()
    }

    fn change(&self, name: &str, to: &str) -> Change {
        let setting = format!("ethtool/{}/{name}", self.name).parse().expect("a setting");
        Change { setting, from: String::new(), to: to.to_owned(), why: String::new() }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        if self.is_made {
            drop(std::fs::write("/sys/bus/netdevsim/del_device", number().to_string()));
        }
    }
}

#[test]
fn coalescing_that_was_set_is_shown_by_ethtool_and_restored() {
    let Some(card) = Card::new() else { return };
    let machine = Machine::default();
    let path = std::env::temp_dir().join(format!("takt-host-coalescing-{}", std::process::id()));
    let before = card.shown();
    let mut set = 0;
    for name in ["rx-usecs", "tx-usecs", "rx-frames", "tx-frames"] {
        let former = card.value(name);
        let wanted = if former == "20" { "30" } else { "20" };
        let plan = Plan { changes: vec![card.change(name, wanted)], missing_features: Vec::new() };
        let mut journal = Journal::open(&path).expect("not locked");
        if former == "n/a" {
            let why = apply(&machine, &plan, &mut journal).expect_err("not supported by the driver").to_string();
            assert!(why.contains("not supported"), "{why}");
        } else {
            apply(&machine, &plan, &mut journal).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(card.value(name), wanted, "{name}");
            assert!(verify(&machine, &plan).is_empty());
            set += 1;
        }
        let failures = revert(&machine, journal).expect("the journal can be ended");
        assert!(failures.is_empty(), "{failures:?}");
        assert_eq!(card.shown(), before, "{name}");
    }
    assert!(set > 0, "a card without any of them tests nothing: {before}");
}
