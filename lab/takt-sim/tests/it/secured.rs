//! Worlds under DDS Security.

use takt_security::identity::KeyAlgorithm;
use takt_sim::domain::MemberKind;
use takt_sim::scenario::{Focus, Scenario};
use takt_sim::swarm;
use takt_sim::timeline::Quiet;

/// Number of seeds per run.
const SEEDS: u64 = 40;

#[test]
fn endpoints_outside_their_grants_exchange_nothing() {
    let (mut taken, mut trespassers, mut mixed) = (0, 0, 0);
    let (mut expiring, mut revoked, mut hostile) = (0, 0, 0);
    for seed in 0..SEEDS {
        let world = Scenario::focused_on(Focus::Secured, seed);
        let members = &world.domain.as_ref().expect("the world has a domain").members;
        trespassers += members.iter().filter(|member| member.kind != MemberKind::Honest).count();
        expiring += members.iter().filter(|member| member.expiry.is_some()).count();
        revoked += members.iter().filter(|member| member.renewed_rights != member.rights).count();
        let has = |algorithm| members.iter().any(|member| member.algorithm == algorithm);
        mixed += u32::from(has(KeyAlgorithm::Rsa2048) && has(KeyAlgorithm::EcP256));
        let report = swarm::run(&world, &mut Quiet);
        assert_eq!(report.violation, None, "seed {seed}");
        taken += report.taken;
        hostile += report.hostile_octets.0;
    }
    assert!(expiring > 5 && revoked > 5, "{expiring} participants expire, {revoked} lose rights");
    assert!(hostile > 1_000_000, "the hostile hosts were heard for {hostile} octets only");
    assert!(taken > 10_000, "only {taken} samples are taken");
    assert!(trespassers > 20, "only {trespassers} participants are insiders or outsiders");
    assert!(mixed > 0, "no world has both kinds of keys");
}

#[test]
fn secured_world_is_deterministic() {
    for seed in 0..5 {
        let runs = [(); 2].map(|()| swarm::run(&Scenario::focused_on(Focus::Secured, seed), &mut Quiet));
        assert_eq!(runs[0], runs[1], "seed {seed}");
    }
}
