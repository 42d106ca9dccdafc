//! Tests of end-to-end bounds over a host, the network and another host.

use takt_calculus::composition::{Division, DivisionError, EndToEnd, HostFlow, HostPart, Unproven, check, divide};
use takt_calculus::network::{Admission, Depth, Flow, Frames, Hop, Port};
use takt_calculus::{Arrivals, Resource, Stage, System};

const MICROSECOND: u64 = 1_000;
const LIMIT_NS: u64 = 2_000 * MICROSECOND;
const ARRIVALS: Arrivals = Arrivals::sporadic(5_000 * MICROSECOND);

fn stage(priority: i32, piece_ns: u64) -> Stage {
    Stage { resource: 0, priority, piece_ns, piece_ns_min: piece_ns / 4, pieces: 1, delay_ns: 0, delay_ns_min: 0 }
}

/// Returns an executor with a job of 40 us, and a less urgent one of 100 us.
fn host() -> HostFlow {
    let flow = |name: &str, stage| takt_calculus::Flow {
        name: name.into(),
        arrivals: Some(ARRIVALS),
        stages: vec![stage],
        limit_ns: None,
    };
    let flows = vec![flow("steering", stage(10, 40 * MICROSECOND)), flow("log", stage(0, 100 * MICROSECOND))];
    HostFlow { system: System { resources: vec![Resource::new("executor")], flows }, flow: 0 }
}

fn divided() -> Division {
    divide(ARRIVALS, LIMIT_NS, Some(&host()), Some(&host())).expect("the stages leave something")
}

/// Returns a network of two ports with the flow, as the division requires it.
fn composed() -> EndToEnd {
    let division = divided();
    let port = Port {
        name: "port".into(),
        rate_bps: 100_000_000,
        foreign_frame_len: 1514,
        classes: vec![Depth::UNLIMITED],
        delay_ns: 5_000,
        delay_ns_min: 0,
    };
    let mut network = Admission::new(vec![port.clone(), port]).expect("the ports are valid");
    let flow = Flow {
        name: "steering".into(),
        arrivals: division.arrivals,
        frames: vec![Frames { len: 400, count: 1 }],
        hops: (0..2).map(|port| Hop { port, class: 0 }).collect(),
        branches: vec![],
        limit_ns: division.network_limit_ns,
    };
    let (id, _) = network.admit(flow).expect("the flow is admitted");
    let flow = network.index_in_certificate(id).expect("the flow is admitted");
    let Division { source, sink, .. } = division;
    EndToEnd { arrivals: ARRIVALS, source, network: network.certificate(), flow, sink, bound_ns: LIMIT_NS }
}

#[test]
fn parts_of_a_limit_add_up_to_the_limit() {
    let division = divided();
    // Each host: a blocking job of 100 us, and the flow's own job. At the sink, another event of
    // the same flow may arrive simultaneously.
    let source_ns = division.source.as_ref().and_then(|part| part.bound_ns()).expect("the flow is bounded");
    let sink_ns = division.sink.as_ref().and_then(|part| part.bound_ns()).expect("the flow is bounded");
    assert_eq!(source_ns, 140 * MICROSECOND);
    assert!(sink_ns >= source_ns);
    assert_eq!(source_ns + division.network_limit_ns + sink_ns, LIMIT_NS);
    assert_eq!(division.arrivals.jitter_ns, 140 * MICROSECOND - 10 * MICROSECOND, "from the shortest to the longest");
    assert_eq!(check(&composed()), Ok(()));
}

#[test]
fn flow_without_host_stages_begins_and_ends_at_the_network() {
    let division = divide(ARRIVALS, LIMIT_NS, None, None).expect("the network has the whole limit");
    let whole = Division { arrivals: ARRIVALS, network_limit_ns: LIMIT_NS, source: None, sink: None };
    assert_eq!(division, whole);
}

#[test]
fn stages_that_use_up_the_limit_are_refused() {
    let late = divide(ARRIVALS, 140 * MICROSECOND, Some(&host()), None).expect_err("the source exceeds the limit");
    assert!(matches!(late, DivisionError::ExceedsLimit { source_ns: 140_000, .. }), "{late}");
    let late = divide(ARRIVALS, 250 * MICROSECOND, Some(&host()), Some(&host())).expect_err("too late");
    assert!(matches!(late, DivisionError::ExceedsLimit { sink_ns: 140_000.., .. }), "{late}");
    let absent = HostFlow { flow: 9, ..host() };
    assert!(matches!(divide(ARRIVALS, LIMIT_NS, Some(&absent), None), Err(DivisionError::Source(_))));
}

