//! Tests of campaigns on hosts of `takt lab`.

use crate::campaign::AGENT;
use crate::scene::{Scene, measured};
use std::collections::BTreeSet;
use takt_bench::study::run::run;
use takt_testkit::{not_run, require};

/// Returns the agent of round trips, extended: it records namespace and role of each of its
/// processes.
pub fn report_namespace() -> String {
    AGENT.replacen(
        '\n',
        "\n[ \"$1\" = info ] || echo \"$1 $(readlink /proc/self/ns/net) $*\" >> \"$0.places\"\n\
         [ \"$1\" = info ] || echo \"$(cat /etc/machine-id) $(ls /dev/shm | wc -l)\" >> \"$0.hosts\"\n",
        1,
    )
}

#[test]
fn agents_run_on_the_hosts_of_a_lab_with_a_rate_and_a_switch() {
    for missing in [require::network_namespaces(), require::root()] {
        if let Err(why) = missing {
            return not_run(why);
        }
    }
    let scene = Scene::new(&[("good", &report_namespace())]);
    let text = "name = 'x'\ntitle = 'x'\nrounds = 1\nforeign-max = 1.0\n[site]\nkind = 'lab'\nrate = '1 Gbit/s'\n\
                queue = 300\nswitch = 'bridge'\n[[workload]]\nname = 'rtt'\nkind = 'round-trip'\nsystems = ['good']\n\
                parameters = { size = [16], reliability = ['best-effort'] }\nmeasure = { warmup = 0, count = 3 }";
    let (results, _) = scene.run(text);
    assert_eq!(measured(&results.measurements[0]).latency.as_ref().map(|latency| latency.summary.count), Some(3));
    let places = scene.directory.read("good.places");
    let namespaces: BTreeSet<&str> = places.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    let own = std::fs::read_link("/proc/self/ns/net").expect("the file exists").display().to_string();
    assert_eq!((namespaces.len(), namespaces.contains(own.as_str())), (2, false), "{places}");
    assert!(places.contains("iface=eth0 addr=10.79.0.1 peer=10.79.0.2"), "{places}");
    if std::path::Path::new("/etc/machine-id").exists() {
        let hosts = scene.directory.read("good.hosts");
        let seen: BTreeSet<&str> = hosts.lines().collect();
        assert!(seen.len() == 2 && seen.iter().all(|host| host.ends_with(" 0")), "{hosts}");
    }
}

#[test]
fn lab_file_is_read_relative_to_the_campaign_and_kept_with_the_results() {
    let scene = Scene::new(&[]);
    let campaign = "name = 'x'\ntitle = 'x'\nrounds = 1\n[site]\nkind = 'lab'\nfile = '../net.toml'\n[[workload]]\n\
                    name = 'w'\nkind = 'round-trip'\nsystems = ['takt-udp']";
    std::fs::create_dir(scene.directory.file("campaigns")).expect("the directory is writable");
    scene.directory.write("campaigns/x.toml", campaign);
    let read = || {
        let path = scene.directory.file("campaigns/x.toml");
        takt_bench::study::file::Campaign::read(&path, takt_bench::study::file::Length::Normal)
    };
    assert!(read().expect_err("the file does not exist").to_string().contains("net.toml"));
    let three = "[hosts.one]\neth0 = ['10.9.0.1/24']\n[hosts.two]\neth0 = ['10.9.0.2/24']\n[hosts.three]\n\
                 eth0 = ['10.9.0.3/24']\n[switches.s]\nkind = 'bridge'\n[[links]]\nends = ['one:eth0', 's']\n\
                 [[links]]\nends = ['two:eth0', 's']\n[[links]]\nends = ['three:eth0', 's']\n";
    scene.directory.write("net.toml", three);
    let error = read().expect_err("three hosts").to_string();
    assert!(error.contains("two of one, three, two"), "{error}");
    let network = "[hosts.one]\neth0 = ['10.9.0.1/24']\n[hosts.two]\neth0 = ['10.9.0.2/24']\n[[links]]\n\
                   ends = ['one:eth0', 'two:eth0']\n";
    scene.directory.write("net.toml", network);
    let site = serde_json::to_value(read().expect("the site is valid").site).expect("the value can be serialized");
    assert_eq!(site["network"], network);
}

/// Runs on a separate thread, which changes its user permanently.
#[test]
fn campaign_at_a_lab_without_root_is_an_error() {
    const OTHER_USER: libc::uid_t = 65_534;
    let scene = Scene::new(&[("good", AGENT)]);
    let text = "name = 'x'\ntitle = 'x'\nrounds = 1\n[site]\nkind = 'lab'\n[[workload]]\nname = 'w'\n\
                kind = 'round-trip'\nsystems = ['good']\nparameters = { reliability = ['best-effort'] }";
    let error = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            if require::root().is_ok() {
                // SAFETY: no pointers. The system call, unlike the function of libc, changes only
                // this thread.
                assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, OTHER_USER, OTHER_USER, OTHER_USER) }, 0);
            }
            run(&scene.request(text), &mut |_| {}).expect_err("the run needs root")
        });
        other.join().expect("the thread does not panic")
    });
    assert!(error.to_string().contains("root"), "{error}");
}
