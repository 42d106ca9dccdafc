//! Tests of the certificate checker: it refuses false claims.

use takt_calculus::server::Point;
use takt_calculus::system::Server;
use takt_calculus::{Certificate, MeasuredJobs, MeasuredTime, analyze, verify};

use super::random::{Random, system};

fn certificate() -> Certificate {
    let found = (1..).map(|seed| system(&mut Random(seed))).find(|system| {
        system.flows.len() > 4 && system.resources.len() == 2 && system.flows.iter().any(|flow| flow.stages.len() == 3)
    });
    let mut system = found.expect("enough systems exist");
    let certificate = analyze(&system).expect("bounded");
    for (flow, claim) in system.flows.iter_mut().zip(&certificate.flows) {
        flow.limit_ns = claim.bound_ns;
    }
    analyze(&system).expect("bounded")
}

/// Checks that the certificate is not proven after `change`.
fn refuses(what: &str, change: impl Fn(&mut Certificate)) {
    let mut lie = certificate();
    change(&mut lie);
    assert!(verify(&lie).is_err(), "{what}");
}

#[test]
fn computed_certificate_is_proven() {
    assert_eq!(verify(&certificate()), Ok(()));
}

#[test]
fn pessimistic_claims_are_proven() {
    let mut safe = certificate();
    for (flow, claim) in safe.system.flows.iter_mut().zip(&mut safe.flows) {
        claim.bound_ns = claim.bound_ns.map(|bound| bound + 1);
        flow.limit_ns = None;
    }
    assert_eq!(verify(&safe), Ok(()));
}

#[test]
fn understated_numbers_of_claims_are_refused() {
    let known = certificate();
    for (f, flow) in known.flows.iter().enumerate() {
        refuses("a smaller bound", |lie| lie.flows[f].bound_ns = flow.bound_ns.map(|bound| bound - 1));
        refuses("no bound", |lie| lie.flows[f].bound_ns = None);
        refuses("a larger bound than asked for", |lie| lie.flows[f].bound_ns = flow.bound_ns.map(|bound| bound + 1));
        for (s, stage) in flow.stages.iter().enumerate() {
            refuses("a smaller response", |lie| lie.flows[f].stages[s].response_ns -= 1);
            refuses("a shorter busy period", |lie| lie.flows[f].stages[s].busy_ns = stage.busy_ns - 1);
            refuses("no busy period", |lie| lie.flows[f].stages[s].busy_ns = 0);
            refuses("a period of 0", |lie| lie.flows[f].stages[s].arrivals.period_ns = 0);
            refuses("a longer period", |lie| lie.flows[f].stages[s].arrivals.period_ns += 1);
            refuses("a larger distance", |lie| lie.flows[f].stages[s].arrivals.distance_ns += 1);
            if stage.arrivals.jitter_ns > 0 {
                refuses("a smaller jitter", |lie| lie.flows[f].stages[s].arrivals.jitter_ns -= 1);
            }
            for (p, point) in stage.points.iter().enumerate() {
                refuses("a point left out", |lie| {
                    lie.flows[f].stages[s].points.remove(p);
                });
                if point.start_ns > 0 {
                    refuses("an earlier start", |lie| lie.flows[f].stages[s].points[p].start_ns -= 1);
                }
            }
        }
        refuses("a stage left out", |lie| drop(lie.flows[f].stages.pop()));
    }
    refuses("a flow left out", |lie| drop(lie.flows.pop()));
}

#[test]
fn system_slower_than_claimed_is_refused() {
    let known = certificate();
    for (f, flow) in known.system.flows.iter().enumerate() {
        for s in 0..flow.stages.len() {
            refuses("a slower stage", |lie| lie.system.flows[f].stages[s].piece_ns += 1);
            refuses("one piece more", |lie| lie.system.flows[f].stages[s].pieces += 1);
            refuses("a longer delay", |lie| lie.system.flows[f].stages[s].delay_ns += 1);
            refuses("a resource that is not there", |lie| lie.system.flows[f].stages[s].resource = 99);
        }
        refuses("a longer lock", |lie| lie.system.resources[flow.stages[0].resource].lock_ns += 1);
        refuses("a tighter limit", |lie| lie.system.flows[f].limit_ns = flow.limit_ns.map(|limit| limit - 1));
        refuses("a shorter period", |lie| {
            if let Some(arrivals) = &mut lie.system.flows[f].arrivals {
                arrivals.period_ns -= 1;
            }
        });
    }
}

