//! System file of two participants on executors: job times are measured and analyzed, and the
//! participants run with the resulting file under load.

use std::path::Path;
use std::time::{Duration, Instant};

use takt::qos::*;
use takt::real_time::{JobKind, Priority};
use takt::*;
use takt_config::system::{JobStatistics, MEASURED_JOBS_MIN, SystemFile};
use takt_config::{Format, Settings, read_system, read_timing_plan};
use takt_testkit::directory::Directory;
use takt_testkit::domain::domain;
use takt_testkit::network::Network;
use takt_testkit::waiting::{LIMIT, until};

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Number")]
struct Number {
    value: u32,
}

/// Two executors. One writes "Brake" in a separate job and reads "Status", the other does the
/// opposite.
const SYSTEM: &str = r#"
[[executor]]
name = "pedal"

[[executor]]
name = "wheel"

[[flow]]
name = "braking"
topic = "Brake"
min_separation = "1 s"
LIMIT
stages = [
    { on = "pedal", priority = 40, PEDAL, delay = "1 ms" },
    { on = "wheel", priority = 30, RECEIVE },
    { on = "wheel", priority = 30, CALLBACK },
]
"#;

/// Returns the system with declared times of the writing job, of reception and of the callback.
fn declared(time: &str, limit: &str) -> String {
    let time = format!("time = {time:?}");
    let text = SYSTEM.replace("PEDAL", &time).replace("RECEIVE", &time).replace("CALLBACK", &time);
    text.replace("LIMIT", limit)
}