#[test]
fn events_rarer_than_the_stages_assume_are_proven() {
    let mut claim = composed();
    claim.arrivals.period_ns += 1_000;
    assert_eq!(check(&claim), Ok(()));
}

/// The flow passes the network between two hosts of one system. A part of its stages is on each
/// host.
#[test]
fn stages_before_and_after_the_network_may_share_a_certificate() {
    let stage = |resource, piece_ns, delay_ns| Stage {
        resource,
        priority: 1,
        piece_ns,
        piece_ns_min: 0,
        pieces: 1,
        delay_ns,
        delay_ns_min: 0,
    };
    let certificate = |network_ns| {
        let stages = vec![stage(0, 40_000, 0), stage(2, 0, network_ns), stage(2, 0, 20_000), stage(1, 70_000, 0)];
        let flow = takt_calculus::Flow { name: "steering".into(), arrivals: Some(ARRIVALS), stages, limit_ns: None };
        let resources = ["pub", "sub", "network"].map(Resource::new).to_vec();
        let certificate = takt_calculus::analyze(&System { resources, flows: vec![flow] }).expect("bounded");
        assert_eq!(takt_calculus::verify(&certificate), Ok(()));
        certificate
    };
    let part =
        |network_ns, stages| Some(HostPart { certificate: certificate(network_ns), flow: 0, stages: Some(stages) });
    let mut claim = composed();
    let limit_ns = claim.network.flows[claim.flow].limit_ns;
    (claim.source, claim.sink) = (part(limit_ns, (0, 1)), part(limit_ns, (2, 4)));
    let bounds = [&claim.source, &claim.sink].map(|part| part.as_ref().and_then(HostPart::bound_ns));
    assert_eq!(bounds, [Some(40_000), Some(90_000)]);
    claim.bound_ns = limit_ns + 130_000;
    assert_eq!(check(&claim), Ok(()));
    claim.sink = part(limit_ns - 1, (2, 4));
    assert_eq!(check(&claim), Err(Unproven::ToSink), "the network may take longer than the file says");
    claim.source = part(limit_ns, (0, 9));
    assert_eq!(check(&claim), Err(Unproven::Source), "the stages do not exist");
}

#[test]
fn false_claims_about_parts_and_their_interfaces_are_refused() {
    let refuses = |name: &str, expected: Unproven, lie: &dyn Fn(&mut EndToEnd)| {
        let mut claim = composed();
        lie(&mut claim);
        assert_eq!(check(&claim), Err(expected), "{name}");
    };
    let part = |part: &mut Option<takt_calculus::composition::HostPart>,
                lie: &dyn Fn(&mut takt_calculus::Certificate)| {
        lie(&mut part.as_mut().expect("the part has stages").certificate);
    };
    refuses("a smaller sum", Unproven::Sum, &|lie| lie.bound_ns -= 1);
    refuses("another flow", Unproven::Network, &|lie| lie.flow = 7);
    refuses("a smaller budget", Unproven::Network, &|lie| lie.network.queues[0][0].delay_ns /= 4);
    refuses("denser events", Unproven::Source, &|lie| lie.arrivals.period_ns -= 1);
    refuses("later events", Unproven::Source, &|lie| lie.arrivals.jitter_ns += 1);
    refuses("a faster source", Unproven::Source, &|lie| {
        part(&mut lie.source, &|certificate| certificate.flows[0].stages[0].response_ns /= 2);
    });
    refuses("a faster sink", Unproven::Sink, &|lie| {
        part(&mut lie.sink, &|certificate| certificate.flows[0].stages[0].response_ns /= 2);
    });
    refuses("a shorter sum of the sink", Unproven::Sink, &|lie| {
        part(&mut lie.sink, &|certificate| certificate.flows[0].bound_ns = Some(1));
    });
    refuses("a sink that expects less jitter", Unproven::ToSink, &|lie| {
        lie.sink.clone_from(&lie.source);
    });
    refuses("a network that expects no jitter", Unproven::ToNetwork, &|lie| {
        lie.network.flows[0].arrivals.jitter_ns = 0
    });
    refuses("events at once", Unproven::ToNetwork, &|lie| {
        lie.source = None;
        lie.arrivals.jitter_ns = u64::MAX;
    });
}