#[test]
fn zero_periods_and_points_beyond_the_busy_period_are_refused() {
    let last = certificate().flows.len() - 1;
    refuses("a period of 0", |lie| lie.flows[last].stages[0].arrivals.period_ns = 0);
    refuses("a point beyond the end", |lie| {
        lie.flows[0].stages[0].points.push(Point { arrival_ns: u64::MAX, start_ns: 0 });
    });
    refuses("a server that is always available", |lie| {
        lie.system.resources[0].server = Some(Server { priority: i32::MIN, period_ns: 0, piece_ns: 1 });
    });
}

/// Numbers at the ends of their range cause neither overflow nor long computations.
#[test]
fn extreme_numbers_are_refused_or_proven() {
    let mut random = Random(7);
    let known = certificate();
    for _ in 0..3000 {
        let mut lie = known.clone();
        let flow = random.between(0, known.flows.len() as u64 - 1) as usize;
        let extreme = [0, 1, u64::MAX, u64::MAX - 1, 1 << 63][random.between(0, 4) as usize];
        let claim = &mut lie.flows[flow].stages[0];
        let stage = &mut lie.system.flows[flow].stages[0];
        match random.between(0, 14) {
            0 => claim.arrivals.period_ns = extreme,
            1 => claim.arrivals.jitter_ns = extreme,
            2 => claim.arrivals.distance_ns = extreme,
            3 => claim.busy_ns = extreme,
            4 => claim.response_ns = extreme,
            5 => claim.points[0].start_ns = extreme,
            6 => claim.points[0].arrival_ns = extreme,
            7 => stage.piece_ns = extreme.max(stage.piece_ns_min),
            8 => stage.pieces = extreme.max(1),
            9 => stage.delay_ns = extreme.max(stage.delay_ns_min),
            10 => lie.flows[flow].bound_ns = Some(extreme),
            11 => claim.points.push(Point { arrival_ns: extreme, start_ns: extreme }),
            12 => lie.system.resources[0].lock_ns = extreme,
            13 => lie.system.resources[0].server = Some(Server { priority: 1, period_ns: extreme, piece_ns: extreme }),
            _ => lie.system.flows[flow].arrivals.as_mut().expect("limited").jitter_ns = extreme,
        }
        if verify(&lie).is_ok() {
            let again = analyze(&lie.system).map(|certificate| certificate.is_kept());
            assert_eq!(again, Ok(true), "proven bounds can be computed");
        }
        // Any result is acceptable, as long as it terminates without panic.
        drop(analyze(&lie.system));
    }
}

#[test]
fn measured_times_must_be_in_the_system_with_their_margin() {
    let mut measured = certificate();
    let piece_ns = measured.system.flows[0].stages[0].piece_ns;
    let job = |name: &str, max_ns| MeasuredJobs { name: name.into(), count: 1000, max_ns };
    let jobs = vec![job("receive", piece_ns - piece_ns / 2), job("callback", piece_ns / 2)];
    let from = vec!["accounts.json".into()];
    measured.measured = vec![MeasuredTime { flow: 0, stage: 0, jobs, margin_permille: 1000, from }];
    assert_eq!(verify(&measured), Ok(()));
    let refuses = |what: &str, change: &dyn Fn(&mut MeasuredTime)| {
        let mut lie = measured.clone();
        change(&mut lie.measured[0]);
        assert!(verify(&lie).is_err(), "{what}");
    };
    refuses("a larger margin", &|time| time.margin_permille = 2000);
    refuses("a margin below 1", &|time| time.margin_permille = 999);
    refuses("a longer job", &|time| time.jobs[1].max_ns += 1);
    refuses("jobs beyond counting", &|time| time.jobs[1].max_ns = u64::MAX);
    refuses("no such flow", &|time| time.flow = usize::MAX);
    refuses("no such stage", &|time| time.stage = 99);
}
