//! Tests of campaigns on two machines reached by ssh: network namespaces with an sshd each.

use crate::campaign::AGENT;
use crate::scene::{Scene, measured};
use crate::sites::report_namespace;
use std::process::{Child, Command, Stdio};
use takt_bench::study::directory::Results;
use takt_bench::study::run::{Progress, run};
use takt_lab::{Lab, LabFile};
use takt_testkit::waiting::until;
use takt_testkit::{not_run, require};

const SSHD: &str = "/usr/sbin/sshd";
const PORT: u16 = 2222;
/// Network of the two machines; its third host is that of the campaign.
const NETWORK: &str = "[hosts.driver]\neth0 = ['10.83.0.1/24']\n[hosts.a]\neth0 = ['10.83.0.2/24']\n\
                       [hosts.b]\neth0 = ['10.83.0.3/24']\n[switches.s]\nkind = 'bridge'\n\
                       [[links]]\nends = ['driver:eth0', 's']\n[[links]]\nends = ['a:eth0', 's']\n\
                       [[links]]\nends = ['b:eth0', 's']\n";

/// Adds a role `info` with a version to an agent, and the environment as `takt` prints it.
fn with_info(agent: &str, version: &str) -> String {
    let info = format!(
        "case \"$1\" in info) echo '{{\"ev\":\"info\",\"peer\":\"shell\",\"version\":\"{version}\"}}'; exit ;; \
         bench) echo '{{\"kernel\":\"of the shell\"}}'; exit ;; esac"
    );
    agent.replacen('\n', &format!("\n{info}\n"), 1)
}

/// Two hosts with an sshd each, and keys.
struct Machines {
    lab: Lab,
    daemons: Vec<Child>,
}

impl Machines {
    fn new(scene: &Scene, name: &str) -> Self {
        let file: LabFile = format!("name = '{name}'\n{NETWORK}").parse().expect("the lab file is valid");
        let lab = Lab::up(&file).expect("root");
        for key in ["host", "user"] {
            let status = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &scene.directory.text(key)])
                .status();
            assert!(status.expect("the program is installed").success());
        }
        std::fs::create_dir_all("/run/sshd").expect("root");
        let config = format!(
            "Port {PORT}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\n",
            scene.directory.text("host"),
            scene.directory.text("user.pub")
        );
        scene.directory.write("sshd_config", &config);
        let mut daemons = Vec::new();
        for host in ["a", "b"] {
            let start = || {
                let mut command = Command::new(SSHD);
                command.args(["-D", "-e", "-f", &scene.directory.text("sshd_config")]);
                command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program is installed")
            };
            daemons.push(lab.namespace(host).expect("the namespace exists").run(start).expect("root"));
        }
        let machines = Self { lab, daemons };
        for address in ["10.83.0.2", "10.83.0.3"] {
            machines.wait_for(address);
        }
        machines
    }

    fn wait_for(&self, address: &str) {
        let connect = || std::net::TcpStream::connect((address, PORT)).is_ok();
        until(&format!("sshd at {address}"), || self.on_driver(connect));
    }

    fn on_driver<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.lab.namespace("driver").expect("the namespace exists").run(f).expect("root")
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            // An error means that the process has ended already.
            drop(daemon.kill());
            drop(daemon.wait());
        }
    }
}

fn campaign(scene: &Scene, hosts: [&str; 2], program: &str, key: &str, systems: &str) -> String {
    let key = scene.directory.text(key);
    format!(
        "name = 'x'\ntitle = 'x'\nrounds = 1\n[site]\nkind = 'ssh'\nhosts = ['root@{}', 'root@{}']\n\
         addresses = ['10.83.0.2', '10.83.0.3']\ninterfaces = ['eth0', 'eth0']\nprogram = '{program}'\n\
         processors = [0, 0]\nagents = '{}'\noptions = ['-p', '{PORT}', '-i', '{key}', '-o', 'StrictHostKeyChecking=no', \
         '-o', 'UserKnownHostsFile=/dev/null', '-o', 'IdentitiesOnly=yes', '-o', 'LogLevel=ERROR']\n\
         [[workload]]\nname = 'rtt'\nkind = 'round-trip'\nsystems = {systems}\n\
         parameters = {{ size = [16, 64], reliability = ['best-effort'] }}\nmeasure = {{ warmup = 0, count = 3 }}",
        hosts[0],
        hosts[1],
        scene.directory.path().display()
    )
}

const HOSTS: [&str; 2] = ["10.83.0.2", "10.83.0.3"];

