//! `takt lab` as a process: up, status, exec, down, and its errors.

use std::path::PathBuf;

use takt_testkit::lab_text::LabText;
use takt_testkit::{not_run, require};

use crate::process::Takt;

fn network() -> String {
    LabText::of(&["s1"]).host("left", "10.7.0.1/24", "s1").host("right", "10.7.0.2/24", "s1").body()
}

/// File of a network whose name is unique to this test. Dropping it removes the file and the lab.
struct File(PathBuf);

impl File {
    fn new(test: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cli-{test}-{}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn name(&self) -> String {
        self.0.file_stem().unwrap().to_string_lossy().into_owned()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
        // The lab is down already if the test succeeded.
        Takt::start(&format!("lab down {}", self.name())).finish();
    }
}

#[test]
fn lab_is_created_shown_used_and_removed() {
    if let Err(why) = require::open_vswitch().and_then(|()| require::program("ping")) {
        return not_run(why);
    }
    let file = File::new("lab", &network());
    let name = file.name();
    let made = Takt::start(&format!("lab up {} --json", file.0.display())).json();
    assert_eq!(made["name"], name.as_str());
    assert_eq!(made["checks"][0]["outcome"], "passed", "{made}");
    let status = Takt::start(&format!("lab status {name} --json")).json();
    let lab = &status["labs"][0];
    assert_eq!((&lab["is_complete"], &lab["switches"][0]["is_there"]), (&true.into(), &true.into()), "{status}");
    let (text, _) = Takt::start(&format!("lab status {name}")).finish();
    assert!(text.contains(&format!("lab {name}: up")) && text.contains("switch s1       no controller"), "{text}");
    let (text, status) = Takt::start(&format!("lab exec --lab {name} left -- ls /sys/class/net")).finish();
    assert!(status.success() && text.contains("eth0"), "{text}");
    let (text, status) = Takt::start(&format!("lab exec --lab {name} left -- ping -c 1 -W 20 10.7.0.2")).finish();
    assert!(status.success(), "{text}");
    let (_, status) = Takt::start(&format!("lab exec --lab {name} left -- false")).finish();
    assert_eq!(status.code(), Some(1), "the exit code is the program's");
    let (text, code) = Takt::start(&format!("lab exec --lab {name} middle -- true")).error_text();
    assert!(text.contains("has no host \"middle\"; its hosts are left, right, switches") && code == Some(2), "{text}");
    let (text, code) = Takt::start(&format!("lab up {}", file.0.display())).error_text();
    assert!(text.contains(&format!("takt lab down {name}")) && code == Some(1), "{text}");
    let (_, status) = Takt::start(&format!("lab down {name}")).finish();
    assert!(status.success());
    let (text, code) = Takt::start(&format!("lab down {name}")).error_text();
    assert!(text.contains(&format!("lab {name} does not exist")) && code == Some(1), "{text}");
}

#[test]
fn mistake_in_a_file_is_named_with_the_file() {
    let file = File::new("mistake", &network().replace("right:eth0", "right:eth1"));
    let (text, code) = Takt::start(&format!("lab up {}", file.0.display())).error_text();
    assert!(
        text.contains(&file.name()) && text.contains("right:eth1 is neither in [hosts] nor in [switches]"),
        "{text}"
    );
    assert_eq!(code, Some(2));
}

#[test]
fn lab_without_root_reports_that_it_needs_root() {
    if let Err(why) = require::program("setpriv").and_then(|()| require::root()) {
        return not_run(why);
    }
    let file = File::new("root", &network());
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&file.0, readable).unwrap();
    let nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all";
    let (text, code) = Takt::start_by(nobody, &format!("lab up {}", file.0.display())).error_text();
    assert!(text.contains("needs root") && code == Some(1), "{text}");
}