fn measured(accounts: &str) -> String {
    let text = SYSTEM.replace("PEDAL", r#"measured = "write""#).replace("RECEIVE", r#"measured = "receive""#);
    format!("{accounts}\n{}", text.replace("CALLBACK", r#"measured = ["callback"]"#).replace("LIMIT", ""))
}

struct Taking;

impl DataReaderListener<Number> for Taking {
    fn on_data_available(&mut self, reader: &DataReader<Number>) {
        reader.take(usize::MAX).expect("open");
    }
}

/// Executors, participants and reader after a run.
struct Run {
    executors: [Executor; 2],
    participants: [DomainParticipant; 2],
    reader: DataReader<Number>,
    _load: DataReader<Number>,
    /// Job of the writer. Job statistics include it as long as it exists.
    _job: Job,
}

fn participant(domain: u32, executor: &Executor, system: &Path) -> DomainParticipant {
    let mut settings = Settings::new();
    let text = format!(
        "[participant]\ndomain = {domain}\n[real_time]\nsystem = {system:?}\n[network]\ninterfaces = [\"lo\"]\n\
         peers = [\"127.0.0.1\"]\nmulticast = false\nshared_memory = false\n"
    );
    settings.add_text("takt.toml", &text, Format::Toml).expect("well-formed");
    settings.participant().expect("it fits").executor(executor).build().expect("loopback")
}

/// Writes `samples` to the critical topic, and ten samples of another topic with each. Both are
/// BEST_EFFORT, so that nothing is acknowledged.
fn run(domain: u32, system: &Path, samples: u64) -> Run {
    let executors = ["pedal", "wheel"].map(|name| Executor::builder(name).start().expect("a thread"));
    let participants = [0, 1].map(|at: usize| participant(domain, &executors[at], system));
    let [pedal, wheel] = &participants;
    let writer = |name| {
        let topic = pedal.create_topic::<Number>(name, TopicQos::default()).expect("topic");
        let publisher = pedal.create_publisher(PublisherQos::default()).expect("publisher");
        let qos = DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() };
        publisher.create_datawriter(&topic, qos).expect("writer")
    };
    let reader = |name| {
        let topic = wheel.create_topic::<Number>(name, TopicQos::default()).expect("topic");
        let subscriber = wheel.create_subscriber(SubscriberQos::default()).expect("subscriber");
        let reader = subscriber.create_datareader(&topic, DataReaderQos::default()).expect("reader");
        reader.set_listener(Box::new(Taking)).expect("open");
        reader
    };
    let (brake, load) = (writer("Brake"), writer("Load"));
    let (brakes, loads) = (reader("Brake"), reader("Load"));
    let is_matched = |writer: &DataWriter<Number>| writer.matched_subscriptions().expect("open").len() == 1;
    until("match", || is_matched(&brake) && is_matched(&load));
    let work = move || {
        for value in 0..10 {
            load.write(&Number { value }).expect("room");
        }
        brake.write(&Number::default()).expect("room");
    };
    let job = executors[0].on_event(Priority::new(40), "write", work).expect("room");
    for run in 1..=samples {
        job.trigger();
        until("a run", || job.statistics().durations.count() >= run);
    }
    // Some samples may be lost. Further samples replace them.
    let status = || brakes.latency_exceeded_status().expect("open").expect("it has a bound");
    until("most samples", || {
        job.trigger();
        status().ages.count() >= samples
    });
    Run { executors, participants, reader: brakes, _load: loads, _job: job }
}

fn count(participant: &DomainParticipant, kind: JobKind, priority: i32) -> u64 {
    let classes = participant.job_classes().expect("open");
    let class = classes.iter().find(|class| (class.kind, class.priority.get()) == (kind, priority));
    class.map_or(0, |class| class.durations.count())
}

#[test]
fn measured_times_give_bounds_that_a_second_run_uses() {
    // In the same network, a datagram of another test to a port of these participants would be a
    // job that no flow has.
    let Some(network) = Network::new() else { return };
    let host = network.host(false);
    let _inside = host.enter();
    let (domain, directory) = (domain(), Directory::new("system"));
    let since = Instant::now();
    // The run is repeated if other processes held the processor for so long that there is no bound.
    let (path, file, certificate) = loop {
        let first = run(domain, &directory.write("first.toml", &declared("5 ms", "")), 200);
        for (executor, name) in first.executors.iter().zip(["pedal.json", "wheel.json"]) {
            let mut accounts = Vec::new();
            executor.write_job_statistics(&mut accounts).expect("memory");
            directory.write(name, std::str::from_utf8(&accounts).expect("text"));
        }
        drop(first);
        let text = measured("measured = [\"pedal.json\", \"wheel.json\"]\nmargin = 3.0");
        let path = directory.write("system.toml", &text);
        let file = read_system(&path, &[], None).expect("it fits");
        match file.analyze() {
            Ok(certificate) => break (path, file, certificate),
            Err(why) => assert!(since.elapsed() < LIMIT, "{why}"),
        }
    };
    takt_calculus::verify(&certificate).expect("proven");
    let of_braking: Vec<_> = certificate.measured.iter().filter(|time| time.flow == 0).collect();
    assert_eq!(of_braking.len(), 3);
    for (time, name) in of_braking.iter().zip(["write", "receive", "callback"]) {
        let (job, stage) = (&time.jobs[0], &certificate.system.flows[0].stages[time.stage]);
        assert_eq!((job.name.as_str(), time.margin_permille), (name, 3000));
        assert!(job.count >= 150 && job.max_ns > 0 && stage.piece_ns == 3 * job.max_ns, "{time:?}");
        assert!(time.from[0].contains(": takt "), "{time:?}");
    }
    let on_wheel = |flow: &takt_calculus::Flow| flow.stages[0].resource == 1 && flow.name.ends_with(" on wheel");
    assert!(file.system().flows[1..].iter().any(on_wheel), "what else it does delays by one job");

    let second = run(domain, &path, 100);
    let [pedal, wheel] = &second.participants;
    assert!(count(wheel, JobKind::Receive, 30) >= 100 && count(wheel, JobKind::Callback, 30) >= 1);
    assert!(count(wheel, JobKind::Receive, 0) >= 1, "the load has no priority");
    assert!(pedal.job_classes().expect("open").iter().any(|class| class.priority == Priority::new(40)));
    let status = second.reader.latency_exceeded_status().expect("open").expect("it has a bound");
    let bound = certificate.flows[0].bound_ns.map(Duration::from_nanos);
    assert_eq!((status.bound, status.limit), (bound, None));
}

#[test]
fn samples_above_the_bound_and_the_limit_are_counted() {
    let directory = Directory::new("system");
    // No sample is within the bound, and every sample is within the limit.
    let text = declared("1 ns", "limit = \"100 s\"").replace("delay = \"1 ms\"", "delay = \"0 ms\"");
    let run = run(domain(), &directory.write("system.toml", &text), 20);
    let status = run.reader.latency_exceeded_status().expect("open").expect("it has a bound");
    // On the wheel, each stage may be delayed by the other one.
    let expected = (Some(Duration::from_nanos(1 + 2 + 2)), Some(Duration::from_secs(100)));
    assert_eq!((status.bound, status.limit), expected);
    assert_eq!((status.above_bound_count, status.total_count), (status.ages.count(), 0));
    assert!(status.ages.max_ns() > 5 && status.above_bound_count >= 20);
}

#[test]
fn file_that_exceeds_its_limits_is_refused_before_anything_is_built() {
    let directory = Directory::new("system");
    let refusal = |text: &str| {
        let path = directory.write("system.toml", text);
        let mut settings = Settings::new();
        settings
            .add_text("takt.toml", &format!("[real_time]\nsystem = {path:?}\n"), Format::Toml)
            .expect("well-formed");
        let error = settings.participant().map(drop).expect_err("it does not fit").to_string();
        assert!(error.starts_with("takt.toml:2: real_time.system: "), "{error}");
        error
    };
    let cases = [
        (declared("400 ms", "limit = \"1 s\""), "flows that exceed their limits: braking"),
        (declared("2 s", ""), "no bound for braking on pedal"),
        (declared("1 ms", "").replace("on = \"wheel\"", "on = \"hub\""), "unknown executor or link \"hub\""),
        (declared("1 ms", "").replace("priority = 30", "priority = 64"), "of a topic: expected -64 to 63"),
        (declared("1 ms", "").replace("[[executor]]", "[[link]]\nrate = \"1 Gbit/s\""), "has no stage on an executor"),
        (measured(""), "no job statistics of executor \"pedal\""),
        (measured("measured = [\"none.json\"]"), "none.json"),
        (declared("1 ms", "").replace("stages", "stage"), "unknown field `stage`"),
        ("[[flow]".to_owned(), "TOML"),
    ];
    for (text, expected) in cases {
        let error = refusal(&text);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let error = read_timing_plan(directory.file("nothing.toml")).expect_err("no file").to_string();
    assert!(error.contains("nothing.toml"), "{error}");

    let fits = read_timing_plan(directory.write("system.toml", &declared("1 ms", ""))).expect("it fits");
    let participant =
        DomainParticipant::builder(domain()).interfaces(["lo"]).name("stranger").timing_plan(fits).build();
    let error = participant.map(drop).expect_err("not in the file").to_string();
    assert!(error.contains("unknown executor \"stranger\"; known executors: pedal, wheel"), "{error}");
}

/// Returns job statistics of an executor with these jobs: kind, name, priority, count, longest
/// time.
fn accounts(executor: &str, jobs: &[(&str, Option<&str>, i32, u64, u64)]) -> String {
    let job = |&(kind, name, priority, count, max_ns): &(&str, Option<&str>, i32, u64, u64)| {
        let name = name.map_or(String::new(), |name| format!("\"name\":\"{name}\","));
        format!(r#"{{"kind":"{kind}",{name}"priority":{priority},"count":{count},"p999_ns":1,"max_ns":{max_ns}}}"#)
    };
    let jobs: Vec<String> = jobs.iter().map(job).collect();
    let machine = r#"{"host":"h","kernel":"6","processor":"p"}"#;
    format!(r#"{{"executor":"{executor}","version":"0","machine":{machine},"jobs":[{}]}}"#, jobs.join(","))
}

/// Returns the system with times of these job statistics, or the error.
fn read(text: &str, accounts: &[String], margin: Option<f64>) -> std::result::Result<SystemFile, String> {
    let parse = |text: &String| JobStatistics::parse("a.json", text).map_err(|error| error.to_string());
    let accounts = accounts.iter().map(parse).collect::<std::result::Result<_, _>>()?;
    SystemFile::parse("system.toml", text, accounts, margin).map_err(|error| error.to_string())
}

const WRITE: (&str, Option<&str>, i32, u64, u64) = ("application", Some("write"), 40, 1000, 7000);
const RECEIVE: (&str, Option<&str>, i32, u64, u64) = ("receive", None, 30, 1000, 4000);
const CALLBACK: (&str, Option<&str>, i32, u64, u64) = ("callback", None, 30, 1000, 2001);

#[test]
fn longest_time_of_all_accounts_is_multiplied_by_the_margin() {
    let wheel = accounts("wheel", &[RECEIVE, CALLBACK, ("timers", None, 0, 3, 9000)]);
    let again = accounts("wheel", &[("receive", None, 30, 60, 5000), ("transmit", None, 0, 5, 50)]);
    let all = [accounts("pedal", &[WRITE]), wheel, again];
    let piece = |file: &SystemFile, flow: usize, stage: usize| file.system().flows[flow].stages[stage].piece_ns;
    let file = read(&measured(""), &all, None).expect("there are enough");
    assert_eq!([0, 1, 2].map(|stage| piece(&file, 0, stage)), [10_500, 7_500, 3_002], "1.5 of each, rounded up");
    let rest: Vec<_> = file.system().flows[1..].iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(rest, ["timers 0 on wheel", "transmit 0 on wheel"]);
    assert_eq!(piece(&file, 1, 0), 13_500);
    let file = read(&measured("margin = 2.0"), &all, None).expect("there are enough");
    assert_eq!(piece(&file, 0, 1), 10_000);
    let file = read(&measured("margin = 2.0"), &all, Some(1.0)).expect("there are enough");
    assert_eq!(piece(&file, 0, 1), 5_000, "the command line comes first");
}

/// A single participant is locked twice for each job. Several participants are locked once or more
/// for each priority: here 46, of the flow, 30 and 0.
#[test]
fn lock_of_several_participants_is_waited_for_at_each_priority() {
    let text = "[[executor]]\nname = \"wheel\"\n[[flow]]\nname = \"braking\"\nmin_separation = \"1 s\"\n\
                stages = [{ on = \"wheel\", priority = 46, time = \"100 us\" }]\n";
    let jobs =
        [RECEIVE, ("timers", None, 0, 1000, 9000), ("lock-hold", None, 0, 1000, 500), ("lock-wait", None, 30, 9, 900)];
    let one = accounts("wheel", &jobs);
    let three = one.replace(r#""executor":"wheel","#, r#""executor":"wheel","participants":3,"#);
    let lock_ns = |accounts| read(text, &[accounts], Some(2.0)).expect("well-formed").system().resources[0].lock_ns;
    assert_eq!([lock_ns(one), lock_ns(three)], [2 * 2 * 500, 2 * (3 * 3 + 8) * 500]);
}

#[test]
fn insufficient_accounts_are_refused() {
    let pedal = accounts("pedal", &[WRITE]);
    let few = ("receive", None, 30, MEASURED_JOBS_MIN - 1, 5000);
    let cases = [
        (vec![pedal.clone()], "no job statistics of executor \"wheel\""),
        (
            vec![pedal.clone(), accounts("wheel", &[few, CALLBACK])],
            "had 99 jobs \"receive\" of priority 30, at least 100",
        ),
        (
            vec![pedal.clone(), accounts("wheel", &[RECEIVE])],
            "had no jobs \"callback\" of priority 30; it had receive 30",
        ),
        (
            vec![pedal.clone(), accounts("hub", &[])],
            "a.json: statistics of executor \"hub\", which is not in the system",
        ),
        (vec![accounts("pedal", &[("nap", None, 0, 1, 1)])], "unknown kind \"nap\""),
        (vec!["{}".to_owned()], "not a job statistics file: missing field"),
        (vec!["nonsense".to_owned()], "not a job statistics file: expected"),
        (
            vec![pedal.clone(), accounts("wheel", &[RECEIVE, CALLBACK, ("transmit", None, 30, 5, 1)])],
            "\"wheel\" had 5 jobs \"transmit\" of priority 30, which no flow has",
        ),
    ];
    for (accounts, expected) in cases {
        let error = read(&measured(""), &accounts, None).map(drop).expect_err(expected);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    for margin in [0.9, f64::NAN, f64::INFINITY, -1.0] {
        let error = read(&declared("1 ms", ""), &[], Some(margin)).map(drop).expect_err("no margin");
        assert!(error.contains("expected 1 to 1000"), "{error}");
    }
}

#[test]
fn jobs_of_one_stage_run_without_interruption_or_are_refused() {
    let both = r#"{ on = "wheel", priority = 30, measured = ["receive", "callback"] }"#;
    let all = [accounts("pedal", &[WRITE]), accounts("wheel", &[RECEIVE, CALLBACK])];
    let text = measured("");
    let (before, _) = text.split_once("    { on = \"wheel\"").expect("it is there");
    let together = format!("{before}{both}]\n");
    let file = read(&together, &all, None).expect("there are enough");
    assert_eq!(file.system().flows[0].stages[1].piece_ns, 9_002);
    assert!(file.analyze().is_ok(), "nothing else is as urgent");
    let rival = "[[flow]]\nname = \"rival\"\nmin_separation = \"1 s\"\nstages = [{ on = \"wheel\", priority = 31, time = \"1 us\" }]\n";
    let burst = together.replace("min_separation = \"1 s\"", "min_separation = \"1 s\"\nburst = 2");
    for text in [format!("{together}{rival}"), burst] {
        let error =
            read(&text, &all, None).expect("there are enough").analyze().expect_err("it may be parted").to_string();
        assert!(error.contains("flow braking: others may come between the jobs of its stage on wheel"), "{error}");
    }
}

/// One job of normal priority precedes urgent jobs every 10 ms, so that the bounds of flows above
/// it include it. It runs at once only behind a job above the normal priority, otherwise 10 ms
/// later.
#[test]
fn bounds_of_urgent_flows_include_the_server_of_normal_work() {
    let file = |executor: &str, further: &str| {
        let text = format!(
            "[[executor]]\nname = \"wheel\"\n{executor}\n[[flow]]\nname = \"braking\"\nmin_separation = \"1 s\"\n\
             stages = [{{ on = \"wheel\", priority = 46, time = \"100 us\" }}]\n{further}"
        );
        SystemFile::parse("f.toml", &text, Vec::new(), None).expect("well-formed")
    };
    let bound = |file: &SystemFile| file.analyze().expect("it has bounds").flows[0].bound_ns;
    let log = |priority, time| {
        format!("[[flow]]\nname = \"log\"\nstages = [{{ on = \"wheel\", priority = {priority}, time = \"{time}\" }}]\n")
    };
    assert_eq!(bound(&file("", "")), Some(100_000));
    assert_eq!(bound(&file("", &log(0, "20 us"))), Some(120_000), "one that was begun");
    assert_eq!(
        bound(&file("", &log(-10, "20 us"))),
        Some(120_000),
        "below the normal priority nothing is served first"
    );
    assert_eq!(bound(&file("normal = \"5 us\"", &log(0, "20 us"))), Some(120_000), "the longer of both");
    assert_eq!(bound(&file("normal = \"30 us\"", &log(0, "20 us"))), Some(130_000), "the longer of both");
    assert_eq!(bound(&file("normal = \"5 us\"", &log(1, "20 us"))), Some(125_000), "both");
    assert_eq!(
        bound(&file("lock = \"7 us\"", &log(0, "20 us"))),
        Some(134_000),
        "and each of the two waits for the lock"
    );
    let busy = "[[flow]]\nname = \"middle\"\nmin_separation = \"200 ms\"\nburst = 300\n\
                stages = [{ on = \"wheel\", priority = 10, time = \"100 us\" }]\n";
    let file = file("normal = \"200 us\"", busy);
    let certificate = file.analyze().expect("it has bounds");
    assert_eq!(takt_calculus::verify(&certificate), Ok(()));
    assert_eq!(certificate.flows[0].bound_ns, Some(100_000 + 200_000 + 100_000));
    assert_eq!(certificate.flows[1].bound_ns, Some(30_000_000 + 100_000 + 4 * 200_000), "one in each 10 ms");
}

const THROUGH_THE_NETWORK: &str = r#"
[[executor]]
name = "pub"

[[executor]]
name = "sub"

[[flow]]
name = "steering"
topic = "Steering"
min_separation = "5 ms"
limit = "5 ms"
stages = [
    { on = "pub", priority = 40, time = "300 us", time_min = "100 us" },
    { network = "2 ms", delay = "200 us" },
    { on = "sub", priority = 40, time = "100 us" },
    { on = "sub", priority = 40, time = "150 us" },
]

[[flow]]
name = "log"
min_separation = "10 ms"
stages = [{ on = "sub", priority = 0, time = "50 us" }]
"#;

#[test]
fn endpoints_announce_the_stages_before_and_after_the_network() {
    let file = SystemFile::parse("system.toml", THROUGH_THE_NETWORK, Vec::new(), None).expect("well-formed");
    let plan = file.timing_plan().expect("it fits");
    let writer = plan.stages("pub", "Steering").expect("it passes the network").writer.clone().expect("stages");
    assert_eq!((writer.period_ns, writer.jitter_ns, writer.flow.as_str()), (5_000_000, 200_000, "steering"));
    let of = |stages: &takt::HostStages| -> Vec<(String, u64)> {
        stages.stages.iter().map(|stage| (stage.name.clone(), stage.bound_ns)).collect()
    };
    assert_eq!(of(&writer), [("pub".to_owned(), 300_000)]);
    let stages = plan.stages("sub", "Steering").expect("it passes the network");
    assert_eq!(stages.writer, None, "its stages are elsewhere");
    let reader = stages.reader.clone().expect("stages");
    assert_eq!(reader.jitter_ns, 2_200_000, "that of the writer's host, and what the network may take");
    assert_eq!(of(&reader)[0], ("interface".to_owned(), 200_000));
    assert_eq!(of(&reader).len(), 3);
    let whole = file.analyze().expect("bounded").flows[0].bound_ns.expect("bounded");
    assert_eq!(writer.bound_ns() + 2_000_000 + reader.bound_ns(), whole);
}

#[test]
fn invalid_network_stage_is_refused() {
    for (find, replace, expected) in [
        ("{ network = \"2 ms\",", "{ network = \"2 ms\", time = \"1 ms\",", "allows only the keys delay"),
        ("{ on = \"pub\", priority = 40,", "{ network = \"1 ms\" }, { on = \"pub\", priority = 40,", "two network"),
        ("topic = \"Steering\"", "", "needs a topic"),
        ("name = \"pub\"", "name = \"network\"", "\"network\" is reserved"),
        ("min_separation = \"5 ms\"\nlimit = \"5 ms\"", "", "needs min_separation"),
        ("on = \"sub\", priority = 0", "on = \"network\", priority = 0", "unknown executor or link \"network\""),
        ("on = \"sub\", priority = 0", "priority = 0", "on and priority, or network"),
    ] {
        let text = THROUGH_THE_NETWORK.replace(find, replace);
        assert_ne!(text, THROUGH_THE_NETWORK);
        let file = SystemFile::parse("system.toml", &text, Vec::new(), None);
        let refused = file.and_then(|file| file.timing_plan()).expect_err(expected).to_string();
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}