fn missing() -> Option<String> {
    let installed = |program: &str| match std::path::Path::new(program).is_file() {
        true => Ok(()),
        false => Err(format!("{program} is not installed: scripts/setup.sh peers")),
    };
    let needs = [
        require::network_namespaces(),
        require::root(),
        installed(SSHD),
        require::program("ssh"),
        require::program("taskset"),
    ];
    needs.into_iter().find_map(Result::err)
}

#[test]
fn agents_run_on_both_machines_and_return_their_times() {
    if let Some(why) = missing() {
        return not_run(why);
    }
    let scene = Scene::new(&[("good", &with_info(&report_namespace(), "1"))]);
    let gone = scene.directory.text("gone");
    scene.add_system("gone", &gone);
    let machines = Machines::new(&scene, "takt-it-ssh");
    let text = campaign(&scene, HOSTS, &scene.directory.text("good"), "user", "['good', 'gone']");
    machines.on_driver(|| run(&scene.request(&text), &mut |_| {})).expect("the campaign runs");
    let results = Results::read(&scene.results()).expect("the results exist");
    assert_eq!(results.measurements.len(), 2);
    for measurement in &results.measurements {
        let latency = measured(measurement).latency.as_ref().expect("round trips were measured");
        assert_eq!((latency.summary.count, latency.summary.max), (3, 3.0));
        assert!(measurement.commands[0].contains("root@10.83.0.2"), "{:?}", measurement.commands);
    }
    let places = scene.directory.read("good.places");
    let of = |role: &str| places.lines().find(|line| line.starts_with(role)).and_then(|line| line.split(' ').nth(1));
    let namespace = |host: &str| {
        let read = || std::fs::read_link("/proc/thread-self/ns/net").expect("the file exists").display().to_string();
        machines.lab.namespace(host).expect("the namespace exists").run(read).expect("root")
    };
    assert_eq!((of("ping"), of("pong")), (Some(namespace("a").as_str()), Some(namespace("b").as_str())));
    let environment = &results.environment;
    assert_eq!(environment["hosts"]["root@10.83.0.2 (measuring)"]["kernel"], "of the shell");
    assert_eq!(environment["versions"]["good"], "1");
    assert_eq!(results.header.missing[0].why, format!("{gone} is not on root@10.83.0.2"));
}

#[test]
fn failures_of_ssh_name_the_host_and_the_reason() {
    if let Some(why) = missing() {
        return not_run(why);
    }
    let scene = Scene::new(&[("good", AGENT), ("one", &with_info(AGENT, "1"))]);
    let machines = Machines::new(&scene, "takt-it-ssh-fail");
    let program = scene.directory.text("one");
    let fails =
        |text: &str| machines.on_driver(|| run(&scene.request(text), &mut |_| {})).expect_err("a failure").to_string();
    let unreachable = fails(&campaign(&scene, ["10.83.0.2", "10.83.0.77"], &program, "user", "['one']"));
    assert!(
        unreachable.contains("ssh root@10.83.0.77: ") && unreachable.contains("the host is unreachable"),
        "{unreachable}"
    );
    // sshd does not accept this key.
    let refused = fails(&campaign(&scene, HOSTS, &program, "host", "['one']"));
    assert!(refused.contains("ssh root@10.83.0.2: ") && refused.contains("the key was refused"), "{refused}");
    assert!(!scene.results().exists(), "nothing was measured");
}

#[test]
fn agent_with_different_versions_on_the_machines_is_not_measured() {
    if let Some(why) = missing() {
        return not_run(why);
    }
    // One file on one disk, with another version in each namespace.
    let version = "$(case $(readlink /proc/self/ns/net) in \"$(cat \"$0.first\")\") echo 1 ;; *) echo 2 ;; esac)";
    let info = format!(
        "#!/bin/sh\n[ \"$1\" = info ] && [ -f \"$0.first\" ] || readlink /proc/self/ns/net > \"$0.first\"\n\
         [ \"$1\" = info ] && echo \"{{\\\"ev\\\":\\\"info\\\",\\\"peer\\\":\\\"p\\\",\\\"version\\\":\\\"{version}\\\"}}\"\n"
    );
    let scene = Scene::new(&[("two", &info)]);
    let machines = Machines::new(&scene, "takt-it-ssh-two");
    let text = campaign(&scene, HOSTS, &scene.directory.text("two"), "user", "['two']");
    let mut why = Vec::new();
    machines
        .on_driver(|| {
            run(&scene.request(&text), &mut |progress| {
                if let Progress::Missing(missing) = progress {
                    why.push(missing.why.clone());
                }
            })
        })
        .expect("the campaign runs");
    assert_eq!(why, ["two versions: p 1 on root@10.83.0.2, p 2 on root@10.83.0.3"]);
}
